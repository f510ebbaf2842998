/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Six topics by one call, and asynchronous handlers: each waits on the dispatcher's own loop
 * without holding a thread, so one thread serves thousands at once.
 *   family URL MILLISECONDS      ends by itself; check-install: run memory: 100
 */
#include <stdio.h>
#include <stdlib.h>

#include <laneway/laneway.h>

struct work {
    struct lw_ticket ticket; /* names this run for ever, even if it is finished twice */
};

static void
on_done(void *user)
{
    struct work *work = user;
    lw_ticket_finish(work->ticket, LW_OK);
    free(work);
}

/* Runs on the loop thread and must not block; finishes later, from any thread. */
static void
on_order(struct lw_delivery *delivery, void *user)
{
    struct lw_dispatcher *dispatcher = user;
    struct work *work = malloc(sizeof *work);
    if (!work) {
        lw_delivery_finish(delivery, lw_delivery_retry(delivery, "no memory", -1));
        return;
    }
    work->ticket = lw_delivery_ticket(delivery);
    if (!lw_loop_timer(dispatcher, 5000, on_done, work)) {
        on_done(work);
    }
}

static void
on_end(void *user)
{
    lw_dispatcher_request_close(user);
}

static enum lw_status
subscribe(struct lw_dispatcher *dispatcher, struct lw_error *error)
{
    static const struct lw_level levels[] = { { "live", 100 }, { "batch", 200 } };
    static const struct lw_level sublevels[] = { { "high", 10 },
                                                 { "low", 20 },
                                                 { "retry", 50 } };
    struct lw_family_options family;
    struct lw_subscription_options common;
    lw_family_options_init(&family);
    family.prefix = "orders";
    family.levels = levels;
    family.level_count = 2;
    family.sublevels = sublevels;
    family.sublevel_count = 3;
    family.retry_sublevel = "retry";
    lw_subscription_options_init(&common);
    common.broker = "main";
    common.subscription = "orders-service";
    common.ordering = LW_ORDERING_NONE;
    common.engine = LW_ENGINE_LOOP;
    common.handler_async = on_order;
    common.user = dispatcher;
    common.retry.max_retries = 5;
    return lw_dispatcher_subscribe_family(dispatcher, &family, &common, error);
}

int
main(int argc, char **argv)
{
    struct lw_error error = { 0 };
    long long run_ms = argc > 2 ? strtoll(argv[2], NULL, 10) : 1000;
    struct lw_dispatcher *dispatcher = lw_dispatcher_create(NULL, &error);
    if (!dispatcher ||
        lw_dispatcher_connect(dispatcher, "main", argc > 1 ? argv[1] : "memory:", NULL, 0,
                              &error) ||
        subscribe(dispatcher, &error) ||
        !lw_loop_timer(dispatcher, run_ms * 1000, on_end, dispatcher) ||
        lw_dispatcher_run(dispatcher, &error)) {
        fprintf(stderr, "%s\n%s\n", error.message, error.help);
    }
    lw_dispatcher_destroy(dispatcher);
    return lw_error_exit_code(&error);
}
