/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The path of messages through a real cluster, by the broker's table alone: received whole and in
 * order, committed, resumed; bytes kept exactly; retry tiers held until their time.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#include "tests/kafka/cluster.h"

static const struct lw_property quick[] = { { "session.timeout.ms", "10000" },
                                            { "heartbeat.interval.ms", "300" },
                                            { NULL, NULL } };

static void
a_hundred_thousand_messages_come_once_and_in_order(void **state)
{
    (void)state;
    struct driver driver;
    char topic[64];
    cluster_name("path", topic);
    cluster_create(topic, 8);
    cluster_fill(topic, 100000, 500);
    driver_open(&driver, cluster_address(), NULL);
    driver_subscribe(&driver, topic, topic, quick);
    driver_start(&driver);
    driver_run_received(&driver, 100000, DRIVER_PATIENCE_MS);
    driver_pass(&driver, 300);
    assert_int_equal(driver.received, 100000);
    assert_int_equal(driver.jumps, 0);
    driver_commit(&driver);
    assert_int_equal(driver.commit_status, LW_STATUS_OK);
    driver_close(&driver);
}

static void
a_member_goes_on_at_the_last_commit(void **state)
{
    (void)state;
    struct driver driver;
    char topic[64];
    cluster_name("resume", topic);
    cluster_create(topic, 2);
    for (int round = 0; round < 2; round++) {
        cluster_fill(topic, 500, 10);
        driver_open(&driver, cluster_address(), NULL);
        driver_subscribe(&driver, topic, topic, quick);
        driver_start(&driver);
        driver_run_received(&driver, 500, DRIVER_PATIENCE_MS);
        driver_pass(&driver, 300);
        assert_int_equal(driver.received, 500);
        driver_close(&driver); /* the revoke commits */
    }
}

static void
topics_and_groups_of_one_broker_are_apart_and_commit_together(void **state)
{
    (void)state;
    struct driver driver;
    char first[64];
    char second[64];
    char group[64];
    cluster_name("group", group);
    cluster_name("first", first);
    cluster_name("second", second);
    cluster_create(first, 2);
    cluster_create(second, 3);
    cluster_fill(first, 100, 10);
    cluster_fill(second, 50, 10);
    driver_open(&driver, cluster_address(), NULL);
    driver_subscribe(&driver, first, group, quick);
    driver_subscribe(&driver, second, group, quick);
    driver_subscribe(&driver, first, second, quick);
    driver_start(&driver);
    driver_run_received(&driver, 250, DRIVER_PATIENCE_MS);
    driver_run_assigned(&driver, 7, DRIVER_PATIENCE_MS);
    driver_pass(&driver, 300);
    assert_int_equal(driver.received, 250);
    driver_commit(&driver);
    assert_int_equal(driver.commits, 1);
    assert_int_equal(driver.commit_status, LW_STATUS_OK);
    driver_close(&driver);
}

/* -- Bytes ------------------------------------------------------------------------------------------ */

static const struct lw_header odd_headers[] = {
    { { "a", 1 }, { "1", 1 } },
    { { "a", 1 }, { "", 0 } },
    { { "b", 1 }, { NULL, 0 } },
    { { "zero", 4 }, { "x\0y", 3 } },
};

static struct lw_publication odd[] = {
    { .key = { NULL, 0 }, .value = { "null key", 8 } },
    { .key = { "", 0 }, .value = { "empty key", 9 } },
    { .key = { "k\0k", 3 }, .value = { NULL, 0 } },
    { .key = { "k", 1 }, .value = { "", 0 } },
    { .key = { "h", 1 }, .value = { "headers", 7 }, .headers = odd_headers, .header_count = 4 },
};

enum { ODD_COUNT = sizeof odd / sizeof *odd };

static void
check_bytes(struct lw_bytes a, struct lw_bytes b)
{
    assert_int_equal(a.data == NULL, b.data == NULL);
    assert_int_equal(a.size, b.size);
    assert_memory_equal(a.data ? a.data : "", b.data ? b.data : "", a.size);
}

static void
check_headers(struct driver *driver, const struct lw_message *message,
              const struct lw_publication *sent)
{
    size_t count = 0;
    const struct lw_header *headers = driver->broker->ops->headers(driver->broker, message,
                                                                   &count);
    assert_int_equal(count, sent->header_count);
    for (size_t i = 0; i < count; i++) {
        check_bytes(headers[i].name, sent->headers[i].name);
        check_bytes(headers[i].value, sent->headers[i].value);
    }
}

static void
check_times(struct driver *driver, const struct lw_message *message)
{
    struct lw_message_times times = { 0, 0 };
    driver->broker->ops->times(driver->broker, message, &times);
    assert_true(times.timestamp_ms > INT64_C(1500000000000));
    assert_int_equal(times.event_time_ms, -1);
}

static bool
check_odd(struct driver *driver, struct lw_source *source, struct lw_message *message,
          void *user)
{
    (void)source, (void)user;
    const struct lw_publication *sent = &odd[message->position];
    for (int is_copy = 0; is_copy < 2; is_copy++) {
        check_bytes(message->key, sent->key);
        check_bytes(message->value, sent->value);
        check_headers(driver, message, sent);
        check_times(driver, message);
        assert_true(driver->broker->ops->detach(driver->broker, message));
    }
    return false;
}

static void
keys_values_and_headers_are_kept_bit_for_bit_also_when_copied_out(void **state)
{
    (void)state;
    struct driver driver;
    char topic[64];
    cluster_name("odd", topic);
    cluster_create(topic, 1);
    driver_open(&driver, cluster_address(), NULL);
    driver_subscribe(&driver, topic, topic, quick);
    driver.on_message = check_odd;
    driver_start(&driver);
    for (size_t i = 0; i < ODD_COUNT; i++) {
        odd[i].topic = topic;
        odd[i].partition = 0;
        driver_publish(&driver, &odd[i]);
    }
    driver_run_received(&driver, ODD_COUNT, DRIVER_PATIENCE_MS);
    assert_int_equal(driver.receipts[LW_STATUS_OK], ODD_COUNT);
    driver_close(&driver);
}

static void
a_byte_limit_stops_a_receive_and_nothing_is_lost(void **state)
{
    (void)state;
    struct driver driver;
    char topic[64];
    cluster_name("bytes", topic);
    cluster_create(topic, 2);
    cluster_fill(topic, 5000, 100);
    driver_open(&driver, cluster_address(), NULL);
    driver.bytes_max = 40; /* three or four messages */
    driver_subscribe(&driver, topic, topic, quick);
    driver_start(&driver);
    driver_run_received(&driver, 5000, DRIVER_PATIENCE_MS);
    assert_int_equal(driver.jumps, 0);
    assert_true(driver.receives >= 1000);
    driver_close(&driver);
}

/* -- Tiers ------------------------------------------------------------------------------------------- */

struct copy {
    struct lw_publication publication;
    struct lw_header header;
    char due[24];
    int64_t due_ms;
};

struct tier_test {
    struct copy copies[2];
    struct lw_message bases[2];
    char retry[80];
    int seen;
};

static void
send_copy(struct driver *driver, struct tier_test *test, const struct lw_message *base,
          int64_t delay_ms)
{
    struct copy *copy = &test->copies[test->seen];
    copy->due_ms = driver->host->ops->wall_ms(driver->host) + delay_ms;
    (void)snprintf(copy->due, sizeof copy->due, "%lld", (long long)copy->due_ms);
    copy->header = (struct lw_header){ lw_bytes_of("x-laneway-not-before"),
                                       lw_bytes_of(copy->due) };
    copy->publication = (struct lw_publication){ .kind = LW_PUBLISH_RETRY,
                                                 .topic = test->retry,
                                                 .partition = -1,
                                                 .key = lw_bytes_of("any"),
                                                 .value = lw_bytes_of(delay_ms < 1000 ? "short"
                                                                                      : "long"),
                                                 .headers = &copy->header,
                                                 .header_count = 1,
                                                 .event_time_ms = -1,
                                                 .delay_ms = delay_ms,
                                                 .base = base };
    driver_publish(driver, &copy->publication);
}

/* The long delay is sent first; the short one must not wait behind it. */
static bool
on_tiered(struct driver *driver, struct lw_source *source, struct lw_message *message,
          void *user)
{
    struct tier_test *test = user;
    (void)source;
    int64_t now_ms = driver->host->ops->wall_ms(driver->host);
    if (driver->received <= 2) {
        test->bases[test->seen] = *message; /* lives until the receipt; released at the end */
        send_copy(driver, test, &test->bases[test->seen], test->seen == 0 ? 6000 : 400);
        test->seen++;
        return true;
    }
    const struct copy *due = driver->received == 3 ? &test->copies[1] : &test->copies[0];
    assert_true(now_ms >= due->due_ms);
    check_bytes(message->value, due->publication.value);
    return false;
}

static void
a_delayed_copy_waits_in_its_tier_and_never_behind_a_longer_one(void **state)
{
    (void)state;
    struct driver driver;
    static struct tier_test test;
    static const int64_t tiers[] = { 500, 6000 };
    char topic[64];
    char name[128];
    cluster_name("tiered", topic);
    (void)snprintf(test.retry, sizeof test.retry, "%s.retry", topic);
    cluster_create(topic, 4);
    (void)snprintf(name, sizeof name, "%s.500ms", test.retry);
    cluster_create(name, 4);
    (void)snprintf(name, sizeof name, "%s.6s", test.retry);
    cluster_create(name, 4);
    struct lw_source_options options = { .topic = topic,
                                         .subscription = topic,
                                         .retry_topic = test.retry,
                                         .tiers_ms = tiers,
                                         .tier_count = 2,
                                         .reads_tiers = true,
                                         .properties = quick,
                                         .property_count = 2 };
    driver_open(&driver, cluster_address(), NULL);
    driver_subscribe_with(&driver, &options);
    driver.batch_max = 1;
    driver.user = &test;
    driver_start(&driver);
    driver_run_assigned(&driver, 12, DRIVER_PATIENCE_MS);
    cluster_fill(topic, 2, 2);
    driver.on_message = on_tiered;
    driver_run_received(&driver, 4, DRIVER_PATIENCE_MS);
    struct lw_message *bases[] = { &test.bases[0], &test.bases[1] };
    driver.broker->ops->release(driver.broker, bases, 2);
    driver_close(&driver);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hundred_thousand_messages_come_once_and_in_order),
        cmocka_unit_test(a_member_goes_on_at_the_last_commit),
        cmocka_unit_test(topics_and_groups_of_one_broker_are_apart_and_commit_together),
        cmocka_unit_test(keys_values_and_headers_are_kept_bit_for_bit_also_when_copied_out),
        cmocka_unit_test(a_byte_limit_stops_a_receive_and_nothing_is_lost),
        cmocka_unit_test(a_delayed_copy_waits_in_its_tier_and_never_behind_a_longer_one),
    };
    (void)cluster_address();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
