/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table from names (text or bytes) to pointers, for cold tables: topics, options, events. Keys
 * are copied and owned, values are the caller's and never NULL. Open addressing with linear
 * probing, at most three quarters full, no tombstones: removal shifts the followers back, so a
 * table that is changed for ever stays as fast as a new one. The hot path has its own tables.
 * One thread.
 */
#ifndef LW_BASE_MAP_H
#define LW_BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

#include <laneway/laneway.h>

struct lw_map_entry {
    char *key; /* NULL: free; terminated by a zero for convenience */
    size_t key_size;
    uint64_t hash;
    void *value;
};

struct lw_map {
    struct lw_map_entry *entries;
    size_t capacity; /* a power of two, or 0 */
    size_t count;
    uint64_t seed;
};

void lw_map_init(struct lw_map *map, uint64_t seed);
void lw_map_deinit(struct lw_map *map); /* values stay the caller's */
/* Adds or replaces; LW_STATUS_NO_MEMORY leaves the map as it was. */
LW_MUST_USE enum lw_status lw_map_set(struct lw_map *map, struct lw_bytes key, void *value);
void *lw_map_get(const struct lw_map *map, struct lw_bytes key); /* NULL: not there */
void *lw_map_remove(struct lw_map *map, struct lw_bytes key); /* the value; NULL: not there */
/* Walks the entries in no order: start with NULL, ends with NULL. Not while keys change. */
const struct lw_map_entry *
lw_map_next(const struct lw_map *map, const struct lw_map_entry *entry);

#endif
