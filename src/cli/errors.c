/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `laneway errors [CODE]`: the catalogue of error codes, offline, as the command itself prints
 * them. Without a code it lists all.
 */
#include <string.h>

#include "base/json.h"
#include "cli/command.h"
#include "service/catalogue.h"
#include "service/registry.h"

static void
append_one_json(const struct lw_catalogue_entry *entry, struct lw_text *out)
{
    struct lw_json json;
    lw_json_init(&json, out);
    lw_json_object(&json);
    lw_json_key(&json, "code");
    lw_json_string(&json, entry->code);
    lw_json_key(&json, "title");
    lw_json_string(&json, entry->title);
    lw_json_key(&json, "explanation");
    lw_json_string(&json, entry->explanation);
    lw_json_key(&json, "remedy");
    lw_json_string(&json, entry->remedy);
    lw_json_object_end(&json);
    lw_text_append_char(out, '\n');
}

/* E0410 is about properties of the client: it ends with their list. */
static void
append_one(struct lw_cli *cli, const struct lw_catalogue_entry *entry)
{
    lw_catalogue_print(entry, &cli->out);
    if (strcmp(entry->code, "E0410") == 0) {
        lw_text_append_char(&cli->out, '\n');
        lw_registry_client_properties(&cli->out);
    }
}

static void
append_all(struct lw_cli *cli)
{
    struct lw_json json;
    if (!cli->is_json) {
        lw_catalogue_list(&cli->out);
        return;
    }
    lw_json_init(&json, &cli->out);
    lw_catalogue_json(&json);
    lw_text_append_char(&cli->out, '\n');
}

int
lw_command_errors(struct lw_cli *cli)
{
    if (lw_cli_next(cli) == LW_FLAG_STOP) {
        return cli->exit_code;
    }
    if (cli->argument_count == 0) {
        append_all(cli);
        return LW_EXIT_OK;
    }
    for (size_t i = 0; i < cli->argument_count; i++) {
        const struct lw_catalogue_entry *entry = lw_catalogue_find(cli->arguments[i]);
        if (!entry) {
            const char *near = lw_catalogue_nearest(cli->arguments[i]);
            return lw_cli_usage(cli, "there is no code \"%s\"%s%s%s", cli->arguments[i],
                                near ? "; did you mean \"" : "", near ? near : "",
                                near ? "\"?" : "");
        }
        if (cli->is_json) {
            append_one_json(entry, &cli->out);
        } else {
            append_one(cli, entry);
        }
    }
    return LW_EXIT_OK;
}
