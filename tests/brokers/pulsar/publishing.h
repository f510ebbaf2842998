/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A publisher under test on the embedded broker, both on one host with a moved clock. The test is
 * its dispatcher: it publishes, and notes every receipt in the order in which they come.
 */
#ifndef TESTS_BROKERS_PULSAR_PUBLISHING_H
#define TESTS_BROKERS_PULSAR_PUBLISHING_H

#include "brokers/pulsar/producer.h"
#include "tests/brokers/pulsar/peer.h"
#include "tests/support/pulsar/embedded.h"

#define PUBLISHING_TOPIC "persistent://public/default/t"

enum { PUBLISHING_MAX = 4096 };

struct publishing {
    struct world world;
    struct embedded *broker;
    struct embedded_settings broker_settings;
    struct lw_pulsar_producer_settings settings;
    struct lw_pulsar_publisher *publisher;
    struct lw_publication items[PUBLISHING_MAX];
    enum lw_status statuses[PUBLISHING_MAX];
    uint32_t told[PUBLISHING_MAX]; /* receipts of each: at most one */
    uint32_t order[PUBLISHING_MAX];
    uint32_t count; /* published */
    uint32_t receipts;
    uint32_t rooms;
    uint32_t blocked;
    uint32_t unblocked;
    uint32_t closed;
    bool is_publishing; /* nothing may be told meanwhile */
    char blocked_topic[256];
    struct lw_error blocked_error;
    uint64_t live; /* allocations before the test */
};

/* Settings of broker and publisher may be changed between the two. */
struct publishing *publishing_create(void);
void publishing_start(struct publishing *publishing);
/* Closes, waits, looks that nothing is left anywhere, and destroys. */
void publishing_destroy(struct publishing *publishing);

/* A publication without key and headers to be changed before it is published. */
struct lw_publication *
publishing_item(struct publishing *publishing, const char *topic, const char *value);
/* Publishes those made since the last call; all must be accepted. */
void publishing_go(struct publishing *publishing);
/* That many messages "0", "1", ... to a topic. */
void publishing_send(struct publishing *publishing, const char *topic, uint32_t count);
/* Turns and looks at sockets until that many receipts came in all; fails the test otherwise. */
void publishing_until(struct publishing *publishing, uint32_t receipts);
/* Turns until nothing moves any more. */
void publishing_rest(struct publishing *publishing);
void publishing_pass_ms(struct publishing *publishing, int64_t ms);
/* Every message published has this status. */
void publishing_expect_all(const struct publishing *publishing, enum lw_status status);
/* The topic's messages are "0" ... "count - 1" in order, whatever their batches. */
void publishing_expect_stored(struct publishing *publishing, const char *topic, uint32_t count);
struct lw_pulsar_publisher_figures publishing_figures(const struct publishing *publishing);

#endif
