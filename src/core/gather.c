/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Putting tasks of several messages together; the rules are in gather.h. Each message moves into
 * and out of its waiting place once, so a task costs O(its members), however many keys wait.
 *
 * `since` of the lanes that wait ascends, as they are appended with the present time; so the first
 * of them is due first. It counts from when a lane could have run, not from the receipt: what
 * waited for its key as long already waits for nobody.
 */
#include "core/gather.h"

#include "base/assert.h"
#include "base/timers.h"
#include "core/lane.h"
#include "core/subscription.h"

void
lw_gather_init(struct lw_gather *gather)
{
    lw_list_init(&gather->lanes);
    lw_list_init(&gather->token);
}

static struct lw_delivery *
head_of(const struct lw_queue *queue)
{
    return LW_CONTAINER(queue->first, struct lw_delivery, link);
}

static struct lw_lane *
first_lane(const struct lw_gather *gather)
{
    struct lw_list *node = lw_list_first(&gather->lanes);
    return node ? LW_CONTAINER(node, struct lw_lane, link) : NULL;
}

static bool
has_waited(const struct lw_gather *gather, uint64_t since, uint64_t now)
{
    return now - since >= gather->wait_ns;
}

/* Waiting is of no use: no more can come, or none will. */
static bool
is_pointless(const struct lw_subscription *subscription)
{
    return subscription->gather.is_closing || subscription->limits.is_stopped;
}

/* -- the pool -------------------------------------------------------------------------------- */

/* Since when the first of the pool could have run. */
static uint64_t
pool_since(const struct lw_gather *gather)
{
    uint64_t since = UINT64_MAX;
    const struct lw_lane *lane = gather->has_many ? first_lane(gather) : NULL;
    if (lane) {
        since = lane->since;
    }
    if (gather->loose.first && head_of(&gather->loose)->received_at < since) {
        since = head_of(&gather->loose)->received_at;
    }
    return since;
}

static bool
may_take_pool(const struct lw_subscription *subscription, uint64_t now)
{
    const struct lw_gather *gather = &subscription->gather;
    return gather->count >= gather->size || gather->pool_bytes >= gather->bytes ||
           gather->is_due || is_pointless(subscription) ||
           has_waited(gather, pool_since(gather), now);
}

/* Once it may be taken it stays so until it is: what is ready never stops being it by itself. */
static void
update_pool(struct lw_subscription *subscription, uint64_t now)
{
    struct lw_gather *gather = &subscription->gather;
    if (gather->count == 0) {
        lw_list_remove(&gather->token);
    } else if (lw_list_is_empty(&gather->token) && may_take_pool(subscription, now)) {
        lw_list_push(&subscription->ready, &gather->token);
    }
}

static void
add_to_pool(struct lw_gather *gather, uint32_t count, uint64_t bytes)
{
    gather->count += count;
    gather->pool_bytes += bytes;
}

static void
take_from_pool(struct lw_gather *gather, uint32_t count, uint64_t bytes)
{
    lw_assert(gather->count >= count && gather->pool_bytes >= bytes);
    gather->count -= count;
    gather->pool_bytes -= bytes;
    gather->is_due = gather->is_due && gather->count > 0;
}

/* -- lanes ----------------------------------------------------------------------------------- */

static bool
is_full(const struct lw_gather *gather, const struct lw_lane *lane)
{
    return lane->count >= gather->size || lane->bytes >= gather->bytes;
}

static void
join_pool(struct lw_subscription *subscription, struct lw_lane *lane, uint64_t now)
{
    struct lw_gather *gather = &subscription->gather;
    lane->place = LW_LANE_GATHERING;
    lane->since = now;
    lw_list_push(&gather->lanes, &lane->link);
    add_to_pool(gather, lane->count, lane->bytes);
    gather->is_due = gather->is_due ||
                     has_waited(gather, head_of(&lane->waiting)->received_at, now);
}

/* Something waits and nothing of it is in hand: where it waits for company, or is ready. */
static void
enter(struct lw_lane *lane, uint64_t now)
{
    struct lw_subscription *subscription = lane->subscription;
    struct lw_gather *gather = &subscription->gather;
    const struct lw_delivery *head = head_of(&lane->waiting);
    if (gather->has_many && !head->is_alone) {
        join_pool(subscription, lane, now);
        update_pool(subscription, now);
    } else if (head->is_alone || is_full(gather, lane) || is_pointless(subscription) ||
               has_waited(gather, head->received_at, now)) {
        lw_lane_enter_ready(lane);
    } else {
        lane->place = LW_LANE_GATHERING;
        lane->since = now;
        lw_list_push(&gather->lanes, &lane->link);
    }
}

/* Out of where it waits, to be put elsewhere. */
static void
leave(struct lw_lane *lane)
{
    struct lw_gather *gather = &lane->subscription->gather;
    if (lane->place == LW_LANE_GATHERING && gather->has_many) {
        take_from_pool(gather, lane->count, lane->bytes);
    }
    lw_list_remove(&lane->link);
}

static void
ready_first_lane(struct lw_gather *gather)
{
    struct lw_lane *lane = first_lane(gather);
    lw_list_remove(&lane->link);
    lw_lane_enter_ready(lane);
}

/* All lanes that wait each for itself, up to those that began at `since`. */
static void
ready_lanes(struct lw_gather *gather, uint64_t since)
{
    const struct lw_lane *lane;
    while (!gather->has_many && (lane = first_lane(gather)) != NULL && lane->since <= since) {
        ready_first_lane(gather);
    }
}

/* -- coming ---------------------------------------------------------------------------------- */

static void
push_loose(struct lw_subscription *subscription, struct lw_delivery *delivery)
{
    struct lw_gather *gather = &subscription->gather;
    if (delivery->is_alone) {
        lw_queue_push(&subscription->loose, &delivery->link);
        return;
    }
    lw_queue_push(&gather->loose, &delivery->link);
    add_to_pool(gather, 1, delivery->held_bytes);
}

static void
push_lane(struct lw_gather *gather, struct lw_lane *lane, struct lw_delivery *delivery,
          uint64_t now)
{
    lw_queue_push(&lane->waiting, &delivery->link);
    lane->count++;
    lane->bytes += delivery->held_bytes;
    if (lane->place == LW_LANE_IDLE) {
        enter(lane, now);
    } else if (lane->place == LW_LANE_GATHERING && gather->has_many) {
        add_to_pool(gather, 1, delivery->held_bytes);
    } else if (lane->place == LW_LANE_GATHERING && is_full(gather, lane)) {
        lw_list_remove(&lane->link);
        lw_lane_enter_ready(lane);
    }
}

void
lw_gather_push(struct lw_subscription *subscription, struct lw_lane *lane,
               struct lw_delivery *delivery, uint64_t now)
{
    struct lw_gather *gather = &subscription->gather;
    if (lane) {
        push_lane(gather, lane, delivery, now);
    } else {
        push_loose(subscription, delivery);
    }
    if (is_pointless(subscription)) {
        ready_lanes(gather, UINT64_MAX);
    }
    update_pool(subscription, now);
}

/* -- taking ---------------------------------------------------------------------------------- */

struct task {
    struct lw_delivery *first;
    struct lw_delivery *last;
    uint32_t count;
    uint64_t bytes;
};

static void
add(struct task *task, struct lw_delivery *delivery)
{
    delivery->task_next = NULL;
    if (task->last) {
        task->last->task_next = delivery;
    } else {
        task->first = delivery;
    }
    task->last = delivery;
    task->count++;
    task->bytes += delivery->held_bytes;
}

static bool
has_room(const struct lw_gather *gather, const struct task *task)
{
    return task->count < gather->size && task->bytes < gather->bytes;
}

/* The lane is in no list. Takes at least one of it. */
static void
take_of_lane(const struct lw_gather *gather, struct lw_lane *lane, struct task *task)
{
    uint32_t before = task->count;
    do {
        struct lw_delivery *delivery = head_of(&lane->waiting);
        lw_queue_pop(&lane->waiting);
        lane->count--;
        lane->bytes -= delivery->held_bytes;
        add(task, delivery);
    } while (lane->waiting.first && has_room(gather, task) && !task->last->is_alone &&
             !head_of(&lane->waiting)->is_alone);
    lane->others = task->count - before - 1;
    lane->place = LW_LANE_BUSY;
}

/* The older one first: a message without order, or a lane. */
static void
take_oldest(struct lw_gather *gather, struct task *task)
{
    struct lw_lane *lane = gather->has_many ? first_lane(gather) : NULL;
    if (gather->loose.first && (!lane || head_of(&gather->loose)->received_at < lane->since)) {
        struct lw_delivery *delivery = head_of(&gather->loose);
        lw_queue_pop(&gather->loose);
        take_from_pool(gather, 1, delivery->held_bytes);
        add(task, delivery);
        return;
    }
    lw_assert(lane != NULL);
    leave(lane);
    take_of_lane(gather, lane, task);
}

static void
take_pool(struct lw_subscription *subscription, struct task *task, uint64_t now)
{
    struct lw_gather *gather = &subscription->gather;
    while (gather->count > 0 && has_room(gather, task)) {
        take_oldest(gather, task);
    }
    lw_list_remove(&gather->token); /* its next turn is the last */
    update_pool(subscription, now);
}

static void
count_reason(struct lw_subscription *subscription, const struct task *task)
{
    struct lw_gather *gather = &subscription->gather;
    enum lw_gather_reason reason = LW_GATHER_WAIT;
    if (task->first->is_alone) {
        reason = LW_GATHER_ALONE;
    } else if (task->count >= gather->size) {
        reason = LW_GATHER_SIZE;
    } else if (task->bytes >= gather->bytes) {
        reason = LW_GATHER_BYTES;
    } else if (gather->is_closing) {
        reason = LW_GATHER_CLOSE;
    } else if (subscription->limits.is_stopped) {
        reason = LW_GATHER_LIMIT;
    }
    gather->reasons[reason]++;
}

/* What comes back alone and without order takes turns with the lanes. */
static bool
takes_loose(struct lw_subscription *subscription, const struct lw_list *node)
{
    bool has_loose = subscription->loose.first != NULL;
    bool takes = has_loose && (!node || subscription->takes_loose);
    subscription->takes_loose = has_loose && !takes;
    return takes;
}

struct lw_delivery *
lw_gather_take(struct lw_subscription *subscription, uint64_t now)
{
    struct lw_gather *gather = &subscription->gather;
    struct task task = { .first = NULL };
    struct lw_list *node = lw_list_first(&subscription->urgent);
    if (!node) {
        node = lw_list_first(&subscription->ready);
        if (takes_loose(subscription, node)) {
            struct lw_delivery *delivery = head_of(&subscription->loose);
            lw_queue_pop(&subscription->loose);
            add(&task, delivery);
            node = NULL;
        }
    }
    if (node == &gather->token) {
        take_pool(subscription, &task, now);
    } else if (node) {
        lw_list_remove(node);
        take_of_lane(gather, LW_CONTAINER(node, struct lw_lane, link), &task);
    }
    lw_assert(task.first != NULL);
    task.first->task_count = task.count;
    count_reason(subscription, &task);
    return task.first;
}

/* -- coming back ----------------------------------------------------------------------------- */

/* It ran already, so it waits for nobody. */
static void
enter_again(struct lw_lane *lane, uint64_t now)
{
    struct lw_subscription *subscription = lane->subscription;
    struct lw_gather *gather = &subscription->gather;
    lane->runs_again = false;
    if (gather->has_many && !head_of(&lane->waiting)->is_alone) {
        join_pool(subscription, lane, now);
        gather->is_due = true;
        update_pool(subscription, now);
    } else {
        lw_lane_enter_ready(lane);
    }
}

bool
lw_gather_release(struct lw_lane *lane, uint64_t now)
{
    if (lane->others > 0) {
        lane->others--;
        return false;
    }
    if (!lane->waiting.first) {
        lane->place = LW_LANE_IDLE;
        lane->runs_again = false;
        return false;
    }
    if (lane->runs_again) {
        enter_again(lane, now);
    } else {
        enter(lane, now);
    }
    return lw_subscription_has_ready(lane->subscription);
}

static void
put_back_loose(struct lw_subscription *subscription, struct lw_delivery *delivery, uint64_t now)
{
    struct lw_gather *gather = &subscription->gather;
    if (delivery->is_alone) {
        lw_queue_push_front(&subscription->loose, &delivery->link);
        return;
    }
    lw_queue_push_front(&gather->loose, &delivery->link);
    add_to_pool(gather, 1, delivery->held_bytes);
    gather->is_due = true;
    update_pool(subscription, now);
}

void
lw_gather_put_back(struct lw_subscription *subscription, struct lw_lane *lane,
                   struct lw_delivery *delivery, uint64_t now)
{
    if (!lane) {
        put_back_loose(subscription, delivery, now);
        return;
    }
    lw_assert(lane->place == LW_LANE_BUSY);
    lw_queue_push_front(&lane->waiting, &delivery->link);
    lane->count++;
    lane->bytes += delivery->held_bytes;
    if (lane->others > 0) {
        lane->others--;
        lane->runs_again = true;
    } else {
        enter_again(lane, now);
    }
}

/* Its lane keeps its place, unless nothing waits any more or only what is alone. */
static void
remove_of_lane(struct lw_lane *lane, struct lw_delivery *delivery, uint64_t now)
{
    struct lw_gather *gather = &lane->subscription->gather;
    bool is_gathering = lane->place == LW_LANE_GATHERING;
    lw_queue_remove(&lane->waiting, &delivery->link);
    lane->count--;
    lane->bytes -= delivery->held_bytes;
    if (is_gathering && gather->has_many) {
        take_from_pool(gather, 1, delivery->held_bytes);
    }
    if (lane->place == LW_LANE_BUSY) {
        return;
    }
    if (!lane->waiting.first) {
        lw_list_remove(&lane->link);
        lane->place = LW_LANE_IDLE;
    } else if (is_gathering && head_of(&lane->waiting)->is_alone) {
        leave(lane);
        enter(lane, now);
    }
}

void
lw_gather_remove(struct lw_subscription *subscription, struct lw_lane *lane,
                 struct lw_delivery *delivery, uint64_t now)
{
    struct lw_gather *gather = &subscription->gather;
    if (lane) {
        remove_of_lane(lane, delivery, now);
    } else if (delivery->is_alone) {
        lw_queue_remove(&subscription->loose, &delivery->link);
    } else {
        lw_queue_remove(&gather->loose, &delivery->link);
        take_from_pool(gather, 1, delivery->held_bytes);
    }
    update_pool(subscription, now);
}

/* -- time ------------------------------------------------------------------------------------ */

void
lw_gather_expire(struct lw_subscription *subscription, uint64_t now)
{
    struct lw_gather *gather = &subscription->gather;
    if (now >= gather->wait_ns) {
        ready_lanes(gather, now - gather->wait_ns);
    }
    update_pool(subscription, now);
}

static uint64_t
due_of(const struct lw_gather *gather, uint64_t since)
{
    uint64_t due;
    return __builtin_add_overflow(since, gather->wait_ns, &due) ? LW_NEVER : due;
}

uint64_t
lw_gather_next(const struct lw_subscription *subscription)
{
    const struct lw_gather *gather = &subscription->gather;
    const struct lw_lane *lane = gather->has_many ? NULL : first_lane(gather);
    uint64_t next = lane ? due_of(gather, lane->since) : LW_NEVER;
    if (gather->count > 0 && lw_list_is_empty(&gather->token)) {
        uint64_t due = due_of(gather, pool_since(gather));
        next = due < next ? due : next;
    }
    return next;
}

bool
lw_gather_find(const struct lw_delivery *delivery, struct lw_company *ret_company)
{
    const struct lw_subscription *subscription = delivery->subscription;
    const struct lw_gather *gather = &subscription->gather;
    const struct lw_lane *lane = delivery->lane;
    bool is_of_lane = lane && !gather->has_many;
    if (!subscription->is_batched || delivery->is_alone ||
        (lane && lane->place != LW_LANE_GATHERING) ||
        (!is_of_lane && !lw_list_is_empty(&gather->token))) {
        return false;
    }
    *ret_company = (struct lw_company){
        .count = is_of_lane ? lane->count : gather->count,
        .due = due_of(gather, is_of_lane ? lane->since : pool_since(gather)),
    };
    return true;
}

void
lw_gather_hurry(struct lw_subscription *subscription, uint64_t now)
{
    struct lw_gather *gather = &subscription->gather;
    gather->is_due = gather->count > 0;
    ready_lanes(gather, UINT64_MAX);
    update_pool(subscription, now);
}

void
lw_gather_close(struct lw_subscription *subscription, uint64_t now)
{
    subscription->gather.is_closing = true;
    ready_lanes(&subscription->gather, UINT64_MAX);
    update_pool(subscription, now);
}
