/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buckets of the log-linear histogram: values below 16 have one each; above, a value's highest
 * bit chooses a group of 16 and the next four bits the bucket in it. 16 + 60 * 16 = 976 buckets
 * cover all of uint64. Pure; one thread, readers copy (base/publish).
 */
#include "base/histogram.h"

enum { SUB_BITS = 4, SUB_COUNT = 1 << SUB_BITS };

static unsigned
bucket_of(uint64_t value)
{
    if (value < SUB_COUNT) {
        return (unsigned)value;
    }
    unsigned shift = 63u - (unsigned)__builtin_clzll(value) - SUB_BITS;
    return (shift << SUB_BITS) + (unsigned)(value >> shift);
}

/* Returns the largest value of a bucket. */
static uint64_t
upper_bound(unsigned bucket)
{
    if (bucket < SUB_COUNT) {
        return bucket;
    }
    unsigned shift = (bucket >> SUB_BITS) - 1;
    uint64_t first = (uint64_t)(SUB_COUNT + bucket % SUB_COUNT) << shift;
    return first + ((UINT64_C(1) << shift) - 1);
}

void
lw_histogram_add(struct lw_histogram *histogram, uint64_t value)
{
    histogram->count++;
    histogram->sum += value;
    histogram->max = value > histogram->max ? value : histogram->max;
    histogram->buckets[bucket_of(value)]++;
}

uint64_t
lw_histogram_quantile(const struct lw_histogram *histogram, double q)
{
    if (histogram->count == 0) {
        return 0;
    }
    double wanted = q * (double)histogram->count;
    uint64_t seen = 0;
    for (unsigned i = 0; i < LW_HISTOGRAM_BUCKETS; i++) {
        seen += histogram->buckets[i];
        if (seen > 0 && (double)seen >= wanted) {
            uint64_t bound = upper_bound(i);
            return bound < histogram->max ? bound : histogram->max;
        }
    }
    return histogram->max;
}

void
lw_histogram_merge(struct lw_histogram *into, const struct lw_histogram *from)
{
    into->count += from->count;
    into->sum += from->sum;
    into->max = from->max > into->max ? from->max : into->max;
    for (unsigned i = 0; i < LW_HISTOGRAM_BUCKETS; i++) {
        into->buckets[i] += from->buckets[i];
    }
}
