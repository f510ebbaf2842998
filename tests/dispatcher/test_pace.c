/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handler times, dead letters of the last hour, and the word about a slow turn: on a clock that
 * the test moves, also in the middle of a handler.
 */
#include "tests/support/test.h"

#include "tests/dispatcher/world.h"

#include <string.h>

#include "engines/loop.h"

/* A handler on the loop thread that keeps it for so long. */
struct blocking {
    struct world *world;
    uint64_t takes_ms;
    enum lw_verdict verdict;
};

static enum lw_verdict
block(struct lw_delivery *delivery, void *user)
{
    struct blocking *blocking = user;
    (void)delivery;
    blocking->world->clock->host.now += blocking->takes_ms * LW_MS;
    return blocking->verdict;
}

static void
block_async(struct lw_delivery *delivery, void *user)
{
    (void)lw_delivery_finish(delivery, block(delivery, user));
}

static void
begin(struct world *world, const struct lw_subscription_options *options)
{
    world_topic(world, "orders", 1);
    world_add(world, options);
    world_start(world);
}

static void
open_blocking(struct world *world, struct blocking *blocking, bool is_async)
{
    struct lw_handler_options handler = { .user = blocking };
    *blocking = (struct blocking){ .world = world, .verdict = LW_OK };
    handler.handler = is_async ? NULL : block;
    handler.handler_async = is_async ? block_async : NULL;
    world_init(world, 4, NULL);
    world->dispatcher.history = NULL;
    assert_int_equal(lw_loop_engine_create(&world->clock->host, &world->dispatcher.completions,
                                           "slowpoke", &handler, &world->engine),
                     LW_STATUS_OK);
    assert_int_equal(lw_dispatcher_add_engine(&world->dispatcher, world->engine), LW_STATUS_OK);
    struct lw_subscription_options options = world_options("orders", 1);
    options.retry.in_place_backoff = (struct lw_backoff_options){ 100, 1, 100, 0 };
    begin(world, &options);
}

static int64_t
quantile_ms(const struct world *world, double q)
{
    uint64_t ns = 0;
    const struct lw_stream *stream = world->dispatcher.streams[0];
    bool is_known = lw_latency_quantile(&stream->handler_time, world->clock->host.now, q, &ns);
    return is_known ? (int64_t)((ns + LW_MS / 2) / LW_MS) : -1;
}

static void
a_handler_takes_from_its_start_to_its_answer(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, 4, NULL);
    struct lw_subscription_options options = world_options("orders", 1);
    begin(&world, &options);
    assert_int_equal(quantile_ms(&world, 0.5), -1);
    world_send(&world, "orders", 0, "a", 2); /* the second one waits for its key */
    world_turn(&world);
    world_pass(&world, 40);
    world_finish(&world, 0, LW_OK);
    assert_int_equal(quantile_ms(&world, 1), 40);
    world_pass(&world, 80);
    world_finish(&world, 0, LW_OK);
    assert_in_range(quantile_ms(&world, 1), 79, 81);
    assert_in_range(quantile_ms(&world, 0.5), 39, 41);
    world_deinit(&world);
}

static void
times_of_the_minute_before_last_are_forgotten(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, 1, NULL);
    struct lw_subscription_options options = world_options("orders", 1);
    begin(&world, &options);
    world_send(&world, "orders", 0, "a", 1);
    world_turn(&world);
    world_pass(&world, 40);
    world_finish(&world, 0, LW_OK);
    world_pass(&world, 59000);
    assert_int_equal(quantile_ms(&world, 0.5), 40);
    world_pass(&world, 61000);
    assert_int_equal(quantile_ms(&world, 0.5), -1);
    world_send(&world, "orders", 0, "a", 1);
    world_turn(&world);
    world_pass(&world, 7);
    world_finish(&world, 0, LW_OK);
    assert_int_equal(quantile_ms(&world, 1), 7);
    world_deinit(&world);
}

static void
a_blocking_handler_on_the_loop_thread_is_measured_inside_its_call(void **state)
{
    (void)state;
    struct world world;
    struct blocking blocking;
    open_blocking(&world, &blocking, false);
    blocking.takes_ms = 30;
    world_send(&world, "orders", 0, "a", 20);
    world_turn(&world);
    assert_in_range(quantile_ms(&world, 0.5), 29, 31);
    assert_in_range(quantile_ms(&world, 1), 29, 31);
    world_deinit(&world);
}

static void
failures_have_a_handler_time_too(void **state)
{
    (void)state;
    struct world world;
    struct blocking blocking;
    open_blocking(&world, &blocking, false);
    blocking.takes_ms = 30;
    blocking.verdict = LW_DROP;
    world_send(&world, "orders", 0, "a", 1);
    world_turn(&world);
    assert_in_range(quantile_ms(&world, 1), 29, 31);
    world_deinit(&world);
}

static void
dead_letters_count_for_an_hour(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, 2, NULL);
    struct lw_subscription_options options = world_options("orders", 1);
    begin(&world, &options);
    world_send(&world, "orders", 0, "a", 2);
    world_turn(&world);
    world_finish(&world, 0, LW_DEAD);
    world_pass(&world, 100);
    world_finish(&world, 0, LW_OK);
    const struct lw_hourly *dead = &world.dispatcher.streams[0]->dead;
    assert_int_equal(lw_hourly_count(dead, world.clock->host.now), 1);
    world_pass(&world, INT64_C(58) * 60000);
    assert_int_equal(lw_hourly_count(dead, world.clock->host.now), 1);
    world_pass(&world, INT64_C(2) * 60000);
    assert_int_equal(lw_hourly_count(dead, world.clock->host.now), 0);
    world_deinit(&world);
}

static size_t
count_slow(const struct world *world)
{
    size_t count = 0;
    const char *at = world->log.data ? world->log.data : "";
    while ((at = strstr(at, "loop.slow")) != NULL) {
        at++;
        count++;
    }
    return count;
}

static void
a_handler_that_holds_up_the_loop_is_named(void **state)
{
    (void)state;
    for (int is_async = 0; is_async < 2; is_async++) {
        struct world world;
        struct blocking blocking;
        open_blocking(&world, &blocking, is_async);
        blocking.takes_ms = 150;
        world_send(&world, "orders", 0, "a", 1);
        world_turn(&world);
        assert_true(world_logged(&world, "loop.slow"));
        assert_true(world_logged(&world, "took_ms=150 turns=1 handlers=slowpoke"));
        world_deinit(&world);
    }
}

static void
a_turn_within_the_threshold_is_not_said(void **state)
{
    (void)state;
    struct world world;
    struct blocking blocking;
    open_blocking(&world, &blocking, false);
    blocking.takes_ms = 99;
    world_send(&world, "orders", 0, "a", 1);
    world_turn(&world);
    world_pass(&world, 5000);
    assert_int_equal(count_slow(&world), 0);
    world_deinit(&world);
}

static void
slow_turns_are_said_once_in_ten_seconds_and_counted(void **state)
{
    (void)state;
    struct world world;
    struct blocking blocking;
    open_blocking(&world, &blocking, false);
    blocking.takes_ms = 200;
    for (int i = 0; i < 6; i++) {
        world_send(&world, "orders", 0, "a", 1);
        world_turn(&world);
        assert_int_equal(count_slow(&world), 1);
        world_pass(&world, 1000);
    }
    world_pass(&world, 10000);
    world_send(&world, "orders", 0, "a", 1);
    world_turn(&world);
    assert_int_equal(count_slow(&world), 2);
    assert_true(world_logged(&world, "took_ms=200 turns=6 handlers=slowpoke"));
    world_deinit(&world);
}

static void
a_slow_turn_without_a_handler_blames_none(void **state)
{
    (void)state;
    struct world world;
    struct blocking blocking;
    open_blocking(&world, &blocking, false);
    world_send(&world, "orders", 0, "a", 1);
    world_turn(&world);
    world_pass(&world, 1); /* a handler ran, but in another turn */
    uint64_t began = world.clock->host.now;
    world.clock->host.now += 300 * LW_MS;
    (void)lw_dispatcher_step(&world.dispatcher, began);
    assert_true(world_logged(&world, "took_ms=300 turns=1 handlers=-"));
    world_deinit(&world);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_handler_takes_from_its_start_to_its_answer),
        cmocka_unit_test(times_of_the_minute_before_last_are_forgotten),
        cmocka_unit_test(a_blocking_handler_on_the_loop_thread_is_measured_inside_its_call),
        cmocka_unit_test(failures_have_a_handler_time_too),
        cmocka_unit_test(dead_letters_count_for_an_hour),
        cmocka_unit_test(a_handler_that_holds_up_the_loop_is_named),
        cmocka_unit_test(a_turn_within_the_threshold_is_not_said),
        cmocka_unit_test(slow_turns_are_said_once_in_ten_seconds_and_counted),
        cmocka_unit_test(a_slow_turn_without_a_handler_blames_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
