/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is deleted, and what is not: settled messages with and without `keep`, what is too old or too
 * much whoever has read it, and what the slowest group still needs. A start looks at once, so each
 * test sets the stage, ends, and opens the file again with the options under test.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#include "brokers/spool/broker.h"
#include "tests/brokers/spool/fixture.h"

static const char count_messages[] = "SELECT count(*) FROM message";

/* `count` messages of topic "orders", the first `acked` of them settled by "group". */
static void
fill(struct spool *spool, const struct lw_property *property, int count, size_t acked)
{
    struct client *client = spool_open_with(spool, "orders", property, property ? 1 : 0);
    spool_publish(spool, client, "orders", "key", 0, count);
    spool_receive(spool, client, (size_t)count);
    for (size_t i = 0; i < acked; i++) {
        client_ack(client, i);
    }
    spool_close(spool, client);
}

/* Opens with a property as a reader, lets the worker look, ends. */
static void
look(struct spool *spool, const char *name, const char *value)
{
    const struct lw_property property = { name, value };
    struct client *client = spool_open_with(spool, "others", &property, 1);
    spool_pump(spool, 100);
    spool_close(spool, client);
}

static void
what_every_group_has_settled_goes(void **state)
{
    fill(*state, NULL, 10, 6);
    assert_int_equal(spool_sql(*state, count_messages), 4);
    assert_int_equal(spool_sql(*state, "SELECT min(id) & 0xFFFFFFF FROM message"), 6);
}

/* An end does not wait until all is deleted; the next start's transactions go on with it. */
static void
what_an_end_left_is_deleted_by_the_next_start(void **state)
{
    enum { TRANSACTIONS = 5 };
    fill(*state, NULL, 3000, 3000);
    struct client *client = spool_open(*state, "orders");
    for (int i = 0; i < TRANSACTIONS; i++) {
        spool_publish(*state, client, "others", "key", i, 1);
    }
    spool_close(*state, client);
    assert_int_equal(spool_sql(*state, count_messages), TRANSACTIONS);
}

static void
what_is_kept_stays_for_its_time(void **state)
{
    const struct lw_property hour = { "keep", "1h" };
    fill(*state, &hour, 10, 10);
    assert_int_equal(spool_sql(*state, count_messages), 10);
    spool_sql(*state, "UPDATE message SET time_ms = time_ms - 7200000 WHERE id & 15 < 4");
    look(*state, "keep", "1h");
    assert_int_equal(spool_sql(*state, count_messages), 6);
}

static void
a_group_that_is_behind_keeps_what_it_needs(void **state)
{
    struct spool *spool = *state;
    struct client *client = client_create(spool->host, lw_spool_broker_ops(), "two",
                                          spool->url);
    client_subscribe(client, "orders", "slow");
    client_start(client);
    client_events(client);
    spool_close(spool, client);
    fill(spool, NULL, 10, 10);
    assert_int_equal(spool_sql(spool, count_messages), 10);
}

static void
what_is_too_old_goes_unread(void **state)
{
    struct spool *spool = *state;
    fill(spool, NULL, 10, 0);
    spool_sql(spool, "UPDATE message SET time_ms = time_ms - 7200000 WHERE id & 15 < 7");
    look(spool, "retention", "1h");
    assert_int_equal(spool_sql(spool, count_messages), 3);
    struct client *client = spool_open(spool, "orders");
    spool_receive(spool, client, 3);
    assert_memory_equal(client->messages[0].value.data, "7", 1);
    spool_pump(spool, 100);
    client_events(client);
    client_receive(client, client->sources[0], 1);
    assert_int_equal(client->message_count, 3);
    spool_close(spool, client);
}

static void
what_is_given_back_and_then_deleted_is_forgotten(void **state)
{
    struct spool *spool = *state;
    struct client *client = spool_open(spool, "orders");
    spool_publish(spool, client, "orders", "key", 0, 3);
    spool_receive(spool, client, 3);
    for (size_t i = 0; i < 3; i++) {
        client_nack(client, i, 3600000);
    }
    spool_close(spool, client);
    assert_int_equal(spool_sql(spool, "SELECT count(*) FROM unsettled"), 3);
    spool_sql(spool, "UPDATE message SET time_ms = time_ms - 7200000");
    look(spool, "retention", "1h");
    assert_int_equal(spool_sql(spool, "SELECT count(*) FROM unsettled"), 0);
    assert_int_equal(spool_sql(spool, count_messages), 0);
}

static void
what_is_too_much_goes_from_the_oldest_on(void **state)
{
    struct spool *spool = *state;
    struct client *client = spool_open(spool, NULL);
    static char value[1001];
    memset(value, 'v', 1000);
    for (int i = 0; i < 10; i++) {
        client_publish(client, "orders", "key", value);
    }
    spool_await_receipts(spool, client, 10);
    spool_close(spool, client);
    look(spool, "retention_bytes", "3100B");
    assert_int_equal(spool_sql(spool, count_messages), 3);
    assert_int_equal(spool_sql(spool, "SELECT bytes FROM partition"), 3 * 1003);
    client = spool_open(spool, NULL);
    spool_publish(spool, client, "orders", "key", 10, 1);
    spool_close(spool, client);
    assert_int_equal(spool_sql(spool, "SELECT max(id) & 0xFFFFFFF FROM message"), 10);
}

static void
a_topic_may_have_a_retention_of_its_own(void **state)
{
    struct spool *spool = *state;
    struct lw_error error = { 0 };
    struct lw_topic_info info = { .name = "orders.dlq",
                                  .partitions = 1,
                                  .retention_ms = 3600000 };
    struct client *client = client_create(spool->host, lw_spool_broker_ops(), "a", spool->url);
    assert_int_equal(client->ops->create_topics(client->broker, &info, 1, 5000, &error),
                     LW_STATUS_OK);
    client_destroy(client);
    client = spool_open(spool, NULL);
    spool_publish(spool, client, "orders.dlq", "key", 0, 4);
    spool_publish(spool, client, "other", "key", 4, 4);
    spool_close(spool, client);
    spool_sql(spool, "UPDATE message SET time_ms = time_ms - 7200000");
    look(spool, "partitions", "1");
    assert_int_equal(spool_sql(spool, count_messages), 4);
}

/* Everything is gone: the next message must not take a number that was used. */
static void
numbers_are_not_used_again(void **state)
{
    fill(*state, NULL, 5, 5);
    assert_int_equal(spool_sql(*state, count_messages), 0);
    struct client *client = spool_open(*state, "orders");
    spool_publish(*state, client, "orders", "key", 5, 1);
    spool_receive(*state, client, 1);
    assert_int_equal(client->messages[0].position, 5);
    spool_close(*state, client);
}

int
main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, spool_setup, spool_teardown)
    const struct CMUnitTest tests[] = {
        TEST(what_every_group_has_settled_goes),
        TEST(what_an_end_left_is_deleted_by_the_next_start),
        TEST(what_is_kept_stays_for_its_time),
        TEST(a_group_that_is_behind_keeps_what_it_needs),
        TEST(what_is_too_old_goes_unread),
        TEST(what_is_given_back_and_then_deleted_is_forgotten),
        TEST(what_is_too_much_goes_from_the_oldest_on),
        TEST(a_topic_may_have_a_retention_of_its_own),
        TEST(numbers_are_not_used_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
