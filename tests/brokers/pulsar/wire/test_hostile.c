/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hostile bytes: every captured frame cut at each byte and with each single bit flipped, each in
 * a block of its exact size so that a sanitizer sees a read past the end; varints, lengths,
 * nesting and counts beyond reason.
 */
#include "tests/support/test.h"

#include <string.h>

#include "tests/brokers/pulsar/wire/captures.h"

/* Reads everything there is in a payload part. */
static void
read_payload(struct lw_bytes rest)
{
    struct lw_pulsar_payload payload;
    struct lw_pulsar_metadata metadata;
    struct lw_pulsar_batch batch;
    struct lw_pulsar_member member;
    enum lw_pulsar_fault fault = lw_pulsar_payload_open(rest, &payload);
    if (fault != LW_PULSAR_OK && fault != LW_PULSAR_CHECKSUM_WRONG) {
        return;
    }
    if (lw_pulsar_metadata_decode(payload.metadata, &metadata) != LW_PULSAR_OK ||
        lw_pulsar_batch_open(&metadata, payload.body, &batch) != LW_PULSAR_OK) {
        return;
    }
    while (lw_pulsar_batch_next(&batch, &member)) {
        assert_true(member.value.size <= payload.body.size);
    }
}

/* Reads everything there is; whatever the bytes, a frame lies inside them. */
static void
read_frame(const uint8_t *data, size_t size)
{
    struct lw_pulsar_command command;
    struct lw_pulsar_scan scan = lw_pulsar_frame_scan(data, size, 1 << 20);
    if (scan.state != LW_PULSAR_SCAN_FRAME) {
        return;
    }
    assert_true(scan.size <= size);
    if (lw_pulsar_command_decode(scan.command, &command) == LW_PULSAR_OK && command.is_known) {
        struct lw_proto_writer measure = lw_proto_writer_of(NULL, 0);
        lw_pulsar_command_encode(&command, &measure);
        assert_true(measure.size > 0);
    }
    read_payload(scan.rest);
}

static void
with_each_capture(void (*visit)(struct lw_bytes bytes))
{
    size_t index;
    json_t *capture;
    json_t *captures = captures_load();
    json_array_foreach(captures, index, capture)
    {
        struct lw_bytes bytes = hex_bytes(json_string_value(json_object_get(capture, "hex")));
        visit(bytes);
        hex_free(bytes);
    }
    json_decref(captures);
}

static void
cut_everywhere(struct lw_bytes bytes)
{
    for (size_t size = 0; size < bytes.size; size++) {
        uint8_t *part = test_malloc(size + 1);
        memcpy(part + 1, bytes.data, size);
        assert_int_equal(lw_pulsar_frame_scan(part + 1, size, 1 << 20).state,
                         LW_PULSAR_SCAN_MORE);
        /* the same bytes as if they were whole: sizes say more than there is */
        struct lw_pulsar_command command;
        size_t head = size < LW_PULSAR_HEAD_BYTES ? size : LW_PULSAR_HEAD_BYTES;
        lw_pulsar_command_decode((struct lw_bytes){ part + 1 + head, size - head }, &command);
        read_payload((struct lw_bytes){ part + 1 + head, size - head });
        test_free(part);
    }
}

static void
frames_cut_at_every_byte_are_read_in_bounds(void **state)
{
    (void)state;
    with_each_capture(cut_everywhere);
}

static void
flip_each_bit(struct lw_bytes bytes)
{
    uint8_t *copy = test_malloc(bytes.size);
    memcpy(copy, bytes.data, bytes.size);
    for (size_t bit = 0; bit < 8 * bytes.size; bit++) {
        copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
        read_frame(copy, bytes.size);
        copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    test_free(copy);
}

static void
frames_with_any_bit_flipped_are_read_in_bounds(void **state)
{
    (void)state;
    with_each_capture(flip_each_bit);
}

static enum lw_pulsar_fault
decode_hex(const char *hex, struct lw_pulsar_command *ret_command)
{
    struct lw_bytes bytes = hex_bytes(hex);
    enum lw_pulsar_fault fault = lw_pulsar_command_decode(bytes, ret_command);
    hex_free(bytes);
    return fault;
}

static void
varints_beyond_ten_bytes_are_refused(void **state)
{
    (void)state;
    struct lw_pulsar_command command;
    assert_int_equal(decode_hex("080b5a 0e 08ffffffffffffffffff01 10e807", &command), 0);
    assert_true(command.flow.consumer_id == UINT64_MAX);
    assert_int_equal(decode_hex("080b5a 0e 08ffffffffffffffffff02 10e807", &command),
                     LW_PULSAR_PROTO_MALFORMED);
    assert_int_equal(decode_hex("080b5a 0f 08ffffffffffffffffffff01 10e807", &command),
                     LW_PULSAR_PROTO_MALFORMED);
}

static void
lengths_past_the_end_are_refused(void **state)
{
    (void)state;
    struct lw_pulsar_command command;
    assert_int_equal(decode_hex("080b5a 06 0801 10e807", &command), LW_PULSAR_PROTO_MALFORMED);
    assert_int_equal(decode_hex("080b5a ffffffffffffffffff01", &command),
                     LW_PULSAR_PROTO_MALFORMED);
    assert_int_equal(decode_hex("080b5b", &command), LW_PULSAR_PROTO_MALFORMED); /* a group */
}

static void
commands_without_what_they_need_are_named(void **state)
{
    (void)state;
    struct lw_pulsar_command command;
    assert_int_equal(decode_hex("", &command), LW_PULSAR_TYPE_MISSING);
    assert_int_equal(decode_hex("5a050801 10e807", &command), LW_PULSAR_TYPE_MISSING);
    assert_int_equal(decode_hex("0812", &command), LW_PULSAR_BODY_MISSING);
    assert_int_equal(decode_hex("080b5a020801", &command), LW_PULSAR_FIELD_MISSING);
}

static void
unknown_commands_and_fields_are_passed_over(void **state)
{
    (void)state;
    struct lw_pulsar_command command;
    assert_int_equal(decode_hex("08e707 ba3e020801", &command), LW_PULSAR_OK); /* 999 */
    assert_false(command.is_known);
    assert_int_equal(command.type, 999);
    assert_int_equal(decode_hex("f83e07 080b 5a09 0801 10e807 c23e0178", &command),
                     LW_PULSAR_OK);
    assert_int_equal(command.flow.message_permits, 1000);
}

static void
type_after_its_content_is_understood(void **state)
{
    (void)state;
    struct lw_pulsar_command command;
    assert_int_equal(decode_hex("5a050801 10e807 080b", &command), LW_PULSAR_OK);
    assert_int_equal(command.flow.message_permits, 1000);
}

static void
nesting_of_chunk_ids_costs_one_level(void **state)
{
    (void)state;
    enum { LEVELS = 20000 };
    static uint8_t room[8 * LEVELS];
    struct lw_pulsar_message_id id = lw_pulsar_message_id_of(1, 2);
    uint8_t *from = room + sizeof room;
    struct lw_bytes inner = { NULL, 0 };
    for (int level = 0; level < LEVELS; level++) {
        id.first_chunk = inner;
        struct lw_proto_writer measure = lw_proto_writer_of(NULL, 0);
        lw_pulsar_message_id_serialize(&id, &measure);
        from -= measure.size - inner.size;
        struct lw_proto_writer head = lw_proto_writer_of(from, measure.size - inner.size);
        lw_proto_put_number(&head, 1, 1);
        lw_proto_put_number(&head, 2, 2);
        if (inner.data != NULL) {
            lw_proto_put_varint(&head, 7 << 3 | LW_PROTO_BYTES);
            lw_proto_put_varint(&head, inner.size);
        }
        inner = (struct lw_bytes){ from, measure.size };
    }
    assert_int_equal(lw_pulsar_message_id_decode(inner, &id), LW_PULSAR_OK);
    assert_true(id.first_chunk.size > LEVELS);
}

static void
batch_counts_that_the_bytes_cannot_hold_are_refused(void **state)
{
    (void)state;
    struct lw_pulsar_batch batch;
    struct lw_pulsar_metadata metadata = lw_pulsar_metadata_of();
    struct lw_bytes body = { "\0\0\0\2\x18\0", 6 };
    metadata.num_messages_in_batch = 1;
    assert_int_equal(lw_pulsar_batch_open(&metadata, body, &batch), LW_PULSAR_OK);
    const int32_t counts[] = { 2, INT32_MAX, 0, -1, INT32_MIN };
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        metadata.num_messages_in_batch = counts[i];
        assert_int_equal(lw_pulsar_batch_open(&metadata, body, &batch),
                         LW_PULSAR_BATCH_MALFORMED);
    }
}

static void
members_past_the_end_are_refused(void **state)
{
    (void)state;
    struct lw_pulsar_batch batch;
    struct lw_pulsar_member member;
    struct lw_pulsar_metadata metadata = lw_pulsar_metadata_of();
    const char *bodies[] = { "00000002 1802 41", "00000009 1801 41", "ffffffff 1801 41",
                             "0000000b 18ffffffffffffffffff01 41" };
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        struct lw_bytes body = hex_bytes(bodies[i]);
        assert_int_equal(lw_pulsar_batch_open(&metadata, body, &batch), LW_PULSAR_OK);
        assert_false(lw_pulsar_batch_next(&batch, &member));
        assert_int_equal(batch.fault, LW_PULSAR_BATCH_MALFORMED);
        hex_free(body);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_cut_at_every_byte_are_read_in_bounds),
        cmocka_unit_test(frames_with_any_bit_flipped_are_read_in_bounds),
        cmocka_unit_test(varints_beyond_ten_bytes_are_refused),
        cmocka_unit_test(lengths_past_the_end_are_refused),
        cmocka_unit_test(commands_without_what_they_need_are_named),
        cmocka_unit_test(unknown_commands_and_fields_are_passed_over),
        cmocka_unit_test(type_after_its_content_is_understood),
        cmocka_unit_test(nesting_of_chunk_ids_costs_one_level),
        cmocka_unit_test(batch_counts_that_the_bytes_cannot_hold_are_refused),
        cmocka_unit_test(members_past_the_end_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
