/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of the receive window. Growing is quick, since a dry queue hands a slot to a worse
 * topic at once; shrinking is slow, since a window that is too large only costs memory and, on a
 * shared subscription, fairness among its members. Only an effective change starts a pause.
 *
 * Being behind must last a few round trips: an urgent topic with a trickle of messages takes the
 * freed slot every now and then, and must not shrink the window of the bulk behind it, which is
 * still served. Loop thread. Rejected: a window from measured rates (Little's law), which is
 * wrong just when slots are freed in bursts.
 */
#include "core/window.h"

#define MS UINT64_C(1000000)
#define ROUND_TRIP_MIN_NS MS
#define ROUND_TRIP_MAX_NS (MS * 1000)
#define HOLD_MIN_NS (MS * 5000)
#define HOLD_MAX_NS (MS * 1000 * 3600)

enum { HOLD_FACTOR = 4 };

static uint64_t
since(uint64_t then, uint64_t now)
{
    return now > then ? now - then : 0;
}

/* So long is no reason to halve it, and soon enough to say that it was too small. */
static bool
is_short(const struct lw_window *window, uint64_t ns)
{
    return ns <= window->patience_ns || lw_window_is_prompt(window, ns);
}

static void
change(struct lw_window *window, uint32_t size, uint64_t now)
{
    window->size = size;
    window->changed_at = now;
    window->arrived = 0;
    window->missed = 0;
    window->awaited_ns = 0;
}

void
lw_window_init(struct lw_window *window, uint32_t minimum, uint32_t maximum)
{
    minimum = minimum > 0 ? minimum : 1;
    *window = (struct lw_window){
        .size = minimum,
        .minimum = minimum,
        .maximum = maximum > minimum ? maximum : minimum,
        .round_trip_ns = ROUND_TRIP_MIN_NS,
        .hold_ns = HOLD_MIN_NS,
    };
}

static void
grow(struct lw_window *window, uint64_t missed, uint64_t now)
{
    window->behind_since = 0;
    if (window->size >= window->maximum) {
        return;
    }
    /* What the last change asked for is still on its way. */
    if (window->changed_at != 0 && since(window->changed_at, now) < window->round_trip_ns) {
        return;
    }
    if (window->is_probing) {
        window->is_probing = false;
        window->hold_ns *= HOLD_FACTOR;
        window->hold_ns = window->hold_ns < HOLD_MAX_NS ? window->hold_ns : HOLD_MAX_NS;
    }
    uint64_t more = window->size > missed ? window->size : missed;
    bool is_last = more > window->maximum - window->size;
    change(window, is_last ? window->maximum : window->size + (uint32_t)more, now);
}

void
lw_window_on_dry(struct lw_window *window, uint64_t now)
{
    grow(window, 0, now);
}

void
lw_window_on_arrival(struct lw_window *window, uint32_t count, uint64_t missed,
                     uint64_t dry_since, uint64_t now)
{
    window->arrived += count;
    window->missed += missed;
    window->awaited_ns += since(dry_since, now);
    if (window->arrived < window->size - window->size / 2) {
        return;
    }
    missed = window->missed;
    bool is_quick = is_short(window, window->awaited_ns);
    window->arrived = 0;
    window->missed = 0;
    window->awaited_ns = 0;
    if (is_quick) {
        grow(window, missed, now);
    }
}

void
lw_window_on_wait(struct lw_window *window, uint64_t waiting_since, uint64_t now)
{
    if (lw_window_is_prompt(window, since(waiting_since, now))) {
        window->behind_since = 0;
        return;
    }
    if (is_short(window, since(waiting_since, now))) {
        return;
    }
    if (window->size <= window->minimum || since(window->changed_at, now) < window->hold_ns) {
        return;
    }
    if (window->is_probing) {
        window->hold_ns /= HOLD_FACTOR;
        window->hold_ns = window->hold_ns > HOLD_MIN_NS ? window->hold_ns : HOLD_MIN_NS;
    }
    uint32_t half = window->size / 2;
    change(window, half > window->minimum ? half : window->minimum, now);
    window->is_probing = true;
}

void
lw_window_on_behind(struct lw_window *window, uint64_t now)
{
    if (window->size <= window->minimum) {
        return;
    }
    if (window->behind_since == 0) {
        window->behind_since = now;
    } else if (since(window->behind_since, now) >= LW_WINDOW_PATIENCE * window->round_trip_ns) {
        change(window, window->minimum, now);
        window->behind_since = 0;
        window->is_probing = false;
        window->hold_ns = HOLD_MIN_NS;
    }
}

void
lw_window_on_round_trip(struct lw_window *window, uint64_t ns)
{
    ns = ns > ROUND_TRIP_MIN_NS ? ns : ROUND_TRIP_MIN_NS;
    ns = ns < ROUND_TRIP_MAX_NS ? ns : ROUND_TRIP_MAX_NS;
    /* Down quickly: a long sample may only mean that nothing was there to deliver. */
    if (ns < window->round_trip_ns) {
        window->round_trip_ns -= (window->round_trip_ns - ns) / 2;
    } else {
        window->round_trip_ns += (ns - window->round_trip_ns) / 8;
    }
}
