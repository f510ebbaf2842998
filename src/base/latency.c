/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slow half of recent durations: a new minute, and quantiles. Buckets 0 to 63 are one unit
 * (1,024 ns) each; then every 32 buckets are twice as wide. A bucket is told by its middle.
 */
#include "base/latency.h"

#include <string.h>

void
lw_latency_turn(struct lw_latency *latency, uint64_t now)
{
    uint64_t minute = now / LW_LATENCY_MINUTE_NS;
    uint32_t window = (uint32_t)(minute & 1);
    if (latency->minutes[window] == minute) {
        return;
    }
    latency->minutes[window] = minute;
    latency->first = window * LW_LATENCY_BUCKETS;
    memset(&latency->counts[latency->first], 0, LW_LATENCY_BUCKETS * sizeof(uint32_t));
}

static uint64_t
middle_of(uint32_t bucket)
{
    uint32_t shift = bucket < 64 ? 0 : (bucket >> 5) - 1;
    uint64_t first = bucket < 64 ? bucket : (UINT64_C(32) + bucket % 32) << shift;
    return (first << 10) + (UINT64_C(512) << shift);
}

/* How many of the bucket the windows hold that are not too old. */
static uint64_t
count_of(const struct lw_latency *latency, uint64_t now, uint32_t bucket)
{
    uint64_t minute = now / LW_LATENCY_MINUTE_NS;
    uint64_t count = 0;
    for (uint32_t window = 0; window < 2; window++) {
        bool is_recent = minute - latency->minutes[window] <= 1;
        count += is_recent ? latency->counts[window * LW_LATENCY_BUCKETS + bucket] : 0;
    }
    return count;
}

bool
lw_latency_quantile(const struct lw_latency *latency, uint64_t now, double q, uint64_t *ret_ns)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < LW_LATENCY_BUCKETS; i++) {
        total += count_of(latency, now, i);
    }
    uint64_t seen = 0;
    for (uint32_t i = 0; i < LW_LATENCY_BUCKETS; i++) {
        seen += count_of(latency, now, i);
        if (seen > 0 && (double)seen >= q * (double)total) {
            *ret_ns = middle_of(i);
            return true;
        }
    }
    return false;
}
