/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `laneway schema`, and the hidden command that writes the pages of docs/ which are made from the
 * option rows and the catalogue of errors.
 */
#include <string.h>

#include "cli/command.h"
#include "service/catalogue.h"
#include "service/config.h"

int
lw_command_schema(struct lw_cli *cli)
{
    if (lw_cli_next(cli) == LW_FLAG_STOP) {
        return cli->exit_code;
    }
    lw_config_schema(&cli->out);
    return cli->out.is_failed ? lw_cli_fail_memory() : LW_EXIT_OK;
}

int
lw_command_reference(struct lw_cli *cli)
{
    if (lw_cli_next(cli) == LW_FLAG_STOP) {
        return cli->exit_code;
    }
    if (cli->argument_count == 0) {
        lw_config_reference(&cli->out);
    } else if (strcmp(cli->arguments[0], "errors") == 0) {
        lw_catalogue_reference(&cli->out);
    } else {
        return lw_cli_usage(cli, "there is no page \"%s\"", cli->arguments[0]);
    }
    return cli->out.is_failed ? lw_cli_fail_memory() : LW_EXIT_OK;
}
