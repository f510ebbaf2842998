/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan for a program: the same facts as config_plan.c, durations in milliseconds and sizes
 * in bytes. Field names are stable.
 */
#include "service/config_plan.h"

#include <string.h>

#include "service/handler_fit.h"
#include "service/options.h"

static void
put_text(struct lw_json *json, const char *key, const char *value)
{
    lw_json_key(json, key);
    lw_json_string(json, value);
}

static void
put_int(struct lw_json *json, const char *key, int64_t value)
{
    lw_json_key(json, key);
    lw_json_int(json, value);
}

static void
put_bool(struct lw_json *json, const char *key, bool value)
{
    lw_json_key(json, key);
    lw_json_bool(json, value);
}

static const char *
masked(const struct lw_node *map, const char *path, const char *value)
{
    const struct lw_node *node = lw_node_at(map, path);
    return node && node->is_secret ? "***" : value;
}

static void
put_service(const struct lw_config *config, struct lw_json *json)
{
    const struct lw_dispatcher_options *service = &config->service.dispatcher;
    lw_json_key(json, "service");
    lw_json_object(json);
    put_text(json, "name", masked(config->root, "service.name", service->name));
    put_int(json, "concurrency", service->concurrency);
    put_int(json, "drain_timeout_ms", service->drain_timeout_ms);
    put_text(json, "shutdown", service->is_abort ? "abort" : "graceful");
    lw_json_object_end(json);
}

static void
put_brokers(const struct lw_config *config, struct lw_json *json)
{
    lw_json_key(json, "brokers");
    lw_json_array(json);
    for (size_t i = 0; i < config->broker_count; i++) {
        const struct lw_config_broker *broker = &config->brokers[i];
        lw_json_object(json);
        put_text(json, "name", broker->name);
        put_text(json, "kind", lw_config_traits(broker->kind)->scheme);
        put_text(json, "url", masked(broker->node, "url", broker->url));
        lw_json_object_end(json);
    }
    lw_json_array_end(json);
}

static void
put_program(const struct lw_config_handler *handler, struct lw_json *json)
{
    static const char *const protocols[] = { [LW_PROTOCOL_LINES] = "lines",
                                             [LW_PROTOCOL_FRAMES] = "frames",
                                             [LW_PROTOCOL_ONCE] = "once" };
    const struct lw_node *list = lw_node_child(handler->node, "program");
    const struct lw_node *item = list ? list->first : NULL;
    lw_json_key(json, "program");
    lw_json_array(json);
    for (size_t i = 0; handler->run.program[i]; i++) {
        bool is_secret = (list && list->is_secret) || (item && item->is_secret);
        lw_json_string(json, is_secret ? "***" : handler->run.program[i]);
        item = item ? item->next : NULL;
    }
    lw_json_array_end(json);
    put_text(json, "protocol", protocols[handler->run.protocol]);
    put_int(json, "workers", handler->run.workers);
    put_int(json, "window", lw_config_window(handler));
    put_int(json, "memory_max", (int64_t)handler->run.memory_max);
    put_int(json, "cpu_max_ms", handler->run.cpu_max_ms);
    put_int(json, "nofile", handler->run.nofile);
    put_text(json, "user", masked(handler->node, "user", handler->run.run_as));
}

static void
put_handler(const struct lw_config_handler *handler, struct lw_json *json)
{
    lw_json_key(json, "handler");
    lw_json_object(json);
    put_text(json, "name", handler->name);
    put_text(json, "engine", lw_engine_kind_name(handler->run.engine));
    put_int(json, "timeout_ms", handler->run.timeout_ms);
    if (handler->kind == LW_CONFIG_PROGRAM) {
        put_program(handler, json);
    } else if (handler->kind == LW_CONFIG_HTTP) {
        put_text(json, "http", masked(handler->node, "http", handler->http.url));
        put_int(json, "connections", handler->http.connections);
    } else if (handler->kind == LW_CONFIG_BUILTIN) {
        put_text(json, "builtin", masked(handler->node, "builtin", handler->builtin_text));
    } else if (handler->kind == LW_CONFIG_PLUGIN) {
        put_text(json, "plugin", masked(handler->node, "plugin", handler->run.plugin));
        put_text(json, "symbol", handler->run.symbol ? handler->run.symbol : "lw_handler");
        if (handler->run.engine == LW_ENGINE_PROCESSES) {
            put_int(json, "workers", handler->run.workers);
            put_int(json, "window", lw_config_window(handler));
            put_int(json, "memory_max", (int64_t)handler->run.memory_max);
        }
    } else {
        put_text(json, "function", masked(handler->node, "function", handler->function));
    }
    lw_json_object_end(json);
}

static void
put_retry(const struct lw_config_subscription *item, struct lw_json *json)
{
    const struct lw_retry_options *retry = &item->options.retry;
    int64_t delays[LW_PLAN_DELAYS_MAX];
    bool is_cut = false;
    bool is_in_place = lw_config_is_in_place(item);
    size_t count = lw_plan_delays(item, delays, &is_cut);
    lw_json_key(json, "retry");
    lw_json_object(json);
    put_bool(json, "in_place", is_in_place);
    if (is_in_place) {
        put_int(json, "max_attempts", retry->max_attempts);
    }
    put_text(json, "topic", lw_config_name_shown(item, LW_CONFIG_NAME_RETRY));
    if (retry->topic && retry->max_retries >= 0) {
        put_int(json, "max_retries", retry->max_retries);
    }
    lw_json_key(json, "delays_ms");
    lw_json_array(json);
    for (size_t i = 0; i < count; i++) {
        lw_json_int(json, delays[i]);
    }
    lw_json_array_end(json);
    put_bool(json, "delays_go_on", is_cut);
    lw_json_object_end(json);
}

static void
put_window(const struct lw_subscription_options *options, struct lw_json *json)
{
    const struct lw_profile_row *profile = lw_profile_find(options->profile);
    put_text(json, "profile", profile->name);
    put_int(json, "window_min",
            profile->is_window_fixed ? (int64_t)options->receiver_queue_size : 1);
    put_int(json, "window_max", options->receiver_queue_size);
    put_int(json, "max_in_flight", options->max_in_flight);
    put_int(json, "max_in_flight_bytes", (int64_t)options->max_in_flight_bytes);
}

static void
put_topic(const struct lw_config_subscription *item, struct lw_json *json)
{
    static const char *const orders[] = { [LW_ORDERING_DEFAULT] = "default",
                                          [LW_ORDERING_KEY] = "key",
                                          [LW_ORDERING_PARTITION] = "partition",
                                          [LW_ORDERING_NONE] = "none" };
    const struct lw_subscription_options *options = &item->options;
    lw_json_object(json);
    put_int(json, "served", item->rank);
    put_bool(json, "served_alternating", item->is_rank_shared);
    put_int(json, "priority", options->priority);
    put_text(json, "topic", lw_config_name_shown(item, LW_CONFIG_NAME_TOPIC));
    put_text(json, "ordering", orders[lw_config_ordering(item)]);
    put_retry(item, json);
    put_text(json, "dead_letter", lw_config_name_shown(item, LW_CONFIG_NAME_DEAD_LETTER));
    put_text(json, "reply", lw_config_name_shown(item, LW_CONFIG_NAME_REPLY));
    put_window(options, json);
    lw_json_object_end(json);
}

static void
put_pipeline(const struct lw_config *config, const struct lw_config_pipeline *pipeline,
             struct lw_json *json)
{
    lw_json_object(json);
    put_text(json, "name", pipeline->name);
    put_text(json, "broker", pipeline->broker->name);
    put_text(json, "group", masked(pipeline->node, "consumer.group", pipeline->group));
    if (pipeline->consumer.type) {
        put_text(json, "type", pipeline->consumer.type);
    }
    put_handler(pipeline->handler, json);
    lw_json_key(json, "topics");
    lw_json_array(json);
    for (size_t i = 0; i < pipeline->count; i++) {
        put_topic(&config->subscriptions[pipeline->first + i], json);
    }
    lw_json_array_end(json);
    lw_json_object_end(json);
}

static void
put_values(const struct lw_config *config, struct lw_json *json)
{
    struct lw_plan_values values;
    if (!lw_plan_values_list(config, &values)) {
        json->text->is_failed = true;
    }
    lw_json_key(json, "values");
    lw_json_array(json);
    for (size_t i = 0; i < values.count; i++) {
        lw_json_object(json);
        put_text(json, "path", values.items[i].path);
        put_text(json, "value", values.items[i].value);
        put_text(json, "from", values.items[i].origin);
        lw_json_object_end(json);
    }
    lw_json_array_end(json);
    lw_config_arena_deinit(&values.arena);
}

void
lw_config_plan_json(const struct lw_config *config, struct lw_json *json)
{
    lw_json_object(json);
    put_service(config, json);
    put_brokers(config, json);
    lw_json_key(json, "pipelines");
    lw_json_array(json);
    for (size_t i = 0; i < config->pipeline_count; i++) {
        put_pipeline(config, &config->pipelines[i], json);
    }
    lw_json_array_end(json);
    put_values(config, json);
    lw_json_object_end(json);
}
