/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints figures and takes instruction counts, as figures.h says.
 *
 * Callgrind writes one file per thread (-01 is the first); their totals are added up. Everything
 * goes into a folder under /tmp that is removed again.
 */
#include "bench/support/figures.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void
lw_figures_init(struct lw_figures *figures, int argc, char **argv)
{
    memset(figures, 0, sizeof(*figures));
    for (int i = 1; i < argc; i++) {
        figures->is_check |= strcmp(argv[i], "--check") == 0;
        figures->is_instructions_only |= strcmp(argv[i], "--instructions") == 0;
    }
}

void
lw_figures_print(struct lw_figures *figures, const char *name, double value, const char *unit,
                 double goal, double gate, bool is_most)
{
    bool is_goal = is_most ? value <= goal : value >= goal;
    bool is_gate = is_most ? value <= gate : value >= gate;
    const char *verdict = is_goal ? "ok" : is_gate ? "gate-ok" : "missed";
    if (value < 0) {
        verdict = "not-measured";
        is_gate = false;
    }
    printf("%-44s %12.3f %-14s %s%.6g %s\n", name, value, unit, is_most ? "<=" : ">=", goal,
           verdict);
    fflush(stdout);
    figures->missed += !is_gate;
}

void
lw_figures_note(const char *name, double value, const char *unit)
{
    printf("%-44s %12.3f %-14s - measured\n", name, value, unit);
    fflush(stdout);
}

int
lw_figures_exit(const struct lw_figures *figures)
{
    return figures->is_check && figures->missed > 0 ? 1 : 0;
}

/* Reads the `totals:` or `summary:` line of one callgrind file. */
static double
read_total(const char *path)
{
    FILE *file = fopen(path, "r");
    char line[512];
    double total = 0;
    while (file && fgets(line, sizeof(line), file)) {
        if (strncmp(line, "totals: ", 8) == 0 || strncmp(line, "summary: ", 9) == 0) {
            total = strtod(strchr(line, ' ') + 1, NULL);
        }
    }
    if (file) {
        fclose(file);
    }
    return total;
}

/* Thread files end in -01, -02 …; the plain one is empty then. */
static double
sum_files(const char *directory, bool first_thread_only)
{
    char pattern[256];
    glob_t found;
    double sum = 0;
    snprintf(pattern, sizeof(pattern), "%s/out*", directory);
    if (glob(pattern, 0, NULL, &found) != 0) {
        return -1;
    }
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *path = found.gl_pathv[i];
        const char *dash = strrchr(path, '-');
        bool is_first = dash && strcmp(dash, "-01") == 0;
        if (!first_thread_only || is_first) {
            sum += read_total(path);
        }
        unlink(path);
    }
    globfree(&found);
    return sum;
}

static double
count(const char *argv0, const char *name, uint64_t n, bool first_thread_only)
{
    char directory[] = "/tmp/laneway-bench-XXXXXX";
    char command[1024];
    if (!mkdtemp(directory)) {
        return -1;
    }
    snprintf(command, sizeof(command),
             "valgrind -q --tool=callgrind --separate-threads=yes "
             "--callgrind-out-file=%s/out %s --run %s %llu >/dev/null 2>%s/err",
             directory, argv0, name, (unsigned long long)n, directory);
    int code = system(command);
    double sum = code == 0 ? sum_files(directory, first_thread_only) : -1;
    snprintf(command, sizeof(command), "rm -rf %s", directory);
    code = system(command);
    (void)code;
    return sum;
}

double
lw_figures_instructions(const char *argv0, const char *name, uint64_t n, bool first_thread_only)
{
    double once = count(argv0, name, n, first_thread_only);
    double thrice = count(argv0, name, 3 * n, first_thread_only);
    if (once <= 0 || thrice <= 0) {
        return -1;
    }
    return (thrice - once) / (double)(2 * n);
}
