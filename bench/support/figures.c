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

static int
by_value(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

struct lw_quartiles
lw_figures_sort(double *values, size_t count)
{
    if (count == 0) {
        return (struct lw_quartiles){ -1, -1 };
    }
    qsort(values, count, sizeof values[0], by_value);
    return (struct lw_quartiles){ values[count / 2], values[count * 3 / 4] };
}

void
lw_figures_quartiles(struct lw_figures *figures, const char *name,
                     struct lw_quartiles quartiles, const char *unit, double goal)
{
    bool is_goal = quartiles.median >= goal;
    bool is_close = quartiles.upper >= goal;
    char title[64];
    snprintf(title, sizeof title, "%s_upper_quartile", name);
    lw_figures_note(title, quartiles.upper, unit);
    printf("%-44s %12.3f %-14s >=%.6g %s\n", name, quartiles.median, unit, goal,
           is_goal    ? "ok"
           : is_close ? "indistinguishable"
                      : "missed");
    fflush(stdout);
    figures->missed += !is_goal && !is_close;
}

int
lw_figures_exit(const struct lw_figures *figures)
{
    return figures->is_check && figures->missed > 0 ? 1 : 0;
}

/* What one callgrind file says. */
struct counted {
    double total;
    bool is_first_thread;
    bool is_child; /* its program is another one */
};

/* Its `cmd:` and its `totals:` or `summary:` line. */
static struct counted
read_counted(const char *path, const char *argv0)
{
    FILE *file = fopen(path, "r");
    const char *dash = strrchr(path, '-');
    struct counted counted = { .is_first_thread = dash && strcmp(dash, "-01") == 0 };
    char line[1024];
    while (file && fgets(line, sizeof(line), file)) {
        if (strncmp(line, "totals: ", 8) == 0 || strncmp(line, "summary: ", 9) == 0) {
            counted.total = strtod(strchr(line, ' ') + 1, NULL);
        } else if (strncmp(line, "cmd: ", 5) == 0) {
            counted.is_child = !strstr(line, argv0);
        }
    }
    if (file) {
        fclose(file);
    }
    return counted;
}

/* Instructions of one run: of its first thread, of all its threads, of the processes it started. */
struct counts {
    double first;
    double own;
    double children;
};

/* Thread files end in -01, -02 …; the plain one is empty then. */
static bool
sum_files(const char *directory, const char *argv0, struct counts *ret_counts)
{
    char pattern[256];
    glob_t found;
    snprintf(pattern, sizeof(pattern), "%s/out*", directory);
    if (glob(pattern, 0, NULL, &found) != 0) {
        return false;
    }
    *ret_counts = (struct counts){ 0 };
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct counted counted = read_counted(found.gl_pathv[i], argv0);
        ret_counts->children += counted.is_child ? counted.total : 0;
        ret_counts->own += counted.is_child ? 0 : counted.total;
        ret_counts->first += counted.is_child || !counted.is_first_thread ? 0 : counted.total;
        unlink(found.gl_pathv[i]);
    }
    globfree(&found);
    return ret_counts->own > 0;
}

static bool
count(const char *argv0, const char *name, uint64_t n, bool with_children,
      struct counts *ret_counts)
{
    char directory[] = "/tmp/laneway-bench-XXXXXX";
    char command[1024];
    if (!mkdtemp(directory)) {
        return false;
    }
    snprintf(command, sizeof(command),
             "valgrind -q --tool=callgrind --separate-threads=yes --trace-children=%s "
             "--callgrind-out-file=%s/out.%%p %s --run %s %llu >/dev/null 2>%s/err",
             with_children ? "yes" : "no", directory, argv0, name, (unsigned long long)n,
             directory);
    bool is_ok = system(command) == 0 && sum_files(directory, argv0, ret_counts);
    snprintf(command, sizeof(command), "rm -rf %s", directory);
    int code = system(command);
    (void)code;
    return is_ok;
}

double
lw_figures_instructions(const char *argv0, const char *name, uint64_t n, bool first_thread_only)
{
    struct counts once;
    struct counts thrice;
    if (!count(argv0, name, n, false, &once) || !count(argv0, name, 3 * n, false, &thrice)) {
        return -1;
    }
    double difference = first_thread_only ? thrice.first - once.first : thrice.own - once.own;
    return difference / (double)(2 * n);
}

bool
lw_figures_instructions_apart(const char *argv0, const char *name, uint64_t n, double *ret_own,
                              double *ret_children)
{
    struct counts once;
    struct counts thrice;
    if (!count(argv0, name, n, true, &once) || !count(argv0, name, 3 * n, true, &thrice)) {
        return false;
    }
    *ret_own = (thrice.own - once.own) / (double)(2 * n);
    *ret_children = (thrice.children - once.children) / (double)(2 * n);
    return true;
}
