/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small files, read whole into the arena: configurations, .env files, secrets. Blocks.
 */
#ifndef LW_SERVICE_CONFIG_FILE_H
#define LW_SERVICE_CONFIG_FILE_H

#include "service/config_arena.h"
#include "service/diagnostic.h"

/*
 * Reads at most bytes_max bytes; terminated. On failure *ret_why is a clause such as "No such
 * file or directory" (or "" without memory: then arena->is_failed).
 */
bool lw_config_file_read(const char *path, size_t bytes_max, struct lw_config_arena *arena,
                         const char **ret_text, size_t *ret_size, const char **ret_why);
/* Returns the folder of a path, "." for a bare name. */
const char *lw_config_file_directory(const char *path, struct lw_config_arena *arena);
/* Returns the path as seen from `directory`; absolute ones stay. */
const char *lw_config_file_join(const char *directory, const char *path,
                                struct lw_config_arena *arena);
/* True when a program could be started under that name: a path, or a name found in PATH. */
bool lw_config_file_is_program(const char *name, const char *directory, const char *search);

#endif
