/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Acknowledgements, positions and takeovers on the embedded broker: sets of batch members,
 * cumulative ones, the rule that no id is acknowledged twice, SEEK, the last id, Failover, the end
 * of a topic, ghosts.
 */
#include "tests/support/test.h"

#include <string.h>

#include "tests/brokers/pulsar/talk.h"

enum {
    EXCLUSIVE = LW_PULSAR_SUB_EXCLUSIVE,
    SHARED = LW_PULSAR_SUB_SHARED,
    FAILOVER = LW_PULSAR_SUB_FAILOVER
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

static struct embedded_subscription_info
info_of(struct talk *talk)
{
    struct embedded_subscription_info info;
    assert_true(embedded_subscription(talk->broker, "t", "s", &info));
    return info;
}

/* ACK of one entry, with a set of one word (0: none), and a receipt. */
static void
ack(struct talk *talk, int32_t type, uint64_t ledger, uint64_t entry, uint64_t word)
{
    struct talker *talker = &talk->talkers[0];
    uint8_t words[32];
    uint8_t ids[128];
    struct lw_proto_writer writer = lw_proto_writer_of(words, sizeof words);
    struct lw_proto_writer list = lw_proto_writer_of(ids, sizeof ids);
    struct lw_pulsar_message_id id = lw_pulsar_message_id_of(ledger, entry);
    if (word != 0) {
        lw_pulsar_list_put_number(&writer, word);
        id.ack_set = lw_pulsar_list_of(&writer);
    }
    lw_pulsar_list_put_id(&list, &id);
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_ACK);
    command.ack.consumer_id = 1;
    command.ack.ack_type = type;
    command.ack.message_ids = lw_pulsar_list_of(&list);
    command.ack.has = LW_PULSAR_ACK_HAS_REQUEST_ID;
    command.ack.request_id = 77;
    talk_send(talk, talker, &command);
    const struct lw_pulsar_command *answer = talk_expect(talk, talker, LW_PULSAR_ACK_RESPONSE);
    assert_int_equal(answer->ack_response.request_id, 77);
    assert_int_equal(answer->ack_response.has & LW_PULSAR_ACK_RESPONSE_HAS_ERROR, 0);
}

static struct talker *
consume(struct talk *talk, int32_t type, uint32_t permits)
{
    struct talker *talker = &talk->talkers[0];
    talk_subscribe(talk, talker, type, 1, "one");
    if (permits > 0) {
        talk_flow(talk, talker, 1, permits);
    }
    return talker;
}

static void
members_that_are_done_are_neither_charged_nor_given_as_open_again(void **state)
{
    struct talk *talk = *state;
    static const uint64_t first[] = { 0 };
    uint64_t word = 0;
    talk_fill(talk, 1, 10, NULL);
    struct talker *talker = consume(talk, SHARED, 100);
    assert_int_equal(talk_entries(talk, talker, NULL), 1);
    ack(talk, LW_PULSAR_ACK_INDIVIDUAL, 7, 0, 0x3fc);
    assert_int_equal(info_of(talk).unacked_messages, 8);
    talk_ids(talk, talker, LW_PULSAR_REDELIVER_UNACKNOWLEDGED, 1, first, 1);
    const struct lw_pulsar_command *again = talk_expect(talk, talker, LW_PULSAR_MESSAGE);
    assert_int_equal(lw_pulsar_list_numbers(&again->message.ack_set, &word, 1), 1);
    assert_int_equal(word, 1020);
    assert_int_equal(again->message.redelivery_count, 1);
    assert_int_equal(info_of(talk).permits, 100 - 10 - 8);
}

static void
an_entry_is_done_when_its_last_member_is(void **state)
{
    struct talk *talk = *state;
    talk_fill(talk, 1, 2, NULL);
    assert_int_equal(talk_entries(talk, consume(talk, SHARED, 10), NULL), 1);
    ack(talk, LW_PULSAR_ACK_INDIVIDUAL, 7, 0, 2);
    assert_int_equal(info_of(talk).backlog, 1);
    ack(talk, LW_PULSAR_ACK_INDIVIDUAL, 7, 0, 0);
    assert_int_equal(info_of(talk).backlog, 0);
    assert_int_equal(embedded_counts(talk->broker)->violations, 0);
}

static void
an_id_that_is_acknowledged_twice_is_a_violation(void **state)
{
    struct talk *talk = *state;
    talk_fill(talk, 2, 0, NULL);
    assert_int_equal(talk_entries(talk, consume(talk, SHARED, 10), NULL), 2);
    ack(talk, LW_PULSAR_ACK_INDIVIDUAL, 7, 0, 0);
    ack(talk, LW_PULSAR_ACK_INDIVIDUAL, 7, 1, 0);
    assert_int_equal(embedded_counts(talk->broker)->violations, 0);
    ack(talk, LW_PULSAR_ACK_INDIVIDUAL, 7, 1, 0);
    assert_int_equal(embedded_counts(talk->broker)->violations, 1);
    assert_non_null(strstr(embedded_counts(talk->broker)->first_violation, "entry 1 of t"));
}

static void
in_another_connection_the_same_id_may_be_acknowledged_again(void **state)
{
    struct talk *talk = *state;
    talk_fill(talk, 2, 0, NULL);
    assert_int_equal(talk_entries(talk, consume(talk, SHARED, 10), NULL), 2);
    ack(talk, LW_PULSAR_ACK_INDIVIDUAL, 7, 1, 0);
    talk_join(talk, 0);
    consume(talk, SHARED, 0);
    ack(talk, LW_PULSAR_ACK_INDIVIDUAL, 7, 1, 0);
    assert_int_equal(embedded_counts(talk->broker)->violations, 0);
    assert_int_equal(embedded_counts(talk->broker)->acks_strange, 1);
}

static void
nonsense_is_confirmed_and_changes_nothing(void **state)
{
    struct talk *talk = *state;
    talk_fill(talk, 3, 0, NULL);
    assert_int_equal(talk_entries(talk, consume(talk, SHARED, 10), NULL), 3);
    ack(talk, LW_PULSAR_ACK_INDIVIDUAL, 0, 0, 0);
    ack(talk, LW_PULSAR_ACK_INDIVIDUAL, 999999, 0, 0);
    ack(talk, LW_PULSAR_ACK_INDIVIDUAL, 7, 99, 0);
    ack(talk, LW_PULSAR_ACK_CUMULATIVE, 7, 2, 0); /* not on Shared */
    assert_int_equal(info_of(talk).backlog, 3);
}

static void
a_cumulative_acknowledgement_covers_all_before_it(void **state)
{
    struct talk *talk = *state;
    talk_fill(talk, 3, 10, NULL);
    struct talker *talker = consume(talk, EXCLUSIVE, 100);
    uint64_t word = 0;
    assert_int_equal(talk_entries(talk, talker, NULL), 3);
    ack(talk, LW_PULSAR_ACK_CUMULATIVE, 7, 1, 0x3f0);
    assert_int_equal(info_of(talk).mark, 1);
    talk_ids(talk, talker, LW_PULSAR_REDELIVER_UNACKNOWLEDGED, 1, NULL, 0);
    const struct lw_pulsar_command *again = talk_expect(talk, talker, LW_PULSAR_MESSAGE);
    assert_int_equal(again->message.message_id.entry, 1);
    assert_int_equal(lw_pulsar_list_numbers(&again->message.ack_set, &word, 1), 1);
    assert_int_equal(word, 1008);
    assert_int_equal(talk_entries(talk, talker, NULL), 1);
    ack(talk, LW_PULSAR_ACK_CUMULATIVE, 7, UINT64_MAX, 0);
    assert_int_equal(info_of(talk).mark, 1);
}

/* -- Positions ---------------------------------------------------------------------------------- */

static struct lw_pulsar_command
seek_command(uint64_t ledger, uint64_t entry)
{
    struct lw_pulsar_command seek = lw_pulsar_command_of(LW_PULSAR_SEEK);
    seek.seek.consumer_id = 1;
    seek.seek.request_id = 5;
    seek.seek.has = LW_PULSAR_SEEK_HAS_MESSAGE_ID;
    seek.seek.message_id = lw_pulsar_message_id_of(ledger, entry);
    return seek;
}

static void
check_seek(struct talk *talk, struct lw_pulsar_command seek, uint64_t expected)
{
    struct talker *talker = &talk->talkers[0];
    uint64_t entries[256] = { 0 };
    talk_send(talk, talker, &seek);
    const struct lw_pulsar_command *closed = talk_expect(talk, talker,
                                                         LW_PULSAR_CLOSE_CONSUMER);
    assert_true(closed->close_consumer.request_id == LW_PULSAR_NO_REQUEST);
    assert_int_equal(talk_expect(talk, talker, LW_PULSAR_SUCCESS)->success.request_id, 5);
    consume(talk, SHARED, 100);
    size_t count = talk_entries(talk, talker, entries);
    assert_int_equal(count, 5 - expected);
    assert_int_equal(count > 0 ? entries[0] : 5, expected);
}

static void
seek_closes_its_consumers_and_then_begins_with_the_entry_itself(void **state)
{
    struct talk *talk = *state;
    talk_fill(talk, 5, 0, NULL);
    assert_int_equal(talk_entries(talk, consume(talk, SHARED, 100), NULL), 5);
    check_seek(talk, seek_command(7, 3), 3);
    check_seek(talk, seek_command(UINT64_MAX, UINT64_MAX), 0);
    check_seek(talk, seek_command(INT64_MAX, INT64_MAX), 5);
    check_seek(talk, seek_command(999999, 0), 5);
    struct lw_pulsar_command by_time = seek_command(0, 0);
    by_time.seek.has = LW_PULSAR_SEEK_HAS_PUBLISH_TIME;
    by_time.seek.message_publish_time = (uint64_t)VIRTUAL_WALL_MS;
    check_seek(talk, by_time, 0);
    by_time.seek.message_publish_time = (uint64_t)VIRTUAL_WALL_MS + 1;
    check_seek(talk, by_time, 5);
}

static void
questions_about_an_unknown_consumer_are_refused(void **state)
{
    struct talk *talk = *state;
    struct talker *talker = &talk->talkers[0];
    struct lw_pulsar_command seek = seek_command(7, 0);
    talk_send(talk, talker, &seek);
    assert_int_equal(talk_expect(talk, talker, LW_PULSAR_ERROR)->error.error,
                     LW_PULSAR_METADATA_ERROR);
    struct lw_pulsar_command last = lw_pulsar_command_of(LW_PULSAR_GET_LAST_MESSAGE_ID);
    last.get_last_message_id.request_id = 6;
    talk_send(talk, talker, &last);
    assert_int_equal(talk_expect(talk, talker, LW_PULSAR_ERROR)->error.error,
                     LW_PULSAR_METADATA_ERROR);
    struct lw_pulsar_command stats = lw_pulsar_command_of(LW_PULSAR_CONSUMER_STATS);
    talk_send(talk, talker, &stats);
    talk_expect_end(talk, talker);
}

static void
the_last_id_tells_the_last_member_of_a_batch(void **state)
{
    struct talk *talk = *state;
    struct talker *talker = consume(talk, SHARED, 0);
    struct lw_pulsar_command ask = lw_pulsar_command_of(LW_PULSAR_GET_LAST_MESSAGE_ID);
    ask.get_last_message_id.consumer_id = 1;
    talk_send(talk, talker, &ask);
    const struct lw_pulsar_command *answer = talk_expect(
        talk, talker, LW_PULSAR_GET_LAST_MESSAGE_ID_RESPONSE);
    assert_true(answer->get_last_message_id_response.last_message_id.ledger == UINT64_MAX);
    talk_fill(talk, 2, 10, NULL);
    talk_send(talk, talker, &ask);
    answer = talk_expect(talk, talker, LW_PULSAR_GET_LAST_MESSAGE_ID_RESPONSE);
    assert_int_equal(answer->get_last_message_id_response.last_message_id.entry, 1);
    assert_int_equal(answer->get_last_message_id_response.last_message_id.batch_index, 9);
}

static void
ids_of_before_an_unload_are_still_good(void **state)
{
    struct talk *talk = *state;
    talk_fill(talk, 2, 0, NULL);
    struct talker *talker = consume(talk, SHARED, 10);
    assert_int_equal(talk_entries(talk, talker, NULL), 2);
    embedded_unload(talk->broker, "t", 0, false);
    talk_expect(talk, talker, LW_PULSAR_CLOSE_CONSUMER);
    talk_fill(talk, 1, 0, NULL);
    consume(talk, SHARED, 0);
    ack(talk, LW_PULSAR_ACK_INDIVIDUAL, 7, 1, 0);
    talk_flow(talk, talker, 1, 10);
    const struct lw_pulsar_message *it = &talk_expect(talk, talker, LW_PULSAR_MESSAGE)->message;
    assert_true(it->message_id.ledger == 7 && it->message_id.entry == 0);
    it = &talk_expect(talk, talker, LW_PULSAR_MESSAGE)->message;
    assert_true(it->message_id.ledger == 10 && it->message_id.entry == 0);
}

/* -- Failover ----------------------------------------------------------------------------------- */

static void
expect_change(struct talk *talk, int number, bool is_active)
{
    const struct lw_pulsar_command *command = talk_expect(talk, &talk->talkers[number],
                                                          LW_PULSAR_ACTIVE_CONSUMER_CHANGE);
    assert_int_equal(command->active_consumer_change.is_active, is_active);
}

static void
the_active_one_is_told_after_a_second_and_then_served(void **state)
{
    struct talk *talk = *state;
    talk_fill(talk, 2, 0, NULL);
    struct talker *talker = consume(talk, FAILOVER, 10);
    assert_null(talk_poll(talk, talker));
    talk_pass_ms(talk, 1000);
    expect_change(talk, 0, true);
    assert_int_equal(talk_entries(talk, talker, NULL), 2);
}

static void
one_of_lower_priority_is_told_before_its_success_and_takes_over_later(void **state)
{
    struct talk *talk = *state;
    talk_fill(talk, 3, 0, NULL);
    struct talker *talker = consume(talk, FAILOVER, 10);
    talk_pass_ms(talk, 1000);
    expect_change(talk, 0, true);
    assert_int_equal(talk_entries(talk, talker, NULL), 3);
    ack(talk, LW_PULSAR_ACK_INDIVIDUAL, 7, 0, 0);
    struct talker *other = talk_join(talk, 1);
    struct lw_pulsar_command low = talk_subscribe_command(FAILOVER, 2, "low");
    low.subscribe.has |= LW_PULSAR_SUBSCRIBE_HAS_PRIORITY_LEVEL;
    low.subscribe.priority_level = 1;
    talk_send(talk, other, &low);
    expect_change(talk, 1, false);
    talk_expect(talk, other, LW_PULSAR_SUCCESS);
    talk_flow(talk, other, 2, 10);
    struct lw_pulsar_command bye = lw_pulsar_command_of(LW_PULSAR_CLOSE_CONSUMER);
    bye.close_consumer.id = 1;
    talk_send(talk, talker, &bye);
    assert_null(talk_poll(talk, other));
    talk_pass_ms(talk, 1000);
    expect_change(talk, 1, true);
    assert_int_equal(talk_entries(talk, other, NULL), 2);
}

/* Who was active on a real broker after bbb, then aaa, ccc and ddd had joined. */
static void
the_active_one_is_who_it_is_on_a_real_broker(void **state)
{
    struct talk *talk = *state;
    static const char *const names[] = { "bbb", "aaa", "ccc", "ddd" };
    static const char *const topics[] = { "fo", "fo2", "orders" };
    static const char *const active[][4] = { { "bbb", "aaa", "aaa", "aaa" },
                                             { "bbb", "bbb", "bbb", "bbb" },
                                             { "bbb", "bbb", "bbb", "bbb" } };
    struct embedded_subscription_info info;
    embedded_settings(talk->broker)->failover_delay_ms = 0;
    for (uint64_t i = 0; i < 12; i++) {
        struct lw_pulsar_command command = talk_subscribe_command(FAILOVER, i, names[i % 4]);
        command.subscribe.topic = (struct lw_bytes){ topics[i / 4], strlen(topics[i / 4]) };
        talk_send(talk, &talk->talkers[0], &command);
        embedded_pass_ms(talk->broker, 1);
        assert_true(embedded_subscription(talk->broker, topics[i / 4], "s", &info));
        assert_string_equal(info.active, active[i / 4][i % 4]);
    }
}

/* -- Ends ---------------------------------------------------------------------------------------- */

static void
the_end_of_a_topic_is_told_when_all_is_acknowledged(void **state)
{
    struct talk *talk = *state;
    talk_fill(talk, 1, 0, NULL);
    struct talker *talker = consume(talk, SHARED, 10);
    assert_int_equal(talk_entries(talk, talker, NULL), 1);
    embedded_terminate(talk->broker, "t");
    assert_null(talk_poll(talk, talker));
    ack(talk, LW_PULSAR_ACK_INDIVIDUAL, 7, 0, 0);
    talk_expect(talk, talker, LW_PULSAR_REACHED_END_OF_TOPIC);
}

static void
a_second_exclusive_consumer_has_to_wait_until_the_first_is_found_dead(void **state)
{
    struct talk *talk = *state;
    consume(talk, EXCLUSIVE, 0);
    struct talker *other = talk_join(talk, 1);
    struct lw_pulsar_command command = talk_subscribe_command(EXCLUSIVE, 2, "two");
    talk_send(talk, other, &command);
    struct lw_pulsar_command pong = lw_pulsar_command_of(LW_PULSAR_PONG);
    talk_expect(talk, &talk->talkers[0], LW_PULSAR_PING);
    talk_send(talk, &talk->talkers[0], &pong);
    assert_int_equal(talk_expect(talk, other, LW_PULSAR_ERROR)->error.error,
                     LW_PULSAR_CONSUMER_BUSY);
    talk_send(talk, other, &command);
    talk_pass_ms(talk, 5000);
    talk_expect(talk, other, LW_PULSAR_SUCCESS);
    assert_int_equal(embedded_consumers(talk->broker, NULL), 1);
}

static void
nothing_is_left_of_a_client_that_went(void **state)
{
    struct talk *talk = *state;
    consume(talk, SHARED, 1);
    talk_produce(talk, &talk->talkers[0], 1, "p");
    assert_int_equal(embedded_producers(talk->broker, "t"), 1);
    assert_int_equal(embedded_consumers(talk->broker, "t"), 1);
    embedded_drop_all(talk->broker);
    assert_int_equal(embedded_producers(talk->broker, NULL), 0);
    assert_int_equal(embedded_consumers(talk->broker, NULL), 0);
    assert_int_equal(embedded_connections(talk->broker), 0);
    talk_expect_end(talk, &talk->talkers[0]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(members_that_are_done_are_neither_charged_nor_given_as_open_again),
        TEST(an_entry_is_done_when_its_last_member_is),
        TEST(an_id_that_is_acknowledged_twice_is_a_violation),
        TEST(in_another_connection_the_same_id_may_be_acknowledged_again),
        TEST(nonsense_is_confirmed_and_changes_nothing),
        TEST(a_cumulative_acknowledgement_covers_all_before_it),
        TEST(seek_closes_its_consumers_and_then_begins_with_the_entry_itself),
        TEST(questions_about_an_unknown_consumer_are_refused),
        TEST(the_last_id_tells_the_last_member_of_a_batch),
        TEST(ids_of_before_an_unload_are_still_good),
        TEST(the_active_one_is_told_after_a_second_and_then_served),
        TEST(one_of_lower_priority_is_told_before_its_success_and_takes_over_later),
        TEST(the_active_one_is_who_it_is_on_a_real_broker),
        TEST(the_end_of_a_topic_is_told_when_all_is_acknowledged),
        TEST(a_second_exclusive_consumer_has_to_wait_until_the_first_is_found_dead),
        TEST(nothing_is_left_of_a_client_that_went),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
