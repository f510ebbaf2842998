/* SPDX-License-Identifier: Apache-2.0 */
/* Fills a dispatcher from a configuration, all or nothing; and what api.c and family.c share. */
#ifndef LW_SERVICE_LOAD_H
#define LW_SERVICE_LOAD_H

#include "dispatcher/dispatcher.h"
#include "service/config.h"

/* The functions that an embedding program gives to `function: NAME`. */
struct lw_bindings {
    const struct lw_binding *items;
    size_t count;
};

/* Reads the file with the environment over it. */
enum lw_status lw_service_load(struct lw_dispatcher *dispatcher, const char *path,
                               struct lw_bindings bindings, struct lw_error *ret_error);
/*
 * Adds the brokers, one engine per handler, and all subscriptions. On failure the caller destroys
 * the dispatcher: what was added before stays.
 */
enum lw_status
lw_service_build(struct lw_dispatcher *dispatcher, const struct lw_config *config,
                 struct lw_bindings bindings, struct lw_error *ret_error);

/* STATE once run began. */
enum lw_status
lw_service_check_new(struct lw_dispatcher *dispatcher, struct lw_error *ret_error);
/* Copies what an older or this caller's struct has over all defaults. */
enum lw_status lw_subscription_options_adopt(const struct lw_subscription_options *given,
                                             struct lw_subscription_options *ret_full,
                                             struct lw_error *ret_error);
/* Adds `count` subscriptions that share the engine, which it takes over; all or nothing. */
enum lw_status lw_service_subscribe(struct lw_dispatcher *dispatcher,
                                    const struct lw_subscription_options *options, size_t count,
                                    struct lw_engine *engine, struct lw_error *ret_error);

#endif
