/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receipts from a real cluster: innocent neighbours of a message that is too large are delivered,
 * small messages that together were too large for the topic too; what cannot be sent says why.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#include "tests/kafka/cluster.h"

static char text[2 << 20];

static void
prepare(struct lw_publication *items, size_t count, const char *topic, size_t bytes)
{
    memset(text, 'x', sizeof text);
    for (size_t i = 0; i < count; i++) {
        items[i] = (struct lw_publication){
            .topic = topic, .partition = 0, .value = { text, bytes }, .event_time_ms = -1
        };
    }
}

static void
publish_all(struct driver *driver, struct lw_publication *items, size_t count)
{
    struct lw_publication *pointers[64];
    for (size_t i = 0; i < count; i++) {
        pointers[i] = &items[i];
    }
    assert_int_equal(driver->broker->ops->publish(driver->broker, pointers, count), count);
    driver_run_receipts(driver, count, DRIVER_PATIENCE_MS);
}

static void
make_small_topic(char *topic)
{
    char arguments[128];
    cluster_name("small", topic);
    (void)snprintf(arguments, sizeof arguments, "topic %s 1 max.message.bytes=2000", topic);
    cluster_tool(arguments);
}

static void
open_publisher(struct driver *driver)
{
    driver_open(driver, cluster_address(), NULL);
    driver_start(driver);
}

static void
small_messages_whose_batch_was_refused_are_delivered(void **state)
{
    (void)state;
    struct driver driver;
    struct lw_publication items[50];
    char topic[64];
    make_small_topic(topic);
    prepare(items, 50, topic, 100);
    open_publisher(&driver);
    publish_all(&driver, items, 50);
    assert_int_equal(driver.receipts[LW_STATUS_OK], 50);
    driver_close(&driver);
}

static void
one_message_too_large_does_not_take_its_neighbours_with_it(void **state)
{
    (void)state;
    struct driver driver;
    struct lw_publication items[21];
    char topic[64];
    make_small_topic(topic);
    prepare(items, 21, topic, 20);
    items[10].value.size = 5000;
    open_publisher(&driver);
    publish_all(&driver, items, 21);
    assert_int_equal(driver.receipts[LW_STATUS_OK], 20);
    assert_int_equal(driver.receipts[LW_STATUS_TOO_LARGE], 1);
    driver_close(&driver);
}

static void
a_message_above_the_clients_own_limit_is_too_large_at_once(void **state)
{
    (void)state;
    struct driver driver;
    struct lw_publication item;
    char topic[64];
    cluster_name("large", topic);
    cluster_create(topic, 1);
    prepare(&item, 1, topic, sizeof text);
    open_publisher(&driver);
    publish_all(&driver, &item, 1);
    assert_int_equal(driver.receipts[LW_STATUS_TOO_LARGE], 1);
    driver_close(&driver);
}

static void
a_topic_that_does_not_exist_is_not_found(void **state)
{
    (void)state;
    struct driver driver;
    struct lw_publication item;
    prepare(&item, 1, "no-such-topic-here", 10);
    open_publisher(&driver);
    publish_all(&driver, &item, 1);
    assert_int_equal(driver.receipts[LW_STATUS_NOT_FOUND], 1);
    driver_close(&driver);
}

static void
a_partition_that_does_not_exist_is_not_found(void **state)
{
    (void)state;
    struct driver driver;
    struct lw_publication item;
    char topic[64];
    cluster_name("narrow", topic);
    cluster_create(topic, 1);
    prepare(&item, 1, topic, 10);
    item.partition = 7;
    open_publisher(&driver);
    publish_all(&driver, &item, 1);
    assert_int_equal(driver.receipts[LW_STATUS_NOT_FOUND], 1);
    driver_close(&driver);
}

static void
what_is_out_at_a_close_gets_its_receipt(void **state)
{
    (void)state;
    struct driver driver;
    struct lw_publication item;
    prepare(&item, 1, "no-such-topic-either", 10);
    open_publisher(&driver);
    driver_publish(&driver, &item);
    driver.broker->ops->close(driver.broker);
    driver_run_receipts(&driver, 1, DRIVER_PATIENCE_MS);
    assert_int_equal(driver.receipts[LW_STATUS_UNAVAILABLE], 1);
    driver_close(&driver);
}

/* -- Topics ------------------------------------------------------------------------------------------ */

static void
topics_are_described_without_being_created(void **state)
{
    (void)state;
    struct driver driver;
    struct lw_error error = { .message = "" };
    char here[64];
    cluster_name("here", here);
    cluster_create(here, 3);
    struct lw_topic_info infos[] = { { .name = here }, { .name = "not-here" } };
    driver_open(&driver, cluster_address(), NULL);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(
            driver.broker->ops->describe_topics(driver.broker, infos, 2, 10000, &error),
            LW_STATUS_OK);
        assert_int_equal(infos[0].partitions, 3);
        assert_int_equal(infos[1].partitions, 0);
    }
    driver_close(&driver);
}

static void
creating_a_topic_twice_says_already(void **state)
{
    (void)state;
    struct driver driver;
    struct lw_error error = { .message = "" };
    char topic[64];
    cluster_name("twice", topic);
    cluster_create(topic, 1);
    struct lw_topic_info info = { .name = topic, .partitions = 1, .retention_ms = 1000000 };
    driver_open(&driver, cluster_address(), NULL);
    assert_int_equal(driver.broker->ops->create_topics(driver.broker, &info, 1, 10000, &error),
                     LW_STATUS_OK);
    assert_int_equal(info.status, LW_STATUS_ALREADY);
    driver_close(&driver);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_messages_whose_batch_was_refused_are_delivered),
        cmocka_unit_test(one_message_too_large_does_not_take_its_neighbours_with_it),
        cmocka_unit_test(a_message_above_the_clients_own_limit_is_too_large_at_once),
        cmocka_unit_test(a_topic_that_does_not_exist_is_not_found),
        cmocka_unit_test(a_partition_that_does_not_exist_is_not_found),
        cmocka_unit_test(what_is_out_at_a_close_gets_its_receipt),
        cmocka_unit_test(topics_are_described_without_being_created),
        cmocka_unit_test(creating_a_topic_twice_says_already),
    };
    (void)cluster_address();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
