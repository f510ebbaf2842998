/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One turn: wait for any of its descriptors, write what it takes, read what is there. Lines are
 * looked at only when somebody asks for an answer, so that what was written before the end of a
 * process is heard before its end.
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

enum {
    LINE_BYTES_MAX = 16 * 1024 * 1024,
    TEXT_BYTES_MAX = 8 * 1024,
    LAST_READS_MAX = 1024,
    LOOK_MS = 20,
    FRAME_LENGTH_BYTES = 4
};
#define MUTE_AFTER (1000 * LW_MS) /* closed its output: a moment to end by itself */
enum { FD_INPUT, FD_OUTPUT, FD_ANSWERS, FD_ERRORS, FD_EXIT, FD_COUNT };

/* -- An end from outside ------------------------------------------------------------------------ */

/* The groups that are open: two processes at most live at once. */
static volatile sig_atomic_t groups[2];

/* Between a start or an end and what is noted of it no signal comes: its group would be missed. */
static sigset_t
hold_signals(void)
{
    sigset_t set;
    sigset_t before;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGHUP);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &set, &before);
    return before;
}

static void
let_signals(sigset_t before)
{
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
}

static void
guard(pid_t pid)
{
    groups[groups[0] ? 1 : 0] = (sig_atomic_t)pid;
}

static void
unguard(pid_t pid)
{
    for (size_t i = 0; i < 2; i++) {
        groups[i] = groups[i] == (sig_atomic_t)pid ? 0 : groups[i];
    }
}

static struct lw_programs_exit
end_guarded(struct lw_programs_process *process)
{
    sigset_t before = hold_signals();
    unguard(process->pid);
    struct lw_programs_exit exit = lw_programs_process_end(process);
    let_signals(before);
    return exit;
}

static void
on_signal(int signal)
{
    for (size_t i = 0; i < 2; i++) {
        if (groups[i] > 0) {
            (void)kill(-(pid_t)groups[i], SIGKILL);
        }
    }
    (void)raise(signal); /* its disposition is the default again */
}

void
lw_talk_guard(void)
{
    struct sigaction action = { .sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND };
    struct sigaction before;
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN) { /* nohup */
        (void)sigaction(SIGHUP, &action, NULL);
    }
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

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

/* True when it is something for the one who asks. */
static bool
is_answer(struct lw_talk *talk, bool on_answers)
{
    const struct lw_programs_answer *answer = &talk->answer;
    if (answer->kind == LW_PROGRAMS_LINE_STRAY) {
        on_stray(talk, answer->line);
        return false;
    }
    if (answer->kind == LW_PROGRAMS_LINE_LOG) {
        talk->log_count++;
        return false;
    }
    if (answer->kind == LW_PROGRAMS_LINE_READY && !talk->has_said_ready) {
        talk->has_said_ready = true;
        talk->uses_answers = on_answers;
        talk->stray_count = on_answers ? 0 : talk->stray_count; /* it keeps stdout for itself */
    }
    show(answer->line, talk->heard, sizeof talk->heard);
    return true;
}

/* True: talk->answer is filled, if only by why the rest cannot be understood. */
static bool
next_unit(struct lw_talk *talk, struct lw_programs_reader *reader, bool is_ended)
{
    lw_programs_answer_clear(&talk->answer);
    enum lw_programs_next next = talk->protocol->next(reader, &talk->answer);
    if (next == LW_PROGRAMS_NEXT_NONE && is_ended) {
        next = talk->protocol->rest(reader, &talk->answer);
    }
    if (next == LW_PROGRAMS_NEXT_BROKEN) {
        talk->answer.kind = LW_PROGRAMS_LINE_BROKEN;
        talk->answer.root = NULL;
        talk->answer.line = (struct lw_bytes){ NULL, 0 };
        lw_programs_reader_deinit(reader);
    }
    return next != LW_PROGRAMS_NEXT_NONE;
}

/* Before `ready` both channels may be the one; after it the other is text. */
static bool
next_answer(struct lw_talk *talk)
{
    hear_errors(talk, talk->is_errors_ended);
    while (next_unit(talk, &talk->answers, talk->is_answers_ended)) {
        if ((!talk->has_said_ready || talk->uses_answers) && is_answer(talk, true)) {
            return true;
        }
    }
    if (talk->has_said_ready && talk->uses_answers) {
        talk->output.begin = talk->output.end; /* whatever it likes */
        talk->output.scanned = talk->output.end;
        return false;
    }
    while (next_unit(talk, &talk->output, talk->is_output_ended)) {
        if (is_answer(talk, false)) {
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
    for (int i = 0; i < LAST_READS_MAX && !*is_ended; i++) {
        enum lw_programs_read got = lw_programs_reader_fill(reader, fd);
        if (got == LW_PROGRAMS_READ_NOTHING) {
            break; /* a child of it holds the pipe open, and may write for ever */
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
    talk->exit = end_guarded(&talk->process);
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
    if (talk->process.input < 0) {
        return;
    }
    switch (lw_programs_sender_flush(&talk->sender, talk->process.input)) {
    case LW_PROGRAMS_SENT_SOME:
        return;
    case LW_PROGRAMS_SENT_ALL:
        if (talk->is_input_closed) {
            close_input(talk);
        }
        return;
    case LW_PROGRAMS_SENT_CLOSED:
        close_input(talk);
        return;
    }
}

bool
lw_talk_is_written(const struct lw_talk *talk)
{
    return !lw_programs_sender_has_more(&talk->sender);
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
    bool has_more = process->input >= 0 && lw_programs_sender_has_more(&talk->sender);
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
    enum lw_heard heard = lw_talk_hear(talk, deadline);
    while (heard == LW_HEARD_ANSWER && lw_clock_monotonic_ns() < deadline) {
        heard = lw_talk_hear(talk, deadline);
    }
    return heard == LW_HEARD_END;
}

/* -- Beginning and end ------------------------------------------------------------------------ */

int
lw_talk_open(struct lw_talk *talk, const struct lw_programs_command *command,
             const struct lw_programs_protocol *protocol)
{
    *talk = (struct lw_talk){ .protocol = protocol };
    sigset_t before = hold_signals();
    int failed = lw_programs_process_spawn(command, &talk->process);
    if (!failed) {
        guard(talk->process.pid);
    }
    let_signals(before);
    if (failed) {
        return failed;
    }
    talk->is_open = true;
    talk->is_answers_ended = !command->has_answers;
    lw_programs_sender_init(&talk->sender);
    lw_programs_reader_init(&talk->output, LINE_BYTES_MAX, false);
    lw_programs_reader_init(&talk->answers, LINE_BYTES_MAX, false);
    lw_programs_reader_init(&talk->errors, TEXT_BYTES_MAX, true);
    return 0;
}

/* -- Saying ------------------------------------------------------------------------------------ */

/* Where the JSON of what was appended begins, and its size without the newline. */
static struct lw_bytes
json_of(const struct lw_talk *talk, size_t before)
{
    const char *data = talk->sender.text.data + before;
    size_t size = talk->sender.text.size - before;
    const unsigned char *length = (const unsigned char *)data;
    if (talk->protocol == &lw_programs_frames) {
        size = (size_t)length[1] << 16 | (size_t)length[2] << 8 | length[3];
        data += FRAME_LENGTH_BYTES;
    }
    return (struct lw_bytes){ data, size > 0 && data[size - 1] == '\n' ? size - 1 : size };
}

/* Puts fields behind the others of the JSON that a later version may have. */
static void
add_words(struct lw_talk *talk, size_t before)
{
    static const char words[] =
        ",\"x-later\":{\"list\":[1,null,{\"deep\":true}]},\"x-flag\":false";
    enum { ADDED = sizeof words - 1 };
    struct lw_text *text = &talk->sender.text;
    struct lw_bytes json = json_of(talk, before);
    size_t at = (size_t)((const char *)json.data - text->data) + json.size - 1;
    size_t rest = text->size - at;
    lw_text_append(text, words); /* makes room */
    if (text->is_failed) {
        return;
    }
    memmove(text->data + at + ADDED, text->data + at, rest);
    memcpy(text->data + at, words, ADDED);
    if (talk->protocol == &lw_programs_frames) {
        size_t size = json.size + 1 + ADDED;
        for (size_t i = 0; i < FRAME_LENGTH_BYTES; i++) {
            text->data[before + i] = (char)(unsigned char)(size >> (24 - 8 * i));
        }
    }
}

/* The beginning and the end: what matters of a message is often its value, which comes last. */
static void
show_sent(struct lw_talk *talk, struct lw_bytes json)
{
    enum { HEAD = 72 };
    static const char gap[] = " ... ";
    char *out = talk->sent;
    size_t room = sizeof talk->sent - 1;
    size_t tail = room - HEAD - (sizeof gap - 1);
    if (json.size <= room) {
        lw_text_copy(out, json.size + 1, json.data);
        return;
    }
    const char *end = (const char *)json.data + json.size - tail;
    for (; ((unsigned char)*end & 0xC0) == 0x80; end++) {
        tail--; /* whole characters only */
    }
    memcpy(out, json.data, HEAD);
    memcpy(out + HEAD, gap, sizeof gap - 1);
    memcpy(out + HEAD + sizeof gap - 1, end, tail);
    out[HEAD + sizeof gap - 1 + tail] = '\0';
}

bool
lw_talk_greet(struct lw_talk *talk, const struct lw_programs_hello *hello)
{
    talk->protocol->write_hello(&talk->sender.text, hello);
    if (talk->sender.text.is_failed) {
        return false;
    }
    show_sent(talk, json_of(talk, 0));
    flush(talk);
    return true;
}

bool
lw_talk_ask(struct lw_talk *talk, int64_t id, const struct lw_delivery *delivery,
            int64_t deadline_ms, bool has_more_words)
{
    (void)lw_programs_sender_place(&talk->sender);
    size_t before = talk->sender.text.size;
    if (!talk->protocol->write_request(&talk->sender, id, delivery, deadline_ms)) {
        return false;
    }
    if (has_more_words) {
        add_words(talk, before);
    }
    if (talk->sender.text.is_failed) {
        return false;
    }
    if (id > 0 && talk->protocol->doubt) {
        show_sent(talk, json_of(talk, before));
    }
    return true;
}

void
lw_talk_forget(struct lw_talk *talk, const struct lw_delivery *delivery)
{
    if (!lw_programs_sender_keep(&talk->sender, &delivery->message.key) ||
        !lw_programs_sender_keep(&talk->sender, &delivery->message.value)) {
        lw_talk_close(talk);
    }
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
        (void)end_guarded(&talk->process);
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
    lw_programs_sender_deinit(&talk->sender);
}
