/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries as other producers and misfortune make them: batches of one, of many keys, with nothing
 * in them, broken in every place, and partly acknowledged; what becomes of them, and that broker
 * and consumer agree about the permits afterwards.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#include "brokers/pulsar/wire/compress.h"
#include "tests/brokers/pulsar/stage.h"

/* -- Batches by hand -------------------------------------------------------------------------------- */

struct made {
    uint8_t bytes[8192];
    struct lw_proto_writer writer;
    struct lw_pulsar_metadata metadata;
};

static struct made made;

static void
begin_batch(int32_t count)
{
    made.writer = lw_proto_writer_of(made.bytes, sizeof made.bytes);
    made.metadata = stage_metadata();
    made.metadata.has |= LW_PULSAR_METADATA_HAS_NUM_MESSAGES;
    made.metadata.num_messages_in_batch = count;
}

static void
add_member(const char *key, const char *ordering_key, struct lw_bytes value)
{
    struct lw_pulsar_single_metadata single = lw_pulsar_single_metadata_of();
    single.partition_key = lw_bytes_of(key);
    single.ordering_key = lw_bytes_of(ordering_key);
    lw_pulsar_batch_append(&single, value, &made.writer);
}

static void
end_batch(void)
{
    assert_false(lw_proto_is_overflow(&made.writer));
    stage_store(&made.metadata, lw_proto_written(&made.writer));
}

static void
expect_text(struct lw_bytes bytes, const char *text)
{
    assert_int_equal(bytes.size, strlen(text));
    assert_memory_equal(bytes.data, text, strlen(text));
}

/* -- What is in them --------------------------------------------------------------------------------- */

static void
a_batch_of_one_is_a_batch(void **state)
{
    (void)state;
    stage_publish("alone", 1);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming->settings.acks_batch_index = false;
    consuming_start(consuming, 10);
    consuming_until(consuming, 1);
    expect_text(consuming->messages[0].value, "alone");
    assert_int_equal(lw_pulsar_message_own_id(&consuming->messages[0]).batch_index, 0);
    consuming_ack_all(consuming);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(stage_subscription("s").backlog, 0);
    consuming_destroy(consuming);
}

static void
keys_are_those_of_each_member_and_not_of_the_batch(void **state)
{
    static const char *const keys[] = { "a", "b", "a", "c" };
    static const char *const ordering[] = { "x", NULL, "y", "x" };
    (void)state;
    begin_batch(4);
    made.metadata.partition_key = lw_bytes_of("a");
    made.metadata.ordering_key = lw_bytes_of("x");
    for (int i = 0; i < 4; i++) {
        add_member(keys[i], ordering[i], lw_bytes_of("v"));
    }
    end_batch();
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming_start(consuming, 10);
    consuming_until(consuming, 4);
    for (int i = 0; i < 4; i++) {
        expect_text(consuming->messages[i].key, keys[i]);
        assert_int_equal(consuming->messages[i].ordering_key.data == NULL, ordering[i] == NULL);
        expect_text(consuming->messages[i].ordering_key, ordering[i] ? ordering[i] : "");
    }
    consuming_destroy(consuming);
}

/* First, in the middle and last, alone and in a batch: all move on. */
static void
null_and_empty_values_are_messages_and_differ(void **state)
{
    static const char nothing[1];
    struct lw_bytes empty = { nothing, 0 };
    struct lw_bytes null = { NULL, 0 };
    (void)state;
    begin_batch(3);
    add_member("k", NULL, null);
    add_member("k", NULL, empty);
    add_member("k", NULL, null);
    end_batch();
    struct lw_pulsar_metadata metadata = stage_metadata();
    stage_store(&metadata, empty);
    metadata.null_value = true;
    stage_store(&metadata, empty);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_EXCLUSIVE);
    consuming_start(consuming, 10);
    consuming_until(consuming, 5);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(consuming->messages[i].value.data == NULL, i % 2 == 0);
        assert_int_equal(consuming->messages[i].value.size, 0);
    }
    consuming_ack_all(consuming);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(stage_subscription("s").backlog, 0);
    consuming_destroy(consuming);
}

static void
a_compacted_batch_is_done_when_what_is_left_of_it_is(void **state)
{
    uint8_t numbers[64];
    (void)state;
    begin_batch(5);
    struct lw_proto_writer writer = lw_proto_writer_of(numbers, sizeof numbers);
    lw_pulsar_list_put_number(&writer, 1);
    lw_pulsar_list_put_number(&writer, 4);
    made.metadata.compacted_batch_indexes = lw_pulsar_list_of(&writer);
    add_member("k", NULL, lw_bytes_of("one"));
    add_member("k", NULL, lw_bytes_of("four"));
    end_batch();
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_EXCLUSIVE);
    consuming->settings.acks_batch_index = false;
    consuming_start(consuming, 10);
    consuming_until(consuming, 2);
    expect_text(consuming->messages[1].value, "four");
    assert_int_equal(lw_pulsar_message_own_id(&consuming->messages[1]).batch_index, 4);
    consuming_ack_all(consuming);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(stage_subscription("s").backlog, 0);
    consuming_destroy(consuming);
}

/* -- What is wrong with them -------------------------------------------------------------------------- */

static void
store_batch_that_claims(int32_t count, int32_t members)
{
    begin_batch(count);
    for (int32_t i = 0; i < members; i++) {
        add_member("k", NULL, lw_bytes_of("value"));
    }
    end_batch();
}

/* One after the other; returns how many. */
static size_t
store_broken(void)
{
    struct lw_pulsar_metadata metadata = stage_metadata();
    store_batch_that_claims(3, 2); /* an end in the middle */
    store_batch_that_claims(0, 1);
    store_batch_that_claims(-1, 1);
    store_batch_that_claims(200, 2); /* more than the bytes can hold */
    begin_batch(1);
    add_member("k", NULL, lw_bytes_of("value"));
    made.bytes[0] = 0x7f; /* a length past all bytes */
    end_batch();
    begin_batch(1);
    end_batch(); /* nothing in it */
    for (int32_t codec = LW_PULSAR_COMPRESSION_LZ4; codec <= LW_PULSAR_COMPRESSION_SNAPPY + 1;
         codec++) {
        metadata.compression = codec; /* the last one is none that we know */
        metadata.uncompressed_size = 100;
        stage_store(&metadata, lw_bytes_of("this is not packed at all"));
        metadata.uncompressed_size = UINT32_MAX;
        stage_store(&metadata, lw_bytes_of("this is not packed at all"));
        metadata.uncompressed_size = 0;
        stage_store(&metadata, lw_bytes_of("this is not packed at all"));
    }
    metadata = stage_metadata();
    metadata.has |= LW_PULSAR_METADATA_HAS_NUM_CHUNKS |
                    LW_PULSAR_METADATA_HAS_TOTAL_CHUNK_SIZE | LW_PULSAR_METADATA_HAS_CHUNK_ID;
    metadata.uuid = lw_bytes_of("u");
    metadata.num_chunks_from_msg = 3;
    metadata.chunk_id = 7;
    metadata.total_chunk_msg_size = 9;
    stage_store(&metadata, lw_bytes_of("abc"));
    metadata.chunk_id = 0;
    metadata.total_chunk_msg_size = INT32_MAX;
    stage_store(&metadata, lw_bytes_of("abc"));
    metadata.total_chunk_msg_size = 1;
    stage_store(&metadata, lw_bytes_of("abc"));
    return 6 + 5 * 3 + 3;
}

static void
what_cannot_be_read_is_acknowledged_with_its_reason_and_holds_nothing_up(void **state)
{
    (void)state;
    for (int32_t type = LW_PULSAR_SUB_EXCLUSIVE; type <= LW_PULSAR_SUB_SHARED; type++) {
        struct consuming *consuming = consuming_create(&stage.world, type);
        consuming->settings.receiver_queue_size = 2;
        consuming->settings.subscription = type == LW_PULSAR_SUB_SHARED ? "shared"
                                                                        : "exclusive";
        consuming->settings.initial_position = LW_PULSAR_INITIAL_LATEST;
        consuming->acks = true;
        consuming_start(consuming, 2);
        consuming_rest(consuming);
        size_t broken = store_broken();
        stage_publish("whole", 0);
        consuming_until(consuming, broken + 1);
        consuming_pass_ms(consuming, 200);
        assert_int_equal(consuming_figures(consuming).unreadable, broken);
        assert_int_equal(stage_subscription(consuming->settings.subscription).backlog, 0);
        assert_int_equal(consuming_figures(consuming).sessions, 1);
        consuming_destroy(consuming);
    }
}

static void
an_encrypted_message_is_acknowledged_with_its_reason(void **state)
{
    uint8_t keys[64];
    (void)state;
    struct lw_pulsar_metadata metadata = stage_metadata();
    struct lw_proto_writer writer = lw_proto_writer_of(keys, sizeof keys);
    lw_pulsar_list_put_pair(&writer, lw_bytes_of("key"), lw_bytes_of("wrapped"));
    metadata.encryption_keys = lw_pulsar_list_of(&writer);
    stage_store(&metadata, lw_bytes_of("secret"));
    stage_publish("plain", 0);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming_start(consuming, 2);
    consuming_until(consuming, 2);
    expect_text(consuming->messages[0].value, "secret");
    expect_text(consuming->messages[1].value, "plain");
    consuming_ack_all(consuming);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(embedded_counts(stage.broker)->acks_invalid[LW_PULSAR_INVALID_DECRYPTION],
                     1);
    assert_int_equal(stage_subscription("s").backlog, 0);
    consuming_destroy(consuming);
}

/* The broker charged all members of each: if we gave back one permit, it would soon have none. */
static void
a_damaged_batch_gives_back_the_permits_of_all_its_members(void **state)
{
    struct embedded_publish damaged = { .value = lw_bytes_of("x"),
                                        .batch = 100,
                                        .has_wrong_checksum = true };
    (void)state;
    for (int i = 0; i < 100; i++) {
        (void)embedded_publish(stage.broker, CONSUMING_TOPIC, &damaged);
    }
    stage_publish("whole", 0);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming_start(consuming, 1000);
    consuming_until(consuming, 101);
    consuming_ack_all(consuming);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(consuming_figures(consuming).unreadable, 100);
    stage_expect_permits_agree(consuming, "s");
    consuming_destroy(consuming);
}

/* -- Partly acknowledged ------------------------------------------------------------------------------- */

static void
members_that_the_broker_did_not_charge_give_back_no_permits(void **state)
{
    (void)state;
    stage_publish("a", 50);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming->settings.receiver_queue_size = 60;
    consuming_start(consuming, 60);
    consuming_until(consuming, 50);
    for (size_t i = 0; i < 49; i++) {
        consuming_ack(consuming, i);
    }
    consuming_pass_ms(consuming, 200);
    for (size_t round = 0; round < 20; round++) {
        consuming_nack(consuming, 49 + round, 100);
        consuming_pass_ms(consuming, 150);
        consuming_until(consuming, 51 + round);
    }
    stage_expect_permits_agree(consuming, "s");
    assert_true(embedded_counts(stage.broker)->permits_max <= 60);
    consuming_ack_all(consuming);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(stage_subscription("s").backlog, 0);
    consuming_destroy(consuming);
}

static void
without_acks_of_members_nothing_is_sent_before_a_batch_is_done(void **state)
{
    (void)state;
    stage_publish("a", 3);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming->settings.acks_batch_index = false;
    consuming_start(consuming, 10);
    consuming_until(consuming, 3);
    consuming_ack(consuming, 1);
    consuming_ack(consuming, 0);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(stage_count_in(LW_PULSAR_ACK), 0);
    consuming_ack(consuming, 2);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(embedded_counts(stage.broker)->acked_ids, 1);
    assert_int_equal(stage_subscription("s").backlog, 0);
    consuming_destroy(consuming);
}

/* Half of it is done and said so when the other half is held too long. */
static void
of_a_batch_held_too_long_only_what_is_not_done_comes_again(void **state)
{
    (void)state;
    stage_publish("a", 4);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming->settings.ack_timeout_ns = 1000 * LW_MS;
    consuming->settings.ack_group_ns = 60000 * LW_MS;
    consuming_start(consuming, 10);
    consuming_until(consuming, 4);
    consuming_ack(consuming, 0);
    consuming_ack(consuming, 1);
    consuming_pass_ms(consuming, 1100);
    consuming_until(consuming, 6);
    consuming_rest(consuming);
    assert_int_equal(consuming->count, 6);
    consuming_ack(consuming, 4);
    consuming_ack(consuming, 5);
    consuming_destroy(consuming);
    assert_int_equal(stage_subscription("s").backlog, 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        STAGE_TEST(a_batch_of_one_is_a_batch),
        STAGE_TEST(keys_are_those_of_each_member_and_not_of_the_batch),
        STAGE_TEST(null_and_empty_values_are_messages_and_differ),
        STAGE_TEST(a_compacted_batch_is_done_when_what_is_left_of_it_is),
        STAGE_TEST(what_cannot_be_read_is_acknowledged_with_its_reason_and_holds_nothing_up),
        STAGE_TEST(an_encrypted_message_is_acknowledged_with_its_reason),
        STAGE_TEST(a_damaged_batch_gives_back_the_permits_of_all_its_members),
        STAGE_TEST(members_that_the_broker_did_not_charge_give_back_no_permits),
        STAGE_TEST(without_acks_of_members_nothing_is_sent_before_a_batch_is_done),
        STAGE_TEST(of_a_batch_held_too_long_only_what_is_not_done_comes_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
