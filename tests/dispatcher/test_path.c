/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The path of a message through the dispatcher: choice, order, limits, commits, one behaviour a
 * test. Handlers are finished by hand on a moved clock, so every interleaving is exact.
 * Failures, publications, partitions that go, and the end have files of their own beside this one.
 */
#include "tests/support/test.h"

#include "tests/dispatcher/world.h"

#include <stdio.h>
#include <string.h>

static void
a_message_is_handled_and_committed(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = world_options("orders", 1);
    world_begin_one(&world, 1, &options);
    world_send(&world, "orders", 0, "k", 1);
    world_turn(&world);
    assert_string_equal(world_name(&world, 0), "orders/0/0");
    world_finish(&world, 0, LW_OK);
    world_pass(&world, 200);
    assert_int_equal(world_committed(&world, "orders", 0), 1);
    assert_non_null(strstr(world.story.data, "start:orders/0/0 judge:orders/0/0 "
                                             "settle:orders/0/0=0 commit:orders/0/1 "));
    world_deinit(&world);
}

static void
the_best_priority_is_chosen_when_a_slot_is_free(void **state)
{
    struct world world;
    (void)state;
    world_init(&world, 1, NULL);
    struct lw_subscription_options low = world_options("low", 200);
    struct lw_subscription_options high = world_options("high", 100);
    world_topic(&world, "low", 1);
    world_topic(&world, "high", 1);
    world_add(&world, &low);
    world_add(&world, &high);
    world_start(&world);
    world_send(&world, "low", 0, "a", 2);
    world_turn(&world);
    assert_string_equal(world_name(&world, 0), "low/0/0");
    world_send(&world, "high", 0, "a", 1); /* later, but better */
    world_finish(&world, 0, LW_OK);
    assert_string_equal(world_name(&world, 0), "high/0/0");
    world_finish(&world, 0, LW_OK);
    assert_string_equal(world_name(&world, 0), "low/0/1");
    world_deinit(&world);
}

static void
equal_priorities_alternate(void **state)
{
    struct world world;
    (void)state;
    world_init(&world, 1, NULL);
    struct lw_subscription_options a = world_options("a", 5);
    struct lw_subscription_options b = world_options("b", 5);
    a.ordering = b.ordering = LW_ORDERING_NONE;
    world_topic(&world, "a", 1);
    world_topic(&world, "b", 1);
    world_add(&world, &a);
    world_add(&world, &b);
    world_start(&world);
    world_send(&world, "a", 0, NULL, 40);
    world_send(&world, "b", 0, NULL, 40);
    world_turn(&world);
    int difference = 0;
    for (int i = 0; i < 60; i++) {
        difference += world_name(&world, 0)[0] == 'a' ? 1 : -1;
        assert_in_range(difference + 1, 0, 2);
        world_finish(&world, 0, LW_OK);
    }
    world_deinit(&world);
}

static void
one_message_of_a_key_runs_at_a_time_and_in_order(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = world_options("orders", 1);
    world_begin_one(&world, 8, &options);
    world_send(&world, "orders", 0, "a", 3);
    world_send(&world, "orders", 0, "b", 1);
    world_turn(&world);
    assert_int_equal(world.running_count, 2);
    assert_string_equal(world_name(&world, 0), "orders/0/0");
    assert_string_equal(world_name(&world, 1), "orders/0/3");
    world_finish(&world, 0, LW_OK);
    assert_string_equal(world_name(&world, 1), "orders/0/1");
    world_deinit(&world);
}

static void
a_retry_in_place_keeps_its_lane_and_frees_its_slot(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = world_options("orders", 1);
    options.retry.in_place_backoff.jitter_ms = 0;
    world_begin_one(&world, 1, &options);
    world_send(&world, "orders", 0, "a", 2);
    world_send(&world, "orders", 0, "b", 1);
    world_turn(&world);
    world_finish(&world, 0, LW_RETRY);
    assert_string_equal(world_name(&world, 0), "orders/0/2"); /* b, not a's next */
    world_finish(&world, 0, LW_OK);
    assert_int_equal(world.running_count, 0);
    world_pass(&world, 999);
    assert_int_equal(world.running_count, 0);
    world_pass(&world, 2);
    assert_string_equal(world_name(&world, 0), "orders/0/0");
    assert_int_equal(lw_delivery_attempt(world.running[0]), 2);
    world_deinit(&world);
}

static void
the_lane_that_blocks_a_commit_goes_first(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = world_options("orders", 1);
    options.retry.in_place_backoff = (struct lw_backoff_options){ 10, 1, 10, 0 };
    world_begin_one(&world, 1, &options);
    world_send(&world, "orders", 0, "a", 1);
    world_send(&world, "orders", 0, "b", 1);
    world_send(&world, "orders", 0, "c", 1);
    world_turn(&world);
    world_finish(&world, 0, LW_RETRY); /* offset 0 waits, 1 runs, 2 is ready before it */
    world_pass(&world, 20);            /* 0 is ready again, behind 2 by round robin */
    assert_string_equal(world_name(&world, 0), "orders/0/1");
    world_finish(&world, 0, LW_OK);
    assert_string_equal(world_name(&world, 0), "orders/0/0");
    world_deinit(&world);
}

static void
nothing_above_the_first_unfinished_is_committed(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = world_options("orders", 1);
    options.ordering = LW_ORDERING_NONE;
    world_begin_one(&world, 10, &options);
    world_send(&world, "orders", 0, NULL, 10);
    world_turn(&world);
    world_finish(&world, 0, LW_OK);
    world_finish(&world, 4, LW_OK);
    world_finish(&world, 4, LW_OK);
    world_pass(&world, 300);
    assert_int_equal(world_committed(&world, "orders", 0), 1);
    world_finish_all(&world);
    world_pass(&world, 300);
    assert_int_equal(world_committed(&world, "orders", 0), 10);
    world_deinit(&world);
}

static void
holes_and_a_control_tail_do_not_hold_the_commit(void **state)
{
    struct world world;
    (void)state;
    world_init(&world, 4, NULL);
    struct lw_subscription_options options = world_options("orders", 1);
    world_topic(&world, "orders", 1);
    world_send(&world, "orders", 0, "k", 7);
    for (int64_t position = 1; position < 7; position += 2) {
        assert_int_equal(lw_memory_hub_delete(world.hub, "orders", 0, position), LW_STATUS_OK);
    }
    assert_int_equal(lw_memory_hub_skip(world.hub, "orders", 0, 3), LW_STATUS_OK);
    world_add(&world, &options);
    world_start(&world);
    world_finish_all(&world);
    world_pass(&world, 300);
    assert_int_equal(world.started_count, 4);
    assert_int_equal(world_committed(&world, "orders", 0), 10);
    world_deinit(&world);
}

static void
partition_order_runs_one_of_a_partition(void **state)
{
    struct world world;
    (void)state;
    world_init(&world, 8, NULL);
    struct lw_subscription_options options = world_options("orders", 1);
    options.ordering = LW_ORDERING_PARTITION;
    world_topic(&world, "orders", 2);
    world_add(&world, &options);
    world_start(&world);
    world_send(&world, "orders", 0, "a", 2);
    world_send(&world, "orders", 0, "b", 2);
    world_send(&world, "orders", 1, "c", 2);
    world_turn(&world);
    assert_int_equal(world.running_count, 2);
    world_deinit(&world);
}

static void
a_null_key_is_a_lane_of_its_own_apart_from_the_empty_key(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = world_options("orders", 1);
    world_begin_one(&world, 8, &options);
    world_send(&world, "orders", 0, NULL, 2);
    world_send(&world, "orders", 0, "", 2);
    world_turn(&world);
    assert_int_equal(world.running_count, 2);
    assert_null(lw_delivery_key(world.running[0]).data);
    assert_non_null(lw_delivery_key(world.running[1]).data);
    world_deinit(&world);
}

static void
a_subscription_never_exceeds_its_own_concurrency(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = world_options("orders", 1);
    options.ordering = LW_ORDERING_NONE;
    options.concurrency = 2;
    world_begin_one(&world, 8, &options);
    world_send(&world, "orders", 0, NULL, 20);
    world_turn(&world);
    assert_int_equal(world.running_count, 2);
    world_finish(&world, 0, LW_OK);
    assert_int_equal(world.running_count, 2);
    world_deinit(&world);
}

static void
all_slots_are_used_and_never_more(void **state)
{
    struct world world;
    (void)state;
    world_init(&world, 5, NULL);
    struct lw_subscription_options options = world_options("orders", 1);
    options.ordering = LW_ORDERING_NONE;
    world_topic(&world, "orders", 3);
    world_add(&world, &options);
    world_start(&world);
    world_send(&world, "orders", -1, NULL, 50);
    world_turn(&world);
    for (int i = 0; i < 45; i++) {
        assert_int_equal(world.running_count, 5);
        world_finish(&world, 0, LW_OK);
    }
    world_deinit(&world);
}

static void
receiving_stops_at_the_limit_and_resumes_below_70_percent(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = world_options("orders", 1);
    options.ordering = LW_ORDERING_NONE;
    options.max_in_flight = 20;
    options.profile = LW_PROFILE_THROUGHPUT;
    world_begin_one(&world, 100, &options);
    world_send(&world, "orders", 0, NULL, 100);
    world_turn(&world);
    const struct lw_limits *limits = &world.dispatcher.streams[0]->subscription.limits;
    assert_int_equal(limits->count, 20);
    assert_true(limits->is_stopped);
    for (int i = 0; i < 6; i++) {
        world_finish(&world, 0, LW_OK);
    }
    assert_int_equal(limits->count, 14); /* 70 % is not below 70 % */
    world_finish(&world, 0, LW_OK);
    assert_int_equal(limits->count, 20);
    world_deinit(&world);
}

static void
bytes_in_hand_are_bounded_too(void **state)
{
    struct world world;
    char value[1000] = { 0 };
    (void)state;
    world_init(&world, 100, NULL);
    struct lw_subscription_options options = world_options("orders", 1);
    options.ordering = LW_ORDERING_NONE;
    options.max_in_flight_bytes = 10000;
    options.profile = LW_PROFILE_THROUGHPUT;
    world_topic(&world, "orders", 1);
    for (int i = 0; i < 50; i++) {
        struct lw_memory_item item = lw_memory_item_of("orders", NULL, NULL);
        item.value = (struct lw_bytes){ value, sizeof(value) };
        assert_int_equal(lw_memory_hub_publish(world.hub, &item, NULL, NULL), LW_STATUS_OK);
    }
    world_add(&world, &options);
    world_start(&world);
    assert_in_range(world.running_count, 10, 11);
    world_deinit(&world);
}

static void
the_offsets_window_stops_only_its_partition(void **state)
{
    struct world world;
    (void)state;
    world_init(&world, 2, NULL);
    struct lw_subscription_options options = world_options("orders", 1);
    options.ordering = LW_ORDERING_NONE;
    options.max_uncommitted = 64;
    world_topic(&world, "orders", 2);
    world_add(&world, &options);
    world_start(&world);
    world_send(&world, "orders", 0, NULL, 200);
    world_turn(&world);
    for (int i = 0; i < 63; i++) {
        world_finish(&world, 1, LW_OK); /* offset 0 stays */
    }
    assert_int_equal(world.running_count, 1);
    world_send(&world, "orders", 1, NULL, 1);
    world_turn(&world);
    assert_int_equal(world.running_count, 2); /* the other partition flows */
    world_finish(&world, 1, LW_OK);
    world_finish(&world, 0, LW_OK);
    world_finish_all(&world);
    world_pass(&world, 300);
    assert_int_equal(world_committed(&world, "orders", 0), 200);
    world_deinit(&world);
}

static void
a_paused_subscription_runs_nothing_and_goes_on_when_resumed(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = world_options("orders", 1);
    world_begin_one(&world, 1, &options);
    lw_dispatcher_pause(&world.dispatcher, world.dispatcher.streams[0], true);
    world_send(&world, "orders", 0, "k", 1);
    world_pass(&world, 1000);
    assert_int_equal(world.started_count, 0);
    lw_dispatcher_pause(&world.dispatcher, world.dispatcher.streams[0], false);
    world_turn(&world);
    assert_int_equal(world.started_count, 1);
    world_deinit(&world);
}

static void
commits_are_coalesced_and_one_is_in_flight(void **state)
{
    struct world world;
    struct lw_memory_options hub;
    (void)state;
    lw_memory_options_init(&hub);
    hub.commit_latency_ns = 50 * LW_MS;
    world_init(&world, 1, &hub);
    struct lw_subscription_options options = world_options("orders", 1);
    world_topic(&world, "orders", 1);
    world_add(&world, &options);
    world_start(&world);
    world_send(&world, "orders", 0, "k", 1000);
    world_turn(&world);
    for (int i = 0; i < 1000; i++) {
        world_finish(&world, 0, LW_OK);
        world_pass(&world, 1);
    }
    world_pass(&world, 500);
    assert_int_equal(world_committed(&world, "orders", 0), 1000);
    assert_in_range(lw_memory_hub_stats(world.hub).commits, 5, 12);
    world_deinit(&world);
}

static void
a_failed_commit_is_repeated_and_nothing_is_lost(void **state)
{
    struct world world;
    (void)state;
    world_init(&world, 1, NULL);
    struct lw_subscription_options options = world_options("orders", 1);
    struct lw_memory_fault fault = { .kind = LW_MEMORY_FAIL_COMMIT,
                                     .count = 5,
                                     .status = LW_STATUS_UNAVAILABLE };
    world_topic(&world, "orders", 1);
    world_add(&world, &options);
    world_start(&world);
    assert_int_equal(lw_memory_hub_inject(world.hub, &fault), LW_STATUS_OK);
    world_send(&world, "orders", 0, "k", 1);
    world_turn(&world);
    world_finish(&world, 0, LW_OK);
    world_pass(&world, 20000);
    assert_int_equal(world_committed(&world, "orders", 0), 1);
    world_deinit(&world);
}

static void
a_handler_that_reads_sees_every_field(void **state)
{
    struct world world;
    char id[64];
    (void)state;
    struct lw_subscription_options options = world_options("orders", 1);
    options.pipeline = "shop";
    world_begin_one(&world, 1, &options);
    struct lw_header header = { lw_bytes_of("trace"), lw_bytes_of("1") };
    struct lw_memory_item item = lw_memory_item_of("orders", "key", "value");
    item.headers = &header;
    item.header_count = 1;
    assert_int_equal(lw_memory_hub_publish(world.hub, &item, NULL, NULL), LW_STATUS_OK);
    world_turn(&world);
    struct lw_delivery *delivery = world.running[0];
    assert_string_equal(lw_delivery_topic(delivery), "orders");
    assert_string_equal(lw_delivery_subscription(delivery), "group");
    assert_string_equal(lw_delivery_pipeline(delivery), "shop");
    assert_int_equal(lw_delivery_partition(delivery), 0);
    assert_int_equal(lw_delivery_offset(delivery), 0);
    assert_int_equal(lw_delivery_attempt(delivery), 1);
    assert_int_equal(lw_delivery_retries(delivery), 0);
    assert_int_equal(lw_delivery_redeliveries(delivery), 0);
    assert_int_equal(lw_delivery_value(delivery).size, 5);
    assert_int_equal(lw_delivery_header(delivery, "trace").size, 1);
    assert_null(lw_delivery_header(delivery, "none").data);
    assert_in_range(lw_delivery_timestamp_ms(delivery), VIRTUAL_WALL_MS,
                    VIRTUAL_WALL_MS + 1000);
    assert_int_equal(lw_delivery_message_id(delivery, id, sizeof(id)),
                     strlen("main/orders/0/0"));
    assert_string_equal(id, "main/orders/0/0");
    assert_ptr_equal(lw_delivery_dispatcher(delivery), &world.dispatcher);
    world_deinit(&world);
}

static enum lw_verdict
say_ok(struct lw_delivery *delivery, void *user)
{
    (void)delivery;
    (void)user;
    return LW_OK;
}

static void
a_million_keys_leave_no_lanes_behind(void **state)
{
    struct world world;
    (void)state;
    world_init(&world, 64, NULL);
    struct lw_subscription_options options = world_options("orders", 1);
    world.answer = say_ok;
    world_topic(&world, "orders", 1);
    world_add(&world, &options);
    world_start(&world);
    for (int i = 0; i < 100000; i++) {
        char key[16];
        snprintf(key, sizeof(key), "key-%d", i);
        world_send(&world, "orders", 0, key, 1);
        if (i % 1000 == 999) {
            world_turn(&world);
        }
    }
    const struct lw_lanes *lanes = &world.dispatcher.scheduler.lanes;
    assert_int_equal(world.started_count, 100000);
    assert_in_range(lanes->count, 1, lanes->kept_max + 64);
    lw_lanes_trim(&world.dispatcher.scheduler.lanes);
    assert_int_equal(lanes->count, 0);
    world_deinit(&world);
}

static void
a_subscription_that_was_taken_back_owns_nothing(void **state)
{
    struct world world;
    (void)state;
    world_init(&world, 1, NULL);
    struct lw_subscription_options kept = world_options("kept", 1);
    struct lw_subscription_options gone = world_options("gone", 2);
    world_topic(&world, "kept", 1);
    world_topic(&world, "gone", 1);
    world_add(&world, &kept);
    world_add(&world, &gone);
    lw_dispatcher_drop_last_stream(&world.dispatcher);
    world_start(&world);
    assert_non_null(lw_memory_hub_owner(world.hub, "group", "kept", 0));
    assert_null(lw_memory_hub_owner(world.hub, "group", "gone", 0));
    world_deinit(&world);
}

static void
dead_letters_that_come_back_are_refused_at_start(void **state)
{
    struct world world;
    struct lw_error error = { 0 };
    (void)state;
    world_init(&world, 1, NULL);
    struct lw_subscription_options first = world_options("orders", 1);
    struct lw_subscription_options second = world_options("orders.dlq", 2);
    second.dead_letter.topic = "orders";
    world_add(&world, &first);
    world_add(&world, &second);
    assert_int_equal(lw_dispatcher_start(&world.dispatcher, &error), LW_STATUS_CONFIG);
    assert_string_equal(error.code, "E0302");
    world_deinit(&world);
}

static void
a_message_that_blocks_commits_for_long_is_said_once(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = world_options("orders", 1);
    options.ordering = LW_ORDERING_NONE;
    world_begin_one(&world, 2, &options);
    world_send(&world, "orders", 0, NULL, 100);
    world_turn(&world);
    for (int i = 0; i < 20; i++) {
        world_finish(&world, 1, LW_OK); /* offset 0 stays */
        world_pass(&world, 500);
    }
    const char *first = strstr(world.log.data, "commit.blocked");
    assert_non_null(first);
    assert_non_null(strstr(first, "topic=orders partition=0 id=0"));
    assert_null(strstr(first + 1, "commit.blocked"));
    world_deinit(&world);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_is_handled_and_committed),
        cmocka_unit_test(the_best_priority_is_chosen_when_a_slot_is_free),
        cmocka_unit_test(equal_priorities_alternate),
        cmocka_unit_test(one_message_of_a_key_runs_at_a_time_and_in_order),
        cmocka_unit_test(a_retry_in_place_keeps_its_lane_and_frees_its_slot),
        cmocka_unit_test(the_lane_that_blocks_a_commit_goes_first),
        cmocka_unit_test(nothing_above_the_first_unfinished_is_committed),
        cmocka_unit_test(holes_and_a_control_tail_do_not_hold_the_commit),
        cmocka_unit_test(partition_order_runs_one_of_a_partition),
        cmocka_unit_test(a_null_key_is_a_lane_of_its_own_apart_from_the_empty_key),
        cmocka_unit_test(a_subscription_never_exceeds_its_own_concurrency),
        cmocka_unit_test(all_slots_are_used_and_never_more),
        cmocka_unit_test(receiving_stops_at_the_limit_and_resumes_below_70_percent),
        cmocka_unit_test(bytes_in_hand_are_bounded_too),
        cmocka_unit_test(the_offsets_window_stops_only_its_partition),
        cmocka_unit_test(a_paused_subscription_runs_nothing_and_goes_on_when_resumed),
        cmocka_unit_test(commits_are_coalesced_and_one_is_in_flight),
        cmocka_unit_test(a_failed_commit_is_repeated_and_nothing_is_lost),
        cmocka_unit_test(a_handler_that_reads_sees_every_field),
        cmocka_unit_test(a_subscription_that_was_taken_back_owns_nothing),
        cmocka_unit_test(dead_letters_that_come_back_are_refused_at_start),
        cmocka_unit_test(a_message_that_blocks_commits_for_long_is_said_once),
        cmocka_unit_test(a_million_keys_leave_no_lanes_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
