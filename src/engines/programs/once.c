/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine of protocol once: its table, and what the end of a run means for its message. The
 * exit code is the verdict, what was printed the reply, the last line of standard error the
 * reason. A code that says that the handler itself is broken, and a process that cannot be
 * started, pause the engine: the message goes back untouched, and after 1 s, then twice as long
 * each time, one message tries again for all. Loop thread only.
 */
#include "engines/programs/once.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "engines/programs/exit_codes.h"
#include "engines/programs/once_run.h"
#include "engines/programs/programs.h"

#define TERM_BEFORE (1000 * LW_MS) /* before a stop's deadline, or half of what is left */

struct lw_once {
    struct lw_programs programs; /* without workers of its own */
    struct lw_once_config config;
    struct lw_once_run *runs;
    uint32_t run_count;
    uint32_t running;
    struct lw_list idle;
    struct lw_exit_class *classes;
    size_t class_count;
};

static struct lw_once *
once_of(struct lw_engine *engine)
{
    return LW_CONTAINER(engine, struct lw_once, programs.engine);
}

/* After a failure one message tries for all. */
static void
update_room(struct lw_once *once)
{
    struct lw_engine *engine = &once->programs.engine;
    uint32_t most = once->programs.failures > 0 ? 1 : once->run_count;
    bool is_waiting = lw_timer_is_armed(&once->programs.memory_timer);
    bool is_open = !engine->is_down && !once->programs.is_stopping && !is_waiting &&
                   once->running < most;
    uint32_t room = is_open ? most - once->running : 0;
    if (room != engine->room) {
        engine->room = room;
        engine->has_changed = true;
    }
}

static void
fail(struct lw_once *once, const struct lw_programs_failure *failure)
{
    if (!once->programs.engine.is_down) {
        lw_programs_fail(&once->programs, failure);
    }
}

/* It ran as it should: whatever was wrong before is over. */
static void
prove(struct lw_once *once)
{
    struct lw_programs *programs = &once->programs;
    if (programs->failures > 0 && !programs->engine.is_down) {
        programs->failures = 0;
        lw_host_log(programs->engine.host, LW_LOG_INFO, "handler.up", "the handler works again",
                    "handler=%s", programs->name);
    }
}

static void
on_start_timer(struct lw_timer *timer, uint64_t now)
{
    struct lw_programs *programs = LW_CONTAINER(timer, struct lw_programs, start_timer);
    (void)now;
    programs->engine.is_down = false;
    programs->engine.has_changed = true;
    update_room(once_of(&programs->engine));
}

static void
on_memory_timer(struct lw_timer *timer, uint64_t now)
{
    struct lw_programs *programs = LW_CONTAINER(timer, struct lw_programs, memory_timer);
    (void)now;
    update_room(once_of(&programs->engine));
}

/* -- Judging the end of a run ------------------------------------------------------------------ */

static void
say(struct lw_delivery *delivery, const char *reason)
{
    struct lw_outcome *outcome = lw_delivery_outcome(delivery);
    if (outcome) {
        lw_outcome_clear(outcome);
        lw_outcome_set_reason(outcome, reason, strlen(reason));
    }
}

static enum lw_verdict
give_back(struct lw_delivery *delivery, const char *reason)
{
    say(delivery, reason);
    if (delivery->outcome) {
        delivery->outcome->is_uncharged = true;
    }
    return LW_ERROR;
}

static enum lw_verdict
judge_late(const struct lw_once *once, struct lw_delivery *delivery)
{
    char duration[32];
    char reason[64];
    lw_text_from_duration_ms(once->config.timeout_ms, duration, sizeof duration);
    (void)snprintf(reason, sizeof reason, "timed out after %s", duration);
    say(delivery, reason);
    return LW_ERROR;
}

/* The same words as of a worker that is kept. */
static enum lw_verdict
judge_limit(struct lw_once_run *run, struct lw_programs_exit exit)
{
    char reason[LW_REASON_MAX];
    (void)snprintf(reason, sizeof reason, "the handler's process ended: %s", run->sample.why);
    say(run->delivery, reason);
    if (run->delivery->outcome) {
        run->delivery->outcome->signal = exit.signal;
    }
    return LW_ERROR;
}

/* What it printed is not known as a whole, for want of our memory. */
static enum lw_verdict
judge_starved(const struct lw_once *once, struct lw_once_run *run)
{
    lw_host_log(once->config.host, LW_LOG_ERROR, "handler.no_memory",
                "there was no memory for what a program printed: its message is given back",
                "handler=%s", once->config.handler);
    return give_back(run->delivery, "there was no memory for what it printed");
}

static enum lw_verdict
judge_signal(struct lw_once_run *run, struct lw_programs_exit exit)
{
    char last[LW_HANDLER_LOG_BYTES];
    char reason[LW_REASON_MAX];
    const char *name = sigabbrev_np(exit.signal);
    lw_handler_log_last(&run->log, 1, last, sizeof last);
    (void)snprintf(reason, sizeof reason,
                   "the handler's process ended: killed by signal %d (SIG%s)%s%s", exit.signal,
                   name ? name : "?", last[0] ? "; last output: " : "", last);
    say(run->delivery, reason);
    if (run->delivery->outcome) {
        run->delivery->outcome->signal = exit.signal;
    }
    return LW_ERROR;
}

static enum lw_verdict
judge_ok(struct lw_once_run *run)
{
    struct lw_bytes reply = lw_once_run_output(run);
    if (!reply.data) {
        return LW_OK;
    }
    struct lw_output output = { .value = reply };
    struct lw_outcome *outcome = lw_delivery_outcome(run->delivery);
    if (outcome && lw_outcome_add(outcome, true, &output) == LW_STATUS_OK) {
        return LW_OK;
    }
    say(run->delivery, "no memory for the reply");
    return LW_ERROR;
}

/* The handler says that the fault is its own. */
static enum lw_verdict
judge_broken(struct lw_once *once, struct lw_once_run *run, int status)
{
    char why[96];
    char last[LW_HANDLER_LOG_LINES * LW_HANDLER_LOG_BYTES];
    bool is_absent = status == 126 || status == 127;
    const char *name = lw_programs_exit_name(status);
    (void)snprintf(why, sizeof why, name ? "exit %d (%s)" : "exit %d", status, name);
    lw_handler_log_last(&run->log, LW_HANDLER_LOG_LINES, last, sizeof last);
    struct lw_programs_failure failure = {
        .code = is_absent ? "E0602" : "E0605",
        .what = is_absent ? "cannot start" : "says that it is broken",
        .why = why,
        .last = last,
    };
    fail(once, &failure);
    return give_back(run->delivery, "the handler is broken");
}

static enum lw_verdict
judge_status(struct lw_once *once, struct lw_once_run *run, int status)
{
    char reason[LW_HANDLER_LOG_BYTES];
    struct lw_delivery *delivery = run->delivery;
    struct lw_exit_class meaning = lw_programs_exit_meaning(once->classes, once->class_count,
                                                            status);
    if (meaning.is_broken) {
        return judge_broken(once, run, status);
    }
    prove(once);
    if (meaning.verdict == LW_OK) {
        return judge_ok(run);
    }
    lw_handler_log_last(&run->log, 1, reason, sizeof reason);
    if (!reason[0]) {
        (void)snprintf(reason, sizeof reason, "exit %d", status);
    }
    say(delivery, reason);
    if (delivery->outcome && meaning.verdict == LW_ERROR) {
        delivery->outcome->has_code = true;
        delivery->outcome->code = status;
    }
    return meaning.verdict;
}

/* What it said by its exit code counts also after a stop's TERM; what is late stays late. */
static enum lw_verdict
judge(struct lw_once *once, struct lw_once_run *run, struct lw_programs_exit exit)
{
    char reason[80];
    bool is_stopped = run->cause == LW_ONCE_BY_STOP;
    if (run->cause == LW_ONCE_BY_TIMEOUT) {
        return judge_late(once, run->delivery);
    }
    if (run->cause == LW_ONCE_BY_LIMIT) {
        return judge_limit(run, exit);
    }
    if (run->cause == LW_ONCE_BY_OUTPUT) {
        (void)snprintf(reason, sizeof reason, "it printed more than %zu MiB",
                       run->output_max >> 20);
        say(run->delivery, reason);
        return LW_ERROR;
    }
    if (run->cause == LW_ONCE_BY_MEMORY) {
        return judge_starved(once, run);
    }
    bool is_ended =
        !exit.is_known || exit.signal != 0 ||
        lw_programs_exit_meaning(once->classes, once->class_count, exit.status).verdict ==
            LW_ERROR;
    if (is_stopped && is_ended) {
        return give_back(run->delivery, "the handler was stopped before it answered");
    }
    if (!exit.is_known) {
        say(run->delivery, "the handler's process ended, nobody knows how");
        return LW_ERROR;
    }
    return exit.signal ? judge_signal(run, exit) : judge_status(once, run, exit.status);
}

static void
on_end(struct lw_once_run *run, struct lw_programs_exit exit)
{
    struct lw_once *once = run->config->user;
    struct lw_delivery *delivery = run->delivery;
    delivery->verdict = (uint8_t)judge(once, run, exit);
    delivery->engine_data = NULL;
    run->delivery = NULL;
    once->running--;
    lw_list_push_front(&once->idle, &run->link); /* its memory is warm */
    lw_engine_done(&once->programs.engine, delivery);
    update_room(once);
}

/* -- The table -------------------------------------------------------------------------------- */

static enum lw_status
start(struct lw_engine *engine, struct lw_error *ret_error)
{
    struct lw_once *once = once_of(engine);
    enum lw_status status = lw_programs_limits_open(&once->programs, ret_error);
    if (status == LW_STATUS_OK) {
        once->config.command.program = once->programs.config.command.program;
        once->config.command.directory = once->programs.config.command.directory;
        lw_programs_block_sigpipe();
        update_room(once);
    }
    return status;
}

/* A run has its process for itself, so all that the process used is its message's. */
static void
on_sample_timer(struct lw_timer *timer, uint64_t now)
{
    struct lw_programs *programs = LW_CONTAINER(timer, struct lw_programs, sample_timer);
    struct lw_once *once = once_of(&programs->engine);
    for (uint32_t i = 0; i < once->run_count; i++) {
        struct lw_once_run *run = &once->runs[i];
        if (run->delivery && run->cause != LW_ONCE_BY_LIMIT &&
            lw_programs_limits_are_over(programs, run->process.pid, 1, &run->sample)) {
            lw_once_run_end(run, LW_ONCE_BY_LIMIT, now);
        }
    }
    if (once->running > 0) {
        lw_programs_limits_watch(programs);
    }
}

/* No process holds so many variables: no other handler and no later time changes that. */
static void
refuse_oversized(struct lw_once *once, struct lw_delivery *delivery)
{
    say(delivery, "its key and headers do not fit into the environment of a process");
    delivery->verdict = LW_DEAD;
    lw_engine_done(&once->programs.engine, delivery);
}

/* True when the message was taken, if only to be refused. */
static bool
take_one(struct lw_once *once, struct lw_delivery *delivery)
{
    struct lw_once_failure failure;
    struct lw_once_run *run = LW_CONTAINER(lw_list_pop(&once->idle), struct lw_once_run, link);
    if (lw_once_run_start(run, delivery, &failure)) {
        delivery->engine_data = run;
        once->running++;
        run->sample = (struct lw_programs_sample){ .id = 1 };
        lw_programs_limits_watch(&once->programs);
        return true;
    }
    lw_list_push_front(&once->idle, &run->link);
    if (failure.is_oversized) {
        refuse_oversized(once, delivery);
        return true;
    }
    if (failure.code == ENOMEM) {
        lw_programs_wait_for_memory(&once->programs,
                                    "there is no memory to run a program for a message, "
                                    "which waits: it is tried again every 100 ms");
        return false;
    }
    if (!once->programs.engine.is_down) {
        lw_programs_fail_spawn(&once->programs, failure.code);
    }
    return false;
}

static size_t
submit(struct lw_engine *engine, struct lw_delivery *const tasks[], size_t n)
{
    struct lw_once *once = once_of(engine);
    size_t taken = 0;
    while (taken < n && engine->room > 0 && take_one(once, tasks[taken])) {
        taken++;
        update_room(once);
    }
    update_room(once);
    return taken;
}

static void
flush(struct lw_engine *engine)
{
    (void)engine;
}

/* It is not interrupted, as no program is: its work may be half done. */
static void
cancel(struct lw_engine *engine, struct lw_delivery *delivery)
{
    (void)engine;
    atomic_store_explicit(&delivery->is_cancelled, true, memory_order_relaxed);
}

static void
on_stop_timer(struct lw_timer *timer, uint64_t now)
{
    struct lw_programs *programs = LW_CONTAINER(timer, struct lw_programs, stop_timer);
    struct lw_once *once = once_of(&programs->engine);
    (void)now;
    for (uint32_t i = 0; i < once->run_count; i++) {
        lw_once_run_end(&once->runs[i], LW_ONCE_BY_STOP, programs->stop_deadline);
    }
}

static void
stop(struct lw_engine *engine, uint64_t deadline)
{
    struct lw_once *once = once_of(engine);
    struct lw_host *host = engine->host;
    once->programs.is_stopping = true;
    once->programs.stop_deadline = deadline;
    lw_timers_disarm(&host->timers, &once->programs.start_timer);
    if (deadline != LW_NEVER) {
        uint64_t left = deadline > host->now ? deadline - host->now : 0;
        uint64_t before = left / 2 < TERM_BEFORE ? left / 2 : TERM_BEFORE;
        lw_timers_arm(&host->timers, &once->programs.stop_timer, deadline - before);
    }
    update_room(once);
}

static bool
is_stopped(const struct lw_engine *engine)
{
    const struct lw_once *once = (const void *)engine;
    return once->programs.is_stopping && once->running == 0;
}

static void
destroy(struct lw_engine *engine)
{
    struct lw_once *once = once_of(engine);
    for (uint32_t i = 0; i < once->run_count; i++) {
        lw_once_run_deinit(&once->runs[i]);
    }
    lw_programs_deinit(&once->programs);
    lw_free(once->runs);
    lw_free(once->classes);
    lw_free(once);
}

static const struct lw_engine_ops once_ops = {
    .name = "once",
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

static bool
copy_classes(struct lw_once *once, const struct lw_programs_options *options)
{
    if (options->exit_code_count == 0) {
        return true;
    }
    once->classes = lw_alloc_array(options->exit_code_count, sizeof *once->classes);
    if (!once->classes) {
        return false;
    }
    memcpy(once->classes, options->exit_codes,
           options->exit_code_count * sizeof *once->classes);
    once->class_count = options->exit_code_count;
    return true;
}

static bool
make_runs(struct lw_once *once, uint32_t count)
{
    once->runs = lw_alloc_array(count, sizeof *once->runs);
    if (!once->runs) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        lw_once_run_init(&once->runs[i], &once->config);
        lw_list_push(&once->idle, &once->runs[i].link);
    }
    once->run_count = count;
    return true;
}

enum lw_status
lw_once_engine_create(struct lw_host *host, struct lw_completions *completions,
                      const char *name, const struct lw_programs_options *options,
                      struct lw_engine **ret_engine)
{
    struct lw_once *once = lw_alloc(sizeof *once);
    if (!once) {
        return LW_STATUS_NO_MEMORY;
    }
    struct lw_programs *programs = &once->programs;
    lw_list_init(&once->idle);
    programs->engine.ops = &once_ops;
    programs->engine.host = host;
    programs->engine.completions = completions;
    bool is_made = lw_programs_init(programs, name, options);
    lw_timer_init(&programs->start_timer, on_start_timer);
    lw_timer_init(&programs->stop_timer, on_stop_timer);
    lw_timer_init(&programs->memory_timer, on_memory_timer);
    lw_timer_init(&programs->sample_timer, on_sample_timer);
    once->config = (struct lw_once_config){
        .host = host,
        .handler = programs->name,
        .command = programs->config.command,
        .timeout_ms = options->timeout_ms,
        .has_reply = options->has_reply,
        .user = once,
        .on_end = on_end,
    };
    once->config.command.has_answers = false;
    if (!is_made || !copy_classes(once, options) || !make_runs(once, options->workers)) {
        destroy(&programs->engine);
        return LW_STATUS_NO_MEMORY;
    }
    *ret_engine = &programs->engine;
    return LW_STATUS_OK;
}
