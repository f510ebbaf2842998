/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every broker must do, driven through plugin.h only: the same suite runs on the broker in
 * memory (moved clock) and on real ones (real loop). A test program gives an environment and
 * returns conformance_run().
 */
#ifndef TESTS_BROKERS_CONFORMANCE_H
#define TESTS_BROKERS_CONFORMANCE_H

#include <laneway/plugin.h>

struct conformance {
    const char *name; /* of the group of tests */
    const struct lw_broker_ops *ops;
    const char *url;
    const char *prefix; /* of all topics and groups of this run: makes them new */
    struct lw_host *host;
    void *user;
    const struct lw_property *properties; /* of every source */
    size_t property_count;
    const struct lw_property *broker_properties;
    size_t broker_property_count;
    /* Turns the host until nothing is due, for up to that long. */
    void (*pump)(void *user, uint64_t ms);
    /* Optional: makes a topic where the broker's own create_topics cannot. */
    void (*create_topic)(void *user, const char *name, int32_t partitions);
    /* Optional: cuts all connections for that long. */
    void (*set_down)(void *user, uint64_t ms);
    uint64_t patience_ms;    /* how long anything may take */
    bool has_strict_topics;  /* a topic that does not exist is not made by naming it */
    bool divides_partitions; /* a second member of a group is given some of them */
    bool has_no_admin;       /* topics cannot be described: needs sockets of its own */
};

int conformance_run(const struct conformance *environment);

#endif
