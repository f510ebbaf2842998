/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the next delivery: best priority; in it round robin over subscriptions; in the
 * subscription first a lane whose head blocks a commit, then round robin over its ready lanes
 * (P4). The slot is taken first: ask only while `free_slots` > 0. All O(1). A subscription is in
 * the map exactly while lw_subscription_is_eligible.
 */
#ifndef LW_CORE_SCHEDULER_H
#define LW_CORE_SCHEDULER_H

#include "core/lane.h"
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
/* Queues a new delivery (its lane, or the loose queue). */
enum lw_status lw_scheduler_admit(struct lw_scheduler *scheduler, struct lw_delivery *delivery);
/* Takes a slot and the delivery that is next for it; NULL when nothing is eligible or free. */
struct lw_delivery *lw_scheduler_choose(struct lw_scheduler *scheduler);
/* The handler call ended: its slot is free. */
void lw_scheduler_free_slot(struct lw_scheduler *scheduler, struct lw_subscription *subscription);
/* The delivery ended: its lane goes on. */
void lw_scheduler_release(struct lw_scheduler *scheduler, struct lw_delivery *delivery);
/* A parked delivery is due, or a submit was refused: first in its lane again. */
void lw_scheduler_requeue(struct lw_scheduler *scheduler, struct lw_delivery *delivery);
/* Takes a QUEUED delivery out (revoke, drain). */
void lw_scheduler_remove(struct lw_scheduler *scheduler, struct lw_delivery *delivery);
/* Call after anything that eligibility depends on changed from outside. */
void lw_scheduler_update(struct lw_scheduler *scheduler, struct lw_subscription *subscription);

#endif
