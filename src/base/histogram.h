/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log-linear histogram, 16 sub-buckets per power of two: a quantile is at most 6.25 % off, and
 * never above the largest value. Zeroed memory is an empty histogram. Pure, one thread.
 */
#ifndef LW_BASE_HISTOGRAM_H
#define LW_BASE_HISTOGRAM_H

#include <stdint.h>

#define LW_HISTOGRAM_BUCKETS 976

struct lw_histogram {
    uint64_t count;
    uint64_t sum;
    uint64_t max;
    uint64_t buckets[LW_HISTOGRAM_BUCKETS];
};

void lw_histogram_add(struct lw_histogram *histogram, uint64_t value);
/* Upper bound of the bucket that holds quantile q (0..1); 0 when empty. */
uint64_t lw_histogram_quantile(const struct lw_histogram *histogram, double q);
void lw_histogram_merge(struct lw_histogram *into, const struct lw_histogram *from);

#endif
