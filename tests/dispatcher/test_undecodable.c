/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages that cannot be read: no handler is called for them, the policy says what becomes of
 * them, and those behind them go on.
 */
#include "tests/support/test.h"

#include "tests/dispatcher/world.h"

static struct lw_subscription_options
open_world(struct world *world, enum lw_on_undecodable on_undecodable)
{
    struct lw_memory_options hub;
    lw_memory_options_init(&hub);
    hub.mode = LW_MEMORY_INDIVIDUAL;
    hub.sharing = LW_MEMORY_SHARED;
    world_init(world, 4, &hub);
    world_topic(world, "orders", 1);
    struct lw_subscription_options options = world_options("orders", 1);
    options.ordering = LW_ORDERING_KEY;
    options.on_undecodable = on_undecodable;
    return options;
}

/* One that cannot be read between two of the same key that can. */
static void
begin(struct world *world, const struct lw_subscription_options *options)
{
    struct lw_memory_item item = lw_memory_item_of("orders", "k", "secret");
    item.fault = "it is encrypted";
    world_add(world, options);
    world_start(world);
    world_send(world, "orders", 0, "k", 1);
    assert_int_equal(lw_memory_hub_publish(world->hub, &item, NULL, NULL), LW_STATUS_OK);
    world_send(world, "orders", 0, "k", 1);
    world_turn(world);
    world_finish_all(world);
}

static const struct lw_counters *
counters(const struct world *world)
{
    return &world->dispatcher.streams[0]->counters;
}

static void
one_that_cannot_be_read_is_a_dead_letter_and_no_handler_is_called(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, LW_ON_UNDECODABLE_DEAD);
    begin(&world, &options);
    assert_int_equal(world.started_count, 2);
    assert_int_equal(counters(&world)->undecodable, 1);
    assert_int_equal(counters(&world)->dead_reasons[LW_CAUSE_UNDECODABLE], 1);
    assert_int_equal(world_count(&world, world.dispatcher.streams[0]->dead_letter_topic), 1);
    assert_int_equal(lw_memory_hub_backlog(world.hub, "group", "orders"), 0);
    world_deinit(&world);
}

static void
held_it_takes_no_lane_and_goes_back_at_the_end(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, LW_ON_UNDECODABLE_HOLD);
    begin(&world, &options);
    assert_int_equal(world.started_count, 2);
    assert_int_equal(counters(&world)->held, 1);
    assert_int_equal(lw_memory_hub_backlog(world.hub, "group", "orders"), 1);
    assert_int_equal(world_close(&world), LW_STATUS_UNFINISHED);
    assert_int_equal(lw_memory_hub_backlog(world.hub, "group", "orders"), 1);
    world_deinit(&world);
}

static void
dropped_it_is_settled_as_dropped(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, LW_ON_UNDECODABLE_DROP);
    begin(&world, &options);
    assert_int_equal(world.started_count, 2);
    assert_int_equal(counters(&world)->settled[LW_SETTLED_DROPPED], 1);
    assert_int_equal(lw_memory_hub_backlog(world.hub, "group", "orders"), 0);
    world_deinit(&world);
}

static void
it_may_stop_the_service_and_comes_again(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, LW_ON_UNDECODABLE_STOP);
    begin(&world, &options);
    for (int i = 0; i < 100 && world.dispatcher.phase != LW_PHASE_CLOSED; i++) {
        world_pass(&world, 10);
    }
    assert_int_equal(world.dispatcher.end_status, LW_STATUS_STOPPED);
    assert_string_equal(world.dispatcher.end_error.code, "E0710");
    assert_true(lw_memory_hub_backlog(world.hub, "group", "orders") >= 1);
    world_deinit(&world);
}

static void
a_thousand_of_them_stop_receiving_when_they_are_held(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, LW_ON_UNDECODABLE_HOLD);
    struct lw_memory_item item = lw_memory_item_of("orders", NULL, "secret");
    item.fault = "it is encrypted";
    options.max_in_flight = 100;
    world_add(&world, &options);
    world_start(&world);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(lw_memory_hub_publish(world.hub, &item, NULL, NULL), LW_STATUS_OK);
    }
    world_pass(&world, 1000);
    assert_int_equal(counters(&world)->held, 100);
    assert_int_equal(lw_memory_hub_backlog(world.hub, "group", "orders"), 1000);
    world_deinit(&world);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_cannot_be_read_is_a_dead_letter_and_no_handler_is_called),
        cmocka_unit_test(held_it_takes_no_lane_and_goes_back_at_the_end),
        cmocka_unit_test(dropped_it_is_settled_as_dropped),
        cmocka_unit_test(it_may_stop_the_service_and_comes_again),
        cmocka_unit_test(a_thousand_of_them_stop_receiving_when_they_are_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
