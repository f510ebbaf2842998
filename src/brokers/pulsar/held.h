/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of the entries that a consumer must know again when the broker sends them once more:
 * what waits here, what the dispatcher holds, what is acknowledged and not yet confirmed. From
 * (ledger, entry) to the entry; open addressing, at most three quarters full, removal shifts the
 * followers back. The entries are the consumer's. Loop thread.
 */
#ifndef LW_BROKERS_PULSAR_HELD_H
#define LW_BROKERS_PULSAR_HELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lw_pulsar_entry;

struct lw_pulsar_held_slot {
    uint64_t ledger;
    uint64_t id;                   /* of the entry in its ledger */
    struct lw_pulsar_entry *entry; /* NULL: free */
};

struct lw_pulsar_held {
    struct lw_pulsar_held_slot *slots;
    size_t capacity; /* a power of two, or 0 */
    size_t count;
    uint64_t seed;
    struct {
        uint64_t ledger;
        uint64_t id;
        size_t at;
    } miss; /* where the last one that was not found would be */
};

void lw_pulsar_held_init(struct lw_pulsar_held *held, uint64_t seed);
void lw_pulsar_held_deinit(struct lw_pulsar_held *held);
/* NULL: not there. */
struct lw_pulsar_entry *
lw_pulsar_held_find(struct lw_pulsar_held *held, uint64_t ledger, uint64_t id);
/* It is not there yet. False without memory. */
bool lw_pulsar_held_add(struct lw_pulsar_held *held, uint64_t ledger, uint64_t id,
                        struct lw_pulsar_entry *entry);
void lw_pulsar_held_remove(struct lw_pulsar_held *held, uint64_t ledger, uint64_t id);
/* Calls fn for each; fn may remove the one it was given, and may be given one twice. */
void lw_pulsar_held_each(struct lw_pulsar_held *held,
                         void (*fn)(struct lw_pulsar_entry *entry, void *user), void *user);

#endif
