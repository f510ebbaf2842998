/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `laneway plan`: what run would do, without doing it: serving order, where retries, dead letters
 * and replies go, every value and where it came from.
 */
#include "cli/config.h"

const struct lw_flag lw_plan_flags[] = {
    LW_ROW_CONFIG, LW_ROW_SET,   LW_ROW_PROPERTY, LW_ROW_ENV_FILE,
    LW_ROW_JSON,   LW_ROW_QUIET, LW_ROW_COLOR,    LW_ROW_END,
};

int
lw_command_plan(struct lw_cli *cli)
{
    struct lw_json json;
    if (lw_cli_next(cli) == LW_FLAG_STOP) {
        return cli->exit_code;
    }
    struct lw_config *config = lw_cli_config_require(cli, 0);
    if (!config) {
        return cli->exit_code;
    }
    if (cli->is_json) {
        lw_json_init(&json, &cli->out);
        lw_config_plan_json(config, &json);
        lw_text_append_char(&cli->out, '\n');
    } else {
        lw_config_plan_print(config, &cli->out);
    }
    lw_config_destroy(config);
    return cli->out.is_failed ? lw_cli_fail_memory() : LW_EXIT_OK;
}
