/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a topic for a person (`laneway peek`): what to read and what comes, the same for all
 * brokers. Reading joins no group, moves nothing, and blocks: it is for the command, on a broker
 * that was created and never started.
 */
#ifndef LW_BROKERS_COMMON_PEEK_H
#define LW_BROKERS_COMMON_PEEK_H

#include <laneway/plugin.h>

struct lw_loop;

enum lw_peek_from {
    LW_PEEK_BEGINNING,
    LW_PEEK_END,    /* only what comes from now on */
    LW_PEEK_OFFSET, /* `offset`; Kafka */
    LW_PEEK_TAIL,   /* the last `offset` positions of each partition; Kafka */
    LW_PEEK_PLACE,  /* `place`, such as "12:7"; Pulsar */
    LW_PEEK_AGO     /* what was published in the last `ago_ms`; Pulsar */
};

/* Views die with the call. */
struct lw_peeked {
    const char *topic;
    int32_t partition;
    int64_t offset;        /* -1: this broker has places instead */
    const char *place;     /* "12:7:3"; NULL: the offset */
    int64_t timestamp_ms;  /* -1 none */
    int64_t event_time_ms; /* -1 none */
    struct lw_bytes key;
    struct lw_bytes ordering_key; /* null: none */
    struct lw_bytes value;
    const struct lw_header *headers;
    size_t header_count;
    const char *fault; /* why it cannot be read, then `value` is as it came; NULL: it can */
};

struct lw_peek {
    struct lw_loop *loop; /* of the broker's host */
    const char *topic;
    int32_t partition; /* -1: all */
    enum lw_peek_from from;
    int64_t offset;
    const char *place;
    int64_t ago_ms;
    bool stops_at_end;  /* of every partition, as it was when it was reached */
    int64_t timeout_ms; /* for finding the topic */
    /* False ends it. */
    bool (*on_message)(const struct lw_peeked *message, void *user);
    /* Nothing more came for a while; false ends it. */
    bool (*on_idle)(void *user);
    void *user;
};

#endif
