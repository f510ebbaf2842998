/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries as they leave: what is made of a publication is read back by the wire's decoders, as a
 * broker and a consumer would.
 */
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#include "brokers/pulsar/producer_encode.h"
#include "brokers/pulsar/wire/compress.h"

#define WALL_MS INT64_C(1700000000000)

enum { VALUE_BYTES = 1000 };

static struct lw_pulsar_ops ops;
static struct lw_pulsar_encoding encoding;
static uint8_t value[VALUE_BYTES];

static int
set_up(void **state)
{
    (void)state;
    assert_int_equal(lw_pulsar_ops_init(&ops, 100), LW_STATUS_OK);
    encoding = (struct lw_pulsar_encoding){ .ops = &ops,
                                            .producer_id = 3,
                                            .producer_name = lw_bytes_of("me"),
                                            .message_bytes_max = 1000000,
                                            .next_id = 7,
                                            .wall_ms = WALL_MS };
    memset(value, 'x', sizeof value);
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    assert_int_equal(ops.pool.taken_count, 0);
    lw_pulsar_ops_deinit(&ops);
    return 0;
}

static struct lw_publication
publication_of(const char *key, struct lw_bytes bytes)
{
    return (struct lw_publication){
        .partition = -1, .key = lw_bytes_of(key), .value = bytes, .event_time_ms = -1
    };
}

static struct lw_pulsar_op *
single(struct lw_publication *publication)
{
    struct lw_pulsar_op *op = NULL;
    struct lw_pulsar_waiting item = { .publication = publication, .deadline = 5 };
    assert_int_equal(lw_pulsar_encode_single(&encoding, &item, &op), LW_STATUS_OK);
    return op;
}

/* A frame as a broker reads it. */
struct read {
    struct lw_pulsar_command command;
    struct lw_pulsar_metadata metadata;
    struct lw_bytes body;
    uint8_t *bytes;
};

static struct read
read_frame(const struct lw_pulsar_op *op, uint32_t index)
{
    const struct lw_pulsar_frame *frame = &op->frames[index];
    struct lw_bytes head = lw_pulsar_frame_head(op, frame);
    struct read read = { .bytes = malloc(head.size + frame->output.body.size + 1) };
    struct lw_pulsar_payload payload;
    assert_non_null(read.bytes);
    memcpy(read.bytes, head.data, head.size);
    if (frame->output.body.size > 0) {
        memcpy(read.bytes + head.size, frame->output.body.data, frame->output.body.size);
    }
    struct lw_pulsar_scan scan = lw_pulsar_frame_scan(
        read.bytes, head.size + frame->output.body.size, 1 << 24);
    assert_int_equal(scan.state, LW_PULSAR_SCAN_FRAME);
    assert_int_equal(scan.size, head.size + frame->output.body.size);
    assert_int_equal(lw_pulsar_command_decode(scan.command, &read.command), LW_PULSAR_OK);
    assert_int_equal(lw_pulsar_payload_open(scan.rest, &payload), LW_PULSAR_OK);
    assert_true(payload.has_checksum);
    assert_int_equal(lw_pulsar_metadata_decode(payload.metadata, &read.metadata), LW_PULSAR_OK);
    assert_int_equal(payload.metadata.size + payload.body.size,
                     lw_pulsar_frame_message_bytes(op, frame));
    assert_true(lw_pulsar_frame_is_sound(op, frame));
    read.body = payload.body;
    return read;
}

static void
assert_bytes(struct lw_bytes bytes, const char *text)
{
    assert_int_equal(bytes.size, strlen(text));
    assert_memory_equal(bytes.data, text, bytes.size);
}

static void
a_single_message_keeps_its_bytes_where_they_are(void **state)
{
    (void)state;
    struct lw_publication publication = publication_of("k", (struct lw_bytes){ value, 1000 });
    struct lw_pulsar_op *op = single(&publication);
    struct read read = read_frame(op, 0);
    assert_ptr_equal(op->frames[0].output.body.data, value);
    assert_int_equal(ops.copies, 0);
    assert_int_equal(read.command.send.producer_id, 3);
    assert_int_equal(read.command.send.sequence_id, 7);
    assert_int_equal(read.metadata.sequence_id, 7);
    assert_int_equal(read.metadata.publish_time, WALL_MS);
    assert_bytes(read.metadata.producer_name, "me");
    assert_bytes(read.metadata.partition_key, "k");
    assert_false(lw_pulsar_metadata_is_batch(&read.metadata));
    assert_int_equal(encoding.next_id, 8);
    free(read.bytes);
    lw_pulsar_op_give(&ops, op);
}

static void
headers_become_properties_in_order_with_their_duplicates(void **state)
{
    (void)state;
    const struct lw_header headers[] = { { lw_bytes_of("b"), lw_bytes_of("1") },
                                         { lw_bytes_of("a"), { NULL, 0 } },
                                         { lw_bytes_of("b"), lw_bytes_of("2") } };
    struct lw_publication publication = publication_of(NULL, lw_bytes_of("v"));
    publication.headers = headers;
    publication.header_count = 3;
    struct lw_pulsar_op *op = single(&publication);
    struct read read = read_frame(op, 0);
    struct lw_pulsar_walk walk = lw_pulsar_list_walk(&read.metadata.properties);
    struct lw_pulsar_pair pair;
    const char *const expected[] = { "b1", "a", "b2" };
    for (size_t i = 0; i < 3; i++) {
        assert_true(lw_pulsar_walk_pair(&walk, &pair));
        assert_int_equal(pair.key.size + pair.value.size, strlen(expected[i]));
        assert_memory_equal(pair.key.data, expected[i], 1);
    }
    assert_false(lw_pulsar_walk_pair(&walk, &pair));
    assert_null(read.metadata.partition_key.data);
    free(read.bytes);
    lw_pulsar_op_give(&ops, op);
}

static void
a_key_of_bytes_goes_in_base64_with_a_mark(void **state)
{
    (void)state;
    const char *const texts[] = { "/w==", "/wA=", "/wAB" };
    const uint8_t bytes[] = { 0xff, 0x00, 0x01 };
    for (size_t i = 0; i < 3; i++) {
        struct lw_publication publication = publication_of(NULL, lw_bytes_of("v"));
        publication.key = (struct lw_bytes){ bytes, i + 1 };
        struct lw_pulsar_op *op = single(&publication);
        struct read read = read_frame(op, 0);
        assert_true(read.metadata.is_key_b64);
        assert_bytes(read.metadata.partition_key, texts[i]);
        free(read.bytes);
        lw_pulsar_op_give(&ops, op);
    }
}

static void
null_values_times_and_ordering_keys_are_carried(void **state)
{
    (void)state;
    struct lw_publication publication = publication_of("", (struct lw_bytes){ NULL, 0 });
    publication.event_time_ms = 99;
    publication.delay_ms = 5000;
    publication.ordering_key = lw_bytes_of("o");
    struct lw_pulsar_op *op = single(&publication);
    struct read read = read_frame(op, 0);
    assert_true(read.metadata.null_value);
    assert_int_equal(read.metadata.event_time, 99);
    assert_int_equal(read.metadata.deliver_at_time, WALL_MS + 5000);
    assert_bytes(read.metadata.ordering_key, "o");
    assert_non_null(read.metadata.partition_key.data);
    assert_int_equal(read.metadata.partition_key.size, 0);
    free(read.bytes);
    lw_pulsar_op_give(&ops, op);
}

static void
metadata_counts_for_the_limit_to_the_byte(void **state)
{
    (void)state;
    struct lw_publication publication = publication_of("k", (struct lw_bytes){ value, 1000 });
    struct lw_pulsar_op *op = single(&publication);
    size_t bytes = lw_pulsar_frame_message_bytes(op, &op->frames[0]);
    lw_pulsar_op_give(&ops, op);
    struct lw_pulsar_waiting item = { .publication = &publication };
    encoding.message_bytes_max = bytes - 1;
    assert_int_equal(lw_pulsar_encode_single(&encoding, &item, &op), LW_STATUS_TOO_LARGE);
    assert_int_equal(encoding.next_id, 8); /* it took none */
    encoding.message_bytes_max = bytes;
    lw_pulsar_op_give(&ops, single(&publication));
}

static void
the_size_is_that_after_compression(void **state)
{
    (void)state;
    for (int32_t kind = LW_PULSAR_COMPRESSION_LZ4; kind < LW_PULSAR_COMPRESSION_COUNT; kind++) {
        struct lw_publication publication = publication_of("k",
                                                           (struct lw_bytes){ value, 1000 });
        uint8_t plain[VALUE_BYTES];
        encoding.compression = kind;
        encoding.message_bytes_max = 200;
        struct lw_pulsar_op *op = single(&publication);
        struct read read = read_frame(op, 0);
        assert_int_equal(read.metadata.compression, kind);
        assert_int_equal(read.metadata.uncompressed_size, 1000);
        assert_int_equal(lw_pulsar_decompress(ops.codec, kind, read.body, plain, sizeof plain),
                         LW_PULSAR_OK);
        assert_memory_equal(plain, value, sizeof plain);
        free(read.bytes);
        lw_pulsar_op_give(&ops, op);
    }
}

static void
what_compression_does_not_make_smaller_is_sent_as_it_is(void **state)
{
    (void)state;
    struct lw_publication publication = publication_of("k", lw_bytes_of("abc"));
    encoding.compression = LW_PULSAR_COMPRESSION_ZSTD;
    struct lw_pulsar_op *op = single(&publication);
    struct read read = read_frame(op, 0);
    assert_int_equal(read.metadata.compression, LW_PULSAR_COMPRESSION_NONE);
    assert_ptr_equal(op->frames[0].output.body.data, publication.value.data);
    free(read.bytes);
    lw_pulsar_op_give(&ops, op);
}

/* -- Batches ---------------------------------------------------------------------------------------- */

static struct lw_pulsar_op *
batch_of(struct lw_publication *publications, uint32_t count)
{
    struct lw_pulsar_waiting items[4];
    struct lw_pulsar_open_batch batch = { .items = items, .count = count };
    struct lw_pulsar_op *op = NULL;
    for (uint32_t i = 0; i < count; i++) {
        items[i] = (struct lw_pulsar_waiting){ .publication = &publications[i] };
        batch.bytes += lw_pulsar_member_bytes_max(&publications[i]);
    }
    assert_int_equal(lw_pulsar_encode_batch(&encoding, &batch, &op), LW_STATUS_OK);
    return op;
}

static void
a_batch_has_the_first_key_outside_and_all_inside(void **state)
{
    (void)state;
    struct lw_publication publications[] = { publication_of("k1", lw_bytes_of("one")),
                                             publication_of("k2", (struct lw_bytes){ NULL, 0 }),
                                             publication_of(NULL, lw_bytes_of("")) };
    publications[0].ordering_key = lw_bytes_of("o");
    struct lw_pulsar_op *op = batch_of(publications, 3);
    struct read read = read_frame(op, 0);
    assert_int_equal(read.command.send.num_messages, 3);
    assert_int_equal(read.command.send.sequence_id, 7);
    assert_int_equal(read.command.send.highest_sequence_id, 9);
    assert_int_equal(read.metadata.num_messages_in_batch, 3);
    assert_int_equal(read.metadata.highest_sequence_id, 9);
    assert_bytes(read.metadata.partition_key, "k1");
    assert_bytes(read.metadata.ordering_key, "o");
    struct lw_pulsar_batch batch;
    struct lw_pulsar_member member;
    assert_int_equal(lw_pulsar_batch_open(&read.metadata, read.body, &batch), LW_PULSAR_OK);
    for (uint64_t i = 0; i < 3; i++) {
        assert_true(lw_pulsar_batch_next(&batch, &member));
        assert_int_equal(member.metadata.sequence_id, 7 + i);
        assert_int_equal(member.value.data == NULL, i == 1);
    }
    assert_int_equal(encoding.next_id, 10);
    assert_int_equal(ops.copies, 3);
    free(read.bytes);
    lw_pulsar_op_give(&ops, op);
}

/* -- Chunks ----------------------------------------------------------------------------------------- */

static void
chunks_stay_within_the_limit_and_make_the_message(void **state)
{
    (void)state;
    struct lw_publication publication = publication_of("k", (struct lw_bytes){ value, 1000 });
    encoding.chunks = true;
    encoding.message_bytes_max = 300;
    struct lw_pulsar_op *op = single(&publication);
    assert_true(op->frame_count > 3);
    size_t at = 0;
    for (uint32_t i = 0; i < op->frame_count; i++) {
        struct read read = read_frame(op, i);
        assert_true(lw_pulsar_frame_message_bytes(op, &op->frames[i]) <= 300);
        assert_true(read.command.send.is_chunk);
        assert_int_equal(read.command.send.sequence_id, 7);
        assert_true(lw_pulsar_metadata_is_chunk(&read.metadata));
        assert_bytes(read.metadata.uuid, "me-7");
        assert_int_equal(read.metadata.chunk_id, i);
        assert_int_equal(read.metadata.num_chunks_from_msg, op->frame_count);
        assert_int_equal(read.metadata.total_chunk_msg_size, 1000);
        assert_bytes(read.metadata.partition_key, "k");
        assert_ptr_equal(op->frames[i].output.body.data, value + at);
        at += read.body.size;
        free(read.bytes);
    }
    assert_int_equal(at, 1000);
    assert_int_equal(encoding.next_id, 8);
    lw_pulsar_op_give(&ops, op);
}

static void
a_message_whose_metadata_fill_the_limit_is_too_large_even_in_chunks(void **state)
{
    (void)state;
    struct lw_publication publication = publication_of(NULL, lw_bytes_of("v"));
    struct lw_header header = { lw_bytes_of("h"), { value, 1000 } };
    struct lw_pulsar_waiting item = { .publication = &publication };
    struct lw_pulsar_op *op = NULL;
    publication.headers = &header;
    publication.header_count = 1;
    encoding.chunks = true;
    encoding.message_bytes_max = 500;
    assert_int_equal(lw_pulsar_encode_single(&encoding, &item, &op), LW_STATUS_TOO_LARGE);
}

/* -- Receipts and changes ---------------------------------------------------------------------------- */

static void
a_receipt_is_of_the_oldest_within_its_ids_late_below_and_wrong_above(void **state)
{
    (void)state;
    struct lw_pulsar_op op = { .first_id = 5, .last_id = 8 };
    assert_int_equal(lw_pulsar_receipt_judge(NULL, 5), LW_PULSAR_RECEIPT_LATE);
    assert_int_equal(lw_pulsar_receipt_judge(&op, 4), LW_PULSAR_RECEIPT_LATE);
    assert_int_equal(lw_pulsar_receipt_judge(&op, 5), LW_PULSAR_RECEIPT_OF_HEAD);
    assert_int_equal(lw_pulsar_receipt_judge(&op, 8), LW_PULSAR_RECEIPT_OF_HEAD);
    assert_int_equal(lw_pulsar_receipt_judge(&op, 9), LW_PULSAR_RECEIPT_AHEAD);
}

static void
bytes_that_changed_after_the_checksum_are_seen(void **state)
{
    (void)state;
    struct lw_publication publication = publication_of("k", (struct lw_bytes){ value, 1000 });
    struct lw_pulsar_op *op = single(&publication);
    assert_true(lw_pulsar_frame_is_sound(op, &op->frames[0]));
    value[500] = 'y';
    assert_false(lw_pulsar_frame_is_sound(op, &op->frames[0]));
    lw_pulsar_op_give(&ops, op);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_single_message_keeps_its_bytes_where_they_are),
        TEST(headers_become_properties_in_order_with_their_duplicates),
        TEST(a_key_of_bytes_goes_in_base64_with_a_mark),
        TEST(null_values_times_and_ordering_keys_are_carried),
        TEST(metadata_counts_for_the_limit_to_the_byte),
        TEST(the_size_is_that_after_compression),
        TEST(what_compression_does_not_make_smaller_is_sent_as_it_is),
        TEST(a_batch_has_the_first_key_outside_and_all_inside),
        TEST(chunks_stay_within_the_limit_and_make_the_message),
        TEST(a_message_whose_metadata_fill_the_limit_is_too_large_even_in_chunks),
        TEST(a_receipt_is_of_the_oldest_within_its_ids_late_below_and_wrong_above),
        TEST(bytes_that_changed_after_the_checksum_are_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
