/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the vectors of tests/data/protocol: contents, headers, and what became of an answer. A
 * failure names the vector, since a test goes through many.
 */
#include "tests/support/test.h"

#include "tests/engines/vectors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"

json_t *
vectors_load(const char *name)
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

const char *
vectors_text(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

int64_t
vectors_int(const json_t *object, const char *name, int64_t otherwise)
{
    const json_t *value = json_object_get(object, name);
    return value && !json_is_null(value) ? json_integer_value(value) : otherwise;
}

/* A text, null, or {"b64": ...}. */
struct lw_bytes
vectors_content(const json_t *value, struct vectors_kept *kept)
{
    const json_t *coded = json_object_get(value, "b64");
    size_t size = 0;
    if (json_is_string(value)) {
        return (struct lw_bytes){ json_string_value(value), json_string_length(value) };
    }
    if (!coded) {
        return (struct lw_bytes){ NULL, 0 };
    }
    assert_true(kept->count < VECTORS_KEPT_MAX);
    void **memory = &kept->memory[kept->count++];
    assert_true(
        lw_base64_decode(json_string_value(coded), json_string_length(coded), memory, &size));
    return (struct lw_bytes){ *memory, size };
}

void
vectors_forget(struct vectors_kept *kept)
{
    while (kept->count > 0) {
        lw_free(kept->memory[--kept->count]);
    }
}

void
vectors_expect_bytes(const char *vector, const char *what, struct lw_bytes got,
                     struct lw_bytes wanted)
{
    bool is_same = (got.data == NULL) == (wanted.data == NULL) && got.size == wanted.size &&
                   (got.size == 0 || memcmp(got.data, wanted.data, got.size) == 0);
    if (!is_same) {
        fail_msg("%s: %s is\n%.*s\nnot\n%.*s", vector, what, (int)got.size,
                 got.data ? (const char *)got.data : "", (int)wanted.size,
                 wanted.data ? (const char *)wanted.data : "");
    }
}

size_t
vectors_headers(const json_t *list, struct lw_header *out, struct vectors_kept *kept)
{
    size_t count = json_array_size(list);
    assert_true(count <= VECTORS_HEADERS_MAX);
    for (size_t i = 0; i < count; i++) {
        const json_t *pair = json_array_get(list, i);
        out[i].name = vectors_content(json_array_get(pair, 0), kept);
        out[i].value = vectors_content(json_array_get(pair, 1), kept);
    }
    return count;
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
    struct vectors_kept kept = { .count = 0 };
    struct lw_output output;
    struct lw_header got[VECTORS_HEADERS_MAX];
    struct lw_header headers[VECTORS_HEADERS_MAX];
    lw_outcome_view(outcome, index, &output, got);
    assert_string_equal(output.topic, vectors_text(wanted, "topic"));
    vectors_expect_bytes(name, "key", output.key,
                         vectors_content(json_object_get(wanted, "key"), &kept));
    vectors_expect_bytes(name, "value", output.value,
                         vectors_content(json_object_get(wanted, "value"), &kept));
    assert_int_equal(output.delay_ms, vectors_int(wanted, "delay_ms", 0));
    size_t count = vectors_headers(json_object_get(wanted, "headers"), headers, &kept);
    assert_int_equal(output.header_count, count);
    for (size_t i = 0; i < count; i++) {
        vectors_expect_bytes(name, "header", got[i].name, headers[i].name);
        vectors_expect_bytes(name, "header's value", got[i].value, headers[i].value);
    }
    vectors_forget(&kept);
}

/* The reply is the first output, if there is one. */
static void
check_published(const char *name, const struct lw_outcome *outcome, const json_t *wanted)
{
    struct vectors_kept kept = { .count = 0 };
    struct lw_output output;
    const json_t *reply = json_object_get(wanted, "reply");
    const json_t *outputs = json_object_get(wanted, "outputs");
    uint32_t first = reply ? 1 : 0;
    uint32_t count = outcome ? outcome->output_count : 0;
    assert_int_equal(count, first + json_array_size(outputs));
    if (reply) {
        lw_outcome_view(outcome, 0, &output, NULL);
        vectors_expect_bytes(name, "reply", output.value, vectors_content(reply, &kept));
    }
    for (uint32_t i = 0; i < json_array_size(outputs); i++) {
        check_output(name, outcome, first + i, json_array_get(outputs, i));
    }
    vectors_forget(&kept);
}

void
vectors_check_outcome(const char *name, enum lw_verdict verdict,
                      const struct lw_outcome *outcome, const json_t *wanted)
{
    const json_t *code = json_object_get(wanted, "code");
    const char *reason = outcome ? outcome->reason : "";
    if (strcmp(verdict_name(verdict), vectors_text(wanted, "verdict")) != 0) {
        fail_msg("%s: the verdict is %s: %s", name, verdict_name(verdict), reason);
    }
    if (strcmp(reason, vectors_text(wanted, "reason")) != 0) {
        fail_msg("%s: the reason is \"%s\"", name, reason);
    }
    assert_int_equal(outcome ? outcome->delay_ms : -1, vectors_int(wanted, "delay_ms", -1));
    assert_int_equal(outcome && outcome->has_code, code != NULL);
    assert_int_equal(outcome && code ? outcome->code : 0, vectors_int(wanted, "code", 0));
    check_published(name, outcome, wanted);
}
