/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks the brokers for the topics that a configuration needs. A memory broker lives in the
 * process that runs it and makes its topics on first use, so there is nothing to ask.
 */
#include "cli/connect.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "service/registry.h"

/* How long a topic may be absent before that is said, and how often it is looked for. */
#define ABSENT_NS (2000 * LW_MS)
#define ASK_AGAIN_NS (100 * LW_MS)

/* -- Brokers ----------------------------------------------------------------------------------- */

enum lw_status
lw_connect_create(struct lw_host *host, const struct lw_config_broker *config,
                  struct lw_broker **ret_broker, struct lw_error *ret_error)
{
    const struct lw_broker_ops *ops = lw_registry_broker(config->url, ret_error);
    if (!ops) {
        return LW_STATUS_INVALID;
    }
    return ops->create(host, config->name, config->url, config->properties,
                       config->property_count, ret_broker, ret_error);
}

static bool
open_brokers(struct lw_connect *connect, const struct lw_config *config)
{
    if (lw_loop_create(1, &connect->loop) != LW_STATUS_OK) {
        return false;
    }
    connect->brokers = lw_alloc_array(config->broker_count + 1, sizeof *connect->brokers);
    if (!connect->brokers) {
        return false;
    }
    for (size_t i = 0; i < config->broker_count; i++) {
        struct lw_connect_broker *item = &connect->brokers[connect->broker_count++];
        item->config = &config->brokers[i];
        (void)lw_connect_create(lw_loop_host(connect->loop), item->config, &item->broker,
                                &item->error);
    }
    return true;
}

void
lw_connect_deinit(struct lw_connect *connect)
{
    for (size_t i = 0; i < connect->broker_count; i++) {
        struct lw_broker *broker = connect->brokers[i].broker;
        if (broker) {
            broker->ops->destroy(broker);
        }
    }
    lw_free(connect->brokers);
    lw_needs_deinit(&connect->needs);
    lw_loop_destroy(connect->loop);
    memset(connect, 0, sizeof *connect);
}

/* -- Topics ------------------------------------------------------------------------------------ */

static size_t
fill_infos(const struct lw_needs *needs, const struct lw_config_broker *broker,
           struct lw_topic_info *infos)
{
    size_t count = 0;
    for (size_t i = 0; i < needs->count; i++) {
        if (needs->items[i].broker == broker) {
            infos[count++] = (struct lw_topic_info){ .name = needs->items[i].name,
                                                     .retention_ms = -1 };
        }
    }
    return count;
}

static void
read_infos(struct lw_needs *needs, const struct lw_config_broker *broker,
           const struct lw_topic_info *infos)
{
    size_t next = 0;
    for (size_t i = 0; i < needs->count; i++) {
        struct lw_need *need = &needs->items[i];
        if (need->broker == broker) {
            const struct lw_topic_info *info = &infos[next++];
            need->partitions = info->status == LW_STATUS_OK ? info->partitions : -1;
            need->status = info->status;
            lw_text_copy(need->reason, sizeof need->reason, info->reason);
        }
    }
}

static void
describe_one(struct lw_connect *connect, struct lw_connect_broker *item)
{
    bool is_asked = item->broker && lw_config_is_remote(item->config);
    if (!is_asked) {
        return;
    }
    struct lw_topic_info *infos = lw_alloc_array(connect->needs.count + 1, sizeof *infos);
    if (!infos) {
        (void)lw_error_set(&item->error, LW_STATUS_NO_MEMORY, "", "out of memory");
        return;
    }
    size_t count = fill_infos(&connect->needs, item->config, infos);
    memset(&item->error, 0, sizeof item->error);
    enum lw_status status = item->broker->ops->describe_topics(
        item->broker, infos, count, connect->timeout_ms, &item->error);
    if (status == LW_STATUS_OK) {
        read_infos(&connect->needs, item->config, infos);
    }
    lw_free(infos);
}

void
lw_connect_describe(struct lw_connect *connect)
{
    connect->exit_code = LW_EXIT_OK;
    for (size_t i = 0; i < connect->broker_count; i++) {
        struct lw_connect_broker *item = &connect->brokers[i];
        describe_one(connect, item);
        if (item->error.status != LW_STATUS_OK && connect->exit_code == LW_EXIT_OK) {
            connect->exit_code = lw_error_exit_code(&item->error);
        }
    }
}

enum lw_status
lw_connect_make(struct lw_connect *connect, struct lw_connect_broker *broker,
                struct lw_topic_info *topics, size_t count, struct lw_error *ret_error)
{
    return broker->broker->ops->create_topics(broker->broker, topics, count,
                                              connect->timeout_ms, ret_error);
}

/* -- Warnings ---------------------------------------------------------------------------------- */

static void
warn_absent(struct lw_diagnostics *diagnostics, const struct lw_need *need)
{
    const struct lw_place *place = need->node ? &need->node->place : NULL;
    bool is_dead_letter = need->kind == LW_NEED_DEAD_LETTER;
    struct lw_diagnostic *item = lw_diagnostics_add(
        diagnostics, LW_SEVERITY_WARNING, is_dead_letter ? "W0312" : "W0314", place,
        "%s \"%s\" does not exist on broker \"%s\"", lw_need_kind_name(need->kind), need->name,
        need->broker->name);
    bool is_pulsar = need->broker->kind == LW_CONFIG_PULSAR;
    bool is_others = need->kind == LW_NEED_SOURCE || need->kind == LW_NEED_REPLY;
    lw_diagnostic_help(item, "laneway topics create FILE%s makes it%s",
                       is_others ? " --all" : "",
                       is_pulsar ? "; Pulsar makes it on first use where that is allowed" : "");
}

static void
warn_unknown(struct lw_diagnostics *diagnostics, const struct lw_need *need)
{
    const struct lw_place *place = need->node ? &need->node->place : NULL;
    struct lw_diagnostic *item = lw_diagnostics_add(
        diagnostics, LW_SEVERITY_WARNING, "W0315", place, "%s \"%s\" cannot be looked up: %s",
        lw_need_kind_name(need->kind), need->name, need->reason);
    if (strstr(need->reason, "no namespace")) {
        lw_diagnostic_help(item, "correct the name, or make it: " LW_CLI_MAKE_NAMESPACE);
    }
}

static void
warn_small(struct lw_diagnostics *diagnostics, const struct lw_need *need, int32_t wanted)
{
    const struct lw_place *place = need->node ? &need->node->place : NULL;
    struct lw_diagnostic *item = lw_diagnostics_add(
        diagnostics, LW_SEVERITY_WARNING, "W0313", place,
        "retry topic \"%s\" has %d partitions, its source has %d", need->name, need->partitions,
        wanted);
    lw_diagnostic_help(item,
                       "give it %d partitions; until then copies of the others wait in "
                       "place",
                       wanted);
}

static void
warn(const struct lw_connect *connect, struct lw_diagnostics *diagnostics)
{
    for (size_t i = 0; i < connect->needs.count; i++) {
        const struct lw_need *need = &connect->needs.items[i];
        int32_t wanted = lw_needs_wanted(&connect->needs, i);
        if (need->partitions < 0 && need->reason[0]) {
            warn_unknown(diagnostics, need);
        } else if (need->partitions == 0) {
            warn_absent(diagnostics, need);
        } else if (need->kind == LW_NEED_RETRY && need->partitions > 0 &&
                   need->partitions < wanted) {
            warn_small(diagnostics, need, wanted);
        }
    }
}

static bool
is_any_absent(const struct lw_connect *connect)
{
    for (size_t i = 0; i < connect->needs.count; i++) {
        const struct lw_need *need = &connect->needs.items[i];
        bool is_made_later = need->broker->kind == LW_CONFIG_SPOOL;
        if (lw_config_is_remote(need->broker) && !is_made_later && need->partitions == 0) {
            return true;
        }
    }
    return false;
}

/* The node that is asked may be told of a new topic some 300 ms after it was made. */
static void
ask_again(struct lw_connect *connect)
{
    struct lw_host *host = lw_loop_host(connect->loop);
    uint64_t deadline = host->ops->refresh(host) + ABSENT_NS;
    while (connect->exit_code == LW_EXIT_OK && is_any_absent(connect) && host->now < deadline) {
        uint64_t next = host->now + ASK_AGAIN_NS;
        while (host->now < next) {
            lw_loop_turn_until(connect->loop, next);
        }
        lw_connect_describe(connect);
    }
}

void
lw_connect_run(struct lw_connect *connect, const struct lw_config *config, int64_t timeout_ms,
               struct lw_diagnostics *diagnostics)
{
    memset(connect, 0, sizeof *connect);
    connect->timeout_ms = timeout_ms;
    lw_needs_init(&connect->needs, config);
    if (connect->needs.is_failed || !open_brokers(connect, config)) {
        connect->exit_code = LW_EXIT_SYSTEM;
        return;
    }
    lw_connect_describe(connect);
    if (diagnostics) {
        ask_again(connect);
        warn(connect, diagnostics);
    }
}

/* -- Output ------------------------------------------------------------------------------------ */

static int
width_of(const struct lw_connect *connect, const struct lw_config_broker *broker)
{
    size_t width = 0;
    for (size_t i = 0; i < connect->needs.count; i++) {
        const struct lw_need *need = &connect->needs.items[i];
        size_t size = need->broker == broker ? strlen(need->name) : 0;
        width = size > width ? size : width;
    }
    return (int)width;
}

static void
print_topics(const struct lw_connect *connect, const struct lw_config_broker *broker,
             struct lw_text *out)
{
    int width = width_of(connect, broker);
    for (size_t i = 0; i < connect->needs.count; i++) {
        const struct lw_need *need = &connect->needs.items[i];
        if (need->broker != broker) {
            continue;
        }
        lw_text_format(out, "    %-17s %-*s  ", lw_need_kind_name(need->kind), width,
                       need->name);
        if (need->partitions > 0) {
            lw_text_format(out, "%d partition%s\n", need->partitions,
                           need->partitions == 1 ? "" : "s");
        } else {
            const char *absent = broker->kind == LW_CONFIG_SPOOL ? "made on first use"
                                                                 : "not found";
            lw_text_format(out, "%s\n", need->partitions == 0 ? absent : need->reason);
        }
    }
}

static void
print_broker(const struct lw_connect *connect, const struct lw_connect_broker *item,
             struct lw_text *out)
{
    const struct lw_error *error = &item->error;
    lw_text_format(out, "  broker %s  ", item->config->name);
    if (error->status != LW_STATUS_OK) {
        lw_text_format(out, "error[%s]: %s\n", error->code, error->message);
        int help_size = (int)lw_cli_help_size(error);
        lw_text_format(out, "%s%.*s%s", help_size > 0 ? "    help: " : "", help_size,
                       error->help, help_size > 0 ? "\n" : "");
    } else if (!lw_config_is_remote(item->config)) {
        lw_text_append(out, "in memory: topics are made on first use\n");
    } else {
        lw_text_format(out, "connected: %s\n", item->config->url);
        print_topics(connect, item->config, out);
    }
}

void
lw_connect_print(const struct lw_connect *connect, struct lw_text *out)
{
    for (size_t i = 0; i < connect->broker_count; i++) {
        print_broker(connect, &connect->brokers[i], out);
    }
}

static void
put_topics(const struct lw_connect *connect, const struct lw_config_broker *broker,
           struct lw_json *json)
{
    lw_json_key(json, "topics");
    lw_json_array(json);
    for (size_t i = 0; i < connect->needs.count; i++) {
        const struct lw_need *need = &connect->needs.items[i];
        if (need->broker == broker) {
            lw_json_object(json);
            lw_json_key(json, "name");
            lw_json_string(json, need->name);
            lw_json_key(json, "kind");
            lw_json_string(json, lw_need_kind_name(need->kind));
            lw_json_key(json, "partitions");
            lw_json_int(json, need->partitions);
            lw_json_key(json, "wanted");
            lw_json_int(json, lw_needs_wanted(&connect->needs, i));
            lw_json_object_end(json);
        }
    }
    lw_json_array_end(json);
}

void
lw_connect_json(const struct lw_connect *connect, struct lw_json *json)
{
    lw_json_array(json);
    for (size_t i = 0; i < connect->broker_count; i++) {
        const struct lw_connect_broker *item = &connect->brokers[i];
        bool is_good = item->error.status == LW_STATUS_OK;
        lw_json_object(json);
        lw_json_key(json, "name");
        lw_json_string(json, item->config->name);
        lw_json_key(json, "is_connected");
        lw_json_bool(json, is_good);
        lw_json_key(json, "error");
        lw_json_string(json, is_good ? NULL : item->error.message);
        put_topics(connect, item->config, json);
        lw_json_object_end(json);
    }
    lw_json_array_end(json);
}
