/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a starved stream missed: the runs that worse ones began, or had going on, since it ran dry,
 * and the slots that are free. Streams are few, so they are looked through, and only by those that
 * have nothing to choose. While a better stream is about to deliver, a worse one that fills its
 * gap learns nothing from that: its window would hold a reserve for slots that it will not get.
 */
#include "dispatcher/starved.h"

#include "dispatcher/stream.h"

static bool
is_worse(const struct lw_stream *stream, const struct lw_stream *other)
{
    return other->subscription.priority > stream->subscription.priority;
}

static uint32_t
count_free(const struct lw_stream *stream)
{
    const struct lw_scheduler *scheduler = &stream->dispatcher->scheduler;
    return scheduler->slots - scheduler->busy_slots;
}

/* -- better ones ----------------------------------------------------------------------------- */

/* Its broker was asked just now, or is to deliver for the first time. */
static bool
is_expected(const struct lw_stream *stream, uint64_t now)
{
    if (stream->counters.received == 0) {
        uint64_t begun = stream->received_at > 0 ? stream->received_at
                                                 : stream->dispatcher->started_at;
        return now < begun + LW_LATE_NS;
    }
    return stream->starved_at != 0 &&
           lw_window_is_prompt(&stream->subscription.window, now - stream->starved_at);
}

static bool
is_better_expected(const struct lw_stream *stream, uint64_t now)
{
    const struct lw_dispatcher *dispatcher = stream->dispatcher;
    for (uint32_t i = 0; i < dispatcher->stream_count; i++) {
        const struct lw_stream *other = dispatcher->streams[i];
        if (is_worse(other, stream) && other->is_on_demand && is_expected(other, now)) {
            return true;
        }
    }
    return false;
}

/* -- worse ones ------------------------------------------------------------------------------ */

static bool
is_worse_running(const struct lw_stream *stream)
{
    const struct lw_dispatcher *dispatcher = stream->dispatcher;
    for (uint32_t i = 0; i < dispatcher->stream_count; i++) {
        const struct lw_stream *other = dispatcher->streams[i];
        if (other->subscription.running > 0 && is_worse(stream, other)) {
            return true;
        }
    }
    return false;
}

/* A run of several messages takes one slot. */
static uint64_t
count_runs(const struct lw_stream *stream)
{
    return stream->subscription.is_batched ? stream->counters.tasks : stream->counters.started;
}

/* How many runs they began; `is_ended`: without those that go on. */
static uint64_t
count_worse(const struct lw_stream *stream, bool is_ended)
{
    const struct lw_dispatcher *dispatcher = stream->dispatcher;
    uint64_t count = 0;
    for (uint32_t i = 0; i < dispatcher->stream_count; i++) {
        const struct lw_stream *other = dispatcher->streams[i];
        if (is_worse(stream, other)) {
            count += count_runs(other) - (is_ended ? other->subscription.running : 0);
        }
    }
    return count;
}

/* -- for receiving --------------------------------------------------------------------------- */

bool
lw_starved_is(const struct lw_stream *stream)
{
    return stream->is_on_demand && !lw_subscription_has_ready(&stream->subscription) &&
           (count_free(stream) > 0 || is_worse_running(stream));
}

void
lw_starved_update(struct lw_stream *stream, uint32_t room, uint64_t now)
{
    if (room == 0 || !lw_starved_is(stream)) {
        stream->starved_at = 0;
    } else if (stream->starved_at == 0) {
        stream->starved_at = now;
        stream->worse_ended = count_worse(stream, true);
    }
}

void
lw_starved_end(struct lw_stream *stream, uint32_t count, uint64_t now)
{
    uint64_t missed = 0;
    if (!is_better_expected(stream, now)) {
        missed = count_worse(stream, false) - stream->worse_ended + count_free(stream);
    }
    lw_window_on_arrival(&stream->subscription.window, count, missed, stream->starved_at, now);
    stream->starved_at = 0;
}
