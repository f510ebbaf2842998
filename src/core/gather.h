/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages that wait for company: a handler that takes several at once is called when `size` of
 * them are here, or `bytes`, or the first that could run has waited `wait`. Until then they stay
 * QUEUED, in their lanes and in order, and hold no slot; a task is put together when it is taken.
 *
 * Of one key at a time, each lane waits for itself and joins its subscription's ready lanes, and
 * messages without order wait together. Of several keys, all that could run is one pool. What
 * waits together has one place in the ready ring, the token, while a task may be taken of it.
 * What ran in company and failed, so that nobody knows whose fault it was, is alone from then on.
 *
 * Called through core/scheduler.h, for subscriptions with `is_batched` only. Pure; `now` comes
 * in; nothing allocates. Loop thread.
 */
#ifndef LW_CORE_GATHER_H
#define LW_CORE_GATHER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

struct lw_delivery;
struct lw_lane;
struct lw_subscription;

/* Why a task was put together when it was. */
enum lw_gather_reason {
    LW_GATHER_SIZE,  /* as many as it may have */
    LW_GATHER_BYTES, /* as large as it may be */
    LW_GATHER_WAIT,  /* the first had waited long enough, or ran before */
    LW_GATHER_LIMIT, /* no more can come: the subscription's limits are reached */
    LW_GATHER_CLOSE, /* no more will come */
    LW_GATHER_ALONE, /* it may have no company */
    LW_GATHER_REASONS
};

struct lw_gather {
    uint32_t size;  /* messages of a task, at most */
    uint64_t bytes; /* of keys and values; a task that has so many takes no further one */
    uint64_t wait_ns;
    bool has_many;         /* tasks of several keys */
    bool is_closing;       /* nothing waits for company any more */
    bool is_due;           /* the pool may be taken, whatever it has */
    struct lw_list lanes;  /* that wait for company, by lw_lane.since */
    struct lw_queue loose; /* without order */
    uint32_t count; /* messages of the pool: loose ones, and with has_many of the lanes */
    uint64_t pool_bytes;
    struct lw_list token; /* in the subscription's ready lanes: the pool may be taken */
    uint64_t reasons[LW_GATHER_REASONS];
};

void lw_gather_init(struct lw_gather *gather);

/* A new message, at the end of its lane; NULL: it has no order. */
void lw_gather_push(struct lw_subscription *subscription, struct lw_lane *lane,
                    struct lw_delivery *delivery, uint64_t now);
/*
 * Takes a task: its first member, the others by task_next, those of one lane next to each other
 * and in order. The subscription has something ready.
 */
struct lw_delivery *lw_gather_take(struct lw_subscription *subscription, uint64_t now);
/* One that was taken is over; true when something is ready by that. */
bool lw_gather_release(struct lw_lane *lane, uint64_t now);
/* One that was taken waits again, before all others of its lane (NULL: of those without order). */
void lw_gather_put_back(struct lw_subscription *subscription, struct lw_lane *lane,
                        struct lw_delivery *delivery, uint64_t now);
/* Takes one out that waits. */
void lw_gather_remove(struct lw_subscription *subscription, struct lw_lane *lane,
                      struct lw_delivery *delivery, uint64_t now);
/* Time went on: what has waited long enough is ready. */
void lw_gather_expire(struct lw_subscription *subscription, uint64_t now);
/* When lw_gather_expire has something to do; LW_NEVER: not before something else happens. */
uint64_t lw_gather_next(const struct lw_subscription *subscription);
/* What a message waits with. */
struct lw_company {
    uint32_t count; /* messages, itself included */
    uint64_t due;   /* when they go without more */
};
/* Does this QUEUED one, which is in no stash, wait for company? */
bool lw_gather_find(const struct lw_delivery *delivery, struct lw_company *ret_company);
/* Nothing more can come before something ends: what waits now is ready. */
void lw_gather_hurry(struct lw_subscription *subscription, uint64_t now);
/* Nothing more will come: all is ready, now and from now on. */
void lw_gather_close(struct lw_subscription *subscription, uint64_t now);

#endif
