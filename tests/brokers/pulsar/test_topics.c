/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Subscriptions of many topics on the embedded broker: patterns whose topics come, go and come back,
 * with a broker that tells of them and with one that must be asked, and the places that they take.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#include "tests/brokers/pulsar/dealing.h"

static struct dealing dealing;

static int
set_up(void **state)
{
    (void)state;
    dealing_init(&dealing);
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

static void
begin(const char *pattern)
{
    struct lw_source_options options = dealing_options(pattern);
    dealing_open(&dealing);
    (void)client_subscribe_with(dealing.client, &options);
    client_start(dealing.client);
}

static void
serve(bool has_watchers)
{
    dealing.settings.has_topic_watchers = has_watchers;
    dealing_serve(&dealing);
    embedded_create_topic(dealing.broker, "orders_a");
    embedded_create_topic(dealing.broker, "bills_a");
}

static void
publish(const char *topic)
{
    struct embedded_publish message = { .value = { "x", 1 } };
    (void)embedded_publish(dealing.broker, topic, &message);
}

static uint64_t
asked(void)
{
    return embedded_counts(dealing.broker)->in[LW_PULSAR_GET_TOPICS_OF_NAMESPACE];
}

/* Answers what is given up meanwhile. */
static bool
has_live(struct dealing *it, void *user)
{
    client_answer(it->client);
    return dealing_live(it) == *(const size_t *)user;
}

static void
until_live(size_t count, int64_t limit_ms)
{
    dealing_until(&dealing, has_live, &count, limit_ms);
}

static void
a_topic_that_begins_to_match_is_told_by_the_broker(void **state)
{
    (void)state;
    serve(true);
    begin("orders_.*");
    until_live(1, 10000);
    dealing_pass_ms(&dealing, 5000);
    embedded_create_topic(dealing.broker, "orders_b");
    until_live(2, 2000);
    embedded_create_topic(dealing.broker, "bills_b");
    dealing_pass_ms(&dealing, 5000);
    assert_int_equal(dealing_live(&dealing), 2);
    publish("orders_b");
    dealing_until_messages(&dealing, 1);
    client_ack(dealing.client, 0);
}

static void
many_topics_at_a_time_are_looked_for_once(void **state)
{
    (void)state;
    char name[32];
    serve(true);
    begin("orders_.*");
    until_live(1, 10000);
    dealing_pass_ms(&dealing, 1000);
    uint64_t before = asked();
    for (int i = 0; i < 50; i++) {
        (void)snprintf(name, sizeof name, "orders_%d", i);
        embedded_create_topic(dealing.broker, name);
    }
    until_live(51, 5000);
    assert_in_range(asked() - before, 1, 3);
}

static void
who_is_told_does_not_ask_every_minute(void **state)
{
    (void)state;
    serve(true);
    begin("orders_.*");
    until_live(1, 10000);
    dealing_pass_ms(&dealing, 1000);
    uint64_t before = asked();
    dealing_pass_ms(&dealing, 3600000);
    assert_in_range(asked() - before, 5, 7);
}

static void
a_broker_that_tells_nothing_is_asked_every_minute(void **state)
{
    (void)state;
    serve(false);
    begin("orders_.*");
    until_live(1, 10000);
    dealing_pass_ms(&dealing, 1000);
    embedded_create_topic(dealing.broker, "orders_b");
    dealing_pass_ms(&dealing, 30000);
    assert_int_equal(dealing_live(&dealing), 1);
    until_live(2, 31000);
    assert_int_equal(embedded_counts(dealing.broker)->in[LW_PULSAR_WATCH_TOPIC_LIST], 0);
}

static void
a_watch_is_made_again_with_the_connection(void **state)
{
    (void)state;
    serve(true);
    begin("orders_.*");
    until_live(1, 10000);
    dealing_pass_ms(&dealing, 1000);
    embedded_drop_all(dealing.broker);
    embedded_create_topic(dealing.broker, "orders_b"); /* while nobody listens */
    until_live(2, 5000);
    dealing_pass_ms(&dealing, 1000);
    embedded_create_topic(dealing.broker, "orders_c");
    until_live(3, 2000);
}

static void
a_deleted_topic_is_given_up_and_not_made_again(void **state)
{
    (void)state;
    serve(true);
    embedded_create_topic(dealing.broker, "orders_b");
    begin("orders_.*");
    until_live(2, 10000);
    dealing_pass_ms(&dealing, 1000);
    embedded_delete_topic(dealing.broker, "orders_b");
    until_live(1, 5000);
    dealing_pass_ms(&dealing, 60000);
    assert_false(embedded_has_topic(dealing.broker, "orders_b"));
    assert_int_equal(dealing_live(&dealing), 1);
}

/* A topic that flaps takes the place that it had. */
static void
the_place_of_a_topic_that_vanished_is_used_again(void **state)
{
    (void)state;
    serve(true);
    begin("orders_.*");
    until_live(1, 10000);
    dealing_pass_ms(&dealing, 1000);
    for (size_t i = 0; i < 30; i++) {
        embedded_create_topic(dealing.broker, "orders_b");
        until_live(2, 5000);
        publish("orders_b");
        dealing_until_messages(&dealing, i + 1);
        client_ack(dealing.client, i);
        dealing_pass_ms(&dealing, 500);
        embedded_delete_topic(dealing.broker, "orders_b");
        until_live(1, 5000);
        dealing_pass_ms(&dealing, 10000);
    }
    assert_int_equal(dealing.client->slot_count, 2);
}

static void
a_place_is_kept_while_a_message_of_it_is_held(void **state)
{
    (void)state;
    serve(true);
    embedded_create_topic(dealing.broker, "orders_b");
    begin("orders_.*");
    until_live(2, 10000);
    dealing_pass_ms(&dealing, 1000);
    publish("orders_b");
    dealing_until_messages(&dealing, 1);
    uint32_t place = dealing.client->messages[0].slot;
    embedded_delete_topic(dealing.broker, "orders_b");
    until_live(1, 5000);
    dealing_pass_ms(&dealing, 10000);
    embedded_create_topic(dealing.broker, "orders_c");
    until_live(2, 5000);
    assert_int_equal(dealing.client->slot_count, 3);
    assert_memory_equal(dealing.client->messages[0].value.data, "x", 1);
    client_release(dealing.client, 0);
    embedded_create_topic(dealing.broker, "orders_d");
    until_live(3, 5000);
    assert_int_equal(dealing.client->slot_count, 3);
    publish("orders_d");
    dealing_until_messages(&dealing, 2);
    assert_int_equal(dealing.client->messages[1].slot, place);
    client_ack(dealing.client, 1);
}

/* How often the host is woken; what is sent and answered at one time counts once. */
static uint64_t
count_wakes(int64_t ms)
{
    struct virtual_host *virtual_host = &dealing.virtual_host;
    uint64_t end = virtual_host->host.now + (uint64_t)ms * LW_MS;
    uint64_t wakes = 0;
    uint64_t last = 0;
    while (virtual_host_jump(virtual_host, end)) {
        (void)client_events(dealing.client);
        virtual_host_settle(virtual_host);
        virtual_host_settle(virtual_host);
        wakes += virtual_host->host.now / LW_MS != last;
        last = virtual_host->host.now / LW_MS;
    }
    return wakes;
}

/* A PING every 30 s is owed to the connection; partitions are looked for once a minute. */
static void
an_idle_subscription_wakes_for_its_keep_alive_and_once_a_minute(void **state)
{
    (void)state;
    dealing.settings.keep_alive_ms = 0; /* the broker's own */
    serve(true);
    embedded_set_partitions(dealing.broker, "jobs", 8);
    begin("jobs");
    until_live(8, 10000);
    dealing_pass_ms(&dealing, 5000);
    assert_in_range(count_wakes(1200000), 40, 40 + 20 + 2);
}

static void
an_idle_pattern_that_is_told_of_topics_wakes_for_its_keep_alive(void **state)
{
    (void)state;
    dealing.settings.keep_alive_ms = 0;
    serve(true);
    begin("orders_.*");
    until_live(1, 10000);
    dealing_pass_ms(&dealing, 5000);
    assert_in_range(count_wakes(1200000), 40, 40 + 4);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_topic_that_begins_to_match_is_told_by_the_broker),
        TEST(many_topics_at_a_time_are_looked_for_once),
        TEST(who_is_told_does_not_ask_every_minute),
        TEST(a_broker_that_tells_nothing_is_asked_every_minute),
        TEST(a_watch_is_made_again_with_the_connection),
        TEST(a_deleted_topic_is_given_up_and_not_made_again),
        TEST(the_place_of_a_topic_that_vanished_is_used_again),
        TEST(a_place_is_kept_while_a_message_of_it_is_held),
        TEST(an_idle_subscription_wakes_for_its_keep_alive_and_once_a_minute),
        TEST(an_idle_pattern_that_is_told_of_topics_wakes_for_its_keep_alive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
