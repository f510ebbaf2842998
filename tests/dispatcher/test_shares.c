/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Partitions of uneven rate under one limit: those with few keys, which are slow, must not fill
 * the room that the others need to keep the slots busy. Handlers take 5 ms of the moved clock.
 */
#include "tests/support/test.h"

#include "tests/dispatcher/world.h"

#include <stdio.h>

enum { SLOTS = 100, HANDLER_MS = 5, PER_KEY = 300, PARTITIONS_MAX = 32 };

/* How many keys each partition has: the more, the faster it goes. */
struct spread {
    int32_t partitions;
    uint32_t keys[PARTITIONS_MAX];
};

/* 110 keys for 100 slots, and 100: there every slot needs every key's next message. */
static const struct spread few = { 8, { 1, 2, 3, 4, 10, 20, 30, 40 } };
static const struct spread many = { 32, { 1, 5, 3, 2, 4, 3, 6, 1, 2, 8, 3, 1, 4, 2, 5, 3,
                                          2, 1, 7, 3, 2, 4, 1, 3, 9, 2, 1, 3, 2, 4, 1, 2 } };

/* Keys of a partition take turns in its log, `run` messages each; it has work for the whole test. */
static void
fill(struct world *world, int32_t partition, uint32_t keys, uint32_t run)
{
    for (uint32_t i = 0; i < PER_KEY / run; i++) {
        for (uint32_t k = 0; k < keys * run; k++) {
            char key[24];
            snprintf(key, sizeof(key), "%d-%u", partition, k / run);
            world_send(world, "orders", partition, key, 1);
        }
    }
}

static void
begin(struct world *world, const struct spread *spread, uint32_t max_in_flight)
{
    struct lw_subscription_options options = world_options("orders", 1);
    options.max_in_flight = max_in_flight;
    world_init(world, SLOTS, NULL);
    world_topic(world, "orders", spread->partitions);
    world_add(world, &options);
    for (int32_t i = 0; i < spread->partitions; i++) {
        fill(world, i, spread->keys[i], 1);
    }
    world_start(world);
}

/* A millisecond goes by; what started HANDLER_MS ago ends. */
static void
work(struct world *world)
{
    uint32_t left = 0;
    uint64_t before = world->clock->host.now - (HANDLER_MS - 1) * LW_MS;
    for (uint32_t i = 0; i < world->running_count; i++) {
        struct lw_delivery *delivery = world->running[i];
        if (delivery->started_at <= before) {
            assert_int_equal(lw_delivery_finish(delivery, LW_OK), LW_STATUS_OK);
        } else {
            world->running[left++] = delivery;
        }
    }
    world->running_count = left;
    world_pass(world, 1);
}

/* Idle slots in a thousand, over a second after the start. */
static uint32_t
idle_share(struct world *world)
{
    uint64_t idle = 0;
    for (int ms = 0; ms < 100; ms++) {
        work(world);
    }
    for (int ms = 0; ms < 1000; ms++) {
        work(world);
        idle += SLOTS - world->running_count;
    }
    return (uint32_t)(idle / SLOTS);
}

static void
expect_busy(const struct spread *spread, uint32_t max_in_flight)
{
    struct world world;
    begin(&world, spread, max_in_flight);
    assert_in_range(idle_share(&world), 0, 10);
    assert_in_range(world.dispatcher.streams[0]->subscription.limits.count, SLOTS,
                    max_in_flight);
    world_deinit(&world);
}

static void
slow_partitions_leave_the_room_to_those_that_need_it(void **state)
{
    (void)state;
    expect_busy(&few, 1000);
    expect_busy(&many, 1000);
}

static void
a_small_limit_is_shared_as_well(void **state)
{
    (void)state;
    expect_busy(&few, 400);
}

/* The others have nothing: one partition has the whole room. */
static void
what_others_do_not_need_is_anybodys(void **state)
{
    struct world world;
    const struct spread one = { 8, { 100 } };
    (void)state;
    begin(&world, &one, 400);
    assert_in_range(idle_share(&world), 0, 10);
    assert_int_equal(world.running_count, SLOTS);
    world_deinit(&world);
}

/* Four of eight deliver 20 ms after the others: the room that is theirs is still there. */
static void
partitions_that_deliver_a_little_later_find_room(void **state)
{
    struct world world;
    const struct spread quick = { 8, { 1, 2, 3, 4 } };
    uint64_t idle = 0;
    (void)state;
    begin(&world, &quick, 1000);
    for (int ms = 0; ms < 20; ms++) {
        work(&world);
    }
    assert_int_equal(world.running_count, 10);
    for (int32_t i = 4; i < 8; i++) {
        fill(&world, i, 24, 4); /* the next few are of few keys */
    }
    for (int ms = 0; ms < 100; ms++) {
        work(&world);
        idle += SLOTS - world.running_count;
    }
    assert_in_range(idle / SLOTS, 0, 10); /* in a hundred */
    world_deinit(&world);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slow_partitions_leave_the_room_to_those_that_need_it),
        cmocka_unit_test(a_small_limit_is_shared_as_well),
        cmocka_unit_test(what_others_do_not_need_is_anybodys),
        cmocka_unit_test(partitions_that_deliver_a_little_later_find_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
