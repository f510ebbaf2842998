/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Publications that wait, first in first out: those accepted before their topic or producer is
 * ready, and those of a refused batch, which go to the front to be sent one by one. Its owner
 * reserves a place for everything it has accepted, so that putting back never fails. Pure.
 */
#ifndef LW_BROKERS_PULSAR_PRODUCER_RING_H
#define LW_BROKERS_PULSAR_PRODUCER_RING_H

#include <laneway/plugin.h>

struct lw_pulsar_waiting {
    struct lw_publication *publication;
    uint64_t deadline; /* of its receipt; LW_NEVER: none */
    bool is_alone;     /* its batch was refused */
};

struct lw_pulsar_ring { /* begins as zeros */
    struct lw_pulsar_waiting *items;
    uint32_t capacity; /* a power of two, or 0 */
    uint32_t first;
    uint32_t count;
};

/* Room for `count` in all; false without memory. */
bool lw_pulsar_ring_reserve(struct lw_pulsar_ring *ring, uint32_t count);
void lw_pulsar_ring_push(struct lw_pulsar_ring *ring, struct lw_pulsar_waiting item);
void lw_pulsar_ring_push_front(struct lw_pulsar_ring *ring, struct lw_pulsar_waiting item);
/* Of a ring that is not empty. */
const struct lw_pulsar_waiting *lw_pulsar_ring_first(const struct lw_pulsar_ring *ring);
struct lw_pulsar_waiting lw_pulsar_ring_pop(struct lw_pulsar_ring *ring);
void lw_pulsar_ring_deinit(struct lw_pulsar_ring *ring);

#endif
