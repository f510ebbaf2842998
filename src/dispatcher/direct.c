/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The short way of direct.h: its beginning, its books, and the way back to the ordinary path.
 *
 * Owns nothing beyond one batch. A message that answers anything but a plain ok becomes an ordinary
 * delivery here, with the state that the ordinary path would have given it by then (held, open, in
 * its lane, in a slot), before its verdict is judged.
 */
#include "dispatcher/direct.h"

#include "base/assert.h"
#include "dispatcher/receive.h"

void
lw_direct_begin(struct lw_direct *direct, struct lw_dispatcher *dispatcher,
                struct lw_stream *stream, uint64_t bytes, bool may_start)
{
    const struct lw_engine *engine = stream->subscription.engine;
    bool is_on = may_start && engine->direct && !dispatcher->is_observed &&
                 lw_scheduler_may_start(&dispatcher->scheduler, &stream->subscription);
    direct->dispatcher = dispatcher;
    direct->stream = stream;
    direct->handler = is_on ? engine->direct : NULL;
    direct->user = engine->direct_user;
    /* A lane outlives ownerships, so what counts is the whole stream. */
    direct->is_empty = stream->subscription.limits.count == 0;
    direct->now = dispatcher->host->now;
    direct->deadline = engine->direct_timeout_ns ? direct->now + engine->direct_timeout_ns
                                                 : LW_NEVER;
    direct->count = 0;
    direct->bytes = bytes;
}

bool
lw_direct_is_lane_idle(const struct lw_direct *direct, const struct lw_partition *partition,
                       const struct lw_delivery *delivery)
{
    struct lw_subscription *subscription = &direct->stream->subscription;
    struct lw_bytes key;
    if (!lw_scheduler_lane_key(subscription, &delivery->message, &key)) {
        return true;
    }
    const struct lw_lane *lane = lw_lanes_find(&direct->dispatcher->scheduler.lanes,
                                               subscription, partition->place, key);
    return lane && lane->place == LW_LANE_IDLE;
}

/*
 * The state that the ordinary way would have made by now: held, open, in its lane, in a slot.
 * False without memory for its lane: then it was not run, and waits.
 */
static bool
become_ordinary(struct lw_direct *direct, struct lw_partition *partition,
                struct lw_delivery *delivery)
{
    struct lw_scheduler *scheduler = &direct->dispatcher->scheduler;
    struct lw_subscription *subscription = &direct->stream->subscription;
    struct lw_bytes key;
    lw_receive_begin(direct->dispatcher, direct->stream, partition, delivery);
    delivery->is_late = false;
    if (partition->has_ledger) {
        enum lw_status status = lw_offsets_open(&partition->offsets,
                                                delivery->message.position);
        lw_assert(status == LW_STATUS_OK);
    }
    delivery->lane = NULL;
    if (lw_scheduler_lane_key(subscription, &delivery->message, &key)) {
        delivery->lane = lw_lanes_find(&scheduler->lanes, subscription, partition->place, key);
        if (!delivery->lane) {
            lw_assignment_stash(delivery, true);
            return false;
        }
        delivery->lane->place = LW_LANE_BUSY;
    }
    delivery->attempt = 1;
    lw_scheduler_take_slot(scheduler, subscription);
    lw_delivery_move(delivery, LW_STATE_QUEUED, LW_STATE_RUNNING);
    return true;
}

void
lw_direct_adopt(struct lw_direct *direct, struct lw_partition *partition,
                struct lw_delivery *delivery, enum lw_verdict verdict)
{
    lw_direct_leave_out(direct, delivery);
    if (!become_ordinary(direct, partition, delivery)) {
        return;
    }
    /* PENDING, or no verdict at all, is a mistake of a blocking handler: an error. */
    delivery->verdict = (uint8_t)((unsigned)verdict <= LW_ERROR ? verdict : LW_ERROR);
    direct->stream->counters.started++;
    lw_dispatcher_finish_any(direct->dispatcher, direct->stream, delivery);
    if (!lw_scheduler_may_start(&direct->dispatcher->scheduler,
                                &direct->stream->subscription) ||
        direct->dispatcher->phase != LW_PHASE_RUNNING) {
        direct->handler = NULL;
    }
}

static void
give_memory_back(struct lw_direct *direct)
{
    struct lw_dispatcher *dispatcher = direct->dispatcher;
    struct lw_broker *broker = direct->stream->link->broker;
    broker->ops->release(broker, direct->done, direct->count);
    for (uint32_t i = 0; i < direct->count; i++) {
        if (dispatcher->spare_count < LW_RECEIVE_BATCH) {
            dispatcher->spare[dispatcher->spare_count++] = direct->done[i];
        } else {
            lw_pool_give(&dispatcher->deliveries,
                         LW_CONTAINER(direct->done[i], struct lw_delivery, message));
        }
    }
}

void
lw_direct_end(struct lw_direct *direct)
{
    struct lw_stream *stream = direct->stream;
    uint32_t count = direct->count;
    if (count == 0) {
        return;
    }
    if (stream->link->broker->caps.settlement != LW_SETTLE_POSITION) {
        lw_settle_ack_all(stream, direct->done, count);
    }
    stream->counters.started += count;
    stream->counters.results[LW_OK] += count;
    stream->counters.settled[LW_SETTLED_ACKED] += count;
    stream->link->completed += count;
    direct->dispatcher->held_count -= count;
    give_memory_back(direct);
    if (lw_limits_credit(&stream->subscription.limits, count, direct->bytes)) {
        lw_receive_update(direct->dispatcher, stream);
    }
}
