/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A struct of plain data that one thread writes and any thread reads whole, for snapshots of
 * state: a sequence lock. The writer never waits; a reader tries again when a write came between.
 * The copy is kept in atomic words, so a torn read is discarded and never undefined. Rejected: a
 * lock, which a slow reader could hold against the loop thread.
 */
#ifndef LW_BASE_PUBLISH_H
#define LW_BASE_PUBLISH_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <laneway/laneway.h>

struct lw_publish {
    atomic_uint_least64_t sequence; /* odd while a write is under way */
    atomic_uint_least64_t *words;
    size_t size;
};

/* Prepares for structs of `size` bytes; readers see zeros until the first write. */
LW_MUST_USE enum lw_status lw_publish_init(struct lw_publish *publish, size_t size);
/* No reader may be inside of lw_publish_read any more. */
void lw_publish_deinit(struct lw_publish *publish);
/* Publishes a copy of `size` bytes. One thread. */
void lw_publish_write(struct lw_publish *publish, const void *data);
/* Copies the newest whole struct out. Any thread. */
void lw_publish_read(struct lw_publish *publish, void *out);

#endif
