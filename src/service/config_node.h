/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree of a configuration before it means anything: maps, lists and scalars, each with the
 * place it came from. Files, variables and --set all end up in one tree; the binder then hangs
 * the row of the schema on every node and fills the structs. Trees are walked in document order
 * by lw_node_next, without recursion. All memory is the arena's.
 */
#ifndef LW_SERVICE_CONFIG_NODE_H
#define LW_SERVICE_CONFIG_NODE_H

#include "base/option.h"
#include "service/config_arena.h"
#include "service/diagnostic.h"

enum lw_node_kind { LW_NODE_SCALAR, LW_NODE_MAP, LW_NODE_LIST };

enum lw_origin_kind {
    LW_ORIGIN_FILE,
    LW_ORIGIN_ENV_FILE,
    LW_ORIGIN_ENVIRONMENT,
    LW_ORIGIN_SET
};

struct lw_node {
    enum lw_node_kind kind;
    enum lw_origin_kind origin;
    struct lw_node *parent;
    struct lw_node *next; /* sibling */
    struct lw_node *first;
    struct lw_node *last;
    const char *key; /* NULL for items of a list and for the root */
    struct lw_place key_place;
    struct lw_place place;        /* of the value */
    const char *text;             /* of a scalar */
    const struct lw_option *row;  /* what the schema says; NULL: nothing (reported) */
    const struct lw_option *rows; /* of its children, where these are keys */
    void *target;                 /* the struct that the children fill; while binding */
    bool is_quoted;
    bool is_secret; /* never shown: substituted, or the value of a secret key */
    bool is_bad;    /* reported; do not use */
    bool is_entry;  /* an entry of a MAP or LIST row, not the row's own value */
};

struct lw_node *lw_node_create(struct lw_config_arena *arena, enum lw_node_kind kind);
/* Puts `child` at the end of `parent`. */
void lw_node_append(struct lw_node *parent, struct lw_node *child);
/* Puts `fresh` in the place of `old`, which is dropped. */
void lw_node_replace(struct lw_node *old, struct lw_node *fresh);
/* Lays the later tree over the earlier one: maps are joined, everything else replaced. */
void lw_node_merge(struct lw_node *under, struct lw_node *over);

/* Returns the child of that name, or NULL; NULL in, NULL out. */
struct lw_node *lw_node_child(const struct lw_node *map, const char *key);
/* Returns the node at "retry.backoff.max" below `map`, or NULL. */
struct lw_node *lw_node_at(const struct lw_node *map, const char *path);
/* True when there is a usable value at the path. */
bool lw_node_has(const struct lw_node *map, const char *path);

/* The node after this one in document order, below `root`; NULL at the end. */
struct lw_node *lw_node_next(const struct lw_node *root, const struct lw_node *node);
/* The same, without going into `node`. */
struct lw_node *lw_node_skip(const struct lw_node *root, const struct lw_node *node);

/* True for `key:` with nothing behind it. */
bool lw_node_is_empty(const struct lw_node *node);
/* Writes "pipelines.orders.retry" for messages; the root gives "the file". */
const char *lw_node_path(const struct lw_node *node, char *out, size_t size);
/* Writes the value for messages: quoted, printable, short, *** when secret. */
const char *lw_node_shown(const struct lw_node *node, char *out, size_t size);
/* Makes any text fit for a message: printable, cut at `size`. */
const char *lw_text_shown(const char *text, char *out, size_t size);
/* Appends "orders.yaml:12", "LANEWAY_SERVICE__CONCURRENCY" or "--set". */
void lw_node_origin(const struct lw_node *node, struct lw_text *out);
/* From the key to the end of the value, if they share a line; else the key. */
struct lw_place lw_node_whole(const struct lw_node *node);
/* The key's place, or the value's where there is no key. */
const struct lw_place *lw_node_name_place(const struct lw_node *node);

#endif
