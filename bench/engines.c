/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the engines themselves cost, without broker and dispatcher: instructions a message of the
 * loop engine with a handler that does nothing (submit and completion; the caller's part is
 * measured apart and taken off), and how much of the possible others reach with a handler that
 * blocks or computes. What is possible is measured, too: the same calls on as many threads without
 * an engine, right before and after, so that a machine that sleeps longer than asked, or whose
 * processors share a core, does not count against the engine. Medians of interleaved pairs, judged
 * by their upper quartile. Words after the program's name choose groups: loop, threads, processes,
 * programs.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench/support/engine_world.h"
#include "bench/support/figures.h"
#include "bench/support/processes.h"
#include "engines/common/plugin_file.h"
#include "engines/loop.h"
#include "engines/programs/engine.h"
#include "engines/threads.h"

enum { BATCH = 64, PAIRS = 9, THREADS_MAX = 100 };
/* Sizes of payloads whose difference shows how often one is copied; both fit a ring's share. */
enum { COPIED_LESS = 4096, COPIED_MORE = 16384, COPIED_MESSAGES = 3000 };

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

/* -- What is run ------------------------------------------------------------------------------- */

struct work {
    const char *name; /* of the handler in bench/plugins and of the word of worker.py */
    uint32_t workers; /* threads or processes */
    uint32_t window;  /* messages that a process may hold */
    uint64_t messages;
    enum lw_protocol protocol;
    struct lw_bytes value;
};

/* The shared object stays in the process when it is closed. */
static lw_handler_fn
load(const char *name)
{
    struct lw_plugin_file file;
    struct lw_error error = { 0 };
    if (lw_plugin_file_load("bench", LW_BINARY_DIR "/bench/plugins/handlers.so", name, &file,
                            &error) != LW_STATUS_OK) {
        (void)fprintf(stderr, "%s\n", error.message);
        exit(1);
    }
    lw_handler_fn handler = file.table.handle;
    lw_plugin_file_close(&file);
    return handler;
}

struct share_of_work {
    lw_handler_fn handler;
    uint64_t calls;
};

static void *
work_alone(void *user)
{
    const struct share_of_work *share = user;
    for (uint64_t i = 0; i < share->calls; i++) {
        (void)share->handler(NULL, NULL);
    }
    return NULL;
}

/* Seconds that all calls take on bare threads. */
static double
run_without_engine(const struct work *work)
{
    pthread_t threads[THREADS_MAX];
    struct share_of_work share = { load(work->name), work->messages / work->workers };
    uint64_t began = lw_clock_monotonic_ns();
    for (size_t i = 0; i < work->workers; i++) {
        if (pthread_create(&threads[i], NULL, work_alone, &share) != 0) {
            exit(1);
        }
    }
    for (size_t i = 0; i < work->workers; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    return (double)(lw_clock_monotonic_ns() - began) / 1e9;
}

static double
run_threads(const struct work *work)
{
    struct lw_engine_world world;
    struct lw_handler_options options = { .handler = load(work->name),
                                          .timeout_ms = 30000,
                                          .threads = work->workers };
    lw_engine_world_open(&world, 2 * work->workers, value_of_bench());
    if (lw_threads_engine_create(world.host, &world.completions, "bench", &options,
                                 &world.engine) != LW_STATUS_OK) {
        exit(1);
    }
    lw_engine_world_start(&world, work->workers);
    double seconds = lw_engine_world_run(&world, work->messages);
    lw_engine_world_close(&world);
    return seconds;
}

/* -- Figures ----------------------------------------------------------------------------------- */

/*
 * How much of what bare threads reach with the same calls, measured right before and after; and in
 * how many of the pairs those two agree within a tenth, as they do on a machine that is quiet.
 */
static void
print_share(struct lw_figures *figures, const char *name, const struct work *work,
            double (*run)(const struct work *work), const char *unit, double goal)
{
    double shares[PAIRS];
    char title[64];
    uint32_t quiet = 0;
    double before = run_without_engine(work);
    for (size_t i = 0; i < PAIRS; i++) {
        double with = run(work);
        double after = run_without_engine(work);
        shares[i] = (before + after) / 2 / with;
        quiet += after < before * 1.1 && before < after * 1.1;
        before = after;
    }
    (void)snprintf(title, sizeof title, "%s_quiet_pairs", name);
    lw_figures_note(title, quiet, "of 9");
    lw_figures_quartiles(figures, name, lw_figures_sort(shares, PAIRS), unit, goal);
}

static void
measure_threads(struct lw_figures *figures)
{
    const struct work sleeping = { .name = "nap", .workers = 100, .messages = 20000 };
    const struct work computing = { .name = "cpu", .workers = 2, .messages = 8000 };
    print_share(figures, "threads_100_share", &sleeping, run_threads, "of 100/T", 0.97);
    print_share(figures, "threads_2_cpu_share", &computing, run_threads, "of 2/t_h", 0.97);
}

/* -- processes --------------------------------------------------------------------------------- */

static double
run_processes(const struct work *work)
{
    const struct lw_processes_run run = { .symbol = work->name,
                                          .workers = work->workers,
                                          .window = 64,
                                          .messages = work->messages,
                                          .value = value_of_bench() };
    return lw_processes_bench(&run).seconds;
}

/* A handler that does nothing, on one worker: with us that is two processors. */
static struct lw_processes_run
flow_of(uint64_t messages, size_t bytes)
{
    static char large[COPIED_MORE];
    bool is_large = bytes > sizeof payload - 1;
    return (struct lw_processes_run){ .symbol = "noop",
                                      .workers = 1,
                                      .window = is_large ? 8 : 512,
                                      .messages = messages,
                                      .value = { is_large ? large : payload, bytes } };
}

/* By its name on the command line; false: there is none of that name. */
static bool
run_flow(const char *name, uint64_t messages)
{
    static char from[COPIED_MORE];
    static char to[COPIED_MORE];
    size_t bytes = strstr(name, "_more")   ? COPIED_MORE
                   : strstr(name, "_less") ? COPIED_LESS
                                           : 66;
    if (strncmp(name, "copy", 4) == 0) {
        for (uint64_t i = 0; i < messages; i++) {
            __asm__ volatile("" : "+r"(bytes) : : "memory"); /* one call of memcpy for each */
            memcpy(to, from, bytes);
        }
        return true;
    }
    if (strncmp(name, "flow", 4) == 0) {
        const struct lw_processes_run run = flow_of(messages, bytes);
        (void)lw_processes_bench(&run);
        return true;
    }
    return false;
}

/* What the bytes between COPIED_LESS and COPIED_MORE take; negative when it was not measured. */
static double
instructions_for_bytes(const char *argv0, const char *name)
{
    double sums[2];
    for (size_t i = 0; i < 2; i++) {
        char title[32];
        double own = 0;
        double children = 0;
        (void)snprintf(title, sizeof title, "%s_%s", name, i == 0 ? "less" : "more");
        if (!lw_figures_instructions_apart(argv0, title, COPIED_MESSAGES, &own, &children)) {
            return -1;
        }
        sums[i] = own + children;
    }
    return sums[1] - sums[0];
}

/*
 * Of the service and of the worker; and how often a payload is copied by both together, beside which
 * the worker looks for more of them while a large one is written.
 */
static void
measure_flow_instructions(struct lw_figures *figures, const char *argv0)
{
    double own = -1;
    double worker = -1;
    (void)lw_figures_instructions_apart(argv0, "flow", 100000, &own, &worker);
    lw_figures_print(figures, "processes_instructions", own, "instr/msg", 550, 800, true);
    lw_figures_print(figures, "processes_worker_instructions", worker, "instr/msg", 350, 600,
                     true);
    double once = instructions_for_bytes(argv0, "copy");
    double all = instructions_for_bytes(argv0, "flow");
    lw_figures_print(figures, "processes_copies", once > 0 && all > 0 ? all / once : -1, "/msg",
                     1.05, 1.2, true);
}

static void
measure_flow(struct lw_figures *figures)
{
    const struct lw_processes_run run = flow_of(2000000, sizeof payload - 1);
    double rates[PAIRS];
    double bare[PAIRS];
    double shares[PAIRS];
    double wakes = 0;
    double allocations = 0;
    for (size_t i = 0; i < PAIRS; i++) {
        struct lw_processes_result result = lw_processes_bench(&run);
        double messages = (double)run.messages;
        double woken = (double)(result.figures.worker_wakes + result.figures.owner_wakes);
        rates[i] = messages / result.seconds / 1e6;
        bare[i] = messages / lw_processes_bare(run.messages, run.value.size) / 1e6;
        shares[i] = rates[i] / bare[i];
        wakes = woken / messages > wakes ? woken / messages : wakes;
        allocations += (double)result.allocations / messages / PAIRS;
    }
    lw_figures_quartiles(figures, "processes_noop_rate", lw_figures_sort(rates, PAIRS),
                         "M msg/s", 1.2);
    lw_figures_note("processes_bare_rings", lw_figures_sort(bare, PAIRS).median, "M msg/s");
    lw_figures_note("processes_share_of_bare", lw_figures_sort(shares, PAIRS).median,
                    "of bare rings");
    lw_figures_print(figures, "processes_wakes", wakes, "/msg", 1.0 / 32, 1.0 / 32, true);
    lw_figures_print(figures, "processes_allocations", allocations, "/msg", 0, 0.0001, true);
}

static void
measure_processes(struct lw_figures *figures)
{
    const struct work sleeping = { .name = "nap", .workers = 8, .messages = 4000 };
    const struct work computing = { .name = "cpu", .workers = 2, .messages = 8000 };
    measure_flow(figures);
    print_share(figures, "processes_8_sleep_share", &sleeping, run_processes, "of 8/T", 0.95);
    print_share(figures, "processes_2_cpu_share", &computing, run_processes, "of 2/t_h", 0.93);
}

/* -- programs ---------------------------------------------------------------------------------- */

static double
run_programs(const struct work *work)
{
    struct lw_engine_world world;
    const char *program[] = { "python3", LW_SOURCE_DIR "/bench/handlers/worker.py", work->name,
                              NULL };
    struct lw_programs_options options = {
        .program = program,
        .protocol = work->protocol,
        .service = "bench",
        .workers = work->workers,
        .window = work->window,
        .timeout_ms = 30000,
        .start_timeout_ms = 60000,
    };
    uint32_t in_hand = work->workers * work->window;
    lw_engine_world_open(&world, in_hand, work->value);
    if (lw_programs_engine_create(world.host, &world.completions, "bench", &options,
                                  &world.engine) != LW_STATUS_OK) {
        exit(1);
    }
    lw_engine_world_start(&world, in_hand);
    double seconds = lw_engine_world_run(&world, work->messages);
    lw_engine_world_close(&world);
    return seconds;
}

/* Rates of one Python process in both protocols, in turn; the ratio of each pair. */
static void
measure_protocols(const char *name, size_t bytes, uint64_t messages)
{
    static char large[65536];
    char title[64];
    double lines[PAIRS];
    double frames[PAIRS];
    double ratios[PAIRS];
    memset(large, 'x', sizeof large);
    struct work work = { .name = "noop",
                         .workers = 1,
                         .window = 8,
                         .messages = messages,
                         .value = { large, bytes } };
    for (size_t i = 0; i < PAIRS; i++) {
        work.protocol = LW_PROTOCOL_LINES;
        lines[i] = (double)messages / run_programs(&work);
        work.protocol = LW_PROTOCOL_FRAMES;
        frames[i] = (double)messages / run_programs(&work);
        ratios[i] = frames[i] / lines[i];
    }
    (void)snprintf(title, sizeof title, "lines_python_%s", name);
    lw_figures_note(title, lw_figures_sort(lines, PAIRS).median, "msg/s");
    (void)snprintf(title, sizeof title, "frames_python_%s", name);
    lw_figures_note(title, lw_figures_sort(frames, PAIRS).median, "msg/s");
    (void)snprintf(title, sizeof title, "frames_to_lines_%s", name);
    lw_figures_note(title, lw_figures_sort(ratios, PAIRS).median, "times");
}

static void
measure_programs(struct lw_figures *figures)
{
    const struct work sleeping = {
        .name = "nap", .workers = 8, .window = 2, .messages = 4000, .value = value_of_bench()
    };
    measure_protocols("66B", 66, 40000);
    measure_protocols("64KiB", 65536, 8000);
    print_share(figures, "lines_python_8_share", &sleeping, run_programs, "of 8/T", 0.95);
}

static void
measure_loop(struct lw_figures *figures, const char *argv0)
{
    double with = lw_figures_instructions(argv0, "loop", 100000, false);
    double without = lw_figures_instructions(argv0, "caller", 100000, false);
    lw_figures_print(figures, "loop_engine_instructions", with - without, "instr/msg", 25, 30,
                     true);
}

/* All groups, or those that are named; none with --instructions. */
static bool
is_wanted(int argc, char **argv, const char *group)
{
    bool is_any = false;
    bool is_named = false;
    for (int i = 1; i < argc; i++) {
        is_any |= strcmp(argv[i], "--check") != 0;
        is_named |= strcmp(argv[i], group) == 0;
    }
    return is_named || !is_any;
}

int
main(int argc, char **argv)
{
    struct lw_figures figures;
    if (argc == 4 && strcmp(argv[1], "--run") == 0) {
        if (run_flow(argv[2], strtoull(argv[3], NULL, 10))) {
            return 0;
        }
        run_loop(strtoull(argv[3], NULL, 10), strcmp(argv[2], "loop") == 0);
        return 0;
    }
    lw_figures_init(&figures, argc, argv);
    if (figures.is_instructions_only || is_wanted(argc, argv, "loop")) {
        measure_loop(&figures, argv[0]);
    }
    if (figures.is_instructions_only || is_wanted(argc, argv, "processes")) {
        measure_flow_instructions(&figures, argv[0]);
    }
    if (is_wanted(argc, argv, "threads")) {
        measure_threads(&figures);
    }
    if (is_wanted(argc, argv, "processes")) {
        measure_processes(&figures);
    }
    if (is_wanted(argc, argv, "programs")) {
        measure_programs(&figures);
    }
    return lw_figures_exit(&figures);
}
