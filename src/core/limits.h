/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is in hand, in counts and bytes, and when receiving must stop: above the limit, until
 * below 70 % of it (hysteresis), or below seven eighths when a slot stands idle meanwhile: what
 * is in hand waits for its keys then, and what could run is still at the broker. Bytes in hand
 * include keys and payloads of everything that is received and not settled.
 */
#ifndef LW_CORE_LIMITS_H
#define LW_CORE_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

struct lw_limits {
    uint32_t count;
    uint32_t count_max;
    uint64_t bytes;
    uint64_t bytes_max;
    bool is_stopped; /* "paused by backpressure" */
    uint64_t stops;  /* how often it stopped */
};

void lw_limits_init(struct lw_limits *limits, uint32_t count_max, uint64_t bytes_max);
/* How many messages may be received now; 0 while stopped. */
uint32_t lw_limits_room(const struct lw_limits *limits);
/* The same while stopped, when a slot is free and nothing in hand can run. */
uint32_t lw_limits_room_idle(const struct lw_limits *limits);

static inline void
lw_limits_charge(struct lw_limits *limits, uint32_t count, uint64_t bytes)
{
    limits->count += count;
    limits->bytes += bytes;
    if (limits->count >= limits->count_max || limits->bytes >= limits->bytes_max) {
        limits->stops += !limits->is_stopped;
        limits->is_stopped = true;
    }
}

/* True when receiving may start again by this. */
static inline bool
lw_limits_credit(struct lw_limits *limits, uint32_t count, uint64_t bytes)
{
    limits->count -= count;
    limits->bytes -= bytes;
    if (__builtin_expect(!limits->is_stopped, 1)) {
        return false;
    }
    if ((uint64_t)limits->count * 10 >= (uint64_t)limits->count_max * 7 && limits->count > 0) {
        return false;
    }
    if (limits->bytes * 10 >= limits->bytes_max * 7 && limits->count > 0) {
        return false;
    }
    limits->is_stopped = false;
    return true;
}

#endif
