/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The short way of a message whose handler is called on the loop thread and answers at once.
 * Nothing waits anywhere, a slot is free, its lane is idle: the choice could only fall on it. It
 * runs while it is looked at first and, if it says ok and nothing else, is done before anything
 * else can see it: no list, no lane, no slot needs to know. Everything else about it (an error, a
 * reply, a partition with a story) becomes an ordinary delivery in the middle of its run, with
 * the state that it would have had.
 *
 * What the short way skips is what nobody could observe between two messages of one batch; it is
 * off while a history or fault points observe. tests/dispatcher compares both ways.
 */
#ifndef LW_DISPATCHER_DIRECT_H
#define LW_DISPATCHER_DIRECT_H

#include "base/inside.h"
#include "dispatcher/dispatcher.h"

struct lw_direct {
    struct lw_dispatcher *dispatcher;
    struct lw_stream *stream;
    lw_handler_fn handler; /* NULL: nothing takes the short way in this batch */
    void *user;
    uint64_t now;
    uint64_t deadline;
    bool is_empty;  /* nothing of the stream is in hand but this batch: no lane is taken */
    uint32_t count; /* done so far */
    uint64_t bytes; /* of the batch, without those that took the ordinary way */
    struct lw_message *done[LW_RECEIVE_BATCH];
};

/*
 * Before the batch is charged; `bytes` is all of it. may_start: no other stream could be received
 * and chosen before this one.
 */
void lw_direct_begin(struct lw_direct *direct, struct lw_dispatcher *dispatcher,
                     struct lw_stream *stream, uint64_t bytes, bool may_start);
/* Settles the books of the batch. */
void lw_direct_end(struct lw_direct *direct);
/* It said something else than ok: an ordinary delivery from here on. */
void lw_direct_adopt(struct lw_direct *direct, struct lw_partition *partition,
                     struct lw_delivery *delivery, enum lw_verdict verdict);
/* Its lane is idle; looked up only when something of the stream is held. */
bool
lw_direct_is_lane_idle(const struct lw_direct *direct, const struct lw_partition *partition,
                       const struct lw_delivery *delivery);

/* This one of the batch is held, beyond it. */
static inline void
lw_direct_leave_out(struct lw_direct *direct, const struct lw_delivery *delivery)
{
    direct->is_empty = false;
    direct->bytes -= delivery->message.key.size + delivery->message.value.size;
}

/* It can be done at once: it is the next of its ledger, or is acknowledged for itself. */
LW_INLINE bool
lw_direct_may_pass(const struct lw_direct *direct, const struct lw_partition *partition,
                   const struct lw_message *message)
{
    if (partition->is_plain) {
        return lw_offsets_may_pass(&partition->offsets, message->position);
    }
    return partition->is_acked &&
           !lw_policy_is_spent(&direct->stream->policy, message->redeliveries);
}

/* False: it takes the ordinary way, nothing happened. */
LW_INLINE bool
lw_direct_try(struct lw_direct *direct, struct lw_partition *partition,
              struct lw_delivery *delivery)
{
    if (!direct->handler || !lw_direct_may_pass(direct, partition, &delivery->message) ||
        (__builtin_expect(!direct->is_empty, 0) &&
         !lw_direct_is_lane_idle(direct, partition, delivery))) {
        lw_direct_leave_out(direct, delivery);
        return false;
    }
    delivery->subscription = &direct->stream->subscription;
    delivery->partition = partition;
    lw_delivery_begin_direct(delivery, direct->now, direct->deadline);
    const void *before = lw_inside_enter(delivery);
    enum lw_verdict verdict = direct->handler(delivery, direct->user);
    lw_inside_leave(before);
    if (__builtin_expect(verdict != LW_OK || delivery->outcome != NULL, 0)) {
        lw_direct_adopt(direct, partition, delivery, verdict);
        return true;
    }
    if (partition->has_ledger) {
        lw_offsets_pass(&partition->offsets, delivery->message.position);
        if (__builtin_expect(!partition->is_dirty, 0)) {
            lw_settle_mark_dirty(partition);
        }
    }
    partition->received_bytes += delivery->message.key.size + delivery->message.value.size;
    direct->done[direct->count++] = &delivery->message;
    return true;
}

#endif
