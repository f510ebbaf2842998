/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choice, and the way into lanes and back. See scheduler.h for the rules.
 *
 * Owns which subscription is in the map of ready ones: exactly those that are eligible, kept so by
 * every call here. Leaves lanes to core/lane, ranks to core/ranks, and what runs to the dispatcher.
 * Loop thread only; nothing here allocates but a new key's lane.
 */
#include "core/scheduler.h"

#include "base/assert.h"
#include "core/partition.h"

enum lw_status
lw_scheduler_init(struct lw_scheduler *scheduler, uint32_t slots, uint32_t ranks,
                  uint32_t lanes_max, uint64_t seed)
{
    scheduler->slots = slots;
    scheduler->busy_slots = 0;
    scheduler->turns = 0;
    scheduler->now = NULL;
    enum lw_status status = lw_ranks_init(&scheduler->ready, ranks);
    if (status != LW_STATUS_OK) {
        return status;
    }
    status = lw_lanes_init(&scheduler->lanes, lanes_max, seed);
    if (status != LW_STATUS_OK) {
        lw_ranks_deinit(&scheduler->ready);
    }
    return status;
}

void
lw_scheduler_deinit(struct lw_scheduler *scheduler)
{
    lw_ranks_deinit(&scheduler->ready);
    lw_lanes_deinit(&scheduler->lanes);
}

void
lw_scheduler_update(struct lw_scheduler *scheduler, struct lw_subscription *subscription)
{
    if (lw_subscription_is_eligible(subscription)) {
        lw_ranks_add_in_turn(&scheduler->ready, &subscription->choose);
    } else {
        lw_ranks_remove(&scheduler->ready, &subscription->choose);
    }
}

/*
 * The ways of what waits for company, out of line: inlined, their registers would be saved on the
 * path of every message.
 */
#define APART __attribute__((noinline, cold))

APART static void
push_apart(const struct lw_scheduler *scheduler, struct lw_delivery *delivery)
{
    lw_gather_push(delivery->subscription, delivery->lane, delivery, *scheduler->now);
}

APART static struct lw_delivery *
take_apart(const struct lw_scheduler *scheduler, struct lw_subscription *subscription)
{
    struct lw_delivery *first = lw_gather_take(subscription, *scheduler->now);
    subscription->queued -= first->task_count - 1; /* its caller counts one */
    return first;
}

APART static void
put_back_apart(const struct lw_scheduler *scheduler, struct lw_delivery *delivery)
{
    lw_gather_put_back(delivery->subscription, delivery->lane, delivery, *scheduler->now);
}

APART static bool
release_apart(const struct lw_scheduler *scheduler, struct lw_lane *lane)
{
    return lw_gather_release(lane, *scheduler->now);
}

enum lw_status
lw_scheduler_admit(struct lw_scheduler *scheduler, struct lw_delivery *delivery)
{
    struct lw_subscription *subscription = delivery->subscription;
    struct lw_bytes key;
    delivery->lane = NULL;
    if (lw_scheduler_lane_key(subscription, &delivery->message, &key)) {
        struct lw_lane *lane = lw_lanes_find(&scheduler->lanes, subscription,
                                             delivery->partition->place, key);
        if (__builtin_expect(!lane, 0)) {
            return LW_STATUS_NO_MEMORY;
        }
        delivery->lane = lane;
    }
    if (__builtin_expect(subscription->is_batched, 0)) {
        push_apart(scheduler, delivery);
    } else if (delivery->lane) {
        lw_lane_push(delivery->lane, delivery);
    } else {
        lw_queue_push(&subscription->loose, &delivery->link);
    }
    subscription->queued++;
    lw_scheduler_join(scheduler, subscription);
    return LW_STATUS_OK;
}

static struct lw_delivery *
take_loose(struct lw_subscription *subscription)
{
    struct lw_queue_node *node = lw_queue_pop(&subscription->loose);
    return LW_CONTAINER(node, struct lw_delivery, link);
}

/* A lane that blocks a commit first; then lanes and loose ones take turns. */
static inline struct lw_delivery *
take_next(struct lw_subscription *subscription)
{
    struct lw_list *lane = lw_list_first(&subscription->urgent);
    if (!lane) {
        lane = lw_list_first(&subscription->ready);
        bool has_loose = subscription->loose.first != NULL;
        if (has_loose && (!lane || subscription->takes_loose)) {
            subscription->takes_loose = false;
            return take_loose(subscription);
        }
        subscription->takes_loose = has_loose;
    }
    return lw_lane_take(LW_CONTAINER(lane, struct lw_lane, link));
}

struct lw_delivery *
lw_scheduler_choose(struct lw_scheduler *scheduler)
{
    if (scheduler->busy_slots >= scheduler->slots) {
        return NULL;
    }
    struct lw_rank_node *node = lw_ranks_first(&scheduler->ready);
    if (!node) {
        return NULL;
    }
    struct lw_subscription *subscription = LW_CONTAINER(node, struct lw_subscription, choose);
    struct lw_delivery *delivery = __builtin_expect(subscription->is_batched, 0)
                                       ? take_apart(scheduler, subscription)
                                       : take_next(subscription);
    lw_scheduler_take_slot(scheduler, subscription);
    subscription->queued--;
    if (lw_subscription_is_eligible(subscription)) {
        lw_ranks_rotate(&scheduler->ready, node);
    } else {
        lw_ranks_remove(&scheduler->ready, node);
    }
    return delivery;
}

void
lw_scheduler_release(struct lw_scheduler *scheduler, struct lw_delivery *delivery)
{
    if (!delivery->lane) {
        return;
    }
    bool is_ready = delivery->subscription->is_batched
                        ? release_apart(scheduler, delivery->lane)
                        : lw_lane_release(delivery->lane);
    delivery->lane = NULL;
    if (is_ready) {
        lw_scheduler_join(scheduler, delivery->subscription);
    }
}

void
lw_scheduler_requeue(struct lw_scheduler *scheduler, struct lw_delivery *delivery)
{
    struct lw_subscription *subscription = delivery->subscription;
    if (__builtin_expect(subscription->is_batched, 0)) {
        put_back_apart(scheduler, delivery);
    } else if (delivery->lane) {
        lw_lane_put_back(delivery->lane, delivery);
    } else {
        lw_queue_push_front(&subscription->loose, &delivery->link);
    }
    subscription->queued++;
    lw_scheduler_join(scheduler, subscription);
}

void
lw_scheduler_remove(struct lw_scheduler *scheduler, struct lw_delivery *delivery)
{
    struct lw_subscription *subscription = delivery->subscription;
    if (subscription->is_batched) {
        lw_gather_remove(subscription, delivery->lane, delivery, *scheduler->now);
    } else if (delivery->lane) {
        lw_lane_remove(delivery->lane, delivery);
    } else {
        lw_queue_remove(&subscription->loose, &delivery->link);
    }
    delivery->lane = NULL;
    subscription->queued--;
    lw_scheduler_update(scheduler, subscription);
}

void
lw_scheduler_expire(struct lw_scheduler *scheduler, struct lw_subscription *subscription)
{
    lw_gather_expire(subscription, *scheduler->now);
    lw_scheduler_update(scheduler, subscription);
}

void
lw_scheduler_hurry_gather(struct lw_scheduler *scheduler, struct lw_subscription *subscription)
{
    lw_gather_hurry(subscription, *scheduler->now);
    lw_scheduler_update(scheduler, subscription);
}

void
lw_scheduler_close_gather(struct lw_scheduler *scheduler, struct lw_subscription *subscription)
{
    lw_gather_close(subscription, *scheduler->now);
    lw_scheduler_update(scheduler, subscription);
}
