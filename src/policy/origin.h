/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The headers that tell where a retry copy or dead letter came from: read from a message that
 * came back, and built for a copy. Two families: Kafka's (Pyrallel's six names and x-laneway-*)
 * and Pulsar's (REAL_TOPIC, ORIGIN_MESSAGE_ID, RECONSUMETIMES, DEAD_LETTER_TOPIC and the Java
 * client's ORIGIN_MESSAGE_IDY_TIME, REAL_SUBSCRIPTION, DELAY_TIME; the ids as its clients write
 * them). Both carry the identity as x-laneway-id. Every other header is carried bit for bit, in
 * order, duplicates kept. Pure. What a forged header may choose is bounded by an allow list.
 */
#ifndef LW_POLICY_ORIGIN_H
#define LW_POLICY_ORIGIN_H

#include <stdbool.h>
#include <stdint.h>

#include <laneway/laneway.h>

#include "base/text.h"

/* RECONSUMETIMES is a Java int. A count stays here; a larger one that was read counts as none. */
#define LW_RETRIES_MAX (INT32_MAX - 1)

enum lw_header_family { LW_HEADERS_KAFKA, LW_HEADERS_PULSAR };

/* What a message's own headers say of its first appearance. Views into the headers. */
struct lw_origin {
    uint32_t retries; /* malformed or huge counts as 0, with is_malformed */
    bool is_malformed;
    struct lw_bytes message_id;        /* the identity that it carries; null: none */
    struct lw_bytes client_id;         /* Pulsar: the origin's id as its clients write it */
    struct lw_bytes topic;             /* null: first appearance */
    struct lw_bytes dead_letter_topic; /* null: none given */
    int64_t not_before_ms;             /* wall clock, -1 none */
    int64_t timestamp_ms;              /* of the original, -1 none */
};

void lw_origin_read(enum lw_header_family family, const struct lw_header *headers, size_t count,
                    struct lw_origin *ret_origin);

/* Everything that the copy's headers are made of. */
struct lw_origin_facts {
    enum lw_header_family family;
    const char *broker;
    const char *topic; /* where this message was consumed now */
    int32_t partition;
    int64_t position;
    const char *place;        /* what the identity says for the position; NULL: the number */
    const char *id_text;      /* Pulsar: the message's id as its clients write it; NULL: none */
    const char *subscription; /* Pulsar; NULL: not said */
    uint64_t generation;
    int64_t timestamp_ms;
    uint32_t attempt; /* runs here */
    uint32_t retries; /* that the copy carries: +1 for a retry copy */
    const char *reason;
    const char
        *dead_letter_topic; /* of the original subscription; written at the first retry */
    int64_t not_before_ms;  /* retry copies; -1 none */
    int64_t delay_ms;       /* retry copies; -1 none */
};

/* The list for a copy; `memory` holds numbers and texts made here. Freed by lw_headers_deinit. */
struct lw_headers {
    struct lw_header *items;
    size_t count;
    size_t capacity;
    struct lw_text memory;
    bool is_failed;
};

void lw_headers_init(struct lw_headers *headers);
void lw_headers_deinit(struct lw_headers *headers);
/* Builds the complete header list of a retry copy. false without memory. */
bool lw_origin_build_retry(const struct lw_origin_facts *facts, const struct lw_header *from,
                           size_t count, struct lw_headers *ret_headers);
/* Builds that of a dead letter: the reason, the attempt, the source's place. */
bool
lw_origin_build_dead_letter(const struct lw_origin_facts *facts, const struct lw_header *from,
                            size_t count, struct lw_headers *ret_headers);
/* Trace context and content type of the message, for replies and outputs that have none. */
bool lw_origin_build_reply(const struct lw_header *own, size_t own_count,
                           const struct lw_header *from, size_t count,
                           struct lw_headers *ret_headers);

enum { LW_PLACE_BYTES = 64 }; /* of a broker's own text for a position */

/*
 * Writes BROKER/TOPIC/PARTITION/POSITION of where a message was consumed, the topic
 * percent-encoded (of a Pulsar partition: its base topic); returns the length.
 */
size_t lw_origin_message_id(const struct lw_origin_facts *facts, char *out, size_t size);
/*
 * Writes the stable identity: what the message carries; else what an official client said of its
 * first appearance, in the same form; else where it is now. Returns the length.
 */
size_t lw_origin_identity(const struct lw_origin *origin, const struct lw_origin_facts *facts,
                          char *out, size_t size);
/* May a header choose this dead-letter topic? */
bool lw_origin_is_allowed(struct lw_bytes topic, const char *const *patterns, size_t count);

#endif
