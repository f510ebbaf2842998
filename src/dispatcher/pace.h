/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long handlers and turns take, for status and for the log. No clock is read for a message:
 * a handler that ends in a later turn is measured by the times of the turns; blocking ones on the
 * loop thread by their batch, or every 64th of those that run alone. Loop thread.
 */
#ifndef LW_DISPATCHER_PACE_H
#define LW_DISPATCHER_PACE_H

#include "dispatcher/dispatcher.h"

#define LW_PACE_SLOW_NS (100 * LW_MS)      /* a turn that takes longer is said aloud */
#define LW_PACE_SILENCE_NS (10000 * LW_MS) /* but not oftener than this */

/* Around every step; `now` is when the turn began. */
void lw_pace_begin(struct lw_dispatcher *dispatcher, uint64_t now);
void lw_pace_end(struct lw_dispatcher *dispatcher, uint64_t now);

/* This run of a blocking handler on the loop thread is measured by the clock. */
static inline bool
lw_pace_is_sampled(const struct lw_stream *stream, const struct lw_engine *engine)
{
    return engine->direct != NULL && (stream->counters.started & 63) == 1;
}

/* A result came: what does not run inside the loop's own call took from its start until now. */
static inline void
lw_pace_on_result(struct lw_stream *stream, const struct lw_delivery *delivery, uint64_t now)
{
    if (!stream->subscription.engine->direct) {
        lw_latency_add(&stream->handler_time, now - delivery->started_at, 1);
    }
}

/* Such a run ended now; it began at stream->ran_at. */
static inline void
lw_pace_on_run(struct lw_dispatcher *dispatcher, struct lw_stream *stream)
{
    uint64_t end = dispatcher->host->ops->refresh(dispatcher->host);
    lw_latency_add(&stream->handler_time, end - stream->ran_at, 1);
}

/* A batch of blocking handlers on the loop thread ended; each took its share. */
static inline void
lw_pace_on_batch(struct lw_stream *stream, uint64_t began, uint64_t took, uint32_t runs)
{
    if (runs > 0) {
        stream->ran_at = began;
        lw_latency_add(&stream->handler_time, took / runs, runs);
    }
}

#endif
