/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The owner's socket against guests that keep to nothing: noise, lengths without end, half a frame,
 * two questions at once, more guests than there are places. Each is closed or waits; the owner and a
 * decent guest go on as if nothing were.
 */
#include "tests/support/test.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "brokers/spool/broker.h"
#include "brokers/spool/client.h"
#include "brokers/spool/server.h"
#include "brokers/spool/socket.h"
#include "tests/brokers/spool/fixture.h"

enum { ANSWER_MS = 30000, CROWD = LW_SPOOL_GUESTS_MAX + 8 };

static int
connect_guest(const struct spool *spool)
{
    int fd = lw_spool_socket_connect(spool->path);
    assert_true(fd >= 0);
    return fd;
}

static void
expect_closed(int fd)
{
    struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
    char byte;
    assert_int_equal(poll(&poll_fd, 1, ANSWER_MS), 1);
    assert_true(recv(fd, &byte, 1, 0) <= 0);
    close(fd);
}

/* The owner still takes, gives and answers. */
static void
expect_well(struct spool *spool, struct client *owner)
{
    struct client *guest = spool_open(spool, NULL);
    size_t before = owner->message_count;
    spool_publish(spool, guest, "orders", "key", 0, 3);
    spool_receive(spool, owner, before + 3);
    spool_close(spool, guest);
}

static void
send_and_expect_closed(struct spool *spool, const void *data, size_t size)
{
    int fd = connect_guest(spool);
    assert_int_equal(send(fd, data, size, MSG_NOSIGNAL), (ssize_t)size);
    expect_closed(fd);
}

static void
noise_ends_the_connection_and_nothing_else(void **state)
{
    struct client *owner = spool_open(*state, "orders");
    send_and_expect_closed(*state, "\xFF\xFF\xFF\xFF", 4);
    send_and_expect_closed(*state, "\0\0\0\0", 4);
    send_and_expect_closed(*state, "\x08\0\0\0\x09\0\0\0\x01\0\0\0", 12); /* version 9 */
    send_and_expect_closed(*state, "\x08\0\0\0\x01\0\0\0\x09\0\0\0", 12); /* question 9 */
    send_and_expect_closed(*state, "\x0C\0\0\0\x01\0\0\0\x01\0\0\0\xFF\xFF\xFF\x7F", 16);
    send_and_expect_closed(*state, "\x04\0\0\0\x01\0\0\0too much", 16);
    expect_well(*state, owner);
    spool_close(*state, owner);
}

static void
half_a_frame_waits_and_may_go(void **state)
{
    struct client *owner = spool_open(*state, "orders");
    int fd = connect_guest(*state);
    assert_int_equal(send(fd, "\x40\0\0\0\x01\0", 6, MSG_NOSIGNAL), 6);
    expect_well(*state, owner);
    close(fd);
    expect_well(*state, owner);
    spool_close(*state, owner);
}

static void
a_crowd_waits_for_its_turn(void **state)
{
    int fds[CROWD];
    struct client *owner = spool_open(*state, "orders");
    for (int i = 0; i < CROWD; i++) {
        fds[i] = connect_guest(*state);
    }
    for (int i = 0; i < CROWD; i++) {
        close(fds[i]);
    }
    expect_well(*state, owner);
    spool_close(*state, owner);
}

static void
ask(struct lw_spool_client *client, const char *topic, int64_t offset, uint32_t patience_ms)
{
    const struct lw_spool_look look = {
        .topic = topic, .offset = offset, .count_max = 10, .patience_ms = patience_ms
    };
    lw_spool_begin_request(&client->out, LW_SPOOL_LOOK);
    lw_spool_put_look(&client->out, &look);
}

static void
a_look_waits_for_what_comes(void **state)
{
    struct spool *spool = *state;
    struct lw_spool_client client;
    struct lw_error error = { 0 };
    struct client *owner = spool_open(spool, "orders");
    assert_int_equal(lw_spool_client_connect(&client, spool->path, 1, &error), LW_STATUS_OK);
    ask(&client, "orders", 0, ANSWER_MS);
    lw_spool_end_frame(&client.out);
    assert_int_equal(send(client.fd, client.out.data, client.out.size, 0),
                     (ssize_t)client.out.size);
    spool_pump(spool, 50);
    struct pollfd poll_fd = { .fd = client.fd, .events = POLLIN };
    assert_int_equal(poll(&poll_fd, 1, 0), 0);
    spool_publish(spool, owner, "orders", "key", 0, 1);
    assert_int_equal(poll(&poll_fd, 1, ANSWER_MS), 1);
    lw_spool_client_close(&client);
    spool_close(spool, owner);
}

static void
a_topic_that_is_not_there_is_said(void **state)
{
    struct spool *spool = *state;
    struct lw_spool_client client;
    struct lw_error error = { 0 };
    struct client *owner = spool_open(spool, "orders");
    assert_int_equal(lw_spool_client_connect(&client, spool->path, 1, &error), LW_STATUS_OK);
    ask(&client, "nothing", 0, 0);
    assert_int_equal(lw_spool_client_ask(&client, ANSWER_MS, &error), LW_STATUS_NOT_FOUND);
    ask(&client, "orders", 0, 0);
    assert_int_equal(lw_spool_client_ask(&client, ANSWER_MS, &error), LW_STATUS_OK);
    lw_spool_client_close(&client);
    spool_close(spool, owner);
}

/* Numbers that no message can have: nothing of another topic is shown, nothing wraps around. */
static void
numbers_beyond_all_bounds_are_only_large(void **state)
{
    struct spool *spool = *state;
    struct lw_spool_client client;
    struct lw_error error = { 0 };
    struct client *owner = spool_open(spool, "orders");
    spool_publish(spool, owner, "another", "key", 0, 3);
    struct lw_publication late = { .topic = "orders",
                                   .partition = -7,
                                   .value = lw_bytes_of("late"),
                                   .event_time_ms = INT64_MIN,
                                   .delay_ms = INT64_MAX };
    assert_int_equal(lw_spool_client_connect(&client, spool->path, 1, &error), LW_STATUS_OK);
    ask(&client, "orders", INT64_MAX, 0);
    assert_int_equal(lw_spool_client_ask(&client, ANSWER_MS, &error), LW_STATUS_OK);
    assert_true(lw_spool_get_i64(&client.answer) == INT64_MAX);
    assert_int_equal(lw_spool_get_i64(&client.answer), 0);
    assert_int_equal(lw_spool_left(&client.answer), 0);
    lw_spool_begin_request(&client.out, LW_SPOOL_PUBLISH);
    lw_spool_put_u32(&client.out, 1);
    lw_spool_put_publication(&client.out, &late);
    assert_int_equal(lw_spool_client_ask(&client, ANSWER_MS, &error), LW_STATUS_OK);
    assert_int_equal(lw_spool_get_u32(&client.answer), LW_STATUS_OK);
    lw_spool_client_close(&client);
    spool_pump(spool, 50);
    spool_close(spool, owner);
    assert_int_equal(
        spool_sql(spool, "SELECT count(*) FROM unsettled WHERE due_ms > 3000000000000"), 1);
}

/* A guest that comes when told to, and is let in: 0. */
static pid_t
start_guest(const struct spool *spool, int told)
{
    pid_t child = fork();
    char byte;
    if (child == 0) {
        int fd = read(told, &byte, 1) == 1 ? lw_spool_socket_connect(spool->path) : -1;
        struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
        bool is_asked = fd >= 0 && send(fd, "\0\0\0\0", 4, MSG_NOSIGNAL) == 4;
        _exit(is_asked && poll(&poll_fd, 1, ANSWER_MS) == 1 ? 0 : 1);
    }
    return child;
}

static double
processor_s(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void
whoever_cannot_be_let_in_waits_and_costs_nothing(void **state)
{
    struct spool *spool = *state;
    struct rlimit limit;
    int ends[2];
    int status = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t child = start_guest(spool, ends[0]);
    struct client *owner = spool_open(spool, "orders");
    int lowest = dup(ends[0]);
    close(lowest);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const struct rlimit none = { (rlim_t)lowest, limit.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_int_equal(write(ends[1], "!", 1), 1);
    spool_pump(spool, 200);
    double before = processor_s();
    spool_pump(spool, 600);
    double used = processor_s() - before;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_true(used < 0.3);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(ends[0]);
    close(ends[1]);
    spool_close(spool, owner);
}

int
main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, spool_setup, spool_teardown)
    const struct CMUnitTest tests[] = {
        TEST(noise_ends_the_connection_and_nothing_else),
        TEST(half_a_frame_waits_and_may_go),
        TEST(a_crowd_waits_for_its_turn),
        TEST(a_look_waits_for_what_comes),
        TEST(a_topic_that_is_not_there_is_said),
        TEST(numbers_beyond_all_bounds_are_only_large),
        TEST(whoever_cannot_be_let_in_waits_and_costs_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
