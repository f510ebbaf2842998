/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The topics of a pipeline: a list as it stands, or a matrix multiplied out; and names made from
 * patterns. A name is checked where it is made, so that a dead-letter topic that no broker would
 * take is known before the first dead letter.
 */
#include <stdio.h>
#include <string.h>

#include "service/config_bind.h"
#include "service/config_build.h"
#include "service/config_rows.h"

enum { SHOWN_BYTES_MAX = 80, TOPIC_CHARS_MAX = 249, PLACEHOLDER_BYTES_MAX = 64 };
enum { ID_BYTES_MAX = 1024 };

static void
refuse_name(struct lw_config_build *build, const char *name, const struct lw_node *node,
            const struct lw_error *error)
{
    char shown[SHOWN_BYTES_MAX];
    bool is_own = error->code[0] != '\0' && !node->is_secret;
    struct lw_diagnostic *item = lw_diagnostics_add(
        build->diagnostics, LW_SEVERITY_ERROR, error->code[0] != '\0' ? error->code : "E0117",
        &node->place, is_own ? "%s" : "\"%s\" is not a topic name",
        is_own            ? error->message
        : node->is_secret ? "***"
                          : lw_text_shown(name, shown, sizeof(shown)));
    lw_diagnostic_help(item, "%s",
                       error->help[0] != '\0'
                           ? error->help
                           : "letters, digits, \".\", \"_\" and \"-\" only, at most 249");
}

static bool
is_plain(const char *name)
{
    size_t length = strlen(name);
    size_t good = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                               "0123456789._-");
    return length > 0 && good == length && length <= TOPIC_CHARS_MAX &&
           strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

const char *
lw_config_topics_check(struct lw_config_build *build, const struct lw_config_broker *broker,
                       const char *name, const struct lw_node *node)
{
    char id[ID_BYTES_MAX];
    struct lw_error error = { .status = LW_STATUS_OK };
    const struct lw_config_client *client = lw_config_build_client(build, broker);
    bool is_pulsar = broker && broker->kind == LW_CONFIG_PULSAR;
    bool is_fine = is_pulsar || is_plain(name);
    lw_text_copy(id, sizeof(id), name);
    if (client && client->read_topic) {
        is_fine = client->read_topic(name, id, sizeof(id), &error) == LW_STATUS_OK;
    }
    if (!is_fine) {
        refuse_name(build, name, node, &error);
        return NULL;
    }
    return lw_config_arena_text(build->arena, id, strlen(id));
}

/* A topic that is read, which may be a pattern. */
static bool
check_source(struct lw_config_build *build, const struct lw_config_broker *broker,
             struct lw_config_topic *topic, const struct lw_node *node)
{
    struct lw_error error = { .status = LW_STATUS_OK };
    const struct lw_config_client *client = lw_config_build_client(build, broker);
    topic->is_pattern = client && client->is_pattern && client->is_pattern(topic->name);
    if (!topic->is_pattern) {
        topic->id = lw_config_topics_check(build, broker, topic->name, node);
        return topic->id != NULL;
    }
    topic->id = topic->name;
    if (client->check_pattern(topic->name, &error) != LW_STATUS_OK) {
        refuse_name(build, topic->name, node, &error);
        return false;
    }
    return true;
}

/* As the user spelled the topic: what was left out of its name is left out here. */
static const char *
as_spelled(const char *topic, const char *name)
{
    static const char domain[] = "persistent://";
    static const char space[] = "persistent://public/default/";
    if (!strchr(topic, '/') && strncmp(name, space, sizeof(space) - 1) == 0) {
        return name + sizeof(space) - 1;
    }
    bool is_short = !strstr(topic, "://") && strncmp(name, domain, sizeof(domain) - 1) == 0;
    return is_short ? name + sizeof(domain) - 1 : name;
}

const char *
lw_config_topics_default(struct lw_config_build *build,
                         const struct lw_config_pipeline *pipeline,
                         const struct lw_config_topic *topic, bool is_retry)
{
    char name[ID_BYTES_MAX];
    const struct lw_config_client *client = lw_config_build_client(build, pipeline->broker);
    if (!client || !client->default_topic || topic->is_pattern || !pipeline->group ||
        !client->default_topic(is_retry, topic->name, pipeline->group, name, sizeof(name))) {
        return NULL;
    }
    const char *spelled = as_spelled(topic->name, name);
    return lw_config_arena_text(build->arena, spelled, strlen(spelled));
}

/* What a placeholder stands for; NULL when it is unknown. */
static const char *
look_up(const struct lw_config_topic *topic, const char *group, const char *name)
{
    if (topic->name && strcmp(name, "topic") == 0) {
        return topic->is_pattern ? "{topic}" : topic->name; /* each that matches has its own */
    }
    if (group && (strcmp(name, "group") == 0 || strcmp(name, "subscription") == 0)) {
        return group;
    }
    for (size_t i = 0; i < topic->level_count; i++) {
        if (strcmp(topic->level_names[i], name) == 0) {
            return topic->level_values[i];
        }
    }
    return NULL;
}

static void
refuse_placeholder(struct lw_config_build *build, const struct lw_config_topic *topic,
                   const char *name, const struct lw_node *node)
{
    char shown[SHOWN_BYTES_MAX];
    struct lw_diagnostic *item = lw_diagnostics_add(
        build->diagnostics, LW_SEVERITY_ERROR, "E0206", &node->place,
        "\"{%s}\" stands for nothing here",
        node->is_secret ? "***" : lw_text_shown(name, shown, sizeof(shown)));
    struct lw_text known;
    lw_text_init(&known);
    lw_text_append(&known, topic->name ? "{topic}, {group}" : "");
    for (size_t i = 0; i < topic->level_count; i++) {
        lw_text_format(&known, "%s{%s}", known.size > 0 ? ", " : "", topic->level_names[i]);
    }
    if (known.size > 0 && !known.is_failed) {
        lw_diagnostic_help(item, "known here: %s", known.data);
    }
    lw_text_deinit(&known);
}

/* A pattern being filled; `node` is where mistakes are reported. */
struct filling {
    struct lw_config_build *build;
    const struct lw_config_topic *topic;
    const char *group;
    const struct lw_node *node;
    struct lw_text out;
};

/* Puts the placeholder at `at` in; returns what follows it, NULL after reporting. */
static const char *
fill_one(struct filling *filling, const char *at)
{
    char name[PLACEHOLDER_BYTES_MAX];
    const char *end = strchr(at, '}');
    size_t length = end ? (size_t)(end - at - 1) : strlen(at + 1);
    length = length < sizeof(name) - 1 ? length : sizeof(name) - 1;
    memcpy(name, at + 1, length);
    name[length] = '\0';
    const char *value = end ? look_up(filling->topic, filling->group, name) : NULL;
    if (!value) {
        refuse_placeholder(filling->build, filling->topic, name, filling->node);
        return NULL;
    }
    lw_text_append(&filling->out, value);
    return end + 1;
}

const char *
lw_config_topics_fill(struct lw_config_build *build, const char *text,
                      const struct lw_config_topic *topic, const char *group,
                      const struct lw_node *node)
{
    struct filling filling = { .build = build, .topic = topic, .group = group, .node = node };
    struct lw_text *out = &filling.out;
    lw_text_init(out);
    while (text && *text) {
        size_t length = strcspn(text, "{");
        lw_text_append_bytes(out, text, length);
        text += length;
        text = *text == '{' ? fill_one(&filling, text) : text;
    }
    build->arena->is_failed |= out->is_failed;
    char *filled = text && out->size > 0 && !out->is_failed
                       ? lw_config_arena_text(build->arena, out->data, out->size)
                       : NULL;
    lw_text_deinit(out);
    return filled;
}

static struct lw_config_topic *
expand_list(struct lw_config_build *build, const struct lw_config_broker *broker,
            struct lw_node *list, size_t *ret_count)
{
    size_t room = lw_config_build_count(list);
    struct lw_config_topic *topics = lw_config_arena_array(build->arena, room + 1,
                                                           sizeof(topics[0]));
    for (struct lw_node *entry = list->first; topics && entry; entry = entry->next) {
        if (!lw_config_build_is_usable(entry)) {
            continue;
        }
        struct lw_subscription_options options;
        lw_subscription_options_init(&options);
        lw_config_bind(entry, lw_topic_entry_rows, &options, build->arena);
        struct lw_config_topic topic = {
            .name = options.topic, .priority = options.priority, .node = entry, .entry = entry
        };
        if (topic.name && check_source(build, broker, &topic, lw_node_child(entry, "name"))) {
            topics[(*ret_count)++] = topic;
        }
    }
    return topics;
}

static bool
has_placeholder(const char *pattern, const char *name)
{
    char wanted[PLACEHOLDER_BYTES_MAX + 8];
    (void)snprintf(wanted, sizeof(wanted), "{%.*s}", PLACEHOLDER_BYTES_MAX, name);
    return strstr(pattern, wanted) != NULL;
}

/* Every map must show in the name, or two topics would be one. */
static bool
check_pattern(struct lw_config_build *build, const struct lw_config_family *family,
              const char *pattern, const struct lw_node *node)
{
    for (size_t i = 0; i < family->map_count; i++) {
        if (!has_placeholder(pattern, family->maps[i]->key)) {
            struct lw_diagnostic *item = lw_diagnostics_add(
                build->diagnostics, LW_SEVERITY_ERROR, "E0304", &node->place,
                "the name does not use \"%s\", so several topics would be one",
                family->maps[i]->key);
            lw_diagnostic_show(item, &family->maps[i]->key_place);
            lw_diagnostic_help(item, "put {%s} into the name", family->maps[i]->key);
            return false;
        }
    }
    return true;
}

/* Topic number `index` of the family, still without a name: the last map turns fastest. */
static int64_t
choose_levels(const struct lw_config_family *family, size_t index,
              struct lw_config_topic *topic)
{
    int64_t priority = 0;
    topic->level_count = family->map_count;
    for (size_t i = family->map_count; i-- > 0;) {
        const struct lw_config_level *level = &family->levels[i][index % family->counts[i]];
        index /= family->counts[i];
        topic->level_names[i] = family->maps[i]->key;
        topic->level_values[i] = level->name;
        priority += level->value;
    }
    return priority;
}

static bool
make_member(struct lw_config_build *build, const struct lw_config_broker *broker,
            const struct lw_config_family *family, size_t index,
            struct lw_config_topic *ret_topic)
{
    const struct lw_node *matrix = family->matrix;
    const struct lw_node *name = lw_node_child(matrix, "name");
    struct lw_config_topic topic = { .node = matrix };
    int64_t priority = choose_levels(family, index, &topic);
    if (priority > INT32_MAX || priority < INT32_MIN) {
        lw_diagnostics_add(build->diagnostics, LW_SEVERITY_ERROR, "E0105",
                           lw_node_name_place(matrix),
                           "a priority of this matrix is too large");
        return false;
    }
    topic.priority = (int32_t)priority;
    topic.name = lw_config_topics_fill(build, name->text, &topic, NULL, name);
    bool is_good = topic.name && check_source(build, broker, &topic, name);
    *ret_topic = topic;
    return is_good;
}

static struct lw_config_topic *
expand_matrix(struct lw_config_build *build, const struct lw_config_broker *broker,
              struct lw_node *matrix, size_t *ret_count)
{
    struct lw_config_family family;
    const char *pattern = lw_config_bind_text(matrix, "name", build->arena);
    if (!lw_config_family_read(build, matrix, &family) || !pattern ||
        !check_pattern(build, &family, pattern, lw_node_child(matrix, "name"))) {
        return NULL;
    }
    lw_node_child(matrix, "name")->text = pattern;
    size_t total = 1;
    for (size_t i = 0; i < family.map_count; i++) {
        total *= family.counts[i];
    }
    struct lw_config_topic *topics = lw_config_arena_array(build->arena, total,
                                                           sizeof(topics[0]));
    for (size_t i = 0; topics && i < total; i++) {
        if (!make_member(build, broker, &family, i, &topics[i])) {
            return NULL;
        }
        (*ret_count)++;
    }
    return topics;
}

struct lw_config_topic *
lw_config_topics_expand(struct lw_config_build *build,
                        const struct lw_config_pipeline *pipeline, size_t *ret_count)
{
    struct lw_node *topics = lw_node_child(pipeline->node, "topics");
    *ret_count = 0;
    if (!topics || topics->is_bad) {
        return NULL;
    }
    if (topics->kind == LW_NODE_LIST) {
        return expand_list(build, pipeline->broker, topics, ret_count);
    }
    struct lw_node *matrix = lw_node_child(topics, "matrix");
    if (!matrix || !lw_config_build_is_usable(matrix)) {
        return NULL;
    }
    struct lw_config_topic *family = expand_matrix(build, pipeline->broker, matrix, ret_count);
    *ret_count = family ? *ret_count : 0;
    return family;
}
