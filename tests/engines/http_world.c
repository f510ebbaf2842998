/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_world.c: starting and ending the service of the http tests, and the engine that asks it.
 * The service is Python's; its input is a pipe of this process, so it cannot outlive the test.
 */
#include "tests/support/test.h"

#include "tests/engines/http_world.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/option.h"
#include "engines/programs/answer.h"

enum { ARGUMENTS_MAX = 16 };

extern char **environ;

/* The rows of these options belong to the service; these are the same defaults. */
__attribute__((weak)) void
lw_http_options_init(struct lw_http_options *options)
{
    *options = (struct lw_http_options){
        .size = sizeof *options,
        .connect_timeout_ms = 10000,
        .max_hold_ms = 600000,
        .answer_bytes_max = 1 << 20,
        .validates_hostname = true,
    };
}

static const char *
python_for(const char *const *arguments)
{
    for (size_t i = 0; arguments && arguments[i]; i++) {
        bool is_h2 = strcmp(arguments[i], "--h2") == 0; /* a package of the system's */
        if (is_h2 && access("/usr/bin/python3", X_OK) == 0) {
            return "/usr/bin/python3";
        }
    }
    return "python3";
}

static void
spawn(struct http_server *server, char *const *argv, int input, int output)
{
    posix_spawn_file_actions_t actions;
    assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
    assert_int_equal(posix_spawn_file_actions_adddup2(&actions, input, 0), 0);
    assert_int_equal(posix_spawn_file_actions_adddup2(&actions, output, 1), 0);
    assert_int_equal(posix_spawnp(&server->pid, argv[0], &actions, NULL, argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
}

static int
read_port(int output)
{
    char line[32] = "";
    size_t size = 0;
    while (size + 1 < sizeof line && read(output, line + size, 1) == 1 && line[size] != '\n') {
        size++;
    }
    return (int)strtol(line, NULL, 10);
}

void
http_server_start(struct http_server *server, int port, const char *const *arguments)
{
    char path[256];
    char number[16];
    const char *argv[ARGUMENTS_MAX] = { python_for(arguments), path };
    size_t count = 2;
    bool is_tls = false;
    int input[2];
    int output[2];
    (void)snprintf(path, sizeof path, "%s/tests/support/http_server.py", LW_SOURCE_DIR);
    (void)snprintf(number, sizeof number, "%d", port);
    if (port) {
        argv[count++] = "--port";
        argv[count++] = number;
    }
    for (size_t i = 0; arguments && arguments[i]; i++) {
        is_tls = is_tls || strcmp(arguments[i], "--tls") == 0;
        argv[count++] = arguments[i];
    }
    assert_int_equal(pipe2(input, O_CLOEXEC), 0);
    assert_int_equal(pipe2(output, O_CLOEXEC), 0);
    spawn(server, (char *const *)(uintptr_t)argv, input[0], output[1]);
    (void)close(input[0]);
    (void)close(output[1]);
    server->input = input[1];
    server->port = read_port(output[0]);
    (void)close(output[0]);
    (void)snprintf(server->url, sizeof server->url, "%s://127.0.0.1:%d/in",
                   is_tls ? "https" : "http", server->port);
}

void
http_server_stop(struct http_server *server)
{
    (void)close(server->input);
    (void)kill(server->pid, SIGKILL);
    (void)waitpid(server->pid, NULL, 0);
}

struct lw_http_options
http_options(const char *url)
{
    struct lw_http_options options;
    lw_http_options_init(&options);
    options.url = url;
    return options;
}

void
http_create(struct world *world, const struct lw_http_options *options, uint32_t connections,
            int64_t timeout_ms)
{
    struct lw_error error = { .message = "" };
    struct lw_http_engine_options run = {
        .name = "obey",
        .http = options,
        .pipeline = "orders",
        .connections = connections,
        .timeout_ms = timeout_ms,
        .read = lw_programs_answer_take,
    };
    if (lw_http_engine_create(world->host, &world->completions, &run, &world->engine, &error) !=
        LW_STATUS_OK) {
        fail_msg("%s", error.message);
    }
    assert_int_equal(world->engine->ops->start(world->engine, &error), LW_STATUS_OK);
}

struct world *
http_open_world(const struct http_server *server, const struct lw_http_options *over,
                int64_t timeout_ms)
{
    struct world *world = world_create();
    struct lw_http_options options = over ? *over : http_options(server->url);
    options.url = options.url ? options.url : server->url;
    http_create(world, &options, 4, timeout_ms);
    return world;
}

void
http_assert_down(struct world *world, const struct lw_delivery *delivery, const char *code)
{
    if (!delivery->outcome->is_uncharged || !world->engine->is_down) {
        fail_msg("verdict %d, reason %s", delivery->verdict, lw_delivery_reason(delivery));
    }
    assert_int_equal(world->engine->room, 0);
    if (strcmp(world->engine->down_error.code, code) != 0) {
        fail_msg("%s: %s", world->engine->down_error.code, world->engine->down_error.message);
    }
    assert_non_null(strstr(world->engine->down_error.help, "no message was charged"));
}

struct world *
http_open_at(const char *url, int64_t timeout_ms)
{
    struct lw_http_options options = http_options(url);
    struct world *world = world_create();
    http_create(world, &options, 4, timeout_ms);
    return world;
}

int
http_listen_silently(int *ret_port)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    *ret_port = ntohs(address.sin_port);
    return fd;
}

const char *
http_reply(const struct lw_delivery *delivery)
{
    static char reply[65536];
    struct lw_output view;
    if (delivery->outcome->output_count != 1) {
        fail_msg("no reply, verdict %d: %s", delivery->verdict, lw_delivery_reason(delivery));
    }
    lw_outcome_view(delivery->outcome, 0, &view, NULL);
    assert_in_range(view.value.size, 0, sizeof reply - 1);
    memcpy(reply, view.value.data, view.value.size);
    reply[view.value.size] = '\0';
    return reply;
}

struct lw_delivery *
http_ask(struct world *world, const char *text)
{
    size_t before = world->result_count;
    struct lw_delivery *delivery = world_run(world, text);
    world_wait_results(world, before + 1);
    return delivery;
}

/* Closed, the port would be anybody's: another test's, or the source of a connection to itself. */
int
http_free_port(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &(int){ 1 }, sizeof(int)), 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    return ntohs(address.sin_port);
}

/* -- A certificate --------------------------------------------------------------------------------- */

static char folder[64];
static char certificate[96];
static char key[96];

static void
remove_files(void)
{
    (void)unlink(certificate);
    (void)unlink(key);
    (void)rmdir(folder);
}

static void
make_files(void)
{
    char command[512];
    if (folder[0]) {
        return;
    }
    (void)snprintf(folder, sizeof folder, "/tmp/laneway-http-XXXXXX");
    assert_non_null(mkdtemp(folder));
    (void)snprintf(certificate, sizeof certificate, "%s/cert.pem", folder);
    (void)snprintf(key, sizeof key, "%s/key.pem", folder);
    (void)snprintf(command, sizeof command,
                   "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes "
                   "-days 30 -subj /CN=laneway-test -addext "
                   "subjectAltName=IP:127.0.0.1,DNS:localhost -keyout %s -out %s 2>/dev/null",
                   key, certificate);
    assert_int_equal(system(command), 0);
    (void)atexit(remove_files);
}

const char *
http_certificate(void)
{
    make_files();
    return certificate;
}

const char *
http_key(void)
{
    make_files();
    return key;
}
