/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message through a handler behind HTTP, whole: the broker in memory, the dispatcher, the http
 * engine, libcurl, a service in a process of its own that answers 204, the commit; against what
 * libcurl alone does in a bare loop on the same service with the same requests. 66 B, 16 at once.
 * The ratio is the median of interleaved pairs; the service takes one of the processors either way.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <laneway/laneway.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "bench/support/figures.h"
#include "bench/support/http_bare.h"
#include "bench/support/http_service.h"
#include "bench/support/runs.h"
#include "brokers/memory/hub.h"

enum { CONNECTIONS = 16, MESSAGES = 40000, WARM_UP = 2000, VALUE_BYTES = 66 };

static char value[VALUE_BYTES];

/* -- Through Laneway ------------------------------------------------------------------------------- */

static struct lw_dispatcher *
open_dispatcher(const char *url)
{
    struct lw_error error = { .message = "" };
    struct lw_dispatcher_options options;
    struct lw_subscription_options subscription;
    struct lw_http_options http;
    lw_dispatcher_options_init(&options);
    lw_subscription_options_init(&subscription);
    lw_http_options_init(&http);
    http.url = url;
    options.concurrency = CONNECTIONS;
    subscription.broker = "main";
    subscription.topic = "bench";
    subscription.subscription = "g";
    subscription.ordering = LW_ORDERING_KEY;
    subscription.engine = LW_ENGINE_HTTP;
    subscription.http = &http;
    struct lw_dispatcher *dispatcher = lw_dispatcher_create(&options, &error);
    if (!dispatcher ||
        lw_dispatcher_connect(dispatcher, "main", "memory:bench", NULL, 0, &error) !=
            LW_STATUS_OK ||
        lw_dispatcher_subscribe(dispatcher, &subscription, &error) != LW_STATUS_OK) {
        fprintf(stderr, "http_path: %s\n", error.message);
        exit(70);
    }
    return dispatcher;
}

static void
publish(struct lw_memory_hub *hub, uint64_t n)
{
    char key[16];
    for (uint64_t i = 0; i < n; i++) {
        (void)snprintf(key, sizeof key, "key-%04u", (unsigned)(i % 1000));
        struct lw_memory_item item = lw_memory_item_of("bench", key, "");
        item.value = (struct lw_bytes){ value, sizeof value };
        (void)lw_memory_hub_publish(hub, &item, NULL, NULL);
    }
}

static void
run_until(struct lw_dispatcher *dispatcher, const struct lw_memory_hub *hub, int64_t position)
{
    struct lw_error error = { .message = "" };
    struct pollfd pollfd = { .fd = lw_dispatcher_fd(dispatcher), .events = POLLIN };
    while (lw_memory_hub_committed(hub, "g", "bench", 0, NULL) < position) {
        (void)poll(&pollfd, 1, 1000);
        if (lw_dispatcher_poll(dispatcher, &error) != LW_STATUS_OK) {
            fprintf(stderr, "http_path: %s\n", error.message);
            exit(70);
        }
    }
}

static int
run_laneway(const char *url, uint64_t n)
{
    struct lw_memory_hub *hub = lw_memory_hub_open("bench", NULL);
    struct lw_dispatcher *dispatcher = open_dispatcher(url);
    publish(hub, WARM_UP + n);
    run_until(dispatcher, hub, WARM_UP);
    int64_t from = lw_memory_hub_committed(hub, "g", "bench", 0, NULL);
    uint64_t allocations = lw_alloc_count();
    uint64_t began = lw_clock_monotonic_ns();
    run_until(dispatcher, hub, (int64_t)(WARM_UP + n));
    double seconds = (double)(lw_clock_monotonic_ns() - began) / 1e9;
    double count = (double)(WARM_UP + n) - (double)from;
    printf("%f %f\n", count / seconds, (double)(lw_alloc_count() - allocations) / count);
    lw_dispatcher_destroy(dispatcher);
    lw_memory_hub_close(hub);
    return 0;
}

/* -- Bare ------------------------------------------------------------------------------------------ */

static int
run_bare(const char *url, uint64_t n)
{
    if (!lw_http_bare(url, CONNECTIONS, value, sizeof value, WARM_UP)) {
        return 70;
    }
    uint64_t began = lw_clock_monotonic_ns();
    if (!lw_http_bare(url, CONNECTIONS, value, sizeof value, n)) {
        return 70;
    }
    double seconds = (double)(lw_clock_monotonic_ns() - began) / 1e9;
    printf("%f 0\n", (double)n / seconds);
    return 0;
}

static int
run_case(const char *name, uint64_t n)
{
    struct lw_http_service service;
    if (!lw_http_service_start(&service)) {
        return 70;
    }
    int code = strcmp(name, "bare") == 0 ? run_bare(service.url, n)
                                         : run_laneway(service.url, n);
    lw_http_service_stop(&service);
    return code;
}

int
main(int argc, char **argv)
{
    struct lw_figures figures;
    double rate = 0;
    double allocations = 0;
    memset(value, 'v', sizeof value);
    if (argc == 4 && strcmp(argv[1], "--run") == 0) {
        return run_case(argv[2], strtoull(argv[3], NULL, 10));
    }
    lw_figures_init(&figures, argc, argv);
    if (figures.is_instructions_only) {
        return 0;
    }
    if (lw_runs_median(argv[0], "laneway", MESSAGES, 3, &rate, &allocations)) {
        lw_figures_note("http.messages", rate, "msg/s");
        lw_figures_print(&figures, "http.allocations", allocations, "ours/msg", 0, 0.01, true);
    }
    if (lw_runs_median(argv[0], "bare", MESSAGES, 3, &rate, &allocations)) {
        lw_figures_note("http.bare_loop", rate, "msg/s");
    }
    struct lw_ratio ratio = lw_runs_ratio(argv[0], "laneway", "bare", MESSAGES);
    lw_figures_note("http.to_bare_loop_upper_quartile", ratio.upper, "ratio");
    lw_figures_print(&figures, "http.to_bare_loop", ratio.median, "ratio", 0.9,
                     ratio.upper >= 0.9 ? ratio.median : 0.9, false);
    return lw_figures_exit(&figures);
}
