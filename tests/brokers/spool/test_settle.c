/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a group is given again and what not: verdicts, delays, counts, over restarts and crashes. A
 * crash is made by taking back the last words of an orderly end; tests/tools/spool_crash.py kills
 * real processes.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#include "brokers/spool/broker.h"
#include "brokers/spool/spool.h"
#include "tests/brokers/spool/fixture.h"

/* The values from `first` on, joined: "3x1 4". */
static void
expect(const struct client *client, size_t first, const char *wanted)
{
    char text[1024] = "";
    for (size_t i = first; i < client->message_count; i++) {
        const struct lw_message *message = &client->messages[i];
        size_t length = strlen(text);
        snprintf(text + length, sizeof text - length, "%s%.*s", length ? " " : "",
                 (int)message->value.size, (const char *)message->value.data);
        length = strlen(text);
        if (message->redeliveries > 0) {
            snprintf(text + length, sizeof text - length, "x%u", message->redeliveries);
        }
    }
    assert_string_equal(text, wanted);
}

static void
expect_nothing_more(struct spool *spool, struct client *client)
{
    size_t count = client->message_count;
    spool_pump(spool, 300);
    client_events(client);
    client_receive(client, client->sources[0], 10);
    assert_int_equal(client->message_count, count);
}

static void
what_is_acknowledged_is_gone_after_a_restart(void **state)
{
    struct client *client = spool_open(*state, "orders");
    spool_publish(*state, client, "orders", "key", 0, 5);
    spool_receive(*state, client, 5);
    for (size_t i = 0; i < 3; i++) {
        client_ack(client, i);
    }
    spool_close(*state, client);
    client = spool_open(*state, "orders");
    spool_receive(*state, client, 2);
    expect(client, 0, "3 4"); /* an orderly end counts for nothing */
    expect_nothing_more(*state, client);
    spool_close(*state, client);
}

static void
what_was_overtaken_comes_again_and_the_rest_does_not(void **state)
{
    struct client *client = spool_open(*state, "orders");
    spool_publish(*state, client, "orders", "key", 0, 6);
    spool_receive(*state, client, 6);
    client_ack(client, 1);
    client_ack(client, 4);
    spool_close(*state, client);
    assert_int_equal(spool_sql(*state, "SELECT next FROM position"), 5);
    assert_int_equal(spool_sql(*state, "SELECT count(*) FROM unsettled"), 3);
    client = spool_open(*state, "orders");
    spool_receive(*state, client, 4);
    expect(client, 0, "0 2 3 5");
    expect_nothing_more(*state, client);
    spool_close(*state, client);
}

static void
what_is_given_back_counts_and_waits(void **state)
{
    struct spool *spool = *state;
    struct client *client = spool_open(spool, "orders");
    spool_publish(spool, client, "orders", "key", 0, 2);
    spool_receive(spool, client, 2);
    uint64_t before = spool->host->ops->refresh(spool->host);
    client_nack(client, 0, 300);
    client_ack(client, 1);
    spool_receive(spool, client, 3);
    assert_true(spool->host->ops->refresh(spool->host) - before >= 299 * LW_MS);
    expect(client, 2, "0x1");
    client_nack(client, 2, 0);
    spool_receive(spool, client, 4);
    expect(client, 3, "0x2");
    client_ack(client, 3);
    expect_nothing_more(spool, client);
    spool_close(spool, client);
    assert_int_equal(spool_sql(spool, "SELECT count(*) FROM unsettled"), 0);
}

static void
a_count_and_a_delay_outlast_a_restart(void **state)
{
    struct client *client = spool_open(*state, "orders");
    spool_publish(*state, client, "orders", "key", 0, 1);
    spool_receive(*state, client, 1);
    client_nack(client, 0, 500);
    spool_close(*state, client);
    client = spool_open(*state, "orders");
    client_events(client);
    client_receive(client, client->sources[0], 1);
    spool_receive(*state, client, 1);
    expect(client, 0, "0x1");
    spool_close(*state, client);
}

static size_t
publish_delayed(struct client *client, const char *value, int64_t delay_ms)
{
    struct lw_publication publication = { .kind = LW_PUBLISH_OUTPUT,
                                          .topic = "orders",
                                          .partition = -1,
                                          .value = lw_bytes_of(value),
                                          .event_time_ms = 77,
                                          .delay_ms = delay_ms };
    return client_offer(client, &publication);
}

static void
a_delayed_message_lets_later_ones_pass(void **state)
{
    struct client *client = spool_open(*state, "orders");
    publish_delayed(client, "late", 400);
    publish_delayed(client, "soon", 0);
    publish_delayed(client, "later", 600);
    spool_await_receipts(*state, client, 3);
    spool_receive(*state, client, 3);
    expect(client, 0, "soon late later");
    struct lw_message_times times;
    client->ops->times(client->broker, &client->messages[1], &times);
    assert_int_equal(times.event_time_ms, 77);
    assert_true(times.timestamp_ms > 1600000000000);
    for (size_t i = 0; i < 3; i++) {
        client_ack(client, i);
    }
    spool_close(*state, client);
    assert_int_equal(spool_sql(*state, "SELECT count(*) FROM message"), 0);
}

/* What comes with the last command must not keep the end from being an orderly one. */
static void
an_end_with_a_delayed_message_counts_for_nothing(void **state)
{
    struct spool *spool = *state;
    for (int i = 0; i < 20; i++) {
        struct client *client = spool_open(spool, "orders");
        if (i == 0) {
            spool_publish(spool, client, "orders", "key", 0, 1);
        }
        spool_receive(spool, client, 1);
        expect(client, 0, "0");
        publish_delayed(client, "late", 3600000);
        spool_close(spool, client);
    }
}

/* Large messages: what is read ahead is bounded by its size as well. */
static void
what_is_read_ahead_has_a_size(void **state)
{
    enum { COUNT = 40, SIZE = 200000 };
    static char value[SIZE + 1];
    struct client *client = spool_open(*state, "orders");
    const struct lw_spool_source *source = (const void *)client->sources[0];
    memset(value, 'v', SIZE);
    for (int i = 0; i < COUNT; i++) {
        client_publish(client, "orders", "key", value);
    }
    spool_await_receipts(*state, client, COUNT);
    for (int i = 0; i < 20; i++) {
        client->ops->demand(client->sources[0], 1000, 1 << 20);
        spool_pump(*state, 10);
    }
    assert_in_range(source->slots[0].held, 1, 10); /* of the queue's 1 MiB, and one more */
    spool_receive(*state, client, COUNT);
    assert_int_equal(source->slots[0].held, 0);
    assert_int_equal(source->slots[0].held_bytes, 0);
    spool_close(*state, client);
}

static uint64_t
lag_of(struct spool *spool, struct client *client)
{
    struct lw_lag lag;
    client->ops->lag(client->sources[0], &lag); /* asks */
    spool_pump(spool, 50);
    assert_true(client->ops->lag(client->sources[0], &lag));
    return lag.messages;
}

static void
what_waits_is_counted_without_demand(void **state)
{
    struct client *client = spool_open(*state, "orders");
    spool_publish(*state, client, "orders", "key", 0, 100);
    client->ops->demand(client->sources[0], 0, 0);
    for (int i = 1; i < 10; i++) {
        spool_publish(*state, client, "orders", "key", i * 100, 100);
    }
    assert_int_equal(lag_of(*state, client), 1000);
    client->ops->demand(client->sources[0], 1000, 1 << 20);
    spool_receive(*state, client, 1000);
    assert_int_equal(lag_of(*state, client), 0);
    spool_close(*state, client);
}

static void
groups_do_not_know_of_each_other(void **state)
{
    struct spool *spool = *state;
    struct client *client = client_create(spool->host, lw_spool_broker_ops(), "two",
                                          spool->url);
    client_subscribe(client, "orders", "first");
    client_subscribe(client, "orders", "second");
    client_start(client);
    client_events(client);
    spool_publish(spool, client, "orders", "key", 0, 3);
    spool_receive(spool, client, 6);
    for (size_t i = 0; i < 6; i++) {
        if (client->origin[i] == client->sources[0]) {
            client_ack(client, i);
        }
    }
    spool_close(spool, client);
    assert_int_equal(spool_sql(spool, "SELECT next FROM position WHERE group_name = 'first'"),
                     3);
    assert_int_equal(spool_sql(spool, "SELECT next FROM position WHERE group_name = 'second'"),
                     0);
    assert_int_equal(spool_sql(spool, "SELECT count(*) FROM message"), 3);
}

static void
a_new_group_may_begin_at_the_end(void **state)
{
    struct spool *spool = *state;
    const struct lw_property latest = { "initial_position", "latest" };
    struct client *client = spool_open(spool, NULL);
    spool_publish(spool, client, "orders", "key", 0, 3);
    spool_close(spool, client);
    client = client_create(spool->host, lw_spool_broker_ops(), "late", spool->url);
    struct lw_source_options options = client_options("orders", "late");
    options.properties = &latest;
    options.property_count = 1;
    client_subscribe_with(client, &options);
    client_start(client);
    client_events(client);
    spool_publish(spool, client, "orders", "key", 7, 1);
    spool_receive(spool, client, 1);
    expect(client, 0, "7");
    spool_close(spool, client);
}

/* What a process that dies leaves, made by undoing the orderly end's last words. */
static void
after_a_crash_what_was_out_counts_as_delivered(void **state)
{
    struct client *client = spool_open(*state, "orders");
    spool_publish(*state, client, "orders", "key", 0, 4);
    spool_receive(*state, client, 4);
    client_ack(client, 2);
    spool_close(*state, client);
    assert_int_equal(spool_sql(*state, "SELECT count(*) FROM unsettled"), 2);
    spool_sql(*state, "UPDATE unsettled SET due_ms = NULL");
    spool_sql(*state, "UPDATE position SET given = 4");
    client = spool_open(*state, "orders");
    spool_receive(*state, client, 3);
    expect(client, 0, "0x1 1x1 3x1");
    spool_close(*state, client);
}

static void
a_key_keeps_its_partition_and_keyless_ones_take_turns(void **state)
{
    const struct lw_property four = { "partitions", "4" };
    struct client *client = spool_open_with(*state, "orders", &four, 1);
    assert_int_equal(client->slot_count, 4);
    spool_publish(*state, client, "orders", "abc", 0, 3);
    spool_publish(*state, client, "orders", NULL, 3, 8);
    spool_receive(*state, client, 11);
    int keyless[4] = { 0 };
    int keyed[4] = { 0 };
    for (size_t i = 0; i < 11; i++) {
        int *counts = client->messages[i].key.data ? keyed : keyless;
        counts[client->messages[i].slot]++;
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(keyless[i], 2);
        assert_true(keyed[i] == 0 || keyed[i] == 3);
    }
    spool_close(*state, client);
}

/* A prepared statement keeps what the message before had. */
static void
a_message_has_nothing_of_the_one_before(void **state)
{
    struct spool *spool = *state;
    struct lw_message_times times;
    size_t count = 9;
    const struct lw_header header = { { "name", 4 }, { "value", 5 } };
    const struct lw_publication full = { .kind = LW_PUBLISH_OUTPUT,
                                         .topic = "orders",
                                         .partition = -1,
                                         .key = { "key", 3 },
                                         .ordering_key = { "order", 5 },
                                         .value = { "value", 5 },
                                         .headers = &header,
                                         .header_count = 1,
                                         .event_time_ms = 17,
                                         .delay_ms = 1 };
    const struct lw_publication bare = {
        .kind = LW_PUBLISH_OUTPUT, .topic = "orders", .partition = -1, .event_time_ms = -1
    };
    struct client *client = spool_open(spool, "orders");
    for (int i = 0; i < 3; i++) {
        assert_int_not_equal(client_offer(client, i == 1 ? &bare : &full), SIZE_MAX);
    }
    spool_receive(spool, client, 3);
    for (int i = 0; i < 3; i++) {
        const struct lw_message *message = &client->messages[i];
        bool is_bare = message->position == 1;
        assert_int_equal(!message->key.data, is_bare);
        assert_int_equal(!message->ordering_key.data, is_bare);
        assert_int_equal(!message->value.data, is_bare);
        client->ops->headers(client->broker, message, &count);
        assert_int_equal(count, is_bare ? 0 : 1);
        client->ops->times(client->broker, message, &times);
        assert_int_equal(times.event_time_ms, is_bare ? -1 : 17);
    }
    spool_close(spool, client);
    assert_int_equal(spool_sql(spool, "SELECT count(*) FROM message WHERE due_ms IS NULL"), 1);
}

int
main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, spool_setup, spool_teardown)
    const struct CMUnitTest tests[] = {
        TEST(what_is_acknowledged_is_gone_after_a_restart),
        TEST(what_was_overtaken_comes_again_and_the_rest_does_not),
        TEST(what_is_given_back_counts_and_waits),
        TEST(a_count_and_a_delay_outlast_a_restart),
        TEST(a_delayed_message_lets_later_ones_pass),
        TEST(an_end_with_a_delayed_message_counts_for_nothing),
        TEST(what_is_read_ahead_has_a_size),
        TEST(what_waits_is_counted_without_demand),
        TEST(groups_do_not_know_of_each_other),
        TEST(a_new_group_may_begin_at_the_end),
        TEST(after_a_crash_what_was_out_counts_as_delivered),
        TEST(a_key_keeps_its_partition_and_keyless_ones_take_turns),
        TEST(a_message_has_nothing_of_the_one_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
