/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Large messages that come in chunks, put together by their uuid within bounds on their number
 * and bytes. Chunks of different messages interleave; what is incomplete for too long, or stands
 * in the way of a newer one, is given up: its chunks are acknowledged or redelivered. A chunk whose
 * message never began here and is older than the expiry is acknowledged, since nothing can come
 * of it any more. Pure; time comes in as a number.
 */
#ifndef LW_BROKERS_PULSAR_CHUNKS_H
#define LW_BROKERS_PULSAR_CHUNKS_H

#include "brokers/pulsar/entry.h"

struct lw_pulsar_chunked {
    struct lw_list link; /* oldest first */
    uint64_t begun_at;
    uint8_t *data;
    size_t size; /* that it will have */
    size_t filled;
    struct lw_pulsar_chunk_id *ids;
    uint32_t count; /* chunks in all */
    uint32_t next;
    size_t uuid_size;
    uint8_t uuid[];
};

/* What becomes of a chunk that is given up: acknowledged, or redelivered later. */
typedef void (*lw_pulsar_chunk_fn)(void *user, struct lw_pulsar_chunk_id id, bool acks);

struct lw_pulsar_chunks {
    struct lw_list pending;
    uint32_t count;
    uint64_t bytes;
    uint32_t count_max; /* 0: any number */
    uint64_t bytes_max;
    uint64_t expiry_ns; /* 0: never */
    bool acks_oldest;
    lw_pulsar_chunk_fn give_up;
    void *user;
    /* Hashes of messages that were given up to be redelivered: what comes of them alone is no
     * leftover of a message whose beginning is gone. */
    uint64_t *given_up;
    uint32_t given_up_count;
    bool is_given_up_full; /* more than are known: nothing is taken for a leftover */
};

struct lw_pulsar_chunk {
    struct lw_bytes uuid;
    struct lw_bytes body;
    struct lw_pulsar_chunk_id id;
    int32_t index;
    int32_t count;
    int32_t size; /* of the whole message as transmitted */
    bool is_old;  /* published longer ago than the expiry */
};

enum lw_pulsar_chunk_result {
    LW_PULSAR_CHUNK_KEPT,    /* or given up, or a copy: nothing more to do */
    LW_PULSAR_CHUNK_WHOLE,   /* *ret_whole is the caller's */
    LW_PULSAR_CHUNK_BROKEN,  /* so it is, and holds what came; the sizes do not add up */
    LW_PULSAR_CHUNK_REFUSED, /* can never be put together here */
    LW_PULSAR_CHUNK_NO_MEMORY
};

enum lw_pulsar_chunk_result
lw_pulsar_chunks_add(struct lw_pulsar_chunks *chunks, const struct lw_pulsar_chunk *chunk,
                     uint64_t now, struct lw_pulsar_chunked **ret_whole);
/* Gives up what is too old; returns when to look again. */
uint64_t lw_pulsar_chunks_expire(struct lw_pulsar_chunks *chunks, uint64_t now);
/* Lowers *place to the first chunk that waits for others. */
void lw_pulsar_chunks_first_open(const struct lw_pulsar_chunks *chunks,
                                 struct lw_pulsar_place *place);
/* A new session: all comes again. */
void lw_pulsar_chunks_clear(struct lw_pulsar_chunks *chunks);
/* `data` and `ids` that were taken over are NULL by then. */
void lw_pulsar_chunked_free(struct lw_pulsar_chunked *chunked);

#endif
