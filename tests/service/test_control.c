/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control socket: requests over a real socket, served by a real loop in the same thread, and
 * clients and files that are not what they should be.
 */
#include "tests/support/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "service/control.h"
#include "service/control_path.h"
#include "service/service.h"
#include "tests/service/service_fixture.h"

struct control_fixture {
    struct service_fixture *service;
    struct lw_requests *requests;
    struct lw_control *control;
    char directory[32];
    char path[64];
};

static enum lw_verdict
ignore(struct lw_delivery *delivery, void *user)
{
    (void)delivery;
    (void)user;
    return LW_OK;
}

static void
turn(struct control_fixture *fixture)
{
    struct lw_loop *loop = lw_service_of(fixture->service->dispatcher)->loop;
    for (int i = 0; i < 4; i++) {
        lw_loop_poll(loop);
    }
}

static int
setup(void **state)
{
    struct control_fixture *fixture = lw_alloc(sizeof *fixture);
    assert_int_equal(service_setup((void **)&fixture->service), 0);
    fixture->service->options.handler = ignore;
    fixture->service->options.pipeline = "orders";
    fixture->service->options.engine = LW_ENGINE_LOOP;
    service_subscribe(fixture->service);
    fixture->service->options.topic = "second";
    service_subscribe(fixture->service);
    assert_int_equal(lw_requests_create(fixture->service->dispatcher, &fixture->requests), 0);
    (void)snprintf(fixture->directory, sizeof fixture->directory, "/tmp/laneway-test-XXXXXX");
    assert_non_null(mkdtemp(fixture->directory));
    (void)snprintf(fixture->path, sizeof fixture->path, "%s/orders.sock", fixture->directory);
    *state = fixture;
    return 0;
}

static int
teardown(void **state)
{
    struct control_fixture *fixture = *state;
    lw_control_close(fixture->control);
    lw_requests_destroy(fixture->requests);
    (void)unlink(fixture->path);
    assert_int_equal(rmdir(fixture->directory), 0);
    assert_int_equal(service_teardown((void **)&fixture->service), 0);
    lw_free(fixture);
    return 0;
}

static enum lw_status
open_control(struct control_fixture *fixture)
{
    return lw_control_open(fixture->requests, fixture->path, &fixture->control,
                           &fixture->service->error);
}

static int
open_client(struct control_fixture *fixture)
{
    int fd = lw_control_path_connect(lw_control_path(fixture->control));
    assert_true(fd >= 0);
    turn(fixture);
    return fd;
}

/* Sends, lets the loop turn, and reads what came. */
static void
talk(struct control_fixture *fixture, int fd, const char *request, char *out, size_t size)
{
    assert_int_equal(send(fd, request, strlen(request), 0), (ssize_t)strlen(request));
    turn(fixture);
    ssize_t got = recv(fd, out, size - 1, MSG_DONTWAIT);
    out[got > 0 ? got : 0] = '\0';
}

static void
ask(struct control_fixture *fixture, const char *request, char *out, size_t size)
{
    assert_int_equal(open_control(fixture), LW_STATUS_OK);
    int fd = open_client(fixture);
    talk(fixture, fd, request, out, size);
    close(fd);
    turn(fixture);
}

/* -- No descriptors ------------------------------------------------------------------------------- */

/* Takes every descriptor that the limit leaves; returns how many. */
static size_t
use_up(int *out, size_t room)
{
    size_t count = 0;
    while (count < room && (out[count] = dup(STDIN_FILENO)) >= 0) {
        count++;
    }
    assert_int_equal(errno, EMFILE);
    return count;
}

static void
answers_by_turns(struct control_fixture *fixture, const int *clients, size_t count)
{
    char answer[4096];
    for (size_t i = 0; i < count; i++) {
        talk(fixture, clients[i], "{\"request\":\"status\"}\n", answer, sizeof answer);
        assert_non_null(strstr(answer, "\"ok\":true"));
        close(clients[i]);
        turn(fixture);
    }
}

/* One at a time; the next is let in when the one before has gone. */
static void
who_asks_is_answered_though_no_descriptor_is_left(void **state)
{
    struct control_fixture *fixture = *state;
    struct rlimit before;
    int taken[256];
    int clients[2];
    assert_int_equal(open_control(fixture), LW_STATUS_OK);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    clients[0] = lw_control_path_connect(lw_control_path(fixture->control));
    clients[1] = lw_control_path_connect(lw_control_path(fixture->control));
    struct rlimit tight = { .rlim_cur = (rlim_t)clients[1] + 1, .rlim_max = before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
    size_t count = use_up(taken, sizeof taken / sizeof *taken);
    turn(fixture);
    answers_by_turns(fixture, clients, 2);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    for (size_t i = 0; i < count; i++) {
        close(taken[i]);
    }
}

/* -- Requests -------------------------------------------------------------------------------------- */

static void
status_is_one_line_of_json(void **state)
{
    char answer[8192];
    ask(*state, "{\"request\":\"status\"}\n", answer, sizeof answer);
    assert_non_null(strstr(answer, "\"ok\":true"));
    assert_non_null(strstr(answer, "\"topic\":\"second\""));
    assert_ptr_equal(strchr(answer, '\n'), answer + strlen(answer) - 1);
}

static void
status_as_text_is_a_table(void **state)
{
    char answer[8192];
    ask(*state, "{\"request\":\"status\",\"as\":\"text\"}\n", answer, sizeof answer);
    assert_non_null(strstr(answer, "SERVED  TOPIC"));
    assert_non_null(strstr(answer, "1st     topic"));
}

static void
what_is_no_request_gets_an_error_and_the_client_stays(void **state)
{
    struct control_fixture *fixture = *state;
    char answer[8192];
    assert_int_equal(open_control(fixture), LW_STATUS_OK);
    int fd = open_client(fixture);
    talk(fixture, fd, "status\n", answer, sizeof answer);
    assert_non_null(strstr(answer, "no JSON"));
    talk(fixture, fd, "{\"request\":\"reboot\"}\n", answer, sizeof answer);
    assert_non_null(strstr(answer, "no request \\\"reboot\\\""));
    talk(fixture, fd, "[]\n", answer, sizeof answer);
    assert_non_null(strstr(answer, "\"ok\":false"));
    talk(fixture, fd, "{\"request\":\"explain\",\"max\":-1}\n", answer, sizeof answer);
    assert_non_null(strstr(answer, "whole number"));
    talk(fixture, fd, "{\"request\":\"status\"}\n", answer, sizeof answer);
    assert_non_null(strstr(answer, "\"ok\":true"));
    close(fd);
}

static void
requests_in_one_write_are_answered_in_order(void **state)
{
    struct control_fixture *fixture = *state;
    char answer[8192];
    ask(fixture, "{\"request\":\"pause\",\"target\":\"orders\"}\n{\"request\":\"nonsense\"}\n",
        answer, sizeof answer);
    const char *second = strchr(answer, '\n');
    assert_non_null(second);
    assert_non_null(strstr(answer, "\"topics\":2"));
    assert_non_null(strstr(second, "nonsense"));
}

static void
a_request_may_come_in_pieces(void **state)
{
    struct control_fixture *fixture = *state;
    char answer[1024];
    assert_int_equal(open_control(fixture), LW_STATUS_OK);
    int fd = open_client(fixture);
    talk(fixture, fd, "{\"request\":", answer, sizeof answer);
    assert_string_equal(answer, "");
    talk(fixture, fd, "\"resume\",\"target\":\"topic\"}\n", answer, sizeof answer);
    assert_non_null(strstr(answer, "\"topics\":1"));
    close(fd);
}

/* -- Pausing --------------------------------------------------------------------------------------- */

static bool
is_paused(const struct control_fixture *fixture, int index)
{
    return fixture->service->dispatcher->streams[index]->subscription.is_paused;
}

static void
pause_takes_a_pipeline_or_one_of_its_topics(void **state)
{
    struct control_fixture *fixture = *state;
    char answer[1024];
    assert_int_equal(open_control(fixture), LW_STATUS_OK);
    int fd = open_client(fixture);
    talk(fixture, fd, "{\"request\":\"pause\",\"target\":\"orders/second\"}\n", answer,
         sizeof answer);
    assert_false(is_paused(fixture, 0));
    assert_true(is_paused(fixture, 1));
    talk(fixture, fd, "{\"request\":\"pause\",\"target\":\"orders\"}\n", answer, sizeof answer);
    assert_true(is_paused(fixture, 0));
    talk(fixture, fd, "{\"request\":\"resume\",\"target\":\"orders\"}\n", answer,
         sizeof answer);
    assert_false(is_paused(fixture, 0) || is_paused(fixture, 1));
    talk(fixture, fd, "{\"request\":\"pause\",\"target\":\"orders/other\"}\n", answer,
         sizeof answer);
    assert_non_null(strstr(answer, "\"code\":\"E0205\""));
    assert_non_null(strstr(answer, "\"exit\":66"));
    close(fd);
}

static void
status_tells_who_paused_and_why(void **state)
{
    struct control_fixture *fixture = *state;
    char answer[8192];
    ask(fixture,
        "{\"request\":\"pause\",\"target\":\"topic\",\"who\":\"ana\",\"why\":\"db\"}\n"
        "{\"request\":\"status\"}\n",
        answer, sizeof answer);
    assert_non_null(
        strstr(answer, "\"state\":\"paused\",\"reason\":\"by ana \\\"db\\\" since"));
}

static void
a_pause_with_an_end_ends_by_itself(void **state)
{
    struct control_fixture *fixture = *state;
    struct lw_loop *loop = lw_service_of(fixture->service->dispatcher)->loop;
    struct lw_host *host = fixture->service->dispatcher->host;
    char answer[1024];
    uint64_t began = host->ops->refresh(host);
    ask(fixture, "{\"request\":\"pause\",\"target\":\"topic\",\"for_ms\":2000}\n", answer,
        sizeof answer);
    assert_true(is_paused(fixture, 0));
    while (is_paused(fixture, 0) && host->now - began < 60000 * LW_MS) {
        lw_loop_turn_until(loop, began + 60000 * LW_MS);
    }
    assert_false(is_paused(fixture, 0));
    assert_true(host->now - began >= 2000 * LW_MS);
}

static void
drain_ends_a_running_dispatcher(void **state)
{
    struct control_fixture *fixture = *state;
    struct lw_dispatcher *dispatcher = fixture->service->dispatcher;
    char answer[1024];
    assert_int_equal(lw_dispatcher_poll(dispatcher, NULL), LW_STATUS_OK);
    ask(fixture, "{\"request\":\"drain\"}\n", answer, sizeof answer);
    assert_non_null(strstr(answer, "\"drain_timeout_ms\":25000"));
    assert_int_equal(lw_dispatcher_run(dispatcher, NULL), LW_STATUS_OK);
}

/* -- The socket ------------------------------------------------------------------------------------ */

static void
only_its_user_may_open_the_socket(void **state)
{
    struct control_fixture *fixture = *state;
    struct stat info;
    assert_int_equal(open_control(fixture), LW_STATUS_OK);
    assert_int_equal(stat(fixture->path, &info), 0);
    assert_true(S_ISSOCK(info.st_mode));
    assert_int_equal(info.st_mode & 0777, 0600);
}

static int
listen_at(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 4), 0);
    return fd;
}

static void
the_socket_of_a_dead_process_is_replaced(void **state)
{
    struct control_fixture *fixture = *state;
    close(listen_at(fixture->path));
    assert_int_equal(open_control(fixture), LW_STATUS_OK);
    assert_string_equal(lw_control_path(fixture->control), fixture->path);
}

static void
the_socket_of_a_live_process_is_left_alone(void **state)
{
    struct control_fixture *fixture = *state;
    char expected[64];
    struct stat info;
    int other = listen_at(fixture->path);
    (void)snprintf(expected, sizeof expected, "%s/orders-%d.sock", fixture->directory,
                   (int)getpid());
    assert_int_equal(open_control(fixture), LW_STATUS_OK);
    assert_string_equal(lw_control_path(fixture->control), expected);
    lw_control_close(fixture->control);
    fixture->control = NULL;
    assert_int_equal(stat(fixture->path, &info), 0);
    assert_int_not_equal(stat(expected, &info), 0);
    close(other);
}

static void
a_file_that_is_no_socket_is_not_removed(void **state)
{
    struct control_fixture *fixture = *state;
    struct stat info;
    FILE *file = fopen(fixture->path, "w");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(open_control(fixture), LW_STATUS_OK); /* beside it, with our number */
    assert_int_equal(stat(fixture->path, &info), 0);
    assert_true(S_ISREG(info.st_mode));
}

static void
a_path_that_cannot_be_used_is_refused_with_the_reason(void **state)
{
    struct control_fixture *fixture = *state;
    struct lw_error *error = &fixture->service->error;
    assert_int_equal(
        lw_control_open(fixture->requests, "/nowhere/at/all.sock", &fixture->control, error),
        LW_STATUS_SYSTEM);
    assert_string_equal(error->code, "E0801");
    assert_non_null(strstr(error->message, "No such file"));
    assert_non_null(strstr(error->help, "service.control"));
}

/* -- Clients that misbehave --------------------------------------------------------------------------- */

static void
an_endless_request_ends_its_client_only(void **state)
{
    struct control_fixture *fixture = *state;
    char block[8192];
    char answer[8192];
    memset(block, 'x', sizeof block);
    assert_int_equal(open_control(fixture), LW_STATUS_OK);
    int bad = open_client(fixture);
    int good = open_client(fixture);
    bool is_ended = false;
    for (int i = 0; i < 100 && !is_ended; i++) {
        is_ended = send(bad, block, sizeof block, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 &&
                   errno == EPIPE;
        turn(fixture);
    }
    assert_true(is_ended);
    talk(fixture, good, "{\"request\":\"status\"}\n", answer, sizeof answer);
    assert_non_null(strstr(answer, "\"ok\":true"));
    close(bad);
    close(good);
}

static void
a_client_that_never_reads_is_not_read_either(void **state)
{
    struct control_fixture *fixture = *state;
    static const char request[] = "{\"request\":\"status\"}\n";
    assert_int_equal(open_control(fixture), LW_STATUS_OK);
    int fd = open_client(fixture);
    bool is_full = false;
    for (int i = 0; i < 200000 && !is_full; i++) {
        is_full = send(fd, request, sizeof request - 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 &&
                  errno == EAGAIN;
        if (is_full) {
            turn(fixture);
            is_full = send(fd, request, sizeof request - 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0;
        }
    }
    assert_true(is_full);
    close(fd);
}

static void
more_than_sixteen_clients_are_turned_away(void **state)
{
    struct control_fixture *fixture = *state;
    int fds[17];
    char answer[256] = "";
    assert_int_equal(open_control(fixture), LW_STATUS_OK);
    for (int i = 0; i < 17; i++) {
        fds[i] = open_client(fixture);
    }
    assert_true(recv(fds[16], answer, sizeof answer - 1, MSG_DONTWAIT) > 0);
    assert_non_null(strstr(answer, "too many clients"));
    close(fds[0]);
    turn(fixture);
    int again = open_client(fixture);
    talk(fixture, again, "{\"request\":\"nothing\"}\n", answer, sizeof answer);
    assert_non_null(strstr(answer, "no request"));
    close(again);
    for (int i = 1; i < 17; i++) {
        close(fds[i]);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(who_asks_is_answered_though_no_descriptor_is_left),
        TEST(status_is_one_line_of_json),
        TEST(status_as_text_is_a_table),
        TEST(what_is_no_request_gets_an_error_and_the_client_stays),
        TEST(requests_in_one_write_are_answered_in_order),
        TEST(a_request_may_come_in_pieces),
        TEST(pause_takes_a_pipeline_or_one_of_its_topics),
        TEST(status_tells_who_paused_and_why),
        TEST(a_pause_with_an_end_ends_by_itself),
        TEST(drain_ends_a_running_dispatcher),
        TEST(only_its_user_may_open_the_socket),
        TEST(the_socket_of_a_dead_process_is_replaced),
        TEST(the_socket_of_a_live_process_is_left_alone),
        TEST(a_file_that_is_no_socket_is_not_removed),
        TEST(a_path_that_cannot_be_used_is_refused_with_the_reason),
        TEST(an_endless_request_ends_its_client_only),
        TEST(a_client_that_never_reads_is_not_read_either),
        TEST(more_than_sixteen_clients_are_turned_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
