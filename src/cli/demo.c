/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `laneway demo`: strict priority, key order, retries and dead letters without any broker. On a
 * terminal it runs until Ctrl-C and redraws a table; elsewhere it sends for a few seconds, waits
 * until all is done, and prints a summary. What it starts is an ordinary dispatcher with an
 * ordinary family of topics.
 */
#include "cli/demo.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "cli/terminal.h"

enum { SEND_US = 10000, FRAME_US = 500000, DONE_AFTER_MS = 17000, UNATTENDED_MS = 6000 };

enum { FLAG_RATE = LW_FLAG_OWN, FLAG_SLOTS, FLAG_FOR, FLAG_SEED };

const struct lw_flag lw_demo_flags[] = {
    { FLAG_RATE, "rate", "N", "messages a second on average (1100)" },
    { FLAG_SLOTS, "slots", "N", "handlers that run at once (20)" },
    { FLAG_FOR, "for", "DURATION", "how long to send, such as 10s" },
    { FLAG_SEED, "seed", "N", "another course of events (1)" },
    LW_ROW_JSON,
    LW_ROW_COLOR,
    LW_ROW_END,
};

/* -- The broker and the dispatcher --------------------------------------------------------------- */

static struct lw_memory_hub *
open_hub(const char *name)
{
    struct lw_memory_options options;
    lw_memory_options_init(&options);
    options.mode = LW_MEMORY_INDIVIDUAL;
    options.retained_count = UINT64_C(2) * DEMO_BACKLOG_MAX;
    options.publish_latency_ns = 1 * LW_MS;
    return lw_memory_hub_open(name, &options);
}

static enum lw_status
subscribe(struct demo *demo, struct lw_error *error)
{
    static const struct lw_level levels[] = { { "live", 100 }, { "batch", 200 } };
    static const struct lw_level sublevels[] = { { "high", 10 },
                                                 { "low", 20 },
                                                 { "retry", 50 } };
    struct lw_family_options family;
    struct lw_subscription_options common;
    lw_family_options_init(&family);
    family.prefix = DEMO_PREFIX;
    family.levels = levels;
    family.level_count = 2;
    family.sublevels = sublevels;
    family.sublevel_count = 3;
    family.retry_sublevel = "retry";
    lw_subscription_options_init(&common);
    common.broker = "demo";
    common.subscription = DEMO_PREFIX;
    common.pipeline = DEMO_PREFIX;
    common.ordering = LW_ORDERING_KEY;
    common.max_in_flight = 200;
    common.engine = LW_ENGINE_LOOP;
    common.handler_async = demo_handle;
    common.user = demo;
    common.retry.max_retries = 3;
    common.retry.allow_overtaking = true;
    common.retry.backoff.initial_ms = 200;
    common.retry.backoff.max_ms = 800;
    common.dead_letter.topic = DEMO_DEAD;
    common.reply.topic = DEMO_REPLY;
    return lw_dispatcher_subscribe_family(demo->dispatcher, &family, &common, error);
}

static enum lw_status
connect_broker(struct demo *demo, struct lw_error *error)
{
    char name[48];
    char url[64];
    (void)snprintf(name, sizeof name, "laneway-demo-%ld", (long)getpid());
    (void)snprintf(url, sizeof url, "memory:%s", name);
    demo->hub = open_hub(name);
    if (!demo->hub) {
        return lw_error_set(error, LW_STATUS_NO_MEMORY, "", "out of memory");
    }
    return lw_dispatcher_connect(demo->dispatcher, "demo", url, NULL, 0, error);
}

static enum lw_status
build(struct demo *demo, struct lw_error *error)
{
    struct lw_dispatcher_options options;
    lw_dispatcher_options_init(&options);
    options.name = "laneway-demo";
    options.concurrency = (uint32_t)demo->options.slots;
    options.log = demo_log;
    options.log_user = demo;
    demo->dispatcher = lw_dispatcher_create(&options, error);
    if (!demo->dispatcher) {
        return error->status;
    }
    enum lw_status status = connect_broker(demo, error);
    if (status == LW_STATUS_OK) {
        status = subscribe(demo, error);
    }
    if (status == LW_STATUS_OK && lw_report_init(&demo->report, demo->dispatcher)) {
        status = lw_error_set(error, LW_STATUS_NO_MEMORY, "", "out of memory");
    }
    return status;
}

/* -- Running ------------------------------------------------------------------------------------- */

static void
close_once(struct demo *demo)
{
    if (!demo->is_closing) {
        demo->is_closing = true;
        demo->is_sending = false;
        lw_dispatcher_request_close(demo->dispatcher);
    }
}

static void
on_signal(void *user)
{
    struct demo *demo = user;
    demo->is_closing = true;
    demo->is_sending = false;
}

static void
on_send(void *user)
{
    struct demo *demo = user;
    uint64_t now = demo->dispatcher->host->now;
    int64_t elapsed_ms = (int64_t)((now - demo->started_at) / LW_MS);
    if (demo->is_sending && demo->options.for_ms > 0 && elapsed_ms >= demo->options.for_ms) {
        demo->is_sending = false;
    }
    if (demo->is_sending) {
        demo_send(demo);
    } else if (!demo->is_closing) {
        bool is_late = elapsed_ms > demo->options.for_ms + DONE_AFTER_MS - UNATTENDED_MS;
        if (demo_backlog(demo) == 0 || is_late) {
            close_once(demo);
        }
    }
    if (!demo->is_closing) {
        demo->send_timer = lw_loop_timer(demo->dispatcher, SEND_US, on_send, demo);
    }
}

static void
on_frame(void *user)
{
    struct demo *demo = user;
    demo_draw(demo);
    demo->frame_timer = lw_loop_timer(demo->dispatcher, FRAME_US, on_frame, demo);
    if (demo->cli->is_output_broken) {
        close_once(demo);
    }
}

static void
begin(struct demo *demo)
{
    struct lw_host *host = demo->dispatcher->host;
    demo->started_at = host->ops->refresh(host);
    demo->sent_at = demo->framed_at = demo->started_at;
    demo->is_sending = true;
    demo->send_timer = lw_loop_timer(demo->dispatcher, 0, on_send, demo);
    if (demo->is_terminal) {
        demo->frame_timer = lw_loop_timer(demo->dispatcher, 0, on_frame, demo);
    } else if (lw_terminal_is(STDERR_FILENO)) {
        lw_cli_say("laneway demo: sending for a few seconds, then waiting until all is done");
    }
}

static int
run(struct demo *demo)
{
    struct lw_error error = { 0 };
    enum lw_status status = build(demo, &error);
    if (status == LW_STATUS_OK) {
        demo->signals.on_first = on_signal;
        demo->signals.user = demo;
        status = lw_signals_watch(&demo->signals, demo->dispatcher, &error);
    }
    if (status != LW_STATUS_OK) {
        return lw_cli_fail(demo->cli, &error);
    }
    begin(demo);
    demo_enter_screen(demo);
    status = lw_dispatcher_run(demo->dispatcher, &error);
    demo_leave_screen(demo);
    bool is_sound = demo_sum_up(demo);
    lw_signals_unwatch(&demo->signals);
    if (demo->signals.count > 1) {
        return LW_EXIT_INTERRUPTED;
    }
    if (status != LW_STATUS_OK) {
        return lw_cli_fail(demo->cli, &error);
    }
    return is_sound ? LW_EXIT_OK : LW_EXIT_FAILED;
}

/* -- The command ----------------------------------------------------------------------------------- */

static bool
read_duration(struct lw_cli *cli, int64_t *ret_ms)
{
    const char *why = NULL;
    if (lw_text_to_duration_ms(cli->value, ret_ms, &why) && *ret_ms > 0) {
        return true;
    }
    cli->exit_code = lw_cli_usage(cli, "--for \"%s\" is no duration such as 10s", cli->value);
    return false;
}

static bool
read_flags(struct lw_cli *cli, struct demo_options *options)
{
    int id;
    bool is_good = true;
    while (is_good && (id = lw_cli_next(cli)) != LW_FLAG_END) {
        switch (id) {
        case FLAG_RATE:
            is_good = lw_cli_number(cli, "rate", 1, 20000, &options->rate);
            break;
        case FLAG_SLOTS:
            is_good = lw_cli_number(cli, "slots", 1, DEMO_SLOTS_MAX, &options->slots);
            break;
        case FLAG_FOR:
            is_good = read_duration(cli, &options->for_ms);
            break;
        case FLAG_SEED:
            is_good = lw_cli_number(cli, "seed", 0, 1LL << 40, &options->seed);
            break;
        default:
            return false;
        }
    }
    return is_good;
}

int
lw_command_demo(struct lw_cli *cli)
{
    struct demo_options options = { .rate = 1100, .slots = 20, .seed = 1 };
    if (!read_flags(cli, &options)) {
        return cli->exit_code;
    }
    struct demo *demo = lw_alloc(sizeof *demo);
    if (!demo) {
        return lw_cli_fail_memory();
    }
    demo->cli = cli;
    demo->options = options;
    demo->is_terminal = lw_terminal_is(STDOUT_FILENO) && !cli->is_json;
    if (options.for_ms == 0 && !demo->is_terminal) {
        demo->options.for_ms = UNATTENDED_MS;
    }
    lw_signals_block();
    int exit_code = demo_load_init(demo) ? run(demo) : lw_cli_fail_memory();
    if (demo->report.served) {
        lw_report_deinit(&demo->report);
    }
    lw_dispatcher_destroy(demo->dispatcher);
    demo_load_deinit(demo);
    lw_memory_hub_close(demo->hub);
    lw_free(demo);
    return exit_code;
}
