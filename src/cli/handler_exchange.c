/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting a process, asking it, and putting what went wrong into words. Whatever the engine
 * would punish is a fault here. Where an answer is late, its input is closed and what then comes
 * is looked at: an answer that only comes at the end was in a buffer, the commonest mistake.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/handler_check.h"
#include "engines/common/spawn_failure.h"

#define LONGEST                                                                                \
    (UINT64_C(600000) * LW_MS) /* for the answers of a step, however it extends them */

static const char *const help_flush =
    "flush after every line: most languages keep in a buffer what goes into a pipe. Python: "
    "print(..., flush=True); C: setvbuf(stdout, NULL, _IOLBF, 0); Ruby: $stdout.sync = true";
static const char *const help_line_end =
    "end every answer with a newline: one JSON object per line";
static const char *const help_ready = "answer the first line, {\"hello\":{...}}, with "
                                      "{\"ready\":{\"protocol\":1}} on a line of its "
                                      "own, before anything else";
static const char *const help_lengths =
    "four bytes with the length of the header, highest byte first, then the header in JSON, "
    "then the "
    "bytes that its reply_len names, no more and no fewer; flush after each frame";
static const char *const help_json = "write answers by a JSON library, as objects on one line "
                                     "each, with nothing else on the line; "
                                     "one thread at a time";
static const char *const help_once = "answer each id exactly once, with the id as it was given";
static const char *const help_no_reading =
    "read one line after the other until the end of input, and go on reading while you answer";
static const char *const help_crash = "catch what goes wrong with one message and answer "
                                      "{\"id\":N,\"result\":\"dead\",\"reason\":"
                                      "\"...\"} or \"error\"; a death costs a restart, and "
                                      "every message that was open runs again";
static const char *const help_open =
    "keep the descriptor of the answers open until the end of input";

void
lw_check_fault(struct lw_check *check, const char *help, const char *format, ...)
{
    struct lw_finding *finding = &check->finding;
    va_list arguments;
    if (finding->result == LW_FINDING_FAILED) {
        return;
    }
    finding->result = LW_FINDING_FAILED;
    finding->help = help;
    va_start(arguments, format);
    (void)vsnprintf(finding->why, sizeof finding->why, format, arguments);
    va_end(arguments);
}

void
lw_check_warn(struct lw_check *check, const char *help, const char *format, ...)
{
    struct lw_finding *finding = &check->finding;
    va_list arguments;
    if (finding->result != LW_FINDING_OK) {
        return;
    }
    finding->result = LW_FINDING_WARNING;
    finding->help = help;
    va_start(arguments, format);
    (void)vsnprintf(finding->why, sizeof finding->why, format, arguments);
    va_end(arguments);
}

void
lw_check_note(struct lw_check *check, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(check->finding.note, sizeof check->finding.note, format, arguments);
    va_end(arguments);
}

const char *
lw_check_verdict_name(enum lw_verdict verdict)
{
    static const char *const names[] = {
        [LW_OK] = "ok",     [LW_RETRY] = "retry", [LW_DEAD] = "dead",
        [LW_DROP] = "drop", [LW_ERROR] = "error", [LW_PENDING] = "?"
    };
    return names[verdict];
}

static uint64_t
deadline_of(const struct lw_check *check)
{
    return lw_clock_monotonic_ns() + (uint64_t)check->timeout_ms * LW_MS;
}

/* -- Ending ------------------------------------------------------------------------------------ */

static void
gather(struct lw_check *check)
{
    const struct lw_talk *talk = &check->talk;
    struct lw_finding *finding = &check->finding;
    size_t used = 0;
    uint32_t count = talk->last_count < LW_TALK_LAST_LINES ? talk->last_count
                                                           : LW_TALK_LAST_LINES;
    finding->printed[0] = '\0';
    for (uint32_t i = count; i > 0 && used < sizeof finding->printed; i--) {
        const char *line = talk->last[(talk->last_count - i) % LW_TALK_LAST_LINES];
        int length = snprintf(finding->printed + used, sizeof finding->printed - used, "%s%s",
                              used > 0 ? "\n" : "", line);
        used += length > 0 ? (size_t)length : 0;
    }
    if (talk->stray_count > 0 && check->stray_count == 0) {
        lw_text_copy(check->stray, sizeof check->stray, talk->stray);
    }
    check->stray_count += talk->stray_count;
}

void
lw_check_end(struct lw_check *check)
{
    if (check->has_talk) {
        lw_talk_close(&check->talk);
        gather(check);
        lw_talk_deinit(&check->talk);
        check->has_talk = false;
    }
    check->is_ready = false;
}

/* -- What went wrong --------------------------------------------------------------------------- */

/* After the time is over: closes its input and waits as long again for what was asked. */
static bool
comes_at_the_end(struct lw_check *check, bool (*is_it)(const struct lw_talk *talk))
{
    struct lw_talk *talk = &check->talk;
    uint64_t deadline = deadline_of(check);
    lw_talk_finish(talk);
    do {
        if (lw_talk_hear(talk, deadline) != LW_HEARD_ANSWER) {
            return false;
        }
        if (is_it(talk)) {
            return true;
        }
    } while (lw_clock_monotonic_ns() < deadline);
    return false;
}

static bool
is_ready(const struct lw_talk *talk)
{
    return talk->answer.kind == LW_PROGRAMS_LINE_READY;
}

static bool
is_an_answer(const struct lw_talk *talk)
{
    return talk->answer.kind == LW_PROGRAMS_LINE_ANSWER;
}

static void
blame_silence(struct lw_check *check, const char *what,
              bool (*is_it)(const struct lw_talk *talk), const char *hint)
{
    char timeout[32];
    struct lw_talk *talk = &check->talk;
    size_t unended = lw_talk_unended(talk);
    check->is_late = false;
    bool is_written = lw_talk_is_written(talk);
    lw_text_from_duration_ms(check->timeout_ms, timeout, sizeof timeout);
    if (unended > 0 && check->protocol == &lw_programs_frames) {
        lw_check_fault(
            check, help_lengths,
            "%s did not come within %s, but %zu bytes of a frame that is not whole did", what,
            timeout, unended);
    } else if (unended > 0) {
        lw_check_fault(check, help_line_end,
                       "%s did not come within %s, but %zu bytes without the end of a line did",
                       what, timeout, unended);
    } else if (comes_at_the_end(check, is_it)) {
        lw_check_fault(check, help_flush,
                       "%s came only when its input had ended: it stayed in a buffer", what);
    } else if (check->talk.stray_count > 0) {
        lw_text_copy(check->finding.got, sizeof check->finding.got, check->talk.stray);
        lw_check_fault(check, help_json,
                       "%s did not come within %s, but a line that is not of the protocol did",
                       what, timeout);
    } else if (!is_written) {
        lw_check_fault(check, help_no_reading, "%s did not come within %s: it stopped reading",
                       what, timeout);
    } else {
        lw_check_fault(check, hint, "%s did not come within %s", what, timeout);
        check->is_late = true;
    }
}

static void
blame_end(struct lw_check *check, const char *when, const char *hint)
{
    char how[64];
    lw_talk_describe_end(&check->talk, how, sizeof how);
    lw_check_fault(check, hint, "it ended %s: %s", when, how);
}

/* What was heard in place of an answer. */
static void
blame(struct lw_check *check, enum lw_heard heard, const char *what, const char *when,
      const char *hint)
{
    switch (heard) {
    case LW_HEARD_ANSWER:
        return;
    case LW_HEARD_NOTHING:
        blame_silence(check, what, check->is_ready ? is_an_answer : is_ready, hint);
        return;
    case LW_HEARD_CLOSED:
        lw_check_fault(check, help_open, "it closed its %s %s",
                       check->talk.uses_answers ? "descriptor 3" : "standard output", when);
        return;
    case LW_HEARD_FLOOD:
        lw_check_fault(check, help_line_end, "it wrote a line of more than 16 MiB");
        return;
    case LW_HEARD_END:
        blame_end(check, when, hint);
        return;
    }
}

/* -- Starting ---------------------------------------------------------------------------------- */

const char *
lw_check_help_of_spawn(const struct lw_check *check, int failed)
{
    if (failed == ENOENT && strchr(check->command.program[0], ' ')) {
        return "give the program and its arguments as words of their own: laneway handler "
               "check "
               "python3 handler.py";
    }
    const char *help = lw_spawn_failure_program(check->command.program[0], NULL, failed, NULL,
                                                0);
    if (help[0]) {
        return help;
    }
    return failed == ENOENT
               ? "it is looked up in PATH, or is a path that has a slash in it"
               : "the system's own words; see the path and the limits of your shell";
}

static bool
open_talk(struct lw_check *check)
{
    int failed = lw_talk_open(&check->talk, &check->command, check->protocol);
    if (failed) {
        lw_check_fault(check, lw_check_help_of_spawn(check, failed), "it cannot be run: %s",
                       strerrordesc_np(failed));
        return false;
    }
    check->has_talk = true;
    return true;
}

static bool
say_hello(struct lw_check *check)
{
    const struct lw_programs_hello hello = { "check", check->name, LW_CHECK_WINDOW, NULL };
    bool is_said = lw_talk_greet(&check->talk, &hello);
    lw_text_copy(check->finding.sent, sizeof check->finding.sent, check->talk.sent);
    return is_said;
}

/* The first thing that is of the protocol must be `ready`, in our version. */
static bool
is_welcome(struct lw_check *check)
{
    const struct lw_programs_answer *answer = &check->talk.answer;
    lw_text_copy(check->finding.got, sizeof check->finding.got, check->talk.heard);
    if (answer->kind == LW_PROGRAMS_LINE_BROKEN) {
        lw_check_fault(check, help_ready, "its ready cannot be used: %s", answer->why);
    } else if (answer->kind != LW_PROGRAMS_LINE_READY) {
        lw_check_fault(check, help_ready, "it answered before it said ready");
    } else if (answer->protocol != LW_PROGRAMS_PROTOCOL) {
        lw_check_fault(check, help_ready,
                       "it speaks protocol %" PRId64 ", this version speaks %d",
                       answer->protocol, LW_PROGRAMS_PROTOCOL);
    } else {
        return true;
    }
    return false;
}

bool
lw_check_start(struct lw_check *check)
{
    if (check->is_ready && check->talk.is_open) {
        return true;
    }
    lw_check_end(check);
    if (!open_talk(check) || !say_hello(check)) {
        return false;
    }
    enum lw_heard heard = lw_talk_hear(&check->talk, deadline_of(check));
    if (heard != LW_HEARD_ANSWER) {
        blame(check, heard, "ready", "before it said ready",
              check->protocol->doubts_exits ? check->protocol->doubt : help_ready);
    }
    if (heard != LW_HEARD_ANSWER || !is_welcome(check)) {
        lw_check_end(check);
        return false;
    }
    check->is_ready = true;
    check->answered = 0;
    check->uses_answers = check->talk.uses_answers;
    check->is_concurrent = check->talk.answer.is_concurrent;
    return true;
}

/* -- Asking ------------------------------------------------------------------------------------ */

static bool
write_one(struct lw_check *check, struct lw_asked *asked)
{
    asked->delivery = lw_samples_take(check->samples, asked->sample);
    asked->id = asked->wanted_id ? asked->wanted_id : ++check->next_id;
    asked->is_answered = false;
    bool is_written = asked->delivery &&
                      lw_talk_ask(&check->talk, asked->id, asked->delivery, check->timeout_ms,
                                  asked->sample->has_more_words);
    lw_text_copy(check->finding.sent, sizeof check->finding.sent, check->talk.sent);
    return is_written;
}

/* After the answers, or when there will be none. */
static void
give_back(struct lw_check *check, struct lw_asked *asked, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (asked[i].delivery && check->has_talk) {
            lw_talk_forget(&check->talk, asked[i].delivery);
        }
        lw_samples_drop(asked[i].delivery);
        asked[i].delivery = NULL;
    }
}

bool
lw_check_hand_over(struct lw_check *check, struct lw_asked *asked, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!write_one(check, &asked[i])) {
            lw_check_fault(check, "", "there is no memory for the message");
            lw_check_end(check);
            give_back(check, asked, count);
            return false;
        }
    }
    return true;
}

static struct lw_asked *
find(struct lw_asked *asked, size_t count, int64_t id)
{
    for (size_t i = 0; i < count; i++) {
        if (asked[i].id == id) {
            return &asked[i];
        }
    }
    return NULL;
}

/* Still working: as in the engine, time is only ever added. */
static void
extend(struct lw_check *check)
{
    uint64_t until = lw_clock_monotonic_ns() + (uint64_t)check->talk.answer.extend_ms * LW_MS;
    check->extended = until > check->extended ? until : check->extended;
}

/* Applies the answer as the engine does; what it could not use is a fault. */
static bool
take_answer(struct lw_check *check, struct lw_asked *one)
{
    struct lw_delivery *delivery = one->delivery;
    one->is_answered = true;
    check->answered++;
    one->verdict = lw_programs_answer_apply(&check->talk.answer, delivery);
    static const char refused[] = "the handler's answer cannot be used: ";
    const char *reason = lw_delivery_reason(delivery);
    bool is_usable = one->verdict != LW_ERROR ||
                     strncmp(reason, refused, sizeof refused - 1) != 0;
    if (!is_usable) {
        lw_check_fault(check, "docs/protocol.md lists the fields of an answer and their types",
                       "its answer cannot be used: %s", reason + sizeof refused - 1);
    }
    check->has_said_ok = check->has_said_ok || (is_usable && one->verdict == LW_OK);
    return is_usable;
}

static bool
on_answer(struct lw_check *check, struct lw_asked *asked, size_t count)
{
    const struct lw_programs_answer *answer = &check->talk.answer;
    struct lw_asked *one = find(asked, count, answer->id);
    lw_text_copy(check->finding.got, sizeof check->finding.got, check->talk.heard);
    if (answer->kind == LW_PROGRAMS_LINE_BROKEN) {
        lw_check_fault(check, help_once, "it broke the protocol: %s", answer->why);
        return false;
    }
    if (answer->kind == LW_PROGRAMS_LINE_READY) {
        return true; /* once more: harmless, as in the engine */
    }
    if (!one || one->is_answered) {
        bool was_open = one || (answer->id > 0 && answer->id <= check->next_id);
        lw_check_fault(check, help_once,
                       was_open ? "it answered id %" PRId64 " twice"
                                : "it answered id %" PRId64 ", which is not open",
                       answer->id);
        return false;
    }
    if (answer->kind == LW_PROGRAMS_LINE_EXTEND) {
        extend(check);
        return true;
    }
    return take_answer(check, one);
}

static size_t
count_open(const struct lw_asked *asked, size_t count)
{
    size_t open = 0;
    for (size_t i = 0; i < count; i++) {
        open += asked[i].is_answered ? 0 : 1;
    }
    return open;
}

/* As in the engine: what it had not read runs again elsewhere, and nobody is charged. */
static bool
is_retirement(const struct lw_check *check, const struct lw_asked *asked, size_t count)
{
    const struct lw_programs_exit *exit = &check->talk.exit;
    return exit->status == 0 && exit->signal == 0 && check->answered > 0 &&
           count_open(asked, count) == count && !check->talk.is_input_closed;
}

/* What comes next, up to the time of an answer; nothing, once all of them had the longest. */
static enum lw_heard
hear(struct lw_check *check, uint64_t last)
{
    uint64_t deadline = deadline_of(check);
    deadline = check->extended > deadline ? check->extended : deadline;
    deadline = last < deadline ? last : deadline;
    return lw_clock_monotonic_ns() < last ? lw_talk_hear(&check->talk, deadline)
                                          : LW_HEARD_NOTHING;
}

static bool
collect(struct lw_check *check, struct lw_asked *asked, size_t count, const char *hint)
{
    size_t open = 0;
    char what[64] = "the answer";
    uint64_t last = deadline_of(check) + LONGEST;
    check->extended = 0;
    while ((open = count_open(asked, count)) > 0) {
        enum lw_heard heard = hear(check, last);
        if (count > 1) {
            (void)snprintf(what, sizeof what, "%zu of %zu answers", open, count);
        }
        check->has_retired = heard == LW_HEARD_END && is_retirement(check, asked, count);
        if (heard != LW_HEARD_ANSWER && !check->has_retired) {
            blame(check, heard, what, "before it answered", hint ? hint : help_crash);
        }
        if (heard != LW_HEARD_ANSWER || !on_answer(check, asked, count)) {
            lw_check_end(check);
            return false;
        }
    }
    return true;
}

bool
lw_check_collect(struct lw_check *check, struct lw_asked *asked, size_t count, const char *hint)
{
    bool is_answered = collect(check, asked, count, hint);
    give_back(check, asked, count);
    return is_answered;
}

bool
lw_check_ask(struct lw_check *check, struct lw_asked *asked, size_t count, const char *hint)
{
    check->has_retired = false;
    bool is_answered = lw_check_start(check) && lw_check_hand_over(check, asked, count) &&
                       lw_check_collect(check, asked, count, hint);
    if (check->has_retired) {
        check->retired++;
        is_answered = lw_check_start(check) && lw_check_hand_over(check, asked, count) &&
                      lw_check_collect(check, asked, count, hint);
    }
    return is_answered;
}
