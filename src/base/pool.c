/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growing and freeing pools; taking and giving are inline in the header. The list of chunks is
 * allocated whole at the start, from the bound, so that growing is one allocation and no index
 * ever changes its place. Chunks are aligned by hand to a cache line: base/alloc promises 16.
 * One thread.
 */
#include "base/pool.h"

#include "base/alloc.h"

enum { CACHE_LINE = 64, OBJECT_ALIGNMENT = 16 };

static uint32_t
chunk_objects(const struct lw_pool *pool)
{
    return UINT32_C(1) << pool->chunk_shift;
}

static uint32_t
chunks_of(const struct lw_pool *pool, uint32_t count)
{
    uint64_t rounded = (uint64_t)count + chunk_objects(pool) - 1;
    return (uint32_t)(rounded >> pool->chunk_shift);
}

/* Six arguments, given once per pool. NOLINTBEGIN(readability-function-size) */
enum lw_status
lw_pool_init(struct lw_pool *pool, size_t object_size, uint32_t count_max, uint32_t chunk_count,
             lw_pool_new_fn on_new, void *user)
{
    lw_assert(object_size >= sizeof(struct lw_queue_node) && count_max > 0);
    *pool = (struct lw_pool){ .count_max = count_max, .on_new = on_new, .user = user };
    pool->object_size = (object_size + OBJECT_ALIGNMENT - 1) & ~(size_t)(OBJECT_ALIGNMENT - 1);
    while (chunk_objects(pool) < chunk_count && chunk_objects(pool) < count_max) {
        pool->chunk_shift++;
    }
    /* Two pointers a chunk: where its objects begin, and what the allocator gave. */
    pool->chunks = lw_alloc_array(2 * (size_t)chunks_of(pool, count_max), sizeof(char *));
    return pool->chunks ? LW_STATUS_OK : LW_STATUS_NO_MEMORY;
}
/* NOLINTEND(readability-function-size) */

static char **
raw_chunks(const struct lw_pool *pool)
{
    return pool->chunks + chunks_of(pool, pool->count_max);
}

void
lw_pool_deinit(struct lw_pool *pool)
{
    if (!pool->chunks) {
        return;
    }
    for (uint32_t i = 0; i < chunks_of(pool, pool->count); i++) {
        lw_free(raw_chunks(pool)[i]);
    }
    lw_free(pool->chunks);
    *pool = (struct lw_pool){ .chunks = NULL };
}

bool
lw_pool_grow(struct lw_pool *pool)
{
    uint32_t room = pool->count_max - pool->count;
    uint32_t added = room < chunk_objects(pool) ? room : chunk_objects(pool);
    size_t size = 0;
    if (added == 0 || __builtin_mul_overflow(added, pool->object_size, &size)) {
        return false;
    }
    char *raw = size > SIZE_MAX - CACHE_LINE ? NULL : lw_alloc(size + CACHE_LINE);
    if (!raw) {
        return false;
    }
    uint32_t chunk = pool->count >> pool->chunk_shift;
    raw_chunks(pool)[chunk] = raw;
    pool->chunks[chunk] = raw + (-(uintptr_t)raw & (CACHE_LINE - 1));
    for (uint32_t i = 0; i < added; i++) {
        void *object = pool->chunks[chunk] + i * pool->object_size;
        if (pool->on_new) {
            pool->on_new(object, pool->count, pool->user);
        }
        pool->count++;
        lw_queue_push(&pool->free, (struct lw_queue_node *)object);
    }
    return true;
}

enum lw_status
lw_pool_reserve(struct lw_pool *pool, uint32_t count)
{
    while (pool->count < count) {
        if (!lw_pool_grow(pool)) {
            return pool->count == pool->count_max ? LW_STATUS_TOO_LARGE : LW_STATUS_NO_MEMORY;
        }
    }
    return LW_STATUS_OK;
}
