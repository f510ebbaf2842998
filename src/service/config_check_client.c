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

static void
check_properties(struct lw_config_build *build, const struct lw_config_broker *broker,
                 const struct lw_node *map)
{
    if (!map || !map->first) {
        return;
    }
    if (broker && broker->kind == LW_CONFIG_MEMORY) {
        lw_diagnostics_add(build->diagnostics, LW_SEVERITY_ERROR, "E0413",
                           lw_node_name_place(map),
                           "the memory broker has no client properties");
        return;
    }
    const struct lw_node *node = build->source->client ? map->first : NULL;
    for (; node; node = node->next) {
        if (!node->is_bad && node->kind == LW_NODE_SCALAR) {
            check_property(build, node);
        }
    }
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
        const struct lw_config_pipeline *pipeline = &config->pipelines[i];
        check_properties(build, pipeline->broker,
                         lw_config_check_given(pipeline->node, "consumer.properties"));
    }
}
