/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool of objects of one size, grown in chunks up to a bound. Objects never move and their
 * memory is only freed with the pool, so a late look at a given-back object is a look at valid
 * memory. The free list is first in first out: an object is reused as late as possible, which
 * gives a serial number in it time to prove a late answer stale.
 *
 * An object's first pointer (8 bytes) belongs to the pool while the object is free; the rest
 * stays as it was at give, zeroed in a new object. Objects are aligned to 16 bytes, and to 64
 * when their size is a multiple of 64. Each has an index for ever. One thread; `lw_pool_at` too.
 */
#ifndef LW_BASE_POOL_H
#define LW_BASE_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <laneway/laneway.h>

#include "base/assert.h"
#include "base/list.h"

/* Called once per object, when its memory is new. */
typedef void (*lw_pool_new_fn)(void *object, uint32_t index, void *user);

struct lw_pool {
    struct lw_queue free;
    uint32_t taken_count;
    uint32_t count; /* objects that exist */
    uint32_t count_max;
    uint32_t chunk_shift; /* a chunk has 2^chunk_shift objects */
    size_t object_size;
    char **chunks;
    lw_pool_new_fn on_new;
    void *user;
};

/*
 * Prepares an empty pool of at most `count_max` objects, grown by about `chunk_count` (rounded
 * up to a power of two) at a time. Allocates only the list of chunks.
 */
LW_MUST_USE enum lw_status
lw_pool_init(struct lw_pool *pool, size_t object_size, uint32_t count_max, uint32_t chunk_count,
             lw_pool_new_fn on_new, void *user);
/* Frees all objects, taken ones too. */
void lw_pool_deinit(struct lw_pool *pool);
/* Makes at least `count` objects exist, so that taking them later allocates nothing. */
LW_MUST_USE enum lw_status lw_pool_reserve(struct lw_pool *pool, uint32_t count);
/* Adds a chunk; false at the bound or without memory. */
bool lw_pool_grow(struct lw_pool *pool);

/* Takes an object, NULL at the bound or without memory. Its contents are those of its last use. */
static inline void *
lw_pool_take(struct lw_pool *pool)
{
    if (__builtin_expect(!pool->free.first, 0) && !lw_pool_grow(pool)) {
        return NULL;
    }
    pool->taken_count++;
    return lw_queue_pop(&pool->free);
}

static inline void
lw_pool_give(struct lw_pool *pool, void *object)
{
    lw_assert(pool->taken_count > 0);
    pool->taken_count--;
    lw_queue_push(&pool->free, (struct lw_queue_node *)object);
}

/* Returns the object of that index, free or taken; NULL when there is none. */
static inline void *
lw_pool_at(const struct lw_pool *pool, uint32_t index)
{
    if (index >= pool->count) {
        return NULL;
    }
    uint32_t mask = (1u << pool->chunk_shift) - 1;
    return pool->chunks[index >> pool->chunk_shift] + (index & mask) * pool->object_size;
}

#endif
