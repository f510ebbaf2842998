/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often something happened in the last hour: a ring of 60 counts, a minute each, so that the
 * hour is right to a minute. Zeroed memory is empty. Pure, one thread, no timer: what is too old
 * is seen by its stamp when it is counted or added to.
 */
#ifndef LW_BASE_HOURLY_H
#define LW_BASE_HOURLY_H

#include <stdint.h>

#define LW_HOURLY_MINUTES 60

struct lw_hourly {
    uint64_t minutes[LW_HOURLY_MINUTES]; /* the minute that each count is of */
    uint32_t counts[LW_HOURLY_MINUTES];
};

/* Adds one; now in monotonic ns. */
void lw_hourly_add(struct lw_hourly *hourly, uint64_t now);
/* Returns the count of this minute and the 59 before it. */
uint64_t lw_hourly_count(const struct lw_hourly *hourly, uint64_t now);

#endif
