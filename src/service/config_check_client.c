/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Properties for the client library. Which of them Laneway must own, and whether the others exist
 * and take the value, the broker's module knows, which is asked through struct lw_config_client
 * (the loader links no client). Messages name the property and never show a secret value.
 */
#include <string.h>

#include "service/config_check.h"

enum { SHOWN_BYTES_MAX = 80 };

static void
refuse_unknown(struct lw_config_build *build, const struct lw_node *node, const char *said)
{
    char shown[SHOWN_BYTES_MAX];
    char better[SHOWN_BYTES_MAX];
    const struct lw_config_client *client = build->source->client;
    bool is_near = client->suggest && client->suggest(node->key, better, sizeof(better));
    struct lw_diagnostic *item = lw_diagnostics_add(
        build->diagnostics, LW_SEVERITY_ERROR, "E0410", &node->key_place,
        "the Kafka client does not know the property \"%s\"",
        lw_text_shown(node->key, shown, sizeof(shown)));
    lw_diagnostic_help(item,
                       "%s%s%s%sclient said: %s%s\n"
                       "laneway errors E0410 lists the properties of %s %s, the version in use",
                       is_near ? "did you mean \"" : "", is_near ? better : "",
                       is_near ? "\"?  " : "", is_near ? "(" : "", said, is_near ? ")" : "",
                       client->library ? client->library : "librdkafka",
                       client->version ? client->version() : "");
}

static void
refuse_value(struct lw_config_build *build, const struct lw_node *node, const char *said)
{
    char value[SHOWN_BYTES_MAX];
    struct lw_diagnostic *item = lw_diagnostics_add(
        build->diagnostics, LW_SEVERITY_ERROR, "E0412", &node->place,
        "\"%s\" is no value for the client's property %s",
        lw_node_shown(node, value, sizeof(value)), node->key);
    if (!node->is_secret) {
        lw_diagnostic_help(item, "%s", said);
    }
}

static void
refuse_owned(struct lw_config_build *build, const struct lw_node *node, const char *reason)
{
    struct lw_diagnostic *item = lw_diagnostics_add(
        build->diagnostics, LW_SEVERITY_ERROR, "E0411", &node->key_place,
        "the property \"%s\" is set by Laneway", node->key);
    lw_diagnostic_help(item, "leave it out: %s", reason);
}

static void
check_property(struct lw_config_build *build, const struct lw_node *node)
{
    const struct lw_config_client *client = build->source->client;
    const char *reason = client->owned ? client->owned(node->key, node->text) : NULL;
    if (reason) {
        refuse_owned(build, node, reason);
        return;
    }
    const char *said = client->check && !lw_node_is_empty(node)
                           ? client->check(node->key, node->text)
                           : NULL;
    if (said && strstr(said, "No such configuration property")) {
        refuse_unknown(build, node, said);
    } else if (said) {
        refuse_value(build, node, said);
    }
}

/* The memory broker has few properties; they are checked here, since it has no client. */
static const struct lw_option_word mode_words[] = { { .word = "position" },
                                                    { .word = "individual" },
                                                    { 0 } };
static const struct lw_option_word sharing_words[] = { { .word = "shared" },
                                                       { .word = "exclusive" },
                                                       { 0 } };
static const struct lw_option_word protocol_words[] = { { .word = "eager" },
                                                        { .word = "cooperative" },
                                                        { 0 } };
static const struct lw_option memory_rows[] = {
    { .name = "mode", .type = LW_OPTION_ENUM, .words = mode_words },
    { .name = "sharing", .type = LW_OPTION_ENUM, .words = sharing_words },
    { .name = "protocol", .type = LW_OPTION_ENUM, .words = protocol_words },
    { .name = "partitions",
      .type = LW_OPTION_UINT,
      .size = sizeof(uint32_t),
      .min = 1,
      .max = 1024 },
    { 0 }
};

static void
refuse_memory_value(struct lw_config_build *build, const struct lw_node *node,
                    const struct lw_option *row)
{
    char shown[SHOWN_BYTES_MAX];
    struct lw_text type;
    lw_text_init(&type);
    lw_option_type_name(row, &type);
    struct lw_diagnostic *item = lw_diagnostics_add(
        build->diagnostics, LW_SEVERITY_ERROR, "E0412", &node->place,
        "\"%s\" is no value for the memory broker's property %s",
        lw_node_shown(node, shown, sizeof(shown)), row->name);
    lw_diagnostic_help(item, "it takes: %s", type.data ? type.data : "");
    lw_text_deinit(&type);
}

static void
check_memory_property(struct lw_config_build *build, const struct lw_node *node)
{
    char shown[SHOWN_BYTES_MAX];
    union lw_option_value value;
    const struct lw_option *row = lw_option_find(memory_rows, node->key, NULL);
    if (!row) {
        struct lw_diagnostic *item = lw_diagnostics_add(
            build->diagnostics, LW_SEVERITY_ERROR, "E0413", &node->key_place,
            "the memory broker has no property \"%s\"",
            lw_text_shown(node->key, shown, sizeof(shown)));
        lw_diagnostic_help(item, "it has mode, sharing, protocol and partitions");
    } else if (!lw_node_is_empty(node) &&
               lw_option_parse(row, node->text, &value) != LW_OPTION_FINE) {
        refuse_memory_value(build, node, row);
    }
}

static void
check_properties(struct lw_config_build *build, const struct lw_config_broker *broker,
                 const struct lw_node *map)
{
    bool is_memory = broker && broker->kind != LW_CONFIG_KAFKA;
    for (const struct lw_node *node = map ? map->first : NULL; node; node = node->next) {
        if (node->is_bad || node->kind != LW_NODE_SCALAR) {
            continue;
        }
        if (is_memory) {
            check_memory_property(build, node);
        } else if (build->source->client) {
            check_property(build, node);
        }
    }
}

/* What a group's reader could be given; the memory broker takes nothing there. */
static void
check_consumer(struct lw_config_build *build, const struct lw_config_pipeline *pipeline)
{
    const struct lw_node *map = lw_config_check_given(pipeline->node, "consumer.properties");
    bool is_memory = pipeline->broker && pipeline->broker->kind != LW_CONFIG_KAFKA;
    if (map && map->first && is_memory) {
        lw_diagnostics_add(build->diagnostics, LW_SEVERITY_ERROR, "E0413",
                           lw_node_name_place(map),
                           "the memory broker has no properties for consumers");
        return;
    }
    check_properties(build, pipeline->broker, map);
}

void
lw_config_check_client(struct lw_config_build *build)
{
    const struct lw_config *config = build->config;
    for (size_t i = 0; i < config->broker_count; i++) {
        const struct lw_config_broker *broker = &config->brokers[i];
        check_properties(build, broker, lw_config_check_given(broker->node, "properties"));
    }
    for (size_t i = 0; i < config->pipeline_count; i++) {
        check_consumer(build, &config->pipelines[i]);
    }
}
