/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clocks of the system, for the loop driver, the command, logs, benches and the threads of a
 * broker's client library; never for the core, which is told the time. Nothing else reads a clock.
 * Any thread.
 */
#ifndef LW_BASE_CLOCK_H
#define LW_BASE_CLOCK_H

#include <stdint.h>

uint64_t lw_clock_monotonic_ns(void);
int64_t lw_clock_wall_ms(void);
/* A seed from the operating system's generator. */
uint64_t lw_clock_seed(void);

#endif
