/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a task of several members. What each is owed is judged as if it had run alone, in the
 * order of its lane. When one is to be retried in place, is held, or stops the service, those of
 * its lane behind it go back to the lane, uncharged and whatever was said of them: they run again
 * after it. They go back before it is dealt with, so that whoever takes it out finds them there.
 *
 * One verdict for all that is a retry or an error blames nobody: the members go back uncharged and
 * run again alone, after the delay that it gave. Otherwise the first one would be charged for a fault
 * of another, up to its dead letter.
 */
#include "dispatcher/task.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "dispatcher/receive.h"

/* -- streams --------------------------------------------------------------------------------- */

void
lw_task_on_timer(struct lw_timer *timer, uint64_t now)
{
    struct lw_stream *stream = LW_CONTAINER(timer, struct lw_stream, gather_timer);
    (void)now;
    lw_scheduler_expire(&stream->dispatcher->scheduler, &stream->subscription);
}

/* Those behind it would be over by the time that its reply is refused. */
static bool
may_run_again_behind(const struct lw_stream *stream)
{
    const struct lw_case item = { .verdict = LW_OK, .attempt = 1, .delay_ms = -1 };
    return stream->subscription.engine->batch.size > 1 && stream->reply_topic &&
           stream->subscription.ordering != LW_ORDERING_NONE &&
           lw_policy_judge_refused(&stream->policy, true, &item, 0).action == LW_ACTION_PARK;
}

static enum lw_status
check(const struct lw_stream *stream, struct lw_error *ret_error)
{
    const struct lw_subscription *subscription = &stream->subscription;
    const struct lw_batch_options *batch = &subscription->engine->batch;
    if (batch->keys == LW_BATCH_KEYS_ONE && subscription->ordering == LW_ORDERING_NONE) {
        lw_error_set(ret_error, LW_STATUS_INVALID, "E0320",
                     "topic \"%s\" has no order, so its batches cannot be of one key each",
                     stream->topic);
        lw_error_help(ret_error, "use \"ordering: key\", or \"batch: {keys: many}\"");
        return LW_STATUS_INVALID;
    }
    if (batch->size > subscription->limits.count_max) {
        lw_error_set(ret_error, LW_STATUS_INVALID, "E0320",
                     "a batch of %u can never fill: topic \"%s\" has at most %u messages in "
                     "flight",
                     batch->size, stream->topic, subscription->limits.count_max);
        lw_error_help(ret_error, "raise max_in_flight, or lower batch.size");
        return LW_STATUS_INVALID;
    }
    if (may_run_again_behind(stream)) {
        lw_error_set(ret_error, LW_STATUS_INVALID, "E0320",
                     "a message of topic \"%s\" whose reply is too large would run again, in "
                     "place, behind those of its key that were in its batch",
                     stream->topic);
        lw_error_help(ret_error, "use \"reply: {on_oversize: dead}\", or leave batch out");
        return LW_STATUS_INVALID;
    }
    return LW_STATUS_OK;
}

enum lw_status
lw_task_init_stream(struct lw_stream *stream, struct lw_error *ret_error)
{
    struct lw_subscription *subscription = &stream->subscription;
    const struct lw_batch_options *batch = &subscription->engine->batch;
    struct lw_window *window = &subscription->window;
    if (batch->size == 0) {
        return LW_STATUS_OK;
    }
    subscription->is_batched = true;
    subscription->gather.size = batch->size;
    subscription->gather.bytes = batch->bytes;
    subscription->gather.wait_ns = (uint64_t)batch->wait_ms * LW_MS;
    subscription->gather.has_many = batch->keys == LW_BATCH_KEYS_MANY;
    /* So many must be here before a handler starts: less would only be asked for again. */
    window->maximum = window->maximum > batch->size ? window->maximum : batch->size;
    window->minimum = window->minimum > batch->size ? window->minimum : batch->size;
    window->size = window->size > batch->size ? window->size : batch->size;
    return check(stream, ret_error);
}

void
lw_task_arm(struct lw_dispatcher *dispatcher)
{
    for (uint32_t i = 0; i < dispatcher->stream_count; i++) {
        struct lw_stream *stream = dispatcher->streams[i];
        if (!stream->subscription.is_batched) {
            continue;
        }
        uint64_t due = lw_gather_next(&stream->subscription);
        if (due != stream->gather_timer.due) {
            lw_timers_arm(&dispatcher->host->timers, &stream->gather_timer, due);
        }
    }
}

void
lw_task_close(struct lw_dispatcher *dispatcher)
{
    for (uint32_t i = 0; i < dispatcher->stream_count; i++) {
        struct lw_subscription *subscription = &dispatcher->streams[i]->subscription;
        if (subscription->is_batched) {
            lw_scheduler_close_gather(&dispatcher->scheduler, subscription);
            lw_host_want_turn(dispatcher->host); /* this may be the end of a step */
        }
    }
}

/* -- members --------------------------------------------------------------------------------- */

/* It is no member of a task any more. */
static void
leave(struct lw_delivery *member)
{
    member->task_next = NULL;
    member->task_first = NULL;
    member->is_batch = false;
    member->is_each = false;
}

static void
requeue(struct lw_dispatcher *dispatcher, struct lw_delivery *member)
{
    if (member->partition->is_ended) {
        lw_stream_of(member)->counters.stale++;
        lw_settle_drop(dispatcher, member);
        return;
    }
    member->attempt--;
    lw_delivery_set_state(member, LW_STATE_QUEUED);
    lw_scheduler_requeue(&dispatcher->scheduler, member);
}

/* These, up to `end`, run again: the last one first, so that they are in order again. */
static void
requeue_all(struct lw_dispatcher *dispatcher, struct lw_delivery *first,
            const struct lw_delivery *end)
{
    struct lw_delivery *reversed = NULL;
    for (struct lw_delivery *member = first; member != end;) {
        struct lw_delivery *next = member->task_next;
        member->task_next = reversed;
        reversed = member;
        member = next;
    }
    while (reversed) {
        struct lw_delivery *next = reversed->task_next;
        leave(reversed);
        requeue(dispatcher, reversed);
        reversed = next;
    }
}

/* -- start ----------------------------------------------------------------------------------- */

static void
begin(struct lw_dispatcher *dispatcher, struct lw_stream *stream, struct lw_delivery *first)
{
    uint64_t now = dispatcher->host->ops->refresh(dispatcher->host);
    uint32_t count = 0;
    first->task_number = ++dispatcher->task_numbers;
    for (struct lw_delivery *member = first; member; member = member->task_next) {
        lw_delivery_begin_run(member, now);
        member->is_batch = true;
        member->is_each = false;
        member->task_first = first;
        lw_history_note(dispatcher, LW_HISTORY_STARTED, member, 0, 0);
        count++;
    }
    first->task_count = count;
    first->task_cancelled = 0;
    first->task_answers = 1;
    stream->ran_at = now;
    stream->counters.started += count;
    stream->counters.tasks++;
}

void
lw_task_run(struct lw_dispatcher *dispatcher, struct lw_stream *stream,
            struct lw_delivery *first)
{
    struct lw_engine *engine = stream->subscription.engine;
    begin(dispatcher, stream, first);
    if (engine->ops->submit(engine, &first, 1) == 1) {
        (void)dispatcher->host->ops->refresh(dispatcher->host);
        return;
    }
    lw_scheduler_free_slot(&dispatcher->scheduler, &stream->subscription);
    requeue_all(dispatcher, first, NULL);
}

/* -- end ------------------------------------------------------------------------------------- */

/* What the task's first said is said of each; what hides in its bytes stays its own. */
static void
spread(struct lw_delivery *first)
{
    const struct lw_outcome *said = first->outcome;
    for (struct lw_delivery *member = first->task_next; member; member = member->task_next) {
        member->verdict = first->verdict;
        struct lw_outcome *outcome = said && first->verdict != LW_OK
                                         ? lw_delivery_outcome(member)
                                         : NULL;
        if (outcome) {
            memcpy(outcome->reason, said->reason, sizeof(outcome->reason));
            outcome->code = said->code;
            outcome->has_code = said->has_code;
            outcome->signal = said->signal;
            outcome->delay_ms = said->delay_ms;
            outcome->is_uncharged = said->is_uncharged;
        }
    }
}

static void
say_mismatch(struct lw_dispatcher *dispatcher, struct lw_stream *stream,
             const struct lw_delivery *first)
{
    uint32_t wanted = first->is_each ? first->task_count : 1;
    stream->counters.mismatches++;
    lw_host_log(
        dispatcher->host, LW_LOG_WARN, "batch.mismatch",
        first->task_answers > wanted
            ? "a handler gave more verdicts than it was given messages; the last ones "
              "are ignored"
            : "a handler gave fewer verdicts than it was given messages; the others are "
              "retried",
        "handler=%s topic=%s messages=%u verdicts=%u wanted=%u",
        stream->subscription.engine->name, stream->topic, first->task_count,
        first->task_answers, wanted);
}

/* Counts those without a verdict, which get one: retry. */
static uint32_t
complete(struct lw_delivery *first)
{
    uint32_t missing = 0;
    char reason[96];
    (void)snprintf(reason, sizeof(reason), "the handler gave %u verdicts for %u messages",
                   first->task_answers, first->task_count);
    for (struct lw_delivery *member = first; member; member = member->task_next) {
        if (member->verdict != LW_PENDING) {
            continue;
        }
        struct lw_outcome *outcome = lw_delivery_outcome(member);
        if (outcome) {
            lw_outcome_set_reason(outcome, reason, strlen(reason));
        }
        member->verdict = LW_RETRY;
        missing++;
    }
    return missing;
}

static bool
is_failure(const struct lw_delivery *member)
{
    return member->verdict == LW_RETRY || member->verdict == LW_ERROR;
}

/* How the members of a task end together. */
struct end {
    bool is_uncharged; /* it ended without anybody's fault: all run again */
    bool is_apart;     /* nobody knows whose fault it was: each runs again alone */
};

static struct end
look_at(struct lw_dispatcher *dispatcher, struct lw_stream *stream, struct lw_delivery *first)
{
    uint32_t wanted = first->is_each ? first->task_count : 1;
    struct end end = { .is_uncharged = first->outcome && first->outcome->is_uncharged };
    if (!first->is_each) {
        spread(first);
    }
    if (complete(first) > 0 || first->task_answers != wanted) {
        say_mismatch(dispatcher, stream, first);
    }
    end.is_apart = !first->is_each && first->task_count > 1 && is_failure(first);
    for (struct lw_delivery *member = first; member; member = member->task_next) {
        lw_history_note(dispatcher, LW_HISTORY_RETURNED, member, member->verdict, 0);
        member->is_alone = member->is_alone || (end.is_apart && !end.is_uncharged);
    }
    stream->counters.taken_apart += end.is_apart && !end.is_uncharged;
    return end;
}

static bool
is_plain_ok(const struct lw_delivery *member)
{
    return member->verdict == LW_OK && (!member->outcome || member->outcome->output_count == 0);
}

/* Those of its lane behind it must not go on before it. */
static bool
is_blocking(const struct lw_ruling *ruling)
{
    return ruling->action == LW_ACTION_PARK || ruling->action == LW_ACTION_HOLD ||
           ruling->action == LW_ACTION_STOP;
}

/* A judged one that is not charged runs again, in a day at most. */
static void
put_off(struct lw_dispatcher *dispatcher, struct lw_delivery *delivery, int64_t delay_ms)
{
    delay_ms = delay_ms < LW_DELAY_MAX_MS ? delay_ms : LW_DELAY_MAX_MS;
    delivery->attempt--;
    lw_dispatcher_park(dispatcher, delivery, delay_ms > 0 ? delay_ms : 0);
}

/* One member, which no longer is one, with those of its lane behind it; true: they went back. */
static bool
finish_member(struct lw_dispatcher *dispatcher, struct lw_stream *stream,
              struct lw_delivery *member, struct lw_delivery *behind,
              const struct lw_delivery *end)
{
    if (member->partition->is_ended) {
        stream->counters.stale++;
        lw_settle_drop(dispatcher, member);
        return false;
    }
    lw_delivery_move(member, LW_STATE_RUNNING, LW_STATE_JUDGED);
    if (is_plain_ok(member)) {
        stream->counters.results[LW_OK]++;
        lw_history_note(dispatcher, LW_HISTORY_JUDGED, member, LW_OK, LW_ACTION_DONE);
        lw_settle(dispatcher, member, LW_SETTLED_ACKED, -1);
        return false;
    }
    if (dispatcher->phase >= LW_PHASE_LEAVING) {
        requeue_all(dispatcher, behind, end);
        lw_shutdown_give_back(dispatcher, member);
        return true;
    }
    if (member->outcome && member->outcome->is_uncharged) {
        requeue_all(dispatcher, behind, end); /* what was said of it alone is lost */
        put_off(dispatcher, member, member->outcome->delay_ms);
        return true;
    }
    struct lw_ruling ruling = lw_dispatcher_rule(dispatcher, stream, member);
    bool blocks = is_blocking(&ruling);
    if (blocks) {
        requeue_all(dispatcher, behind, end);
    }
    lw_dispatcher_carry_out(dispatcher, member, ruling);
    return blocks;
}

/* Members of one lane, or one without order: from `first` up to `end`. */
static void
finish_lane(struct lw_dispatcher *dispatcher, struct lw_stream *stream,
            struct lw_delivery *first, const struct lw_delivery *end)
{
    struct lw_delivery *member = first;
    bool is_over = false;
    while (!is_over && member != end) {
        struct lw_delivery *behind = member->task_next;
        leave(member);
        is_over = finish_member(dispatcher, stream, member, behind, end);
        member = behind;
    }
}

static struct lw_delivery *
end_of_lane(struct lw_delivery *first)
{
    struct lw_delivery *member = first->task_next;
    while (member && first->lane && member->lane == first->lane) {
        member = member->task_next;
    }
    return member;
}

static void
warn_late(struct lw_dispatcher *dispatcher, struct lw_stream *stream,
          const struct lw_delivery *first)
{
    char place[LW_PLACE_BYTES];
    stream->counters.late += first->task_count;
    lw_host_log(dispatcher->host, LW_LOG_WARN, "handler.late",
                "a handler answered after its attempt's time", "topic=%s id=%s messages=%u",
                stream->topic, lw_stream_shown_id(first, place, sizeof(place)),
                first->task_count);
}

/* Members of one lane: the first waits, and the others wait behind it. */
static void
put_off_lane(struct lw_dispatcher *dispatcher, struct lw_delivery *first,
             const struct lw_delivery *end, int64_t delay_ms)
{
    struct lw_delivery *behind = first->task_next;
    leave(first);
    requeue_all(dispatcher, behind, end);
    if (first->partition->is_ended) {
        lw_stream_of(first)->counters.stale++;
        lw_settle_drop(dispatcher, first);
        return;
    }
    lw_delivery_move(first, LW_STATE_RUNNING, LW_STATE_JUDGED);
    put_off(dispatcher, first, delay_ms);
}

/* Nobody is charged: all run again, at once or after the delay that was said of them. */
static void
run_again(struct lw_dispatcher *dispatcher, struct lw_delivery *first)
{
    bool is_put_off = first->verdict == LW_RETRY && first->outcome &&
                      first->outcome->delay_ms > 0 && dispatcher->phase < LW_PHASE_LEAVING;
    if (!is_put_off) {
        requeue_all(dispatcher, first, NULL);
        return;
    }
    int64_t delay_ms = first->outcome->delay_ms;
    while (first) {
        struct lw_delivery *end = end_of_lane(first);
        put_off_lane(dispatcher, first, end, delay_ms);
        first = end;
    }
}

void
lw_task_finish(struct lw_dispatcher *dispatcher, struct lw_stream *stream,
               struct lw_delivery *first)
{
    lw_scheduler_free_slot(&dispatcher->scheduler, &stream->subscription);
    if (first->is_late) {
        warn_late(dispatcher, stream, first);
    }
    struct end how = look_at(dispatcher, stream, first);
    if (how.is_uncharged || how.is_apart) {
        run_again(dispatcher, first);
        return;
    }
    while (first) {
        struct lw_delivery *end = end_of_lane(first);
        finish_lane(dispatcher, stream, first, end);
        first = end;
    }
}

void
lw_task_cancel(struct lw_delivery *delivery)
{
    struct lw_engine *engine = delivery->subscription->engine;
    bool was_cancelled = atomic_exchange_explicit(&delivery->is_cancelled, true,
                                                  memory_order_relaxed);
    struct lw_delivery *first = delivery->is_batch ? delivery->task_first : delivery;
    if (delivery->is_batch && (was_cancelled || ++first->task_cancelled < first->task_count)) {
        return;
    }
    engine->ops->cancel(engine, first);
}
