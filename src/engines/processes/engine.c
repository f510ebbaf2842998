/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of the processes engine. Answers are looked for once a turn, in flush, whoever woke
 * the loop; only a turn that found none asks the workers to wake us, so under load nobody is woken
 * at all. A stop publishes what is buffered, lets workers finish, and tells each to go once it
 * holds nothing: it has a second, then TERM, then KILL.
 */
#include "engines/processes/engine.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/installed.h"
#include "engines/processes/processes.h"

#define TERM_BEFORE (1000 * LW_MS)

static struct lw_processes *
processes_of(struct lw_engine *engine)
{
    return LW_CONTAINER(engine, struct lw_processes, engine);
}

/* -- What workers tell ----------------------------------------------------------------------------- */

void
lw_processes_on_ready(struct lw_processes_worker *worker)
{
    struct lw_processes *processes = worker->owner;
    struct lw_host *host = processes->engine.host;
    lw_timers_disarm(&host->timers, &worker->timer);
    worker->state = LW_PROCESSES_TAKING;
    if (processes->is_stopping) {
        lw_processes_worker_leave(worker);
        return;
    }
    lw_processes_go_on(processes);
    lw_processes_start_workers(processes);
    lw_host_want_turn(host);
}

static void
end_suspect(struct lw_processes_worker *worker)
{
    struct lw_processes *processes = worker->owner;
    worker->is_alone = false;
    processes->alone = NULL;
    if (processes->suspects.first) {
        lw_processes_worker_leave(worker); /* the next one needs a fresh process */
    }
}

void
lw_processes_on_drained(struct lw_processes_worker *worker)
{
    struct lw_processes *processes = worker->owner;
    processes->failures = 0;
    if (worker->first != worker->next || worker->state != LW_PROCESSES_TAKING) {
        return;
    }
    if (processes->is_stopping || worker->given >= worker->given_max) {
        lw_processes_worker_leave(worker);
    } else if (worker->is_alone) {
        end_suspect(worker);
    }
}

/* -- The table ------------------------------------------------------------------------------------- */

static bool
find_zygote(struct lw_processes *processes)
{
    const char *given = processes->options.zygote;
    if (given) {
        lw_text_copy(processes->zygote_path, sizeof processes->zygote_path, given);
        return true;
    }
    return lw_installed_find("laneway-zygote", processes->zygote_path,
                             sizeof processes->zygote_path);
}

static enum lw_status
start(struct lw_engine *engine, struct lw_error *ret_error)
{
    struct lw_processes *processes = processes_of(engine);
    sigset_t set;
    /* A worker may end while we write to it: that is an error of write, not our end. */
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGPIPE);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (processes->path && !find_zygote(processes)) {
        (void)lw_error_set(
            ret_error, LW_STATUS_NOT_FOUND, "E0632",
            "handler \"%s\" cannot start: the program laneway-zygote is not there",
            processes->name);
        lw_error_help(ret_error,
                      "install Laneway whole: it belongs in libexec/laneway beside the "
                      "command or the library, and is not to be writable by others");
        return LW_STATUS_NOT_FOUND;
    }
    enum lw_status status = lw_processes_limits_check(processes, ret_error);
    if (status == LW_STATUS_OK) {
        lw_processes_start_workers(processes);
    }
    return status;
}

static size_t
submit(struct lw_engine *engine, struct lw_delivery *const tasks[], size_t n)
{
    struct lw_processes *processes = processes_of(engine);
    size_t taken = 0;
    for (; taken < n && engine->room > 0; taken++) {
        engine->room--;
        lw_processes_take(processes, tasks[taken]);
    }
    return taken;
}

static void
arm_flush(struct lw_processes *processes, uint64_t due)
{
    struct lw_timers *timers = &processes->engine.host->timers;
    if (due != LW_NEVER &&
        (!lw_timer_is_armed(&processes->flush_timer) || due < processes->flush_timer.due)) {
        lw_timers_arm(timers, &processes->flush_timer, due);
    }
}

/* The turn that it fires in ends with a flush, which does the work. */
static void
on_flush_timer(struct lw_timer *timer, uint64_t now)
{
    (void)timer;
    (void)now;
}

static void
flush(struct lw_engine *engine)
{
    struct lw_processes *processes = processes_of(engine);
    uint32_t drained = 0;
    bool has_more = false;
    for (uint32_t i = 0; i < processes->worker_count; i++) {
        struct lw_processes_worker *worker = &processes->workers[i];
        if (worker->first != worker->next) {
            arm_flush(processes, lw_processes_worker_flush(worker));
            drained += lw_processes_worker_drain(worker);
        }
    }
    lw_processes_grow(processes);
    if (drained > 0) {
        lw_processes_go_on(processes);
        lw_host_want_turn(engine->host);
        return;
    }
    for (uint32_t i = 0; i < processes->worker_count; i++) {
        has_more = lw_processes_worker_fall_asleep(&processes->workers[i]) || has_more;
    }
    if (has_more) {
        lw_host_want_turn(engine->host);
    }
}

/*
 * A message that runs is told (lw_delivery_is_cancelled) and not interrupted: a rebalance would
 * end every worker. Its own timeout bounds it. What waits here goes back when its turn comes.
 */
static void
cancel(struct lw_engine *engine, struct lw_delivery *delivery)
{
    struct lw_processes *processes = processes_of(engine);
    const struct lw_processes_worker *worker = delivery->engine_data;
    atomic_store_explicit(&delivery->is_cancelled, true, memory_order_relaxed);
    if (!worker) {
        lw_processes_go_on(processes);
    } else if (*lw_processes_open_at(worker, worker->first) == delivery) {
        atomic_store_explicit(&worker->shared.words->cancelled, worker->first,
                              memory_order_relaxed);
    }
}

/* First TERM to what still runs, then, at the deadline, KILL. */
static void
on_stop_timer(struct lw_timer *timer, uint64_t now)
{
    struct lw_processes *processes = LW_CONTAINER(timer, struct lw_processes, stop_timer);
    (void)now;
    for (uint32_t i = 0; i < processes->worker_count; i++) {
        lw_processes_worker_end(&processes->workers[i], LW_PROCESSES_BY_STOP,
                                processes->stop_deadline, "it did not end by itself in time");
    }
}

static void
stop_worker(struct lw_processes_worker *worker)
{
    lw_processes_worker_publish(worker, LW_PROCESSES_BY_CLOSE);
    if (worker->state == LW_PROCESSES_STARTING) {
        lw_processes_worker_end(worker, LW_PROCESSES_BY_STOP, 0, "it was stopped");
    } else if (worker->state == LW_PROCESSES_TAKING && worker->first == worker->next) {
        lw_processes_worker_leave(worker);
    }
}

static void
stop(struct lw_engine *engine, uint64_t deadline)
{
    struct lw_processes *processes = processes_of(engine);
    struct lw_host *host = engine->host;
    processes->is_stopping = true;
    processes->stop_deadline = deadline;
    lw_timers_disarm(&host->timers, &processes->start_timer);
    lw_processes_give_back_all(processes, "stopped before it ran");
    for (uint32_t i = 0; i < processes->worker_count; i++) {
        stop_worker(&processes->workers[i]);
    }
    if (deadline != LW_NEVER) {
        uint64_t left = deadline > host->now ? deadline - host->now : 0;
        uint64_t before = left / 2 < TERM_BEFORE ? left / 2 : TERM_BEFORE;
        lw_timers_arm(&host->timers, &processes->stop_timer, deadline - before);
    }
    lw_processes_update_room(processes);
    lw_host_want_turn(host);
}

static bool
is_stopped(const struct lw_engine *engine)
{
    const struct lw_processes *processes = (const void *)engine;
    for (uint32_t i = 0; i < processes->worker_count; i++) {
        if (processes->workers[i].state != LW_PROCESSES_IDLE) {
            return false;
        }
    }
    return processes->is_stopping;
}

static void
disarm_all(struct lw_processes *processes)
{
    struct lw_timers *timers = &processes->engine.host->timers;
    lw_timers_disarm(timers, &processes->start_timer);
    lw_timers_disarm(timers, &processes->load_timer);
    lw_timers_disarm(timers, &processes->stop_timer);
    lw_timers_disarm(timers, &processes->flush_timer);
    lw_timers_disarm(timers, &processes->memory_timer);
    lw_timers_disarm(timers, &processes->sample_timer);
}

static void
destroy(struct lw_engine *engine)
{
    struct lw_processes *processes = processes_of(engine);
    for (uint32_t i = 0; processes->workers && i < processes->worker_count; i++) {
        lw_processes_worker_deinit(&processes->workers[i]);
    }
    lw_processes_end_zygote(processes);
    lw_handler_log_deinit(&processes->zygote_log);
    disarm_all(processes);
    lw_free(processes->workers);
    lw_free(processes->properties);
    lw_free(processes->name);
    lw_free(processes->path);
    lw_free(processes->symbol);
    lw_free(processes->service);
    lw_free(processes->pipeline);
    lw_free(processes);
}

static const struct lw_engine_ops processes_ops = {
    .name = "processes",
    .reads_in_place = false,
    .can_end_early = true,
    .start = start,
    .submit = submit,
    .flush = flush,
    .cancel = cancel,
    .stop = stop,
    .is_stopped = is_stopped,
    .destroy = destroy,
};

/* -- Figures --------------------------------------------------------------------------------------- */

bool
lw_processes_engine_is(const struct lw_engine *engine)
{
    return engine && engine->ops == &processes_ops;
}

void
lw_processes_engine_figures(const struct lw_engine *engine,
                            struct lw_processes_figures *ret_figures)
{
    const struct lw_processes *processes = (const void *)engine;
    *ret_figures = processes->figures;
    for (uint32_t i = 0; i < processes->worker_count; i++) {
        const struct lw_processes_worker *worker = &processes->workers[i];
        uint64_t buffered = worker->next - worker->published_next;
        uint64_t age = buffered > 0 ? engine->host->now - worker->unflushed_since : 0;
        ret_figures->workers += worker->state == LW_PROCESSES_TAKING;
        ret_figures->buffered += (uint32_t)buffered;
        ret_figures->buffered_ns = age > ret_figures->buffered_ns ? age
                                                                  : ret_figures->buffered_ns;
    }
}

/* -- Making ---------------------------------------------------------------------------------------- */

/* The properties and their texts in one allocation; NULL without memory. */
static struct lw_property *
copy_properties(const struct lw_property *properties, size_t count)
{
    size_t size = (count + 1) * sizeof *properties;
    for (size_t i = 0; i < count; i++) {
        size += strlen(properties[i].name) + strlen(properties[i].value) + 2;
    }
    struct lw_property *copy = lw_alloc(size);
    char *next = copy ? (char *)(copy + count + 1) : NULL;
    for (size_t i = 0; next && i < count; i++) {
        size_t name_size = strlen(properties[i].name) + 1;
        size_t value_size = strlen(properties[i].value) + 1;
        copy[i].name = memcpy(next, properties[i].name, name_size);
        copy[i].value = memcpy(next + name_size, properties[i].value, value_size);
        next += name_size + value_size;
    }
    return copy;
}

static bool
copy_options(struct lw_processes *processes, const char *name,
             const struct lw_processes_options *options)
{
    processes->options = *options;
    processes->name = lw_copy_text(name);
    processes->path = lw_copy_text(options->path);
    processes->symbol = lw_copy_text(options->symbol);
    processes->service = lw_copy_text(options->service ? options->service : "laneway");
    processes->pipeline = lw_copy_text(options->pipeline);
    processes->properties = copy_properties(options->options, options->option_count);
    processes->options.options = processes->properties;
    processes->ring_bytes = lw_processes_ring_bytes((size_t)options->tune.ring_bytes);
    return processes->name && (processes->path || !options->path) && processes->service &&
           processes->properties && (processes->symbol || !options->symbol) &&
           (processes->pipeline || !options->pipeline);
}

static bool
make_workers(struct lw_processes *processes)
{
    uint32_t count = processes->options.workers;
    processes->workers = lw_alloc_array(count, sizeof *processes->workers);
    for (uint32_t i = 0; processes->workers && i < count; i++) {
        processes->worker_count++;
        if (!lw_processes_worker_init(&processes->workers[i], processes, i)) {
            return false;
        }
    }
    bool is_whole = processes->options.tune.min_workers == 0 ||
                    processes->options.tune.min_workers > count ||
                    processes->options.tune.pins_lanes;
    processes->wanted = is_whole ? count : processes->options.tune.min_workers;
    return processes->workers != NULL;
}

static void
init_timers(struct lw_processes *processes)
{
    lw_timer_init(&processes->start_timer, lw_processes_on_start_timer);
    lw_timer_init(&processes->load_timer, lw_processes_on_load_timer);
    lw_timer_init(&processes->stop_timer, on_stop_timer);
    lw_timer_init(&processes->flush_timer, on_flush_timer);
    lw_timer_init(&processes->memory_timer, lw_processes_on_memory_timer);
    lw_timer_init(&processes->sample_timer, lw_processes_on_sample_timer);
}

enum lw_status
lw_processes_engine_create(struct lw_host *host, struct lw_completions *completions,
                           const char *name, const struct lw_processes_options *options,
                           struct lw_engine **ret_engine)
{
    int count = (options->path != NULL) + (options->handler != NULL) +
                (options->handler_batch != NULL);
    bool fits = (!options->handler || options->batch.size == 0) &&
                (!options->handler_batch || options->batch.size > 0);
    if (count != 1 || !fits || options->workers == 0 || options->window == 0 ||
        options->tune.batch_size == 0) {
        return LW_STATUS_INVALID;
    }
    struct lw_processes *processes = lw_alloc(sizeof *processes);
    if (!processes) {
        return LW_STATUS_NO_MEMORY;
    }
    processes->engine.ops = &processes_ops;
    processes->engine.host = host;
    processes->engine.completions = completions;
    processes->engine.batch = options->batch;
    init_timers(processes);
    if (!copy_options(processes, name, options) || !make_workers(processes)) {
        destroy(&processes->engine);
        return LW_STATUS_NO_MEMORY;
    }
    processes->engine.name = processes->name;
    lw_handler_log_init(&processes->zygote_log, host, processes->name);
    *ret_engine = &processes->engine;
    return LW_STATUS_OK;
}
