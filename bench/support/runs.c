/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs of a bench's own cases, as runs.h says. Each is a process, since a client library never
 * forgets; one that takes longer than 300 s has failed.
 */
#include "bench/support/runs.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SETTLE_S 15

bool
lw_runs_one(const char *argv0, const char *name, uint64_t n, double *ret_first,
            double *ret_second)
{
    char command[1024];
    snprintf(command, sizeof command, "timeout 300 %s --run %s %llu", argv0, name,
             (unsigned long long)n);
    FILE *file = popen(command, "r");
    bool is_ok = file && fscanf(file, "%lf %lf", ret_first, ret_second) == 2;
    return file && pclose(file) == 0 && is_ok;
}

static int
by_value(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

bool
lw_runs_median(const char *argv0, const char *name, uint64_t n, int count, double *ret_first,
               double *ret_second)
{
    double first[LW_RUNS_PAIRS];
    double second[LW_RUNS_PAIRS];
    int got = 0;
    for (int i = 0; i < count && i < LW_RUNS_PAIRS; i++) {
        got += lw_runs_one(argv0, name, n, &first[got], &second[got]);
    }
    if (got == 0) {
        return false;
    }
    qsort(first, (size_t)got, sizeof(double), by_value);
    qsort(second, (size_t)got, sizeof(double), by_value);
    *ret_first = first[got / 2];
    *ret_second = second[got / 2];
    return true;
}

struct lw_ratio
lw_runs_ratio(const char *argv0, const char *left, const char *right, uint64_t n)
{
    double ratios[LW_RUNS_PAIRS];
    double first;
    double second;
    double unused;
    int count = 0;
    for (int i = 0; i < LW_RUNS_PAIRS; i++) {
        bool is_ok = lw_runs_one(argv0, right, n, &second, &unused) &&
                     lw_runs_one(argv0, left, n, &first, &unused);
        if (is_ok && second > 0) {
            ratios[count++] = first / second;
        }
    }
    qsort(ratios, (size_t)count, sizeof(double), by_value);
    return count > 0 ? (struct lw_ratio){ ratios[count / 2], ratios[count * 3 / 4] }
                     : (struct lw_ratio){ -1, -1 };
}

/* How often the first thread of that process went to sleep by itself. */
static double
voluntary_switches(pid_t pid)
{
    char path[64];
    char line[128];
    double count = -1;
    snprintf(path, sizeof path, "/proc/%d/task/%d/status", (int)pid, (int)pid);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, "voluntary_ctxt_switches:", 24) == 0) {
            count = strtod(line + 24, NULL);
        }
    }
    if (file) {
        fclose(file);
    }
    return count;
}

double
lw_runs_idle_wakes(const char *argv0, const char *name)
{
    pid_t pid = fork();
    if (pid == 0) {
        execl(argv0, argv0, "--run", name, "0", (char *)NULL);
        _exit(127);
    }
    sleep(SETTLE_S);
    double before = voluntary_switches(pid);
    sleep(LW_RUNS_IDLE_S);
    double after = voluntary_switches(pid);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return before < 0 || after < 0 ? -1 : after - before;
}
