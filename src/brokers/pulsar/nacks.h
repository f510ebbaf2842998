/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries that wait for their redelivery to be asked for: a heap by due time, each entry in it
 * once, removed from any place in O(log n). Time comes in as a number. Allocates only to grow.
 */
#ifndef LW_BROKERS_PULSAR_NACKS_H
#define LW_BROKERS_PULSAR_NACKS_H

#include "brokers/pulsar/entry.h"

struct lw_pulsar_nacks {
    struct lw_pulsar_entry **heap;
    size_t count;
    size_t capacity;
};

void lw_pulsar_nacks_init(struct lw_pulsar_nacks *nacks);
void lw_pulsar_nacks_deinit(struct lw_pulsar_nacks *nacks);
/* Adds, or moves to the later of both times. False without memory. */
bool
lw_pulsar_nacks_add(struct lw_pulsar_nacks *nacks, struct lw_pulsar_entry *entry, uint64_t due);
void lw_pulsar_nacks_remove(struct lw_pulsar_nacks *nacks, struct lw_pulsar_entry *entry);
/* UINT64_MAX: none waits. */
uint64_t lw_pulsar_nacks_next(const struct lw_pulsar_nacks *nacks);
/* Takes one that is due; NULL: none. */
struct lw_pulsar_entry *lw_pulsar_nacks_pop(struct lw_pulsar_nacks *nacks, uint64_t now);
/*
 * When to ask for it again: the delay, times the multiplier per redelivery, up to `delay_max` if
 * that is more.
 */
uint64_t lw_pulsar_nacks_delay(uint64_t delay, uint64_t delay_max, double multiplier,
                               uint32_t redeliveries);

#endif
