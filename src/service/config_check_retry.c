/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules about retries, dead letters and replies of one pipeline. There are two ways to retry, in
 * place and by republication, and each counts in words of its own; a word of the other way is an
 * error, because it would silently do nothing.
 */
#include "service/config_check.h"

#include <string.h>

enum { MEASURE_BYTES_MAX = 64, TIERS_MAX = 16, TIER_MS_MAX = 24 * 60 * 60 * 1000 };

enum lw_ordering
lw_config_ordering(const struct lw_config_subscription *subscription)
{
    const struct lw_config_broker *broker = subscription->pipeline->broker;
    enum lw_ordering ordering = subscription->options.ordering;
    if (ordering != LW_ORDERING_DEFAULT) {
        return ordering;
    }
    return lw_config_traits(broker ? broker->kind : LW_CONFIG_KAFKA)->ordering;
}

bool
lw_config_is_in_place(const struct lw_config_subscription *subscription)
{
    const struct lw_retry_options *retry = &subscription->options.retry;
    const struct lw_config_broker *broker = subscription->pipeline->broker;
    if (retry->in_place != LW_DEFAULT && retry->topic) {
        return retry->in_place == LW_YES;
    }
    return retry->in_place == LW_YES ||
           (!retry->topic &&
            lw_config_traits(broker ? broker->kind : LW_CONFIG_KAFKA)->retries_in_place);
}

/* What is true of a pipeline before its topics are put in. */
static struct lw_config_subscription
as_subscription(const struct lw_config_pipeline *pipeline)
{
    return (struct lw_config_subscription){ .options = pipeline->common, .pipeline = pipeline };
}

static struct lw_diagnostic *
refuse(struct lw_config_build *build, const char *code, const struct lw_node *node,
       const char *message)
{
    return lw_diagnostics_add(build->diagnostics, LW_SEVERITY_ERROR, code,
                              lw_node_name_place(node), "%s", message);
}

static void
check_order(struct lw_config_build *build, const struct lw_config_pipeline *pipeline)
{
    struct lw_config_subscription whole = as_subscription(pipeline);
    enum lw_ordering ordering = lw_config_ordering(&whole);
    const struct lw_retry_options *retry = &pipeline->common.retry;
    const struct lw_node *order = lw_node_child(pipeline->node, "ordering");
    if (!retry->topic || retry->allow_overtaking || ordering == LW_ORDERING_NONE ||
        (order && order->is_bad)) {
        return;
    }
    const struct lw_node *node = lw_config_check_given(pipeline->node, "retry.topic");
    node = node ? node : lw_node_child(pipeline->node, "retry");
    const char *word = ordering == LW_ORDERING_PARTITION ? "partition" : "key";
    struct lw_diagnostic *item = lw_diagnostics_add(
        build->diagnostics, LW_SEVERITY_ERROR, "E0307", lw_node_name_place(node),
        "a retry topic breaks \"ordering: %s\": later messages of the %s would overtake the "
        "retried one",
        word, word);
    if (order) {
        lw_diagnostic_show(item, lw_node_name_place(order));
    }
    lw_diagnostic_help(item,
                       "use \"in_place: true\" to hold the %s while it is retried, or "
                       "\"allow_overtaking: true\" if you accept it",
                       word);
}

static void
check_republication(struct lw_config_build *build, const struct lw_config_pipeline *pipeline)
{
    static const char *const keys[] = { "retry.tiers", "retry.external",
                                        "retry.allow_overtaking" };
    const struct lw_node *bad_topic = lw_node_at(pipeline->node, "retry.topic");
    if (pipeline->common.retry.topic || bad_topic) {
        return;
    }
    const struct lw_node *count = lw_config_check_given(pipeline->node, "retry.max_retries");
    if (count) {
        struct lw_diagnostic *item = refuse(
            build, "E0308", count,
            "\"max_retries\" counts copies in a retry topic, but there is none");
        lw_diagnostic_help(item,
                           "write max_attempts (runs in all) for retries in place, or add "
                           "retry.topic");
    }
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const struct lw_node *node = lw_config_check_given(pipeline->node, keys[i]);
        if (node) {
            struct lw_diagnostic *item = lw_diagnostics_add(
                build->diagnostics, LW_SEVERITY_ERROR, "E0308", lw_node_name_place(node),
                "\"%s\" belongs to a retry topic, but there is none", node->key);
            lw_diagnostic_help(item, "add retry.topic, or leave the key out");
        }
    }
}

static void
check_in_place(struct lw_config_build *build, const struct lw_config_pipeline *pipeline)
{
    struct lw_config_subscription whole = as_subscription(pipeline);
    const struct lw_retry_options *retry = &pipeline->common.retry;
    const struct lw_node *attempts = lw_config_check_given(pipeline->node,
                                                           "retry.max_attempts");
    const struct lw_node *own = lw_config_check_given(pipeline->node, "retry.in_place_backoff");
    if (lw_config_is_in_place(&whole)) {
        const struct lw_node *off = lw_config_check_given(pipeline->node, "retry.in_place");
        bool is_off = off && strcmp(off->text, "false") == 0;
        lw_config_check_useless(build, is_off ? off : NULL,
                                "without a retry topic, retries run in place");
        const struct lw_node *shared = lw_config_check_given(pipeline->node, "retry.backoff");
        lw_config_check_useless(build, own && !retry->topic ? shared : NULL,
                                "retries run in place, and \"in_place_backoff\" is given");
        return;
    }
    if (attempts) {
        struct lw_diagnostic *item = refuse(
            build, "E0308", attempts,
            "\"max_attempts\" counts runs in place, but retries go to a topic");
        lw_diagnostic_help(item, "write max_retries, or in_place: true to do both");
    }
    if (own) {
        struct lw_diagnostic *item = refuse(
            build, "E0308", own,
            "\"in_place_backoff\" is for retries in place, but they go to a topic");
        lw_diagnostic_help(item, "write backoff, or in_place: true to do both");
    }
}

static void
check_backoff(struct lw_config_build *build, const struct lw_config_pipeline *pipeline,
              const char *path, const struct lw_backoff_options *backoff)
{
    char initial[MEASURE_BYTES_MAX];
    char limit[MEASURE_BYTES_MAX];
    const struct lw_node *node = lw_config_check_given(pipeline->node, path);
    if (node && backoff->initial_ms > backoff->max_ms) {
        const struct lw_node *max = lw_config_check_given(node, "max");
        lw_text_from_duration_ms(backoff->initial_ms, initial, sizeof(initial));
        lw_text_from_duration_ms(backoff->max_ms, limit, sizeof(limit));
        lw_diagnostics_add(build->diagnostics, LW_SEVERITY_ERROR, "E0310",
                           lw_node_name_place(max ? max : node),
                           "the first delay (%s) is longer than the longest (%s)", initial,
                           limit);
    }
}

static void
check_tiers(struct lw_config_build *build, const struct lw_config_pipeline *pipeline)
{
    const struct lw_retry_options *retry = &pipeline->common.retry;
    const struct lw_node *node = lw_config_check_given(pipeline->node, "retry.tiers");
    if (!node) {
        return;
    }
    for (size_t i = 0; i < retry->tier_count; i++) {
        if (i >= TIERS_MAX || retry->tiers_ms[i] > TIER_MS_MAX ||
            retry->tiers_ms[i] <= (i > 0 ? retry->tiers_ms[i - 1] : 0)) {
            struct lw_diagnostic *item = refuse(
                build, "E0310", node,
                "tiers must ascend, be longer than 0 and at most 1d, and be at most 16");
            lw_diagnostic_help(item, "such as tiers: [1s, 10s, 1m]");
            return;
        }
    }
    if (pipeline->broker && !lw_config_traits(pipeline->broker->kind)->has_tiers) {
        lw_config_check_useless(build, node, "this broker delays a message by itself");
    }
}

static void
check_dead_letter(struct lw_config_build *build, const struct lw_config_pipeline *pipeline)
{
    const struct lw_subscription_options *common = &pipeline->common;
    const struct lw_node *node = lw_config_check_given(pipeline->node, "dead_letter");
    if (common->dead_letter.is_off && common->on_exhausted == LW_ON_EXHAUSTED_DROP && node) {
        struct lw_place place = lw_node_whole(node);
        struct lw_diagnostic *item = lw_diagnostics_add(
            build->diagnostics, LW_SEVERITY_WARNING, "W0303", &place,
            "without dead letters, messages that cannot be handled are logged and dropped");
        lw_diagnostic_help(item, "on_exhausted: hold or stop keeps them");
    }
    const struct lw_node *exhausted = lw_config_check_given(pipeline->node, "on_exhausted");
    lw_config_check_useless(build, common->dead_letter.is_off ? NULL : exhausted,
                            "there is a dead-letter topic");
    const char *retry = common->retry.topic;
    if (retry && common->dead_letter.topic && strcmp(retry, common->dead_letter.topic) == 0) {
        const struct lw_node *topic = lw_config_check_given(pipeline->node,
                                                            "dead_letter.topic");
        refuse(build, "E0302", topic ? topic : pipeline->node,
               "the dead-letter topic is the retry topic: dead letters would be tried again");
    }
}

static void
check_reply(struct lw_config_build *build, const struct lw_config_pipeline *pipeline)
{
    static const char *const keys[] = { "reply.broker", "reply.key", "reply.on_oversize" };
    if (lw_node_at(pipeline->node, "reply.topic")) {
        return;
    }
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        lw_config_check_useless(build, lw_config_check_given(pipeline->node, keys[i]),
                                "there is no reply.topic");
    }
}

static void
check_redeliver(struct lw_config_build *build, const struct lw_config_pipeline *pipeline)
{
    const struct lw_node *node = lw_config_check_given(pipeline->node, "on_error");
    if (node && pipeline->common.on_error == LW_ON_ERROR_REDELIVER && pipeline->broker &&
        !lw_config_traits(pipeline->broker->kind)->has_nack) {
        struct lw_place place = lw_node_whole(node);
        lw_diagnostics_add(
            build->diagnostics, LW_SEVERITY_NOTE, "W0307", &place,
            "this broker cannot take one message back: on_error: redeliver runs it again "
            "in place");
    }
}

void
lw_config_check_retry(struct lw_config_build *build)
{
    for (size_t i = 0; i < build->config->pipeline_count; i++) {
        const struct lw_config_pipeline *pipeline = &build->config->pipelines[i];
        const struct lw_retry_options *retry = &pipeline->common.retry;
        check_order(build, pipeline);
        check_republication(build, pipeline);
        check_in_place(build, pipeline);
        check_backoff(build, pipeline, "retry.backoff",
                      retry->topic ? &retry->backoff : &retry->in_place_backoff);
        check_backoff(build, pipeline, "retry.in_place_backoff", &retry->in_place_backoff);
        check_tiers(build, pipeline);
        check_dead_letter(build, pipeline);
        check_reply(build, pipeline);
        check_redeliver(build, pipeline);
    }
}
