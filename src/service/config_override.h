/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single values laid over the files: variables named LANEWAY_SECTION__KEY from .env files and
 * from the environment, then --set PATH=VALUE. A variable that sets nothing is a warning, since
 * the environment is shared; a --set that sets nothing is an error.
 */
#ifndef LW_SERVICE_CONFIG_OVERRIDE_H
#define LW_SERVICE_CONFIG_OVERRIDE_H

#include "service/config_env.h"
#include "service/config_node.h"

void lw_config_override_env(struct lw_node *root, const struct lw_config_env *env,
                            struct lw_config_arena *arena, struct lw_diagnostics *diagnostics);
void lw_config_override_set(struct lw_node *root, const char *const *sets, size_t count,
                            struct lw_config_arena *arena, struct lw_diagnostics *diagnostics);

#endif
