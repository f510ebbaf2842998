/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays for the members of batches, which all consumers of a client share: one that is given back
 * is kept for the next batch of about its size, up to a bound in all. What is in a taken one is
 * not set. Sizes are powers of two; what is larger than the largest is not kept. Loop thread.
 */
#ifndef LW_BROKERS_PULSAR_ARRAYS_H
#define LW_BROKERS_PULSAR_ARRAYS_H

#include <stddef.h>
#include <stdint.h>

enum { LW_PULSAR_ARRAY_CLASSES = 15, LW_PULSAR_SPARE_ARRAY_BYTES_MAX = 4 * 1024 * 1024 };

struct lw_pulsar_arrays {
    struct lw_pulsar_array *spare[LW_PULSAR_ARRAY_CLASSES];
    size_t spare_bytes;
};

/* Zeroed is empty. All arrays are given back before. */
void lw_pulsar_arrays_deinit(struct lw_pulsar_arrays *arrays);
/* Aligned to 16; NULL: no memory. */
void *lw_pulsar_arrays_take(struct lw_pulsar_arrays *arrays, size_t bytes);
void lw_pulsar_arrays_give(struct lw_pulsar_arrays *arrays, void *array);

#endif
