/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shape of a tree against the schema: which keys are known, which are missing, what must be
 * a map, a list or a single value. One pass in document order; whatever is wrong is reported
 * once, marked, and not looked into. Single values are in config_value.c.
 */
#include <string.h>

#include "service/config_bind.h"
#include "service/config_value.h"

enum { PATH_BYTES_MAX = 320, SHOWN_BYTES_MAX = 80, NAME_CHARS_MAX = 64 };

static struct lw_diagnostic *
refuse(struct lw_node *node, const char *code, struct lw_diagnostics *diagnostics,
       const char *format)
{
    char path[PATH_BYTES_MAX];
    node->is_bad = true;
    return lw_diagnostics_add(diagnostics, LW_SEVERITY_ERROR, code, lw_node_name_place(node),
                              "%s %s", lw_node_path(node, path, sizeof(path)), format);
}

/* The key may belong to a section here, or to the section above. */
static bool
help_elsewhere(const struct lw_node *map, const char *key, struct lw_diagnostic *item)
{
    char path[PATH_BYTES_MAX];
    struct lw_option_walk walk;
    lw_option_walk_start(&walk, map->rows, LW_WALK_FLAT);
    while (lw_option_walk_next(&walk)) {
        const struct lw_option *row = walk.row;
        const struct lw_option *found = row->type == LW_OPTION_GROUP
                                            ? lw_option_find(row->rows, key, NULL)
                                            : NULL;
        if (found && found->name[0] != '*') {
            lw_diagnostic_help(item, "\"%s\" belongs under \"%s\"", key, row->name);
            return true;
        }
    }
    for (const struct lw_node *up = map->parent; up; up = up->parent) {
        const struct lw_option *found = up->rows ? lw_option_find(up->rows, key, NULL) : NULL;
        if (found && found->name[0] != '*') {
            lw_diagnostic_help(item, "\"%s\" belongs under %s", key,
                               lw_node_path(up, path, sizeof(path)));
            return true;
        }
    }
    return false;
}

static void
refuse_key(struct lw_node *child, struct lw_diagnostics *diagnostics)
{
    char path[PATH_BYTES_MAX];
    char shown[SHOWN_BYTES_MAX];
    const struct lw_node *map = child->parent;
    child->is_bad = true;
    struct lw_diagnostic *item = lw_diagnostics_add(
        diagnostics, LW_SEVERITY_ERROR, "E0101", &child->key_place, "unknown key \"%s\" in %s",
        lw_text_shown(child->key, shown, sizeof(shown)), lw_node_path(map, path, sizeof(path)));
    if (diagnostics->count >= LW_DIAGNOSTICS_MAX || help_elsewhere(map, child->key, item)) {
        return;
    }
    const char *better = lw_option_nearest(map->rows, child->key);
    if (better) {
        lw_diagnostic_help(item, "did you mean \"%s\"?", better);
    }
}

static void
refuse_later(struct lw_node *child, struct lw_diagnostics *diagnostics)
{
    child->is_bad = true;
    struct lw_diagnostic *item = lw_diagnostics_add(
        diagnostics, LW_SEVERITY_ERROR, "E0113", &child->key_place,
        "\"%s\" is not in this version", child->row->name);
    lw_diagnostic_help(item, "%s Leave the key out.", child->row->doc);
}

static const struct lw_option *
rows_below(const struct lw_node *node)
{
    const struct lw_option *row = node->row;
    if (row->type == LW_OPTION_LIST && node->kind == LW_NODE_MAP) {
        return row->alternative;
    }
    return row->type == LW_OPTION_GROUP ? row->rows : NULL;
}

static void
check_required(struct lw_node *map, struct lw_diagnostics *diagnostics)
{
    char path[PATH_BYTES_MAX];
    struct lw_option_walk walk;
    struct lw_place place = *lw_node_name_place(map);
    place.line = map->parent ? place.line : 0;
    lw_option_walk_start(&walk, map->rows, LW_WALK_FLAT);
    while (lw_option_walk_next(&walk)) {
        if (walk.row->is_required && !lw_node_child(map, walk.row->name)) {
            struct lw_diagnostic *item = lw_diagnostics_add(
                diagnostics, LW_SEVERITY_ERROR, "E0107", &place, "%s needs \"%s\"",
                lw_node_path(map, path, sizeof(path)), walk.row->name);
            lw_diagnostic_help(item, "%s: %s", walk.row->name, walk.row->doc);
        }
    }
}

/* An alias is known by its first name from here on. */
static void
check_alias(struct lw_node *child, struct lw_diagnostics *diagnostics)
{
    const struct lw_option *row = child->row;
    if (row->alias && strcmp(child->key, row->alias) == 0 &&
        lw_node_child(child->parent, row->name)) {
        child->is_bad = true;
        lw_diagnostics_add(diagnostics, LW_SEVERITY_ERROR, "E0108", &child->key_place,
                           "\"%s\" and \"%s\" mean the same; keep one of them", row->alias,
                           row->name);
    }
}

static void
check_keys(struct lw_node *map, struct lw_diagnostics *diagnostics)
{
    for (struct lw_node *child = map->first; child; child = child->next) {
        if (child->is_bad) {
            continue;
        }
        child->row = lw_option_find(map->rows, child->key, NULL);
        if (!child->row) {
            refuse_key(child, diagnostics);
        } else if (child->row->type == LW_OPTION_LATER) {
            refuse_later(child, diagnostics);
        } else {
            child->rows = rows_below(child);
            check_alias(child, diagnostics);
            child->key = child->is_bad || !child->row->alias ? child->key : child->row->name;
        }
    }
    check_required(map, diagnostics);
}

static bool
is_name(const char *name)
{
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "0123456789_-");
    return length > 0 && name[length] == '\0' && length <= NAME_CHARS_MAX && name[0] != '-';
}

static void
check_entries(struct lw_node *node, struct lw_diagnostics *diagnostics)
{
    char shown[SHOWN_BYTES_MAX];
    for (struct lw_node *child = node->first; child; child = child->next) {
        child->row = node->row;
        child->rows = node->row->rows;
        child->is_entry = true;
        if (child->key && !is_name(child->key)) {
            child->is_bad = true;
            struct lw_diagnostic *item = lw_diagnostics_add(
                diagnostics, LW_SEVERITY_ERROR, "E0117", &child->key_place,
                "\"%s\" is not a name", lw_text_shown(child->key, shown, sizeof(shown)));
            lw_diagnostic_help(item, "letters, digits, \"_\" and \"-\" only, at most 64");
        }
    }
    if (!node->first) {
        struct lw_diagnostic *item = refuse(node, "E0121", diagnostics, "is empty");
        lw_diagnostic_help(item, "%s", node->row->doc);
    }
}

static enum lw_node_kind
wanted_kind(const struct lw_node *node)
{
    enum lw_option_type type = node->row->type;
    if (node->rows || type == LW_OPTION_MAP || type == LW_OPTION_PROPERTIES ||
        type == LW_OPTION_NUMBERS) {
        return LW_NODE_MAP;
    }
    return lw_option_is_scalar(node->row) ? LW_NODE_SCALAR : LW_NODE_LIST;
}

/* A scalar may stand for a section that is empty or off, and for a list of texts. */
static bool
is_scalar_fine(const struct lw_node *node, enum lw_node_kind wanted)
{
    const struct lw_option *row = node->row;
    if (wanted == LW_NODE_MAP && !node->is_entry) {
        bool is_off = row->off_word && strcmp(node->text, row->off_word) == 0;
        return is_off || lw_node_is_empty(node);
    }
    bool is_list = row->type == LW_OPTION_TEXTS || row->type == LW_OPTION_DURATIONS;
    return is_list && (row->is_list_of_text || node->origin != LW_ORIGIN_FILE);
}

static bool
check_kind(struct lw_node *node, struct lw_diagnostics *diagnostics)
{
    static const char *const sentences[] = {
        [LW_NODE_SCALAR] = "must be a single value",
        [LW_NODE_MAP] = "must be a section with keys of its own",
        [LW_NODE_LIST] = "must be a list",
    };
    enum lw_node_kind wanted = wanted_kind(node);
    if (node->kind == wanted ||
        (node->kind == LW_NODE_SCALAR && is_scalar_fine(node, wanted))) {
        return true;
    }
    struct lw_diagnostic *item = refuse(node, "E0103", diagnostics, sentences[wanted]);
    if (wanted == LW_NODE_LIST && node->row->type == LW_OPTION_TEXTS) {
        lw_diagnostic_help(item, "write it as a list: [first, second]");
    } else {
        lw_diagnostic_help(item, "%s", node->row->doc);
    }
    return false;
}

/* Looks at one node; true when the pass goes on below it. */
static bool
check_node(struct lw_node *node, struct lw_diagnostics *diagnostics)
{
    if (node->is_bad || !node->row || node->row->type == LW_OPTION_ANY ||
        !check_kind(node, diagnostics)) {
        return false;
    }
    if (node->rows && node->kind == LW_NODE_MAP) {
        check_keys(node, diagnostics);
        return true;
    }
    if (node->row->type == LW_OPTION_MAP || node->row->type == LW_OPTION_LIST) {
        check_entries(node, diagnostics);
        return !node->is_bad;
    }
    lw_config_value_check(node, diagnostics);
    return false;
}

void
lw_config_bind_check(struct lw_node *root, const struct lw_option *row,
                     struct lw_diagnostics *diagnostics)
{
    root->row = row;
    root->rows = row->rows;
    for (struct lw_node *node = root; node;) {
        bool is_deeper = check_node(node, diagnostics);
        node = is_deeper ? lw_node_next(root, node) : lw_node_skip(root, node);
    }
}
