/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunked messages through a consumer: all of a message's chunks are acknowledged and asked for
 * together, none is mixed with those of another session or another attempt to publish, and every
 * one that is given up gives its permit back.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#include "tests/brokers/pulsar/stage.h"

static void
publish_chunked(const char *uuid, const char *body, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        stage_chunk(uuid, i, count, body);
    }
}

static void
expect_body(const struct lw_message *message, const char *value)
{
    assert_int_equal(message->value.size, strlen(value));
    assert_memory_equal(message->value.data, value, strlen(value));
}

static void
a_message_is_whole_and_all_its_chunks_are_acknowledged(void **state)
{
    (void)state;
    for (int32_t type = LW_PULSAR_SUB_EXCLUSIVE; type <= LW_PULSAR_SUB_SHARED; type++) {
        struct consuming *consuming = consuming_create(&stage.world, type);
        consuming->settings.subscription = type == LW_PULSAR_SUB_SHARED ? "shared" : "s";
        publish_chunked("p-1", "abc", 3);
        consuming_start(consuming, 10);
        consuming_until(consuming, 1);
        expect_body(&consuming->messages[0], "abcabcabc");
        consuming_pass_ms(consuming, 500);
        assert_true(stage_subscription(consuming->settings.subscription).backlog >= 3);
        consuming_pass_ms(consuming, 500);
        consuming_ack_all(consuming);
        consuming_pass_ms(consuming, 500);
        consuming_ack_all(consuming);
        consuming_pass_ms(consuming, 500);
        assert_int_equal(stage_subscription(consuming->settings.subscription).backlog, 0);
        consuming_destroy(consuming);
    }
}

static void
a_refused_message_is_asked_for_with_all_its_chunks(void **state)
{
    (void)state;
    publish_chunked("p-1", "abc", 3);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming_start(consuming, 10);
    consuming_until(consuming, 1);
    consuming_nack(consuming, 0, 500);
    consuming_pass_ms(consuming, 600);
    consuming_until(consuming, 2);
    assert_int_equal(embedded_counts(stage.broker)->redelivered, 3);
    expect_body(&consuming->messages[1], "abcabcabc");
    consuming_ack_all(consuming);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(stage_subscription("s").backlog, 0);
    consuming_destroy(consuming);
}

static void
a_message_held_too_long_is_asked_for_with_all_its_chunks(void **state)
{
    (void)state;
    publish_chunked("p-1", "abc", 3);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming->settings.ack_timeout_ns = 2000 * LW_MS;
    consuming_start(consuming, 10);
    consuming_until(consuming, 1);
    consuming_pass_ms(consuming, 2100);
    consuming_until(consuming, 2);
    assert_int_equal(embedded_counts(stage.broker)->redelivered, 3);
    consuming_ack(consuming, 1);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(stage_subscription("s").backlog, 0);
    consuming_destroy(consuming);
}

static void
chunks_of_before_a_lost_connection_are_not_mixed_with_those_after(void **state)
{
    (void)state;
    stage_chunk("p-1", 0, 3, "abc");
    stage_chunk("p-1", 1, 3, "abc");
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming_start(consuming, 10);
    consuming_rest(consuming);
    assert_int_equal(consuming_figures(consuming).chunked_pending, 1);
    embedded_drop_all(stage.broker);
    consuming_pass_ms(consuming, 1000);
    stage_chunk("p-1", 2, 3, "abc");
    consuming_until(consuming, 1);
    expect_body(&consuming->messages[0], "abcabcabc");
    consuming_ack_all(consuming);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(stage_subscription("s").backlog, 0);
    stage_expect_permits_agree(consuming, "s");
    consuming_destroy(consuming);
}

static void
a_held_message_is_not_given_twice_when_its_chunks_come_again(void **state)
{
    (void)state;
    publish_chunked("p-1", "abc", 3);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming_start(consuming, 10);
    consuming_until(consuming, 1);
    embedded_drop_all(stage.broker);
    consuming_pass_ms(consuming, 1000);
    assert_int_equal(consuming->count, 1);
    assert_int_equal(consuming_figures(consuming).sessions, 2);
    consuming_ack_all(consuming);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(stage_subscription("s").backlog, 0);
    consuming_destroy(consuming);
}

static void
chunks_that_a_second_attempt_replaced_are_acknowledged(void **state)
{
    (void)state;
    stage_chunk("p-1", 0, 3, "abc");
    stage_chunk("p-1", 1, 3, "abc");
    publish_chunked("p-1", "xyz", 3);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming_start(consuming, 10);
    consuming_until(consuming, 1);
    expect_body(&consuming->messages[0], "xyzxyzxyz");
    consuming_ack_all(consuming);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(stage_subscription("s").backlog, 0);
    consuming_destroy(consuming);
}

/* Beginnings, ends and middles alone, in a window far smaller than their number. */
static void
what_never_becomes_a_message_gives_its_permits_back(void **state)
{
    (void)state;
    for (int i = 0; i < 30; i++) {
        char uuid[16];
        (void)snprintf(uuid, sizeof uuid, "p-%d", i);
        if (i % 3 != 2) {
            stage_chunk(uuid, 0, 4, "abc");
        }
        stage_chunk(uuid, i % 2 ? 2 : 1, 4, "abc");
        stage_chunk(uuid, 3, 4, "abc");
    }
    stage_publish("whole", 0);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming->settings.receiver_queue_size = 5;
    consuming->settings.acks_oldest_chunked = true;
    consuming_start(consuming, 5);
    consuming_until(consuming, 1);
    consuming_ack_all(consuming);
    for (int i = 0; i < 70; i++) {
        consuming_pass_ms(consuming, 1000);
    }
    assert_int_equal(consuming_figures(consuming).chunked_pending, 0);
    assert_int_equal(stage_subscription("s").backlog, 0);
    stage_expect_permits_agree(consuming, "s");
    consuming_destroy(consuming);
}

/* Eleven at a time are one too many, and all are older than what counts as complete. */
static void
of_more_messages_than_are_put_together_at_a_time_none_is_lost(void **state)
{
    (void)state;
    enum { MESSAGES = 14, CHUNKS = 3 };
    char uuid[16];
    for (int32_t chunk = 0; chunk < CHUNKS; chunk++) {
        for (int i = 0; i < MESSAGES; i++) {
            (void)snprintf(uuid, sizeof uuid, "p-%d", i);
            stage_chunk(uuid, chunk, CHUNKS, "abc");
        }
    }
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    virtual_host_pass(&stage.world.virtual_host, 3600000 * LW_MS);
    consuming->acks = true;
    consuming_start(consuming, 100);
    for (int i = 0; i < 50 && consuming->count < MESSAGES; i++) {
        consuming_pass_ms(consuming, 1000);
    }
    consuming_pass_ms(consuming, 1000);
    assert_int_equal(consuming->count, MESSAGES);
    assert_int_equal(stage_subscription("s").backlog, 0);
    consuming_destroy(consuming);
}

/* Its end came alone and waits to be asked for; a new session brings the whole of it. */
static void
a_message_whose_end_came_alone_before_is_given_when_it_is_whole(void **state)
{
    (void)state;
    stage_fault(EMBEDDED_LOSE, EMBEDDED_OUT, LW_PULSAR_MESSAGE, 1);
    publish_chunked("p-1", "abc", 2);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming->settings.nack_delay_ns = 60000 * LW_MS;
    consuming_start(consuming, 10);
    consuming_rest(consuming);
    assert_int_equal(consuming_figures(consuming).entries, 1);
    embedded_drop_all(stage.broker);
    consuming_pass_ms(consuming, 1000);
    consuming_until(consuming, 1);
    expect_body(&consuming->messages[0], "abcabc");
    consuming_ack_all(consuming);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(stage_subscription("s").backlog, 0);
    consuming_pass_ms(consuming, 61000);
    assert_int_equal(embedded_counts(stage.broker)->redelivered, 0);
    consuming_destroy(consuming);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        STAGE_TEST(a_message_is_whole_and_all_its_chunks_are_acknowledged),
        STAGE_TEST(a_refused_message_is_asked_for_with_all_its_chunks),
        STAGE_TEST(a_message_held_too_long_is_asked_for_with_all_its_chunks),
        STAGE_TEST(chunks_of_before_a_lost_connection_are_not_mixed_with_those_after),
        STAGE_TEST(a_held_message_is_not_given_twice_when_its_chunks_come_again),
        STAGE_TEST(chunks_that_a_second_attempt_replaced_are_acknowledged),
        STAGE_TEST(what_never_becomes_a_message_gives_its_permits_back),
        STAGE_TEST(of_more_messages_than_are_put_together_at_a_time_none_is_lost),
        STAGE_TEST(a_message_whose_end_came_alone_before_is_given_when_it_is_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
