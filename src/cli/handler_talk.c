/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One turn: wait for any of its descriptors, write what it takes, read what is there. Lines are
 * looked at only when somebody asks for an answer, so that what was written before the end of a
 * process is heard before its end. Invariant: written <= input.size.
 */
#include "cli/handler_talk.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/timers.h"

enum { LINE_BYTES_MAX = 16 * 1024 * 1024, TEXT_BYTES_MAX = 8 * 1024, LOOK_MS = 20 };
#define MUTE_AFTER (1000 * LW_MS) /* closed its output: a moment to end by itself */
enum { FD_INPUT, FD_OUTPUT, FD_ANSWERS, FD_ERRORS, FD_EXIT, FD_COUNT };

/* -- What it says ----------------------------------------------------------------------------- */

/* Copies what fits, with "..." where it was cut, and no control characters. */
static void
show(struct lw_bytes line, char *out, size_t size)
{
    const char *from = line.data;
    size_t length = line.size < size - 4 ? line.size : size - 4;
    size_t used = 0;
    while (length > 0 && length < line.size && ((unsigned char)from[length] & 0xC0) == 0x80) {
        length--; /* whole characters only */
    }
    for (size_t at = 0; at < length;) {
        size_t step = lw_text_utf8_size(from + at, length - at);
        bool is_plain = step > 1 ||
                        (step == 1 && (unsigned char)from[at] >= ' ' && from[at] != 127);
        if (is_plain) {
            memcpy(out + used, from + at, step);
            used += step;
        } else {
            out[used++] = '?';
        }
        at += step > 0 ? step : 1;
    }
    lw_text_copy(out + used, size - used, length < line.size ? "..." : "");
}

static void
hear_errors(struct lw_talk *talk, bool with_rest)
{
    struct lw_bytes line;
    while (lw_programs_reader_next(&talk->errors, &line) ||
           (with_rest && lw_programs_reader_rest(&talk->errors, &line))) {
        if (line.size > 0) {
            show(line, talk->last[talk->last_count++ % LW_TALK_LAST_LINES],
                 sizeof talk->last[0]);
        }
    }
}

static void
on_stray(struct lw_talk *talk, struct lw_bytes line)
{
    if (line.size > 0 && talk->stray_count++ == 0) {
        show(line, talk->stray, sizeof talk->stray);
    }
}

/* True when the line is something for the one who asks. */
static bool
is_answer(struct lw_talk *talk, struct lw_bytes line, bool on_answers)
{
    lw_programs_answer_clear(&talk->answer);
    lw_programs_answer_read(line, &talk->answer);
    if (talk->answer.kind == LW_PROGRAMS_LINE_STRAY) {
        on_stray(talk, line);
        return false;
    }
    if (talk->answer.kind == LW_PROGRAMS_LINE_LOG) {
        talk->log_count++;
        return false;
    }
    if (talk->answer.kind == LW_PROGRAMS_LINE_READY && !talk->has_said_ready) {
        talk->has_said_ready = true;
        talk->uses_answers = on_answers;
        talk->stray_count = on_answers ? 0 : talk->stray_count; /* it keeps stdout for itself */
    }
    show(line, talk->heard, sizeof talk->heard);
    return true;
}

static bool
next_line(struct lw_programs_reader *reader, bool with_rest, struct lw_bytes *ret_line)
{
    return lw_programs_reader_next(reader, ret_line) ||
           (with_rest && lw_programs_reader_rest(reader, ret_line));
}

/* Before `ready` both channels may be the one; after it the other is text. */
static bool
next_answer(struct lw_talk *talk)
{
    struct lw_bytes line;
    hear_errors(talk, talk->is_errors_ended);
    while (next_line(&talk->answers, talk->is_answers_ended, &line)) {
        if ((!talk->has_said_ready || talk->uses_answers) && is_answer(talk, line, true)) {
            return true;
        }
    }
    while (next_line(&talk->output, talk->is_output_ended, &line)) {
        if (talk->has_said_ready && talk->uses_answers) {
            continue;
        }
        if (is_answer(talk, line, false)) {
            return true;
        }
    }
    return false;
}

size_t
lw_talk_unended(const struct lw_talk *talk)
{
    const struct lw_programs_reader *reader = talk->uses_answers ? &talk->answers
                                                                 : &talk->output;
    return reader->end - reader->begin;
}

/* -- Its end ---------------------------------------------------------------------------------- */

/* True for a process of the group that still runs. */
static bool
is_member(const char *pid, pid_t group)
{
    char path[64];
    char text[512];
    (void)snprintf(path, sizeof path, "/proc/%.16s/stat", pid);
    FILE *file = fopen(path, "re");
    size_t size = file ? fread(text, 1, sizeof text - 1, file) : 0;
    text[size] = '\0';
    if (file) {
        (void)fclose(file);
    }
    const char *state = strrchr(text, ')');
    if (!state || state[1] != ' ' || state[2] == 'Z') {
        return false;
    }
    const char *parent = strchr(state + 2, ' ');
    const char *own = parent ? strchr(parent + 1, ' ') : NULL;
    return own && strtol(own, NULL, 10) == group;
}

static uint32_t
count_members(pid_t group)
{
    uint32_t count = 0;
    DIR *folder = opendir("/proc");
    const struct dirent *entry = NULL;
    while (folder && (entry = readdir(folder)) != NULL) { // NOLINT(concurrency-mt-unsafe)
        bool is_process = entry->d_name[0] >= '1' && entry->d_name[0] <= '9';
        count += is_process && is_member(entry->d_name, group) ? 1 : 0;
    }
    if (folder) {
        (void)closedir(folder);
    }
    return count;
}

static void
fill_all(struct lw_programs_reader *reader, int fd, bool *is_ended)
{
    while (!*is_ended) {
        enum lw_programs_read got = lw_programs_reader_fill(reader, fd);
        if (got == LW_PROGRAMS_READ_NOTHING) {
            break; /* a child of it holds the pipe open */
        }
        *is_ended = got == LW_PROGRAMS_READ_END;
    }
    *is_ended = true;
}

static void
enter_ended(struct lw_talk *talk)
{
    fill_all(&talk->output, talk->process.output, &talk->is_output_ended);
    fill_all(&talk->answers, talk->process.answers, &talk->is_answers_ended);
    fill_all(&talk->errors, talk->process.errors, &talk->is_errors_ended);
    talk->left_count = count_members(talk->process.pid);
    talk->exit = lw_programs_process_end(&talk->process);
    talk->has_ended = true;
    talk->is_open = false;
}

void
lw_talk_describe_end(const struct lw_talk *talk, char *out, size_t size)
{
    if (talk->exit.signal) {
        const char *name = sigabbrev_np(talk->exit.signal);
        (void)snprintf(out, size, "killed by signal %d (SIG%s)", talk->exit.signal,
                       name ? name : "?");
    } else {
        (void)snprintf(out, size, "exit %d", talk->exit.status);
    }
}

/* -- A turn ----------------------------------------------------------------------------------- */

static void
close_input(struct lw_talk *talk)
{
    if (talk->process.input >= 0) {
        (void)close(talk->process.input);
        talk->process.input = -1;
    }
}

/* That it reads no more is no fault by itself: it may be about to end. */
static void
flush(struct lw_talk *talk)
{
    while (talk->process.input >= 0 && talk->written < talk->input.size) {
        ssize_t sent = write(talk->process.input, talk->input.data + talk->written,
                             talk->input.size - talk->written);
        if (sent < 0 && errno == EAGAIN) {
            return;
        }
        if (sent < 0 && errno != EINTR) {
            close_input(talk);
        }
        talk->written += sent > 0 ? (size_t)sent : 0;
    }
    if (talk->is_input_closed) {
        close_input(talk);
    }
}

bool
lw_talk_is_written(const struct lw_talk *talk)
{
    return talk->written == talk->input.size;
}

static void
fill(struct lw_programs_reader *reader, const struct pollfd *item, bool *is_ended)
{
    if (item->revents && !*is_ended) {
        *is_ended = lw_programs_reader_fill(reader, item->fd) == LW_PROGRAMS_READ_END;
    }
}

static int
wait_ms(const struct lw_talk *talk, uint64_t deadline)
{
    uint64_t now = lw_clock_monotonic_ns();
    uint64_t left = deadline > now ? (deadline - now) / LW_MS + 1 : 0;
    uint64_t most = talk->process.is_pidfd ? 60000 : LOOK_MS; /* a pipe may stay open */
    return (int)(left < most ? left : most);
}

/* False when the deadline has passed. */
static bool
turn(struct lw_talk *talk, uint64_t deadline)
{
    const struct lw_programs_process *process = &talk->process;
    bool has_more = process->input >= 0 && talk->written < talk->input.size;
    struct pollfd items[FD_COUNT] = {
        [FD_INPUT] = { .fd = has_more ? process->input : -1, .events = POLLOUT },
        [FD_OUTPUT] = { .fd = talk->is_output_ended ? -1 : process->output, .events = POLLIN },
        [FD_ANSWERS] = { .fd = talk->is_answers_ended ? -1 : process->answers,
                         .events = POLLIN },
        [FD_ERRORS] = { .fd = talk->is_errors_ended ? -1 : process->errors, .events = POLLIN },
        [FD_EXIT] = { .fd = process->is_pidfd ? process->exit_fd : -1, .events = POLLIN },
    };
    (void)poll(items, FD_COUNT, wait_ms(talk, deadline));
    fill(&talk->output, &items[FD_OUTPUT], &talk->is_output_ended);
    fill(&talk->answers, &items[FD_ANSWERS], &talk->is_answers_ended);
    fill(&talk->errors, &items[FD_ERRORS], &talk->is_errors_ended);
    flush(talk);
    if (lw_programs_process_is_over(process)) {
        enter_ended(talk);
        return true;
    }
    return lw_clock_monotonic_ns() < deadline;
}

static bool
is_mute(const struct lw_talk *talk)
{
    return talk->has_said_ready
               ? (talk->uses_answers ? talk->is_answers_ended : talk->is_output_ended)
               : talk->is_answers_ended && talk->is_output_ended;
}

enum lw_heard
lw_talk_hear(struct lw_talk *talk, uint64_t deadline)
{
    bool is_in_time = true;
    bool was_mute = false;
    while (!next_answer(talk)) {
        if (talk->has_ended) {
            return LW_HEARD_END;
        }
        if (talk->output.is_overlong || talk->answers.is_overlong) {
            return LW_HEARD_FLOOD;
        }
        if (!was_mute && is_mute(talk)) {
            uint64_t soon = lw_clock_monotonic_ns() + MUTE_AFTER;
            deadline = soon < deadline ? soon : deadline;
            was_mute = true;
        }
        if (!is_in_time) {
            return is_mute(talk) ? LW_HEARD_CLOSED : LW_HEARD_NOTHING;
        }
        is_in_time = turn(talk, deadline);
    }
    return LW_HEARD_ANSWER;
}

bool
lw_talk_wait_end(struct lw_talk *talk, uint64_t deadline)
{
    enum lw_heard heard = LW_HEARD_ANSWER;
    while (heard == LW_HEARD_ANSWER) {
        heard = lw_talk_hear(talk, deadline);
    }
    return heard == LW_HEARD_END;
}

/* -- Beginning and end ------------------------------------------------------------------------ */

int
lw_talk_open(struct lw_talk *talk, const struct lw_programs_command *command)
{
    *talk = (struct lw_talk){ .is_open = false };
    lw_text_init(&talk->input);
    int failed = lw_programs_process_spawn(command, &talk->process);
    if (failed) {
        return failed;
    }
    talk->is_open = true;
    lw_programs_reader_init(&talk->output, LINE_BYTES_MAX, false);
    lw_programs_reader_init(&talk->answers, LINE_BYTES_MAX, false);
    lw_programs_reader_init(&talk->errors, TEXT_BYTES_MAX, true);
    return 0;
}

bool
lw_talk_say(struct lw_talk *talk, struct lw_bytes bytes)
{
    if (lw_talk_is_written(talk)) {
        lw_text_clear(&talk->input);
        talk->written = 0;
    }
    lw_text_append_bytes(&talk->input, bytes.data, bytes.size);
    if (talk->input.is_failed) {
        return false;
    }
    flush(talk);
    return true;
}

void
lw_talk_finish(struct lw_talk *talk)
{
    talk->is_input_closed = true;
    if (talk->is_open) {
        flush(talk);
    }
}

void
lw_talk_terminate(struct lw_talk *talk)
{
    if (talk->is_open) {
        lw_programs_process_signal(&talk->process, SIGTERM);
    }
}

void
lw_talk_close(struct lw_talk *talk)
{
    if (talk->is_open) {
        (void)lw_programs_process_end(&talk->process);
        talk->is_open = false;
    }
}

void
lw_talk_deinit(struct lw_talk *talk)
{
    lw_talk_close(talk);
    lw_programs_answer_clear(&talk->answer);
    lw_programs_reader_deinit(&talk->output);
    lw_programs_reader_deinit(&talk->answers);
    lw_programs_reader_deinit(&talk->errors);
    lw_text_deinit(&talk->input);
}
