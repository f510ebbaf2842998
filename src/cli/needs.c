/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects the topics of a configuration: first all that are read, since retry tiers follow those
 * that somebody here reads, then retries, then dead letters and replies. Pure but for memory.
 */
#include "cli/needs.h"

#include <string.h>

#include "base/alloc.h"
#include "policy/backoff.h"
#include "policy/topic_names.h"

enum { TIERS_MAX = 16 };

static bool
reserve(void **array, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity) {
        return true;
    }
    size_t wanted = *capacity ? *capacity * 2 : 32;
    void *grown = lw_resize_array(*array, wanted, size);
    if (grown) {
        *array = grown;
        *capacity = wanted;
    }
    return grown != NULL;
}

static size_t
find(const struct lw_needs *needs, const struct lw_config_broker *broker, const char *name)
{
    for (size_t i = 0; i < needs->count; i++) {
        if (needs->items[i].broker == broker && strcmp(needs->items[i].name, name) == 0) {
            return i;
        }
    }
    return SIZE_MAX;
}

/* Returns its index; a topic that is needed for several things keeps the first kind. */
static size_t
add(struct lw_needs *needs, enum lw_need_kind kind, const struct lw_config_broker *broker,
    const char *name, const struct lw_node *node)
{
    void *items = needs->items;
    size_t index = find(needs, broker, name);
    if (index != SIZE_MAX) {
        return index;
    }
    if (!reserve(&items, needs->count, &needs->capacity, sizeof *needs->items)) {
        needs->is_failed = true;
        return SIZE_MAX;
    }
    needs->items = items;
    struct lw_need *item = &needs->items[needs->count];
    *item = (struct lw_need){ .kind = kind, .broker = broker, .node = node, .partitions = -1 };
    lw_text_copy(item->name, sizeof item->name, name);
    return needs->count++;
}

static void
follow(struct lw_needs *needs, size_t need, size_t source)
{
    void *links = needs->links;
    if (need == SIZE_MAX || source == SIZE_MAX || need == source) {
        return;
    }
    if (!reserve(&links, needs->link_count, &needs->link_capacity, sizeof *needs->links)) {
        needs->is_failed = true;
        return;
    }
    needs->links = links;
    needs->links[needs->link_count++] = (struct lw_need_link){ need, source };
}

static size_t
tiers_of(const struct lw_retry_options *retry, int64_t out[TIERS_MAX])
{
    if (retry->tier_count > 0) {
        size_t count = retry->tier_count < TIERS_MAX ? retry->tier_count : TIERS_MAX;
        memcpy(out, retry->tiers_ms, count * sizeof *out);
        return count;
    }
    struct lw_backoff backoff = { retry->backoff.initial_ms, retry->backoff.multiplier,
                                  retry->backoff.max_ms, retry->backoff.jitter_ms };
    return lw_backoff_steps(&backoff, out, TIERS_MAX);
}

/* Tiers follow the retry topic when somebody here reads it, else the topic that fails. */
static void
add_retry(struct lw_needs *needs, const struct lw_config_subscription *item, size_t source)
{
    const struct lw_config_broker *broker = item->pipeline->broker;
    const struct lw_retry_options *retry = &item->options.retry;
    char name[LW_NEED_NAME_MAX];
    int64_t tiers_ms[TIERS_MAX];
    if (!item->retry_id) {
        return;
    }
    size_t consumed = find(needs, broker, item->retry_id);
    if (!lw_config_traits(broker->kind)->has_tiers) {
        (void)add(needs, LW_NEED_RETRY, broker, item->retry_id, item->node);
        return;
    }
    size_t count = tiers_of(retry, tiers_ms);
    for (size_t i = 0; i < count; i++) {
        if (lw_topic_tier(item->retry_id, tiers_ms[i], name, sizeof name)) {
            size_t tier = add(needs, LW_NEED_RETRY, broker, name, item->node);
            follow(needs, tier, consumed != SIZE_MAX ? consumed : source);
        }
    }
}

static const struct lw_config_broker *
broker_of(const struct lw_config *config, const struct lw_config_subscription *item,
          const char *name)
{
    const struct lw_config_broker *broker = name ? lw_config_broker(config, name) : NULL;
    return broker ? broker : item->pipeline->broker;
}

static void
add_target(struct lw_needs *needs, enum lw_need_kind kind,
           const struct lw_config_broker *broker, const char *name,
           const struct lw_config_subscription *item)
{
    if (name) {
        size_t source = find(needs, item->pipeline->broker, item->topic_id);
        follow(needs, add(needs, kind, broker, name, item->node), source);
    }
}

/* The topics of a pattern are whatever the broker has, and their dead letters after them. */
static void
add_source(struct lw_needs *needs, const struct lw_config_subscription *item)
{
    if (!item->is_pattern) {
        (void)add(needs, LW_NEED_SOURCE, item->pipeline->broker, item->topic_id, item->node);
    }
}

void
lw_needs_init(struct lw_needs *needs, const struct lw_config *config)
{
    memset(needs, 0, sizeof *needs);
    for (size_t i = 0; i < config->subscription_count; i++) {
        add_source(needs, &config->subscriptions[i]);
    }
    for (size_t i = 0; i < config->subscription_count; i++) {
        const struct lw_config_subscription *item = &config->subscriptions[i];
        add_retry(needs, item, find(needs, item->pipeline->broker, item->topic_id));
    }
    for (size_t i = 0; i < config->subscription_count; i++) {
        const struct lw_config_subscription *item = &config->subscriptions[i];
        if (!item->options.dead_letter.is_off) {
            add_target(needs, LW_NEED_DEAD_LETTER,
                       broker_of(config, item, item->options.dead_letter.broker),
                       item->dead_letter_id, item);
        }
        add_target(needs, LW_NEED_REPLY, broker_of(config, item, item->options.reply.broker),
                   item->reply_id, item);
    }
}

void
lw_needs_deinit(struct lw_needs *needs)
{
    lw_free(needs->items);
    lw_free(needs->links);
}

int32_t
lw_needs_wanted(const struct lw_needs *needs, size_t index)
{
    int32_t most = 0;
    for (size_t i = 0; i < needs->link_count; i++) {
        if (needs->links[i].need == index) {
            int32_t partitions = needs->items[needs->links[i].source].partitions;
            most = partitions > most ? partitions : most;
        }
    }
    return most;
}

const char *
lw_need_kind_name(enum lw_need_kind kind)
{
    switch (kind) {
    case LW_NEED_SOURCE:
        return "topic";
    case LW_NEED_RETRY:
        return "retry topic";
    case LW_NEED_DEAD_LETTER:
        return "dead-letter topic";
    case LW_NEED_REPLY:
        return "reply topic";
    }
    return "?";
}
