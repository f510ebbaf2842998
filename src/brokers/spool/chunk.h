/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages as they were read: a chunk holds those of one fetch, with their bytes and headers, in a
 * few blocks that never move. The worker fills it, then it is the loop's alone: `refs` counts the
 * messages that were given to the dispatcher and not released, and one for the slot that still
 * gives from it.
 */
#ifndef LW_BROKERS_SPOOL_CHUNK_H
#define LW_BROKERS_SPOOL_CHUNK_H

#include <laneway/plugin.h>

#include "base/list.h"

struct lw_spool_out;
struct lw_spool_block;

struct lw_spool_entry {
    struct lw_bytes key;
    struct lw_bytes ordering_key;
    struct lw_bytes value;
    const struct lw_header *headers;
    uint32_t header_count;
    uint32_t redeliveries;
    uint32_t bytes; /* of all of it, for what a slot may hold */
    int64_t offset;
    int64_t timestamp_ms;
    int64_t event_time_ms; /* -1 none */
    bool is_fresh;
    struct lw_spool_out *out; /* the worker's; NULL once it has a verdict */
};

struct lw_spool_chunk {
    struct lw_list link; /* of the slot */
    uint32_t refs;
    uint32_t count;
    uint32_t capacity;
    uint32_t given;
    uint64_t bytes; /* of all entries */
    struct lw_spool_block *blocks;
    struct lw_spool_entry entries[];
};

struct lw_spool_chunk *lw_spool_chunk_create(uint32_t capacity); /* NULL without memory */
void lw_spool_chunk_destroy(struct lw_spool_chunk *chunk);       /* NULL is fine */
void lw_spool_chunk_release(struct lw_spool_chunk *chunk);
/* Aligned room that lives as long as the chunk; NULL without memory. */
void *lw_spool_chunk_room(struct lw_spool_chunk *chunk, size_t size);
/* Copies; null stays null. False without memory. */
bool lw_spool_chunk_copy(struct lw_spool_chunk *chunk, struct lw_bytes from,
                         struct lw_bytes *ret_copy);
/* A chunk of its own with a copy of one message, one reference; NULL without memory. */
struct lw_spool_chunk *lw_spool_chunk_detach(const struct lw_spool_entry *entry);

#endif
