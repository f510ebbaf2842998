/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the engines for C functions share: the handler's options, and the rule of one answer.
 *
 * A run is answered once. Its serial is even while an answer is owed and odd once one was
 * claimed; lw_delivery_begin_run makes it even again and new, so a ticket of an older run never
 * matches. Whoever claims (a finisher on any thread, or the engine that calls a blocking
 * handler) is the only one who reports.
 */
#ifndef LW_ENGINES_HANDLER_H
#define LW_ENGINES_HANDLER_H

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "core/delivery.h"

#define LW_ROOM_ANY (UINT32_MAX / 2)

struct lw_handler_options {
    lw_handler_fn handler;                         /* blocking */
    lw_handler_async_fn handler_async;             /* loop engine only */
    lw_handler_batch_fn handler_batch;             /* blocking */
    lw_handler_batch_async_fn handler_batch_async; /* loop engine only; one of four is given */
    struct lw_batch_options batch;                 /* of the last two; size at least 1 */
    void *user;
    int64_t timeout_ms; /* 0: none */
    uint32_t threads;   /* threads engine only; at least 1 */
};

/* Claims the answer of the run that `serial` names; false when it was claimed or is over. */
static inline bool
lw_run_claim(struct lw_delivery *delivery, uint32_t serial)
{
    return !(serial & 1) &&
           atomic_compare_exchange_strong_explicit(&delivery->serial, &serial, serial | 1,
                                                   memory_order_acq_rel, memory_order_relaxed);
}

/* The engine's own claim, before anybody else can have seen this run. */
static inline void
lw_run_claim_first(struct lw_delivery *delivery)
{
    uint32_t serial = atomic_load_explicit(&delivery->serial, memory_order_relaxed);
    atomic_store_explicit(&delivery->serial, serial | 1, memory_order_relaxed);
}

static inline uint64_t
lw_run_deadline(uint64_t now, int64_t timeout_ms)
{
    return timeout_ms > 0 ? now + (uint64_t)timeout_ms * LW_MS : LW_NEVER;
}

/* Marks a run whose time is over; a function cannot be ended, so it is only told. Loop thread. */
static inline void
lw_run_set_late(struct lw_delivery *delivery)
{
    __atomic_store_n(&delivery->is_late, true, __ATOMIC_RELAXED);
    atomic_store_explicit(&delivery->is_cancelled, true, memory_order_relaxed);
}

static inline void
lw_run_say(struct lw_delivery *delivery, const char *reason)
{
    struct lw_outcome *outcome = lw_delivery_outcome(delivery);
    if (outcome) {
        lw_outcome_clear(outcome);
        lw_outcome_set_reason(outcome, reason, strlen(reason));
    }
}

/*
 * What a verdict counts as: retry or error after the attempt's time is the timeout itself, and a
 * value that no blocking handler may return is an error. On the thread that answers.
 */
static inline enum lw_verdict
lw_run_judge(struct lw_delivery *delivery, enum lw_verdict verdict)
{
    if ((unsigned)verdict > LW_ERROR) {
        lw_run_say(delivery, "the handler returned no verdict (LW_PENDING is for asynchronous "
                             "handlers, which return nothing)");
        return LW_ERROR;
    }
    bool is_timeout = __atomic_load_n(&delivery->is_late, __ATOMIC_RELAXED) &&
                      (verdict == LW_RETRY || verdict == LW_ERROR);
    if (is_timeout) {
        char duration[32];
        char reason[64];
        uint64_t allowed_ns = delivery->deadline - delivery->started_at;
        lw_text_from_duration_ms((int64_t)(allowed_ns / LW_MS), duration, sizeof duration);
        (void)snprintf(reason, sizeof reason, "timed out after %s", duration);
        lw_run_say(delivery, reason);
        return LW_ERROR;
    }
    return verdict;
}

#endif
