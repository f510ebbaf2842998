/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The conformance suite on a real Pulsar, with each type of subscription. Topics are made through
 * the admin API; a topic that is only named is made by the broker, as its default has it.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/loop.h"
#include "brokers/pulsar/broker.h"
#include "tests/brokers/conformance.h"

static const char *
variable(const char *name)
{
    const char *value = getenv(name);
    if (!value) {
        print_error("%s is not set\n", name);
        exit(77);
    }
    return value;
}

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
run(const char *name, const char *type, struct lw_loop *loop)
{
    char prefix[64];
    const struct lw_property properties[] = { { "consumer_type", type } };
    const struct lw_property broker_properties[] = { { "admin_url",
                                                       variable("PULSAR_ADMIN_URL") } };
    (void)snprintf(prefix, sizeof prefix, "conformance-%s-%d", type, (int)getpid());
    const struct conformance conformance = {
        .name = name,
        .ops = lw_pulsar_broker_ops(),
        .url = variable("PULSAR_URL"),
        .prefix = prefix,
        .host = lw_loop_host(loop),
        .user = loop,
        .properties = properties,
        .property_count = 1,
        .broker_properties = broker_properties,
        .broker_property_count = 1,
        .pump = pump,
        .patience_ms = 60000,
        .divides_partitions = strcmp(type, "failover") == 0,
    };
    return conformance_run(&conformance);
}

int
main(void)
{
    struct lw_loop *loop = NULL;
    if (lw_loop_create(1, &loop) != LW_STATUS_OK) {
        return 1;
    }
    int failed = run("Pulsar, shared", "shared", loop);
    failed += run("Pulsar, exclusive", "exclusive", loop);
    failed += run("Pulsar, failover", "failover", loop);
    failed += run("Pulsar, by key", "key_shared", loop);
    lw_loop_destroy(loop);
    return failed;
}
