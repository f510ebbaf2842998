/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The conformance suite on a real cluster, with both rebalance protocols. Members leave in order,
 * so the session is as long as a busy machine may need.
 */
#include "tests/support/test.h"

#include <stdio.h>

#include "brokers/kafka/broker.h"
#include "tests/brokers/conformance.h"
#include "tests/kafka/cluster.h"

static const struct lw_property cooperative[] = {
    { "session.timeout.ms", "30000" },
    { "partition.assignment.strategy", "cooperative-sticky" },
};

static void
pump(void *user, uint64_t ms)
{
    struct lw_loop *loop = user;
    struct lw_host *host = lw_loop_host(loop);
    uint64_t deadline = host->ops->refresh(host) + ms * LW_MS;
    while (host->now < deadline) {
        lw_loop_turn_until(loop, deadline);
    }
}

static int
run(const char *name, struct lw_loop *loop, size_t property_count)
{
    char url[256];
    char prefix[64];
    (void)snprintf(url, sizeof url, "kafka://%s", cluster_address());
    cluster_name("conformance", prefix);
    const struct conformance conformance = {
        .name = name,
        .ops = lw_kafka_broker_ops(),
        .url = url,
        .prefix = prefix,
        .host = lw_loop_host(loop),
        .user = loop,
        .properties = cooperative,
        .property_count = property_count,
        .pump = pump,
        .patience_ms = DRIVER_PATIENCE_MS,
        .has_strict_topics = true,
        .divides_partitions = true,
    };
    return conformance_run(&conformance);
}

int
main(void)
{
    struct lw_loop *loop = NULL;
    (void)cluster_address();
    if (lw_loop_create(1, &loop) != LW_STATUS_OK) {
        return 1;
    }
    int failed = run("Kafka, eager", loop, 1);
    failed += run("Kafka, cooperative", loop, 2);
    lw_loop_destroy(loop);
    return failed;
}
