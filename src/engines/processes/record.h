/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lies in the two rings of a worker process: records of a fixed head and bytes behind it,
 * both multiples of 8, in the byte order and with the sizes of this machine, since both ends are
 * of one build (the zygote says so in its hello). The owner, our process, writes requests and
 * trusts nothing that it reads in answers; the worker trusts the owner.
 *
 * A text in a record is followed by a zero; a null view has no bytes and its flag is not set.
 */
#ifndef LW_ENGINES_PROCESSES_RECORD_H
#define LW_ENGINES_PROCESSES_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Contexts that a worker remembers, by place; a record names one. */
#define LW_PROCESSES_CONTEXTS 64
/* What is larger than this part of a ring goes in memory of its own. */
#define LW_PROCESSES_RING_SHARE 4

static inline size_t
lw_processes_round(size_t size)
{
    return (size + 7) & ~(size_t)7;
}

/* -- Requests ------------------------------------------------------------------------------------ */

enum lw_processes_request_kind {
    LW_PROCESSES_CONTEXT, /* what follows messages of one partition: texts */
    LW_PROCESSES_MESSAGE,
    LW_PROCESSES_EXTERNAL, /* the message record is in memory that comes over the socket */
    LW_PROCESSES_BATCH     /* several messages in one call; may come over the socket, too */
};

/* Behind it: topic, subscription, pipeline, prefix of the identity; zeros between. */
struct lw_processes_context {
    uint32_t size; /* of the whole record */
    uint16_t kind;
    uint16_t place;
    int32_t partition;
    uint32_t topic_size;
    uint32_t subscription_size;
    uint32_t pipeline_size;
    uint32_t prefix_size;
    uint32_t unused;
};

enum {
    LW_PROCESSES_HAS_KEY = 1,
    LW_PROCESSES_HAS_ORDERING_KEY = 2,
    LW_PROCESSES_HAS_VALUE = 4
};

/*
 * Behind it: key, ordering key, identity (size 0: prefix and `place` or position), place of the
 * broker (size 0: the position), headers (two uint32 sizes, UINT32_MAX a null value; name; value),
 * value.
 */
struct lw_processes_request {
    uint32_t size;
    uint16_t kind;
    uint16_t context;
    uint64_t seq; /* from 1 in each process */
    int64_t position;
    int64_t timestamp_ms;
    int64_t event_time_ms;
    uint32_t attempt;
    uint32_t retries;
    uint32_t redeliveries;
    uint32_t flags;
    uint32_t key_size;
    uint32_t ordering_key_size;
    uint32_t identity_size;
    uint32_t place_size;
    uint32_t headers_size;
    uint32_t header_count;
    uint64_t value_size;
};

/*
 * Behind it records of contexts and messages in turn, `count` messages in all; a context is that of
 * the messages behind it, and of no other record.
 */
struct lw_processes_batch {
    uint32_t size; /* of the whole record */
    uint16_t kind;
    uint16_t unused;
    uint64_t seq;
    uint32_t count;
    uint32_t unused_too;
};

/* -- Answers ------------------------------------------------------------------------------------- */

enum {
    LW_PROCESSES_HAS_CODE = 1,
    LW_PROCESSES_IS_EXTERNAL = 2 /* its body is in memory that comes over the socket */
};

/* Behind it the body: reason, then the outputs. To a batch one for each message, in order. */
struct lw_processes_answer {
    uint32_t size; /* of the record in the ring */
    uint16_t flags;
    uint16_t verdict;
    uint64_t seq;
    int64_t delay_ms;
    uint64_t began_at; /* monotonic ns of the handler's call and of its return */
    uint64_t ended_at;
    int32_t code;
    uint32_t reason_size;
    uint32_t output_count;
    uint32_t verdicts; /* with the first of a batch: how many its handler gave */
    uint64_t body_size;
};

/* Behind it: topic, key, value, headers as in a request. */
struct lw_processes_output {
    uint32_t is_reply;
    uint32_t flags;
    uint32_t topic_size;
    uint32_t header_count;
    int64_t delay_ms;
    uint64_t key_size;
    uint64_t value_size;
};

#endif
