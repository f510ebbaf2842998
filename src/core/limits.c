/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the limits that is not on the path of a message. Charging and crediting are inline
 * in the header; here are the bounds at the start and the question how much may be asked for.
 * A limit of 0 messages would never let anything in, so it counts as 1; 0 bytes lets one message
 * in at a time. Loop thread.
 */
#include "core/limits.h"

/* The hysteresis compares tenths, which must not overflow. */
#define BYTES_MAX (UINT64_MAX / 16)

void
lw_limits_init(struct lw_limits *limits, uint32_t count_max, uint64_t bytes_max)
{
    *limits = (struct lw_limits){
        .count_max = count_max > 0 ? count_max : 1,
        .bytes_max = bytes_max < BYTES_MAX ? bytes_max : BYTES_MAX,
    };
}

uint32_t
lw_limits_room(const struct lw_limits *limits)
{
    if (limits->is_stopped || limits->count >= limits->count_max) {
        return 0;
    }
    return limits->count_max - limits->count;
}

uint32_t
lw_limits_room_idle(const struct lw_limits *limits)
{
    /* Below by an eighth, which is worth a batch. */
    bool is_below = limits->count < limits->count_max - limits->count_max / 8 &&
                    limits->bytes < limits->bytes_max - limits->bytes_max / 8;
    return is_below ? limits->count_max - limits->count : 0;
}
