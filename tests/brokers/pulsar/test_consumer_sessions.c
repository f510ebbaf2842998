/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions of a consumer where answers cross: closes that overlap, subscribes that are answered
 * after nobody wants them any more, seeks that are answered early, late or never, and time-outs
 * that meet each other. Nobody may be left at the broker, nothing may come twice or never.
 */
#include "tests/support/test.h"

#include <string.h>

#include "tests/brokers/pulsar/stage.h"

static void
settle_down(struct consuming *consuming, int seconds)
{
    for (int i = 0; i < seconds * 4; i++) {
        consuming_pass_ms(consuming, 250);
    }
}

/* -- Closing while something is under way -------------------------------------------------------------- */

static void
who_stops_while_it_waits_to_try_again_subscribes_no_more(void **state)
{
    (void)state;
    stage_publish("a", 0);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_EXCLUSIVE);
    consuming_start(consuming, 10);
    consuming_until(consuming, 1);
    embedded_close_consumers(stage.broker, CONSUMING_TOPIC);
    consuming_rest(consuming);
    uint64_t subscribes = stage_count_in(LW_PULSAR_SUBSCRIBE);
    consuming_destroy(consuming);
    virtual_host_pass(&stage.world.virtual_host, 60000 * LW_MS);
    world_rest(&stage.world);
    assert_int_equal(stage_count_in(LW_PULSAR_SUBSCRIBE), subscribes);
}

static void
who_stops_while_it_subscribes_leaves_nobody_behind(void **state)
{
    struct embedded_fault late = {
        .kind = EMBEDDED_DELAY, .direction = EMBEDDED_OUT, .type = LW_PULSAR_SUCCESS, .ms = 1000
    };
    (void)state;
    embedded_add_fault(stage.broker, &late);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_EXCLUSIVE);
    consuming_start(consuming, 10);
    consuming_rest(consuming);
    assert_int_equal(consuming->begun, 0);
    assert_int_equal(embedded_consumers(stage.broker, NULL), 1);
    consuming_destroy(consuming);
    world_rest(&stage.world);
    embedded_pass_ms(stage.broker, 2000);
    world_rest(&stage.world);
    assert_int_equal(embedded_consumers(stage.broker, NULL), 0);
}

/* The close was for the consumer of before; what was subscribed since must not stay as a ghost. */
static void
a_close_that_crosses_a_subscribe_leaves_nobody_behind(void **state)
{
    struct embedded_fault late = {
        .kind = EMBEDDED_DELAY, .direction = EMBEDDED_OUT, .type = LW_PULSAR_SUCCESS, .ms = 1000
    };
    (void)state;
    int other = embedded_add_member(stage.broker, false);
    embedded_settings(stage.broker)->proxy_flag = false;
    embedded_add_fault(stage.broker, &late);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming_start(consuming, 10);
    consuming_rest(consuming);
    struct lw_pulsar_command stale = lw_pulsar_command_of(LW_PULSAR_CLOSE_CONSUMER);
    stale.close_consumer.id = 0;
    stale.close_consumer.request_id = LW_PULSAR_NO_REQUEST;
    embedded_say(stage.broker, &stale);
    embedded_set_owner(stage.broker, CONSUMING_TOPIC, other);
    settle_down(consuming, 2);
    embedded_pass_ms(stage.broker, 2000);
    settle_down(consuming, 1);
    assert_int_equal(consuming->begun, 1);
    assert_int_equal(embedded_consumers(stage.broker, NULL), 1);
    consuming_destroy(consuming);
}

/* -- Several ends at once -------------------------------------------------------------------------------- */

static void
two_closes_in_a_row_clear_nothing_that_came_since(void **state)
{
    (void)state;
    embedded_fill(stage.broker, CONSUMING_TOPIC, 700, 20, 0, 0);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming_start(consuming, 1000);
    consuming_until(consuming, 700);
    embedded_close_consumers(stage.broker, CONSUMING_TOPIC);
    embedded_close_consumers(stage.broker, CONSUMING_TOPIC);
    consuming_pass_ms(consuming, 90);
    embedded_close_consumers(stage.broker, CONSUMING_TOPIC);
    settle_down(consuming, 2);
    embedded_fill(stage.broker, CONSUMING_TOPIC, 300, 20, 0, 0);
    consuming_until(consuming, 1000);
    assert_int_equal(consuming->count, 1000);
    stage_expect_permits_agree(consuming, "s");
    consuming_ack_all(consuming);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(stage_subscription("s").backlog, 0);
    assert_true(embedded_counts(stage.broker)->permits_max <= 1000);
    consuming_destroy(consuming);
}

static void
a_window_of_one_goes_on_after_an_unload(void **state)
{
    (void)state;
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming->settings.receiver_queue_size = 1;
    consuming->acks = true;
    consuming_start(consuming, 1);
    consuming_rest(consuming);
    for (size_t i = 1; i <= 5; i++) {
        embedded_unload(stage.broker, CONSUMING_TOPIC, 0, i % 2);
        settle_down(consuming, 1);
        assert_int_equal(stage_subscription("s").permits, 1);
        stage_publish("a", 0);
        consuming_until(consuming, i);
    }
    consuming_destroy(consuming);
}

/* The time for the first subscribe is over when the connection is lost: nothing of it is left. */
static void
a_deadline_of_before_does_not_end_what_came_after(void **state)
{
    (void)state;
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming_start(consuming, 10);
    consuming_rest(consuming);
    for (int i = 0; i < 119; i++) { /* 29.75 of the 30 s of an operation */
        consuming_pass_ms(consuming, 250);
    }
    embedded_drop_all(stage.broker);
    settle_down(consuming, 2);
    stage_publish("a", 0);
    consuming_until(consuming, 1);
    assert_int_equal(consuming_figures(consuming).sessions, 2);
    consuming_destroy(consuming);
}

static void
the_end_of_a_topic_is_told_once_and_keeps_the_connection(void **state)
{
    (void)state;
    stage_publish("a", 0);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming->acks = true;
    consuming_start(consuming, 10);
    consuming_until(consuming, 1);
    embedded_terminate(stage.broker, CONSUMING_TOPIC);
    settle_down(consuming, 2);
    assert_int_equal(consuming->ended, 1);
    assert_int_equal(consuming_figures(consuming).sessions, 1);
    assert_int_equal(embedded_counts(stage.broker)->connections, 1);
    lw_pulsar_consumer_resubscribe(consuming->consumer);
    settle_down(consuming, 2);
    assert_int_equal(consuming->ended, 1);
    consuming_destroy(consuming);
}

/* -- Seeking ---------------------------------------------------------------------------------------------- */

static const struct lw_pulsar_seek_target earliest = { .id = { .ledger = UINT64_MAX,
                                                               .entry = UINT64_MAX } };

static void
seek_and_expect_all_again(struct consuming *consuming, size_t before, size_t more)
{
    lw_pulsar_consumer_seek(consuming->consumer, &earliest);
    settle_down(consuming, 2);
    consuming_until(consuming, before + more);
    consuming_rest(consuming);
    assert_int_equal(consuming->count, before + more);
    consuming_ack_all(consuming);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(stage_subscription("s").backlog, 0);
}

/* Three times, since a first answer that comes too early has broken the second elsewhere. */
static void
seeks_may_follow_each_other_whichever_answer_comes_first(void **state)
{
    (void)state;
    embedded_fill(stage.broker, CONSUMING_TOPIC, 20, 20, 0, 0);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_EXCLUSIVE);
    consuming_start(consuming, 1000);
    consuming_until(consuming, 20);
    consuming_ack_all(consuming);
    for (size_t i = 1; i <= 4; i++) {
        embedded_settings(stage.broker)->succeeds_before_seek = i % 2 == 0;
        seek_and_expect_all_again(consuming, 20 * i, 20);
    }
    assert_int_equal(consuming->begun, 5);
    assert_int_equal(consuming->lost, 4);
    consuming_destroy(consuming);
}

static void
a_seek_whose_connection_is_lost_is_asked_for_again(void **state)
{
    (void)state;
    embedded_fill(stage.broker, CONSUMING_TOPIC, 20, 20, 0, 0);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming_start(consuming, 1000);
    consuming_until(consuming, 20);
    consuming_ack_all(consuming);
    consuming_pass_ms(consuming, 200);
    stage_fault(EMBEDDED_DROP, EMBEDDED_IN, LW_PULSAR_SEEK, 1);
    seek_and_expect_all_again(consuming, 20, 20);
    consuming_destroy(consuming);
}

static void
a_refused_seek_is_said_and_loses_nothing(void **state)
{
    struct embedded_fault refuse = { .kind = EMBEDDED_REFUSE,
                                     .direction = EMBEDDED_IN,
                                     .type = LW_PULSAR_SEEK,
                                     .error = LW_PULSAR_METADATA_ERROR,
                                     .text = "no" };
    (void)state;
    embedded_fill(stage.broker, CONSUMING_TOPIC, 20, 20, 0, 0);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming_start(consuming, 1000);
    consuming_until(consuming, 20);
    embedded_add_fault(stage.broker, &refuse);
    lw_pulsar_consumer_seek(consuming->consumer, &earliest);
    settle_down(consuming, 2);
    assert_int_equal(consuming->failed, 1);
    consuming_until(consuming, 40); /* what was held belongs to nobody any more */
    consuming_ack_all(consuming);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(stage_subscription("s").backlog, 0);
    consuming_destroy(consuming);
}

/* -- Receipts, refusals, time-outs -------------------------------------------------------------------------- */

static void
a_refused_ack_is_sent_again_in_another_session(void **state)
{
    struct embedded_fault refuse = { .kind = EMBEDDED_REFUSE,
                                     .direction = EMBEDDED_IN,
                                     .type = LW_PULSAR_ACK,
                                     .error = LW_PULSAR_UNKNOWN_ERROR,
                                     .text = "" };
    (void)state;
    stage_publish("a", 0);
    embedded_add_fault(stage.broker, &refuse);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming->acks = true;
    consuming_start(consuming, 10);
    consuming_until(consuming, 1);
    settle_down(consuming, 3);
    assert_int_equal(stage_subscription("s").backlog, 0);
    assert_int_equal(consuming_figures(consuming).sessions, 2);
    assert_int_equal(consuming->count, 1);
    consuming_destroy(consuming);
}

/* Refused shortly before its time is over: asked for once, by the refusal. */
static void
a_refused_message_is_not_asked_for_again_by_its_time_out(void **state)
{
    (void)state;
    stage_publish("a", 0);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming->settings.ack_timeout_ns = 1000 * LW_MS;
    consuming_start(consuming, 10);
    consuming_until(consuming, 1);
    consuming_pass_ms(consuming, 900);
    consuming_nack(consuming, 0, 2000);
    for (int i = 0; i < 9; i++) {
        consuming_pass_ms(consuming, 200);
    }
    assert_int_equal(embedded_counts(stage.broker)->redelivered, 0);
    consuming_pass_ms(consuming, 400);
    consuming_until(consuming, 2);
    assert_int_equal(consuming->messages[1].redeliveries, 1);
    consuming_destroy(consuming);
}

static void
what_was_asked_for_by_its_time_out_may_not_be_refused_any_more(void **state)
{
    (void)state;
    stage_publish("a", 0);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming->settings.ack_timeout_ns = 300 * LW_MS;
    consuming_start(consuming, 10);
    consuming_until(consuming, 1);
    consuming_pass_ms(consuming, 350);
    consuming_until(consuming, 2);
    consuming_nack(consuming, 0, 0);
    consuming_pass_ms(consuming, 100);
    assert_int_equal(embedded_counts(stage.broker)->redelivered, 1);
    consuming_ack(consuming, 1);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(stage_subscription("s").backlog, 0);
    assert_int_equal(embedded_counts(stage.broker)->redelivered, 1);
    consuming_destroy(consuming);
}

/* What waits here for a handler is not late. */
static void
time_in_the_queue_does_not_count(void **state)
{
    (void)state;
    embedded_fill(stage.broker, CONSUMING_TOPIC, 20, 20, 0, 0);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming->settings.ack_timeout_ns = 1000 * LW_MS;
    consuming_start(consuming, 20);
    lw_pulsar_consumer_demand(consuming->consumer, 20, UINT64_MAX);
    for (int i = 0; i < 40; i++) { /* comes and waits, since nobody receives */
        virtual_host_settle(&stage.world.virtual_host);
        virtual_host_pass(&stage.world.virtual_host, 250 * LW_MS);
        world_rest(&stage.world);
    }
    assert_int_equal(consuming_figures(consuming).queued, 20);
    assert_int_equal(stage_count_in(LW_PULSAR_REDELIVER_UNACKNOWLEDGED), 0);
    consuming->acks = true;
    consuming_until(consuming, 20);
    consuming_pass_ms(consuming, 1500);
    assert_int_equal(stage_count_in(LW_PULSAR_REDELIVER_UNACKNOWLEDGED), 0);
    consuming_destroy(consuming);
}

/* One refusal every 100 ms for ten seconds: each comes back after its own delay. */
static void
a_steady_stream_of_refusals_is_served(void **state)
{
    (void)state;
    embedded_fill(stage.broker, CONSUMING_TOPIC, 100, 20, 0, 0);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming_start(consuming, 2000);
    consuming_until(consuming, 100);
    for (size_t i = 0; i < 100; i++) {
        consuming_nack(consuming, i, 1000);
        consuming_pass_ms(consuming, 100);
    }
    assert_in_range(consuming->count, 185, 200);
    consuming_destroy(consuming);
}

static void
what_the_ack_arrives_for_in_time_is_not_asked_for(void **state)
{
    (void)state;
    stage_publish("a", 0);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming_start(consuming, 10);
    consuming_until(consuming, 1);
    struct lw_message message = consuming->messages[0];
    lw_pulsar_consumer_nack(consuming->consumer, &message, 500 * LW_MS);
    lw_pulsar_consumer_ack(consuming->consumer, &message);
    settle_down(consuming, 2);
    assert_int_equal(stage_count_in(LW_PULSAR_REDELIVER_UNACKNOWLEDGED), 0);
    assert_int_equal(stage_subscription("s").backlog, 0);
    assert_int_equal(consuming->count, 1);
    consuming_destroy(consuming);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        STAGE_TEST(who_stops_while_it_waits_to_try_again_subscribes_no_more),
        STAGE_TEST(who_stops_while_it_subscribes_leaves_nobody_behind),
        STAGE_TEST(a_close_that_crosses_a_subscribe_leaves_nobody_behind),
        STAGE_TEST(two_closes_in_a_row_clear_nothing_that_came_since),
        STAGE_TEST(a_window_of_one_goes_on_after_an_unload),
        STAGE_TEST(a_deadline_of_before_does_not_end_what_came_after),
        STAGE_TEST(the_end_of_a_topic_is_told_once_and_keeps_the_connection),
        STAGE_TEST(seeks_may_follow_each_other_whichever_answer_comes_first),
        STAGE_TEST(a_seek_whose_connection_is_lost_is_asked_for_again),
        STAGE_TEST(a_refused_seek_is_said_and_loses_nothing),
        STAGE_TEST(a_refused_ack_is_sent_again_in_another_session),
        STAGE_TEST(a_refused_message_is_not_asked_for_again_by_its_time_out),
        STAGE_TEST(what_was_asked_for_by_its_time_out_may_not_be_refused_any_more),
        STAGE_TEST(time_in_the_queue_does_not_count),
        STAGE_TEST(a_steady_stream_of_refusals_is_served),
        STAGE_TEST(what_the_ack_arrives_for_in_time_is_not_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
