/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A better topic that has only messages behind taken keys here, and others at the broker: those
 * are received before a worse topic gets the slot. What is behind the key fills no window.
 */
#include "tests/support/test.h"

#include "tests/dispatcher/world.h"

/* "hi" is better than "lo"; key a of hi and one message of lo hold both slots. */
static void
setup(struct world *world)
{
    struct lw_subscription_options hi = world_options("hi", 1);
    struct lw_subscription_options lo = world_options("lo", 2);
    world_init(world, 2, NULL);
    world_topic(world, "hi", 1);
    world_topic(world, "lo", 1);
    world_add(world, &hi);
    world_add(world, &lo);
    world_start(world);
    world_send(world, "hi", 0, "a", 1);
    world_turn(world);
    world_send(world, "lo", 0, "x", 1);
    world_send(world, "lo", 0, "y", 1);
    world_turn(world);
    assert_int_equal(world->running_count, 2);
    assert_string_equal(world_name(world, 1), "lo/0/0");
}

static void
a_better_topic_is_received_past_a_taken_key_before_a_worse_one_starts(void **state)
{
    struct world world;
    (void)state;
    setup(&world);
    world_send(&world, "hi", 0, "a", 100);
    world_send(&world, "hi", 0, "b", 1);
    world_turn(&world);
    world_finish(&world, 1, LW_OK);
    assert_string_equal(world_name(&world, 1), "hi/0/101");
    world_deinit(&world);
}

static void
a_worse_topic_starts_when_the_better_one_has_only_the_taken_key(void **state)
{
    struct world world;
    (void)state;
    setup(&world);
    world_send(&world, "hi", 0, "a", 100);
    world_turn(&world);
    world_finish(&world, 1, LW_OK);
    assert_string_equal(world_name(&world, 1), "lo/0/1");
    world_deinit(&world);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_better_topic_is_received_past_a_taken_key_before_a_worse_one_starts),
        cmocka_unit_test(a_worse_topic_starts_when_the_better_one_has_only_the_taken_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
