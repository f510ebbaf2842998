/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Properties for the client library. Which of them Laneway must own, and whether the others exist
 * and take the value, the broker's module knows, which is asked through struct lw_config_client
 * (the loader links no client). Messages name the property and never show a secret value.
 */
#include <string.h>

#include "service/config_check.h"

enum { SHOWN_BYTES_MAX = 80 };

/* The properties of one broker or pipeline being checked. */
struct properties {
    struct lw_config_build *build;
    const struct lw_config_client *client;
    bool is_consumer;
};

static void
refuse_unknown(const struct properties *check, const struct lw_node *node, const char *said)
{
    struct lw_config_build *build = check->build;
    char shown[SHOWN_BYTES_MAX];
    char better[SHOWN_BYTES_MAX];
    const struct lw_config_client *client = check->client;
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
                       client->client_name ? client->client_name : "librdkafka",
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
check_by_client(const struct properties *check, const struct lw_node *node)
{
    const struct lw_config_client *client = check->client;
    const char *reason = client->owned ? client->owned(node->key, node->text) : NULL;
    if (reason) {
        refuse_owned(check->build, node, reason);
        return;
    }
    const char *said = client->check && !lw_node_is_empty(node)
                           ? client->check(node->key, node->text)
                           : NULL;
    if (said && strstr(said, "No such configuration property")) {
        refuse_unknown(check, node, said);
    } else if (said) {
        refuse_value(check->build, node, said);
    }
}

/* The client judges name and value itself; a secret is not repeated in its words. */
static void
check_option(const struct properties *check, const struct lw_node *node)
{
    struct lw_error error = { .status = LW_STATUS_OK };
    struct lw_property property = { node->key, node->text };
    if (check->client->check_property(check->is_consumer, &property, &error) == LW_STATUS_OK) {
        return;
    }
    bool is_value = strcmp(error.code, "E0416") == 0 || strcmp(error.code, "E0422") == 0;
    bool is_hidden = is_value && node->is_secret;
    struct lw_diagnostic *item = lw_diagnostics_add(
        check->build->diagnostics, LW_SEVERITY_ERROR, error.code,
        is_value ? &node->place : &node->key_place,
        is_hidden ? "\"%s\" has a wrong value" : "%s", is_hidden ? node->key : error.message);
    lw_diagnostic_help(item, "%s", error.help);
}

static void
check_property(const struct properties *check, const struct lw_node *node)
{
    if (check->client && check->client->check_property) {
        check_option(check, node);
    } else if (check->client) {
        check_by_client(check, node);
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
check_properties(const struct properties *check, const struct lw_config_broker *broker,
                 const struct lw_node *map)
{
    bool is_memory = broker && !lw_config_is_remote(broker);
    for (const struct lw_node *node = map ? map->first : NULL; node; node = node->next) {
        if (node->is_bad || node->kind != LW_NODE_SCALAR) {
            continue;
        }
        if (is_memory) {
            check_memory_property(check->build, node);
        } else {
            check_property(check, node);
        }
    }
}

/* What a group's reader could be given; the memory broker takes nothing there. */
static void
check_consumer(struct lw_config_build *build, const struct lw_config_pipeline *pipeline)
{
    const struct lw_node *map = lw_config_check_given(pipeline->node, "consumer.properties");
    const struct lw_config_broker *broker = pipeline->broker;
    if (map && map->first && broker && !lw_config_is_remote(broker)) {
        lw_diagnostics_add(build->diagnostics, LW_SEVERITY_ERROR, "E0413",
                           lw_node_name_place(map),
                           "the memory broker has no properties for consumers");
        return;
    }
    /* Without a broker (reported) they are taken for Kafka's. */
    struct properties check = { build,
                                broker ? lw_config_build_client(build, broker)
                                       : build->source->clients[LW_CONFIG_KAFKA],
                                true };
    check_properties(&check, broker, map);
}

/* Options of a broker that contradict each other; a wrong one alone was said at its place. */
static void
check_broker(struct lw_config_build *build, const struct lw_config_broker *broker)
{
    struct lw_error error = { .status = LW_STATUS_OK };
    const struct lw_config_client *client = lw_config_build_client(build, broker);
    const struct lw_node *map = lw_config_check_given(broker->node, "properties");
    size_t before = build->diagnostics->counts[LW_SEVERITY_ERROR];
    struct properties check = { build, client, false };
    check_properties(&check, broker, map);
    if (!client || !client->check_broker ||
        build->diagnostics->counts[LW_SEVERITY_ERROR] > before ||
        client->check_broker(broker->properties, broker->property_count, &error) ==
            LW_STATUS_OK) {
        return;
    }
    bool is_login = strcmp(error.code, "E0417") == 0;
    const struct lw_node *login = is_login ? lw_config_check_given(broker->node, "auth") : NULL;
    map = login ? login : map ? map : broker->node;
    struct lw_diagnostic *item = lw_diagnostics_add(build->diagnostics, LW_SEVERITY_ERROR,
                                                    error.code, lw_node_name_place(map), "%s",
                                                    error.message);
    lw_diagnostic_help(item, "%s", error.help);
}

/* A key that would do nothing where it was meant to protect something is refused. */
static void
check_short_words(struct lw_config_build *build, const struct lw_config_broker *broker)
{
    static const char *const keys[] = { "auth", "tls" };
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const struct lw_node *node = lw_config_check_given(broker->node, keys[i]);
        if (!node || broker->kind == LW_CONFIG_PULSAR || lw_node_is_empty(node)) {
            continue;
        }
        struct lw_diagnostic *item = lw_diagnostics_add(
            build->diagnostics, LW_SEVERITY_ERROR, "E0420", &node->key_place,
            "\"%s\" is for Pulsar; broker \"%s\" is none", node->key, broker->name);
        lw_diagnostic_help(item, "%s",
                           broker->kind == LW_CONFIG_KAFKA
                               ? "Kafka's are among its properties: security.protocol, sasl.*, "
                                 "ssl.*"
                               : "leave it out");
    }
}

/* TLS may be wanted by another option than the address, or for the admin API. */
static bool
is_about_tls(const char *name)
{
    return strcmp(name, "use_tls") == 0 || strcmp(name, "client.use_tls") == 0 ||
           strcmp(name, "admin_url") == 0 || strcmp(name, "client.admin_url") == 0;
}

static bool
has_other_tls(const struct lw_config_broker *broker)
{
    for (size_t i = 0; i < broker->property_count; i++) {
        if (is_about_tls(broker->properties[i].name)) {
            return true;
        }
    }
    return false;
}

/* Certificates beside an address without TLS protect nothing. */
static void
check_tls(struct lw_config_build *build, const struct lw_config_broker *broker)
{
    const struct lw_node *node = lw_config_check_given(broker->node, "tls");
    bool is_plain = broker->kind == LW_CONFIG_PULSAR && broker->url &&
                    strncmp(broker->url, "pulsar://", strlen("pulsar://")) == 0;
    if (!node || lw_node_is_empty(node) || !is_plain || has_other_tls(broker)) {
        return;
    }
    lw_config_check_useless(build, node, "pulsar:// is without TLS; write pulsar+ssl://");
}

void
lw_config_check_client(struct lw_config_build *build)
{
    const struct lw_config *config = build->config;
    for (size_t i = 0; i < config->broker_count; i++) {
        check_broker(build, &config->brokers[i]);
        check_short_words(build, &config->brokers[i]);
        check_tls(build, &config->brokers[i]);
    }
    for (size_t i = 0; i < config->pipeline_count; i++) {
        check_consumer(build, &config->pipelines[i]);
    }
}
