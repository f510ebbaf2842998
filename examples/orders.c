/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Orders of two priorities with blocking handlers on threads: bad ones go to the dead-letter
 * topic, those that the database cannot take now are tried again in place, good ones are
 * confirmed on a reply topic before their message is settled. SIGINT and SIGTERM drain.
 *   orders kafka://localhost:9092
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <laneway/laneway.h>

struct database {
    const char *name;
};

static int
store(struct database *database, struct lw_bytes order)
{
    return database->name[0] != '\0' && order.size < 1000000;
}

/* Runs on a worker thread and may block. Reasons and replies are copied. */
static enum lw_verdict
on_order(struct lw_delivery *delivery, void *user)
{
    struct lw_bytes order = lw_delivery_value(delivery);
    if (!order.data || order.size == 0) {
        return lw_delivery_dead(delivery, "an order without content");
    }
    if (!store(user, order)) {
        return lw_delivery_retry(delivery, "database down", -1);
    }
    if (lw_delivery_reply(delivery, lw_bytes_of("confirmed")) != LW_STATUS_OK) {
        return lw_delivery_retry(delivery, "no memory for the reply", -1);
    }
    return LW_OK;
}

/* The library installs no signal handlers: this thread waits for the signals of the process. */
static void *
close_on_signal(void *user)
{
    int number = 0;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigwait(&set, &number);
    lw_dispatcher_request_close(user);
    return NULL;
}

static enum lw_status
subscribe(struct lw_dispatcher *dispatcher, const char *topic, int32_t priority,
          struct database *database, struct lw_error *error)
{
    struct lw_subscription_options options;
    lw_subscription_options_init(&options);
    options.broker = "main";
    options.topic = topic;
    options.subscription = "orders-service";
    options.priority = priority;
    options.engine = LW_ENGINE_THREADS;
    options.handler = on_order;
    options.user = database;
    options.retry.max_attempts = 5;
    options.reply.topic = "order-confirmations";
    return lw_dispatcher_subscribe(dispatcher, &options, error);
}

int
main(int argc, char **argv)
{
    struct lw_error error = { 0 };
    struct database database = { "orders" };
    struct lw_dispatcher_options options;
    pthread_t waiter;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, NULL);

    lw_dispatcher_options_init(&options);
    options.name = "orders";
    options.concurrency = 20;
    struct lw_dispatcher *dispatcher = lw_dispatcher_create(&options, &error);
    if (!dispatcher ||
        lw_dispatcher_connect(dispatcher, "main", argc > 1 ? argv[1] : "kafka://localhost:9092",
                              NULL, 0, &error) ||
        subscribe(dispatcher, "orders-urgent", 10, &database, &error) ||
        subscribe(dispatcher, "orders", 20, &database, &error) ||
        pthread_create(&waiter, NULL, close_on_signal, dispatcher)) {
        fprintf(stderr, "%s\n%s\n", error.message, error.help);
        lw_dispatcher_destroy(dispatcher);
        return lw_error_exit_code(&error);
    }
    if (lw_dispatcher_run(dispatcher, &error)) {
        fprintf(stderr, "%s\n%s\n", error.message, error.help);
    }
    pthread_kill(waiter, SIGTERM); /* ends the waiter when a fatal error ended the run */
    pthread_join(waiter, NULL);
    lw_dispatcher_destroy(dispatcher);
    return lw_error_exit_code(&error);
}
