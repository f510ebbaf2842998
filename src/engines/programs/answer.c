/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a program's lines and headers by jansson. Everything comes from a program that may be
 * wrong in any way, so each field is checked for its type and range, and a wrong one is named.
 * Sizes are bounded by the line, counts by lw_outcome_add. Pure: no I/O, no clock.
 * tests/fuzz/fuzz_lines.c and fuzz_frames.c feed it arbitrary bytes.
 */
#include "engines/programs/answer.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/json.h"

#define ID_MAX (INT64_C(1) << 53)
#define DELAY_MS_MAX (INT64_C(366) * 24 * 3600 * 1000)

/* Languages without integers write 7.0: accepted where it is whole. */
static bool
read_int(const json_t *value, int64_t *ret_int)
{
    if (json_is_integer(value)) {
        *ret_int = json_integer_value(value);
        return true;
    }
    double real = json_is_real(value) ? json_real_value(value) : 0.5;
    bool is_exact = real >= -(double)ID_MAX && real <= (double)ID_MAX;
    if (!is_exact || (double)(int64_t)real < real || (double)(int64_t)real > real) {
        return false;
    }
    *ret_int = (int64_t)real;
    return true;
}

static struct lw_bytes
view_of(const json_t *string)
{
    if (!json_is_string(string)) {
        return (struct lw_bytes){ NULL, 0 };
    }
    return (struct lw_bytes){ json_string_value(string), json_string_length(string) };
}

/* Answers NULL when it is a duration with a unit. */
static const char *
read_duration(const json_t *value, int64_t *ret_ms)
{
    const char *why = "is not a text such as \"5s\"";
    struct lw_bytes text = view_of(value);
    if (!text.data || strlen(text.data) != text.size ||
        !lw_text_to_duration_ms(text.data, ret_ms, &why)) {
        return why;
    }
    return *ret_ms >= 0 && *ret_ms <= DELAY_MS_MAX ? NULL : "is out of range";
}

/* -- Kinds of lines ---------------------------------------------------------------------------- */

static void
set_broken(struct lw_programs_answer *answer, const char *field, const char *why)
{
    answer->kind = LW_PROGRAMS_LINE_BROKEN;
    (void)snprintf(answer->why, sizeof answer->why, "\"%s\" %s", field, why);
}

static void
read_ready(struct lw_programs_answer *answer, const json_t *ready)
{
    const json_t *protocol = json_object_get(ready, "protocol");
    answer->kind = LW_PROGRAMS_LINE_READY;
    answer->protocol = LW_PROGRAMS_PROTOCOL;
    answer->is_concurrent = json_is_true(json_object_get(ready, "concurrent"));
    answer->takes_batches = json_is_true(json_object_get(ready, "batch"));
    if (!json_is_object(ready)) {
        set_broken(answer, "ready", "is not an object such as {\"protocol\":1}");
    } else if (protocol && !read_int(protocol, &answer->protocol)) {
        set_broken(answer, "ready.protocol", "is not a number");
    }
}

static void
read_log(struct lw_programs_answer *answer, const json_t *level)
{
    static const char *const names[] = { "error", "warn", "info", "debug", "trace" };
    answer->kind = LW_PROGRAMS_LINE_LOG;
    answer->level = LW_LOG_INFO;
    answer->text = view_of(json_object_get(answer->root, "msg"));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (lw_text_is_equal(view_of(level), names[i])) {
            answer->level = (enum lw_log_level)i;
        }
    }
}

static void
read_answer(struct lw_programs_answer *answer, const json_t *id)
{
    const json_t *extend = json_object_get(answer->root, "extend");
    answer->kind = LW_PROGRAMS_LINE_ANSWER;
    answer->has_result = json_object_get(answer->root, "result") ||
                         json_object_get(answer->root, "results");
    bool is_ours = answer->has_result || extend;
    if (!read_int(id, &answer->id) || answer->id <= 0) {
        if (is_ours) {
            set_broken(answer, "id", "is not a number that was given");
        } else {
            answer->kind = LW_PROGRAMS_LINE_STRAY;
        }
        return;
    }
    if (extend && !answer->has_result) {
        const char *why = read_duration(extend, &answer->extend_ms);
        answer->kind = LW_PROGRAMS_LINE_EXTEND;
        if (why) {
            set_broken(answer, "extend", why);
        }
    }
}

static json_t *
parse(struct lw_bytes line, struct lw_programs_answer *answer)
{
    const char *text = line.data;
    size_t at = 0;
    json_error_t error;
    while (at < line.size && strchr(" \t\r\n", text[at]) && text[at]) {
        at++;
    }
    if (at == line.size || text[at] != '{') {
        (void)snprintf(answer->why, sizeof answer->why, "not a JSON object");
        return NULL;
    }
    json_t *root = json_loadb(text + at, line.size - at, JSON_ALLOW_NUL, &error);
    if (!root) {
        (void)snprintf(answer->why, sizeof answer->why, "not JSON: %.100s", error.text);
    }
    return root;
}

void
lw_programs_answer_read(struct lw_bytes line, struct lw_programs_answer *ret_answer)
{
    const json_t *field = NULL;
    *ret_answer = (struct lw_programs_answer){ .kind = LW_PROGRAMS_LINE_STRAY, .line = line };
    ret_answer->root = parse(line, ret_answer);
    if (!ret_answer->root) {
        return;
    }
    const json_t *root = ret_answer->root;
    bool is_answer = json_object_get(root, "result") || json_object_get(root, "results") ||
                     json_object_get(root, "extend");
    if (!is_answer && (field = json_object_get(root, "ready")) != NULL) {
        read_ready(ret_answer, field);
    } else if (!is_answer && (field = json_object_get(root, "log")) != NULL) {
        read_log(ret_answer, field);
    } else if ((field = json_object_get(root, "id")) != NULL) {
        read_answer(ret_answer, field);
    }
    if (ret_answer->kind == LW_PROGRAMS_LINE_STRAY) {
        (void)snprintf(ret_answer->why, sizeof ret_answer->why, "not a line of the protocol");
    }
}

void
lw_programs_answer_clear(struct lw_programs_answer *answer)
{
    json_decref(answer->root);
    answer->root = NULL;
}

/* -- The bytes behind a header ----------------------------------------------------------------- */

/* Where an object says how many bytes of each kind it has, in the order in which they lie. */
static const char *const message_lengths[] = { "key_len", "value_len", "reply_len", NULL };
static const char *const output_lengths[] = { "key_len", "value_len", NULL };

/* Adds up the lengths that an object names; the name of a wrong one, or NULL. */
static const char *
add_lengths(const json_t *object, const char *const *names, uint64_t *sum)
{
    for (; *names; names++) {
        const json_t *field = json_object_get(object, *names);
        int64_t size = 0;
        if (!field || json_is_null(field)) {
            continue;
        }
        if (!read_int(field, &size) || size < 0 || size > ID_MAX || *sum > (uint64_t)ID_MAX) {
            return *names;
        }
        *sum += (uint64_t)size;
    }
    return NULL;
}

/* One answer, as a whole or of one member. */
static const char *
measure(const json_t *root, uint64_t *sum)
{
    const json_t *outputs = json_object_get(root, "outputs");
    const char *wrong = add_lengths(root, message_lengths, sum);
    for (size_t i = 0; !wrong && i < json_array_size(outputs); i++) {
        wrong = add_lengths(json_array_get(outputs, i), output_lengths, sum);
    }
    return wrong;
}

bool
lw_programs_answer_measure(struct lw_programs_answer *answer, uint64_t *ret_size)
{
    uint64_t sum = 0;
    const json_t *results = json_object_get(answer->root, "results");
    const char *wrong = measure(answer->root, &sum);
    for (size_t i = 0; !wrong && i < json_array_size(results); i++) {
        wrong = measure(json_array_get(results, i), &sum);
    }
    if (wrong) {
        (void)snprintf(answer->why, sizeof answer->why, "\"%s\" is no number of bytes", wrong);
        return false;
    }
    *ret_size = sum;
    return true;
}

/* -- Applying an answer ------------------------------------------------------------------------ */

/* What is wrong with an answer, for the reason of the message. */
struct fault {
    const char *field;
    const char *why;
};

/* An answer on its way into its message. `tail` is what no field has taken yet. */
struct applying {
    const struct lw_programs_answer *answer;
    struct lw_outcome *outcome;
    struct lw_bytes tail;
    struct fault fault;
};

/* A text, or bytes in base64 or behind the header, or null; `memory` is freed by the caller. */
struct content {
    struct lw_bytes bytes;
    void *memory;
    bool is_given;
};

/* Takes what an object's field such as reply_len says; false when it has none. */
static bool
take_framed(struct applying *applying, const json_t *object, const char *name,
            struct content *ret_content)
{
    char name_len[32];
    int64_t size = 0;
    (void)snprintf(name_len, sizeof name_len, "%s_len", name);
    const json_t *field = json_object_get(object, name_len);
    if (!applying->answer->is_framed || !field || !read_int(field, &size)) {
        return false;
    }
    struct lw_bytes *tail = &applying->tail;
    lw_assert(size >= 0 && (uint64_t)size <= tail->size); /* as it was measured */
    *ret_content = (struct content){ .bytes = { tail->data, (size_t)size }, .is_given = true };
    *tail = (struct lw_bytes){ (const char *)tail->data + size, tail->size - (size_t)size };
    return true;
}

static bool
read_content(struct applying *applying, const json_t *object, const char *name,
             struct content *ret_content)
{
    char name_b64[32];
    struct fault *fault = &applying->fault;
    if (take_framed(applying, object, name, ret_content)) {
        return true;
    }
    (void)snprintf(name_b64, sizeof name_b64, "%s_b64", name);
    const json_t *text = json_object_get(object, name);
    struct lw_bytes coded = view_of(json_object_get(object, name_b64));
    *ret_content = (struct content){ .bytes = view_of(text), .is_given = text != NULL };
    if (text && !json_is_string(text) && !json_is_null(text)) {
        *fault = (struct fault){ name, "is neither a text nor null" };
        return false;
    }
    if (text || !json_object_get(object, name_b64)) {
        return true;
    }
    size_t size = 0;
    if (!coded.data || !lw_base64_decode(coded.data, coded.size, &ret_content->memory, &size)) {
        *fault = (struct fault){ name, "as _b64 is not base64" };
        return false;
    }
    ret_content->bytes = (struct lw_bytes){ ret_content->memory, size };
    ret_content->is_given = true;
    return true;
}

static bool
add(struct applying *applying, bool is_reply, const struct lw_output *output)
{
    enum lw_status status = lw_outcome_add(applying->outcome, is_reply, output);
    if (status == LW_STATUS_OK) {
        return true;
    }
    applying->fault = (struct fault){ is_reply ? "reply" : "outputs",
                                      status == LW_STATUS_TOO_LARGE ? "has too many items"
                                                                    : "found no memory" };
    return false;
}

/* Key and value of an answer as a whole mean nothing, but their bytes come first. */
static bool
apply_reply(struct applying *applying)
{
    struct content reply;
    const json_t *root = applying->answer->root;
    (void)take_framed(applying, root, "key", &reply);
    (void)take_framed(applying, root, "value", &reply);
    if (!read_content(applying, root, "reply", &reply)) {
        return false;
    }
    struct lw_output output = { .value = reply.bytes };
    bool is_right = !reply.is_given || add(applying, true, &output);
    lw_free(reply.memory);
    return is_right;
}

static size_t
count_headers(json_t *headers)
{
    size_t count = 0;
    const char *name = NULL;
    json_t *value = NULL;
    json_object_foreach(headers, name, value)
    {
        count += json_is_array(value) ? json_array_size(value) : 1;
    }
    return count;
}

static bool
set_header(struct lw_header *header, struct lw_bytes name, const json_t *value)
{
    header->name = name;
    header->value = view_of(value);
    return json_is_string(value) || json_is_null(value);
}

/* Texts, nulls, and arrays of them for names that come more than once. */
static bool
fill_headers(json_t *headers, struct lw_header *out)
{
    bool is_right = true;
    for (void *at = json_object_iter(headers); at; at = json_object_iter_next(headers, at)) {
        struct lw_bytes name = { json_object_iter_key(at), json_object_iter_key_len(at) };
        json_t *value = json_object_iter_value(at);
        if (!json_is_array(value)) {
            is_right &= set_header(out++, name, value);
            continue;
        }
        for (size_t i = 0; i < json_array_size(value); i++) {
            is_right &= set_header(out++, name, json_array_get(value, i));
        }
    }
    return is_right;
}

/* Everything of an output but its key and value. */
static bool
read_output(const json_t *item, struct lw_output *ret_output, struct lw_header **ret_headers,
            struct fault *fault)
{
    struct lw_bytes topic = view_of(json_object_get(item, "topic"));
    json_t *headers = json_object_get(item, "headers");
    const json_t *delay = json_object_get(item, "delay");
    const char *why = delay ? read_duration(delay, &ret_output->delay_ms) : NULL;
    if (!topic.data || topic.size == 0 || strlen(topic.data) != topic.size) {
        *fault = (struct fault){ "outputs.topic", "is missing or not a text" };
        return false;
    }
    if (why) {
        *fault = (struct fault){ "outputs.delay", why };
        return false;
    }
    ret_output->topic = topic.data;
    ret_output->header_count = headers ? count_headers(headers) : 0;
    if (ret_output->header_count == 0) {
        return true;
    }
    *ret_headers = lw_alloc_array(ret_output->header_count, sizeof **ret_headers);
    ret_output->headers = *ret_headers;
    if (!*ret_headers || !fill_headers(headers, *ret_headers)) {
        *fault = (struct fault){ "outputs.headers", "are not texts" };
        return false;
    }
    return true;
}

static bool
apply_output(struct applying *applying, const json_t *item)
{
    struct content key = { .memory = NULL };
    struct content value = { .memory = NULL };
    struct lw_header *headers = NULL;
    struct lw_output output = { .topic = NULL };
    bool is_right = read_output(item, &output, &headers, &applying->fault) &&
                    read_content(applying, item, "key", &key) &&
                    read_content(applying, item, "value", &value);
    if (is_right) {
        output.key = key.bytes;
        output.value = value.bytes;
        is_right = add(applying, false, &output);
    }
    lw_free(key.memory);
    lw_free(value.memory);
    lw_free(headers);
    return is_right;
}

static bool
apply_outputs(struct applying *applying)
{
    const json_t *outputs = json_object_get(applying->answer->root, "outputs");
    if (outputs && !json_is_array(outputs)) {
        applying->fault = (struct fault){ "outputs", "is not an array" };
        return false;
    }
    for (size_t i = 0; i < json_array_size(outputs); i++) {
        if (!apply_output(applying, json_array_get(outputs, i))) {
            return false;
        }
    }
    return true;
}

static bool
apply_words(const struct lw_programs_answer *answer, struct lw_outcome *outcome,
            struct fault *fault)
{
    const json_t *reason = json_object_get(answer->root, "reason");
    const json_t *code = json_object_get(answer->root, "code");
    const json_t *delay = json_object_get(answer->root, "delay");
    int64_t number = 0;
    const char *why = delay && !json_is_null(delay) ? read_duration(delay, &outcome->delay_ms)
                                                    : NULL;
    if (reason && !json_is_string(reason) && !json_is_null(reason)) {
        *fault = (struct fault){ "reason", "is not a text" };
    } else if (why) {
        *fault = (struct fault){ "delay", why };
    } else if (code && !json_is_null(code) &&
               (!read_int(code, &number) || number < INT_MIN || number > INT_MAX)) {
        *fault = (struct fault){ "code", "is not a whole number" };
    }
    if (fault->field) {
        return false;
    }
    outcome->has_code = code && !json_is_null(code);
    outcome->code = (int)number;
    struct lw_bytes text = view_of(reason);
    lw_outcome_set_reason(outcome, text.data, text.size);
    return true;
}

static bool
read_verdict(const struct lw_programs_answer *answer, enum lw_verdict *ret_verdict,
             struct fault *fault)
{
    static const char *const words[] = { "ok", "retry", "dead", "drop", "error" };
    bool is_word = json_is_string(answer->root);
    struct lw_bytes result = view_of(is_word ? answer->root
                                             : json_object_get(answer->root, "result"));
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (lw_text_is_equal(result, words[i])) {
            *ret_verdict = (enum lw_verdict)i;
            return true;
        }
    }
    *fault = (struct fault){ "result", "is none of ok, retry, dead, drop, error" };
    return false;
}

static enum lw_verdict
refuse(struct lw_outcome *outcome, const struct fault *fault)
{
    char reason[160];
    int length = snprintf(reason, sizeof reason,
                          "the handler's answer cannot be used: \"%s\" %s", fault->field,
                          fault->why);
    lw_outcome_clear(outcome);
    lw_outcome_set_reason(outcome, reason, (size_t)length);
    return LW_ERROR;
}

/* `said` fields say no more than the verdict. */
static enum lw_verdict
apply_one(const struct lw_programs_answer *answer, struct lw_delivery *delivery, size_t said)
{
    enum lw_verdict verdict = LW_ERROR;
    struct fault fault = { NULL, NULL };
    bool is_right = read_verdict(answer, &verdict, &fault);
    if (is_right && json_object_size(answer->root) <= said) {
        return verdict;
    }
    struct applying applying = { .answer = answer, .tail = answer->tail };
    applying.outcome = lw_delivery_outcome(delivery);
    if (!applying.outcome) {
        return LW_ERROR;
    }
    applying.fault = fault;
    is_right = is_right && apply_words(answer, applying.outcome, &applying.fault) &&
               apply_reply(&applying) && apply_outputs(&applying);
    return is_right ? verdict : refuse(applying.outcome, &applying.fault);
}

/* A result is an object as an answer is, or just the word. Its bytes are the next of the tail. */
static enum lw_verdict
apply_result(const struct lw_programs_answer *answer, json_t *result, struct lw_bytes *tail,
             struct lw_delivery *member)
{
    struct lw_programs_answer part = *answer;
    uint64_t size = 0;
    (void)measure(result, &size); /* as it was measured before */
    if (answer->is_framed) {
        lw_assert(size <= tail->size);
        part.tail = (struct lw_bytes){ tail->data, (size_t)size };
        *tail = (struct lw_bytes){ (const char *)tail->data + size, tail->size - (size_t)size };
    }
    part.root = result;
    return apply_one(&part, member, 1);
}

static enum lw_verdict
apply_results(const struct lw_programs_answer *answer, const json_t *results,
              struct lw_delivery *first)
{
    uint64_t own = 0;
    size_t count = json_array_size(results);
    struct lw_bytes tail = answer->tail;
    (void)measure(answer->root, &own); /* bytes of the whole come before those of members */
    if (answer->is_framed) {
        tail = (struct lw_bytes){ (const char *)tail.data + own, tail.size - (size_t)own };
    }
    first->is_each = true;
    first->task_answers = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
    size_t i = 0;
    for (struct lw_delivery *member = first; member; member = member->task_next, i++) {
        enum lw_verdict verdict = LW_PENDING;
        if (i < count) {
            verdict = apply_result(answer, json_array_get(results, i), &tail, member);
        }
        member->verdict = (uint8_t)verdict;
    }
    return (enum lw_verdict)first->verdict;
}

enum lw_verdict
lw_programs_answer_apply(const struct lw_programs_answer *answer, struct lw_delivery *delivery)
{
    const json_t *results = json_object_get(answer->root, "results");
    return delivery->is_batch && json_is_array(results)
               ? apply_results(answer, results, delivery)
               : apply_one(answer, delivery, 2); /* id and result */
}

bool
lw_programs_answer_take(struct lw_bytes json, struct lw_delivery *delivery,
                        enum lw_verdict *ret_verdict)
{
    json_error_t error = { .text = "" };
    struct lw_outcome *outcome = lw_delivery_outcome(delivery);
    struct lw_programs_answer answer = { .kind = LW_PROGRAMS_LINE_ANSWER };
    answer.root = json.size > 0 ? json_loadb(json.data, json.size, JSON_ALLOW_NUL, &error)
                                : NULL;
    bool is_starved = !answer.root && json.size > 0 &&
                      json_error_code(&error) == json_error_out_of_memory;
    if (!outcome || is_starved) {
        return false;
    }
    if (!json_is_object(answer.root) ||
        json_object_set_new(answer.root, "id", json_integer(1)) != 0) {
        *ret_verdict = refuse(outcome, &(struct fault){ "answer", "is not a JSON object" });
    } else {
        *ret_verdict = lw_programs_answer_apply(&answer, delivery);
    }
    lw_programs_answer_clear(&answer);
    return true;
}
