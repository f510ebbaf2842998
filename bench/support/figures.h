/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How benches take and print figures. One line each: `name value unit goal verdict`. Instructions
 * come from callgrind, run on the bench itself: (count at 3N - count at N) / 2N. With --check a
 * missed gate makes the exit code 1; --instructions leaves out everything that is measured in
 * time.
 */
#ifndef LW_BENCH_FIGURES_H
#define LW_BENCH_FIGURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lw_quartiles {
    double median;
    double upper;
};

struct lw_figures {
    bool is_check;
    bool is_instructions_only;
    int missed;
};

/* Reads --check and --instructions; other arguments are left alone. */
void lw_figures_init(struct lw_figures *figures, int argc, char **argv);
/* Prints a figure that must be at most (is_most) or at least `gate`; `goal` is shown. */
void lw_figures_print(struct lw_figures *figures, const char *name, double value,
                      const char *unit, double goal, double gate, bool is_most);
/* Prints a figure without a goal. */
void lw_figures_note(const char *name, double value, const char *unit);
/*
 * Prints a figure of time by its quartiles, as all of that kind are judged: the median is shown, and
 * it is missed only when the upper quartile is below the goal, too.
 */
void lw_figures_quartiles(struct lw_figures *figures, const char *name,
                          struct lw_quartiles quartiles, const char *unit, double goal);
/* Of `count` values, which are sorted; -1, -1 when there are none. */
struct lw_quartiles lw_figures_sort(double *values, size_t count);
/* 1 with --check and a missed gate, else 0. */
int lw_figures_exit(const struct lw_figures *figures);
/*
 * Instructions a message of `argv0 --run NAME N` by the slope between n and 3n; of all threads,
 * or of the first one only. Negative when valgrind is not there or failed.
 */
double lw_figures_instructions(const char *argv0, const char *name, uint64_t n,
                               bool first_thread_only);
/* The same, apart: of that process, and of all that it starts. False when it was not measured. */
bool lw_figures_instructions_apart(const char *argv0, const char *name, uint64_t n,
                                   double *ret_own, double *ret_children);

#endif
