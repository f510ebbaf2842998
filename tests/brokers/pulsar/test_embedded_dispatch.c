/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The embedded broker gives out as a real Pulsar 4.2.4 was seen to: entries per FLOW, what is
 * charged, priorities, bounds of what is unacknowledged, and who gets what again in which order.
 */
#include "tests/support/test.h"

#include <string.h>

#include "tests/brokers/pulsar/talk.h"

enum {
    EXCLUSIVE = LW_PULSAR_SUB_EXCLUSIVE,
    SHARED = LW_PULSAR_SUB_SHARED,
    FAILOVER = LW_PULSAR_SUB_FAILOVER,
    KEY_SHARED = LW_PULSAR_SUB_KEY_SHARED
};

static int
setup(void **state)
{
    *state = talk_create(NULL);
    talk_join(*state, 0);
    return 0;
}

static int
teardown(void **state)
{
    talk_destroy(*state);
    return 0;
}

static int64_t
permits(struct talk *talk)
{
    struct embedded_subscription_info info;
    assert_true(embedded_subscription(talk->broker, "t", "s", &info));
    return info.permits;
}

/* Subscribes; a Failover consumer becomes active. */
static struct talker *
consume(struct talk *talk, int32_t type)
{
    struct talker *talker = &talk->talkers[0];
    talk_subscribe(talk, talker, type, 1, "one");
    if (type == FAILOVER) {
        talk_pass_ms(talk, 1000);
        assert_true(talk_expect(talk, talker, LW_PULSAR_ACTIVE_CONSUMER_CHANGE)
                        ->active_consumer_change.is_active);
    }
    return talker;
}

static void
check_flows(struct talk *talk, int32_t type, const uint32_t *flows, const size_t *expected,
            size_t count, int64_t left)
{
    struct talker *talker = consume(talk, type);
    for (size_t i = 0; i < count; i++) {
        talk_flow(talk, talker, 1, flows[i]);
        assert_int_equal(talk_entries(talk, talker, NULL), expected[i]);
    }
    assert_int_equal(permits(talk), left);
}

static const uint32_t small_flows[] = { 1, 1, 8, 1, 25 };
static const size_t by_reads[] = { 1, 0, 0, 1, 10 };
static const size_t by_messages[] = { 1, 0, 0, 1, 2 };
static const uint32_t large_flows[] = { 1000, 1000, 500, 10000 };

static void
exclusive_reads_entries_by_permits_and_charges_afterwards(void **state)
{
    talk_fill(*state, 12, 10, "k");
    check_flows(*state, EXCLUSIVE, small_flows, by_reads, 5, -84);
}

static void
failover_reads_entries_by_permits_and_charges_afterwards(void **state)
{
    talk_fill(*state, 12, 10, "k");
    check_flows(*state, FAILOVER, small_flows, by_reads, 5, -84);
}

static void
key_shared_reads_entries_by_permits_and_charges_afterwards(void **state)
{
    talk_fill(*state, 12, 10, "k");
    check_flows(*state, KEY_SHARED, small_flows, by_reads, 5, -84);
}

static void
shared_oversteps_by_less_than_one_batch(void **state)
{
    talk_fill(*state, 12, 10, "k");
    check_flows(*state, SHARED, small_flows, by_messages, 5, -4);
}

static void
exclusive_reads_at_most_100_entries_at_once(void **state)
{
    static const size_t expected[] = { 100, 0, 0, 50 };
    talk_fill(*state, 150, 100, "k");
    check_flows(*state, EXCLUSIVE, large_flows, expected, 4, -2500);
}

static void
shared_gives_a_thousand_messages_for_a_thousand_permits(void **state)
{
    static const size_t expected[] = { 10, 10, 5, 100 };
    talk_fill(*state, 150, 100, "k");
    check_flows(*state, SHARED, large_flows, expected, 4, 0);
}

static void
plain_messages_come_exactly_as_permitted(void **state)
{
    static const uint32_t flows[] = { 3, 1, 120, 1 };
    static const size_t expected[] = { 3, 1, 120, 1 };
    talk_fill(*state, 200, 0, "k");
    for (int32_t type = EXCLUSIVE; type <= KEY_SHARED; type++) {
        struct talk *talk = talk_create(NULL);
        talk_join(talk, 0);
        talk_fill(talk, 200, 0, "k");
        check_flows(talk, type, flows, expected, 4, 0);
        assert_int_equal(embedded_counts(talk->broker)->permits_granted, 125);
        assert_int_equal(embedded_counts(talk->broker)->permits_max, 120);
        talk_destroy(talk);
    }
}

static void
nothing_comes_before_permits(void **state)
{
    struct talk *talk = *state;
    talk_fill(talk, 3, 0, NULL);
    struct talker *talker = consume(talk, SHARED);
    assert_int_equal(talk_entries(talk, talker, NULL), 0);
}

static void
permits_that_are_none_or_too_many_end_the_connection(void **state)
{
    struct talk *talk = *state;
    static const uint32_t wrong[] = { 0, 0x80000000u, UINT32_MAX };
    for (int i = 0; i < 3; i++) {
        struct talker *talker = talk_join(talk, 1);
        talk_subscribe(talk, talker, SHARED, 1, "one");
        talk_flow(talk, talker, 1, wrong[i]);
        talk_expect_end(talk, talker);
    }
    assert_int_equal(embedded_counts(talk->broker)->protocol_errors, 3);
    assert_int_equal(embedded_consumers(talk->broker, NULL), 0);
}

static void
lower_priority_gets_what_the_higher_has_no_permits_for(void **state)
{
    struct talk *talk = *state;
    struct talker *talker = &talk->talkers[0];
    struct lw_pulsar_command low = talk_subscribe_command(SHARED, 2, "low");
    low.subscribe.has |= LW_PULSAR_SUBSCRIBE_HAS_PRIORITY_LEVEL;
    low.subscribe.priority_level = 1;
    struct embedded_consumer_info info;
    talk_send(talk, talker, &low);
    talk_expect(talk, talker, LW_PULSAR_SUCCESS);
    talk_flow(talk, talker, 2, 10);
    talk_subscribe(talk, talker, SHARED, 1, "high");
    talk_flow(talk, talker, 1, 3);
    talk_fill(talk, 5, 0, NULL);
    assert_int_equal(talk_entries(talk, talker, NULL), 5);
    assert_true(embedded_consumer(talk->broker, "t", "high", &info));
    assert_int_equal(info.messages_sent, 3);
    assert_true(embedded_consumer(talk->broker, "t", "low", &info));
    assert_int_equal(info.messages_sent, 2);
}

static void
equals_take_turns(void **state)
{
    struct talk *talk = *state;
    struct talker *talker = &talk->talkers[0];
    struct embedded_consumer_info info;
    talk_subscribe(talk, talker, SHARED, 1, "one");
    talk_subscribe(talk, talker, SHARED, 2, "two");
    talk_flow(talk, talker, 1, 100);
    talk_flow(talk, talker, 2, 100);
    talk_fill(talk, 10, 0, NULL);
    assert_int_equal(talk_entries(talk, talker, NULL), 10);
    assert_true(embedded_consumer(talk->broker, "t", "one", &info));
    assert_int_equal(info.messages_sent, 5);
}

static void
a_consumer_with_too_much_unacknowledged_waits_until_half_is_done(void **state)
{
    struct talk *talk = *state;
    uint64_t entries[256];
    embedded_settings(talk->broker)->unacked_max = 20;
    talk_fill(talk, 50, 0, NULL);
    struct talker *talker = consume(talk, SHARED);
    talk_flow(talk, talker, 1, 1000);
    assert_int_equal(talk_entries(talk, talker, entries), 20);
    talk_ids(talk, talker, LW_PULSAR_ACK, 1, entries, 9);
    assert_int_equal(talk_entries(talk, talker, NULL), 0);
    talk_ids(talk, talker, LW_PULSAR_ACK, 1, entries + 9, 1);
    assert_int_equal(talk_entries(talk, talker, NULL), 10);
}

static void
what_is_asked_back_comes_in_order_with_its_count_before_what_is_new(void **state)
{
    struct talk *talk = *state;
    static const uint64_t wanted[] = { 5, 2, 6 };
    static const uint64_t expected[] = { 2, 5, 6, 8 };
    talk_fill(talk, 9, 0, NULL);
    struct talker *talker = consume(talk, SHARED);
    talk_flow(talk, talker, 1, 8);
    assert_int_equal(talk_entries(talk, talker, NULL), 8);
    talk_ids(talk, talker, LW_PULSAR_REDELIVER_UNACKNOWLEDGED, 1, wanted, 3);
    assert_null(talk_poll(talk, talker));
    talk_flow(talk, talker, 1, 4);
    for (int i = 0; i < 4; i++) {
        const struct lw_pulsar_message *it =
            &talk_expect(talk, talker, LW_PULSAR_MESSAGE)->message;
        assert_int_equal(it->message_id.entry, expected[i]);
        assert_int_equal(it->redelivery_count, i < 3 ? 1 : 0);
        assert_int_equal(it->message_id.partition, -1);
    }
}

static void
a_leaving_consumer_leaves_its_messages_and_their_counts_to_others(void **state)
{
    struct talk *talk = *state;
    static const uint64_t first[] = { 0 };
    struct talker *talker = consume(talk, SHARED);
    talk_fill(talk, 2, 0, NULL);
    talk_flow(talk, talker, 1, 3);
    assert_int_equal(talk_entries(talk, talker, NULL), 2);
    talk_ids(talk, talker, LW_PULSAR_REDELIVER_UNACKNOWLEDGED, 1, first, 1);
    assert_int_equal(talk_entries(talk, talker, NULL), 1);
    struct talker *other = talk_join(talk, 1);
    talk_subscribe(talk, other, SHARED, 9, "other");
    talk_flow(talk, other, 9, 10);
    struct lw_pulsar_command bye = lw_pulsar_command_of(LW_PULSAR_CLOSE_CONSUMER);
    bye.close_consumer.id = bye.close_consumer.request_id = 1;
    talk_send(talk, talker, &bye);
    for (uint64_t i = 0; i < 2; i++) {
        const struct lw_pulsar_message *it =
            &talk_expect(talk, other, LW_PULSAR_MESSAGE)->message;
        assert_int_equal(it->message_id.entry, i);
        assert_int_equal(it->redelivery_count, i == 0 ? 1 : 0);
    }
}

static void
counts_are_forgotten_with_the_last_consumer(void **state)
{
    struct talk *talk = *state;
    static const uint64_t first[] = { 0 };
    struct talker *talker = consume(talk, SHARED);
    talk_fill(talk, 1, 0, NULL);
    talk_flow(talk, talker, 1, 2);
    assert_int_equal(talk_entries(talk, talker, NULL), 1);
    talk_ids(talk, talker, LW_PULSAR_REDELIVER_UNACKNOWLEDGED, 1, first, 1);
    assert_int_equal(talk_entries(talk, talker, NULL), 1);
    embedded_drop_all(talk->broker);
    talker = talk_join(talk, 0);
    talk_subscribe(talk, talker, SHARED, 1, "one");
    talk_flow(talk, talker, 1, 2);
    const struct lw_pulsar_command *again = talk_expect(talk, talker, LW_PULSAR_MESSAGE);
    assert_int_equal(again->message.redelivery_count, 0);
}

static void
exclusive_reads_again_with_the_epoch_that_was_asked_for(void **state)
{
    struct talk *talk = *state;
    struct talker *talker = consume(talk, EXCLUSIVE);
    talk_fill(talk, 3, 0, NULL);
    talk_flow(talk, talker, 1, 10);
    assert_int_equal(talk_entries(talk, talker, NULL), 3);
    struct lw_pulsar_command back = lw_pulsar_command_of(LW_PULSAR_REDELIVER_UNACKNOWLEDGED);
    back.redeliver.consumer_id = 1;
    back.redeliver.has = LW_PULSAR_REDELIVER_HAS_CONSUMER_EPOCH;
    back.redeliver.consumer_epoch = 4;
    talk_send(talk, talker, &back);
    for (uint64_t i = 0; i < 3; i++) {
        const struct lw_pulsar_message *it =
            &talk_expect(talk, talker, LW_PULSAR_MESSAGE)->message;
        assert_int_equal(it->message_id.entry, i);
        assert_int_equal(it->consumer_epoch, 4);
        assert_int_equal(it->redelivery_count, 0);
    }
    assert_int_equal(permits(talk), 4);
}

static void
delayed_messages_wait_for_their_time_on_shared_only(void **state)
{
    static const int32_t types[] = { SHARED, EXCLUSIVE };
    for (int i = 0; i < 2; i++) {
        struct talk *talk = i == 0 ? *state : talk_create(NULL);
        struct embedded_publish later = { .value = { "later", 5 } };
        later.deliver_at_ms = VIRTUAL_WALL_MS + 60000;
        embedded_publish(talk->broker, "t", &later);
        talk_fill(talk, 1, 0, NULL);
        talk_join(talk, 0);
        struct talker *talker = consume(talk, types[i]);
        talk_flow(talk, talker, 1, 10);
        assert_int_equal(talk_entries(talk, talker, NULL), i == 0 ? 1 : 2);
        talk_pass_ms(talk, 59999);
        assert_int_equal(talk_entries(talk, talker, NULL), 0);
        embedded_pass_ms(talk->broker, 1);
        assert_int_equal(talk_entries(talk, talker, NULL), i == 0 ? 1 : 0);
        if (i > 0) {
            talk_destroy(talk);
        }
    }
}

static void
unreadable_metadata_is_passed_over(void **state)
{
    struct talk *talk = *state;
    static const uint8_t send[] = { 0,    0, 0, 23, 0, 0, 0, 8, 0x08, 6, 0x32, 4,   0x08, 1,
                                    0x10, 0, 0, 0,  0, 5, 1, 2, 3,    4, 5,    'x', 'y' };
    uint64_t entries[256];
    struct talker *talker = &talk->talkers[0];
    talk_produce(talk, talker, 1, "p");
    talk_send_bytes(talk, talker, send, sizeof send);
    talk_expect(talk, talker, LW_PULSAR_SEND_RECEIPT);
    talk_fill(talk, 1, 0, NULL);
    consume(talk, SHARED);
    talk_flow(talk, talker, 1, 10);
    assert_int_equal(talk_entries(talk, talker, entries), 1);
    assert_int_equal(entries[0], 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(exclusive_reads_entries_by_permits_and_charges_afterwards),
        TEST(failover_reads_entries_by_permits_and_charges_afterwards),
        TEST(key_shared_reads_entries_by_permits_and_charges_afterwards),
        TEST(shared_oversteps_by_less_than_one_batch),
        TEST(exclusive_reads_at_most_100_entries_at_once),
        TEST(shared_gives_a_thousand_messages_for_a_thousand_permits),
        TEST(plain_messages_come_exactly_as_permitted),
        TEST(nothing_comes_before_permits),
        TEST(permits_that_are_none_or_too_many_end_the_connection),
        TEST(lower_priority_gets_what_the_higher_has_no_permits_for),
        TEST(equals_take_turns),
        TEST(a_consumer_with_too_much_unacknowledged_waits_until_half_is_done),
        TEST(what_is_asked_back_comes_in_order_with_its_count_before_what_is_new),
        TEST(a_leaving_consumer_leaves_its_messages_and_their_counts_to_others),
        TEST(counts_are_forgotten_with_the_last_consumer),
        TEST(exclusive_reads_again_with_the_epoch_that_was_asked_for),
        TEST(delayed_messages_wait_for_their_time_on_shared_only),
        TEST(unreadable_metadata_is_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
