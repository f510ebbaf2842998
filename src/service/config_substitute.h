/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ${NAME}, ${NAME:-default}, ${file:path} and $$ in the scalar values of a tree. After parsing,
 * so that a value cannot change the document; only in values that came from files. What was put
 * in is secret from then on.
 */
#ifndef LW_SERVICE_CONFIG_SUBSTITUTE_H
#define LW_SERVICE_CONFIG_SUBSTITUTE_H

#include "service/config_env.h"
#include "service/config_node.h"

void lw_config_substitute(struct lw_node *root, const struct lw_config_env *env,
                          struct lw_config_arena *arena, struct lw_diagnostics *diagnostics);

#endif
