/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reader of the compacted view acknowledges cumulatively, and never beyond what it has not
 * finished.
 */
#include "tests/support/test.h"

#include <string.h>

#include "tests/brokers/pulsar/stage.h"

/* A reader that has received so many messages. */
static struct consuming *
read_all(size_t messages)
{
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_EXCLUSIVE);
    consuming->settings.reads_compacted = true;
    consuming_start(consuming, 100);
    consuming_until(consuming, messages);
    return consuming;
}

static struct consuming *
begin(size_t messages)
{
    embedded_fill(stage.broker, CONSUMING_TOPIC, messages, 20, 0, 0);
    return read_all(messages);
}

static uint64_t
backlog(void)
{
    return stage_subscription("s").backlog;
}

static void
nothing_is_acknowledged_beyond_the_first_unfinished_one(void **state)
{
    (void)state;
    struct consuming *consuming = begin(10);
    for (size_t i = 0; i < 10; i++) {
        if (i != 3) {
            consuming_ack(consuming, i);
        }
    }
    consuming_pass_ms(consuming, 200);
    assert_int_equal(backlog(), 7);
    assert_int_equal(embedded_counts(stage.broker)->ack_commands, 1);
    consuming_pass_ms(consuming, 1000);
    assert_int_equal(embedded_counts(stage.broker)->ack_commands, 1);
    consuming_ack(consuming, 3);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(backlog(), 0);
    assert_int_equal(embedded_counts(stage.broker)->ack_commands, 2);
    assert_int_equal(consuming_figures(consuming).held, 0);
    consuming_destroy(consuming);
}

static void
what_is_finished_behind_it_is_known_after_a_lost_connection(void **state)
{
    (void)state;
    struct consuming *consuming = begin(10);
    for (size_t i = 1; i < 10; i++) {
        consuming_ack(consuming, i);
    }
    consuming_pass_ms(consuming, 200);
    assert_int_equal(backlog(), 10);
    embedded_drop_all(stage.broker);
    consuming_pass_ms(consuming, 1000);
    consuming_ack_all(consuming);
    consuming_pass_ms(consuming, 1000);
    consuming_rest(consuming);
    assert_int_equal(backlog(), 0);
    consuming_destroy(consuming);
}

static void
what_is_given_back_comes_again_and_holds_the_mark(void **state)
{
    (void)state;
    struct consuming *consuming = begin(10);
    consuming_nack(consuming, 4, 300);
    for (size_t i = 0; i < 10; i++) {
        if (i != 4) {
            consuming_ack(consuming, i);
        }
    }
    consuming_pass_ms(consuming, 200);
    assert_int_equal(backlog(), 6);
    consuming_pass_ms(consuming, 300);
    consuming_until(consuming, 11);
    assert_int_equal(consuming->messages[10].position, consuming->messages[4].position);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(backlog(), 6);
    consuming_ack(consuming, 10);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(backlog(), 0);
    consuming_destroy(consuming);
}

static void
a_stop_does_not_wait_for_what_cannot_be_acknowledged(void **state)
{
    (void)state;
    struct consuming *consuming = begin(10);
    consuming_ack(consuming, 0);
    consuming_ack(consuming, 5);
    uint64_t before = stage.world.host->now;
    consuming_destroy(consuming);
    assert_true(stage.world.host->now - before < 1000 * LW_MS);
    assert_int_equal(backlog(), 9);
}

static void
batches_are_acknowledged_when_all_their_members_are(void **state)
{
    (void)state;
    stage_publish("batched", 5);
    struct consuming *consuming = read_all(5);
    for (size_t i = 0; i < 4; i++) {
        consuming_ack(consuming, i);
    }
    consuming_pass_ms(consuming, 200);
    assert_int_equal(embedded_counts(stage.broker)->ack_commands, 0);
    consuming_ack(consuming, 4);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(embedded_counts(stage.broker)->ack_commands, 1);
    consuming_destroy(consuming);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        STAGE_TEST(nothing_is_acknowledged_beyond_the_first_unfinished_one),
        STAGE_TEST(what_is_finished_behind_it_is_known_after_a_lost_connection),
        STAGE_TEST(what_is_given_back_comes_again_and_holds_the_mark),
        STAGE_TEST(a_stop_does_not_wait_for_what_cannot_be_acknowledged),
        STAGE_TEST(batches_are_acknowledged_when_all_their_members_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
