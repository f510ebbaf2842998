/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `laneway handler check` tries, in the order of the report: each a small function that asks
 * something and leaves a finding. Any verdict is right, since only its author knows which messages
 * a handler likes; that it answers each message once, and lives, is what is judged.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "cli/handler_check.h"

enum { LARGE_BYTES = 1024 * 1024, STREAM_COUNT = 200, MANY_COUNT = LW_CHECK_WINDOW };
#define QUIET_FOR (200 * LW_MS) /* for what comes after an answer */
#define TEXT(literal)                                                                          \
    {                                                                                          \
        (literal), sizeof(literal) - 1                                                         \
    }

static const struct lw_bytes plain_value = TEXT(
    "{\"id\": 7, \"name\": \"Ada\", \"total\": 12.5}");
static const struct lw_bytes plain_key = TEXT("customer-17");
static const struct lw_header plain_headers[] = {
    { TEXT("traceparent"), TEXT("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01") },
    { TEXT("content-type"), TEXT("application/json") },
};

static const char *const help_content =
    "such bytes come in base64, in \"value_b64\", \"key_b64\" and \"headers_b64\" in place of "
    "the "
    "plain field: look for the plain field first, then for that one";
static const char *const help_null =
    "a field that is absent is a null: use message.get(\"value\") or your language's like, and "
    "decide what a null means (on a compacted topic: the key was deleted)";
static const char *const help_unknown =
    "ignore fields that you do not know; later versions will send more";
static const char *const help_headers =
    "a header may be a text, null, or an array of those when its name comes more than once";

static struct lw_bytes
value_of(const struct lw_check *check)
{
    return check->value.data ? check->value : plain_value;
}

/* Asks one message; notes the verdict. */
static void
ask(struct lw_check *check, const struct lw_sample *sample, const char *hint)
{
    struct lw_asked asked = { .sample = sample };
    if (lw_check_ask(check, &asked, 1, hint)) {
        lw_check_note(check, "%s", lw_check_verdict_name(asked.verdict));
    }
}

/* -- One message at a time --------------------------------------------------------------------- */

static void
run_start(struct lw_check *check)
{
    if (lw_check_start(check)) {
        lw_check_note(check, "protocol 1%s%s", check->is_concurrent ? ", concurrent" : "",
                      check->uses_answers ? ", on descriptor 3" : "");
    }
}

static void
run_plain(struct lw_check *check)
{
    const struct lw_sample sample = {
        .key = plain_key, .value = value_of(check), .headers = plain_headers, .header_count = 2
    };
    struct lw_asked asked = { .sample = &sample };
    if (!lw_check_ask(check, &asked, 1, NULL)) {
        return;
    }
    lw_check_note(check, "%s", lw_check_verdict_name(asked.verdict));
    if (check->value.data && asked.verdict != LW_OK) {
        lw_check_fault(check, "look at its reason, and whether the value is what it expects",
                       "it said %s to the value of --value",
                       lw_check_verdict_name(asked.verdict));
    }
}

static void
warn_of_its_end(struct lw_check *check)
{
    lw_check_warn(check,
                  "read the next line after an answer; a process that is kept costs nothing, a "
                  "new one milliseconds",
                  "it ended after its answer");
}

/*
 * What comes after an answer is heard for a moment, and then before the next answer, however long
 * that takes: neither a second answer nor the end of a slow process is missed.
 */
static void
run_once(struct lw_check *check)
{
    const struct lw_sample sample = { .value = value_of(check) };
    struct lw_asked asked = { .sample = &sample };
    if (!lw_check_ask(check, &asked, 1, NULL)) {
        return;
    }
    enum lw_heard heard = lw_talk_hear(&check->talk, lw_clock_monotonic_ns() + QUIET_FOR);
    if (heard == LW_HEARD_ANSWER && check->talk.answer.kind != LW_PROGRAMS_LINE_READY) {
        lw_text_copy(check->finding.got, sizeof check->finding.got, check->talk.heard);
        lw_check_fault(check, "answer each id exactly once, and nothing else",
                       "after its answer it wrote another one, for id %" PRId64,
                       check->talk.answer.id);
        lw_check_end(check);
    } else if (heard == LW_HEARD_END) {
        warn_of_its_end(check);
        lw_check_end(check);
    } else if (lw_check_ask(check, &asked, 1, NULL) && check->retired > 0) {
        warn_of_its_end(check);
    }
}

static void
run_large_id(struct lw_check *check)
{
    const struct lw_sample sample = { .value = value_of(check) };
    struct lw_asked asked = { .sample = &sample, .wanted_id = INT64_C(9007199254740991) };
    if (lw_check_ask(check, &asked, 1,
                     "give the id back as it came; it is a whole number of up to 53 bits")) {
        lw_check_note(check, "%s", lw_check_verdict_name(asked.verdict));
    }
}

static void
run_empty(struct lw_check *check)
{
    const struct lw_sample sample = { .key = TEXT(""), .value = TEXT("") };
    ask(check, &sample, "a value or a key may be an empty text, which is not the same as none");
}

static void
run_null_value(struct lw_check *check)
{
    const struct lw_sample sample = { .key = plain_key };
    ask(check, &sample, help_null);
}

static void
run_null_key(struct lw_check *check)
{
    const struct lw_sample sample = { .value = value_of(check) };
    ask(check, &sample, help_null);
}

static void
run_unicode(struct lw_check *check)
{
    const struct lw_sample sample = {
        .key = TEXT("\xc3\xa9t\xc3\xa9 \xe2\x82\xac"),
        .value = TEXT("\"quoted\" \\ back\ttab\nnewline \xe6\x97\xa5\xe6\x9c\xac "
                      "\xf0\x9f\x8e\x89 \xe2\x80\xa8 \x01\x1f\x7f \x00"),
    };
    ask(check, &sample,
        "read the line as UTF-8 and by a JSON library: quotes, newlines and control characters "
        "in a value are escaped, and a character may lie outside of 16 bits");
}

static void
run_binary(struct lw_check *check)
{
    static const struct lw_header headers[] = { { TEXT("raw"), TEXT("\xff\x00\xfe") } };
    const struct lw_sample sample = { .key = TEXT("\x80\x81"),
                                      .value = TEXT("\x00\xff\xc3\x28\xed\xa0\x80"),
                                      .headers = headers,
                                      .header_count = 1 };
    ask(check, &sample, help_content);
}

static void
run_headers(struct lw_check *check)
{
    static const struct lw_header headers[] = {
        { TEXT("tag"), TEXT("one") }, { TEXT("tag"), TEXT("two") },    { TEXT("tag"), { 0 } },
        { TEXT("none"), { 0 } },      { TEXT("empty"), TEXT("") },     { TEXT(""), TEXT("x") },
        { TEXT("tag"), TEXT("one") }, { TEXT("Tag"), TEXT("another") }
    };
    const struct lw_sample sample = { .key = plain_key,
                                      .value = value_of(check),
                                      .headers = headers,
                                      .header_count = sizeof headers / sizeof headers[0] };
    ask(check, &sample, help_headers);
}

static void
run_unknown(struct lw_check *check)
{
    const struct lw_sample sample = { .key = plain_key,
                                      .value = value_of(check),
                                      .has_more_words = true };
    ask(check, &sample, help_unknown);
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
    ask(check, &sample,
        "a line may be as long as the largest message of the topic: read lines of any length; "
        "where it is only slow, and your messages are small, all is well");
    if (check->finding.result == LW_FINDING_FAILED && check->is_late) {
        check->finding.result = LW_FINDING_WARNING; /* a shell, perhaps */
    }
    lw_free(value);
}

static void
run_retry(struct lw_check *check)
{
    static const struct lw_header headers[] = { { TEXT("RECONSUMETIMES"), TEXT("2") } };
    const struct lw_sample sample = { .key = plain_key,
                                      .value = value_of(check),
                                      .headers = headers,
                                      .header_count = 1,
                                      .attempt = 3,
                                      .redeliveries = 4,
                                      .position = 1 };
    struct lw_asked asked[2] = { { .sample = &sample }, { .sample = &sample } };
    if (lw_check_ask(check, &asked[0], 1, NULL) && lw_check_ask(check, &asked[1], 1, NULL)) {
        lw_check_note(check, "%s, %s", lw_check_verdict_name(asked[0].verdict),
                      lw_check_verdict_name(asked[1].verdict));
    }
}

/* -- Several ----------------------------------------------------------------------------------- */

static void
fill(struct lw_asked *asked, size_t count, const struct lw_sample *sample)
{
    for (size_t i = 0; i < count; i++) {
        asked[i] = (struct lw_asked){ .sample = sample };
    }
}

static void
run_many(struct lw_check *check)
{
    const struct lw_sample sample = { .key = plain_key, .value = value_of(check) };
    struct lw_asked asked[MANY_COUNT];
    fill(asked, MANY_COUNT, &sample);
    if (lw_check_ask(check, asked, MANY_COUNT,
                     "answer every message, in any order; with a window above 1 the next lines "
                     "are there before you have answered the first")) {
        lw_check_note(check, "%d at once", MANY_COUNT);
    }
}

/* One after another, as with window 1: what a message costs. */
static void
run_stream(struct lw_check *check)
{
    const struct lw_sample sample = { .key = plain_key, .value = value_of(check) };
    uint64_t began = 0;
    uint64_t took = 0;
    uint32_t count = 0;
    while (count < STREAM_COUNT && took < 1000 * LW_MS) {
        struct lw_asked asked = { .sample = &sample };
        if (!lw_check_ask(check, &asked, 1, NULL)) {
            return;
        }
        began = began ? began : lw_clock_monotonic_ns(); /* the first one warms up */
        took = lw_clock_monotonic_ns() - began;
        count++;
    }
    double each_us = count > 1 ? (double)took / 1000 / (count - 1) : 0;
    lw_check_note(check, "%" PRIu32 " messages, %.0f us each", count, each_us);
}

/* -- The end ----------------------------------------------------------------------------------- */

static void
judge_end(struct lw_check *check, bool has_ended)
{
    const struct lw_talk *talk = &check->talk;
    char how[64];
    char timeout[32];
    lw_text_from_duration_ms(check->timeout_ms, timeout, sizeof timeout);
    if (!has_ended) {
        lw_check_fault(
            check,
            "leave the loop at the end of input and exit; threads that are left must "
            "not keep the process",
            "it still ran %s after the end of its input", timeout);
        return;
    }
    lw_talk_describe_end(talk, how, sizeof how);
    lw_check_note(check, "%s", how);
    if (talk->exit.signal || talk->exit.status) {
        lw_check_warn(check, "exit with 0 when the input has ended", "it ended with %s", how);
    }
    if (talk->left_count > 0) {
        lw_check_warn(check, "end your children before you exit; they are killed then",
                      "it left %" PRIu32 " process%s behind", talk->left_count,
                      talk->left_count == 1 ? "" : "es");
    }
}

/* Finish what you hold, then exit. */
static void
run_end(struct lw_check *check)
{
    enum { HELD = 4 };
    const struct lw_sample sample = { .key = plain_key, .value = value_of(check) };
    struct lw_asked asked[HELD];
    fill(asked, HELD, &sample);
    if (!lw_check_start(check) || !lw_check_hand_over(check, asked, HELD)) {
        return;
    }
    lw_talk_finish(&check->talk);
    if (lw_check_collect(check, asked, HELD,
                         "at the end of input answer what you have read, then exit")) {
        uint64_t deadline = lw_clock_monotonic_ns() + (uint64_t)check->timeout_ms * LW_MS;
        judge_end(check, lw_talk_wait_end(&check->talk, deadline));
    }
    lw_check_end(check);
}

static void
run_term(struct lw_check *check)
{
    uint64_t deadline = 0;
    if (!lw_check_start(check)) {
        return;
    }
    lw_talk_terminate(&check->talk);
    deadline = lw_clock_monotonic_ns() + (uint64_t)check->timeout_ms * LW_MS;
    if (!lw_talk_wait_end(&check->talk, deadline)) {
        lw_check_warn(
            check,
            "leave SIGTERM as it is, or end soon after it; 5 s later the whole process "
            "group is killed",
            "it does not heed SIGTERM");
    }
    lw_check_end(check);
}

static void
run_beside(struct lw_check *check)
{
    const struct lw_sample sample = { .key = plain_key, .value = value_of(check) };
    if (!lw_check_start(check)) {
        return;
    }
    struct lw_talk first = check->talk; /* it goes on beside the second one */
    check->talk = (struct lw_talk){ .is_open = false };
    check->has_talk = false;
    check->is_ready = false;
    struct lw_asked asked = { .sample = &sample };
    (void)lw_check_ask(
        check, &asked, 1,
        "several processes of a handler run side by side: share no port, no lock "
        "and no file that only one may have, or say workers: 1");
    lw_check_end(check);
    lw_talk_deinit(&first);
}

/* -- What all of them showed -------------------------------------------------------------------- */

static void
run_stray(struct lw_check *check)
{
    lw_check_end(check);
    if (check->stray_count == 0) {
        return;
    }
    lw_text_copy(check->finding.got, sizeof check->finding.got, check->stray);
    lw_check_warn(check,
                  "print to standard error instead, or give the answers on the descriptor in "
                  "LANEWAY_FD and keep standard output for yourself",
                  "%" PRIu32 " line%s on standard output %s not of the protocol",
                  check->stray_count, check->stray_count == 1 ? "" : "s",
                  check->stray_count == 1 ? "is" : "are");
}

static void
run_ok(struct lw_check *check)
{
    if (!check->has_said_ok) {
        lw_check_warn(check,
                      "show it a message that it likes: --value '{\"order\": 1}' or --value "
                      "@order.json",
                      "it never said ok, so nothing is known of what it does then");
    }
}

const struct lw_check_step lw_check_steps[] = {
    { "start", "it starts and says ready", run_start, true },
    { "message", "a message with key, headers and JSON", run_plain, true },
    { "once", "one answer, and then nothing", run_once, false },
    { "large-id", "an id of 53 bits comes back as it was", run_large_id, false },
    { "empty", "an empty value and an empty key", run_empty, false },
    { "null-value", "no value: a tombstone", run_null_value, false },
    { "null-key", "no key and no headers", run_null_key, false },
    { "unicode", "text of all kinds: quotes, newlines, emoji", run_unicode, false },
    { "binary", "bytes that are no UTF-8", run_binary, false },
    { "headers", "headers repeated, null and empty", run_headers, false },
    { "unknown", "fields that it cannot know are ignored", run_unknown, false },
    { "large", "a value of 1 MiB", run_large, false },
    { "retry", "a retry, and the same message once more", run_retry, false },
    { "many", "several messages at once", run_many, false },
    { "stream", "one message after another", run_stream, false },
    { "end", "the end of input: it finishes and exits", run_end, false },
    { "term", "SIGTERM ends it", run_term, false },
    { "beside", "a second process beside it", run_beside, false },
    { "stray", "nothing else on standard output", run_stray, false },
    { "ok", "it said ok to something", run_ok, false },
    { NULL, NULL, NULL, false },
};
