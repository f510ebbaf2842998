/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves of a delivery and the beginning of a run. What a handler may read of a delivery is in
 * core/view.c, what it may say in core/outcome.c; who moves it is the dispatcher.
 */
#include "core/delivery.h"

#include "base/host.h"

#define BIT(state) (1U << (state))

/* Which states may follow each state; the drawing in the header. */
static const uint16_t NEXT[] = {
    [LW_STATE_FREE] = BIT(LW_STATE_QUEUED) | BIT(LW_STATE_SETTLED),
    [LW_STATE_QUEUED] = BIT(LW_STATE_RUNNING) | BIT(LW_STATE_JUDGED) | BIT(LW_STATE_SETTLED) |
                        BIT(LW_STATE_DROPPED),
    [LW_STATE_RUNNING] = BIT(LW_STATE_JUDGED) | BIT(LW_STATE_DROPPED) | BIT(LW_STATE_QUEUED),
    [LW_STATE_JUDGED] = BIT(LW_STATE_PUBLISHING) | BIT(LW_STATE_PARKED) |
                        BIT(LW_STATE_SETTLED) | BIT(LW_STATE_DROPPED),
    [LW_STATE_PARKED] = BIT(LW_STATE_QUEUED) | BIT(LW_STATE_JUDGED) | BIT(LW_STATE_SETTLED) |
                        BIT(LW_STATE_DROPPED),
    [LW_STATE_PUBLISHING] = BIT(LW_STATE_SETTLED) | BIT(LW_STATE_JUDGED) |
                            BIT(LW_STATE_DROPPED),
    [LW_STATE_SETTLED] = BIT(LW_STATE_FREE),
    [LW_STATE_DROPPED] = BIT(LW_STATE_FREE),
};

static const char *const NAMES[] = {
    [LW_STATE_FREE] = "free",       [LW_STATE_QUEUED] = "queued",
    [LW_STATE_RUNNING] = "running", [LW_STATE_JUDGED] = "judged",
    [LW_STATE_PARKED] = "parked",   [LW_STATE_PUBLISHING] = "publishing",
    [LW_STATE_SETTLED] = "settled", [LW_STATE_DROPPED] = "dropped",
};

void
lw_completions_init(struct lw_completions *completions, struct lw_host *host, int wake_fd)
{
    lw_mailbox_init(&completions->mailbox, wake_fd);
    completions->done.first = NULL;
    completions->done.last = NULL;
    completions->host = host;
}

bool
lw_state_may_follow(enum lw_state from, enum lw_state to)
{
    return (NEXT[from] & BIT(to)) != 0;
}

const char *
lw_state_name(enum lw_state state)
{
    return NAMES[state];
}

void
lw_delivery_set_state(struct lw_delivery *delivery, enum lw_state next)
{
    lw_assert((NEXT[delivery->state] & BIT(next)) != 0);
    delivery->state = (uint8_t)next;
}

void
lw_delivery_begin_run(struct lw_delivery *delivery, uint64_t now)
{
    lw_delivery_move(delivery, LW_STATE_QUEUED, LW_STATE_RUNNING);
    uint32_t serial = atomic_load_explicit(&delivery->serial, memory_order_relaxed);
    /* Even: an answer is owed; whoever claims it makes it odd (engines/handler.h). */
    atomic_store_explicit(&delivery->serial, (serial | 1) + 1, memory_order_relaxed);
    atomic_store_explicit(&delivery->is_cancelled, false, memory_order_relaxed);
    lw_mail_init(&delivery->mail);
    delivery->attempt++;
    delivery->started_at = now;
    delivery->deadline = LW_NEVER;
    delivery->is_late = false;
    delivery->verdict = LW_PENDING;
    if (delivery->outcome) {
        lw_outcome_clear(delivery->outcome);
    }
}
