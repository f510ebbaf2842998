/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lane: the deliveries of one ordering key in order; at most one of them runs (P3). A lane is
 * named by (subscription, partition number, exact key), null key apart from empty; partition
 * order uses one lane per partition. It outlives ownerships: a message of a new generation
 * queues behind a still running one of the old.
 *
 * Lanes live in one open-addressing table per dispatcher (hash and pointer a slot, load <= 0.5,
 * backward-shift delete) and come from a pool. A lane without deliveries is idle; idle lanes are
 * kept for reuse up to a bound (oldest freed first), so a key that comes back costs no insert.
 *
 * Where a lane is, is one of: idle list, `ready` ring of its subscription (has a head, nothing
 * runs), `urgent` ring (the same, and its head is the lowest unfinished of its partition), or in
 * none because it is busy: a delivery of it is RUNNING, JUDGED, PARKED or PUBLISHING.
 */
#ifndef LW_CORE_LANE_H
#define LW_CORE_LANE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/pool.h"
#include "core/delivery.h"

#define LW_LANE_KEY_INLINE 40

enum lw_lane_place { LW_LANE_IDLE, LW_LANE_READY, LW_LANE_URGENT, LW_LANE_BUSY };

struct lw_lane {
    struct lw_list link;
    struct lw_queue waiting;
    struct lw_subscription *subscription;
    const void *key; /* inline_key, or allocated when longer */
    uint64_t hash;
    uint32_t key_size; /* UINT32_MAX: the null key */
    int32_t partition;
    uint8_t place; /* enum lw_lane_place */
    struct lw_delivery *busy; /* the one that holds the lane */
    uint8_t inline_key[LW_LANE_KEY_INLINE];
};

struct lw_lane_slot {
    uint64_t hash;
    struct lw_lane *lane; /* NULL: empty */
};

struct lw_lanes {
    struct lw_lane_slot *slots;
    uint64_t mask;
    uint32_t count;     /* lanes in the table */
    uint32_t idle_max;  /* idle lanes kept */
    uint32_t idle_count;
    struct lw_list idle; /* oldest first */
    uint64_t seed;
    struct lw_pool pool;
};

enum lw_status lw_lanes_init(struct lw_lanes *lanes, uint32_t lanes_max, uint64_t seed);
void lw_lanes_deinit(struct lw_lanes *lanes);
/* Finds or makes the lane; NULL without memory. `key` null is a key of its own. */
struct lw_lane *lw_lanes_find(struct lw_lanes *lanes, struct lw_subscription *subscription,
                              int32_t partition, struct lw_bytes key);
/* Frees idle lanes above the bound (all: every idle lane). */
void lw_lanes_trim(struct lw_lanes *lanes, bool all);

/* Appends; the lane becomes ready when it was idle. */
void lw_lane_push(struct lw_lanes *lanes, struct lw_lane *lane, struct lw_delivery *delivery);
/* Takes the head to run it; the lane is busy with it. The lane was ready or urgent. */
struct lw_delivery *lw_lane_take(struct lw_lane *lane);
/* The delivery that held the lane goes back to its head (in-place retry is due). */
void lw_lane_put_back(struct lw_lane *lane, struct lw_delivery *delivery);
/* The delivery that held the lane is gone: ready again, or idle. */
void lw_lane_release(struct lw_lanes *lanes, struct lw_lane *lane);
/* Removes a QUEUED delivery from wherever it waits (revoke, drain). */
void lw_lane_remove(struct lw_lanes *lanes, struct lw_lane *lane, struct lw_delivery *delivery);
/* Its head became the lowest unfinished of its partition: to the urgent ring, if ready. */
void lw_lane_promote(struct lw_lane *lane);
/* Would running its head next unblock a commit? */
bool lw_lane_is_blocking(const struct lw_lane *lane);

#endif
