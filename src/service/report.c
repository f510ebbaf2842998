/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The status of a running service: serving order, states in words, rates. explain is in
 * report_explain.c. Loop thread.
 */
#include "service/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "service/table.h"

#define SAMPLE_NS (2000 * LW_MS)

/* -- Samples ----------------------------------------------------------------------------------- */

static struct lw_report_counts
count_of(const struct lw_stream *stream)
{
    struct lw_report_counts counts = { .received = stream->counters.received };
    for (size_t i = 0; i < sizeof stream->counters.settled / sizeof(uint64_t); i++) {
        counts.settled += stream->counters.settled[i];
    }
    memcpy(counts.results, stream->counters.results, sizeof counts.results);
    return counts;
}

static void
take_sample(struct lw_report *report, uint64_t now)
{
    struct lw_report_sample sample = report->older;
    sample.at = now;
    for (uint32_t i = 0; i < report->count; i++) {
        sample.streams[i] = count_of(report->served[i]);
    }
    report->older = report->newer;
    report->newer = sample;
}

static uint64_t
on_turn(struct lw_turn *turn, uint64_t now)
{
    struct lw_report *report = LW_CONTAINER(turn, struct lw_report, turn);
    if (now - report->newer.at >= SAMPLE_NS) {
        take_sample(report, now);
    }
    return LW_NEVER;
}

static double
rate_of(const struct lw_report *report, uint64_t count, uint64_t before)
{
    uint64_t now = report->dispatcher->host->now;
    double seconds = (double)(now - report->older.at) / 1e9;
    return seconds > 0.001 ? (double)(count - before) / seconds : 0;
}

/* -- Making ------------------------------------------------------------------------------------ */

static int
compare_served(const void *a, const void *b)
{
    const struct lw_subscription *left = &(*(struct lw_stream *const *)a)->subscription;
    const struct lw_subscription *right = &(*(struct lw_stream *const *)b)->subscription;
    if (left->priority != right->priority) {
        return left->priority < right->priority ? -1 : 1;
    }
    return left->index < right->index ? -1 : left->index > right->index;
}

/* Some are paused from their start on, by an option of the client. */
static void
note_start(const struct lw_stream *stream, struct lw_pause_note *note)
{
    struct lw_host *host = stream->dispatcher->host;
    if (stream->subscription.is_paused) {
        lw_text_copy(note->who, sizeof note->who, "start_paused");
        note->since_ms = host->ops->wall_ms(host);
    }
}

enum lw_status
lw_report_init(struct lw_report *report, struct lw_dispatcher *dispatcher)
{
    uint32_t count = dispatcher->stream_count;
    size_t room = count ? count : 1;
    memset(report, 0, sizeof *report);
    report->dispatcher = dispatcher;
    report->count = count;
    report->served = lw_alloc_array(room, sizeof(struct lw_stream *));
    report->pauses = lw_alloc_array(room, sizeof *report->pauses);
    report->older.streams = lw_alloc_array(room, sizeof(struct lw_report_counts));
    report->newer.streams = lw_alloc_array(room, sizeof(struct lw_report_counts));
    if (!report->served || !report->pauses || !report->older.streams ||
        !report->newer.streams) {
        lw_report_deinit(report);
        return LW_STATUS_NO_MEMORY;
    }
    for (uint32_t i = 0; i < count; i++) {
        report->served[i] = dispatcher->streams[i];
        note_start(dispatcher->streams[i], &report->pauses[i]);
    }
    qsort(report->served, count, sizeof(struct lw_stream *), compare_served);
    report->older.at = report->newer.at = dispatcher->host->now;
    report->turn.fn = on_turn;
    lw_host_add_turn(dispatcher->host, &report->turn);
    return LW_STATUS_OK;
}

void
lw_report_deinit(struct lw_report *report)
{
    if (report->turn.fn) {
        lw_host_remove_turn(&report->turn);
        report->turn.fn = NULL;
    }
    lw_free(report->served);
    lw_free(report->pauses);
    lw_free(report->older.streams);
    lw_free(report->newer.streams);
}

/* -- States in words --------------------------------------------------------------------------- */

static void
format_clock(int64_t wall_ms, char out[16])
{
    time_t seconds = (time_t)(wall_ms / 1000);
    struct tm local;
    if (!localtime_r(&seconds, &local) || strftime(out, 16, "%H:%M", &local) == 0) {
        lw_text_copy(out, 16, "?");
    }
}

static void
say_paused(const struct lw_pause_note *note, char *out, size_t size)
{
    char since[16];
    char until[16] = "";
    format_clock(note->since_ms, since);
    if (note->until_ms > 0) {
        format_clock(note->until_ms, until);
    }
    (void)snprintf(out, size, "by %s%s%s%s since %s%s%s", note->who[0] ? note->who : "somebody",
                   note->why[0] ? " \"" : "", note->why, note->why[0] ? "\"" : "", since,
                   until[0] ? ", until " : "", until);
}

static bool
is_window_full(const struct lw_stream *stream)
{
    const struct lw_list *head = &stream->subscription.partitions;
    for (const struct lw_list *node = head->next; node != head; node = node->next) {
        if (LW_CONTAINER_CONST(node, struct lw_partition, link)->is_window_full) {
            return true;
        }
    }
    return false;
}

static bool
has_all_slots_taken(const struct lw_dispatcher *dispatcher)
{
    const struct lw_scheduler *scheduler = &dispatcher->scheduler;
    return dispatcher->phase != LW_PHASE_NEW && scheduler->busy_slots >= scheduler->slots;
}

/* What is wrong with it, or NULL. */
static const char *
trouble_of(const struct lw_stream *stream, const struct lw_pause_note *note, char *reason,
           size_t size)
{
    const struct lw_subscription *subscription = &stream->subscription;
    if (subscription->is_failed) {
        lw_text_copy(reason, size, stream->link->last_error.message);
        return "failed";
    }
    if (subscription->is_paused) {
        say_paused(note, reason, size);
        return "paused";
    }
    if (stream->dispatcher->phase > LW_PHASE_RUNNING) {
        return "draining";
    }
    if (!stream->link->is_up) {
        lw_text_copy(reason, size, stream->link->last_error.message);
        return "broker down";
    }
    if (subscription->is_engine_down) {
        lw_text_copy(reason, size, subscription->engine->down_error.message);
        return "handler down";
    }
    if (subscription->is_publish_blocked) {
        lw_text_copy(reason, size, "a reply, retry or dead-letter topic takes nothing");
        return "publish blocked";
    }
    return NULL;
}

static const char *
state_of(const struct lw_stream *stream, const struct lw_pause_note *note, char *reason,
         size_t size)
{
    const struct lw_subscription *subscription = &stream->subscription;
    const char *trouble = trouble_of(stream, note, reason, size);
    if (trouble) {
        return trouble;
    }
    if (subscription->limits.is_stopped) {
        (void)snprintf(reason, size, "%u of %u messages, %llu of %llu bytes in hand",
                       subscription->limits.count, subscription->limits.count_max,
                       (unsigned long long)subscription->limits.bytes,
                       (unsigned long long)subscription->limits.bytes_max);
        return "backpressure";
    }
    if (is_window_full(stream)) {
        lw_text_copy(reason, size, "max_uncommitted: too much is done beyond the oldest");
        return "backpressure";
    }
    if (subscription->running > 0) {
        return "running";
    }
    bool has_work = subscription->queued > 0 || stream->has_more;
    if (has_work && has_all_slots_taken(stream->dispatcher)) {
        lw_text_copy(reason, size, "better priorities take all slots");
        return "starved";
    }
    if (subscription->parked + subscription->publishing > 0) {
        return "retrying";
    }
    if (subscription->is_batched && lw_gather_next(subscription) != LW_NEVER) {
        (void)snprintf(reason, size, "%u messages wait for company, up to %u go together",
                       subscription->queued, subscription->gather.size);
        return "gathering";
    }
    return "idle";
}

/* Of the oldest message in hand, by its own time. */
static int64_t
oldest_of(const struct lw_stream *stream)
{
    int64_t now_ms = stream->dispatcher->host->ops->wall_ms(stream->dispatcher->host);
    int64_t oldest_ms = -1;
    const struct lw_list *head = &stream->subscription.partitions;
    for (const struct lw_list *node = head->next; node != head; node = node->next) {
        const struct lw_partition *partition = LW_CONTAINER_CONST(node, struct lw_partition,
                                                                  link);
        const struct lw_list *first = lw_list_first(&partition->held);
        if (!first) {
            continue;
        }
        const struct lw_delivery *delivery = LW_CONTAINER_CONST(first, struct lw_delivery,
                                                                held);
        struct lw_message_times times = { -1, -1 };
        stream->link->broker->ops->times(stream->link->broker, &delivery->message, &times);
        int64_t age_ms = times.timestamp_ms > 0 ? now_ms - times.timestamp_ms : -1;
        oldest_ms = age_ms > oldest_ms ? age_ms : oldest_ms;
    }
    return oldest_ms;
}

static uint32_t
count_partitions(const struct lw_stream *stream)
{
    uint32_t count = 0;
    const struct lw_list *head = &stream->subscription.partitions;
    for (const struct lw_list *node = head->next; node != head; node = node->next) {
        count += !LW_CONTAINER_CONST(node, struct lw_partition, link)->is_ended;
    }
    return count;
}

static unsigned
served_of(const struct lw_report *report, uint32_t index)
{
    int32_t priority = report->served[index]->subscription.priority;
    while (index > 0 && report->served[index - 1]->subscription.priority == priority) {
        index--;
    }
    return index + 1;
}

void
lw_report_lane(const struct lw_report *report, uint32_t index, struct lw_report_lane *ret_lane)
{
    const struct lw_stream *stream = report->served[index];
    struct lw_report_counts counts = count_of(stream);
    *ret_lane = (struct lw_report_lane){
        .stream = stream,
        .served = served_of(report, index),
        .rate = rate_of(report, counts.settled, report->older.streams[index].settled),
        .oldest_ms = oldest_of(stream),
        .done = counts.settled - stream->counters.settled[LW_SETTLED_GIVEN_BACK],
        .dead = stream->counters.settled[LW_SETTLED_DEAD_LETTERED],
        .partitions = count_partitions(stream),
    };
    lw_report_figures(stream, &ret_lane->figures);
    ret_lane->state = state_of(stream, &report->pauses[stream->subscription.index],
                               ret_lane->reason, sizeof ret_lane->reason);
}

/* -- The whole --------------------------------------------------------------------------------- */

static const struct lw_link *
find_link_down(const struct lw_dispatcher *dispatcher)
{
    for (uint32_t i = 0; i < dispatcher->link_count; i++) {
        if (!dispatcher->links[i]->is_up) {
            return dispatcher->links[i];
        }
    }
    return NULL;
}

static const struct lw_engine *
find_engine_down(const struct lw_dispatcher *dispatcher)
{
    for (uint32_t i = 0; i < dispatcher->engine_count; i++) {
        if (dispatcher->engines[i]->is_down) {
            return dispatcher->engines[i];
        }
    }
    return NULL;
}

void
lw_report_health(const struct lw_report *report, char *out, size_t size)
{
    const struct lw_dispatcher *dispatcher = report->dispatcher;
    const struct lw_link *link = find_link_down(dispatcher);
    const struct lw_engine *engine = find_engine_down(dispatcher);
    if (dispatcher->phase == LW_PHASE_NEW) {
        lw_text_copy(out, size, "starting");
    } else if (dispatcher->phase > LW_PHASE_RUNNING) {
        lw_text_copy(out, size, "draining");
    } else if (link) {
        (void)snprintf(out, size, "not ready: broker %s down", link->broker->name);
    } else if (engine) {
        (void)snprintf(out, size, "not ready: handler %s down", engine->name);
    } else {
        lw_text_copy(out, size, "ready");
    }
}

struct lw_report_totals
lw_report_total(const struct lw_report *report)
{
    struct lw_report_totals totals = { 0 };
    for (uint32_t i = 0; i < report->count; i++) {
        struct lw_report_counts counts = count_of(report->served[i]);
        const struct lw_report_counts *before = &report->older.streams[i];
        totals.in += rate_of(report, counts.received, before->received);
        for (int k = 0; k < 5; k++) {
            totals.results[k] += rate_of(report, counts.results[k], before->results[k]);
        }
    }
    return totals;
}

int64_t
lw_report_up_ms(const struct lw_dispatcher *dispatcher)
{
    bool is_started = dispatcher->phase != LW_PHASE_NEW;
    return is_started ? (int64_t)((dispatcher->host->now - dispatcher->started_at) / LW_MS) : 0;
}

/* -- Text -------------------------------------------------------------------------------------- */

static void
add_head(struct lw_table *table)
{
    static const char *const names[] = { "SERVED",  "TOPIC", "STATE",    "WAITING",
                                         "RUNNING", "LAG",   "OLDEST",   "RATE/s",
                                         "P50",     "P99",   "RETRYING", "DEAD/h" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        lw_table_add(table, "%s", names[i]);
    }
}

static void
add_count(struct lw_table *table, int64_t count)
{
    char text[32];
    lw_report_format_count(count, text);
    lw_table_add(table, "%s", text);
}

static void
add_time(struct lw_table *table, int64_t ns)
{
    char text[32];
    lw_report_format_ns(ns, text);
    lw_table_add(table, "%s", text);
}

static void
add_lane(struct lw_table *table, const struct lw_report_lane *lane)
{
    char served[16];
    char oldest[32];
    const struct lw_subscription *subscription = &lane->stream->subscription;
    lw_table_ordinal(lane->served, served);
    lw_table_duration(lane->oldest_ms, oldest);
    lw_table_add(table, "%s", served);
    lw_table_add(table, "%s", lane->stream->topic);
    lw_table_add(table, "%s", lane->state);
    add_count(table, subscription->queued);
    add_count(table, subscription->running);
    add_count(table, lane->figures.lag);
    lw_table_add(table, "%s", oldest);
    add_count(table, (int64_t)(lane->rate + 0.5));
    add_time(table, lane->figures.p50_ns);
    add_time(table, lane->figures.p99_ns);
    add_count(table, subscription->parked + subscription->publishing);
    add_count(table, (int64_t)lane->figures.dead_last_hour);
}

/* Why, for those that do not simply run or idle. */
static void
append_reasons(const struct lw_report *report, struct lw_text *out)
{
    for (uint32_t i = 0; i < report->count; i++) {
        struct lw_report_lane lane;
        lw_report_lane(report, i, &lane);
        if (lane.reason[0] && strcmp(lane.state, "starved") != 0) {
            lw_text_format(out, "%s: %s: %s\n", lane.stream->topic, lane.state, lane.reason);
        }
    }
}

void
lw_report_status_text(const struct lw_report *report, struct lw_text *out)
{
    const struct lw_dispatcher *dispatcher = report->dispatcher;
    struct lw_report_totals totals = lw_report_total(report);
    struct lw_table table;
    char health[256];
    char up[32];
    lw_report_health(report, health, sizeof health);
    lw_table_duration(lw_report_up_ms(dispatcher), up);
    lw_text_format(out, "%s  up %s   %s   %u/%u slots busy   ", dispatcher->name, up, health,
                   dispatcher->scheduler.busy_slots, dispatcher->options.concurrency);
    lw_text_format(out, "%.0f msg/s in   %.0f ok  %.0f retry  %.0f dead  %.0f error\n",
                   totals.in, totals.results[LW_OK], totals.results[LW_RETRY],
                   totals.results[LW_DEAD], totals.results[LW_ERROR]);
    lw_table_init(&table, "lllrrrrrrrrr");
    add_head(&table);
    for (uint32_t i = 0; i < report->count; i++) {
        struct lw_report_lane lane;
        lw_report_lane(report, i, &lane);
        add_lane(&table, &lane);
    }
    lw_table_print(&table, "", out);
    lw_table_deinit(&table);
    append_reasons(report, out);
}
