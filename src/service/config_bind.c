/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filling structs from a tree whose nodes know their rows. Quiet: everything that can be wrong
 * was reported by the check before (config_value.c, config_shape.c), and bad nodes are passed
 * over, so that the rules can still look at the rest.
 */
#include "service/config_bind.h"

#include <string.h>

static char *
trim(const char *text, struct lw_config_arena *arena)
{
    size_t skip = strspn(text, " \t\r\n");
    size_t length = strlen(text + skip);
    while (length > 0 && strchr(" \t\r\n", text[skip + length - 1])) {
        length--;
    }
    return length > 0 ? lw_config_arena_text(arena, text + skip, length) : NULL;
}

/* Secrets keep their blanks; a blank text means "not given". */
static const char *
usable_text(const struct lw_node *node, struct lw_config_arena *arena)
{
    char *trimmed = trim(node->text, arena);
    return trimmed && node->is_secret ? node->text : trimmed;
}

const char *
lw_config_bind_text(const struct lw_node *map, const char *key, struct lw_config_arena *arena)
{
    const struct lw_node *node = lw_node_child(map, key);
    if (!node || node->is_bad || node->kind != LW_NODE_SCALAR || lw_node_is_empty(node)) {
        return NULL;
    }
    return usable_text(node, arena);
}

static void
bind_scalar(const struct lw_node *node, void *base, ptrdiff_t offset,
            struct lw_config_arena *arena)
{
    union lw_option_value value;
    const char *text = node->text;
    if (node->row->type == LW_OPTION_TEXT) {
        text = usable_text(node, arena);
    }
    if (text && lw_option_parse(node->row, text, &value) == LW_OPTION_FINE) {
        lw_option_store(node->row, value, base, offset);
    }
}

static size_t
count_children(const struct lw_node *node)
{
    size_t count = 0;
    for (const struct lw_node *child = node->first; child; child = child->next) {
        count++;
    }
    return count;
}

/* Splits "a, b" at its commas; empty parts are dropped. */
static const char *const *
split_texts(const char *text, struct lw_config_arena *arena, size_t *ret_count)
{
    size_t room = 2;
    for (const char *at = text; *at; at++) {
        room += *at == ',';
    }
    const char **parts = lw_config_arena_array(arena, room, sizeof(parts[0]));
    size_t count = 0;
    while (parts && *text) {
        size_t length = strcspn(text, ",");
        char *part = lw_config_arena_text(arena, text, length);
        char *trimmed = part ? trim(part, arena) : NULL;
        if (trimmed) {
            parts[count++] = trimmed;
        }
        text += length + (text[length] == ',' ? 1 : 0);
    }
    *ret_count = count;
    return parts;
}

static const char *const *
list_texts(const struct lw_node *list, struct lw_config_arena *arena, size_t *ret_count)
{
    const char **parts = lw_config_arena_array(arena, count_children(list) + 1,
                                               sizeof(parts[0]));
    size_t count = 0;
    for (const struct lw_node *item = list->first; parts && item; item = item->next) {
        parts[count++] = item->text;
    }
    *ret_count = count;
    return parts;
}

/* A lone scalar from the command line is a list of durations with commas, too. */
static const int64_t *
read_durations(const char *const *texts, size_t count, struct lw_config_arena *arena)
{
    const char *why = NULL;
    int64_t *values = lw_config_arena_array(arena, count + 1, sizeof(values[0]));
    for (size_t i = 0; values && i < count; i++) {
        (void)lw_text_to_duration_ms(texts[i], &values[i], &why);
    }
    return values;
}

static void
store_list(const struct lw_option *row, const void *list, size_t count, void *base,
           ptrdiff_t offset)
{
    memcpy((char *)base + offset, (const void *)&list, sizeof(list));
    if (row->count_offset > 0) {
        ptrdiff_t beside = offset - row->offset + row->count_offset;
        memcpy((char *)base + beside, &count, sizeof(count));
    }
}

static void
bind_list(const struct lw_node *node, void *base, ptrdiff_t offset,
          struct lw_config_arena *arena)
{
    size_t count = 0;
    const char *const *texts = node->kind == LW_NODE_LIST
                                   ? list_texts(node, arena, &count)
                                   : split_texts(node->text, arena, &count);
    const void *list = texts;
    if (texts && node->row->type == LW_OPTION_DURATIONS) {
        list = read_durations(texts, count, arena);
    }
    if (list && count > 0) {
        store_list(node->row, list, count, base, offset);
    }
}

static void
bind_properties(const struct lw_node *node, void *base, ptrdiff_t offset,
                struct lw_config_arena *arena)
{
    struct lw_property *list = lw_config_arena_array(arena, count_children(node) + 1,
                                                     sizeof(list[0]));
    size_t count = 0;
    for (const struct lw_node *child = node->first; list && child; child = child->next) {
        const char *value = child->is_bad ? NULL : usable_text(child, arena);
        if (value) {
            list[count].name = child->key;
            list[count++].value = value;
        }
    }
    if (list && count > 0) {
        store_list(node->row, list, count, base, offset);
    }
}

static void
bind_group(struct lw_node *node, char *base, ptrdiff_t offset)
{
    if (node->row->off_word) {
        bool is_off = node->kind == LW_NODE_SCALAR &&
                      strcmp(node->text, node->row->off_word) == 0;
        memcpy(base + offset - node->row->offset + node->row->off_offset, &is_off,
               sizeof(is_off));
    }
    node->target = base + offset;
}

static void
bind_node(struct lw_node *node, void *base, ptrdiff_t offset, struct lw_config_arena *arena)
{
    const struct lw_option *row = node->row;
    if (row->type == LW_OPTION_GROUP) {
        bind_group(node, base, offset);
    } else if (row->is_unbound || row->size == 0) {
        return;
    } else if (lw_option_is_scalar(row)) {
        bind_scalar(node, base, offset, arena);
    } else if (row->type == LW_OPTION_PROPERTIES) {
        bind_properties(node, base, offset, arena);
    } else if (row->type == LW_OPTION_TEXTS || row->type == LW_OPTION_DURATIONS) {
        bind_list(node, base, offset, arena);
    }
}

void
lw_config_bind(struct lw_node *map, const struct lw_option *rows, void *target,
               struct lw_config_arena *arena)
{
    if (!map) {
        return;
    }
    map->target = target;
    struct lw_node *node = map->first;
    while (node) {
        const struct lw_option *keys = node->parent == map ? rows : node->parent->rows;
        ptrdiff_t offset = 0;
        node->target = NULL;
        bool is_usable = node->row && !node->is_bad && node->key && keys &&
                         lw_option_find(keys, node->key, &offset) == node->row;
        if (is_usable) {
            bind_node(node, node->parent->target, offset, arena);
        }
        node = node->target ? lw_node_next(map, node) : lw_node_skip(map, node);
    }
}
