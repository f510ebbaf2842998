/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside a loop of your own: one descriptor becomes readable when the dispatcher has work, and
 * lw_dispatcher_poll does it without blocking. Here poll(2) is that loop.
 *   embed URL MILLISECONDS       ends when nothing came for so long; check-install: run memory: 100
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include <laneway/laneway.h>

static enum lw_verdict
on_message(struct lw_delivery *delivery, void *user)
{
    unsigned *count = user;
    (void)delivery;
    (*count)++;
    return LW_OK;
}

static int
drive(struct lw_dispatcher *dispatcher, int run_ms, struct lw_error *error)
{
    struct pollfd item = { .fd = lw_dispatcher_fd(dispatcher), .events = POLLIN };
    enum lw_status status = lw_dispatcher_poll(dispatcher, error);
    int timeout_ms = run_ms;
    while (status == LW_STATUS_OK) {
        if (poll(&item, 1, timeout_ms) == 0) { /* your own work would be done here */
            lw_dispatcher_request_close(dispatcher);
            timeout_ms = -1;
        }
        status = lw_dispatcher_poll(dispatcher, error);
    }
    return status != LW_STATUS_CLOSED;
}

int
main(int argc, char **argv)
{
    unsigned count = 0;
    struct lw_error error = { 0 };
    struct lw_subscription_options options;
    struct lw_dispatcher *dispatcher = lw_dispatcher_create(NULL, &error);
    lw_subscription_options_init(&options);
    options.broker = "main";
    options.topic = "greetings";
    options.subscription = "embed";
    options.engine = LW_ENGINE_LOOP;
    options.handler = on_message;
    options.user = &count;
    if (!dispatcher ||
        lw_dispatcher_connect(dispatcher, "main", argc > 1 ? argv[1] : "memory:", NULL, 0,
                              &error) ||
        lw_dispatcher_subscribe(dispatcher, &options, &error) ||
        drive(dispatcher, argc > 2 ? (int)strtol(argv[2], NULL, 10) : 1000, &error)) {
        fprintf(stderr, "%s\n%s\n", error.message, error.help);
    }
    printf("%u messages\n", count);
    lw_dispatcher_destroy(dispatcher);
    return lw_error_exit_code(&error);
}
