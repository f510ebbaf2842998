/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the two printers of the plan share: every effective value with its origin, names that may
 * be secret, and the delays of retries. Internal to config_plan*.c and the messages of the rules.
 */
#ifndef LW_SERVICE_CONFIG_PLAN_H
#define LW_SERVICE_CONFIG_PLAN_H

#include "service/config.h"

struct lw_plan_value {
    const char *path;   /* "pipelines.orders.retry.max_retries" */
    const char *value;  /* as in a file; *** when secret */
    const char *origin; /* "orders.yaml:12", "default", a variable, --set */
};

struct lw_plan_values {
    struct lw_config_arena arena; /* the caller gives it back with lw_config_arena_deinit */
    struct lw_plan_value *items;
    size_t count;
};

/* Lists all values, in the order of the schema; false without memory. */
bool lw_plan_values_list(const struct lw_config *config, struct lw_plan_values *ret_values);

enum lw_config_name {
    LW_CONFIG_NAME_TOPIC,
    LW_CONFIG_NAME_RETRY,
    LW_CONFIG_NAME_DEAD_LETTER,
    LW_CONFIG_NAME_REPLY
};
/* Returns a name for people: *** when it was made from a secret, NULL when there is none. */
const char *lw_config_name_shown(const struct lw_config_subscription *subscription,
                                 enum lw_config_name which);
/* True when the node or anything below it is secret. */
bool lw_node_has_secret(const struct lw_node *node);

enum { LW_PLAN_DELAYS_MAX = 10 };

/* Delays before the retries, without jitter; *ret_is_cut: more follow, as long as the last. */
size_t lw_plan_delays(const struct lw_config_subscription *subscription,
                      int64_t out[LW_PLAN_DELAYS_MAX], bool *ret_is_cut);

#endif
