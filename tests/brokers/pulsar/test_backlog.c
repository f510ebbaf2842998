/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What waits at the broker, as the table's `lag` tells it, and subscriptions that fell asleep: a
 * FLOW that vanished on its way is what puts one to sleep here.
 */
#include "tests/support/test.h"

#include <string.h>

#include "tests/brokers/pulsar/dealing.h"

static struct dealing dealing;

static int
set_up(void **state)
{
    (void)state;
    dealing_init(&dealing);
    dealing_serve(&dealing);
    embedded_create_topic(dealing.broker, "t");
    dealing_open(&dealing);
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    dealing_close(&dealing);
    dealing_deinit(&dealing);
    return 0;
}

/* A Shared subscription that was made before, so that what is there now is its backlog. */
static struct lw_source *
begin(int64_t stall_timeout_ms)
{
    struct lw_source_options options = dealing_options("t");
    options.stall_timeout_ms = stall_timeout_ms;
    options.receiver_queue_size = 100;
    struct lw_source *source = client_subscribe_with(dealing.client, &options);
    client_start(dealing.client);
    dealing_until_live(&dealing, 1);
    return source;
}

static uint64_t
lag_of(struct lw_source *source)
{
    struct lw_lag lag = { UINT64_MAX, 0 };
    (void)dealing.client->ops->lag(source, &lag);
    return lag.messages;
}

static bool
is_lag(struct dealing *it, void *user)
{
    (void)it;
    return lag_of(it->client->sources[0]) == *(const uint64_t *)user;
}

static uint64_t
asked(void)
{
    return embedded_counts(dealing.broker)->in[LW_PULSAR_CONSUMER_STATS];
}

static void
lag_is_what_the_broker_has_and_we_have_not(void **state)
{
    (void)state;
    uint64_t wanted = 250;
    embedded_fill(dealing.broker, "t", 300, 10, 0, 0);
    struct lw_source *source = begin(0);
    assert_int_equal(lag_of(source), UINT64_MAX); /* nobody told it yet */
    dealing.client->ops->demand(source, 50, 1 << 20);
    (void)client_receive(dealing.client, source, 50);
    dealing_pass_ms(&dealing, 100);
    (void)client_receive(dealing.client, source, 50 - dealing.client->message_count);
    assert_int_equal(dealing.client->message_count, 50);
    dealing_until(&dealing, is_lag, &wanted, 30000);
}

static void
entries_count_as_many_messages_as_those_that_came(void **state)
{
    (void)state;
    uint64_t wanted = 0;
    embedded_fill(dealing.broker, "t", 1000, 10, 0, 10);
    struct lw_source *source = begin(0);
    dealing.client->ops->demand(source, 100, 1 << 20);
    dealing_pass_ms(&dealing, 100);
    (void)client_receive(dealing.client, source, 1000);
    wanted = 1000 - dealing.client->message_count;
    assert_in_range(wanted, 800, 1000);
    dealing_until(&dealing, is_lag, &wanted, 30000);
}

static void
an_idle_topic_is_asked_about_once_a_minute(void **state)
{
    (void)state;
    (void)begin(60000);
    dealing_pass_ms(&dealing, 1000);
    uint64_t before = asked();
    dealing_pass_ms(&dealing, 600000);
    assert_in_range(asked() - before, 8, 10);
    assert_int_equal(dealing_logged(&dealing, "pulsar.stalled"), 0);
}

static void
who_asks_often_makes_the_broker_be_asked_once_a_second(void **state)
{
    (void)state;
    struct lw_source *source = begin(60000);
    uint64_t before = asked();
    for (int i = 0; i < 1000; i++) {
        (void)lag_of(source);
        dealing_pass_ms(&dealing, 10);
    }
    assert_in_range(asked() - before, 8, 11);
}

/* The permits that are asked for never arrive. */
static struct lw_source *
begin_asleep(void)
{
    struct embedded_fault lose = { .kind = EMBEDDED_LOSE,
                                   .direction = EMBEDDED_IN,
                                   .type = LW_PULSAR_FLOW };
    embedded_fill(dealing.broker, "t", 20, 10, 0, 0);
    embedded_add_fault(dealing.broker, &lose);
    return begin(60000);
}

static void
a_subscription_that_fell_asleep_is_said_once_and_made_anew(void **state)
{
    (void)state;
    (void)begin_asleep();
    dealing_pass_ms(&dealing, 50000);
    assert_int_equal(dealing.client->message_count + dealing_receive(&dealing), 0);
    assert_int_equal(dealing_logged(&dealing, "pulsar.stalled"), 0);
    dealing_until_messages(&dealing, 20);
    assert_int_equal(dealing_logged(&dealing, "pulsar.stalled"), 1);
    assert_non_null(strstr(dealing.log, "topic=persistent://public/default/t backlog=20"));
    assert_int_equal(embedded_counts(dealing.broker)->in[LW_PULSAR_SUBSCRIBE], 2);
    assert_int_equal(dealing_live(&dealing), 1); /* no ownership ended by it */
}

static void
what_is_delayed_is_no_reason_to_subscribe_for_ever(void **state)
{
    (void)state;
    struct embedded_publish later = { .value = { "x", 1 } };
    later.deliver_at_ms = embedded_now_ms(dealing.broker) + 24 * 3600 * INT64_C(1000);
    (void)embedded_publish(dealing.broker, "t", &later);
    (void)begin(60000);
    dealing_pass_ms(&dealing, 12 * 3600 * INT64_C(1000));
    assert_int_equal(dealing_logged(&dealing, "pulsar.stalled"), 1);
    assert_in_range(embedded_counts(dealing.broker)->in[LW_PULSAR_SUBSCRIBE], 2, 20);
    dealing_pass_ms(&dealing, 13 * 3600 * INT64_C(1000));
    dealing_until_messages(&dealing, 1);
}

static void
a_delay_that_was_told_is_no_stall(void **state)
{
    (void)state;
    struct embedded_publish later = { .value = { "x", 1 } };
    later.deliver_at_ms = embedded_now_ms(dealing.broker) + 300 * INT64_C(1000);
    (void)embedded_publish(dealing.broker, "t", &later);
    struct lw_source *source = begin(60000);
    dealing.client->ops->expect_delay(source, 300000);
    dealing.client->ops->expect_delay(source, 1000); /* by another writer */
    dealing_pass_ms(&dealing, 310000);
    dealing_until_messages(&dealing, 1);
    assert_int_equal(dealing_logged(&dealing, "pulsar.stalled"), 0);
    assert_int_equal(embedded_counts(dealing.broker)->in[LW_PULSAR_SUBSCRIBE], 1);
}

/* Another member could get it otherwise, while its handler still runs here. */
static void
what_is_held_here_is_not_given_away_to_wake_a_subscription(void **state)
{
    (void)state;
    struct lw_source *source = begin(60000);
    struct embedded_publish message = { .value = { "x", 1 } };
    (void)embedded_publish(dealing.broker, "t", &message);
    dealing_until_messages(&dealing, 1);
    struct embedded_fault lose = { .kind = EMBEDDED_LOSE,
                                   .direction = EMBEDDED_OUT,
                                   .type = LW_PULSAR_MESSAGE };
    embedded_add_fault(dealing.broker, &lose);
    (void)embedded_publish(dealing.broker, "t", &message);
    dealing.client->ops->demand(source, 100, 1 << 20);
    dealing_pass_ms(&dealing, 300000);
    assert_int_equal(dealing_logged(&dealing, "pulsar.stalled"), 1);
    assert_int_equal(embedded_counts(dealing.broker)->in[LW_PULSAR_SUBSCRIBE], 1);
    client_ack(dealing.client, 0);
    dealing_pass_ms(&dealing, 1000);
    dealing_until_messages(&dealing, 2);
    assert_int_equal(embedded_counts(dealing.broker)->in[LW_PULSAR_SUBSCRIBE], 2);
}

static void
a_stall_timeout_of_zero_looks_for_nothing(void **state)
{
    (void)state;
    struct embedded_fault lose = { .kind = EMBEDDED_LOSE,
                                   .direction = EMBEDDED_IN,
                                   .type = LW_PULSAR_FLOW };
    embedded_fill(dealing.broker, "t", 20, 10, 0, 0);
    embedded_add_fault(dealing.broker, &lose);
    (void)begin(0);
    dealing_pass_ms(&dealing, 600000);
    assert_int_equal(embedded_counts(dealing.broker)->in[LW_PULSAR_SUBSCRIBE], 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(lag_is_what_the_broker_has_and_we_have_not),
        TEST(entries_count_as_many_messages_as_those_that_came),
        TEST(an_idle_topic_is_asked_about_once_a_minute),
        TEST(who_asks_often_makes_the_broker_be_asked_once_a_second),
        TEST(a_subscription_that_fell_asleep_is_said_once_and_made_anew),
        TEST(what_is_delayed_is_no_reason_to_subscribe_for_ever),
        TEST(a_delay_that_was_told_is_no_stall),
        TEST(what_is_held_here_is_not_given_away_to_wake_a_subscription),
        TEST(a_stall_timeout_of_zero_looks_for_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
