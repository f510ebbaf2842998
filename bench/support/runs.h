/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs of a bench's own cases in processes of their own (`ARGV0 --run NAME N`): what they print,
 * ratios of interleaved pairs, and how often an idle one wakes.
 */
#ifndef BENCH_SUPPORT_RUNS_H
#define BENCH_SUPPORT_RUNS_H

#include <stdbool.h>
#include <stdint.h>

enum { LW_RUNS_PAIRS = 9, LW_RUNS_IDLE_S = 120 };

struct lw_ratio {
    double median; /* -1: no pair ran */
    double upper;  /* quartile */
};

/* Reads the two numbers that the run prints; false when it failed. */
bool lw_runs_one(const char *argv0, const char *name, uint64_t n, double *ret_first,
                 double *ret_second);
/* The median of the first numbers of `count` runs, at most 9, and of their second ones. */
bool lw_runs_median(const char *argv0, const char *name, uint64_t n, int count,
                    double *ret_first, double *ret_second);
/* Rate of `left` to rate of `right`, pair by pair in turn. */
struct lw_ratio
lw_runs_ratio(const char *argv0, const char *left, const char *right, uint64_t n);
/* Voluntary context switches of the first thread of `--run NAME 0` in LW_RUNS_IDLE_S; -1 unknown. */
double lw_runs_idle_wakes(const char *argv0, const char *name);

#endif
