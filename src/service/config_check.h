/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules between values, which no type can express: what would lose order, loop, starve, or do
 * nothing. Errors refuse the configuration; warnings and notes say what will happen.
 */
#ifndef LW_SERVICE_CONFIG_CHECK_H
#define LW_SERVICE_CONFIG_CHECK_H

#include "service/config_build.h"

/* Topics, groups, dead letters, replies (config_check.c). */
void lw_config_check_topics(struct lw_config_build *build);
/* Retries and what a verdict leads to, per pipeline (config_check_retry.c). */
void lw_config_check_retry(struct lw_config_build *build);
/* Slots, workers, time limits, unused entries (config_check_limits.c). */
void lw_config_check_limits(struct lw_config_build *build);
/* Properties for the client library (config_check_client.c). */
void lw_config_check_client(struct lw_config_build *build);
/* Types of subscriptions (config_check_pulsar.c). */
void lw_config_check_pulsar(struct lw_config_build *build);

/* Files that two brokers would own (config_check_spool.c). */
void lw_config_check_spool(struct lw_config_build *build);

/* The good node at a path below `map`, or NULL. */
const struct lw_node *lw_config_check_given(const struct lw_node *map, const char *path);
/* Adds W0308: "KEY" has no effect, with the reason. Nothing when the node is NULL. */
void lw_config_check_useless(struct lw_config_build *build, const struct lw_node *node,
                             const char *reason);

#endif
