/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim --seeds N [--first S]   runs N seeds, prints counts; exit 1 at the first violation
 * sim --seed S [--verbose]   replays one seed (twice: the hash must be the same), prints its story
 *
 * A violation is printed with the seed that shows it; so is a failed assertion, since an abort
 * names the seed that was running.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/sim/world.h"

static volatile uint64_t running_seed;

struct totals {
    uint64_t seeds;
    uint64_t transitions;
    uint64_t received;
    uint64_t duplicates;
    uint64_t duplicates_max;
    uint64_t stale;
    uint64_t violations;
    uint64_t hash;
};

static void
on_abort(int signal_number)
{
    char text[64];
    int length = snprintf(text, sizeof text, "sim: seed %llu ended by signal %d\n",
                          (unsigned long long)running_seed, signal_number);
    ssize_t written = write(STDERR_FILENO, text, (size_t)length);
    (void)written;
    _exit(1);
}

static double
seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static bool
run_seed(uint64_t seed, bool is_verbose, struct totals *totals)
{
    static struct world world;
    running_seed = seed;
    world_run(&world, seed, is_verbose);
    const struct oracle_report *report = oracle_report(world.oracle);
    bool is_ok = report->violation_count == 0;
    if (!is_ok) {
        printf("VIOLATION seed %llu: %s\n", (unsigned long long)seed, report->first);
    }
    totals->seeds++;
    totals->transitions += world.transitions;
    totals->received += report->received;
    totals->duplicates += report->duplicates;
    totals->duplicates_max += report->duplicates_max;
    totals->stale += report->stale;
    totals->violations += report->violation_count;
    totals->hash = totals->hash * 31 + world.hash;
    if (is_verbose) {
        const struct plan *plan = &world.plan;
        for (uint32_t i = 0; i < plan->topic_count; i++) {
            const struct lw_subscription_options *options = &plan->topics[i].options;
            printf(
                "subscription %u: priority %d ordering %d keyless %d concurrency %u flight %u "
                "in_place %d topic %s\n",
                i, options->priority, (int)options->ordering, (int)options->keyless,
                options->concurrency, options->max_in_flight, (int)options->retry.in_place,
                options->retry.topic ? options->retry.topic : "-");
        }
        printf("mode %d sharing %d protocol %d slots %u room %u direct %d timeout %lld\n",
               (int)plan->hub.mode, (int)plan->hub.sharing, (int)plan->hub.protocol,
               plan->dispatcher.concurrency, plan->engine_room, plan->is_direct,
               (long long)plan->timeout_ms);
        printf("batch size %u wait %lld bytes %llu keys %d verdict %d\n", plan->batch.size,
               (long long)plan->batch.wait_ms, (unsigned long long)plan->batch.bytes,
               (int)plan->batch.keys, (int)plan->batch.verdict);
        printf("seed %llu: hash %016llx, transitions %llu\n", (unsigned long long)seed,
               (unsigned long long)world.hash, (unsigned long long)world.transitions);
    }
    world_free(&world);
    return is_ok;
}

static int
replay(uint64_t seed, bool is_verbose)
{
    struct totals first = { 0 };
    struct totals second = { 0 };
    bool is_ok = run_seed(seed, is_verbose, &first);
    if (!is_ok) {
        return 1;
    }
    (void)run_seed(seed, false, &second);
    printf("seed %llu: hash %016llx, replayed %016llx, transitions %llu, duplicates %llu of at "
           "most %llu, stale %llu\n",
           (unsigned long long)seed, (unsigned long long)first.hash,
           (unsigned long long)second.hash, (unsigned long long)first.transitions,
           (unsigned long long)first.duplicates, (unsigned long long)first.duplicates_max,
           (unsigned long long)first.stale);
    return first.hash == second.hash ? 0 : 1;
}

static int
run_many(uint64_t from, uint64_t count, bool goes_on)
{
    struct totals totals = { 0 };
    double begin = seconds();
    for (uint64_t seed = from; seed < from + count; seed++) {
        if (!run_seed(seed, false, &totals) && !goes_on) {
            break;
        }
    }
    double elapsed = seconds() - begin;
    printf("seeds %llu transitions %llu per_seed %llu per_second %.0f received %llu duplicates "
           "%llu duplicates_max %llu stale %llu violations %llu hash %016llx seconds %.1f\n",
           (unsigned long long)totals.seeds, (unsigned long long)totals.transitions,
           (unsigned long long)(totals.transitions / (totals.seeds ? totals.seeds : 1)),
           (double)totals.transitions / elapsed, (unsigned long long)totals.received,
           (unsigned long long)totals.duplicates, (unsigned long long)totals.duplicates_max,
           (unsigned long long)totals.stale, (unsigned long long)totals.violations,
           (unsigned long long)totals.hash, elapsed);
    return totals.violations == 0 ? 0 : 1;
}

int
main(int argc, char **argv)
{
    uint64_t from = 1;
    uint64_t count = 100;
    const char *single = NULL;
    bool is_verbose = false;
    bool goes_on = false;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--verbose") == 0) {
            is_verbose = true;
        } else if (strcmp(argv[i], "--all") == 0) {
            goes_on = true;
        } else if (value && strcmp(argv[i], "--seeds") == 0) {
            count = strtoull(argv[++i], NULL, 10);
        } else if (value && strcmp(argv[i], "--first") == 0) {
            from = strtoull(argv[++i], NULL, 10);
        } else if (value && strcmp(argv[i], "--seed") == 0) {
            single = argv[++i];
        } else {
            fprintf(stderr,
                    "usage: sim [--seeds N] [--first S] [--all] | --seed S [--verbose]\n");
            return 2;
        }
    }
    (void)setvbuf(stdout, NULL, _IOLBF, 1 << 16); /* an abort loses no line of the story */
    signal(SIGABRT, on_abort);
    signal(SIGSEGV, on_abort);
    return single ? replay(strtoull(single, NULL, 10), is_verbose)
                  : run_many(from, count, goes_on);
}
