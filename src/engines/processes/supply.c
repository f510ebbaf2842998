/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The zygote and its workers: when they are started, and what follows when they cannot. A failure
 * to load or to open waits 1 s, then twice as long each time, 30 s at most, and ends with the
 * first good answer; after one, a single worker tries for all. Without any worker the engine is
 * down: what is here goes back uncharged, and people are told why and what helps.
 *
 * A zygote that is killed is not replaced: its state from before any thread cannot be had again in
 * a program that forked it from itself, so the rule is the same for both kinds. Its workers go on
 * with what they hold and what still comes until the service has drained.
 */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "engines/common/spawn_failure.h"
#include "engines/processes/origin.h"
#include "engines/processes/processes.h"

#define BACKOFF_MIN (1000 * LW_MS)
#define BACKOFF_MAX (30000 * LW_MS)

enum { LOG_CHUNK = 4096 };

int32_t
lw_processes_cpu_of(const struct lw_processes *processes, uint32_t index)
{
    cpu_set_t set;
    if (!processes->options.tune.binds_cpus || sched_getaffinity(0, sizeof set, &set) != 0 ||
        CPU_COUNT(&set) == 0) {
        return -1;
    }
    uint32_t wanted = index % (uint32_t)CPU_COUNT(&set);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET((size_t)cpu, &set) && wanted-- == 0) {
            return cpu;
        }
    }
    return -1;
}

/* -- Failing --------------------------------------------------------------------------------------- */

static bool
has_worker(const struct lw_processes *processes)
{
    for (uint32_t i = 0; i < processes->worker_count; i++) {
        if (processes->workers[i].state == LW_PROCESSES_TAKING) {
            return true;
        }
    }
    return false;
}

static void
write_error(struct lw_processes *processes, const struct lw_error *error,
            const struct lw_handler_log *log, const char *wait)
{
    char last[LW_HANDLER_LOG_LINES * LW_HANDLER_LOG_BYTES] = "";
    struct lw_error *down = &processes->engine.down_error;
    if (log) {
        lw_handler_log_last(log, LW_HANDLER_LOG_LINES, last, sizeof last);
    }
    *down = *error;
    lw_error_help(
        down, "%.200s%s%s%.100s %s paused until it starts. Next try in %s.%s%.150s",
        error->help, error->help[0] ? ". " : "", processes->pipeline ? "pipeline " : "",
        processes->pipeline ? processes->pipeline : "its pipelines",
        processes->pipeline ? "is" : "are", wait, last[0] ? " Last output:\n" : "", last);
    down->is_retriable = true;
}

void
lw_processes_fail(struct lw_processes *processes, const struct lw_error *error,
                  const struct lw_handler_log *log)
{
    struct lw_host *host = processes->engine.host;
    char wait[32];
    uint32_t doublings = processes->failures < 5 ? processes->failures : 5;
    uint64_t wait_ns = BACKOFF_MIN << doublings;
    wait_ns = wait_ns < BACKOFF_MAX ? wait_ns : BACKOFF_MAX;
    processes->failures++;
    processes->retry_at = host->now + wait_ns;
    lw_timers_arm(&host->timers, &processes->start_timer, processes->retry_at);
    lw_text_from_duration_ms((int64_t)(wait_ns / LW_MS), wait, sizeof wait);
    if (has_worker(processes)) {
        lw_host_log(host, LW_LOG_WARN, "handler.start_failed",
                    "one of several workers cannot start", "handler=%s why=%s help=%s",
                    processes->name, error->message, error->help);
        return;
    }
    write_error(processes, error, log, wait);
    processes->engine.is_down = true;
    processes->engine.has_changed = true;
    lw_host_log(host, LW_LOG_ERROR, "handler.down", processes->engine.down_error.message,
                "code=%s handler=%s next_try=%s help=%s", error->code, processes->name, wait,
                processes->engine.down_error.help);
    lw_processes_give_back_all(processes, "the handler cannot start");
}

static void
fail_starting(struct lw_processes *processes, const char *what, int failed)
{
    struct lw_error error;
    (void)lw_error_set(&error, LW_STATUS_UNAVAILABLE, "E0602",
                       "handler \"%s\" cannot start: %s: %s", processes->name, what,
                       strerrordesc_np(failed));
    lw_error_help(&error, "%s", lw_spawn_failure_help(failed));
    lw_processes_fail(processes, &error, NULL);
}

/* -- The zygote ------------------------------------------------------------------------------------ */

void
lw_processes_end_zygote(struct lw_processes *processes)
{
    const struct lw_host_ops *ops = processes->engine.host->ops;
    lw_timers_disarm(&processes->engine.host->timers, &processes->load_timer);
    if (processes->control_watch) {
        ops->unwatch(processes->control_watch);
        processes->control_watch = NULL;
    }
    if (processes->zygote_log_watch) {
        ops->unwatch(processes->zygote_log_watch);
        processes->zygote_log_watch = NULL;
    }
    lw_processes_spawn_end(&processes->zygote);
}

static void
lose(struct lw_processes *processes)
{
    struct lw_engine *engine = &processes->engine;
    struct lw_error *error = &engine->down_error;
    lw_processes_end_zygote(processes);
    processes->zygote_state = LW_PROCESSES_LOST;
    (void)lw_error_set(error, LW_STATUS_UNFINISHED, "E0631",
                       "handler \"%s\": its zygote was killed, and no worker can be replaced",
                       processes->name);
    lw_error_help(error, "what its workers hold is finished, the rest stays at the broker; "
                         "start the service again. Look for who killed it: memory limits, the "
                         "system's log");
    error->is_fatal = true;
    engine->is_down = !has_worker(processes);
    engine->has_changed = true;
    lw_processes_give_back_all(processes, "its zygote was killed");
    for (uint32_t i = 0; i < processes->worker_count; i++) {
        processes->workers[i].given_max = UINT64_MAX; /* it has no successor */
        lw_processes_worker_on_orphaned(&processes->workers[i]);
    }
}

static void
on_control_end(struct lw_processes *processes)
{
    struct lw_error error;
    if (processes->zygote_state == LW_PROCESSES_SERVING) {
        lose(processes);
        return;
    }
    lw_processes_end_zygote(processes);
    processes->zygote_state = LW_PROCESSES_NO_ZYGOTE;
    (void)lw_error_set(&error, LW_STATUS_UNAVAILABLE, "E0602",
                       "handler \"%s\" cannot start: the process that loads it ended: %s",
                       processes->name, processes->path ? processes->path : "this program");
    lw_error_help(&error, "its constructors may have crashed");
    lw_processes_fail(processes, &error, &processes->zygote_log);
}

static void
on_refused(struct lw_processes *processes, struct lw_processes_note *note)
{
    note->error.message[sizeof note->error.message - 1] = '\0';
    note->error.help[sizeof note->error.help - 1] = '\0';
    note->error.code[sizeof note->error.code - 1] = '\0';
    lw_processes_end_zygote(processes);
    processes->zygote_state = LW_PROCESSES_NO_ZYGOTE;
    lw_processes_fail(processes, &note->error, &processes->zygote_log);
}

static void
pass_to_worker(struct lw_processes *processes, const struct lw_processes_note *note, int pidfd)
{
    for (uint32_t i = 0; i < processes->worker_count; i++) {
        struct lw_processes_worker *worker = &processes->workers[i];
        if (worker->state != LW_PROCESSES_IDLE && worker->serial == note->serial) {
            lw_processes_worker_on_note(worker, note, pidfd);
            return;
        }
    }
    if (pidfd >= 0) {
        (void)close(pidfd);
    }
}

static void
on_note(struct lw_processes *processes, struct lw_processes_note *note, int pidfd)
{
    if (note->kind == LW_PROCESSES_LOADED) {
        processes->zygote_state = LW_PROCESSES_SERVING;
        lw_timers_disarm(&processes->engine.host->timers, &processes->load_timer);
        lw_processes_start_workers(processes);
    } else if (note->kind == LW_PROCESSES_REFUSED) {
        on_refused(processes, note);
    } else {
        pass_to_worker(processes, note, pidfd);
    }
}

static void
on_control(int fd, int events, void *user)
{
    struct lw_processes *processes = user;
    struct lw_processes_note note;
    (void)events;
    while (processes->control_watch) {
        int pidfd = -1;
        size_t fd_count = 0;
        ssize_t got = lw_processes_receive(fd, &note, sizeof note, &pidfd, 1, &fd_count);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        }
        if (got != (ssize_t)sizeof note) {
            on_control_end(processes);
            return;
        }
        on_note(processes, &note, fd_count > 0 ? pidfd : -1);
    }
}

/* What a plug-in prints while it is loaded. */
static void
on_zygote_log(int fd, int events, void *user)
{
    struct lw_processes *processes = user;
    char chunk[LOG_CHUNK];
    ssize_t got = read(fd, chunk, sizeof chunk);
    (void)events;
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
        processes->engine.host->ops->rewatch(processes->zygote_log_watch, 0);
    }
    const char *at = chunk;
    while (got > 0) {
        const char *end = memchr(at, '\n', (size_t)got);
        size_t size = end ? (size_t)(end - at) : (size_t)got;
        lw_handler_log_line(&processes->zygote_log, (struct lw_bytes){ at, size }, "stderr");
        at += size + (end ? 1 : 0);
        got -= (ssize_t)size + (end ? 1 : 0);
    }
}

static void
append_text(struct lw_text *text, const char *part)
{
    lw_text_append_bytes(text, part ? part : "", (part ? strlen(part) : 0) + 1);
}

static int
order_load(struct lw_processes *processes)
{
    const struct lw_processes_options *options = &processes->options;
    struct lw_processes_order order = { .kind = LW_PROCESSES_LOAD,
                                        .protocol = LW_PROCESSES_PROTOCOL,
                                        .option_count = (uint32_t)options->option_count,
                                        .is_batch = options->batch.size > 0,
                                        .user = (uint64_t)(uintptr_t)options->user };
    uintptr_t function = 0;
    if (options->handler_batch) {
        memcpy(&function, &options->handler_batch, sizeof function);
    } else {
        memcpy(&function, &options->handler, sizeof function);
    }
    order.function = function;
    struct lw_text text;
    lw_text_init(&text);
    lw_text_append_bytes(&text, &order, sizeof order);
    append_text(&text, processes->path);
    append_text(&text, processes->symbol);
    append_text(&text, processes->service);
    append_text(&text, processes->name);
    for (size_t i = 0; i < options->option_count; i++) {
        append_text(&text, options->options[i].name);
        append_text(&text, options->options[i].value);
    }
    int failed = text.is_failed ? ENOMEM
                 : text.size - sizeof order > LW_PROCESSES_TEXTS_MAX
                     ? E2BIG
                     : lw_processes_send(processes->zygote.control, text.data, text.size, NULL,
                                         0);
    lw_text_deinit(&text);
    return failed;
}

static int
start_zygote(struct lw_processes *processes)
{
    struct lw_host *host = processes->engine.host;
    int failed = !processes->path
                     ? lw_processes_origin_spawn(&processes->zygote)
                     : lw_processes_spawn(processes->zygote_path, &processes->zygote);
    if (failed) {
        return failed;
    }
    lw_handler_log_begin(&processes->zygote_log);
    processes->control_watch = host->ops->watch(host, processes->zygote.control, LW_READABLE,
                                                on_control, processes);
    processes->zygote_log_watch = host->ops->watch(host, processes->zygote.log, LW_READABLE,
                                                   on_zygote_log, processes);
    bool is_watched = processes->control_watch && processes->zygote_log_watch;
    failed = is_watched ? order_load(processes) : ENOMEM;
    if (failed) {
        lw_processes_end_zygote(processes);
        return failed;
    }
    processes->zygote_state = LW_PROCESSES_LOADING;
    if (processes->options.start_timeout_ms > 0) {
        lw_timers_arm(&host->timers, &processes->load_timer,
                      host->now + (uint64_t)processes->options.start_timeout_ms * LW_MS);
    }
    return 0;
}

void
lw_processes_on_load_timer(struct lw_timer *timer, uint64_t now)
{
    struct lw_processes *processes = LW_CONTAINER(timer, struct lw_processes, load_timer);
    (void)now;
    if (processes->zygote_state == LW_PROCESSES_LOADING) {
        (void)kill(processes->zygote.pid, SIGKILL);
        lw_processes_end_zygote(processes);
        processes->zygote_state = LW_PROCESSES_NO_ZYGOTE;
        fail_starting(processes, "loading the plug-in", ETIMEDOUT);
    }
}

/* -- Workers --------------------------------------------------------------------------------------- */

static bool
start_one(struct lw_processes *processes, struct lw_processes_worker *worker)
{
    processes->engine.restarts += worker->starts > 0 ? 1 : 0;
    int failed = lw_processes_worker_start(worker);
    if (failed) {
        fail_starting(processes, "making a worker", failed);
    } else {
        lw_processes_limits_watch(processes);
    }
    return failed == 0;
}

static void
start_all(struct lw_processes *processes)
{
    bool is_trying = false;
    for (uint32_t i = 0; i < processes->worker_count; i++) {
        is_trying = is_trying || processes->workers[i].state == LW_PROCESSES_STARTING;
    }
    for (uint32_t i = 0; i < processes->wanted; i++) {
        struct lw_processes_worker *worker = &processes->workers[i];
        bool may_start = worker->state == LW_PROCESSES_IDLE &&
                         (processes->failures == 0 || !is_trying);
        if (may_start && !start_one(processes, worker)) {
            return;
        }
        is_trying = is_trying || may_start;
    }
}

void
lw_processes_start_workers(struct lw_processes *processes)
{
    if (processes->is_stopping || processes->engine.host->now < processes->retry_at) {
        return;
    }
    if (processes->zygote_state == LW_PROCESSES_NO_ZYGOTE) {
        int failed = start_zygote(processes);
        if (failed) {
            fail_starting(processes,
                          processes->path ? processes->zygote_path
                                          : "the process of lw_processes_init",
                          failed);
        }
    } else if (processes->zygote_state == LW_PROCESSES_SERVING) {
        start_all(processes);
    }
}

/*
 * A worker that is on its way will have room soon, and one that holds nothing is not what lacks. Room
 * alone says little: of messages that take microseconds one worker may hold more than there are slots,
 * and would be the only one for ever.
 */
void
lw_processes_grow(struct lw_processes *processes)
{
    uint32_t wanted = processes->wanted;
    uint32_t least = processes->engine.room > 0 ? 2 : 1; /* with two, one waits */
    if (wanted == processes->worker_count || processes->is_stopping) {
        return;
    }
    for (uint32_t i = 0; i < wanted; i++) {
        const struct lw_processes_worker *worker = &processes->workers[i];
        if (worker->state != LW_PROCESSES_TAKING || lw_processes_open_count(worker) < least) {
            return;
        }
    }
    bool is_room = wanted <= processes->worker_count - wanted;
    processes->wanted = is_room ? 2 * wanted : processes->worker_count;
    lw_processes_start_workers(processes);
}

void
lw_processes_on_start_timer(struct lw_timer *timer, uint64_t now)
{
    struct lw_processes *processes = LW_CONTAINER(timer, struct lw_processes, start_timer);
    (void)now;
    processes->retry_at = 0;
    lw_processes_start_workers(processes);
}
