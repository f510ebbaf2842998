/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dead letters: where they go, what they carry, that they are confirmed before anything else, and
 * what happens when nobody takes them.
 */
#include "tests/support/test.h"

#include "tests/dispatcher/world.h"

#include <stdio.h>
#include <string.h>

static struct lw_subscription_options
open_world(struct world *world, uint32_t slots, const struct lw_memory_options *hub)
{
    world_init(world, slots, hub);
    struct lw_subscription_options options = world_options("orders", 1);
    options.retry.in_place_backoff = (struct lw_backoff_options){ 100, 1, 100, 0 };
    return options;
}

static void
begin(struct world *world, const struct lw_subscription_options *options)
{
    world_topic(world, "orders", 1);
    world_add(world, options);
    world_start(world);
}

static void
begin_with_one(struct world *world, const struct lw_subscription_options *options)
{
    begin(world, options);
    world_send(world, "orders", 0, "k", 1);
    world_turn(world);
    assert_int_equal(world->running_count, 1);
}

/* A hub that takes messages of at most `bytes`, whose messages were there before that. */
static void
limit_size(struct world *world, size_t bytes)
{
    lw_memory_hub_options(world->hub)->message_bytes_max = bytes;
}

static void
send_value(struct world *world, const char *key, struct lw_bytes value,
           const struct lw_header *headers, size_t header_count)
{
    struct lw_memory_item item = lw_memory_item_of("orders", key, NULL);
    item.value = value;
    item.headers = headers;
    item.header_count = header_count;
    assert_int_equal(lw_memory_hub_publish(world->hub, &item, NULL, NULL), LW_STATUS_OK);
}

static enum lw_verdict
say_dead(struct lw_delivery *delivery, void *user)
{
    (void)user;
    return lw_delivery_dead(delivery, "bad");
}

/* -- confirmed before anything else --------------------------------------------------------- */

static void
a_dead_letter_is_confirmed_before_the_commit(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, NULL);
    begin_with_one(&world, &options);
    world_fault(&world, LW_MEMORY_REFUSE_PUBLISH, 50, LW_STATUS_UNAVAILABLE);
    world_finish(&world, 0, LW_DEAD);
    world_pass(&world, 220000);
    assert_int_equal(world_committed(&world, "orders", 0), -1);
    world_pass(&world, 20000);
    assert_int_equal(world_committed(&world, "orders", 0), 1);
    assert_int_equal(lw_memory_hub_stats(world.hub).commits, 1);
    assert_int_equal(world_count(&world, "orders.dlq"), 1);
    assert_int_equal(world.started_count, 1);
    world_deinit(&world);
}

static void
other_messages_go_on_while_a_dead_letter_is_pending(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, NULL);
    begin_with_one(&world, &options);
    world_fault(&world, LW_MEMORY_REFUSE_PUBLISH, 1000, LW_STATUS_UNAVAILABLE);
    world_finish(&world, 0, LW_DEAD);
    world_send(&world, "orders", 0, "other", 50);
    world_turn(&world);
    world_finish_all(&world);
    assert_int_equal(world.started_count, 51);
    assert_string_equal(lw_memory_hub_owner(world.hub, "group", "orders", 0), "main");
    lw_memory_hub_clear_faults(world.hub);
    world_pass(&world, 6000);
    assert_int_equal(world_committed(&world, "orders", 0), 51);
    world_deinit(&world);
}

static void
a_member_that_dies_in_between_duplicates_and_loses_nothing(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, NULL);
    begin_with_one(&world, &options);
    world_finish(&world, 0, LW_DEAD);
    world_turn(&world);
    assert_int_equal(world_count(&world, "orders.dlq"), 1);
    lw_memory_hub_lose(world.hub, "main"); /* before the commit interval ended */
    world_turn(&world);
    world_pass(&world, 1);
    assert_string_equal(world_name(&world, 0), "orders/0/0");
    world_finish(&world, 0, LW_DEAD);
    world_pass(&world, 200);
    assert_int_equal(world_count(&world, "orders.dlq"), 2);
    assert_int_equal(world_committed(&world, "orders", 0), 1);
    world_deinit(&world);
}

static void
a_revoked_dead_letter_is_left_to_the_next_owner(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, NULL);
    begin_with_one(&world, &options);
    world_fault(&world, LW_MEMORY_REFUSE_PUBLISH, 1, LW_STATUS_UNAVAILABLE);
    world_finish(&world, 0, LW_DEAD);
    lw_memory_hub_rebalance(world.hub, "group");
    world_turn(&world);
    assert_int_equal(world.running_count, 1); /* again, in the new generation */
    world_pass(&world, 10000);
    assert_int_equal(world_count(&world, "orders.dlq"), 0); /* the old one is not sent again */
    world_finish(&world, 0, LW_OK);
    world_pass(&world, 200);
    assert_int_equal(world_committed(&world, "orders", 0), 1);
    world_deinit(&world);
}

/* -- what it carries -------------------------------------------------------------------------- */

static void
null_keys_and_tombstones_stay_null(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, NULL);
    begin(&world, &options);
    world.answer = say_dead;
    send_value(&world, NULL, (struct lw_bytes){ NULL, 0 }, NULL, 0);
    send_value(&world, "", lw_bytes_of(""), NULL, 0);
    world_pass(&world, 10);
    assert_memory_equal(world_stored(&world, "orders.dlq", 0), "-|-|", 4);
    assert_memory_equal(world_stored(&world, "orders.dlq", 1), "||", 2);
    world_deinit(&world);
}

static void
headers_only_leaves_key_and_value_behind(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, NULL);
    options.dead_letter.payload = LW_PAYLOAD_HEADERS_ONLY;
    begin_with_one(&world, &options);
    world_finish(&world, 0, LW_DEAD);
    world_turn(&world);
    assert_memory_equal(world_stored(&world, "orders.dlq", 0), "-|-|", 4);
    assert_string_equal(world_stored_header(&world, "orders.dlq", 0, "offset"), "0");
    world_deinit(&world);
}

static void
a_smaller_dead_letter_topic_takes_all_partitions(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 9, NULL);
    world_topic(&world, "orders", 9);
    world_topic(&world, "orders.dlq", 1);
    world_add(&world, &options);
    world.answer = say_dead;
    for (int32_t i = 0; i < 9; i++) {
        world_send(&world, "orders", i, "k", 1);
    }
    world_start(&world);
    world_pass(&world, 200);
    uint32_t seen = 0;
    assert_int_equal(world_count(&world, "orders.dlq"), 9);
    for (size_t i = 0; i < 9; i++) {
        seen |= 1U << (world_stored_header(&world, "orders.dlq", i, "partition")[0] - '0');
    }
    assert_int_equal(seen, 0x1ff);
    world_deinit(&world);
}

/* -- where it goes ---------------------------------------------------------------------------- */

static void
expect_topic(const char *wanted, const char *expected, bool is_said)
{
    static const char *const allow[] = { "team-*", "parking" };
    struct world world;
    struct lw_subscription_options options = open_world(&world, 1, NULL);
    options.dead_letter.allow = allow;
    options.dead_letter.allow_count = 2;
    begin(&world, &options);
    world.answer = say_dead;
    struct lw_header header = { lw_bytes_of("x-laneway-dead-letter-topic"),
                                lw_bytes_of(wanted) };
    send_value(&world, "k", lw_bytes_of("v"), &header, 1);
    world_pass(&world, 200);
    assert_int_equal(world_count(&world, expected), 1);
    assert_int_equal(world_logged(&world, "dead_letter.refused"), is_said);
    assert_int_equal(world_committed(&world, "orders", 0), 1);
    world_deinit(&world);
}

static void
a_header_chooses_only_among_allowed_topics(void **state)
{
    (void)state;
    expect_topic("team-a", "team-a", false);
    expect_topic("parking", "parking", false);
    expect_topic("payments", "orders.dlq", true);
    expect_topic("parking2", "orders.dlq", true);
    expect_topic("orders.dlq", "orders.dlq", false);
}

/* Its own copies are what a retry topic holds: they name the dead letters of their source. */
static void
a_copy_goes_to_the_dead_letters_of_any_subscription_here(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, NULL);
    struct lw_subscription_options other = world_options("payments", 2);
    world_topic(&world, "payments", 1);
    world_add(&world, &other);
    begin(&world, &options);
    world.answer = say_dead;
    struct lw_header header = { lw_bytes_of("x-laneway-dead-letter-topic"),
                                lw_bytes_of("payments.dlq") };
    send_value(&world, "k", lw_bytes_of("v"), &header, 1);
    world_pass(&world, 200);
    assert_int_equal(world_count(&world, "payments.dlq"), 1);
    assert_int_equal(world_logged(&world, "dead_letter.refused"), 0);
    world_deinit(&world);
}

static void
a_dead_letter_may_go_to_another_broker(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, NULL);
    struct lw_memory_hub *other = world_add_broker(&world, "archive");
    options.dead_letter.broker = "archive";
    options.dead_letter.topic = "all-{topic}";
    begin_with_one(&world, &options);
    world_finish(&world, 0, LW_DEAD);
    world_pass(&world, 200);
    assert_int_equal(lw_memory_hub_each(other, "all-orders", NULL, NULL), 1);
    assert_int_equal(world_count(&world, "all-orders"), 0);
    assert_int_equal(world_committed(&world, "orders", 0), 1);
    world_deinit(&world);
}

static void
a_dead_letter_waits_for_the_other_broker_to_come_back(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 2, NULL);
    struct lw_memory_hub *other = world_add_broker(&world, "archive");
    options.dead_letter.broker = "archive";
    begin_with_one(&world, &options);
    lw_memory_hub_set_down(other, 60000 * LW_MS);
    world_finish(&world, 0, LW_DEAD);
    world_send(&world, "orders", 0, "other", 1);
    world_pass(&world, 59000);
    assert_int_equal(world_committed(&world, "orders", 0), -1);
    assert_int_equal(world.running_count, 1);
    world_finish(&world, 0, LW_OK);
    world_pass(&world, 3000);
    assert_int_equal(world_committed(&world, "orders", 0), 2);
    world_deinit(&world);
}

/* -- sizes ------------------------------------------------------------------------------------ */

static void
a_reply_that_is_too_large_dead_letters_its_message(void **state)
{
    static const char large[2000] = { 'x' };
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, NULL);
    options.reply.topic = "replies";
    begin_with_one(&world, &options);
    limit_size(&world, 1000);
    struct lw_bytes reply = { large, sizeof(large) };
    assert_int_equal(lw_delivery_reply(world.running[0], reply), LW_STATUS_OK);
    world_finish(&world, 0, LW_OK);
    world_pass(&world, 60000);
    assert_int_equal(world.started_count, 1); /* a retry would loop */
    assert_int_equal(world_count(&world, "replies"), 0);
    assert_string_equal(world_stored_header(&world, "orders.dlq", 0, "x-error-reason"),
                        "the reply is larger than its topic allows");
    assert_int_equal(world_committed(&world, "orders", 0), 1);
    assert_int_equal(world.dispatcher.streams[0]->counters.dead_reasons[LW_CAUSE_OVERSIZE], 1);
    world_deinit(&world);
}

static void
a_reply_that_is_too_large_may_be_retried_by_option(void **state)
{
    static const char large[2000] = { 'x' };
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, NULL);
    options.reply.topic = "replies";
    options.reply.on_oversize = LW_ON_OVERSIZE_RETRY;
    begin_with_one(&world, &options);
    limit_size(&world, 1000);
    for (int i = 0; i < 3; i++) {
        struct lw_bytes reply = { large, sizeof(large) };
        assert_int_equal(lw_delivery_reply(world.running[0], reply), LW_STATUS_OK);
        world_finish(&world, 0, LW_OK);
        world_pass(&world, 110);
    }
    assert_int_equal(world.started_count, 3);
    assert_int_equal(world_count(&world, "orders.dlq"), 1);
    world_deinit(&world);
}

static void
an_output_that_is_too_large_dead_letters_and_sends_no_second_reply(void **state)
{
    static const char large[2000] = { 'x' };
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, NULL);
    options.reply.topic = "replies";
    begin_with_one(&world, &options);
    limit_size(&world, 1000);
    struct lw_output output = { .topic = "audit", .value = { large, sizeof(large) } };
    assert_int_equal(lw_delivery_reply(world.running[0], lw_bytes_of("r")), LW_STATUS_OK);
    assert_int_equal(lw_delivery_publish(world.running[0], &output), LW_STATUS_OK);
    world_finish(&world, 0, LW_OK);
    world_pass(&world, 60000);
    assert_int_equal(world_count(&world, "replies"), 1);
    assert_int_equal(world_count(&world, "audit"), 0);
    assert_int_equal(world_count(&world, "orders.dlq"), 1);
    assert_int_equal(world_committed(&world, "orders", 0), 1);
    world_deinit(&world);
}

static void
a_dead_letter_that_is_too_large_goes_without_its_payload(void **state)
{
    static const char large[4000] = { 'x' };
    static const size_t limits[] = { 4010, 4100, 5000 };
    (void)state;
    for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
        struct world world;
        struct lw_subscription_options options = open_world(&world, 1, NULL);
        begin(&world, &options);
        send_value(&world, "k", (struct lw_bytes){ large, sizeof(large) }, NULL, 0);
        limit_size(&world, limits[i]);
        world.answer = say_dead;
        world_pass(&world, 60000);
        bool is_whole = limits[i] == 5000;
        assert_int_equal(world_count(&world, "orders.dlq"), 1);
        assert_int_equal(world_stored(&world, "orders.dlq", 0)[0], is_whole ? 'k' : '-');
        assert_string_equal(world_stored_header(&world, "orders.dlq", 0, "x-error-reason"),
                            "bad");
        assert_int_equal(world_committed(&world, "orders", 0), 1);
        world_deinit(&world);
    }
}

static void
a_message_whose_headers_alone_are_refused_stays_unfinished_aloud(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 2, NULL);
    begin_with_one(&world, &options);
    limit_size(&world, 50);
    world_finish(&world, 0, LW_DEAD);
    limit_size(&world, 100000);
    world_send(&world, "orders", 0, "other", 3);
    limit_size(&world, 50);
    world_turn(&world);
    world_finish_all(&world);
    world_pass(&world, 60000);
    assert_true(world_logged(&world, "message.undeliverable"));
    assert_int_equal(world_committed(&world, "orders", 0), -1);
    assert_int_equal(world.dispatcher.streams[0]->counters.held, 1);
    assert_int_equal(world.started_count, 4);
    assert_int_equal(world_close(&world), LW_STATUS_UNFINISHED);
    world_deinit(&world);
}

static void
a_refusal_of_headers_during_a_drain_does_not_hold_the_end(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, NULL);
    world.dispatcher.options.drain_timeout_ms = 0; /* for ever */
    begin_with_one(&world, &options);
    limit_size(&world, 50);
    lw_shutdown_begin(&world.dispatcher, false);
    world_turn(&world);
    world_finish(&world, 0, LW_DEAD);
    world_pass(&world, 1000);
    assert_int_equal(world.dispatcher.phase, LW_PHASE_CLOSED);
    assert_int_equal(world.dispatcher.end_status, LW_STATUS_UNFINISHED);
    world_deinit(&world);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dead_letter_is_confirmed_before_the_commit),
        cmocka_unit_test(other_messages_go_on_while_a_dead_letter_is_pending),
        cmocka_unit_test(a_member_that_dies_in_between_duplicates_and_loses_nothing),
        cmocka_unit_test(a_revoked_dead_letter_is_left_to_the_next_owner),
        cmocka_unit_test(null_keys_and_tombstones_stay_null),
        cmocka_unit_test(headers_only_leaves_key_and_value_behind),
        cmocka_unit_test(a_smaller_dead_letter_topic_takes_all_partitions),
        cmocka_unit_test(a_header_chooses_only_among_allowed_topics),
        cmocka_unit_test(a_copy_goes_to_the_dead_letters_of_any_subscription_here),
        cmocka_unit_test(a_dead_letter_may_go_to_another_broker),
        cmocka_unit_test(a_dead_letter_waits_for_the_other_broker_to_come_back),
        cmocka_unit_test(a_reply_that_is_too_large_dead_letters_its_message),
        cmocka_unit_test(a_reply_that_is_too_large_may_be_retried_by_option),
        cmocka_unit_test(an_output_that_is_too_large_dead_letters_and_sends_no_second_reply),
        cmocka_unit_test(a_dead_letter_that_is_too_large_goes_without_its_payload),
        cmocka_unit_test(a_message_whose_headers_alone_are_refused_stays_unfinished_aloud),
        cmocka_unit_test(a_refusal_of_headers_during_a_drain_does_not_hold_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
