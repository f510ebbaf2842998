/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees of configuration nodes: building, laying over, finding, walking, and naming a node in a
 * message. Knows nothing of YAML and only carries the schema's row.
 */
#include "service/config_node.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"

enum { PATH_PARTS_MAX = 16, SHOWN_CHARS_MAX = 60 };

struct lw_node *
lw_node_create(struct lw_config_arena *arena, enum lw_node_kind kind)
{
    struct lw_node *node = lw_config_arena_take(arena, sizeof(*node));
    if (node) {
        node->kind = kind;
    }
    return node;
}

void
lw_node_append(struct lw_node *parent, struct lw_node *child)
{
    lw_assert(parent != NULL && child != NULL);
    child->parent = parent;
    child->next = NULL;
    if (parent->last) {
        parent->last->next = child;
    } else {
        parent->first = child;
    }
    parent->last = child;
}

void
lw_node_replace(struct lw_node *old, struct lw_node *fresh)
{
    struct lw_node *parent = old->parent;
    struct lw_node **link = &parent->first;
    while (*link != old) {
        link = &(*link)->next;
    }
    *link = fresh;
    fresh->next = old->next;
    fresh->parent = parent;
    if (parent->last == old) {
        parent->last = fresh;
    }
    old->parent = NULL;
}

/* Takes the first child out. */
static struct lw_node *
pop_child(struct lw_node *map)
{
    struct lw_node *child = map->first;
    map->first = child->next;
    map->last = map->first ? map->last : NULL;
    return child;
}

/* Joins one child into `under`; returns the pair that must be joined further down. */
static struct lw_node *
merge_child(struct lw_node *under, struct lw_node *child)
{
    struct lw_node *old = lw_node_child(under, child->key);
    if (!old) {
        lw_node_append(under, child);
        return NULL;
    }
    if (old->kind == LW_NODE_MAP && child->kind == LW_NODE_MAP) {
        return old;
    }
    lw_node_replace(old, child);
    return NULL;
}

/*
 * Maps that meet are joined depth first: `over` is a map that still has children to give, and
 * climbing back goes by the parents of both, which stay in step.
 */
void
lw_node_merge(struct lw_node *under, struct lw_node *over)
{
    struct lw_node *top = under;
    while (over->first || under != top) {
        if (!over->first) {
            over = over->parent;
            under = under->parent;
            continue;
        }
        struct lw_node *child = pop_child(over);
        struct lw_node *below = merge_child(under, child);
        if (below) {
            child->parent = over;
            over = child;
            under = below;
        }
    }
}

struct lw_node *
lw_node_child(const struct lw_node *map, const char *key)
{
    for (struct lw_node *child = map ? map->first : NULL; child; child = child->next) {
        if (child->key && strcmp(child->key, key) == 0) {
            return child;
        }
    }
    return NULL;
}

struct lw_node *
lw_node_at(const struct lw_node *map, const char *path)
{
    char part[64];
    const struct lw_node *node = map;
    while (node && *path) {
        size_t length = strcspn(path, ".");
        if (length >= sizeof(part)) {
            return NULL;
        }
        memcpy(part, path, length);
        part[length] = '\0';
        path += length + (path[length] == '.' ? 1 : 0);
        struct lw_node *child = lw_node_child(node, part);
        if (!child || !*path) {
            return child;
        }
        node = child;
    }
    return NULL;
}

bool
lw_node_is_empty(const struct lw_node *node)
{
    return node->kind == LW_NODE_SCALAR && !node->is_quoted &&
           (node->text[0] == '\0' || strcmp(node->text, "~") == 0 ||
            strcmp(node->text, "null") == 0);
}

bool
lw_node_has(const struct lw_node *map, const char *path)
{
    const struct lw_node *node = lw_node_at(map, path);
    return node && !node->is_bad && !lw_node_is_empty(node);
}

struct lw_node *
lw_node_skip(const struct lw_node *root, const struct lw_node *node)
{
    while (node && node != root) {
        if (node->next) {
            return node->next;
        }
        node = node->parent;
    }
    return NULL;
}

struct lw_node *
lw_node_next(const struct lw_node *root, const struct lw_node *node)
{
    return node->first ? node->first : lw_node_skip(root, node);
}

static size_t
index_of(const struct lw_node *item)
{
    size_t index = 0;
    for (const struct lw_node *node = item->parent->first; node != item; node = node->next) {
        index++;
    }
    return index;
}

const char *
lw_node_path(const struct lw_node *node, char *out, size_t size)
{
    const struct lw_node *parts[PATH_PARTS_MAX];
    size_t count = 0;
    for (; node->parent && count < PATH_PARTS_MAX; node = node->parent) {
        parts[count++] = node;
    }
    if (count == 0) {
        lw_text_copy(out, size, "the file");
        return out;
    }
    size_t used = 0;
    out[0] = '\0';
    while (count-- > 0 && used < size - 1) {
        const char *dot = used > 0 ? "." : "";
        char name[SHOWN_CHARS_MAX + 8];
        int length = parts[count]->key
                         ? snprintf(out + used, size - used, "%s%s", dot,
                                    lw_text_shown(parts[count]->key, name, sizeof(name)))
                         : snprintf(out + used, size - used, "%s%zu", dot,
                                    index_of(parts[count]));
        used += length > 0 ? (size_t)length : 0;
    }
    return out;
}

const char *
lw_text_shown(const char *text, char *out, size_t size)
{
    size_t limit = size - 4 < SHOWN_CHARS_MAX ? size - 4 : SHOWN_CHARS_MAX;
    size_t used = 0;
    bool is_text = lw_text_is_utf8(text, strlen(text));
    for (; *text && used < limit; text++) {
        unsigned char c = (unsigned char)*text;
        out[used++] = c < 0x20 || c == 0x7F || (!is_text && c >= 0x80) ? '?' : *text;
    }
    if (*text) {
        while (used > 0 && ((unsigned char)*text & 0xC0) == 0x80) {
            text--;
            used--;
        }
        memcpy(out + used, "...", 3);
        used += 3;
    }
    out[used] = '\0';
    return out;
}

const char *
lw_node_shown(const struct lw_node *node, char *out, size_t size)
{
    if (node->is_secret) {
        lw_text_copy(out, size, "***");
        return out;
    }
    return lw_text_shown(node->text ? node->text : "", out, size);
}

void
lw_node_origin(const struct lw_node *node, struct lw_text *out)
{
    const struct lw_place *place = lw_node_name_place(node);
    lw_text_append(out, place->name ? place->name : "");
    if (place->line > 0) {
        lw_text_format(out, ":%u", place->line);
    }
}

const struct lw_place *
lw_node_name_place(const struct lw_node *node)
{
    return node->key ? &node->key_place : &node->place;
}

struct lw_place
lw_node_whole(const struct lw_node *node)
{
    struct lw_place whole = *lw_node_name_place(node);
    if (whole.line > 0 && node->place.line == whole.line && node->place.column > whole.column) {
        whole.length = node->place.column + node->place.length - whole.column;
    }
    return whole;
}
