/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker conformance suite on a spool, with the durability of the default and with the lesser
 * one: they differ in what a power cut takes, so both must pass alike. A topic comes into being by
 * its first use, and one process reads all partitions.
 */
#include "tests/support/test.h"

#include "brokers/spool/broker.h"
#include "tests/brokers/conformance.h"
#include "tests/brokers/spool/fixture.h"

static void
pump(void *user, uint64_t ms)
{
    spool_pump(user, ms);
}

static int
run(struct spool *spool, const char *name, const char *synchronous)
{
    const struct lw_property properties[] = { { "synchronous", synchronous } };
    const struct conformance conformance = {
        .name = name,
        .ops = lw_spool_broker_ops(),
        .url = spool->url,
        .prefix = name,
        .host = spool->host,
        .user = spool,
        .broker_properties = properties,
        .broker_property_count = 1,
        .pump = pump,
        .patience_ms = SPOOL_PATIENCE_MS,
    };
    return conformance_run(&conformance);
}

int
main(void)
{
    struct spool spool;
    spool_make(&spool);
    int failed = run(&spool, "spool", "full");
    failed += run(&spool, "spool-normal", "normal");
    spool_remove(&spool);
    return failed;
}
