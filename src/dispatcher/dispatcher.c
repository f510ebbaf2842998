/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The path of a message, top to bottom. Its beginning, receive and admit, is receive.c; then come
 * here choose, run and judge; publish (publish.c), settle and release (settle.c) end it. One step
 * does all that is due: events of brokers, results of handlers, then receiving and running in turn
 * until nothing moves, then what was collected for brokers and engines. Everything goes in
 * batches; nothing on this path allocates, copies or wakes anybody per message.
 *
 * Order inside a step matters: results first, since they free slots and lanes; a better
 * subscription is received before a worse one is chosen, so that priority is decided late.
 */
#include "dispatcher/dispatcher.h"

#include <stdio.h>

#include "base/assert.h"
#include "base/fault.h"
#include "base/log.h"
#include "dispatcher/pace.h"
#include "dispatcher/pinned.h"
#include "dispatcher/receive.h"
#include "dispatcher/settle_plain.h"
#include "dispatcher/task.h"

#define STEP_BUDGET 4096 /* deliveries received or started before others get the thread */
#define STEP_TIME_NS (2 * LW_MS)
#define EVENT_BATCH 64
#define DETACH_DELAY_MS 1000

/* -- choose, run ---------------------------------------------------------------------------- */

static void end_spent(struct lw_dispatcher *dispatcher, struct lw_delivery *delivery);

/* Its engine took fewer tasks than it said: back to the head of its lane, nobody is charged. */
static void
take_back(struct lw_dispatcher *dispatcher, struct lw_delivery *delivery)
{
    delivery->attempt--;
    lw_delivery_set_state(delivery, LW_STATE_QUEUED);
    lw_scheduler_free_slot(&dispatcher->scheduler, delivery->subscription);
    lw_scheduler_requeue(&dispatcher->scheduler, delivery);
}

static void
update_engine(struct lw_dispatcher *dispatcher, struct lw_engine *engine)
{
    engine->has_changed = false;
    if (engine->down_error.is_fatal) {
        lw_dispatcher_fail(dispatcher, engine->down_error.status, &engine->down_error);
    }
    for (uint32_t i = 0; i < dispatcher->stream_count; i++) {
        struct lw_stream *stream = dispatcher->streams[i];
        if (stream->subscription.engine == engine) {
            stream->subscription.is_engine_full = engine->room == 0;
            stream->subscription.is_engine_down = engine->is_down;
            lw_scheduler_update(&dispatcher->scheduler, &stream->subscription);
            lw_receive_update(dispatcher, stream);
        }
    }
}

static inline void
run(struct lw_dispatcher *dispatcher, struct lw_delivery *delivery)
{
    struct lw_stream *stream = lw_stream_of(delivery);
    struct lw_engine *engine = stream->subscription.engine;
    stream->counters.started++;
    bool is_sampled = lw_pace_is_sampled(stream, engine);
    if (__builtin_expect(is_sampled, 0)) {
        dispatcher->host->ops->refresh(dispatcher->host);
    }
    stream->ran_at = dispatcher->host->now;
    lw_delivery_begin_run(delivery, stream->ran_at);
    lw_history_note(dispatcher, LW_HISTORY_STARTED, delivery, 0, 0);
    if (engine->ops->submit(engine, &delivery, 1) != 1) {
        take_back(dispatcher, delivery);
    } else if (__builtin_expect(is_sampled, 0)) {
        lw_pace_on_run(dispatcher, stream);
    }
    if (__builtin_expect(engine->room == 0 || engine->has_changed, 0)) {
        update_engine(dispatcher, engine);
    }
}

/* Runs what was chosen; that made room for another, which is fetched in batches. */
static inline void
start(struct lw_dispatcher *dispatcher, struct lw_delivery *delivery)
{
    struct lw_stream *stream = lw_stream_of(delivery);
    struct lw_subscription *subscription = &stream->subscription;
    if (__builtin_expect(lw_policy_is_spent(&stream->policy, delivery->message.redeliveries),
                         0)) {
        end_spent(dispatcher, delivery);
    } else if (__builtin_expect(subscription->is_batched, 0)) {
        lw_task_run(dispatcher, stream, delivery);
        if (subscription->engine->room == 0 || subscription->engine->has_changed) {
            update_engine(dispatcher, subscription->engine);
        }
    } else {
        run(dispatcher, delivery);
    }
    if (stream->has_more && !subscription->receive.is_in &&
        (subscription->queued * 4 <= subscription->window.size * 3 ||
         !subscription->choose.is_in)) {
        lw_receive_update(dispatcher, stream);
    }
}

/* -- judge ---------------------------------------------------------------------------------- */

static void
warn_late(struct lw_dispatcher *dispatcher, struct lw_stream *stream,
          const struct lw_delivery *delivery)
{
    char place[LW_PLACE_BYTES];
    stream->counters.late++;
    lw_host_log(dispatcher->host, LW_LOG_WARN, "handler.late",
                "a handler answered after its attempt's time", "topic=%s id=%s verdict=%d",
                stream->topic, lw_stream_shown_id(delivery, place, sizeof(place)),
                delivery->verdict);
}

static void
log_failure(struct lw_dispatcher *dispatcher, const struct lw_delivery *delivery,
            const struct lw_ruling *ruling)
{
    static const char *const texts[] = {
        [LW_ACTION_DONE] = "done",       [LW_ACTION_PARK] = "retry here",
        [LW_ACTION_REPUBLISH] = "retry", [LW_ACTION_DEAD] = "dead-lettered",
        [LW_ACTION_DROP] = "dropped",    [LW_ACTION_NACK] = "given back for redelivery",
        [LW_ACTION_HOLD] = "held",       [LW_ACTION_STOP] = "stops the service",
    };
    bool is_bad = ruling->action == LW_ACTION_DEAD || ruling->action == LW_ACTION_HOLD ||
                  ruling->action == LW_ACTION_STOP || ruling->verdict == LW_ERROR;
    char key[128] = "";
    char reason[LW_REASON_MAX * 2];
    char place[LW_PLACE_BYTES];
    lw_log_quote(lw_delivery_reason(delivery), reason, sizeof(reason));
    if (dispatcher->options.logs_keys) {
        lw_log_quote_bytes(delivery->message.key, key, sizeof(key));
    }
    lw_host_log(dispatcher->host, is_bad ? LW_LOG_ERROR : LW_LOG_WARN, "message.failed",
                texts[ruling->action],
                "topic=%s partition=%d id=%s attempt=%u delay_ms=%lld reason=%s%s%s",
                delivery->partition->topic, delivery->partition->number,
                lw_stream_shown_id(delivery, place, sizeof(place)), delivery->attempt,
                (long long)ruling->delay_ms, reason, key[0] ? " key=" : "", key);
}

void
lw_dispatcher_park(struct lw_dispatcher *dispatcher, struct lw_delivery *delivery,
                   int64_t delay_ms)
{
    uint64_t due = dispatcher->host->now + (uint64_t)delay_ms * LW_MS;
    if (dispatcher->phase >= LW_PHASE_DRAINING && due > dispatcher->drain_deadline) {
        lw_shutdown_give_back(dispatcher, delivery);
        return;
    }
    lw_delivery_set_state(delivery, LW_STATE_PARKED);
    delivery->subscription->parked++;
    if (delay_ms > DETACH_DELAY_MS) {
        (void)lw_pinned_copy(delivery);
    }
    lw_timers_arm(&dispatcher->host->timers, &delivery->timer, due);
}

void
lw_dispatcher_unpark(struct lw_dispatcher *dispatcher, struct lw_delivery *delivery)
{
    lw_timers_disarm(&dispatcher->host->timers, &delivery->timer);
    delivery->subscription->parked--;
    lw_delivery_set_state(delivery, LW_STATE_QUEUED);
    lw_scheduler_requeue(&dispatcher->scheduler, delivery);
}

static void
stop_by_policy(struct lw_dispatcher *dispatcher, const struct lw_delivery *delivery)
{
    struct lw_error error = { .status = LW_STATUS_STOPPED, .is_fatal = true };
    lw_error_set(&error, LW_STATUS_STOPPED, "E0710",
                 "stopped by policy: message %lld of %s [%d] failed: %s",
                 (long long)delivery->message.position, delivery->partition->topic,
                 delivery->partition->number, lw_delivery_reason(delivery));
    lw_error_help(&error, "the message is not settled and will come again at the next start; "
                          "change on_error, on_exhausted or on_undecodable if the service "
                          "shall go on");
    lw_dispatcher_fail(dispatcher, LW_STATUS_STOPPED, &error);
}

void
lw_dispatcher_carry_out(struct lw_dispatcher *dispatcher, struct lw_delivery *delivery,
                        struct lw_ruling ruling)
{
    struct lw_stream *stream = lw_stream_of(delivery);
    lw_history_note(dispatcher, LW_HISTORY_JUDGED, delivery, ruling.verdict, ruling.action);
    switch (ruling.action) {
    case LW_ACTION_DONE:
        if (!delivery->outcome || delivery->outcome->output_count == 0) {
            lw_settle(dispatcher, delivery, LW_SETTLED_ACKED, -1);
            return;
        }
        lw_publish_begin(dispatcher, delivery, ruling);
        return;
    case LW_ACTION_REPUBLISH:
    case LW_ACTION_DEAD:
        lw_publish_begin(dispatcher, delivery, ruling);
        return;
    case LW_ACTION_PARK:
        lw_dispatcher_park(dispatcher, delivery, ruling.delay_ms);
        return;
    case LW_ACTION_DROP:
        lw_settle(dispatcher, delivery, LW_SETTLED_DROPPED, -1);
        return;
    case LW_ACTION_NACK:
        lw_settle(dispatcher, delivery, LW_SETTLED_REDELIVERED, ruling.delay_ms);
        return;
    case LW_ACTION_HOLD:
        stream->counters.held++;
        if (dispatcher->phase >= LW_PHASE_DRAINING) {
            lw_shutdown_give_back(dispatcher, delivery);
        }
        return;
    case LW_ACTION_STOP:
        stop_by_policy(dispatcher, delivery);
        if (dispatcher->phase >= LW_PHASE_DRAINING) {
            lw_shutdown_give_back(dispatcher, delivery);
        }
        return;
    }
}

struct lw_ruling
lw_dispatcher_rule(struct lw_dispatcher *dispatcher, struct lw_stream *stream,
                   struct lw_delivery *delivery)
{
    const struct lw_outcome *outcome = delivery->outcome;
    struct lw_case item = {
        .verdict = (enum lw_verdict)delivery->verdict,
        .has_code = outcome && outcome->has_code,
        .code = outcome ? outcome->code : 0,
        .delay_ms = outcome ? outcome->delay_ms : -1,
        .attempt = delivery->attempt,
        .retries = delivery->verdict == LW_OK ? 0 : lw_publish_retries(delivery),
        .redeliveries = delivery->message.redeliveries,
    };
    struct lw_ruling ruling = lw_policy_judge(&stream->policy, &item,
                                              lw_host_random(dispatcher->host));
    if (ruling.verdict < LW_PENDING) {
        stream->counters.results[ruling.verdict]++;
    }
    if (ruling.verdict != LW_OK) {
        log_failure(dispatcher, delivery, &ruling);
    }
    return ruling;
}

static void
judge(struct lw_dispatcher *dispatcher, struct lw_stream *stream, struct lw_delivery *delivery)
{
    struct lw_ruling ruling = lw_dispatcher_rule(dispatcher, stream, delivery);
    lw_dispatcher_carry_out(dispatcher, delivery, ruling);
}

/* Its slot was for a run that it does not get: it was the end of a consumer or of its time before. */
static void
end_spent(struct lw_dispatcher *dispatcher, struct lw_delivery *delivery)
{
    struct lw_stream *stream = lw_stream_of(delivery);
    struct lw_outcome *outcome = lw_delivery_outcome(delivery);
    char reason[96];
    int size = snprintf(reason, sizeof(reason), "redelivered %u times without a result",
                        delivery->message.redeliveries);
    if (outcome && size > 0) {
        lw_outcome_set_reason(outcome, reason, (size_t)size);
    }
    lw_scheduler_free_slot(&dispatcher->scheduler, &stream->subscription);
    lw_delivery_move(delivery, LW_STATE_QUEUED, LW_STATE_JUDGED);
    struct lw_ruling ruling = lw_policy_judge_spent(&stream->policy);
    delivery->verdict = (uint8_t)ruling.verdict;
    log_failure(dispatcher, delivery, &ruling);
    lw_dispatcher_carry_out(dispatcher, delivery, ruling);
}

void
lw_dispatcher_judge_fault(struct lw_dispatcher *dispatcher, struct lw_delivery *delivery)
{
    struct lw_stream *stream = lw_stream_of(delivery);
    const char *fault = delivery->message.fault;
    struct lw_outcome *outcome = lw_delivery_outcome(delivery);
    if (outcome) {
        lw_outcome_set_reason(outcome, fault, strlen(fault));
    }
    delivery->lane = NULL;
    lw_delivery_move(delivery, LW_STATE_QUEUED, LW_STATE_JUDGED);
    stream->counters.undecodable++;
    struct lw_ruling ruling = lw_policy_judge_undecodable(&stream->policy);
    delivery->verdict = (uint8_t)ruling.verdict;
    log_failure(dispatcher, delivery, &ruling);
    lw_dispatcher_carry_out(dispatcher, delivery, ruling);
}

/* A parked one is due, or a judged one may try again what it owes. */
void
lw_dispatcher_on_timer(struct lw_timer *timer, uint64_t now)
{
    struct lw_delivery *delivery = LW_CONTAINER(timer, struct lw_delivery, timer);
    struct lw_stream *stream = lw_stream_of(delivery);
    (void)now;
    if (delivery->state == LW_STATE_PARKED) {
        lw_dispatcher_unpark(stream->dispatcher, delivery);
        return;
    }
    lw_assert(delivery->state == LW_STATE_JUDGED);
    if (delivery->publishing) {
        lw_publish_resend(stream->dispatcher, delivery);
    } else {
        judge(stream->dispatcher, stream, delivery);
    }
}

/* The run did not count: back to the head of its lane, or put off for a time. */
static void
take_uncharged(struct lw_dispatcher *dispatcher, struct lw_delivery *delivery)
{
    bool is_put_off = delivery->verdict == LW_RETRY && delivery->outcome->delay_ms > 0;
    if (is_put_off && dispatcher->phase < LW_PHASE_LEAVING) {
        lw_delivery_move(delivery, LW_STATE_RUNNING, LW_STATE_JUDGED);
        lw_dispatcher_park(dispatcher, delivery, delivery->outcome->delay_ms);
        return;
    }
    lw_delivery_set_state(delivery, LW_STATE_QUEUED);
    lw_scheduler_requeue(&dispatcher->scheduler, delivery);
}

/* A handler call ended, on whatever way: its slot is free, its verdict is judged once. */
void
lw_dispatcher_finish_any(struct lw_dispatcher *dispatcher, struct lw_stream *stream,
                         struct lw_delivery *delivery)
{
    if (__builtin_expect(delivery->is_batch, 0)) {
        lw_task_finish(dispatcher, stream, delivery);
        return;
    }
    lw_scheduler_free_slot(&dispatcher->scheduler, &stream->subscription);
    lw_history_note(dispatcher, LW_HISTORY_RETURNED, delivery, delivery->verdict, 0);
    if (__builtin_expect(delivery->is_late, 0)) {
        warn_late(dispatcher, stream, delivery);
    }
    if (__builtin_expect(delivery->partition->is_ended, 0)) {
        stream->counters.stale++;
        lw_settle_drop(dispatcher, delivery);
        return;
    }
    if (__builtin_expect(delivery->outcome && delivery->outcome->is_uncharged, 0)) {
        delivery->attempt--;
        take_uncharged(dispatcher, delivery);
        return;
    }
    lw_delivery_move(delivery, LW_STATE_RUNNING, LW_STATE_JUDGED);
    if (__builtin_expect(delivery->verdict == LW_OK &&
                             (!delivery->outcome || delivery->outcome->output_count == 0),
                         1)) {
        stream->counters.results[LW_OK]++;
        lw_history_note(dispatcher, LW_HISTORY_JUDGED, delivery, LW_OK, LW_ACTION_DONE);
        lw_settle(dispatcher, delivery, LW_SETTLED_ACKED, -1);
        return;
    }
    if (__builtin_expect(dispatcher->phase >= LW_PHASE_LEAVING, 0)) {
        /* It was cancelled: what it says of that is no fault of the message. */
        lw_shutdown_give_back(dispatcher, delivery);
        return;
    }
    judge(dispatcher, stream, delivery);
}

static inline bool
is_plain(const struct lw_dispatcher *dispatcher, const struct lw_delivery *delivery)
{
    return !dispatcher->is_observed && delivery->verdict == LW_OK &&
           delivery->partition->is_plain &&
           (!delivery->outcome ||
            (delivery->outcome->output_count == 0 && !delivery->outcome->is_uncharged));
}

LW_INLINE void
finish(struct lw_dispatcher *dispatcher, struct lw_delivery *delivery)
{
    struct lw_stream *stream = lw_stream_of(delivery);
    lw_pace_on_result(stream, delivery, dispatcher->host->now);
    if (__builtin_expect(is_plain(dispatcher, delivery) && !delivery->is_special, 1)) {
        lw_scheduler_free_slot(&dispatcher->scheduler, &stream->subscription);
        stream->counters.results[LW_OK]++;
        lw_settle_plain(dispatcher, stream, delivery);
    } else {
        lw_dispatcher_finish_any(dispatcher, stream, delivery);
    }
}

static uint32_t
take_mail(struct lw_dispatcher *dispatcher)
{
    uint32_t count = 0;
    struct lw_mail *mail = lw_mailbox_take(&dispatcher->completions.mailbox);
    while (mail) {
        struct lw_mail *next = mail->next;
        finish(dispatcher, LW_CONTAINER(mail, struct lw_delivery, mail));
        mail = next;
        count++;
    }
    return count;
}

static uint32_t
take_done(struct lw_dispatcher *dispatcher)
{
    uint32_t count = 0;
    struct lw_queue_node *node;
    while ((node = lw_queue_pop(&dispatcher->completions.done)) != NULL) {
        finish(dispatcher, LW_CONTAINER(node, struct lw_delivery, link));
        count++;
    }
    return count;
}

/* -- the step ------------------------------------------------------------------------------- */

/*
 * A better subscription that the broker has something for is received before a worse one is
 * chosen; an equal one as soon as it ran dry here. NULL: choose now.
 */
static struct lw_stream *
receive_before_choice(struct lw_dispatcher *dispatcher)
{
    if (__builtin_expect(dispatcher->receivable.top == 0, 1)) {
        return NULL;
    }
    struct lw_rank_node *receivable = lw_ranks_first(&dispatcher->receivable);
    lw_assert(receivable != NULL);
    struct lw_stream *stream = LW_CONTAINER(receivable, struct lw_stream, subscription.receive);
    const struct lw_rank_node *ready = lw_ranks_first(&dispatcher->scheduler.ready);
    if (!ready || receivable->rank < ready->rank ||
        (receivable->rank == ready->rank && lw_receive_is_dry(stream))) {
        return stream;
    }
    lw_ranks_rotate(&dispatcher->receivable, receivable);
    return NULL;
}

/* Starts what may start, receiving first where that could change the choice. */
static uint32_t
fill_slots(struct lw_dispatcher *dispatcher, uint32_t budget)
{
    struct lw_scheduler *scheduler = &dispatcher->scheduler;
    uint32_t count = 0;
    if (dispatcher->phase > LW_PHASE_DRAINING) {
        return 0;
    }
    if (scheduler->busy_slots < scheduler->slots) {
        (void)lw_receive_look_for_dry(dispatcher);
    }
    while (scheduler->busy_slots < scheduler->slots && count < budget &&
           dispatcher->host->now < dispatcher->step_until) {
        struct lw_stream *stream = receive_before_choice(dispatcher);
        if (stream) {
            count += lw_receive_batch(dispatcher, stream);
            continue;
        }
        struct lw_delivery *delivery = lw_scheduler_choose(scheduler);
        if (delivery) {
            start(dispatcher, delivery);
            count++;
        } else if (!lw_receive_look_for_dry(dispatcher)) {
            break;
        }
    }
    return count;
}

static void
take_events(struct lw_dispatcher *dispatcher, struct lw_link *link)
{
    struct lw_event events[EVENT_BATCH];
    size_t count;
    do {
        count = link->broker->ops->events(link->broker, events, EVENT_BATCH);
        for (size_t i = 0; i < count; i++) {
            lw_assignment_on_event(link, &events[i]);
        }
    } while (count == EVENT_BATCH);
    lw_assignment_continue(link);
    (void)dispatcher;
}

/* Streams that had work but no turn in this step are behind: their window falls. */
static void
note_behind(struct lw_dispatcher *dispatcher)
{
    struct lw_scheduler *scheduler = &dispatcher->scheduler;
    const struct lw_rank_node *best = lw_ranks_first(&scheduler->ready);
    if (!best || scheduler->busy_slots < scheduler->slots) {
        return;
    }
    for (uint32_t i = 0; i < dispatcher->stream_count; i++) {
        struct lw_stream *stream = dispatcher->streams[i];
        if (stream->subscription.choose.is_in &&
            stream->subscription.choose.rank > best->rank) {
            lw_window_on_behind(&stream->subscription.window, dispatcher->host->now);
        }
    }
}

static void
flush_engines(struct lw_dispatcher *dispatcher)
{
    for (uint32_t i = 0; i < dispatcher->engine_count; i++) {
        struct lw_engine *engine = dispatcher->engines[i];
        engine->ops->flush(engine);
        if (engine->has_changed) {
            update_engine(dispatcher, engine);
        }
    }
}

uint64_t
lw_dispatcher_step(struct lw_dispatcher *dispatcher, uint64_t now)
{
    uint32_t used = 0;
    uint32_t moved;
    lw_shutdown_step(dispatcher); /* what was asked since the last step counts from now on */
    lw_pace_begin(dispatcher, now);
    dispatcher->step_until = now + STEP_TIME_NS;
    dispatcher->is_observed = dispatcher->history || dispatcher->host->faults;
    lw_mailbox_awake(&dispatcher->completions.mailbox);
    dispatcher->is_taking_events = true;
    for (uint32_t i = 0; i < dispatcher->link_count; i++) {
        take_events(dispatcher, dispatcher->links[i]);
    }
    dispatcher->is_taking_events = false;
    lw_receive_look_at_sources(dispatcher);
    flush_engines(dispatcher);
    do {
        moved = take_mail(dispatcher) + take_done(dispatcher);
        moved += fill_slots(dispatcher, STEP_BUDGET);
        moved += take_done(dispatcher);
        used += moved;
    } while (moved > 0 && used < STEP_BUDGET && dispatcher->host->now < dispatcher->step_until);
    used += lw_receive_top_up(dispatcher, STEP_BUDGET);
    note_behind(dispatcher);
    lw_receive_tell_demand(dispatcher);
    lw_task_arm(dispatcher);
    lw_settle_flush(dispatcher);
    flush_engines(dispatcher);
    dispatcher->transitions += used;
    lw_shutdown_step(dispatcher);
    bool has_work = used >= STEP_BUDGET || dispatcher->completions.done.first != NULL ||
                    dispatcher->host->now >= dispatcher->step_until ||
                    lw_mailbox_sleep(&dispatcher->completions.mailbox);
    lw_pace_end(dispatcher, now);
    return has_work ? dispatcher->host->now : LW_NEVER;
}
