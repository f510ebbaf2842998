/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the engines themselves cost, without broker and dispatcher: instructions a message of the
 * loop engine with a handler that does nothing (submit and completion; the caller's part is
 * measured apart and taken off), and how much of the possible others reach with a handler that
 * blocks or computes. What is possible is measured, too: the same calls on as many threads without
 * an engine, right before and after, so that a machine that sleeps longer than asked, or whose
 * processors share a core, does not count against the engine. Medians of rounds.
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "bench/support/engine_world.h"
#include "bench/support/figures.h"
#include "engines/builtin/sha256.h"
#include "engines/loop.h"
#include "engines/threads.h"

enum { BATCH = 64, ROUNDS = 5, SLEEP_MS = 5, CPU_ROUNDS = 500, THREADS_MAX = 100 };

/* 66 bytes, as the peers' benches send. */
static const char payload[] =
    "{\"sequence\": 1234567, \"key\": \"key-12\", \"payload\": \"0123456789000\"}";

static struct lw_bytes
value_of_bench(void)
{
    return (struct lw_bytes){ payload, sizeof payload - 1 };
}

static enum lw_verdict
do_nothing(struct lw_delivery *delivery, void *user)
{
    (void)delivery;
    (void)user;
    return LW_OK;
}

static enum lw_verdict
sleep_a_little(struct lw_delivery *delivery, void *user)
{
    struct timespec left = { .tv_nsec = SLEEP_MS * 1000000L };
    (void)delivery;
    (void)user;
    (void)ppoll(NULL, 0, &left, NULL);
    return LW_OK;
}

static enum lw_verdict
compute(struct lw_delivery *delivery, void *user)
{
    uint8_t digest[LW_SHA256_BYTES] = { 0 };
    (void)delivery;
    (void)user;
    for (int i = 0; i < CPU_ROUNDS; i++) {
        lw_sha256(digest, sizeof digest, digest);
    }
    __asm__ volatile("" : : "r"(digest) : "memory"); /* the work is wanted, the result is not */
    return LW_OK;
}

/* -- loop: instructions ------------------------------------------------------------------------ */

static void
begin_run(struct lw_delivery *delivery)
{
    uint32_t serial = atomic_load_explicit(&delivery->serial, memory_order_relaxed);
    atomic_store_explicit(&delivery->serial, (serial | 1) + 1, memory_order_relaxed);
    lw_mail_init(&delivery->mail);
}

/* With an engine, or only what the caller does around it. */
static void
run_loop(uint64_t messages, bool with_engine)
{
    struct lw_engine_world world;
    struct lw_delivery *tasks[BATCH];
    struct lw_handler_options options = { .handler = do_nothing, .timeout_ms = 30000 };
    uint64_t taken = 0;
    lw_engine_world_open(&world, BATCH, value_of_bench());
    if (lw_loop_engine_create(world.host, &world.completions, "bench", &options,
                              &world.engine) != LW_STATUS_OK) {
        exit(1);
    }
    lw_engine_world_start(&world, 1);
    for (uint64_t done = 0; done < messages; done += BATCH) {
        for (size_t i = 0; i < BATCH; i++) {
            tasks[i] = &world.deliveries[i];
            begin_run(tasks[i]);
        }
        if (with_engine) {
            (void)world.engine->ops->submit(world.engine, tasks, BATCH);
        } else {
            for (size_t i = 0; i < BATCH; i++) {
                lw_queue_push(&world.completions.done, &tasks[i]->link);
            }
        }
        while (lw_queue_pop(&world.completions.done)) {
            taken++;
        }
    }
    if (taken < messages) {
        exit(1);
    }
    lw_engine_world_close(&world);
}

/* -- Share of the possible --------------------------------------------------------------------- */

struct work {
    lw_handler_fn handler;
    uint32_t threads;
    uint64_t messages;
};

static void *
work_alone(void *user)
{
    const struct work *work = user;
    for (uint64_t i = 0; i < work->messages / work->threads; i++) {
        (void)work->handler(NULL, NULL);
    }
    return NULL;
}

/* Seconds that all calls take on bare threads. */
static double
run_without_engine(struct work *work)
{
    pthread_t threads[THREADS_MAX];
    uint64_t began = lw_clock_monotonic_ns();
    for (size_t i = 0; i < work->threads; i++) {
        if (pthread_create(&threads[i], NULL, work_alone, work) != 0) {
            exit(1);
        }
    }
    for (size_t i = 0; i < work->threads; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    return (double)(lw_clock_monotonic_ns() - began) / 1e9;
}

static double
run_threads(const struct work *work)
{
    struct lw_engine_world world;
    struct lw_handler_options options = { .handler = work->handler,
                                          .timeout_ms = 30000,
                                          .threads = work->threads };
    lw_engine_world_open(&world, 2 * work->threads, value_of_bench());
    if (lw_threads_engine_create(world.host, &world.completions, "bench", &options,
                                 &world.engine) != LW_STATUS_OK) {
        exit(1);
    }
    lw_engine_world_start(&world, work->threads);
    double seconds = lw_engine_world_run(&world, work->messages);
    lw_engine_world_close(&world);
    return seconds;
}

static int
compare(const void *a, const void *b)
{
    const double *left = a;
    const double *right = b;
    return (*left > *right) - (*left < *right);
}

static double
share_of(struct work *work, double (*run)(const struct work *work))
{
    double shares[ROUNDS];
    double before = run_without_engine(work);
    for (size_t i = 0; i < ROUNDS; i++) {
        double with = run(work);
        double after = run_without_engine(work);
        shares[i] = (before + after) / 2 / with;
        before = after;
    }
    qsort(shares, ROUNDS, sizeof shares[0], compare);
    return shares[ROUNDS / 2];
}

static void
measure_shares(struct lw_figures *figures)
{
    struct work sleeping = { sleep_a_little, 100, 20000 };
    struct work computing = { compute, 2, 20000 };
    lw_figures_print(figures, "threads_100_share", share_of(&sleeping, run_threads), "of 100/T",
                     0.97, 0.93, false);
    lw_figures_print(figures, "threads_2_cpu_share", share_of(&computing, run_threads),
                     "of 2/t_h", 0.97, 0.93, false);
}

int
main(int argc, char **argv)
{
    struct lw_figures figures;
    if (argc == 4 && strcmp(argv[1], "--run") == 0) {
        run_loop(strtoull(argv[3], NULL, 10), strcmp(argv[2], "loop") == 0);
        return 0;
    }
    lw_figures_init(&figures, argc, argv);
    double with = lw_figures_instructions(argv[0], "loop", 100000, false);
    double without = lw_figures_instructions(argv[0], "caller", 100000, false);
    lw_figures_print(&figures, "loop_engine_instructions", with - without, "instr/msg", 25, 30,
                     true);
    if (!figures.is_instructions_only) {
        measure_shares(&figures);
    }
    return lw_figures_exit(&figures);
}
