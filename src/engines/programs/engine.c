/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The programs engine: the engine's table, what workers tell it, and its making. Which worker
 * gets what is in choice.c, when processes start in supply.c, who is charged in blame.c, the life
 * of one process in worker.c. Loop thread only.
 */
#include "engines/programs/engine.h"

#include <pthread.h>
#include <signal.h>

#include "base/alloc.h"
#include "engines/programs/once.h"
#include "engines/programs/programs.h"

#define TERM_BEFORE (1000 * LW_MS) /* before a stop's deadline, or half of what is left */

static struct lw_programs *
programs_of(struct lw_engine *engine)
{
    return LW_CONTAINER(engine, struct lw_programs, engine);
}

/* -- What workers tell ---------------------------------------------------------------------- */

static void
on_ready(struct lw_programs_worker *worker)
{
    struct lw_programs *programs = lw_programs_owner(worker);
    programs->is_proven = true;
    if (programs->engine.is_down) {
        programs->engine.is_down = false;
        programs->engine.has_changed = true;
        lw_host_log(programs->engine.host, LW_LOG_INFO, "handler.up", "the handler works again",
                    "handler=%s", programs->name);
    }
    if (programs->is_stopping) {
        lw_programs_worker_close_input(worker);
    }
    lw_programs_start_workers(programs);
    lw_programs_go_on(programs);
}

static void
on_answer(struct lw_programs_worker *worker, struct lw_programs_task *task)
{
    struct lw_programs *programs = lw_programs_owner(worker);
    programs->good_answers++;
    lw_programs_report(programs, task);
    if (programs->failures > 0) {
        programs->failures = 0;
        programs->retry_at = 0;
        lw_timers_disarm(&programs->engine.host->timers, &programs->start_timer);
        lw_programs_start_workers(programs);
    }
    lw_programs_go_on(programs);
}

static void
on_ending(struct lw_programs_worker *worker)
{
    lw_programs_update_room(lw_programs_owner(worker));
}

static void
on_stray(struct lw_programs_worker *worker)
{
    struct lw_programs *programs = lw_programs_owner(worker);
    programs->engine.stray_lines++;
    if (!programs->is_stray_said) {
        programs->is_stray_said = true;
        lw_host_log(programs->engine.host, LW_LOG_WARN, "handler.stray",
                    "handler prints to stdout; use stderr, or answer on the descriptor in "
                    "LANEWAY_FD",
                    "handler=%s", programs->name);
    }
}

/* -- The table -------------------------------------------------------------------------------- */

void
lw_programs_block_sigpipe(void)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGPIPE);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static enum lw_status
start(struct lw_engine *engine, struct lw_error *ret_error)
{
    enum lw_status status = lw_programs_limits_open(programs_of(engine), ret_error);
    if (status == LW_STATUS_OK) {
        lw_programs_block_sigpipe();
        lw_programs_start_workers(programs_of(engine));
    }
    return status;
}

static bool
take_one(struct lw_programs *programs, struct lw_delivery *delivery)
{
    struct lw_programs_worker *worker = lw_programs_least_loaded(programs);
    struct lw_programs_task *task = worker ? lw_programs_tasks_take(&programs->tasks, delivery)
                                           : NULL;
    if (task && lw_programs_worker_give(worker, task)) {
        programs->engine.room--;
        return true;
    }
    if (task) {
        lw_programs_tasks_give(&programs->tasks, task);
    }
    lw_programs_wait_for_memory(programs, LW_PROGRAMS_NO_REQUEST);
    return false;
}

static size_t
submit(struct lw_engine *engine, struct lw_delivery *const tasks[], size_t n)
{
    size_t taken = 0;
    while (taken < n && engine->room > 0 && take_one(programs_of(engine), tasks[taken])) {
        taken++;
    }
    return taken;
}

static void
flush(struct lw_engine *engine)
{
    struct lw_programs *programs = programs_of(engine);
    for (uint32_t i = 0; i < programs->worker_count; i++) {
        lw_programs_worker_flush(&programs->workers[i]);
    }
}

/*
 * What a process already has is not interrupted: a rebalance would end every worker. Its own
 * timeout bounds it. What only waits here to run again goes back at once.
 */
static void
cancel(struct lw_engine *engine, struct lw_delivery *delivery)
{
    struct lw_programs *programs = programs_of(engine);
    struct lw_programs_task *task = delivery->engine_data;
    atomic_store_explicit(&delivery->is_cancelled, true, memory_order_relaxed);
    if (task && !task->worker) {
        lw_list_remove(&task->link);
        lw_programs_give_back(programs, task, "cancelled before it ran again");
        lw_programs_update_room(programs);
    }
}

/* First TERM to what still runs, then, at the deadline, KILL. */
static void
on_stop_timer(struct lw_timer *timer, uint64_t now)
{
    struct lw_programs *programs = LW_CONTAINER(timer, struct lw_programs, stop_timer);
    (void)now;
    for (uint32_t i = 0; i < programs->worker_count; i++) {
        lw_programs_worker_end(&programs->workers[i], LW_PROGRAMS_BY_STOP,
                               programs->stop_deadline, "it did not end by itself in time");
    }
}

/* In a drain it may come twice: who exits since the first keeps its second for that. */
static void
stop(struct lw_engine *engine, uint64_t deadline)
{
    struct lw_programs *programs = programs_of(engine);
    struct lw_host *host = engine->host;
    /* Who holds nothing that is waited for has no need of a long drain, or one without an end. */
    uint64_t kill_at = host->now + LW_PROGRAMS_KILL_AFTER;
    uint64_t idle_deadline = deadline < kill_at ? deadline : kill_at;
    programs->is_stopping = true;
    programs->stop_deadline = deadline;
    lw_timers_disarm(&host->timers, &programs->start_timer);
    lw_programs_give_back_all(programs, &programs->waiting, "stopped before it ran again");
    lw_programs_give_back_all(programs, &programs->suspects, "stopped before it ran again");
    for (uint32_t i = 0; i < programs->worker_count; i++) {
        struct lw_programs_worker *worker = &programs->workers[i];
        lw_programs_worker_flush(worker);
        if (worker->state == LW_PROGRAMS_READY) {
            lw_programs_worker_close_input(worker);
        } else if (worker->state == LW_PROGRAMS_STARTING) {
            lw_programs_worker_end(worker, LW_PROGRAMS_BY_STOP, idle_deadline,
                                   "it was stopped");
        }
    }
    if (deadline != LW_NEVER) {
        uint64_t left = deadline > host->now ? deadline - host->now : 0;
        uint64_t before = left / 2 < TERM_BEFORE ? left / 2 : TERM_BEFORE;
        lw_timers_arm(&host->timers, &programs->stop_timer, deadline - before);
    }
    lw_programs_update_room(programs);
}

static bool
is_stopped(const struct lw_engine *engine)
{
    const struct lw_programs *programs = (const void *)engine;
    for (uint32_t i = 0; i < programs->worker_count; i++) {
        if (programs->workers[i].state != LW_PROGRAMS_IDLE) {
            return false;
        }
    }
    return programs->is_stopping;
}

static void
free_texts(char **texts)
{
    for (char **text = texts; text && *text; text++) {
        lw_free(*text);
    }
    lw_free(texts);
}

void
lw_programs_deinit(struct lw_programs *programs)
{
    struct lw_timers *timers = &programs->engine.host->timers;
    for (uint32_t i = 0; i < programs->worker_count; i++) {
        lw_programs_worker_deinit(&programs->workers[i]);
    }
    lw_timers_disarm(timers, &programs->start_timer);
    lw_timers_disarm(timers, &programs->stop_timer);
    lw_timers_disarm(timers, &programs->memory_timer);
    lw_programs_limits_close(programs);
    lw_programs_tasks_deinit(&programs->tasks);
    lw_free(programs->workers);
    lw_free(programs->name);
    lw_free(programs->service);
    lw_free(programs->pipeline);
    lw_free(programs->directory);
    free_texts(programs->program);
    free_texts(programs->environment);
}

static void
destroy(struct lw_engine *engine)
{
    struct lw_programs *programs = programs_of(engine);
    lw_programs_deinit(programs);
    lw_free(programs);
}

static const struct lw_engine_ops programs_ops = {
    .name = "programs",
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

/* -- Making ------------------------------------------------------------------------------------ */

/* Copies a NULL-terminated array with room for `extra` more texts. */
static char **
copy_texts(const char *const *texts, size_t extra)
{
    size_t count = 0;
    while (texts && texts[count]) {
        count++;
    }
    char **copy = lw_alloc_array(count + extra + 1, sizeof *copy);
    for (size_t i = 0; copy && i < count; i++) {
        copy[i] = lw_copy_text(texts[i]);
        if (!copy[i]) {
            free_texts(copy);
            return NULL;
        }
    }
    return copy;
}

static bool
add_variable(char **environment, const char *name, const char *value)
{
    struct lw_text text;
    while (*environment) {
        environment++;
    }
    lw_text_init(&text);
    lw_text_format(&text, "%s=%s", name, value);
    *environment = lw_text_take(&text);
    return *environment != NULL;
}

static const struct lw_programs_protocol *
protocol_of(const struct lw_programs_options *options)
{
    return options->protocol == LW_PROTOCOL_FRAMES ? &lw_programs_frames : &lw_programs_lines;
}

static bool
copy_options(struct lw_programs *programs, const char *name,
             const struct lw_programs_options *options)
{
    enum { VARIABLES = 4 + LW_PROGRAMS_LAUNCH_VARIABLES };
    bool is_once = options->protocol == LW_PROTOCOL_ONCE;
    const char *protocol = is_once ? "once" : protocol_of(options)->name;
    programs->name = lw_copy_text(name);
    programs->service = lw_copy_text(options->service ? options->service : "laneway");
    programs->pipeline = lw_copy_text(options->pipeline);
    programs->directory = lw_copy_text(options->directory);
    programs->limits = options->limits;
    programs->limits.user = lw_copy_text(options->limits.user);
    programs->program = copy_texts(options->program, 0);
    programs->environment = copy_texts(options->environment, VARIABLES);
    bool has_all = programs->name && programs->service && programs->program &&
                   programs->environment && (programs->pipeline || !options->pipeline) &&
                   (programs->directory || !options->directory) &&
                   (programs->limits.user || !options->limits.user);
    return has_all && add_variable(programs->environment, "LANEWAY_PROTOCOL", protocol) &&
           (is_once || add_variable(programs->environment, "LANEWAY_FD", "3")) &&
           add_variable(programs->environment, "LANEWAY_HANDLER", programs->name) &&
           add_variable(programs->environment, "LANEWAY_SERVICE", programs->service);
}

static void
fill_config(struct lw_programs *programs, const struct lw_programs_options *options)
{
    programs->config = (struct lw_programs_config){
        .host = programs->engine.host,
        .tasks = &programs->tasks,
        .protocol = protocol_of(options),
        .service = programs->service,
        .handler = programs->name,
        .command = { .program = (const char *const *)programs->program,
                     .directory = programs->directory,
                     .environment = (const char *const *)programs->environment,
                     .has_answers = true,
                     .has_pidfd = lw_programs_process_has_pidfd() },
        .window = options->window,
        .batch = options->batch,
        .timeout_ms = options->timeout_ms,
        .start_timeout_ms = options->start_timeout_ms,
        .user = programs,
        .on_ready = on_ready,
        .on_answer = on_answer,
        .on_stray = on_stray,
        .on_ending = on_ending,
        .on_end = lw_programs_on_end,
    };
}

static bool
make_workers(struct lw_programs *programs, const struct lw_programs_options *options)
{
    uint32_t capacity = 0;
    if (__builtin_mul_overflow(options->workers, options->window, &capacity)) {
        return false;
    }
    programs->workers = lw_alloc_array(options->workers, sizeof *programs->workers);
    if (!programs->workers || !lw_programs_tasks_init(&programs->tasks, capacity)) {
        return false;
    }
    for (uint32_t i = 0; i < options->workers; i++) {
        lw_programs_worker_init(&programs->workers[i], &programs->config, i);
    }
    programs->worker_count = options->workers;
    return true;
}

bool
lw_programs_init(struct lw_programs *programs, const char *name,
                 const struct lw_programs_options *options)
{
    lw_list_init(&programs->waiting);
    lw_list_init(&programs->suspects);
    lw_timer_init(&programs->start_timer, lw_programs_on_start_timer);
    lw_timer_init(&programs->stop_timer, on_stop_timer);
    lw_timer_init(&programs->memory_timer, lw_programs_on_memory_timer);
    lw_timer_init(&programs->sample_timer, lw_programs_on_sample_timer);
    if (!copy_options(programs, name, options)) {
        return false;
    }
    programs->engine.name = programs->name;
    programs->engine.batch = options->batch;
    fill_config(programs, options);
    return true;
}

enum lw_status
lw_programs_engine_create(struct lw_host *host, struct lw_completions *completions,
                          const char *name, const struct lw_programs_options *options,
                          struct lw_engine **ret_engine)
{
    if (!options->program || !options->program[0] || options->workers == 0 ||
        options->window == 0) {
        return LW_STATUS_INVALID;
    }
    if (options->protocol == LW_PROTOCOL_ONCE) {
        return lw_once_engine_create(host, completions, name, options, ret_engine);
    }
    struct lw_programs *programs = lw_alloc(sizeof *programs);
    if (!programs) {
        return LW_STATUS_NO_MEMORY;
    }
    programs->engine.ops = &programs_ops;
    programs->engine.host = host;
    programs->engine.completions = completions;
    if (!lw_programs_init(programs, name, options) || !make_workers(programs, options)) {
        destroy(&programs->engine);
        return LW_STATUS_NO_MEMORY;
    }
    *ret_engine = &programs->engine;
    return LW_STATUS_OK;
}
