/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop engine: handlers run on the loop thread. A blocking one is called inside submit and
 * answers at once; an asynchronous one is called inside submit and finishes later, from any
 * thread; either may take several messages at once. A running function cannot be ended: after
 * its time it is marked late and cancelled, holds its slot and its lane until it returns, and
 * what it says then still counts.
 */
#ifndef LW_ENGINES_LOOP_H
#define LW_ENGINES_LOOP_H

#include "engines/handler.h"

/* `name` is copied. The engine is destroyed through its table. */
enum lw_status lw_loop_engine_create(struct lw_host *host, struct lw_completions *completions,
                                     const char *name, const struct lw_handler_options *options,
                                     struct lw_engine **ret_engine);

#endif
