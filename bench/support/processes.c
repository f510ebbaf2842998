/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs of the processes engine, and the floor under it: one process writes request records and
 * publishes every 64th, another writes an answer record for each and gives the request back. Both
 * look all the time; nobody sleeps, checks, or knows what a message is.
 */
#include "bench/support/processes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "bench/support/engine_world.h"
#include "engines/processes/record.h"
#include "engines/processes/shared.h"

enum { RING_BYTES = 256 * 1024, BATCH = 64, WARM_UP = 20000 };

static void
fail(const char *what)
{
    (void)fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

struct lw_processes_result
lw_processes_bench(const struct lw_processes_run *run)
{
    struct lw_engine_world world;
    struct lw_processes_result result;
    struct lw_processes_figures before;
    struct lw_processes_options options = {
        .path = LW_BINARY_DIR "/bench/plugins/handlers.so",
        .symbol = run->symbol,
        .service = "bench",
        .zygote = LW_BINARY_DIR "/libexec/laneway/laneway-zygote",
        .workers = run->workers,
        .window = run->window,
        .timeout_ms = 30000,
        .tune = { .max_crashes = 3,
                  .ring_bytes = RING_BYTES,
                  .item_bytes_max = 16 << 20,
                  .batch_size = BATCH },
    };
    lw_engine_world_open(&world, 2 * run->workers * run->window, run->value);
    if (lw_processes_engine_create(world.host, &world.completions, "bench", &options,
                                   &world.engine) != LW_STATUS_OK) {
        fail("no engine");
    }
    lw_engine_world_start(&world, run->workers);
    (void)lw_engine_world_run(&world, run->messages < WARM_UP ? run->messages / 10 : WARM_UP);
    lw_processes_engine_figures(world.engine, &before);
    uint64_t allocated = lw_alloc_count();
    result.seconds = lw_engine_world_run(&world, run->messages);
    result.allocations = lw_alloc_count() - allocated;
    lw_processes_engine_figures(world.engine, &result.figures);
    result.figures.worker_wakes -= before.worker_wakes;
    result.figures.owner_wakes -= before.owner_wakes;
    lw_engine_world_close(&world);
    return result;
}

/* -- The floor ------------------------------------------------------------------------------------ */

static void
answer_all(const struct lw_processes_shared *shared, uint64_t messages, size_t size)
{
    struct lw_processes_words *words = shared->words;
    struct lw_processes_answer answer = { .size = sizeof answer };
    uint64_t tail = 0;
    uint64_t head = 0;
    while (head < messages * sizeof answer) {
        uint64_t published = atomic_load_explicit(&words->request_head, memory_order_acquire);
        for (; tail < published; tail += size) {
            struct lw_processes_request request;
            memcpy(&request, shared->requests + (tail & (RING_BYTES - 1)), sizeof request);
            answer.seq = request.seq;
            memcpy(shared->answers + (head & (RING_BYTES - 1)), &answer, sizeof answer);
            head += sizeof answer;
        }
        atomic_store_explicit(&words->request_tail, tail, memory_order_release);
        atomic_store_explicit(&words->answer_head, head, memory_order_release);
    }
    _exit(0);
}

/* What came back since; the sum keeps the compiler from leaving the reading out. */
static uint64_t
take_answers(const struct lw_processes_shared *shared, uint64_t *tail, uint64_t *sum)
{
    uint64_t head = atomic_load_explicit(&shared->words->answer_head, memory_order_acquire);
    uint64_t taken = 0;
    for (; *tail < head; *tail += sizeof(struct lw_processes_answer), taken++) {
        struct lw_processes_answer answer;
        memcpy(&answer, shared->answers + (*tail & (RING_BYTES - 1)), sizeof answer);
        *sum += answer.seq;
    }
    return taken;
}

static double
ask_all(const struct lw_processes_shared *shared, uint64_t messages, size_t size)
{
    static const char payload[4096];
    struct lw_processes_request request = { .size = (uint32_t)size };
    uint64_t head = 0, tail = 0, sum = 0, sent = 0, done = 0;
    uint64_t began = lw_clock_monotonic_ns();
    while (done < messages) {
        uint64_t room = (uint64_t)(RING_BYTES / 2) / size - (sent - done);
        for (uint64_t i = 0; i < BATCH && i < room && sent < messages; i++, sent++) {
            unsigned char *at = shared->requests + (head & (RING_BYTES - 1));
            request.seq = sent;
            memcpy(at, &request, sizeof request);
            memcpy(at + sizeof request, payload, size - sizeof request);
            head += size;
        }
        atomic_store_explicit(&shared->words->request_head, head, memory_order_release);
        done += take_answers(shared, &tail, &sum);
    }
    if (sum == 1) {
        fail("an answer is wrong");
    }
    return (double)(lw_clock_monotonic_ns() - began) / 1e9;
}

double
lw_processes_bare(uint64_t messages, size_t payload_size)
{
    struct lw_processes_shared shared;
    size_t size = lw_processes_round(sizeof(struct lw_processes_request) + payload_size);
    int fd = -1;
    if (lw_processes_shared_create(RING_BYTES, &shared, &fd) != 0) {
        fail("no shared memory");
    }
    pid_t pid = fork();
    if (pid < 0) {
        fail("no process");
    }
    if (pid == 0) {
        answer_all(&shared, messages, size);
    }
    double seconds = ask_all(&shared, messages, size);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }
    lw_processes_shared_close(&shared);
    (void)close(fd);
    return seconds;
}
