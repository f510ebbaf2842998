/* SPDX-License-Identifier: Apache-2.0 */
/*
 * obey.c: the handlers of the conformance suite in a shared object. `lw_handler` blocks;
 * `lw_handler_async` answers what takes time from a thread of its own.
 */
#include <laneway/handler.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/engines/conformance.h"

static void *
answer(void *user)
{
    struct lw_delivery *delivery = user;
    (void)lw_delivery_finish(delivery, conformance_handle(delivery, NULL));
    return NULL;
}

static void
handle_async(struct lw_delivery *delivery, void *user)
{
    pthread_t thread;
    char command[CONFORMANCE_COMMAND_MAX];
    (void)user;
    conformance_read(delivery, command);
    if (!conformance_takes_time(command)) {
        (void)lw_delivery_finish(delivery, conformance_obey(delivery, command));
    } else if (pthread_create(&thread, NULL, answer, delivery) == 0) {
        (void)pthread_detach(thread);
    } else {
        (void)lw_delivery_finish(delivery, lw_delivery_error(delivery, -1, "no thread"));
    }
}

/* With option `verdict: one` its batches have one for all. */
static enum lw_status
start(const struct lw_handler_setup *setup, void **ret_user, struct lw_error *error)
{
    static char one;
    (void)error;
    *ret_user = strcmp(lw_handler_option(setup, "verdict", "each"), "one") == 0 ? &one : NULL;
    return LW_STATUS_OK;
}

LW_HANDLER(lw_handler) = { LW_HANDLER_HEAD, .about = "obey", .handle = conformance_handle,
                           .open = start, .handle_batch = conformance_handle_batch };
LW_HANDLER(lw_handler_async) = { LW_HANDLER_HEAD, .handle_async = handle_async };
