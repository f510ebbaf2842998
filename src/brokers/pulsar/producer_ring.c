/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring that doubles. Growing moves the older part, so places are always computed.
 */
#include "brokers/pulsar/producer_ring.h"

#include "base/alloc.h"
#include "base/assert.h"

enum { FIRST_CAPACITY = 16 };

static uint32_t
place(const struct lw_pulsar_ring *ring, uint32_t index)
{
    return (ring->first + index) & (ring->capacity - 1);
}

bool
lw_pulsar_ring_reserve(struct lw_pulsar_ring *ring, uint32_t count)
{
    if (count <= ring->capacity) {
        return true;
    }
    uint32_t capacity = ring->capacity ? ring->capacity : FIRST_CAPACITY;
    while (capacity < count) {
        capacity *= 2;
    }
    struct lw_pulsar_waiting *items = lw_alloc_array(capacity, sizeof *items);
    if (!items) {
        return false;
    }
    for (uint32_t i = 0; i < ring->count; i++) {
        items[i] = ring->items[place(ring, i)];
    }
    lw_free(ring->items);
    ring->items = items;
    ring->capacity = capacity;
    ring->first = 0;
    return true;
}

void
lw_pulsar_ring_push(struct lw_pulsar_ring *ring, struct lw_pulsar_waiting item)
{
    lw_assert(ring->count < ring->capacity);
    ring->items[place(ring, ring->count)] = item;
    ring->count++;
}

void
lw_pulsar_ring_push_front(struct lw_pulsar_ring *ring, struct lw_pulsar_waiting item)
{
    lw_assert(ring->count < ring->capacity);
    ring->first = (ring->first - 1) & (ring->capacity - 1);
    ring->items[ring->first] = item;
    ring->count++;
}

const struct lw_pulsar_waiting *
lw_pulsar_ring_first(const struct lw_pulsar_ring *ring)
{
    lw_assert(ring->count > 0);
    return &ring->items[ring->first];
}

struct lw_pulsar_waiting
lw_pulsar_ring_pop(struct lw_pulsar_ring *ring)
{
    struct lw_pulsar_waiting item = *lw_pulsar_ring_first(ring);
    ring->first = (ring->first + 1) & (ring->capacity - 1);
    ring->count--;
    return item;
}

void
lw_pulsar_ring_deinit(struct lw_pulsar_ring *ring)
{
    lw_free(ring->items);
    *ring = (struct lw_pulsar_ring){ 0 };
}
