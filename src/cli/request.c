/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command's side of the control socket, blocking: one request, one answer, with a deadline so
 * that a service that hangs does not hang its operator.
 */
#include "cli/request.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/timers.h"
#include "service/control_path.h"

enum { ANSWER_TIMEOUT_MS = 10000, ANSWER_BYTES_MAX = 64 << 20 };

/* -- Finding the service ------------------------------------------------------------------------- */

static enum lw_status
find_only(char out[LW_CONTROL_PATH_MAX], struct lw_error *error)
{
    struct lw_control_paths paths;
    struct lw_text list;
    lw_control_paths_find(&paths);
    if (paths.count == 1) {
        lw_text_copy(out, LW_CONTROL_PATH_MAX, paths.paths[0]);
        return LW_STATUS_OK;
    }
    if (paths.count == 0) {
        (void)lw_error_set(error, LW_STATUS_UNAVAILABLE, "E0803",
                           "no running service was found");
        lw_error_help(error,
                      "start one by: laneway run -c FILE; or give --url unix:PATH, which "
                      "the service logs when it is ready");
        return LW_STATUS_UNAVAILABLE;
    }
    lw_text_init(&list);
    for (size_t i = 0; i < paths.count; i++) {
        lw_text_format(&list, "\n      --url unix:%s", paths.paths[i]);
    }
    (void)lw_error_set(error, LW_STATUS_UNAVAILABLE, "E0803", "%zu services are running",
                       paths.count);
    lw_error_help(error, "say which:%s", list.data ? list.data : "");
    lw_text_deinit(&list);
    return LW_STATUS_UNAVAILABLE;
}

static enum lw_status
find_path(const struct lw_cli *cli, char out[LW_CONTROL_PATH_MAX], struct lw_error *error)
{
    const char *url = cli->url ? cli->url : getenv("LANEWAY_URL");
    if (!url || !url[0]) {
        return find_only(out, error);
    }
    if (strncmp(url, "unix:", 5) != 0 && url[0] != '/') {
        return lw_error_set(error, LW_STATUS_INVALID, "",
                            "the URL \"%s\" does not begin with unix:", url);
    }
    const char *path = url[0] == '/' ? url : url + 5;
    if (strlen(path) >= LW_CONTROL_PATH_MAX) {
        return lw_error_set(error, LW_STATUS_INVALID, "", "the path is too long: %s", path);
    }
    lw_text_copy(out, LW_CONTROL_PATH_MAX, path);
    return LW_STATUS_OK;
}

static enum lw_status
open_service(const struct lw_cli *cli, int *ret_fd, struct lw_error *error)
{
    char path[LW_CONTROL_PATH_MAX];
    enum lw_status status = find_path(cli, path, error);
    if (status != LW_STATUS_OK) {
        return status;
    }
    *ret_fd = lw_control_path_connect(path);
    if (*ret_fd < 0) {
        bool is_denied = errno == EACCES;
        status = lw_error_set(error, is_denied ? LW_STATUS_DENIED : LW_STATUS_UNAVAILABLE,
                              "E0803", "no service answers at %s: %s", path,
                              strerrordesc_np(errno));
        if (is_denied) {
            lw_error_help(error, "only the user who runs the service may ask it");
        }
    }
    return status;
}

/* -- One question, one answer -------------------------------------------------------------------- */

static bool
write_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t sent = send(fd, data, size, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR) {
            return false;
        }
        data += sent > 0 ? sent : 0;
        size -= sent > 0 ? (size_t)sent : 0;
    }
    return true;
}

/* Reads up to the end of the line; false on an end, an error or when it takes too long. */
static bool
read_line(int fd, struct lw_text *line)
{
    uint64_t deadline = lw_clock_monotonic_ns() + ANSWER_TIMEOUT_MS * LW_MS;
    char buffer[65536];
    while (line->size == 0 || line->data[line->size - 1] != '\n') {
        uint64_t now = lw_clock_monotonic_ns();
        struct pollfd item = { .fd = fd, .events = POLLIN };
        int ready = now < deadline ? poll(&item, 1, (int)((deadline - now) / LW_MS) + 1) : 0;
        if (ready < 0 && errno == EINTR) {
            continue;
        }
        ssize_t got = ready > 0 ? recv(fd, buffer, sizeof buffer, 0) : 0;
        if (got <= 0 || line->size > ANSWER_BYTES_MAX) {
            return false;
        }
        lw_text_append_bytes(line, buffer, (size_t)got);
    }
    return !line->is_failed;
}

static enum lw_status
ask(const struct lw_cli *cli, const struct lw_text *request, struct lw_text *answer,
    struct lw_error *error)
{
    int fd = -1;
    enum lw_status status = open_service(cli, &fd, error);
    if (status != LW_STATUS_OK) {
        return status;
    }
    if (!write_all(fd, request->data, request->size) || !read_line(fd, answer)) {
        status = lw_error_set(error, LW_STATUS_UNAVAILABLE, "E0803",
                              "the service gave no answer within %d s",
                              ANSWER_TIMEOUT_MS / 1000);
    }
    close(fd);
    return status;
}

/* -- Showing it ---------------------------------------------------------------------------------- */

static const char *
text_of(const json_t *answer, const char *key)
{
    const char *value = json_string_value(json_object_get(answer, key));
    return value ? value : "";
}

static int
show_refusal(const json_t *answer)
{
    const char *code = text_of(answer, "code");
    const char *help = text_of(answer, "help");
    lw_cli_say("error%s%s%s: %s%s%s", code[0] ? "[" : "", code, code[0] ? "]" : "",
               text_of(answer, "error"), help[0] ? "\nhelp: " : "", help);
    json_int_t exit_code = json_integer_value(json_object_get(answer, "exit"));
    return exit_code > 0 && exit_code < 126 ? (int)exit_code : LW_EXIT_FAILED;
}

static int
show(struct lw_cli *cli, const struct lw_text *line, const char *key)
{
    json_t *answer = json_loadb(line->data, line->size, 0, NULL);
    int exit_code = LW_EXIT_OK;
    if (!json_is_object(answer)) {
        lw_cli_say("laneway: the service answered something that is no JSON");
        exit_code = LW_EXIT_UNAVAILABLE;
    } else if (!json_is_true(json_object_get(answer, "ok"))) {
        exit_code = show_refusal(answer);
    } else if (cli->is_json) {
        const json_t *part = key ? json_object_get(answer, key) : answer;
        char *dump = json_dumps(part ? part : answer, JSON_COMPACT | JSON_PRESERVE_ORDER);
        lw_text_format(&cli->out, "%s\n", dump ? dump : "");
        free(dump); /* banned-ok: jansson allocated it */
    } else {
        lw_text_append(&cli->out, text_of(answer, "text"));
    }
    json_decref(answer);
    return exit_code;
}

void
lw_cli_request_begin(struct lw_json *json, struct lw_text *text, const char *name)
{
    lw_text_init(text);
    lw_json_init(json, text);
    lw_json_object(json);
    lw_json_key(json, "request");
    lw_json_string(json, name);
}

int
lw_cli_request_send(struct lw_cli *cli, struct lw_json *json, struct lw_text *text,
                    const char *key)
{
    struct lw_error error = { 0 };
    struct lw_text answer;
    int exit_code = 0;
    lw_text_init(&answer);
    lw_json_object_end(json);
    lw_text_append_char(text, '\n');
    if (text->is_failed) {
        exit_code = lw_cli_fail_memory();
    } else if (ask(cli, text, &answer, &error) != LW_STATUS_OK) {
        exit_code = lw_cli_fail(cli, &error);
    } else {
        exit_code = show(cli, &answer, key);
    }
    lw_text_deinit(&answer);
    lw_text_deinit(text);
    return exit_code;
}
