/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules about types of subscriptions: which order they can keep, which delays, and whose count of
 * failures leads to a dead letter. They stand on what the client made of type and properties
 * (struct lw_config_consumer), so they hold however the type was given.
 */
#include <string.h>

#include "service/config_check.h"

/* Where the type was said, else where it could be. */
static const struct lw_place *
type_place(const struct lw_config_pipeline *pipeline)
{
    static const char *const paths[] = { "consumer.type", "consumer.properties.consumer_type",
                                         "consumer.properties.subscription_type", "consumer" };
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        const struct lw_node *node = lw_config_check_given(pipeline->node, paths[i]);
        if (node) {
            return lw_node_name_place(node);
        }
    }
    return lw_node_name_place(pipeline->node);
}

static void
check_order(struct lw_config_build *build, const struct lw_config_pipeline *pipeline)
{
    const struct lw_config_consumer *consumer = &pipeline->consumer;
    const struct lw_node *node = lw_config_check_given(pipeline->node, "ordering");
    bool is_key = pipeline->common.ordering == LW_ORDERING_KEY;
    bool is_partition = pipeline->common.ordering == LW_ORDERING_PARTITION;
    bool is_kept = is_key ? consumer->keeps_keys : consumer->keeps_all;
    if (!node || (!is_key && !is_partition) || is_kept) {
        return;
    }
    struct lw_diagnostic *item = lw_diagnostics_add(
        build->diagnostics, LW_SEVERITY_ERROR, "E0312", lw_node_name_place(node),
        "\"ordering: %s\" cannot be kept on a %s subscription: the broker gives messages of "
        "one "
        "%s to several members",
        is_key ? "key" : "partition", consumer->type, is_key ? "key" : "partition");
    lw_diagnostic_show(item, type_place(pipeline));
    lw_diagnostic_help(item, is_key ? "write consumer.type: key_shared, failover or exclusive"
                                    : "write consumer.type: failover or exclusive");
}

/* Keys stay at one member, but nothing here keeps them from running side by side. */
static void
note_keys(struct lw_config_build *build, const struct lw_config_pipeline *pipeline)
{
    if (pipeline->consumer.is_shared && pipeline->consumer.keeps_keys &&
        pipeline->common.ordering == LW_ORDERING_DEFAULT) {
        struct lw_diagnostic *item = lw_diagnostics_add(
            build->diagnostics, LW_SEVERITY_NOTE, "W0317", type_place(pipeline),
            "key_shared keeps a key at one member; here messages of a key still run side by "
            "side");
        lw_diagnostic_help(item, "ordering: key runs them one after another; ordering: none "
                                 "says that this is meant");
    }
}

/* One message cannot be given back with a delay: the broker begins again at the oldest one. */
static void
check_delay(struct lw_config_build *build, const struct lw_config_pipeline *pipeline)
{
    static const char *const paths[] = { "retry.backoff", "retry" };
    const struct lw_config_subscription whole = { .options = pipeline->common,
                                                  .pipeline = pipeline };
    const struct lw_node *node = NULL;
    for (size_t i = 0; !node && i < sizeof(paths) / sizeof(paths[0]); i++) {
        node = lw_config_check_given(pipeline->node, paths[i]);
    }
    if (!node || lw_node_is_empty(node) || !pipeline->consumer.keeps_all ||
        pipeline->common.retry.topic || lw_node_at(pipeline->node, "retry.topic") ||
        lw_config_is_in_place(&whole)) {
        return;
    }
    struct lw_diagnostic *item = lw_diagnostics_add(
        build->diagnostics, LW_SEVERITY_ERROR, "E0313", lw_node_name_place(node),
        "on %s subscriptions the broker cannot delay one message: giving one back begins again "
        "at the oldest unfinished one",
        pipeline->consumer.type);
    lw_diagnostic_show(item, type_place(pipeline));
    lw_diagnostic_help(item, "write retry.in_place: true, give a retry.topic that is read by a "
                             "shared subscription, or write consumer.type: shared");
}

/* Two counters for one fate: which of them comes first would depend on the failure. */
static void
check_policy(struct lw_config_build *build, const struct lw_config_pipeline *pipeline)
{
    const struct lw_node *node = lw_config_check_given(pipeline->node, "dead_letter");
    if (!pipeline->consumer.has_policy || !node || lw_node_is_empty(node)) {
        return;
    }
    const struct lw_node *policy = lw_config_check_given(pipeline->node, "consumer.properties");
    struct lw_diagnostic *item = lw_diagnostics_add(
        build->diagnostics, LW_SEVERITY_ERROR, "E0419", lw_node_name_place(node),
        "dead_letter and the client's dead_letter_policy are both given");
    if (policy) {
        lw_diagnostic_show(item, lw_node_name_place(policy));
    }
    lw_diagnostic_help(item, "keep dead_letter with retry.max_retries; the policy counts "
                             "redeliveries, of crashes too");
}

static void
check_pipeline(struct lw_config_build *build, const struct lw_config_pipeline *pipeline)
{
    const struct lw_node *type = lw_config_check_given(pipeline->node, "consumer.type");
    if (!pipeline->broker) {
        return;
    }
    if (pipeline->broker->kind != LW_CONFIG_PULSAR) {
        lw_config_check_useless(build, type, "types of subscriptions are Pulsar's");
        return;
    }
    if (!pipeline->consumer.type) {
        return; /* the client is not built in */
    }
    const struct lw_node *said = lw_node_at(pipeline->node, "consumer.type");
    if (said && (said->is_bad || !type)) {
        return; /* it was reported; what follows from a guess would mislead */
    }
    check_order(build, pipeline);
    note_keys(build, pipeline);
    check_delay(build, pipeline);
    check_policy(build, pipeline);
}

void
lw_config_check_pulsar(struct lw_config_build *build)
{
    for (size_t i = 0; i < build->config->pipeline_count; i++) {
        check_pipeline(build, &build->config->pipelines[i]);
    }
}
