/* SPDX-License-Identifier: Apache-2.0 */
/* Exponential backoff with a cap and additive jitter; no overflow for any n. Pure. */
#ifndef LW_POLICY_BACKOFF_H
#define LW_POLICY_BACKOFF_H

#include <stddef.h>
#include <stdint.h>

/* No delay of a retry is longer: a day, whoever asked for it. */
#define LW_DELAY_MAX_MS (INT64_C(24) * 60 * 60 * 1000)

struct lw_backoff {
    int64_t initial_ms;
    double multiplier;
    int64_t max_ms;
    int64_t jitter_ms;
};

/* Delay before the n-th retry (n from 1): min(initial * multiplier^(n-1), max) + 0..jitter. */
int64_t lw_backoff_ms(const struct lw_backoff *backoff, uint32_t n, uint64_t random);
/* The distinct steps without jitter, ascending, for retry tiers; at most `max` of them. */
size_t lw_backoff_steps(const struct lw_backoff *backoff, int64_t *out, size_t max);
/* The smallest tier >= delay_ms, else the largest; tiers ascend. */
int64_t lw_backoff_tier(const int64_t *tiers_ms, size_t count, int64_t delay_ms);

#endif
