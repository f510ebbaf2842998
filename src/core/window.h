/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The receive window of one subscription: how many messages may wait here before their handler
 * starts. It follows demand, so that priority is decided late where it matters and the urgent
 * topic never runs dry: it doubles when the local queue ran dry while a slot was free and the
 * broker had more; it halves when the oldest message here has waited longer than a few round
 * trips; a topic that waits behind better ones falls to 1. Pure; `now` comes in.
 *
 * Stable: at most one change in a round trip, and a halving is a probe: when the queue runs dry
 * after it, the next one comes later (slots that free in bursts need a window that covers one).
 * Fixed profiles set minimum == maximum. The window never leaves [minimum, maximum].
 */
#ifndef LW_CORE_WINDOW_H
#define LW_CORE_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#define LW_WINDOW_PATIENCE 4                       /* round trips */
#define LW_WINDOW_ON_DEMAND_NS UINT64_C(100000000) /* 100 ms */

struct lw_window {
    uint32_t size; /* the window now */
    uint32_t minimum;
    uint32_t maximum;
    bool is_probing;        /* the last change was a halving, not yet proved wrong */
    uint64_t round_trip_ns; /* smoothed time from demand to delivery, at least 1 ms */
    uint64_t changed_at;    /* 0: never */
    uint64_t behind_since;  /* 0: not behind */
    uint64_t hold_ns;       /* no halving for so long after a change */
    uint64_t patience_ns; /* so long a message may wait, if that is more than few round trips */
    uint32_t arrived;     /* into a dry queue, towards a window's worth */
    uint64_t missed;      /* runs that could have begun while it was */
    uint64_t awaited_ns;  /* how long the queue was dry for those */
};

void lw_window_init(struct lw_window *window, uint32_t minimum, uint32_t maximum);
/*
 * The local queue ran dry, a slot was free and the broker had more. A slot that a worse
 * subscription then took was free as well: without that the window of the urgent one would never
 * grow while others fill the gaps.
 */
void lw_window_on_dry(struct lw_window *window, uint64_t now);
/*
 * The same for a broker that gives only what was demanded and cannot say that it has more:
 * `count` messages came while the queue was dry, since `dry_since`, and `missed` runs could have
 * begun meanwhile. Half a window's worth that came as quickly as the broker answers shows that the
 * window was what held it up: it doubles, or grows by the missed runs when they are more, so that
 * a pause of the broker as long as this one finds it prepared.
 */
void lw_window_on_arrival(struct lw_window *window, uint32_t count, uint64_t missed,
                          uint64_t dry_since, uint64_t now);
/* The oldest waiting message has waited since `waiting_since`. Called once per receive. */
void lw_window_on_wait(struct lw_window *window, uint64_t waiting_since, uint64_t now);
/* Better subscriptions took every slot while this one had work. */
void lw_window_on_behind(struct lw_window *window, uint64_t now);
/*
 * Of a broker that gives only what was demanded: a tenth of a second of work may wait here. A pause
 * of the broker is then no gap, and nobody who could have it instead misses it for long.
 */
static inline void
lw_window_set_on_demand(struct lw_window *window)
{
    window->patience_ns = LW_WINDOW_ON_DEMAND_NS;
}
/* Within a few round trips: what was demanded may still be on its way. */
static inline bool
lw_window_is_prompt(const struct lw_window *window, uint64_t ns)
{
    return ns <= LW_WINDOW_PATIENCE * window->round_trip_ns;
}
/* One measured time from demand to first delivery. */
void lw_window_on_round_trip(struct lw_window *window, uint64_t ns);

#endif
