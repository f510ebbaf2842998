/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which partition of a topic takes a message: by the hash of its key, as Java's client has it (the
 * ordering key has no say), else in turn or always the same. With batches the turn stays at one
 * partition until a batch would be full or its time is over, so that batches fill. Pure; the two
 * hashes themselves are declared in producer.h.
 */
#ifndef LW_BROKERS_PULSAR_ROUTE_H
#define LW_BROKERS_PULSAR_ROUTE_H

#include "brokers/pulsar/producer.h"

struct lw_pulsar_router {
    const struct lw_pulsar_producer_settings *options;
    uint32_t at; /* of messages without a key; taken modulo the number of partitions */
    uint32_t messages;
    uint64_t bytes;
    uint64_t since; /* when `at` last went on */
};

/* Begins at a random partition, so that a fleet does not write to the first one. */
void lw_pulsar_router_init(struct lw_pulsar_router *router,
                           const struct lw_pulsar_producer_settings *options, uint64_t random);
/* `key` as it stands on the wire (bytes in base64), null for none. `partitions` is not 0. */
uint32_t lw_pulsar_router_choose(struct lw_pulsar_router *router, struct lw_bytes key,
                                 size_t bytes, uint32_t partitions, uint64_t now);

#endif
