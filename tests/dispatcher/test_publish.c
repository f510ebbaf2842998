/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a delivery owes to other topics: replies and outputs before it is settled, sent again until
 * they are confirmed, and what happens when they never can be. Dead letters that do not fit are in
 * test_dead_letter.c.
 */
#include "tests/support/test.h"

#include "tests/dispatcher/world.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

static struct lw_subscription_options
with_reply(struct world *world, uint32_t slots, const struct lw_memory_options *hub)
{
    world_init(world, slots, hub);
    struct lw_subscription_options options = world_options("orders", 1);
    options.reply.topic = "{topic}-replies";
    return options;
}

/* Starts with `count` messages of the key "k". */
static void
begin(struct world *world, const struct lw_subscription_options *options, uint32_t count)
{
    world_topic(world, "orders", 1);
    world_add(world, options);
    world_start(world);
    world_send(world, "orders", 0, "k", count);
    world_turn(world);
}

/* Finishes the first running one with a reply. */
static void
finish_with_reply(struct world *world, const char *reply)
{
    assert_int_equal(lw_delivery_reply(world->running[0], lw_bytes_of(reply)), LW_STATUS_OK);
    world_finish(world, 0, LW_OK);
}

static const struct lw_counters *
counters_of(const struct world *world)
{
    return &world->dispatcher.streams[0]->counters;
}

/* -- replies ----------------------------------------------------------------------------------- */

static void
a_reply_is_confirmed_before_the_message_is_settled(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = with_reply(&world, 1, NULL);
    begin(&world, &options, 1);
    lw_memory_hub_options(world.hub)->publish_latency_ns = 300 * LW_MS;
    finish_with_reply(&world, "done");
    world_pass(&world, 299);
    assert_false(world_told(&world, "settle"));
    assert_int_equal(world_committed(&world, "orders", 0), -1);
    world_pass(&world, 200);
    assert_true(world_told(&world, "publish:orders/0/0=0 settle:orders/0/0=0 "));
    assert_string_equal(world_stored(&world, "orders-replies", 0), "k|done|");
    world_deinit(&world);
}

static void
ok_without_a_reply_publishes_nothing(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = with_reply(&world, 1, NULL);
    begin(&world, &options, 1);
    world_finish(&world, 0, LW_OK);
    world_pass(&world, 200);
    assert_int_equal(world_count(&world, "orders-replies"), 0);
    assert_int_equal(world_committed(&world, "orders", 0), 1);
    world_deinit(&world);
}

static void
a_reply_without_a_reply_topic_is_ignored(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = with_reply(&world, 1, NULL);
    options.reply.topic = NULL;
    begin(&world, &options, 1);
    finish_with_reply(&world, "done");
    world_pass(&world, 200);
    assert_int_equal(world_committed(&world, "orders", 0), 1);
    assert_int_equal(lw_memory_hub_stats(world.hub).published, 1); /* the message itself */
    world_deinit(&world);
}

static void
a_failed_run_publishes_no_reply(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = with_reply(&world, 1, NULL);
    begin(&world, &options, 1);
    assert_int_equal(lw_delivery_reply(world.running[0], lw_bytes_of("half")), LW_STATUS_OK);
    world_finish(&world, 0, LW_RETRY);
    world_pass(&world, 1300);
    finish_with_reply(&world, "whole");
    world_pass(&world, 200);
    assert_int_equal(world_count(&world, "orders-replies"), 1);
    assert_string_equal(world_stored(&world, "orders-replies", 0), "k|whole|");
    world_deinit(&world);
}

static void
the_last_reply_counts_and_null_is_not_empty(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = with_reply(&world, 1, NULL);
    begin(&world, &options, 2);
    assert_int_equal(lw_delivery_reply(world.running[0], lw_bytes_of("first")), LW_STATUS_OK);
    struct lw_bytes nothing = { NULL, 0 };
    assert_int_equal(lw_delivery_reply(world.running[0], nothing), LW_STATUS_OK);
    world_finish(&world, 0, LW_OK);
    world_pass(&world, 1);
    finish_with_reply(&world, "");
    world_pass(&world, 1);
    assert_int_equal(world_count(&world, "orders-replies"), 2);
    assert_string_equal(world_stored(&world, "orders-replies", 0), "k|-|");
    assert_string_equal(world_stored(&world, "orders-replies", 1), "k||");
    world_deinit(&world);
}

static void
expect_reply_key(const char *setting, const char *expected)
{
    struct world world;
    struct lw_subscription_options options = with_reply(&world, 1, NULL);
    options.reply.key = setting;
    begin(&world, &options, 0);
    struct lw_header header = { lw_bytes_of("client"), lw_bytes_of("c7") };
    struct lw_memory_item item = lw_memory_item_of("orders", "key", "value");
    item.headers = &header;
    item.header_count = 1;
    assert_int_equal(lw_memory_hub_publish(world.hub, &item, NULL, NULL), LW_STATUS_OK);
    world_turn(&world);
    finish_with_reply(&world, "r");
    world_pass(&world, 1);
    assert_string_equal(world_stored(&world, "orders-replies", 0), expected);
    world_deinit(&world);
}

static void
the_key_of_a_reply_is_kept_or_none_or_a_header(void **state)
{
    (void)state;
    expect_reply_key("keep", "key|r|");
    expect_reply_key("none", "-|r|");
    expect_reply_key("client", "c7|r|");
    expect_reply_key("absent", "-|r|");
}

static void
trace_context_and_content_type_are_passed_on(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = with_reply(&world, 1, NULL);
    begin(&world, &options, 0);
    struct lw_header headers[] = {
        { lw_bytes_of("traceparent"), lw_bytes_of("00-ab-cd-01") },
        { lw_bytes_of("other"), lw_bytes_of("x") },
        { lw_bytes_of("content-type"), lw_bytes_of("text/plain") },
    };
    struct lw_memory_item item = lw_memory_item_of("orders", "k", "v");
    item.headers = headers;
    item.header_count = 3;
    assert_int_equal(lw_memory_hub_publish(world.hub, &item, NULL, NULL), LW_STATUS_OK);
    world_turn(&world);
    finish_with_reply(&world, "r");
    world_pass(&world, 1);
    assert_string_equal(world_stored(&world, "orders-replies", 0),
                        "k|r|traceparent=00-ab-cd-01,content-type=text/plain");
    world_deinit(&world);
}

/* -- outputs ----------------------------------------------------------------------------------- */

static void
add_output(struct world *world, const char *topic, const char *value)
{
    struct lw_header header = { lw_bytes_of("n"), lw_bytes_of("1") };
    struct lw_output output = { .topic = topic,
                                .key = lw_bytes_of("o"),
                                .value = lw_bytes_of(value),
                                .headers = &header,
                                .header_count = 1 };
    assert_int_equal(lw_delivery_publish(world->running[0], &output), LW_STATUS_OK);
}

static void
all_outputs_are_confirmed_before_the_message_is_settled(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = with_reply(&world, 1, NULL);
    begin(&world, &options, 1);
    add_output(&world, "audit", "1");
    add_output(&world, NULL, "2"); /* to the reply topic */
    add_output(&world, "audit", "3");
    finish_with_reply(&world, "r");
    world_pass(&world, 1);
    assert_string_equal(world_stored(&world, "audit", 0), "o|1|n=1");
    assert_string_equal(world_stored(&world, "audit", 1), "o|3|n=1");
    assert_string_equal(world_stored(&world, "orders-replies", 0), "o|2|n=1");
    assert_string_equal(world_stored(&world, "orders-replies", 1), "k|r|");
    assert_int_equal(world_times(&world, "publish:orders/0/0="), 4);
    assert_int_equal(world_times(&world, "settle:orders/0/0=0"), 1);
    world_deinit(&world);
}

static void
only_the_refused_output_is_sent_again(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = with_reply(&world, 1, NULL);
    struct lw_memory_fault fault = {
        .kind = LW_MEMORY_REFUSE_PUBLISH, .skip = 1, .count = 1, .status = LW_STATUS_UNAVAILABLE
    };
    begin(&world, &options, 1);
    assert_int_equal(lw_memory_hub_inject(world.hub, &fault), LW_STATUS_OK);
    add_output(&world, "audit", "1");
    add_output(&world, "audit", "2");
    add_output(&world, "audit", "3");
    world_finish(&world, 0, LW_OK);
    world_pass(&world, 50);
    assert_false(world_told(&world, "settle"));
    world_pass(&world, 100);
    assert_int_equal(world_count(&world, "audit"), 3);
    assert_string_equal(world_stored(&world, "audit", 2), "o|2|n=1");
    assert_int_equal(world.started_count, 1);
    assert_int_equal(world_times(&world, "settle:orders/0/0=0"), 1);
    world_deinit(&world);
}

/* -- refusals ---------------------------------------------------------------------------------- */

static void
refused_fifty_times_then_accepted_is_one_commit_and_one_run(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = with_reply(&world, 1, NULL);
    begin(&world, &options, 1);
    world_fault(&world, LW_MEMORY_REFUSE_PUBLISH, 50, LW_STATUS_UNAVAILABLE);
    finish_with_reply(&world, "r");
    world_pass(&world, 220000); /* 100 ms, x2, cap 5 s: the 50th after about 227 s */
    assert_int_equal(world_committed(&world, "orders", 0), -1);
    assert_int_equal(lw_memory_hub_stats(world.hub).commits, 0);
    world_pass(&world, 20000);
    assert_int_equal(world_committed(&world, "orders", 0), 1);
    assert_int_equal(lw_memory_hub_stats(world.hub).commits, 1);
    assert_int_equal(world_count(&world, "orders-replies"), 1);
    assert_int_equal(world.started_count, 1);
    assert_int_equal(counters_of(&world)->publish_failures[LW_PUBLISH_REPLY], 50);
    world_deinit(&world);
}

static void
an_unknown_receipt_is_sent_again_and_may_duplicate(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = with_reply(&world, 1, NULL);
    struct lw_memory_fault fault = { .kind = LW_MEMORY_LOSE_RECEIPT,
                                     .count = 1,
                                     .is_applied = true };
    begin(&world, &options, 1);
    assert_int_equal(lw_memory_hub_inject(world.hub, &fault), LW_STATUS_OK);
    finish_with_reply(&world, "r");
    world_pass(&world, 50);
    assert_int_equal(world_count(&world, "orders-replies"), 1);
    assert_false(world_told(&world, "settle"));
    world_pass(&world, 100);
    assert_int_equal(world_count(&world, "orders-replies"), 2);
    assert_int_equal(world_times(&world, "settle:orders/0/0=0"), 1);
    assert_int_equal(world.started_count, 1);
    world_deinit(&world);
}

static void
refused_replies_take_no_slot_from_others(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = with_reply(&world, 1, NULL);
    options.ordering = LW_ORDERING_NONE;
    begin(&world, &options, 5);
    world_fault(&world, LW_MEMORY_REFUSE_PUBLISH, 1000, LW_STATUS_UNAVAILABLE);
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(world.running_count, 1);
        finish_with_reply(&world, "r");
    }
    assert_int_equal(world.started_count, 5);
    lw_memory_hub_clear_faults(world.hub);
    world_pass(&world, 10000);
    assert_int_equal(world_committed(&world, "orders", 0), 5);
    world_deinit(&world);
}

static void
later_messages_of_the_key_wait_for_the_reply(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = with_reply(&world, 4, NULL);
    begin(&world, &options, 2);
    world_fault(&world, LW_MEMORY_REFUSE_PUBLISH, 1, LW_STATUS_UNAVAILABLE);
    finish_with_reply(&world, "r");
    world_pass(&world, 90);
    assert_int_equal(world.running_count, 0);
    world_pass(&world, 20);
    assert_int_equal(world.running_count, 1);
    world_deinit(&world);
}

static void
without_room_publications_wait_and_go_on(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = with_reply(&world, 8, NULL);
    options.ordering = LW_ORDERING_NONE;
    begin(&world, &options, 8);
    lw_memory_hub_set_room(world.hub, false);
    for (uint32_t i = 0; i < 8; i++) {
        finish_with_reply(&world, "r");
    }
    world_pass(&world, 60000);
    assert_int_equal(world_count(&world, "orders-replies"), 0);
    lw_memory_hub_set_room(world.hub, true);
    world_pass(&world, 200);
    assert_int_equal(world_count(&world, "orders-replies"), 8);
    assert_int_equal(world_committed(&world, "orders", 0), 8);
    world_deinit(&world);
}

static void
a_small_producer_queue_loses_nothing(void **state)
{
    struct world world;
    struct lw_memory_options hub;
    (void)state;
    lw_memory_options_init(&hub);
    hub.publish_queue_max = 2;
    hub.publish_latency_ns = 5 * LW_MS;
    struct lw_subscription_options options = with_reply(&world, 20, &hub);
    options.ordering = LW_ORDERING_NONE;
    begin(&world, &options, 20);
    while (world.running_count > 0) {
        add_output(&world, "audit", "a");
        finish_with_reply(&world, "r");
    }
    world_pass(&world, 10000);
    assert_int_equal(world_count(&world, "audit"), 20);
    assert_int_equal(world_count(&world, "orders-replies"), 20);
    assert_int_equal(world_committed(&world, "orders", 0), 20);
    world_deinit(&world);
}

/* -- a target that takes nothing --------------------------------------------------------------- */

static void
expect_block(enum lw_status status)
{
    struct world world;
    struct lw_subscription_options options = with_reply(&world, 1, NULL);
    begin(&world, &options, 1);
    const struct lw_subscription *subscription = &world.dispatcher.streams[0]->subscription;
    world_fault(&world, LW_MEMORY_REFUSE_PUBLISH, 1000, status);
    finish_with_reply(&world, "r");
    world_pass(&world, 50);
    assert_true(subscription->is_publish_blocked);
    assert_true(world_logged(&world, "publish blocked"));
    world_send(&world, "orders", 0, "other", 10);
    world_pass(&world, 100000);
    assert_int_equal(world.started_count, 1);               /* nothing more is taken in */
    assert_int_equal(world_count(&world, "orders.dlq"), 0); /* and nobody is charged */
    lw_memory_hub_clear_faults(world.hub);
    world_pass(&world, 5000);
    assert_false(subscription->is_publish_blocked);
    world_finish_all(&world);
    world_pass(&world, 200);
    assert_int_equal(world_committed(&world, "orders", 0), 11);
    world_deinit(&world);
}

static void
a_denied_topic_stops_intake_until_it_is_allowed(void **state)
{
    (void)state;
    expect_block(LW_STATUS_DENIED);
}

static void
a_missing_topic_stops_intake_until_it_exists(void **state)
{
    (void)state;
    expect_block(LW_STATUS_NOT_FOUND);
}

static void
another_publication_does_not_end_the_block(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = with_reply(&world, 2, NULL);
    options.ordering = LW_ORDERING_NONE;
    struct lw_memory_fault fault = { .kind = LW_MEMORY_REFUSE_PUBLISH,
                                     .topic = "orders.dlq",
                                     .count = 1000,
                                     .status = LW_STATUS_DENIED };
    begin(&world, &options, 2);
    const struct lw_subscription *subscription = &world.dispatcher.streams[0]->subscription;
    assert_int_equal(lw_memory_hub_inject(world.hub, &fault), LW_STATUS_OK);
    world_finish(&world, 0, LW_DEAD);
    world_pass(&world, 1);
    assert_true(subscription->is_publish_blocked);
    finish_with_reply(&world, "r"); /* the reply topic works */
    world_pass(&world, 10);
    assert_int_equal(world_count(&world, "orders-replies"), 1);
    assert_true(subscription->is_publish_blocked);
    world_deinit(&world);
}

static void
a_blocked_publication_that_is_revoked_ends_the_block(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = with_reply(&world, 1, NULL);
    begin(&world, &options, 1);
    world_fault(&world, LW_MEMORY_REFUSE_PUBLISH, 1, LW_STATUS_DENIED);
    finish_with_reply(&world, "r");
    world_pass(&world, 1);
    assert_true(world.dispatcher.streams[0]->subscription.is_publish_blocked);
    lw_memory_hub_rebalance(world.hub, "group");
    world_pass(&world, 10);
    assert_int_equal(world.running_count, 1); /* it came again, and intake goes on */
    finish_with_reply(&world, "r");
    world_pass(&world, 200);
    assert_int_equal(world_committed(&world, "orders", 0), 1);
    world_deinit(&world);
}

static void
what_was_revoked_sends_nothing_more_when_there_is_room(void **state)
{
    struct world world;
    struct lw_memory_options hub;
    (void)state;
    struct lw_memory_fault slow = {
        .kind = LW_MEMORY_SLOW_PUBLISH, .skip = 1, .count = 1, .delay_ns = 1000 * LW_MS
    };
    lw_memory_options_init(&hub);
    hub.publish_queue_max = 2;
    hub.publish_latency_ns = 500 * LW_MS;
    struct lw_subscription_options options = with_reply(&world, 1, &hub);
    begin(&world, &options, 1);
    assert_int_equal(lw_memory_hub_inject(world.hub, &slow), LW_STATUS_OK);
    for (int i = 0; i < 3; i++) { /* the third has no room until the first is confirmed */
        add_output(&world, "audit", "v");
    }
    world_finish(&world, 0, LW_OK);
    lw_memory_hub_rebalance(world.hub, "group");
    world_pass(&world, 5000);
    assert_int_equal(world_count(&world, "audit"), 2);
    assert_int_equal(world.running_count, 1); /* it came again */
    world_finish(&world, 0, LW_OK);
    world_pass(&world, 200);
    assert_int_equal(world_committed(&world, "orders", 0), 1);
    world_deinit(&world);
}

/* -- lack of memory ----------------------------------------------------------------------------- */

/* A dead letter is owed, and there is no memory to begin with it. */
static void
begin_without_memory(struct world *world)
{
    struct lw_subscription_options options = with_reply(world, 1, NULL);
    world->dispatcher.history = NULL; /* nothing else allocates */
    world->clock->host.log = NULL;
    begin(world, &options, 1);
    lw_alloc_fail_at(1);
    world_finish(world, 0, LW_DEAD);
    lw_alloc_fail_at(0);
    assert_int_equal(world->dispatcher.publishing_count, 0);
    assert_int_equal(world->dispatcher.held_count, 1);
}

static void
what_is_owed_without_memory_is_begun_later(void **state)
{
    struct world world;
    (void)state;
    begin_without_memory(&world);
    world_pass(&world, 500);
    assert_int_equal(world_count(&world, "orders.dlq"), 1);
    assert_int_equal(world_committed(&world, "orders", 0), 1);
    world_deinit(&world);
}

static void
one_that_waits_for_memory_may_be_revoked(void **state)
{
    struct world world;
    (void)state;
    begin_without_memory(&world);
    lw_memory_hub_rebalance(world.hub, "group");
    world_pass(&world, 500);
    assert_int_equal(world.running_count, 1);
    world_finish(&world, 0, LW_OK);
    world_pass(&world, 200);
    assert_int_equal(world_count(&world, "orders.dlq"), 0);
    assert_int_equal(world_committed(&world, "orders", 0), 1);
    world_deinit(&world);
}

static void
one_that_waits_for_memory_may_be_given_back(void **state)
{
    struct world world;
    (void)state;
    begin_without_memory(&world);
    lw_shutdown_begin(&world.dispatcher, true);
    world_pass(&world, 500);
    assert_int_equal(world.dispatcher.phase, LW_PHASE_CLOSED);
    assert_int_equal(world.dispatcher.end_status, LW_STATUS_UNFINISHED);
    world_deinit(&world);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reply_is_confirmed_before_the_message_is_settled),
        cmocka_unit_test(ok_without_a_reply_publishes_nothing),
        cmocka_unit_test(a_reply_without_a_reply_topic_is_ignored),
        cmocka_unit_test(a_failed_run_publishes_no_reply),
        cmocka_unit_test(the_last_reply_counts_and_null_is_not_empty),
        cmocka_unit_test(the_key_of_a_reply_is_kept_or_none_or_a_header),
        cmocka_unit_test(trace_context_and_content_type_are_passed_on),
        cmocka_unit_test(all_outputs_are_confirmed_before_the_message_is_settled),
        cmocka_unit_test(only_the_refused_output_is_sent_again),
        cmocka_unit_test(refused_fifty_times_then_accepted_is_one_commit_and_one_run),
        cmocka_unit_test(an_unknown_receipt_is_sent_again_and_may_duplicate),
        cmocka_unit_test(refused_replies_take_no_slot_from_others),
        cmocka_unit_test(later_messages_of_the_key_wait_for_the_reply),
        cmocka_unit_test(without_room_publications_wait_and_go_on),
        cmocka_unit_test(a_small_producer_queue_loses_nothing),
        cmocka_unit_test(a_denied_topic_stops_intake_until_it_is_allowed),
        cmocka_unit_test(a_missing_topic_stops_intake_until_it_exists),
        cmocka_unit_test(another_publication_does_not_end_the_block),
        cmocka_unit_test(a_blocked_publication_that_is_revoked_ends_the_block),
        cmocka_unit_test(what_was_revoked_sends_nothing_more_when_there_is_room),
        cmocka_unit_test(what_is_owed_without_memory_is_begun_later),
        cmocka_unit_test(one_that_waits_for_memory_may_be_revoked),
        cmocka_unit_test(one_that_waits_for_memory_may_be_given_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
