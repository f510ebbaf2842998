/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Properties for the client library. Those that Laneway must own are refused with the reason;
 * whether the others exist and take the value only the client knows, which is asked through
 * struct lw_config_client (the loader links no client).
 */
#include <string.h>

#include "service/config_check.h"

enum { SHOWN_BYTES_MAX = 80, STATISTICS_MS_MIN = 60000 };

static const struct owned {
    const char *name;
    const char *reason;
} owned[] = {
    { "enable.auto.commit", "offsets are committed after a message is settled, never by time" },
    { "auto.commit.interval.ms",
      "offsets are committed after a message is settled, never by time" },
    { "auto.commit.enable", "offsets are committed after a message is settled, never by time" },
    { "enable.auto.offset.store",
      "what may be committed is known by the ledger of offsets alone" },
    { "group.id", "the group is consumer.group of the pipeline" },
    { "bootstrap.servers", "the servers are in the broker's url" },
    { "metadata.broker.list", "the servers are in the broker's url" },
    { "enable.partition.eof", "the end of the log closes the tail behind control records" },
    { "enable.idempotence", "copies, replies and dead letters are always sent idempotently" },
    { "acks", "a message is settled only after all replicas in sync have its effects" },
    { "request.required.acks",
      "a message is settled only after all replicas in sync have its effects" },
    { "transactional.id", "transactions are not offered" },
    { "opaque", "it belongs to the program that calls the client" },
    { "interceptors", "they belong to the program that calls the client" },
    { "default_topic_conf", "it belongs to the program that calls the client" },
    { "ssl_engine_callback_data", "it belongs to the program that calls the client" },
    { "log.queue", "log lines of the client go through ours" },
    { "log.thread.name", "log lines of the client go through ours" },
    { "enable.sasl.oauthbearer.unsecure.jwt", "an unsigned token protects nothing" },
};

static bool
is_callback(const char *name)
{
    size_t length = strlen(name);
    return length > 3 && strcmp(name + length - 3, "_cb") == 0;
}

static const char *
owned_reason(const char *name)
{
    for (size_t i = 0; i < sizeof(owned) / sizeof(owned[0]); i++) {
        if (strcmp(owned[i].name, name) == 0) {
            return owned[i].reason;
        }
    }
    return is_callback(name) ? "a function cannot be given in a file" : NULL;
}

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
        "the Kafka client refuses \"%s\" for %s", lw_node_shown(node, value, sizeof(value)),
        node->key);
    if (!node->is_secret) {
        lw_diagnostic_help(item, "client said: %s", said);
    }
}

static void
check_statistics(struct lw_config_build *build, const struct lw_node *node)
{
    int64_t interval = 0;
    if (strcmp(node->key, "statistics.interval.ms") == 0 &&
        lw_text_to_int(node->text, &interval) && interval < STATISTICS_MS_MIN) {
        struct lw_diagnostic *item = lw_diagnostics_add(
            build->diagnostics, LW_SEVERITY_ERROR, "E0412", &node->place,
            "the client's statistics cost too much more often than every 60,000 ms");
        lw_diagnostic_help(item, "leave the property out, or write 60000");
    }
}

static void
check_property(struct lw_config_build *build, const struct lw_node *node)
{
    const struct lw_config_client *client = build->source->client;
    const char *reason = owned_reason(node->key);
    if (reason) {
        struct lw_diagnostic *item = lw_diagnostics_add(
            build->diagnostics, LW_SEVERITY_ERROR, "E0411", &node->key_place,
            "the property \"%s\" is set by Laneway", node->key);
        lw_diagnostic_help(item, "leave it out: %s", reason);
        return;
    }
    check_statistics(build, node);
    const char *said = client && client->check && !lw_node_is_empty(node)
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
    for (const struct lw_node *node = map->first; node; node = node->next) {
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
