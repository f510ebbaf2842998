/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of one worker: start, handing over, clocks, end. What it says is in channels.c.
 *
 * An attempt's clock starts at the handing-over when the program said that it works on messages
 * concurrently, else when all that were handed over before it are answered. One timer per worker
 * is armed for the earliest deadline it knew of; it looks again when it fires, so an answer costs
 * no timer operation.
 */
#include "engines/programs/worker.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"

#define QUIET_AFTER (1000 * LW_MS) /* after end of input or of output, before TERM */
#define LOOK_AFTER (10 * LW_MS)

static void on_exit_ready(int fd, int events, void *user);

/* -- Clocks --------------------------------------------------------------------------------- */

static void
arm(struct lw_programs_worker *worker, uint64_t due)
{
    if (due < worker->timer.due || !lw_timer_is_armed(&worker->timer)) {
        if (due == LW_NEVER) {
            return;
        }
        lw_timers_arm(&worker->config->host->timers, &worker->timer, due);
    }
}

void
lw_programs_worker_start_clock(struct lw_programs_worker *worker, struct lw_programs_task *task)
{
    uint64_t now = worker->config->host->now;
    int64_t timeout_ms = worker->config->timeout_ms;
    task->has_clock = true;
    task->deadline = timeout_ms > 0 ? now + (uint64_t)timeout_ms * LW_MS : LW_NEVER;
    task->delivery->deadline = task->deadline;
    arm(worker, task->deadline);
}

/* Marks what is late; returns the earliest deadline of the others. */
static uint64_t
mark_late(struct lw_programs_worker *worker, uint64_t now, bool *ret_any)
{
    uint64_t earliest = LW_NEVER;
    for (struct lw_list *node = worker->open.next; node != &worker->open; node = node->next) {
        struct lw_programs_task *task = LW_CONTAINER(node, struct lw_programs_task, link);
        if (task->has_clock && task->deadline <= now) {
            task->is_late = true;
            *ret_any = true;
        } else if (task->has_clock && task->deadline < earliest) {
            earliest = task->deadline;
        }
    }
    return earliest;
}

static void
look_for_late(struct lw_programs_worker *worker, uint64_t now)
{
    bool any = false;
    uint64_t earliest = mark_late(worker, now, &any);
    if (any) {
        lw_programs_worker_end(worker, LW_PROGRAMS_BY_TIMEOUT, now + LW_PROGRAMS_KILL_AFTER,
                               "timed out");
    } else {
        arm(worker, earliest);
    }
}

/* The next step of an end: TERM, then KILL. */
static void
press(struct lw_programs_worker *worker, uint64_t now)
{
    if (now >= worker->kill_at) {
        lw_programs_process_signal(&worker->process, SIGKILL);
        return;
    }
    if (!worker->is_term_sent) {
        lw_programs_process_signal(&worker->process, SIGTERM);
        worker->is_term_sent = true;
    }
    arm(worker, worker->kill_at);
}

static void
on_timer(struct lw_timer *timer, uint64_t now)
{
    struct lw_programs_worker *worker = LW_CONTAINER(timer, struct lw_programs_worker, timer);
    char duration[32];
    char why[80];
    switch (worker->state) {
    case LW_PROGRAMS_IDLE:
        return;
    case LW_PROGRAMS_STARTING:
        lw_text_from_duration_ms(worker->config->start_timeout_ms, duration, sizeof duration);
        (void)snprintf(why, sizeof why, "it did not say ready within %s", duration);
        lw_programs_worker_end(worker, LW_PROGRAMS_BY_START, now + LW_PROGRAMS_KILL_AFTER, why);
        return;
    case LW_PROGRAMS_READY:
        look_for_late(worker, now);
        return;
    case LW_PROGRAMS_ENDING:
        press(worker, now);
        return;
    }
}

/* -- Ending --------------------------------------------------------------------------------- */

static void
enter_ending(struct lw_programs_worker *worker, enum lw_programs_cause cause, const char *why)
{
    worker->end.cause = cause;
    worker->end.was_ready = worker->state == LW_PROGRAMS_READY;
    lw_text_copy(worker->end.why, sizeof worker->end.why, why);
    worker->state = LW_PROGRAMS_ENDING;
    lw_timers_disarm(&worker->config->host->timers, &worker->timer);
    worker->config->on_ending(worker);
}

void
lw_programs_worker_end(struct lw_programs_worker *worker, enum lw_programs_cause cause,
                       uint64_t kill_at, const char *why)
{
    if (worker->state == LW_PROGRAMS_IDLE) {
        return;
    }
    if (worker->state != LW_PROGRAMS_ENDING) {
        enter_ending(worker, cause, why);
        worker->kill_at = kill_at;
    } else if (kill_at < worker->kill_at) {
        worker->kill_at = kill_at;
    }
    press(worker, worker->config->host->now);
}

/* It will say nothing more: it gets a moment to exit by itself. */
void
lw_programs_worker_end_quietly(struct lw_programs_worker *worker, enum lw_programs_cause cause,
                               const char *why)
{
    uint64_t now = worker->config->host->now;
    if (worker->state == LW_PROGRAMS_STARTING || worker->state == LW_PROGRAMS_READY) {
        enter_ending(worker, cause, why);
        worker->kill_at = now + QUIET_AFTER + LW_PROGRAMS_KILL_AFTER;
        arm(worker, now + QUIET_AFTER);
    }
}

void
lw_programs_worker_close_when_done(struct lw_programs_worker *worker)
{
    if (worker->is_closing && worker->open_count == 0 && worker->state == LW_PROGRAMS_READY) {
        lw_programs_worker_end_quietly(worker, LW_PROGRAMS_BY_STOP, "it was stopped");
    }
}

void
lw_programs_worker_unwatch(struct lw_programs_worker *worker, struct lw_watch **watch)
{
    if (*watch) {
        worker->config->host->ops->unwatch(*watch);
        *watch = NULL;
    }
}

/* -- Writing -------------------------------------------------------------------------------- */

static void
on_input_room(int fd, int events, void *user)
{
    struct lw_programs_worker *worker = user;
    (void)fd;
    (void)events;
    worker->config->host->ops->rewatch(worker->input_watch, 0);
    lw_programs_worker_flush(worker);
}

static void
close_input(struct lw_programs_worker *worker)
{
    lw_programs_worker_unwatch(worker, &worker->input_watch);
    if (worker->process.input >= 0) {
        (void)close(worker->process.input);
        worker->process.input = -1;
    }
}

static void
wait_for_room(struct lw_programs_worker *worker)
{
    const struct lw_host_ops *ops = worker->config->host->ops;
    if (worker->input_watch) {
        ops->rewatch(worker->input_watch, LW_WRITABLE);
        return;
    }
    worker->input_watch = ops->watch(worker->config->host, worker->process.input, LW_WRITABLE,
                                     on_input_room, worker);
}

/* That it reads no more is its right only if it is about to exit. */
void
lw_programs_worker_flush(struct lw_programs_worker *worker)
{
    if (worker->process.input < 0 || !lw_programs_sender_has_more(&worker->sender)) {
        return;
    }
    switch (lw_programs_sender_flush(&worker->sender, worker->process.input)) {
    case LW_PROGRAMS_SENT_ALL:
        if (worker->is_closing) {
            close_input(worker);
        }
        return;
    case LW_PROGRAMS_SENT_SOME:
        wait_for_room(worker);
        return;
    case LW_PROGRAMS_SENT_CLOSED:
        lw_programs_sender_end(&worker->sender, worker->process.input);
        close_input(worker);
        lw_programs_worker_end_quietly(worker, LW_PROGRAMS_BY_ITSELF,
                                       "it closed its standard input");
        return;
    }
}

bool
lw_programs_worker_is_unread(const struct lw_programs_worker *worker,
                             const struct lw_programs_task *task)
{
    return lw_programs_sender_is_unread(&worker->sender, task->place);
}

uint32_t
lw_programs_worker_room(const struct lw_programs_worker *worker)
{
    bool takes = worker->state == LW_PROGRAMS_READY && !worker->is_closing && !worker->is_over;
    return takes ? worker->config->window - worker->open_count : 0;
}

bool
lw_programs_worker_give(struct lw_programs_worker *worker, struct lw_programs_task *task)
{
    lw_assert(lw_programs_worker_room(worker) > 0);
    int64_t timeout_ms = worker->config->timeout_ms;
    const struct lw_programs_protocol *protocol = worker->config->protocol;
    task->place = lw_programs_sender_place(&worker->sender);
    int64_t id = lw_programs_tasks_name(worker->config->tasks, task);
    if (!protocol->write_request(&worker->sender, id, task->delivery,
                                 timeout_ms > 0 ? timeout_ms : -1)) {
        task->id = 0;
        return false;
    }
    size_t size = (size_t)(lw_programs_sender_place(&worker->sender) - task->place);
    worker->open_bytes_max = size > worker->open_bytes_max ? size : worker->open_bytes_max;
    task->worker = worker;
    task->is_late = false;
    task->is_extended = false;
    task->has_clock = false;
    task->deadline = LW_NEVER;
    lw_list_push(&worker->open, &task->link);
    worker->open_count++;
    if (worker->is_concurrent || worker->open_count == 1) {
        lw_programs_worker_start_clock(worker, task);
    }
    return true;
}

void
lw_programs_worker_close_input(struct lw_programs_worker *worker)
{
    worker->is_closing = true;
    if (!lw_programs_sender_has_more(&worker->sender)) {
        close_input(worker);
    }
    lw_programs_worker_close_when_done(worker);
}

/* -- Start and end -------------------------------------------------------------------------- */

static void
unwatch_all(struct lw_programs_worker *worker)
{
    lw_programs_channels_close(worker);
    lw_programs_worker_unwatch(worker, &worker->input_watch);
    lw_programs_worker_unwatch(worker, &worker->exit_watch);
}

static void
describe_exit(struct lw_programs_end *end)
{
    const struct lw_programs_exit *exit = &end->exit;
    if (!exit->is_known) {
        lw_text_copy(end->why, sizeof end->why, "it ended, nobody knows how");
    } else if (exit->signal) {
        const char *name = sigabbrev_np(exit->signal);
        (void)snprintf(end->why, sizeof end->why, "killed by signal %d (SIG%s)", exit->signal,
                       name ? name : "?");
    } else {
        (void)snprintf(end->why, sizeof end->why, "exit %d", exit->status);
    }
}

static void
tell_end(struct lw_programs_worker *worker)
{
    bool is_planned = worker->state == LW_PROGRAMS_ENDING;
    struct lw_programs_end end = worker->end;
    if (!is_planned) {
        end.cause = LW_PROGRAMS_BY_ITSELF;
        end.was_ready = worker->state == LW_PROGRAMS_READY;
    }
    end.answered = worker->answered;
    end.has_spoken = worker->has_spoken;
    if (worker->process.input >= 0) {
        lw_programs_sender_end(&worker->sender, worker->process.input);
    }
    unwatch_all(worker);
    end.exit = lw_programs_process_end(&worker->process);
    if (end.cause == LW_PROGRAMS_BY_ITSELF && !worker->is_term_sent) {
        describe_exit(&end);
    }
    if (worker->is_cut_short && end.cause == LW_PROGRAMS_BY_ITSELF) {
        size_t length = strlen(end.why);
        (void)snprintf(end.why + length, sizeof end.why - length, " in the middle of a frame");
    }
    lw_timers_disarm(&worker->config->host->timers, &worker->timer);
    lw_timers_disarm(&worker->config->host->timers, &worker->look_timer);
    worker->state = LW_PROGRAMS_IDLE;
    worker->open_count = 0;
    worker->config->on_end(worker, &end);
}

/* Without a pidfd the pipe may end a moment before the process does, or long before. */
static void
on_exit_ready(int fd, int events, void *user)
{
    struct lw_programs_worker *worker = user;
    (void)fd;
    (void)events;
    if (!lw_programs_process_is_over(&worker->process)) {
        if (!worker->process.is_pidfd) {
            worker->config->host->ops->rewatch(worker->exit_watch, 0);
            lw_timers_arm(&worker->config->host->timers, &worker->look_timer,
                          worker->config->host->now + LOOK_AFTER);
        }
        return;
    }
    worker->is_over = true;
    lw_programs_channels_drain(worker);
    tell_end(worker);
}

static void
on_look_timer(struct lw_timer *timer, uint64_t now)
{
    struct lw_programs_worker *worker = LW_CONTAINER(timer, struct lw_programs_worker,
                                                     look_timer);
    (void)now;
    if (worker->state != LW_PROGRAMS_IDLE) {
        on_exit_ready(worker->process.exit_fd, LW_READABLE, worker);
    }
}

static void
begin(struct lw_programs_worker *worker)
{
    lw_programs_channels_begin(worker);
    lw_handler_log_begin(&worker->log);
    lw_programs_sender_begin(&worker->sender);
    worker->is_closing = false;
    worker->is_over = false;
    worker->uses_answers = false;
    worker->is_concurrent = false;
    worker->has_spoken = false;
    worker->is_cut_short = false;
    worker->is_term_sent = false;
    worker->kill_at = LW_NEVER;
    worker->open_bytes_max = 0;
    worker->answered = 0;
    worker->sample.id = 0;
    worker->end = (struct lw_programs_end){ .cause = LW_PROGRAMS_BY_ITSELF };
}

int
lw_programs_worker_start(struct lw_programs_worker *worker)
{
    const struct lw_programs_config *config = worker->config;
    struct lw_programs_hello hello = { config->service, config->handler, config->window,
                                       &config->batch };
    lw_assert(worker->state == LW_PROGRAMS_IDLE && lw_list_is_empty(&worker->open));
    begin(worker);
    config->protocol->write_hello(&worker->sender.text, &hello);
    int failed = worker->sender.text.is_failed
                     ? ENOMEM
                     : lw_programs_process_spawn(&config->command, &worker->process);
    if (failed) {
        lw_programs_sender_begin(&worker->sender); /* nobody will read the hello */
        return failed;
    }
    worker->exit_watch = config->host->ops->watch(config->host, worker->process.exit_fd,
                                                  LW_READABLE, on_exit_ready, worker);
    if (!worker->exit_watch || !lw_programs_channels_open(worker)) {
        unwatch_all(worker);
        (void)lw_programs_process_end(&worker->process);
        return ENOMEM;
    }
    worker->state = LW_PROGRAMS_STARTING;
    worker->starts++;
    if (config->start_timeout_ms > 0) {
        arm(worker, config->host->now + (uint64_t)config->start_timeout_ms * LW_MS);
    }
    lw_programs_worker_flush(worker);
    return 0;
}

void
lw_programs_worker_init(struct lw_programs_worker *worker,
                        const struct lw_programs_config *config, uint32_t index)
{
    *worker = (struct lw_programs_worker){ .config = config, .index = index };
    worker->process = LW_PROGRAMS_NO_PROCESS;
    lw_list_init(&worker->open);
    lw_timer_init(&worker->timer, on_timer);
    lw_timer_init(&worker->look_timer, on_look_timer);
    lw_programs_sender_init(&worker->sender);
    lw_handler_log_init(&worker->log, config->host, config->handler);
}

void
lw_programs_worker_deinit(struct lw_programs_worker *worker)
{
    if (worker->state != LW_PROGRAMS_IDLE) {
        unwatch_all(worker);
        (void)lw_programs_process_end(&worker->process);
        worker->state = LW_PROGRAMS_IDLE;
    }
    lw_timers_disarm(&worker->config->host->timers, &worker->timer);
    lw_timers_disarm(&worker->config->host->timers, &worker->look_timer);
    lw_handler_log_deinit(&worker->log);
    lw_programs_channels_deinit(worker);
    lw_programs_sender_deinit(&worker->sender);
}
