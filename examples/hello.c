/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The smallest consumer: prints what comes on a topic until Ctrl-C.
 *   hello kafka://localhost:9092 greetings
 */
#include <stdio.h>

#include <laneway/laneway.h>

static enum lw_verdict
on_greeting(struct lw_delivery *delivery, void *user)
{
    struct lw_bytes value = lw_delivery_value(delivery);
    (void)user;
    printf("%.*s\n", (int)value.size, value.data ? (const char *)value.data : "");
    return LW_OK;
}

int
main(int argc, char **argv)
{
    struct lw_error error = { 0 };
    struct lw_subscription_options options;
    struct lw_dispatcher *dispatcher = lw_dispatcher_create(NULL, &error);
    lw_subscription_options_init(&options);
    options.broker = "main";
    options.topic = argc > 2 ? argv[2] : "greetings";
    options.subscription = "hello";
    options.handler = on_greeting;
    if (!dispatcher ||
        lw_dispatcher_connect(dispatcher, "main", argc > 1 ? argv[1] : "memory:", NULL, 0,
                              &error) ||
        lw_dispatcher_subscribe(dispatcher, &options, &error) ||
        lw_dispatcher_run(dispatcher, &error)) {
        fprintf(stderr, "%s\n%s\n", error.message, error.help);
    }
    lw_dispatcher_destroy(dispatcher);
    return lw_error_exit_code(&error);
}
