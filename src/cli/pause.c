/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `laneway pause`, `resume` and `drain`: changes to a running service, over its control socket.
 * Who paused and why goes along, so that status and the log can tell.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/request.h"

enum { FLAG_REASON = LW_FLAG_OWN, FLAG_FOR };

const struct lw_flag lw_pause_flags[] = {
    { FLAG_REASON, "reason", "TEXT", "why; shown by status and in the log" },
    { FLAG_FOR, "for", "DURATION", "resumes by itself after that, such as 10m" },
    LW_ROW_URL,
    LW_ROW_JSON,
    LW_ROW_COLOR,
    LW_ROW_END,
};

struct pause_options {
    const char *reason;
    int64_t for_ms;
};

static bool
read_flags(struct lw_cli *cli, struct pause_options *options)
{
    int id;
    const char *why = NULL;
    while ((id = lw_cli_next(cli)) != LW_FLAG_END) {
        if (id == FLAG_REASON) {
            options->reason = cli->value;
        } else if (id != FLAG_FOR) {
            return false;
        } else if (!lw_text_to_duration_ms(cli->value, &options->for_ms, &why) ||
                   options->for_ms <= 0) {
            cli->exit_code = lw_cli_usage(cli, "--for \"%s\" is no duration such as 10m",
                                          cli->value);
            return false;
        }
    }
    return true;
}

static int
wrong_target(struct lw_cli *cli)
{
    return lw_cli_usage(cli, "say which PIPELINE, PIPELINE/TOPIC or TOPIC");
}

static int
send_target(struct lw_cli *cli, struct lw_json *json, struct lw_text *text, const char *done)
{
    lw_json_key(json, "target");
    lw_json_string(json, cli->arguments[0]);
    int exit_code = lw_cli_request_send(cli, json, text, NULL);
    if (exit_code == LW_EXIT_OK && !cli->is_json) {
        lw_text_format(&cli->out, "%s %s\n", done, cli->arguments[0]);
    }
    return exit_code;
}

/* Who asks, for the report and the log. */
static void
put_who(struct lw_json *json)
{
    const char *user = getenv("USER");
    char number[32];
    (void)snprintf(number, sizeof number, "uid %lu", (unsigned long)getuid());
    lw_json_key(json, "who");
    lw_json_string(json, user && user[0] ? user : number);
}

int
lw_command_pause(struct lw_cli *cli)
{
    struct pause_options options = { 0 };
    struct lw_json json;
    struct lw_text text;
    if (!read_flags(cli, &options)) {
        return cli->exit_code;
    }
    if (cli->argument_count != 1) {
        return wrong_target(cli);
    }
    lw_cli_request_begin(&json, &text, "pause");
    put_who(&json);
    lw_json_key(&json, "why");
    lw_json_string(&json, options.reason ? options.reason : "");
    lw_json_key(&json, "for_ms");
    lw_json_int(&json, options.for_ms);
    return send_target(cli, &json, &text, "paused");
}

int
lw_command_resume(struct lw_cli *cli)
{
    struct lw_json json;
    struct lw_text text;
    if (lw_cli_next(cli) == LW_FLAG_STOP) {
        return cli->exit_code;
    }
    if (cli->argument_count != 1) {
        return wrong_target(cli);
    }
    lw_cli_request_begin(&json, &text, "resume");
    return send_target(cli, &json, &text, "resumed");
}

int
lw_command_drain(struct lw_cli *cli)
{
    struct lw_json json;
    struct lw_text text;
    if (lw_cli_next(cli) == LW_FLAG_STOP) {
        return cli->exit_code;
    }
    lw_cli_request_begin(&json, &text, "drain");
    int exit_code = lw_cli_request_send(cli, &json, &text, NULL);
    if (exit_code == LW_EXIT_OK && !cli->is_json) {
        lw_text_append(&cli->out, "draining: it finishes what is in hand and ends\n");
    }
    return exit_code;
}
