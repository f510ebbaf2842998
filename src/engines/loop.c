/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop engine. The blocking path is the hot one: no timer, no list, no clock.
 *
 * Asynchronous runs are kept in a ring in the order of their starts, which with one timeout for
 * all is the order of their deadlines, so one timer watches over them. Nobody tells the engine
 * that a run ended; its serial does, and ended entries are swept out when the ring is full. The
 * ring is at least twice as large as what runs, so sweeping costs about two looks per start. A
 * timer per run was rejected for the two list operations that each message would pay.
 */
#include "engines/loop.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "base/host.h"
#include "base/inside.h"
#include "core/subscription.h"
#include "engines/common/batch.h"

enum { RUNS_MIN = 64 };

struct run {
    struct lw_delivery *delivery;
    uint64_t deadline;
    uint32_t serial;
};

struct loop_engine {
    struct lw_engine engine;
    struct lw_handler_options options;
    struct run *runs; /* a ring; capacity is a power of two */
    size_t capacity;
    size_t first;
    size_t end;
    size_t next_late; /* entries before it have no time left, or ended */
    struct lw_timer timer;
    struct lw_timer stop_timer;
    bool is_stopping;
    struct lw_batch_room room; /* where tasks have several members */
    char *name;
};

static struct loop_engine *
loop_of(struct lw_engine *engine)
{
    return LW_CONTAINER(engine, struct loop_engine, engine);
}

static inline struct run *
run_at(const struct loop_engine *loop, size_t index)
{
    return &loop->runs[index & (loop->capacity - 1)];
}

static inline bool
is_over(const struct run *run)
{
    return atomic_load_explicit(&run->delivery->serial, memory_order_acquire) != run->serial;
}

/* Keeps only what still runs, in order. */
static void
sweep(struct loop_engine *loop)
{
    size_t kept = loop->first;
    size_t next_late = kept;
    for (size_t i = loop->first; i != loop->end; i++) {
        struct run *run = run_at(loop, i);
        if (!is_over(run)) {
            *run_at(loop, kept++) = *run;
            next_late += i < loop->next_late ? 1 : 0;
        }
    }
    loop->end = kept;
    loop->next_late = next_late;
}

static bool
grow(struct loop_engine *loop)
{
    size_t capacity = loop->capacity ? loop->capacity * 2 : RUNS_MIN;
    struct run *runs = lw_alloc_array(capacity, sizeof *runs);
    if (!runs) {
        return false;
    }
    size_t count = loop->end - loop->first;
    for (size_t i = 0; i < count; i++) {
        runs[i] = *run_at(loop, loop->first + i);
    }
    lw_free(loop->runs);
    loop->runs = runs;
    loop->capacity = capacity;
    loop->next_late -= loop->first;
    loop->first = 0;
    loop->end = count;
    return true;
}

static bool
make_room(struct loop_engine *loop)
{
    if (loop->end - loop->first < loop->capacity) {
        return true;
    }
    sweep(loop);
    size_t running = loop->end - loop->first;
    bool is_tight = running * 2 >= loop->capacity;
    return !is_tight || grow(loop) || running < loop->capacity;
}

static void
tell_late(struct loop_engine *loop, const struct run *run)
{
    struct lw_delivery *delivery = run->delivery;
    const char *topic = delivery->subscription ? delivery->subscription->topic : NULL;
    lw_batch_set_late(delivery);
    lw_host_log(loop->engine.host, LW_LOG_WARN, "handler.late",
                "a handler runs longer than its timeout and cannot be ended",
                "handler=%s topic=%s offset=%" PRId64 " attempt=%" PRIu32, loop->name,
                topic ? topic : "", delivery->message.position, delivery->attempt);
}

/* Marks what is late and arms the timer for the first that still runs and still has time. */
static void
on_timer(struct lw_timer *timer, uint64_t now)
{
    struct loop_engine *loop = LW_CONTAINER(timer, struct loop_engine, timer);
    for (; loop->next_late != loop->end; loop->next_late++) {
        const struct run *run = run_at(loop, loop->next_late);
        if (is_over(run)) {
            continue;
        }
        if (run->deadline > now) {
            lw_timers_arm(&loop->engine.host->timers, timer, run->deadline);
            return;
        }
        tell_late(loop, run);
    }
}

static void
remember(struct loop_engine *loop, struct lw_delivery *delivery)
{
    *run_at(loop, loop->end++) = (struct run){
        .delivery = delivery,
        .deadline = delivery->deadline,
        .serial = atomic_load_explicit(&delivery->serial, memory_order_relaxed),
    };
}

static size_t
submit_async(struct loop_engine *loop, struct lw_delivery *const tasks[], size_t n)
{
    uint64_t deadline = lw_run_deadline(loop->engine.host->now, loop->options.timeout_ms);
    size_t taken = 0;
    for (; taken < n && make_room(loop); taken++) {
        struct lw_delivery *delivery = tasks[taken];
        delivery->deadline = deadline;
        remember(loop, delivery);
        delivery->is_inside_call = true;
        const void *before = lw_inside_enter(delivery);
        if (loop->options.handler_async) {
            loop->options.handler_async(delivery, loop->options.user);
        } else {
            lw_batch_call_async(&loop->options, &loop->room, delivery);
        }
        lw_inside_leave(before);
        delivery->is_inside_call = false;
    }
    if (deadline != LW_NEVER && taken > 0 && !lw_timer_is_armed(&loop->timer)) {
        lw_timers_arm(&loop->engine.host->timers, &loop->timer, deadline);
    }
    return taken;
}

static size_t
submit_blocking(struct loop_engine *loop, struct lw_delivery *const tasks[], size_t n)
{
    uint64_t deadline = lw_run_deadline(loop->engine.host->now, loop->options.timeout_ms);
    struct lw_queue *done = &loop->engine.completions->done;
    lw_handler_fn handler = loop->options.handler;
    void *user = loop->options.user;
    const void *before = lw_inside_subject();
    for (size_t i = 0; i < n; i++) {
        struct lw_delivery *delivery = tasks[i];
        delivery->deadline = deadline;
        lw_run_claim_first(delivery);
        (void)lw_inside_enter(delivery);
        enum lw_verdict verdict = handler(delivery, user);
        if (__builtin_expect((unsigned)verdict > LW_ERROR, 0)) {
            verdict = lw_run_judge(delivery, verdict);
        }
        delivery->verdict = (uint8_t)verdict;
        lw_queue_push(done, &delivery->link);
    }
    lw_inside_leave(before);
    return n;
}

static size_t
submit_batches(struct loop_engine *loop, struct lw_delivery *const tasks[], size_t n)
{
    uint64_t deadline = lw_run_deadline(loop->engine.host->now, loop->options.timeout_ms);
    for (size_t i = 0; i < n; i++) {
        lw_batch_claim(tasks[i], deadline);
        const void *before = lw_inside_enter(tasks[i]);
        lw_batch_call(&loop->options, &loop->room, tasks[i]);
        lw_inside_leave(before);
        lw_queue_push(&loop->engine.completions->done, &tasks[i]->link);
    }
    return n;
}

static size_t
submit(struct lw_engine *engine, struct lw_delivery *const tasks[], size_t n)
{
    struct loop_engine *loop = loop_of(engine);
    if (loop->is_stopping) {
        return 0;
    }
    if (loop->options.handler_batch) {
        return submit_batches(loop, tasks, n);
    }
    return loop->options.handler ? submit_blocking(loop, tasks, n)
                                 : submit_async(loop, tasks, n);
}

static enum lw_status
start(struct lw_engine *engine, struct lw_error *ret_error)
{
    (void)ret_error;
    engine->room = LW_ROOM_ANY;
    engine->has_changed = true;
    return LW_STATUS_OK;
}

static void
flush(struct lw_engine *engine)
{
    (void)engine;
}

static void
cancel(struct lw_engine *engine, struct lw_delivery *task)
{
    (void)engine;
    lw_batch_set_cancelled(task);
}

static void
on_stop_timer(struct lw_timer *timer, uint64_t now)
{
    struct loop_engine *loop = LW_CONTAINER(timer, struct loop_engine, stop_timer);
    (void)now;
    for (size_t i = loop->first; i != loop->end; i++) {
        const struct run *run = run_at(loop, i);
        if (!is_over(run)) {
            cancel(&loop->engine, run->delivery);
        }
    }
}

static void
stop(struct lw_engine *engine, uint64_t deadline)
{
    struct loop_engine *loop = loop_of(engine);
    loop->is_stopping = true;
    engine->room = 0;
    engine->has_changed = true;
    if (deadline != LW_NEVER) {
        lw_timers_arm(&engine->host->timers, &loop->stop_timer, deadline);
    }
}

static bool
is_stopped(const struct lw_engine *engine)
{
    const struct loop_engine *loop = (const void *)engine;
    for (size_t i = loop->first; i != loop->end; i++) {
        if (!is_over(run_at(loop, i))) {
            return false;
        }
    }
    return loop->is_stopping;
}

static void
destroy(struct lw_engine *engine)
{
    struct loop_engine *loop = loop_of(engine);
    lw_timers_disarm(&engine->host->timers, &loop->timer);
    lw_timers_disarm(&engine->host->timers, &loop->stop_timer);
    lw_batch_room_deinit(&loop->room);
    lw_free(loop->runs);
    lw_free(loop->name);
    lw_free(loop);
}

static const struct lw_engine_ops loop_ops = {
    .name = "loop",
    .reads_in_place = true,
    .can_end_early = false,
    .start = start,
    .submit = submit,
    .flush = flush,
    .cancel = cancel,
    .stop = stop,
    .is_stopped = is_stopped,
    .destroy = destroy,
};

enum lw_status
lw_loop_engine_create(struct lw_host *host, struct lw_completions *completions,
                      const char *name, const struct lw_handler_options *options,
                      struct lw_engine **ret_engine)
{
    int count = (options->handler != NULL) + (options->handler_async != NULL) +
                (options->handler_batch != NULL) + (options->handler_batch_async != NULL);
    bool is_batch = options->handler_batch || options->handler_batch_async;
    if (count != 1 || (is_batch && options->batch.size == 0)) {
        return LW_STATUS_INVALID;
    }
    struct loop_engine *loop = lw_alloc(sizeof *loop);
    char *name_copy = lw_copy_text(name);
    bool has_room = loop && (!is_batch || lw_batch_room_init(&loop->room, options->batch.size));
    if (!has_room || !name_copy) {
        if (loop) {
            lw_batch_room_deinit(&loop->room);
        }
        lw_free(loop);
        lw_free(name_copy);
        return LW_STATUS_NO_MEMORY;
    }
    loop->engine.ops = &loop_ops;
    loop->engine.host = host;
    loop->engine.completions = completions;
    loop->engine.name = name_copy;
    loop->name = name_copy;
    loop->options = *options;
    if (is_batch) {
        loop->engine.batch = options->batch;
    }
    loop->engine.direct = options->handler;
    loop->engine.direct_user = options->user;
    loop->engine.direct_timeout_ns = options->timeout_ms > 0
                                         ? (uint64_t)options->timeout_ms * LW_MS
                                         : 0;
    lw_timer_init(&loop->timer, on_timer);
    lw_timer_init(&loop->stop_timer, on_stop_timer);
    *ret_engine = &loop->engine;
    return LW_STATUS_OK;
}
