/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the demo shows: on a terminal a frame twice a second, at the end a summary whose figures
 * are read from the broker itself, so that they prove something.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/demo.h"
#include "cli/terminal.h"
#include "service/table.h"

/* -- Events ------------------------------------------------------------------------------------ */

static bool
is_shown(const char *event)
{
    return strcmp(event, "message.failed") == 0 || strncmp(event, "service.", 8) == 0;
}

void
demo_log(enum lw_log_level level, const char *event, const char *text, const char *fields,
         void *user)
{
    struct demo *demo = user;
    if (level <= LW_LOG_INFO && is_shown(event)) {
        char *line = demo->events[demo->event_count++ % DEMO_EVENTS];
        (void)snprintf(line, sizeof demo->events[0], "%-5s %s  %s",
                       level == LW_LOG_ERROR ? "error" : "warn", text, fields ? fields : "");
    }
}

/* -- The screen -------------------------------------------------------------------------------- */

void
demo_enter_screen(struct demo *demo)
{
    static const char enter[] = "\033[?1049h\033[?25l\033[?7l";
    if (demo->is_terminal) {
        (void)lw_terminal_write(STDOUT_FILENO, enter, sizeof enter - 1);
    }
}

void
demo_leave_screen(struct demo *demo)
{
    static const char leave[] = "\033[?7h\033[?25h\033[?1049l";
    if (demo->is_terminal) {
        (void)lw_terminal_write(STDOUT_FILENO, leave, sizeof leave - 1);
        demo->is_terminal = false;
    }
}

static const char *
color_of(const char *state)
{
    if (strcmp(state, "running") == 0) {
        return "\033[32m";
    }
    if (strcmp(state, "starved") == 0 || strcmp(state, "backpressure") == 0) {
        return "\033[33m";
    }
    return "";
}

static void
append_bar(const struct demo *demo, struct lw_text *out)
{
    enum { WIDTH = 20 };
    uint32_t busy = demo->dispatcher->scheduler.busy_slots;
    uint32_t slots = (uint32_t)demo->options.slots;
    lw_text_append(out, "[");
    for (uint32_t i = 0; i < WIDTH; i++) {
        lw_text_append(out, i * slots < busy * WIDTH ? "#" : "-");
    }
    lw_text_format(out, "] %u/%u slots", busy, slots);
}

static void
add_frame_lane(struct demo *demo, uint32_t index, double seconds, struct lw_table *table)
{
    struct lw_report_lane report;
    struct demo_lane *lane = &demo->lanes[index];
    char served[16];
    char wait[32];
    lw_report_lane(&demo->report, index, &report);
    lw_table_ordinal(report.served, served);
    lw_table_duration((long long)lw_histogram_quantile(&lane->wait_ms, 0.5), wait);
    double rate = seconds > 0 ? (double)(lane->handled - lane->last_handled) / seconds : 0;
    lane->last_handled = lane->handled;
    lw_table_add(table, "%s", served);
    lw_table_add(table, "%d", lane->priority);
    lw_table_add(table, "%s", lane->topic);
    lw_table_add(table, "%s", report.state);
    lw_table_add_count(table, lw_memory_hub_backlog(demo->hub, DEMO_PREFIX, lane->topic));
    lw_table_add_count(table, report.stream->subscription.running);
    lw_table_add_count(table, (unsigned long long)(rate + 0.5));
    lw_table_add_count(table, lane->handled);
    lw_table_add_count(table, lane->retried);
    lw_table_add_count(table, report.dead);
    lw_table_add(table, "%s", lane->wait_ms.count ? wait : "--");
}

/* The lines of the table, each in the colour of its state. */
static void
append_colored(const struct demo *demo, const struct lw_text *lines, struct lw_text *out)
{
    const char *line = lines->data;
    for (uint32_t i = 0; line && *line; i++) {
        struct lw_report_lane report = { .state = "" };
        size_t length = strcspn(line, "\n");
        if (i > 0 && i <= DEMO_LANES) {
            lw_report_lane(&demo->report, i - 1, &report);
        }
        lw_text_append(out, i == 0 ? "\033[1m" : color_of(report.state));
        lw_text_append_bytes(out, line, length);
        lw_text_append(out, "\033[0m\033[K\n");
        line += length + (line[length] == '\n');
    }
}

static void
append_frame_table(struct demo *demo, double seconds, struct lw_text *out)
{
    static const char *const names[] = { "SERVED",  "PRIORITY", "TOPIC",     "STATE",
                                         "WAITING", "RUNNING",  "RATE/s",    "HANDLED",
                                         "RETRIED", "DEAD",     "WAITED P50" };
    struct lw_table table;
    struct lw_text lines;
    lw_text_init(&lines);
    lw_table_init(&table, "lrllrrrrrrr");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        lw_table_add(&table, "%s", names[i]);
    }
    for (uint32_t i = 0; i < DEMO_LANES; i++) {
        add_frame_lane(demo, i, seconds, &table);
    }
    lw_table_print(&table, "", &lines);
    append_colored(demo, &lines, out);
    lw_table_deinit(&table);
    lw_text_deinit(&lines);
}

static void
append_events(const struct demo *demo, struct lw_text *out)
{
    unsigned first = demo->event_count > DEMO_EVENTS ? demo->event_count - DEMO_EVENTS : 0;
    for (unsigned i = first; i < demo->event_count; i++) {
        lw_text_format(out, "\033[2m%s\033[0m\033[K\n", demo->events[i % DEMO_EVENTS]);
    }
}

void
demo_draw(struct demo *demo)
{
    uint64_t now = demo->dispatcher->host->now;
    double seconds = (double)(now - demo->framed_at) / 1e9;
    char up[32];
    char health[64];
    struct lw_text *out = &demo->cli->out;
    lw_table_duration((long long)((now - demo->started_at) / LW_MS), up);
    lw_report_health(&demo->report, health, sizeof health);
    lw_text_format(
        out, "\033[H\033[1mlaneway demo\033[0m  six lanes on a broker in memory   %s   %s   ",
        up, health);
    append_bar(demo, out);
    lw_text_append(out, "\033[K\n\033[K\n");
    append_frame_table(demo, seconds, out);
    lw_text_append(out,
                   "\033[K\nStrict priority: batch runs only while live has nothing waiting. "
                   "Order per customer is kept.\033[K\n\033[K\n");
    append_events(demo, out);
    lw_text_append(out, "\033[K\nCtrl-C finishes what is in hand and sums up.\033[K\n\033[J");
    demo->framed_at = now;
    (void)lw_cli_flush(demo->cli);
}

/* -- The summary ------------------------------------------------------------------------------- */

struct summary {
    uint64_t sent;
    uint64_t confirmed;
    uint64_t dead;
    uint64_t waiting; /* still at the broker: Ctrl-C came while there was a backlog */
    int64_t lost;
};

static uint64_t
count_of(const struct demo *demo, const char *topic)
{
    return lw_memory_hub_partitions(demo->hub, topic) > 0
               ? (uint64_t)lw_memory_hub_end(demo->hub, topic, 0)
               : 0;
}

static struct summary
count_all(const struct demo *demo)
{
    struct summary summary = { .confirmed = count_of(demo, DEMO_REPLY),
                               .dead = count_of(demo, DEMO_DEAD) };
    for (int i = 0; i < DEMO_LANES; i++) {
        summary.sent += demo->lanes[i].sent;
        summary.waiting += lw_memory_hub_backlog(demo->hub, DEMO_PREFIX, demo->lanes[i].topic);
    }
    summary.lost = (int64_t)summary.sent -
                   (int64_t)(summary.confirmed + summary.dead + summary.waiting);
    return summary;
}

static void
add_summary_lane(const struct demo *demo, uint32_t index, struct lw_table *table)
{
    const struct demo_lane *lane = &demo->lanes[index];
    static const double quantiles[] = { 0.5, 0.99, 1.0 };
    char text[32];
    lw_table_ordinal(index + 1, text);
    lw_table_add(table, "%s", text);
    lw_table_add(table, "%d", lane->priority);
    lw_table_add(table, "%s", lane->topic);
    lw_table_add_count(table, lane->sent);
    lw_table_add_count(table, lane->handled);
    lw_table_add_count(table, lane->retried);
    lw_table_add_count(table,
                       demo->report.served[index]->counters.settled[LW_SETTLED_DEAD_LETTERED]);
    for (int i = 0; i < 3; i++) {
        lw_table_duration((long long)lw_histogram_quantile(&lane->wait_ms, quantiles[i]), text);
        lw_table_add(table, "%s", lane->wait_ms.count ? text : "--");
    }
}

static void
append_summary(const struct demo *demo, const struct summary *summary, struct lw_text *out)
{
    static const char *const names[] = { "SERVED",  "PRIORITY", "TOPIC",      "SENT", "HANDLED",
                                         "RETRIED", "DEAD",     "WAITED P50", "P99",  "MAX" };
    struct lw_table table;
    lw_table_init(&table, "lrlrrrrrrr");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        lw_table_add(&table, "%s", names[i]);
    }
    for (uint32_t i = 0; i < DEMO_LANES; i++) {
        add_summary_lane(demo, i, &table);
    }
    lw_text_format(out,
                   "laneway demo: six lanes on a broker in memory, %lld slots, strict priority "
                   "(a lower number is first)\n\n",
                   demo->options.slots);
    lw_table_print(&table, "", out);
    lw_table_deinit(&table);
    lw_text_format(out,
                   "\nsent %llu, confirmed %llu, dead-lettered %llu, still waiting %llu, "
                   "lost %lld; two of one customer at once: %llu\n",
                   (unsigned long long)summary->sent, (unsigned long long)summary->confirmed,
                   (unsigned long long)summary->dead, (unsigned long long)summary->waiting,
                   (long long)summary->lost, (unsigned long long)demo->overlaps);
    lw_text_append(out, "Next: a real topic in six lines, see README.md; laneway help run\n");
}

static void
put_int(struct lw_json *json, const char *key, int64_t value)
{
    lw_json_key(json, key);
    lw_json_int(json, value);
}

static void
append_json(const struct demo *demo, const struct summary *summary, struct lw_text *out)
{
    struct lw_json json;
    lw_json_init(&json, out);
    lw_json_object(&json);
    put_int(&json, "sent", (int64_t)summary->sent);
    put_int(&json, "confirmed", (int64_t)summary->confirmed);
    put_int(&json, "dead_lettered", (int64_t)summary->dead);
    put_int(&json, "waiting", (int64_t)summary->waiting);
    put_int(&json, "lost", summary->lost);
    put_int(&json, "overlaps", (int64_t)demo->overlaps);
    lw_json_key(&json, "topics");
    lw_json_array(&json);
    for (int i = 0; i < DEMO_LANES; i++) {
        const struct demo_lane *lane = &demo->lanes[i];
        lw_json_object(&json);
        lw_json_key(&json, "topic");
        lw_json_string(&json, lane->topic);
        put_int(&json, "priority", lane->priority);
        put_int(&json, "sent", (int64_t)lane->sent);
        put_int(&json, "handled", (int64_t)lane->handled);
        put_int(&json, "retried", (int64_t)lane->retried);
        put_int(&json, "waited_p50_ms", (int64_t)lw_histogram_quantile(&lane->wait_ms, 0.5));
        put_int(&json, "waited_p99_ms", (int64_t)lw_histogram_quantile(&lane->wait_ms, 0.99));
        lw_json_object_end(&json);
    }
    lw_json_array_end(&json);
    lw_json_object_end(&json);
    lw_text_append_char(out, '\n');
}

bool
demo_sum_up(struct demo *demo)
{
    struct summary summary = count_all(demo);
    if (demo->cli->is_json) {
        append_json(demo, &summary, &demo->cli->out);
    } else {
        append_summary(demo, &summary, &demo->cli->out);
    }
    return summary.lost == 0 && demo->overlaps == 0;
}
