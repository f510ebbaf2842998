/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A path such as pipelines.orders.retry.max_retries, checked against the schema and the tree,
 * and then set. First everything is found, then the tree is changed: a path that is wrong leaves
 * no trace. The part of a path behind `properties` is one key, dots included.
 */
#ifndef LW_SERVICE_CONFIG_PATH_H
#define LW_SERVICE_CONFIG_PATH_H

#include "service/config_node.h"

enum { LW_PATH_PARTS_MAX = 12, LW_PATH_BYTES_MAX = 256 };

struct lw_config_path {
    char parts[LW_PATH_PARTS_MAX][LW_PATH_BYTES_MAX];
    size_t count;
    bool is_folded; /* from a variable: lower case, - and . written as _ */
    /* -- found by lw_config_path_find -- */
    const char *keys[LW_PATH_PARTS_MAX]; /* as the tree spells them; NULL: an item of a list */
    size_t indexes[LW_PATH_PARTS_MAX];
    const struct lw_option *row; /* of the value */
    /* -- when it is wrong -- */
    size_t bad;                      /* the part that fits nowhere */
    const struct lw_option *allowed; /* the keys at that place; NULL: not a matter of keys */
    const char *problem;             /* a clause: "is not a key here" */
};

/* Splits "a.b.c"; false when it is too long or has empty parts. */
bool lw_config_path_split(struct lw_config_path *path, const char *text);
/* Splits "SERVICE__LOG__LEVEL". */
bool lw_config_path_split_variable(struct lw_config_path *path, const char *text);
/* Finds every part; false with `bad` and `problem`. The tree is not changed. */
bool lw_config_path_find(struct lw_config_path *path, const struct lw_node *root,
                         struct lw_config_arena *arena);
/* Puts `value` at a path that was found; missing maps are made. False without memory. */
bool lw_config_path_put(const struct lw_config_path *path, struct lw_node *root,
                        struct lw_node *value, struct lw_config_arena *arena);
/* Appends the first `count` parts with dots. */
void lw_config_path_print(const struct lw_config_path *path, size_t count, struct lw_text *out);

#endif
