/* SPDX-License-Identifier: Apache-2.0 */
/*
 * needs_absent.c: a handler whose library is not found when it is loaded, though it was there when
 * it was built.
 */
#include <laneway/handler.h>

extern int laneway_absent(void);

static enum lw_verdict
handle(struct lw_delivery *delivery, void *user)
{
    (void)delivery;
    (void)user;
    return laneway_absent() ? LW_OK : LW_DROP;
}

LW_HANDLER(lw_handler) = { LW_HANDLER_HEAD, .handle = handle };
