/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Retries in place: when a message runs again, how often, what holds meanwhile, and where it ends
 * when nothing is left to try. Retry topics are in test_republish.c.
 */
#include "tests/support/test.h"

#include "tests/dispatcher/world.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

static struct lw_subscription_options
open_world(struct world *world, uint32_t slots)
{
    world_init(world, slots, NULL);
    struct lw_subscription_options options = world_options("orders", 1);
    options.retry.in_place_backoff.jitter_ms = 0;
    return options;
}

static void
begin(struct world *world, const struct lw_subscription_options *options)
{
    world_topic(world, "orders", 1);
    world_add(world, options);
    world_start(world);
}

/* One message on its first run. */
static void
begin_with_one(struct world *world, const struct lw_subscription_options *options)
{
    begin(world, options);
    world_send(world, "orders", 0, "k", 1);
    world_turn(world);
    assert_int_equal(world->running_count, 1);
}

/* Fails the test unless the next run starts after that time; a tick of the wheel is 64 us. */
static void
expect_run_after(struct world *world, int64_t ms)
{
    assert_int_equal(world->running_count, 0);
    world_pass(world, ms - 1);
    assert_int_equal(world->running_count, 0);
    world_pass(world, 2);
    assert_int_equal(world->running_count, 1);
}

static enum lw_verdict
fail_always(struct lw_delivery *delivery, void *user)
{
    (void)user;
    return lw_delivery_error(delivery, 1, "no luck");
}

static void
delays_double_up_to_their_cap(void **state)
{
    static const int64_t delays_ms[] = { 1000, 2000, 4000, 8000, 16000, 30000, 30000 };
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1);
    options.retry.max_attempts = 8;
    begin_with_one(&world, &options);
    for (uint32_t i = 0; i < 7; i++) {
        assert_int_equal(lw_delivery_attempt(world.running[0]), i + 1);
        world_finish(&world, 0, LW_RETRY);
        expect_run_after(&world, delays_ms[i]);
    }
    world_finish(&world, 0, LW_RETRY);
    assert_int_equal(world_count(&world, "orders.dlq"), 1);
    world_deinit(&world);
}

static void
delays_of_another_base_and_factor_are_exact(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1);
    options.retry.max_attempts = 4;
    options.retry.in_place_backoff = (struct lw_backoff_options){ 100, 4, 100000, 0 };
    begin_with_one(&world, &options);
    for (int64_t delay_ms = 100; delay_ms <= 1600; delay_ms *= 4) {
        world_finish(&world, 0, LW_ERROR);
        expect_run_after(&world, delay_ms);
    }
    world_finish(&world, 0, LW_ERROR);
    assert_int_equal(world_count(&world, "orders.dlq"), 1);
    world_deinit(&world);
}

static void
jitter_is_only_added_and_differs(void **state)
{
    struct world world;
    uint64_t starts[50] = { 0 };
    (void)state;
    struct lw_subscription_options options = open_world(&world, 50);
    options.ordering = LW_ORDERING_NONE;
    options.retry.in_place_backoff.jitter_ms = 200;
    begin(&world, &options);
    world_send(&world, "orders", 0, NULL, 50);
    world_turn(&world);
    uint64_t failed_at = world.clock->host.now;
    for (int i = 0; i < 50; i++) {
        world_finish(&world, 0, LW_RETRY);
    }
    uint32_t different = 0;
    world_pass(&world, 1300);
    assert_int_equal(world.running_count, 50);
    for (int i = 0; i < 50; i++) {
        starts[i] = world.running[i]->started_at;
        assert_in_range(starts[i] - failed_at, 1000 * LW_MS, 1201 * LW_MS);
        different += i > 0 && starts[i] != starts[i - 1];
    }
    assert_true(different > 20);
    world_deinit(&world);
}

static void
a_delay_of_the_handler_wins_over_the_backoff(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1);
    begin_with_one(&world, &options);
    enum lw_verdict verdict = lw_delivery_retry(world.running[0], "busy", 5000);
    world_finish(&world, 0, verdict);
    expect_run_after(&world, 5000);
    verdict = lw_delivery_retry(world.running[0], "busy", 0);
    world_finish(&world, 0, verdict);
    world_pass(&world, 1);
    assert_int_equal(world.running_count, 1);
    assert_int_equal(lw_delivery_attempt(world.running[0]), 3);
    world_deinit(&world);
}

static void
an_absurd_delay_is_cut_to_a_day(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1);
    begin_with_one(&world, &options);
    enum lw_verdict verdict = lw_delivery_retry(world.running[0], "later", INT64_MAX);
    world_finish(&world, 0, verdict);
    expect_run_after(&world, INT64_C(24) * 3600 * 1000);
    world_deinit(&world);
}

static void
a_delay_does_not_outlive_its_run(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1);
    begin_with_one(&world, &options);
    enum lw_verdict verdict = lw_delivery_retry(world.running[0], "busy", 7000);
    world_finish(&world, 0, verdict);
    expect_run_after(&world, 7000);
    world_finish(&world, 0, LW_RETRY); /* says no delay: the backoff of the second run */
    expect_run_after(&world, 2000);
    world_deinit(&world);
}

static void
nothing_is_committed_while_a_message_waits_for_its_retry(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 2);
    begin(&world, &options);
    world_send(&world, "orders", 0, "a", 1);
    world_send(&world, "orders", 0, "b", 20);
    world_turn(&world);
    world_finish(&world, 0, LW_RETRY);
    for (int i = 0; i < 20; i++) { /* the other lane goes on, and so do slots */
        world_finish(&world, 0, LW_OK);
    }
    world_pass(&world, 900);
    assert_int_equal(world_committed(&world, "orders", 0), -1);
    world_pass(&world, 200);
    world_finish(&world, 0, LW_OK);
    world_pass(&world, 200);
    assert_int_equal(world_committed(&world, "orders", 0), 21);
    world_deinit(&world);
}

static void
later_messages_of_the_key_wait_for_the_retried_one(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 4);
    begin(&world, &options);
    world_send(&world, "orders", 0, "a", 3);
    world_turn(&world);
    world_finish(&world, 0, LW_RETRY);
    world_pass(&world, 999);
    assert_int_equal(world.running_count, 0);
    world_pass(&world, 2);
    world_finish_all(&world);
    assert_true(world_told(&world, "start:orders/0/0 judge:orders/0/0 start:orders/0/0 "
                                   "judge:orders/0/0 settle:orders/0/0=0 start:orders/0/1 "));
    world_deinit(&world);
}

static void
an_exhausted_message_is_dead_lettered_with_every_header(void **state)
{
    struct world world;
    char expected[256];
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1);
    begin(&world, &options);
    world.answer = fail_always;
    struct lw_header headers[] = { { lw_bytes_of("h"), lw_bytes_of("1") },
                                   { lw_bytes_of("h"), lw_bytes_of("2") } };
    struct lw_memory_item item = lw_memory_item_of("orders", "key", "value");
    item.headers = headers;
    item.header_count = 2;
    assert_int_equal(lw_memory_hub_publish(world.hub, &item, NULL, NULL), LW_STATUS_OK);
    world_pass(&world, 10000);
    assert_int_equal(world.started_count, 3);
    snprintf(expected, sizeof(expected),
             "key|value|h=1,h=2,x-error-reason=no luck,x-retry-attempt=3,source-topic=orders,"
             "partition=0,offset=0,epoch=%s,x-laneway-id=main/orders/0/0,"
             "x-laneway-timestamp=1700000000000,x-laneway-dead-letter-topic=orders.dlq,"
             "x-laneway-retries=0",
             world_stored_header(&world, "orders.dlq", 0, "epoch"));
    assert_string_equal(world_stored(&world, "orders.dlq", 0), expected);
    assert_int_equal(world_committed(&world, "orders", 0), 1);
    world_deinit(&world);
}

static void
a_long_reason_is_cut_at_512_bytes(void **state)
{
    struct world world;
    char reason[4097];
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1);
    begin_with_one(&world, &options);
    memset(reason, 'r', sizeof(reason) - 1);
    reason[sizeof(reason) - 1] = '\0';
    enum lw_verdict verdict = lw_delivery_dead(world.running[0], reason);
    world_finish(&world, 0, verdict);
    world_turn(&world);
    reason[512] = '\0';
    assert_string_equal(world_stored_header(&world, "orders.dlq", 0, "x-error-reason"), reason);
    world_deinit(&world);
}

/* -- codes and policies -------------------------------------------------------------------------- */

static void
error_codes_mean_what_their_class_says(void **state)
{
    static const struct lw_error_class classes[] = {
        { 2, 2, LW_DEAD }, { 10, 19, LW_DROP }, { 15, 30, LW_RETRY }, { 40, 40, LW_OK }
    };
    static const struct {
        int code;
        const char *told;
    } cases[] = { { 2, "settle:orders/0/0=2 " },
                  { 10, "settle:orders/0/0=3 " },
                  { 15, "judge:orders/0/0 start:orders/0/0 " }, /* retry beats drop */
                  { 40, "settle:orders/0/0=0 " },
                  { 99, "settle:orders/0/0=3 " } }; /* no class: on_error */
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct world world;
        struct lw_subscription_options options = open_world(&world, 1);
        options.errors = classes;
        options.error_count = 4;
        options.on_error = LW_ON_ERROR_DROP;
        begin_with_one(&world, &options);
        enum lw_verdict verdict = lw_delivery_error(world.running[0], cases[i].code, "x");
        world_finish(&world, 0, verdict);
        world_pass(&world, 1500);
        assert_true(world_told(&world, cases[i].told));
        world_deinit(&world);
    }
}

static void
on_error_decides_what_an_error_means(void **state)
{
    static const struct {
        enum lw_on_error on_error;
        const char *told;
    } cases[] = { { LW_ON_ERROR_DEFAULT, "judge:orders/0/0 start:orders/0/0 " },
                  { LW_ON_ERROR_RETRY, "judge:orders/0/0 start:orders/0/0 " },
                  { LW_ON_ERROR_REDELIVER, "judge:orders/0/0 start:orders/0/0 " },
                  { LW_ON_ERROR_DEAD, "settle:orders/0/0=2 " },
                  { LW_ON_ERROR_DROP, "settle:orders/0/0=3 " } };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct world world;
        struct lw_subscription_options options = open_world(&world, 1);
        options.on_error = cases[i].on_error;
        begin_with_one(&world, &options);
        world_finish(&world, 0, LW_ERROR);
        world_pass(&world, 1500);
        assert_true(world_told(&world, cases[i].told));
        assert_false(world_told(&world, "settle:orders/0/0=4"));
        world_deinit(&world);
    }
}

static void
dead_and_drop_end_a_message_at_once(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1);
    begin(&world, &options);
    world_send(&world, "orders", 0, "k", 2);
    world_turn(&world);
    world_finish(&world, 0, LW_DEAD);
    world_finish(&world, 0, LW_DROP);
    world_pass(&world, 200);
    assert_int_equal(world_count(&world, "orders.dlq"), 1);
    assert_int_equal(world_committed(&world, "orders", 0), 2);
    assert_int_equal(world.started_count, 2);
    world_deinit(&world);
}

static void
one_attempt_means_no_retry(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1);
    options.retry.max_attempts = 1;
    begin_with_one(&world, &options);
    world_finish(&world, 0, LW_RETRY);
    world_pass(&world, 60000);
    assert_int_equal(world.started_count, 1);
    assert_int_equal(world_count(&world, "orders.dlq"), 1);
    world_deinit(&world);
}

static void
an_exhausted_message_without_a_dead_letter_is_dropped_aloud(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1);
    options.dead_letter.is_off = true;
    world.answer = fail_always;
    begin(&world, &options);
    world_send(&world, "orders", 0, "k", 1);
    world_pass(&world, 10000);
    assert_int_equal(world_committed(&world, "orders", 0), 1);
    assert_int_equal(world_count(&world, "orders.dlq"), 0);
    assert_true(world_logged(&world, "message.failed: dropped"));
    const struct lw_counters *counters = &world.dispatcher.streams[0]->counters;
    assert_int_equal(counters->settled[LW_SETTLED_DROPPED], 1);
    world_deinit(&world);
}

static void
a_held_message_keeps_its_lane_and_the_commit(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 4);
    options.dead_letter.is_off = true;
    options.on_exhausted = LW_ON_EXHAUSTED_HOLD;
    begin(&world, &options);
    world_send(&world, "orders", 0, "a", 2);
    world_send(&world, "orders", 0, "b", 5);
    world_turn(&world);
    world_finish(&world, 0, LW_DEAD);
    world_finish_all(&world);
    world_pass(&world, 100000);
    assert_int_equal(world.started_count, 6); /* the second of "a" waits behind it */
    assert_int_equal(world_committed(&world, "orders", 0), -1);
    assert_int_equal(world.dispatcher.streams[0]->counters.held, 1);
    assert_int_equal(world_close(&world), LW_STATUS_UNFINISHED);
    world_deinit(&world);
}

/* Stops by policy; the message is not settled and comes again at the next start. */
static void
expect_stop(struct world *world, const struct lw_subscription_options *options)
{
    begin(world, options);
    world_send(world, "orders", 0, "a", 2);
    world_turn(world);
    world_finish(world, 0, LW_ERROR);
    for (int i = 0; i < 100 && world->dispatcher.phase != LW_PHASE_CLOSED; i++) {
        world_pass(world, 10);
    }
    assert_int_equal(world->dispatcher.phase, LW_PHASE_CLOSED);
    assert_int_equal(world->dispatcher.end_status, LW_STATUS_STOPPED);
    assert_string_equal(world->dispatcher.end_error.code, "E0710");
    assert_int_equal(world_committed(world, "orders", 0), -1);
    struct world next;
    world_init_beside(&next, world, 1);
    world_add(&next, options);
    world_start(&next);
    assert_string_equal(world_name(&next, 0), "orders/0/0");
    world_deinit(&next);
}

static void
on_error_stop_ends_the_service_and_the_message_comes_again(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1);
    options.on_error = LW_ON_ERROR_STOP;
    expect_stop(&world, &options);
    world_deinit(&world);
}

static void
on_exhausted_stop_ends_the_service_and_the_message_comes_again(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1);
    options.on_error = LW_ON_ERROR_DEAD;
    options.dead_letter.is_off = true;
    options.on_exhausted = LW_ON_EXHAUSTED_STOP;
    expect_stop(&world, &options);
    world_deinit(&world);
}

static void
a_second_stop_while_draining_does_not_hold_the_end(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 2);
    options.on_error = LW_ON_ERROR_STOP;
    world.dispatcher.options.drain_timeout_ms = 0; /* for ever */
    begin(&world, &options);
    world_send(&world, "orders", 0, "a", 1);
    world_send(&world, "orders", 0, "b", 1);
    world_turn(&world);
    world_finish(&world, 0, LW_ERROR);
    world_finish(&world, 0, LW_ERROR);
    world_pass(&world, 1000);
    assert_int_equal(world.dispatcher.phase, LW_PHASE_CLOSED);
    assert_int_equal(world.dispatcher.end_status, LW_STATUS_STOPPED);
    world_deinit(&world);
}

/* -- many ---------------------------------------------------------------------------------------- */

static void
mixed_outcomes_in_reverse_order_all_end_committed(void **state)
{
    static const enum lw_verdict verdicts[] = { LW_OK, LW_RETRY, LW_DEAD, LW_DROP, LW_ERROR };
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 10);
    options.ordering = LW_ORDERING_NONE;
    begin(&world, &options);
    world_send(&world, "orders", 0, NULL, 10);
    world_turn(&world);
    for (uint32_t i = 10; i-- > 0;) {
        world_finish(&world, i, verdicts[i % 5]);
    }
    world_pass(&world, 1500);
    world_finish_all(&world);
    world_pass(&world, 200);
    assert_int_equal(world_committed(&world, "orders", 0), 10);
    assert_int_equal(world_count(&world, "orders.dlq"), 2);
    assert_int_equal(world.dispatcher.held_count, 0);
    world_deinit(&world);
}

static void
messages_that_fail_for_ever_take_no_memory(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 50);
    options.ordering = LW_ORDERING_NONE;
    options.retry.max_attempts = UINT32_MAX;
    options.retry.in_place_backoff = (struct lw_backoff_options){ 10, 1, 10, 0 };
    world.answer = fail_always;
    world.dispatcher.history = NULL;
    world.clock->host.log = NULL;
    begin(&world, &options);
    world_send(&world, "orders", 0, NULL, 50);
    world_pass(&world, 1000);
    uint64_t live = lw_alloc_live();
    world_pass(&world, 59000);
    assert_int_equal(lw_alloc_live(), live);
    assert_int_equal(world.dispatcher.streams[0]->subscription.parked, 50);
    assert_in_range(world.started_count, 250000, 300050);
    world_deinit(&world);
}

static void
an_always_failing_key_does_not_stop_the_others(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 4);
    options.retry.max_attempts = 3;
    options.profile = LW_PROFILE_ADAPTIVE;
    begin(&world, &options);
    for (int i = 0; i < 500; i++) {
        world_send(&world, "orders", 0, i % 5 == 0 ? "poison" : "good", 1);
    }
    world_turn(&world);
    for (int i = 0; i < 5000 && world.dispatcher.held_count + world.running_count > 0; i++) {
        while (world.running_count > 0) {
            bool is_bad = lw_text_is_equal(lw_delivery_key(world.running[0]), "poison");
            world_finish(&world, 0, is_bad ? LW_ERROR : LW_OK);
        }
        world_pass(&world, 500);
    }
    world_pass(&world, 200);
    assert_int_equal(world_count(&world, "orders.dlq"), 100);
    assert_int_equal(world_committed(&world, "orders", 0), 500);
    world_deinit(&world);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(delays_double_up_to_their_cap),
        cmocka_unit_test(delays_of_another_base_and_factor_are_exact),
        cmocka_unit_test(jitter_is_only_added_and_differs),
        cmocka_unit_test(a_delay_of_the_handler_wins_over_the_backoff),
        cmocka_unit_test(an_absurd_delay_is_cut_to_a_day),
        cmocka_unit_test(a_delay_does_not_outlive_its_run),
        cmocka_unit_test(nothing_is_committed_while_a_message_waits_for_its_retry),
        cmocka_unit_test(later_messages_of_the_key_wait_for_the_retried_one),
        cmocka_unit_test(an_exhausted_message_is_dead_lettered_with_every_header),
        cmocka_unit_test(a_long_reason_is_cut_at_512_bytes),
        cmocka_unit_test(error_codes_mean_what_their_class_says),
        cmocka_unit_test(on_error_decides_what_an_error_means),
        cmocka_unit_test(dead_and_drop_end_a_message_at_once),
        cmocka_unit_test(one_attempt_means_no_retry),
        cmocka_unit_test(an_exhausted_message_without_a_dead_letter_is_dropped_aloud),
        cmocka_unit_test(a_held_message_keeps_its_lane_and_the_commit),
        cmocka_unit_test(on_error_stop_ends_the_service_and_the_message_comes_again),
        cmocka_unit_test(on_exhausted_stop_ends_the_service_and_the_message_comes_again),
        cmocka_unit_test(a_second_stop_while_draining_does_not_hold_the_end),
        cmocka_unit_test(mixed_outcomes_in_reverse_order_all_end_committed),
        cmocka_unit_test(messages_that_fail_for_ever_take_no_memory),
        cmocka_unit_test(an_always_failing_key_does_not_stop_the_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
