/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pipelines to subscriptions. The pipeline's options are filled once (defaults, profile, its own
 * values, the handler's), then copied for every topic, which lays its own values over them and
 * gets its names for retries, dead letters and replies.
 */
#include <stdlib.h>
#include <string.h>

#include "service/config_bind.h"
#include "service/config_build.h"
#include "service/config_errors.h"
#include "service/config_rows.h"
#include "service/options.h"

static const struct lw_node *
usable_at(const struct lw_node *map, const char *path)
{
    const struct lw_node *node = lw_node_at(map, path);
    return node && !node->is_bad ? node : NULL;
}

static void
resolve_references(struct lw_config_build *build, struct lw_config_pipeline *pipeline)
{
    const struct lw_config *config = build->config;
    pipeline->broker = lw_config_broker(config, pipeline->broker_name);
    pipeline->handler = lw_config_handler(config, pipeline->handler_name);
    const struct lw_node *brokers = lw_node_child(config->root, "brokers");
    const struct lw_node *handlers = lw_node_child(config->root, "handlers");
    static const char *const others[] = { "dead_letter.broker", "reply.broker" };
    if (pipeline->broker_name && !lw_node_child(brokers, pipeline->broker_name)) {
        lw_config_build_unknown(build, lw_node_child(pipeline->node, "broker"), "E0201",
                                "broker", brokers);
    }
    if (pipeline->handler_name && !lw_node_child(handlers, pipeline->handler_name)) {
        lw_config_build_unknown(build, lw_node_child(pipeline->node, "handler"), "E0202",
                                "handler", handlers);
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        const struct lw_node *node = usable_at(pipeline->node, others[i]);
        if (node && node->kind == LW_NODE_SCALAR && !lw_node_child(brokers, node->text)) {
            lw_config_build_unknown(build, node, "E0201", "broker", brokers);
        }
    }
}

/*
 * `backoff` means the one way of retrying that is configured; with both ways it means
 * republication and `in_place_backoff` the other.
 */
static void
share_backoff(struct lw_config_build *build, struct lw_config_pipeline *pipeline)
{
    struct lw_node *backoff = lw_node_at(pipeline->node, "retry.backoff");
    struct lw_retry_options *retry = &pipeline->common.retry;
    bool is_copied = !retry->topic && !lw_node_has(pipeline->node, "retry.in_place_backoff");
    if (backoff && !backoff->is_bad && backoff->kind == LW_NODE_MAP && is_copied) {
        lw_config_bind(backoff, lw_backoff_rows, &retry->in_place_backoff, build->arena);
    }
}

static enum lw_config_broker_kind
kind_of(const struct lw_config_pipeline *pipeline)
{
    return pipeline->broker ? pipeline->broker->kind : LW_CONFIG_KAFKA;
}

/*
 * A retry topic by convention, when only what belongs to one is given and nothing says that
 * retries run in place. Without a topic `in_place: false` says nothing where that is the default.
 */
static void
default_retry_topic(struct lw_config_pipeline *pipeline)
{
    struct lw_retry_options *retry = &pipeline->common.retry;
    const struct lw_config_traits *traits = lw_config_traits(kind_of(pipeline));
    bool is_wanted = lw_node_has(pipeline->node, "retry.max_retries") ||
                     lw_node_has(pipeline->node, "retry.tiers");
    bool is_in_place = retry->in_place == LW_YES ||
                       (retry->in_place == LW_DEFAULT && traits->retries_in_place);
    if (!retry->topic && !is_in_place && is_wanted) {
        retry->topic = traits->retry;
    } else if (!retry->topic && retry->in_place == LW_NO && traits->retries_in_place) {
        retry->in_place = LW_DEFAULT;
    }
}

static void
fill_common(struct lw_config_build *build, struct lw_config_pipeline *pipeline,
            struct lw_node *entry)
{
    struct lw_subscription_options *common = &pipeline->common;
    lw_subscription_options_init(common);
    lw_config_build_profile(common, entry, build->arena);
    lw_config_bind(entry, lw_pipeline_rows, pipeline, build->arena);
    resolve_references(build, pipeline);
    lw_config_build_consumer(build, pipeline);
    default_retry_topic(pipeline);
    share_backoff(build, pipeline);
    if (pipeline->handler) {
        lw_option_copy(lw_handler_rows, common, &pipeline->handler->run);
    }
    common->broker = pipeline->broker_name;
    common->subscription = pipeline->group;
    common->pipeline = pipeline->name;
    common->properties = pipeline->properties;
    common->property_count = pipeline->property_count;
    lw_config_errors_read(build, entry, common);
}

/* A name of a subscription being made: where it is given, and on which broker it is. */
struct naming {
    const char *path;
    const struct lw_config_broker *broker;
    const char *convention; /* NULL: it has none */
    bool is_retry;
    const char **id; /* for the topic's canonical name */
};

/*
 * Fills one pattern of the options; NULL stays NULL. A pattern's topics have names of their own,
 * which are put in when they are known.
 */
static const char *
fill_name(struct lw_config_build *build, const struct lw_config_pipeline *pipeline,
          const struct lw_config_topic *topic, const char *pattern, const struct naming *naming)
{
    const struct lw_node *given = usable_at(pipeline->node, naming->path);
    const struct lw_node *node = given ? given : topic->node;
    const char *name = NULL;
    if (pattern && pattern == naming->convention) {
        name = lw_config_topics_default(build, pipeline, topic, naming->is_retry);
    }
    if (pattern && !name) {
        name = lw_config_topics_fill(build, pattern, topic, pipeline->group, node);
    }
    if (!name || (topic->is_pattern && strstr(name, "{topic}"))) {
        return name;
    }
    *naming->id = lw_config_topics_check(build, naming->broker, name, node);
    return *naming->id ? name : NULL;
}

static const struct lw_config_broker *
other_broker(const struct lw_config_build *build, const struct lw_config_pipeline *pipeline,
             const char *name)
{
    return name ? lw_config_broker(build->config, name) : pipeline->broker;
}

static void
fill_names(struct lw_config_build *build, struct lw_config_subscription *subscription,
           const struct lw_config_topic *topic)
{
    const struct lw_config_pipeline *pipeline = subscription->pipeline;
    const struct lw_config_traits *traits = lw_config_traits(kind_of(pipeline));
    struct lw_subscription_options *options = &subscription->options;
    struct naming retry = { "retry.topic", pipeline->broker, traits->retry, true,
                            &subscription->retry_id };
    struct naming reply = { "reply.topic", other_broker(build, pipeline, options->reply.broker),
                            NULL, false, &subscription->reply_id };
    struct naming dead = { "dead_letter.topic",
                           other_broker(build, pipeline, options->dead_letter.broker),
                           traits->dead_letter, false, &subscription->dead_letter_id };
    options->retry.topic = fill_name(build, pipeline, topic, options->retry.topic, &retry);
    options->reply.topic = fill_name(build, pipeline, topic, options->reply.topic, &reply);
    if (options->dead_letter.is_off) {
        return;
    }
    bool is_given = options->dead_letter.topic != NULL;
    subscription->dead_letter_topic = fill_name(
        build, pipeline, topic, is_given ? options->dead_letter.topic : traits->dead_letter,
        &dead);
    options->dead_letter.topic = is_given ? subscription->dead_letter_topic : NULL;
}

static void
build_subscription(struct lw_config_build *build, struct lw_config_subscription *subscription,
                   const struct lw_config_pipeline *pipeline,
                   const struct lw_config_topic *topic)
{
    subscription->pipeline = pipeline;
    subscription->node = topic->node;
    subscription->options = pipeline->common;
    if (topic->entry) {
        lw_config_build_profile(&subscription->options, topic->node, build->arena);
        lw_config_bind(topic->entry, lw_topic_entry_rows, &subscription->options, build->arena);
    }
    subscription->is_pattern = topic->is_pattern;
    subscription->topic_id = topic->id;
    subscription->options.topic = topic->name;
    subscription->options.priority = topic->priority;
    fill_names(build, subscription, topic);
}

/* Makes room for `count` more by doubling; what was there before stays in the arena, unused. */
static bool
grow_subscriptions(struct lw_config_build *build, size_t count)
{
    struct lw_config *config = build->config;
    size_t total = config->subscription_count + count;
    if (total <= build->capacity) {
        return true;
    }
    size_t capacity = total > build->capacity * 2 ? total : build->capacity * 2;
    struct lw_config_subscription *grown = lw_config_arena_array(build->arena, capacity,
                                                                 sizeof(grown[0]));
    if (!grown) {
        return false;
    }
    if (config->subscription_count > 0) {
        memcpy(grown, config->subscriptions, config->subscription_count * sizeof(grown[0]));
    }
    config->subscriptions = grown;
    build->capacity = capacity;
    return true;
}

static void
build_topics(struct lw_config_build *build, struct lw_config_pipeline *pipeline)
{
    struct lw_config *config = build->config;
    size_t count = 0;
    struct lw_config_topic *topics = lw_config_topics_expand(build, pipeline, &count);
    if (config->subscription_count + count > LW_CONFIG_SUBSCRIPTIONS_MAX) {
        lw_diagnostics_add(build->diagnostics, LW_SEVERITY_ERROR, "E0304",
                           &pipeline->node->key_place,
                           "all pipelines together have more than 10,000 topics");
        return;
    }
    pipeline->first = config->subscription_count;
    if (!topics || count == 0 || !grow_subscriptions(build, count)) {
        return;
    }
    for (size_t i = 0; i < count && !build->arena->is_failed; i++) {
        build_subscription(build, &config->subscriptions[config->subscription_count++],
                           pipeline, &topics[i]);
    }
    pipeline->count = config->subscription_count - pipeline->first;
}

static int
compare_priority(const void *a, const void *b)
{
    int32_t left = (*(struct lw_config_subscription *const *)a)->options.priority;
    int32_t right = (*(struct lw_config_subscription *const *)b)->options.priority;
    return left < right ? -1 : left > right;
}

/* Equal priorities share a rank: they alternate. */
static void
rank_subscriptions(struct lw_config_build *build)
{
    struct lw_config *config = build->config;
    size_t count = config->subscription_count;
    struct lw_config_subscription **order = lw_config_arena_array(build->arena, count + 1,
                                                                  sizeof(void *));
    for (size_t i = 0; order && i < count; i++) {
        order[i] = &config->subscriptions[i];
    }
    if (order && count > 0) {
        qsort(order, count, sizeof(void *), compare_priority);
    }
    for (size_t i = 0; order && i < count; i++) {
        bool is_equal = i > 0 && order[i - 1]->options.priority == order[i]->options.priority;
        order[i]->rank = is_equal ? order[i - 1]->rank : (uint32_t)i + 1;
        order[i]->is_rank_shared = is_equal;
        if (is_equal) {
            order[i - 1]->is_rank_shared = true;
        }
    }
}

void
lw_config_build_pipelines(struct lw_config_build *build)
{
    struct lw_config *config = build->config;
    struct lw_node *map = lw_node_child(config->root, "pipelines");
    size_t count = lw_config_build_count(map);
    config->pipelines = lw_config_arena_array(build->arena, count,
                                              sizeof(config->pipelines[0]));
    for (struct lw_node *entry = map ? map->first : NULL;
         config->pipelines && entry && !build->arena->is_failed; entry = entry->next) {
        if (lw_config_build_is_usable(entry)) {
            struct lw_config_pipeline *pipeline = &config->pipelines[config->pipeline_count++];
            pipeline->name = entry->key;
            pipeline->node = entry;
            fill_common(build, pipeline, entry);
            build_topics(build, pipeline);
        }
    }
    rank_subscriptions(build);
}
