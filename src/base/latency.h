/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long things take now: durations of the last one to two minutes, for quantiles. Two windows
 * of a minute each in turn; buckets are log-linear, 32 to a power of two, so that a duration is
 * told at most 1.6 % off. Resolution 1 us, all above 73 minutes counts as 73 minutes; 7 KiB.
 * Pure, one thread; adding is a dozen instructions without a branch. A histogram over all time
 * is base/histogram: it would tell of yesterday.
 *
 * Zeroed memory is empty. What is added is seen once lw_latency_turn was called in its minute.
 */
#ifndef LW_BASE_LATENCY_H
#define LW_BASE_LATENCY_H

#include <stdbool.h>
#include <stdint.h>

#define LW_LATENCY_BUCKETS 896
#define LW_LATENCY_MINUTE_NS UINT64_C(60000000000)

struct lw_latency {
    uint32_t first;      /* of the window that is written */
    uint64_t minutes[2]; /* of each window: the minute it tells of */
    uint32_t counts[2 * LW_LATENCY_BUCKETS];
};

/* Adds `count` durations of `ns` each. */
static inline void
lw_latency_add(struct lw_latency *latency, uint64_t ns, uint32_t count)
{
    uint64_t units = ns >> 10;
    units = units < UINT32_MAX ? units : UINT32_MAX;
    unsigned shift = 58u - (unsigned)__builtin_clzll(units | 32);
    uint32_t bucket = (shift << 5) + (uint32_t)(units >> shift);
    latency->counts[latency->first + bucket] += count;
}

/* Begins the minute's window, if that has not happened yet; now in monotonic ns. */
void lw_latency_turn(struct lw_latency *latency, uint64_t now);
/* Writes quantile q (0..1) of the present and the last minute; false when nothing was added. */
bool
lw_latency_quantile(const struct lw_latency *latency, uint64_t now, double q, uint64_t *ret_ns);

#endif
