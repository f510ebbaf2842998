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
    uint64_t turns;      /* slots ever taken: whose turn was when */
    const uint64_t *now; /* the host's time, for what waits for company */
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
    subscription->choose.turn = ++scheduler->turns;
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

/* Queues a new delivery in its lane, or unordered. NO_MEMORY: nothing happened. */
enum lw_status lw_scheduler_admit(struct lw_scheduler *scheduler, struct lw_delivery *delivery);

/* Nothing waits anywhere, a slot is free, and nothing forbids the subscription to run. */
static inline bool
lw_scheduler_may_start(const struct lw_scheduler *scheduler,
                       const struct lw_subscription *subscription)
{
    return scheduler->ready.top == 0 && scheduler->busy_slots < scheduler->slots &&
           lw_subscription_may_run(subscription);
}

/* The key that names its lane; false: it is unordered. */
static inline bool
lw_scheduler_lane_key(const struct lw_subscription *subscription,
                      const struct lw_message *message, struct lw_bytes *ret_key)
{
    *ret_key = message->ordering_key.data ? message->ordering_key : message->key;
    switch ((enum lw_lanes_kind)subscription->lanes) {
    case LW_LANES_KEY:
        return true;
    case LW_LANES_NONE:
        return false;
    case LW_LANES_KEYED:
        return ret_key->data != NULL;
    case LW_LANES_PARTITION:
        *ret_key = (struct lw_bytes){ NULL, 0 };
        return true;
    }
    return false;
}

/*
 * Takes a slot and the delivery that is next for it; NULL when nothing is eligible or free. Where
 * the handler takes several at once it is the first of a task, the others by task_next.
 */
struct lw_delivery *lw_scheduler_choose(struct lw_scheduler *scheduler);
/* The delivery ended: its lane goes on. */
void lw_scheduler_release(struct lw_scheduler *scheduler, struct lw_delivery *delivery);
/* A parked delivery is due, or a submit was refused: first in its lane again. */
void lw_scheduler_requeue(struct lw_scheduler *scheduler, struct lw_delivery *delivery);
/* Takes a QUEUED delivery out (revoke, drain). */
void lw_scheduler_remove(struct lw_scheduler *scheduler, struct lw_delivery *delivery);
/* Of a subscription with is_batched: what has waited long enough for company may be chosen. */
void lw_scheduler_expire(struct lw_scheduler *scheduler, struct lw_subscription *subscription);
/* Of one: what waits for company now may be chosen, since no more can come. */
void
lw_scheduler_hurry_gather(struct lw_scheduler *scheduler, struct lw_subscription *subscription);
/* Of one: nothing waits for company from now on. */
void
lw_scheduler_close_gather(struct lw_scheduler *scheduler, struct lw_subscription *subscription);
#endif
