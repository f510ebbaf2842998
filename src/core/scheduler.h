/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the next delivery: best priority; in it round robin over subscriptions; in the
 * subscription first a lane whose head blocks a commit, then round robin over its ready lanes
 * (P4). The slot is taken first: ask only while `free_slots` > 0. All O(1). A subscription is in
 * the map exactly while lw_subscription_is_eligible.
 */
#ifndef LW_CORE_SCHEDULER_H
#define LW_CORE_SCHEDULER_H

#include "base/assert.h"
#include "core/lane.h"
#include "core/partition.h"
#include "core/ranks.h"
#include "core/subscription.h"

struct lw_scheduler {
    struct lw_ranks ready;
    struct lw_lanes lanes;
    uint32_t slots;
    uint32_t busy_slots;
};

enum lw_status lw_scheduler_init(struct lw_scheduler *scheduler, uint32_t slots, uint32_t ranks,
                                 uint32_t lanes_max, uint64_t seed);
void lw_scheduler_deinit(struct lw_scheduler *scheduler);
/* Call after anything that eligibility depends on changed from outside. */
void lw_scheduler_update(struct lw_scheduler *scheduler, struct lw_subscription *subscription);

static inline void
lw_scheduler_join(struct lw_scheduler *scheduler, struct lw_subscription *subscription)
{
    if (!subscription->choose.is_in) {
        lw_scheduler_update(scheduler, subscription);
    }
}

static inline void
lw_scheduler_take_slot(struct lw_scheduler *scheduler, struct lw_subscription *subscription)
{
    scheduler->busy_slots++;
    subscription->running++;
}

/* The handler call ended: its slot is free. */
static inline void
lw_scheduler_free_slot(struct lw_scheduler *scheduler, struct lw_subscription *subscription)
{
    lw_assert(scheduler->busy_slots > 0 && subscription->running > 0);
    scheduler->busy_slots--;
    subscription->running--;
    if (__builtin_expect(subscription->concurrency != 0, 0)) {
        lw_scheduler_join(scheduler, subscription);
    }
}

enum lw_admitted {
    LW_ADMITTED_WAITS,  /* in its lane or the loose queue */
    LW_ADMITTED_STARTS, /* it would be chosen at once: it has a slot and its lane now */
    LW_ADMITTED_NOT     /* no memory for its lane: nothing happened */
};

/* Queues a new delivery whose lane is known (NULL: unordered). */
void lw_scheduler_queue(struct lw_scheduler *scheduler, struct lw_delivery *delivery);
/* Finds its lane and queues it. */
enum lw_admitted lw_scheduler_admit(struct lw_scheduler *scheduler, struct lw_delivery *delivery);

/* Nothing waits anywhere, a slot is free, and nothing forbids the subscription to run. */
static inline bool
lw_scheduler_may_start(const struct lw_scheduler *scheduler,
                       const struct lw_subscription *subscription)
{
    return scheduler->ready.top == 0 && scheduler->busy_slots < scheduler->slots &&
           lw_subscription_may_run(subscription);
}

/* The key that names its lane; false: it is unordered. */
LW_INLINE bool
lw_scheduler_lane_key(const struct lw_delivery *delivery, struct lw_bytes *ret_key)
{
    const struct lw_message *message = &delivery->message;
    uint8_t kind = delivery->subscription->lanes;
    *ret_key = message->ordering_key.data ? message->ordering_key : message->key;
    if (__builtin_expect(kind == LW_LANES_KEY, 1)) {
        return true;
    }
    if (kind == LW_LANES_PARTITION) {
        *ret_key = (struct lw_bytes){NULL, 0};
        return true;
    }
    return kind == LW_LANES_KEYED && ret_key->data != NULL;
}

/*
 * Queues a new delivery, or takes it at once when the choice could only fall on it: nothing is
 * ready anywhere, a slot is free, its lane is idle, and (is_alone) no other subscription of its
 * priority or better could be received first.
 */
LW_INLINE enum lw_admitted
lw_scheduler_admit_or_start(struct lw_scheduler *scheduler, struct lw_delivery *delivery,
                            bool is_alone)
{
    struct lw_subscription *subscription = delivery->subscription;
    struct lw_lane *lane = NULL;
    struct lw_bytes key;
    if (lw_scheduler_lane_key(delivery, &key)) {
        lane = lw_lanes_find(&scheduler->lanes, subscription, delivery->partition->place, key);
        if (__builtin_expect(!lane, 0)) {
            delivery->lane = NULL;
            return LW_ADMITTED_NOT;
        }
    }
    delivery->lane = lane;
    bool is_free = lane ? lane->place == LW_LANE_IDLE : subscription->loose.first == NULL;
    if (__builtin_expect(is_alone && is_free && lw_scheduler_may_start(scheduler, subscription),
                         1)) {
        if (lane) {
            lane->place = LW_LANE_BUSY;
        }
        lw_scheduler_take_slot(scheduler, subscription);
        return LW_ADMITTED_STARTS;
    }
    lw_scheduler_queue(scheduler, delivery);
    return LW_ADMITTED_WAITS;
}

/* Takes a slot and the delivery that is next for it; NULL when nothing is eligible or free. */
struct lw_delivery *lw_scheduler_choose(struct lw_scheduler *scheduler);
/* The delivery ended: its lane goes on. */
void lw_scheduler_release(struct lw_scheduler *scheduler, struct lw_delivery *delivery);
/* A parked delivery is due, or a submit was refused: first in its lane again. */
void lw_scheduler_requeue(struct lw_scheduler *scheduler, struct lw_delivery *delivery);
/* Takes a QUEUED delivery out (revoke, drain). */
void lw_scheduler_remove(struct lw_scheduler *scheduler, struct lw_delivery *delivery);
#endif
