/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a worker's process says, on standard output, standard error and descriptor 3. The channel
 * on which it says `ready` speaks the protocol, the other is text for the log. One read may carry
 * many lines or frames; one call reads once, so that no worker keeps the loop from the others.
 * What was written before a death counts, so the pipes are read to their ends before it is told.
 */
#include "engines/programs/worker.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES_MAX = 8 * 1024, LAST_READS_MAX = 1024 };

/* -- What it says ----------------------------------------------------------------------------------- */

static void break_off(struct lw_programs_worker *worker, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* It spoke against the protocol. */
static void
break_off(struct lw_programs_worker *worker, const char *format, ...)
{
    char why[160];
    va_list arguments;
    bool is_start = worker->state == LW_PROGRAMS_STARTING;
    va_start(arguments, format);
    (void)vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    lw_programs_worker_end(worker, is_start ? LW_PROGRAMS_BY_START : LW_PROGRAMS_BY_PROTOCOL,
                           worker->config->host->now + LW_PROGRAMS_KILL_AFTER, why);
}

/* From here on it carries nothing of the protocol. */
static void
turn_to_text(struct lw_programs_reader *reader)
{
    if (reader->is_overlong || reader->end - reader->begin > TEXT_BYTES_MAX) {
        lw_programs_reader_deinit(reader);
    }
    reader->is_cutting = true;
    reader->scanned = reader->begin;
    reader->need = 0;
}

static void
on_ready_line(struct lw_programs_worker *worker, const struct lw_programs_answer *answer,
              bool is_answers)
{
    if (worker->state != LW_PROGRAMS_STARTING) {
        return;
    }
    if (answer->protocol != LW_PROGRAMS_PROTOCOL) {
        break_off(worker, "it speaks protocol %" PRId64 ", this version speaks %d",
                  answer->protocol, LW_PROGRAMS_PROTOCOL);
        return;
    }
    if (worker->config->batch.size > 0 && !answer->takes_batches) {
        break_off(worker, "it does not say that it takes batches, "
                          "{\"ready\":{\"protocol\":1,\"batch\":true}}; leave batch out");
        return;
    }
    worker->is_concurrent = answer->is_concurrent;
    worker->uses_answers = is_answers;
    turn_to_text(is_answers ? &worker->output : &worker->answers);
    worker->state = LW_PROGRAMS_READY;
    lw_timers_disarm(&worker->config->host->timers, &worker->timer);
    worker->config->on_ready(worker);
}

/* It may answer before it has read all: what is to be written yet is copied. */
static bool
keep_unread(struct lw_programs_worker *worker, const struct lw_delivery *first)
{
    for (const struct lw_delivery *at = first; at; at = at->task_next) {
        if (!lw_programs_sender_keep(&worker->sender, &at->message.key) ||
            !lw_programs_sender_keep(&worker->sender, &at->message.value)) {
            return false;
        }
    }
    return true;
}

static void
take_answer(struct lw_programs_worker *worker, struct lw_programs_task *task,
            const struct lw_programs_answer *answer)
{
    struct lw_programs_task *next = NULL;
    if (!keep_unread(worker, task->delivery)) {
        break_off(worker,
                  "it answered before it read all, and there was no memory for the rest");
        return;
    }
    task->delivery->verdict = (uint8_t)lw_programs_answer_apply(answer, task->delivery);
    lw_list_remove(&task->link);
    worker->open_count--;
    worker->answered++;
    if (worker->open_count == 0) {
        worker->open_bytes_max = 0;
    } else if (!worker->is_concurrent &&
               (next = lw_programs_worker_first_open(worker)) != NULL && !next->has_clock) {
        lw_programs_worker_start_clock(worker, next);
    }
    worker->config->on_answer(worker, task);
    lw_programs_worker_close_when_done(worker);
}

/* The open task that a line names, or NULL: then the line was dealt with. */
static struct lw_programs_task *
find_open(struct lw_programs_worker *worker, const struct lw_programs_answer *answer)
{
    struct lw_programs_task *task = lw_programs_tasks_find(worker->config->tasks, answer->id);
    if (task && task->worker == worker) {
        return task->is_late ? NULL : task; /* what is late stays so */
    }
    if (worker->state != LW_PROGRAMS_ENDING) {
        break_off(worker, "it answered id %" PRId64 ", which is not open", answer->id);
    }
    return NULL;
}

static void
extend(struct lw_programs_worker *worker, struct lw_programs_task *task, int64_t extend_ms)
{
    uint64_t deadline = worker->config->host->now + (uint64_t)extend_ms * LW_MS;
    if (task->has_clock && task->deadline != LW_NEVER && deadline > task->deadline) {
        task->deadline = deadline;
        task->is_extended = true;
        task->delivery->deadline = deadline;
    }
}

static void
on_stray_line(struct lw_programs_worker *worker, struct lw_bytes line)
{
    lw_handler_log_line(&worker->log, line, "stdout");
    if (line.size > 0) {
        worker->config->on_stray(worker);
    }
}

/* What it answers after it broke the protocol is not believed. */
static bool
is_believed(const struct lw_programs_worker *worker)
{
    return worker->state == LW_PROGRAMS_READY ||
           (worker->state == LW_PROGRAMS_ENDING && worker->end.was_ready &&
            worker->end.cause != LW_PROGRAMS_BY_PROTOCOL);
}

static void
on_task_line(struct lw_programs_worker *worker, const struct lw_programs_answer *answer)
{
    if (worker->state == LW_PROGRAMS_STARTING) {
        break_off(worker, "it answered before it said ready");
        return;
    }
    struct lw_programs_task *task = is_believed(worker) ? find_open(worker, answer) : NULL;
    if (task && answer->kind == LW_PROGRAMS_LINE_EXTEND) {
        extend(worker, task, answer->extend_ms);
    } else if (task) {
        take_answer(worker, task, answer);
    }
}

static bool
is_open_id(const struct lw_programs_worker *worker, int64_t id)
{
    const struct lw_programs_task *task = lw_programs_tasks_find(worker->config->tasks, id);
    return task && task->worker == worker;
}

static void
on_unit(struct lw_programs_worker *worker, const struct lw_programs_answer *answer,
        bool is_answers)
{
    worker->has_spoken = worker->has_spoken || answer->kind != LW_PROGRAMS_LINE_STRAY;
    switch (answer->kind) {
    case LW_PROGRAMS_LINE_STRAY:
        on_stray_line(worker, answer->line);
        break;
    case LW_PROGRAMS_LINE_READY:
        on_ready_line(worker, answer, is_answers);
        break;
    case LW_PROGRAMS_LINE_ANSWER:
        if (answer->has_result || is_open_id(worker, answer->id)) {
            on_task_line(worker, answer);
        } else {
            on_stray_line(worker, answer->line);
        }
        break;
    case LW_PROGRAMS_LINE_EXTEND:
        on_task_line(worker, answer);
        break;
    case LW_PROGRAMS_LINE_LOG:
        lw_handler_log_own(&worker->log, answer->level, answer->text);
        break;
    case LW_PROGRAMS_LINE_BROKEN:
        if (worker->state != LW_PROGRAMS_ENDING) {
            break_off(worker, "it broke the protocol: %s", answer->why);
        }
        break;
    }
}

/* What it writes on this channel is not understood any more. */
static void
on_broken(struct lw_programs_worker *worker, struct lw_programs_reader *reader, const char *why)
{
    worker->has_spoken = true;
    if (worker->state != LW_PROGRAMS_ENDING) {
        break_off(worker, "%s", why);
    }
    turn_to_text(reader);
}

/* -- Channels ------------------------------------------------------------------------------- */

static void
on_text(struct lw_programs_worker *worker, const struct lw_programs_reader *reader,
        struct lw_bytes line)
{
    lw_handler_log_line(&worker->log, line, reader == &worker->errors ? "stderr" : "stdout");
}

/* Takes the next thing out of what was read; false when there is none. */
static bool
read_one(struct lw_programs_worker *worker, struct lw_programs_reader *reader)
{
    struct lw_bytes line;
    struct lw_programs_answer answer;
    reader->line_max = reader->is_cutting ? TEXT_BYTES_MAX
                                          : LW_PROGRAMS_UNIT_MAX + worker->open_bytes_max;
    if (reader->is_cutting) {
        bool is_there = lw_programs_reader_next(reader, &line);
        if (is_there) {
            on_text(worker, reader, line);
        }
        return is_there;
    }
    switch (worker->config->protocol->next(reader, &answer)) {
    case LW_PROGRAMS_NEXT_NONE:
        return false;
    case LW_PROGRAMS_NEXT_UNIT:
        on_unit(worker, &answer, reader == &worker->answers);
        lw_programs_answer_clear(&answer);
        return true;
    case LW_PROGRAMS_NEXT_BROKEN:
        on_broken(worker, reader, answer.why);
        return true;
    }
    return false;
}

static void
read_all(struct lw_programs_worker *worker, struct lw_programs_reader *reader)
{
    while (read_one(worker, reader)) {
    }
}

/* The end of the channel that its answers would come on. */
static void
on_channel_end(struct lw_programs_worker *worker, const struct lw_programs_reader *reader)
{
    bool is_mute = worker->state == LW_PROGRAMS_STARTING
                       ? !worker->output_watch && !worker->answers_watch
                       : reader == (worker->uses_answers ? &worker->answers : &worker->output);
    if (is_mute && reader != &worker->errors) {
        lw_programs_worker_end_quietly(worker, LW_PROGRAMS_BY_ITSELF,
                                       worker->uses_answers
                                           ? "it closed the descriptor of its answers"
                                           : "it closed its standard output");
    }
}

static void
read_rest(struct lw_programs_worker *worker, struct lw_programs_reader *reader)
{
    struct lw_bytes line;
    struct lw_programs_answer answer;
    if (reader->is_cutting) {
        if (lw_programs_reader_rest(reader, &line)) {
            on_text(worker, reader, line);
        }
        return;
    }
    switch (worker->config->protocol->rest(reader, &answer)) {
    case LW_PROGRAMS_NEXT_NONE:
        return;
    case LW_PROGRAMS_NEXT_UNIT:
        on_unit(worker, &answer, reader == &worker->answers);
        lw_programs_answer_clear(&answer);
        return;
    case LW_PROGRAMS_NEXT_BROKEN:
        worker->is_cut_short = true;
        return;
    }
}

/* Our want, not its fault: what it holds goes back. */
static void
end_for_memory(struct lw_programs_worker *worker)
{
    struct lw_host *host = worker->config->host;
    lw_host_log(host, LW_LOG_ERROR, "handler.no_memory",
                "there was no memory for what a program wrote: what it holds is given back",
                "handler=%s", worker->config->handler);
    lw_programs_worker_end(worker, LW_PROGRAMS_BY_STOP, host->now + LW_PROGRAMS_KILL_AFTER,
                           "there was no memory for what it wrote");
}

static void
on_channel(struct lw_programs_worker *worker, struct lw_programs_reader *reader, int fd,
           struct lw_watch **watch)
{
    enum lw_programs_read got = lw_programs_reader_fill(reader, fd);
    read_all(worker, reader);
    if (got != LW_PROGRAMS_READ_END || !*watch) {
        return;
    }
    if (reader->is_starved && !reader->is_cutting) {
        end_for_memory(worker);
    }
    lw_programs_worker_unwatch(worker, watch);
    read_rest(worker, reader);
    on_channel_end(worker, reader);
}

static void
on_output(int fd, int events, void *user)
{
    struct lw_programs_worker *worker = user;
    (void)events;
    on_channel(worker, &worker->output, fd, &worker->output_watch);
}

static void
on_answers(int fd, int events, void *user)
{
    struct lw_programs_worker *worker = user;
    (void)events;
    on_channel(worker, &worker->answers, fd, &worker->answers_watch);
}

static void
on_errors(int fd, int events, void *user)
{
    struct lw_programs_worker *worker = user;
    (void)events;
    on_channel(worker, &worker->errors, fd, &worker->errors_watch);
}

/* -- Opening and closing -------------------------------------------------------------------- */

bool
lw_programs_channels_open(struct lw_programs_worker *worker)
{
    struct lw_host *host = worker->config->host;
    const struct lw_programs_process *process = &worker->process;
    worker->output_watch = host->ops->watch(host, process->output, LW_READABLE, on_output,
                                            worker);
    worker->answers_watch = host->ops->watch(host, process->answers, LW_READABLE, on_answers,
                                             worker);
    worker->errors_watch = host->ops->watch(host, process->errors, LW_READABLE, on_errors,
                                            worker);
    return worker->output_watch && worker->answers_watch && worker->errors_watch;
}

void
lw_programs_channels_close(struct lw_programs_worker *worker)
{
    lw_programs_worker_unwatch(worker, &worker->output_watch);
    lw_programs_worker_unwatch(worker, &worker->answers_watch);
    lw_programs_worker_unwatch(worker, &worker->errors_watch);
}

void
lw_programs_channels_begin(struct lw_programs_worker *worker)
{
    lw_programs_channels_deinit(worker);
    lw_programs_reader_init(&worker->output, LW_PROGRAMS_UNIT_MAX, false);
    lw_programs_reader_init(&worker->answers, LW_PROGRAMS_UNIT_MAX, false);
    lw_programs_reader_init(&worker->errors, TEXT_BYTES_MAX, true);
}

void
lw_programs_channels_deinit(struct lw_programs_worker *worker)
{
    lw_programs_reader_deinit(&worker->output);
    lw_programs_reader_deinit(&worker->answers);
    lw_programs_reader_deinit(&worker->errors);
}

/* Reads what the dead process left in a pipe, its last line even without an end. */
static void
drain(struct lw_programs_worker *worker, struct lw_programs_reader *reader, int fd,
      struct lw_watch **watch)
{
    if (!*watch) {
        return;
    }
    for (int i = 0; i < LAST_READS_MAX; i++) {
        enum lw_programs_read got = lw_programs_reader_fill(reader, fd);
        read_all(worker, reader);
        if (got != LW_PROGRAMS_READ_SOME) {
            break;
        }
    }
    read_rest(worker, reader);
}

void
lw_programs_channels_drain(struct lw_programs_worker *worker)
{
    drain(worker, &worker->errors, worker->process.errors, &worker->errors_watch);
    drain(worker, &worker->output, worker->process.output, &worker->output_watch);
    drain(worker, &worker->answers, worker->process.answers, &worker->answers_watch);
}
