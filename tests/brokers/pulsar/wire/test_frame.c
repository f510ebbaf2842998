/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scanner and the golden frames of the protocol's description, byte by byte in both
 * directions.
 */
#include "tests/support/test.h"

#include <string.h>

#include "tests/brokers/pulsar/wire/captures.h"

#define PING "00000009 00000005 08 12 92 01 00"
#define PONG "00000009 00000005 08 13 9a 01 00"
#define FLOW "0000000d 00000009 08 0b 5a 05 08 01 10 e8 07"
#define CONNECT "000000220000001e0802121a0a0a632d636c69656e742d3120152a046e6f6e65520408011001"
#define SEND "000000240000000808063204080110000e015b4c69ac0000000c0a017010001880d095ffbc316869"
#define MESSAGE                                                                                \
    "000000370000000c08094a0808011204080710000e02000000090881d095ffbc3110290e015b4c69ac"       \
    "0000000c0a017010001880d095ffbc316869"

static void
check_written(const struct lw_pulsar_command *command, const char *hex)
{
    uint8_t room[256];
    struct lw_bytes wanted = hex_bytes(hex);
    struct lw_proto_writer writer = lw_proto_writer_of(room, sizeof room);
    lw_pulsar_command_write(command, &writer);
    assert_int_equal(writer.size, wanted.size);
    assert_memory_equal(room, wanted.data, wanted.size);
    assert_int_equal(lw_pulsar_command_frame_size(command), wanted.size);
    hex_free(wanted);
}

static void
ping_and_pong_carry_their_empty_content(void **state)
{
    (void)state;
    struct lw_pulsar_command ping = lw_pulsar_command_of(LW_PULSAR_PING);
    struct lw_pulsar_command pong = lw_pulsar_command_of(LW_PULSAR_PONG);
    check_written(&ping, PING);
    check_written(&pong, PONG);
}

static void
flow_is_written_as_its_golden_vector(void **state)
{
    (void)state;
    struct lw_pulsar_command flow = lw_pulsar_command_of(LW_PULSAR_FLOW);
    flow.flow.consumer_id = 1;
    flow.flow.message_permits = 1000;
    check_written(&flow, FLOW);
}

static void
connect_is_written_as_its_golden_vector(void **state)
{
    (void)state;
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_CONNECT);
    struct lw_pulsar_connect *connect = &command.connect;
    connect->client_version = (struct lw_bytes){ "c-client-1", 10 };
    connect->auth_method_name = (struct lw_bytes){ "none", 4 };
    connect->protocol_version = LW_PULSAR_PROTOCOL_VERSION;
    connect->has = LW_PULSAR_CONNECT_HAS_FEATURE_FLAGS;
    connect->feature_flags.supports_auth_refresh = true;
    connect->feature_flags.supports_broker_entry_metadata = true;
    check_written(&command, CONNECT);
}

static struct lw_pulsar_metadata
golden_metadata(void)
{
    struct lw_pulsar_metadata metadata = lw_pulsar_metadata_of();
    metadata.producer_name = (struct lw_bytes){ "p", 1 };
    metadata.publish_time = 1700000000000;
    return metadata;
}

static void
check_payload_written(const struct lw_pulsar_command *command,
                      const struct lw_pulsar_entry_metadata *entry, const char *hex)
{
    uint8_t room[256];
    struct lw_bytes body = { "hi", 2 };
    struct lw_bytes wanted = hex_bytes(hex);
    struct lw_pulsar_metadata metadata = golden_metadata();
    struct lw_proto_writer writer = lw_proto_writer_of(room, sizeof room);
    lw_pulsar_payload_write_head(command, entry, &metadata, (struct lw_pulsar_body){ &body, 1 },
                                 &writer);
    assert_int_equal(writer.size, wanted.size - body.size);
    assert_memory_equal(room, wanted.data, writer.size);
    hex_free(wanted);
}

static void
head_of_send_is_written_as_its_golden_vector(void **state)
{
    (void)state;
    struct lw_pulsar_command send = lw_pulsar_command_of(LW_PULSAR_SEND);
    send.send.producer_id = 1;
    check_payload_written(&send, NULL, SEND);
}

static void
head_of_message_carries_the_brokers_metadata(void **state)
{
    (void)state;
    struct lw_pulsar_command message = lw_pulsar_command_of(LW_PULSAR_MESSAGE);
    struct lw_pulsar_entry_metadata entry = { .broker_timestamp = 1700000000001, .index = 41 };
    message.message.consumer_id = 1;
    message.message.message_id = lw_pulsar_message_id_of(7, 0);
    check_payload_written(&message, &entry, MESSAGE);
}

static void
golden_message_decodes_whole(void **state)
{
    (void)state;
    struct lw_bytes bytes = hex_bytes(MESSAGE);
    struct lw_pulsar_scan frame = lw_pulsar_frame_scan(bytes.data, bytes.size, 1000);
    struct lw_pulsar_command command;
    struct lw_pulsar_payload payload;
    struct lw_pulsar_entry_metadata entry;
    assert_int_equal(lw_pulsar_command_decode(frame.command, &command), LW_PULSAR_OK);
    assert_int_equal(command.message.message_id.ledger, 7);
    assert_int_equal(command.message.message_id.partition, -1);
    assert_int_equal(lw_pulsar_payload_open(frame.rest, &payload), LW_PULSAR_OK);
    assert_int_equal(lw_pulsar_entry_metadata_decode(payload.entry_metadata, &entry), 0);
    assert_int_equal(entry.index, 41);
    assert_memory_equal(payload.body.data, "hi", 2);
    hex_free(bytes);
}

/* The short way, if it takes them, against the general one, which a field at the end asks for. */
static bool
check_both_ways(struct lw_bytes bytes)
{
    uint8_t longer[256];
    struct lw_pulsar_command command;
    struct lw_pulsar_message message;
    assert_in_range(bytes.size, 0, sizeof longer - 3);
    memcpy(longer, bytes.data, bytes.size);
    memcpy(longer + bytes.size, "\xf8\x3f\x01", 3); /* field 1023 */
    enum lw_pulsar_fault fault = lw_pulsar_command_decode(
        (struct lw_bytes){ longer, bytes.size + 3 }, &command);
    if (!lw_pulsar_message_decode_usual(bytes, &message)) {
        return false;
    }
    assert_int_equal(fault, LW_PULSAR_OK);
    assert_int_equal(command.type, LW_PULSAR_MESSAGE);
    assert_int_equal(message.has, command.message.has);
    assert_int_equal(message.consumer_id, command.message.consumer_id);
    assert_int_equal(message.redelivery_count, command.message.redelivery_count);
    assert_int_equal(message.ack_set.count, command.message.ack_set.count);
    assert_int_equal(message.consumer_epoch, command.message.consumer_epoch);
    assert_int_equal(message.message_id.has, command.message.message_id.has);
    assert_int_equal(message.message_id.ledger, command.message.message_id.ledger);
    assert_int_equal(message.message_id.entry, command.message.message_id.entry);
    assert_int_equal(message.message_id.partition, command.message.message_id.partition);
    assert_int_equal(message.message_id.batch_index, command.message.message_id.batch_index);
    assert_int_equal(message.message_id.batch_size, command.message.message_id.batch_size);
    return true;
}

static struct lw_bytes
delivery(uint64_t ledger, uint64_t entry, int32_t partition, uint32_t redeliveries,
         struct lw_proto_writer writer)
{
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_MESSAGE);
    command.message.consumer_id = entry & 0xff;
    command.message.message_id = lw_pulsar_message_id_of(ledger, entry);
    command.message.message_id.partition = partition;
    command.message.message_id.has = LW_PULSAR_ID_HAS_PARTITION;
    command.message.redelivery_count = redeliveries;
    lw_pulsar_command_encode(&command, &writer);
    return lw_proto_written(&writer);
}

static void
message_reads_the_same_by_the_short_and_by_the_general_way(void **state)
{
    (void)state;
    const int32_t partitions[] = { -1, 0, 127, 128, 70000 };
    uint8_t room[128];
    struct lw_proto_writer writer = lw_proto_writer_of(room, sizeof room);
    uint32_t taken = 0;
    for (unsigned bits = 0; bits < 64; bits++) {
        uint64_t number = UINT64_C(1) << bits;
        for (uint32_t i = 0; i < 5; i++) {
            taken += check_both_ways(delivery(number - 1, 1, partitions[i], i, writer));
            taken += check_both_ways(delivery(7, number, partitions[i], 0, writer));
        }
    }
    assert_int_equal(taken, (36 + 35) * 5); /* ids of up to five bytes */
    struct lw_pulsar_command bare = lw_pulsar_command_of(LW_PULSAR_MESSAGE);
    bare.message.message_id = lw_pulsar_message_id_of(7, 1); /* no partition is said */
    lw_pulsar_command_encode(&bare, &writer);
    assert_true(check_both_ways(lw_proto_written(&writer)));
    writer.size = 0;
    struct lw_bytes bytes = delivery(7000, 300, -1, 3, writer);
    for (size_t bit = 0; bit < 8 * bytes.size; bit++) {
        room[bit / 8] ^= (uint8_t)(1 << bit % 8);
        (void)check_both_ways(bytes);
        room[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (size_t size = 0; size < bytes.size; size++) {
        assert_false(lw_pulsar_message_decode_usual((struct lw_bytes){ room, size },
                                                    &(struct lw_pulsar_message){ .has = 0 }));
    }
}

static void
scanner_asks_for_what_is_missing_at_every_byte(void **state)
{
    (void)state;
    struct lw_bytes bytes = hex_bytes(SEND);
    for (size_t size = 0; size < bytes.size; size++) {
        uint8_t *part = test_malloc(size + 1);
        memcpy(part, bytes.data, size);
        struct lw_pulsar_scan scan = lw_pulsar_frame_scan(part, size, 1000);
        assert_int_equal(scan.state, LW_PULSAR_SCAN_MORE);
        assert_int_equal(scan.size, size < 8 ? 8 : bytes.size);
        test_free(part);
    }
    hex_free(bytes);
}

static void
scanner_takes_one_frame_of_two(void **state)
{
    (void)state;
    struct lw_bytes bytes = hex_bytes(PING PONG);
    struct lw_pulsar_scan first = lw_pulsar_frame_scan(bytes.data, bytes.size, 1000);
    assert_int_equal(first.state, LW_PULSAR_SCAN_FRAME);
    assert_int_equal(first.size, 13);
    assert_int_equal(first.rest.size, 0);
    hex_free(bytes);
}

static void
check_bad(const char *hex, size_t frame_bytes_max, enum lw_pulsar_fault fault)
{
    struct lw_bytes bytes = hex_bytes(hex);
    struct lw_pulsar_scan scan = lw_pulsar_frame_scan(bytes.data, bytes.size, frame_bytes_max);
    assert_int_equal(scan.state, LW_PULSAR_SCAN_BAD);
    assert_int_equal(scan.fault, fault);
    hex_free(bytes);
}

static void
scanner_refuses_by_the_length_alone(void **state)
{
    (void)state;
    check_bad("00000061", 100, LW_PULSAR_FRAME_TOO_LARGE); /* 97 + 4 */
    check_bad("ffffffff", 1 << 30, LW_PULSAR_FRAME_TOO_LARGE);
    check_bad("00000000", 100, LW_PULSAR_FRAME_TOO_SMALL);
    check_bad("00000003", 100, LW_PULSAR_FRAME_TOO_SMALL);
    check_bad("00000009 00000000", 100, LW_PULSAR_COMMAND_TOO_LARGE);
    check_bad("00000009 00000006", 100, LW_PULSAR_COMMAND_TOO_LARGE);
    check_bad("48545450 2f312e31", 6 << 20, LW_PULSAR_FRAME_TOO_LARGE); /* "HTTP/1.1" */
}

static void
frame_of_exactly_the_limit_is_accepted(void **state)
{
    (void)state;
    const uint8_t head[] = { 0, 0, 0, 96 };
    assert_int_equal(lw_pulsar_frame_scan(head, 4, 100).state, LW_PULSAR_SCAN_MORE);
    assert_int_equal(lw_pulsar_frame_bytes_max(5242880), 5242880 + 10240);
    assert_int_equal(lw_pulsar_frame_bytes_max(0), 5242880 + 10240);
}

static void
writer_without_room_says_how_much_it_needs(void **state)
{
    (void)state;
    uint8_t room[12];
    struct lw_pulsar_command ping = lw_pulsar_command_of(LW_PULSAR_PING);
    struct lw_proto_writer writer = lw_proto_writer_of(room, sizeof room);
    lw_pulsar_command_write(&ping, &writer);
    assert_true(lw_proto_is_overflow(&writer));
    assert_int_equal(writer.size, 13);
    assert_null(lw_proto_written(&writer).data);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ping_and_pong_carry_their_empty_content),
        cmocka_unit_test(flow_is_written_as_its_golden_vector),
        cmocka_unit_test(connect_is_written_as_its_golden_vector),
        cmocka_unit_test(head_of_send_is_written_as_its_golden_vector),
        cmocka_unit_test(head_of_message_carries_the_brokers_metadata),
        cmocka_unit_test(golden_message_decodes_whole),
        cmocka_unit_test(message_reads_the_same_by_the_short_and_by_the_general_way),
        cmocka_unit_test(scanner_asks_for_what_is_missing_at_every_byte),
        cmocka_unit_test(scanner_takes_one_frame_of_two),
        cmocka_unit_test(scanner_refuses_by_the_length_alone),
        cmocka_unit_test(frame_of_exactly_the_limit_is_accepted),
        cmocka_unit_test(writer_without_room_says_how_much_it_needs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
