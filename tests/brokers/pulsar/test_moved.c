/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A topic that moves to another cluster (TOPIC_MIGRATED), with two embedded brokers: it is followed
 * with consumers and producers, what is not acknowledged stays in the old cluster, and no id of the
 * old one is ever acknowledged in the new one.
 */
#include "tests/support/test.h"

#include <string.h>

#include "tests/brokers/pulsar/dealing.h"

static struct dealing dealing;
static struct embedded *other;

static int
set_up(void **state)
{
    (void)state;
    dealing_init(&dealing);
    dealing_serve(&dealing);
    other = embedded_create(&dealing.virtual_host.host, &dealing.settings);
    embedded_create_topic(dealing.broker, "t");
    dealing_open(&dealing);
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    dealing_close(&dealing);
    assert_int_equal(embedded_counts(other)->violations, 0);
    assert_int_equal(embedded_counts(other)->protocol_errors, 0);
    embedded_destroy(other);
    dealing_deinit(&dealing);
    return 0;
}

static void
begin(void)
{
    struct lw_source_options options = dealing_options("t");
    (void)client_subscribe_with(dealing.client, &options);
    client_start(dealing.client);
    dealing_until_live(&dealing, 1);
}

static void
fill(struct embedded *broker, const char *value, int count)
{
    struct embedded_publish message = { .value = lw_bytes_of(value) };
    for (int i = 0; i < count; i++) {
        (void)embedded_publish(broker, "t", &message);
    }
}

static struct embedded_subscription_info
subscription(const struct embedded *broker)
{
    struct embedded_subscription_info info = { .backlog = UINT64_MAX };
    (void)embedded_subscription(broker, "t", "s", &info);
    return info;
}

static bool
is_stored(struct dealing *it, void *user)
{
    (void)user;
    return it->client->sent_count > 0 && it->client->sent[0].receipts == 1;
}

static void
a_topic_that_moved_is_followed_and_what_is_held_stays_behind(void **state)
{
    (void)state;
    fill(dealing.broker, "old", 5);
    fill(other, "new", 5);
    begin();
    dealing_until_messages(&dealing, 5);
    for (size_t i = 0; i < 3; i++) {
        client_ack(dealing.client, i);
    }
    dealing_pass_ms(&dealing, 1000);
    embedded_migrate(dealing.broker, "t", embedded_url(other, 0));
    dealing_until_messages(&dealing, 10);
    assert_memory_equal(dealing.client->messages[9].value.data, "new", 3);
    client_ack(dealing.client, 3); /* of the old cluster, where nobody hears it any more */
    client_ack(dealing.client, 9);
    dealing_pass_ms(&dealing, 1000);
    assert_int_equal(subscription(dealing.broker).backlog, 2);
    assert_int_equal(subscription(other).backlog, 4);
    assert_int_equal(dealing_live(&dealing), 1);
    assert_int_equal(dealing_logged(&dealing, "pulsar.topic_moved"), 1);
    assert_non_null(strstr(dealing.log, embedded_url(other, 0)));
}

static void
a_subscription_to_a_topic_that_moved_before_begins_in_the_new_cluster(void **state)
{
    (void)state;
    fill(other, "new", 3);
    embedded_migrate(dealing.broker, "t", embedded_url(other, 0));
    begin();
    dealing_until_messages(&dealing, 3);
    for (size_t i = 0; i < 3; i++) {
        client_ack(dealing.client, i);
    }
    dealing_pass_ms(&dealing, 1000);
    assert_int_equal(subscription(other).backlog, 0);
    assert_int_equal(embedded_consumers(dealing.broker, NULL), 0);
}

static void
what_is_published_follows_its_topic(void **state)
{
    (void)state;
    begin();
    dealing_pass_ms(&dealing, 1000);
    embedded_migrate(dealing.broker, "t", embedded_url(other, 0));
    (void)client_publish(dealing.client, "t", "key", "value");
    dealing_until(&dealing, is_stored, NULL, 60000);
    assert_int_equal(dealing.client->sent[0].status, LW_STATUS_OK);
    assert_int_equal(embedded_entry_count(other, "t"), 1);
    assert_int_equal(embedded_entry_count(dealing.broker, "t"), 0);
    dealing_until_messages(&dealing, 1);
    client_ack(dealing.client, 0);
}

/* Taken back before the new cluster was there: the old one knows. */
static void
a_new_cluster_that_is_not_there_is_asked_about_at_the_old_one(void **state)
{
    (void)state;
    fill(dealing.broker, "old", 2);
    embedded_set_listening(other, 0, false);
    embedded_migrate(dealing.broker, "t", embedded_url(other, 0));
    struct lw_source_options options = dealing_options("t");
    (void)client_subscribe_with(dealing.client, &options);
    client_start(dealing.client);
    dealing_pass_ms(&dealing, 20000);
    assert_int_equal(dealing_live(&dealing), 0);
    assert_in_range(embedded_counts(dealing.broker)->in[LW_PULSAR_SUBSCRIBE], 2, 12);
    embedded_migrate(dealing.broker, "t", NULL);
    dealing_until_messages(&dealing, 2);
    client_ack(dealing.client, 0);
    client_ack(dealing.client, 1);
}

static void
an_address_that_may_not_be_used_is_said_and_the_old_cluster_is_tried(void **state)
{
    (void)state;
    struct lw_source_options options = dealing_options("t");
    embedded_migrate(dealing.broker, "t", "http://elsewhere");
    (void)client_subscribe_with(dealing.client, &options);
    client_start(dealing.client);
    dealing_pass_ms(&dealing, 5000);
    assert_true(dealing_logged(&dealing, "pulsar.topic_moved") > 0);
    assert_non_null(strstr(dealing.client->last_error.message, "new cluster"));
    fill(dealing.broker, "old", 1);
    embedded_migrate(dealing.broker, "t", NULL);
    dealing_until_messages(&dealing, 1);
    client_ack(dealing.client, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_topic_that_moved_is_followed_and_what_is_held_stays_behind),
        TEST(a_subscription_to_a_topic_that_moved_before_begins_in_the_new_cluster),
        TEST(what_is_published_follows_its_topic),
        TEST(a_new_cluster_that_is_not_there_is_asked_about_at_the_old_one),
        TEST(an_address_that_may_not_be_used_is_said_and_the_old_cluster_is_tried),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
