/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A chunk's memory: a list of blocks, the newest first; a large message gets one of its own. Two or
 * three allocations for a few hundred messages. No thread of its own; see the header.
 */
#include "brokers/spool/chunk.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

enum { BLOCK_BYTES = 64 << 10, ALIGNMENT = 16 };

struct lw_spool_block {
    struct lw_spool_block *next;
    size_t used;
    size_t size;
    _Alignas(ALIGNMENT) char data[];
};

struct lw_spool_chunk *
lw_spool_chunk_create(uint32_t capacity)
{
    struct lw_spool_chunk *chunk = lw_alloc(sizeof *chunk +
                                            capacity * sizeof chunk->entries[0]);
    if (chunk) {
        lw_list_init(&chunk->link);
        chunk->capacity = capacity;
        chunk->refs = 1;
    }
    return chunk;
}

void
lw_spool_chunk_destroy(struct lw_spool_chunk *chunk)
{
    if (!chunk) {
        return;
    }
    while (chunk->blocks) {
        struct lw_spool_block *block = chunk->blocks;
        chunk->blocks = block->next;
        lw_free(block);
    }
    lw_list_remove(&chunk->link);
    lw_free(chunk);
}

void
lw_spool_chunk_release(struct lw_spool_chunk *chunk)
{
    lw_assert(chunk->refs > 0);
    if (--chunk->refs == 0) {
        lw_spool_chunk_destroy(chunk);
    }
}

static struct lw_spool_block *
add_block(struct lw_spool_chunk *chunk, size_t wanted)
{
    size_t size = wanted > BLOCK_BYTES ? wanted : BLOCK_BYTES;
    struct lw_spool_block *block = lw_resize_array(NULL, 1, sizeof *block + size);
    if (block) {
        *block = (struct lw_spool_block){ .next = chunk->blocks, .size = size };
        chunk->blocks = block;
    }
    return block;
}

void *
lw_spool_chunk_room(struct lw_spool_chunk *chunk, size_t size)
{
    struct lw_spool_block *block = chunk->blocks;
    size_t rounded = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    if (!block || block->size - block->used < rounded) {
        block = add_block(chunk, rounded);
    }
    if (!block) {
        return NULL;
    }
    void *room = block->data + block->used;
    block->used += rounded;
    return room;
}

bool
lw_spool_chunk_copy(struct lw_spool_chunk *chunk, struct lw_bytes from,
                    struct lw_bytes *ret_copy)
{
    *ret_copy = (struct lw_bytes){ NULL, 0 };
    if (!from.data) {
        return true;
    }
    char *room = lw_spool_chunk_room(chunk, from.size > 0 ? from.size : 1);
    if (!room) {
        return false;
    }
    if (from.size > 0) {
        memcpy(room, from.data, from.size);
    }
    *ret_copy = (struct lw_bytes){ room, from.size };
    return true;
}

static bool
copy_headers(struct lw_spool_chunk *chunk, const struct lw_spool_entry *from,
             struct lw_spool_entry *to)
{
    if (from->header_count == 0) {
        return true;
    }
    struct lw_header *headers = lw_spool_chunk_room(chunk,
                                                    from->header_count * sizeof *headers);
    for (uint32_t i = 0; headers && i < from->header_count; i++) {
        if (!lw_spool_chunk_copy(chunk, from->headers[i].name, &headers[i].name) ||
            !lw_spool_chunk_copy(chunk, from->headers[i].value, &headers[i].value)) {
            return false;
        }
    }
    to->headers = headers;
    return headers != NULL;
}

struct lw_spool_chunk *
lw_spool_chunk_detach(const struct lw_spool_entry *entry)
{
    struct lw_spool_chunk *chunk = lw_spool_chunk_create(1);
    if (!chunk) {
        return NULL;
    }
    struct lw_spool_entry *copy = &chunk->entries[0];
    *copy = *entry;
    chunk->count = 1;
    chunk->given = 1;
    if (!lw_spool_chunk_copy(chunk, entry->key, &copy->key) ||
        !lw_spool_chunk_copy(chunk, entry->ordering_key, &copy->ordering_key) ||
        !lw_spool_chunk_copy(chunk, entry->value, &copy->value) ||
        !copy_headers(chunk, entry, copy)) {
        lw_spool_chunk_destroy(chunk);
        return NULL;
    }
    return chunk;
}
