/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The programs engine: which worker gets which message, when a process is started, and who is
 * charged when one ends. The rules of blame:
 *   - a message that the process never read is not touched by its end;
 *   - after a timeout the late one is charged (if it was read), the others run again;
 *   - one message open at a death is charged; of several each is a suspect, run again alone on a
 *     fresh process, and only the one that kills it alone is charged (an exit with status 0 by a
 *     process that worked before makes suspects only: programs may retire);
 *   - a break of the protocol makes suspects; it charges one that does it alone only when the
 *     handler has ever answered well, since otherwise the handler is broken, not the message.
 * Messages that wait to run again stay in the engine and are reported once, at their end (P5).
 */
#include "engines/programs/engine.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "engines/programs/worker.h"

#define BACKOFF_MIN (1000 * LW_MS)
#define BACKOFF_MAX (30000 * LW_MS)
#define MEMORY_AFTER (100 * LW_MS)
#define TERM_BEFORE (1000 * LW_MS) /* before a stop's deadline, or a tenth of what is left */

struct programs {
    struct lw_engine engine;
    struct lw_programs_config config;
    struct lw_programs_worker *workers;
    uint32_t worker_count;
    struct lw_programs_tasks tasks;
    struct lw_list waiting;  /* run again, on any worker */
    struct lw_list suspects; /* run again alone */
    struct lw_programs_worker *alone; /* which runs suspects */
    uint64_t good_answers;
    uint32_t failures; /* to start, in a row */
    uint64_t retry_at;
    bool is_proven;     /* a worker was ready since the last failure */
    bool is_stray_said; /* the warning about prints on stdout */
    bool is_stopping;
    uint64_t stop_deadline;
    struct lw_timer start_timer;
    struct lw_timer stop_timer;
    struct lw_timer memory_timer; /* room is 0 for want of memory: looks again */
    char *name;
    char *service;
    char *pipeline;
    char *directory;
    char **program;
    char **environment;
};

static struct programs *
programs_of(struct lw_engine *engine)
{
    return LW_CONTAINER(engine, struct programs, engine);
}

static struct programs *
owner_of(const struct lw_programs_worker *worker)
{
    return worker->config->user;
}

static struct lw_programs_task *
task_in(struct lw_list *node)
{
    return LW_CONTAINER(node, struct lw_programs_task, link);
}

/* -- Reporting ------------------------------------------------------------------------------ */

static void
report(struct programs *programs, struct lw_programs_task *task)
{
    struct lw_delivery *delivery = task->delivery;
    lw_programs_tasks_give(&programs->tasks, task);
    lw_engine_done(&programs->engine, delivery);
}

static void
charge(struct programs *programs, struct lw_programs_task *task, const char *reason, int signal)
{
    struct lw_outcome *outcome = lw_delivery_outcome(task->delivery);
    if (outcome) {
        lw_outcome_clear(outcome);
        lw_outcome_set_reason(outcome, reason, strlen(reason));
        outcome->signal = signal;
    }
    task->delivery->verdict = LW_ERROR;
    report(programs, task);
}

/* Gives it back: this run did not count. */
static void
give_back(struct programs *programs, struct lw_programs_task *task, const char *reason)
{
    struct lw_outcome *outcome = lw_delivery_outcome(task->delivery);
    if (outcome) {
        lw_outcome_clear(outcome);
        lw_outcome_set_reason(outcome, reason, strlen(reason));
        outcome->is_uncharged = true;
    }
    task->delivery->verdict = LW_ERROR;
    report(programs, task);
}

static void
give_back_all(struct programs *programs, struct lw_list *list, const char *reason)
{
    for (struct lw_list *node = lw_list_pop(list); node; node = lw_list_pop(list)) {
        give_back(programs, task_in(node), reason);
    }
}

static void
set_waiting(struct lw_programs_task *task, struct lw_list *list)
{
    lw_list_remove(&task->link);
    task->worker = NULL;
    task->id = 0;
    task->has_clock = false;
    task->is_late = false;
    task->is_extended = false;
    lw_list_push(list, &task->link);
}

/* -- Choosing a worker ------------------------------------------------------------------------ */

static uint32_t
count_list(const struct lw_list *list)
{
    uint32_t count = 0;
    for (const struct lw_list *node = list->next; node != list; node = node->next) {
        count++;
    }
    return count;
}

static void
update_room(struct programs *programs)
{
    uint32_t room = 0;
    for (uint32_t i = 0; i < programs->worker_count; i++) {
        const struct lw_programs_worker *worker = &programs->workers[i];
        room += worker != programs->alone ? lw_programs_worker_room(worker) : 0;
    }
    uint32_t waiting = count_list(&programs->waiting);
    uint32_t places = programs->tasks.capacity - programs->tasks.count; /* suspects hold some */
    room = room > waiting && !programs->is_stopping ? room - waiting : 0;
    room = room < places ? room : places;
    if (room != programs->engine.room) {
        programs->engine.room = room;
        programs->engine.has_changed = true;
    }
}

/* A request found no memory: nothing is taken until the timer has looked again. */
static void
wait_for_memory(struct programs *programs)
{
    struct lw_host *host = programs->engine.host;
    programs->engine.room = 0;
    programs->engine.has_changed = true;
    lw_timers_arm(&host->timers, &programs->memory_timer, host->now + MEMORY_AFTER);
}

/* The ready worker that holds least; NULL: none has room. */
static struct lw_programs_worker *
least_loaded(struct programs *programs)
{
    struct lw_programs_worker *best = NULL;
    for (uint32_t i = 0; i < programs->worker_count; i++) {
        struct lw_programs_worker *worker = &programs->workers[i];
        if (worker == programs->alone || lw_programs_worker_room(worker) == 0) {
            continue;
        }
        if (!best || worker->open_count < best->open_count) {
            best = worker;
        }
        if (best->open_count == 0) {
            return best;
        }
    }
    return best;
}

static struct lw_programs_worker *
fresh_worker(struct programs *programs)
{
    for (uint32_t i = 0; i < programs->worker_count; i++) {
        struct lw_programs_worker *worker = &programs->workers[i];
        bool is_fresh = worker->answered == 0 && worker->open_count == 0;
        if (is_fresh && lw_programs_worker_room(worker) > 0) {
            return worker;
        }
    }
    return NULL;
}

static void
run_suspect(struct programs *programs)
{
    struct lw_list *node = lw_list_first(&programs->suspects);
    if (programs->alone && programs->alone->open_count == 0 && !node) {
        programs->alone = NULL;
    }
    if (node && !programs->alone) {
        programs->alone = fresh_worker(programs);
    }
    bool may_run = node && programs->alone && programs->alone->open_count == 0 &&
                   lw_programs_worker_room(programs->alone) > 0;
    if (may_run) {
        struct lw_programs_task *task = task_in(node);
        lw_list_remove(node);
        if (!lw_programs_worker_give(programs->alone, task)) {
            lw_list_push_front(&programs->suspects, node);
            wait_for_memory(programs);
            return;
        }
        lw_programs_worker_flush(programs->alone);
    }
}

static void
run_waiting(struct programs *programs)
{
    struct lw_list *node = NULL;
    while ((node = lw_list_first(&programs->waiting)) != NULL) {
        struct lw_programs_worker *worker = least_loaded(programs);
        if (!worker) {
            return;
        }
        lw_list_remove(node);
        if (!lw_programs_worker_give(worker, task_in(node))) {
            lw_list_push_front(&programs->waiting, node);
            wait_for_memory(programs);
            return;
        }
        lw_programs_worker_flush(worker);
    }
}

/* Something changed at a worker: what waits goes on, and room is counted anew. */
static void
go_on(struct programs *programs)
{
    if (!programs->is_stopping) {
        run_suspect(programs);
        run_waiting(programs);
    }
    update_room(programs);
}

static void
on_memory_timer(struct lw_timer *timer, uint64_t now)
{
    (void)now;
    go_on(LW_CONTAINER(timer, struct programs, memory_timer));
}

/* -- Starting --------------------------------------------------------------------------------- */

static bool
has_ready(const struct programs *programs)
{
    for (uint32_t i = 0; i < programs->worker_count; i++) {
        if (programs->workers[i].state == LW_PROGRAMS_READY) {
            return true;
        }
    }
    return false;
}

static void
write_command(const struct programs *programs, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (char *const *part = programs->program; *part && used < size; part++) {
        int length = snprintf(out + used, size - used, "%s%s", used ? " " : "", *part);
        used += length > 0 ? (size_t)length : 0;
    }
}

static void
set_down(struct programs *programs, const char *why, const char *last, uint64_t wait_ns)
{
    char command[200];
    char wait[32];
    char who[180];
    struct lw_error *error = &programs->engine.down_error;
    write_command(programs, command, sizeof command);
    lw_text_from_duration_ms((int64_t)(wait_ns / LW_MS), wait, sizeof wait);
    lw_error_set(error, LW_STATUS_UNAVAILABLE, "E0602", "handler \"%s\" cannot start: %s: %s",
                 programs->name, command, why);
    (void)snprintf(who, sizeof who, "%s%.150s %s", programs->pipeline ? "pipeline " : "",
                   programs->pipeline ? programs->pipeline : "its pipelines",
                   programs->pipeline ? "is" : "are");
    lw_error_help(error, "%s paused until it starts; 0 messages were consumed by this. "
                         "Next try in %s.%s%s",
                  who, wait, last[0] ? " Last output of the program:\n" : "", last);
    error->is_retriable = true;
    programs->engine.is_down = true;
    programs->engine.has_changed = true;
    lw_host_log(programs->engine.host, LW_LOG_ERROR, "handler.down", error->message,
                "code=E0602 handler=%s next_try=%s help=%s", programs->name, wait, error->help);
}

/* Nobody is charged: with no ready worker, what is here goes back and the engine is down. */
static void
on_start_failure(struct programs *programs, const char *why, const char *last)
{
    struct lw_host *host = programs->engine.host;
    uint32_t doublings = programs->failures < 5 ? programs->failures : 5;
    uint64_t wait_ns = BACKOFF_MIN << doublings;
    wait_ns = wait_ns < BACKOFF_MAX ? wait_ns : BACKOFF_MAX;
    programs->failures++;
    programs->retry_at = host->now + wait_ns;
    programs->is_proven = has_ready(programs);
    lw_timers_arm(&host->timers, &programs->start_timer, programs->retry_at);
    if (programs->is_proven) {
        lw_host_log(host, LW_LOG_WARN, "handler.start_failed",
                    "one of several workers cannot start", "handler=%s why=%s", programs->name,
                    why);
        return;
    }
    set_down(programs, why, last, wait_ns);
    give_back_all(programs, &programs->waiting, "the handler cannot start");
    give_back_all(programs, &programs->suspects, "the handler cannot start");
}

static bool
start_one(struct programs *programs, struct lw_programs_worker *worker)
{
    struct lw_host *host = programs->engine.host;
    programs->engine.restarts += worker->starts > 0 ? 1 : 0;
    int failed = lw_programs_worker_start(worker);
    if (!failed) {
        lw_host_log(host, LW_LOG_DEBUG, "handler.started", "a worker process was started",
                    "handler=%s worker=%" PRIu32 " pid=%d", programs->name, worker->index,
                    (int)worker->process.pid);
        return true;
    }
    char text[128];
    const char *why = strerror_r(failed, text, sizeof text);
    on_start_failure(programs, why, "");
    return false;
}

/* While it is not known that the program works, one process tries for all. */
static void
start_workers(struct programs *programs)
{
    bool may_start_many = programs->is_proven && programs->failures == 0;
    bool is_trying = false;
    if (programs->is_stopping || programs->engine.host->now < programs->retry_at) {
        return;
    }
    for (uint32_t i = 0; i < programs->worker_count; i++) {
        is_trying = is_trying || programs->workers[i].state == LW_PROGRAMS_STARTING;
    }
    for (uint32_t i = 0; i < programs->worker_count; i++) {
        struct lw_programs_worker *worker = &programs->workers[i];
        if (worker->state != LW_PROGRAMS_IDLE || (is_trying && !may_start_many)) {
            continue;
        }
        if (!start_one(programs, worker)) {
            return;
        }
        is_trying = true;
    }
}

static void
on_start_timer(struct lw_timer *timer, uint64_t now)
{
    struct programs *programs = LW_CONTAINER(timer, struct programs, start_timer);
    (void)now;
    programs->retry_at = 0;
    start_workers(programs);
}

/* -- What workers tell ------------------------------------------------------------------------ */

static void
on_ready(struct lw_programs_worker *worker)
{
    struct programs *programs = owner_of(worker);
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
    start_workers(programs);
    go_on(programs);
}

static void
on_answer(struct lw_programs_worker *worker, struct lw_programs_task *task)
{
    struct programs *programs = owner_of(worker);
    programs->good_answers++;
    report(programs, task);
    if (programs->failures > 0) {
        programs->failures = 0;
        programs->retry_at = 0;
        lw_timers_disarm(&programs->engine.host->timers, &programs->start_timer);
        start_workers(programs);
    }
    go_on(programs);
}

static void
on_ending(struct lw_programs_worker *worker)
{
    update_room(owner_of(worker));
}

static void
on_stray(struct lw_programs_worker *worker)
{
    struct programs *programs = owner_of(worker);
    programs->engine.stray_lines++;
    if (!programs->is_stray_said) {
        programs->is_stray_said = true;
        lw_host_log(programs->engine.host, LW_LOG_WARN, "handler.stray",
                    "handler prints to stdout; use stderr, or answer on the descriptor in "
                    "LANEWAY_FD",
                    "handler=%s", programs->name);
    }
}

/* -- Blame ------------------------------------------------------------------------------------ */

/* How an end is judged for the messages that were open. */
struct blame {
    const struct lw_programs_end *end;
    bool was_alone; /* the worker ran a suspect */
    uint32_t read;  /* open messages that the process has read, or may have */
    char reason[LW_REASON_MAX];
};

static void
write_reason(const struct lw_programs_worker *worker, struct blame *blame)
{
    char last[LW_PROGRAMS_LAST_BYTES];
    lw_programs_output_last(&worker->log, 1, last, sizeof last);
    (void)snprintf(blame->reason, sizeof blame->reason, "the handler's process ended: %s%s%s",
                   blame->end->why, last[0] ? "; last output: " : "", last);
}

static bool
is_retirement(const struct lw_programs_end *end)
{
    return end->exit.is_known && end->exit.signal == 0 && end->exit.status == 0 &&
           end->answered > 0;
}

/* True when the one message that was open, or ran alone, is the cause. */
static bool
is_guilty(const struct programs *programs, const struct blame *blame)
{
    if (blame->end->cause == LW_PROGRAMS_BY_PROTOCOL) {
        return blame->was_alone && programs->good_answers > 0;
    }
    return blame->read == 1 && (blame->was_alone || !is_retirement(blame->end));
}

static void
blame_late(struct programs *programs, struct lw_programs_task *task)
{
    char duration[32];
    char reason[64];
    lw_text_from_duration_ms(programs->config.timeout_ms, duration, sizeof duration);
    (void)snprintf(reason, sizeof reason, "timed out after %s%s", duration,
                   task->is_extended ? " and extensions" : "");
    charge(programs, task, reason, 0);
}

static void
judge_task(struct programs *programs, struct lw_programs_worker *worker,
           struct lw_programs_task *task, const struct blame *blame)
{
    enum lw_programs_cause cause = blame->end->cause;
    if (task->is_late && !lw_programs_worker_is_unread(worker, task)) {
        blame_late(programs, task);
    } else if (cause == LW_PROGRAMS_BY_STOP || programs->is_stopping) {
        bool is_charged = cause != LW_PROGRAMS_BY_STOP && is_guilty(programs, blame) &&
                          !lw_programs_worker_is_unread(worker, task);
        if (is_charged) {
            charge(programs, task, blame->reason, blame->end->exit.signal);
        } else {
            give_back(programs, task, "the handler was stopped before it answered");
        }
    } else if (cause == LW_PROGRAMS_BY_TIMEOUT || lw_programs_worker_is_unread(worker, task)) {
        set_waiting(task, &programs->waiting);
    } else if (is_guilty(programs, blame)) {
        charge(programs, task, blame->reason, blame->end->exit.signal);
    } else {
        set_waiting(task, &programs->suspects);
    }
}

static void
judge_open(struct programs *programs, struct lw_programs_worker *worker, struct blame *blame)
{
    for (struct lw_list *node = worker->open.next; node != &worker->open; node = node->next) {
        blame->read += lw_programs_worker_is_unread(worker, task_in(node)) ? 0 : 1;
    }
    write_reason(worker, blame);
    for (struct lw_list *node = lw_list_first(&worker->open); node;
         node = lw_list_first(&worker->open)) {
        struct lw_programs_task *task = task_in(node);
        lw_list_remove(node);
        judge_task(programs, worker, task, blame);
    }
}

static void
log_end(const struct programs *programs, const struct lw_programs_worker *worker,
        const struct lw_programs_end *end, uint32_t open)
{
    bool is_wanted = end->cause == LW_PROGRAMS_BY_STOP;
    lw_host_log(programs->engine.host, is_wanted ? LW_LOG_DEBUG : LW_LOG_WARN, "handler.ended",
                "a worker process ended",
                "handler=%s worker=%" PRIu32 " why=%s status=%d signal=%d answered=%" PRIu64
                " open=%" PRIu32,
                programs->name, worker->index, end->why, end->exit.status, end->exit.signal,
                end->answered, open);
}

/* The program itself is at fault: it never worked, or it ended before it read anything. */
static bool
is_failure(const struct programs *programs, const struct lw_programs_end *end, uint32_t read)
{
    if (!end->was_ready) {
        return true;
    }
    bool is_idle_end = end->answered == 0 && read == 0;
    bool never_worked = end->cause == LW_PROGRAMS_BY_PROTOCOL && programs->good_answers == 0;
    return is_idle_end || never_worked;
}

static void
fail_start(struct programs *programs, const struct lw_programs_worker *worker,
           const struct lw_programs_end *end)
{
    char why[240];
    char last[LW_PROGRAMS_LAST_LINES * LW_PROGRAMS_LAST_BYTES];
    bool is_exit = end->cause == LW_PROGRAMS_BY_ITSELF;
    const char *when = !is_exit ? "" : end->was_ready ? " right after it was ready"
                                                      : " before its first answer";
    (void)snprintf(why, sizeof why, "%s%s", end->why, when);
    lw_programs_output_last(&worker->log, LW_PROGRAMS_LAST_LINES, last, sizeof last);
    on_start_failure(programs, why, last);
}

static void
on_end(struct lw_programs_worker *worker, const struct lw_programs_end *end)
{
    struct programs *programs = owner_of(worker);
    struct blame blame = { .end = end, .was_alone = programs->alone == worker };
    uint32_t open = count_list(&worker->open);
    if (blame.was_alone) {
        programs->alone = NULL;
    }
    log_end(programs, worker, end, open);
    judge_open(programs, worker, &blame);
    if (!programs->is_stopping && is_failure(programs, end, blame.read)) {
        fail_start(programs, worker, end);
    }
    start_workers(programs);
    go_on(programs);
}

/* -- The table ---------------------------------------------------------------------------------- */

static enum lw_status
start(struct lw_engine *engine, struct lw_error *ret_error)
{
    (void)ret_error;
    start_workers(programs_of(engine));
    return LW_STATUS_OK;
}

static size_t
submit(struct lw_engine *engine, struct lw_delivery *const tasks[], size_t n)
{
    struct programs *programs = programs_of(engine);
    size_t taken = 0;
    while (taken < n && engine->room > 0) {
        struct lw_programs_worker *worker = least_loaded(programs);
        struct lw_programs_task *task = lw_programs_tasks_take(&programs->tasks, tasks[taken]);
        if (!worker || !task || !lw_programs_worker_give(worker, task)) {
            if (task) {
                lw_programs_tasks_give(&programs->tasks, task);
            }
            wait_for_memory(programs);
            break;
        }
        engine->room--;
        taken++;
    }
    return taken;
}

static void
flush(struct lw_engine *engine)
{
    struct programs *programs = programs_of(engine);
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
    struct programs *programs = programs_of(engine);
    struct lw_programs_task *task = delivery->engine_data;
    atomic_store_explicit(&delivery->is_cancelled, true, memory_order_relaxed);
    if (task && !task->worker) {
        lw_list_remove(&task->link);
        give_back(programs, task, "cancelled before it ran again");
        update_room(programs);
    }
}

/* First TERM to what still runs, then, at the deadline, KILL. */
static void
on_stop_timer(struct lw_timer *timer, uint64_t now)
{
    struct programs *programs = LW_CONTAINER(timer, struct programs, stop_timer);
    (void)now;
    for (uint32_t i = 0; i < programs->worker_count; i++) {
        lw_programs_worker_end(&programs->workers[i], LW_PROGRAMS_BY_STOP,
                               programs->stop_deadline, "it did not end by itself in time");
    }
}

static void
stop(struct lw_engine *engine, uint64_t deadline)
{
    struct programs *programs = programs_of(engine);
    struct lw_host *host = engine->host;
    programs->is_stopping = true;
    programs->stop_deadline = deadline;
    lw_timers_disarm(&host->timers, &programs->start_timer);
    give_back_all(programs, &programs->waiting, "stopped before it ran again");
    give_back_all(programs, &programs->suspects, "stopped before it ran again");
    for (uint32_t i = 0; i < programs->worker_count; i++) {
        struct lw_programs_worker *worker = &programs->workers[i];
        lw_programs_worker_flush(worker);
        if (worker->state == LW_PROGRAMS_READY) {
            lw_programs_worker_close_input(worker);
        } else {
            lw_programs_worker_end(worker, LW_PROGRAMS_BY_STOP, deadline, "it was stopped");
        }
    }
    if (deadline != LW_NEVER) {
        uint64_t left = deadline > host->now ? deadline - host->now : 0;
        uint64_t before = left / 10 < TERM_BEFORE ? left / 10 : TERM_BEFORE;
        lw_timers_arm(&host->timers, &programs->stop_timer, deadline - before);
    }
    update_room(programs);
}

static bool
is_stopped(const struct lw_engine *engine)
{
    const struct programs *programs = (const void *)engine;
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

static void
destroy(struct lw_engine *engine)
{
    struct programs *programs = programs_of(engine);
    for (uint32_t i = 0; i < programs->worker_count; i++) {
        lw_programs_worker_deinit(&programs->workers[i]);
    }
    lw_timers_disarm(&engine->host->timers, &programs->start_timer);
    lw_timers_disarm(&engine->host->timers, &programs->stop_timer);
    lw_timers_disarm(&engine->host->timers, &programs->memory_timer);
    lw_programs_tasks_deinit(&programs->tasks);
    lw_free(programs->workers);
    lw_free(programs->name);
    lw_free(programs->service);
    lw_free(programs->pipeline);
    lw_free(programs->directory);
    free_texts(programs->program);
    free_texts(programs->environment);
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

static bool
copy_options(struct programs *programs, const char *name,
             const struct lw_programs_options *options)
{
    enum { VARIABLES = 4 };
    programs->name = lw_copy_text(name);
    programs->service = lw_copy_text(options->service ? options->service : "laneway");
    programs->pipeline = lw_copy_text(options->pipeline);
    programs->directory = lw_copy_text(options->directory);
    programs->program = copy_texts(options->program, 0);
    programs->environment = copy_texts(options->environment, VARIABLES);
    bool has_all = programs->name && programs->service && programs->program &&
                   programs->environment && (programs->pipeline || !options->pipeline) &&
                   (programs->directory || !options->directory);
    return has_all && add_variable(programs->environment, "LANEWAY_PROTOCOL", "lines") &&
           add_variable(programs->environment, "LANEWAY_FD", "3") &&
           add_variable(programs->environment, "LANEWAY_HANDLER", programs->name) &&
           add_variable(programs->environment, "LANEWAY_SERVICE", programs->service);
}

static void
fill_config(struct programs *programs, const struct lw_programs_options *options)
{
    programs->config = (struct lw_programs_config){
        .host = programs->engine.host,
        .tasks = &programs->tasks,
        .service = programs->service,
        .handler = programs->name,
        .command = { .program = (const char *const *)programs->program,
                     .directory = programs->directory,
                     .environment = (const char *const *)programs->environment },
        .window = options->window,
        .timeout_ms = options->timeout_ms,
        .start_timeout_ms = options->start_timeout_ms,
        .user = programs,
        .on_ready = on_ready,
        .on_answer = on_answer,
        .on_stray = on_stray,
        .on_ending = on_ending,
        .on_end = on_end,
    };
}

static bool
make_workers(struct programs *programs, const struct lw_programs_options *options)
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

enum lw_status
lw_programs_engine_create(struct lw_host *host, struct lw_completions *completions,
                          const char *name, const struct lw_programs_options *options,
                          struct lw_engine **ret_engine)
{
    if (!options->program || !options->program[0] || options->workers == 0 ||
        options->window == 0) {
        return LW_STATUS_INVALID;
    }
    struct programs *programs = lw_alloc(sizeof *programs);
    if (!programs) {
        return LW_STATUS_NO_MEMORY;
    }
    programs->engine.ops = &programs_ops;
    programs->engine.host = host;
    programs->engine.completions = completions;
    lw_list_init(&programs->waiting);
    lw_list_init(&programs->suspects);
    lw_timer_init(&programs->start_timer, on_start_timer);
    lw_timer_init(&programs->stop_timer, on_stop_timer);
    lw_timer_init(&programs->memory_timer, on_memory_timer);
    if (!copy_options(programs, name, options)) {
        destroy(&programs->engine);
        return LW_STATUS_NO_MEMORY;
    }
    programs->engine.name = programs->name;
    fill_config(programs, options);
    if (!make_workers(programs, options)) {
        destroy(&programs->engine);
        return LW_STATUS_NO_MEMORY;
    }
    *ret_engine = &programs->engine;
    return LW_STATUS_OK;
}
