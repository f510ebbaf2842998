/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cursor goes down schema and tree together; where the tree has nothing yet it goes down the
 * schema alone. A name from a variable is matched against what is there in folded spelling, so
 * HANDLERS__CONFIRM_ORDER finds "confirm-order"; what is not there is made in lower case.
 */
#include "service/config_path.h"

#include <ctype.h>
#include <string.h>

#include "service/config_rows.h"

/* Where a path has come to. */
struct cursor {
    const struct lw_node *root;
    const struct lw_node *node;   /* NULL: the tree does not go this far */
    const struct lw_option *row;  /* of this value */
    const struct lw_option *rows; /* when the next part is a key of these */
    bool is_leaf;                 /* a property or a number of a map */
};

bool
lw_config_path_split(struct lw_config_path *path, const char *text)
{
    memset(path, 0, sizeof(*path));
    while (path->count < LW_PATH_PARTS_MAX) {
        size_t length = strcspn(text, ".");
        if (length == 0 || length >= LW_PATH_BYTES_MAX) {
            return false;
        }
        memcpy(path->parts[path->count], text, length);
        path->parts[path->count++][length] = '\0';
        if (text[length] == '\0') {
            return true;
        }
        text += length + 1;
    }
    return false;
}

bool
lw_config_path_split_variable(struct lw_config_path *path, const char *text)
{
    memset(path, 0, sizeof(*path));
    path->is_folded = true;
    while (path->count < LW_PATH_PARTS_MAX) {
        const char *stop = strstr(text, "__");
        size_t length = stop ? (size_t)(stop - text) : strlen(text);
        if (length == 0 || length >= LW_PATH_BYTES_MAX) {
            return false;
        }
        for (size_t i = 0; i < length; i++) {
            path->parts[path->count][i] = (char)tolower((unsigned char)text[i]);
        }
        path->parts[path->count++][length] = '\0';
        if (!stop) {
            return true;
        }
        text = stop + 2;
    }
    return false;
}

static bool
is_folded_equal(const char *name, const char *folded)
{
    for (; *name && *folded; name++, folded++) {
        char c = *name == '-' || *name == '.' ? '_' : (char)tolower((unsigned char)*name);
        if (c != *folded) {
            return false;
        }
    }
    return *name == *folded;
}

static const struct lw_node *
find_child(const struct lw_node *map, const char *part, bool is_folded)
{
    for (const struct lw_node *child = map ? map->first : NULL; child; child = child->next) {
        if (child->key &&
            (is_folded ? is_folded_equal(child->key, part) : strcmp(child->key, part) == 0)) {
            return child;
        }
    }
    return NULL;
}

static bool
fail(struct lw_config_path *path, size_t part, const struct lw_option *allowed,
     const char *problem)
{
    path->bad = part;
    path->allowed = allowed;
    path->problem = problem;
    return false;
}

static bool
enter_key(struct lw_config_path *path, size_t part, struct cursor *at)
{
    const char *name = path->parts[part];
    const struct lw_option *row = lw_option_find(at->rows, name, NULL);
    if (!row) {
        return fail(path, part, at->rows, "is not a key here");
    }
    bool is_wild = row->name[0] == '*';
    const struct lw_node *child = find_child(at->node, name, is_wild && path->is_folded);
    if (!child && row->alias) {
        child = find_child(at->node, strcmp(name, row->name) == 0 ? row->alias : row->name,
                           false);
    }
    path->keys[part] = child ? child->key : is_wild ? name : row->name;
    at->node = child;
    at->row = row;
    at->rows = row->type == LW_OPTION_GROUP ? row->rows : NULL;
    if (row->type == LW_OPTION_LIST && child && child->kind == LW_NODE_MAP) {
        at->rows = row->alternative;
    }
    return true;
}

static bool
enter_entry(struct lw_config_path *path, size_t part, struct cursor *at)
{
    const struct lw_node *child = find_child(at->node, path->parts[part], path->is_folded);
    path->keys[part] = child ? child->key : path->parts[part];
    at->node = child;
    at->rows = at->row->rows;
    return true;
}

static bool
enter_item(struct lw_config_path *path, size_t part, struct cursor *at)
{
    int64_t index = 0;
    if (!lw_text_to_int(path->parts[part], &index) || index < 0) {
        return fail(path, part, NULL, "must be the number of an entry, from 0");
    }
    const struct lw_node *item = at->node && at->node->kind == LW_NODE_LIST ? at->node->first
                                                                            : NULL;
    for (int64_t i = 0; item && i < index; i++) {
        item = item->next;
    }
    if (!item) {
        return fail(path, part, NULL, "is beyond the end of the list");
    }
    path->indexes[part] = (size_t)index;
    at->node = item;
    at->rows = at->row->rows;
    return true;
}

static const struct lw_node *
broker_of(const struct lw_config_path *path, const struct lw_node *root)
{
    const struct lw_node *section = lw_node_child(root, path->keys[0]);
    const struct lw_node *entry = lw_node_child(section, path->keys[1]);
    if (strcmp(path->keys[0], "pipelines") != 0) {
        return strcmp(path->keys[0], "brokers") == 0 ? entry : NULL;
    }
    const struct lw_node *name = lw_node_child(entry, "broker");
    return name && name->text ? lw_node_child(lw_node_child(root, "brokers"), name->text)
                              : NULL;
}

/* Kafka's properties have dots and no _; those of Pulsar have _, and dots between their parts. */
static bool
has_underscores(const struct lw_config_path *path, const struct lw_node *root)
{
    const struct lw_node *url = lw_node_child(broker_of(path, root), "url");
    return url && url->text && strncmp(url->text, "pulsar", strlen("pulsar")) == 0;
}

/* Everything that is left is one key of the client's, dots included. */
static bool
enter_property(struct lw_config_path *path, size_t part, struct cursor *at,
               struct lw_config_arena *arena)
{
    struct lw_text key;
    lw_text_init(&key);
    for (size_t i = part; i < path->count; i++) {
        lw_text_format(&key, "%s%s", i > part ? "." : "", path->parts[i]);
    }
    bool is_dotted = path->is_folded && !has_underscores(path, at->root);
    for (size_t i = 0; is_dotted && i < key.size; i++) {
        key.data[i] = key.data[i] == '_' ? '.' : key.data[i];
    }
    const char *name = key.is_failed ? NULL : lw_config_arena_text(arena, key.data, key.size);
    lw_text_deinit(&key);
    if (!name) {
        arena->is_failed = true;
        return false;
    }
    path->count = part + 1;
    path->keys[part] = name;
    at->node = find_child(at->node, name, false);
    at->is_leaf = true;
    return true;
}

static bool
enter_number(struct lw_config_path *path, size_t part, struct cursor *at)
{
    const struct lw_node *child = find_child(at->node, path->parts[part], path->is_folded);
    path->keys[part] = child ? child->key : path->parts[part];
    at->node = child;
    at->is_leaf = true;
    return true;
}

static bool
enter(struct lw_config_path *path, size_t part, struct cursor *at,
      struct lw_config_arena *arena)
{
    if (at->is_leaf) {
        return fail(path, part, NULL, "has nothing below it");
    }
    if (at->rows) {
        return enter_key(path, part, at);
    }
    if (at->row->type == LW_OPTION_MAP) {
        return enter_entry(path, part, at);
    }
    if (at->row->type == LW_OPTION_LIST) {
        return enter_item(path, part, at);
    }
    if (at->row->type == LW_OPTION_PROPERTIES) {
        return enter_property(path, part, at, arena);
    }
    if (at->row->type == LW_OPTION_NUMBERS) {
        return enter_number(path, part, at);
    }
    return fail(path, part, NULL, "has nothing below it");
}

static bool
takes_value(const struct cursor *at)
{
    return at->is_leaf || lw_option_is_scalar(at->row) || at->row->type == LW_OPTION_TEXTS ||
           at->row->type == LW_OPTION_DURATIONS || at->row->type == LW_OPTION_LATER ||
           (at->row->type == LW_OPTION_GROUP && at->row->off_word);
}

bool
lw_config_path_find(struct lw_config_path *path, const struct lw_node *root,
                    struct lw_config_arena *arena)
{
    struct cursor at = {
        .root = root, .node = root, .row = &lw_config_root, .rows = lw_config_root.rows
    };
    for (size_t part = 0; part < path->count; part++) {
        if (!enter(path, part, &at, arena)) {
            return false;
        }
        if (at.row->type == LW_OPTION_LATER) {
            path->count = part + 1;
        }
    }
    if (!takes_value(&at)) {
        return fail(path, path->count - 1, at.rows, "is a section; name a key in it");
    }
    path->row = at.row;
    return true;
}

static struct lw_node *
item_at(struct lw_node *list, size_t index)
{
    struct lw_node *item = list->first;
    while (index-- > 0) {
        item = item->next;
    }
    return item;
}

static void
put_child(struct lw_node *map, struct lw_node *old, const char *key, struct lw_node *fresh)
{
    fresh->key = key;
    if (old) {
        lw_node_replace(old, fresh);
    } else {
        lw_node_append(map, fresh);
    }
}

bool
lw_config_path_put(const struct lw_config_path *path, struct lw_node *root,
                   struct lw_node *value, struct lw_config_arena *arena)
{
    struct lw_node *map = root;
    for (size_t part = 0; part < path->count; part++) {
        const char *key = path->keys[part];
        struct lw_node *child = key ? lw_node_child(map, key)
                                    : item_at(map, path->indexes[part]);
        bool is_last = part + 1 == path->count;
        if (!is_last && child && child->kind != LW_NODE_SCALAR) {
            map = child;
            continue;
        }
        struct lw_node *fresh = is_last ? value : lw_node_create(arena, LW_NODE_MAP);
        const char *copy = key ? lw_config_arena_text(arena, key, strlen(key)) : NULL;
        if (!fresh || (key && !copy)) {
            return false;
        }
        fresh->key_place = value->place;
        fresh->place = value->place;
        fresh->origin = value->origin;
        put_child(map, child, copy, fresh);
        map = fresh;
    }
    return true;
}

void
lw_config_path_print(const struct lw_config_path *path, size_t count, struct lw_text *out)
{
    for (size_t i = 0; i < count; i++) {
        lw_text_format(out, "%s%s", i > 0 ? "." : "", path->parts[i]);
    }
}
