/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a message costs to receive, and whether that knows how much lies in the file: a million
 * messages of one key, as many keys, settled ones that are kept, delayed ones before it, many held
 * by handlers, many groups. The million is compared with 1,000 messages that wait and nothing else, the
 * others with the million.
 */
#ifndef LW_BENCH_SPOOL_QUEUE_H
#define LW_BENCH_SPOOL_QUEUE_H

#include "bench/support/figures.h"

/* Makes the files in `folder`, prints the figures, removes the files. `argv0` is run on them. */
void lw_spool_queue_measure(struct lw_figures *figures, const char *argv0, const char *folder);
/* One run under callgrind: `--run CASE:FILE N`. False: there is no such case. */
bool lw_spool_queue_run(const char *name, uint64_t n);

#endif
