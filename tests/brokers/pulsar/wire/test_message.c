/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Payload parts, metadata and batches: what is written is read again, in every shape that a
 * producer or a broker may give it.
 */
#include "tests/support/test.h"

#include <string.h>

#include "tests/brokers/pulsar/wire/captures.h"

#define TEXT(text) ((struct lw_bytes){ (text), sizeof(text) - 1 })
#define GOLDEN_BATCH "00000004 18014000 41 00000004 18024001 4243"

static struct lw_bytes
golden_body(uint8_t *room, size_t size)
{
    struct lw_proto_writer writer = lw_proto_writer_of(room, size);
    struct lw_pulsar_single_metadata member = lw_pulsar_single_metadata_of();
    member.has = 1 << 8; /* sequence id 0 is written though it is the default */
    lw_pulsar_batch_append(&member, TEXT("A"), &writer);
    member.sequence_id = 1;
    lw_pulsar_batch_append(&member, TEXT("BC"), &writer);
    return lw_proto_written(&writer);
}

static void
batch_body_is_built_as_its_golden_vector(void **state)
{
    (void)state;
    uint8_t room[64];
    struct lw_bytes body = golden_body(room, sizeof room);
    struct lw_bytes wanted = hex_bytes(GOLDEN_BATCH);
    assert_int_equal(body.size, wanted.size);
    assert_memory_equal(body.data, wanted.data, wanted.size);
    hex_free(wanted);
}

static void
batch_member_size_is_what_appending_takes(void **state)
{
    (void)state;
    struct lw_pulsar_single_metadata member = lw_pulsar_single_metadata_of();
    struct lw_proto_writer writer = lw_proto_writer_of(NULL, 0);
    member.partition_key = TEXT("key");
    lw_pulsar_batch_append(&member, TEXT("value"), &writer);
    assert_int_equal(lw_pulsar_batch_member_size(&member, TEXT("value")), writer.size);
    assert_int_equal(writer.size, 4 + 5 + 2 + 5);
}

static void
null_value_differs_from_an_empty_one_in_a_batch(void **state)
{
    (void)state;
    uint8_t room[64];
    struct lw_pulsar_batch batch;
    struct lw_pulsar_member member;
    struct lw_pulsar_metadata metadata = lw_pulsar_metadata_of();
    struct lw_pulsar_single_metadata single = lw_pulsar_single_metadata_of();
    struct lw_proto_writer writer = lw_proto_writer_of(room, sizeof room);
    lw_pulsar_batch_append(&single, (struct lw_bytes){ NULL, 0 }, &writer);
    lw_pulsar_batch_append(&single, TEXT(""), &writer);
    metadata.num_messages_in_batch = 2;
    assert_int_equal(lw_pulsar_batch_open(&metadata, lw_proto_written(&writer), &batch), 0);
    assert_true(lw_pulsar_batch_next(&batch, &member));
    assert_null(member.value.data);
    assert_true(lw_pulsar_batch_next(&batch, &member));
    assert_non_null(member.value.data);
    assert_false(lw_pulsar_batch_next(&batch, &member));
    assert_int_equal(batch.fault, LW_PULSAR_OK);
}

static void
compacted_batch_keeps_the_original_indexes(void **state)
{
    (void)state;
    uint8_t room[64];
    uint8_t indexes[16];
    struct lw_pulsar_batch batch;
    struct lw_pulsar_member member;
    struct lw_pulsar_metadata metadata = lw_pulsar_metadata_of();
    struct lw_proto_writer writer = lw_proto_writer_of(indexes, sizeof indexes);
    lw_pulsar_list_put_number(&writer, 3);
    lw_pulsar_list_put_number(&writer, 8);
    metadata.compacted_batch_indexes = lw_pulsar_list_of(&writer);
    metadata.num_messages_in_batch = 10;
    assert_int_equal(lw_pulsar_batch_open(&metadata, golden_body(room, sizeof room), &batch),
                     LW_PULSAR_OK);
    assert_true(lw_pulsar_batch_next(&batch, &member));
    assert_int_equal(member.index, 3);
    assert_true(lw_pulsar_batch_next(&batch, &member));
    assert_int_equal(member.index, 8);
    assert_false(lw_pulsar_batch_next(&batch, &member));
    assert_int_equal(batch.count, 10);
}

static void
compacted_index_beyond_the_batch_is_refused(void **state)
{
    (void)state;
    uint8_t room[64];
    uint8_t indexes[16];
    struct lw_pulsar_batch batch;
    struct lw_pulsar_member member;
    struct lw_pulsar_metadata metadata = lw_pulsar_metadata_of();
    struct lw_proto_writer writer = lw_proto_writer_of(indexes, sizeof indexes);
    lw_pulsar_list_put_number(&writer, 2);
    metadata.compacted_batch_indexes = lw_pulsar_list_of(&writer);
    metadata.num_messages_in_batch = 2;
    assert_int_equal(lw_pulsar_batch_open(&metadata, golden_body(room, sizeof room), &batch),
                     LW_PULSAR_OK);
    assert_false(lw_pulsar_batch_next(&batch, &member));
    assert_int_equal(batch.fault, LW_PULSAR_BATCH_MALFORMED);
}

/* Metadata with every field of its table. */
static struct lw_bytes
full_metadata(uint8_t *room, size_t size)
{
    static uint8_t pairs[64];
    static uint8_t numbers[16];
    struct lw_pulsar_metadata metadata;
    struct lw_proto_writer writer = lw_proto_writer_of(room, size);
    struct lw_proto_writer pair = lw_proto_writer_of(pairs, sizeof pairs);
    struct lw_proto_writer number = lw_proto_writer_of(numbers, sizeof numbers);
    lw_pulsar_list_put_pair(&pair, TEXT("a"), TEXT("1"));
    lw_pulsar_list_put_pair(&pair, TEXT("a"), TEXT(""));
    lw_pulsar_list_put_number(&number, 300);
    memset(&metadata, 0, sizeof metadata);
    for (uint32_t i = 0; i < lw_pulsar_metadata_table.count; i++) {
        const struct lw_pulsar_field *field = &lw_pulsar_metadata_table.fields[i];
        uint8_t *place = (uint8_t *)&metadata + field->offset;
        if (field->kind == LW_PULSAR_KIND_BYTES) {
            *(struct lw_bytes *)place = TEXT("bytes");
        } else if (field->kind == LW_PULSAR_KIND_LIST) {
            *(struct lw_pulsar_list *)place = lw_pulsar_list_of(&pair);
        } else if (field->kind == LW_PULSAR_KIND_NUMBERS) {
            *(struct lw_pulsar_list *)place = lw_pulsar_list_of(&number);
        } else {
            *place = field->kind == LW_PULSAR_KIND_BOOL ? 1 : field->id;
        }
        metadata.has |= UINT64_C(1) << field->id;
    }
    lw_pulsar_metadata_encode(&metadata, &writer);
    return lw_proto_written(&writer);
}

/* Compares the decoder by hand with the one by table. */
static void
check_same(struct lw_bytes bytes)
{
    struct lw_pulsar_metadata by_hand;
    struct lw_pulsar_metadata by_table;
    memset(&by_hand, 0xa5, sizeof by_hand);
    memset(&by_table, 0xa5, sizeof by_table);
    enum lw_pulsar_fault fault = lw_pulsar_metadata_decode(bytes, &by_hand);
    assert_int_equal(fault,
                     lw_pulsar_fields_decode(&lw_pulsar_metadata_table, bytes, &by_table));
    if (fault == LW_PULSAR_OK) {
        assert_memory_equal(&by_hand, &by_table, sizeof by_hand);
    }
}

static void
metadata_by_hand_and_by_table_agree(void **state)
{
    (void)state;
    uint8_t room[512];
    struct lw_bytes full = full_metadata(room, sizeof room);
    assert_non_null(full.data);
    for (size_t size = 0; size <= full.size; size++) {
        check_same((struct lw_bytes){ full.data, size });
    }
    for (size_t bit = 0; bit < 8 * full.size; bit++) {
        room[bit / 8] ^= (uint8_t)(1 << bit % 8);
        check_same(full);
        room[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

static struct lw_bytes
plain_metadata(uint64_t sequence, uint64_t time, size_t key_size, struct lw_proto_writer writer)
{
    static uint8_t key[300];
    struct lw_pulsar_metadata metadata = lw_pulsar_metadata_of();
    metadata.producer_name = TEXT("producer");
    metadata.sequence_id = sequence;
    metadata.publish_time = time;
    metadata.partition_key = (struct lw_bytes){ key_size > 0 ? key : NULL, key_size };
    lw_pulsar_metadata_encode(&metadata, &writer);
    return lw_proto_written(&writer);
}

static void
plain_metadata_by_hand_and_by_table_agree_at_every_length(void **state)
{
    (void)state;
    const size_t keys[] = { 0, 1, 127, 128, 300 };
    uint8_t room[512];
    struct lw_proto_writer writer = lw_proto_writer_of(room, sizeof room);
    for (unsigned bits = 0; bits < 64; bits++) {
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
            uint64_t number = UINT64_C(1) << bits;
            check_same(plain_metadata(number - 1, 1700000000000, keys[i], writer));
            check_same(plain_metadata(number, number, keys[i], writer));
            check_same(plain_metadata(1, number - 1, keys[i], writer));
        }
    }
    struct lw_bytes plain = plain_metadata(300, 1700000000000, 6, writer);
    for (size_t size = 0; size <= plain.size; size++) {
        check_same((struct lw_bytes){ plain.data, size });
    }
    for (size_t bit = 0; bit < 8 * plain.size; bit++) {
        room[bit / 8] ^= (uint8_t)(1 << bit % 8);
        check_same(plain);
        room[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

static void
full_metadata_is_encoded_again_to_the_same_bytes(void **state)
{
    (void)state;
    uint8_t room[512];
    uint8_t again[512];
    struct lw_pulsar_metadata metadata;
    struct lw_bytes full = full_metadata(room, sizeof room);
    struct lw_proto_writer writer = lw_proto_writer_of(again, sizeof again);
    assert_int_equal(lw_pulsar_metadata_decode(full, &metadata), LW_PULSAR_OK);
    assert_true(lw_pulsar_metadata_is_chunk(&metadata));
    lw_pulsar_metadata_encode(&metadata, &writer);
    assert_int_equal(writer.size, full.size);
    assert_memory_equal(again, room, full.size);
}

static void
properties_are_walked_in_order_with_duplicates(void **state)
{
    (void)state;
    uint8_t room[512];
    struct lw_pulsar_pair pair;
    struct lw_pulsar_metadata metadata;
    lw_pulsar_metadata_decode(full_metadata(room, sizeof room), &metadata);
    struct lw_pulsar_walk walk = lw_pulsar_list_walk(&metadata.properties);
    assert_int_equal(metadata.properties.count, 2);
    assert_true(lw_pulsar_walk_pair(&walk, &pair));
    assert_memory_equal(pair.value.data, "1", 1);
    assert_true(lw_pulsar_walk_pair(&walk, &pair));
    assert_int_equal(pair.value.size, 0);
    assert_non_null(pair.value.data);
    assert_false(lw_pulsar_walk_pair(&walk, &pair));
    assert_false(walk.reader.is_bad);
}

static void
packed_numbers_are_read_as_single_ones(void **state)
{
    (void)state;
    uint64_t numbers[4];
    struct lw_bytes bytes = hex_bytes("0a04 01 ac02 03  08 04");
    struct lw_pulsar_list list = { .at = bytes.data, .size = bytes.size, .id = 1, .count = 2 };
    assert_int_equal(lw_pulsar_list_numbers(&list, numbers, 4), 4);
    assert_int_equal(numbers[1], 300);
    assert_int_equal(numbers[3], 4);
    hex_free(bytes);
}

static void
payload_without_a_checksum_is_accepted(void **state)
{
    (void)state;
    struct lw_bytes rest = hex_bytes("00000002 0a00 6869");
    struct lw_pulsar_payload payload;
    assert_int_equal(lw_pulsar_payload_open(rest, &payload), LW_PULSAR_OK);
    assert_false(payload.has_checksum);
    assert_int_equal(payload.metadata.size, 2);
    assert_memory_equal(payload.body.data, "hi", 2);
    hex_free(rest);
}

static void
wrong_checksum_is_told_before_the_metadata_is_believed(void **state)
{
    (void)state;
    struct lw_bytes rest = hex_bytes("0e01 5b4c69ac 7f00000c 0a01 70 1000 1880d095ffbc31 6869");
    struct lw_pulsar_payload payload;
    assert_int_equal(lw_pulsar_payload_open(rest, &payload), LW_PULSAR_CHECKSUM_WRONG);
    assert_int_equal(payload.metadata.size + payload.body.size, 0);
    hex_free(rest);
}

static void
body_in_several_parts_has_one_checksum(void **state)
{
    (void)state;
    uint8_t one[128];
    uint8_t two[128];
    struct lw_pulsar_command send = lw_pulsar_command_of(LW_PULSAR_SEND);
    struct lw_pulsar_metadata metadata = lw_pulsar_metadata_of();
    struct lw_bytes whole = TEXT("hello");
    struct lw_bytes parts[] = { TEXT("he"), TEXT(""), TEXT("llo") };
    struct lw_proto_writer first = lw_proto_writer_of(one, sizeof one);
    struct lw_proto_writer second = lw_proto_writer_of(two, sizeof two);
    lw_pulsar_payload_write_head(&send, NULL, &metadata, (struct lw_pulsar_body){ &whole, 1 },
                                 &first);
    lw_pulsar_payload_write_head(&send, NULL, &metadata, (struct lw_pulsar_body){ parts, 3 },
                                 &second);
    assert_int_equal(first.size, second.size);
    assert_memory_equal(one, two, first.size);
}

static void
stored_metadata_is_sent_as_it_was(void **state)
{
    (void)state;
    uint8_t room[128];
    struct lw_pulsar_payload payload;
    struct lw_pulsar_scan scan;
    struct lw_pulsar_command message = lw_pulsar_command_of(LW_PULSAR_MESSAGE);
    struct lw_bytes body = TEXT("hi");
    struct lw_proto_writer writer = lw_proto_writer_of(room, sizeof room);
    lw_pulsar_payload_write_head_raw(&message, TEXT("entry"), TEXT("meta"),
                                     (struct lw_pulsar_body){ &body, 1 }, &writer);
    lw_proto_put_raw(&writer, body.data, body.size);
    scan = lw_pulsar_frame_scan(room, writer.size, sizeof room);
    assert_int_equal(scan.state, LW_PULSAR_SCAN_FRAME);
    assert_int_equal(lw_pulsar_payload_open(scan.rest, &payload), LW_PULSAR_OK);
    assert_memory_equal(payload.entry_metadata.data, "entry", 5);
    assert_memory_equal(payload.metadata.data, "meta", 4);
    assert_int_equal(payload.body.size, 2);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batch_body_is_built_as_its_golden_vector),
        cmocka_unit_test(batch_member_size_is_what_appending_takes),
        cmocka_unit_test(null_value_differs_from_an_empty_one_in_a_batch),
        cmocka_unit_test(compacted_batch_keeps_the_original_indexes),
        cmocka_unit_test(compacted_index_beyond_the_batch_is_refused),
        cmocka_unit_test(metadata_by_hand_and_by_table_agree),
        cmocka_unit_test(plain_metadata_by_hand_and_by_table_agree_at_every_length),
        cmocka_unit_test(full_metadata_is_encoded_again_to_the_same_bytes),
        cmocka_unit_test(properties_are_walked_in_order_with_duplicates),
        cmocka_unit_test(packed_numbers_are_read_as_single_ones),
        cmocka_unit_test(payload_without_a_checksum_is_accepted),
        cmocka_unit_test(wrong_checksum_is_told_before_the_metadata_is_believed),
        cmocka_unit_test(body_in_several_parts_has_one_checksum),
        cmocka_unit_test(stored_metadata_is_sent_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
