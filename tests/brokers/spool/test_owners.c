/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who has the file: one that reads it, and for as long as nobody does, one that only publishes. That
 * one leaves it to the first reader and goes on as its guest; and it deletes nothing that a reader
 * wanted to keep.
 */
#include "tests/support/test.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "brokers/spool/broker.h"
#include "brokers/spool/lock.h"
#include "brokers/spool/request.h"
#include "brokers/spool/socket.h"
#include "tests/brokers/spool/fixture.h"

static void
a_publisher_leaves_the_file_to_a_reader(void **state)
{
    struct spool *spool = *state;
    struct client *publisher = spool_open(spool, NULL);
    spool_publish(spool, publisher, "orders", "key", 0, 2);
    struct client *reader = spool_open(spool, "orders");
    spool_publish(spool, publisher, "orders", "key", 2, 2);
    spool_receive(spool, reader, 4);
    assert_int_equal(reader->messages[3].position, 3);
    spool_close(spool, publisher);
    spool_close(spool, reader);
}

/* What is on its way then is written by one of the two, and confirmed once. */
static void
nothing_is_refused_while_the_file_changes_hands(void **state)
{
    enum { COUNT = 1000 };
    struct spool *spool = *state;
    struct client *publisher = spool_open(spool, NULL);
    for (int i = 0; i < COUNT; i++) {
        client_publish(publisher, "orders", "key", "value");
    }
    struct client *reader = spool_open(spool, "orders");
    spool_await_receipts(spool, publisher, COUNT);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(publisher->sent[i].status, LW_STATUS_OK);
    }
    spool_close(spool, publisher);
    spool_receive(spool, reader, COUNT);
    assert_int_equal(reader->messages[COUNT - 1].position, COUNT - 1);
    spool_close(spool, reader);
}

/* A publisher that was a guest of this one finds the next. */
static void
guests_of_a_publisher_follow_the_file(void **state)
{
    struct spool *spool = *state;
    struct client *publisher = spool_open(spool, NULL);
    struct client *guest = spool_open(spool, NULL);
    spool_publish(spool, guest, "orders", "key", 0, 1);
    struct client *reader = spool_open(spool, "orders");
    spool_publish(spool, guest, "orders", "key", 1, 1);
    spool_receive(spool, reader, 2);
    spool_close(spool, guest);
    spool_close(spool, publisher);
    spool_close(spool, reader);
}

static void
a_publisher_that_ends_before_the_reader_comes_leaves_nothing(void **state)
{
    struct spool *spool = *state;
    struct client *publisher = spool_open(spool, NULL);
    spool_publish(spool, publisher, "orders", "key", 0, 1);
    spool_close(spool, publisher);
    assert_int_equal(spool_sql(spool, "SELECT count(*) FROM message"), 1);
    struct client *reader = spool_open(spool, "orders");
    spool_receive(spool, reader, 1);
    spool_close(spool, reader);
}

/* `send -b FILE` knows nothing of the service's `keep`. */
static void
a_publisher_deletes_nothing_that_was_settled(void **state)
{
    const struct lw_property hour = { "keep", "1h" };
    struct spool *spool = *state;
    struct client *reader = spool_open_with(spool, "orders", &hour, 1);
    spool_publish(spool, reader, "orders", "key", 0, 10);
    spool_receive(spool, reader, 10);
    for (size_t i = 0; i < 10; i++) {
        client_ack(reader, i);
    }
    spool_close(spool, reader);
    struct client *publisher = spool_open(spool, NULL);
    spool_publish(spool, publisher, "orders", "key", 10, 1);
    spool_close(spool, publisher);
    assert_int_equal(spool_sql(spool, "SELECT count(*) FROM message"), 11);
    spool_close(spool, spool_open(spool, "orders"));
    assert_int_equal(spool_sql(spool, "SELECT count(*) FROM message"), 1);
}

/* A process that reads the file until it is killed. */
static pid_t
read_in_another_process(const struct spool *spool)
{
    int ends[2];
    char byte;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        struct spool own = *spool;
        struct lw_loop *loop = NULL;
        if (lw_loop_create(2, &loop) != LW_STATUS_OK) {
            _exit(1);
        }
        own.host = lw_loop_host(loop);
        struct client *client = client_create(own.host, lw_spool_broker_ops(), "other",
                                              own.url);
        client_subscribe(client, "orders", "group");
        client_start(client);
        if (write(ends[1], "!", 1) != 1) {
            _exit(1);
        }
        for (;;) {
            pause();
        }
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    close(ends[0]);
    return child;
}

static void
a_second_reader_is_told_which_process_has_the_file(void **state)
{
    struct spool *spool = *state;
    struct lw_error error = { 0 };
    char words[64];
    pid_t child = read_in_another_process(spool);
    struct client *client = client_create(spool->host, lw_spool_broker_ops(), "spool",
                                          spool->url);
    client_subscribe(client, "orders", "group");
    assert_int_equal(client->ops->start(client->broker, &error), LW_STATUS_UNAVAILABLE);
    snprintf(words, sizeof words, "in use by process %ld", (long)child);
    assert_string_equal(error.code, "E0520");
    assert_non_null(strstr(error.message, words));
    spool_close(spool, client);
    struct client *guest = spool_open(spool, NULL);
    spool_publish(spool, guest, "orders", "key", 0, 1);
    spool_close(spool, guest);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

/* Its socket is there and nobody answers: the start asks a few times, and says who it is. */
static void
an_owner_that_was_stopped_holds_up_a_start_for_a_moment_only(void **state)
{
    struct spool *spool = *state;
    struct lw_error error = { 0 };
    pid_t child = read_in_another_process(spool);
    assert_int_equal(kill(child, SIGSTOP), 0);
    struct client *client = client_create(spool->host, lw_spool_broker_ops(), "spool",
                                          spool->url);
    client_subscribe(client, "orders", "group");
    assert_int_equal(client->ops->start(client->broker, &error), LW_STATUS_UNAVAILABLE);
    assert_string_equal(error.code, "E0520");
    spool_close(spool, client);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

/* Who asks for the file next: the question is read; what follows is the answer's or the end. */
static int
hear(int listener, bool is_to_the_end)
{
    char question[256];
    struct pollfd door = { .fd = listener, .events = POLLIN };
    (void)poll(&door, 1, -1);
    int fd = accept(listener, NULL, NULL);
    while (read(fd, question, sizeof question) > 0 && is_to_the_end) {
        continue;
    }
    return fd;
}

static void
say_yes(int fd)
{
    struct lw_text out;
    lw_text_init(&out);
    lw_spool_answer_yield(&out, false);
    (void)send(fd, out.data, out.size, MSG_NOSIGNAL); /* somebody else may be served by then */
    lw_text_deinit(&out);
    (void)close(fd);
}

/* A process that has the file, fails to leave it when it is asked first, and leaves it then. */
static pid_t
have_the_file_in_another_process(const struct spool *spool, bool is_silent)
{
    int ends[2];
    char byte;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        struct lw_spool_lock lock = { -1 };
        if (lw_spool_lock_take(&lock, spool->path, NULL, NULL) != LW_STATUS_OK) {
            _exit(1);
        }
        int listener = lw_spool_socket_listen(spool->path);
        if (write(ends[1], "!", 1) != 1) {
            _exit(1);
        }
        int first = hear(listener, is_silent);
        if (is_silent) {
            (void)close(first);
        } else {
            say_yes(first);
        }
        say_yes(hear(listener, false));
        _exit(0);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    close(ends[0]);
    return child;
}

static void
await_the_file(struct spool *spool, bool is_silent)
{
    int status = 0;
    pid_t child = have_the_file_in_another_process(spool, is_silent);
    struct client *reader = spool_open(spool, "orders");
    spool_publish(spool, reader, "orders", "key", 0, 1);
    spool_receive(spool, reader, 1);
    spool_close(spool, reader);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* Its disk was slow: it finds the question when nobody waits for the answer any more. */
static void
an_owner_that_does_not_answer_is_asked_again(void **state)
{
    await_the_file(*state, true);
}

/* Between the one that said yes and the reader another publisher came. */
static void
the_next_owner_is_asked_too(void **state)
{
    await_the_file(*state, false);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, spool_setup, spool_teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_publisher_leaves_the_file_to_a_reader),
        TEST(nothing_is_refused_while_the_file_changes_hands),
        TEST(guests_of_a_publisher_follow_the_file),
        TEST(a_publisher_that_ends_before_the_reader_comes_leaves_nothing),
        TEST(a_publisher_deletes_nothing_that_was_settled),
        TEST(a_second_reader_is_told_which_process_has_the_file),
        TEST(an_owner_that_was_stopped_holds_up_a_start_for_a_moment_only),
        TEST(an_owner_that_does_not_answer_is_asked_again),
        TEST(the_next_owner_is_asked_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
