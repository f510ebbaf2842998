/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One key, one batch, and a failure in its middle, on every engine that takes batches: what was before
 * it is done, it runs again first, and what was behind it runs again after it, uncharged. The replies,
 * which come once for each message and in order, are the proof. (The http engine has the same tasks,
 * tests/engines/test_http_batch.c, from the same dispatcher.)
 */
#include "tests/service/service_fixture.h"
#include "tests/support/test.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OBEY LW_BINARY_DIR "/tests/plugins/obey.so"
#define SCRIPT LW_SOURCE_DIR "/tests/engines/data/batch.py"

enum { TURNS_MAX = 12000, WAIT_MS = 5 };

static const char *const handlers[] = {
    "plugin: " OBEY ", engine: loop",
    "plugin: " OBEY ", engine: threads",
    "plugin: " OBEY ", engine: processes, workers: 1",
    "program: [python3, -S, " SCRIPT "], workers: 1",
    "program: [python3, -S, " SCRIPT "], workers: 1, protocol: frames",
};

static void
load(struct service_fixture *fixture, const char *handler)
{
    char path[] = "/tmp/laneway-order-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    (void)dprintf(
        fd,
        "version: 1\n"
        "brokers: { main: { url: '%s' } }\n"
        "handlers: { h: { %s, batch: { size: 4, wait: 1h } } }\n"
        "pipelines: { p: { broker: main, handler: h, ordering: key, topics: [topic],\n"
        "                  reply: { topic: replies }, retry: { in_place: true },\n"
        "                  consumer: { group: group } } }\n",
        fixture->url, handler);
    (void)close(fd);
    lw_dispatcher_destroy(fixture->dispatcher); /* a file is for one without brokers */
    fixture->dispatcher = lw_dispatcher_create(NULL, &fixture->error);
    enum lw_status status = lw_dispatcher_load(fixture->dispatcher, path, NULL, 0,
                                               &fixture->error);
    (void)unlink(path);
    if (status != LW_STATUS_OK) {
        fail_msg("%s", fixture->error.message);
    }
}

static void
publish(struct service_fixture *fixture, const char *const *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct lw_memory_item item = lw_memory_item_of("topic", "k", values[i]);
        assert_int_equal(lw_memory_hub_publish(fixture->hub, &item, NULL, NULL), LW_STATUS_OK);
    }
}

static void
run_dry(struct service_fixture *fixture)
{
    struct pollfd wait = { .fd = lw_dispatcher_fd(fixture->dispatcher), .events = POLLIN };
    for (int i = 0; i < TURNS_MAX && service_backlog(fixture, "topic") > 0; i++) {
        assert_int_equal(lw_dispatcher_poll(fixture->dispatcher, NULL), LW_STATUS_OK);
        (void)poll(&wait, 1, WAIT_MS);
    }
    assert_int_equal(service_backlog(fixture, "topic"), 0);
}

struct replies {
    char text[256];
    size_t size;
};

static void
append(const struct lw_memory_view *view, void *user)
{
    struct replies *replies = user;
    assert_true(replies->size + view->value.size < sizeof replies->text);
    memcpy(replies->text + replies->size, view->value.data, view->value.size);
    replies->size += view->value.size;
}

static void
a_partly_failed_batch_goes_on_from_its_failed_member_on_every_engine(void **state)
{
    static const char *const values[] = { "reply a", "reply b", "flaky c", "reply d" };
    static const char *const more[] = { "flaky e", "reply f", "flaky g", "reply h" };
    struct service_fixture *fixture = *state;
    size_t before = 0;
    for (size_t i = 0; i < sizeof handlers / sizeof handlers[0]; i++) {
        struct replies replies = { .size = 0 };
        load(fixture, handlers[i]);
        publish(fixture, values, 4);
        run_dry(fixture);
        publish(fixture, more, 4);
        run_dry(fixture);
        (void)lw_memory_hub_each(fixture->hub, "replies", append, &replies);
        print_message("%s\n", handlers[i]);
        assert_string_equal(replies.text + before, "abcdefgh");
        before = replies.size;
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_partly_failed_batch_goes_on_from_its_failed_member_on_every_engine, service_setup,
            service_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
