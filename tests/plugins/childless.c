/* SPDX-License-Identifier: Apache-2.0 */
/*
 * childless.c: a plug-in that ignores SIGCHLD from its loading on, as old daemons do. "exit" ends
 * its process with 3.
 */
#include <laneway/handler.h>

#include <signal.h>
#include <string.h>
#include <unistd.h>

__attribute__((constructor)) static void
ignore_children(void)
{
    (void)signal(SIGCHLD, SIG_IGN);
}

static enum lw_verdict
handle(struct lw_delivery *delivery, void *user)
{
    struct lw_bytes value = lw_delivery_value(delivery);
    (void)user;
    if (value.size == 4 && memcmp(value.data, "exit", 4) == 0) {
        _exit(3);
    }
    return LW_OK;
}

LW_HANDLER(lw_handler) = { LW_HANDLER_HEAD, .handle = handle };
