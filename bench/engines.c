/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the engines themselves cost, without broker and dispatcher: instructions a message of the
 * loop engine with a blocking handler that does nothing (submit and completion, the caller's part
 * measured apart and taken off), and how much of the possible the threads engine reaches with
 * handlers that block for 5 ms on 100 threads: 100 / T, T being the time that such a sleep really
 * takes on this machine, measured on as many threads without an engine right before and after.
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/loop.h"
#include "bench/support/figures.h"
#include "core/delivery.h"
#include "engines/loop.h"
#include "engines/threads.h"

enum { BATCH = 64, THREADS = 100, SLEEP_MS = 5, ROUND_MESSAGES = 20000, ROUNDS = 5 };

struct world {
    struct lw_loop *loop;
    struct lw_host *host;
    struct lw_completions completions;
    struct lw_engine *engine;
    struct lw_turn turn;
    struct lw_delivery *deliveries;
    struct lw_delivery *spare[THREADS];
    uint32_t spare_count;
    uint64_t left;
    uint64_t done;
};

static enum lw_verdict
do_nothing(struct lw_delivery *delivery, void *user)
{
    (void)delivery;
    (void)user;
    return LW_OK;
}

static void
block(void)
{
    struct timespec left = { .tv_nsec = SLEEP_MS * 1000000L };
    (void)ppoll(NULL, 0, &left, NULL);
}

static enum lw_verdict
sleep_a_little(struct lw_delivery *delivery, void *user)
{
    (void)delivery;
    (void)user;
    block();
    return LW_OK;
}

static void
begin_run(struct lw_delivery *delivery)
{
    uint32_t serial = atomic_load_explicit(&delivery->serial, memory_order_relaxed);
    atomic_store_explicit(&delivery->serial, (serial | 1) + 1, memory_order_relaxed);
    lw_mail_init(&delivery->mail);
}

static void
open_world(struct world *world, uint32_t count)
{
    memset(world, 0, sizeof *world);
    if (lw_loop_create(1, &world->loop) != LW_STATUS_OK) {
        exit(1);
    }
    world->host = lw_loop_host(world->loop);
    lw_completions_init(&world->completions, world->host, world->host->mailbox.wake_fd);
    world->deliveries = calloc(count, sizeof *world->deliveries);
    for (uint32_t i = 0; i < count; i++) {
        world->deliveries[i].completions = &world->completions;
        world->spare[world->spare_count++ % THREADS] = &world->deliveries[i];
    }
}

static void
close_world(struct world *world)
{
    world->engine->ops->destroy(world->engine);
    lw_loop_destroy(world->loop);
    free(world->deliveries);
}

/* -- loop: instructions ------------------------------------------------------------------------ */

/* With an engine, or only what the caller does around it. */
static void
run_loop(uint64_t messages, bool with_engine)
{
    struct world world;
    struct lw_delivery *tasks[BATCH];
    struct lw_handler_options options = { .handler = do_nothing, .timeout_ms = 30000 };
    open_world(&world, BATCH);
    if (lw_loop_engine_create(world.host, &world.completions, "bench", &options,
                              &world.engine) != LW_STATUS_OK) {
        exit(1);
    }
    (void)world.engine->ops->start(world.engine, NULL);
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
            world.done++;
        }
    }
    if (world.done < messages) {
        exit(1);
    }
    close_world(&world);
}

/* -- threads: share of the possible ------------------------------------------------------------ */

static uint64_t
on_turn(struct lw_turn *turn, uint64_t now)
{
    struct world *world = LW_CONTAINER(turn, struct world, turn);
    struct lw_queue_node *node = NULL;
    while ((node = lw_queue_pop(&world->completions.done)) != NULL) {
        world->spare[world->spare_count++] = LW_CONTAINER(node, struct lw_delivery, link);
        world->done++;
    }
    while (world->left > 0 && world->spare_count > 0 && world->engine->room > 0) {
        struct lw_delivery *delivery = world->spare[--world->spare_count];
        begin_run(delivery);
        delivery->started_at = now;
        world->left -= world->engine->ops->submit(world->engine, &delivery, 1);
    }
    world->engine->ops->flush(world->engine);
    return LW_NEVER;
}

static void *
sleep_often(void *user)
{
    for (uint64_t i = 0; i < ROUND_MESSAGES / THREADS; i++) {
        block();
    }
    return user;
}

/* Seconds that ROUND_MESSAGES sleeps take on THREADS threads with nothing between them. */
static double
sleep_without_engine(void)
{
    pthread_t threads[THREADS];
    uint64_t began = lw_clock_monotonic_ns();
    for (size_t i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], NULL, sleep_often, NULL) != 0) {
            exit(1);
        }
    }
    for (size_t i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    return (double)(lw_clock_monotonic_ns() - began) / 1e9;
}

static double
sleep_with_engine(void)
{
    struct world world;
    struct lw_handler_options options = { .handler = sleep_a_little,
                                          .timeout_ms = 30000,
                                          .threads = THREADS };
    open_world(&world, THREADS);
    if (lw_threads_engine_create(world.host, &world.completions, "bench", &options,
                                 &world.engine) != LW_STATUS_OK ||
        world.engine->ops->start(world.engine, NULL) != LW_STATUS_OK) {
        exit(1);
    }
    world.turn.fn = on_turn;
    lw_list_init(&world.turn.link);
    lw_host_add_turn(world.host, &world.turn);
    uint64_t began = lw_clock_monotonic_ns();
    world.left = ROUND_MESSAGES;
    lw_host_want_turn(world.host);
    while (world.done < ROUND_MESSAGES) {
        lw_loop_turn_until(world.loop, LW_NEVER);
    }
    double seconds = (double)(lw_clock_monotonic_ns() - began) / 1e9;
    lw_host_remove_turn(&world.turn);
    close_world(&world);
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
threads_share(void)
{
    double shares[ROUNDS];
    double before = sleep_without_engine();
    for (size_t i = 0; i < ROUNDS; i++) {
        double with = sleep_with_engine();
        double after = sleep_without_engine();
        shares[i] = (before + after) / 2 / with;
        before = after;
    }
    qsort(shares, ROUNDS, sizeof shares[0], compare);
    return shares[ROUNDS / 2];
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
        lw_figures_print(&figures, "threads_100_share", threads_share(), "of 100/T", 0.97, 0.93,
                         false);
    }
    return lw_figures_exit(&figures);
}
