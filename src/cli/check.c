/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `laneway check`: all errors and warnings of a configuration; with --connect also what only the
 * brokers know: whether they answer and whether the topics are there.
 */
#include <unistd.h>

#include "cli/config.h"
#include "cli/connect.h"
#include "cli/terminal.h"

enum { FLAG_CONNECT = LW_FLAG_OWN, FLAG_STRICT, FLAG_TIMEOUT };

const struct lw_flag lw_check_flags[] = {
    LW_ROW_CONFIG,
    LW_ROW_SET,
    LW_ROW_PROPERTY,
    LW_ROW_ENV_FILE,
    { FLAG_CONNECT, "connect", NULL, "also asks the brokers for their topics" },
    { FLAG_TIMEOUT, "timeout", "DURATION", "how long a broker may take (10s)" },
    { FLAG_STRICT, "strict", NULL, "warnings give exit code 1" },
    LW_ROW_JSON,
    LW_ROW_QUIET,
    LW_ROW_COLOR,
    LW_ROW_END,
};

struct check {
    struct lw_cli *cli;
    bool is_connecting;
    bool is_strict;
    int64_t timeout_ms;
    struct lw_cli_files files;
    struct lw_diagnostics diagnostics;
    struct lw_config *config;
    struct lw_connect connect;
};

static bool
read_flags(struct check *check)
{
    struct lw_cli *cli = check->cli;
    const char *why = NULL;
    int id;
    while ((id = lw_cli_next(cli)) != LW_FLAG_END) {
        if (id == FLAG_CONNECT) {
            check->is_connecting = true;
        } else if (id == FLAG_STRICT) {
            check->is_strict = true;
        } else if (id != FLAG_TIMEOUT) {
            return false;
        } else if (!lw_text_to_duration_ms(cli->value, &check->timeout_ms, &why) ||
                   check->timeout_ms <= 0) {
            cli->exit_code = lw_cli_usage(cli, "--timeout \"%s\" is no duration such as 10s",
                                          cli->value);
            return false;
        }
    }
    return true;
}

static const char *
plural(size_t count)
{
    return count == 1 ? "" : "s";
}

static void
append_summary(const struct check *check, struct lw_text *out)
{
    const struct lw_config *config = check->config;
    for (size_t i = 0; i < check->files.count; i++) {
        lw_text_format(out, "%s%s", i ? ", " : "", check->files.names[i]);
    }
    if (!config) {
        size_t errors = check->diagnostics.counts[LW_SEVERITY_ERROR];
        lw_text_format(out, ": %zu error%s\n", errors, plural(errors));
        return;
    }
    lw_text_format(out, ": ok (%zu topic%s, %zu pipeline%s, %zu handler%s)\n",
                   config->subscription_count, plural(config->subscription_count),
                   config->pipeline_count, plural(config->pipeline_count),
                   config->handler_count, plural(config->handler_count));
}

static void
append_json(const struct check *check, struct lw_text *out)
{
    struct lw_json json;
    lw_json_init(&json, out);
    lw_json_object(&json);
    lw_json_key(&json, "ok");
    lw_json_bool(&json, check->config != NULL);
    lw_json_key(&json, "diagnostics");
    lw_diagnostics_json(&check->diagnostics, &json);
    if (check->is_connecting && check->config) {
        lw_json_key(&json, "brokers");
        lw_connect_json(&check->connect, &json);
    }
    lw_json_object_end(&json);
    lw_text_append_char(out, '\n');
}

static int
exit_code_of(const struct check *check)
{
    if (!check->config) {
        return lw_cli_config_exit_code(&check->diagnostics);
    }
    if (check->connect.exit_code != LW_EXIT_OK) {
        return check->connect.exit_code;
    }
    bool has_warnings = check->diagnostics.counts[LW_SEVERITY_WARNING] > 0;
    return check->is_strict && has_warnings ? LW_EXIT_FAILED : LW_EXIT_OK;
}

static int
report(struct check *check)
{
    struct lw_cli *cli = check->cli;
    lw_diagnostics_sort(&check->diagnostics);
    if (cli->is_json) {
        append_json(check, &cli->out);
        return exit_code_of(check);
    }
    if (check->config) {
        append_summary(check, &cli->out);
        lw_connect_print(&check->connect, &cli->out);
        (void)lw_cli_flush(cli);
    }
    lw_cli_config_tell(cli, &check->diagnostics);
    return exit_code_of(check);
}

int
lw_command_check(struct lw_cli *cli)
{
    struct check check = { .cli = cli, .timeout_ms = 10000 };
    if (!read_flags(&check) || !lw_cli_files_find(cli, 0, &check.files)) {
        return cli->exit_code;
    }
    check.config = lw_cli_config_load(cli, &check.files, &check.diagnostics);
    if (check.config && check.is_connecting) {
        lw_connect_run(&check.connect, check.config, check.timeout_ms, &check.diagnostics);
    }
    int exit_code = report(&check);
    lw_connect_deinit(&check.connect);
    lw_config_destroy(check.config);
    lw_diagnostics_deinit(&check.diagnostics);
    lw_cli_files_deinit(&check.files);
    return exit_code;
}
