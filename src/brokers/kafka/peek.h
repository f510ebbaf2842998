/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a topic for a person (`laneway peek`): without a group, without committing anything, on
 * a client of its own. Blocking; for the command, on a broker that was created and never started.
 */
#ifndef LW_BROKERS_KAFKA_PEEK_H
#define LW_BROKERS_KAFKA_PEEK_H

#include <laneway/plugin.h>

enum lw_kafka_peek_from {
    LW_KAFKA_PEEK_BEGINNING,
    LW_KAFKA_PEEK_END,    /* only what comes from now on */
    LW_KAFKA_PEEK_OFFSET, /* `offset` */
    LW_KAFKA_PEEK_TAIL    /* the last `offset` positions of each partition */
};

/* Views die with the call. */
struct lw_kafka_peeked {
    const char *topic;
    int32_t partition;
    int64_t offset;
    int64_t timestamp_ms; /* -1 none */
    struct lw_bytes key;
    struct lw_bytes value;
    const struct lw_header *headers;
    size_t header_count;
};

struct lw_kafka_peek {
    const char *topic;
    int32_t partition; /* -1: all */
    enum lw_kafka_peek_from from;
    int64_t offset;
    bool stops_at_end;  /* of every partition, as it was when it was reached */
    int64_t timeout_ms; /* for finding the topic */
    /* False ends it. */
    bool (*on_message)(const struct lw_kafka_peeked *message, void *user);
    /* Nothing more came for a while; false ends it. */
    bool (*on_idle)(void *user);
    void *user;
};

/* NOT_FOUND without the topic or partition; UNAVAILABLE when nobody answers. */
enum lw_status lw_kafka_peek(struct lw_broker *broker, const struct lw_kafka_peek *peek,
                             struct lw_error *ret_error);

#endif
