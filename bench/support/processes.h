/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What engine processes reaches: messages a second with a handler that does nothing, against a
 * bare loop over two rings of the same records between two processes that never sleep.
 */
#ifndef BENCH_SUPPORT_PROCESSES_H
#define BENCH_SUPPORT_PROCESSES_H

#include "engines/processes/engine.h"

/* Opens a world with an engine of so many workers that run the handler of bench/plugins. */
struct lw_processes_run {
    const char *symbol;
    uint32_t workers;
    uint32_t window;
    uint64_t messages;
    struct lw_bytes value;
};

/* What one run gave. */
struct lw_processes_result {
    double seconds;
    uint64_t allocations; /* of the owner, while messages flowed */
    struct lw_processes_figures figures;
};

struct lw_processes_result lw_processes_bench(const struct lw_processes_run *run);
/* Seconds that the bare loop takes for so many messages of that size. */
double lw_processes_bare(uint64_t messages, size_t payload_size);

#endif
