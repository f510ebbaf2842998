/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `laneway version`: our own version and that of the Kafka client. It touches nothing else, and
 * shows what starting the command costs.
 */
#include "base/json.h"
#include "cli/command.h"
#include "service/registry.h"

const struct lw_flag lw_json_flags[] = { LW_ROW_JSON, LW_ROW_COLOR, LW_ROW_END };

int
lw_command_version(struct lw_cli *cli)
{
    struct lw_json json;
    if (lw_cli_next(cli) == LW_FLAG_STOP) {
        return cli->exit_code;
    }
    const struct lw_config_client *client = lw_registry_client(LW_CONFIG_KAFKA);
    if (!cli->is_json) {
        lw_text_format(&cli->out, "laneway %s", lw_version());
        if (client) {
            lw_text_format(&cli->out, ", %s %s", client->client_name, client->version());
        }
        lw_text_append_char(&cli->out, '\n');
        return LW_EXIT_OK;
    }
    lw_json_init(&json, &cli->out);
    lw_json_object(&json);
    lw_json_key(&json, "version");
    lw_json_string(&json, lw_version());
    lw_json_key(&json, "kafka_client");
    lw_json_string(&json, client ? client->version() : NULL);
    lw_json_object_end(&json);
    lw_text_append_char(&cli->out, '\n');
    return LW_EXIT_OK;
}
