/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of the entries that a consumer must know again when the broker sends them once more:
 * what waits here, what the dispatcher holds, what is acknowledged and not yet confirmed. From
 * (ledger, entry) to the entry; a bucket is a chain through the entries (`held_next`), at most
 * half as many of them as there are buckets, so that to remove one moves no other. The hash is
 * seeded. The entries are the consumer's. Loop thread.
 */
#ifndef LW_BROKERS_PULSAR_HELD_H
#define LW_BROKERS_PULSAR_HELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lw_pulsar_entry;

struct lw_pulsar_held {
    struct lw_pulsar_entry **buckets;
    size_t capacity; /* a power of two, or 0 */
    size_t count;
    uint64_t seed;
};

void lw_pulsar_held_init(struct lw_pulsar_held *held, uint64_t seed);
void lw_pulsar_held_deinit(struct lw_pulsar_held *held);
/* NULL: not there. */
struct lw_pulsar_entry *
lw_pulsar_held_find(const struct lw_pulsar_held *held, uint64_t ledger, uint64_t id);
/* None of its ledger and id is there yet. False without memory. */
bool lw_pulsar_held_add(struct lw_pulsar_held *held, struct lw_pulsar_entry *entry);
/* It is there. */
void lw_pulsar_held_remove(struct lw_pulsar_held *held, struct lw_pulsar_entry *entry);
/* Calls fn for each; fn may remove the one it was given, and no other. */
void lw_pulsar_held_each(struct lw_pulsar_held *held,
                         void (*fn)(struct lw_pulsar_entry *entry, void *user), void *user);

#endif
