/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A binary heap by due time; an entry knows its place, from 1, so that it can be taken out from
 * anywhere. When to look is the consumer's affair.
 */
#include "brokers/pulsar/nacks.h"

#include "base/alloc.h"

void
lw_pulsar_nacks_init(struct lw_pulsar_nacks *nacks)
{
    *nacks = (struct lw_pulsar_nacks){ .heap = NULL };
}

void
lw_pulsar_nacks_deinit(struct lw_pulsar_nacks *nacks)
{
    lw_free(nacks->heap);
    lw_pulsar_nacks_init(nacks);
}

static void
put(struct lw_pulsar_nacks *nacks, size_t place, struct lw_pulsar_entry *entry)
{
    nacks->heap[place - 1] = entry;
    entry->nack_place = place;
}

static void
rise(struct lw_pulsar_nacks *nacks, struct lw_pulsar_entry *entry, size_t place)
{
    while (place > 1 && nacks->heap[place / 2 - 1]->nack_due > entry->nack_due) {
        put(nacks, place, nacks->heap[place / 2 - 1]);
        place /= 2;
    }
    put(nacks, place, entry);
}

static void
sink(struct lw_pulsar_nacks *nacks, struct lw_pulsar_entry *entry, size_t place)
{
    for (size_t child = place * 2; child <= nacks->count; child = place * 2) {
        if (child < nacks->count &&
            nacks->heap[child]->nack_due < nacks->heap[child - 1]->nack_due) {
            child++;
        }
        if (nacks->heap[child - 1]->nack_due >= entry->nack_due) {
            break;
        }
        put(nacks, place, nacks->heap[child - 1]);
        place = child;
    }
    put(nacks, place, entry);
}

static bool
reserve(struct lw_pulsar_nacks *nacks)
{
    if (nacks->count < nacks->capacity) {
        return true;
    }
    size_t capacity = nacks->capacity > 0 ? nacks->capacity * 2 : 64;
    struct lw_pulsar_entry **heap = lw_resize_array(nacks->heap, capacity,
                                                    sizeof(struct lw_pulsar_entry *));
    if (!heap) {
        return false;
    }
    nacks->heap = heap;
    nacks->capacity = capacity;
    return true;
}

bool
lw_pulsar_nacks_add(struct lw_pulsar_nacks *nacks, struct lw_pulsar_entry *entry, uint64_t due)
{
    if (entry->nack_place > 0) {
        if (due > entry->nack_due) {
            entry->nack_due = due;
            sink(nacks, entry, entry->nack_place);
        }
        return true;
    }
    if (!reserve(nacks)) {
        return false;
    }
    entry->nack_due = due;
    rise(nacks, entry, ++nacks->count);
    return true;
}

void
lw_pulsar_nacks_remove(struct lw_pulsar_nacks *nacks, struct lw_pulsar_entry *entry)
{
    size_t place = entry->nack_place;
    if (place == 0) {
        return;
    }
    struct lw_pulsar_entry *last = nacks->heap[--nacks->count];
    entry->nack_place = 0;
    if (last != entry) {
        rise(nacks, last, place);
        sink(nacks, last, last->nack_place);
    }
}

uint64_t
lw_pulsar_nacks_next(const struct lw_pulsar_nacks *nacks)
{
    return nacks->count > 0 ? nacks->heap[0]->nack_due : UINT64_MAX;
}

struct lw_pulsar_entry *
lw_pulsar_nacks_pop(struct lw_pulsar_nacks *nacks, uint64_t now)
{
    if (lw_pulsar_nacks_next(nacks) > now || nacks->count == 0) {
        return NULL;
    }
    struct lw_pulsar_entry *entry = nacks->heap[0];
    lw_pulsar_nacks_remove(nacks, entry);
    return entry;
}

uint64_t
lw_pulsar_nacks_delay(uint64_t delay, uint64_t delay_max, double multiplier,
                      uint32_t redeliveries)
{
    for (uint32_t i = 0; i < redeliveries && delay < delay_max; i++) {
        double next = (double)delay * multiplier;
        if (next >= (double)delay_max) {
            return delay_max;
        }
        if ((uint64_t)next <= delay) {
            return delay; /* it does not grow */
        }
        delay = (uint64_t)next;
    }
    return delay;
}
