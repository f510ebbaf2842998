/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is charged when a process ends. The rules:
 *   - what was not started is not touched by the end, and runs again;
 *   - after a timeout the oldest message is charged, if it was started: its attempt is over;
 *   - the message that was started when a process died (or broke the rules of the shared memory,
 *     or used more memory than it may) is a suspect: it runs again alone in a fresh process, and is
 *     charged only when it takes that along, too. A kill from outside charges nobody that way;
 *   - a message that was charged `max_crashes` times is dead, whatever the policy says.
 * Messages that wait to run again stay in the engine and are reported once, at their end (P5).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "core/partition.h"
#include "engines/common/spawn_failure.h"
#include "engines/processes/processes.h"

static void
report(struct lw_processes *processes, struct lw_delivery *delivery, enum lw_verdict verdict)
{
    delivery->verdict = (uint8_t)verdict;
    delivery->engine_data = NULL;
    lw_engine_done(&processes->engine, delivery);
}

static void
say(struct lw_delivery *delivery, const char *reason, bool is_uncharged, int signal)
{
    struct lw_outcome *outcome = lw_delivery_outcome(delivery);
    if (outcome) {
        lw_outcome_clear(outcome);
        lw_outcome_set_reason(outcome, reason, strlen(reason));
        outcome->is_uncharged = is_uncharged;
        outcome->signal = signal;
    }
}

void
lw_processes_give_back(struct lw_processes *processes, struct lw_delivery *delivery,
                       const char *reason)
{
    say(delivery, reason, true, 0);
    report(processes, delivery, LW_ERROR);
}

static void
give_back_queue(struct lw_processes *processes, struct lw_queue *queue, const char *reason)
{
    struct lw_queue_node *node = NULL;
    while ((node = lw_queue_pop(queue)) != NULL) {
        lw_processes_give_back(processes, lw_processes_delivery_in(node), reason);
    }
}

void
lw_processes_give_back_all(struct lw_processes *processes, const char *reason)
{
    give_back_queue(processes, &processes->waiting, reason);
    give_back_queue(processes, &processes->suspects, reason);
    for (uint32_t i = 0; i < processes->worker_count; i++) {
        give_back_queue(processes, &processes->workers[i].backlog, reason);
    }
    processes->waiting_count = 0;
}

void
lw_processes_refuse_large(struct lw_processes *processes, struct lw_delivery *delivery)
{
    char reason[LW_REASON_MAX];
    char limit[32];
    lw_text_from_size((int64_t)processes->options.tune.item_bytes_max, limit, sizeof limit);
    if (delivery->task_next) {
        /* Each runs again alone, and the one that is too large is refused then. */
        say(delivery, "a message of the batch is too large", false, 0);
        report(processes, delivery, LW_ERROR);
        return;
    }
    (void)snprintf(
        reason, sizeof reason,
        "the message, %zu bytes of payload, is larger than engine processes hands to "
        "a worker (item_max: %s)",
        delivery->message.value.size, limit);
    say(delivery, reason, false, 0);
    report(processes, delivery, LW_DEAD);
}

/* -- Charging -------------------------------------------------------------------------------------- */

/* Counts a crash of this message, over its runs here; the memory serves many messages. */
static uint32_t
count_crash(struct lw_delivery *delivery)
{
    struct lw_outcome *outcome = lw_delivery_outcome(delivery);
    uint64_t generation = delivery->partition->generation;
    int64_t position = delivery->message.position;
    if (!outcome) {
        return 1;
    }
    if (outcome->crashes_generation != generation || outcome->crashes_position != position) {
        outcome->crashes = 0;
        outcome->crashes_generation = generation;
        outcome->crashes_position = position;
    }
    return ++outcome->crashes;
}

static void
write_reason(const struct lw_processes_worker *worker, uint32_t crashes, bool is_last,
             char *out, size_t size)
{
    char last[LW_HANDLER_LOG_LINES * LW_HANDLER_LOG_BYTES];
    char count[48] = "";
    lw_handler_log_last(&worker->log, is_last ? LW_HANDLER_LOG_LINES : 1, last, sizeof last);
    if (is_last) {
        (void)snprintf(count, sizeof count, " (crash %" PRIu32 " of this message)", crashes);
    }
    (void)snprintf(out, size, "the handler's process ended: %s%s%s%.220s", worker->end.why,
                   count, last[0] ? "; last output: " : "", last);
}

static void
charge_crash(struct lw_processes_worker *worker, struct lw_delivery *delivery)
{
    struct lw_processes *processes = worker->owner;
    char reason[LW_REASON_MAX + 1];
    bool is_several = delivery->task_next != NULL; /* nobody knows whose crash it was */
    uint32_t crashes = is_several ? 0 : count_crash(delivery);
    bool is_last = !is_several && crashes >= processes->options.tune.max_crashes;
    write_reason(worker, crashes, is_last, reason, sizeof reason);
    say(delivery, reason, false, worker->end.signal);
    processes->figures.charged++;
    report(processes, delivery, is_last ? LW_DEAD : LW_ERROR);
}

static void
charge_late(struct lw_processes *processes, struct lw_delivery *delivery)
{
    char duration[32];
    char reason[64];
    lw_text_from_duration_ms(processes->options.timeout_ms, duration, sizeof duration);
    (void)snprintf(reason, sizeof reason, "timed out after %s", duration);
    say(delivery, reason, false, 0);
    report(processes, delivery, LW_ERROR);
}

/* What some members of a batch had said before the end. */
static void
forget_answers(struct lw_delivery *first)
{
    first->is_each = false;
    first->task_answers = 1;
    for (struct lw_delivery *member = first; member; member = member->task_next) {
        member->verdict = LW_PENDING;
        if (member->outcome) {
            lw_outcome_clear(member->outcome);
        }
    }
}

static void
run_again(struct lw_processes *processes, struct lw_delivery *delivery, bool is_suspect)
{
    struct lw_queue *queue = is_suspect ? &processes->suspects
                                        : lw_processes_queue_of(processes, delivery);
    delivery->engine_data = NULL;
    lw_queue_push(queue, &delivery->link);
    processes->waiting_count += is_suspect ? 0 : 1;
}

/* -- Judging --------------------------------------------------------------------------------------- */

static bool
is_crash(const struct lw_processes_worker *worker)
{
    return worker->end.cause == LW_PROCESSES_BY_ITSELF ||
           worker->end.cause == LW_PROCESSES_BY_LIMIT ||
           worker->end.cause == LW_PROCESSES_BY_BREACH;
}

/* The oldest message, which was the one that ran, if any did. */
static void
judge_front(struct lw_processes_worker *worker, struct lw_delivery *delivery)
{
    struct lw_processes *processes = worker->owner;
    bool is_suspect = is_crash(worker) && worker->end.has_started;
    processes->figures.crashes += is_suspect ? 1 : 0;
    if (worker->end.cause == LW_PROCESSES_BY_TIMEOUT && worker->end.has_started) {
        charge_late(processes, delivery);
    } else if (is_suspect && worker->is_alone) {
        charge_crash(worker, delivery);
    } else if (processes->is_stopping || processes->zygote_state == LW_PROCESSES_LOST) {
        lw_processes_give_back(processes, delivery,
                               "the handler was stopped before it answered");
    } else {
        run_again(processes, delivery, is_suspect);
    }
}

static void
judge_other(struct lw_processes_worker *worker, struct lw_delivery *delivery)
{
    struct lw_processes *processes = worker->owner;
    if (processes->is_stopping) {
        lw_processes_give_back(processes, delivery, "the handler was stopped before it ran");
    } else {
        run_again(processes, delivery, false);
    }
}

static void
judge(struct lw_processes_worker *worker)
{
    bool is_front = true;
    if (worker->unanswered) {
        forget_answers(*lw_processes_open_at(worker, worker->first));
        worker->unanswered = NULL;
    }
    while (worker->first < worker->next) {
        struct lw_delivery *delivery = *lw_processes_open_at(worker, worker->first++);
        if (is_front) {
            judge_front(worker, delivery);
        } else {
            judge_other(worker, delivery);
        }
        is_front = false;
    }
}

/* -- The handler itself is at fault ---------------------------------------------------------------- */

static bool
is_failure(const struct lw_processes_worker *worker)
{
    enum lw_processes_cause cause = worker->end.cause;
    if (cause == LW_PROCESSES_BY_START) {
        return true;
    }
    bool did_nothing = worker->answered == 0 && !worker->end.has_started;
    return is_crash(worker) && (!worker->end.was_ready || did_nothing);
}

static void
fail(struct lw_processes_worker *worker)
{
    struct lw_error error = worker->refusal;
    if (error.status == LW_STATUS_OK) {
        (void)lw_error_set(&error, LW_STATUS_UNAVAILABLE, "E0602",
                           "handler \"%s\" cannot start: %s%s", worker->owner->name,
                           worker->end.why,
                           worker->end.fork_failed ? ""
                           : worker->end.was_ready ? " right after it was ready"
                                                   : " before it was ready");
        lw_error_help(&error, "%s", lw_spawn_failure_help(worker->end.fork_failed));
    }
    lw_processes_fail(worker->owner, &error, &worker->log);
}

static void
log_end(const struct lw_processes_worker *worker, uint32_t open)
{
    const struct lw_processes_end *end = &worker->end;
    bool is_wanted = end->cause == LW_PROCESSES_BY_STOP ||
                     end->cause == LW_PROCESSES_BY_LEAVING;
    lw_host_log(worker->owner->engine.host, is_wanted ? LW_LOG_DEBUG : LW_LOG_WARN,
                "handler.ended", "a worker process ended",
                "handler=%s worker=%" PRIu32 " why=%s status=%d signal=%d answered=%" PRIu64
                " open=%" PRIu32 " started=%d alone=%d",
                worker->owner->name, worker->index, end->why, end->status, end->signal,
                worker->answered, open, end->has_started, worker->is_alone);
}

void
lw_processes_on_end(struct lw_processes_worker *worker)
{
    struct lw_processes *processes = worker->owner;
    log_end(worker, lw_processes_open_count(worker));
    judge(worker);
    if (processes->alone == worker) {
        processes->alone = NULL;
    }
    worker->is_alone = false;
    bool is_recycling = worker->end.cause == LW_PROCESSES_BY_LEAVING && !processes->is_stopping;
    processes->figures.recycled += is_recycling ? 1 : 0;
    if (!processes->is_stopping && processes->zygote_state == LW_PROCESSES_SERVING &&
        is_failure(worker)) {
        fail(worker);
    }
    if (processes->zygote_state == LW_PROCESSES_LOST) {
        lw_processes_move_on(worker);
    }
    lw_processes_start_workers(processes);
    lw_processes_go_on(processes);
    lw_host_want_turn(processes->engine.host);
}
