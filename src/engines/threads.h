/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads engine: blocking handlers on n threads, one task per thread and none waiting behind
 * another, so that what runs next is decided by the dispatcher as late as possible: room is the
 * number of idle threads. A running function cannot be ended: after its time it is marked late
 * and cancelled and keeps its thread until it returns. Destroying waits for running handlers.
 */
#ifndef LW_ENGINES_THREADS_H
#define LW_ENGINES_THREADS_H

#include "engines/handler.h"

/* `name` is copied. Threads are made by start. The engine is destroyed through its table. */
enum lw_status
lw_threads_engine_create(struct lw_host *host, struct lw_completions *completions,
                         const char *name, const struct lw_handler_options *options,
                         struct lw_engine **ret_engine);

#endif
