/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counter of ownerships. Process-wide on purpose: a generation that was ever used by any
 * dispatcher of this process names no other ownership, so a late answer can never fit a new one.
 */
#include <stdatomic.h>

#include <laneway/plugin.h>

static _Atomic uint64_t last_generation;

uint64_t
lw_broker_next_generation(void)
{
    return atomic_fetch_add_explicit(&last_generation, 1, memory_order_relaxed) + 1;
}
