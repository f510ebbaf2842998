/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settlement of the ordinary delivery, inline in the path of a message: its handler said ok
 * and nothing else, its partition is plain (a ledger, owned, nothing stashed), nobody observes.
 * It does what lw_settle does for that case, in the order of lw_settle, and leaves every other
 * case to it; tests/dispatcher compares the two.
 */
#ifndef LW_DISPATCHER_SETTLE_PLAIN_H
#define LW_DISPATCHER_SETTLE_PLAIN_H

#include "base/assert.h"
#include "dispatcher/receive.h"

/* The next one of the partition is its lowest unfinished now: it should not wait for others. */
static inline void
lw_settle_promote_next(const struct lw_partition *partition)
{
    struct lw_delivery *next = LW_CONTAINER(partition->held.next, struct lw_delivery, held);
    if (next->state == LW_STATE_QUEUED && next->lane) {
        lw_lane_promote(next->lane);
    }
}

/* Takes it out of what its partition holds. */
static inline void
lw_settle_unhold(struct lw_partition *partition, struct lw_delivery *delivery)
{
    struct lw_list *next = delivery->held.next;
    if (partition->oldest_pinned == delivery) {
        partition->oldest_pinned = next == &partition->held
                                       ? NULL
                                       : LW_CONTAINER(next, struct lw_delivery, held);
    }
    struct lw_list *before = delivery->held.prev;
    before->next = next;
    next->prev = before;
    partition->held_count--;
    if (before == &partition->held && partition->has_ledger) {
        if (next == before) {
            (void)lw_offsets_safe(&partition->offsets); /* all is done: base catches up */
        } else {
            lw_settle_promote_next(partition);
        }
    }
}

LW_INLINE void
lw_settle_plain(struct lw_dispatcher *dispatcher, struct lw_stream *stream,
                struct lw_delivery *delivery)
{
    struct lw_partition *partition = delivery->partition;
    struct lw_link *link = stream->link;
    lw_delivery_move(delivery, LW_STATE_RUNNING, LW_STATE_SETTLED);
    stream->counters.settled[LW_SETTLED_ACKED]++;
    bool was_open = lw_offsets_done(&partition->offsets, delivery->message.position);
    lw_assert(was_open);
    if (__builtin_expect(!partition->is_dirty, 0)) {
        lw_settle_mark_dirty(partition);
    }
    struct lw_lane *lane = delivery->lane;
    if (lane && __builtin_expect(lane->waiting.first == NULL, 1)) {
        lane->place = LW_LANE_IDLE;
    } else if (lane) {
        lw_scheduler_release(&dispatcher->scheduler, delivery);
    }
    lw_settle_unhold(partition, delivery);
    if (lw_limits_credit(&stream->subscription.limits, 1, delivery->held_bytes)) {
        lw_receive_update(dispatcher, stream);
    }
    link->finished[link->finished_count++] = &delivery->message;
    if (__builtin_expect(link->finished_count == LW_FINISHED_BATCH, 0)) {
        lw_settle_flush(dispatcher);
    }
}

#endif
