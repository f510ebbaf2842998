/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulator's randomness: one generator per seed (splitmix64), drawn from in the order in
 * which things happen, so that a seed names a whole run.
 */
#ifndef TESTS_SIM_RANDOM_H
#define TESTS_SIM_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

struct sim_random {
    uint64_t state;
};

static inline uint64_t
sim_next(struct sim_random *random)
{
    uint64_t z = random->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* 0 to bound - 1. */
static inline uint32_t
sim_below(struct sim_random *random, uint32_t bound)
{
    return (uint32_t)((sim_next(random) >> 32) * bound >> 32);
}

/* low to high, both included. */
static inline int64_t
sim_between(struct sim_random *random, int64_t low, int64_t high)
{
    return low + (int64_t)(sim_next(random) % (uint64_t)(high - low + 1));
}

static inline bool
sim_chance(struct sim_random *random, uint32_t percent)
{
    return sim_below(random, 100) < percent;
}

#endif
