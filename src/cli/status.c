/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `laneway status` and `laneway explain`: what a running service does, and what every message in
 * its hands waits for. The service writes the text; with --json it gives its figures.
 */
#include "cli/request.h"

const struct lw_flag lw_request_flags[] = { LW_ROW_URL, LW_ROW_JSON, LW_ROW_COLOR, LW_ROW_END };

static void
ask_for_text(const struct lw_cli *cli, struct lw_json *json)
{
    lw_json_key(json, "as");
    lw_json_string(json, cli->is_json ? "json" : "text");
}

int
lw_command_status(struct lw_cli *cli)
{
    struct lw_json json;
    struct lw_text text;
    if (lw_cli_next(cli) == LW_FLAG_STOP) {
        return cli->exit_code;
    }
    if (cli->argument_count > 0) {
        return lw_cli_usage(cli, "status takes no argument; see: laneway explain");
    }
    lw_cli_request_begin(&json, &text, "status");
    ask_for_text(cli, &json);
    return lw_cli_request_send(cli, &json, &text, "status");
}

int
lw_command_explain(struct lw_cli *cli)
{
    struct lw_json json;
    struct lw_text text;
    if (lw_cli_next(cli) == LW_FLAG_STOP) {
        return cli->exit_code;
    }
    if (cli->argument_count > 1) {
        return lw_cli_usage(cli, "explain takes one topic");
    }
    lw_cli_request_begin(&json, &text, "explain");
    ask_for_text(cli, &json);
    if (cli->argument_count == 1) {
        lw_json_key(&json, "topic");
        lw_json_string(&json, cli->arguments[0]);
    }
    return lw_cli_request_send(cli, &json, &text, "explain");
}
