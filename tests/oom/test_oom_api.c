/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The n-th allocation fails, for every n: making, filling, running and asking a dispatcher then
 * says that memory ran out or does its work; it never crashes, hangs or leaks.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "brokers/memory/hub.h"
#include "service/requests.h"

enum { MESSAGES = 3, FAILURES_MAX = 5000 };

struct world {
    struct lw_memory_hub *hub;
    char url[64];
    struct lw_dispatcher *dispatcher;
    unsigned handled;
};

static enum lw_verdict
handle(struct lw_delivery *delivery, void *user)
{
    struct world *world = user;
    if (++world->handled >= MESSAGES) {
        lw_dispatcher_request_close(world->dispatcher);
    }
    (void)lw_delivery_reply(delivery, lw_bytes_of("done"));
    return LW_OK;
}

static void
on_time(void *user)
{
    lw_dispatcher_request_close(user);
}

static enum lw_status
fill(struct world *world, struct lw_error *error)
{
    struct lw_subscription_options options;
    lw_subscription_options_init(&options);
    options.broker = "main";
    options.topic = "topic";
    options.subscription = "group";
    options.engine = LW_ENGINE_LOOP;
    options.handler = handle;
    options.user = world;
    options.reply.topic = "replies";
    enum lw_status status = lw_dispatcher_connect(world->dispatcher, "main", world->url, NULL,
                                                  0, error);
    if (status == LW_STATUS_OK) {
        status = lw_dispatcher_subscribe(world->dispatcher, &options, error);
    }
    if (status == LW_STATUS_OK) {
        options.topic = "other";
        options.engine = LW_ENGINE_THREADS;
        options.threads = 1;
        options.handler = NULL;
        options.plugin = LW_BINARY_DIR "/tests/plugins/journal.so";
        status = lw_dispatcher_subscribe(world->dispatcher, &options, error);
    }
    return status;
}

static enum lw_status
ask(struct world *world)
{
    static const char request[] = "{\"request\":\"status\"}";
    struct lw_requests *requests = NULL;
    struct lw_text answer;
    enum lw_status status = lw_requests_create(world->dispatcher, &requests);
    if (status == LW_STATUS_OK) {
        lw_text_init(&answer);
        lw_requests_answer(requests, request, sizeof request - 1, &answer);
        lw_text_deinit(&answer);
        lw_requests_destroy(requests);
    }
    return status;
}

/* The life of one dispatcher; the status of the first step that failed. */
static enum lw_status
live(struct world *world)
{
    struct lw_error error = { 0 };
    world->handled = 0;
    world->dispatcher = lw_dispatcher_create(NULL, &error);
    if (!world->dispatcher) {
        return error.status;
    }
    enum lw_status status = fill(world, &error);
    if (status == LW_STATUS_OK) {
        status = ask(world);
    }
    /* Whatever fails while it runs, it ends: 50 ms are enough for three messages. */
    if (status == LW_STATUS_OK &&
        !lw_loop_timer(world->dispatcher, 50000, on_time, world->dispatcher)) {
        status = LW_STATUS_NO_MEMORY;
    }
    if (status == LW_STATUS_OK) {
        status = lw_dispatcher_run(world->dispatcher, &error);
    }
    lw_dispatcher_destroy(world->dispatcher);
    return status;
}

static void
publish(struct world *world)
{
    for (int i = 0; i < MESSAGES; i++) {
        struct lw_memory_item item = lw_memory_item_of("topic", "k", "value");
        assert_int_equal(lw_memory_hub_publish(world->hub, &item, NULL, NULL), LW_STATUS_OK);
    }
}

static bool
is_expected(enum lw_status status)
{
    return status == LW_STATUS_OK || status == LW_STATUS_NO_MEMORY ||
           status == LW_STATUS_SYSTEM || status == LW_STATUS_UNFINISHED;
}

static void
a_dispatcher_survives_every_failing_allocation(void **state)
{
    struct world world = { 0 };
    unsigned failures = 0;
    uint64_t needed = 0;
    (void)state;
    for (uint64_t n = 1; n < FAILURES_MAX; n++) {
        char name[48];
        (void)snprintf(name, sizeof name, "oom-%d-%llu", (int)getpid(), (unsigned long long)n);
        (void)snprintf(world.url, sizeof world.url, "memory:%s", name);
        world.hub = lw_memory_hub_open(name, NULL);
        publish(&world);
        uint64_t count_before = lw_alloc_count();
        lw_alloc_fail_at(n);
        enum lw_status status = live(&world);
        lw_alloc_fail_at(0);
        needed = lw_alloc_count() - count_before;
        assert_true(is_expected(status));
        failures += status != LW_STATUS_OK;
        lw_memory_hub_close(world.hub);
        if (status == LW_STATUS_OK && n > needed) {
            break;
        }
    }
    assert_true(failures > 20);
    assert_int_equal(lw_alloc_live(), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dispatcher_survives_every_failing_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
