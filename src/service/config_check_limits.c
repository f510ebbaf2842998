/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notes about numbers that do not fit each other, and about entries that nobody uses. Nothing
 * here refuses a configuration; most of it speaks only when the user chose one of the numbers.
 */
#include <string.h>

#include "service/config_check.h"
#include "service/options.h"

enum { MEASURE_BYTES_MAX = 64 };

static void
check_workers(struct lw_config_build *build, const struct lw_config_handler *handler)
{
    uint64_t slots = build->config->service.dispatcher.concurrency;
    const struct lw_node *workers = lw_config_check_given(handler->node, "workers");
    const struct lw_node *window = lw_config_check_given(handler->node, "window");
    uint64_t room = (uint64_t)handler->run.workers * lw_config_window(handler);
    if (handler->kind != LW_CONFIG_PROGRAM || !workers || handler->run.workers == 0) {
        return;
    }
    const struct lw_place *place = lw_node_name_place(window ? window : workers);
    if (room * 2 < slots) {
        lw_diagnostics_add(build->diagnostics, LW_SEVERITY_NOTE, "W0304", place,
                           "%u workers x window %u = %llu messages at once, but there are %llu "
                           "slots: the others stay empty",
                           handler->run.workers, lw_config_window(handler),
                           (unsigned long long)room, (unsigned long long)slots);
    } else if (room > slots * 2) {
        lw_diagnostics_add(build->diagnostics, LW_SEVERITY_NOTE, "W0304", place,
                           "%u workers x window %u = %llu messages at once, but there are only "
                           "%llu slots",
                           handler->run.workers, lw_config_window(handler),
                           (unsigned long long)room, (unsigned long long)slots);
    }
}

static void
check_drain(struct lw_config_build *build, const struct lw_config_handler *handler)
{
    char timeout[MEASURE_BYTES_MAX];
    char drain[MEASURE_BYTES_MAX];
    int64_t drain_ms = build->config->service.dispatcher.drain_timeout_ms;
    const struct lw_node *own = lw_config_check_given(handler->node, "timeout");
    const struct lw_node *drain_node = lw_config_check_given(build->config->root,
                                                             "service.drain_timeout");
    if ((!own && !drain_node) || drain_ms == 0 || handler->run.timeout_ms <= drain_ms) {
        return;
    }
    struct lw_place place = lw_node_whole(own ? own : drain_node);
    lw_text_from_duration_ms(handler->run.timeout_ms, timeout, sizeof(timeout));
    lw_text_from_duration_ms(drain_ms, drain, sizeof(drain));
    lw_diagnostics_add(build->diagnostics, LW_SEVERITY_NOTE, "W0306", &place,
                       "an attempt of \"%s\" may take %s, longer than the drain of %s: such "
                       "attempts are given back at a stop",
                       handler->name, timeout, drain);
}

static bool
has_several_ranks(const struct lw_config *config)
{
    for (size_t i = 1; i < config->subscription_count; i++) {
        if (config->subscriptions[i].rank != config->subscriptions[0].rank) {
            return true;
        }
    }
    return false;
}

static void
check_prefetch(struct lw_config_build *build, const struct lw_config_pipeline *pipeline)
{
    const struct lw_node *node = lw_config_check_given(pipeline->node, "profile");
    if (node && pipeline->common.profile == LW_PROFILE_THROUGHPUT &&
        has_several_ranks(build->config)) {
        struct lw_place place = lw_node_whole(node);
        struct lw_diagnostic *item = lw_diagnostics_add(
            build->diagnostics, LW_SEVERITY_NOTE, "W0305", &place,
            "large windows make priority coarse: up to %u messages of each topic are held here",
            pipeline->common.receiver_queue_size);
        lw_diagnostic_help(item, "profile: adaptive decides late and still runs at full speed");
    }
}

static bool
names_broker(const struct lw_node *pipeline, const char *path, const char *name)
{
    const struct lw_node *node = lw_node_at(pipeline, path);
    return node && node->text && strcmp(node->text, name) == 0;
}

static bool
is_broker_used(const struct lw_config *config, const char *name)
{
    const struct lw_node *map = lw_node_child(config->root, "pipelines");
    for (const struct lw_node *entry = map ? map->first : NULL; entry; entry = entry->next) {
        if (names_broker(entry, "broker", name) ||
            names_broker(entry, "dead_letter.broker", name) ||
            names_broker(entry, "reply.broker", name)) {
            return true;
        }
    }
    return false;
}

static bool
is_handler_used(const struct lw_config *config, const struct lw_config_handler *handler)
{
    for (size_t i = 0; i < config->pipeline_count; i++) {
        if (config->pipelines[i].handler == handler) {
            return true;
        }
    }
    return false;
}

/* Only in a file that is right otherwise: a misspelt reference is no unused entry. */
static void
note_unused(struct lw_config_build *build, const struct lw_node *node, const char *kind)
{
    if (lw_diagnostics_has_error(build->diagnostics)) {
        return;
    }
    lw_diagnostics_add(build->diagnostics, LW_SEVERITY_NOTE, "W0309", &node->key_place,
                       "no pipeline uses the %s \"%s\"", kind, node->key);
}

/* A reply is refused when those behind its message in the batch are over. */
static void
check_batch_replies(struct lw_config_build *build, const struct lw_config_subscription *item,
                    const struct lw_node *node)
{
    const struct lw_reply_options *reply = &item->options.reply;
    bool runs_again = lw_config_is_in_place(item) && item->options.retry.max_attempts > 1;
    if (!reply->topic || reply->on_oversize != LW_ON_OVERSIZE_RETRY || !runs_again ||
        lw_config_ordering(item) == LW_ORDERING_NONE) {
        return;
    }
    struct lw_diagnostic *diagnostic = lw_diagnostics_add(
        build->diagnostics, LW_SEVERITY_ERROR, "E0320", lw_node_name_place(node),
        "a message of \"%s\" whose reply is too large would run again, in place, behind those "
        "of its key that were in its batch",
        item->options.topic);
    lw_diagnostic_help(diagnostic, "use \"reply: {on_oversize: dead}\", or leave batch out");
}

/* A batch fits what its topics may hold, and of one key there is an order to take it from. */
static void
check_batch(struct lw_config_build *build, const struct lw_config_subscription *item)
{
    const struct lw_config_handler *handler = item->pipeline->handler;
    const struct lw_node *node = handler ? lw_config_check_given(handler->node, "batch") : NULL;
    const struct lw_batch_options *batch = handler ? &handler->run.batch : NULL;
    if (!node || batch->size <= 1) {
        return;
    }
    if (batch->size > item->options.max_in_flight) {
        struct lw_diagnostic *diagnostic = lw_diagnostics_add(
            build->diagnostics, LW_SEVERITY_ERROR, "E0320", lw_node_name_place(node),
            "a batch of %u can never fill: \"%s\" has at most %u messages in flight",
            batch->size, item->options.topic, item->options.max_in_flight);
        lw_diagnostic_help(diagnostic, "raise max_in_flight, or lower batch.size");
    } else if (batch->keys == LW_BATCH_KEYS_ONE &&
               lw_config_ordering(item) == LW_ORDERING_NONE) {
        struct lw_diagnostic *diagnostic = lw_diagnostics_add(
            build->diagnostics, LW_SEVERITY_ERROR, "E0320", lw_node_name_place(node),
            "\"%s\" has no order, so its batches cannot be of one key each",
            item->options.topic);
        lw_diagnostic_help(diagnostic, "use \"ordering: key\", or \"batch: {keys: many}\"");
    }
    check_batch_replies(build, item, node);
}

void
lw_config_check_limits(struct lw_config_build *build)
{
    const struct lw_config *config = build->config;
    for (size_t i = 0; i < config->subscription_count; i++) {
        check_batch(build, &config->subscriptions[i]);
    }
    for (size_t i = 0; i < config->handler_count; i++) {
        const struct lw_config_handler *handler = &config->handlers[i];
        check_workers(build, handler);
        check_drain(build, handler);
        if (!is_handler_used(config, handler)) {
            note_unused(build, handler->node, "handler");
        }
    }
    for (size_t i = 0; i < config->broker_count; i++) {
        if (!is_broker_used(config, config->brokers[i].name)) {
            note_unused(build, config->brokers[i].node, "broker");
        }
    }
    for (size_t i = 0; i < config->pipeline_count; i++) {
        check_prefetch(build, &config->pipelines[i]);
    }
}
