/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of map.h. Invariant of linear probing: between an entry's home (hash & mask) and its
 * place there is no free slot. Insertion takes the first free slot; removal moves back every
 * follower whose home does not lie cyclically behind the hole. One thread.
 */
#include "base/map.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"

enum { CAPACITY_MIN = 16 };

void
lw_map_init(struct lw_map *map, uint64_t seed)
{
    *map = (struct lw_map){ .seed = seed };
}

void
lw_map_deinit(struct lw_map *map)
{
    for (size_t i = 0; i < map->capacity; i++) {
        lw_free(map->entries[i].key);
    }
    lw_free(map->entries);
    lw_map_init(map, map->seed);
}

/* Returns the entry of that key, or the free one where it belongs. Capacity is not 0. */
static struct lw_map_entry *
find_place(const struct lw_map *map, struct lw_bytes key, uint64_t hash)
{
    size_t mask = map->capacity - 1;
    size_t i = (size_t)hash & mask;
    for (; map->entries[i].key; i = (i + 1) & mask) {
        const struct lw_map_entry *entry = &map->entries[i];
        if (entry->hash == hash && entry->key_size == key.size &&
            (key.size == 0 || memcmp(entry->key, key.data, key.size) == 0)) {
            break;
        }
    }
    return &map->entries[i];
}

static enum lw_status
grow(struct lw_map *map)
{
    struct lw_map larger = { .seed = map->seed, .count = map->count };
    larger.capacity = map->capacity ? 2 * map->capacity : CAPACITY_MIN;
    larger.entries = lw_alloc_array(larger.capacity, sizeof larger.entries[0]);
    if (!larger.entries) {
        return LW_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < map->capacity; i++) {
        const struct lw_map_entry *entry = &map->entries[i];
        if (entry->key) {
            struct lw_bytes key = { entry->key, entry->key_size };
            *find_place(&larger, key, entry->hash) = *entry;
        }
    }
    lw_free(map->entries);
    *map = larger;
    return LW_STATUS_OK;
}

enum lw_status
lw_map_set(struct lw_map *map, struct lw_bytes key, void *value)
{
    lw_assert(value);
    if (map->count >= map->capacity / 4 * 3 && grow(map) != LW_STATUS_OK) {
        return LW_STATUS_NO_MEMORY;
    }
    uint64_t hash = lw_hash_bytes(key.data, key.size, map->seed);
    struct lw_map_entry *entry = find_place(map, key, hash);
    if (!entry->key) {
        char *copy = lw_copy_text_n(key.data, key.size);
        if (!copy) {
            return LW_STATUS_NO_MEMORY;
        }
        *entry = (struct lw_map_entry){ .key = copy, .key_size = key.size, .hash = hash };
        map->count++;
    }
    entry->value = value;
    return LW_STATUS_OK;
}

void *
lw_map_get(const struct lw_map *map, struct lw_bytes key)
{
    if (map->count == 0) {
        return NULL;
    }
    return find_place(map, key, lw_hash_bytes(key.data, key.size, map->seed))->value;
}

/* Fills the hole with the next entry that may stand there, and so on until a free slot. */
static void
close_hole(struct lw_map *map, size_t hole)
{
    size_t mask = map->capacity - 1;
    for (size_t i = (hole + 1) & mask; map->entries[i].key; i = (i + 1) & mask) {
        size_t home = (size_t)map->entries[i].hash & mask;
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            map->entries[hole] = map->entries[i];
            hole = i;
        }
    }
    map->entries[hole] = (struct lw_map_entry){ .key = NULL };
}

void *
lw_map_remove(struct lw_map *map, struct lw_bytes key)
{
    if (map->count == 0) {
        return NULL;
    }
    struct lw_map_entry *entry = find_place(map, key,
                                            lw_hash_bytes(key.data, key.size, map->seed));
    void *value = entry->value;
    if (entry->key) {
        lw_free(entry->key);
        map->count--;
        close_hole(map, (size_t)(entry - map->entries));
    }
    return value;
}

const struct lw_map_entry *
lw_map_next(const struct lw_map *map, const struct lw_map_entry *entry)
{
    size_t i = entry ? (size_t)(entry - map->entries) + 1 : 0;
    for (; i < map->capacity; i++) {
        if (map->entries[i].key) {
            return &map->entries[i];
        }
    }
    return NULL;
}
