/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What status measures of a topic: lag, handler time, dead letters. Lag is what the broker has for
 * us and did not give out yet, and what is in hand; so a message that is done beyond a gap does
 * not count, as it would by committed offsets. Retry tiers are apart: their messages wait for
 * their time, not for us. Read on the loop thread, when somebody asks.
 */
#include <stdio.h>

#include "service/report.h"
#include "service/table.h"

#define US_NS 1000

/* What is in hand of the topic itself, or of its tiers. */
static uint64_t
count_held(const struct lw_stream *stream, bool is_companion)
{
    uint64_t count = 0;
    const struct lw_list *head = &stream->subscription.partitions;
    for (const struct lw_list *node = head->next; node != head; node = node->next) {
        const struct lw_partition *partition = LW_CONTAINER_CONST(node, struct lw_partition,
                                                                  link);
        if (!partition->is_ended && partition->is_companion == is_companion) {
            count += partition->held_count;
        }
    }
    return count;
}

static void
measure_lag(const struct lw_stream *stream, struct lw_report_figures *figures)
{
    struct lw_lag lag = { 0, 0 };
    const struct lw_broker_ops *ops = stream->link->broker->ops;
    figures->lag = figures->retry_lag = -1;
    if (ops->lag && ops->lag(stream->source, &lag)) {
        figures->lag = (int64_t)(lag.messages + count_held(stream, false));
        figures->retry_lag = (int64_t)(lag.companions + count_held(stream, true));
    }
}

static int64_t
quantile_of(const struct lw_stream *stream, double q)
{
    uint64_t ns = 0;
    uint64_t now = stream->dispatcher->host->now;
    return lw_latency_quantile(&stream->handler_time, now, q, &ns) ? (int64_t)ns : -1;
}

void
lw_report_figures(const struct lw_stream *stream, struct lw_report_figures *ret_figures)
{
    measure_lag(stream, ret_figures);
    ret_figures->p50_ns = quantile_of(stream, 0.5);
    ret_figures->p99_ns = quantile_of(stream, 0.99);
    ret_figures->dead_last_hour = lw_hourly_count(&stream->dead, stream->dispatcher->host->now);
}

void
lw_report_format_count(int64_t count, char out[32])
{
    if (count < 0) {
        (void)snprintf(out, 32, "--");
    } else {
        lw_table_number((unsigned long long)count, out);
    }
}

void
lw_report_format_ns(int64_t ns, char out[32])
{
    if (ns < 0) {
        (void)snprintf(out, 32, "--");
    } else if (ns < (int64_t)LW_MS) {
        (void)snprintf(out, 32, "%lldus", (long long)(ns + US_NS - 1) / US_NS);
    } else if (ns < 10 * (int64_t)LW_MS) {
        int64_t tenths = ns / (int64_t)(LW_MS / 10);
        (void)snprintf(out, 32, "%lld.%lldms", (long long)(tenths / 10),
                       (long long)(tenths % 10));
    } else {
        lw_table_duration(ns / (int64_t)LW_MS, out);
    }
}
