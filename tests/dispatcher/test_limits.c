/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much is held and when: the receive window of each profile and its course, engines that are
 * full or down, and that a full subscription stops only its own receiving (P7).
 */
#include "tests/support/test.h"

#include "tests/dispatcher/world.h"

#include <stdio.h>
#include <string.h>

static struct lw_subscription_options
unordered(const char *topic, int32_t priority, enum lw_profile profile)
{
    struct lw_subscription_options options = world_options(topic, priority);
    options.ordering = LW_ORDERING_NONE;
    options.profile = profile;
    return options;
}

static struct lw_subscription *
subscription_of(struct world *world, uint32_t index)
{
    return &world->dispatcher.streams[index]->subscription;
}

/* A world with one slot each and a backlog of `count`, started. */
static struct lw_subscription *
begin(struct world *world, uint32_t slots, const struct lw_subscription_options *options,
      uint32_t count)
{
    world_init(world, slots, NULL);
    world_topic(world, options->topic, 1);
    world_add(world, options);
    world_send(world, options->topic, 0, NULL, count);
    world_start(world);
    return subscription_of(world, 0);
}

/* -- profiles ---------------------------------------------------------------------------------- */

static void
expect_window(enum lw_profile profile, uint32_t queue, uint32_t minimum, uint32_t maximum)
{
    struct world world;
    struct lw_subscription_options options = unordered("orders", 1, profile);
    options.receiver_queue_size = queue;
    const struct lw_window *window = &begin(&world, 1, &options, 0)->window;
    assert_int_equal(window->minimum, minimum);
    assert_int_equal(window->maximum, maximum);
    world_deinit(&world);
}

static void
profiles_bound_the_window(void **state)
{
    (void)state;
    expect_window(LW_PROFILE_ADAPTIVE, 1000, 1, 1000);
    expect_window(LW_PROFILE_PRIORITY, 1000, 1, 1);
    expect_window(LW_PROFILE_THROUGHPUT, 1000, 1000, 1000);
    expect_window(LW_PROFILE_LOW_LATENCY, 200, 200, 200);
    expect_window(LW_PROFILE_CONSTRAINED, 64, 64, 64);
}

static void
the_priority_profile_keeps_one_waiting(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = unordered("orders", 1, LW_PROFILE_PRIORITY);
    const struct lw_subscription *subscription = begin(&world, 2, &options, 100);
    for (int i = 0; i < 90; i++) {
        assert_int_equal(world.running_count, 2);
        assert_int_equal(subscription->queued, 1);
        world_finish(&world, 0, LW_OK);
    }
    world_deinit(&world);
}

static void
the_throughput_profile_keeps_its_window_full(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = unordered("orders", 1, LW_PROFILE_THROUGHPUT);
    options.receiver_queue_size = 64;
    const struct lw_subscription *subscription = begin(&world, 2, &options, 1000);
    for (int i = 0; i < 800; i++) {
        assert_in_range(subscription->queued, 47, 64); /* it tops up by quarters */
        world_finish(&world, 0, LW_OK);
    }
    world_deinit(&world);
}

/* -- the adaptive course ----------------------------------------------------------------------- */

/* Lets all running ones end in one turn, every 10 ms. */
static void
finish_in_bursts(struct world *world, int bursts)
{
    for (int i = 0; i < bursts; i++) {
        world_pass(world, 10);
        for (uint32_t j = 0; j < world->running_count; j++) {
            assert_int_equal(lw_delivery_finish(world->running[j], LW_OK), LW_STATUS_OK);
        }
        world->running_count = 0;
        world_turn(world);
    }
}

static void
a_queue_that_runs_dry_grows_the_window(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = unordered("orders", 1, LW_PROFILE_ADAPTIVE);
    struct lw_subscription *subscription = begin(&world, 100, &options, 10000);
    assert_int_equal(world.running_count, 100); /* dry queues are filled at once all the same */
    finish_in_bursts(&world, 20);
    assert_in_range(subscription->window.size, 32, 1000);
    uint32_t grown = subscription->window.size;
    finish_in_bursts(&world, 20);
    assert_in_range(subscription->window.size, grown, 1000);
    assert_int_equal(world.running_count, 100);
    world_deinit(&world);
}

static void
a_queue_that_waits_long_shrinks_the_window(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = unordered("orders", 1, LW_PROFILE_ADAPTIVE);
    struct lw_subscription *subscription = begin(&world, 100, &options, 20000);
    finish_in_bursts(&world, 20);
    uint32_t grown = subscription->window.size;
    for (int i = 0; i < 300; i++) { /* now one every 100 ms */
        world_pass(&world, 100);
        world_finish(&world, 0, LW_OK);
    }
    assert_true(subscription->window.size < grown);
    world_deinit(&world);
}

static void
a_topic_behind_a_better_one_falls_to_one(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options low = unordered("low", 9, LW_PROFILE_ADAPTIVE);
    struct lw_subscription_options high = unordered("high", 1, LW_PROFILE_ADAPTIVE);
    world_init(&world, 20, NULL);
    world_topic(&world, "low", 1);
    world_topic(&world, "high", 1);
    world_add(&world, &low);
    world_add(&world, &high);
    world_start(&world);
    world_send(&world, "low", 0, NULL, 5000);
    finish_in_bursts(&world, 20);
    assert_true(subscription_of(&world, 0)->window.size > 1);
    world_send(&world, "high", 0, NULL, 5000);
    finish_in_bursts(&world, 50);
    assert_int_equal(subscription_of(&world, 0)->window.size, 1);
    assert_string_equal(lw_delivery_topic(world.running[0]), "high");
    world_deinit(&world);
}

static void
an_urgent_message_starts_next_behind_any_backlog(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options low = unordered("low", 9, LW_PROFILE_ADAPTIVE);
    struct lw_subscription_options high = unordered("high", 1, LW_PROFILE_ADAPTIVE);
    world_init(&world, 4, NULL);
    world_topic(&world, "low", 1);
    world_topic(&world, "high", 1);
    world_add(&world, &low);
    world_add(&world, &high);
    world_start(&world);
    world_send(&world, "low", 0, NULL, 5000);
    world_turn(&world);
    for (int i = 0; i < 200; i++) {
        world_send(&world, "high", 0, NULL, 1);
        world_finish(&world, 0, LW_OK);
        assert_string_equal(lw_delivery_topic(world.running[3]), "high");
        world_pass(&world, 1);
    }
    world_deinit(&world);
}

static void
a_full_better_topic_starves_the_worse_one(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options low = unordered("low", 9, LW_PROFILE_ADAPTIVE);
    struct lw_subscription_options high = unordered("high", 1, LW_PROFILE_ADAPTIVE);
    world_init(&world, 3, NULL);
    world_topic(&world, "low", 1);
    world_topic(&world, "high", 1);
    world_add(&world, &low);
    world_add(&world, &high);
    world_send(&world, "low", 0, NULL, 100);
    world_send(&world, "high", 0, NULL, 3000);
    world_start(&world);
    finish_in_bursts(&world, 900);
    assert_int_equal(world.dispatcher.streams[0]->counters.started, 0);
    assert_int_equal(world.dispatcher.streams[1]->counters.started, 2703);
    world_deinit(&world);
}

/* -- bounds ------------------------------------------------------------------------------------ */

static void
a_message_above_the_byte_limit_passes_alone(void **state)
{
    static const char large[50000] = { 'x' };
    struct world world;
    (void)state;
    struct lw_subscription_options options = unordered("orders", 1, LW_PROFILE_THROUGHPUT);
    options.max_in_flight_bytes = 10000;
    begin(&world, 10, &options, 0);
    for (int i = 0; i < 3; i++) {
        struct lw_memory_item item = lw_memory_item_of("orders", NULL, NULL);
        item.value = (struct lw_bytes){ large, sizeof(large) };
        assert_int_equal(lw_memory_hub_publish(world.hub, &item, NULL, NULL), LW_STATUS_OK);
    }
    world_turn(&world);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(world.running_count, 1);
        world_finish(&world, 0, LW_OK);
    }
    world_pass(&world, 200);
    assert_int_equal(world_committed(&world, "orders", 0), 3);
    world_deinit(&world);
}

static void
a_blocked_first_message_never_lets_more_in_than_the_limits(void **state)
{
    struct world world;
    uint32_t peak = 0;
    (void)state;
    struct lw_subscription_options options = unordered("orders", 1, LW_PROFILE_THROUGHPUT);
    options.max_uncommitted = 256;
    options.max_in_flight = 100;
    begin(&world, 2, &options, 20000);
    for (int i = 0; i < 254; i++) {
        world_finish(&world, 1, LW_OK);
        peak = world.dispatcher.held_count > peak ? world.dispatcher.held_count : peak;
    }
    assert_in_range(peak, 50, 100);
    world_pass(&world, 10000);
    world_finish(&world, 0, LW_OK); /* the first: all flows again */
    world_finish_all(&world);
    world_pass(&world, 200);
    assert_int_equal(world_committed(&world, "orders", 0), 20000);
    world_deinit(&world);
}

static void
a_full_subscription_stops_only_itself(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options stuck = unordered("stuck", 1, LW_PROFILE_ADAPTIVE);
    struct lw_subscription_options other = unordered("other", 1, LW_PROFILE_ADAPTIVE);
    stuck.max_in_flight = 3;
    world_init(&world, 4, NULL);
    world_topic(&world, "stuck", 1);
    world_topic(&world, "other", 1);
    world_add(&world, &stuck);
    world_add(&world, &other);
    world_send(&world, "stuck", 0, NULL, 50);
    world_start(&world);
    assert_int_equal(world.running_count, 3);
    world_send(&world, "other", 0, NULL, 100);
    world_turn(&world);
    for (int i = 0; i < 100; i++) {
        assert_string_equal(lw_delivery_topic(world.running[3]), "other");
        world_finish(&world, 3, LW_OK);
    }
    assert_int_equal(world.dispatcher.streams[0]->counters.received, 3);
    world_deinit(&world);
}

static void
poison_keys_with_endless_retries_leave_the_other_keys_running(void **state)
{
    struct world world;
    uint32_t good = 0;
    (void)state;
    struct lw_subscription_options options = world_options("orders", 1);
    options.retry.max_attempts = UINT32_MAX;
    world_init(&world, 14, NULL);
    world_topic(&world, "orders", 1);
    world_add(&world, &options);
    for (int i = 0; i < 40; i++) {
        char key[32];
        snprintf(key, sizeof(key), "bad-%d", i);
        world_send(&world, "orders", 0, key, 1);
        snprintf(key, sizeof(key), "good-%d", i);
        world_send(&world, "orders", 0, key, 2);
    }
    world_start(&world);
    for (int i = 0; i < 100; i++) {
        while (world.running_count > 0) {
            bool is_bad = ((const char *)lw_delivery_key(world.running[0]).data)[0] == 'b';
            good += !is_bad;
            world_finish(&world, 0, is_bad ? LW_RETRY : LW_OK);
        }
        world_pass(&world, 100);
    }
    assert_int_equal(good, 80);
    world_deinit(&world);
}

/* -- engines ----------------------------------------------------------------------------------- */

static void
a_full_engine_is_not_chosen_for_and_goes_on_when_it_has_room(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = unordered("orders", 1, LW_PROFILE_ADAPTIVE);
    begin(&world, 4, &options, 0);
    uint32_t room = world.engine->room;
    world.engine->room = 0;
    world.engine->has_changed = true;
    world_send(&world, "orders", 0, NULL, 3);
    world_pass(&world, 1000);
    assert_int_equal(world.started_count, 0);
    world.engine->room = room;
    world.engine->has_changed = true;
    world_turn(&world);
    assert_int_equal(world.started_count, 3);
    world_deinit(&world);
}

static void
an_engine_that_is_down_stops_the_intake_and_charges_nobody(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = unordered("orders", 1, LW_PROFILE_THROUGHPUT);
    begin(&world, 4, &options, 0);
    world.engine->is_down = true;
    world.engine->has_changed = true;
    world_turn(&world);
    world_send(&world, "orders", 0, NULL, 50);
    world_pass(&world, 100000);
    assert_int_equal(world.dispatcher.held_count, 0);
    world.engine->is_down = false;
    world.engine->has_changed = true;
    world_turn(&world);
    assert_int_equal(world.running_count, 4);
    assert_int_equal(lw_delivery_attempt(world.running[0]), 1);
    world_deinit(&world);
}

static void
an_uncharged_run_goes_back_to_the_head_of_its_lane(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = world_options("orders", 1);
    world_begin_one(&world, 2, &options);
    world_send(&world, "orders", 0, "k", 2);
    world_turn(&world);
    for (int i = 0; i < 10; i++) {
        lw_delivery_outcome(world.running[0])->is_uncharged = true;
        world_finish(&world, 0, LW_ERROR);
        assert_string_equal(world_name(&world, 0), "orders/0/0");
        assert_int_equal(lw_delivery_attempt(world.running[0]), 1);
    }
    world_finish_all(&world);
    world_pass(&world, 200);
    assert_int_equal(world_committed(&world, "orders", 0), 2);
    world_deinit(&world);
}

static void
an_uncharged_retry_holds_its_lane_for_its_delay(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = world_options("orders", 1);
    world_begin_one(&world, 2, &options);
    world_send(&world, "orders", 0, "k", 2);
    world_turn(&world);
    for (int i = 0; i < 10; i++) {
        struct lw_outcome *outcome = lw_delivery_outcome(world.running[0]);
        outcome->is_uncharged = true;
        outcome->delay_ms = 1000;
        world_finish(&world, 0, LW_RETRY);
        world_pass(&world, 900);
        assert_int_equal(world.running_count, 0);
        world_pass(&world, 200);
        assert_string_equal(world_name(&world, 0), "orders/0/0");
        assert_int_equal(lw_delivery_attempt(world.running[0]), 1);
    }
    world_finish_all(&world);
    world_pass(&world, 200);
    assert_int_equal(world_committed(&world, "orders", 0), 2);
    world_deinit(&world);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(profiles_bound_the_window),
        cmocka_unit_test(the_priority_profile_keeps_one_waiting),
        cmocka_unit_test(the_throughput_profile_keeps_its_window_full),
        cmocka_unit_test(a_queue_that_runs_dry_grows_the_window),
        cmocka_unit_test(a_queue_that_waits_long_shrinks_the_window),
        cmocka_unit_test(a_topic_behind_a_better_one_falls_to_one),
        cmocka_unit_test(an_urgent_message_starts_next_behind_any_backlog),
        cmocka_unit_test(a_full_better_topic_starves_the_worse_one),
        cmocka_unit_test(a_message_above_the_byte_limit_passes_alone),
        cmocka_unit_test(a_blocked_first_message_never_lets_more_in_than_the_limits),
        cmocka_unit_test(a_full_subscription_stops_only_itself),
        cmocka_unit_test(poison_keys_with_endless_retries_leave_the_other_keys_running),
        cmocka_unit_test(a_full_engine_is_not_chosen_for_and_goes_on_when_it_has_room),
        cmocka_unit_test(an_engine_that_is_down_stops_the_intake_and_charges_nobody),
        cmocka_unit_test(an_uncharged_run_goes_back_to_the_head_of_its_lane),
        cmocka_unit_test(an_uncharged_retry_holds_its_lane_for_its_delay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
