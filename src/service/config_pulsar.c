/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a configuration says about Pulsar in words of its own, turned into the options of its
 * clients: `auth` and `tls` of a broker, `consumer.type` and receiver_queue_size of a pipeline.
 * The short words come behind the properties, so that everything later sees one list. Whether
 * options contradict each other the client says, which is asked here, once the list is whole.
 */
#include <string.h>

#include "service/config_bind.h"
#include "service/config_build.h"
#include "service/config_file.h"

enum { SHORT_MAX = 8 };

const struct lw_config_client *
lw_config_build_client(const struct lw_config_build *build,
                       const struct lw_config_broker *broker)
{
    return broker ? build->source->clients[broker->kind] : NULL;
}

/* -- Properties ------------------------------------------------------------------------------ */

/* A list that grows at its end; the places were counted before. */
struct list {
    struct lw_property *items;
    size_t count;
};

static bool
copy(struct lw_config_build *build, const struct lw_property *from, size_t count,
     struct list *ret_list)
{
    ret_list->items = lw_config_arena_array(build->arena, count + SHORT_MAX,
                                            sizeof(ret_list->items[0]));
    ret_list->count = ret_list->items ? count : 0;
    if (ret_list->count > 0) {
        memcpy(ret_list->items, from, count * sizeof(from[0]));
    }
    return ret_list->items != NULL;
}

static const struct lw_property *
find(const struct lw_property *items, size_t count, const char *scope, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        const char *each = items[i].name;
        size_t length = strlen(scope);
        each += strncmp(each, scope, length) == 0 ? length : 0;
        if (strcmp(each, name) == 0) {
            return &items[i];
        }
    }
    return NULL;
}

/* Two spellings of one option: which one is meant would be a guess. */
static void
refuse_both(struct lw_config_build *build, const struct lw_node *node, const char *property)
{
    struct lw_diagnostic *item = lw_diagnostics_add(
        build->diagnostics, LW_SEVERITY_ERROR, "E0419", lw_node_name_place(node),
        "\"%s\" and the property \"%s\" say the same; keep one of them", node->key, property);
    lw_diagnostic_help(item, "leave the property out");
}

/* -- Brokers --------------------------------------------------------------------------------- */

/* The short words of a broker and the options that they stand for. */
static const struct {
    const char *path;
    const char *property;
    bool is_file;
} short_words[SHORT_MAX] = {
    { "auth.token", "token", false },
    { "auth.plugin", "auth_plugin", false },
    { "auth.params", "auth_params", false },
    { "tls.trust_file", "tls_trust_certs_file_path", true },
    { "tls.certificate_file", "tls_certificate_file_path", true },
    { "tls.key_file", "tls_private_key_file_path", true },
    { "tls.allow_insecure", "tls_allow_insecure_connection", false },
    { "tls.validate_hostname", "tls_validate_hostname", false },
};

/* Relative paths begin at the file that names them. */
static const char *
placed(struct lw_config_build *build, const struct lw_node *node)
{
    const struct lw_document *document = node->place.document;
    const char *directory = document && document->directory ? document->directory : ".";
    return lw_config_file_join(directory, node->text, build->arena);
}

static void
add_short_words(struct lw_config_build *build, struct lw_config_broker *broker)
{
    struct list list;
    if (!copy(build, broker->properties, broker->property_count, &list)) {
        return;
    }
    for (size_t i = 0; i < SHORT_MAX; i++) {
        const char *name = short_words[i].property;
        const struct lw_node *node = lw_node_at(broker->node, short_words[i].path);
        if (!node || node->is_bad || node->kind != LW_NODE_SCALAR || lw_node_is_empty(node)) {
            continue;
        }
        if (find(broker->properties, broker->property_count, "client.", name)) {
            refuse_both(build, node, name);
            continue;
        }
        const char *value = short_words[i].is_file ? placed(build, node) : node->text;
        if (value) {
            list.items[list.count++] = (struct lw_property){ name, value };
        }
    }
    broker->properties = list.items;
    broker->property_count = list.count;
}

bool
lw_config_build_url(struct lw_config_build *build, const struct lw_config_broker *broker)
{
    struct lw_error error = { .status = LW_STATUS_OK };
    const struct lw_node *node = lw_node_child(broker->node, "url");
    const struct lw_config_client *client = lw_config_build_client(build, broker);
    if (!client || !client->check_url ||
        client->check_url(broker->url, &error) == LW_STATUS_OK) {
        return true;
    }
    struct lw_diagnostic *item = lw_diagnostics_add(
        build->diagnostics, LW_SEVERITY_ERROR, error.code, &node->place, "%s",
        node->is_secret ? "\"***\" is not a broker's address" : error.message);
    lw_diagnostic_help(item, "%s", error.help);
    return false;
}

void
lw_config_build_pulsar(struct lw_config_build *build, struct lw_config_broker *broker)
{
    (void)lw_config_build_url(build, broker);
    add_short_words(build, broker);
}

/* -- Pipelines ------------------------------------------------------------------------------- */

/* What is an option here by another name goes there, so that plan and window know of it. */
static void
drop_queue_size(struct lw_config_pipeline *pipeline, struct list *list)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (!find(&list->items[i], 1, "consumer.", "receiver_queue_size")) {
            list->items[kept++] = list->items[i];
        }
    }
    list->count = kept;
    if (pipeline->consumer.queue_size > 0 &&
        !lw_node_has(pipeline->node, "receiver_queue_size")) {
        pipeline->common.receiver_queue_size = pipeline->consumer.queue_size;
    }
}

static void
add_type(struct lw_config_build *build, const struct lw_config_pipeline *pipeline,
         struct list *list)
{
    const struct lw_node *node = lw_node_at(pipeline->node, "consumer.type");
    static const char *const names[] = { "consumer_type", "subscription_type" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct lw_property *twin = find(pipeline->properties, pipeline->property_count,
                                              "consumer.", names[i]);
        if (twin && node) {
            refuse_both(build, node, twin->name);
            return;
        }
    }
    list->items[list->count++] = (struct lw_property){ names[0], pipeline->type };
}

/* One wrong property alone is reported where it stands, by the check of properties. */
static bool
has_wrong_property(const struct lw_config_client *client,
                   const struct lw_config_pipeline *pipeline)
{
    struct lw_error ignored;
    for (size_t i = 0; client->check_property && i < pipeline->property_count; i++) {
        if (client->check_property(true, &pipeline->properties[i], &ignored) != LW_STATUS_OK) {
            return true;
        }
    }
    return false;
}

static void
read_consumer(struct lw_config_build *build, const struct lw_config_client *client,
              struct lw_config_pipeline *pipeline, const struct list *list)
{
    struct lw_error error = { .status = LW_STATUS_OK };
    const struct lw_node *node = lw_node_at(pipeline->node, "consumer.properties");
    node = node ? node : lw_node_child(pipeline->node, "consumer");
    if (client->read_consumer(pipeline->broker, list->items, list->count, &pipeline->consumer,
                              &error) == LW_STATUS_OK ||
        has_wrong_property(client, pipeline)) {
        return;
    }
    struct lw_diagnostic *item = lw_diagnostics_add(build->diagnostics, LW_SEVERITY_ERROR,
                                                    error.code, lw_node_name_place(node), "%s",
                                                    error.message);
    lw_diagnostic_help(item, "%s", error.help);
}

/* Its topic is a dead-letter topic like any other: for the plan, for loops, for `topics create`. */
static void
take_policy(struct lw_config_pipeline *pipeline)
{
    struct lw_dead_letter_options *dead = &pipeline->common.dead_letter;
    if (pipeline->consumer.has_policy && pipeline->consumer.policy_topic && !dead->topic &&
        !dead->is_off) {
        dead->topic = pipeline->consumer.policy_topic;
    }
}

void
lw_config_build_consumer(struct lw_config_build *build, struct lw_config_pipeline *pipeline)
{
    const struct lw_node *consumer = lw_node_child(pipeline->node, "consumer");
    const struct lw_config_client *client = lw_config_build_client(build, pipeline->broker);
    struct list list;
    if (!consumer || consumer->is_bad || !pipeline->broker ||
        pipeline->broker->kind != LW_CONFIG_PULSAR) {
        return;
    }
    const struct lw_node *type = lw_node_child(consumer, "type");
    pipeline->type = type && !type->is_bad && type->kind == LW_NODE_SCALAR
                         ? lw_config_bind_text(consumer, "type", build->arena)
                         : NULL;
    if (!copy(build, pipeline->properties, pipeline->property_count, &list)) {
        return;
    }
    if (pipeline->type) {
        add_type(build, pipeline, &list);
    }
    if (client && client->read_consumer) {
        read_consumer(build, client, pipeline, &list);
        take_policy(pipeline);
    }
    drop_queue_size(pipeline, &list);
    pipeline->properties = list.items;
    pipeline->property_count = list.count;
}
