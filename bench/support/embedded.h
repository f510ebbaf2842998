/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The embedded Pulsar broker in a process of its own (tests/support/pulsar/embedded_main), which a
 * bench fills, feeds and asks by lines on its stdin. It dies with the bench, however that ends.
 */
#ifndef BENCH_SUPPORT_EMBEDDED_H
#define BENCH_SUPPORT_EMBEDDED_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

struct lw_embedded {
    pid_t pid;
    FILE *input;
    FILE *output;
    char address[128];
};

/* False when the program is not there or does not start; `argv0` is the bench's own. */
bool lw_embedded_start(struct lw_embedded *embedded, const char *argv0);
/* Sends one line, reads one line; false unless it is "ok", or numbers, into `reply` (or NULL). */
bool lw_embedded_tell(struct lw_embedded *embedded, const char *line, char *reply, size_t size);
/* One number of `stats`, such as permits_max; -1 without it. */
double lw_embedded_stat(struct lw_embedded *embedded, const char *name);
void lw_embedded_stop(struct lw_embedded *embedded);

#endif
