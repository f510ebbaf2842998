/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log of one partition. Chunks grow from 16 to 256 records, the blocks that hold their bytes
 * from 1 KiB to 64 KiB, so that a topic with one dead letter stays small and a full one costs an
 * allocation per few hundred messages. Chunks ascend by position and are never empty, which is
 * what the binary searches rely on. Pure: no clock, no randomness.
 */
#include "brokers/memory/log.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

enum {
    CHUNK_RECORDS_FIRST = 16,
    CHUNK_RECORDS_MAX = 256,
    BLOCK_BYTES_FIRST = 1024,
    BLOCK_BYTES_MAX = 64 * 1024,
    ALIGNMENT = 8
};

struct lw_memory_block {
    struct lw_memory_block *next;
    size_t used;
    size_t size;
    char data[];
};

static size_t
size_of_item(const struct lw_memory_item *item)
{
    size_t size = item->header_count * sizeof(struct lw_header) + item->key.size +
                  item->ordering_key.size + item->value.size;
    for (size_t i = 0; i < item->header_count; i++) {
        size += item->headers[i].name.size + item->headers[i].value.size;
    }
    return size;
}

static size_t
size_of_record(const struct lw_memory_record *record)
{
    return record->key.size + record->value.size;
}

/* Takes `size` bytes of the chunk's newest block, or of a new one. */
static char *
reserve(struct lw_memory_chunk *chunk, size_t size)
{
    struct lw_memory_block *block = chunk->blocks;
    if (!block || block->size - block->used < size) {
        size_t wanted = block ? block->size * 2 : BLOCK_BYTES_FIRST;
        wanted = wanted < BLOCK_BYTES_MAX ? wanted : BLOCK_BYTES_MAX;
        wanted = wanted > size ? wanted : size;
        struct lw_memory_block *fresh = lw_alloc(sizeof *fresh + wanted);
        if (!fresh) {
            return NULL;
        }
        fresh->size = wanted;
        fresh->next = block;
        chunk->blocks = block = fresh;
    }
    char *place = block->data + block->used;
    size_t rounded = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    block->used = rounded < block->size - block->used ? block->used + rounded : block->size;
    return place;
}

/* Copies bytes to *place and moves it on; null stays null, empty stays empty. */
static struct lw_bytes
copy_bytes(char **place, struct lw_bytes from)
{
    if (!from.data) {
        return (struct lw_bytes){ 0 };
    }
    struct lw_bytes copy = { *place, from.size };
    if (from.size > 0) {
        memcpy(*place, from.data, from.size);
    }
    *place += from.size;
    return copy;
}

static bool
store(struct lw_memory_chunk *chunk, const struct lw_memory_item *item,
      struct lw_memory_record *record)
{
    char *place = reserve(chunk, size_of_item(item) + 1); /* + 1: empty bytes have an address */
    if (!place) {
        return false;
    }
    struct lw_header *headers = (struct lw_header *)(void *)place;
    place += item->header_count * sizeof(struct lw_header);
    for (size_t i = 0; i < item->header_count; i++) {
        headers[i].name = copy_bytes(&place, item->headers[i].name);
        headers[i].value = copy_bytes(&place, item->headers[i].value);
    }
    *record = (struct lw_memory_record){
        .key = copy_bytes(&place, item->key),
        .ordering_key = copy_bytes(&place, item->ordering_key),
        .value = copy_bytes(&place, item->value),
        .headers = headers,
        .header_count = (uint32_t)item->header_count,
        .timestamp_ms = -1,
        .event_time_ms = item->event_time_ms,
        .fault = item->fault,
    };
    return true;
}

static struct lw_memory_chunk *
create_chunk(uint32_t capacity)
{
    struct lw_memory_chunk *chunk = lw_alloc(sizeof *chunk +
                                             capacity * sizeof(struct lw_memory_record));
    if (chunk) {
        chunk->refs = 1;
        chunk->capacity = capacity;
    }
    return chunk;
}

void
lw_memory_chunk_free(struct lw_memory_chunk *chunk)
{
    while (chunk->blocks) {
        struct lw_memory_block *next = chunk->blocks->next;
        lw_free(chunk->blocks);
        chunk->blocks = next;
    }
    lw_free(chunk);
}

struct lw_memory_chunk *
lw_memory_chunk_copy(const struct lw_memory_record *record)
{
    struct lw_memory_item item = {
        .key = record->key,
        .ordering_key = record->ordering_key,
        .value = record->value,
        .headers = record->headers,
        .header_count = record->header_count,
        .event_time_ms = record->event_time_ms,
    };
    struct lw_memory_chunk *chunk = create_chunk(1);
    if (!chunk || !store(chunk, &item, &chunk->records[0])) {
        if (chunk) {
            lw_memory_chunk_free(chunk);
        }
        return NULL;
    }
    chunk->count = 1;
    chunk->records[0].position = record->position;
    chunk->records[0].timestamp_ms = record->timestamp_ms;
    return chunk;
}

/* The chunk that takes the next record: the last one, or a new one. */
static struct lw_memory_chunk *
open_chunk(struct lw_memory_log *log)
{
    struct lw_memory_chunk *last = log->chunk_count > 0 ? log->chunks[log->chunk_count - 1]
                                                        : NULL;
    if (last && last->count < last->capacity) {
        return last;
    }
    if (log->chunk_count == log->chunk_capacity) {
        uint32_t capacity = log->chunk_capacity ? log->chunk_capacity * 2 : 4;
        void *chunks = lw_resize_array(log->chunks, capacity, sizeof(struct lw_memory_chunk *));
        if (!chunks) {
            return NULL;
        }
        log->chunks = chunks;
        log->chunk_capacity = capacity;
    }
    uint32_t records = last ? last->capacity * 4 : CHUNK_RECORDS_FIRST;
    struct lw_memory_chunk *chunk = create_chunk(
        records < CHUNK_RECORDS_MAX ? records : CHUNK_RECORDS_MAX);
    if (chunk) {
        log->chunks[log->chunk_count++] = chunk;
    }
    return chunk;
}

/* A chunk that got no record after all must not stay: none is ever empty. */
static void
close_empty_chunk(struct lw_memory_log *log)
{
    if (log->chunks[log->chunk_count - 1]->count == 0) {
        lw_memory_chunk_release(log->chunks[--log->chunk_count]);
    }
}

struct lw_memory_record *
lw_memory_log_append(struct lw_memory_log *log, const struct lw_memory_item *item)
{
    struct lw_memory_chunk *chunk = open_chunk(log);
    if (!chunk) {
        return NULL;
    }
    struct lw_memory_record *record = &chunk->records[chunk->count];
    if (!store(chunk, item, record)) {
        close_empty_chunk(log);
        return NULL;
    }
    chunk->count++;
    record->position = log->end++;
    record->batch_end = record->position + item->batch_left;
    log->count++;
    log->bytes += size_of_record(record);
    return record;
}

/* Index of the first chunk whose last record is at or above `position`. */
static uint32_t
find_chunk(const struct lw_memory_log *log, int64_t position)
{
    uint32_t low = 0;
    uint32_t high = log->chunk_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct lw_memory_chunk *chunk = log->chunks[middle];
        if (chunk->records[chunk->count - 1].position < position) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct lw_memory_cursor
lw_memory_log_seek(const struct lw_memory_log *log, int64_t position)
{
    uint32_t found = find_chunk(log, position);
    struct lw_memory_cursor cursor = { .chunk = log->first_chunk + found };
    if (found == log->chunk_count) {
        if (found > 0) { /* behind the last record, where the next one will be */
            cursor.chunk--;
            cursor.index = log->chunks[found - 1]->count;
        }
        return cursor;
    }
    const struct lw_memory_chunk *chunk = log->chunks[found];
    uint32_t high = chunk->count;
    while (cursor.index < high) {
        uint32_t middle = cursor.index + (high - cursor.index) / 2;
        if (chunk->records[middle].position < position) {
            cursor.index = middle + 1;
        } else {
            high = middle;
        }
    }
    return cursor;
}

/* The first record of the chunk from *index on that exists; NULL: none, *index is the count. */
static struct lw_memory_record *
find_live(const struct lw_memory_log *log, struct lw_memory_chunk *chunk, uint32_t *index)
{
    for (; *index < chunk->count; ++*index) {
        struct lw_memory_record *record = &chunk->records[*index];
        if (!record->is_deleted && record->position >= log->start) {
            return record;
        }
    }
    return NULL;
}

struct lw_memory_record *
lw_memory_log_peek_slow(const struct lw_memory_log *log, struct lw_memory_cursor *cursor,
                        struct lw_memory_chunk **ret_chunk)
{
    if (cursor->chunk < log->first_chunk) {
        *cursor = (struct lw_memory_cursor){ .chunk = log->first_chunk };
    }
    while (cursor->chunk - log->first_chunk < log->chunk_count) {
        uint64_t at = cursor->chunk - log->first_chunk;
        struct lw_memory_chunk *chunk = log->chunks[at];
        struct lw_memory_record *record = find_live(log, chunk, &cursor->index);
        if (record) {
            *ret_chunk = chunk;
            return record;
        }
        if (at + 1 == log->chunk_count && chunk->count < chunk->capacity) {
            return NULL; /* the next record comes into this chunk */
        }
        *cursor = (struct lw_memory_cursor){ .chunk = cursor->chunk + 1 };
    }
    return NULL;
}

uint64_t
lw_memory_log_count_from(const struct lw_memory_log *log, struct lw_memory_cursor cursor)
{
    uint64_t count = 0;
    struct lw_memory_chunk *chunk;
    while (lw_memory_log_peek(log, &cursor, &chunk)) {
        cursor.index++;
        count++;
    }
    return count;
}

static void
delete_record(struct lw_memory_log *log, struct lw_memory_record *record)
{
    record->is_deleted = true;
    log->count--;
    log->bytes -= size_of_record(record);
}

bool
lw_memory_log_delete(struct lw_memory_log *log, int64_t position)
{
    struct lw_memory_cursor cursor = lw_memory_log_seek(log, position);
    struct lw_memory_chunk *chunk = NULL;
    struct lw_memory_record *record = lw_memory_log_peek(log, &cursor, &chunk);
    if (!record || record->position != position) {
        return false;
    }
    delete_record(log, record);
    return true;
}

static void
drop_chunks(struct lw_memory_log *log, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        lw_memory_chunk_release(log->chunks[i]);
    }
    log->chunk_count -= count;
    log->first_chunk += count;
    if (count > 0) {
        memmove(log->chunks, log->chunks + count,
                log->chunk_count * sizeof(struct lw_memory_chunk *));
    }
}

void
lw_memory_log_raise_start(struct lw_memory_log *log, int64_t position)
{
    int64_t start = position < log->end ? position : log->end;
    if (start <= log->start) {
        return;
    }
    struct lw_memory_cursor cursor = lw_memory_log_seek(log, log->start);
    struct lw_memory_chunk *chunk = NULL;
    struct lw_memory_record *record = lw_memory_log_peek(log, &cursor, &chunk);
    while (record && record->position < start) {
        delete_record(log, record);
        record = lw_memory_log_peek(log, &cursor, &chunk);
    }
    log->start = start;
    drop_chunks(log, find_chunk(log, start));
}

void
lw_memory_log_retain(struct lw_memory_log *log, uint64_t count_max, uint64_t bytes_max)
{
    while ((count_max > 0 && log->count > count_max) ||
           (bytes_max > 0 && log->bytes > bytes_max && log->count > 1)) {
        struct lw_memory_cursor cursor = lw_memory_log_seek(log, log->start);
        struct lw_memory_chunk *chunk = NULL;
        struct lw_memory_record *record = lw_memory_log_peek(log, &cursor, &chunk);
        lw_assert(record != NULL); /* it holds more than one */
        lw_memory_log_raise_start(log, record->position + 1);
    }
}

void
lw_memory_log_truncate(struct lw_memory_log *log)
{
    drop_chunks(log, log->chunk_count);
    log->start = log->end = 0;
    log->count = log->bytes = 0;
}

void
lw_memory_log_deinit(struct lw_memory_log *log)
{
    drop_chunks(log, log->chunk_count);
    lw_free(log->chunks);
    *log = (struct lw_memory_log){ 0 };
}
