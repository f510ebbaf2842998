/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `laneway handler check --protocol once` tries: a process for each message, as the engine
 * runs it, with the payload on its standard input and the rest in its environment. Any result that
 * has a word is right; a code that says that the handler is broken, a death and silence are not.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "cli/handler_check.h"
#include "engines/programs/exit_codes.h"
#include "engines/programs/once_environment.h"

enum { PRINTED_MAX = 16 * 1024 * 1024, LARGE_BYTES = 1024 * 1024, RUNS_MAX = 50 };
#define TEXT(literal)                                                                          \
    {                                                                                          \
        (literal), sizeof(literal) - 1                                                         \
    }

static const struct lw_bytes plain_value = TEXT(
    "{\"id\": 7, \"name\": \"Ada\", \"total\": 12.5}");
static const struct lw_bytes plain_key = TEXT("customer-17");

static const char *const help_codes =
    "exit with 0 for ok, 65 for what can never work, 75 for what may work later, 99 for what "
    "is "
    "ignored; with exit_codes a service gives other codes a meaning";
static const char *const help_end =
    "a run is for one message: read standard input to its end, or not at all, and exit";

/* -- Standard input and output as they are ----------------------------------------------------- */

static void
write_nothing(struct lw_text *out, const struct lw_programs_hello *hello)
{
    (void)out;
    (void)hello;
}

static bool
write_value(struct lw_programs_sender *sender, int64_t id, const struct lw_delivery *delivery,
            int64_t deadline_ms)
{
    (void)id;
    (void)deadline_ms;
    return lw_programs_sender_append(sender, &delivery->message.value);
}

/* What it prints stays in the reader: it is the reply. */
static enum lw_programs_next
next(struct lw_programs_reader *reader, struct lw_programs_answer *ret_answer)
{
    if (reader->end - reader->begin <= PRINTED_MAX + LARGE_BYTES) {
        return LW_PROGRAMS_NEXT_NONE;
    }
    *ret_answer = (struct lw_programs_answer){ .kind = LW_PROGRAMS_LINE_BROKEN };
    return LW_PROGRAMS_NEXT_BROKEN;
}

static const struct lw_programs_protocol plain = {
    .name = "once",
    .write_hello = write_nothing,
    .write_request = write_value,
    .next = next,
    .rest = next,
};

/* -- One run ----------------------------------------------------------------------------------- */

static bool
start(struct lw_check *check, struct lw_talk *talk, struct lw_delivery *delivery)
{
    struct lw_programs_environment environment;
    struct lw_programs_command command = check->command;
    bool is_made = lw_programs_environment_init(&environment, command.environment, delivery,
                                                check->timeout_ms);
    command.environment = environment.entries;
    command.has_answers = false;
    int failed = is_made ? lw_talk_open(talk, &command, &plain) : 0;
    lw_programs_environment_deinit(&environment);
    if (failed) {
        lw_check_fault(check, lw_check_help_of_spawn(check, failed), "it cannot be run: %s",
                       strerrordesc_np(failed));
    } else if (!is_made) {
        lw_check_fault(check, "", "there is no memory for the message");
    }
    return is_made && !failed;
}

/* True when it ended in time; a standard output that is closed before is no end. */
static bool
wait_for_end(struct lw_check *check, struct lw_talk *talk)
{
    char timeout[32];
    uint64_t deadline = lw_clock_monotonic_ns() + (uint64_t)check->timeout_ms * LW_MS;
    enum lw_heard heard = lw_talk_hear(talk, deadline);
    while (heard == LW_HEARD_CLOSED && lw_clock_monotonic_ns() < deadline) {
        heard = lw_talk_hear(talk, deadline);
    }
    if (heard == LW_HEARD_END) {
        return true;
    }
    if (heard == LW_HEARD_ANSWER) {
        lw_check_fault(check, "print the reply and nothing else",
                       "it printed more than 16 MiB");
        return false;
    }
    lw_text_from_duration_ms(check->timeout_ms, timeout, sizeof timeout);
    check->is_late = true;
    lw_check_fault(check, help_end, "it did not end within %s", timeout);
    return false;
}

static void
judge(struct lw_check *check, const struct lw_talk *talk)
{
    char how[64];
    int status = talk->exit.status;
    struct lw_exit_class meaning = lw_programs_exit_meaning(NULL, 0, status);
    const char *name = lw_programs_exit_name(status);
    lw_talk_describe_end(talk, how, sizeof how);
    if (talk->exit.signal) {
        lw_check_fault(check, help_codes, "it was %s", how);
    } else if (meaning.is_broken) {
        lw_check_fault(check,
                       "keep 64, 78, 126 and 127 for a handler that cannot work at all: the "
                       "pipeline pauses then",
                       "%s says that the handler itself is broken%s%s", how, name ? ": " : "",
                       name ? name : "");
    } else if (meaning.verdict == LW_ERROR) {
        lw_check_warn(check, help_codes, "%s is no word: it counts as error", how);
    }
    if (talk->left_count > 0) {
        lw_check_warn(check, "wait for your children before you exit; they are killed then",
                      "it left %u process%s behind", talk->left_count,
                      talk->left_count == 1 ? "" : "es");
    }
    check->has_said_ok |= !talk->exit.signal && meaning.verdict == LW_OK;
    lw_check_note(check, "%s",
                  talk->exit.signal ? how : lw_check_verdict_name(meaning.verdict));
}

/* Runs it for one message; the exit code, or -1 after a fault. */
static int
run(struct lw_check *check, const struct lw_sample *sample)
{
    struct lw_delivery *delivery = lw_samples_take(check->samples, sample);
    int status = -1;
    lw_check_end(check);
    if (delivery && start(check, &check->talk, delivery)) {
        check->has_talk = true;
        if (lw_talk_ask(&check->talk, 1, delivery, 0, false)) {
            lw_talk_finish(&check->talk);
        }
        if (wait_for_end(check, &check->talk)) {
            judge(check, &check->talk);
            status = check->talk.exit.signal ? -1 : check->talk.exit.status;
        }
        lw_check_end(check);
    }
    lw_samples_drop(delivery);
    return status;
}

static struct lw_bytes
value_of(const struct lw_check *check)
{
    return check->value.data ? check->value : plain_value;
}

/* -- The steps --------------------------------------------------------------------------------- */

static void
run_plain(struct lw_check *check)
{
    static const struct lw_header headers[] = { { TEXT("content-type"),
                                                  TEXT("application/json") } };
    const struct lw_sample sample = {
        .key = plain_key, .value = value_of(check), .headers = headers, .header_count = 1
    };
    int status = run(check, &sample);
    if (check->value.data && status > 0) {
        lw_check_fault(check,
                       "look at what it printed, and whether the value is what it expects",
                       "it said exit %d to the value of --value", status);
        check->finding.result = LW_FINDING_FAILED;
    }
}

static void
run_empty(struct lw_check *check)
{
    const struct lw_sample sample = { .key = TEXT(""), .value = TEXT("") };
    (void)run(check, &sample);
}

static void
run_null_value(struct lw_check *check)
{
    const struct lw_sample sample = { .key = plain_key };
    (void)run(check, &sample);
}

static void
run_null_key(struct lw_check *check)
{
    const struct lw_sample sample = { .value = value_of(check) };
    (void)run(check, &sample);
}

static void
run_unicode(struct lw_check *check)
{
    const struct lw_sample sample = {
        .key = TEXT("\xc3\xa9t\xc3\xa9 \xe2\x82\xac"),
        .value = TEXT("\"quoted\" \\ back\ttab\nnewline \xe6\x97\xa5 \xf0\x9f\x8e\x89"),
    };
    (void)run(check, &sample);
}

static void
run_binary(struct lw_check *check)
{
    const struct lw_sample sample = { .key = TEXT("\x80\x00\x81"),
                                      .value = TEXT("\x00\xff\xc3\x28\xed\xa0\x80") };
    (void)run(check, &sample);
}

/* What a shell would make something of, if it were let. */
static void
run_hostile(struct lw_check *check)
{
    static const struct lw_header headers[] = {
        { TEXT("order"), TEXT("$(exit 7); `exit 7`; \"; exit 7; '") },
        { TEXT("-e"), TEXT("-rf *") },
        { TEXT("PATH"), TEXT("/nowhere") },
        { TEXT("none"), { 0 } },
    };
    const struct lw_sample sample = { .key = TEXT("x; exit 7"),
                                      .value = value_of(check),
                                      .headers = headers,
                                      .header_count = sizeof headers / sizeof headers[0] };
    if (run(check, &sample) == 7) {
        lw_check_fault(check,
                       "quote every variable (\"$LANEWAY_KEY\"), and never give it to eval",
                       "a key or header was run by the shell");
        check->finding.result = LW_FINDING_FAILED;
    }
}

static void
run_large(struct lw_check *check)
{
    char *value = lw_alloc(LARGE_BYTES);
    if (!value) {
        lw_check_fault(check, "", "there is no memory for the message");
        return;
    }
    memset(value, 'x', LARGE_BYTES);
    const struct lw_sample sample = { .key = plain_key, .value = { value, LARGE_BYTES } };
    (void)run(check, &sample);
    lw_free(value);
}

static void
run_retry(struct lw_check *check)
{
    const struct lw_sample sample = { .key = plain_key,
                                      .value = value_of(check),
                                      .attempt = 3,
                                      .redeliveries = 4,
                                      .position = 1 };
    if (run(check, &sample) >= 0) {
        (void)run(check, &sample);
    }
}

static void
run_stream(struct lw_check *check)
{
    const struct lw_sample sample = { .key = plain_key, .value = value_of(check) };
    uint64_t began = lw_clock_monotonic_ns();
    uint64_t took = 0;
    unsigned count = 0;
    while (count < RUNS_MAX && took < 1000 * LW_MS && run(check, &sample) >= 0) {
        took = lw_clock_monotonic_ns() - began;
        count++;
    }
    if (count > 0) {
        lw_check_note(check, "%u runs, %.1f ms each", count, (double)took / 1e6 / count);
    }
}

/* Two at once, as with workers: 2 and more. */
static void
run_beside(struct lw_check *check)
{
    const struct lw_sample sample = { .key = plain_key, .value = value_of(check) };
    struct lw_delivery *delivery = lw_samples_take(check->samples, &sample);
    struct lw_talk first;
    if (!delivery || !start(check, &first, delivery)) {
        lw_samples_drop(delivery);
        return;
    }
    (void)run(check, &sample); /* the first one waits for its payload meanwhile */
    if (lw_talk_ask(&first, 1, delivery, 0, false)) {
        lw_talk_finish(&first);
    }
    if (wait_for_end(check, &first)) {
        judge(check, &first);
    }
    lw_talk_deinit(&first);
    lw_samples_drop(delivery);
}

static void
run_ok(struct lw_check *check)
{
    if (!check->has_said_ok) {
        lw_check_warn(check,
                      "show it a message that it likes: --value '{\"order\": 1}' or --value "
                      "@order.json",
                      "it never ended with 0, so nothing is known of what it does then");
    }
}

const struct lw_check_step lw_check_once_steps[] = {
    { "message", "a message with key, header and JSON", run_plain, true },
    { "empty", "an empty value and an empty key", run_empty, false },
    { "null-value", "no value: LANEWAY_VALUE_NULL is set", run_null_value, false },
    { "null-key", "no key and no headers", run_null_key, false },
    { "unicode", "text of all kinds: quotes, newlines, emoji", run_unicode, false },
    { "binary", "bytes that are no UTF-8, also in the key", run_binary, false },
    { "hostile", "keys and headers that look like commands", run_hostile, false },
    { "large", "a value of 1 MiB", run_large, false },
    { "retry", "a retry, and the same message once more", run_retry, false },
    { "beside", "a second run beside it", run_beside, false },
    { "stream", "one message after another", run_stream, false },
    { "ok", "it said ok to something", run_ok, false },
    { NULL, NULL, NULL, false },
};
