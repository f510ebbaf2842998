/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chains of entries. Rejected: open addressing with ids beside the pointers. A miss then touches no
 * entry, but most are removed in the order in which they came, and each removal had to move its
 * followers. What an entry holds and when it is forgotten is the consumer's affair.
 */
#include "brokers/pulsar/held.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "brokers/pulsar/entry.h"

enum { FIRST_CAPACITY = 256, RUN_BITS = 3 };

void
lw_pulsar_held_init(struct lw_pulsar_held *held, uint64_t seed)
{
    *held = (struct lw_pulsar_held){ .seed = seed };
}

void
lw_pulsar_held_deinit(struct lw_pulsar_held *held)
{
    lw_free(held->buckets);
    held->buckets = NULL;
    held->capacity = 0;
    held->count = 0;
}

/* Entries that follow each other lie in neighbouring buckets, which share a line of the cache. */
static inline size_t
hash_of(const struct lw_pulsar_held *held, uint64_t ledger, uint64_t id)
{
    uint64_t run = lw_hash_u64(id >> RUN_BITS, ledger ^ held->seed);
    return (size_t)(run << RUN_BITS | (id & ((1 << RUN_BITS) - 1)));
}

static inline struct lw_pulsar_entry **
bucket_of(const struct lw_pulsar_held *held, size_t hash)
{
    return &held->buckets[hash & (held->capacity - 1)];
}

struct lw_pulsar_entry *
lw_pulsar_held_find(const struct lw_pulsar_held *held, uint64_t ledger, uint64_t id)
{
    if (held->count == 0) {
        return NULL;
    }
    struct lw_pulsar_entry *entry = *bucket_of(held, hash_of(held, ledger, id));
    while (entry && (entry->id != id || entry->ledger != ledger)) {
        entry = entry->held_next;
    }
    return entry;
}

static inline void
put(struct lw_pulsar_held *held, struct lw_pulsar_entry *entry)
{
    struct lw_pulsar_entry **bucket = bucket_of(held, entry->held_hash);
    entry->held_next = *bucket;
    *bucket = entry;
}

__attribute__((noinline)) static bool
grow(struct lw_pulsar_held *held)
{
    struct lw_pulsar_held larger = *held;
    larger.capacity = held->capacity > 0 ? held->capacity * 2 : FIRST_CAPACITY;
    larger.buckets = lw_alloc_array(larger.capacity, sizeof(struct lw_pulsar_entry *));
    if (!larger.buckets) {
        return false;
    }
    for (size_t i = 0; i < held->capacity; i++) {
        for (struct lw_pulsar_entry *entry = held->buckets[i]; entry;) {
            struct lw_pulsar_entry *next = entry->held_next;
            put(&larger, entry);
            entry = next;
        }
    }
    lw_free(held->buckets);
    *held = larger;
    return true;
}

bool
lw_pulsar_held_add(struct lw_pulsar_held *held, struct lw_pulsar_entry *entry)
{
    if (__builtin_expect((held->count + 1) * 2 > held->capacity, 0) && !grow(held)) {
        return false;
    }
    entry->held_hash = hash_of(held, entry->ledger, entry->id);
    put(held, entry);
    held->count++;
    return true;
}

void
lw_pulsar_held_remove(struct lw_pulsar_held *held, struct lw_pulsar_entry *entry)
{
    struct lw_pulsar_entry **at = bucket_of(held, entry->held_hash);
    while (*at != entry) {
        at = &(*at)->held_next;
    }
    *at = entry->held_next;
    held->count--;
}

void
lw_pulsar_held_each(struct lw_pulsar_held *held,
                    void (*fn)(struct lw_pulsar_entry *entry, void *user), void *user)
{
    for (size_t i = 0; i < held->capacity; i++) {
        for (struct lw_pulsar_entry *entry = held->buckets[i]; entry;) {
            struct lw_pulsar_entry *next = entry->held_next;
            fn(entry, user);
            entry = next;
        }
    }
}
