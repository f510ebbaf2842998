/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker that `send` and `peek` talk to: by its address (-b) with properties (-X), or one of
 * a configuration's (-c, and --broker NAME when it has several).
 */
#ifndef LW_CLI_TARGET_H
#define LW_CLI_TARGET_H

#include <laneway/plugin.h>

#include "base/loop.h"
#include "cli/command.h"
#include "service/config.h"

enum { LW_FLAG_TARGET_BROKER = LW_FLAG_OWN + 900 };

#define LW_ROW_TARGET_URL                                                                      \
    {                                                                                          \
        'b', "bootstrap", "URL",                                                               \
            "the broker, such as kafka://localhost:9092, pulsar://localhost:6650 or "          \
            "spool:orders.db"                                                                  \
    }
#define LW_ROW_TARGET_PROPERTY                                                                 \
    {                                                                                          \
        'X', "property", "NAME=VALUE",                                                         \
            "a property for the client; with -c FILE as BROKER:NAME=VALUE"                     \
    }
#define LW_ROW_TARGET_BROKER                                                                   \
    {                                                                                          \
        LW_FLAG_TARGET_BROKER, "broker", "NAME", "which broker of the configuration"           \
    }

struct lw_target {
    const char *url;
    const char *broker_name;
    struct lw_property properties[LW_CLI_MANY];
    char *copies[LW_CLI_MANY]; /* of the names */
    size_t property_count;
    struct lw_config *config;
    struct lw_loop *loop;
    struct lw_broker *broker;
};

/* Takes a flag of the rows above; false when it is wrong (exit code in cli->exit_code). */
bool lw_target_take(struct lw_target *target, struct lw_cli *cli, int id);
bool lw_target_is_flag(int id);
/* Makes loop and broker, not started; false with cli->exit_code. */
bool lw_target_open(struct lw_target *target, struct lw_cli *cli);
void lw_target_close(struct lw_target *target);

#endif
