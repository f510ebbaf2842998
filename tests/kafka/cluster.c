/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The helpers of cluster.h. Topics are made and filled by the broker's own table, so that these
 * paths are tried by every test; what the table cannot do (limits of topics, deleting, killing)
 * is left to tools/broker.
 */
#include "tests/support/test.h"

#include "tests/kafka/cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "brokers/kafka/broker.h"

const char *
cluster_address(void)
{
    const char *address = getenv("KAFKA_BOOTSTRAP");
    if (!address) {
        exit(77);
    }
    return address;
}

void
cluster_name(const char *base, char *out)
{
    static int count;
    (void)snprintf(out, 64, "%s-%d-%d", base, (int)getpid(), count++);
}

void
cluster_create(const char *topic, int32_t partitions)
{
    struct driver driver;
    struct lw_error error = { .message = "" };
    struct lw_topic_info info = { .name = topic, .partitions = partitions, .retention_ms = -1 };
    driver_open(&driver, cluster_address(), NULL);
    enum lw_status status = driver.broker->ops->create_topics(driver.broker, &info, 1, 30000,
                                                              &error);
    assert_string_equal(error.message, "");
    assert_string_equal(info.reason, "");
    assert_int_equal(status, LW_STATUS_OK);
    driver_close(&driver);
}

void
cluster_tool(const char *arguments)
{
    char command[512];
    (void)snprintf(command, sizeof command, "%s/tools/broker kafka %s >/dev/null",
                   LW_SOURCE_DIR, arguments);
    assert_int_equal(system(command), 0);
}

struct filled {
    struct lw_publication publication;
    char key[24];
    char value[24];
};

static void
prepare(struct filled *item, const char *topic, uint32_t number, uint32_t keys)
{
    (void)snprintf(item->key, sizeof item->key, "key-%u", (unsigned)(number % keys));
    (void)snprintf(item->value, sizeof item->value, "%u", (unsigned)number);
    item->publication = (struct lw_publication){ .topic = topic,
                                                 .partition = -1,
                                                 .key = lw_bytes_of(item->key),
                                                 .value = lw_bytes_of(item->value),
                                                 .event_time_ms = -1 };
}

void
cluster_fill(const char *topic, uint32_t count, uint32_t keys)
{
    struct driver driver;
    struct filled *items = calloc(count, sizeof *items);
    driver_open(&driver, cluster_address(), NULL);
    driver_start(&driver);
    for (uint32_t i = 0; i < count; i++) {
        struct lw_publication *one = &items[i].publication;
        prepare(&items[i], topic, i, keys);
        while (driver.broker->ops->publish(driver.broker, &one, 1) == 0) {
            driver_run_receipts(&driver, driver.receipt_count + 1, DRIVER_PATIENCE_MS);
        }
    }
    driver_run_receipts(&driver, count, DRIVER_PATIENCE_MS);
    assert_int_equal(driver.receipts[LW_STATUS_OK], count);
    driver_close(&driver);
    free(items);
}

void
cluster_run_two(struct driver *a, struct driver *b,
                bool (*is_done)(struct driver *a, struct driver *b), int64_t timeout_ms)
{
    uint64_t now = a->host->ops->refresh(a->host);
    uint64_t deadline = now + (uint64_t)timeout_ms * LW_MS;
    while (!is_done(a, b)) {
        if (now >= deadline) {
            fail_msg("not within %lld ms: owned %zu and %zu, received %llu and %llu",
                     (long long)timeout_ms, driver_owned(a), driver_owned(b),
                     (unsigned long long)a->received, (unsigned long long)b->received);
        }
        lw_loop_turn_until(a->loop, a->host->ops->refresh(a->host) + LW_MS);
        lw_loop_turn_until(b->loop, b->host->ops->refresh(b->host) + LW_MS);
        now = a->host->now;
    }
}
