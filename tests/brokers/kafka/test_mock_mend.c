/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is mended without being asked: a partition that stopped though it has messages, and
 * companions' offsets that the cluster would forget. The periods are a minute and a day; the tests
 * shorten them, the second in the broker's own structure.
 */
#include "tests/support/test.h"

#include <string.h>

#include "brokers/kafka/kafka.h"
#include "tests/support/kafka_driver.h"

static const struct lw_property quick[] = { { "session.timeout.ms", "4000" },
                                            { "max.poll.interval.ms", "5000" },
                                            { NULL, NULL } };
static struct mock mock;

static int
setup(void **state)
{
    (void)state;
    mock_open(&mock, "sleepy:1,led:2,led.retry.1s:2");
    mock_command(&mock, "fill sleepy 10 100 5");
    mock_command(&mock, "fill led.retry.1s 10 100 5");
    return 0;
}

static int
teardown(void **state)
{
    (void)state;
    mock_close(&mock);
    return 0;
}

static struct lw_kafka_broker *
inside(struct driver *driver)
{
    return lw_kafka_broker_of(driver->broker);
}

/* Takes what the client fetched away from under the broker, as a client's fault would. */
static size_t
steal(struct driver *driver)
{
    struct lw_kafka_source *source = lw_kafka_source_of(driver->sources[0]);
    rd_kafka_message_t *stolen[100];
    ssize_t count = 0;
    for (int tries = 0; count == 0 && tries < 200; tries++) {
        count = rd_kafka_consume_batch_queue(source->slots[0]->queue, 500, stolen, 100);
    }
    for (ssize_t i = 0; i < count; i++) {
        rd_kafka_message_destroy(stolen[i]);
    }
    return count > 0 ? (size_t)count : 0;
}

static void
a_partition_that_stopped_is_fetched_again_and_nothing_is_lost(void **state)
{
    (void)state;
    struct driver driver;
    const struct lw_source_options options = { .topic = "sleepy",
                                               .subscription = "sleepy",
                                               .stall_timeout_ms = 500,
                                               .properties = quick,
                                               .property_count = 2 };
    driver_open(&driver, mock.address, NULL);
    driver_subscribe_with(&driver, &options);
    driver_start(&driver);
    driver_run_received(&driver, 10, DRIVER_PATIENCE_MS);
    mock_command(&mock, "fill sleepy 10 100 5");
    assert_true(steal(&driver) > 0);
    driver_run_received(&driver, 20, DRIVER_PATIENCE_MS);
    assert_int_equal(driver.received, 20);
    assert_int_equal(driver.jumps, 0);
    assert_string_equal(driver.last_warning, "kafka.stalled");
    driver_close(&driver);
}

static bool
is_refreshing(struct driver *driver, void *user)
{
    struct lw_kafka_source *source = lw_kafka_source_of(driver->sources[0]);
    (void)user;
    return source->client->is_refreshing;
}

static bool
is_refreshed(struct driver *driver, void *user)
{
    return !is_refreshing(driver, user);
}

static void
companions_offsets_are_committed_again_without_disturbing_commits(void **state)
{
    (void)state;
    struct driver driver;
    static const int64_t tiers[] = { 1000 };
    const struct lw_source_options options = { .topic = "led",
                                               .subscription = "led",
                                               .retry_topic = "led.retry",
                                               .tiers_ms = tiers,
                                               .tier_count = 1,
                                               .reads_tiers = true,
                                               .properties = quick,
                                               .property_count = 2 };
    driver_open(&driver, mock.address, NULL);
    driver_subscribe_with(&driver, &options);
    inside(&driver)->companion_refresh_ns = 300 * LW_MS;
    driver_start(&driver);
    driver_run_received(&driver, 10, DRIVER_PATIENCE_MS);
    driver_commit(&driver);
    for (int round = 0; round < 3; round++) {
        driver_run(&driver, is_refreshing, NULL, DRIVER_PATIENCE_MS);
        driver_commit(&driver); /* waits its turn: one request at a time */
        driver_run(&driver, is_refreshed, NULL, DRIVER_PATIENCE_MS);
        assert_int_equal(driver.commit_status, LW_STATUS_OK);
    }
    driver_close(&driver);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_partition_that_stopped_is_fetched_again_and_nothing_is_lost),
        cmocka_unit_test(companions_offsets_are_committed_again_without_disturbing_commits),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
