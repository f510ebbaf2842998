/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections of the embedded broker: handshakes and credentials, lookups with owners and
 * proxies, producers and their receipts, lists of topics, and every kind of scripted fault.
 */
#include "tests/support/test.h"

#include <string.h>

#include "base/text.h"
#include "tests/brokers/pulsar/talk.h"

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

static struct lw_bytes
text(const char *from)
{
    return (struct lw_bytes){ from, strlen(from) };
}

static void
fault(struct talk *talk, enum embedded_fault_kind kind, enum embedded_direction direction,
      int32_t type, uint32_t nth)
{
    embedded_add_fault(talk->broker, &(struct embedded_fault){ .kind = kind,
                                                               .direction = direction,
                                                               .type = type,
                                                               .nth = nth,
                                                               .error = 6,
                                                               .text = "not now",
                                                               .ms = 100 });
}

static void
ping(struct talk *talk)
{
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_PING);
    talk_send(talk, &talk->talkers[0], &command);
}

/* -- Handshake ------------------------------------------------------------------------------------ */

static void
versions_are_reduced_to_what_both_know(void **state)
{
    struct talk *talk = *state;
    static const int32_t versions[][2] = { { 99, 21 }, { 21, 21 }, { 12, 12 }, { 0, 0 } };
    for (int i = 0; i < 4; i++) {
        struct talker *talker = talk_dial(talk, 1, 0);
        struct lw_pulsar_command command = talk_connect_command();
        command.connect.protocol_version = versions[i][0];
        talk_send(talk, talker, &command);
        const struct lw_pulsar_connected *it =
            &talk_expect(talk, talker, LW_PULSAR_CONNECTED)->connected;
        assert_int_equal(it->protocol_version, versions[i][1]);
        assert_int_equal(it->max_message_size, 5242880);
    }
}

static void
credentials_are_checked_and_asked_for_again(void **state)
{
    struct talk *talk = *state;
    struct talker *talker = talk_dial(talk, 1, 0);
    embedded_settings(talk->broker)->auth_method = "token";
    embedded_settings(talk->broker)->auth_data = "good";
    struct lw_pulsar_command command = talk_connect_command();
    command.connect.auth_method_name = text("token");
    command.connect.auth_data = text("bad");
    talk_send(talk, talker, &command);
    assert_int_equal(talk_expect(talk, talker, LW_PULSAR_ERROR)->error.error,
                     LW_PULSAR_AUTHENTICATION_ERROR);
    talk_expect_end(talk, talker);
    talker = talk_dial(talk, 1, 0);
    command.connect.auth_data = text("good");
    talk_send(talk, talker, &command);
    talk_expect(talk, talker, LW_PULSAR_CONNECTED);
    embedded_challenge(talk->broker);
    talk_expect(talk, talker, LW_PULSAR_AUTH_CHALLENGE);
    struct lw_pulsar_command answer = lw_pulsar_command_of(LW_PULSAR_AUTH_RESPONSE);
    answer.auth_response.has = LW_PULSAR_AUTH_HAS_DATA;
    answer.auth_response.response.auth_method_name = text("token");
    answer.auth_response.response.auth_data = text("good");
    talk_send(talk, talker, &answer);
    talk_pass_ms(talk, 3000);
    assert_null(talk_poll(talk, talker));
    assert_false(talker->is_ended);
    talk_expect(talk, &talk->talkers[0], LW_PULSAR_AUTH_CHALLENGE);
    talk_expect_end(talk, &talk->talkers[0]); /* it never answered */
}

static void
what_a_client_must_not_do_ends_its_connection(void **state)
{
    struct talk *talk = *state;
    static const uint8_t unknown[] = { 0,    0,    0,    11,   0,    0,    0, 7,
                                       0x08, 0xe7, 0x07, 0xba, 0x3e, 0x01, 0 };
    struct talker *talker = talk_dial(talk, 1, 0);
    struct lw_pulsar_command early = talk_subscribe_command(LW_PULSAR_SUB_SHARED, 1, "x");
    talk_send(talk, talker, &early);
    talk_expect_end(talk, talker);
    struct lw_pulsar_command twice = talk_connect_command();
    talker = talk_join(talk, 1);
    talk_send(talk, talker, &twice);
    talk_expect_end(talk, talker);
    talker = talk_join(talk, 1);
    talk_send_bytes(talk, talker, unknown, sizeof unknown);
    talk_expect_end(talk, talker);
    talker = talk_join(talk, 1);
    talk_publish(talk, talker, 99, 0, "nobody's");
    talk_expect_end(talk, talker);
    assert_int_equal(embedded_counts(talk->broker)->protocol_errors, 4);
}

static void
a_silent_client_is_pinged_and_then_left(void **state)
{
    struct talk *talk = *state;
    embedded_settings(talk->broker)->keep_alive_ms = 4000;
    struct talker *talker = talk_join(talk, 1);
    talk_pass_ms(talk, 4000);
    talk_expect(talk, talker, LW_PULSAR_PING);
    talk_pass_ms(talk, 4000);
    talk_expect_end(talk, talker);
}

/* -- Lookups --------------------------------------------------------------------------------------- */

static const struct lw_pulsar_lookup_response *
look_up(struct talk *talk, struct talker *talker, const char *topic)
{
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_LOOKUP);
    command.lookup.topic = text(topic);
    talk_send(talk, talker, &command);
    return &talk_expect(talk, talker, LW_PULSAR_LOOKUP_RESPONSE)->lookup_response;
}

static void
lookups_lead_to_the_owner_and_only_it_serves(void **state)
{
    struct talk *talk = *state;
    int other = embedded_add_member(talk->broker, false);
    embedded_set_owner(talk->broker, "t", other);
    const struct lw_pulsar_lookup_response *it = look_up(talk, &talk->talkers[0], "t");
    assert_int_equal(it->response, LW_PULSAR_LOOKUP_REDIRECT);
    assert_true(lw_text_is_equal(it->broker_service_url, embedded_url(talk->broker, other)));
    struct lw_pulsar_command subscribe = talk_subscribe_command(LW_PULSAR_SUB_SHARED, 1, "x");
    talk_send(talk, &talk->talkers[0], &subscribe);
    assert_int_equal(talk_expect(talk, &talk->talkers[0], LW_PULSAR_ERROR)->error.error,
                     LW_PULSAR_SERVICE_NOT_READY);
    struct talker *talker = talk_dial(talk, 1, other);
    struct lw_pulsar_command hello = talk_connect_command();
    talk_send(talk, talker, &hello);
    talk_expect(talk, talker, LW_PULSAR_CONNECTED);
    assert_int_equal(look_up(talk, talker, "t")->response, LW_PULSAR_LOOKUP_CONNECT);
    talk_subscribe(talk, talker, LW_PULSAR_SUB_SHARED, 1, "x");
}

static void
a_proxy_leads_to_the_broker_that_is_named(void **state)
{
    struct talk *talk = *state;
    int proxy = embedded_add_member(talk->broker, true);
    struct talker *talker = talk_dial(talk, 1, proxy);
    struct lw_pulsar_command hello = talk_connect_command();
    talk_send(talk, talker, &hello);
    talk_expect(talk, talker, LW_PULSAR_CONNECTED);
    const struct lw_pulsar_lookup_response *it = look_up(talk, talker, "t");
    assert_true(it->proxy_through_service_url);
    assert_true(lw_text_is_equal(it->broker_service_url, embedded_url(talk->broker, 0)));
    struct lw_pulsar_command subscribe = talk_subscribe_command(LW_PULSAR_SUB_SHARED, 1, "x");
    talk_send(talk, talker, &subscribe);
    talk_expect(talk, talker, LW_PULSAR_ERROR);
    talker = talk_dial(talk, 1, proxy);
    hello.connect.proxy_to_broker_url = text(embedded_url(talk->broker, 0) + 9);
    talk_send(talk, talker, &hello);
    talk_expect(talk, talker, LW_PULSAR_CONNECTED);
    talk_subscribe(talk, talker, LW_PULSAR_SUB_SHARED, 1, "x");
}

static void
topics_and_partitions_must_be_looked_up_before_they_are_used(void **state)
{
    struct talk *talk = *state;
    struct talker *talker = &talk->talkers[0];
    embedded_settings(talk->broker)->needs_lookup = true;
    struct lw_pulsar_command subscribe = talk_subscribe_command(LW_PULSAR_SUB_SHARED, 1, "x");
    talk_send(talk, talker, &subscribe);
    assert_int_equal(talk_expect(talk, talker, LW_PULSAR_ERROR)->error.error,
                     LW_PULSAR_SERVICE_NOT_READY);
    look_up(talk, talker, "t");
    talk_subscribe(talk, talker, LW_PULSAR_SUB_SHARED, 1, "x");
}

static uint32_t
partitions_of(struct talk *talk, const char *topic)
{
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_PARTITIONED_METADATA);
    command.partitioned_metadata.topic = text(topic);
    talk_send(talk, &talk->talkers[0], &command);
    const struct lw_pulsar_partitioned_metadata_response *it =
        &talk_expect(talk, &talk->talkers[0], LW_PULSAR_PARTITIONED_METADATA_RESPONSE)
             ->partitioned_metadata_response;
    return it->response == LW_PULSAR_PARTITIONED_SUCCESS ? it->partitions
                                                         : 1000 + (uint32_t)it->error;
}

static void
partitions_grow_with_their_subscriptions(void **state)
{
    struct talk *talk = *state;
    struct embedded_subscription_info info;
    assert_int_equal(partitions_of(talk, "t"), 0);
    embedded_set_partitions(talk->broker, "p", 2);
    embedded_create_subscription(talk->broker, "p-partition-0", "s", 1, false);
    assert_int_equal(partitions_of(talk, "p"), 2);
    embedded_set_partitions(talk->broker, "p", 4);
    assert_int_equal(partitions_of(talk, "p"), 4);
    assert_true(embedded_subscription(talk->broker, "p-partition-3", "s", &info));
    assert_int_equal(partitions_of(talk, "p-partition-9"), 1000 + LW_PULSAR_TOPIC_NOT_FOUND);
    assert_int_equal(partitions_of(talk, "a/b/c/d"), 1000 + LW_PULSAR_INVALID_TOPIC_NAME);
    talk_send(
        talk, &talk->talkers[0],
        &(struct lw_pulsar_command){ .type = LW_PULSAR_PRODUCER,
                                     .producer = { .topic = text("p"), .producer_id = 1 } });
    assert_int_equal(talk_expect(talk, &talk->talkers[0], LW_PULSAR_ERROR)->error.error,
                     LW_PULSAR_NOT_ALLOWED);
}

static void
a_watcher_hears_of_topics_that_come_and_go(void **state)
{
    struct talk *talk = *state;
    struct talker *talker = &talk->talkers[0];
    struct lw_pulsar_command watch = lw_pulsar_command_of(LW_PULSAR_WATCH_TOPIC_LIST);
    watch.watch_topic_list.watcher_id = 3;
    watch.watch_topic_list.namespace_name = text("public/default");
    watch.watch_topic_list.topics_pattern = text("public/default/w-.*");
    talk_send(talk, talker, &watch);
    const struct lw_pulsar_command *it = talk_expect(talk, talker,
                                                     LW_PULSAR_WATCH_TOPIC_LIST_SUCCESS);
    assert_int_equal(it->watch_topic_list_success.topics.count, 0);
    assert_true(lw_text_is_equal(it->watch_topic_list_success.topics_hash, "00000000"));
    embedded_create_topic(talk->broker, "other");
    embedded_create_topic(talk->broker, "w-1");
    it = talk_expect(talk, talker, LW_PULSAR_WATCH_TOPIC_UPDATE);
    assert_int_equal(it->watch_topic_update.new_topics.count, 1);
    embedded_delete_topic(talk->broker, "w-1");
    it = talk_expect(talk, talker, LW_PULSAR_WATCH_TOPIC_UPDATE);
    assert_int_equal(it->watch_topic_update.deleted_topics.count, 1);
}

/* -- Producers ------------------------------------------------------------------------------------- */

static uint64_t
receipt_entry(struct talk *talk, uint64_t sequence)
{
    const struct lw_pulsar_send_receipt *it =
        &talk_expect(talk, &talk->talkers[0], LW_PULSAR_SEND_RECEIPT)->send_receipt;
    assert_int_equal(it->sequence_id, sequence);
    return it->message_id.entry;
}

static void
what_was_sent_twice_is_stored_once_where_duplicates_are_known(void **state)
{
    struct talk *talk = *state;
    struct talker *talker = &talk->talkers[0];
    embedded_settings(talk->broker)->is_deduplicating = true;
    talk_produce(talk, talker, 1, "p");
    talk_publish(talk, talker, 1, 4, "a");
    assert_int_equal(receipt_entry(talk, 4), 0);
    talk_publish(talk, talker, 1, 4, "a");
    assert_true(receipt_entry(talk, 4) == UINT64_MAX);
    talk_publish(talk, talker, 1, 5, "b");
    assert_int_equal(receipt_entry(talk, 5), 1);
    assert_int_equal(embedded_entry_count(talk->broker, "t"), 2);
}

static void
a_name_is_taken_until_its_holder_is_found_dead(void **state)
{
    struct talk *talk = *state;
    struct talker *other = talk_join(talk, 1);
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_PRODUCER);
    command.producer.topic = text("t");
    command.producer.producer_name = text("p");
    talk_produce(talk, &talk->talkers[0], 1, "p");
    talk_send(talk, other, &command);
    talk_expect(talk, &talk->talkers[0], LW_PULSAR_PING);
    ping(talk);
    assert_int_equal(talk_expect(talk, other, LW_PULSAR_ERROR)->error.error,
                     LW_PULSAR_PRODUCER_BUSY);
    talk_expect(talk, &talk->talkers[0], LW_PULSAR_PONG);
    talk_send(talk, other, &command);
    talk_pass_ms(talk, 5000);
    talk_expect(talk, other, LW_PULSAR_PRODUCER_SUCCESS);
    assert_int_equal(embedded_producers(talk->broker, "t"), 1);
}

static void
sends_after_the_broker_closed_a_producer_vanish(void **state)
{
    struct talk *talk = *state;
    struct talker *talker = &talk->talkers[0];
    int other = embedded_add_member(talk->broker, false);
    talk_produce(talk, talker, 1, "p");
    embedded_unload(talk->broker, "t", other, true);
    const struct lw_pulsar_command *it = talk_expect(talk, talker, LW_PULSAR_CLOSE_PRODUCER);
    assert_true(lw_text_is_equal(it->close_producer.assigned_broker_service_url,
                                 embedded_url(talk->broker, other)));
    talk_publish(talk, talker, 1, 0, "lost");
    assert_null(talk_poll(talk, talker));
    assert_false(talker->is_ended);
    assert_int_equal(embedded_entry_count(talk->broker, "t"), 0);
}

static void
a_fenced_holder_is_told_nothing_and_loses_its_connection(void **state)
{
    struct talk *talk = *state;
    struct talker *other = talk_join(talk, 1);
    talk_produce(talk, &talk->talkers[0], 1, "p");
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_PRODUCER);
    command.producer.topic = text("t");
    command.producer.producer_access_mode = LW_PULSAR_ACCESS_EXCLUSIVE_WITH_FENCING;
    talk_send(talk, other, &command);
    talk_expect(talk, other, LW_PULSAR_PRODUCER_SUCCESS);
    assert_null(talk_poll(talk, &talk->talkers[0]));
    talk_publish(talk, &talk->talkers[0], 1, 0, "too late");
    talk_expect_end(talk, &talk->talkers[0]);
}

static void
a_migrated_topic_never_answers(void **state)
{
    struct talk *talk = *state;
    struct talker *talker = &talk->talkers[0];
    embedded_migrate(talk->broker, "t", "pulsar://elsewhere:6650");
    struct lw_pulsar_command subscribe = talk_subscribe_command(LW_PULSAR_SUB_SHARED, 1, "x");
    talk_send(talk, talker, &subscribe);
    talk_expect(talk, talker, LW_PULSAR_TOPIC_MIGRATED);
    talk_expect(talk, talker, LW_PULSAR_CLOSE_CONSUMER);
    assert_null(talk_poll(talk, talker));
}

/* -- The script -------------------------------------------------------------------------------------- */

static void
a_connection_ends_before_the_nth_frame_in(void **state)
{
    struct talk *talk = *state;
    fault(talk, EMBEDDED_DROP, EMBEDDED_IN, LW_PULSAR_PING, 2);
    ping(talk);
    talk_expect(talk, &talk->talkers[0], LW_PULSAR_PONG);
    ping(talk);
    talk_expect_end(talk, &talk->talkers[0]);
    assert_int_equal(embedded_counts(talk->broker)->in[LW_PULSAR_PING], 1);
    assert_int_equal(embedded_faults_left(talk->broker), 0);
}

static void
a_connection_ends_before_or_after_a_frame_out(void **state)
{
    struct talk *talk = *state;
    fault(talk, EMBEDDED_DROP, EMBEDDED_OUT, LW_PULSAR_PONG, 1);
    ping(talk);
    talk_expect_end(talk, &talk->talkers[0]);
    talk_join(talk, 0);
    fault(talk, EMBEDDED_DROP_AFTER, EMBEDDED_OUT, LW_PULSAR_PONG, 1);
    ping(talk);
    talk_expect(talk, &talk->talkers[0], LW_PULSAR_PONG);
    talk_expect_end(talk, &talk->talkers[0]);
}

static void
a_connection_is_cut_at_a_byte(void **state)
{
    struct talk *talk = *state;
    struct talker *talker = &talk->talkers[0];
    embedded_add_fault(talk->broker, &(struct embedded_fault){ .kind = EMBEDDED_CUT,
                                                               .direction = EMBEDDED_OUT,
                                                               .bytes = 5 });
    talk_dial(talk, 0, 0);
    struct lw_pulsar_command hello = talk_connect_command();
    talk_send(talk, talker, &hello);
    talk_expect_end(talk, talker);
    assert_int_equal(talker->size - talker->used, 5);
}

static void
receipts_are_lost_doubled_and_late(void **state)
{
    struct talk *talk = *state;
    struct talker *talker = &talk->talkers[0];
    talk_produce(talk, talker, 1, "p");
    fault(talk, EMBEDDED_LOSE, EMBEDDED_OUT, LW_PULSAR_SEND_RECEIPT, 1);
    talk_publish(talk, talker, 1, 0, "a");
    assert_null(talk_poll(talk, talker));
    fault(talk, EMBEDDED_DUPLICATE, EMBEDDED_OUT, LW_PULSAR_SEND_RECEIPT, 1);
    talk_publish(talk, talker, 1, 1, "b");
    assert_int_equal(receipt_entry(talk, 1), 1);
    assert_int_equal(receipt_entry(talk, 1), 1);
    fault(talk, EMBEDDED_DELAY, EMBEDDED_OUT, LW_PULSAR_SEND_RECEIPT, 1);
    talk_publish(talk, talker, 1, 2, "c");
    assert_null(talk_poll(talk, talker));
    talk_pass_ms(talk, 100);
    assert_int_equal(receipt_entry(talk, 2), 2);
}

static void
commands_are_refused_in_their_own_way(void **state)
{
    struct talk *talk = *state;
    struct talker *talker = &talk->talkers[0];
    fault(talk, EMBEDDED_REFUSE, EMBEDDED_IN, LW_PULSAR_LOOKUP, 1);
    const struct lw_pulsar_lookup_response *it = look_up(talk, talker, "t");
    assert_int_equal(it->response, LW_PULSAR_LOOKUP_FAILED);
    assert_int_equal(it->error, 6);
    assert_true(lw_text_is_equal(it->message, "not now"));
    talk_produce(talk, talker, 1, "p");
    fault(talk, EMBEDDED_REFUSE, EMBEDDED_IN, LW_PULSAR_SEND, 1);
    talk_publish(talk, talker, 1, 0, "a");
    assert_int_equal(talk_expect(talk, talker, LW_PULSAR_SEND_ERROR)->send_error.error, 6);
    fault(talk, EMBEDDED_REFUSE, EMBEDDED_IN, LW_PULSAR_SUBSCRIBE, 1);
    struct lw_pulsar_command subscribe = talk_subscribe_command(LW_PULSAR_SUB_SHARED, 1, "x");
    talk_send(talk, talker, &subscribe);
    assert_int_equal(talk_expect(talk, talker, LW_PULSAR_ERROR)->error.error, 6);
}

static void
a_message_comes_with_a_wrong_checksum(void **state)
{
    struct talk *talk = *state;
    struct talker *talker = &talk->talkers[0];
    struct lw_pulsar_payload payload;
    fault(talk, EMBEDDED_CHECKSUM, EMBEDDED_OUT, LW_PULSAR_MESSAGE, 1);
    talk_fill(talk, 2, 0, NULL);
    talk_subscribe(talk, talker, LW_PULSAR_SUB_SHARED, 1, "x");
    talk_flow(talk, talker, 1, 5);
    talk_expect(talk, talker, LW_PULSAR_MESSAGE);
    assert_int_equal(lw_pulsar_payload_open(talker->rest, &payload), LW_PULSAR_CHECKSUM_WRONG);
    talk_expect(talk, talker, LW_PULSAR_MESSAGE);
    assert_int_equal(lw_pulsar_payload_open(talker->rest, &payload), LW_PULSAR_OK);
}

static void
silence_and_a_full_ear_end_when_the_script_is_cleared(void **state)
{
    struct talk *talk = *state;
    fault(talk, EMBEDDED_SILENCE, EMBEDDED_IN, LW_PULSAR_PING, 1);
    ping(talk);
    ping(talk);
    assert_int_equal(embedded_counts(talk->broker)->out[LW_PULSAR_PONG], 0);
    embedded_clear_faults(talk->broker);
    ping(talk);
    talk_expect(talk, &talk->talkers[0], LW_PULSAR_PONG);
    fault(talk, EMBEDDED_STOP_READING, EMBEDDED_IN, LW_PULSAR_PING, 1);
    ping(talk);
    talk_expect(talk, &talk->talkers[0], LW_PULSAR_PONG);
    ping(talk);
    assert_int_equal(embedded_counts(talk->broker)->in[LW_PULSAR_PING], 2);
    embedded_clear_faults(talk->broker);
    talk_expect(talk, &talk->talkers[0], LW_PULSAR_PONG);
}

static void
garbage_and_unknown_commands_are_sent(void **state)
{
    struct talk *talk = *state;
    struct talker *talker = &talk->talkers[0];
    fault(talk, EMBEDDED_UNKNOWN, EMBEDDED_OUT, LW_PULSAR_PONG, 1);
    ping(talk);
    assert_string_equal(lw_pulsar_command_name(talk_poll(talk, talker)->type), "UNKNOWN");
    talk_expect(talk, talker, LW_PULSAR_PONG);
    fault(talk, EMBEDDED_GARBAGE, EMBEDDED_OUT, LW_PULSAR_PONG, 1);
    ping(talk);
    talk_expect_end(talk, talker);
    assert_memory_equal(talker->in + talker->used, "\xff\xff\xff\xff", 4);
}

static void
unload(void *user)
{
    struct talk *talk = user;
    embedded_unload(talk->broker, "t", 0, false);
}

static void
anything_can_happen_at_a_frame(void **state)
{
    struct talk *talk = *state;
    struct talker *talker = &talk->talkers[0];
    talk_produce(talk, talker, 1, "p");
    embedded_add_fault(talk->broker, &(struct embedded_fault){ .kind = EMBEDDED_CALL,
                                                               .direction = EMBEDDED_OUT,
                                                               .type = LW_PULSAR_SEND_RECEIPT,
                                                               .fn = unload,
                                                               .user = talk });
    talk_publish(talk, talker, 1, 0, "a");
    talk_expect(talk, talker, LW_PULSAR_CLOSE_PRODUCER);
    assert_int_equal(receipt_entry(talk, 0), 0);
}

static void
frames_come_whole_when_written_byte_by_byte(void **state)
{
    struct talk *talk = *state;
    struct talker *talker = &talk->talkers[0];
    embedded_settings(talk->broker)->write_bytes_max = 1;
    talk_fill(talk, 3, 4, "k");
    talk_subscribe(talk, talker, LW_PULSAR_SUB_SHARED, 1, "x");
    talk_flow(talk, talker, 1, 12);
    assert_int_equal(talk_entries(talk, talker, NULL), 3);
}

static void
a_smaller_limit_holds_from_the_next_handshake(void **state)
{
    struct talk *talk = *state;
    embedded_settings(talk->broker)->max_message_size = 1000;
    struct talker *talker = talk_dial(talk, 1, 0);
    struct lw_pulsar_command hello = talk_connect_command();
    talk_send(talk, talker, &hello);
    assert_int_equal(talk_expect(talk, talker, LW_PULSAR_CONNECTED)->connected.max_message_size,
                     1000);
    static const uint8_t large[] = { 0, 0, 64, 0 };
    talk_send_bytes(talk, talker, large, sizeof large);
    talk_expect_end(talk, talker);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(versions_are_reduced_to_what_both_know),
        TEST(credentials_are_checked_and_asked_for_again),
        TEST(what_a_client_must_not_do_ends_its_connection),
        TEST(a_silent_client_is_pinged_and_then_left),
        TEST(lookups_lead_to_the_owner_and_only_it_serves),
        TEST(a_proxy_leads_to_the_broker_that_is_named),
        TEST(topics_and_partitions_must_be_looked_up_before_they_are_used),
        TEST(partitions_grow_with_their_subscriptions),
        TEST(a_watcher_hears_of_topics_that_come_and_go),
        TEST(what_was_sent_twice_is_stored_once_where_duplicates_are_known),
        TEST(a_name_is_taken_until_its_holder_is_found_dead),
        TEST(sends_after_the_broker_closed_a_producer_vanish),
        TEST(a_fenced_holder_is_told_nothing_and_loses_its_connection),
        TEST(a_migrated_topic_never_answers),
        TEST(a_connection_ends_before_the_nth_frame_in),
        TEST(a_connection_ends_before_or_after_a_frame_out),
        TEST(a_connection_is_cut_at_a_byte),
        TEST(receipts_are_lost_doubled_and_late),
        TEST(commands_are_refused_in_their_own_way),
        TEST(a_message_comes_with_a_wrong_checksum),
        TEST(silence_and_a_full_ear_end_when_the_script_is_cleared),
        TEST(garbage_and_unknown_commands_are_sent),
        TEST(anything_can_happen_at_a_frame),
        TEST(frames_come_whole_when_written_byte_by_byte),
        TEST(a_smaller_limit_holds_from_the_next_handshake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
