/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is committed, against what was received: holes, tails, lost logs, positions that are out of
 * range, commits that fail in part. Recipes of faults that others had.
 */
#include "tests/support/test.h"

#include "tests/dispatcher/world.h"

#include <string.h>

static struct lw_subscription_options
open_world(struct world *world, uint32_t slots, int32_t partitions)
{
    world_init(world, slots, NULL);
    world_topic(world, "orders", partitions);
    struct lw_subscription_options options = world_options("orders", 1);
    options.ordering = LW_ORDERING_NONE;
    return options;
}

static void
begin(struct world *world, const struct lw_subscription_options *options)
{
    world_add(world, options);
    world_start(world);
}

/* Finishes the running one of that position and lets a commit pass. */
static void
finish_position(struct world *world, int64_t position)
{
    for (uint32_t i = 0; i < world->running_count; i++) {
        if (lw_delivery_offset(world->running[i]) == position) {
            world_finish(world, i, LW_OK);
            world_pass(world, 150);
            return;
        }
    }
    fail_msg("position %d does not run", (int)position);
}

static void
make_hole(struct world *world, int64_t from, int64_t to)
{
    for (int64_t position = from; position <= to; position++) {
        assert_int_equal(lw_memory_hub_delete(world->hub, "orders", 0, position), LW_STATUS_OK);
    }
}

static void
a_message_that_was_received_but_not_run_holds_the_commit(void **state)
{
    struct world world;
    struct world other;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, 1);
    options.profile = LW_PROFILE_THROUGHPUT;
    begin(&world, &options);
    world_send(&world, "orders", 0, NULL, 10);
    world_turn(&world);
    for (int i = 0; i < 5; i++) {
        world_finish(&world, 0, LW_OK);
    }
    world_pass(&world, 200);
    assert_int_equal(world.dispatcher.held_count, 5);
    assert_int_equal(world_committed(&world, "orders", 0), 5);
    lw_memory_hub_rebalance(world.hub, "group");
    world_turn(&world);
    assert_int_equal(world_committed(&world, "orders", 0), 5);
    lw_shutdown_begin(&world.dispatcher, true);
    world_turn(&world);
    world_finish_all(&world);
    assert_int_equal(world_committed(&world, "orders", 0), 5);
    world_init_beside(&other, &world, 1);
    begin(&other, &options);
    assert_string_equal(world_name(&other, 0), "orders/0/5");
    world_finish_all(&other);
    world_pass(&world, 200);
    assert_int_equal(world_committed(&world, "orders", 0), 10);
    world_deinit(&other);
    world_deinit(&world);
}

static void
nothing_is_committed_while_the_first_message_runs(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 10, 1);
    begin(&world, &options);
    world_send(&world, "orders", 0, NULL, 10);
    world_turn(&world);
    for (int i = 0; i < 9; i++) {
        world_finish(&world, 1, LW_OK);
    }
    lw_memory_hub_rebalance(world.hub, "group");
    world_pass(&world, 200);
    assert_int_equal(world_committed(&world, "orders", 0), -1);
    assert_int_equal(lw_memory_hub_stats(world.hub).commits, 0);
    world_deinit(&world);
}

static void
holes_between_messages_do_not_hold_the_commit(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 10, 1);
    world_send(&world, "orders", 0, NULL, 7);
    make_hole(&world, 1, 1);
    make_hole(&world, 3, 3);
    make_hole(&world, 5, 5);
    begin(&world, &options); /* 0, 2, 4, 6 */
    finish_position(&world, 0);
    assert_int_equal(world_committed(&world, "orders", 0), 2);
    finish_position(&world, 2);
    assert_int_equal(world_committed(&world, "orders", 0), 4);
    finish_position(&world, 6);
    assert_int_equal(world_committed(&world, "orders", 0), 4);
    finish_position(&world, 4);
    assert_int_equal(world_committed(&world, "orders", 0), 7);
    world_deinit(&world);
}

static void
a_hole_of_a_thousand_and_one_at_the_start_are_passed(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 10, 1);
    world_send(&world, "orders", 0, NULL, 1010);
    make_hole(&world, 0, 4);
    make_hole(&world, 7, 1006);
    begin(&world, &options); /* 5, 6, 1007, 1008, 1009 */
    assert_string_equal(world_name(&world, 0), "orders/0/5");
    finish_position(&world, 6);
    assert_int_equal(world_committed(&world, "orders", 0), 5);
    finish_position(&world, 5);
    assert_int_equal(world_committed(&world, "orders", 0), 1007);
    world_finish_all(&world);
    world_pass(&world, 200);
    assert_int_equal(world_committed(&world, "orders", 0), 1010);
    world_deinit(&world);
}

static void
a_committed_position_that_compaction_removed_is_no_obstacle(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 10, 1);
    world_send(&world, "orders", 0, NULL, 13);
    make_hole(&world, 5, 8);
    assert_int_equal(lw_memory_hub_set_committed(world.hub, "group", "orders", 0, 5),
                     LW_STATUS_OK);
    begin(&world, &options);
    assert_string_equal(world_name(&world, 0), "orders/0/9");
    world_finish_all(&world);
    world_pass(&world, 200);
    assert_int_equal(world.started_count, 4);
    assert_int_equal(world_committed(&world, "orders", 0), 13);
    world_deinit(&world);
}

static void
a_tail_without_messages_is_committed_but_never_more(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 10, 1);
    world_send(&world, "orders", 0, NULL, 3);
    make_hole(&world, 1, 1);
    assert_int_equal(lw_memory_hub_skip(world.hub, "orders", 0, 1), LW_STATUS_OK);
    begin(&world, &options); /* 0 and 2; the log ends at 4 */
    finish_position(&world, 2);
    assert_int_equal(world_committed(&world, "orders", 0), -1);
    finish_position(&world, 0);
    assert_int_equal(world_committed(&world, "orders", 0), 4);
    assert_int_equal(lw_memory_hub_backlog(world.hub, "group", "orders"), 0);
    world_deinit(&world);
}

static void
the_end_of_the_log_does_not_pass_an_unfinished_message(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 10, 1);
    begin(&world, &options);
    world_send(&world, "orders", 0, NULL, 2);
    assert_int_equal(lw_memory_hub_skip(world.hub, "orders", 0, 1), LW_STATUS_OK);
    world_turn(&world);
    finish_position(&world, 0);
    assert_int_equal(world_committed(&world, "orders", 0), 1);
    finish_position(&world, 1);
    assert_int_equal(world_committed(&world, "orders", 0), 3);
    world_deinit(&world);
}

static void
a_second_run_gets_nothing_again_and_skips_nothing(void **state)
{
    struct world world;
    struct world next;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, 1);
    begin(&world, &options);
    world_send(&world, "orders", 0, NULL, 10);
    world_turn(&world);
    world_finish_all(&world);
    assert_int_equal(world_close(&world), LW_STATUS_OK);
    world_init_beside(&next, &world, 1);
    begin(&next, &options);
    world_pass(&world, 1000);
    assert_int_equal(next.started_count, 0);
    world_send(&world, "orders", 0, NULL, 1);
    world_turn(&world);
    assert_string_equal(world_name(&next, 0), "orders/0/10");
    world_deinit(&next);
    world_deinit(&world);
}

static void
a_log_that_was_lost_is_committed_from_its_new_start(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 10, 1);
    assert_int_equal(lw_memory_hub_set_committed(world.hub, "group", "orders", 0, 1000),
                     LW_STATUS_OK);
    world_send(&world, "orders", 0, NULL, 100);
    begin(&world, &options); /* 1,000 is out of range: earliest */
    world_finish_all(&world);
    world_pass(&world, 200);
    assert_int_equal(world.started_count, 100);
    assert_int_equal(world_committed(&world, "orders", 0), 100);
    world_deinit(&world);
}

static void
a_log_that_is_lost_while_we_read_is_committed_backwards(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 10, 1);
    begin(&world, &options);
    world_send(&world, "orders", 0, NULL, 50);
    world_turn(&world);
    world_finish_all(&world);
    world_pass(&world, 200);
    assert_int_equal(world_committed(&world, "orders", 0), 50);
    assert_int_equal(lw_memory_hub_truncate(world.hub, "orders", 0), LW_STATUS_OK);
    world_pass(&world, 10);
    world_send(&world, "orders", 0, NULL, 3);
    world_turn(&world);
    world_finish_all(&world);
    world_pass(&world, 200);
    assert_int_equal(world_committed(&world, "orders", 0), 3);
    world_deinit(&world);
}

static void
expect_reset(const char *reset, int64_t committed, const char *first)
{
    struct world world;
    struct lw_subscription_options options = open_world(&world, 1, 1);
    struct lw_property property = { "auto.offset.reset", reset };
    options.properties = &property;
    options.property_count = 1;
    world_send(&world, "orders", 0, NULL, 100);
    assert_int_equal(lw_memory_hub_raise_start(world.hub, "orders", 0, 40), LW_STATUS_OK);
    assert_int_equal(lw_memory_hub_set_committed(world.hub, "group", "orders", 0, committed),
                     LW_STATUS_OK);
    begin(&world, &options);
    world_send(&world, "orders", 0, NULL, 1);
    world_turn(&world);
    if (first) {
        assert_string_equal(world_name(&world, 0), first);
    } else {
        world_pass(&world, 60000);
        assert_int_equal(world.started_count, 0);
        assert_int_not_equal(world.dispatcher.end_status, LW_STATUS_OK);
        assert_true(world_logged(&world, "source.error"));
    }
    world_deinit(&world);
}

static void
a_position_that_is_out_of_range_follows_the_reset_policy(void **state)
{
    (void)state;
    expect_reset("earliest", 3, "orders/0/40");
    expect_reset("latest", 3, "orders/0/100");
    expect_reset("none", 3, NULL);
}

static void
an_error_on_the_whole_list_is_repeated_for_all_of_it(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 8, 4);
    begin(&world, &options);
    for (int32_t i = 0; i < 4; i++) {
        world_send(&world, "orders", i, NULL, 2);
    }
    world_turn(&world);
    world_fault(&world, LW_MEMORY_SPLIT_COMMIT, 3, LW_STATUS_TOO_LARGE);
    world_finish_all(&world);
    world_pass(&world, 20000);
    for (int32_t i = 0; i < 4; i++) {
        assert_int_equal(world_committed(&world, "orders", i), 2);
    }
    world_deinit(&world);
}

static void
a_commit_whose_answer_is_lost_is_repeated(void **state)
{
    struct world world;
    struct lw_memory_fault fault = { .kind = LW_MEMORY_FAIL_COMMIT,
                                     .count = 20,
                                     .status = LW_STATUS_UNKNOWN,
                                     .is_applied = true };
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, 1);
    begin(&world, &options);
    assert_int_equal(lw_memory_hub_inject(world.hub, &fault), LW_STATUS_OK);
    world_send(&world, "orders", 0, NULL, 5);
    world_turn(&world);
    world_finish_all(&world);
    world_pass(&world, 200000);
    assert_int_equal(world_committed(&world, "orders", 0), 5);
    assert_true(world_told(&world, "commit:orders/0/5"));
    assert_int_equal(world.dispatcher.links[0]->commits_failed, 20);
    world_deinit(&world);
}

static void
commits_wait_for_a_broker_that_is_away(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, 1);
    begin(&world, &options);
    world_send(&world, "orders", 0, NULL, 2);
    world_turn(&world);
    lw_memory_hub_set_down(world.hub, 5000 * LW_MS);
    world_finish(&world, 0, LW_OK);
    world_pass(&world, 4000);
    assert_int_equal(world_committed(&world, "orders", 0), -1);
    world_pass(&world, 2000);
    assert_int_equal(world_committed(&world, "orders", 0), 1);
    assert_true(world_logged(&world, "broker.down"));
    assert_true(world_logged(&world, "broker.up"));
    world_deinit(&world);
}

static void
a_position_that_comes_twice_runs_once(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, 1);
    begin(&world, &options);
    world_fault(&world, LW_MEMORY_DELIVER_TWICE, 3, LW_STATUS_OK);
    world_send(&world, "orders", 0, NULL, 5);
    world_turn(&world);
    world_finish_all(&world);
    world_pass(&world, 200);
    assert_int_equal(world.started_count, 5);
    assert_int_equal(world.dispatcher.streams[0]->counters.duplicates, 3);
    assert_int_equal(world_committed(&world, "orders", 0), 5);
    world_deinit(&world);
}

static void
ten_thousand_completions_commit_before_the_interval(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, 1);
    world.dispatcher.options.commit_interval_ms = 3600 * 1000;
    world.dispatcher.options.commit_count = 100;
    begin(&world, &options);
    world_send(&world, "orders", 0, NULL, 250);
    world_turn(&world);
    for (int i = 0; i < 240; i++) {
        world_finish(&world, 0, LW_OK);
    }
    assert_int_equal(lw_memory_hub_stats(world.hub).commits, 2);
    assert_int_equal(world_committed(&world, "orders", 0), 200);
    world_deinit(&world);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_that_was_received_but_not_run_holds_the_commit),
        cmocka_unit_test(nothing_is_committed_while_the_first_message_runs),
        cmocka_unit_test(holes_between_messages_do_not_hold_the_commit),
        cmocka_unit_test(a_hole_of_a_thousand_and_one_at_the_start_are_passed),
        cmocka_unit_test(a_committed_position_that_compaction_removed_is_no_obstacle),
        cmocka_unit_test(a_tail_without_messages_is_committed_but_never_more),
        cmocka_unit_test(the_end_of_the_log_does_not_pass_an_unfinished_message),
        cmocka_unit_test(a_second_run_gets_nothing_again_and_skips_nothing),
        cmocka_unit_test(a_log_that_was_lost_is_committed_from_its_new_start),
        cmocka_unit_test(a_log_that_is_lost_while_we_read_is_committed_backwards),
        cmocka_unit_test(a_position_that_is_out_of_range_follows_the_reset_policy),
        cmocka_unit_test(an_error_on_the_whole_list_is_repeated_for_all_of_it),
        cmocka_unit_test(a_commit_whose_answer_is_lost_is_repeated),
        cmocka_unit_test(commits_wait_for_a_broker_that_is_away),
        cmocka_unit_test(a_position_that_comes_twice_runs_once),
        cmocka_unit_test(ten_thousand_completions_commit_before_the_interval),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
