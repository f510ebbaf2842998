/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What waits for a source: only of partitions that are its own, tiers apart, and what comes again
 * where messages are settled one by one.
 */
#include "tests/support/test.h"

#include <stdio.h>

#include "tests/brokers/memory/fixture.h"

/* "MESSAGES+COMPANIONS", or "unknown". */
static const char *
lag_of(struct client *client)
{
    static char text[64];
    struct lw_lag lag;
    if (!client->ops->lag(client->sources[0], &lag)) {
        return "unknown";
    }
    (void)snprintf(text, sizeof text, "%llu+%llu", (unsigned long long)lag.messages,
                   (unsigned long long)lag.companions);
    return text;
}

static void
what_was_received_does_not_wait_at_the_broker(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_create(NULL);
    fixture_fill(fixture, "orders", "k", 5);
    struct client *a = fixture_member(fixture, "a", "orders", "g");
    assert_string_equal(lag_of(a), "5+0");
    client_receive(a, a->sources[0], 3);
    assert_string_equal(lag_of(a), "2+0");
    client_receive(a, a->sources[0], 3);
    assert_string_equal(lag_of(a), "0+0");
    fixture_fill(fixture, "orders", "k", 4);
    assert_string_equal(lag_of(a), "4+0");
    fixture_destroy(fixture);
}

static void
nothing_is_known_before_the_assignment(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_create(NULL);
    fixture_fill(fixture, "orders", "k", 5);
    struct client *a = fixture_client(fixture, "a");
    client_subscribe(a, "orders", "g");
    client_start(a);
    assert_string_equal(lag_of(a), "unknown");
    fixture_settle(fixture);
    client_events(a);
    assert_string_equal(lag_of(a), "5+0");
    fixture_destroy(fixture);
}

static void
partitions_of_another_member_do_not_count(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_create(NULL);
    lw_memory_hub_create_topic(fixture->hub, "orders", 2);
    fixture_fill(fixture, "orders", NULL, 10);
    struct client *a = fixture_member(fixture, "a", "orders", "g");
    assert_string_equal(lag_of(a), "10+0");
    struct client *b = fixture_client(fixture, "b");
    client_subscribe(b, "orders", "g");
    client_start(b);
    fixture_agree(fixture);
    assert_string_equal(lag_of(a), "5+0");
    assert_string_equal(lag_of(b), "5+0");
    fixture_destroy(fixture);
}

static void
retry_tiers_are_counted_apart(void **state)
{
    (void)state;
    static const int64_t tiers[] = { 1000 };
    struct fixture *fixture = fixture_create(NULL);
    fixture_fill(fixture, "orders", "k", 2);
    fixture_fill(fixture, "orders.retry.1s", "k", 3);
    struct client *a = fixture_client(fixture, "a");
    struct lw_source_options options = client_options("orders", "g");
    options.retry_topic = "orders.retry";
    options.tiers_ms = tiers;
    options.tier_count = 1;
    options.reads_tiers = true;
    client_subscribe_with(a, &options);
    client_start(a);
    fixture_settle(fixture);
    client_events(a);
    assert_string_equal(lag_of(a), "2+3");
    fixture_destroy(fixture);
}

static void
what_comes_again_waits_also_before_its_time(void **state)
{
    (void)state;
    struct lw_memory_options options;
    lw_memory_options_init(&options);
    options.mode = LW_MEMORY_INDIVIDUAL;
    options.sharing = LW_MEMORY_SHARED;
    struct fixture *fixture = fixture_create(&options);
    struct client *a = fixture_member(fixture, "a", "jobs", "s");
    fixture_fill(fixture, "jobs", NULL, 3);
    client_receive(a, a->sources[0], 2);
    assert_string_equal(lag_of(a), "1+0");
    client_nack(a, 0, 5000);
    assert_string_equal(lag_of(a), "2+0");
    client_ack(a, 1);
    assert_string_equal(lag_of(a), "2+0");
    virtual_host_pass(&fixture->virtual_host, SECONDS(5) + LW_MS);
    client_receive(a, a->sources[0], 2);
    assert_string_equal(lag_of(a), "0+0");
    fixture_destroy(fixture);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_received_does_not_wait_at_the_broker),
        cmocka_unit_test(nothing_is_known_before_the_assignment),
        cmocka_unit_test(partitions_of_another_member_do_not_count),
        cmocka_unit_test(retry_tiers_are_counted_apart),
        cmocka_unit_test(what_comes_again_waits_also_before_its_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
