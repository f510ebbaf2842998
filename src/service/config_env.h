/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Variables: those of the environment and those of .env files, which are read only when they are
 * asked for and are weaker. They answer ${NAME} in files, and those named LANEWAY_SECTION__KEY
 * override single values (config_override.h).
 */
#ifndef LW_SERVICE_CONFIG_ENV_H
#define LW_SERVICE_CONFIG_ENV_H

#include "service/config_arena.h"
#include "service/diagnostic.h"

struct lw_config_var {
    struct lw_config_var *next;
    const char *name;
    const char *value;
    struct lw_place place; /* in the .env file */
};

struct lw_config_env {
    const char *const *environment; /* NAME=VALUE, NULL-terminated; may be NULL */
    struct lw_config_var *first;    /* of the .env files, later files first */
};

/* Reads one .env file over those read before; errors are reported. */
void lw_config_env_read(struct lw_config_env *env, const char *path,
                        struct lw_config_arena *arena, struct lw_diagnostics *diagnostics);
/* The same for a text that is in memory. */
void lw_config_env_parse(struct lw_config_env *env, const struct lw_document *document,
                         struct lw_config_arena *arena, struct lw_diagnostics *diagnostics);
/* Returns the value, or NULL when it is not set. */
const char *lw_config_env_get(const struct lw_config_env *env, const char *name, size_t length);

#endif
