/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sequence lock of publish.h. Orders: a data word is stored with release after the odd
 * sequence, so a reader that loads it with acquire sees a sequence that differs from the one it
 * began with; the even sequence is stored with release after the words. On x86 these are plain
 * moves. No fences: a thread sanitizer does not follow them.
 */
#include "base/publish.h"

#include <sched.h>
#include <string.h>

#include "base/alloc.h"

enum { WORD_SIZE = 8, TRIES_BEFORE_YIELD = 64 };

enum lw_status
lw_publish_init(struct lw_publish *publish, size_t size)
{
    size_t count = size / WORD_SIZE + 1;
    atomic_init(&publish->sequence, 0);
    publish->size = size;
    publish->words = lw_alloc_array(count, sizeof publish->words[0]);
    return publish->words ? LW_STATUS_OK : LW_STATUS_NO_MEMORY;
}

void
lw_publish_deinit(struct lw_publish *publish)
{
    lw_free(publish->words);
    publish->words = NULL;
}

static size_t
part_at(const struct lw_publish *publish, size_t offset)
{
    size_t rest = publish->size - offset;
    return rest < WORD_SIZE ? rest : WORD_SIZE;
}

void
lw_publish_write(struct lw_publish *publish, const void *data)
{
    uint64_t sequence = atomic_load_explicit(&publish->sequence, memory_order_relaxed);
    atomic_store_explicit(&publish->sequence, sequence + 1, memory_order_relaxed);
    for (size_t offset = 0; offset < publish->size; offset += WORD_SIZE) {
        uint64_t word = 0;
        memcpy(&word, (const char *)data + offset, part_at(publish, offset));
        atomic_store_explicit(&publish->words[offset / WORD_SIZE], word, memory_order_release);
    }
    atomic_store_explicit(&publish->sequence, sequence + 2, memory_order_release);
}

static bool
try_read(struct lw_publish *publish, void *out)
{
    uint64_t before = atomic_load_explicit(&publish->sequence, memory_order_acquire);
    if (before % 2) {
        return false;
    }
    for (size_t offset = 0; offset < publish->size; offset += WORD_SIZE) {
        uint64_t word = atomic_load_explicit(&publish->words[offset / WORD_SIZE],
                                             memory_order_acquire);
        memcpy((char *)out + offset, &word, part_at(publish, offset));
    }
    return atomic_load_explicit(&publish->sequence, memory_order_relaxed) == before;
}

void
lw_publish_read(struct lw_publish *publish, void *out)
{
    for (unsigned tries = 1; !try_read(publish, out); tries++) {
        if (tries % TRIES_BEFORE_YIELD == 0) {
            sched_yield(); /* the writer may have lost its processor in the middle */
        }
    }
}
