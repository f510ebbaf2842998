/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole way through librdkafka's mock cluster: a group is joined, messages are received and
 * committed, publications have receipts, and everything ends without anything held. One cluster
 * and one group for all steps, since joining takes 3 s there.
 */
#include "tests/support/test.h"

#include <string.h>

#include "tests/support/kafka_driver.h"

static struct mock mock;

/* The mock's rebalances after the first take the session time less a second. */
static const struct lw_property quick[] = { { "session.timeout.ms", "4000" }, { NULL, NULL } };

static int
setup(void **state)
{
    (void)state;
    mock_open(&mock, "orders:4,replies:2");
    mock_command(&mock, "fill orders 10000 100 50");
    return 0;
}

static int
teardown(void **state)
{
    (void)state;
    mock_close(&mock);
    return 0;
}

/* What waits at the cluster, by what the client knows. */
static uint64_t
lag_of(const struct driver *driver)
{
    struct lw_lag lag;
    assert_true(driver->broker->ops->lag(driver->sources[0], &lag));
    assert_int_equal(lag.companions, 0);
    return lag.messages;
}

static void
a_group_receives_every_message_once_and_in_order(void **state)
{
    (void)state;
    struct driver driver;
    driver_open(&driver, mock.address, NULL);
    driver_subscribe(&driver, "orders", "whole", quick);
    driver_start(&driver);
    driver_run_assigned(&driver, 4, DRIVER_PATIENCE_MS);
    driver_run_received(&driver, 9000, DRIVER_PATIENCE_MS); /* all partitions gave some */
    assert_int_equal(lag_of(&driver), 10000 - driver.received);
    driver_run_received(&driver, 10000, DRIVER_PATIENCE_MS);
    driver_run_ups(&driver, 1, DRIVER_PATIENCE_MS);
    driver_pass(&driver, 200);
    assert_int_equal(driver.received, 10000);
    assert_int_equal(lag_of(&driver), 0);
    assert_int_equal(driver.jumps, 0);
    assert_int_equal(driver.ups, 1);
    driver_commit(&driver);
    assert_int_equal(driver.commit_status, LW_STATUS_OK);
    driver_close(&driver);
}

static void
the_next_member_goes_on_where_the_group_stopped(void **state)
{
    (void)state;
    struct driver driver;
    mock_command(&mock, "fill orders 100 100 50");
    driver_open(&driver, mock.address, NULL);
    driver_subscribe(&driver, "orders", "whole", quick);
    driver_start(&driver);
    driver_run_received(&driver, 100, DRIVER_PATIENCE_MS);
    driver_pass(&driver, 200);
    assert_int_equal(driver.received, 100);
    driver_close(&driver);
}

static void
publications_have_one_receipt_each(void **state)
{
    (void)state;
    struct driver driver;
    struct lw_publication items[200];
    struct lw_publication *pointers[200];
    for (size_t i = 0; i < 200; i++) {
        items[i] = (struct lw_publication){ .topic = "replies",
                                            .partition = -1,
                                            .key = lw_bytes_of("k"),
                                            .value = lw_bytes_of("hello"),
                                            .event_time_ms = -1 };
        pointers[i] = &items[i];
    }
    driver_open(&driver, mock.address, NULL);
    driver_start(&driver);
    assert_int_equal(driver.broker->ops->publish(driver.broker, pointers, 200), 200);
    driver_run_receipts(&driver, 200, DRIVER_PATIENCE_MS);
    assert_int_equal(driver.receipts[LW_STATUS_OK], 200);
    driver_close(&driver);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_group_receives_every_message_once_and_in_order),
        cmocka_unit_test(the_next_member_goes_on_where_the_group_stopped),
        cmocka_unit_test(publications_have_one_receipt_each),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
