/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What engines do with tasks of several deliveries: claims, deadlines and words to all members,
 * and the call of a C function that takes them at once. The arrays of a call belong to the thread
 * that makes it and are made once, so that a call allocates nothing.
 */
#ifndef LW_ENGINES_COMMON_BATCH_H
#define LW_ENGINES_COMMON_BATCH_H

#include "engines/handler.h"

/* The arguments of a call. */
struct lw_batch_room {
    struct lw_delivery **deliveries;
    enum lw_verdict *verdicts;
};

/* Room for `size` members; false without memory. */
bool lw_batch_room_init(struct lw_batch_room *room, uint32_t size);
void lw_batch_room_deinit(struct lw_batch_room *room);
/* Calls the handler and leaves its answers in the members; on the thread that runs handlers. */
void lw_batch_call(const struct lw_handler_options *options, struct lw_batch_room *room,
                   struct lw_delivery *first);
/*
 * Calls the asynchronous handler with all members, of which only the first can be finished, once its
 * own deadline is set. Loop thread.
 */
void lw_batch_call_async(const struct lw_handler_options *options, struct lw_batch_room *room,
                         struct lw_delivery *first);
/* Leaves what was said of a task in its members, once its answer is claimed. Any thread. */
void lw_batch_take(struct lw_delivery *first, const enum lw_verdict verdicts[], size_t count);

/* Sets the deadline of all and claims their answers: nobody else may finish one of them. */
static inline void
lw_batch_claim(struct lw_delivery *first, uint64_t deadline)
{
    for (struct lw_delivery *member = first; member; member = member->task_next) {
        member->deadline = deadline;
        lw_run_claim_first(member);
    }
}

/* All members of a task whose time is over are told. Loop thread. */
static inline void
lw_batch_set_late(struct lw_delivery *first)
{
    for (struct lw_delivery *member = first; member; member = member->task_next) {
        lw_run_set_late(member);
    }
}

static inline void
lw_batch_set_cancelled(struct lw_delivery *first)
{
    for (struct lw_delivery *member = first; member; member = member->task_next) {
        atomic_store_explicit(&member->is_cancelled, true, memory_order_relaxed);
    }
}

#endif
