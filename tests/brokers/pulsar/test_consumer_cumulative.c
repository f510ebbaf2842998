/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Acknowledgements of all up to a place, on Exclusive and Failover: when they may go, and that they
 * never cover what is held, refused, let go, put together, damaged, or not sent again yet. The
 * broker counts one that covers what it never gave.
 */
#include "tests/support/test.h"

#include <string.h>

#include "tests/brokers/pulsar/stage.h"

enum { COUNT = 400 };

static struct consuming *
begin(int32_t type, size_t messages, uint32_t batch)
{
    embedded_fill(stage.broker, CONSUMING_TOPIC, messages, 20, 0, batch);
    struct consuming *consuming = consuming_create(&stage.world, type);
    consuming->settings.acks_batch_index = false;
    consuming_start(consuming, 2000);
    consuming_rest(consuming);
    embedded_pass_ms(stage.broker, 2000); /* Failover waits before it begins */
    consuming_until(consuming, messages);
    return consuming;
}

static void
ack_range(struct consuming *consuming, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        if (consuming->messages[i].owner) {
            consuming_ack(consuming, i);
        }
    }
}

static uint64_t
backlog(void)
{
    return stage_subscription("s").backlog;
}

static uint64_t
cumulative(void)
{
    return embedded_counts(stage.broker)->ack_commands_cumulative;
}

static void
what_is_settled_to_the_last_goes_as_one_id(void **state)
{
    (void)state;
    static const int32_t types[] = { LW_PULSAR_SUB_EXCLUSIVE, LW_PULSAR_SUB_FAILOVER };
    for (size_t i = 0; i < 2; i++) {
        struct consuming *consuming = begin(types[i], COUNT, 0);
        embedded_reset_counts(stage.broker);
        ack_range(consuming, 0, COUNT);
        consuming_pass_ms(consuming, 200);
        assert_int_equal(backlog(), 0);
        assert_int_equal(embedded_counts(stage.broker)->acked_ids, 1);
        assert_int_equal(cumulative(), 1);
        assert_int_equal(consuming_figures(consuming).acks_unconfirmed, 0);
        assert_int_equal(consuming_figures(consuming).held, 0);
        consuming_destroy(consuming);
    }
}

static void
shared_subscriptions_name_every_id(void **state)
{
    (void)state;
    for (int32_t type = LW_PULSAR_SUB_SHARED; type <= LW_PULSAR_SUB_KEY_SHARED; type += 2) {
        struct consuming *consuming = begin(type, COUNT, 0);
        embedded_reset_counts(stage.broker);
        ack_range(consuming, 0, COUNT);
        consuming_pass_ms(consuming, 200);
        assert_int_equal(backlog(), 0);
        assert_int_equal(embedded_counts(stage.broker)->acked_ids, COUNT);
        assert_int_equal(cumulative(), 0);
        consuming_destroy(consuming);
    }
}

static void
behind_what_is_held_each_goes_by_itself(void **state)
{
    (void)state;
    struct consuming *consuming = begin(LW_PULSAR_SUB_EXCLUSIVE, COUNT, 0);
    embedded_reset_counts(stage.broker);
    ack_range(consuming, 0, 300);
    ack_range(consuming, 301, COUNT);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(backlog(), 1);
    assert_int_equal(cumulative(), 1);
    assert_int_equal(embedded_counts(stage.broker)->acked_ids, 1 + COUNT - 301);
    consuming_ack(consuming, 300);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(backlog(), 0);
    consuming_destroy(consuming);
}

static void
a_batch_that_is_partly_settled_is_not_covered(void **state)
{
    (void)state;
    struct consuming *consuming = begin(LW_PULSAR_SUB_EXCLUSIVE, COUNT, 4);
    ack_range(consuming, 0, 202); /* half of the 51st batch */
    ack_range(consuming, 204, COUNT);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(cumulative(), 1);
    assert_int_equal(backlog(), 1);
    ack_range(consuming, 202, 204);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(backlog(), 0);
    consuming_destroy(consuming);
}

static void
what_was_refused_is_not_covered_and_comes_again(void **state)
{
    (void)state;
    struct consuming *consuming = begin(LW_PULSAR_SUB_EXCLUSIVE, COUNT, 0);
    consuming_nack(consuming, 100, 1000);
    ack_range(consuming, 0, 100);
    ack_range(consuming, 101, COUNT);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(cumulative(), 1);
    assert_int_equal(backlog(), 1);
    consuming_pass_ms(consuming, 1000);
    consuming_until(consuming, COUNT + 1);
    assert_int_equal(consuming->messages[COUNT].position, consuming->messages[100].position);
    ack_range(consuming, COUNT, COUNT + 1);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(backlog(), 0);
    embedded_fill(stage.broker, CONSUMING_TOPIC, 100, 20, 0, 0);
    consuming_until(consuming, COUNT + 101);
    ack_range(consuming, COUNT + 1, COUNT + 101);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(cumulative(), 2); /* and all is as before */
    consuming_destroy(consuming);
}

/* A refusal that is due lets its message go; what is acknowledged meanwhile is behind it. */
static void
what_the_broker_shall_read_again_is_not_covered(void **state)
{
    (void)state;
    struct consuming *consuming = begin(LW_PULSAR_SUB_EXCLUSIVE, COUNT, 0);
    stage_fault(EMBEDDED_DELAY, EMBEDDED_OUT, LW_PULSAR_MESSAGE, UINT32_MAX);
    consuming_nack(consuming, 0, 50);
    ack_range(consuming, 1, 200);
    virtual_host_pass(&stage.world.virtual_host, 60 * LW_MS); /* with acks that wait */
    ack_range(consuming, 200, COUNT);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(cumulative(), 0);
    embedded_clear_faults(stage.broker);
    embedded_pass_ms(stage.broker, 1000);
    consuming_pass_ms(consuming, 1000);
    consuming_until(consuming, COUNT + 1);
    assert_int_equal(backlog(), 1);
    consuming_ack_all(consuming);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(backlog(), 0);
    consuming_destroy(consuming);
}

/* As when its ownership ended: nobody said that it was done. */
static void
what_was_let_go_without_a_word_is_not_covered(void **state)
{
    (void)state;
    struct consuming *consuming = begin(LW_PULSAR_SUB_EXCLUSIVE, COUNT, 0);
    lw_pulsar_message_release(&consuming->messages[50]);
    consuming->released++;
    ack_range(consuming, 0, COUNT);
    consuming_destroy(consuming);
    assert_int_equal(cumulative(), 1);
    assert_int_equal(backlog(), 1);
}

static void
chunks_that_wait_for_others_are_not_covered(void **state)
{
    (void)state;
    embedded_fill(stage.broker, CONSUMING_TOPIC, 100, 20, 0, 0);
    stage_chunk("p-1", 0, 2, "abc");
    struct consuming *consuming = begin(LW_PULSAR_SUB_EXCLUSIVE, 100, 0);
    consuming_until(consuming, 200);
    ack_range(consuming, 0, 200);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(cumulative(), 1);
    assert_int_equal(backlog(), 1);
    stage_chunk("p-1", 1, 2, "abc");
    consuming_until(consuming, 201);
    consuming_ack_all(consuming);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(backlog(), 0);
    consuming_destroy(consuming);
}

/* It begins at its first chunk, though it is known by its last one. */
static void
what_lies_between_the_chunks_of_a_held_message_is_behind_it(void **state)
{
    (void)state;
    embedded_fill(stage.broker, CONSUMING_TOPIC, 100, 20, 0, 0);
    stage_chunk("p-1", 0, 2, "abc");
    embedded_fill(stage.broker, CONSUMING_TOPIC, 100, 20, 0, 0);
    stage_chunk("p-1", 1, 2, "abc");
    struct consuming *consuming = begin(LW_PULSAR_SUB_EXCLUSIVE, 100, 0);
    consuming_until(consuming, 301);
    ack_range(consuming, 0, 200);
    ack_range(consuming, 201, 301);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(cumulative(), 1);
    assert_int_equal(backlog(), 2);
    consuming_ack_all(consuming);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(backlog(), 0);
    consuming_destroy(consuming);
}

static void
a_damaged_message_goes_alone_with_its_reason(void **state)
{
    struct embedded_publish damaged = { .value = lw_bytes_of("x"), .has_wrong_checksum = true };
    (void)state;
    embedded_fill(stage.broker, CONSUMING_TOPIC, 100, 20, 0, 0);
    (void)embedded_publish(stage.broker, CONSUMING_TOPIC, &damaged);
    struct consuming *consuming = begin(LW_PULSAR_SUB_EXCLUSIVE, 100, 0);
    consuming_until(consuming, 201);
    ack_range(consuming, 0, 201);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(cumulative(), 1);
    assert_int_equal(embedded_counts(stage.broker)->acks_invalid[LW_PULSAR_INVALID_CHECKSUM],
                     1);
    assert_int_equal(backlog(), 0);
    consuming_destroy(consuming);
}

/* What is held from before is settled when only the first 20 of it have come again. */
static void
in_a_new_session_only_what_came_again_is_covered(void **state)
{
    struct embedded_fault deaf = { .kind = EMBEDDED_LOSE,
                                   .direction = EMBEDDED_IN,
                                   .type = LW_PULSAR_FLOW,
                                   .nth = 2,
                                   .times = UINT32_MAX };
    (void)state;
    struct consuming *consuming = begin(LW_PULSAR_SUB_EXCLUSIVE, COUNT, 0);
    consuming->window = COUNT + 20;
    consuming_rest(consuming);
    embedded_add_fault(stage.broker, &deaf);
    embedded_drop_all(stage.broker);
    consuming_rest(consuming);
    lw_pulsar_message_release(&consuming->messages[50]); /* comes again, if it is not covered */
    consuming->released++;
    consuming_pass_ms(consuming, 200);
    ack_range(consuming, 0, COUNT);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(consuming_figures(consuming).sessions, 2);
    assert_in_range(consuming_figures(consuming).copies_dropped, 20, 21);
    assert_int_equal(cumulative(), 1);
    assert_int_equal(backlog(), 1);
    embedded_clear_faults(stage.broker);
    lw_pulsar_consumer_resubscribe(consuming->consumer);
    consuming_pass_ms(consuming, 200);
    consuming_until(consuming, COUNT + 1);
    consuming_ack_all(consuming);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(backlog(), 0);
    consuming_destroy(consuming);
}

static void
without_its_receipt_all_of_it_goes_again(void **state)
{
    (void)state;
    struct consuming *consuming = begin(LW_PULSAR_SUB_EXCLUSIVE, COUNT, 0);
    stage_fault(EMBEDDED_DROP, EMBEDDED_IN, LW_PULSAR_ACK, 1);
    ack_range(consuming, 0, COUNT);
    consuming_pass_ms(consuming, 120);
    assert_int_equal(backlog(), COUNT);
    assert_int_equal(consuming_figures(consuming).acks_unconfirmed, COUNT);
    for (int i = 0; i < 10; i++) {
        consuming_pass_ms(consuming, 200);
    }
    assert_int_equal(backlog(), 0);
    assert_int_equal(consuming->count, COUNT);
    assert_int_equal(consuming_figures(consuming).acks_unconfirmed, 0);
    consuming_destroy(consuming);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        STAGE_TEST(what_is_settled_to_the_last_goes_as_one_id),
        STAGE_TEST(shared_subscriptions_name_every_id),
        STAGE_TEST(behind_what_is_held_each_goes_by_itself),
        STAGE_TEST(a_batch_that_is_partly_settled_is_not_covered),
        STAGE_TEST(what_was_refused_is_not_covered_and_comes_again),
        STAGE_TEST(what_the_broker_shall_read_again_is_not_covered),
        STAGE_TEST(what_was_let_go_without_a_word_is_not_covered),
        STAGE_TEST(chunks_that_wait_for_others_are_not_covered),
        STAGE_TEST(what_lies_between_the_chunks_of_a_held_message_is_behind_it),
        STAGE_TEST(a_damaged_message_goes_alone_with_its_reason),
        STAGE_TEST(in_a_new_session_only_what_came_again_is_covered),
        STAGE_TEST(without_its_receipt_all_of_it_goes_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
