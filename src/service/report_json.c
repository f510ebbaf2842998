/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The status as JSON, for programs: every figure of the text and more, with names that stay.
 * Loop thread.
 */
#include <unistd.h>

#include "service/report.h"
#include "service/report_processes.h"

static void
put_int(struct lw_json *json, const char *key, int64_t value)
{
    lw_json_key(json, key);
    lw_json_int(json, value);
}

static void
put_text(struct lw_json *json, const char *key, const char *value)
{
    lw_json_key(json, key);
    lw_json_string(json, value);
}

static void
put_rate(struct lw_json *json, const char *key, double value)
{
    lw_json_key(json, key);
    lw_json_double(json, (double)(int64_t)(value * 10 + 0.5) / 10);
}

static void
put_settled(struct lw_json *json, const struct lw_counters *counters)
{
    static const char *const names[] = {
        [LW_SETTLED_ACKED] = "acked",
        [LW_SETTLED_RETRIED] = "retried",
        [LW_SETTLED_DEAD_LETTERED] = "dead_lettered",
        [LW_SETTLED_DROPPED] = "dropped",
        [LW_SETTLED_REDELIVERED] = "redelivered",
        [LW_SETTLED_GIVEN_BACK] = "given_back",
    };
    lw_json_key(json, "settled");
    lw_json_object(json);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        put_int(json, names[i], (int64_t)counters->settled[i]);
    }
    lw_json_object_end(json);
}

static void
put_results(struct lw_json *json, const struct lw_counters *counters)
{
    static const char *const names[] = { "ok", "retry", "dead", "drop", "error" };
    lw_json_key(json, "attempts");
    lw_json_object(json);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        put_int(json, names[i], (int64_t)counters->results[i]);
    }
    lw_json_object_end(json);
}

static void
put_known(struct lw_json *json, const char *key, int64_t value)
{
    lw_json_key(json, key);
    if (value < 0) {
        lw_json_null(json);
    } else {
        lw_json_int(json, value);
    }
}

/* In milliseconds, to the microsecond. */
static void
put_time(struct lw_json *json, const char *key, int64_t ns)
{
    lw_json_key(json, key);
    if (ns < 0) {
        lw_json_null(json);
    } else {
        int64_t us = ns / 1000;
        lw_json_double(json, (double)us / 1000);
    }
}

static void
put_figures(struct lw_json *json, const struct lw_report_figures *figures)
{
    put_known(json, "lag", figures->lag);
    put_known(json, "retry_lag", figures->retry_lag);
    put_time(json, "p50_ms", figures->p50_ns);
    put_time(json, "p99_ms", figures->p99_ns);
    put_int(json, "dead_last_hour", (int64_t)figures->dead_last_hour);
}

/* Of handlers that take several messages at once: calls, and why each was made when it was. */
static void
put_batches(struct lw_json *json, const struct lw_stream *stream)
{
    static const char *const names[LW_GATHER_REASONS] = {
        [LW_GATHER_SIZE] = "by_size",   [LW_GATHER_BYTES] = "by_bytes",
        [LW_GATHER_WAIT] = "by_wait",   [LW_GATHER_LIMIT] = "by_limit",
        [LW_GATHER_CLOSE] = "by_close", [LW_GATHER_ALONE] = "alone",
    };
    const struct lw_gather *gather = &stream->subscription.gather;
    if (!stream->subscription.is_batched) {
        return;
    }
    lw_json_key(json, "batches");
    lw_json_object(json);
    put_int(json, "size", gather->size);
    put_int(json, "calls", (int64_t)stream->counters.tasks);
    for (int i = 0; i < LW_GATHER_REASONS; i++) {
        put_int(json, names[i], (int64_t)gather->reasons[i]);
    }
    put_int(json, "taken_apart", (int64_t)stream->counters.taken_apart);
    put_int(json, "mismatches", (int64_t)stream->counters.mismatches);
    lw_json_object_end(json);
}

static void
put_lane(struct lw_json *json, const struct lw_report_lane *lane)
{
    const struct lw_stream *stream = lane->stream;
    const struct lw_subscription *subscription = &stream->subscription;
    lw_json_object(json);
    put_int(json, "served", lane->served);
    put_text(json, "topic", stream->topic);
    put_text(json, "pipeline", stream->pipeline);
    put_text(json, "group", stream->name);
    put_text(json, "broker", stream->link->broker->name);
    put_int(json, "priority", subscription->priority);
    put_text(json, "state", lane->state);
    put_text(json, "reason", lane->reason[0] ? lane->reason : NULL);
    put_int(json, "partitions", lane->partitions);
    put_int(json, "waiting", subscription->queued);
    put_int(json, "running", subscription->running);
    put_int(json, "retrying", subscription->parked);
    put_int(json, "publishing", subscription->publishing);
    put_int(json, "in_flight", subscription->limits.count);
    put_int(json, "in_flight_bytes", (int64_t)subscription->limits.bytes);
    put_int(json, "window", subscription->window.size);
    put_int(json, "oldest_ms", lane->oldest_ms);
    put_rate(json, "rate", lane->rate);
    put_figures(json, &lane->figures);
    put_int(json, "received", (int64_t)stream->counters.received);
    put_int(json, "started", (int64_t)stream->counters.started);
    put_results(json, &stream->counters);
    put_settled(json, &stream->counters);
    put_int(json, "stale", (int64_t)stream->counters.stale);
    put_int(json, "late", (int64_t)stream->counters.late);
    put_int(json, "held", (int64_t)stream->counters.held);
    put_int(json, "undecodable", (int64_t)stream->counters.undecodable);
    put_batches(json, stream);
    lw_json_object_end(json);
}

static void
put_brokers(struct lw_json *json, const struct lw_dispatcher *dispatcher)
{
    lw_json_key(json, "brokers");
    lw_json_array(json);
    for (uint32_t i = 0; i < dispatcher->link_count; i++) {
        const struct lw_link *link = dispatcher->links[i];
        lw_json_object(json);
        put_text(json, "name", link->broker->name);
        lw_json_key(json, "is_up");
        lw_json_bool(json, link->is_up);
        put_text(json, "error", link->is_up ? NULL : link->last_error.message);
        put_int(json, "commits", (int64_t)link->commits);
        put_int(json, "commits_failed", (int64_t)link->commits_failed);
        lw_json_object_end(json);
    }
    lw_json_array_end(json);
}

static void
put_handlers(struct lw_json *json, const struct lw_dispatcher *dispatcher)
{
    lw_json_key(json, "handlers");
    lw_json_array(json);
    for (uint32_t i = 0; i < dispatcher->engine_count; i++) {
        const struct lw_engine *engine = dispatcher->engines[i];
        lw_json_object(json);
        put_text(json, "name", engine->name);
        put_text(json, "engine", engine->ops->name);
        lw_json_key(json, "is_up");
        lw_json_bool(json, !engine->is_down);
        put_text(json, "error", engine->is_down ? engine->down_error.message : NULL);
        put_int(json, "restarts", engine->restarts);
        put_int(json, "stray_lines", engine->stray_lines);
        lw_report_processes_json(json, engine);
        lw_json_object_end(json);
    }
    lw_json_array_end(json);
}

static void
put_rates(struct lw_json *json, const struct lw_report *report)
{
    static const char *const names[] = { "ok", "retry", "dead", "drop", "error" };
    struct lw_report_totals totals = lw_report_total(report);
    lw_json_key(json, "rates");
    lw_json_object(json);
    put_rate(json, "in", totals.in);
    for (int i = 0; i < 5; i++) {
        put_rate(json, names[i], totals.results[i]);
    }
    lw_json_object_end(json);
}

void
lw_report_status_json(const struct lw_report *report, struct lw_json *json)
{
    const struct lw_dispatcher *dispatcher = report->dispatcher;
    char health[256];
    lw_report_health(report, health, sizeof health);
    lw_json_object(json);
    put_text(json, "service", dispatcher->name);
    put_text(json, "version", lw_version());
    put_int(json, "pid", getpid());
    put_int(json, "up_ms", lw_report_up_ms(dispatcher));
    put_text(json, "health", health);
    put_int(json, "slots", dispatcher->options.concurrency);
    put_int(json, "slots_busy", dispatcher->scheduler.busy_slots);
    put_int(json, "held", dispatcher->held_count);
    put_rates(json, report);
    put_brokers(json, dispatcher);
    put_handlers(json, dispatcher);
    lw_json_key(json, "topics");
    lw_json_array(json);
    for (uint32_t i = 0; i < report->count; i++) {
        struct lw_report_lane lane;
        lw_report_lane(report, i, &lane);
        put_lane(json, &lane);
    }
    lw_json_array_end(json);
    lw_json_object_end(json);
}
