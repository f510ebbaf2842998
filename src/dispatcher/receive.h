/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receiving, for the step and for everything that changes whether a stream may receive. Loop
 * thread. A stream is in the dispatcher's `receivable` map exactly while its broker has something
 * for it and it has room worth a batch; whoever changes one of these calls lw_receive_update.
 */
#ifndef LW_DISPATCHER_RECEIVE_H
#define LW_DISPATCHER_RECEIVE_H

#include "dispatcher/dispatcher.h"

/* Recomputes whether the stream may receive now. */
void lw_receive_update(struct lw_dispatcher *dispatcher, struct lw_stream *stream);
/* One batch of one stream, admitted. Returns how many came. */
uint32_t lw_receive_batch(struct lw_dispatcher *dispatcher, struct lw_stream *stream);
/* A received message becomes a held delivery: QUEUED, in its partition's list. */
void lw_receive_begin(struct lw_dispatcher *dispatcher, struct lw_stream *stream,
                      struct lw_partition *partition, struct lw_delivery *delivery);
/* Asks every source whether it has something. Once a step. */
void lw_receive_look_at_sources(struct lw_dispatcher *dispatcher);
/* Slots were freed: true when a stream may receive past messages that wait for their key. */
bool lw_receive_look_for_dry(struct lw_dispatcher *dispatcher);
/* Fills the windows while all slots are taken. Returns how many came. */
uint32_t lw_receive_top_up(struct lw_dispatcher *dispatcher, uint32_t budget);
/* Tells the brokers how much may be outstanding. Once a step. */
void lw_receive_tell_demand(struct lw_dispatcher *dispatcher);

/*
 * Nothing here could be chosen though a slot is free: what waits, waits for its key. Such
 * messages do not fill the window, or one busy key would hide all others behind it.
 */
static inline bool
lw_receive_is_dry(const struct lw_stream *stream)
{
    const struct lw_scheduler *scheduler = &stream->dispatcher->scheduler;
    return stream->subscription.queued == 0 ||
           (scheduler->busy_slots < scheduler->slots &&
            !lw_subscription_has_ready(&stream->subscription));
}

#endif
