/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A publisher against the embedded broker when something is wrong: connections that end, refusals,
 * receipts that do not fit, topics that nobody may write to, time that runs out. Each publication
 * has its receipt once; what the broker stored is compared with what was promised.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "brokers/pulsar/wire/compress.h"
#include "tests/brokers/pulsar/publishing.h"

static struct publishing *publishing;

static int
set_up(void **state)
{
    (void)state;
    publishing = publishing_create();
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    publishing_destroy(publishing);
    return 0;
}

static void
fault(enum embedded_fault_kind kind, enum embedded_direction direction, int32_t type,
      uint32_t nth)
{
    struct embedded_fault it = {
        .kind = kind, .direction = direction, .type = type, .nth = nth
    };
    embedded_add_fault(publishing->broker, &it);
}

static void
refuse(int32_t type, uint32_t nth, uint32_t times, int32_t error, const char *text)
{
    struct embedded_fault it = { .kind = EMBEDDED_REFUSE,
                                 .direction = EMBEDDED_IN,
                                 .type = type,
                                 .nth = nth,
                                 .times = times,
                                 .error = error,
                                 .text = text };
    embedded_add_fault(publishing->broker, &it);
}

/* Lets backoffs pass until the receipts are there. */
static void
await(uint32_t receipts)
{
    for (int i = 0; i < 600 && publishing->receipts < receipts; i++) {
        publishing_pass_ms(publishing, 100);
    }
    publishing_until(publishing, receipts);
}

static uint64_t
frames_in(int32_t type)
{
    return embedded_counts(publishing->broker)->in[type];
}

static void
what_had_no_receipt_is_sent_again_in_order(void **state)
{
    (void)state;
    for (uint32_t nth = 1; nth <= 5; nth += 2) {
        if (nth > 1) {
            publishing_destroy(publishing);
            publishing = publishing_create();
        }
        publishing->broker_settings.is_deduplicating = true;
        publishing_start(publishing);
        fault(EMBEDDED_DROP_AFTER, EMBEDDED_IN, LW_PULSAR_SEND, nth);
        publishing_send(publishing, "t", 10);
        await(10);
        publishing_expect_all(publishing, LW_STATUS_OK);
        publishing_expect_stored(publishing, PUBLISHING_TOPIC, 10); /* none twice: same ids */
        assert_true(publishing_figures(publishing).sent_again > 0);
    }
}

static void
a_batch_is_sent_again_as_it_was(void **state)
{
    (void)state;
    struct lw_pulsar_metadata metadata[2];
    struct lw_bytes body[2];
    publishing->settings.batches = true;
    publishing_start(publishing);
    fault(EMBEDDED_LOSE, EMBEDDED_OUT, LW_PULSAR_SEND_RECEIPT, 1); /* it is stored */
    publishing_send(publishing, "t", 10);
    publishing_rest(publishing);
    embedded_drop_all(publishing->broker);
    await(10);
    publishing_expect_all(publishing, LW_STATUS_OK);
    assert_int_equal(embedded_entry_count(publishing->broker, PUBLISHING_TOPIC), 2);
    for (uint64_t i = 0; i < 2; i++) {
        assert_true(
            embedded_entry(publishing->broker, PUBLISHING_TOPIC, i, &metadata[i], &body[i]));
    }
    assert_int_equal(metadata[0].sequence_id, metadata[1].sequence_id);
    assert_int_equal(metadata[0].publish_time, metadata[1].publish_time);
    assert_int_equal(body[0].size, body[1].size);
    assert_memory_equal(body[0].data, body[1].data, body[0].size);
}

static void
chunks_are_sent_again_from_the_first(void **state)
{
    (void)state;
    static char large[20000];
    struct lw_pulsar_metadata metadata;
    struct lw_bytes body;
    publishing->broker_settings.max_message_size = 5000;
    publishing->settings.chunks = true;
    publishing_start(publishing);
    fault(EMBEDDED_LOSE, EMBEDDED_OUT, LW_PULSAR_SEND_RECEIPT, 3);
    publishing_item(publishing, "t", "")->value = (struct lw_bytes){ large, sizeof large };
    publishing_go(publishing);
    publishing_rest(publishing);
    assert_true(embedded_entry(publishing->broker, PUBLISHING_TOPIC, 0, &metadata, &body));
    uint64_t chunks = (uint64_t)metadata.num_chunks_from_msg;
    assert_int_equal(embedded_entry_count(publishing->broker, PUBLISHING_TOPIC), chunks);
    /* earlier receipts do not count any more: again one is missing */
    fault(EMBEDDED_LOSE, EMBEDDED_OUT, LW_PULSAR_SEND_RECEIPT, 2);
    embedded_drop_all(publishing->broker);
    publishing_pass_ms(publishing, 200);
    assert_int_equal(embedded_entry_count(publishing->broker, PUBLISHING_TOPIC), 2 * chunks);
    assert_int_equal(publishing->receipts, 0);
    embedded_drop_all(publishing->broker);
    await(1);
    publishing_expect_all(publishing, LW_STATUS_OK);
    assert_int_equal(embedded_entry_count(publishing->broker, PUBLISHING_TOPIC), 3 * chunks);
    assert_true(embedded_entry(publishing->broker, PUBLISHING_TOPIC, chunks, &metadata, &body));
    assert_int_equal(metadata.chunk_id, 0);
}

static void
a_generated_name_is_given_back_as_such_and_the_ids_go_on(void **state)
{
    (void)state;
    struct lw_pulsar_metadata first;
    struct lw_pulsar_metadata last;
    struct lw_bytes body;
    publishing_start(publishing);
    publishing_send(publishing, "t", 3);
    publishing_until(publishing, 3);
    embedded_drop_all(publishing->broker);
    publishing_rest(publishing);
    publishing_send(publishing, "t", 3);
    await(6);
    publishing_expect_all(publishing, LW_STATUS_OK);
    assert_true(embedded_entry(publishing->broker, PUBLISHING_TOPIC, 0, &first, &body));
    assert_true(embedded_entry(publishing->broker, PUBLISHING_TOPIC, 5, &last, &body));
    assert_int_equal(first.sequence_id, 0);
    assert_int_equal(last.sequence_id, 5);
    assert_int_equal(first.producer_name.size, last.producer_name.size);
    assert_memory_equal(first.producer_name.data, last.producer_name.data,
                        first.producer_name.size);
}

static void
a_name_of_ours_goes_on_where_it_ended(void **state)
{
    (void)state;
    struct lw_pulsar_metadata metadata;
    struct lw_bytes body;
    publishing->broker_settings.is_deduplicating = true;
    publishing->settings.producer_name = "me";
    publishing_start(publishing);
    publishing_send(publishing, "t", 3);
    publishing_until(publishing, 3);
    publishing_pass_ms(publishing, 61000);
    publishing_pass_ms(publishing, 61000);
    assert_int_equal(embedded_producers(publishing->broker, NULL), 0);
    publishing_send(publishing, "t", 1);
    await(4);
    assert_true(embedded_entry(publishing->broker, PUBLISHING_TOPIC, 3, &metadata, &body));
    assert_int_equal(metadata.sequence_id, 3);
    assert_memory_equal(metadata.producer_name.data, "me-persistent://", 16);
}

static void
an_unloaded_topic_is_followed(void **state)
{
    (void)state;
    publishing_start(publishing);
    publishing_send(publishing, "t", 3);
    publishing_until(publishing, 3);
    embedded_unload(publishing->broker, "t", 0, false);
    publishing_send(publishing, "t", 3); /* into a producer that the broker has closed */
    await(6);
    publishing_expect_all(publishing, LW_STATUS_OK);
    assert_int_equal(embedded_message_count(publishing->broker, PUBLISHING_TOPIC), 6);
    assert_int_equal(embedded_counts(publishing->broker)->connections, 1);
}

static void
an_assigned_broker_is_taken_at_once_without_a_lookup(void **state)
{
    (void)state;
    publishing->broker_settings.needs_lookup = false;
    publishing_start(publishing);
    int member = embedded_add_member(publishing->broker, false);
    publishing_send(publishing, "t", 1);
    publishing_until(publishing, 1);
    uint64_t lookups = frames_in(LW_PULSAR_LOOKUP);
    embedded_unload(publishing->broker, "t", member, true);
    publishing_rest(publishing);
    publishing_send(publishing, "t", 1);
    publishing_until(publishing, 2);
    assert_int_equal(frames_in(LW_PULSAR_LOOKUP), lookups);
    publishing_expect_all(publishing, LW_STATUS_OK);
}

/* -- Receipts and refusals ----------------------------------------------------------------------------- */

static void
a_lost_receipt_makes_the_next_one_wrong_and_all_is_sent_again(void **state)
{
    (void)state;
    publishing->broker_settings.is_deduplicating = true;
    publishing_start(publishing);
    fault(EMBEDDED_LOSE, EMBEDDED_OUT, LW_PULSAR_SEND_RECEIPT, 2);
    publishing_send(publishing, "t", 5);
    await(5);
    publishing_expect_all(publishing, LW_STATUS_OK);
    publishing_expect_stored(publishing, PUBLISHING_TOPIC, 5);
    assert_int_equal(embedded_counts(publishing->broker)->connections, 2);
}

static void
a_doubled_receipt_is_ignored(void **state)
{
    (void)state;
    publishing_start(publishing);
    fault(EMBEDDED_DUPLICATE, EMBEDDED_OUT, LW_PULSAR_SEND_RECEIPT, 2);
    publishing_send(publishing, "t", 5);
    publishing_until(publishing, 5);
    publishing_expect_all(publishing, LW_STATUS_OK);
    assert_int_equal(embedded_counts(publishing->broker)->connections, 1);
}

/* Or the message would count as stored when its last chunk is not. */
static void
a_doubled_receipt_of_a_chunk_is_ignored(void **state)
{
    (void)state;
    static char large[8000];
    publishing->broker_settings.max_message_size = 5000;
    publishing->settings.chunks = true;
    publishing_start(publishing);
    fault(EMBEDDED_DUPLICATE, EMBEDDED_OUT, LW_PULSAR_SEND_RECEIPT, 1);
    fault(EMBEDDED_LOSE, EMBEDDED_IN, LW_PULSAR_SEND, 2);
    publishing_item(publishing, "t", "")->value = (struct lw_bytes){ large, sizeof large };
    publishing_go(publishing);
    publishing_rest(publishing);
    assert_int_equal(publishing->receipts, 0);
    embedded_drop_all(publishing->broker);
    await(1);
    publishing_expect_all(publishing, LW_STATUS_OK);
    assert_int_equal(embedded_entry_count(publishing->broker, PUBLISHING_TOPIC), 3);
}

static void
a_storage_error_sends_all_again_in_order(void **state)
{
    (void)state;
    publishing->broker_settings.is_deduplicating = true;
    publishing_start(publishing);
    refuse(LW_PULSAR_SEND, 2, 1, LW_PULSAR_PERSISTENCE_ERROR, "no bookies");
    publishing_send(publishing, "t", 1);
    publishing_until(publishing, 1);
    publishing_send(publishing, "t2", 1);
    await(2);
    publishing_expect_all(publishing, LW_STATUS_OK);
    assert_int_equal(embedded_counts(publishing->broker)->connections, 2);
}

static void
a_refused_message_fails_alone(void **state)
{
    (void)state;
    publishing_start(publishing);
    refuse(LW_PULSAR_SEND, 2, 1, LW_PULSAR_NOT_ALLOWED, "Exceed maximum message size");
    publishing_send(publishing, "t", 4);
    publishing_until(publishing, 4);
    const enum lw_status expected[] = { LW_STATUS_OK, LW_STATUS_TOO_LARGE, LW_STATUS_OK,
                                        LW_STATUS_OK };
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(publishing->statuses[i], expected[i]);
    }
    assert_int_equal(embedded_counts(publishing->broker)->connections, 1);
}

static void
the_messages_of_a_refused_batch_go_one_by_one(void **state)
{
    (void)state;
    publishing->settings.batches = true;
    publishing_start(publishing);
    refuse(LW_PULSAR_SEND, 1, 1, LW_PULSAR_NOT_ALLOWED, "Exceed maximum message size");
    publishing_send(publishing, "t", 5);
    publishing_until(publishing, 5);
    publishing_expect_all(publishing, LW_STATUS_OK);
    publishing_expect_stored(publishing, PUBLISHING_TOPIC, 5);
    assert_int_equal(embedded_entry_count(publishing->broker, PUBLISHING_TOPIC), 5);
}

static void
a_checksum_that_the_broker_disputes_is_sent_again(void **state)
{
    (void)state;
    publishing_start(publishing);
    refuse(LW_PULSAR_SEND, 1, 1, LW_PULSAR_CHECKSUM_ERROR, "Checksum failed on the broker");
    publishing_send(publishing, "t", 2);
    await(2);
    publishing_expect_all(publishing, LW_STATUS_OK);
    assert_int_equal(embedded_counts(publishing->broker)->connections, 2);
}

static void
a_smaller_limit_after_a_reconnect_concerns_the_large_message_only(void **state)
{
    (void)state;
    static char large[6000];
    publishing_start(publishing);
    fault(EMBEDDED_DROP, EMBEDDED_IN, LW_PULSAR_SEND, 1);
    (void)publishing_item(publishing, "t", "0");
    publishing_item(publishing, "t", "")->value = (struct lw_bytes){ large, sizeof large };
    (void)publishing_item(publishing, "t", "1");
    publishing_go(publishing);
    publishing_rest(publishing);
    embedded_settings(publishing->broker)->max_message_size = 5000;
    await(3);
    assert_int_equal(publishing->statuses[0], LW_STATUS_OK);
    assert_int_equal(publishing->statuses[1], LW_STATUS_TOO_LARGE);
    assert_int_equal(publishing->statuses[2], LW_STATUS_OK);
    assert_int_equal(embedded_counts(publishing->broker)->connections, 2);
}

/* -- Creating ------------------------------------------------------------------------------------------ */

static void
no_right_stops_the_topic_says_so_once_and_passes(void **state)
{
    (void)state;
    publishing_start(publishing);
    refuse(LW_PULSAR_PRODUCER, 1, 2, LW_PULSAR_AUTHORIZATION_ERROR, "no");
    publishing_send(publishing, "t", 2);
    publishing_until(publishing, 2);
    publishing_expect_all(publishing, LW_STATUS_DENIED);
    publishing_send(publishing, "t", 1);
    await(3);
    assert_int_equal(publishing->statuses[2], LW_STATUS_DENIED);
    assert_int_equal(publishing->blocked, 1);
    assert_string_equal(publishing->blocked_topic, PUBLISHING_TOPIC);
    publishing_send(publishing, "t", 1);
    await(4);
    assert_int_equal(publishing->statuses[3], LW_STATUS_OK);
    assert_int_equal(publishing->blocked, 1);
    assert_int_equal(publishing->unblocked, 1);
}

static void
a_topic_that_is_not_there_is_not_found(void **state)
{
    (void)state;
    publishing->broker_settings.creates_topics = false;
    publishing_start(publishing);
    publishing_send(publishing, "t", 1);
    await(1);
    publishing_expect_all(publishing, LW_STATUS_NOT_FOUND);
    assert_int_equal(publishing->blocked, 1);
    embedded_create_topic(publishing->broker, "t");
    publishing_send(publishing, "t", 1);
    await(2);
    assert_int_equal(publishing->statuses[1], LW_STATUS_OK);
    assert_int_equal(publishing->unblocked, 1);
}

static void
a_broker_that_is_starting_is_waited_for(void **state)
{
    (void)state;
    publishing->broker_settings.warmup_ms = 1500;
    publishing_start(publishing);
    publishing_send(publishing, "t", 1);
    await(1);
    publishing_expect_all(publishing, LW_STATUS_OK);
}

static void
a_name_that_is_taken_is_tried_beyond_the_brokers_five_seconds(void **state)
{
    (void)state;
    publishing_start(publishing);
    refuse(LW_PULSAR_PRODUCER, 1, 7, LW_PULSAR_PRODUCER_BUSY, "already connected");
    publishing_send(publishing, "t", 1);
    publishing_pass_ms(publishing, 6000);
    assert_int_equal(publishing->receipts, 0);
    await(1);
    publishing_expect_all(publishing, LW_STATUS_OK);
}

static void
a_producer_without_an_answer_is_taken_back_before_the_next_attempt(void **state)
{
    (void)state;
    publishing->settings.send_timeout_ns = 0;
    publishing_start(publishing);
    fault(EMBEDDED_LOSE, EMBEDDED_OUT, LW_PULSAR_PRODUCER_SUCCESS, 1);
    publishing_send(publishing, "t", 1);
    publishing_rest(publishing);
    publishing_pass_ms(publishing, 31000);
    await(1);
    publishing_expect_all(publishing, LW_STATUS_OK);
    assert_int_equal(frames_in(LW_PULSAR_PRODUCER), 2);
    assert_int_equal(frames_in(LW_PULSAR_CLOSE_PRODUCER), 1);
}

/* The close was for the producer of before; what is made since must not stay as a ghost. */
static void
a_close_that_crosses_the_making_of_a_producer_leaves_nobody_behind(void **state)
{
    struct embedded_fault late = { .kind = EMBEDDED_DELAY,
                                   .direction = EMBEDDED_OUT,
                                   .type = LW_PULSAR_PRODUCER_SUCCESS,
                                   .ms = 1000 };
    struct lw_pulsar_command stale = lw_pulsar_command_of(LW_PULSAR_CLOSE_PRODUCER);
    (void)state;
    publishing->broker_settings.proxy_flag = false;
    publishing_start(publishing);
    int other = embedded_add_member(publishing->broker, false);
    embedded_add_fault(publishing->broker, &late);
    publishing_send(publishing, "t", 1);
    publishing_rest(publishing);
    assert_int_equal(embedded_producers(publishing->broker, NULL), 1);
    stale.close_producer.id = 0;
    stale.close_producer.request_id = LW_PULSAR_NO_REQUEST;
    embedded_say(publishing->broker, &stale);
    embedded_set_owner(publishing->broker, PUBLISHING_TOPIC, other);
    await(1);
    embedded_pass_ms(publishing->broker, 2000);
    publishing_rest(publishing);
    publishing_expect_all(publishing, LW_STATUS_OK);
    assert_int_equal(embedded_producers(publishing->broker, NULL), 1);
}

static void
a_full_quota_keeps_messages_and_is_said(void **state)
{
    (void)state;
    publishing_start(publishing);
    refuse(LW_PULSAR_PRODUCER, 1, 3, LW_PULSAR_QUOTA_EXCEEDED_EXCEPTION, "backlog quota");
    publishing_send(publishing, "t", 3);
    publishing_rest(publishing);
    assert_int_equal(publishing->blocked, 1);
    assert_int_equal(publishing->receipts, 0);
    await(3);
    publishing_expect_all(publishing, LW_STATUS_OK);
    assert_int_equal(publishing->unblocked, 1);
}

static void
a_terminated_topic_is_denied_and_what_was_sent_is_unknown(void **state)
{
    (void)state;
    publishing_start(publishing);
    publishing_send(publishing, "t", 1);
    publishing_until(publishing, 1);
    embedded_terminate(publishing->broker, "t");
    publishing_send(publishing, "t", 2);
    await(3);
    assert_int_equal(publishing->blocked, 1);
    assert_true(publishing->statuses[1] == LW_STATUS_UNKNOWN ||
                publishing->statuses[1] == LW_STATUS_DENIED);
    publishing_send(publishing, "t", 1);
    await(4);
    assert_int_equal(publishing->statuses[3], LW_STATUS_DENIED);
    assert_int_equal(publishing->blocked, 1);
}

static void
an_enforced_schema_is_asked_for_and_its_version_carried(void **state)
{
    (void)state;
    struct lw_pulsar_metadata metadata;
    struct lw_bytes body;
    publishing->broker_settings.enforces_schema = true;
    publishing_start(publishing);
    embedded_create_topic(publishing->broker, "t");
    embedded_set_schema(publishing->broker, "t", 2, "{\"type\":\"record\"}");
    publishing_send(publishing, "t", 1);
    await(1);
    publishing_expect_all(publishing, LW_STATUS_OK);
    assert_true(embedded_entry(publishing->broker, PUBLISHING_TOPIC, 0, &metadata, &body));
    assert_int_equal(metadata.schema_version.size, 8);
    assert_int_equal(publishing->blocked, 0);
}

/* -- Time ------------------------------------------------------------------------------------------------ */

static void
without_a_receipt_in_time_a_message_is_unknown_and_a_late_one_ignored(void **state)
{
    (void)state;
    publishing->settings.send_timeout_ns = 5000 * LW_MS;
    publishing_start(publishing);
    publishing_send(publishing, "t", 1);
    publishing_until(publishing, 1);
    struct embedded_fault slow = { .kind = EMBEDDED_DELAY,
                                   .direction = EMBEDDED_OUT,
                                   .type = LW_PULSAR_SEND_RECEIPT,
                                   .nth = 1,
                                   .ms = 8000 };
    embedded_add_fault(publishing->broker, &slow);
    publishing_send(publishing, "t", 1);
    publishing_pass_ms(publishing, 4900);
    assert_int_equal(publishing->receipts, 1);
    publishing_pass_ms(publishing, 200);
    assert_int_equal(publishing->receipts, 2);
    assert_int_equal(publishing->statuses[1], LW_STATUS_UNKNOWN);
    publishing_pass_ms(publishing, 4000);
    publishing_send(publishing, "t", 1);
    publishing_until(publishing, 3);
    assert_int_equal(publishing->statuses[2], LW_STATUS_OK);
    assert_int_equal(embedded_counts(publishing->broker)->connections, 1);
}

static void
what_was_never_sent_is_unavailable_when_its_time_is_over(void **state)
{
    (void)state;
    publishing->settings.send_timeout_ns = 5000 * LW_MS;
    publishing_start(publishing);
    embedded_set_listening(publishing->broker, 0, false);
    publishing_send(publishing, "t", 3);
    publishing_pass_ms(publishing, 5100);
    publishing_until(publishing, 3);
    publishing_expect_all(publishing, LW_STATUS_UNAVAILABLE);
    embedded_set_listening(publishing->broker, 0, true);
}

static void
an_outage_is_said_once_and_does_not_hold_up_other_topics(void **state)
{
    (void)state;
    publishing->settings.pending_max = 5;
    publishing_start(publishing);
    refuse(LW_PULSAR_PRODUCER, 1, UINT32_MAX, LW_PULSAR_PRODUCER_BUSY, "taken");
    publishing_send(publishing, "t", 5);
    for (int i = 0; i < 30; i++) {
        publishing_pass_ms(publishing, 100);
    }
    publishing_send(publishing, "t", 1); /* no room, and there will be none soon */
    publishing_until(publishing, 1);
    assert_int_equal(publishing->statuses[5], LW_STATUS_UNAVAILABLE);
    assert_int_equal(publishing->blocked, 1);
    embedded_clear_faults(publishing->broker);
    await(6);
}

static void
a_silent_broker_leaves_messages_unknown_at_the_end(void **state)
{
    (void)state;
    publishing_start(publishing);
    publishing_send(publishing, "t", 1);
    publishing_until(publishing, 1);
    fault(EMBEDDED_LOSE, EMBEDDED_OUT, LW_PULSAR_SEND_RECEIPT, 1);
    publishing_send(publishing, "t", 1);
    publishing_rest(publishing);
    uint64_t deadline = publishing->world.host->now + 2000 * LW_MS;
    lw_pulsar_publisher_close(publishing->publisher, deadline);
    publishing_pass_ms(publishing, 1900);
    assert_int_equal(publishing->closed, 0);
    publishing_pass_ms(publishing, 200);
    assert_int_equal(publishing->closed, 1);
    assert_int_equal(publishing->statuses[1], LW_STATUS_UNKNOWN);
}

static void
bytes_may_go_while_a_socket_still_has_to_take_them(void **state)
{
    (void)state;
    enum { LARGE = 4 * 1024 * 1024, COUNT = 8 };
    char *large[COUNT];
    publishing->settings.send_timeout_ns = 3000 * LW_MS;
    publishing_start(publishing);
    publishing_send(publishing, "t", 1);
    publishing_until(publishing, 1);
    fault(EMBEDDED_STOP_READING, EMBEDDED_IN, LW_PULSAR_SEND, 1);
    for (size_t i = 0; i < COUNT; i++) {
        large[i] = calloc(1, LARGE);
        assert_non_null(large[i]);
        publishing_item(publishing, "t", "")->value = (struct lw_bytes){ large[i], LARGE };
    }
    publishing_go(publishing);
    publishing_rest(publishing);
    publishing_pass_ms(publishing, 3100);
    publishing_until(publishing, 1 + COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        memset(large[i], 0xaa, LARGE);
        free(large[i]); /* a sanitizer sees whoever still reads it */
    }
    embedded_clear_faults(publishing->broker);
    publishing_rest(publishing);
    assert_int_equal(publishing->statuses[1], LW_STATUS_OK); /* it was read whole */
    assert_int_equal(publishing->statuses[2], LW_STATUS_UNKNOWN);
    assert_int_equal(publishing->statuses[COUNT], LW_STATUS_UNAVAILABLE); /* never sent */
}

/* -- Memory ---------------------------------------------------------------------------------------------- */

/* Publishes what is not yet accepted; no room means that memory was short, and passes. */
static uint32_t
publish_rest(uint32_t done, uint32_t count)
{
    struct lw_publication *items[64];
    for (uint32_t i = done; i < count; i++) {
        items[i - done] = &publishing->items[i];
    }
    publishing->count = count; /* receipts of any of them may come */
    size_t accepted = lw_pulsar_publisher_publish(publishing->publisher, items, count - done);
    return done + (uint32_t)accepted;
}

static void
run_short_of_memory(uint64_t nth)
{
    enum { COUNT = 40 };
    uint32_t done = 0;
    publishing->settings.batches = true;
    publishing->settings.compression = LW_PULSAR_COMPRESSION_LZ4;
    publishing_start(publishing);
    for (uint32_t i = 0; i < COUNT; i++) {
        struct lw_publication *item = publishing_item(publishing, i % 2 ? "t" : "t2", "value");
        item->delay_ms = i % 10 == 5 ? 2000 : 0;
        item->key = lw_bytes_of(i % 3 ? "k" : NULL);
    }
    lw_alloc_fail_at(nth);
    for (int i = 0; i < 200 && (done < COUNT || publishing->receipts < COUNT); i++) {
        done = publish_rest(done, COUNT);
        publishing_pass_ms(publishing, 100);
    }
    lw_alloc_fail_at(0);
    assert_int_equal(done, COUNT);
    assert_int_equal(publishing->receipts, COUNT);
}

static void
a_failed_allocation_anywhere_costs_no_receipt(void **state)
{
    (void)state;
    for (uint64_t nth = 1; nth <= 120; nth++) {
        if (nth > 1) {
            publishing_destroy(publishing);
            publishing = publishing_create();
        }
        run_short_of_memory(nth);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_had_no_receipt_is_sent_again_in_order),
        TEST(a_batch_is_sent_again_as_it_was),
        TEST(chunks_are_sent_again_from_the_first),
        TEST(a_generated_name_is_given_back_as_such_and_the_ids_go_on),
        TEST(a_name_of_ours_goes_on_where_it_ended),
        TEST(an_unloaded_topic_is_followed),
        TEST(an_assigned_broker_is_taken_at_once_without_a_lookup),
        TEST(a_lost_receipt_makes_the_next_one_wrong_and_all_is_sent_again),
        TEST(a_doubled_receipt_is_ignored),
        TEST(a_doubled_receipt_of_a_chunk_is_ignored),
        TEST(a_storage_error_sends_all_again_in_order),
        TEST(a_refused_message_fails_alone),
        TEST(the_messages_of_a_refused_batch_go_one_by_one),
        TEST(a_checksum_that_the_broker_disputes_is_sent_again),
        TEST(a_smaller_limit_after_a_reconnect_concerns_the_large_message_only),
        TEST(no_right_stops_the_topic_says_so_once_and_passes),
        TEST(a_topic_that_is_not_there_is_not_found),
        TEST(a_broker_that_is_starting_is_waited_for),
        TEST(a_name_that_is_taken_is_tried_beyond_the_brokers_five_seconds),
        TEST(a_producer_without_an_answer_is_taken_back_before_the_next_attempt),
        TEST(a_close_that_crosses_the_making_of_a_producer_leaves_nobody_behind),
        TEST(a_full_quota_keeps_messages_and_is_said),
        TEST(a_terminated_topic_is_denied_and_what_was_sent_is_unknown),
        TEST(an_enforced_schema_is_asked_for_and_its_version_carried),
        TEST(without_a_receipt_in_time_a_message_is_unknown_and_a_late_one_ignored),
        TEST(what_was_never_sent_is_unavailable_when_its_time_is_over),
        TEST(an_outage_is_said_once_and_does_not_hold_up_other_topics),
        TEST(a_silent_broker_leaves_messages_unknown_at_the_end),
        TEST(bytes_may_go_while_a_socket_still_has_to_take_them),
        TEST(a_failed_allocation_anywhere_costs_no_receipt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
