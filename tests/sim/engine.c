/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scripted engine. It keeps the contract of plugin.h to the letter: results come exactly once
 * for every accepted task, also after a cancel or a stop; `room` is lowered by what was taken and
 * raised when it ended; `has_changed` says so. Loop thread.
 */
#include "tests/sim/engine.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/host.h"

static struct sim_engine *
of(struct lw_engine *engine)
{
    return (struct sim_engine *)(void *)engine;
}

static void
update_room(struct sim_engine *engine)
{
    uint32_t capacity = engine->plan->engine_room;
    bool is_open = !engine->is_stopping && !engine->base.is_down;
    engine->base.room = is_open && engine->running < capacity ? capacity - engine->running : 0;
    engine->base.has_changed = true;
}

/* -- Verdicts ------------------------------------------------------------------------------------ */

static enum lw_verdict
draw_verdict(const struct sim_engine *engine, struct lw_delivery *delivery)
{
    static const enum lw_verdict failures[] = { LW_RETRY, LW_ERROR, LW_DEAD, LW_DROP,
                                                LW_RETRY };
    bool fails = sim_chance(engine->random, engine->plan->fail_percent);
    if (!fails || (engine->is_calm && delivery->attempt > 1)) {
        return LW_OK;
    }
    enum lw_verdict verdict = failures[sim_below(engine->random, 5)];
    if (sim_chance(engine->random, 40)) {
        struct lw_outcome *outcome = lw_delivery_outcome(delivery);
        lw_outcome_set_reason(outcome, "drawn", 5);
        outcome->delay_ms = verdict == LW_RETRY ? sim_between(engine->random, -1, 100) : -1;
    }
    return verdict;
}

static void
add_reply(struct lw_delivery *delivery)
{
    struct lw_output reply = { .value = delivery->message.value };
    (void)lw_outcome_add(lw_delivery_outcome(delivery), true, &reply);
}

/* Tells the test and fills in the answer; the caller hands it over. */
static enum lw_verdict
answer(struct sim_engine *engine, struct lw_delivery *delivery, enum lw_verdict verdict)
{
    if (verdict == LW_OK && sim_chance(engine->random, engine->plan->reply_percent)) {
        add_reply(delivery);
    }
    engine->hooks.returned(delivery, verdict, engine->hooks.user);
    return verdict;
}

/* -- Members ------------------------------------------------------------------------------------- */

/* What it was told to take together fits what was asked for. */
static void
check_task(const struct sim_engine *engine, const struct lw_delivery *first)
{
    const struct lw_batch_options *batch = &engine->plan->batch;
    uint64_t bytes = 0;
    uint32_t count = 0;
    for (const struct lw_delivery *at = first; at; at = at->task_next) {
        lw_assert(count == 0 || bytes < batch->bytes);
        lw_assert(batch->keys == LW_BATCH_KEYS_MANY || at->lane == first->lane);
        lw_assert(at->task_first == first && at->subscription == first->subscription);
        bytes += at->held_bytes;
        count++;
    }
    lw_assert(count == first->task_count && count <= batch->size);
}

/* Mostly as many as there are messages. */
static uint32_t
draw_answers(const struct sim_engine *engine, uint32_t count)
{
    bool is_wrong = !engine->is_calm && sim_chance(engine->random, 4);
    return is_wrong ? sim_below(engine->random, count + 2) : count;
}

static void
answer_each(struct sim_engine *engine, struct lw_delivery *first, enum lw_verdict verdict)
{
    uint32_t answers = draw_answers(engine, first->task_count);
    uint32_t i = 0;
    first->is_each = true;
    first->task_answers = answers;
    for (struct lw_delivery *member = first; member; member = member->task_next, i++) {
        enum lw_verdict own = member == first ? verdict : draw_verdict(engine, member);
        own = answer(engine, member, own);
        member->verdict = (uint8_t)(i < answers ? own : LW_PENDING);
    }
}

static void
answer_all(struct sim_engine *engine, struct lw_delivery *first, enum lw_verdict verdict)
{
    for (struct lw_delivery *member = first; member; member = member->task_next) {
        member->verdict = (uint8_t)answer(engine, member, verdict);
    }
}

/* -- Tasks ----------------------------------------------------------------------------------------- */

static void
end_task(struct sim_task *task)
{
    struct sim_engine *engine = task->engine;
    struct lw_delivery *delivery = task->delivery;
    struct lw_timers *timers = &engine->base.host->timers;
    lw_timers_disarm(timers, &task->timer);
    lw_timers_disarm(timers, &task->timeout);
    task->delivery = NULL;
    engine->running--;
    update_room(engine);
    if (task->is_crash) {
        lw_delivery_outcome(delivery)->is_uncharged = true;
        engine->base.restarts++;
    }
    bool is_each = engine->plan->batch.verdict == LW_BATCH_VERDICT_EACH;
    if (delivery->is_batch && is_each && !task->is_crash && !task->is_ended) {
        answer_each(engine, delivery, task->verdict);
    } else {
        answer_all(engine, delivery, task->verdict);
    }
    lw_engine_done(&engine->base, delivery);
}

static void
on_due(struct lw_timer *timer, uint64_t now)
{
    (void)now;
    end_task(LW_CONTAINER(timer, struct sim_task, timer));
}

/* The attempt's time is over: an early end is an error, else it goes on, late. */
static void
on_timeout(struct lw_timer *timer, uint64_t now)
{
    struct sim_task *task = LW_CONTAINER(timer, struct sim_task, timeout);
    (void)now;
    task->is_crash = false;
    if (task->engine->base.ops->can_end_early) {
        task->verdict = LW_ERROR;
        task->is_ended = true;
        end_task(task);
        return;
    }
    if (task->verdict == LW_RETRY) { /* counts as the timeout; ok, dead and drop still count */
        task->verdict = LW_ERROR;
    }
    for (struct lw_delivery *at = task->delivery; at; at = at->task_next) {
        at->is_late = true;
        atomic_store(&at->is_cancelled, true);
    }
}

static struct sim_task *
find_free(struct sim_engine *engine)
{
    for (uint32_t i = 0; i < SIM_TASKS_MAX; i++) {
        if (!engine->tasks[i].delivery) {
            return &engine->tasks[i];
        }
    }
    return NULL;
}

static uint64_t
draw_duration(const struct sim_engine *engine)
{
    const struct plan *plan = engine->plan;
    if (!engine->is_calm && sim_chance(engine->random, plan->hang_percent)) {
        return (uint64_t)sim_between(engine->random, 500, 5000) * LW_MS;
    }
    if (sim_chance(engine->random, 25)) {
        return 0;
    }
    return (uint64_t)sim_between(engine->random, 1, plan->handler_max_us) * 1000;
}

static void
begin_task(struct sim_engine *engine, struct lw_delivery *delivery)
{
    struct sim_task *task = find_free(engine);
    struct lw_host *host = engine->base.host;
    lw_assert(task != NULL);
    task->delivery = delivery;
    task->is_ended = false;
    task->verdict = draw_verdict(engine, delivery);
    task->is_crash = !engine->is_calm &&
                     sim_chance(engine->random, engine->plan->crash_percent);
    engine->running++;
    uint64_t duration = draw_duration(engine);
    if (duration == 0) {
        end_task(task);
        return;
    }
    lw_timers_arm(&host->timers, &task->timer, host->now + duration);
    if (engine->plan->timeout_ms > 0) {
        for (struct lw_delivery *at = delivery; at; at = at->task_next) {
            at->deadline = host->now + (uint64_t)engine->plan->timeout_ms * LW_MS;
        }
        lw_timers_arm(&host->timers, &task->timeout, delivery->deadline);
    }
}

static size_t
submit(struct lw_engine *base, struct lw_delivery *const tasks[], size_t n)
{
    struct sim_engine *engine = of(base);
    size_t taken = 0;
    while (taken < n && base->room > 0) {
        base->room--;
        if (tasks[taken]->is_batch) {
            check_task(engine, tasks[taken]);
        }
        for (struct lw_delivery *at = tasks[taken]; at; at = at->task_next) {
            engine->hooks.started(at, engine->hooks.user);
        }
        begin_task(engine, tasks[taken]);
        taken++;
    }
    return taken;
}

/* A blocking handler: called by the dispatcher itself. */
static enum lw_verdict
run_directly(struct lw_delivery *delivery, void *user)
{
    struct sim_engine *engine = user;
    engine->hooks.started(delivery, engine->hooks.user);
    return answer(engine, delivery, draw_verdict(engine, delivery));
}

/* -- The table ------------------------------------------------------------------------------------- */

static enum lw_status
start(struct lw_engine *base, struct lw_error *ret_error)
{
    (void)ret_error;
    update_room(of(base));
    return LW_STATUS_OK;
}

static void
flush(struct lw_engine *base)
{
    (void)base;
}

static void
cancel(struct lw_engine *base, struct lw_delivery *delivery)
{
    struct sim_engine *engine = of(base);
    for (uint32_t i = 0; i < SIM_TASKS_MAX && base->ops->can_end_early; i++) {
        struct sim_task *task = &engine->tasks[i];
        if (task->delivery == delivery) {
            task->verdict = LW_ERROR;
            task->is_ended = true;
            lw_timers_arm(&base->host->timers, &task->timer, base->host->now + LW_MS);
        }
    }
}

static void
stop(struct lw_engine *base, uint64_t deadline)
{
    struct sim_engine *engine = of(base);
    engine->is_stopping = true;
    for (uint32_t i = 0; i < SIM_TASKS_MAX && base->ops->can_end_early; i++) {
        struct sim_task *task = &engine->tasks[i];
        if (task->delivery && task->timer.due > deadline) {
            task->verdict = LW_ERROR;
            task->is_ended = true;
            lw_timers_arm(&base->host->timers, &task->timer, deadline + LW_MS);
        }
    }
    update_room(engine);
}

static bool
is_stopped(const struct lw_engine *base)
{
    return ((const struct sim_engine *)(const void *)base)->running == 0;
}

static void
destroy(struct lw_engine *base)
{
    lw_assert(of(base)->running == 0);
    free(base);
}

#define SIM_OPS(early)                                                                         \
    {                                                                                          \
        .name = "sim", .reads_in_place = true, .can_end_early = (early), .start = start,       \
        .submit = submit, .flush = flush, .cancel = cancel, .stop = stop,                      \
        .is_stopped = is_stopped, .destroy = destroy,                                          \
    }

static const struct lw_engine_ops patient_ops = SIM_OPS(false);
static const struct lw_engine_ops early_ops = SIM_OPS(true);

struct sim_engine *
sim_engine_create(struct lw_host *host, struct lw_completions *completions,
                  const struct plan *plan, struct sim_random *random,
                  const struct sim_engine_hooks *hooks)
{
    struct sim_engine *engine = calloc(1, sizeof *engine);
    if (!engine) {
        abort();
    }
    engine->base.ops = plan->can_end_early ? &early_ops : &patient_ops;
    engine->base.host = host;
    engine->base.completions = completions;
    engine->base.name = "sim";
    engine->plan = plan;
    engine->random = random;
    engine->hooks = *hooks;
    engine->base.batch = plan->batch;
    if (plan->is_direct) {
        engine->base.direct = run_directly;
        engine->base.direct_user = engine;
    }
    for (uint32_t i = 0; i < SIM_TASKS_MAX; i++) {
        lw_timer_init(&engine->tasks[i].timer, on_due);
        lw_timer_init(&engine->tasks[i].timeout, on_timeout);
        engine->tasks[i].engine = engine;
    }
    return engine;
}

void
sim_engine_set_down(struct sim_engine *engine, bool is_down)
{
    engine->base.is_down = is_down;
    update_room(engine);
}
