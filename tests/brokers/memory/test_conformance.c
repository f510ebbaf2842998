/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The conformance suite on the broker in memory: by position with both protocols, individually
 * in four ways, with and without latencies. A closed world each time, so that a missing
 * topic is missing.
 */
#include "tests/support/test.h"

#include "brokers/memory/broker.h"
#include "brokers/memory/hub.h"
#include "tests/brokers/conformance.h"
#include "tests/support/virtual_host.h"

struct environment {
    struct virtual_host virtual_host;
    struct lw_memory_hub *hub;
};

static void
pump(void *user, uint64_t ms)
{
    struct environment *environment = user;
    virtual_host_pass(&environment->virtual_host, ms * LW_MS);
}

static void
set_down(void *user, uint64_t ms)
{
    struct environment *environment = user;
    lw_memory_hub_set_down(environment->hub, ms * LW_MS);
}

static int
run(const char *name, const struct lw_memory_options *options)
{
    struct environment environment;
    virtual_host_init(&environment.virtual_host, 1);
    environment.hub = lw_memory_hub_open("conformance", options);
    struct conformance conformance = {
        .name = name,
        .ops = lw_memory_broker_ops(),
        .url = "memory:conformance",
        .prefix = "c",
        .host = &environment.virtual_host.host,
        .user = &environment,
        .pump = pump,
        .set_down = set_down,
        .patience_ms = 5000,
        .has_strict_topics = true,
        .divides_partitions = options->mode == LW_MEMORY_POSITION,
    };
    int failed = conformance_run(&conformance);
    lw_memory_hub_close(environment.hub);
    return failed;
}

int
main(void)
{
    struct lw_memory_options options;
    lw_memory_options_init(&options);
    options.is_closed_world = true;
    int failed = run("eager", &options);
    options.connect_latency_ns = options.commit_latency_ns = 3 * LW_MS;
    options.publish_latency_ns = options.fetch_latency_ns = 2 * LW_MS;
    options.join_delay_ns = 50 * LW_MS;
    options.protocol = LW_MEMORY_COOPERATIVE;
    failed += run("cooperative, slow", &options);
    options.mode = LW_MEMORY_INDIVIDUAL;
    failed += run("shared, slow", &options);
    options.sharing = LW_MEMORY_EXCLUSIVE;
    failed += run("exclusive, slow", &options);
    options.sharing = LW_MEMORY_FAILOVER;
    failed += run("failover, slow", &options);
    options.sharing = LW_MEMORY_KEY_SHARED;
    options.unacked_max = 50;
    failed += run("by key, slow", &options);
    return failed;
}
