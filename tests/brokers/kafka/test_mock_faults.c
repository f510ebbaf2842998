/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults that only a mock cluster gives on demand: refused commits, a coordinator that moves,
 * refused batches, brokers that are away. One group for all, since a first join takes 3 s there.
 */
#include "tests/support/test.h"

#include <string.h>

#include "tests/support/kafka_driver.h"

/* Request types and error codes of the protocol. */
#define PRODUCE "0"
#define OFFSET_COMMIT "8"
#define TOO_LARGE "10"
#define NOT_COORDINATOR "16"
#define TOPIC_DENIED "29"
#define METADATA_TOO_LARGE "12"

static const struct lw_property quick[] = { { "session.timeout.ms", "60000" }, { NULL, NULL } };
static struct mock mock;
static struct driver driver;

static int
setup(void **state)
{
    (void)state;
    mock_open(&mock, "orders:4,replies:1");
    mock_command(&mock, "fill orders 1000 100 50");
    driver_open(&driver, mock.address, NULL);
    driver_subscribe(&driver, "orders", "faults", quick);
    driver_start(&driver);
    driver_run_received(&driver, 1000, DRIVER_PATIENCE_MS);
    return 0;
}

static int
teardown(void **state)
{
    (void)state;
    driver_close(&driver);
    mock_close(&mock);
    return 0;
}

static void
a_commit_waits_for_a_coordinator_that_moves(void **state)
{
    (void)state;
    mock_command(&mock, "error " OFFSET_COMMIT " " NOT_COORDINATOR " 3");
    driver_commit(&driver);
    assert_int_equal(driver.commit_status, LW_STATUS_OK);
}

static void
a_list_with_one_bad_item_goes_again_item_by_item(void **state)
{
    (void)state;
    mock_command(&mock, "error " OFFSET_COMMIT " " METADATA_TOO_LARGE " 1");
    driver_commit(&driver);
    assert_int_equal(driver.commit_status, LW_STATUS_OK);
}

static void
a_commit_that_is_refused_says_why(void **state)
{
    (void)state;
    mock_command(&mock, "error " OFFSET_COMMIT " " TOPIC_DENIED " 9");
    driver_commit(&driver);
    assert_int_equal(driver.commit_status, LW_STATUS_DENIED);
    mock_command(&mock, "clear " OFFSET_COMMIT);
    driver_commit(&driver);
    assert_int_equal(driver.commit_status, LW_STATUS_OK);
}

static void
only_one_commit_is_in_flight(void **state)
{
    (void)state;
    assert_int_equal(driver_commit_begin(&driver), LW_STATUS_OK);
    assert_int_equal(driver_commit_begin(&driver), LW_STATUS_AGAIN);
    uint64_t before = driver.commits;
    while (driver.is_committing) {
        lw_loop_turn_until(driver.loop, driver.host->now + 1000 * LW_MS);
    }
    assert_int_equal(driver.commits, before + 1);
}

static void
a_commit_of_nothing_ends_too(void **state)
{
    (void)state;
    assert_int_equal(driver.broker->ops->commit(driver.broker, NULL, 0), LW_STATUS_OK);
    driver.is_committing = true;
    while (driver.is_committing) {
        lw_loop_turn_until(driver.loop, driver.host->now + 1000 * LW_MS);
    }
    assert_int_equal(driver.commit_status, LW_STATUS_OK);
}

static void
publish_fifty(void)
{
    static struct lw_publication items[50];
    struct lw_publication *pointers[50];
    for (size_t i = 0; i < 50; i++) {
        items[i] = (struct lw_publication){ .topic = "replies",
                                            .partition = 0,
                                            .value = lw_bytes_of("hello"),
                                            .event_time_ms = -1 };
        pointers[i] = &items[i];
    }
    uint64_t before = driver.receipt_count;
    assert_int_equal(driver.broker->ops->publish(driver.broker, pointers, 50), 50);
    driver_run_receipts(&driver, before + 50, DRIVER_PATIENCE_MS);
}

static void
a_refused_batch_goes_again_in_smaller_ones(void **state)
{
    (void)state;
    mock_command(&mock, "error " PRODUCE " " TOO_LARGE " 2");
    publish_fifty();
    assert_int_equal(driver.receipts[LW_STATUS_OK], 50);
    assert_int_equal(driver.receipts[LW_STATUS_TOO_LARGE], 0);
}

static void
a_cluster_that_is_away_is_said_once_and_its_return_too(void **state)
{
    (void)state;
    uint64_t ups = driver.ups + 1;
    mock_command(&mock, "down -1");
    driver_run_downs(&driver, 1, DRIVER_PATIENCE_MS);
    assert_string_equal(driver.last_error.code, "E0501");
    assert_int_equal(driver_commit_begin(&driver), LW_STATUS_OK);
    lw_loop_turn_until(driver.loop, 0);
    assert_false(driver.is_committing); /* refused at once, or a close would hang in it */
    assert_int_equal(driver.commit_status, LW_STATUS_UNAVAILABLE);
    driver_pass(&driver, 1000); /* the client goes on complaining */
    assert_int_equal(driver.downs, 1);
    mock_command(&mock, "up -1");
    driver_run_ups(&driver, ups, DRIVER_PATIENCE_MS);
    mock_command(&mock, "fill orders 100 100 50");
    driver_run_received(&driver, 1100, DRIVER_PATIENCE_MS);
    assert_int_equal(driver.ups, ups);
    assert_int_equal(driver.jumps, 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_commit_waits_for_a_coordinator_that_moves),
        cmocka_unit_test(a_list_with_one_bad_item_goes_again_item_by_item),
        cmocka_unit_test(a_commit_that_is_refused_says_why),
        cmocka_unit_test(only_one_commit_is_in_flight),
        cmocka_unit_test(a_commit_of_nothing_ends_too),
        cmocka_unit_test(a_refused_batch_goes_again_in_smaller_ones),
        cmocka_unit_test(a_cluster_that_is_away_is_said_once_and_its_return_too),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
