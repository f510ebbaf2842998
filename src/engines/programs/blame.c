/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is charged when a process ends. The rules:
 *   - a message that the process never read is not touched by its end;
 *   - after a timeout the late one is charged, the others run again;
 *   - one message open at a death is charged; of several each is a suspect, run again alone, and
 *     only the one that kills a fresh process alone is charged: what an earlier suspect left in a
 *     process is not held against a later one (an exit with status 0 by a process that worked
 *     before makes suspects only: programs may retire);
 *   - a break of the protocol makes suspects; it charges one that does it alone only when the
 *     handler has ever answered well, since otherwise the handler is broken, not the message.
 * Messages that wait to run again stay in the engine and are reported once, at their end (P5).
 */
#include "engines/programs/programs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void
lw_programs_report(struct lw_programs *programs, struct lw_programs_task *task)
{
    struct lw_delivery *delivery = task->delivery;
    lw_programs_tasks_give(&programs->tasks, task);
    lw_engine_done(&programs->engine, delivery);
}

static void
charge(struct lw_programs *programs, struct lw_programs_task *task, const char *reason,
       int signal)
{
    struct lw_outcome *outcome = lw_delivery_outcome(task->delivery);
    if (outcome) {
        lw_outcome_clear(outcome);
        lw_outcome_set_reason(outcome, reason, strlen(reason));
        outcome->signal = signal;
    }
    task->delivery->verdict = LW_ERROR;
    lw_programs_report(programs, task);
}

void
lw_programs_give_back(struct lw_programs *programs, struct lw_programs_task *task,
                      const char *reason)
{
    struct lw_outcome *outcome = lw_delivery_outcome(task->delivery);
    if (outcome) {
        lw_outcome_clear(outcome);
        lw_outcome_set_reason(outcome, reason, strlen(reason));
        outcome->is_uncharged = true;
    }
    task->delivery->verdict = LW_ERROR;
    lw_programs_report(programs, task);
}

void
lw_programs_give_back_all(struct lw_programs *programs, struct lw_list *list,
                          const char *reason)
{
    for (struct lw_list *node = lw_list_pop(list); node; node = lw_list_pop(list)) {
        lw_programs_give_back(programs, lw_programs_task_in(node), reason);
    }
}

static void
forget_run(struct lw_programs_task *task)
{
    lw_list_remove(&task->link);
    task->worker = NULL;
    task->id = 0;
    task->has_clock = false;
    task->is_late = false;
    task->is_extended = false;
}

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
    char last[LW_HANDLER_LOG_BYTES];
    lw_handler_log_last(&worker->log, 1, last, sizeof last);
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
is_guilty(const struct lw_programs *programs, const struct blame *blame)
{
    if (blame->was_alone && blame->end->answered > 0) {
        return false; /* of another suspect: a fresh process will tell */
    }
    if (blame->end->cause == LW_PROGRAMS_BY_PROTOCOL) {
        return blame->was_alone && programs->good_answers > 0;
    }
    return blame->read == 1 && !is_retirement(blame->end);
}

static void
blame_late(struct lw_programs *programs, struct lw_programs_task *task)
{
    char duration[32];
    char reason[64];
    lw_text_from_duration_ms(programs->config.timeout_ms, duration, sizeof duration);
    (void)snprintf(reason, sizeof reason, "timed out after %s%s", duration,
                   task->is_extended ? " and extensions" : "");
    charge(programs, task, reason, 0);
}

/* One that was not the first on its process is the first on the next. */
static void
suspect(struct lw_programs *programs, struct lw_programs_task *task, const struct blame *blame)
{
    forget_run(task);
    if (blame->was_alone) {
        lw_list_push_front(&programs->suspects, &task->link);
    } else {
        lw_list_push(&programs->suspects, &task->link);
    }
}

static void
judge_task(struct lw_programs *programs, struct lw_programs_worker *worker,
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
            lw_programs_give_back(programs, task, "the handler was stopped before it answered");
        }
    } else if (cause == LW_PROGRAMS_BY_TIMEOUT || lw_programs_worker_is_unread(worker, task)) {
        forget_run(task);
        lw_list_push(&programs->waiting, &task->link);
    } else if (is_guilty(programs, blame)) {
        charge(programs, task, blame->reason, blame->end->exit.signal);
    } else {
        suspect(programs, task, blame);
    }
}

static void
judge(struct lw_programs *programs, struct lw_programs_worker *worker, struct blame *blame)
{
    for (struct lw_list *node = worker->open.next; node != &worker->open; node = node->next) {
        blame->read += lw_programs_worker_is_unread(worker, lw_programs_task_in(node)) ? 0 : 1;
    }
    write_reason(worker, blame);
    for (struct lw_list *node = lw_list_first(&worker->open); node;
         node = lw_list_first(&worker->open)) {
        struct lw_programs_task *task = lw_programs_task_in(node);
        lw_list_remove(node);
        judge_task(programs, worker, task, blame);
    }
}

static void
log_end(const struct lw_programs *programs, const struct lw_programs_worker *worker,
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
is_failure(const struct lw_programs *programs, const struct lw_programs_end *end, uint32_t read)
{
    if (!end->was_ready) {
        return true;
    }
    bool is_idle_end = end->answered == 0 && read == 0;
    bool never_worked = end->cause == LW_PROGRAMS_BY_PROTOCOL && programs->good_answers == 0;
    return is_idle_end || never_worked;
}

/* A program that never says a word may be one for the other protocol. */
static const char *
doubt_about(const struct lw_programs *programs, const struct lw_programs_end *end)
{
    const struct lw_programs_protocol *protocol = programs->config.protocol;
    bool is_silent = !end->was_ready && !end->has_spoken;
    bool is_late = is_silent && end->cause == LW_PROGRAMS_BY_START;
    bool is_absent = end->exit.status == 126 ||
                     end->exit.status == 127; /* as a shell says it */
    bool has_left = is_silent && end->cause == LW_PROGRAMS_BY_ITSELF &&
                    protocol->doubts_exits && !is_absent;
    return is_late || has_left ? protocol->doubt : "";
}

static void
fail(struct lw_programs *programs, const struct lw_programs_worker *worker,
     const struct lw_programs_end *end)
{
    char why[240];
    char last[LW_HANDLER_LOG_LINES * LW_HANDLER_LOG_BYTES];
    bool is_exit = end->cause == LW_PROGRAMS_BY_ITSELF;
    bool is_broken = end->was_ready && end->cause == LW_PROGRAMS_BY_PROTOCOL;
    const char *when = !is_exit         ? ""
                       : end->was_ready ? " right after it was ready"
                                        : " before its first answer";
    const char *what = end->cause == LW_PROGRAMS_BY_TIMEOUT ? "it does not read its input"
                                                            : end->why;
    const char *doubt = doubt_about(programs, end);
    (void)snprintf(why, sizeof why, "%s%s%s%s", what, when, doubt[0] ? ": " : "", doubt);
    lw_handler_log_last(&worker->log, LW_HANDLER_LOG_LINES, last, sizeof last);
    struct lw_programs_failure failure = {
        .code = is_broken ? "E0603" : "E0602",
        .what = is_broken ? "breaks the protocol" : "cannot start",
        .why = why,
        .last = last,
    };
    lw_programs_fail(programs, &failure);
}

void
lw_programs_on_end(struct lw_programs_worker *worker, const struct lw_programs_end *end)
{
    struct lw_programs *programs = lw_programs_owner(worker);
    struct blame blame = { .end = end, .was_alone = programs->alone == worker };
    uint32_t open = lw_programs_count(&worker->open);
    if (blame.was_alone) {
        programs->alone = NULL;
    }
    log_end(programs, worker, end, open);
    judge(programs, worker, &blame);
    if (!programs->is_stopping && is_failure(programs, end, blame.read)) {
        fail(programs, worker, end);
    }
    lw_programs_start_workers(programs);
    lw_programs_go_on(programs);
}
