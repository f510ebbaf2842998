/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The conformance suite on the embedded broker, with each type of subscription, and once more with
 * bytes that trickle. Topics are made by the broker itself, which has no admin API; a topic that
 * nobody made is missing.
 */
#include "tests/support/test.h"

#include <poll.h>
#include <string.h>

#include "brokers/pulsar/broker.h"
#include "tests/brokers/conformance.h"
#include "tests/support/pulsar/embedded.h"
#include "tests/support/virtual_host.h"

struct environment {
    struct virtual_host virtual_host;
    struct embedded *broker;
    uint64_t up_at; /* connections are taken again */
};

static void
rise(struct environment *environment)
{
    if (environment->up_at && environment->virtual_host.host.now >= environment->up_at) {
        environment->up_at = 0;
        embedded_set_listening(environment->broker, 0, true);
    }
}

/* What one side sends in a turn the other hears in the next. */
static void
pump(void *user, uint64_t ms)
{
    struct environment *environment = user;
    for (int i = 0; i < 4; i++) {
        virtual_host_settle(&environment->virtual_host);
    }
    (void)poll(NULL, 0, 1);
    virtual_host_pass(&environment->virtual_host, ms * LW_MS);
    rise(environment);
}

static void
create_topic(void *user, const char *name, int32_t partitions)
{
    struct environment *environment = user;
    embedded_set_partitions(environment->broker, name, (uint32_t)partitions);
}

static void
set_down(void *user, uint64_t ms)
{
    struct environment *environment = user;
    embedded_set_listening(environment->broker, 0, false);
    embedded_drop_all(environment->broker);
    environment->up_at = environment->virtual_host.host.now + ms * LW_MS;
}

static int
run(const char *name, const char *type, size_t write_bytes_max)
{
    const struct lw_property properties[] = { { "consumer_type", type },
                                              { "ack_receipt_enabled", "true" } };
    struct environment environment = { .up_at = 0 };
    struct embedded_settings settings;
    embedded_settings_init(&settings);
    settings.creates_topics = false;
    settings.write_bytes_max = write_bytes_max;
    virtual_host_init(&environment.virtual_host, 1);
    environment.broker = embedded_create(&environment.virtual_host.host, &settings);
    const struct conformance conformance = {
        .name = name,
        .ops = lw_pulsar_broker_ops(),
        .url = embedded_url(environment.broker, 0),
        .prefix = "c",
        .host = &environment.virtual_host.host,
        .user = &environment,
        .properties = properties,
        .property_count = 2,
        .pump = pump,
        .create_topic = create_topic,
        .set_down = set_down,
        .patience_ms = 10000,
        .has_strict_topics = true,
        .divides_partitions = strcmp(type, "failover") == 0,
        .has_no_admin = true,
    };
    int failed = conformance_run(&conformance);
    const struct embedded_counts *counts = embedded_counts(environment.broker);
    if (counts->violations > 0 || counts->protocol_errors > 0) {
        print_error("%s: %s %s\n", name, counts->first_violation, counts->last_error);
        failed++;
    }
    embedded_destroy(environment.broker);
    virtual_host_settle(&environment.virtual_host);
    return failed;
}

int
main(void)
{
    int failed = run("Pulsar, shared", "shared", 0);
    failed += run("Pulsar, exclusive", "exclusive", 0);
    failed += run("Pulsar, failover", "failover", 0);
    failed += run("Pulsar, by key", "key_shared", 0);
    failed += run("Pulsar, shared, slow", "shared", 7);
    return failed;
}
