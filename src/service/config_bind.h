/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schema meets the tree. First every node gets its row, and everything that is wrong with a
 * key or a value by itself is reported: unknown keys, wrong kinds, missing units, ranges, words,
 * missing keys. Then structs are filled from what is right. Rules between values are not here
 * (config_check.h).
 */
#ifndef LW_SERVICE_CONFIG_BIND_H
#define LW_SERVICE_CONFIG_BIND_H

#include "service/config_node.h"

/* Hangs rows on all nodes below `root` and reports. Bad nodes are marked and used by nobody. */
void lw_config_bind_check(struct lw_node *root, const struct lw_option *row,
                          struct lw_diagnostics *diagnostics);
/*
 * Writes every usable value below `map` into the struct that `rows` describe; fields that are
 * not given stay as they are. Texts and lists live in the arena. NULL maps do nothing.
 */
void lw_config_bind(struct lw_node *map, const struct lw_option *rows, void *target,
                    struct lw_config_arena *arena);
/* Returns the text of a scalar child, trimmed, or NULL when absent, bad or blank. */
const char *
lw_config_bind_text(const struct lw_node *map, const char *key, struct lw_config_arena *arena);

#endif
