/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of one run. The payload goes into the pipe from the message's own bytes, which are
 * looked at anew for every write, since they may move while the message runs; a program that
 * does not read them is in its right. Its end is seen by the process, not by its pipes: children
 * that it left behind may hold those open, and are killed with its group.
 */
#include "engines/programs/once_run.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "base/assert.h"
#include "engines/programs/once_environment.h"

enum {
    OUTPUT_BYTES_MAX = 16 * 1024 * 1024, /* beside the size of what it was given */
    TEXT_BYTES_MAX = 8 * 1024,
    LAST_READS_MAX = 1024,
    MESSAGE_BYTES_FINE = 64 * 1024 /* variables of a message that no system refuses */
};
#define KILL_AFTER (5000 * LW_MS) /* TERM */
#define LOOK_AFTER (10 * LW_MS)

static void
unwatch(struct lw_once_run *run, struct lw_watch **watch)
{
    if (*watch) {
        run->config->host->ops->unwatch(*watch);
        *watch = NULL;
    }
}

static void
unwatch_all(struct lw_once_run *run)
{
    unwatch(run, &run->input_watch);
    unwatch(run, &run->output_watch);
    unwatch(run, &run->errors_watch);
    unwatch(run, &run->exit_watch);
}

/* -- Ending --------------------------------------------------------------------------------- */

static void
press(struct lw_once_run *run, uint64_t now)
{
    if (now >= run->kill_at) {
        lw_programs_process_signal(&run->process, SIGKILL);
        return;
    }
    if (!run->is_term_sent) {
        lw_programs_process_signal(&run->process, SIGTERM);
        run->is_term_sent = true;
    }
    lw_timers_arm(&run->config->host->timers, &run->timer, run->kill_at);
}

void
lw_once_run_end(struct lw_once_run *run, enum lw_once_cause cause, uint64_t kill_at)
{
    if (!run->delivery) {
        return;
    }
    if (run->cause == LW_ONCE_BY_ITSELF) {
        run->cause = cause;
        run->kill_at = kill_at;
    } else if (kill_at < run->kill_at) {
        run->kill_at = kill_at;
    }
    press(run, run->config->host->now);
}

static void
on_timer(struct lw_timer *timer, uint64_t now)
{
    struct lw_once_run *run = LW_CONTAINER(timer, struct lw_once_run, timer);
    if (run->delivery && run->cause == LW_ONCE_BY_ITSELF) {
        lw_once_run_end(run, LW_ONCE_BY_TIMEOUT, now + KILL_AFTER);
    } else if (run->delivery) {
        press(run, now);
    }
}

/* -- Input ---------------------------------------------------------------------------------- */

static void
close_input(struct lw_once_run *run)
{
    unwatch(run, &run->input_watch);
    if (run->process.input >= 0) {
        (void)close(run->process.input);
        run->process.input = -1;
    }
}

static void on_input_room(int fd, int events, void *user);

/* False without memory for a watch. */
static bool
wait_for_room(struct lw_once_run *run)
{
    struct lw_host *host = run->config->host;
    if (!run->input_watch) {
        run->input_watch = host->ops->watch(host, run->process.input, LW_WRITABLE,
                                            on_input_room, run);
    }
    return run->input_watch != NULL;
}

static bool
write_input(struct lw_once_run *run)
{
    struct lw_bytes value = run->delivery->message.value;
    const char *bytes = value.data;
    while (run->written < value.size) {
        ssize_t sent = write(run->process.input, bytes + run->written,
                             value.size - run->written);
        if (sent < 0 && errno == EAGAIN) {
            return wait_for_room(run);
        }
        if (sent < 0 && errno != EINTR) {
            break; /* it reads no more, which is its right */
        }
        run->written += sent > 0 ? (size_t)sent : 0;
    }
    close_input(run);
    return true;
}

static void
on_input_room(int fd, int events, void *user)
{
    struct lw_once_run *run = user;
    (void)fd;
    (void)events;
    (void)write_input(run);
}

/* -- Output --------------------------------------------------------------------------------- */

static void
log_line(struct lw_once_run *run, const struct lw_programs_reader *reader, struct lw_bytes line)
{
    if (reader == &run->errors) {
        lw_handler_log_line(&run->log, line, "stderr");
    } else if (line.size > 0) {
        lw_handler_log_own(&run->log, LW_LOG_DEBUG, line);
    }
}

/* Replies are collected, everything else is text for the log. */
static void
take_output(struct lw_once_run *run, struct lw_programs_reader *reader)
{
    struct lw_bytes line;
    while (reader->is_cutting && lw_programs_reader_next(reader, &line)) {
        log_line(run, reader, line);
    }
    if (!reader->is_cutting && reader->end - reader->begin > run->output_max) {
        reader->begin = reader->end; /* kept no more than the bound, whatever comes */
        reader->scanned = reader->end;
        lw_once_run_end(run, LW_ONCE_BY_OUTPUT, run->config->host->now + KILL_AFTER);
    }
    if (!reader->is_cutting && reader->is_starved) {
        lw_once_run_end(run, LW_ONCE_BY_MEMORY, run->config->host->now + KILL_AFTER);
    }
}

static void
take_rest(struct lw_once_run *run, struct lw_programs_reader *reader)
{
    struct lw_bytes rest;
    if (reader->is_cutting && lw_programs_reader_rest(reader, &rest)) {
        log_line(run, reader, rest);
    }
}

static void
on_channel(struct lw_once_run *run, struct lw_programs_reader *reader, int fd,
           struct lw_watch **watch)
{
    enum lw_programs_read got = lw_programs_reader_fill(reader, fd);
    take_output(run, reader);
    if (got == LW_PROGRAMS_READ_END) {
        unwatch(run, watch);
        take_rest(run, reader);
    }
}

static void
on_output(int fd, int events, void *user)
{
    struct lw_once_run *run = user;
    (void)events;
    on_channel(run, &run->output, fd, &run->output_watch);
}

static void
on_errors(int fd, int events, void *user)
{
    struct lw_once_run *run = user;
    (void)events;
    on_channel(run, &run->errors, fd, &run->errors_watch);
}

static void
drain(struct lw_once_run *run, struct lw_programs_reader *reader, int fd,
      struct lw_watch **watch)
{
    for (int i = 0; *watch && i < LAST_READS_MAX; i++) {
        enum lw_programs_read got = lw_programs_reader_fill(reader, fd);
        take_output(run, reader);
        if (got != LW_PROGRAMS_READ_SOME) {
            break;
        }
    }
    if (*watch) {
        take_rest(run, reader);
    }
}

struct lw_bytes
lw_once_run_output(const struct lw_once_run *run)
{
    const struct lw_programs_reader *output = &run->output;
    if (output->is_cutting || output->begin == output->end) {
        return (struct lw_bytes){ NULL, 0 };
    }
    return (struct lw_bytes){ output->data + output->begin, output->end - output->begin };
}

/* -- Start and end -------------------------------------------------------------------------- */

static void
tell_end(struct lw_once_run *run)
{
    struct lw_host *host = run->config->host;
    unwatch_all(run);
    struct lw_programs_exit exit = lw_programs_process_end(&run->process);
    lw_timers_disarm(&host->timers, &run->timer);
    lw_timers_disarm(&host->timers, &run->look_timer);
    run->config->on_end(run, exit);
}

/* Without a pidfd the pipe may end a moment before the process does, or long before. */
static void
on_exit_ready(int fd, int events, void *user)
{
    struct lw_once_run *run = user;
    struct lw_host *host = run->config->host;
    (void)fd;
    (void)events;
    if (!lw_programs_process_is_over(&run->process)) {
        if (!run->process.is_pidfd) {
            host->ops->rewatch(run->exit_watch, 0);
            lw_timers_arm(&host->timers, &run->look_timer, host->now + LOOK_AFTER);
        }
        return;
    }
    drain(run, &run->errors, run->process.errors, &run->errors_watch);
    drain(run, &run->output, run->process.output, &run->output_watch);
    tell_end(run);
}

static void
on_look_timer(struct lw_timer *timer, uint64_t now)
{
    struct lw_once_run *run = LW_CONTAINER(timer, struct lw_once_run, look_timer);
    (void)now;
    if (run->delivery) {
        on_exit_ready(run->process.exit_fd, LW_READABLE, run);
    }
}

static void
begin(struct lw_once_run *run, struct lw_delivery *delivery)
{
    bool has_reply = run->config->has_reply;
    lw_programs_reader_deinit(&run->output);
    lw_programs_reader_deinit(&run->errors);
    lw_programs_reader_init(&run->output, TEXT_BYTES_MAX, !has_reply);
    lw_programs_reader_init(&run->errors, TEXT_BYTES_MAX, true);
    lw_handler_log_begin(&run->log);
    run->delivery = delivery;
    run->written = 0;
    run->output_max = OUTPUT_BYTES_MAX + delivery->message.value.size;
    run->cause = LW_ONCE_BY_ITSELF;
    run->is_term_sent = false;
    run->kill_at = LW_NEVER;
}

static bool
watch_all(struct lw_once_run *run)
{
    struct lw_host *host = run->config->host;
    const struct lw_programs_process *process = &run->process;
    run->exit_watch = host->ops->watch(host, process->exit_fd, LW_READABLE, on_exit_ready, run);
    run->output_watch = host->ops->watch(host, process->output, LW_READABLE, on_output, run);
    run->errors_watch = host->ops->watch(host, process->errors, LW_READABLE, on_errors, run);
    return run->exit_watch && run->output_watch && run->errors_watch && write_input(run);
}

static bool
give_up(struct lw_once_run *run, int code, size_t message_bytes,
        struct lw_once_failure *ret_failure)
{
    run->delivery = NULL;
    *ret_failure = (struct lw_once_failure){
        .code = code,
        .is_oversized = code == E2BIG && message_bytes > MESSAGE_BYTES_FINE,
    };
    return false;
}

static int
spawn(struct lw_once_run *run, size_t *ret_message_bytes)
{
    const struct lw_once_config *config = run->config;
    struct lw_programs_environment environment;
    struct lw_programs_command command = config->command;
    int failed = ENOMEM;
    if (lw_programs_environment_init(&environment, command.environment, run->delivery,
                                     config->timeout_ms > 0 ? config->timeout_ms : -1)) {
        command.environment = environment.entries;
        failed = lw_programs_process_spawn(&command, &run->process);
    }
    *ret_message_bytes = environment.message_bytes;
    lw_programs_environment_deinit(&environment);
    return failed;
}

bool
lw_once_run_start(struct lw_once_run *run, struct lw_delivery *delivery,
                  struct lw_once_failure *ret_failure)
{
    const struct lw_once_config *config = run->config;
    size_t message_bytes = 0;
    lw_assert(!run->delivery);
    begin(run, delivery);
    int failed = spawn(run, &message_bytes);
    if (failed) {
        return give_up(run, failed, message_bytes, ret_failure);
    }
    if (!watch_all(run)) {
        unwatch_all(run);
        (void)lw_programs_process_end(&run->process);
        return give_up(run, ENOMEM, 0, ret_failure);
    }
    delivery->deadline = LW_NEVER;
    if (config->timeout_ms > 0) {
        delivery->deadline = config->host->now + (uint64_t)config->timeout_ms * LW_MS;
        lw_timers_arm(&config->host->timers, &run->timer, delivery->deadline);
    }
    return true;
}

void
lw_once_run_init(struct lw_once_run *run, const struct lw_once_config *config)
{
    *run = (struct lw_once_run){ .config = config };
    run->process = LW_PROGRAMS_NO_PROCESS;
    lw_list_init(&run->link);
    lw_timer_init(&run->timer, on_timer);
    lw_timer_init(&run->look_timer, on_look_timer);
    lw_handler_log_init(&run->log, config->host, config->handler);
}

void
lw_once_run_deinit(struct lw_once_run *run)
{
    struct lw_timers *timers = &run->config->host->timers;
    if (run->delivery) {
        unwatch_all(run);
        (void)lw_programs_process_end(&run->process);
    }
    lw_timers_disarm(timers, &run->timer);
    lw_timers_disarm(timers, &run->look_timer);
    lw_handler_log_deinit(&run->log);
    lw_programs_reader_deinit(&run->output);
    lw_programs_reader_deinit(&run->errors);
}
