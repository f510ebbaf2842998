/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A consumer against the embedded broker: what it is given, acknowledges, asks for again, and how
 * it survives the end of its session. The broker counts an id that is acknowledged twice in one
 * connection and epoch, permits beyond the setting, and everything that is left behind.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "tests/brokers/pulsar/consuming.h"

struct stage {
    struct world world;
    struct embedded *broker;
    struct embedded_settings settings;
    uint64_t live;
};

static struct stage stage;

static int
set_up(void **state)
{
    stage.live = lw_alloc_live();
    embedded_settings_init(&stage.settings);
    world_init(&stage.world, "pulsar://127.0.0.1:1", NULL);
    stage.broker = embedded_create(stage.world.host, &stage.settings);
    struct lw_error error;
    lw_pulsar_address_deinit(&stage.world.client.address);
    assert_int_equal(lw_pulsar_address_parse(embedded_url(stage.broker, 0),
                                             &stage.world.client.address, &error),
                     LW_STATUS_OK);
    embedded_create_topic(stage.broker, CONSUMING_TOPIC);
    (void)state;
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    const struct embedded_counts *counts = embedded_counts(stage.broker);
    if (counts->violations > 0 || counts->protocol_errors > 0) {
        fail_msg("%s %s", counts->first_violation, counts->last_error);
    }
    assert_int_equal(embedded_consumers(stage.broker, NULL), 0);
    lw_pulsar_client_deinit(&stage.world.client);
    embedded_destroy(stage.broker);
    virtual_host_settle(&stage.world.virtual_host);
    assert_int_equal(lw_alloc_live(), stage.live);
    return 0;
}

static void
publish(const char *value, int32_t batch)
{
    struct embedded_publish message = { .value = lw_bytes_of(value), .batch = batch };
    (void)embedded_publish(stage.broker, CONSUMING_TOPIC, &message);
}

static struct embedded_subscription_info
subscription(void)
{
    struct embedded_subscription_info info;
    assert_true(embedded_subscription(stage.broker, CONSUMING_TOPIC, "s", &info));
    return info;
}

static void
every_message_comes_once_and_is_acknowledged_once(void **state)
{
    (void)state;
    embedded_fill(stage.broker, CONSUMING_TOPIC, 5000, 100, 7, 0);
    for (int32_t type = LW_PULSAR_SUB_EXCLUSIVE; type <= LW_PULSAR_SUB_KEY_SHARED; type++) {
        struct consuming *consuming = consuming_create(&stage.world, type);
        const char *const names[] = { "exclusive", "shared", "failover", "key_shared" };
        consuming->settings.subscription = names[type];
        consuming->settings.receiver_queue_size = 100;
        consuming->acks = true;
        consuming_start(consuming, 100);
        consuming_rest(consuming);
        embedded_pass_ms(stage.broker, 2000); /* Failover waits before it begins */
        consuming_until(consuming, 5000);
        consuming_pass_ms(consuming, 200);
        struct embedded_subscription_info info;
        assert_true(embedded_subscription(stage.broker, CONSUMING_TOPIC, names[type], &info));
        assert_int_equal(info.backlog, 0);
        assert_int_equal(consuming->count, 5000);
        assert_int_equal(consuming->begun, 1);
        assert_int_equal(consuming_figures(consuming).held, 0);
        assert_int_equal(consuming_figures(consuming).copies_dropped, 0);
        consuming_destroy(consuming);
    }
    assert_true(embedded_counts(stage.broker)->permits_max <= 100);
}

static void
what_a_shared_subscription_of_batches_brings_fits_the_window(void **state)
{
    (void)state;
    embedded_fill(stage.broker, CONSUMING_TOPIC, 5000, 20, 0, 50);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming_start(consuming, 200);
    consuming_rest(consuming);
    assert_in_range(consuming->count, 101, 300);
    consuming_ack_all(consuming);
    consuming->acks = true;
    for (size_t had = consuming->count; had < 5000; had = consuming->count) {
        consuming_until(consuming, had + 1);
        assert_true(consuming_figures(consuming).queued <= 250);
    }
    consuming_pass_ms(consuming, 200);
    assert_int_equal(subscription().backlog, 0);
    consuming_destroy(consuming);
}

static void
permits_of_an_exclusive_subscription_stand_for_entries(void **state)
{
    (void)state;
    embedded_fill(stage.broker, CONSUMING_TOPIC, 20000, 20, 0, 100);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_EXCLUSIVE);
    consuming_start(consuming, 1);
    consuming_until(consuming, 100); /* the size of a batch is known now */
    consuming_ack_all(consuming);
    consuming->window = 1000;
    consuming_rest(consuming);
    assert_in_range(consuming->count, 1000, 1200);
    consuming_destroy(consuming);
}

static void
a_lost_connection_runs_nothing_twice(void **state)
{
    (void)state;
    embedded_fill(stage.broker, CONSUMING_TOPIC, 100, 20, 0, 0);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming_start(consuming, 100);
    consuming_until(consuming, 100);
    for (size_t i = 0; i < 30; i++) {
        consuming_ack(consuming, i);
    }
    embedded_drop_all(stage.broker); /* before the group goes out */
    consuming_pass_ms(consuming, 1000);
    consuming_pass_ms(consuming, 1000);
    assert_int_equal(consuming->count, 100);
    assert_int_equal(consuming_figures(consuming).sessions, 2);
    assert_true(consuming_figures(consuming).copies_dropped >= 70);
    consuming_ack_all(consuming);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(subscription().backlog, 0);
    assert_int_equal(consuming->count, 100);
    assert_int_equal(consuming->begun, 1);
    assert_int_equal(consuming->lost, 0);
    consuming_destroy(consuming);
}

static void
a_copy_that_was_on_its_way_when_its_ack_was_confirmed_is_dropped(void **state)
{
    (void)state;
    struct embedded_fault fault = { .kind = EMBEDDED_DELAY,
                                    .direction = EMBEDDED_OUT,
                                    .type = LW_PULSAR_MESSAGE,
                                    .times = UINT32_MAX,
                                    .ms = 3000 };
    embedded_fill(stage.broker, CONSUMING_TOPIC, 10, 20, 0, 0);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming_start(consuming, 100);
    consuming_until(consuming, 10);
    embedded_add_fault(stage.broker, &fault);
    embedded_drop_all(stage.broker);
    consuming_rest(consuming);
    consuming_pass_ms(consuming, 500);
    consuming_rest(consuming);
    assert_int_equal(consuming_figures(consuming).sessions, 2);
    consuming_ack_all(consuming);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(subscription().backlog, 0);
    assert_int_equal(consuming_figures(consuming).copies_dropped, 0);
    embedded_pass_ms(stage.broker, 4000);
    consuming_pass_ms(consuming, 4000);
    assert_int_equal(consuming_figures(consuming).copies_dropped, 10);
    assert_int_equal(consuming->count, 10);
    consuming_destroy(consuming);
}

static void
a_receipt_that_got_lost_with_the_connection_is_asked_for_again(void **state)
{
    (void)state;
    struct embedded_fault fault = { .kind = EMBEDDED_DROP,
                                    .direction = EMBEDDED_OUT,
                                    .type = LW_PULSAR_ACK_RESPONSE };
    publish("a", 0);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming->acks = true;
    consuming_start(consuming, 10);
    consuming_until(consuming, 1);
    embedded_add_fault(stage.broker, &fault);
    consuming_pass_ms(consuming, 100);
    assert_int_equal(consuming_figures(consuming).acks_unconfirmed, 1);
    consuming_pass_ms(consuming, 1000);
    consuming_pass_ms(consuming, 1000);
    assert_int_equal(consuming_figures(consuming).acks_unconfirmed, 0);
    assert_int_equal(consuming_figures(consuming).held, 0);
    assert_int_equal(consuming->count, 1);
    consuming_destroy(consuming);
}

static void
an_ack_without_a_receipt_ends_the_session_and_goes_with_the_next(void **state)
{
    (void)state;
    struct embedded_fault fault = { .kind = EMBEDDED_LOSE,
                                    .direction = EMBEDDED_IN,
                                    .type = LW_PULSAR_ACK };
    publish("a", 0);
    embedded_add_fault(stage.broker, &fault);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming->acks = true;
    consuming_start(consuming, 10);
    consuming_until(consuming, 1);
    for (int i = 0; i < 40; i++) { /* the operation time-out, with answers to PING on the way */
        consuming_pass_ms(consuming, 1000);
    }
    assert_int_equal(subscription().backlog, 0);
    assert_int_equal(consuming_figures(consuming).sessions, 2);
    assert_int_equal(consuming->count, 1);
    consuming_destroy(consuming);
}

static void
a_negative_ack_brings_the_message_again_after_its_delay(void **state)
{
    (void)state;
    publish("a", 0);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming_start(consuming, 10);
    consuming_until(consuming, 1);
    consuming_nack(consuming, 0, 500);
    consuming_pass_ms(consuming, 490);
    assert_int_equal(consuming->count, 1);
    consuming_pass_ms(consuming, 30);
    consuming_until(consuming, 2);
    assert_int_equal(consuming->messages[1].redeliveries, 1);
    assert_int_equal(embedded_counts(stage.broker)->redelivered, 1);
    consuming_destroy(consuming);
}

static void
the_delay_of_negative_acks_grows_with_redeliveries(void **state)
{
    (void)state;
    publish("a", 0);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming->settings.nack_delay_max_ns = 4000 * LW_MS;
    consuming_start(consuming, 10);
    consuming_until(consuming, 1);
    consuming_nack(consuming, 0, -1);
    consuming_pass_ms(consuming, 1020);
    consuming_until(consuming, 2);
    consuming_nack(consuming, 1, -1);
    consuming_pass_ms(consuming, 1900);
    assert_int_equal(consuming->count, 2);
    consuming_pass_ms(consuming, 200);
    consuming_until(consuming, 3);
    consuming_destroy(consuming);
}

static void
of_a_batch_only_the_member_that_was_refused_comes_again(void **state)
{
    (void)state;
    publish("a", 5);
    for (int round = 0; round < 2; round++) {
        struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
        consuming->settings.subscription = round == 0 ? "with" : "without";
        consuming->settings.acks_batch_index = round == 0;
        consuming_start(consuming, 10);
        consuming_until(consuming, 5);
        consuming_ack(consuming, 0);
        consuming_ack(consuming, 2);
        consuming_nack(consuming, 1, 500); /* 3 and 4 are still held */
        consuming_pass_ms(consuming, 600);
        consuming_until(consuming, 6);
        consuming_rest(consuming);
        assert_int_equal(consuming->count, 6);
        assert_int_equal(lw_pulsar_message_own_id(&consuming->messages[5]).batch_index, 1);
        consuming_ack_all(consuming);
        consuming_pass_ms(consuming, 200);
        struct embedded_subscription_info info;
        assert_true(embedded_subscription(stage.broker, CONSUMING_TOPIC,
                                          consuming->settings.subscription, &info));
        assert_int_equal(info.backlog, 0);
        assert_int_equal(consuming_figures(consuming).held, 0);
        consuming_destroy(consuming);
    }
}

static void
members_of_a_batch_that_are_settled_do_not_come_again_after_a_stop(void **state)
{
    (void)state;
    publish("a", 5);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming->settings.acks_batch_index = false;
    consuming_start(consuming, 10);
    consuming_until(consuming, 5);
    consuming_ack(consuming, 0);
    consuming_ack(consuming, 2);
    consuming_nack(consuming, 1, 500); /* 3 and 4 are held until the end */
    consuming_destroy(consuming);
    consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming_start(consuming, 10);
    consuming_until(consuming, 3);
    consuming_rest(consuming);
    assert_int_equal(consuming->count, 3);
    const int left[] = { 1, 3, 4 };
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(lw_pulsar_message_own_id(&consuming->messages[i]).batch_index,
                         left[i]);
    }
    consuming_ack_all(consuming);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(subscription().backlog, 0);
    consuming_destroy(consuming);
}

static void
on_exclusive_a_negative_ack_rewinds_without_what_is_held(void **state)
{
    (void)state;
    embedded_fill(stage.broker, CONSUMING_TOPIC, 10, 20, 0, 0);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_EXCLUSIVE);
    consuming_start(consuming, 20);
    consuming_until(consuming, 10);
    consuming_nack(consuming, 4, 500);
    consuming_pass_ms(consuming, 600);
    consuming_until(consuming, 11);
    consuming_rest(consuming);
    assert_int_equal(consuming->count, 11);
    assert_int_equal(consuming->messages[10].position, consuming->messages[4].position);
    consuming_ack_all(consuming);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(subscription().backlog, 0);
    consuming_destroy(consuming);
}

static void
what_is_held_too_long_comes_again_and_its_ack_is_ignored(void **state)
{
    (void)state;
    publish("a", 0);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming->settings.ack_timeout_ns = 10000 * LW_MS;
    consuming_start(consuming, 10);
    consuming_until(consuming, 1);
    consuming_pass_ms(consuming, 9900);
    assert_int_equal(consuming->count, 1);
    consuming_pass_ms(consuming, 200);
    consuming_until(consuming, 2);
    consuming_ack(consuming, 0);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(subscription().backlog, 1);
    consuming_ack(consuming, 1);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(subscription().backlog, 0);
    consuming_destroy(consuming);
}

static void
a_seek_ends_the_ownership_and_all_comes_again(void **state)
{
    (void)state;
    embedded_fill(stage.broker, CONSUMING_TOPIC, 10, 20, 0, 0);
    struct lw_pulsar_seek_target target = { .id = { .ledger = UINT64_MAX,
                                                    .entry = UINT64_MAX } };
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming_start(consuming, 20);
    consuming_until(consuming, 10);
    for (size_t i = 0; i < 5; i++) {
        consuming_ack(consuming, i);
    }
    lw_pulsar_consumer_seek(consuming->consumer, &target);
    assert_int_equal(consuming->lost, 0);
    consuming->window = 40;
    consuming_rest(consuming);
    consuming_pass_ms(consuming, 1000);
    consuming_until(consuming, 20);
    assert_int_equal(consuming->lost, 1);
    assert_int_equal(consuming->begun, 2);
    consuming_ack(consuming, 7); /* of before: ignored */
    consuming_pass_ms(consuming, 200);
    assert_int_equal(subscription().backlog, 10);
    consuming_ack_all(consuming);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(subscription().backlog, 0);
    consuming_destroy(consuming);
}

static void
damaged_messages_are_given_on_and_the_next_one_comes(void **state)
{
    (void)state;
    struct embedded_publish damaged = { .value = lw_bytes_of("x"), .has_wrong_checksum = true };
    for (int i = 0; i < 50; i++) {
        (void)embedded_publish(stage.broker, CONSUMING_TOPIC, &damaged);
    }
    publish("a", 0);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming->acks = true;
    consuming_start(consuming, 2);
    consuming_until(consuming, 51);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(consuming_figures(consuming).unreadable, 50);
    assert_int_equal(embedded_counts(stage.broker)->acks_invalid[LW_PULSAR_INVALID_CHECKSUM],
                     50);
    assert_int_equal(subscription().backlog, 0);
    assert_int_equal(consuming_figures(consuming).sessions, 1);
    consuming_destroy(consuming);
}

static void
who_stopped_reading_still_acknowledges(void **state)
{
    (void)state;
    embedded_fill(stage.broker, CONSUMING_TOPIC, 3000, 20, 0, 0);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming_start(consuming, 1000);
    consuming_until(consuming, 1000);
    lw_pulsar_consumer_pause(consuming->consumer);
    consuming_ack_all(consuming);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(subscription().backlog, 2000);
    assert_int_equal(consuming->count, 1000);
    consuming_destroy(consuming);
}

static void
an_exclusive_subscription_that_is_taken_is_waited_for_and_said_once(void **state)
{
    (void)state;
    publish("a", 0);
    struct consuming *first = consuming_create(&stage.world, LW_PULSAR_SUB_EXCLUSIVE);
    struct consuming *second = consuming_create(&stage.world, LW_PULSAR_SUB_EXCLUSIVE);
    consuming_start(first, 10);
    consuming_until(first, 1);
    consuming_start(second, 10);
    for (int i = 0; i < 5; i++) {
        consuming_pass_ms(second, 1000);
    }
    assert_int_equal(second->failed, 1);
    assert_int_equal(second->failure.code, LW_PULSAR_CONSUMER_BUSY);
    assert_false(second->failure.error.is_fatal);
    consuming_destroy(first);
    for (int i = 0; i < 10 && second->count == 0; i++) {
        consuming_pass_ms(second, 1000);
    }
    assert_int_equal(second->count, 1);
    consuming_destroy(second);
}

static void
a_subscribe_that_can_never_work_is_fatal_and_a_broker_not_ready_is_not(void **state)
{
    (void)state;
    struct embedded_fault fault = { .kind = EMBEDDED_REFUSE,
                                    .direction = EMBEDDED_IN,
                                    .type = LW_PULSAR_SUBSCRIBE,
                                    .error = LW_PULSAR_SERVICE_NOT_READY,
                                    .text = "later" };
    embedded_add_fault(stage.broker, &fault);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming_start(consuming, 10);
    consuming_rest(consuming);
    assert_int_equal(consuming->failed, 1);
    assert_false(consuming->failure.error.is_fatal);
    fault.error = LW_PULSAR_NOT_ALLOWED;
    embedded_add_fault(stage.broker, &fault);
    consuming_pass_ms(consuming, 1000);
    assert_int_equal(consuming->failed, 2);
    assert_true(consuming->failure.error.is_fatal);
    consuming_pass_ms(consuming, 100000);
    assert_int_equal(embedded_counts(stage.broker)->in[LW_PULSAR_SUBSCRIBE], 2);
    consuming_destroy(consuming);
}

static void
a_subscribe_without_an_answer_is_taken_back_before_the_next(void **state)
{
    (void)state;
    struct embedded_fault fault = { .kind = EMBEDDED_LOSE,
                                    .direction = EMBEDDED_OUT,
                                    .type = LW_PULSAR_SUCCESS };
    publish("a", 0);
    embedded_add_fault(stage.broker, &fault);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_EXCLUSIVE);
    consuming_start(consuming, 10);
    consuming_rest(consuming);
    for (int i = 0; i < 40 && consuming->count == 0; i++) {
        consuming_pass_ms(consuming, 1000);
    }
    assert_int_equal(consuming->count, 1);
    assert_int_equal(embedded_counts(stage.broker)->in[LW_PULSAR_CLOSE_CONSUMER], 1);
    consuming_destroy(consuming);
}

static void
a_topic_that_moves_is_followed_at_once_if_the_broker_says_where(void **state)
{
    (void)state;
    int other = embedded_add_member(stage.broker, false);
    publish("a", 0);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming->acks = true;
    consuming_start(consuming, 10);
    consuming_until(consuming, 1);
    consuming_pass_ms(consuming, 200);
    uint64_t lookups = embedded_counts(stage.broker)->in[LW_PULSAR_LOOKUP];
    embedded_unload(stage.broker, CONSUMING_TOPIC, other, true);
    publish("b", 0);
    consuming_until(consuming, 2);
    assert_int_equal(consuming_figures(consuming).sessions, 2);
    assert_int_equal(embedded_counts(stage.broker)->in[LW_PULSAR_LOOKUP], lookups);
    consuming_destroy(consuming);
}

static void
of_two_failover_consumers_one_is_active_and_the_other_takes_over(void **state)
{
    (void)state;
    embedded_fill(stage.broker, CONSUMING_TOPIC, 10, 20, 0, 0);
    struct consuming *first = consuming_create(&stage.world, LW_PULSAR_SUB_FAILOVER);
    struct consuming *second = consuming_create(&stage.world, LW_PULSAR_SUB_FAILOVER);
    first->settings.consumer_name = "a";
    second->settings.consumer_name = "b";
    consuming_start(first, 20);
    consuming_start(second, 20);
    for (int i = 0; i < 3; i++) {
        consuming_pass_ms(first, 1000);
        embedded_pass_ms(stage.broker, 1000);
        consuming_rest(second);
    }
    assert_int_equal(first->begun - first->lost + second->begun - second->lost, 1);
    struct consuming *active = first->begun > first->lost ? first : second;
    struct consuming *standby = active == first ? second : first;
    assert_int_equal(active->count, 10);
    consuming_destroy(active);
    for (int i = 0; i < 3; i++) {
        consuming_pass_ms(standby, 1000);
        embedded_pass_ms(stage.broker, 1000);
    }
    consuming_until(standby, 10);
    assert_int_equal(standby->begun - standby->lost, 1);
    consuming_destroy(standby);
}

static void
a_detached_message_keeps_its_content_and_pins_nothing(void **state)
{
    (void)state;
    struct embedded_publish message = { .key = "k", .value = lw_bytes_of("value") };
    (void)embedded_publish(stage.broker, CONSUMING_TOPIC, &message);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming_start(consuming, 10);
    consuming_until(consuming, 1);
    struct lw_message *received = &consuming->messages[0];
    const void *before = received->value.data;
    assert_true(lw_pulsar_message_detach(received));
    assert_ptr_not_equal(received->value.data, before);
    assert_memory_equal(received->value.data, "value", 5);
    assert_memory_equal(received->key.data, "k", 1);
    assert_int_equal(received->slot, 3);
    consuming_ack(consuming, 0);
    consuming_pass_ms(consuming, 200);
    assert_int_equal(subscription().backlog, 0);
    consuming_destroy(consuming);
}

static void
the_last_acks_are_confirmed_before_a_consumer_stops(void **state)
{
    (void)state;
    embedded_fill(stage.broker, CONSUMING_TOPIC, 10, 20, 0, 0);
    struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
    consuming_start(consuming, 20);
    consuming_until(consuming, 10);
    consuming_ack_all(consuming);
    consuming_destroy(consuming);
    assert_int_equal(subscription().backlog, 0);
    assert_int_equal(embedded_counts(stage.broker)->in[LW_PULSAR_CLOSE_CONSUMER], 1);
}

/* All of it again and again, with the connection cut after so many bytes. */
static void
a_connection_that_is_cut_anywhere_loses_nothing_and_repeats_nothing(void **state)
{
    (void)state;
    embedded_fill(stage.broker, CONSUMING_TOPIC, 400, 50, 5, 0);
    embedded_fill(stage.broker, CONSUMING_TOPIC, 400, 50, 5, 8);
    uint64_t rounds = 0;
    uint64_t sessions = 0;
    for (uint64_t bytes = 50; bytes < 30000; bytes += 611) {
        struct embedded_fault fault = { .kind = EMBEDDED_CUT,
                                        .direction = bytes % 2 ? EMBEDDED_IN : EMBEDDED_OUT,
                                        .bytes = bytes };
        char name[32];
        (void)snprintf(name, sizeof name, "cut-%llu", (unsigned long long)bytes);
        struct consuming *consuming = consuming_create(&stage.world, (int32_t)(bytes % 2));
        consuming->settings.subscription = name;
        consuming->settings.ack_group_ns = bytes % 3 == 0 ? 0 : 10 * LW_MS;
        consuming->acks = true;
        embedded_drop_all(stage.broker); /* bytes count from the connection's first */
        embedded_add_fault(stage.broker, &fault);
        consuming_start(consuming, 50);
        for (int i = 0; i < 100 && consuming->count < 800; i++) {
            consuming_pass_ms(consuming, 50);
        }
        for (int i = 0; i < 10; i++) {
            consuming_pass_ms(consuming, 50);
        }
        struct embedded_subscription_info info;
        assert_true(embedded_subscription(stage.broker, CONSUMING_TOPIC, name, &info));
        assert_int_equal(info.backlog, 0);
        assert_int_equal(consuming->count, 800);
        assert_int_equal(consuming_figures(consuming).held, 0);
        rounds++;
        sessions += consuming_figures(consuming).sessions;
        consuming_destroy(consuming);
        embedded_clear_faults(stage.broker);
    }
    assert_true(sessions > rounds * 5 / 4);
}

static void
lack_of_memory_anywhere_delays_and_loses_nothing(void **state)
{
    (void)state;
    embedded_fill(stage.broker, CONSUMING_TOPIC, 200, 50, 5, 70);
    for (uint64_t nth = 1; nth < 120; nth++) {
        char name[32];
        (void)snprintf(name, sizeof name, "nth-%llu", (unsigned long long)nth);
        struct consuming *consuming = consuming_create(&stage.world, LW_PULSAR_SUB_SHARED);
        consuming->settings.subscription = name;
        consuming->acks = true;
        consuming_start(consuming, 300);
        lw_alloc_fail_at(nth);
        for (int i = 0; i < 100 && consuming->count < 200; i++) {
            consuming_pass_ms(consuming, 50);
        }
        lw_alloc_fail_at(0);
        for (int i = 0; i < 10; i++) {
            consuming_pass_ms(consuming, 50);
        }
        struct embedded_subscription_info info;
        assert_true(embedded_subscription(stage.broker, CONSUMING_TOPIC, name, &info));
        assert_int_equal(info.backlog, 0);
        assert_int_equal(consuming->count, 200);
        consuming_destroy(consuming);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_message_comes_once_and_is_acknowledged_once),
        TEST(what_a_shared_subscription_of_batches_brings_fits_the_window),
        TEST(permits_of_an_exclusive_subscription_stand_for_entries),
        TEST(a_lost_connection_runs_nothing_twice),
        TEST(a_copy_that_was_on_its_way_when_its_ack_was_confirmed_is_dropped),
        TEST(a_receipt_that_got_lost_with_the_connection_is_asked_for_again),
        TEST(an_ack_without_a_receipt_ends_the_session_and_goes_with_the_next),
        TEST(a_negative_ack_brings_the_message_again_after_its_delay),
        TEST(the_delay_of_negative_acks_grows_with_redeliveries),
        TEST(of_a_batch_only_the_member_that_was_refused_comes_again),
        TEST(members_of_a_batch_that_are_settled_do_not_come_again_after_a_stop),
        TEST(on_exclusive_a_negative_ack_rewinds_without_what_is_held),
        TEST(what_is_held_too_long_comes_again_and_its_ack_is_ignored),
        TEST(a_seek_ends_the_ownership_and_all_comes_again),
        TEST(damaged_messages_are_given_on_and_the_next_one_comes),
        TEST(who_stopped_reading_still_acknowledges),
        TEST(an_exclusive_subscription_that_is_taken_is_waited_for_and_said_once),
        TEST(a_subscribe_that_can_never_work_is_fatal_and_a_broker_not_ready_is_not),
        TEST(a_subscribe_without_an_answer_is_taken_back_before_the_next),
        TEST(a_topic_that_moves_is_followed_at_once_if_the_broker_says_where),
        TEST(of_two_failover_consumers_one_is_active_and_the_other_takes_over),
        TEST(a_detached_message_keeps_its_content_and_pins_nothing),
        TEST(the_last_acks_are_confirmed_before_a_consumer_stops),
        TEST(a_connection_that_is_cut_anywhere_loses_nothing_and_repeats_nothing),
        TEST(lack_of_memory_anywhere_delays_and_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
