/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `laneway run`: a configuration becomes a dispatcher with a log, a control socket and signals,
 * and runs until it is asked to end. At the drain deadline a handler on a thread may still be
 * running; nobody can end it, so the process ends over it with exit code 75 and what it had comes
 * again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "cli/config.h"
#include "cli/outage.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "service/control.h"
#include "service/history_file.h"
#include "service/load.h"
#include "service/service.h"

#define LEAVE_NS (500 * LW_MS)

enum { FLAG_FAULTS = LW_FLAG_OWN, FLAG_OUTAGE, FLAG_NO_CONTROL };

const struct lw_flag lw_run_flags[] = {
    LW_ROW_CONFIG,
    LW_ROW_SET,
    LW_ROW_PROPERTY,
    LW_ROW_ENV_FILE,
    { FLAG_OUTAGE, "exit-on-outage", "DURATION",
      "ends with 69 when a broker is away that long" },
    { FLAG_NO_CONTROL, "no-control", NULL, "makes no control socket" },
    LW_ROW_QUIET,
    LW_ROW_VERBOSE,
    LW_ROW_COLOR,
    { FLAG_FAULTS, "faults", "RULES", NULL }, /* for tests: NAME:N:ACTION, see base/fault.h */
    LW_ROW_END,
};

struct run {
    struct lw_cli *cli;
    const char *faults;
    int64_t outage_ms;
    bool has_no_control;
    struct lw_config *config;
    struct lw_diagnostics diagnostics;
    struct lw_log *log;
    struct lw_turn log_turn;
    uint64_t log_due;
    struct lw_dispatcher *dispatcher;
    struct lw_history_file *history;
    struct lw_requests *requests;
    struct lw_control *control;
    struct lw_signals signals;
    struct lw_outage outage;
};

/* -- The log ------------------------------------------------------------------------------------ */

static enum lw_log_level
level_of(const struct run *run)
{
    int level = (int)run->config->service.log_level;
    if (run->cli->is_quiet) {
        return LW_LOG_ERROR;
    }
    level += run->cli->verbosity;
    return level > LW_LOG_TRACE ? LW_LOG_TRACE : (enum lw_log_level)level;
}

static enum lw_status
open_log(struct run *run, struct lw_error *error)
{
    static const char *const unfolded[] = { "service.ready", "service.draining",
                                            "service.closed", NULL };
    struct lw_log_options options;
    lw_log_options_init(&options);
    options.format = run->config->service.log_format;
    options.level = level_of(run);
    options.service = run->config->service.dispatcher.name;
    options.unfolded = unfolded;
    enum lw_status status = lw_log_create(&options, &run->log);
    return status == LW_STATUS_OK ? status
                                  : lw_error_set(error, status, "", "cannot make the log");
}

/* Whoever reads the log as JSON lines must not meet anything else between them. */
static void
tell_diagnostics(struct run *run)
{
    enum lw_log_format format = run->config->service.log_format;
    bool is_text = format == LW_LOG_FORMAT_TEXT ||
                   (format == LW_LOG_FORMAT_AUTO && lw_terminal_is(STDERR_FILENO));
    if (is_text) {
        lw_cli_config_tell(run->cli, &run->diagnostics);
        return;
    }
    for (size_t i = 0; i < run->diagnostics.count; i++) {
        const struct lw_diagnostic *item = &run->diagnostics.items[i];
        bool is_warning = item->severity != LW_SEVERITY_NOTE;
        char place[512];
        char help[512];
        char fields[1200];
        (void)snprintf(fields, sizeof fields, "code=%s file=%s line=%u column=%u help=%s",
                       item->code, lw_log_quote(item->name, place, sizeof place), item->line,
                       item->column, lw_log_quote(item->help, help, sizeof help));
        lw_log_write(is_warning ? LW_LOG_WARN : LW_LOG_INFO,
                     is_warning ? "config.warning" : "config.note", item->message, fields,
                     run->log);
    }
}

/*
 * Repeats that were folded are said when their window ends, which the log cannot know by itself.
 * It is asked at most once a second, and once after the last turn: an idle process stays idle.
 */
static uint64_t
on_log_turn(struct lw_turn *turn, uint64_t now)
{
    struct run *run = LW_CONTAINER(turn, struct run, log_turn);
    if (now < run->log_due) {
        return run->log_due;
    }
    int64_t wait_ms = lw_log_flush(run->log);
    run->log_due = now + (uint64_t)(wait_ms > 1000 ? wait_ms : 1000) * LW_MS;
    return wait_ms < 0 ? LW_NEVER : run->log_due;
}

/* -- Building ----------------------------------------------------------------------------------- */

static enum lw_status
create_dispatcher(struct run *run, struct lw_error *error)
{
    struct lw_dispatcher_options options = run->config->service.dispatcher;
    options.log = lw_log_write;
    options.log_user = run->log;
    run->dispatcher = lw_dispatcher_create(&options, error);
    if (!run->dispatcher) {
        return error->status;
    }
    run->dispatcher->host->log_level = level_of(run);
    run->log_turn.fn = on_log_turn;
    lw_host_add_turn(run->dispatcher->host, &run->log_turn);
    if (run->faults) {
        enum lw_status status = lw_faults_create(run->faults, 1, &run->dispatcher->host->faults,
                                                 error);
        if (status != LW_STATUS_OK) {
            return status;
        }
    }
    return lw_service_build(run->dispatcher, run->config, (struct lw_bindings){ NULL, 0 },
                            error);
}

/* A service without its socket still does its work, so that is a warning, not an end. */
static void
open_control(struct run *run)
{
    struct lw_error error = { 0 };
    const char *path = run->config->service.control;
    if (run->has_no_control) {
        return;
    }
    enum lw_status status = lw_control_open(run->requests, path, &run->control, &error);
    if (status != LW_STATUS_OK) {
        lw_host_log(run->dispatcher->host, LW_LOG_WARN, "control.failed", error.message,
                    "code=%s", error.code);
    }
}

/* For tests: what happened, line by line, for an oracle that judges it afterwards. */
static enum lw_status
open_history(struct run *run, struct lw_error *error)
{
    const char *path = getenv("LANEWAY_HISTORY");
    return path ? lw_history_file_open(run->dispatcher, path, &run->history, error)
                : LW_STATUS_OK;
}

static enum lw_status
build(struct run *run, struct lw_error *error)
{
    enum lw_status status = open_log(run, error);
    if (status == LW_STATUS_OK) {
        tell_diagnostics(run);
        status = create_dispatcher(run, error);
    }
    if (status == LW_STATUS_OK) {
        status = open_history(run, error);
    }
    if (status == LW_STATUS_OK && lw_requests_create(run->dispatcher, &run->requests)) {
        status = lw_error_set(error, LW_STATUS_NO_MEMORY, "", "out of memory");
    }
    if (status == LW_STATUS_OK) {
        status = lw_signals_watch(&run->signals, run->dispatcher, error);
    }
    if (status == LW_STATUS_OK) {
        open_control(run);
        lw_outage_watch(&run->outage, run->dispatcher, run->outage_ms);
    }
    return status;
}

static void
deinit(struct run *run)
{
    lw_control_close(run->control);
    lw_requests_destroy(run->requests);
    if (run->signals.watch) {
        lw_signals_unwatch(&run->signals);
    }
    lw_outage_unwatch(&run->outage);
    lw_history_file_close(run->history);
    if (run->dispatcher) {
        struct lw_faults *faults = run->dispatcher->host->faults;
        lw_host_remove_turn(&run->log_turn);
        lw_dispatcher_destroy(run->dispatcher);
        lw_faults_destroy(faults);
    }
    lw_log_destroy(run->log);
    lw_config_destroy(run->config);
    lw_diagnostics_deinit(&run->diagnostics);
}

/* -- Running ------------------------------------------------------------------------------------ */

static void
say_ready(struct run *run)
{
    const struct lw_config *config = run->config;
    char text[128];
    (void)snprintf(text, sizeof text, "started: %zu pipeline%s, %zu topic%s, %u slots",
                   config->pipeline_count, config->pipeline_count == 1 ? "" : "s",
                   config->subscription_count, config->subscription_count == 1 ? "" : "s",
                   config->service.dispatcher.concurrency);
    lw_host_log(run->dispatcher->host, LW_LOG_INFO, "service.ready", text,
                "version=%s control=%s%s", lw_version(), run->control ? "unix:" : "none",
                run->control ? lw_control_path(run->control) : "");
}

/*
 * The clients leave their groups on threads of their own. Without that moment the group would
 * wait for our session to end, and the next member with it.
 */
static void
let_clients_leave(const struct run *run)
{
    struct lw_service *service = lw_service_of(run->dispatcher);
    const struct lw_host *host = run->dispatcher->host;
    uint64_t deadline = host->now + LEAVE_NS;
    while (host->now < deadline && lw_service_is_only_waiting(service)) {
        lw_loop_turn_until(service->loop, deadline);
    }
}

/* Handlers on threads cannot be ended and the library would wait for them: end over them. */
static void
end_over_handlers(struct run *run, int exit_code)
{
    let_clients_leave(run);
    lw_host_log(run->dispatcher->host, LW_LOG_WARN, "service.unfinished",
                "ending while handlers on threads are still running; their messages come again",
                "running=%u", run->dispatcher->scheduler.busy_slots);
    lw_control_close(run->control);
    lw_log_destroy(run->log);
    _exit(exit_code);
}

static int
exit_code_of(const struct run *run, enum lw_status status, const struct lw_error *error)
{
    if (run->signals.count > 1) {
        return LW_EXIT_INTERRUPTED;
    }
    if (run->outage.has_ended) {
        return LW_EXIT_UNAVAILABLE;
    }
    return status == LW_STATUS_OK ? LW_EXIT_OK : lw_error_exit_code(error);
}

static int
drive(struct run *run)
{
    struct lw_error error = { 0 };
    say_ready(run);
    enum lw_status status = lw_dispatcher_run(run->dispatcher, &error);
    int exit_code = exit_code_of(run, status, &error);
    if (status != LW_STATUS_OK && status != LW_STATUS_UNFINISHED) {
        (void)lw_cli_fail(run->cli, &error);
    }
    if (lw_service_is_only_waiting(lw_service_of(run->dispatcher))) {
        end_over_handlers(run, exit_code);
    }
    return exit_code;
}

/* -- The command ---------------------------------------------------------------------------------- */

static bool
read_duration(struct run *run)
{
    const char *why = NULL;
    if (lw_text_to_duration_ms(run->cli->value, &run->outage_ms, &why) && run->outage_ms > 0) {
        return true;
    }
    run->cli->exit_code = lw_cli_usage(
        run->cli, "--exit-on-outage \"%s\" is no duration such as 5m", run->cli->value);
    return false;
}

static bool
read_flags(struct run *run)
{
    int id;
    while ((id = lw_cli_next(run->cli)) != LW_FLAG_END) {
        if (id == FLAG_FAULTS) {
            run->faults = run->cli->value;
        } else if (id == FLAG_NO_CONTROL) {
            run->has_no_control = true;
        } else if (id != FLAG_OUTAGE || !read_duration(run)) {
            return false;
        }
    }
    return true;
}

/* Errors are told at once, warnings when the log is there. */
static bool
load(struct run *run)
{
    struct lw_cli *cli = run->cli;
    struct lw_cli_files files;
    if (!lw_cli_files_find(cli, 0, &files)) {
        return false;
    }
    run->config = lw_cli_config_load(cli, &files, &run->diagnostics);
    if (!run->config) {
        lw_cli_config_tell(cli, &run->diagnostics);
        cli->exit_code = lw_cli_config_exit_code(&run->diagnostics);
        lw_diagnostics_deinit(&run->diagnostics);
    }
    lw_cli_files_deinit(&files);
    return run->config != NULL;
}

int
lw_command_run(struct lw_cli *cli)
{
    struct run run = { .cli = cli };
    struct lw_error error = { 0 };
    if (!read_flags(&run)) {
        return cli->exit_code;
    }
    if (!load(&run)) {
        return cli->exit_code;
    }
    lw_signals_block();
    int exit_code = 0;
    if (build(&run, &error) == LW_STATUS_OK) {
        exit_code = drive(&run);
    } else {
        exit_code = lw_cli_fail(cli, &error);
    }
    deinit(&run);
    return exit_code;
}
