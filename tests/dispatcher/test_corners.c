/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Corners that the simulator found, each as the shortest story that shows it: commits while the
 * loss of partitions is being heard, a position that comes twice while the offsets window is
 * full, a retry copy without any delay.
 */
#include "tests/support/test.h"

#include "tests/dispatcher/world.h"

#include <string.h>

static void
a_loss_that_is_being_heard_commits_nothing_of_another_subscription(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, 2, NULL);
    struct lw_subscription_options first = world_options("first", 1);
    struct lw_subscription_options second = world_options("second", 1);
    world_add(&world, &first);
    world_add(&world, &second);
    world_topic(&world, "first", 1);
    world_topic(&world, "second", 1);
    world_start(&world);
    world_send(&world, "second", 0, "k", 1);
    world_turn(&world);
    world_finish(&world, 0, LW_OK); /* to be committed by the interval */
    world_send(&world, "first", 0, "k", 5);
    world_turn(&world); /* one runs, four are dropped by the loss, which is as many as commit */
    world.dispatcher.options.commit_count = 1;
    lw_memory_hub_lose(world.hub, world.broker->name);
    world_turn(&world);
    assert_int_equal(world_committed(&world, "second", 0), -1);
    world_finish_all(&world);
    assert_int_equal(world_close(&world), LW_STATUS_OK);
    world_deinit(&world);
}

static void
a_loss_told_partition_by_partition_commits_nothing_of_the_next(void **state)
{
    (void)state;
    struct world world;
    struct lw_memory_options hub;
    lw_memory_options_init(&hub);
    hub.protocol = LW_MEMORY_COOPERATIVE; /* a generation for each partition */
    world_init(&world, 2, &hub);
    struct lw_subscription_options options = world_options("orders", 1);
    world_add(&world, &options);
    world_topic(&world, "orders", 2);
    world_start(&world);
    world_send(&world, "orders", 1, "k", 1);
    world_turn(&world);
    world_finish(&world, 0, LW_OK);
    world_send(&world, "orders", 0, "k", 5);
    world_turn(&world);
    world.dispatcher.options.commit_count = 1;
    lw_memory_hub_lose(world.hub, world.broker->name);
    world_turn(&world);
    assert_int_equal(world_committed(&world, "orders", 1), -1);
    world_finish_all(&world);
    assert_int_equal(world_close(&world), LW_STATUS_OK);
    world_deinit(&world);
}

static void
a_position_that_comes_twice_beyond_the_window_runs_once(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, 4, NULL);
    struct lw_subscription_options options = world_options("orders", 1);
    options.ordering = LW_ORDERING_NONE;
    options.max_uncommitted = 64;
    world_add(&world, &options);
    world_topic(&world, "orders", 1);
    world_start(&world);
    world_send(&world, "orders", 0, NULL, 64);
    world_turn(&world);
    while (world.running_count > 1) { /* all but the first: the window is full */
        world_finish(&world, 1, LW_OK);
    }
    struct lw_memory_fault twice = { .kind = LW_MEMORY_DELIVER_TWICE, .count = 2 };
    assert_int_equal(lw_memory_hub_inject(world.hub, &twice), LW_STATUS_OK);
    world_send(&world, "orders", 0, NULL, 3);
    world_turn(&world);
    assert_int_equal(world.running_count, 1);
    world_finish_all(&world);
    assert_int_equal(world.started_count, 64 + 3);
    assert_int_equal(world_close(&world), LW_STATUS_OK);
    assert_int_equal(world_committed(&world, "orders", 0), 64 + 3);
    world_deinit(&world);
}

static enum lw_verdict
retry_once_at_once(struct lw_delivery *delivery, void *user)
{
    (void)user;
    return lw_delivery_retries(delivery) > 0 ? LW_OK : lw_delivery_retry(delivery, "again", 0);
}

static void
a_retry_copy_without_a_delay_is_read_again(void **state)
{
    (void)state;
    struct world world;
    static const int64_t tiers_ms[] = { 1000 };
    world_init(&world, 1, NULL);
    struct lw_subscription_options options = world_options("orders", 1);
    options.ordering = LW_ORDERING_NONE;
    options.retry.topic = "{topic}.retry";
    options.retry.tiers_ms = tiers_ms;
    options.retry.tier_count = 1;
    world.answer = retry_once_at_once;
    world_add(&world, &options);
    world_topic(&world, "orders", 1);
    world_start(&world);
    world_send(&world, "orders", 0, "k", 1);
    world_pass(&world, 10); /* at once, not when the tier's second is over */
    assert_int_equal(world.started_count, 2);
    assert_int_equal(world_count(&world, "orders.retry.1s"), 1);
    assert_int_equal(world_count(&world, "orders.retry"), 0);
    assert_int_equal(world_close(&world), LW_STATUS_OK);
    world_deinit(&world);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loss_that_is_being_heard_commits_nothing_of_another_subscription),
        cmocka_unit_test(a_loss_told_partition_by_partition_commits_nothing_of_the_next),
        cmocka_unit_test(a_position_that_comes_twice_beyond_the_window_runs_once),
        cmocka_unit_test(a_retry_copy_without_a_delay_is_read_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
