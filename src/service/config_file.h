/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small files, read whole into the arena: configurations, .env files, secrets. Blocks.
 */
#ifndef LW_SERVICE_CONFIG_FILE_H
#define LW_SERVICE_CONFIG_FILE_H

#include "service/config_arena.h"
#include "service/diagnostic.h"

struct lw_config_file {
    const char *text; /* terminated */
    size_t size;
    const char *why; /* on failure: a clause; empty without memory (arena->is_failed) */
};

/* Reads at most bytes_max bytes into the arena. On failure only `why` is set. */
bool lw_config_file_read(const char *path, size_t bytes_max, struct lw_config_arena *arena,
                         struct lw_config_file *ret_file);
/* Returns the folder of a path, "." for a bare name. */
const char *lw_config_file_directory(const char *path, struct lw_config_arena *arena);
/* Returns the path as seen from `directory`; absolute ones stay. */
const char *
lw_config_file_join(const char *directory, const char *path, struct lw_config_arena *arena);
/* True when a program could be started under that name: a path, or a name found in PATH. */
bool lw_config_file_is_program(const char *name, const char *directory, const char *search);
/* Says what is there under a path that is no program, a clause; NULL: nothing is. */
const char *lw_config_file_not_program(const char *path, const char *directory,
                                       struct lw_config_arena *arena);

#endif
