/* SPDX-License-Identifier: Apache-2.0 */
/* How commands come to their configuration: files from -c, from arguments or LANEWAY_CONFIG. */
#ifndef LW_CLI_CONFIG_H
#define LW_CLI_CONFIG_H

#include "cli/command.h"
#include "service/config.h"

/* The files that the user means, -c first; arguments from `first` on count as files too. */
struct lw_cli_files {
    const char *names[LW_CLI_MANY * 2];
    size_t count;
    char *copy; /* of LANEWAY_CONFIG, cut into pieces */
};

/* False (after a message, exit code in cli->exit_code) when there are none. */
bool lw_cli_files_find(struct lw_cli *cli, size_t first, struct lw_cli_files *ret_files);
void lw_cli_files_deinit(struct lw_cli_files *files);

/*
 * Loads them with --set, --env-file and the environment over them. Prints nothing; the caller
 * owns `diagnostics` (initialised here) and the result, which is NULL when there are errors.
 */
struct lw_config *lw_cli_config_load(const struct lw_cli *cli, const struct lw_cli_files *files,
                                     struct lw_diagnostics *diagnostics);
/* The same for commands that go on: prints what is wrong; NULL with cli->exit_code set. */
struct lw_config *lw_cli_config_require(struct lw_cli *cli, size_t first);
/* The exit code for a configuration that could not be loaded: 66 for a file that is not there. */
int lw_cli_config_exit_code(const struct lw_diagnostics *diagnostics);
/* Writes the diagnostics to standard error; --quiet leaves only errors. */
void lw_cli_config_tell(const struct lw_cli *cli, const struct lw_diagnostics *diagnostics);

#endif
