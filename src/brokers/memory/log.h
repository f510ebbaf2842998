/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log of one partition: messages in order of their positions, stored once, in chunks that
 * count who looks into them. A position may hold nothing (deleted, skipped, below the start).
 * Leaves topics, readers and time to others: what is visible when is a number in the record.
 *
 * A chunk stays while it is in the log or a message of it is held. A cursor names the next
 * record by chunk number and index, so reading on costs no search.
 */
#ifndef LW_BROKERS_MEMORY_LOG_H
#define LW_BROKERS_MEMORY_LOG_H

#include "brokers/memory/hub.h"

struct lw_memory_record {
    int64_t position;
    struct lw_bytes key;
    struct lw_bytes ordering_key;
    struct lw_bytes value;
    const struct lw_header *headers;
    uint32_t header_count;
    bool is_deleted;
    uint64_t visible_at; /* ns; 0 at once */
    int64_t timestamp_ms;
    int64_t event_time_ms;
    const char *fault; /* NULL: it can be read */
    int64_t batch_end; /* position of the last of its batch; its own when alone */
};

struct lw_memory_block;

struct lw_memory_chunk {
    uint32_t refs; /* the log's own and one per held message */
    uint32_t count;
    uint32_t capacity;
    struct lw_memory_block *blocks; /* the bytes */
    struct lw_memory_record records[];
};

struct lw_memory_log {
    struct lw_memory_chunk **chunks;
    uint64_t first_chunk; /* the number of chunks[0] */
    uint32_t chunk_count;
    uint32_t chunk_capacity;
    int64_t start; /* below: gone */
    int64_t end;   /* the next position */
    uint64_t count;
    uint64_t bytes;
};

struct lw_memory_cursor {
    uint64_t chunk;
    uint32_t index;
};

void lw_memory_log_deinit(struct lw_memory_log *log);
/* Copies the item to the end; NULL without memory. */
struct lw_memory_record *
lw_memory_log_append(struct lw_memory_log *log, const struct lw_memory_item *item);
bool lw_memory_log_delete(struct lw_memory_log *log, int64_t position);
void lw_memory_log_raise_start(struct lw_memory_log *log, int64_t position);
/* Keeps at most that much, 0 without bound; drops the oldest. */
void lw_memory_log_retain(struct lw_memory_log *log, uint64_t count_max, uint64_t bytes_max);
/* Drops everything; the next position is 0. */
void lw_memory_log_truncate(struct lw_memory_log *log);
/* At the first record at or above `position`. */
struct lw_memory_cursor lw_memory_log_seek(const struct lw_memory_log *log, int64_t position);
/* Records from the cursor on. */
uint64_t
lw_memory_log_count_from(const struct lw_memory_log *log, struct lw_memory_cursor cursor);
/* Moves the cursor over what is gone; the record there and its chunk, or NULL at the end. */
struct lw_memory_record *
lw_memory_log_peek_slow(const struct lw_memory_log *log, struct lw_memory_cursor *cursor,
                        struct lw_memory_chunk **ret_chunk);

static inline struct lw_memory_record *
lw_memory_log_peek(const struct lw_memory_log *log, struct lw_memory_cursor *cursor,
                   struct lw_memory_chunk **ret_chunk)
{
    uint64_t index = cursor->chunk - log->first_chunk; /* huge when the chunk is gone */
    if (__builtin_expect(index >= log->chunk_count, 0)) {
        return lw_memory_log_peek_slow(log, cursor, ret_chunk);
    }
    struct lw_memory_chunk *chunk = log->chunks[index];
    struct lw_memory_record *record = &chunk->records[cursor->index];
    if (__builtin_expect(cursor->index >= chunk->count || record->is_deleted ||
                             record->position < log->start,
                         0)) {
        return lw_memory_log_peek_slow(log, cursor, ret_chunk);
    }
    *ret_chunk = chunk;
    return record;
}

/* A chunk of one message, copied, that belongs to the caller (one reference); NULL without
 * memory. */
struct lw_memory_chunk *lw_memory_chunk_copy(const struct lw_memory_record *record);
void lw_memory_chunk_free(struct lw_memory_chunk *chunk);

static inline void
lw_memory_chunk_release(struct lw_memory_chunk *chunk)
{
    if (--chunk->refs == 0) {
        lw_memory_chunk_free(chunk);
    }
}

#endif
