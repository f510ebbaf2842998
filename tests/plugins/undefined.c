/* SPDX-License-Identifier: Apache-2.0 */
/*
 * undefined.c: a handler that uses a function that no library has, as when a plug-in is linked
 * without one.
 */
#include <laneway/handler.h>

extern enum lw_verdict nobody_defines_this(struct lw_delivery *delivery);

static enum lw_verdict
handle(struct lw_delivery *delivery, void *user)
{
    (void)user;
    return nobody_defines_this(delivery);
}

LW_HANDLER(lw_handler) = { LW_HANDLER_HEAD, .handle = handle };
