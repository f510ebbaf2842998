/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many permits a consumer grants. The broker charges a permit for every message and forgets
 * about it afterwards: with Shared it stops at one batch beyond, the other types send as many
 * entries as there are permits before they count. So on those a permit stands for an entry: the
 * room is divided by the largest recent number of messages in one. What was charged and is not
 * queued here (discarded, a copy, a chunk) makes room again by itself. Grants are coalesced: half
 * of the window, or all of it when nothing is out. Pure.
 */
#ifndef LW_BROKERS_PULSAR_PERMITS_H
#define LW_BROKERS_PULSAR_PERMITS_H

#include <stdbool.h>
#include <stdint.h>

struct lw_pulsar_permits {
    bool is_exact; /* Shared: the broker stops when they are used up */
    uint32_t window_max;
    uint64_t bytes_max;
    uint32_t demand; /* messages that may be out and queued */
    uint64_t demand_bytes;
    int64_t out; /* granted and not charged; below 0 when over-drawn */
    uint32_t queued;
    uint64_t queued_bytes;
    uint32_t largest; /* messages of an entry, in this period and the one before */
    uint32_t largest_before;
    uint32_t entries;      /* of this period */
    uint64_t bytes_scaled; /* mean bytes of a message, times 16 */
    uint64_t granted;
};

void lw_pulsar_permits_init(struct lw_pulsar_permits *permits, bool is_exact,
                            uint32_t window_max, uint64_t bytes_max);
/* A new session: what was granted before is void. */
void lw_pulsar_permits_begin(struct lw_pulsar_permits *permits);
void
lw_pulsar_permits_demand(struct lw_pulsar_permits *permits, uint32_t messages, uint64_t bytes);
/* An entry came for which the broker charged so many; `bytes` is its payload. */
void
lw_pulsar_permits_charge(struct lw_pulsar_permits *permits, uint32_t messages, uint64_t bytes);
/* What to grant now; counts it. 0: nothing. Never brings `out` above the window. */
uint32_t lw_pulsar_permits_grant(struct lw_pulsar_permits *permits);

static inline void
lw_pulsar_permits_queue(struct lw_pulsar_permits *permits, uint64_t bytes)
{
    permits->queued++;
    permits->queued_bytes += bytes;
}

/* Messages left the queue. */
static inline void
lw_pulsar_permits_unqueue(struct lw_pulsar_permits *permits, uint32_t count, uint64_t bytes)
{
    permits->queued -= count;
    permits->queued_bytes -= bytes;
}

/* They were taken: they are not outstanding any more, the demand has got them. */
static inline void
lw_pulsar_permits_take(struct lw_pulsar_permits *permits, uint32_t count, uint64_t bytes)
{
    lw_pulsar_permits_unqueue(permits, count, bytes);
    permits->demand -= count < permits->demand ? count : permits->demand;
    permits->demand_bytes -= bytes < permits->demand_bytes ? bytes : permits->demand_bytes;
}

#endif
