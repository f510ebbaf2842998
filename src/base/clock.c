/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the system's clocks and its generator of random numbers. Beside base/loop.c nothing may
 * read a clock: everything else is told the time, which is why it can be tested by moving it.
 * Any thread.
 */
#include "base/clock.h"

#include <sys/random.h>
#include <time.h>

#include "base/assert.h"

uint64_t
lw_clock_monotonic_ns(void)
{
    struct timespec now;
    int failed = clock_gettime(CLOCK_MONOTONIC, &now);
    lw_assert(!failed);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

int64_t
lw_clock_wall_ms(void)
{
    struct timespec now;
    int failed = clock_gettime(CLOCK_REALTIME, &now);
    lw_assert(!failed);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

uint64_t
lw_clock_seed(void)
{
    uint64_t seed = 0;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != (ssize_t)sizeof seed) {
        seed = lw_clock_monotonic_ns() ^ (uint64_t)lw_clock_wall_ms() << 20;
    }
    return seed ? seed : 1;
}
