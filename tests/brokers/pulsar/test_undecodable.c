/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a consumer cannot read is given on with the reason and the bytes as they came; its ack tells
 * the broker the reason; what is behind it goes on, on the same connection. Claimed sizes are
 * looked at before memory is taken.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "brokers/pulsar/consumer_state.h"
#include "brokers/pulsar/producer_encode.h"
#include "tests/brokers/pulsar/stage.h"

static int
tear_down(void **state)
{
    assert_int_equal(embedded_counts(stage.broker)->connections, 1); /* it was kept */
    return stage_tear_down(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, stage_set_up, tear_down)

static struct lw_pulsar_metadata
keyed(void)
{
    struct lw_pulsar_metadata metadata = stage_metadata();
    metadata.partition_key = lw_bytes_of("key");
    return metadata;
}

/* What was published comes, the first with that fault, the second as it is; both are acked. */
static struct consuming *
expect_fault(const char *fault, const char *value, int32_t validation)
{
    stage_publish("good", 0);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming_start(consuming, 10);
    consuming_until(consuming, 2);
    assert_string_equal(consuming->messages[0].fault, fault);
    assert_true(lw_bytes_is_equal(consuming->messages[0].value, lw_bytes_of(value)));
    assert_null(consuming->messages[1].fault);
    assert_true(lw_bytes_is_equal(consuming->messages[1].value, lw_bytes_of("good")));
    assert_int_equal(embedded_counts(stage.broker)->acks_invalid[validation], 0);
    consuming_ack_all(consuming);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(embedded_counts(stage.broker)->acks_invalid[validation], 1);
    struct embedded_subscription_info info;
    assert_true(embedded_subscription(stage.broker, CONSUMING_TOPIC, "s", &info));
    assert_int_equal(info.backlog, 0);
    return consuming;
}

static void
a_wrong_checksum_gives_the_bytes_and_no_key(void **state)
{
    (void)state;
    struct embedded_publish damaged = { .key = "key",
                                        .value = lw_bytes_of("damaged"),
                                        .has_wrong_checksum = true };
    (void)embedded_publish(stage.broker, CONSUMING_TOPIC, &damaged);
    struct consuming *consuming = expect_fault("checksum wrong", "damaged",
                                               LW_PULSAR_INVALID_CHECKSUM);
    assert_null(consuming->messages[0].key.data);
    consuming_destroy(consuming);
}

static void
publish_encrypted(void)
{
    uint8_t pairs[64];
    struct lw_proto_writer writer = lw_proto_writer_of(pairs, sizeof pairs);
    lw_pulsar_list_put_pair(&writer, lw_bytes_of("name"), lw_bytes_of("wrapped"));
    struct lw_pulsar_metadata metadata = keyed();
    metadata.encryption_keys = lw_pulsar_list_of(&writer);
    metadata.encryption_param = lw_bytes_of("twelve bytes");
    metadata.compression = LW_PULSAR_COMPRESSION_ZSTD;
    metadata.uncompressed_size = 500;
    metadata.has |= LW_PULSAR_METADATA_HAS_NUM_MESSAGES;
    metadata.num_messages_in_batch = 3;
    stage_store(&metadata, lw_bytes_of("cipher"));
}

/* What would be sent of a copy, as a consumer reads it. */
static void
read_copy(const struct lw_message *message, struct lw_pulsar_command *ret_send,
          struct lw_pulsar_metadata *ret_metadata, uint8_t frame[1024])
{
    struct lw_pulsar_ops ops;
    struct lw_pulsar_op *op = NULL;
    struct lw_pulsar_payload payload;
    assert_int_equal(lw_pulsar_ops_init(&ops, 10), LW_STATUS_OK);
    struct lw_pulsar_encoding encoding = { .ops = &ops,
                                           .producer_name = lw_bytes_of("me"),
                                           .message_bytes_max = 1000000,
                                           .compression = LW_PULSAR_COMPRESSION_LZ4,
                                           .next_id = 7 };
    struct lw_publication publication = {
        .partition = -1, .key = message->key, .value = message->value, .base = message
    };
    struct lw_pulsar_waiting item = { .publication = &publication };
    assert_int_equal(lw_pulsar_encode_single(&encoding, &item, &op), LW_STATUS_OK);
    struct lw_bytes head = lw_pulsar_frame_head(op, &op->frames[0]);
    memcpy(frame, head.data, head.size);
    memcpy(frame + head.size, op->payload.data, op->payload.size);
    struct lw_pulsar_scan scan = lw_pulsar_frame_scan(frame, head.size + op->payload.size,
                                                      1 << 20);
    assert_int_equal(scan.state, LW_PULSAR_SCAN_FRAME);
    assert_int_equal(lw_pulsar_command_decode(scan.command, ret_send), LW_PULSAR_OK);
    assert_int_equal(lw_pulsar_payload_open(scan.rest, &payload), LW_PULSAR_OK);
    assert_int_equal(lw_pulsar_metadata_decode(payload.metadata, ret_metadata), LW_PULSAR_OK);
    assert_true(lw_bytes_is_equal(payload.body, message->value));
    lw_pulsar_op_give(&ops, op);
    lw_pulsar_ops_deinit(&ops);
}

static void
the_copy_of_an_encrypted_batch_has_all_that_decrypting_it_needs(void **state)
{
    (void)state;
    uint8_t frame[1024];
    struct lw_pulsar_command send;
    struct lw_pulsar_metadata copy;
    publish_encrypted();
    stage_publish("good", 0);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming_start(consuming, 10);
    consuming_until(consuming, 2);
    assert_string_equal(consuming->messages[0].fault, "it is encrypted");
    assert_true(lw_bytes_is_equal(consuming->messages[0].key, lw_bytes_of("key")));
    assert_null(lw_pulsar_message_sealed(&consuming->messages[1]).data);
    read_copy(&consuming->messages[0], &send, &copy, frame);
    assert_int_equal(send.send.num_messages, 3);
    assert_int_equal(copy.num_messages_in_batch, 3);
    assert_int_equal(copy.compression, LW_PULSAR_COMPRESSION_ZSTD);
    assert_int_equal(copy.uncompressed_size, 500);
    assert_int_equal(copy.encryption_keys.count, 1);
    assert_true(lw_bytes_is_equal(copy.encryption_param, lw_bytes_of("twelve bytes")));
    assert_true(lw_bytes_is_equal(copy.producer_name, lw_bytes_of("me")));
    assert_int_equal(copy.sequence_id, 7);
    consuming_destroy(consuming);
}

static void
a_batch_that_is_none_comes_as_one_message(void **state)
{
    (void)state;
    struct lw_pulsar_metadata metadata = keyed();
    metadata.has |= LW_PULSAR_METADATA_HAS_NUM_MESSAGES;
    metadata.num_messages_in_batch = 3;
    stage_store(&metadata, lw_bytes_of("no batch at all"));
    consuming_destroy(
        expect_fault("malformed batch", "no batch at all", LW_PULSAR_INVALID_BATCH));
}

static void
a_batch_that_breaks_off_comes_as_one_message(void **state)
{
    (void)state;
    uint8_t body[64];
    struct lw_proto_writer writer = lw_proto_writer_of(body, sizeof body);
    struct lw_pulsar_single_metadata single = lw_pulsar_single_metadata_of();
    lw_pulsar_batch_append(&single, lw_bytes_of("whole"), &writer);
    lw_proto_put_raw(&writer, "\0\0\0\2rest that is no member", 26);
    struct lw_pulsar_metadata metadata = keyed();
    metadata.has |= LW_PULSAR_METADATA_HAS_NUM_MESSAGES;
    metadata.num_messages_in_batch = 2;
    stage_store(&metadata, lw_proto_written(&writer));
    stage_publish("good", 0);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_EXCLUSIVE);
    consuming_start(consuming, 10);
    consuming_until(consuming, 2);
    assert_non_null(consuming->messages[0].fault);
    assert_true(lw_bytes_is_equal(consuming->messages[0].value, lw_proto_written(&writer)));
    assert_null(consuming->messages[1].fault);
    consuming_destroy(consuming);
}

/* Brokers pass such an entry over; one that does not is no reason to end anything. */
static void
metadata_that_is_none_gives_all_the_bytes(void **state)
{
    (void)state;
    static const char rest[] = "\0\0\0\3\xff\xff\xff"
                               "body";
    struct lw_pulsar_message message = { .message_id = lw_pulsar_message_id_of(7, 7) };
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming_start(consuming, 10);
    consuming_rest(consuming);
    struct lw_pulsar_user *user = &consuming->consumer->user;
    user->ops->on_message(user, &message, (struct lw_bytes){ rest, sizeof rest - 1 }, NULL);
    stage_publish("good", 0);
    consuming_until(consuming, 2);
    assert_string_equal(consuming->messages[0].fault, "malformed protocol buffer");
    assert_int_equal(consuming->messages[0].value.size, sizeof rest - 1);
    assert_null(consuming->messages[1].fault);
    consuming_destroy(consuming);
}

/* -- Compression --------------------------------------------------------------------------------- */

static void
publish_packed(int32_t compression, uint32_t claimed, struct lw_bytes body)
{
    struct lw_pulsar_metadata metadata = keyed();
    metadata.compression = compression;
    metadata.uncompressed_size = claimed;
    stage_store(&metadata, body);
}

static void
a_bomb_is_refused_before_memory_is_taken(void **state)
{
    (void)state;
    static const int32_t codecs[] = { LW_PULSAR_COMPRESSION_LZ4, LW_PULSAR_COMPRESSION_ZLIB,
                                      LW_PULSAR_COMPRESSION_ZSTD,
                                      LW_PULSAR_COMPRESSION_SNAPPY };
    uint8_t packed[1024];
    struct lw_pulsar_codec *codec = lw_pulsar_codec_create();
    for (size_t i = 0; i < 4; i++) { /* a few bytes claim to be 100 MiB, which is allowed */
        struct lw_proto_writer writer = lw_proto_writer_of(packed, sizeof packed);
        assert_int_equal(
            lw_pulsar_compress(codec, codecs[i], lw_bytes_of("xxxxxxxxxxxxxxxxxx"), &writer),
            LW_PULSAR_OK);
        publish_packed(codecs[i], 100 << 20, lw_proto_written(&writer));
    }
    lw_pulsar_codec_destroy(codec);
    stage_publish("good", 0);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming_start(consuming, 10);
    consuming_until(consuming, 5);
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(consuming->messages[i].fault, "claimed uncompressed size refused");
    }
    consuming_ack_all(consuming);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(
        embedded_counts(stage.broker)->acks_invalid[LW_PULSAR_INVALID_UNCOMPRESSED_SIZE], 4);
    consuming_destroy(consuming);
}

static void
packed_data_that_is_none_gives_its_bytes(void **state)
{
    (void)state;
    publish_packed(LW_PULSAR_COMPRESSION_ZLIB, 100, lw_bytes_of("this is no zlib stream"));
    consuming_destroy(expect_fault("compressed data corrupt", "this is no zlib stream",
                                   LW_PULSAR_INVALID_DECOMPRESSION));
}

static void
a_codec_that_nobody_knows_gives_its_bytes(void **state)
{
    (void)state;
    publish_packed(17, 100, lw_bytes_of("packed in a new way"));
    consuming_destroy(expect_fault("unknown compression", "packed in a new way",
                                   LW_PULSAR_INVALID_DECOMPRESSION));
}

/* -- Chunks ---------------------------------------------------------------------------------------- */

static void
publish_chunk(int32_t id, int32_t count, int32_t total, int32_t compression, const char *body)
{
    struct lw_pulsar_metadata metadata = keyed();
    metadata.uuid = lw_bytes_of("p-1");
    metadata.has |= LW_PULSAR_METADATA_HAS_NUM_CHUNKS |
                    LW_PULSAR_METADATA_HAS_TOTAL_CHUNK_SIZE | LW_PULSAR_METADATA_HAS_CHUNK_ID;
    metadata.num_chunks_from_msg = count;
    metadata.total_chunk_msg_size = total;
    metadata.chunk_id = id;
    metadata.compression = compression;
    metadata.uncompressed_size = compression == LW_PULSAR_COMPRESSION_NONE ? 0 : 50;
    stage_store(&metadata, lw_bytes_of(body));
}

static void
a_whole_of_chunks_that_cannot_be_unpacked_is_one_message_whose_ack_is_of_all(void **state)
{
    (void)state;
    publish_chunk(0, 2, 12, LW_PULSAR_COMPRESSION_ZLIB, "no zlib");
    publish_chunk(1, 2, 12, LW_PULSAR_COMPRESSION_ZLIB, " here");
    consuming_destroy(expect_fault("compressed data corrupt", "no zlib here",
                                   LW_PULSAR_INVALID_DECOMPRESSION));
    for (uint64_t entry = 0; entry < 3; entry++) {
        assert_true(embedded_is_acked(stage.broker, CONSUMING_TOPIC, "s", entry));
    }
}

static void
chunks_that_do_not_add_up_are_one_message_with_all_that_came(void **state)
{
    (void)state;
    publish_chunk(0, 2, 20, LW_PULSAR_COMPRESSION_NONE, "a beginning");
    publish_chunk(1, 2, 20, LW_PULSAR_COMPRESSION_NONE, ", an end");
    consuming_destroy(expect_fault("its chunks do not add up to the size that they tell",
                                   "a beginning, an end", LW_PULSAR_INVALID_UNCOMPRESSED_SIZE));
    for (uint64_t entry = 0; entry < 3; entry++) {
        assert_true(embedded_is_acked(stage.broker, CONSUMING_TOPIC, "s", entry));
    }
}

/* -- Life ------------------------------------------------------------------------------------------ */

static void
given_back_it_comes_again_with_its_fault(void **state)
{
    (void)state;
    struct embedded_publish damaged = { .value = lw_bytes_of("damaged"),
                                        .has_wrong_checksum = true };
    (void)embedded_publish(stage.broker, CONSUMING_TOPIC, &damaged);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming_start(consuming, 10);
    consuming_until(consuming, 1);
    consuming_nack(consuming, 0, 100);
    consuming_pass_ms(consuming, 200);
    consuming_until(consuming, 2);
    assert_string_equal(consuming->messages[1].fault, "checksum wrong");
    assert_int_equal(consuming->messages[1].redeliveries, 1);
    consuming_destroy(consuming);
}

static void
detached_it_keeps_its_bytes(void **state)
{
    (void)state;
    publish_packed(17, 100, lw_bytes_of("packed in a new way"));
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming_start(consuming, 10);
    consuming_until(consuming, 1);
    assert_true(lw_pulsar_message_detach(&consuming->messages[0]));
    assert_true(
        lw_bytes_is_equal(consuming->messages[0].value, lw_bytes_of("packed in a new way")));
    assert_true(lw_bytes_is_equal(consuming->messages[0].key, lw_bytes_of("key")));
    consuming_destroy(consuming);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_wrong_checksum_gives_the_bytes_and_no_key),
        TEST(the_copy_of_an_encrypted_batch_has_all_that_decrypting_it_needs),
        TEST(a_batch_that_is_none_comes_as_one_message),
        TEST(a_batch_that_breaks_off_comes_as_one_message),
        TEST(metadata_that_is_none_gives_all_the_bytes),
        TEST(a_bomb_is_refused_before_memory_is_taken),
        TEST(packed_data_that_is_none_gives_its_bytes),
        TEST(a_codec_that_nobody_knows_gives_its_bytes),
        TEST(a_whole_of_chunks_that_cannot_be_unpacked_is_one_message_whose_ack_is_of_all),
        TEST(chunks_that_do_not_add_up_are_one_message_with_all_that_came),
        TEST(given_back_it_comes_again_with_its_fault),
        TEST(detached_it_keeps_its_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
