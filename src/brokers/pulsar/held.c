/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linear probing over (ledger, entry) beside the pointer, so that a miss touches no entry. What
 * an entry holds and when it is forgotten is the consumer's affair.
 */
#include "brokers/pulsar/held.h"

#include "base/alloc.h"
#include "base/hash.h"

enum { FIRST_CAPACITY = 256 };

void
lw_pulsar_held_init(struct lw_pulsar_held *held, uint64_t seed)
{
    *held = (struct lw_pulsar_held){ .seed = seed, .miss.at = SIZE_MAX };
}

void
lw_pulsar_held_deinit(struct lw_pulsar_held *held)
{
    lw_free(held->slots);
    held->slots = NULL;
    held->capacity = 0;
    held->count = 0;
}

static inline size_t
place_of(const struct lw_pulsar_held *held, uint64_t ledger, uint64_t id)
{
    return (size_t)lw_hash_u64(id, ledger ^ held->seed) & (held->capacity - 1);
}

/* Where it is, or the free slot where it would be. */
static inline size_t
seek_slot(const struct lw_pulsar_held *held, uint64_t ledger, uint64_t id)
{
    size_t at = place_of(held, ledger, id);
    while (held->slots[at].entry &&
           (held->slots[at].id != id || held->slots[at].ledger != ledger)) {
        at = (at + 1) & (held->capacity - 1);
    }
    return at;
}

struct lw_pulsar_entry *
lw_pulsar_held_find(struct lw_pulsar_held *held, uint64_t ledger, uint64_t id)
{
    if (held->capacity == 0) {
        return NULL;
    }
    size_t at = seek_slot(held, ledger, id);
    held->miss.ledger = ledger;
    held->miss.id = id;
    held->miss.at = at;
    return held->slots[at].entry;
}

static bool
grow(struct lw_pulsar_held *held)
{
    struct lw_pulsar_held larger = *held;
    larger.miss.at = SIZE_MAX;
    larger.capacity = held->capacity > 0 ? held->capacity * 2 : FIRST_CAPACITY;
    larger.slots = lw_alloc_array(larger.capacity, sizeof *larger.slots);
    if (!larger.slots) {
        return false;
    }
    for (size_t i = 0; i < held->capacity; i++) {
        const struct lw_pulsar_held_slot *slot = &held->slots[i];
        if (slot->entry) {
            larger.slots[seek_slot(&larger, slot->ledger, slot->id)] = *slot;
        }
    }
    lw_free(held->slots);
    *held = larger;
    return true;
}

bool
lw_pulsar_held_add(struct lw_pulsar_held *held, uint64_t ledger, uint64_t id,
                   struct lw_pulsar_entry *entry)
{
    if ((held->count + 1) * 4 > held->capacity * 3 && !grow(held)) {
        return false;
    }
    bool is_known = held->miss.at != SIZE_MAX && held->miss.id == id &&
                    held->miss.ledger == ledger;
    size_t at = is_known ? held->miss.at : seek_slot(held, ledger, id);
    held->slots[at] = (struct lw_pulsar_held_slot){ ledger, id, entry };
    held->miss.at = SIZE_MAX;
    held->count++;
    return true;
}

/* Closes the gap: whoever probed over it moves into it. */
static void
shift_back(struct lw_pulsar_held *held, size_t gap)
{
    size_t mask = held->capacity - 1;
    for (size_t at = (gap + 1) & mask; held->slots[at].entry; at = (at + 1) & mask) {
        size_t home = place_of(held, held->slots[at].ledger, held->slots[at].id);
        if (((at - home) & mask) >= ((at - gap) & mask)) {
            held->slots[gap] = held->slots[at];
            gap = at;
        }
    }
    held->slots[gap].entry = NULL;
}

void
lw_pulsar_held_remove(struct lw_pulsar_held *held, uint64_t ledger, uint64_t id)
{
    if (held->count == 0) {
        return;
    }
    size_t at = seek_slot(held, ledger, id);
    held->miss.at = SIZE_MAX; /* places move */
    if (held->slots[at].entry) {
        held->count--;
        shift_back(held, at);
    }
}

void
lw_pulsar_held_each(struct lw_pulsar_held *held,
                    void (*fn)(struct lw_pulsar_entry *entry, void *user), void *user)
{
    for (size_t i = 0; i < held->capacity; i++) {
        struct lw_pulsar_entry *seen = NULL;
        while (held->slots[i].entry && held->slots[i].entry != seen) {
            seen = held->slots[i].entry;
            fn(seen, user);
        }
    }
}
