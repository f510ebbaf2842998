/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every captured frame of real clients and a real broker is decoded and compared field by field
 * with what another decoder found; encoded again it gives the same bytes.
 */
#include "tests/support/test.h"

#include <string.h>

#include "tests/brokers/pulsar/wire/captures.h"
#include "tests/brokers/pulsar/wire/names.h"

enum { CAPTURES = 108, FRAME_BYTES_MAX = 1 << 16 };

typedef void (*capture_fn)(const json_t *capture, struct lw_pulsar_scan frame,
                           struct lw_pulsar_command *command);

static const char *
text_of(const json_t *capture, const char *name)
{
    return json_string_value(json_object_get(capture, name));
}

/* Calls `visit` for each capture whose command carries a payload, or for each that does not. */
static int
visit_captures(bool with_payload, capture_fn visit)
{
    size_t index;
    json_t *capture;
    int count = 0;
    json_t *captures = captures_load();
    json_array_foreach(captures, index, capture)
    {
        struct lw_bytes bytes = hex_bytes(text_of(capture, "hex"));
        struct lw_pulsar_scan frame = lw_pulsar_frame_scan(bytes.data, bytes.size,
                                                           FRAME_BYTES_MAX);
        struct lw_pulsar_command command;
        assert_int_equal(frame.state, LW_PULSAR_SCAN_FRAME);
        assert_int_equal(frame.size, bytes.size);
        assert_int_equal(lw_pulsar_command_decode(frame.command, &command), LW_PULSAR_OK);
        if (lw_pulsar_command_has_payload(command.type) == with_payload) {
            visit(capture, frame, &command);
            count++;
        }
        hex_free(bytes);
    }
    json_decref(captures);
    return count;
}

static void
check_command(const json_t *capture, struct lw_pulsar_scan frame,
              struct lw_pulsar_command *command)
{
    (void)frame;
    assert_true(command->is_known);
    assert_int_equal(command->type, json_integer_value(json_object_get(capture, "type")));
    assert_string_equal(lw_pulsar_command_name(command->type), text_of(capture, "command"));
    check_fields(command->type, lw_pulsar_command_table(command->type), &command->connect,
                 json_object_get(capture, "fields"));
}

static void
every_captured_command_decodes_to_the_fields_seen(void **state)
{
    (void)state;
    int count = visit_captures(false, check_command) + visit_captures(true, check_command);
    assert_int_equal(count, CAPTURES);
}

static void
check_encoding(const json_t *capture, struct lw_pulsar_scan frame,
               struct lw_pulsar_command *command)
{
    (void)capture;
    uint8_t room[4096];
    struct lw_proto_writer writer = lw_proto_writer_of(room, sizeof room);
    lw_pulsar_command_encode(command, &writer);
    assert_int_equal(writer.size, frame.command.size);
    assert_memory_equal(room, frame.command.data, writer.size);
}

static void
every_captured_command_encodes_to_the_same_bytes(void **state)
{
    (void)state;
    int count = visit_captures(false, check_encoding) + visit_captures(true, check_encoding);
    assert_int_equal(count, CAPTURES);
}

static void
check_payload(const json_t *capture, struct lw_pulsar_scan frame,
              struct lw_pulsar_command *command)
{
    (void)command;
    struct lw_pulsar_payload payload;
    struct lw_pulsar_metadata metadata;
    assert_int_equal(lw_pulsar_payload_open(frame.rest, &payload), LW_PULSAR_OK);
    assert_true(payload.has_checksum);
    assert_int_equal(payload.checksum, strtoul(text_of(capture, "crc"), NULL, 16));
    assert_int_equal(lw_pulsar_metadata_decode(payload.metadata, &metadata), LW_PULSAR_OK);
    check_fields(NAMES_METADATA, &lw_pulsar_metadata_table, &metadata,
                 json_object_get(capture, "meta"));
    struct lw_bytes body = hex_bytes(text_of(capture, "payload_hex"));
    assert_int_equal(payload.body.size, body.size);
    assert_memory_equal(payload.body.data, body.data, body.size);
    hex_free(body);
    struct lw_pulsar_entry_metadata entry;
    const json_t *expected = json_object_get(capture, "bem");
    assert_int_equal(payload.entry_metadata.data != NULL, expected != NULL);
    if (expected != NULL) {
        assert_int_equal(lw_pulsar_entry_metadata_decode(payload.entry_metadata, &entry),
                         LW_PULSAR_OK);
        check_fields(NAMES_ENTRY_METADATA, &lw_pulsar_entry_metadata_table, &entry, expected);
    }
}

static void
every_captured_payload_opens_with_its_checksum_and_metadata(void **state)
{
    (void)state;
    assert_int_equal(visit_captures(true, check_payload), 17);
}

static void
check_payload_encoding(const json_t *capture, struct lw_pulsar_scan frame,
                       struct lw_pulsar_command *command)
{
    uint8_t room[4096];
    struct lw_pulsar_payload payload;
    struct lw_pulsar_metadata metadata;
    struct lw_pulsar_entry_metadata entry;
    struct lw_proto_writer writer = lw_proto_writer_of(room, sizeof room);
    assert_int_equal(lw_pulsar_payload_open(frame.rest, &payload), LW_PULSAR_OK);
    assert_int_equal(lw_pulsar_metadata_decode(payload.metadata, &metadata), LW_PULSAR_OK);
    bool has_entry = payload.entry_metadata.data != NULL;
    if (has_entry) {
        lw_pulsar_entry_metadata_decode(payload.entry_metadata, &entry);
    }
    lw_pulsar_payload_write_head(command, has_entry ? &entry : NULL, &metadata,
                                 (struct lw_pulsar_body){ &payload.body, 1 }, &writer);
    lw_proto_put_raw(&writer, payload.body.data, payload.body.size);
    struct lw_bytes bytes = hex_bytes(text_of(capture, "hex"));
    assert_int_equal(writer.size, bytes.size);
    assert_memory_equal(room, bytes.data, bytes.size);
    hex_free(bytes);
}

static void
every_captured_payload_frame_is_written_again_byte_by_byte(void **state)
{
    (void)state;
    assert_int_equal(visit_captures(true, check_payload_encoding), 17);
}

static int members_read;

static void
check_members(const json_t *capture, struct lw_pulsar_scan frame,
              struct lw_pulsar_command *command)
{
    (void)capture;
    (void)command;
    uint8_t room[4096];
    struct lw_pulsar_payload payload;
    struct lw_pulsar_metadata metadata;
    struct lw_pulsar_batch batch;
    struct lw_pulsar_member member;
    struct lw_proto_writer writer = lw_proto_writer_of(room, sizeof room);
    assert_int_equal(lw_pulsar_payload_open(frame.rest, &payload), LW_PULSAR_OK);
    assert_int_equal(lw_pulsar_metadata_decode(payload.metadata, &metadata), LW_PULSAR_OK);
    if (!lw_pulsar_metadata_is_batch(&metadata) || metadata.compression != 0) {
        return;
    }
    assert_int_equal(lw_pulsar_batch_open(&metadata, payload.body, &batch), LW_PULSAR_OK);
    for (int count = 0; lw_pulsar_batch_next(&batch, &member); count++, members_read++) {
        assert_int_equal(member.index, count);
        lw_pulsar_batch_append(&member.metadata, member.value, &writer);
    }
    assert_int_equal(batch.fault, LW_PULSAR_OK);
    assert_int_equal(writer.size, payload.body.size);
    assert_memory_equal(room, payload.body.data, payload.body.size);
}

static void
captured_batches_are_read_and_built_again_byte_by_byte(void **state)
{
    (void)state;
    members_read = 0;
    visit_captures(true, check_members);
    assert_true(members_read >= 20);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_captured_command_decodes_to_the_fields_seen),
        cmocka_unit_test(every_captured_command_encodes_to_the_same_bytes),
        cmocka_unit_test(every_captured_payload_opens_with_its_checksum_and_metadata),
        cmocka_unit_test(every_captured_payload_frame_is_written_again_byte_by_byte),
        cmocka_unit_test(captured_batches_are_read_and_built_again_byte_by_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
