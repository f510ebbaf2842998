/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The http engine: the engine's table and its making. One request is in transfer.c, libcurl on
 * the loop in multi.c, whether the service is asked at all in circuit.c. Loop thread only.
 */
#include "engines/http/engine.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "engines/http/http.h"
#include "engines/http/url.h"

/* -- The table ------------------------------------------------------------------------------------- */

static enum lw_status
start(struct lw_engine *engine, struct lw_error *ret_error)
{
    struct lw_http *http = lw_http_of(engine);
    if (!lw_http_multi_open(http)) {
        enum lw_status status = lw_error_set(
            ret_error, LW_STATUS_UNSUPPORTED, "E0606",
            "handler \"%s\": libcurl (libcurl.so.4) could not be loaded", http->name);
        lw_error_help(ret_error, "install libcurl4");
        return status;
    }
    lw_http_update_room(http);
    engine->has_changed = true;
    return LW_STATUS_OK;
}

static bool
take_one(struct lw_http *http, struct lw_delivery *delivery)
{
    struct lw_list *node = lw_list_first(&http->idle);
    if (node &&
        lw_http_transfer_begin(LW_CONTAINER(node, struct lw_http_transfer, link), delivery)) {
        lw_http_update_room(http);
        return true;
    }
    lw_http_wait_for_memory(http);
    return false;
}

static size_t
submit(struct lw_engine *engine, struct lw_delivery *const tasks[], size_t n)
{
    size_t taken = 0;
    while (taken < n && engine->room > 0 && take_one(lw_http_of(engine), tasks[taken])) {
        taken++;
    }
    return taken;
}

/* Requests that were begun are sent now, together. */
static void
flush(struct lw_engine *engine)
{
    struct lw_http *http = lw_http_of(engine);
    if (http->is_timer_due) {
        lw_http_multi_act(http, LW_CURL_SOCKET_TIMEOUT, 0);
    }
    if (http->has_done) {
        http->has_done = false;
        lw_host_want_turn(engine->host);
    }
}

static void
cancel(struct lw_engine *engine, struct lw_delivery *delivery)
{
    struct lw_http_transfer *transfer = delivery->engine_data;
    (void)engine;
    atomic_store_explicit(&delivery->is_cancelled, true, memory_order_relaxed);
    if (transfer) {
        lw_http_transfer_abort(transfer, "cancelled before the service answered");
    }
}

static void
abort_all(struct lw_http *http)
{
    struct lw_list *node = NULL;
    while ((node = lw_list_first(&http->running)) != NULL) {
        lw_http_transfer_abort(LW_CONTAINER(node, struct lw_http_transfer, link),
                               "stopped before the service answered");
    }
}

static void
on_stop_timer(struct lw_timer *timer, uint64_t now)
{
    (void)now;
    abort_all(LW_CONTAINER(timer, struct lw_http, stop_timer));
}

static void
stop(struct lw_engine *engine, uint64_t deadline)
{
    struct lw_http *http = lw_http_of(engine);
    struct lw_timers *timers = &engine->host->timers;
    http->is_stopping = true;
    lw_timers_disarm(timers, &http->circuit_timer);
    if (deadline != LW_NEVER) {
        lw_timers_arm(timers, &http->stop_timer, deadline);
    }
    lw_http_update_room(http);
}

static bool
is_stopped(const struct lw_engine *engine)
{
    const struct lw_http *http = (const void *)engine;
    return http->is_stopping && http->running_count == 0;
}

static void
destroy(struct lw_engine *engine)
{
    struct lw_http *http = lw_http_of(engine);
    for (uint32_t i = 0; http->transfers && i < http->connections; i++) {
        lw_http_transfer_deinit(&http->transfers[i]);
    }
    lw_http_transfer_deinit(&http->probe);
    lw_http_multi_close(http);
    lw_http_circuit_deinit(http);
    lw_timers_disarm(&engine->host->timers, &http->stop_timer);
    lw_free(http->transfers);
    lw_http_token_deinit(&http->token);
    lw_http_settings_free(http);
    lw_free(http);
}

static const struct lw_engine_ops http_ops = {
    .name = "http",
    .reads_in_place = true,
    .can_end_early = true,
    .start = start,
    .submit = submit,
    .flush = flush,
    .cancel = cancel,
    .stop = stop,
    .is_stopped = is_stopped,
    .destroy = destroy,
};

/* -- Making ------------------------------------------------------------------------------------------ */

static enum lw_status
check(const char *name, const struct lw_http_options *options, struct lw_error *ret_error)
{
    char why[160];
    size_t at = 0;
    if (!lw_http_url_check(options->url ? options->url : "", &at, why, sizeof why)) {
        return lw_error_set(ret_error, LW_STATUS_CONFIG, "E0125",
                            "handler \"%s\": \"%.200s\" is no address of a service: %s", name,
                            options->url ? options->url : "", why);
    }
    for (size_t i = 0; i < options->header_count; i++) {
        const char *fault = lw_http_header_fault(
            options->headers[i].name, options->headers[i].value, options->token != NULL);
        if (fault) {
            return lw_error_set(ret_error, LW_STATUS_CONFIG, "E0126",
                                "handler \"%s\": the header \"%.100s\" %s", name,
                                options->headers[i].name, fault);
        }
    }
    return LW_STATUS_OK;
}

static void
init(struct lw_http *http, struct lw_host *host, struct lw_completions *completions)
{
    http->engine.ops = &http_ops;
    http->engine.host = host;
    http->engine.completions = completions;
    lw_list_init(&http->idle);
    lw_list_init(&http->running);
    lw_timer_init(&http->timer, NULL);
    lw_timer_init(&http->stop_timer, on_stop_timer);
    lw_http_circuit_init(http);
}

static bool
make_transfers(struct lw_http *http)
{
    lw_http_transfer_init(&http->probe, http);
    http->transfers = lw_alloc_array(http->connections, sizeof *http->transfers);
    for (uint32_t i = 0; http->transfers && i < http->connections; i++) {
        lw_http_transfer_init(&http->transfers[i], http);
        lw_list_push(&http->idle, &http->transfers[i].link);
    }
    return http->transfers != NULL;
}

enum lw_status
lw_http_engine_create(struct lw_host *host, struct lw_completions *completions,
                      const struct lw_http_engine_options *options,
                      struct lw_engine **ret_engine, struct lw_error *ret_error)
{
    enum lw_status status = check(options->name, options->http, ret_error);
    if (status != LW_STATUS_OK) {
        return status;
    }
    struct lw_http *http = lw_alloc(sizeof *http);
    if (!http) {
        return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "out of memory");
    }
    init(http, host, completions);
    bool is_copied = lw_http_settings_copy(http, options);
    http->engine.name = http->name;
    http->engine.batch = options->batch;
    if (!make_transfers(http) || !is_copied) {
        status = lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "out of memory");
    } else {
        status = lw_http_token_init(&http->token, options->http->token, ret_error);
        http->fixed.authorization = lw_http_token_line(&http->token);
    }
    if (status != LW_STATUS_OK) {
        destroy(&http->engine);
        return status;
    }
    *ret_engine = &http->engine;
    return LW_STATUS_OK;
}
