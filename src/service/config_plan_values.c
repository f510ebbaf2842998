/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every effective value of a configuration: the rows are walked, the value read back from the
 * struct that the service will use, and the tree asked where it came from. What is printed is
 * therefore what runs.
 */
#include "service/config_plan.h"

#include <string.h>

#include "policy/backoff.h"
#include "service/config_rows.h"

enum { KEY_BYTES_MAX = 256 };

/* What is being listed, and where. */
struct listing {
    struct lw_plan_values *values;
    size_t capacity;
    const struct lw_node *map; /* of the entry; NULL when the file has no such section */
    const char *prefix;        /* "pipelines.orders" */
    bool given_only;
};

bool
lw_node_has_secret(const struct lw_node *node)
{
    for (const struct lw_node *each = node; each; each = lw_node_next(node, each)) {
        if (each->is_secret) {
            return true;
        }
    }
    return false;
}

static bool
make_room(struct listing *list)
{
    struct lw_plan_values *values = list->values;
    if (values->count < list->capacity) {
        return true;
    }
    size_t capacity = list->capacity == 0 ? 64 : list->capacity * 2;
    struct lw_plan_value *items = lw_config_arena_array(&values->arena, capacity,
                                                        sizeof(items[0]));
    if (!items) {
        return false;
    }
    if (values->count > 0) {
        memcpy(items, values->items, values->count * sizeof(items[0]));
    }
    values->items = items;
    list->capacity = capacity;
    return true;
}

/* A value that nobody gave may still be a profile's. */
static void
append_origin(const struct listing *list, const char *key, const struct lw_node *node,
              struct lw_text *out)
{
    static const char *const profile_keys[] = { "receiver_queue_size", "max_in_flight" };
    bool is_queue = strcmp(key, profile_keys[0]) == 0;
    node = node || !is_queue ? node
                             : lw_node_at(list->map, "consumer.properties.receiver_queue_size");
    const struct lw_node *profile = lw_node_child(list->map, "profile");
    if (node) {
        lw_node_origin(node, out);
        return;
    }
    for (size_t i = 0; profile && i < sizeof(profile_keys) / sizeof(profile_keys[0]); i++) {
        if (strcmp(key, profile_keys[i]) == 0) {
            lw_text_append(out, "the profile, ");
            lw_node_origin(profile, out);
            return;
        }
    }
    lw_text_append(out, "default");
}

static void
add(struct listing *list, const char *key, const char *value, const struct lw_node *node)
{
    struct lw_config_arena *arena = &list->values->arena;
    struct lw_text origin;
    lw_text_init(&origin);
    append_origin(list, key, node, &origin);
    struct lw_plan_value item = {
        .path = lw_config_arena_format(arena, "%s%s%s", list->prefix,
                                       list->prefix[0] != '\0' ? "." : "", key),
        .value = lw_config_arena_text(arena, value, strlen(value)),
        .origin = lw_config_arena_text(arena, origin.data, origin.size),
    };
    arena->is_failed |= origin.is_failed;
    lw_text_deinit(&origin);
    if (item.path && item.value && item.origin && make_room(list)) {
        list->values->items[list->values->count++] = item;
    }
}

/* True for a value that stands for "to be found out". */
static bool
is_open(const struct lw_text *value)
{
    static const char *const words[] = { "-", "[]", "default", "0" };
    for (size_t i = 0; value->data && i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(value->data, words[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Secrets never leave this file; a default that is found out later is told in words. */
static void
add_row(struct listing *list, const struct lw_option_walk *walk, const void *base)
{
    const struct lw_option *row = walk->row;
    struct lw_text key;
    struct lw_text value;
    lw_text_init(&key);
    lw_text_init(&value);
    lw_option_walk_path(walk, &key);
    const struct lw_node *node = key.data ? lw_node_at(list->map, key.data) : NULL;
    if (node && (row->is_secret || lw_node_has_secret(node))) {
        lw_text_append(&value, "***");
    } else {
        lw_option_format(row, base, walk->offset, &value);
    }
    if (!node && row->initial_note && is_open(&value)) {
        lw_text_clear(&value);
        lw_text_append(&value, row->initial_note);
    }
    list->values->arena.is_failed |= key.is_failed || value.is_failed;
    if (key.data && value.data && (node || !list->given_only)) {
        add(list, key.data, value.data, node);
    }
    lw_text_deinit(&key);
    lw_text_deinit(&value);
}

/* Properties have no rows: the tree itself is listed. */
static void
add_properties(struct listing *list, const struct lw_option_walk *walk)
{
    struct lw_text key;
    lw_text_init(&key);
    lw_option_walk_path(walk, &key);
    const struct lw_node *map = key.data ? lw_node_at(list->map, key.data) : NULL;
    for (const struct lw_node *node = map ? map->first : NULL; node; node = node->next) {
        char name[KEY_BYTES_MAX];
        struct lw_text path;
        lw_text_init(&path);
        lw_text_format(&path, "%s.%s", key.data, lw_text_shown(node->key, name, sizeof(name)));
        list->values->arena.is_failed |= path.is_failed;
        if (path.data) {
            add(list, path.data, node->is_secret ? "***" : node->text, node);
        }
        lw_text_deinit(&path);
    }
    list->values->arena.is_failed |= key.is_failed;
    lw_text_deinit(&key);
}

/* `dead_letter: none` is a value of the section itself. */
static void
add_group(struct listing *list, const struct lw_option_walk *walk)
{
    const struct lw_node *node = lw_node_child(list->map, walk->row->name);
    if (walk->row->off_word && node && node->kind == LW_NODE_SCALAR && walk->level == 0) {
        add(list, walk->row->name, node->text, node);
    }
}

static void
list_rows(struct listing *list, const struct lw_option *rows, const void *base)
{
    struct lw_option_walk walk;
    lw_option_walk_start(&walk, rows, LW_WALK_STRUCT);
    while (lw_option_walk_next(&walk)) {
        const struct lw_option *row = walk.row;
        if (row->type == LW_OPTION_GROUP) {
            add_group(list, &walk);
        } else if (row->type == LW_OPTION_PROPERTIES) {
            add_properties(list, &walk);
        } else if (row->size > 0 && !row->is_unbound &&
                   (lw_option_is_scalar(row) || row->type == LW_OPTION_TEXTS ||
                    row->type == LW_OPTION_DURATIONS)) {
            add_row(list, &walk, base);
        }
    }
}

/* Names the entry whose rows come next. */
static bool
open_entry(struct listing *list, const char *section, const char *name,
           const struct lw_node *node)
{
    list->prefix = lw_config_arena_format(&list->values->arena, "%s.%s", section, name);
    list->map = node;
    return list->prefix != NULL;
}

/* Of topics only what they set by themselves: the rest is the pipeline's. */
static void
list_topics(struct listing *list, const struct lw_config *config,
            const struct lw_config_pipeline *pipeline)
{
    list->given_only = true;
    for (size_t i = 0; i < pipeline->count; i++) {
        const struct lw_config_subscription *item = &config->subscriptions[pipeline->first + i];
        const struct lw_node *list_node = item->node->parent;
        if (!list_node || list_node->kind != LW_NODE_LIST) {
            continue;
        }
        list->prefix = lw_config_arena_format(&list->values->arena, "pipelines.%s.topics.%zu",
                                              pipeline->name, i);
        list->map = item->node;
        if (list->prefix) {
            list_rows(list, lw_topic_entry_rows, &item->options);
        }
    }
    list->given_only = false;
}

bool
lw_plan_values_list(const struct lw_config *config, struct lw_plan_values *ret_values)
{
    struct listing list = { .values = ret_values };
    memset(ret_values, 0, sizeof(*ret_values));
    lw_config_arena_init(&ret_values->arena);
    list.prefix = "service";
    list.map = lw_node_child(config->root, "service");
    list_rows(&list, lw_service_rows, &config->service);
    for (size_t i = 0; i < config->broker_count; i++) {
        const struct lw_config_broker *broker = &config->brokers[i];
        if (open_entry(&list, "brokers", broker->name, broker->node)) {
            list_rows(&list, lw_broker_rows, broker);
        }
    }
    for (size_t i = 0; i < config->handler_count; i++) {
        const struct lw_config_handler *handler = &config->handlers[i];
        if (open_entry(&list, "handlers", handler->name, handler->node)) {
            list_rows(&list, lw_config_handler_rows, handler);
        }
    }
    for (size_t i = 0; i < config->pipeline_count; i++) {
        const struct lw_config_pipeline *pipeline = &config->pipelines[i];
        if (open_entry(&list, "pipelines", pipeline->name, pipeline->node)) {
            list_rows(&list, lw_pipeline_rows, pipeline);
        }
        list_topics(&list, config, pipeline);
    }
    return !ret_values->arena.is_failed;
}

static bool
is_node_secret(const struct lw_node *map, const char *path)
{
    const struct lw_node *node = lw_node_at(map, path);
    return node && node->is_secret;
}

const char *
lw_config_name_shown(const struct lw_config_subscription *subscription,
                     enum lw_config_name which)
{
    static const char *const paths[] = {
        [LW_CONFIG_NAME_TOPIC] = "",
        [LW_CONFIG_NAME_RETRY] = "retry.topic",
        [LW_CONFIG_NAME_DEAD_LETTER] = "dead_letter.topic",
        [LW_CONFIG_NAME_REPLY] = "reply.topic",
    };
    const struct lw_subscription_options *options = &subscription->options;
    const char *const names[] = {
        [LW_CONFIG_NAME_TOPIC] = options->topic,
        [LW_CONFIG_NAME_RETRY] = options->retry.topic,
        [LW_CONFIG_NAME_DEAD_LETTER] = subscription->dead_letter_topic,
        [LW_CONFIG_NAME_REPLY] = options->reply.topic,
    };
    const struct lw_node *pipeline = subscription->pipeline->node;
    bool is_secret = is_node_secret(subscription->node, "name");
    if (which != LW_CONFIG_NAME_TOPIC) {
        is_secret |= is_node_secret(pipeline, paths[which]) ||
                     is_node_secret(pipeline, "consumer.group");
    }
    return names[which] && is_secret ? "***" : names[which];
}

static struct lw_backoff
backoff_of(const struct lw_backoff_options *options)
{
    return (struct lw_backoff){ .initial_ms = options->initial_ms,
                                .multiplier = options->multiplier,
                                .max_ms = options->max_ms };
}

size_t
lw_plan_delays(const struct lw_config_subscription *subscription,
               int64_t out[LW_PLAN_DELAYS_MAX], bool *ret_is_cut)
{
    const struct lw_retry_options *retry = &subscription->options.retry;
    bool is_copied = retry->topic != NULL;
    struct lw_backoff backoff = backoff_of(is_copied ? &retry->backoff
                                                     : &retry->in_place_backoff);
    int64_t wanted = is_copied ? retry->max_retries : (int64_t)retry->max_attempts - 1;
    size_t count = 0;
    while (count < LW_PLAN_DELAYS_MAX && (wanted < 0 || (int64_t)count < wanted)) {
        out[count] = lw_backoff_ms(&backoff, (uint32_t)count + 1, 0);
        count++;
        if (count > 1 && out[count - 1] == out[count - 2]) {
            break;
        }
    }
    *ret_is_cut = wanted < 0 || (int64_t)count < wanted;
    return count;
}
