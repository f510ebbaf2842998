/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the dispatcher itself costs: a broker made of arrays, the loop engine, a handler that
 * does nothing. Instructions a message from receipt to release, in key order over 100 keys
 * (also while an older message is held, so that lanes matter) and unordered, batches of 64;
 * allocations a message; what a choice costs among 10 and among 10,000 subscriptions.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "bench/support/figures.h"
#include "dispatcher/dispatcher.h"
#include "engines/loop.h"

#define KEYS 100
#define BATCH 64
#define WARM_UP 100000

/* -- a broker made of arrays ------------------------------------------------------------------- */

struct array_broker {
    struct lw_broker base;
    struct lw_source *source; /* itself */
    char keys[KEYS][16];
    uint64_t left;
    uint32_t next_key;
    int64_t position;
    uint64_t released;
    bool is_assigned;
};

static enum lw_status
array_subscribe(struct lw_broker *broker, const struct lw_source_options *options,
                struct lw_source **ret_source, struct lw_error *ret_error)
{
    (void)options;
    (void)ret_error;
    *ret_source = (struct lw_source *)(void *)broker;
    return LW_STATUS_OK;
}

static enum lw_status
array_start(struct lw_broker *broker, struct lw_error *ret_error)
{
    (void)broker;
    (void)ret_error;
    return LW_STATUS_OK;
}

static size_t
array_events(struct lw_broker *broker, struct lw_event *out, size_t n)
{
    struct array_broker *array = (struct array_broker *)(void *)broker;
    (void)n;
    if (array->is_assigned) {
        return 0;
    }
    array->is_assigned = true;
    out[0] = (struct lw_event){ .kind = LW_EVENT_ASSIGNED,
                                .source = (struct lw_source *)(void *)array,
                                .generation = lw_broker_next_generation(),
                                .topic = "bench",
                                .position = 0 };
    return 1;
}

static void
array_demand(struct lw_source *source, uint32_t messages, uint64_t bytes)
{
    (void)source;
    (void)messages;
    (void)bytes;
}

static bool
array_is_ready(const struct lw_source *source)
{
    return ((const struct array_broker *)(const void *)source)->left > 0;
}

static size_t
array_receive(struct lw_source *source, struct lw_message *const out[], size_t n,
              uint64_t bytes_max, bool *ret_has_more)
{
    struct array_broker *array = (struct array_broker *)(void *)source;
    size_t count = n < BATCH ? n : BATCH;
    (void)bytes_max;
    count = count < array->left ? count : (size_t)array->left;
    for (size_t i = 0; i < count; i++) {
        struct lw_message *message = out[i];
        array->next_key = array->next_key + 1 < KEYS ? array->next_key + 1 : 0;
        /* The very first one has a key of its own, so that it holds up no other. */
        message->key = array->position > 0
                           ? (struct lw_bytes){ array->keys[array->next_key], 8 }
                           : (struct lw_bytes){ "key-held", 8 };
        message->ordering_key.data = NULL;
        message->value = (struct lw_bytes){ "payload", 7 };
        message->position = array->position++;
        message->slot = 0;
    }
    array->left -= count;
    *ret_has_more = array->left > 0;
    return count;
}

static enum lw_status
array_commit(struct lw_broker *broker, const struct lw_commit_item *items, size_t n)
{
    (void)broker;
    (void)items;
    (void)n;
    return LW_STATUS_OK;
}

static void
array_release(struct lw_broker *broker, struct lw_message *const messages[], size_t n)
{
    (void)messages;
    ((struct array_broker *)(void *)broker)->released += n;
}

static bool
array_detach(struct lw_broker *broker, struct lw_message *message)
{
    (void)broker;
    (void)message;
    return true;
}

static const struct lw_header *
array_headers(struct lw_broker *broker, const struct lw_message *message, size_t *ret_count)
{
    (void)broker;
    (void)message;
    *ret_count = 0;
    return NULL;
}

static void
array_destroy(struct lw_broker *broker)
{
    lw_free(broker);
}

static bool
array_default_topic(enum lw_topic_kind kind, const char *topic, const char *subscription,
                    char *out, size_t size)
{
    (void)kind;
    (void)subscription;
    return snprintf(out, size, "%s.dlq", topic) < (int)size;
}

static const struct lw_broker_ops ARRAY_OPS = {
    .scheme = "array",
    .subscribe = array_subscribe,
    .start = array_start,
    .events = array_events,
    .demand = array_demand,
    .is_ready = array_is_ready,
    .receive = array_receive,
    .commit = array_commit,
    .release = array_release,
    .detach = array_detach,
    .headers = array_headers,
    .destroy = array_destroy,
    .default_topic = array_default_topic,
};

/* -- a host without a world ------------------------------------------------------------------------ */

static int64_t
still_wall(struct lw_host *host)
{
    (void)host;
    return 0;
}

static uint64_t
still_refresh(struct lw_host *host)
{
    return host->now += 20000;
}

static const struct lw_host_ops STILL_OPS = { .wall_ms = still_wall, .refresh = still_refresh };

/* The first message fails and waits for a day: from then on every key's lane is looked up. */
static enum lw_verdict
fail_first(struct lw_delivery *delivery, void *user)
{
    (void)user;
    return lw_delivery_offset(delivery) == 0
               ? lw_delivery_retry(delivery, NULL, INT64_C(24) * 3600 * 1000)
               : LW_OK;
}

static enum lw_verdict
do_nothing(struct lw_delivery *delivery, void *user)
{
    (void)delivery;
    (void)user;
    return LW_OK;
}

struct bench {
    struct lw_host host;
    struct lw_dispatcher dispatcher;
    struct array_broker *broker;
    uint32_t held_count; /* messages that stay */
};

static void
must(enum lw_status status, const struct lw_error *error)
{
    if (status != LW_STATUS_OK) {
        fprintf(stderr, "bench: %s: %s\n", lw_status_name(status), error->message);
        exit(70);
    }
}

static struct bench *
make(enum lw_ordering ordering, lw_handler_fn handler)
{
    struct lw_error error = { 0 };
    struct bench *bench = lw_alloc(sizeof(*bench));
    struct lw_dispatcher_options options;
    struct lw_subscription_options subscription;
    struct lw_engine *engine = NULL;
    lw_dispatcher_options_init(&options);
    lw_subscription_options_init(&subscription);
    options.concurrency = BATCH;
    lw_host_init(&bench->host, &STILL_OPS, 1000, 1, -1);
    must(lw_dispatcher_init(&bench->dispatcher, &bench->host, -1, &options, &error), &error);
    bench->broker = lw_alloc(sizeof(*bench->broker));
    bench->broker->base = (struct lw_broker){
        .ops = &ARRAY_OPS,
        .host = &bench->host,
        .name = "array",
        .caps = { .settlement = LW_SETTLE_POSITION,
                  .default_ordering = LW_ORDERING_KEY,
                  .default_keyless = LW_KEYLESS_SHARED,
                  .retries_in_place = true },
    };
    for (int i = 0; i < KEYS; i++) {
        snprintf(bench->broker->keys[i], sizeof(bench->broker->keys[i]), "key-%04d", i);
    }
    must(lw_dispatcher_add_broker(&bench->dispatcher, &bench->broker->base, NULL), &error);
    struct lw_handler_options loop = { .handler = handler };
    must(lw_loop_engine_create(&bench->host, &bench->dispatcher.completions, "noop", &loop,
                               &engine),
         &error);
    must(lw_dispatcher_add_engine(&bench->dispatcher, engine), &error);
    subscription.broker = "array";
    subscription.topic = "bench";
    subscription.subscription = "bench";
    subscription.ordering = ordering;
    must(lw_dispatcher_add_stream(&bench->dispatcher, &subscription, engine, &error), &error);
    must(lw_dispatcher_start(&bench->dispatcher, &error), &error);
    return bench;
}

static void
feed(struct bench *bench, uint64_t n)
{
    bench->broker->left = n;
    while (bench->broker->left > 0 || bench->dispatcher.held_count > bench->held_count) {
        lw_host_turn(&bench->host);
    }
}

static uint64_t
run(enum lw_ordering ordering, lw_handler_fn handler, uint64_t n)
{
    struct bench *bench = make(ordering, handler);
    bench->held_count = handler == fail_first ? 1 : 0;
    feed(bench, WARM_UP); /* pools, tables and the receive window reach their size */
    uint64_t allocations = lw_alloc_count();
    feed(bench, n);
    return lw_alloc_count() - allocations;
}

/* -- choice -------------------------------------------------------------------------------------------- */

/* Every subscription always has one lane ready: choose, free, put back. */
static void
choose(uint32_t subscriptions, uint64_t n)
{
    struct lw_scheduler scheduler;
    struct lw_error error = { 0 };
    uint32_t ranks = subscriptions < 100 ? subscriptions : 100;
    must(lw_scheduler_init(&scheduler, 1, ranks, subscriptions, 1), &error);
    struct lw_subscription *list = lw_alloc_array(subscriptions, sizeof(*list));
    struct lw_delivery *deliveries = lw_alloc_array(subscriptions, sizeof(*deliveries));
    struct lw_partition *partitions = lw_alloc_array(subscriptions, sizeof(*partitions));
    for (uint32_t i = 0; i < subscriptions; i++) {
        lw_subscription_init(&list[i], i);
        lw_subscription_set_ordering(&list[i], LW_ORDERING_KEY, LW_KEYLESS_SHARED);
        lw_rank_node_init(&list[i].choose, i % ranks);
        lw_list_init(&partitions[i].held);
        deliveries[i].subscription = &list[i];
        deliveries[i].partition = &partitions[i];
        (void)lw_scheduler_admit(&scheduler, &deliveries[i]);
    }
    for (uint64_t i = 0; i < n; i++) {
        struct lw_delivery *delivery = lw_scheduler_choose(&scheduler);
        lw_scheduler_free_slot(&scheduler, delivery->subscription);
        lw_scheduler_requeue(&scheduler, delivery);
    }
}

/* -- figures --------------------------------------------------------------------------------------------- */

static int
run_case(const char *name, uint64_t n)
{
    if (strcmp(name, "key") == 0) {
        run(LW_ORDERING_KEY, do_nothing, n);
    } else if (strcmp(name, "held") == 0) {
        run(LW_ORDERING_KEY, fail_first, n);
    } else if (strcmp(name, "none") == 0) {
        run(LW_ORDERING_NONE, do_nothing, n);
    } else if (strcmp(name, "choose10") == 0) {
        choose(10, n);
    } else if (strcmp(name, "choose10000") == 0) {
        choose(10000, n);
    } else {
        fprintf(stderr, "core: no case \"%s\"\n", name);
        return 64;
    }
    return 0;
}

static double
nanoseconds(enum lw_ordering ordering)
{
    const uint64_t n = 2000000;
    uint64_t start = lw_clock_monotonic_ns();
    run(ordering, do_nothing, n);
    return (double)(lw_clock_monotonic_ns() - start) / (double)n;
}

int
main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--run") == 0) {
        return run_case(argv[2], strtoull(argv[3], NULL, 10));
    }
    struct lw_figures figures;
    lw_figures_init(&figures, argc, argv);
    const uint64_t n = 64000;
    lw_figures_print(&figures, "core.key_order",
                     lw_figures_instructions(argv[0], "key", n, false), "instr/msg", 300, 400,
                     true);
    lw_figures_print(&figures, "core.key_order_one_held",
                     lw_figures_instructions(argv[0], "held", n, false), "instr/msg", 300, 400,
                     true);
    lw_figures_print(&figures, "core.unordered",
                     lw_figures_instructions(argv[0], "none", n, false), "instr/msg", 180, 250,
                     true);
    double few = lw_figures_instructions(argv[0], "choose10", n, false);
    double many = lw_figures_instructions(argv[0], "choose10000", n, false);
    lw_figures_note("core.choice_of_10", few, "instr/choice");
    lw_figures_print(&figures, "core.choice_10000_to_10", few > 0 ? many / few : -1, "ratio",
                     1.05, 1.05, true);
    double allocations = (double)run(LW_ORDERING_KEY, do_nothing, 1000000) +
                         (double)run(LW_ORDERING_NONE, do_nothing, 1000000);
    lw_figures_print(&figures, "core.allocations", allocations / 2e6, "per msg", 0, 0, true);
    if (!figures.is_instructions_only) {
        lw_figures_note("core.key_order_time", nanoseconds(LW_ORDERING_KEY), "ns/msg");
        lw_figures_note("core.unordered_time", nanoseconds(LW_ORDERING_NONE), "ns/msg");
    }
    return lw_figures_exit(&figures);
}
