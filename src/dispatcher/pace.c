/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What surrounds a step: the minute of the handlers' times, and the word about a turn that took
 * so long that everything else on the loop thread had to wait (other handlers, heartbeats,
 * priorities). It names the handlers that ran on the loop thread in that turn, which are nearly
 * always the cause; the clock is read once a turn for it.
 */
#include "dispatcher/pace.h"

#include <string.h>

void
lw_pace_begin(struct lw_dispatcher *dispatcher, uint64_t now)
{
    if (now / LW_LATENCY_MINUTE_NS == dispatcher->pace_minute) {
        return;
    }
    dispatcher->pace_minute = now / LW_LATENCY_MINUTE_NS;
    for (uint32_t i = 0; i < dispatcher->stream_count; i++) {
        lw_latency_turn(&dispatcher->streams[i]->handler_time, now);
    }
}

/* Its handlers run on the loop thread, and one did in the turn that began then. */
static bool
has_run_here(const struct lw_stream *stream, uint64_t since)
{
    return stream->ran_at >= since &&
           strcmp(stream->subscription.engine->ops->name, "loop") == 0;
}

static void
append_name(struct lw_text *names, const char *name)
{
    lw_text_append(names, names->size ? "," : "");
    lw_text_append(names, name);
}

/* Each handler once, however many topics it has. */
static void
list_handlers(const struct lw_dispatcher *dispatcher, uint64_t since, struct lw_text *names)
{
    for (uint32_t i = 0; i < dispatcher->engine_count; i++) {
        bool has_run = false;
        for (uint32_t k = 0; k < dispatcher->stream_count && !has_run; k++) {
            const struct lw_stream *stream = dispatcher->streams[k];
            has_run = stream->subscription.engine == dispatcher->engines[i] &&
                      has_run_here(stream, since);
        }
        if (has_run) {
            append_name(names, dispatcher->engines[i]->name);
        }
    }
}

static void
say_slow(struct lw_dispatcher *dispatcher, uint64_t began, uint64_t took)
{
    struct lw_text names;
    lw_text_init(&names);
    list_handlers(dispatcher, began, &names);
    lw_host_log(dispatcher->host, LW_LOG_WARN, "loop.slow",
                names.size ? "a handler held up the loop thread, where everything else waits "
                             "for it; engine: threads would not"
                           : "a turn of the loop thread took long, and no handler ran in it",
                "took_ms=%llu turns=%u handlers=%s", (unsigned long long)(took / LW_MS),
                dispatcher->slow_turns, names.size ? names.data : "-");
    lw_text_deinit(&names);
}

void
lw_pace_end(struct lw_dispatcher *dispatcher, uint64_t now)
{
    uint64_t end = dispatcher->host->ops->refresh(dispatcher->host);
    if (__builtin_expect(end - now < LW_PACE_SLOW_NS, 1)) {
        return;
    }
    dispatcher->slow_turns++;
    if (end >= dispatcher->slow_silent_until) {
        say_slow(dispatcher, now, end - now);
        dispatcher->slow_turns = 0;
        dispatcher->slow_silent_until = end + LW_PACE_SILENCE_NS;
    }
}
