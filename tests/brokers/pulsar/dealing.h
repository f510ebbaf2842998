/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of the Pulsar broker under test on the embedded broker, both on one host with a moved
 * clock; the test is the dispatcher. Waiting jumps from one deadline to the next while nothing
 * moves, so that an hour costs nothing. What was logged can be looked at.
 */
#ifndef TESTS_BROKERS_PULSAR_DEALING_H
#define TESTS_BROKERS_PULSAR_DEALING_H

#include "tests/brokers/client.h"
#include "tests/support/pulsar/embedded.h"
#include "tests/support/virtual_host.h"

enum { DEALING_PROPERTIES_MAX = 8 };

struct dealing {
    struct virtual_host virtual_host;
    struct embedded_settings
        settings; /* of the embedded broker: changed before dealing_serve */
    struct embedded *broker;
    struct lw_property properties[DEALING_PROPERTIES_MAX]; /* of the broker under test */
    size_t property_count;
    struct client *client;
    uint64_t live;       /* allocations before the test */
    char log[64 * 1024]; /* "event text fields" a line */
};

void dealing_init(struct dealing *dealing);
void dealing_serve(struct dealing *dealing);
void dealing_property(struct dealing *dealing, const char *name, const char *value);
/* A client of member 0, not started. */
void dealing_open(struct dealing *dealing);
/* Options of a Shared subscription at the earliest position; `out` is the source's options. */
struct lw_source_options dealing_options(const char *topic);
/* Turns, and lets time pass where nothing moves, until `is_true`; fails after `limit_ms`. */
typedef bool (*dealing_fn)(struct dealing *dealing, void *user);
void dealing_until(struct dealing *dealing, dealing_fn is_true, void *user, int64_t limit_ms);
/* The same without failing; false when it did not come. */
bool dealing_await(struct dealing *dealing, dealing_fn is_true, void *user, int64_t limit_ms);
void dealing_pass_ms(struct dealing *dealing, int64_t ms);
/* That many slots are live. */
void dealing_until_live(struct dealing *dealing, size_t slots);
size_t dealing_live(const struct dealing *dealing);
/* Receives what there is, and asks for as many again. */
size_t dealing_receive(struct dealing *dealing);
void dealing_until_messages(struct dealing *dealing, size_t count);
/* Ends the client as a dispatcher does. */
void dealing_close(struct dealing *dealing);
/* Ends the broker; nothing may be left. */
void dealing_deinit(struct dealing *dealing);
/* How often the event was logged. */
size_t dealing_logged(const struct dealing *dealing, const char *event);

#endif
