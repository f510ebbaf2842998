/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_exchange.c: the vectors of requests.json and answers.json, which the clients' tests read,
 * too: what is written for a message, byte for byte, and what an answer is taken for, field by
 * field. Each is named in a failure, and how many there are is checked: none is passed over.
 */
#include "tests/support/test.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "engines/programs/answer.h"
#include "engines/programs/request.h"
#include "tests/engines/world.h"

enum { HEADERS_MAX = 16, KEPT_MAX = 64 };

/* What was decoded, until the end of a vector. */
struct kept {
    void *memory[KEPT_MAX];
    size_t count;
};

static json_t *
load(const char *name)
{
    char path[512];
    json_error_t error;
    (void)snprintf(path, sizeof path, "%s/tests/data/protocol/%s", LW_SOURCE_DIR, name);
    json_t *root = json_load_file(path, JSON_ALLOW_NUL, &error);
    if (!root) {
        fail_msg("%s:%d: %s", path, error.line, error.text);
    }
    return root;
}

static const char *
text_in(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

static int64_t
int_in(const json_t *object, const char *name, int64_t otherwise)
{
    const json_t *value = json_object_get(object, name);
    return value && !json_is_null(value) ? json_integer_value(value) : otherwise;
}

/* A text, null, or {"b64": ...}. */
static struct lw_bytes
content(const json_t *value, struct kept *kept)
{
    const json_t *coded = json_object_get(value, "b64");
    size_t size = 0;
    if (json_is_string(value)) {
        return (struct lw_bytes){ json_string_value(value), json_string_length(value) };
    }
    if (!coded) {
        return (struct lw_bytes){ NULL, 0 };
    }
    assert_true(kept->count < KEPT_MAX);
    void **memory = &kept->memory[kept->count++];
    assert_true(
        lw_base64_decode(json_string_value(coded), json_string_length(coded), memory, &size));
    return (struct lw_bytes){ *memory, size };
}

static void
forget(struct kept *kept)
{
    while (kept->count > 0) {
        lw_free(kept->memory[--kept->count]);
    }
}

static void
expect_bytes(const char *vector, const char *what, struct lw_bytes got, struct lw_bytes wanted)
{
    bool is_same = (got.data == NULL) == (wanted.data == NULL) && got.size == wanted.size &&
                   (got.size == 0 || memcmp(got.data, wanted.data, got.size) == 0);
    if (!is_same) {
        fail_msg("%s: %s is\n%.*s\nnot\n%.*s", vector, what, (int)got.size,
                 got.data ? (const char *)got.data : "", (int)wanted.size,
                 wanted.data ? (const char *)wanted.data : "");
    }
}

/* -- Requests ---------------------------------------------------------------------------------- */

static size_t
fill_headers(const json_t *list, struct lw_header *out, struct kept *kept)
{
    size_t count = json_array_size(list);
    assert_true(count <= HEADERS_MAX);
    for (size_t i = 0; i < count; i++) {
        const json_t *pair = json_array_get(list, i);
        out[i].name = content(json_array_get(pair, 0), kept);
        out[i].value = content(json_array_get(pair, 1), kept);
    }
    return count;
}

/* The delivery's value is freed by the world, so the vector's stands in for a while only. */
static struct lw_delivery *
delivery_of(struct world *world, const json_t *message, struct kept *kept)
{
    struct lw_delivery *delivery = world_delivery(world, NULL);
    delivery->message.position = int_in(message, "offset", 0);
    delivery->message.key = content(json_object_get(message, "key"), kept);
    delivery->message.ordering_key = content(json_object_get(message, "ordering_key"), kept);
    delivery->message.value = content(json_object_get(message, "value"), kept);
    delivery->attempt = (uint32_t)int_in(message, "attempt", 1);
    world->times.timestamp_ms = int_in(message, "timestamp_ms", -1);
    world->times.event_time_ms = int_in(message, "event_time_ms", -1);
    return delivery;
}

static void
check_request(struct world *world, const json_t *vector)
{
    struct kept kept = { .count = 0 };
    struct lw_header headers[HEADERS_MAX];
    struct lw_text text;
    const json_t *message = json_object_get(vector, "message");
    struct lw_delivery *delivery = delivery_of(world, message, &kept);
    world->headers = headers;
    world->header_count = fill_headers(json_object_get(message, "headers"), headers, &kept);
    lw_text_init(&text);
    assert_true(lw_programs_request_write(&text, int_in(vector, "id", 0), delivery,
                                          int_in(message, "deadline_ms", -1)));
    assert_int_equal(text.data[text.size - 1], '\n');
    expect_bytes(text_in(vector, "name"), "line", (struct lw_bytes){ text.data, text.size - 1 },
                 content(json_object_get(vector, "line"), &kept));
    delivery->message.value = (struct lw_bytes){ NULL, 0 };
    lw_text_deinit(&text);
    forget(&kept);
}

static void
requests_are_written_as_the_vectors_say(void **state)
{
    struct world *world = world_create();
    json_t *root = load("requests.json");
    const json_t *list = json_object_get(root, "requests");
    (void)state;
    assert_in_range(json_array_size(list), 8, 1000);
    for (size_t i = 0; i < json_array_size(list); i++) {
        check_request(world, json_array_get(list, i));
    }
    json_decref(root);
    world_destroy(world);
}

static void
the_hello_is_written_as_its_vector_says(void **state)
{
    json_t *root = load("requests.json");
    const json_t *vector = json_object_get(root, "hello");
    const json_t *hello = json_object_get(vector, "hello");
    struct kept kept = { .count = 0 };
    struct lw_text text;
    (void)state;
    lw_text_init(&text);
    lw_programs_request_hello(&text, text_in(hello, "service"), text_in(hello, "handler"),
                              (uint32_t)int_in(hello, "window", 0));
    expect_bytes("hello", "line", (struct lw_bytes){ text.data, text.size - 1 },
                 content(json_object_get(vector, "line"), &kept));
    lw_text_deinit(&text);
    json_decref(root);
}

/* -- Answers ----------------------------------------------------------------------------------- */

static enum lw_programs_line
kind_named(const char *name)
{
    static const char *const names[] = {
        "stray", "ready", "answer", "extend", "log", "broken"
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i], name) == 0) {
            return (enum lw_programs_line)i;
        }
    }
    fail_msg("no kind is called %s", name);
    return LW_PROGRAMS_LINE_STRAY;
}

static const char *
verdict_name(enum lw_verdict verdict)
{
    static const char *const names[] = { "ok", "retry", "dead", "drop", "error" };
    return names[verdict];
}

static void
check_output(const char *name, const struct lw_outcome *outcome, uint32_t index,
             const json_t *wanted)
{
    struct kept kept = { .count = 0 };
    struct lw_output output;
    struct lw_header got[HEADERS_MAX];
    struct lw_header headers[HEADERS_MAX];
    lw_outcome_view(outcome, index, &output, got);
    assert_string_equal(output.topic, text_in(wanted, "topic"));
    expect_bytes(name, "key", output.key, content(json_object_get(wanted, "key"), &kept));
    expect_bytes(name, "value", output.value, content(json_object_get(wanted, "value"), &kept));
    assert_int_equal(output.delay_ms, int_in(wanted, "delay_ms", 0));
    size_t count = fill_headers(json_object_get(wanted, "headers"), headers, &kept);
    assert_int_equal(output.header_count, count);
    for (size_t i = 0; i < count; i++) {
        expect_bytes(name, "header", got[i].name, headers[i].name);
        expect_bytes(name, "header's value", got[i].value, headers[i].value);
    }
    forget(&kept);
}

/* The reply is the first output, if there is one. */
static void
check_published(const char *name, const struct lw_outcome *outcome, const json_t *wanted)
{
    struct kept kept = { .count = 0 };
    struct lw_output output;
    const json_t *reply = json_object_get(wanted, "reply");
    const json_t *outputs = json_object_get(wanted, "outputs");
    uint32_t first = reply ? 1 : 0;
    uint32_t count = outcome ? outcome->output_count : 0;
    assert_int_equal(count, first + json_array_size(outputs));
    if (reply) {
        lw_outcome_view(outcome, 0, &output, NULL);
        expect_bytes(name, "reply", output.value, content(reply, &kept));
    }
    for (uint32_t i = 0; i < json_array_size(outputs); i++) {
        check_output(name, outcome, first + i, json_array_get(outputs, i));
    }
    forget(&kept);
}

static void
check_applied(const char *name, const struct lw_programs_answer *answer, const json_t *wanted)
{
    struct lw_delivery delivery = { .attempt = 1 };
    enum lw_verdict verdict = lw_programs_answer_apply(answer, &delivery);
    const struct lw_outcome *outcome = delivery.outcome;
    const json_t *code = json_object_get(wanted, "code");
    if (strcmp(verdict_name(verdict), text_in(wanted, "verdict")) != 0) {
        fail_msg("%s: the verdict is %s", name, verdict_name(verdict));
    }
    assert_string_equal(outcome ? outcome->reason : "", text_in(wanted, "reason"));
    assert_int_equal(outcome ? outcome->delay_ms : -1, int_in(wanted, "delay_ms", -1));
    assert_int_equal(outcome && outcome->has_code, code != NULL);
    assert_int_equal(code ? outcome->code : 0, int_in(wanted, "code", 0));
    check_published(name, outcome, wanted);
    lw_outcome_destroy(delivery.outcome);
}

static void
check_meaning(const char *name, const struct lw_programs_answer *answer, const json_t *wanted)
{
    static const char *const levels[] = { "error", "warn", "info", "debug", "trace" };
    switch (answer->kind) {
    case LW_PROGRAMS_LINE_STRAY:
    case LW_PROGRAMS_LINE_BROKEN:
        return;
    case LW_PROGRAMS_LINE_READY:
        assert_int_equal(answer->protocol, int_in(wanted, "protocol", -1));
        assert_int_equal(answer->is_concurrent,
                         json_is_true(json_object_get(wanted, "concurrent")));
        return;
    case LW_PROGRAMS_LINE_ANSWER:
        assert_int_equal(answer->id, int_in(wanted, "id", -1));
        check_applied(name, answer, wanted);
        return;
    case LW_PROGRAMS_LINE_EXTEND:
        assert_int_equal(answer->id, int_in(wanted, "id", -1));
        assert_int_equal(answer->extend_ms, int_in(wanted, "extend_ms", -1));
        return;
    case LW_PROGRAMS_LINE_LOG:
        assert_string_equal(levels[answer->level], text_in(wanted, "level"));
        assert_true(lw_text_is_equal(answer->text, text_in(wanted, "text")));
        return;
    }
}

static void
check_answer(const json_t *vector)
{
    struct lw_programs_answer answer;
    struct kept kept = { .count = 0 };
    const char *name = text_in(vector, "name");
    const json_t *wanted = json_object_get(vector, "is");
    lw_programs_answer_read(content(json_object_get(vector, "line"), &kept), &answer);
    if (answer.kind != kind_named(text_in(wanted, "kind"))) {
        fail_msg("%s: the line is taken for kind %d", name, answer.kind);
    }
    check_meaning(name, &answer, wanted);
    lw_programs_answer_clear(&answer);
}

static void
answers_mean_what_the_vectors_say(void **state)
{
    json_t *root = load("answers.json");
    const json_t *list = json_object_get(root, "answers");
    (void)state;
    assert_in_range(json_array_size(list), 25, 1000);
    for (size_t i = 0; i < json_array_size(list); i++) {
        check_answer(json_array_get(list, i));
    }
    json_decref(root);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_written_as_the_vectors_say),
        cmocka_unit_test(the_hello_is_written_as_its_vector_says),
        cmocka_unit_test(answers_mean_what_the_vectors_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
