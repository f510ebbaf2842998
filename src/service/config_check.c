/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules about topics: who reads what in which group, and where dead letters and replies end up.
 * Subscriptions are sorted once by what they read; everything else is a search in that order.
 */
#include "service/config_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/config_plan.h"

enum { SAMPLE_BYTES_MAX = 512 };

/* What the rules of this file work on. */
struct readers {
    struct lw_config_build *build;
    const struct lw_config_subscription **sorted; /* by broker, topic, group */
    size_t count;
    size_t pattern_count; /* of those that read all topics of a pattern */
    uint32_t *visited;    /* by place in `sorted`: number of the search that came by */
    size_t *queue;
    uint32_t search;
};

const struct lw_node *
lw_config_check_given(const struct lw_node *map, const char *path)
{
    const struct lw_node *node = lw_node_at(map, path);
    return node && !node->is_bad && node->row ? node : NULL;
}

void
lw_config_check_useless(struct lw_config_build *build, const struct lw_node *node,
                        const char *reason)
{
    if (node) {
        lw_diagnostics_add(build->diagnostics, LW_SEVERITY_WARNING, "W0308",
                           lw_node_name_place(node), "\"%s\" has no effect: %s", node->key,
                           reason);
    }
}

static int
compare_text(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "");
}

static int
compare_topic(const struct lw_config_subscription *item, const char *broker, const char *topic)
{
    int order = compare_text(item->options.broker, broker);
    return order != 0 ? order : compare_text(item->topic_id, topic);
}

static int
compare_reader(const void *a, const void *b)
{
    const struct lw_config_subscription *left = *(
        const struct lw_config_subscription *const *)a;
    const struct lw_config_subscription *right = *(
        const struct lw_config_subscription *const *)b;
    int order = compare_topic(left, right->options.broker, right->topic_id);
    if (order == 0) {
        order = compare_text(left->options.subscription, right->options.subscription);
    }
    return order != 0 ? order : left < right ? -1 : left > right;
}

/* A pattern of this broker that has the topic; `count` when there is none. */
static size_t
first_pattern(const struct readers *readers, const char *broker, const char *topic)
{
    for (size_t i = 0; readers->pattern_count > 0 && i < readers->count; i++) {
        const struct lw_config_subscription *item = readers->sorted[i];
        const struct lw_config_client *client = lw_config_build_client(readers->build,
                                                                       item->pipeline->broker);
        if (item->is_pattern && compare_text(item->options.broker, broker) == 0 && client &&
            client->has_topic(item->topic_id, topic)) {
            return i;
        }
    }
    return readers->count;
}

/* Finds the first reader of a topic; `count` when there is none. */
static size_t
first_reader(const struct readers *readers, const char *broker, const char *topic)
{
    size_t low = 0;
    size_t high = readers->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_topic(readers->sorted[middle], broker, topic) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    bool is_found = low < readers->count &&
                    compare_topic(readers->sorted[low], broker, topic) == 0;
    return is_found ? low : first_pattern(readers, broker, topic);
}

/* Goes on to the next reader of the same topic; `count` at the end. */
static size_t
next_reader(const struct readers *readers, const char *broker, const char *topic, size_t at)
{
    bool is_next = !readers->sorted[at]->is_pattern && at + 1 < readers->count &&
                   compare_topic(readers->sorted[at + 1], broker, topic) == 0;
    return is_next ? at + 1 : readers->count;
}

static const char *
group_shown(const struct lw_config_pipeline *pipeline)
{
    const struct lw_node *node = lw_node_at(pipeline->node, "consumer.group");
    return node && node->is_secret ? "***" : pipeline->group;
}

static void
check_twice(struct readers *readers, size_t index)
{
    const struct lw_config_subscription *first = readers->sorted[index - 1];
    const struct lw_config_subscription *second = readers->sorted[index];
    const struct lw_subscription_options *options = &second->options;
    if (compare_topic(first, options->broker, second->topic_id) != 0 ||
        compare_text(first->options.subscription, options->subscription) != 0 ||
        !options->subscription) {
        return;
    }
    const struct lw_node *name = lw_node_child(second->node, "name");
    const char *topic = lw_config_name_shown(second, LW_CONFIG_NAME_TOPIC);
    struct lw_diagnostic *item = NULL;
    if (first->pipeline == second->pipeline) {
        item = lw_diagnostics_add(readers->build->diagnostics, LW_SEVERITY_ERROR, "E0301",
                                  &name->place, "the topic \"%s\" is there twice", topic);
        lw_diagnostic_show(item, &lw_node_child(first->node, "name")->place);
        return;
    }
    item = lw_diagnostics_add(
        readers->build->diagnostics, LW_SEVERITY_ERROR, "E0301", &name->place,
        "pipelines \"%s\" and \"%s\" both read \"%s\" in group \"%s\"", first->pipeline->name,
        second->pipeline->name, topic, group_shown(second->pipeline));
    lw_diagnostic_show(item, &lw_node_child(first->node, "name")->place);
    lw_diagnostic_help(item,
                       "a group gives each message to one reader: give one of them a group "
                       "of its own, or put the topic into one pipeline");
}

static const char *
dead_letter_broker(const struct lw_config_subscription *item)
{
    return item->options.dead_letter.broker ? item->options.dead_letter.broker
                                            : item->options.broker;
}

/* Puts the readers of `from`'s dead letters into the queue, each once per search. */
static size_t
follow(struct readers *readers, const struct lw_config_subscription *from, size_t used)
{
    const char *broker = dead_letter_broker(from);
    const char *topic = from->dead_letter_id;
    size_t at = topic ? first_reader(readers, broker, topic) : readers->count;
    for (; at < readers->count; at = next_reader(readers, broker, topic, at)) {
        if (readers->visited[at] != readers->search) {
            readers->visited[at] = readers->search;
            readers->queue[used++] = at;
        }
    }
    return used;
}

/* True when dead letters of `start` come back to the topic that it reads. */
static bool
comes_back(struct readers *readers, const struct lw_config_subscription *start)
{
    readers->search++;
    size_t used = follow(readers, start, 0);
    for (size_t i = 0; i < used; i++) {
        const struct lw_config_subscription *reader = readers->sorted[readers->queue[i]];
        if (reader == start ||
            compare_topic(reader, start->options.broker, start->topic_id) == 0) {
            return true;
        }
        used = follow(readers, reader, used);
    }
    return false;
}

/*
 * A pattern such as "orders_.*" also has the dead-letter topics of what it has, when they are
 * named after it. A topic of the pattern is made up, and the name of its dead letters tried.
 */
static bool
has_own_dead_letters(const struct readers *readers, const struct lw_config_subscription *item)
{
    static const char placeholder[] = "{topic}";
    char topic[SAMPLE_BYTES_MAX];
    char name[2 * SAMPLE_BYTES_MAX];
    const char *pattern = item->dead_letter_topic;
    const char *hole = item->is_pattern && pattern ? strstr(pattern, placeholder) : NULL;
    const struct lw_config_client *client = lw_config_build_client(readers->build,
                                                                   item->pipeline->broker);
    if (!hole || !client || strlen(item->topic_id) >= sizeof(topic)) {
        return false;
    }
    char *out = topic;
    for (const char *at = item->topic_id; *at; at++) {
        bool is_any = at[0] == '.' && (at[1] == '*' || at[1] == '+');
        *out++ = is_any ? 'x' : *at;
        at += is_any ? 1 : 0;
    }
    *out = '\0';
    int length = snprintf(name, sizeof(name), "%.*s%s%s", (int)(hole - pattern), pattern, topic,
                          hole + sizeof(placeholder) - 1);
    return length > 0 && (size_t)length < sizeof(name) &&
           client->has_topic(item->topic_id, topic) && client->has_topic(item->topic_id, name);
}

static void
check_pattern_loop(struct readers *readers, const struct lw_config_subscription *item)
{
    const struct lw_node *node = lw_config_check_given(item->pipeline->node,
                                                       "dead_letter.topic");
    if (has_own_dead_letters(readers, item)) {
        struct lw_diagnostic *refused = lw_diagnostics_add(
            readers->build->diagnostics, LW_SEVERITY_ERROR, "E0302",
            node ? &node->place : lw_node_name_place(item->node),
            "the pattern \"%s\" also reads its own dead letters, \"%s\": they would come back "
            "for ever",
            lw_config_name_shown(item, LW_CONFIG_NAME_TOPIC),
            lw_config_name_shown(item, LW_CONFIG_NAME_DEAD_LETTER));
        lw_diagnostic_help(refused, "give a dead_letter.topic that the pattern does not have");
    }
}

static void
check_loop(struct readers *readers, const struct lw_config_subscription *start)
{
    if (!start->dead_letter_id || !comes_back(readers, start)) {
        return;
    }
    const struct lw_node *node = lw_config_check_given(start->pipeline->node,
                                                       "dead_letter.topic");
    const struct lw_place *place = node ? &node->place : lw_node_name_place(start->node);
    bool is_direct = strcmp(start->dead_letter_id, start->topic_id) == 0;
    struct lw_diagnostic *item = lw_diagnostics_add(
        readers->build->diagnostics, LW_SEVERITY_ERROR, "E0302", place,
        is_direct
            ? "dead letters of \"%s\" go to \"%s\", the topic itself: they would come back "
              "for ever"
            : "dead letters of \"%s\" go to \"%s\", which is read here and leads back: they "
              "would go round for ever",
        lw_config_name_shown(start, LW_CONFIG_NAME_TOPIC),
        lw_config_name_shown(start, LW_CONFIG_NAME_DEAD_LETTER));
    lw_diagnostic_help(item, "choose a dead-letter topic that no pipeline here reads");
}

static void
check_reply(struct readers *readers, const struct lw_config_subscription *from)
{
    const struct lw_reply_options *reply = &from->options.reply;
    const char *broker = reply->broker ? reply->broker : from->options.broker;
    size_t at = from->reply_id ? first_reader(readers, broker, from->reply_id) : readers->count;
    const struct lw_node *node = lw_config_check_given(from->pipeline->node, "reply.topic");
    if (at < readers->count && node) {
        lw_diagnostics_add(readers->build->diagnostics, LW_SEVERITY_WARNING, "W0310",
                           &node->place,
                           "replies go to \"%s\", which pipeline \"%s\" reads as messages",
                           lw_config_name_shown(from, LW_CONFIG_NAME_REPLY),
                           readers->sorted[at]->pipeline->name);
    }
}

static void
warn_retry(struct readers *readers, const struct lw_config_subscription *from, const char *code,
           const char *message, const char *help)
{
    const struct lw_config_pipeline *pipeline = from->pipeline;
    enum lw_warnings mode = readers->build->config->service.dispatcher.retry_warnings;
    const struct lw_node *node = lw_config_check_given(pipeline->node, "retry.topic");
    const struct lw_place *place = node ? &node->place : lw_node_name_place(pipeline->node);
    bool is_error = mode == LW_WARNINGS_ERROR;
    if (mode == LW_WARNINGS_SILENT) {
        return;
    }
    struct lw_diagnostic *item = lw_diagnostics_add(
        readers->build->diagnostics, is_error ? LW_SEVERITY_ERROR : LW_SEVERITY_WARNING,
        is_error ? "E0309" : code, place, "%s \"%s\"", message,
        lw_config_name_shown(from, LW_CONFIG_NAME_RETRY));
    lw_diagnostic_help(item, "%s", help);
}

/* True when an earlier topic of the pipeline has the same retry topic: it is said once. */
static bool
is_said(const struct lw_config *config, const struct lw_config_subscription *from)
{
    const struct lw_config_subscription *each = &config->subscriptions[from->pipeline->first];
    while (each != from && compare_text(each->retry_id, from->retry_id) != 0) {
        each++;
    }
    return each != from;
}

/*
 * Where the broker delays by itself, a copy in a retry topic waits for somebody to read it, and
 * the delay is kept for members that share only.
 */
static void
check_retry_reader(struct readers *readers, const struct lw_config_subscription *from)
{
    const struct lw_config_pipeline *pipeline = from->pipeline;
    const char *topic = from->retry_id;
    bool is_read_here = pipeline->broker && lw_config_traits(pipeline->broker->kind)->has_tiers;
    if (!topic || !pipeline->broker || is_read_here || is_said(readers->build->config, from)) {
        return;
    }
    size_t at = first_reader(readers, from->options.broker, topic);
    if (at == readers->count && !from->options.retry.is_external) {
        warn_retry(readers, from, "W0301", "nobody here reads the retry topic",
                   "add it to the topics of a pipeline, or say external: true when "
                   "somebody else reads it");
    }
    for (; at < readers->count; at = next_reader(readers, from->options.broker, topic, at)) {
        if (readers->sorted[at]->pipeline->consumer.keeps_all) {
            warn_retry(readers, from, "W0316",
                       "delays are not kept, since its subscription is not shared: retry topic",
                       "read it in a pipeline with consumer.type: shared or key_shared; on "
                       "others the broker delivers at once");
            return;
        }
    }
}

/* One topic has one spelling, in logs and reports, too. */
static void
spell_alike(struct readers *readers, struct lw_config_subscription *from)
{
    size_t at = from->retry_id ? first_reader(readers, from->options.broker, from->retry_id)
                               : readers->count;
    if (at < readers->count && !readers->sorted[at]->is_pattern) {
        from->options.retry.topic = readers->sorted[at]->options.topic;
    }
}

static bool
has_property(const struct lw_config_pipeline *pipeline, const struct lw_property *wanted)
{
    for (size_t i = 0; i < pipeline->property_count; i++) {
        if (strcmp(pipeline->properties[i].name, wanted->name) == 0) {
            return strcmp(pipeline->properties[i].value, wanted->value) == 0;
        }
    }
    return false;
}

static bool
has_same_properties(const struct lw_config_pipeline *a, const struct lw_config_pipeline *b)
{
    bool is_same = a->property_count == b->property_count;
    for (size_t i = 0; is_same && i < a->property_count; i++) {
        is_same = has_property(b, &a->properties[i]);
    }
    return is_same;
}

static int
compare_group(const void *a, const void *b)
{
    const struct lw_config_pipeline *left = *(const struct lw_config_pipeline *const *)a;
    const struct lw_config_pipeline *right = *(const struct lw_config_pipeline *const *)b;
    int order = compare_text(left->broker_name, right->broker_name);
    if (order == 0) {
        order = compare_text(left->group, right->group);
    }
    return order != 0 ? order : left < right ? -1 : left > right;
}

static const struct lw_place *
properties_place(const struct lw_config_pipeline *pipeline)
{
    const struct lw_node *node = lw_config_check_given(pipeline->node, "consumer.properties");
    node = node ? node : lw_node_child(pipeline->node, "consumer");
    return lw_node_name_place(node ? node : pipeline->node);
}

static void
check_groups(struct lw_config_build *build)
{
    const struct lw_config *config = build->config;
    const struct lw_config_pipeline **sorted = lw_config_arena_array(
        build->arena, config->pipeline_count + 1, sizeof(void *));
    for (size_t i = 0; sorted && i < config->pipeline_count; i++) {
        sorted[i] = &config->pipelines[i];
    }
    if (sorted && config->pipeline_count > 1) {
        qsort(sorted, config->pipeline_count, sizeof(void *), compare_group);
    }
    for (size_t i = 1; sorted && i < config->pipeline_count; i++) {
        const struct lw_config_pipeline *first = sorted[i - 1];
        const struct lw_config_pipeline *second = sorted[i];
        bool is_alone = first->broker && first->broker->kind == LW_CONFIG_PULSAR;
        if (!first->group || is_alone ||
            compare_text(first->broker_name, second->broker_name) != 0 ||
            compare_text(first->group, second->group) != 0 ||
            has_same_properties(first, second)) {
            continue;
        }
        struct lw_diagnostic *item = lw_diagnostics_add(
            build->diagnostics, LW_SEVERITY_ERROR, "E0306", properties_place(second),
            "pipelines \"%s\" and \"%s\" share group \"%s\", but their consumer.properties "
            "differ",
            first->name, second->name, group_shown(first));
        lw_diagnostic_show(item, properties_place(first));
        lw_diagnostic_help(item,
                           "one client reads for a group: make them the same, or give one "
                           "pipeline a group of its own");
    }
}

void
lw_config_check_topics(struct lw_config_build *build)
{
    const struct lw_config *config = build->config;
    size_t count = config->subscription_count;
    struct readers readers = { .build = build, .count = count };
    readers.sorted = lw_config_arena_array(build->arena, count + 1, sizeof(void *));
    readers.visited = lw_config_arena_array(build->arena, count + 1, sizeof(uint32_t));
    readers.queue = lw_config_arena_array(build->arena, count + 1, sizeof(size_t));
    if (!readers.sorted || !readers.visited || !readers.queue) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        readers.sorted[i] = &config->subscriptions[i];
        readers.pattern_count += config->subscriptions[i].is_pattern;
    }
    if (count > 1) {
        qsort(readers.sorted, count, sizeof(void *), compare_reader);
    }
    for (size_t i = 1; i < count; i++) {
        check_twice(&readers, i);
    }
    for (size_t i = 0; i < count; i++) {
        check_loop(&readers, &config->subscriptions[i]);
        check_pattern_loop(&readers, &config->subscriptions[i]);
        check_reply(&readers, &config->subscriptions[i]);
        check_retry_reader(&readers, &config->subscriptions[i]);
        spell_alike(&readers, &config->subscriptions[i]);
    }
    check_groups(build);
}
