/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring of an hour's minutes. A minute's place is its number modulo 60; the stamp beside it
 * tells whether the count there is of this hour or left over from an earlier one.
 */
#include "base/hourly.h"

#define MINUTE_NS UINT64_C(60000000000)

void
lw_hourly_add(struct lw_hourly *hourly, uint64_t now)
{
    uint64_t minute = now / MINUTE_NS;
    uint32_t place = (uint32_t)(minute % LW_HOURLY_MINUTES);
    if (hourly->minutes[place] != minute) {
        hourly->minutes[place] = minute;
        hourly->counts[place] = 0;
    }
    hourly->counts[place]++;
}

uint64_t
lw_hourly_count(const struct lw_hourly *hourly, uint64_t now)
{
    uint64_t minute = now / MINUTE_NS;
    uint64_t count = 0;
    for (uint32_t i = 0; i < LW_HOURLY_MINUTES; i++) {
        count += minute - hourly->minutes[i] < LW_HOURLY_MINUTES ? hourly->counts[i] : 0;
    }
    return count;
}
