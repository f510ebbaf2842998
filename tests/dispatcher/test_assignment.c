/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Partitions that come and go: what is committed before they are given up, what late results
 * change (nothing), and what the next owner gets. Two members are two worlds on one hub.
 */
#include "tests/support/test.h"

#include "tests/dispatcher/world.h"

#include <stdio.h>
#include <string.h>

static struct lw_memory_options
cooperative(void)
{
    struct lw_memory_options options;
    lw_memory_options_init(&options);
    options.protocol = LW_MEMORY_COOPERATIVE;
    return options;
}

/* A world with `partitions` of "orders", not started yet. */
static struct lw_subscription_options
open_world(struct world *world, uint32_t slots, int32_t partitions,
           const struct lw_memory_options *hub)
{
    world_init(world, slots, hub);
    world_topic(world, "orders", partitions);
    return world_options("orders", 1);
}

static void
begin(struct world *world, const struct lw_subscription_options *options)
{
    world_add(world, options);
    world_start(world);
}

static void
begin_beside(struct world *world, struct world *other, uint32_t slots,
             const struct lw_subscription_options *options)
{
    world_init_beside(world, other, slots);
    begin(world, options);
}

/* The running one of that partition. */
static uint32_t
find_running(const struct world *world, int32_t partition)
{
    for (uint32_t i = 0; i < world->running_count; i++) {
        if (lw_delivery_partition(world->running[i]) == partition) {
            return i;
        }
    }
    fail_msg("nothing of partition %d runs", partition);
    return 0;
}

static const struct lw_counters *
counters_of(const struct world *world)
{
    return &world->dispatcher.streams[0]->counters;
}

/* -- late results ---------------------------------------------------------------------------- */

static void
a_late_result_is_dropped_and_the_new_owner_gets_the_message(void **state)
{
    struct world world;
    struct world other;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 2, 2, NULL);
    begin(&world, &options);
    world_send(&world, "orders", 0, "a", 1);
    world_send(&world, "orders", 1, "b", 1);
    world_turn(&world);
    begin_beside(&other, &world, 2, &options);
    world_turn(&world);
    assert_int_equal(other.running_count, 1); /* the moved one runs there, from the commit */
    int32_t moved = lw_delivery_partition(other.running[0]);
    world_finish(&world, find_running(&world, moved), LW_OK);
    world_pass(&world, 300);
    assert_int_equal(counters_of(&world)->stale, 1);
    assert_int_equal(world_committed(&world, "orders", moved), -1);
    world_finish(&other, 0, LW_OK);
    world_pass(&world, 300);
    assert_int_equal(world_committed(&world, "orders", moved), 1);
    world_deinit(&other);
    world_deinit(&world);
}

static void
a_late_failure_is_not_dead_lettered(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, 1, NULL);
    options.reply.topic = "replies";
    begin(&world, &options);
    world_send(&world, "orders", 0, "a", 1);
    world_turn(&world);
    lw_memory_hub_rebalance(world.hub, "group");
    world_turn(&world);
    assert_true(lw_delivery_is_cancelled(world.running[0]));
    assert_int_equal(lw_delivery_reply(world.running[0], lw_bytes_of("r")), LW_STATUS_OK);
    world_finish(&world, 0, LW_DEAD);
    world_pass(&world, 1000);
    assert_int_equal(world_count(&world, "orders.dlq") + world_count(&world, "replies"), 0);
    world_deinit(&world);
}

static void
a_message_of_a_new_generation_waits_behind_a_running_old_one_of_its_key(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 4, 1, NULL);
    begin(&world, &options);
    world_send(&world, "orders", 0, "a", 2);
    world_send(&world, "orders", 0, "b", 1);
    world_turn(&world);
    assert_int_equal(world.running_count, 2);
    lw_memory_hub_rebalance(world.hub, "group");
    world_pass(&world, 1000);
    assert_int_equal(world.running_count, 2); /* both keys are still busy */
    world_finish(&world, 0, LW_OK);
    assert_int_equal(world.running_count, 2);
    assert_string_equal(world_name(&world, 1), "orders/0/0");
    assert_int_equal(lw_delivery_attempt(world.running[1]), 1);
    world_finish_all(&world);
    world_pass(&world, 300);
    assert_int_equal(world_committed(&world, "orders", 0), 3);
    world_deinit(&world);
}

static void
partition_order_holds_over_generations_too(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 4, 1, NULL);
    options.ordering = LW_ORDERING_PARTITION;
    begin(&world, &options);
    world_send(&world, "orders", 0, "a", 1);
    world_send(&world, "orders", 0, "b", 1);
    world_turn(&world);
    for (int i = 0; i < 3; i++) {
        lw_memory_hub_rebalance(world.hub, "group");
        world_pass(&world, 100);
    }
    assert_int_equal(world.running_count, 1);
    world_finish_all(&world);
    world_pass(&world, 300);
    assert_int_equal(world.started_count, 3); /* the stale one, then both */
    assert_int_equal(world_committed(&world, "orders", 0), 2);
    world_deinit(&world);
}

/* -- the last commit --------------------------------------------------------------------------- */

static void
what_is_finished_is_committed_before_the_partitions_go(void **state)
{
    struct world world;
    struct world other;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, 1, NULL);
    world.dispatcher.options.commit_interval_ms = 60000;
    begin(&world, &options);
    world_send(&world, "orders", 0, "a", 201);
    world_turn(&world);
    for (int i = 0; i < 200; i++) {
        world_finish(&world, 0, LW_OK);
    }
    assert_int_equal(world_committed(&world, "orders", 0), -1);
    begin_beside(&other, &world, 1, &options);
    world_pass(&world, 10);
    assert_int_equal(world_committed(&world, "orders", 0), 200);
    assert_int_equal(lw_memory_hub_stats(world.hub).commits, 1); /* one for all */
    world_deinit(&other);
    world_deinit(&world);
}

static void
a_commit_in_flight_is_awaited_and_one_more_follows(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, 1, NULL);
    begin(&world, &options);
    lw_memory_hub_options(world.hub)->commit_latency_ns = 1000 * LW_MS;
    world_send(&world, "orders", 0, "a", 10);
    world_turn(&world);
    for (int i = 0; i < 5; i++) {
        world_finish(&world, 0, LW_OK);
    }
    world_pass(&world, 200); /* the commit of 5 is on its way until 1,100 ms */
    world_finish(&world, 0, LW_OK);
    lw_memory_hub_rebalance(world.hub, "group");
    world_pass(&world, 500);
    assert_false(world_told(&world, "revoke"));
    world_pass(&world, 3000);
    assert_true(world_told(&world, "commit:orders/0/5 commit:orders/0/6 revoke:orders/0/6 "));
    world_deinit(&world);
}

static void
a_second_group_that_is_revoked_meanwhile_commits_its_own(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 2, 1, NULL);
    struct lw_subscription_options second = world_options("bills", 2);
    second.subscription = "second";
    world.dispatcher.options.commit_interval_ms = 60000;
    world_topic(&world, "bills", 1);
    world_add(&world, &second);
    begin(&world, &options);
    lw_memory_hub_options(world.hub)->commit_latency_ns = 1000 * LW_MS;
    world_send(&world, "orders", 0, "a", 1);
    world_send(&world, "bills", 0, "a", 1);
    world_turn(&world);
    world_finish(&world, 0, LW_OK);
    lw_memory_hub_rebalance(world.hub, "group");
    world_pass(&world, 500); /* the last commit of the first group is awaited */
    world_finish(&world, 0, LW_OK);
    lw_memory_hub_rebalance(world.hub, "second");
    world_pass(&world, 4000);
    assert_int_equal(world.started_count, 2);
    assert_true(world_told(&world, "commit:bills/0/1 "));
    assert_int_equal(lw_memory_hub_stats(world.hub).rebalances, 4);
    world_deinit(&world);
}

static void
a_commit_that_does_not_answer_holds_the_revoke_for_five_seconds(void **state)
{
    struct world world;
    struct lw_memory_fault fault = { .kind = LW_MEMORY_SLOW_COMMIT,
                                     .count = 1,
                                     .delay_ns = 20000 * LW_MS };
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, 1, NULL);
    begin(&world, &options);
    lw_memory_hub_options(world.hub)->revoke_timeout_ns = 60000 * LW_MS;
    assert_int_equal(lw_memory_hub_inject(world.hub, &fault), LW_STATUS_OK);
    world_send(&world, "orders", 0, "a", 3);
    world_turn(&world);
    world_finish(&world, 0, LW_OK);
    lw_memory_hub_rebalance(world.hub, "group");
    world_pass(&world, 4990);
    assert_false(world_told(&world, "revoke"));
    world_pass(&world, 20);
    assert_true(world_told(&world, "revoke"));
    assert_true(world_logged(&world, "revoke.uncommitted"));
    world_pass(&world, 30000); /* the late answer came */
    world_finish_all(&world);
    world_pass(&world, 300);
    assert_int_equal(world_committed(&world, "orders", 0), 3);
    world_deinit(&world);
}

static void
a_failed_last_commit_loses_nothing(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, 1, NULL);
    world.dispatcher.options.commit_interval_ms = 60000;
    begin(&world, &options);
    world_send(&world, "orders", 0, "a", 2);
    world_turn(&world);
    world_finish(&world, 0, LW_OK);
    world_fault(&world, LW_MEMORY_FAIL_COMMIT, 100, LW_STATUS_UNAVAILABLE);
    lw_memory_hub_rebalance(world.hub, "group");
    world_pass(&world, 6000);
    lw_memory_hub_clear_faults(world.hub);
    world_finish_all(&world); /* the stale one, then 0 and 1 again */
    world_pass(&world, 61000);
    assert_int_equal(world.started_count, 4);
    assert_int_equal(world_committed(&world, "orders", 0), 2);
    world_deinit(&world);
}

/* One done and not committed, its partition taken away; commits fail by that script. */
static void
revoke_with_failing_commits(struct world *world, uint32_t count, enum lw_status status)
{
    struct lw_subscription_options options = open_world(world, 1, 1, NULL);
    begin(world, &options);
    lw_memory_hub_options(world->hub)->revoke_timeout_ns = 60000 * LW_MS;
    world_fault(world, LW_MEMORY_FAIL_COMMIT, count, status);
    world_send(world, "orders", 0, "a", 3);
    world_turn(world);
    world_finish(world, 0, LW_OK);
    lw_memory_hub_rebalance(world->hub, "group");
}

static void
a_last_commit_that_fails_is_sent_again_before_the_answer(void **state)
{
    struct world world;
    (void)state;
    revoke_with_failing_commits(&world, 3, LW_STATUS_UNAVAILABLE);
    world_pass(&world, 690); /* again after 100, 200 and 400 ms */
    assert_false(world_told(&world, "revoke"));
    world_pass(&world, 20);
    assert_true(world_told(&world, "commit:orders/0/1 revoke:orders/0/1 "));
    assert_int_equal(lw_memory_hub_stats(world.hub).commits_failed, 3);
    assert_int_equal(world_committed(&world, "orders", 0), 1);
    world_deinit(&world);
}

static void
a_last_commit_that_always_fails_holds_the_revoke_for_five_seconds(void **state)
{
    struct world world;
    (void)state;
    revoke_with_failing_commits(&world, 100, LW_STATUS_UNAVAILABLE);
    world_pass(&world, 4990);
    assert_false(world_told(&world, "revoke"));
    world_pass(&world, 20);
    assert_true(world_told(&world, "revoke:orders/0/"));
    assert_true(world_logged(&world, "revoke.uncommitted"));
    assert_in_range(lw_memory_hub_stats(world.hub).commits_failed, 8, 10);
    world_deinit(&world);
}

static void
a_member_that_is_not_known_any_more_does_not_commit_again(void **state)
{
    struct world world;
    (void)state;
    revoke_with_failing_commits(&world, 1, LW_STATUS_STATE);
    world_pass(&world, 1);
    assert_true(world_told(&world, "revoke:orders/0/"));
    assert_int_equal(lw_memory_hub_stats(world.hub).commits_failed, 1);
    world_deinit(&world);
}

/* -- lost -------------------------------------------------------------------------------------- */

static void
a_lost_partition_is_not_committed(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, 1, NULL);
    begin(&world, &options);
    world_send(&world, "orders", 0, "a", 3);
    world_turn(&world);
    world_finish(&world, 0, LW_OK);
    lw_memory_hub_lose(world.hub, "main");
    world_turn(&world);
    assert_int_equal(lw_memory_hub_stats(world.hub).commits, 0);
    assert_true(world_logged(&world, "assignment.lost"));
    world_finish_all(&world);
    world_pass(&world, 300);
    assert_int_equal(world_committed(&world, "orders", 0), 3);
    assert_int_equal(world.started_count, 5); /* 0, the stale 1, then 0 to 2 */
    world_deinit(&world);
}

static void
commits_go_on_after_a_loss_in_the_middle_of_a_revoke(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, 1, NULL);
    begin(&world, &options);
    lw_memory_hub_options(world.hub)->commit_latency_ns = 1000 * LW_MS;
    world_send(&world, "orders", 0, "a", 3);
    world_turn(&world);
    world_finish(&world, 0, LW_OK);
    lw_memory_hub_rebalance(world.hub, "group");
    world_pass(&world, 100); /* the last commit is awaited */
    lw_memory_hub_lose(world.hub, "main");
    world_pass(&world, 3000);
    world_finish_all(&world);
    world_pass(&world, 3000);
    assert_int_equal(world_committed(&world, "orders", 0), 3);
    world_deinit(&world);
}

/* -- what a revoke clears ------------------------------------------------------------------------ */

static void
parked_messages_go_with_their_partition(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, 1, NULL);
    begin(&world, &options);
    world_send(&world, "orders", 0, "a", 1);
    world_turn(&world);
    world_finish(&world, 0, LW_RETRY);
    lw_memory_hub_rebalance(world.hub, "group");
    world_turn(&world);
    assert_int_equal(world.running_count, 1); /* a new ownership: at once, attempt 1 */
    assert_int_equal(lw_delivery_attempt(world.running[0]), 1);
    assert_int_equal(world.dispatcher.streams[0]->subscription.parked, 0);
    world_pass(&world, 10000);
    assert_int_equal(world.started_count, 2);
    world_deinit(&world);
}

static void
messages_beyond_the_offsets_window_go_with_their_partition(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 2, 1, NULL);
    options.ordering = LW_ORDERING_NONE;
    options.max_uncommitted = 64;
    options.profile = LW_PROFILE_THROUGHPUT;
    begin(&world, &options);
    world_send(&world, "orders", 0, NULL, 300);
    world_turn(&world);
    for (int i = 0; i < 63; i++) {
        world_finish(&world, 1, LW_OK); /* the first stays, the window is full */
    }
    lw_memory_hub_rebalance(world.hub, "group");
    world_turn(&world);
    world_finish_all(&world);
    world_pass(&world, 300);
    assert_int_equal(world_committed(&world, "orders", 0), 300);
    assert_int_equal(world.dispatcher.held_count, 0);
    world_deinit(&world);
}

/* -- cooperative --------------------------------------------------------------------------------- */

static void
partitions_that_stay_keep_running_and_their_results_count(void **state)
{
    struct world world;
    struct world other;
    struct lw_memory_options hub = cooperative();
    (void)state;
    struct lw_subscription_options options = open_world(&world, 4, 4, &hub);
    begin(&world, &options);
    for (int32_t i = 0; i < 4; i++) {
        world_send(&world, "orders", i, "a", 2);
    }
    world_turn(&world);
    begin_beside(&other, &world, 4, &options);
    world_pass(&world, 10);
    assert_int_equal(other.running_count, 2);
    world_finish_all(&world);
    world_finish_all(&other);
    world_pass(&world, 300);
    assert_int_equal(counters_of(&world)->stale, 2);
    assert_int_equal(world.started_count,
                     6); /* 4 first ones, 2 second ones of those that stay */
    for (int32_t i = 0; i < 4; i++) {
        assert_int_equal(world_committed(&world, "orders", i), 2);
    }
    world_deinit(&other);
    world_deinit(&world);
}

static void
work_of_partitions_that_stay_starts_while_a_revoke_is_awaited(void **state)
{
    struct world world;
    struct world other;
    struct lw_memory_options hub = cooperative();
    (void)state;
    struct lw_subscription_options options = open_world(&world, 4, 4, &hub);
    options.profile = LW_PROFILE_THROUGHPUT;
    begin(&world, &options);
    for (int32_t i = 0; i < 4; i++) {
        world_send(&world, "orders", i, "a", 3);
    }
    world_turn(&world);
    lw_memory_hub_options(world.hub)->commit_latency_ns = 2000 * LW_MS;
    for (int i = 0; i < 4; i++) {
        world_finish(&world, 0, LW_OK);
    }
    begin_beside(&other, &world, 4, &options);
    world_pass(&world, 100);
    assert_false(world_told(&world, "revoke"));
    for (int i = 0; i < 4; i++) {
        world_finish(&world, 0, LW_OK);
    }
    assert_int_equal(world.started_count, 12);
    world_deinit(&other);
    world_deinit(&world);
}

/* -- many rebalances ------------------------------------------------------------------------------ */

static void
expect_all_handled(const struct lw_memory_options *hub)
{
    struct world world;
    struct world other;
    struct lw_subscription_options options = open_world(&world, 3, 6, hub);
    begin(&world, &options);
    begin_beside(&other, &world, 3, &options);
    for (int round = 0; round < 40; round++) {
        char key[8];
        snprintf(key, sizeof(key), "k%d", round % 7);
        world_send(&world, "orders", round % 6, key, 5);
        world_pass(&world, 20);
        for (int i = 0; i < 4; i++) {
            struct world *one = (round + i) % 2 ? &world : &other;
            if (one->running_count > 0) {
                world_finish(one, (uint32_t)round % one->running_count, LW_OK);
            }
        }
        lw_memory_hub_rebalance(world.hub, "group");
    }
    for (int i = 0; i < 300; i++) {
        world_finish_all(&world);
        world_finish_all(&other);
        world_pass(&world, 10);
    }
    assert_int_equal(lw_memory_hub_backlog(world.hub, "group", "orders"), 0);
    assert_int_equal(world.dispatcher.held_count + other.dispatcher.held_count, 0);
    world_deinit(&other);
    world_deinit(&world);
}

static void
rebalance_after_rebalance_everything_is_handled(void **state)
{
    struct lw_memory_options hub = cooperative();
    (void)state;
    expect_all_handled(&hub);
    expect_all_handled(NULL);
}

static void
reassigning_without_traffic_moves_no_commit(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, 1, NULL);
    begin(&world, &options);
    world_send(&world, "orders", 0, "a", 3);
    world_turn(&world);
    world_finish(&world, 0, LW_OK);
    world_finish(&world, 0, LW_OK);
    world_pass(&world, 200);
    for (int i = 0; i < 20; i++) {
        lw_memory_hub_rebalance(world.hub, "group");
        world_pass(&world, 200);
        assert_int_equal(world_committed(&world, "orders", 0), 2);
    }
    assert_int_equal(lw_memory_hub_stats(world.hub).commits, 1);
    world_deinit(&world);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_late_result_is_dropped_and_the_new_owner_gets_the_message),
        cmocka_unit_test(a_late_failure_is_not_dead_lettered),
        cmocka_unit_test(
            a_message_of_a_new_generation_waits_behind_a_running_old_one_of_its_key),
        cmocka_unit_test(partition_order_holds_over_generations_too),
        cmocka_unit_test(what_is_finished_is_committed_before_the_partitions_go),
        cmocka_unit_test(a_commit_in_flight_is_awaited_and_one_more_follows),
        cmocka_unit_test(a_second_group_that_is_revoked_meanwhile_commits_its_own),
        cmocka_unit_test(a_commit_that_does_not_answer_holds_the_revoke_for_five_seconds),
        cmocka_unit_test(a_last_commit_that_fails_is_sent_again_before_the_answer),
        cmocka_unit_test(a_last_commit_that_always_fails_holds_the_revoke_for_five_seconds),
        cmocka_unit_test(a_member_that_is_not_known_any_more_does_not_commit_again),
        cmocka_unit_test(a_failed_last_commit_loses_nothing),
        cmocka_unit_test(a_lost_partition_is_not_committed),
        cmocka_unit_test(commits_go_on_after_a_loss_in_the_middle_of_a_revoke),
        cmocka_unit_test(parked_messages_go_with_their_partition),
        cmocka_unit_test(messages_beyond_the_offsets_window_go_with_their_partition),
        cmocka_unit_test(partitions_that_stay_keep_running_and_their_results_count),
        cmocka_unit_test(work_of_partitions_that_stay_starts_while_a_revoke_is_awaited),
        cmocka_unit_test(rebalance_after_rebalance_everything_is_handled),
        cmocka_unit_test(reassigning_without_traffic_moves_no_commit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
