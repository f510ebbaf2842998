/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table from 64-bit ids to what they name: consumers, producers and requests of a connection.
 * Open addressing, at most half full, removal shifts the followers back. Values are never NULL.
 * Every message goes through one look-up, so that is inline. Loop thread.
 */
#ifndef LW_BROKERS_PULSAR_IDS_H
#define LW_BROKERS_PULSAR_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lw_pulsar_ids {
    struct lw_pulsar_id_slot {
        uint64_t id;
        void *value; /* NULL: free */
    } * slots;
    size_t capacity; /* a power of two, or 0 */
    size_t count;
};

/* Adds or replaces; false without memory. */
bool lw_pulsar_ids_set(struct lw_pulsar_ids *ids, uint64_t id, void *value);
void lw_pulsar_ids_remove(struct lw_pulsar_ids *ids, uint64_t id); /* harmless if absent */
void lw_pulsar_ids_deinit(struct lw_pulsar_ids *ids);

static inline size_t
lw_pulsar_ids_place(uint64_t id, size_t capacity)
{
    return (size_t)(id * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (capacity - 1);
}

/* NULL: not there. */
static inline void *
lw_pulsar_ids_get(const struct lw_pulsar_ids *ids, uint64_t id)
{
    if (ids->count == 0) {
        return NULL;
    }
    size_t at = lw_pulsar_ids_place(id, ids->capacity);
    while (ids->slots[at].value && ids->slots[at].id != id) {
        at = (at + 1) & (ids->capacity - 1);
    }
    return ids->slots[at].value;
}

#endif
