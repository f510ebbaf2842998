/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a delivery, once and on every path (P5): its position is marked done or its message
 * acked or nacked, its lane, memory and limits come back. Acks and releases are collected and
 * told to the broker once per step; offsets are committed by interval or count, at most one
 * commit in flight per broker (P1, P2). Nothing here decides what is owed; that was judged.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/fault.h"
#include "dispatcher/dispatcher.h"
#include "dispatcher/settle_plain.h"

#define COMMIT_RETRY_MAX_MS 5000
#define BLOCKED_WARNING_MS 5000

/* -- acks and nacks ------------------------------------------------------------------------- */

static void
flush_items(struct lw_stream *stream)
{
    if (stream->settle_count > 0) {
        stream->link->broker->ops->settle(stream->source, stream->settle_items,
                                          stream->settle_count);
        stream->settle_count = 0;
        lw_list_remove(&stream->settle_link);
    }
}

/* After what waits already, and before any of them is released. */
void
lw_settle_ack_all(struct lw_stream *stream, struct lw_message *const messages[], uint32_t count)
{
    flush_items(stream);
    for (uint32_t i = 0; i < count; i++) {
        stream->settle_items[stream->settle_count++] = (struct lw_settle_item){ messages[i],
                                                                                true, -1 };
        if (stream->settle_count == LW_SETTLE_BATCH || i + 1 == count) {
            stream->link->broker->ops->settle(stream->source, stream->settle_items,
                                              stream->settle_count);
            stream->settle_count = 0;
        }
    }
}

static void
add_item(struct lw_dispatcher *dispatcher, struct lw_delivery *delivery, bool is_ack,
         int64_t delay_ms)
{
    struct lw_stream *stream = lw_stream_of(delivery);
    if (stream->settle_count == 0) {
        lw_list_push(&dispatcher->settling, &stream->settle_link);
    }
    stream->settle_items[stream->settle_count++] = (struct lw_settle_item){ &delivery->message,
                                                                            is_ack, delay_ms };
    if (stream->settle_count == LW_SETTLE_BATCH) {
        lw_settle_flush(dispatcher);
    }
}

/* -- release -------------------------------------------------------------------------------- */

static void
flush_finished(struct lw_dispatcher *dispatcher, struct lw_link *link)
{
    if (link->finished_count == 0) {
        return;
    }
    link->broker->ops->release(link->broker, link->finished, link->finished_count);
    for (uint32_t i = 0; i < link->finished_count; i++) {
        struct lw_delivery *delivery = LW_CONTAINER(link->finished[i], struct lw_delivery,
                                                    message);
        delivery->state = LW_STATE_FREE; /* SETTLED or DROPPED before */
        if (dispatcher->spare_count < LW_RECEIVE_BATCH) {
            dispatcher->spare[dispatcher->spare_count++] = &delivery->message;
        } else {
            lw_pool_give(&dispatcher->deliveries, delivery);
        }
    }
    link->completed += link->finished_count;
    dispatcher->held_count -= link->finished_count;
    link->finished_count = 0;
}

void
lw_settle_flush(struct lw_dispatcher *dispatcher)
{
    struct lw_list *node;
    while ((node = lw_list_first(&dispatcher->settling)) != NULL) {
        flush_items(LW_CONTAINER(node, struct lw_stream, settle_link));
    }
    for (uint32_t i = 0; i < dispatcher->link_count; i++) {
        struct lw_link *link = dispatcher->links[i];
        flush_finished(dispatcher, link);
        if (link->completed >= dispatcher->options.commit_count && !link->is_committing &&
            !dispatcher->is_taking_events) {
            lw_settle_commit(link);
        }
    }
}

/* Memory, lane and limits come back; the message goes to the broker with the next flush. */
static inline void
release(struct lw_dispatcher *dispatcher, struct lw_delivery *delivery)
{
    struct lw_stream *stream = lw_stream_of(delivery);
    struct lw_partition *partition = delivery->partition;
    lw_scheduler_release(&dispatcher->scheduler, delivery);
    lw_settle_unhold(partition, delivery);
    if (lw_limits_credit(&stream->subscription.limits, 1, delivery->held_bytes)) {
        lw_receive_update(dispatcher, stream);
    }
    struct lw_link *link = stream->link;
    link->finished[link->finished_count++] = &delivery->message;
    if (__builtin_expect(partition->is_ended, 0)) {
        lw_assignment_release(partition);
    } else if (__builtin_expect(partition->stash.first != NULL, 0)) {
        lw_assignment_unstash(dispatcher, partition);
    }
    if (link->finished_count == LW_FINISHED_BATCH) {
        lw_settle_flush(dispatcher);
    }
}

/* -- settle --------------------------------------------------------------------------------- */

void
lw_settle_mark_dirty(struct lw_partition *partition)
{
    struct lw_stream *stream = LW_CONTAINER(partition->subscription, struct lw_stream,
                                            subscription);
    struct lw_link *link = stream->link;
    lw_list_push(&link->dirty, &partition->dirty);
    partition->is_dirty = true;
    if (!lw_timer_is_armed(&link->commit_timer)) {
        struct lw_dispatcher *dispatcher = link->dispatcher;
        lw_timers_arm(&dispatcher->host->timers, &link->commit_timer,
                      dispatcher->host->now +
                          (uint64_t)dispatcher->options.commit_interval_ms * LW_MS);
    }
}

static inline void
mark_done(struct lw_dispatcher *dispatcher, struct lw_delivery *delivery)
{
    struct lw_partition *partition = delivery->partition;
    bool was_open = lw_offsets_done(&partition->offsets, delivery->message.position);
    lw_assert(was_open);
    if (!partition->is_dirty) {
        lw_settle_mark_dirty(partition);
    }
    (void)dispatcher;
}

static inline bool
is_finished(enum lw_settled outcome)
{
    return outcome != LW_SETTLED_REDELIVERED && outcome != LW_SETTLED_GIVEN_BACK;
}

void
lw_settle(struct lw_dispatcher *dispatcher, struct lw_delivery *delivery,
          enum lw_settled outcome, int64_t nack_delay_ms)
{
    struct lw_stream *stream = lw_stream_of(delivery);
    if (__builtin_expect(delivery->partition->is_ended, 0)) {
        lw_settle_drop(dispatcher, delivery);
        return;
    }
    if (lw_fault_point(dispatcher->host->faults, "settle.before")) {
        lw_settle_drop(dispatcher, delivery);
        return;
    }
    if (__builtin_expect(delivery->state == LW_STATE_JUDGED, 1)) {
        lw_delivery_move(delivery, LW_STATE_JUDGED, LW_STATE_SETTLED);
    } else {
        lw_delivery_set_state(delivery, LW_STATE_SETTLED);
    }
    stream->counters.settled[outcome]++;
    if (outcome == LW_SETTLED_DEAD_LETTERED) {
        lw_hourly_add(&stream->dead, dispatcher->host->now);
    }
    lw_history_note(dispatcher, LW_HISTORY_SETTLED, delivery, (int)outcome, 0);
    if (delivery->partition->has_ledger) {
        if (is_finished(outcome)) {
            mark_done(dispatcher, delivery);
        }
    } else {
        add_item(dispatcher, delivery, is_finished(outcome), nack_delay_ms);
    }
    release(dispatcher, delivery);
}

void
lw_settle_drop(struct lw_dispatcher *dispatcher, struct lw_delivery *delivery)
{
    lw_delivery_set_state(delivery, LW_STATE_DROPPED);
    dispatcher->given_back += dispatcher->phase >= LW_PHASE_LEAVING;
    lw_history_note(dispatcher, LW_HISTORY_DROPPED, delivery, 0, 0);
    release(dispatcher, delivery);
}

/* -- commit --------------------------------------------------------------------------------- */

static bool
reserve_items(struct lw_link *link, uint32_t count)
{
    if (count <= link->commit_capacity) {
        return true;
    }
    void *grown = lw_resize_array(link->commit_items, count + 64, sizeof(*link->commit_items));
    if (!grown) {
        return false;
    }
    link->commit_items = grown;
    link->commit_capacity = count + 64;
    return true;
}

/* The lowest unfinished message holds back what is done above it: said once when it lasts. */
static void
say_blocked(struct lw_link *link, struct lw_partition *partition)
{
    const struct lw_list *node = lw_list_first(&partition->held);
    if (!node || partition->offsets.done_beyond == 0) {
        return;
    }
    const struct lw_delivery *first = LW_CONTAINER_CONST(node, struct lw_delivery, held);
    uint64_t age_ms = (link->dispatcher->host->now - first->received_at) / LW_MS;
    if (age_ms < BLOCKED_WARNING_MS || partition->blocking == first->message.position) {
        return;
    }
    partition->blocking = first->message.position;
    lw_host_log(
        link->dispatcher->host, LW_LOG_WARN, "commit.blocked",
        "one message holds back the commits of its partition",
        "topic=%s partition=%d id=%lld state=%s attempt=%u age_ms=%llu done_beyond=%llu",
        partition->topic, partition->number, (long long)first->message.position,
        lw_state_name((enum lw_state)first->state), first->attempt, (unsigned long long)age_ms,
        (unsigned long long)partition->offsets.done_beyond);
}

static void
add_commit(struct lw_link *link, struct lw_partition *partition, uint32_t *count)
{
    lw_assignment_close_tail(partition);
    int64_t safe = lw_offsets_safe(&partition->offsets);
    say_blocked(link, partition);
    if (safe < 0 || safe == partition->committed || safe == partition->committing) {
        return;
    }
    struct lw_stream *stream = LW_CONTAINER(partition->subscription, struct lw_stream,
                                            subscription);
    partition->committing = safe;
    link->commit_items[(*count)++] = (struct lw_commit_item){ stream->source, partition->slot,
                                                              safe };
}

/* Dirty again: by the interval; after failures with growing delay, for ever. */
static void
arm_commit(struct lw_link *link)
{
    struct lw_dispatcher *dispatcher = link->dispatcher;
    if (lw_list_is_empty(&link->dirty) || lw_timer_is_armed(&link->commit_timer)) {
        return;
    }
    struct lw_backoff backoff = { dispatcher->options.commit_interval_ms, 2,
                                  COMMIT_RETRY_MAX_MS, 0 };
    int64_t delay_ms = lw_backoff_ms(&backoff, link->commit_failures + 1, 0);
    lw_timers_arm(&dispatcher->host->timers, &link->commit_timer,
                  dispatcher->host->now + (uint64_t)delay_ms * LW_MS);
}

void
lw_settle_commit(struct lw_link *link)
{
    struct lw_dispatcher *dispatcher = link->dispatcher;
    uint32_t count = 0;
    if (link->is_committing || link->is_revoke_commit_sent) {
        return; /* its answer commits what came meanwhile */
    }
    lw_timers_disarm(&dispatcher->host->timers, &link->commit_timer);
    struct lw_list *node;
    while ((node = lw_list_pop(&link->dirty)) != NULL) {
        struct lw_partition *partition = LW_CONTAINER(node, struct lw_partition, dirty);
        if (!reserve_items(link, count + 1)) {
            lw_list_push(&link->dirty, &partition->dirty);
            break;
        }
        partition->is_dirty = false;
        add_commit(link, partition, &count);
    }
    link->completed = 0;
    link->commit_status = lw_list_is_empty(&link->dirty) ? LW_STATUS_OK : LW_STATUS_NO_MEMORY;
    if (count == 0) {
        arm_commit(link); /* for what there was no memory */
        return;
    }
    (void)lw_fault_point(dispatcher->host->faults, "commit.before");
    link->is_committing = true;
    enum lw_status status = link->broker->ops->commit(link->broker, link->commit_items, count);
    if (status != LW_STATUS_OK) {
        struct lw_event event = { .kind = LW_EVENT_COMMITTED, .status = status };
        lw_settle_on_committed(link, &event);
    }
}

static void
end_commit(struct lw_link *link, struct lw_partition *partition, bool is_ok)
{
    if (partition->committing < 0) {
        return;
    }
    if (is_ok) {
        partition->committed = partition->committing;
        lw_history_note_partition(link->dispatcher, LW_HISTORY_COMMITTED, partition,
                                  partition->committed);
    } else if (!partition->is_ended && !partition->is_dirty) {
        lw_list_push(&link->dirty, &partition->dirty);
        partition->is_dirty = true;
    }
    partition->committing = -1;
}

static void
each_partition(struct lw_link *link, bool is_ok)
{
    struct lw_dispatcher *dispatcher = link->dispatcher;
    for (uint32_t i = 0; i < dispatcher->stream_count; i++) {
        struct lw_stream *stream = dispatcher->streams[i];
        if (stream->link != link) {
            continue;
        }
        struct lw_list *head = &stream->subscription.partitions;
        for (struct lw_list *node = head->next; node != head; node = node->next) {
            end_commit(link, LW_CONTAINER(node, struct lw_partition, link), is_ok);
        }
    }
}

void
lw_settle_on_committed(struct lw_link *link, const struct lw_event *event)
{
    bool is_ok = event->status == LW_STATUS_OK;
    link->is_committing = false;
    if (!is_ok) {
        link->commit_status = event->status;
    }
    each_partition(link, is_ok);
    if (is_ok) {
        link->commits++;
        link->commit_failures = 0;
    } else {
        link->commits_failed++;
        link->commit_failures++;
        lw_host_log(link->dispatcher->host, LW_LOG_WARN, "commit.failed",
                    "a commit failed and is tried again; nothing is lost",
                    "broker=%s status=%s failures=%u", link->broker->name,
                    lw_status_name(event->status), link->commit_failures);
    }
    arm_commit(link);
}

static void
on_commit_timer(struct lw_timer *timer, uint64_t now)
{
    (void)now;
    lw_settle_commit(LW_CONTAINER(timer, struct lw_link, commit_timer));
}

void
lw_settle_init_link(struct lw_link *link)
{
    lw_list_init(&link->dirty);
    lw_timer_init(&link->commit_timer, on_commit_timer);
}
