/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lane: the deliveries of one ordering key in order; at most one of them runs (P3). A lane is
 * named by (subscription, partition number, exact key), null key apart from empty; partition
 * order uses one lane per partition. It outlives ownerships: a message of a new generation
 * queues behind a still running one of the old.
 *
 * Lanes live in one open-addressing table per dispatcher (hash and pointer a slot, load <= 0.5,
 * backward-shift delete) and come from a pool. A lane without deliveries is idle and stays in the
 * table, so a key that comes back costs no insert; above a bound each new key frees idle lanes
 * that a clock hand meets (a list in order of use would cost every message two list operations).
 *
 * Where a lane is, is one of: nowhere (idle), `ready` ring of its subscription (has a head, nothing
 * runs), `urgent` ring (the same, and its head is the lowest unfinished of its partition), or in
 * none because it is busy: a delivery of it is RUNNING, JUDGED, PARKED or PUBLISHING. Where a
 * handler takes several messages at once there is one more, the lanes that wait for company.
 */
#ifndef LW_CORE_LANE_H
#define LW_CORE_LANE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/list.h"
#include "base/pool.h"
#include "core/delivery.h"

#define LW_LANE_KEY_INLINE 48
#define LW_LANE_NULL_KEY UINT32_MAX

enum lw_lane_place {
    LW_LANE_IDLE,
    LW_LANE_READY,
    LW_LANE_URGENT,
    LW_LANE_BUSY,
    LW_LANE_GATHERING /* waits for company, core/gather.h */
};

struct lw_lane {
    struct lw_list link;
    struct lw_queue waiting;
    struct lw_subscription *subscription;
    uint64_t place_id; /* lw_partition.place: subscription and partition number */
    const void *key;   /* inline_key, or allocated when longer */
    uint64_t hash;
    uint32_t key_size; /* LW_LANE_NULL_KEY: the null key */
    uint8_t place;     /* enum lw_lane_place */
    bool runs_again;   /* while it is busy: one that came back waits, see core/gather.h */
    uint8_t inline_key[LW_LANE_KEY_INLINE];
    /* Kept where handlers take several messages at once, core/gather.h: */
    uint32_t count;  /* messages that wait */
    uint32_t others; /* in hand beside the one that makes it busy */
    uint64_t bytes;  /* of those that wait */
    uint64_t since;  /* when it began to wait for company */
};

struct lw_lane_slot {
    uint64_t hash;
    struct lw_lane *lane; /* NULL: empty */
};

struct lw_lanes {
    struct lw_lane_slot *slots;
    uint64_t mask;
    uint32_t count;    /* lanes in the table */
    uint32_t kept_max; /* above it idle ones are freed */
    uint64_t hand;     /* slot where the search for idle lanes goes on */
    uint64_t seed;
    struct lw_pool pool;
};

enum lw_status lw_lanes_init(struct lw_lanes *lanes, uint32_t lanes_max, uint64_t seed);
void lw_lanes_deinit(struct lw_lanes *lanes);
/* The exact name of (subscription, partition number) that lanes are kept under. */
uint64_t lw_lane_place(const struct lw_subscription *subscription, int32_t partition);
/* Makes the lane that was not found. */
struct lw_lane *lw_lanes_insert(struct lw_lanes *lanes, struct lw_subscription *subscription,
                                uint64_t place, const void *key, uint32_t size, uint64_t hash);

/* Equality of two keys of one size; short ones without a call. */
static inline bool
lw_lane_is_same_key(const unsigned char *a, const unsigned char *b, uint32_t size)
{
    if (size >= 8) {
        if (size > 16) {
            return memcmp(a, b, size) == 0;
        }
        return ((lw_hash_load8(a) ^ lw_hash_load8(b)) |
                (lw_hash_load8(a + size - 8) ^ lw_hash_load8(b + size - 8))) == 0;
    }
    if (size >= 4) {
        return ((lw_hash_load4(a) ^ lw_hash_load4(b)) |
                (lw_hash_load4(a + size - 4) ^ lw_hash_load4(b + size - 4))) == 0;
    }
    for (uint32_t i = 0; i < size; i++) {
        if (a[i] != b[i]) {
            return false;
        }
    }
    return true;
}

static inline uint64_t
lw_lane_hash(const struct lw_lanes *lanes, uint64_t place, const void *key, uint32_t size)
{
    if (__builtin_expect(size == LW_LANE_NULL_KEY, 0)) {
        return lw_hash_u64(place, ~lanes->seed);
    }
    return lw_hash_bytes(key, size, lanes->seed + place * LW_HASH_P1);
}

/* Finds or makes the lane; NULL without memory. `key` null is a key of its own. */
LW_INLINE struct lw_lane *
lw_lanes_find(struct lw_lanes *lanes, struct lw_subscription *subscription, uint64_t place,
              struct lw_bytes key)
{
    uint32_t size = key.data ? (uint32_t)key.size : LW_LANE_NULL_KEY;
    uint64_t hash = lw_lane_hash(lanes, place, key.data, size);
    const struct lw_lane_slot *slots = lanes->slots;
    uint64_t at = hash & lanes->mask;
    struct lw_lane *lane;
    while ((lane = slots[at].lane) != NULL) {
        if (slots[at].hash == hash && lane->place_id == place && lane->key_size == size &&
            (size == LW_LANE_NULL_KEY || lw_lane_is_same_key(lane->key, key.data, size))) {
            return lane;
        }
        at = (at + 1) & lanes->mask;
    }
    return lw_lanes_insert(lanes, subscription, place, key.data, size, hash);
}

/* Frees every idle lane. */
void lw_lanes_trim(struct lw_lanes *lanes);

/* Something waits and nothing of it is in hand: into the ring that fits its head. */
void lw_lane_enter_ready(struct lw_lane *lane);
/* Appends; the lane becomes ready when it was idle. */
void lw_lane_push(struct lw_lane *lane, struct lw_delivery *delivery);
/* Takes the head to run it; the lane is busy with it. The lane was ready or urgent. */
struct lw_delivery *lw_lane_take(struct lw_lane *lane);
/* The delivery that held the lane goes back to its head (in-place retry is due). */
void lw_lane_put_back(struct lw_lane *lane, struct lw_delivery *delivery);
/* The delivery that held the lane is gone: ready again (true), or idle. */
bool lw_lane_release(struct lw_lane *lane);
/* Removes a QUEUED delivery from wherever it waits (revoke, drain). */
void lw_lane_remove(struct lw_lane *lane, struct lw_delivery *delivery);
/* Its head became the lowest unfinished of its partition: to the urgent ring, if ready. */
void lw_lane_promote(struct lw_lane *lane);
/* Would running its head next unblock a commit? */
bool lw_lane_is_blocking(const struct lw_lane *lane);

#endif
