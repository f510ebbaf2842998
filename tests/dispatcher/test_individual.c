/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Brokers that settle each message by itself: acks, nacks, redelivery and its counts, shared and
 * exclusive subscriptions, losses of the connection.
 */
#include "tests/support/test.h"

#include "tests/dispatcher/world.h"

#include <string.h>

static struct lw_subscription_options
open_world(struct world *world, uint32_t slots, enum lw_memory_sharing sharing)
{
    struct lw_memory_options hub;
    lw_memory_options_init(&hub);
    hub.mode = LW_MEMORY_INDIVIDUAL;
    hub.sharing = sharing;
    world_init(world, slots, &hub);
    world_topic(world, "orders", 1);
    return world_options("orders", 1);
}

static void
begin(struct world *world, const struct lw_subscription_options *options, uint32_t count)
{
    world_add(world, options);
    world_start(world);
    world_send(world, "orders", 0, "k", count);
    world_turn(world);
}

static struct lw_memory_stats
stats(const struct world *world)
{
    return lw_memory_hub_stats(world->hub);
}

static uint64_t
backlog(const struct world *world)
{
    return lw_memory_hub_backlog(world->hub, "group", "orders");
}

static void
each_message_is_acked_once_and_by_itself(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 10, LW_MEMORY_SHARED);
    begin(&world, &options, 10);
    world_finish(&world, 7, LW_OK);
    world_finish(&world, 3, LW_OK);
    assert_int_equal(stats(&world).acks, 2);
    assert_int_equal(backlog(&world), 8);
    world_finish_all(&world);
    assert_int_equal(stats(&world).acks, 10);
    assert_int_equal(stats(&world).acks_repeated, 0);
    assert_int_equal(backlog(&world), 0);
    world_deinit(&world);
}

static void
acks_of_one_step_go_in_one_batch_and_none_is_lost_at_its_bound(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 700, LW_MEMORY_SHARED);
    options.profile = LW_PROFILE_THROUGHPUT;
    begin(&world, &options, 700);
    assert_int_equal(world.running_count, 700);
    for (uint32_t i = 0; i < 700; i++) {
        assert_int_equal(lw_delivery_finish(world.running[i], LW_OK), LW_STATUS_OK);
    }
    world.running_count = 0;
    world_turn(&world);
    assert_int_equal(stats(&world).acks, 700);
    assert_int_equal(backlog(&world), 0);
    world_deinit(&world);
}

static void
an_error_is_given_back_and_comes_again_with_its_count(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, LW_MEMORY_SHARED);
    lw_memory_hub_options(world.hub)->nack_delay_ns = 3000 * LW_MS;
    begin(&world, &options, 1);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(lw_delivery_redeliveries(world.running[0]), i);
        assert_int_equal(lw_delivery_attempt(world.running[0]), 1);
        world_finish(&world, 0, LW_ERROR);
        world_pass(&world, 2999);
        assert_int_equal(world.running_count, 0);
        world_pass(&world, 2);
        assert_int_equal(world.running_count, 1);
    }
    assert_int_equal(stats(&world).nacks, 3);
    assert_true(world_told(&world, "settle:orders/0/0=4 "));
    world_deinit(&world);
}

static void
a_retry_without_a_retry_topic_is_a_nack_with_the_delay_of_the_handler(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, LW_MEMORY_SHARED);
    begin(&world, &options, 1);
    enum lw_verdict verdict = lw_delivery_retry(world.running[0], "busy", 700);
    world_finish(&world, 0, verdict);
    world_pass(&world, 699);
    assert_int_equal(world.running_count, 0);
    world_pass(&world, 2);
    assert_int_equal(world.running_count, 1);
    assert_int_equal(lw_delivery_redeliveries(world.running[0]), 1);
    world_deinit(&world);
}

static void
a_nack_frees_slot_and_room_at_once(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, LW_MEMORY_SHARED);
    options.max_in_flight = 2;
    begin(&world, &options, 5);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(world.running_count, 1);
        world_finish(&world, 0, LW_ERROR);
    }
    assert_int_equal(world.dispatcher.held_count, 0);
    assert_int_equal(backlog(&world), 5);
    world_deinit(&world);
}

static void
in_place_retries_by_option_hold_the_message(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, LW_MEMORY_SHARED);
    options.retry.in_place = LW_YES;
    options.retry.in_place_backoff = (struct lw_backoff_options){ 100, 1, 100, 0 };
    options.on_error = LW_ON_ERROR_RETRY;
    begin(&world, &options, 1);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(lw_delivery_attempt(world.running[0]), i + 1);
        world_finish(&world, 0, LW_ERROR);
        world_pass(&world, 101);
    }
    assert_int_equal(stats(&world).nacks, 0);
    assert_int_equal(world_count(&world, "orders-group-DLQ"), 1);
    assert_int_equal(stats(&world).acks, 1);
    world_deinit(&world);
}

/* As in a spool: given back, it would let later ones of its key pass, and for ever. */
static void
where_retries_are_in_place_an_error_is_one_by_default(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, LW_MEMORY_SHARED);
    world.broker->caps.retries_in_place = true;
    options.retry.in_place_backoff = (struct lw_backoff_options){ 100, 1, 100, 0 };
    begin(&world, &options, 1);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(lw_delivery_attempt(world.running[0]), i + 1);
        world_finish(&world, 0, LW_ERROR);
        world_pass(&world, 101);
    }
    assert_int_equal(stats(&world).nacks, 0);
    assert_int_equal(world_count(&world, "orders-group-DLQ"), 1);
    world_deinit(&world);
}

static void
a_dead_letter_carries_the_properties_of_its_family(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, LW_MEMORY_SHARED);
    begin(&world, &options, 1);
    enum lw_verdict verdict = lw_delivery_dead(world.running[0], "bad");
    world_finish(&world, 0, verdict);
    world_turn(&world);
    assert_string_equal(world_stored(&world, "orders-group-DLQ", 0),
                        "k|0|x-laneway-id=main/orders/0/0,REAL_TOPIC=orders,"
                        "REAL_SUBSCRIPTION=group,ORIGIN_MESSAGE_ID=main/orders/0/0,"
                        "ORIGIN_MESSAGE_IDY_TIME=main/orders/0/0,RECONSUMETIMES=0,"
                        "x-error-reason=bad,x-retry-attempt=1");
    assert_int_equal(backlog(&world), 0);
    world_deinit(&world);
}

static void
a_lost_ack_means_redelivery_and_no_second_loss(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, LW_MEMORY_SHARED);
    begin(&world, &options, 3);
    world_fault(&world, LW_MEMORY_LOSE_ACK, 1, LW_STATUS_OK);
    world_finish_all(&world);
    assert_int_equal(backlog(&world), 1);
    lw_memory_hub_lose(world.hub, "main");
    world_pass(&world, 1);
    assert_string_equal(world_name(&world, 0), "orders/0/0");
    world_finish_all(&world);
    assert_int_equal(backlog(&world), 0);
    world_deinit(&world);
}

static void
after_a_loss_the_old_result_is_not_acked(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 4, LW_MEMORY_SHARED);
    begin(&world, &options, 1);
    lw_memory_hub_lose(world.hub, "main");
    world_pass(&world, 1);
    assert_int_equal(world.running_count, 2); /* unordered: the new one need not wait */
    world_finish(&world, 0, LW_OK);
    assert_int_equal(stats(&world).acks, 0);
    world_finish(&world, 0, LW_OK);
    assert_int_equal(stats(&world).acks, 1);
    assert_int_equal(backlog(&world), 0);
    world_deinit(&world);
}

static void
two_members_share_without_overlap(void **state)
{
    struct world world;
    struct world other;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 5, LW_MEMORY_SHARED);
    begin(&world, &options, 0);
    world_init_beside(&other, &world, 5);
    world_add(&other, &options);
    world_start(&other);
    world_send(&world, "orders", 0, NULL, 100);
    for (int i = 0; i < 200; i++) {
        world_turn(&world);
        struct world *one = i % 2 ? &world : &other;
        if (one->running_count > 0) {
            world_finish(one, 0, LW_OK);
        }
    }
    assert_int_equal(world.started_count + other.started_count, 100);
    assert_true(world.started_count > 10 && other.started_count > 10);
    assert_int_equal(stats(&world).acks, 100);
    world_deinit(&other);
    world_deinit(&world);
}

static void
a_nack_of_an_exclusive_subscription_rewinds_and_drops_the_rest(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 3, LW_MEMORY_EXCLUSIVE);
    lw_memory_hub_options(world.hub)->nack_delay_ns = 1000 * LW_MS;
    begin(&world, &options, 3);
    assert_int_equal(world.running_count, 3);
    world_finish(&world, 0, LW_ERROR);
    world_finish(&world, 0, LW_OK);
    world_pass(&world, 1001);
    world_finish(&world, 0, LW_OK); /* of the generation before the rewind: ignored */
    assert_int_equal(world.dispatcher.streams[0]->counters.stale, 1);
    world_finish_all(&world);
    world_pass(&world, 100);
    assert_int_equal(backlog(&world), 0);
    assert_int_equal(stats(&world).acks_repeated, 0);
    world_deinit(&world);
}

static void
a_second_exclusive_member_waits_for_the_first(void **state)
{
    struct world world;
    struct world other;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, LW_MEMORY_EXCLUSIVE);
    begin(&world, &options, 2);
    world_init_beside(&other, &world, 1);
    world_add(&other, &options);
    world_start(&other);
    world_pass(&world, 10000);
    assert_int_equal(other.started_count, 0);
    world_finish(&world, 0, LW_OK);
    lw_shutdown_begin(&world.dispatcher, true);
    world_turn(&world);
    world_finish_all(&world);
    world_pass(&world, 2000);
    assert_string_equal(world_name(&other, 0), "orders/0/1");
    world_deinit(&other);
    world_deinit(&world);
}

static void
key_order_holds_on_an_exclusive_subscription(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 8, LW_MEMORY_EXCLUSIVE);
    options.ordering = LW_ORDERING_KEY;
    begin(&world, &options, 5);
    world_send(&world, "orders", 0, "j", 5);
    world_turn(&world);
    for (int64_t i = 0; i < 5; i++) {
        assert_int_equal(world.running_count, 2);
        assert_int_equal(lw_delivery_offset(world.running[0]), i);
        world_finish(&world, 0, LW_OK);
        assert_int_equal(lw_delivery_offset(world.running[0]), i + 5);
        world_finish(&world, 0, LW_OK);
    }
    assert_int_equal(backlog(&world), 0);
    world_deinit(&world);
}

static void
a_broker_that_was_away_gives_the_unsettled_again(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 2, LW_MEMORY_SHARED);
    begin(&world, &options, 4);
    world_finish(&world, 0, LW_OK);
    lw_memory_hub_set_down(world.hub, 1000 * LW_MS);
    world_turn(&world);
    world_finish_all(&world); /* their acks cannot arrive any more */
    world_pass(&world, 1500);
    world_finish_all(&world);
    world_pass(&world, 100);
    assert_int_equal(backlog(&world), 0);
    assert_int_equal(stats(&world).acks, 4);
    world_deinit(&world);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_message_is_acked_once_and_by_itself),
        cmocka_unit_test(acks_of_one_step_go_in_one_batch_and_none_is_lost_at_its_bound),
        cmocka_unit_test(an_error_is_given_back_and_comes_again_with_its_count),
        cmocka_unit_test(a_retry_without_a_retry_topic_is_a_nack_with_the_delay_of_the_handler),
        cmocka_unit_test(a_nack_frees_slot_and_room_at_once),
        cmocka_unit_test(in_place_retries_by_option_hold_the_message),
        cmocka_unit_test(where_retries_are_in_place_an_error_is_one_by_default),
        cmocka_unit_test(a_dead_letter_carries_the_properties_of_its_family),
        cmocka_unit_test(a_lost_ack_means_redelivery_and_no_second_loss),
        cmocka_unit_test(after_a_loss_the_old_result_is_not_acked),
        cmocka_unit_test(two_members_share_without_overlap),
        cmocka_unit_test(a_nack_of_an_exclusive_subscription_rewinds_and_drops_the_rest),
        cmocka_unit_test(a_second_exclusive_member_waits_for_the_first),
        cmocka_unit_test(key_order_holds_on_an_exclusive_subscription),
        cmocka_unit_test(a_broker_that_was_away_gives_the_unsettled_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
