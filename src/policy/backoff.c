/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exponential backoff. The power is computed by squaring in double, which ends in infinity
 * instead of overflowing and takes at most 32 steps for any n; the cap then bounds it. A
 * multiplier under 1 counts as 1: delays never shrink. No delay exceeds a day, with or without
 * jitter. Pure: randomness comes in.
 */
#include "policy/backoff.h"

/* Steps looked at before the rest is covered by the largest: a growth that is too slow to tell. */
enum { STEPS_TRIED_MAX = 10000 };

static int64_t
bounded(int64_t ms)
{
    if (ms < 0) {
        return 0;
    }
    return ms < LW_DELAY_MAX_MS ? ms : LW_DELAY_MAX_MS;
}

static double
growth(const struct lw_backoff *backoff)
{
    return backoff->multiplier > 1 ? backoff->multiplier : 1;
}

static double
power(double base, uint32_t exponent)
{
    double result = 1;
    for (; exponent > 0; exponent >>= 1) {
        if ((exponent & 1) != 0) {
            result *= base;
        }
        base *= base;
    }
    return result;
}

/* min(value, cap) for any value, also infinity and 0 * infinity, which is no number. */
static int64_t
capped(double value, int64_t cap_ms)
{
    return value < (double)cap_ms ? (int64_t)value : cap_ms;
}

int64_t
lw_backoff_ms(const struct lw_backoff *backoff, uint32_t n, uint64_t random)
{
    int64_t cap_ms = bounded(backoff->max_ms);
    int64_t delay_ms = 0;
    if (backoff->initial_ms > 0) {
        double factor = power(growth(backoff), n > 0 ? n - 1 : 0);
        delay_ms = capped((double)backoff->initial_ms * factor, cap_ms);
    }
    uint64_t jitter_ms = (uint64_t)bounded(backoff->jitter_ms);
    return bounded(delay_ms + (int64_t)(random % (jitter_ms + 1)));
}

size_t
lw_backoff_steps(const struct lw_backoff *backoff, int64_t *out, size_t max)
{
    int64_t cap_ms = bounded(backoff->max_ms);
    double value = backoff->initial_ms > 0 ? (double)backoff->initial_ms : 0;
    size_t count = 0;
    for (int tried = 0; tried < STEPS_TRIED_MAX && count < max; tried++) {
        int64_t step_ms = capped(value, cap_ms);
        if (count == 0 || step_ms > out[count - 1]) {
            out[count++] = step_ms;
        }
        if (step_ms >= cap_ms || value <= 0 || growth(backoff) <= 1) {
            return count;
        }
        value *= growth(backoff);
    }
    /* Cut short: the last one stands for all that is longer, so that no delay is shortened. */
    if (count > 0) {
        out[count - 1] = cap_ms;
    }
    return count;
}

int64_t
lw_backoff_tier(const int64_t *tiers_ms, size_t count, int64_t delay_ms)
{
    for (size_t i = 0; i < count; i++) {
        if (tiers_ms[i] >= delay_ms) {
            return tiers_ms[i];
        }
    }
    return count > 0 ? tiers_ms[count - 1] : delay_ms;
}
