/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults of a real cluster, met by the broker's table alone: a broker killed and restarted under
 * traffic, topics that do not exist yet, offsets that are gone, logs that begin anew, addresses
 * where nobody answers. Nothing is lost, nothing is wrong in order, and what a person reads says
 * what to do.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kafka/cluster.h"

static const struct lw_property steady[] = { { "session.timeout.ms", "120000" },
                                             { "heartbeat.interval.ms", "1000" },
                                             { NULL, NULL } };
static const struct lw_property without_reset[] = { { "auto.offset.reset", "none" },
                                                    { NULL, NULL } };

/* -- A broker killed ------------------------------------------------------------------------------ */

enum { KILL_COUNT = 6000 };

struct traffic {
    struct lw_publication items[KILL_COUNT];
    char values[KILL_COUNT][12];
    uint8_t seen[KILL_COUNT];
    uint64_t repeated;
};

static bool
note_seen(struct driver *driver, struct lw_source *source, struct lw_message *message,
          void *user)
{
    struct traffic *traffic = user;
    char text[16] = "";
    (void)driver, (void)source;
    memcpy(text, message->value.data, message->value.size);
    long number = strtol(text, NULL, 10);
    assert_in_range(number, 0, KILL_COUNT - 1);
    traffic->repeated += traffic->seen[number] > 0 ? 1 : 0;
    traffic->seen[number] = 1;
    return false;
}

static void
publish_range(struct driver *driver, struct traffic *traffic, const char *topic, int from,
              int to)
{
    for (int i = from; i < to; i++) {
        (void)snprintf(traffic->values[i], sizeof traffic->values[i], "%d", i);
        traffic->items[i] = (struct lw_publication){ .topic = topic,
                                                     .partition = i % 8,
                                                     .value = lw_bytes_of(traffic->values[i]),
                                                     .event_time_ms = -1 };
        driver_publish(driver, &traffic->items[i]);
    }
}

/* The coordinator is the last to come back; the dispatcher commits again too. */
static void
commit_at_last(struct driver *driver)
{
    int tries = 0;
    do {
        driver_commit(driver);
        driver_pass(driver, 200);
        tries++;
    } while (driver->commit_status != LW_STATUS_OK && tries < 200);
    assert_int_equal(driver->commit_status, LW_STATUS_OK);
}

static void
a_killed_broker_costs_neither_messages_nor_the_assignment(void **state)
{
    (void)state;
    struct driver driver;
    struct traffic *traffic = calloc(1, sizeof *traffic);
    char topic[64];
    cluster_name("killed", topic);
    cluster_create(topic, 8);
    driver_open(&driver, cluster_address(), NULL);
    driver_subscribe(&driver, topic, topic, steady);
    driver.on_message = note_seen;
    driver.user = traffic;
    driver_start(&driver);
    driver_run_assigned(&driver, 8, DRIVER_PATIENCE_MS);
    publish_range(&driver, traffic, topic, 0, 2000);
    driver_run_received(&driver, 1500, DRIVER_PATIENCE_MS);
    publish_range(&driver, traffic, topic, 2000, 3000);
    cluster_tool("kill");
    publish_range(&driver, traffic, topic, 3000, 5000);
    driver_run_downs(&driver, 1, DRIVER_PATIENCE_MS);
    assert_string_equal(driver.last_error.code, "E0501");
    cluster_tool("restart");
    publish_range(&driver, traffic, topic, 5000, KILL_COUNT);
    driver_run_receipts(&driver, KILL_COUNT, DRIVER_PATIENCE_MS);
    driver_run_received(&driver, KILL_COUNT, DRIVER_PATIENCE_MS);
    assert_int_equal(driver.receipts[LW_STATUS_OK], KILL_COUNT);
    assert_int_equal(driver.lost + driver.revoked, 0);
    assert_int_equal(driver.jumps, 0);
    assert_int_equal(traffic->repeated, 0);
    /* Messages may come before the word, and a broker that starts may go again. */
    while (driver.ups != driver.downs + 1) {
        driver_run_ups(&driver, driver.downs + 1, DRIVER_PATIENCE_MS);
    }
    commit_at_last(&driver);
    driver_close(&driver);
    free(traffic);
}

static void
a_close_with_the_broker_dead_ends_within_its_deadline(void **state)
{
    (void)state;
    struct driver driver;
    char topic[64];
    cluster_name("dead", topic);
    cluster_create(topic, 2);
    cluster_fill(topic, 10, 10);
    driver_open(&driver, cluster_address(), NULL);
    driver_subscribe(&driver, topic, topic, steady);
    driver_start(&driver);
    driver_run_received(&driver, 10, DRIVER_PATIENCE_MS);
    cluster_tool("kill");
    driver_run_downs(&driver, 1, DRIVER_PATIENCE_MS);
    uint64_t before = driver.host->now;
    struct lw_host *host = driver.host;
    driver.is_paused = true;
    driver.broker->ops->stop_sources(driver.broker);
    driver.broker->ops->close(driver.broker);
    while (!driver.is_closed) {
        lw_loop_turn_until(driver.loop, host->now + 100 * LW_MS);
        assert_in_range((host->now - before) / LW_MS, 0, 60000); /* its session has 120 s */
    }
    driver_close(&driver);
    cluster_tool("restart");
}

/* -- Topics and offsets --------------------------------------------------------------------------------- */

static bool
has_source_error(struct driver *driver, void *user)
{
    (void)user;
    return driver->source_errors > 0;
}

static void
a_topic_that_appears_later_is_consumed_from_then_on(void **state)
{
    (void)state;
    struct driver driver;
    char topic[64];
    cluster_name("later", topic);
    driver_open(&driver, cluster_address(), NULL);
    driver_subscribe(&driver, topic, topic, steady);
    driver_start(&driver);
    driver_run(&driver, has_source_error, NULL, DRIVER_PATIENCE_MS);
    assert_string_equal(driver.last_error.code, "E0503");
    assert_false(driver.last_error.is_fatal);
    cluster_create(topic, 2);
    cluster_fill(topic, 10, 10);
    driver_run_received(&driver, 10, DRIVER_PATIENCE_MS);
    driver_close(&driver);
}

static void
without_an_offset_and_without_a_reset_policy_the_source_fails_for_good(void **state)
{
    (void)state;
    struct driver driver;
    char topic[64];
    cluster_name("fresh", topic);
    cluster_create(topic, 1);
    cluster_fill(topic, 10, 10);
    driver_open(&driver, cluster_address(), NULL);
    driver_subscribe(&driver, topic, topic, without_reset);
    driver_start(&driver);
    driver_run(&driver, has_source_error, NULL, DRIVER_PATIENCE_MS);
    assert_string_equal(driver.last_error.code, "E0506");
    assert_true(driver.last_error.is_fatal);
    assert_int_equal(driver.received, 0);
    driver_close(&driver);
}

static void
consume_ten(const char *topic)
{
    struct driver driver;
    driver_open(&driver, cluster_address(), NULL);
    driver_subscribe(&driver, topic, topic, steady);
    driver_start(&driver);
    driver_run_received(&driver, 10, DRIVER_PATIENCE_MS);
    driver_close(&driver);
}

static void
an_offset_that_is_gone_follows_the_reset_policy(void **state)
{
    (void)state;
    struct driver driver;
    char topic[64];
    char arguments[160];
    cluster_name("trimmed", topic);
    cluster_create(topic, 1);
    cluster_fill(topic, 10, 10);
    consume_ten(topic);
    cluster_fill(topic, 30, 10);
    (void)snprintf(arguments, sizeof arguments, "admin trim %s 0 25", topic);
    cluster_tool(arguments);
    driver_open(&driver, cluster_address(), NULL);
    driver_subscribe(&driver, topic, topic, steady);
    driver_start(&driver);
    driver_run_received(&driver, 15, DRIVER_PATIENCE_MS);
    driver_pass(&driver, 300);
    assert_int_equal(driver.received, 15);
    driver_close(&driver);
}

static bool
has_begun_anew(struct driver *driver, void *user)
{
    (void)user;
    return driver->lost == 1 && driver->received == 30;
}

static void
a_log_that_begins_anew_below_what_was_received_is_a_new_ownership(void **state)
{
    (void)state;
    struct driver driver;
    char topic[64];
    char arguments[160];
    cluster_name("anew", topic);
    cluster_create(topic, 1);
    cluster_fill(topic, 20, 10);
    driver_open(&driver, cluster_address(), NULL);
    driver_subscribe(&driver, topic, topic, steady);
    driver_start(&driver);
    driver_run_received(&driver, 20, DRIVER_PATIENCE_MS);
    driver_commit(&driver);
    (void)snprintf(arguments, sizeof arguments, "admin delete %s", topic);
    cluster_tool(arguments);
    cluster_create(topic, 1);
    cluster_fill(topic, 10, 10);
    driver_run(&driver, has_begun_anew, NULL, DRIVER_PATIENCE_MS);
    driver_commit(&driver);
    assert_int_equal(driver_find(&driver, topic, 0)->committed, 10);
    driver_close(&driver);
}

static bool
has_position(struct driver *driver, void *user)
{
    (void)user;
    return driver->positions > 0;
}

static void
at_the_end_of_a_log_the_position_closes_what_is_no_message(void **state)
{
    (void)state;
    struct driver driver;
    char topic[64];
    char arguments[160];
    cluster_name("holes", topic);
    cluster_create(topic, 1);
    cluster_fill(topic, 10, 10);
    (void)snprintf(arguments, sizeof arguments, "admin trim %s 0 10", topic);
    cluster_tool(arguments);
    driver_open(&driver, cluster_address(), NULL);
    driver_subscribe(&driver, topic, topic, steady);
    driver_start(&driver);
    driver_run_assigned(&driver, 1, DRIVER_PATIENCE_MS);
    driver_run(&driver, has_position, NULL, DRIVER_PATIENCE_MS);
    assert_int_equal(driver.received, 0);
    assert_int_equal(driver.last_position, 10);
    driver_close(&driver);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_broker_costs_neither_messages_nor_the_assignment),
        cmocka_unit_test(a_close_with_the_broker_dead_ends_within_its_deadline),
        cmocka_unit_test(a_topic_that_appears_later_is_consumed_from_then_on),
        cmocka_unit_test(
            without_an_offset_and_without_a_reset_policy_the_source_fails_for_good),
        cmocka_unit_test(an_offset_that_is_gone_follows_the_reset_policy),
        cmocka_unit_test(a_log_that_begins_anew_below_what_was_received_is_a_new_ownership),
        cmocka_unit_test(at_the_end_of_a_log_the_position_closes_what_is_no_message),
    };
    (void)cluster_address();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
