/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A broker that gives only what was demanded cannot say that it has more. A topic whose message
 * comes when worse ones have the slots learns from it, if it came soon after the topic ran dry.
 */
#include "dispatcher/starved.h"

#include "tests/support/test.h"

#include "dispatcher/stream.h"
#include "tests/dispatcher/world.h"

enum { SLOTS = 4 };

static uint32_t
window_of(const struct world *world, uint32_t index)
{
    return world->dispatcher.streams[index]->subscription.window.size;
}

static void
add(struct world *world, const char *topic, int32_t priority)
{
    struct lw_subscription_options options = world_options(topic, priority);
    options.ordering = LW_ORDERING_NONE;
    world_topic(world, topic, 1);
    world_add(world, &options);
}

/* "hi", "mid", "lo"; 100 messages of lo, of which four run; what all had to learn first is over. */
static void
setup(struct world *world, bool is_on_demand)
{
    world_init(world, SLOTS, NULL);
    world->broker->caps.gives_on_demand = is_on_demand;
    add(world, "hi", 1);
    add(world, "mid", 2);
    add(world, "lo", 3);
    world_start(world);
    world_pass(world, 200);
    world_send(world, "lo", 0, NULL, 100);
    world_turn(world);
    assert_int_equal(world->running_count, SLOTS);
}

/* The topic's one message comes so long after all of its slots went to lo. */
static void
come_after(struct world *world, const char *topic, int64_t ms)
{
    world_send(world, topic, 0, NULL, 1);
    world_turn(world);
    world_finish(world, 0, LW_OK); /* it runs: from here on its topic is dry again */
    world_pass(world, ms);
    world_send(world, topic, 0, NULL, 1);
    world_turn(world);
}

static void
a_topic_that_missed_slots_gets_a_window_that_covers_them(void **state)
{
    struct world world;
    (void)state;
    setup(&world, true);
    come_after(&world, "hi", 5);
    assert_int_equal(window_of(&world, 0), 1 + SLOTS - 1); /* one of the slots was its own */
    world_deinit(&world);
}

static void
a_message_that_comes_late_is_a_trickle(void **state)
{
    struct world world;
    (void)state;
    setup(&world, true);
    come_after(&world, "hi", 1000);
    assert_int_equal(window_of(&world, 0), 1);
    world_deinit(&world);
}

static void
a_broker_that_says_what_it_has_is_believed(void **state)
{
    struct world world;
    (void)state;
    setup(&world, false);
    come_after(&world, "hi", 5);
    assert_int_equal(window_of(&world, 0), 1);
    assert_false(lw_starved_is(world.dispatcher.streams[0]));
    world_deinit(&world);
}

static void
a_topic_whose_own_messages_have_all_slots_is_not_starved(void **state)
{
    struct world world;
    (void)state;
    world_init(&world, SLOTS, NULL);
    world.broker->caps.gives_on_demand = true;
    add(&world, "hi", 1);
    add(&world, "lo", 2);
    world_start(&world);
    assert_true(lw_starved_is(world.dispatcher.streams[0])); /* slots are free */
    world_send(&world, "hi", 0, NULL, SLOTS);
    world_turn(&world);
    assert_int_equal(world.running_count, SLOTS);
    assert_false(lw_starved_is(world.dispatcher.streams[0]));
    assert_false(lw_starved_is(world.dispatcher.streams[1]));
    world_deinit(&world);
}

static void
a_gap_of_a_better_topic_teaches_a_worse_one_nothing(void **state)
{
    struct world world;
    (void)state;
    setup(&world, true);
    world_send(&world, "hi", 0, NULL, 1);
    world_turn(&world);
    world_finish(&world, 0, LW_OK); /* hi runs, and is asked for more just now */
    world_pass(&world, 1);
    world_send(&world, "mid", 0, NULL, 1);
    world_turn(&world);
    assert_int_equal(window_of(&world, 1), 1); /* it was dry for long */
    world_finish(&world, 0, LW_OK);
    world_pass(&world, 1);
    world_send(&world, "mid", 0, NULL, 1);
    world_turn(&world);
    assert_int_equal(window_of(&world, 1), 2); /* doubled; without hi it would be 3 or more */
    world_deinit(&world);
}

/* A worse topic's batch is one run, however many messages it has. */
static void
a_batch_of_a_worse_topic_is_one_missed_slot(void **state)
{
    struct world world;
    (void)state;
    world_init(&world, SLOTS, NULL);
    world.broker->caps.gives_on_demand = true;
    add(&world, "hi", 1);
    world.engine->batch = (struct lw_batch_options){ .size = 10, .wait_ms = 50, .bytes = 1000 };
    add(&world, "lo", 2);
    world_start(&world);
    world_pass(&world, 200);
    world_send(&world, "lo", 0, NULL, 100);
    world_turn(&world);
    assert_int_equal(world.running_count, SLOTS);
    world_send(&world, "hi", 0, NULL, 1);
    world_turn(&world);
    world_finish(&world, 0, LW_OK); /* hi runs, and is dry from here on */
    world_finish(&world, 0, LW_OK); /* another ten of lo run */
    assert_int_equal(world.dispatcher.streams[1]->counters.started, 50);
    world_pass(&world, 5);
    world_send(&world, "hi", 0, NULL, 1);
    world_turn(&world);
    assert_int_equal(window_of(&world, 0), 1 + SLOTS);
    world_deinit(&world);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_topic_that_missed_slots_gets_a_window_that_covers_them),
        cmocka_unit_test(a_message_that_comes_late_is_a_trickle),
        cmocka_unit_test(a_broker_that_says_what_it_has_is_believed),
        cmocka_unit_test(a_topic_whose_own_messages_have_all_slots_is_not_starved),
        cmocka_unit_test(a_gap_of_a_better_topic_teaches_a_worse_one_nothing),
        cmocka_unit_test(a_batch_of_a_worse_topic_is_one_missed_slot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
