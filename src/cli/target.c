/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds and makes the one broker that send and peek talk to, with a loop of its own. A memory
 * broker lives inside one process, so it is refused.
 */
#include "cli/target.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "cli/config.h"
#include "cli/connect.h"
#include "service/registry.h"

bool
lw_target_is_flag(int id)
{
    return id == 'b' || id == LW_FLAG_TARGET_BROKER;
}

/* With an address instead of a configuration there is one broker, and no name for it. */
static bool
take_property(struct lw_target *target, struct lw_cli *cli, const char *text)
{
    size_t length = strcspn(text, ":=");
    const char *equals = text + length;
    if (length == 0 || *equals != '=') {
        cli->exit_code = lw_cli_usage(cli, "-X \"%s\" is not NAME=VALUE, as -b wants it", text);
        return false;
    }
    char *name = lw_copy_text_n(text, length);
    if (!name) {
        cli->exit_code = lw_cli_fail_memory();
        return false;
    }
    target->copies[target->property_count] = name;
    target->properties[target->property_count++] = (struct lw_property){ name, equals + 1 };
    return true;
}

bool
lw_target_take(struct lw_target *target, struct lw_cli *cli, int id)
{
    switch (id) {
    case 'b':
        target->url = cli->value;
        return true;
    default:
        target->broker_name = cli->value;
        return true;
    }
}

static const struct lw_config_broker *
choose(const struct lw_target *target, struct lw_cli *cli)
{
    const struct lw_config *config = target->config;
    if (target->broker_name) {
        const struct lw_config_broker *broker = lw_config_broker(config, target->broker_name);
        if (!broker) {
            cli->exit_code = lw_cli_usage(
                cli, "no broker is called \"%s\" in the configuration", target->broker_name);
        }
        return broker;
    }
    if (config->broker_count != 1) {
        cli->exit_code = lw_cli_usage(
            cli, "the configuration has %zu brokers: say --broker NAME", config->broker_count);
        return NULL;
    }
    return &config->brokers[0];
}

static bool
create(struct lw_target *target, struct lw_cli *cli, const struct lw_config_broker *broker)
{
    struct lw_error error = { 0 };
    if (lw_loop_create(0, &target->loop) != LW_STATUS_OK) {
        cli->exit_code = lw_cli_fail_memory();
        return false;
    }
    if (lw_connect_create(lw_loop_host(target->loop), broker, &target->broker, &error) ==
        LW_STATUS_OK) {
        return true;
    }
    cli->exit_code = lw_cli_fail(cli, &error);
    return false;
}

static bool
open_url(struct lw_target *target, struct lw_cli *cli)
{
    for (size_t i = 0; i < cli->property_count; i++) {
        if (!take_property(target, cli, cli->properties[i])) {
            return false;
        }
    }
    struct lw_config_broker broker = { .name = "broker",
                                       .url = target->url,
                                       .properties = target->properties,
                                       .property_count = target->property_count };
    return create(target, cli, &broker);
}

bool
lw_target_open(struct lw_target *target, struct lw_cli *cli)
{
    bool has_config = cli->file_count > 0 || getenv("LANEWAY_CONFIG");
    if (!target->url && !has_config) {
        cli->exit_code = lw_cli_usage(cli, "say which broker: -b URL, or -c FILE");
        return false;
    }
    if (target->url && strncmp(target->url, "memory:", 7) == 0) {
        cli->exit_code = lw_cli_usage(
            cli, "a memory broker lives inside one process; nobody else can reach it");
        return false;
    }
    if (target->url) {
        return open_url(target, cli);
    }
    target->config = lw_cli_config_require(cli, LW_CLI_MANY);
    if (!target->config) {
        return false;
    }
    const struct lw_config_broker *broker = choose(target, cli);
    if (broker && !lw_config_is_remote(broker)) {
        cli->exit_code = lw_cli_usage(
            cli, "a memory broker lives inside one process; nobody else can reach it");
        return false;
    }
    return broker && create(target, cli, broker);
}

void
lw_target_close(struct lw_target *target)
{
    if (target->broker) {
        target->broker->ops->destroy(target->broker);
    }
    lw_loop_destroy(target->loop);
    lw_config_destroy(target->config);
    for (size_t i = 0; i < target->property_count; i++) {
        lw_free(target->copies[i]);
    }
}
