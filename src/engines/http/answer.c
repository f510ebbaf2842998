/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading answers. The order of what counts: the header x-laneway-result, then an answer in JSON
 * as programs give it, then the word `status` of a small JSON object on 2xx (as Dapr's services
 * say it), then the status code. Interim answers (1xx) and trailers mean nothing.
 */
#include "engines/http/answer.h"

#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "engines/http/retry_after.h"

enum {
    BODY_BYTES_KEPT = 16 * 1024,
    REASON_BYTES_KEPT = 1024,
    WORD_BYTES_MAX = 64,
    HEAD_BYTES_MAX = 256 * 1024
};

/* -- Collecting -------------------------------------------------------------------------------- */

void
lw_http_answer_init(struct lw_http_answer *answer, uint64_t bytes_max)
{
    *answer = (struct lw_http_answer){ .bytes_max = bytes_max, .delay_ms = -1 };
    lw_text_init(&answer->body);
}

void
lw_http_answer_deinit(struct lw_http_answer *answer)
{
    lw_text_deinit(&answer->body);
}

static void
forget_headers(struct lw_http_answer *answer)
{
    answer->has_retry_after = false;
    answer->has_result = false;
    answer->has_code = false;
    answer->is_json_answer = false;
    answer->reply = LW_HTTP_REPLY_BODY;
    answer->delay_ms = -1;
    answer->fault[0] = '\0';
    answer->reason[0] = '\0';
    answer->location[0] = '\0';
}

void
lw_http_answer_begin(struct lw_http_answer *answer)
{
    forget_headers(answer);
    answer->status = 0;
    answer->body_bytes = 0;
    answer->head_bytes = 0;
    answer->is_head_over = false;
    answer->is_too_large = false;
    answer->is_starved = false;
    if (answer->body.capacity > BODY_BYTES_KEPT || answer->body.is_failed) {
        lw_text_deinit(&answer->body);
        lw_text_init(&answer->body);
    } else {
        lw_text_clear(&answer->body);
    }
}

static struct lw_bytes
trim(struct lw_bytes bytes)
{
    const char *text = bytes.data;
    while (bytes.size > 0 && strchr(" \t\r\n", text[bytes.size - 1]) && text[bytes.size - 1]) {
        bytes.size--;
    }
    while (bytes.size > 0 && (*text == ' ' || *text == '\t')) {
        text++;
        bytes.size--;
    }
    return (struct lw_bytes){ text, bytes.size };
}

static bool
is_word(struct lw_bytes bytes, const char *word)
{
    return bytes.size == strlen(word) && strncasecmp(bytes.data, word, bytes.size) == 0;
}

/* A short value as a text; "" when it is too long or holds a zero. */
static const char *
word_of(struct lw_bytes value, char out[WORD_BYTES_MAX])
{
    bool fits = value.size < WORD_BYTES_MAX && !memchr(value.data, '\0', value.size);
    if (fits) {
        memcpy(out, value.data, value.size);
    }
    out[fits ? value.size : 0] = '\0';
    return out;
}

static void
set_fault(struct lw_http_answer *answer, const char *name, const char *why)
{
    if (!answer->fault[0]) {
        (void)snprintf(answer->fault, sizeof answer->fault,
                       "the service's answer cannot be used: its header %s %s", name, why);
    }
}

static void
on_result(struct lw_http_answer *answer, struct lw_bytes value)
{
    static const char *const words[] = { "ok", "retry", "dead", "drop", "error" };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (is_word(value, words[i])) {
            answer->has_result = true;
            answer->result = (enum lw_verdict)i;
            return;
        }
    }
    set_fault(answer, "x-laneway-result", "is none of ok, retry, dead, drop, error");
}

static void
on_delay(struct lw_http_answer *answer, struct lw_bytes value)
{
    char word[WORD_BYTES_MAX];
    const char *why = NULL;
    int64_t delay_ms = 0;
    if (lw_text_to_duration_ms(word_of(value, word), &delay_ms, &why) && delay_ms >= 0) {
        answer->delay_ms = delay_ms;
    } else {
        set_fault(answer, "x-laneway-delay", "is no duration such as 5s");
    }
}

static void
on_code(struct lw_http_answer *answer, struct lw_bytes value)
{
    int64_t code = 0;
    if (lw_bytes_to_int(value, &code) && code >= INT_MIN && code <= INT_MAX) {
        answer->has_code = true;
        answer->code = (int)code;
    } else {
        set_fault(answer, "x-laneway-code", "is not a whole number");
    }
}

static void
on_reply(struct lw_http_answer *answer, struct lw_bytes value)
{
    if (is_word(value, "empty")) {
        answer->reply = LW_HTTP_REPLY_EMPTY;
    } else if (is_word(value, "null")) {
        answer->reply = LW_HTTP_REPLY_NULL;
    } else {
        set_fault(answer, "x-laneway-reply", "is neither empty nor null");
    }
}

static void
on_type(struct lw_http_answer *answer, struct lw_bytes value)
{
    const char *end = memchr(value.data, ';', value.size);
    struct lw_bytes type = { value.data,
                             end ? (size_t)(end - (const char *)value.data) : value.size };
    answer->is_json_answer = is_word(trim(type), "application/vnd.laneway.answer+json");
}

static void
on_length(struct lw_http_answer *answer, struct lw_bytes value)
{
    int64_t length = 0;
    if (lw_bytes_to_int(value, &length) && length > 0 && (uint64_t)length > answer->bytes_max) {
        answer->is_too_large = true;
    }
}

static void
on_header(struct lw_http_answer *answer, struct lw_bytes name, struct lw_bytes value,
          int64_t wall_ms)
{
    if (is_word(name, "retry-after")) {
        answer->has_retry_after = lw_http_retry_after(value, wall_ms, &answer->retry_after_ms);
    } else if (is_word(name, "x-laneway-result")) {
        on_result(answer, value);
    } else if (is_word(name, "x-laneway-delay")) {
        on_delay(answer, value);
    } else if (is_word(name, "x-laneway-code")) {
        on_code(answer, value);
    } else if (is_word(name, "x-laneway-reply")) {
        on_reply(answer, value);
    } else if (is_word(name, "x-laneway-reason")) {
        lw_http_reason(answer->reason, value);
    } else if (is_word(name, "content-type")) {
        on_type(answer, value);
    } else if (is_word(name, "content-length")) {
        on_length(answer, value);
    } else if (is_word(name, "location")) {
        char location[LW_REASON_MAX + 1];
        lw_http_reason(location, value);
        lw_text_copy(answer->location, sizeof answer->location, location);
    }
}

/* "HTTP/1.1 200 OK", "HTTP/2 200". */
static bool
read_status(struct lw_bytes line, long *ret_status)
{
    const char *text = line.data;
    const char *blank = memchr(text, ' ', line.size);
    if (line.size < 5 || strncasecmp(text, "HTTP/", 5) != 0 || !blank) {
        return false;
    }
    const char *end = text + line.size;
    long status = 0;
    for (const char *at = blank + 1; at < end && at < blank + 4; at++) {
        status = *at >= '0' && *at <= '9' ? status * 10 + (*at - '0') : 0;
    }
    *ret_status = status;
    return true;
}

/* What the body is for: a reply, or a word of it; else only its beginning, as the reason. */
static bool
is_body_wanted(const struct lw_http_answer *answer)
{
    return (answer->status >= 200 && answer->status < 300) || answer->is_json_answer;
}

/* They come without an end, or with a size that nobody means. */
static bool
refuse_head(struct lw_http_answer *answer)
{
    (void)snprintf(answer->fault, sizeof answer->fault,
                   "the service's answer cannot be used: its headers are larger than %d KiB; "
                   "the connection was closed",
                   HEAD_BYTES_MAX / 1024);
    return false;
}

/* The line goes on with the value of the one before, and is no header of its own. */
static bool
is_folded(struct lw_bytes line)
{
    const char *text = line.data;
    return line.size > 0 && (*text == ' ' || *text == '\t');
}

bool
lw_http_answer_header(struct lw_http_answer *answer, struct lw_bytes line, int64_t wall_ms)
{
    answer->head_bytes += line.size;
    if (answer->head_bytes > HEAD_BYTES_MAX) {
        return refuse_head(answer);
    }
    if (answer->is_head_over || is_folded(line)) {
        return true;
    }
    line = trim(line);
    if (line.size == 0) {
        answer->is_head_over = answer->status >= 200;
        return !answer->is_too_large || answer->status < 200 || !is_body_wanted(answer);
    }
    if (read_status(line, &answer->status)) {
        forget_headers(answer);
        answer->is_too_large = false;
        return true;
    }
    const char *colon = memchr(line.data, ':', line.size);
    if (colon) {
        struct lw_bytes name = { line.data, (size_t)(colon - (const char *)line.data) };
        struct lw_bytes value = { colon + 1, line.size - name.size - 1 };
        on_header(answer, trim(name), trim(value), wall_ms);
    }
    return true;
}

bool
lw_http_answer_body(struct lw_http_answer *answer, struct lw_bytes piece)
{
    answer->is_head_over = true;
    answer->body_bytes += piece.size;
    answer->is_too_large = answer->is_too_large || answer->body_bytes > answer->bytes_max;
    uint64_t most = is_body_wanted(answer) ? answer->bytes_max : REASON_BYTES_KEPT;
    size_t room = most > answer->body.size ? (size_t)(most - answer->body.size) : 0;
    lw_text_append_bytes(&answer->body, piece.data, piece.size < room ? piece.size : room);
    answer->is_starved = answer->body.is_failed;
    return !answer->is_starved && !answer->is_too_large;
}

/* -- Judging ----------------------------------------------------------------------------------- */

void
lw_http_reason(char out[LW_REASON_MAX + 1], struct lw_bytes bytes)
{
    const unsigned char *at = bytes.data;
    size_t left = bytes.size;
    size_t size = 0;
    while (left > 0) {
        size_t length = lw_text_utf8_size(at, left);
        size_t step = length > 0 ? length : 1;
        if (size + step > LW_HTTP_REASON_BYTES) {
            break;
        }
        bool is_control = *at < ' ' || *at == 0x7f;
        if (length == 0 || is_control) {
            out[size++] = is_control ? ' ' : '?';
        } else {
            memcpy(out + size, at, length);
            size += length;
        }
        at += step;
        left -= step;
    }
    while (size > 0 && out[size - 1] == ' ') {
        size--;
    }
    out[size] = '\0';
}

bool
lw_http_answer_is_busy(const struct lw_http_answer *answer)
{
    return (answer->status == 429 || answer->status == 503) && !answer->has_result &&
           !answer->is_json_answer && !answer->fault[0];
}

static enum lw_verdict
verdict_of_status(long status)
{
    if (status >= 200 && status < 300) {
        return LW_OK;
    }
    bool is_again = status == 404 || status == 408 || status == 409 || status == 425 ||
                    status == 429 || (status >= 500 && status < 600);
    if (is_again) {
        return LW_RETRY;
    }
    return status >= 400 && status < 500 ? LW_DEAD : LW_ERROR;
}

static struct lw_bytes
body_of(const struct lw_http_answer *answer)
{
    return (struct lw_bytes){ answer->body.data ? answer->body.data : "", answer->body.size };
}

static bool
may_hold_word(struct lw_bytes body)
{
    const char *text = body.data;
    size_t at = 0;
    while (at < body.size && strchr(" \t\r\n", text[at]) && text[at]) {
        at++;
    }
    static const char word[] = "\"status\"";
    return at < body.size && text[at] == '{' &&
           memmem(text, body.size, word, sizeof word - 1) != NULL;
}

/* What `{"status": "RETRY"}` says. *ret_is_word: it is such an object, and nothing else. */
static bool
read_word(struct lw_bytes body, enum lw_verdict *verdict, bool *ret_is_word)
{
    static const struct {
        const char *word;
        enum lw_verdict verdict;
    } words[] = { { "SUCCESS", LW_OK }, { "RETRY", LW_RETRY }, { "DROP", LW_DROP } };
    json_error_t error;
    json_t *root = json_loadb(body.data, body.size, JSON_ALLOW_NUL, &error);
    if (!root) {
        return json_error_code(&error) != json_error_out_of_memory;
    }
    const char *status = json_string_value(json_object_get(root, "status"));
    for (size_t i = 0; status && i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(status, words[i].word) == 0) {
            *verdict = words[i].verdict;
            *ret_is_word = json_object_size(root) == 1;
        }
    }
    json_decref(root);
    return true;
}

static void
say(struct lw_outcome *outcome, const char *reason)
{
    lw_outcome_set_reason(outcome, reason, strlen(reason));
}

static enum lw_verdict
refuse(struct lw_outcome *outcome, const char *why)
{
    lw_outcome_clear(outcome);
    say(outcome, why);
    return LW_ERROR;
}

static void
say_why(const struct lw_http_answer *answer, struct lw_outcome *outcome)
{
    char reason[LW_REASON_MAX + 1];
    if (answer->reason[0]) {
        say(outcome, answer->reason);
        return;
    }
    if (answer->status >= 300 && answer->status < 400) {
        (void)snprintf(reason, sizeof reason,
                       "the service answered %ld%s%s: redirects are not followed, give the "
                       "final address",
                       answer->status, answer->location[0] ? " to " : "", answer->location);
    } else {
        lw_http_reason(reason, body_of(answer));
    }
    if (!reason[0]) {
        (void)snprintf(reason, sizeof reason, "the service answered %ld", answer->status);
    }
    say(outcome, reason);
}

static bool
add_reply(const struct lw_http_answer *answer, bool is_word, struct lw_outcome *outcome)
{
    struct lw_output output = { .value = body_of(answer) };
    bool may_reply = answer->status == 200 || answer->status == 201;
    bool has_reply = answer->reply != LW_HTTP_REPLY_BODY || answer->body.size > 0;
    if (!may_reply || !has_reply || is_word) {
        return true;
    }
    if (answer->reply == LW_HTTP_REPLY_NULL) {
        output.value = (struct lw_bytes){ NULL, 0 };
    }
    return lw_outcome_add(outcome, true, &output) == LW_STATUS_OK;
}

/* Retry-After of one message's own; of 429 and 503 the engine makes more of it. */
static int64_t
delay_of(const struct lw_http_answer *answer)
{
    if (answer->delay_ms >= 0) {
        return answer->delay_ms;
    }
    return answer->has_retry_after ? answer->retry_after_ms : -1;
}

static bool
judge_plain(const struct lw_http_answer *answer, struct lw_delivery *delivery,
            enum lw_verdict *ret_verdict)
{
    struct lw_outcome *outcome = delivery->outcome;
    bool is_word = false;
    enum lw_verdict verdict = verdict_of_status(answer->status);
    if (answer->has_result) {
        verdict = answer->result;
    } else if (verdict == LW_OK && may_hold_word(body_of(answer)) &&
               !read_word(body_of(answer), &verdict, &is_word)) {
        return false;
    }
    *ret_verdict = verdict;
    if (verdict == LW_OK) {
        /* Of several messages nobody knows whose reply it would be. */
        return delivery->is_batch || add_reply(answer, is_word, outcome);
    }
    say_why(answer, outcome);
    outcome->delay_ms = verdict == LW_RETRY ? delay_of(answer) : -1;
    outcome->has_code = verdict == LW_ERROR &&
                        (answer->has_code || verdict_of_status(answer->status) == LW_ERROR);
    outcome->code = answer->has_code ? answer->code : (int)answer->status;
    return true;
}

bool
lw_http_answer_judge(const struct lw_http_answer *answer, lw_http_read_fn read,
                     struct lw_delivery *delivery, enum lw_verdict *ret_verdict)
{
    struct lw_outcome *outcome = delivery->outcome;
    if (answer->is_starved) {
        return false;
    }
    if (answer->fault[0]) {
        *ret_verdict = refuse(outcome, answer->fault);
        return true;
    }
    if (answer->is_too_large && is_body_wanted(answer)) {
        char most[32];
        char why[160];
        lw_text_from_size((int64_t)answer->bytes_max, most, sizeof most);
        (void)snprintf(why, sizeof why,
                       "the service's answer is larger than %s (max_answer_bytes); the "
                       "connection was closed",
                       most);
        *ret_verdict = refuse(outcome, why);
        return true;
    }
    if (answer->is_json_answer && !answer->has_result) {
        if (read) {
            return read(body_of(answer), delivery, ret_verdict);
        }
        *ret_verdict = refuse(outcome, "answers of that type cannot be read here");
        return true;
    }
    return judge_plain(answer, delivery, ret_verdict);
}
