/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan for a person: the topics in serving order, where retries, dead letters and replies
 * go, how much is held here, and every value with its origin.
 */
#include "service/config_plan.h"

#include <stdio.h>
#include <string.h>

#include "service/handler_fit.h"
#include "service/options.h"

enum { CELL_BYTES_MAX = 320, MEASURE_BYTES_MAX = 64, SHOWN_BYTES_MAX = 80 };
enum { COLUMNS = 6, PATH_WIDTH_MAX = 70, VALUE_WIDTH = 24 };

static const char *
ordinal(uint32_t rank)
{
    if (rank % 100 >= 11 && rank % 100 <= 13) {
        return "th";
    }
    return rank % 10 == 1 ? "st" : rank % 10 == 2 ? "nd" : rank % 10 == 3 ? "rd" : "th";
}

static void
append_duration(struct lw_text *out, int64_t ms)
{
    char measure[MEASURE_BYTES_MAX];
    lw_text_from_duration_ms(ms, measure, sizeof(measure));
    lw_text_append(out, measure);
}

static void
append_size(struct lw_text *out, uint64_t bytes)
{
    char measure[MEASURE_BYTES_MAX];
    lw_text_from_size((int64_t)bytes, measure, sizeof(measure));
    lw_text_append(out, measure);
}

/* -- One row of the table -------------------------------------------------------------------- */

static void
retry_cell(const struct lw_config_subscription *item, char out[CELL_BYTES_MAX])
{
    const struct lw_retry_options *retry = &item->options.retry;
    char in_place[MEASURE_BYTES_MAX] = "";
    if (lw_config_is_in_place(item)) {
        (void)snprintf(in_place, sizeof(in_place), "here, %u run%s", retry->max_attempts,
                       retry->max_attempts == 1 ? "" : "s");
    }
    const char *topic = lw_config_name_shown(item, LW_CONFIG_NAME_RETRY);
    const char *separator = in_place[0] != '\0' ? ", then " : "";
    if (!topic) {
        (void)snprintf(out, CELL_BYTES_MAX, "%s",
                       in_place[0] != '\0' ? in_place : "the broker");
    } else if (retry->max_retries < 0) {
        (void)snprintf(out, CELL_BYTES_MAX, "%s%s%s  no limit", in_place, separator, topic);
    } else {
        (void)snprintf(out, CELL_BYTES_MAX, "%s%s%s  x%lld", in_place, separator, topic,
                       (long long)retry->max_retries);
    }
}

static void
dead_letter_cell(const struct lw_config_subscription *item, char out[CELL_BYTES_MAX])
{
    static const char *const words[] = {
        [LW_ON_EXHAUSTED_DROP] = "none: dropped",
        [LW_ON_EXHAUSTED_HOLD] = "none: held",
        [LW_ON_EXHAUSTED_STOP] = "none: stop",
    };
    const char *topic = lw_config_name_shown(item, LW_CONFIG_NAME_DEAD_LETTER);
    const char *broker = item->options.dead_letter.broker;
    bool is_headers = item->options.dead_letter.payload == LW_PAYLOAD_HEADERS_ONLY;
    if (topic) {
        (void)snprintf(out, CELL_BYTES_MAX, "%s%s%s%s", broker ? broker : "", broker ? ":" : "",
                       topic, is_headers ? " (headers)" : "");
    } else {
        (void)snprintf(out, CELL_BYTES_MAX, "%s", words[item->options.on_exhausted]);
    }
}

static void
fill_row(const struct lw_config_subscription *item, char cells[COLUMNS][CELL_BYTES_MAX])
{
    const char *reply = lw_config_name_shown(item, LW_CONFIG_NAME_REPLY);
    const char *broker = item->options.reply.broker;
    (void)snprintf(cells[0], CELL_BYTES_MAX, "%u%s%s", item->rank, ordinal(item->rank),
                   item->is_rank_shared ? "=" : "");
    (void)snprintf(cells[1], CELL_BYTES_MAX, "%8d", item->options.priority);
    (void)snprintf(cells[2], CELL_BYTES_MAX, "%s",
                   lw_config_name_shown(item, LW_CONFIG_NAME_TOPIC));
    retry_cell(item, cells[3]);
    dead_letter_cell(item, cells[4]);
    (void)snprintf(cells[5], CELL_BYTES_MAX, "%s%s%s", reply && broker ? broker : "",
                   reply && broker ? ":" : "", reply ? reply : "-");
}

static const char *const headings[COLUMNS] = { "SERVED",        "PRIORITY",         "TOPIC",
                                               "RETRY GOES TO", "THEN DEAD LETTER", "REPLY" };

/* The subscription of this pipeline that is served next after `after`; NULL at the end. */
static const struct lw_config_subscription *
next_served(const struct lw_config *config, const struct lw_config_pipeline *pipeline,
            const struct lw_config_subscription *after)
{
    const struct lw_config_subscription *best = NULL;
    for (size_t i = 0; i < pipeline->count; i++) {
        const struct lw_config_subscription *item = &config->subscriptions[pipeline->first + i];
        bool is_later = !after || item->rank > after->rank ||
                        (item->rank == after->rank && item > after);
        if (is_later && (!best || item->rank < best->rank)) {
            best = item;
        }
    }
    return best;
}

static void
print_cells(const char *const cells[COLUMNS], const int widths[COLUMNS], struct lw_text *out)
{
    lw_text_append(out, "  ");
    for (size_t column = 0; column + 1 < COLUMNS; column++) {
        lw_text_format(out, "%-*s  ", widths[column], cells[column]);
    }
    lw_text_format(out, "%s\n", cells[COLUMNS - 1]);
}

static void
measure(const struct lw_config *config, const struct lw_config_pipeline *pipeline,
        int widths[COLUMNS])
{
    char cells[COLUMNS][CELL_BYTES_MAX];
    for (size_t column = 0; column < COLUMNS; column++) {
        widths[column] = (int)strlen(headings[column]);
    }
    for (size_t i = 0; i < pipeline->count; i++) {
        fill_row(&config->subscriptions[pipeline->first + i], cells);
        for (size_t column = 0; column < COLUMNS; column++) {
            int width = (int)strlen(cells[column]);
            widths[column] = width > widths[column] ? width : widths[column];
        }
    }
}

static void
print_table(const struct lw_config *config, const struct lw_config_pipeline *pipeline,
            struct lw_text *out)
{
    int widths[COLUMNS];
    char cells[COLUMNS][CELL_BYTES_MAX];
    const char *row[COLUMNS];
    measure(config, pipeline, widths);
    print_cells(headings, widths, out);
    const struct lw_config_subscription *item = NULL;
    while ((item = next_served(config, pipeline, item)) != NULL) {
        fill_row(item, cells);
        for (size_t column = 0; column < COLUMNS; column++) {
            row[column] = cells[column];
        }
        print_cells(row, widths, out);
    }
}

/* -- Around the table ------------------------------------------------------------------------ */

static void
print_limits(const struct lw_config_handler *handler, struct lw_text *out)
{
    char text[32];
    const struct lw_subscription_options *run = &handler->run;
    const struct lw_node *user = lw_node_child(handler->node, "user");
    if (run->memory_max > 0) {
        lw_text_from_size((int64_t)run->memory_max, text, sizeof(text));
        lw_text_format(out, ", memory %s", text);
    }
    if (run->cpu_max_ms > 0) {
        lw_text_from_duration_ms(run->cpu_max_ms, text, sizeof(text));
        lw_text_format(out, ", cpu %s a message", text);
    }
    if (run->nofile > 0) {
        lw_text_format(out, ", nofile %u", run->nofile);
    }
    if (run->run_as) {
        lw_text_format(out, ", user %s", user && user->is_secret ? "***" : run->run_as);
    }
}

static void
print_count(const struct lw_config_handler *handler, struct lw_text *out)
{
    if (handler->run.workers > 0) {
        lw_text_format(out, " x%u", handler->run.workers);
    }
}

static void
print_workers(const struct lw_config_handler *handler, const char *how, struct lw_text *out)
{
    print_count(handler, out);
    lw_text_format(out, ", %swindow %u", how, lw_config_window(handler));
}

static void
print_program(const struct lw_config_handler *handler, struct lw_text *out)
{
    const struct lw_node *list = lw_node_child(handler->node, "program");
    const struct lw_node *item = list ? list->first : NULL;
    for (size_t i = 0; handler->run.program[i]; i++) {
        bool is_secret = (list && list->is_secret) || (item && item->is_secret);
        lw_text_format(out, "%s%s", i > 0 ? " " : "",
                       is_secret ? "***" : handler->run.program[i]);
        item = item ? item->next : NULL;
    }
    if (handler->run.protocol == LW_PROTOCOL_ONCE) {
        print_count(handler, out);
        lw_text_append(out, ", once for each message");
    } else {
        print_workers(handler, handler->run.protocol == LW_PROTOCOL_FRAMES ? "frames, " : "",
                      out);
    }
    print_limits(handler, out);
}

static void
print_plugin(const struct lw_config_handler *handler, struct lw_text *out)
{
    const struct lw_node *node = lw_node_child(handler->node, "plugin");
    lw_text_format(out, "plug-in %s", node && node->is_secret ? "***" : handler->run.plugin);
    if (handler->run.symbol) {
        lw_text_format(out, " (%s)", handler->run.symbol);
    }
    lw_text_format(out, " on %s", lw_engine_kind_name(handler->run.engine));
    if (handler->run.engine == LW_ENGINE_PROCESSES) {
        print_workers(handler, "", out);
        print_limits(handler, out);
    }
}

static void
print_batch(const struct lw_batch_options *batch, struct lw_text *out)
{
    if (batch->size <= 1) {
        return;
    }
    lw_text_format(out, ", batches of up to %u", batch->size);
    lw_text_append(out, batch->keys == LW_BATCH_KEYS_ONE ? " of one key, wait " : ", wait ");
    append_duration(out, batch->wait_ms);
    lw_text_append(out, batch->verdict == LW_BATCH_VERDICT_ONE ? ", one verdict for all"
                                                               : ", a verdict for each");
}

static void
print_http(const struct lw_config_handler *handler, struct lw_text *out)
{
    static const char *const methods[] = { [LW_HTTP_METHOD_POST] = "POST",
                                           [LW_HTTP_METHOD_PUT] = "PUT",
                                           [LW_HTTP_METHOD_PATCH] = "PATCH" };
    const struct lw_node *node = lw_node_child(handler->node, "http");
    lw_text_format(out, "%s %s", methods[handler->http.method],
                   node && node->is_secret ? "***" : handler->http.url);
    if (handler->http.connections > 0) {
        lw_text_format(out, ", %u connections", handler->http.connections);
    }
    print_batch(&handler->run.batch, out);
}

static void
print_handler(const struct lw_config_handler *handler, struct lw_text *out)
{
    lw_text_format(out, "handler %s: ", handler->name);
    if (handler->kind == LW_CONFIG_PROGRAM) {
        print_program(handler, out);
        return;
    }
    if (handler->kind == LW_CONFIG_PLUGIN) {
        print_plugin(handler, out);
        return;
    }
    if (handler->kind == LW_CONFIG_HTTP) {
        print_http(handler, out);
        return;
    }
    bool is_builtin = handler->kind == LW_CONFIG_BUILTIN;
    const struct lw_node *node = lw_node_child(handler->node,
                                               is_builtin ? "builtin" : "function");
    const char *name = is_builtin ? handler->builtin_text : handler->function;
    lw_text_format(out, "%s %s on %s", is_builtin ? "built-in" : "function",
                   node && node->is_secret ? "***" : name,
                   lw_engine_kind_name(handler->run.engine));
    print_batch(&handler->run.batch, out);
}

static void
print_strictness(const struct lw_config *config, const struct lw_config_pipeline *pipeline,
                 struct lw_text *out)
{
    uint32_t worst = 0;
    uint32_t before = 0;
    for (size_t i = 0; i < pipeline->count; i++) {
        uint32_t rank = config->subscriptions[pipeline->first + i].rank;
        worst = rank > worst ? rank : worst;
    }
    for (size_t i = 0; i < config->subscription_count; i++) {
        uint32_t rank = config->subscriptions[i].rank;
        before = rank < worst && rank > before ? rank : before;
    }
    if (before == 0) {
        return;
    }
    lw_text_format(out, "  strict priority: %u%s runs only when 1st", worst, ordinal(worst));
    if (before > 1) {
        lw_text_format(out, "..%u%s have", before, ordinal(before));
    } else {
        lw_text_append(out, " has");
    }
    lw_text_append(out, " nothing waiting (starvation is possible, on purpose)\n");
}

static void
print_delays(const struct lw_config_subscription *item, struct lw_text *out)
{
    int64_t delays[LW_PLAN_DELAYS_MAX];
    bool is_cut = false;
    const struct lw_retry_options *retry = &item->options.retry;
    int64_t jitter_ms = retry->topic ? retry->backoff.jitter_ms
                                     : retry->in_place_backoff.jitter_ms;
    size_t count = lw_plan_delays(item, delays, &is_cut);
    if (count == 0) {
        lw_text_append(out, "  retry delays: none\n");
        return;
    }
    lw_text_append(out, "  retry delays:");
    for (size_t i = 0; i < count; i++) {
        lw_text_append_char(out, ' ');
        append_duration(out, delays[i]);
    }
    lw_text_append(out, is_cut ? " ..." : "");
    if (jitter_ms > 0) {
        lw_text_append(out, " (+ up to ");
        append_duration(out, jitter_ms);
        lw_text_append_char(out, ')');
    }
    lw_text_append_char(out, '\n');
}

static void
print_held(const struct lw_config_subscription *item, struct lw_text *out)
{
    static const char *const orders[] = { [LW_ORDERING_DEFAULT] = "by the broker",
                                          [LW_ORDERING_KEY] = "key",
                                          [LW_ORDERING_PARTITION] = "partition",
                                          [LW_ORDERING_NONE] = "none" };
    const struct lw_subscription_options *options = &item->options;
    const struct lw_profile_row *profile = lw_profile_find(options->profile);
    lw_text_format(out, "  ordering: %s; an attempt takes at most ",
                   orders[lw_config_ordering(item)]);
    if (options->timeout_ms > 0) {
        append_duration(out, options->timeout_ms);
    } else {
        lw_text_append(out, "for ever");
    }
    lw_text_append(out, "\n  held here, per topic: receive window ");
    if (profile->is_window_fixed || options->receiver_queue_size == 1) {
        lw_text_format(out, "%u", options->receiver_queue_size);
    } else {
        lw_text_format(out, "1 to %u, by demand", options->receiver_queue_size);
    }
    lw_text_format(out, " (profile %s); in flight at most %u messages and ", profile->name,
                   options->max_in_flight);
    append_size(out, options->max_in_flight_bytes);
    lw_text_append_char(out, '\n');
}

/* What one member holds, the others of a shared subscription do not get. */
static void
print_sharing(const struct lw_config_pipeline *pipeline,
              const struct lw_config_subscription *item, struct lw_text *out)
{
    const struct lw_subscription_options *options = &item->options;
    if (!pipeline->consumer.is_shared) {
        return;
    }
    if (options->receiver_queue_size == 1) {
        lw_text_append(out, "  several members share evenly: each holds one message per topic "
                            "and partition beside what it runs\n");
    } else if (lw_profile_find(options->profile)->is_window_fixed) {
        lw_text_format(
            out, "  several members share unevenly: each may hoard %u messages per topic\n",
            options->receiver_queue_size);
    } else {
        lw_text_format(
            out,
            "  several members: each holds what it has slots for, up to %u per topic "
            "while it is alone with a backlog\n",
            options->receiver_queue_size);
    }
}

/* "group orders", on Pulsar "subscription orders (shared)". */
static void
print_group(const struct lw_config_pipeline *pipeline, struct lw_text *out)
{
    const struct lw_node *group = lw_node_at(pipeline->node, "consumer.group");
    const char *name = group && group->is_secret ? "***" : pipeline->group;
    if (pipeline->consumer.type) {
        lw_text_format(out, "subscription %s (%s)   ", name, pipeline->consumer.type);
    } else {
        lw_text_format(out, "group %s   ", name);
    }
}

static void
print_pipeline(const struct lw_config *config, const struct lw_config_pipeline *pipeline,
               struct lw_text *out)
{
    lw_text_format(out, "\nPIPELINE %s   broker %s (%s)   ", pipeline->name,
                   pipeline->broker->name, lw_config_traits(pipeline->broker->kind)->scheme);
    print_group(pipeline, out);
    print_handler(pipeline->handler, out);
    lw_text_append_char(out, '\n');
    print_table(config, pipeline, out);
    print_strictness(config, pipeline, out);
    print_delays(&config->subscriptions[pipeline->first], out);
    print_held(&config->subscriptions[pipeline->first], out);
    print_sharing(pipeline, &config->subscriptions[pipeline->first], out);
}

static void
print_service(const struct lw_config *config, struct lw_text *out)
{
    const struct lw_dispatcher_options *service = &config->service.dispatcher;
    const struct lw_node *name = lw_node_at(config->root, "service.name");
    lw_text_format(out, "service %s: %u slots, ",
                   name && name->is_secret ? "***" : service->name, service->concurrency);
    if (service->is_abort) {
        lw_text_append(out, "stops without draining");
    } else if (service->drain_timeout_ms > 0) {
        lw_text_append(out, "drain ");
        append_duration(out, service->drain_timeout_ms);
    } else {
        lw_text_append(out, "drains without an end");
    }
    lw_text_append_char(out, '\n');
}

static void
print_values(const struct lw_plan_values *values, struct lw_text *out)
{
    int path_width = (int)strlen("OPTION");
    for (size_t i = 0; i < values->count; i++) {
        int width = (int)strlen(values->items[i].path);
        path_width = width > path_width ? width : path_width;
    }
    path_width = path_width > PATH_WIDTH_MAX ? PATH_WIDTH_MAX : path_width;
    lw_text_format(out, "\n%-*s  %-*s  %s\n", path_width, "OPTION", VALUE_WIDTH, "VALUE",
                   "FROM");
    for (size_t i = 0; i < values->count; i++) {
        char value[SHOWN_BYTES_MAX];
        lw_text_format(out, "%-*s  %-*s  %s\n", path_width, values->items[i].path, VALUE_WIDTH,
                       lw_text_shown(values->items[i].value, value, sizeof(value)),
                       values->items[i].origin);
    }
}

void
lw_config_plan_print(const struct lw_config *config, struct lw_text *out)
{
    struct lw_plan_values values;
    print_service(config, out);
    for (size_t i = 0; i < config->pipeline_count; i++) {
        print_pipeline(config, &config->pipelines[i], out);
    }
    if (lw_plan_values_list(config, &values)) {
        print_values(&values, out);
    } else {
        out->is_failed = true;
    }
    lw_config_arena_deinit(&values.arena);
}
