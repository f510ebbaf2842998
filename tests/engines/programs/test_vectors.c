/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_vectors.c: the vectors of streams.json, what programs write and what it is taken for, fed all
 * at once and byte by byte; and those of once.json, exit codes and environments. test_exchange.c has
 * the vectors of single messages.
 */
#include "tests/support/test.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "engines/programs/exit_codes.h"
#include "engines/programs/once_environment.h"
#include "engines/programs/protocol.h"
#include "tests/engines/world.h"

enum { HEADERS_MAX = 16 };

static const char *const verdicts[] = { "ok", "retry", "dead", "drop", "error" };

static json_t *
load(const char *name)
{
    char path[256];
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
    return json_string_value(json_object_get(object, name));
}

/* Bytes of a text of hexadecimal digits; null for none. The caller frees them. */
static struct lw_bytes
bytes_in(const json_t *object, const char *name)
{
    const char *hex = text_in(object, name);
    if (!hex) {
        return (struct lw_bytes){ NULL, 0 };
    }
    size_t size = strlen(hex) / 2;
    char *bytes = malloc(size + 1);
    for (size_t i = 0; i < size; i++) {
        char digits[3] = { hex[2 * i], hex[2 * i + 1], '\0' };
        bytes[i] = (char)(unsigned char)strtoul(digits, NULL, 16);
    }
    return (struct lw_bytes){ bytes, size };
}

static void
expect_bytes(struct lw_bytes bytes, const json_t *object, const char *name)
{
    struct lw_bytes expected = bytes_in(object, name);
    assert_true(lw_bytes_is_equal(bytes, expected));
    free((void *)(uintptr_t)expected.data);
}

/* -- What programs write ------------------------------------------------------------------------ */

static void
expect_outputs(const struct lw_outcome *outcome, uint32_t first, const json_t *outputs)
{
    for (size_t i = 0; i < json_array_size(outputs); i++) {
        struct lw_output view;
        struct lw_header headers[HEADERS_MAX];
        const json_t *output = json_array_get(outputs, i);
        lw_outcome_view(outcome, first + (uint32_t)i, &view, headers);
        assert_string_equal(view.topic, text_in(output, "topic"));
        expect_bytes(view.key, output, "key_hex");
        expect_bytes(view.value, output, "value_hex");
        assert_int_equal(view.delay_ms,
                         json_integer_value(json_object_get(output, "delay_ms")));
    }
}

static void
expect_outcome(const struct lw_delivery *delivery, const json_t *said)
{
    const struct lw_outcome *outcome = delivery->outcome;
    const json_t *delay = json_object_get(said, "delay_ms");
    const json_t *code = json_object_get(said, "code");
    const json_t *outputs = json_object_get(said, "outputs");
    const char *reason = text_in(said, "reason");
    bool has_reply = json_object_get(said, "reply_hex") != NULL;
    assert_string_equal(lw_delivery_reason(delivery), reason ? reason : "");
    assert_int_equal(outcome ? outcome->output_count : 0,
                     json_array_size(outputs) + (has_reply ? 1 : 0));
    assert_int_equal(outcome ? outcome->delay_ms : -1, delay ? json_integer_value(delay) : -1);
    assert_int_equal(outcome && outcome->has_code ? outcome->code : -1,
                     code ? json_integer_value(code) : -1);
    if (has_reply) {
        struct lw_output view;
        lw_outcome_view(outcome, 0, &view, NULL);
        expect_bytes(view.value, said, "reply_hex");
    }
    expect_outputs(outcome, has_reply ? 1 : 0, outputs);
}

static void
expect_answer(const struct lw_programs_answer *answer, const json_t *said)
{
    struct lw_delivery delivery = { .attempt = 1 };
    assert_int_equal(answer->kind, LW_PROGRAMS_LINE_ANSWER);
    assert_int_equal(answer->id, json_integer_value(json_object_get(said, "id")));
    enum lw_verdict verdict = lw_programs_answer_apply(answer, &delivery);
    assert_string_equal(verdicts[verdict], text_in(said, "verdict"));
    expect_outcome(&delivery, said);
    lw_outcome_destroy(delivery.outcome);
}

static void
expect_said(const struct lw_programs_answer *answer, const json_t *said)
{
    static const char *const levels[] = { "error", "warn", "info", "debug", "trace" };
    const char *kind = text_in(said, "kind");
    if (strcmp(kind, "answer") == 0) {
        expect_answer(answer, said);
    } else if (strcmp(kind, "ready") == 0) {
        assert_int_equal(answer->kind, LW_PROGRAMS_LINE_READY);
        assert_int_equal(answer->protocol,
                         json_integer_value(json_object_get(said, "protocol")));
        assert_int_equal(answer->is_concurrent,
                         json_is_true(json_object_get(said, "concurrent")));
    } else if (strcmp(kind, "extend") == 0) {
        assert_int_equal(answer->kind, LW_PROGRAMS_LINE_EXTEND);
        assert_int_equal(answer->extend_ms,
                         json_integer_value(json_object_get(said, "extend_ms")));
    } else if (strcmp(kind, "log") == 0) {
        assert_int_equal(answer->kind, LW_PROGRAMS_LINE_LOG);
        assert_string_equal(levels[answer->level], text_in(said, "level"));
        assert_true(lw_text_is_equal(answer->text, text_in(said, "msg")));
    } else if (strcmp(kind, "stray") == 0) {
        assert_int_equal(answer->kind, LW_PROGRAMS_LINE_STRAY);
        assert_true(lw_text_is_equal(answer->line, text_in(said, "line")));
    } else {
        assert_string_equal(kind, "broken");
        assert_int_equal(answer->kind, LW_PROGRAMS_LINE_BROKEN);
        assert_true(answer->why[0] != '\0');
    }
}

/* Takes all that is whole; true when the stream is broken. */
static bool
take_all(const struct lw_programs_protocol *protocol, struct lw_programs_reader *reader,
         const json_t *says, size_t *said)
{
    struct lw_programs_answer answer;
    enum lw_programs_next next = LW_PROGRAMS_NEXT_NONE;
    while ((next = protocol->next(reader, &answer)) == LW_PROGRAMS_NEXT_UNIT) {
        assert_in_range(*said, 0, json_array_size(says) - 1);
        expect_said(&answer, json_array_get(says, (*said)++));
        lw_programs_answer_clear(&answer);
    }
    return next == LW_PROGRAMS_NEXT_BROKEN;
}

static const char *
end_of(const struct lw_programs_protocol *protocol, struct lw_programs_reader *reader,
       const json_t *says, size_t *said)
{
    struct lw_programs_answer answer;
    switch (protocol->rest(reader, &answer)) {
    case LW_PROGRAMS_NEXT_UNIT:
        expect_said(&answer, json_array_get(says, (*said)++));
        lw_programs_answer_clear(&answer);
        return "nothing";
    case LW_PROGRAMS_NEXT_BROKEN:
        return "cut";
    case LW_PROGRAMS_NEXT_NONE:
        return "nothing";
    }
    return "";
}

static void
feed(const json_t *vector, struct lw_bytes bytes, size_t step)
{
    int ends[2];
    size_t said = 0;
    bool is_broken = false;
    struct lw_programs_reader reader;
    const json_t *says = json_object_get(vector, "says");
    bool is_lines = strcmp(text_in(vector, "protocol"), "lines") == 0;
    const struct lw_programs_protocol *protocol = is_lines ? &lw_programs_lines
                                                           : &lw_programs_frames;
    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    lw_programs_reader_init(&reader, LW_PROGRAMS_UNIT_MAX, false);
    for (size_t at = 0; at < bytes.size && !is_broken; at += step) {
        size_t size = bytes.size - at < step ? bytes.size - at : step;
        assert_int_equal(write(ends[1], (const char *)bytes.data + at, size), size);
        assert_int_equal(lw_programs_reader_fill(&reader, ends[0]), LW_PROGRAMS_READ_SOME);
        is_broken = take_all(protocol, &reader, says, &said);
    }
    const char *end = is_broken ? "broken" : end_of(protocol, &reader, says, &said);
    assert_string_equal(end, text_in(vector, "end"));
    assert_int_equal(said, json_array_size(says));
    lw_programs_reader_deinit(&reader);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static void
what_programs_write_is_taken_for_what_it_is(void **state)
{
    json_t *root = load("streams.json");
    const json_t *vectors = json_object_get(root, "streams");
    (void)state;
    assert_true(json_array_size(vectors) > 40);
    for (size_t i = 0; i < json_array_size(vectors); i++) {
        const json_t *vector = json_array_get(vectors, i);
        struct lw_bytes bytes = bytes_in(vector, "hex");
        const char *text = text_in(vector, "text");
        print_message("%s: %s\n", text_in(vector, "protocol"), text_in(vector, "name"));
        struct lw_bytes fed = text ? lw_bytes_of(text) : bytes;
        feed(vector, fed, fed.size);
        feed(vector, fed, 1);
        feed(vector, fed, 5);
        free((void *)(uintptr_t)bytes.data);
    }
    json_decref(root);
}

/* -- Once ----------------------------------------------------------------------------------------- */

static size_t
read_headers(const json_t *message, struct lw_header headers[HEADERS_MAX])
{
    const json_t *list = json_object_get(message, "headers");
    size_t count = json_array_size(list);
    for (size_t i = 0; i < count; i++) {
        const json_t *pair = json_array_get(list, i);
        json_t *wrapped = json_pack("{s:O?}", "hex", json_array_get(pair, 1));
        headers[i].name = lw_bytes_of(json_string_value(json_array_get(pair, 0)));
        headers[i].value = bytes_in(wrapped, "hex");
        json_decref(wrapped);
    }
    return count;
}

/* A world with the message of a vector as its only delivery, running. */
static struct world *
world_of(const json_t *message, struct lw_header headers[HEADERS_MAX])
{
    struct world *world = world_create();
    const json_t *timestamp = json_object_get(message, "timestamp_ms");
    struct lw_bytes value = bytes_in(message, "value_hex");
    struct lw_delivery *delivery = world_delivery_of(world, value);
    free((void *)(uintptr_t)value.data);
    delivery->message.key = bytes_in(message, "key_hex");
    world->headers = headers;
    world->header_count = read_headers(message, headers);
    world->times.timestamp_ms = timestamp ? json_integer_value(timestamp) : -1;
    lw_delivery_begin_run(delivery, 1);
    return world;
}

static void
close_world(struct world *world)
{
    free((void *)(uintptr_t)world->deliveries[0].message.key.data);
    for (size_t i = 0; i < world->header_count; i++) {
        free((void *)(uintptr_t)world->headers[i].value.data);
    }
    world_destroy(world);
}

static void
exit_codes_mean_what_the_table_says(void **state)
{
    json_t *root = load("once.json");
    const json_t *vectors = json_object_get(root, "exit_codes");
    (void)state;
    assert_true(json_array_size(vectors) > 10);
    for (size_t i = 0; i < json_array_size(vectors); i++) {
        const json_t *vector = json_array_get(vectors, i);
        int code = (int)json_integer_value(json_object_get(vector, "code"));
        struct lw_exit_class meaning = lw_programs_exit_meaning(NULL, 0, code);
        assert_string_equal(verdicts[meaning.verdict], text_in(vector, "verdict"));
        assert_int_equal(meaning.is_broken, json_is_true(json_object_get(vector, "broken")));
    }
    json_decref(root);
}

/* The value of a variable; NULL when it is not set. */
static const char *
variable(const struct lw_programs_environment *environment, const char *name)
{
    const char *found = NULL;
    size_t length = strlen(name);
    for (const char **entry = environment->entries; *entry; entry++) {
        if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=') {
            assert_null(found);
            found = *entry + length + 1;
        }
    }
    return found;
}

static void
expect_environment(const json_t *vector)
{
    struct lw_header headers[HEADERS_MAX];
    struct lw_programs_environment environment;
    json_t *variables = json_object_get(vector, "variables");
    const json_t *deadline = json_object_get(vector, "deadline_ms");
    struct world *world = world_of(json_object_get(vector, "message"), headers);
    assert_true(lw_programs_environment_init(
        &environment, NULL, &world->deliveries[0],
        json_is_integer(deadline) ? json_integer_value(deadline) : -1));
    for (void *at = json_object_iter(variables); at;
         at = json_object_iter_next(variables, at)) {
        const char *name = json_object_iter_key(at);
        const char *expected = json_string_value(json_object_iter_value(at));
        const char *value = variable(&environment, name);
        if (!expected != !value || (expected && strcmp(expected, value) != 0)) {
            fail_msg("%s is %s", name, value ? value : "not set");
        }
    }
    lw_programs_environment_deinit(&environment);
    close_world(world);
}

static void
a_message_is_its_environment(void **state)
{
    json_t *root = load("once.json");
    const json_t *vectors = json_object_get(root, "environments");
    (void)state;
    assert_true(json_array_size(vectors) >= 5);
    for (size_t i = 0; i < json_array_size(vectors); i++) {
        print_message("%s\n", text_in(json_array_get(vectors, i), "name"));
        expect_environment(json_array_get(vectors, i));
    }
    json_decref(root);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_programs_write_is_taken_for_what_it_is),
        cmocka_unit_test(exit_codes_mean_what_the_table_says),
        cmocka_unit_test(a_message_is_its_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
