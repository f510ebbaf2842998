/* SPDX-License-Identifier: Apache-2.0 */
/*
 * undefined_of_ours.c: a handler that uses a function of ours that this Laneway does not have, as
 * one that was built for a newer version.
 */
#include <laneway/handler.h>

extern enum lw_verdict lw_delivery_from_the_future(struct lw_delivery *delivery);

static enum lw_verdict
handle(struct lw_delivery *delivery, void *user)
{
    (void)user;
    return lw_delivery_from_the_future(delivery);
}

LW_HANDLER(lw_handler) = { LW_HANDLER_HEAD, .handle = handle };
