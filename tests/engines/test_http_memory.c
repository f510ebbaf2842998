/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_http_memory.c: the n-th allocation of ours fails in the http engine: a making is refused
 * and leaves nothing behind, a message waits and is answered later, uncharged, and once all
 * buffers have grown a message allocates nothing. What libcurl allocates is its own.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "engines/programs/answer.h"
#include "tests/engines/http_world.h"

static struct http_server server;

static enum lw_status
create(struct world *world, const struct lw_http_options *options)
{
    struct lw_error error;
    struct lw_http_engine_options run = { .name = "obey",
                                          .http = options,
                                          .pipeline = "orders",
                                          .connections = 2,
                                          .timeout_ms = 30000,
                                          .read = lw_programs_answer_take };
    return lw_http_engine_create(world->host, &world->completions, &run, &world->engine,
                                 &error);
}

static void
a_making_without_memory_is_refused_and_leaves_nothing(void **state)
{
    struct lw_property header = { "x-tenant", "7" };
    struct lw_http_options options = http_options(server.url);
    struct world *world = world_create();
    uint64_t n = 0;
    (void)state;
    options.headers = &header;
    options.header_count = 1;
    options.token = "secret";
    options.proxy = "http://127.0.0.1:1";
    uint64_t live = lw_alloc_live();
    enum lw_status status = LW_STATUS_NO_MEMORY;
    while (status != LW_STATUS_OK) {
        lw_alloc_fail_at(++n);
        status = create(world, &options);
        lw_alloc_fail_at(0);
        assert_true(status == LW_STATUS_OK || status == LW_STATUS_NO_MEMORY);
        assert_true(status == LW_STATUS_OK || lw_alloc_live() == live);
    }
    assert_true(n > 8);
    printf("%llu allocations failed in turn\n", (unsigned long long)n - 1);
    world_destroy(world);
}

/* Runs it until it is answered well; every other end must be nobody's. */
static void
insist(struct world *world, struct lw_delivery *delivery)
{
    size_t results = world->result_count;
    for (;;) {
        world_wait(world, world_engine_has_room);
        if (!world_submit(world, delivery)) {
            continue;
        }
        world_wait_results(world, ++results);
        if (delivery->verdict == LW_OK) {
            return;
        }
        assert_true(delivery->outcome->is_uncharged);
        delivery->attempt--;
    }
}

static void
a_message_without_memory_waits_and_is_not_charged(void **state)
{
    struct lw_http_options options = http_options(server.url);
    bool has_failed = true;
    uint64_t n = 0;
    (void)state;
    while (has_failed) {
        struct world *world = world_create();
        assert_int_equal(create(world, &options), LW_STATUS_OK);
        assert_int_equal(world->engine->ops->start(world->engine, NULL), LW_STATUS_OK);
        struct lw_delivery *delivery = world_delivery(world, "echo me");
        uint64_t before = lw_alloc_count();
        lw_alloc_fail_at(++n);
        insist(world, delivery);
        has_failed = lw_alloc_count() - before >= n;
        lw_alloc_fail_at(0);
        assert_int_equal(delivery->attempt, 1);
        assert_string_equal(http_reply(delivery), "echo me");
        world_destroy(world);
    }
    assert_true(n > 6);
    printf("%llu allocations failed in turn\n", (unsigned long long)n - 1);
}

static void
once_grown_a_message_allocates_nothing_of_ours(void **state)
{
    struct lw_http_options options = http_options(server.url);
    struct world *world = world_create();
    (void)state;
    http_create(world, &options, 1, 30000);
    struct lw_delivery *delivery = world_delivery(world, "reply confirmed");
    for (int i = 0; i < 10; i++) {
        insist(world, delivery);
    }
    uint64_t before = lw_alloc_count();
    for (int i = 0; i < 200; i++) {
        insist(world, delivery);
    }
    assert_int_equal(lw_alloc_count() - before, 0);
    world_destroy(world);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_making_without_memory_is_refused_and_leaves_nothing),
        cmocka_unit_test(a_message_without_memory_waits_and_is_not_charged),
        cmocka_unit_test(once_grown_a_message_allocates_nothing_of_ours),
    };
    http_server_start(&server, 0, NULL);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    http_server_stop(&server);
    return failed;
}
