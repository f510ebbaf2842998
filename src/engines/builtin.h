/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers for trials, demonstrations and benches, made from a text:
 *   echo       replies with the payload
 *   noop       does nothing (also `none`)
 *   sleep:D    blocks its thread for a duration such as 5ms
 *   io:D       waits for a duration without a thread; on the threads engine it blocks one
 *   cpu:N      computes N SHA-256 digests, each of the one before
 *   fail-n:N   asks for a retry in the first N runs of a message, then is ok
 * They need no code of the user and behave the same on the loop and on threads. Of a batch they
 * take one message after the other; the first that is not ok is the one verdict for all.
 */
#ifndef LW_ENGINES_BUILTIN_H
#define LW_ENGINES_BUILTIN_H

#include <laneway/plugin.h>

struct lw_builtin {
    lw_handler_fn handler;
    lw_handler_async_fn handler_async; /* NULL unless it waits without a thread: io */
    lw_handler_batch_fn handler_batch; /* the blocking one, message by message */
    void *user;                        /* for both */
};

/*
 * LW_STATUS_INVALID with a text in ret_error when `text` names none. Of the two functions the
 * caller gives the engine the one that it can run; on the loop, `handler_async` if there is one.
 */
enum lw_status lw_builtin_create(const char *text, struct lw_builtin **ret_builtin,
                                 struct lw_error *ret_error);
/* After its engine; NULL is fine. */
void lw_builtin_destroy(struct lw_builtin *builtin);

#endif
