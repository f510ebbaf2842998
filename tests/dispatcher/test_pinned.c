/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What kept messages pin at the client is bounded: by the megabyte that came after, by a second
 * of parking, and by a budget over all partitions together.
 */
#include "tests/support/test.h"

#include "dispatcher/pinned.h"
#include "tests/dispatcher/world.h"

enum { VALUE = 10000, PARTITIONS = 16 };

static const uint64_t mib = UINT64_C(1024) * 1024;

static void
send(struct world *world, int32_t partition, const char *key, uint32_t count)
{
    static const char value[VALUE];
    for (uint32_t i = 0; i < count; i++) {
        struct lw_memory_item item = lw_memory_item_of("orders", key, NULL);
        item.partition = partition;
        item.value = (struct lw_bytes){ value, sizeof(value) };
        assert_int_equal(lw_memory_hub_publish(world->hub, &item, NULL, NULL), LW_STATUS_OK);
    }
}

/* One slot; everything that is sent is received and waits. */
static void
begin(struct world *world, uint64_t budget)
{
    struct lw_subscription_options options = world_options("orders", 1);
    options.profile = LW_PROFILE_THROUGHPUT;
    options.receiver_queue_size = 100000;
    options.max_in_flight = 100000;
    options.reply.topic = "replies";
    world_init(world, 1, NULL);
    world->dispatcher.options.pinned_bytes = budget;
    world_topic(world, "orders", PARTITIONS);
    world_add(world, &options);
    world_start(world);
}

static uint32_t
copied(struct world *world)
{
    uint32_t count = 0;
    struct lw_list *partitions = &world->dispatcher.streams[0]->subscription.partitions;
    for (struct lw_list *at = partitions->next; at != partitions; at = at->next) {
        struct lw_list *held = &LW_CONTAINER(at, struct lw_partition, link)->held;
        for (struct lw_list *node = held->next; node != held; node = node->next) {
            count += LW_CONTAINER(node, struct lw_delivery, held)->is_detached;
        }
    }
    return count;
}

/* 16 partitions hold 0.95 MiB each: none of them too much. */
static void
fill(struct world *world)
{
    for (int32_t i = 0; i < PARTITIONS; i++) {
        send(world, i, "a", 100);
    }
    world_turn(world);
}

static void
nothing_is_copied_within_the_budget(void **state)
{
    struct world world;
    (void)state;
    begin(&world, 16 * mib);
    fill(&world);
    assert_int_equal(world.dispatcher.held_count, PARTITIONS * 100);
    assert_int_equal(copied(&world), 0);
    assert_in_range(lw_pinned_bytes(&world.dispatcher), 15 * mib, 16 * mib);
    world_deinit(&world);
}

static void
above_the_budget_messages_are_copied_out(void **state)
{
    struct world world;
    (void)state;
    begin(&world, 4 * mib);
    fill(&world);
    assert_in_range(lw_pinned_bytes(&world.dispatcher), 1, 4 * mib);
    assert_in_range(copied(&world), 1000, 1599);
    world_finish_all(&world); /* what is copied is handled as well */
    assert_int_equal(lw_pinned_bytes(&world.dispatcher), 0);
    world_deinit(&world);
}

static void
a_kept_message_counts_with_all_that_came_beside_it(void **state)
{
    struct world world;
    (void)state;
    begin(&world, 16 * mib);
    send(&world, 0, "held", 1);
    world_turn(&world);
    world_finish(&world, 0, LW_RETRY); /* parked for at most 1.2 s, no copy yet */
    send(&world, 0, "b", 90);
    world_turn(&world);
    uint64_t before = lw_pinned_bytes(&world.dispatcher);
    world_finish_all(&world);
    assert_int_equal(world.dispatcher.held_count, 1);
    assert_int_equal(lw_pinned_bytes(&world.dispatcher), copied(&world) > 0 ? 0 : before);
    world_deinit(&world);
}

static void
what_is_published_while_half_of_the_budget_is_used_pins_nothing(void **state)
{
    struct world world;
    (void)state;
    begin(&world, 4 * mib);
    fill(&world);
    lw_memory_hub_set_room(world.hub, false);
    assert_true(world.dispatcher.is_pinned_tight);
    struct lw_delivery *delivery = world.running[0];
    assert_int_equal(lw_delivery_reply(delivery, lw_bytes_of("r")), LW_STATUS_OK);
    world_finish(&world, 0, LW_OK);
    assert_int_equal(delivery->state, LW_STATE_JUDGED);
    assert_true(delivery->is_detached);
    lw_memory_hub_set_room(world.hub, true);
    world_deinit(&world);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_copied_within_the_budget),
        cmocka_unit_test(above_the_budget_messages_are_copied_out),
        cmocka_unit_test(a_kept_message_counts_with_all_that_came_beside_it),
        cmocka_unit_test(what_is_published_while_half_of_the_budget_is_used_pins_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
