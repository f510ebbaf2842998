/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one timer wheel: attempts, retries, publish retries, commits, drain, reconnects, process
 * deadlines. Pure: time comes in, the next deadline goes out; nobody else owns a timer of the
 * system. Times are monotonic ns; a tick is 2^16 ns (65.5 us), four levels of 256 slots and an
 * overflow list; a timer fires never early and at most one tick late. Arm and disarm are O(1),
 * a bitmap of non-empty slots gives the exact next deadline. Timers are intrusive nodes owned by
 * their users and must be disarmed before their memory goes.
 * Fired callbacks may arm, disarm and re-arm any timer, themselves included; one that arms
 * itself for the past fires at the next advance, not in this one.
 *
 * Idle costs: the next deadline is exact while at most 8 timers share the nearest slot in use
 * (a far slot is up to 4.3 s wide 60 s away), so a far timer alone wakes nobody before it is
 * due. With more of them the wheel may ask to be advanced earlier, to spread that slot over
 * smaller ones: at most 3 times before the first of them fires (4 beyond 78 hours).
 */
#ifndef LW_BASE_TIMERS_H
#define LW_BASE_TIMERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

#define LW_NEVER UINT64_MAX
#define LW_MS UINT64_C(1000000) /* ns in a millisecond */

struct lw_timer;
typedef void (*lw_timer_fn)(struct lw_timer *timer, uint64_t now);

struct lw_timer {
    struct lw_list link;
    uint64_t due; /* ns; LW_NEVER when not armed */
    lw_timer_fn fn;
};

struct lw_timers {
    uint64_t tick; /* the next tick to be looked at */
    size_t count;
    uint64_t occupied[4][4];
    struct lw_list slots[4][256];
    struct lw_list overflow;
    struct lw_list expired;
};

void lw_timers_init(struct lw_timers *timers, uint64_t now);
void lw_timer_init(struct lw_timer *timer, lw_timer_fn fn);
bool lw_timer_is_armed(const struct lw_timer *timer);
/*
 * Arms or re-arms. A due time whose tick has been looked at already fires at the next advance.
 * LW_NEVER disarms.
 */
void lw_timers_arm(struct lw_timers *timers, struct lw_timer *timer, uint64_t due);
void lw_timers_disarm(struct lw_timers *timers, struct lw_timer *timer);
/* Fires all that is due at `now`, in order of their ticks; returns how many. */
size_t lw_timers_advance(struct lw_timers *timers, uint64_t now);
/* The earliest time at which advance has work (never later than the first due time rounded up
 * to its tick), LW_NEVER when none is armed. */
uint64_t lw_timers_next(const struct lw_timers *timers);

#endif
