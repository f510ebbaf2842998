/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_exchange.c: the vectors of requests.json and answers.json, which the clients' tests read,
 * too: what is written for a message, byte for byte, and what an answer is taken for, field by
 * field. Each is named in a failure, and how many there are is checked: none is passed over.
 */
#include "tests/support/test.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "engines/programs/protocol.h"
#include "engines/programs/request.h"
#include "tests/engines/vectors.h"
#include "tests/engines/world.h"

/* -- Requests ---------------------------------------------------------------------------------- */

/* The delivery's value is freed by the world, so the vector's stands in for a while only. */
static struct lw_delivery *
delivery_of(struct world *world, const json_t *message, struct vectors_kept *kept)
{
    struct lw_delivery *delivery = world_delivery(world, NULL);
    delivery->message.position = vectors_int(message, "offset", 0);
    delivery->message.key = vectors_content(json_object_get(message, "key"), kept);
    delivery->message.ordering_key = vectors_content(json_object_get(message, "ordering_key"),
                                                     kept);
    delivery->message.value = vectors_content(json_object_get(message, "value"), kept);
    delivery->attempt = (uint32_t)vectors_int(message, "attempt", 1);
    world->times.timestamp_ms = vectors_int(message, "timestamp_ms", -1);
    world->times.event_time_ms = vectors_int(message, "event_time_ms", -1);
    return delivery;
}

/* What stands in the pipe: the length, the header, the bytes behind it. */
static void
check_frame(const char *name, const json_t *frame, const char *written, size_t size)
{
    struct vectors_kept kept = { .count = 0 };
    struct lw_bytes header = vectors_content(json_object_get(frame, "header"), &kept);
    assert_true(size >= 4 + header.size);
    assert_int_equal((unsigned char)written[2] << 8 | (unsigned char)written[3], header.size);
    assert_int_equal(written[0] | written[1], 0);
    vectors_expect_bytes(name, "header", (struct lw_bytes){ written + 4, header.size }, header);
    vectors_expect_bytes(name, "tail",
                         (struct lw_bytes){ written + 4 + header.size, size - 4 - header.size },
                         vectors_content(json_object_get(frame, "tail"), &kept));
    vectors_forget(&kept);
}

static void
check_framed_request(const struct lw_delivery *delivery, const json_t *vector)
{
    char written[8192];
    int ends[2];
    struct lw_programs_sender sender;
    int64_t deadline_ms = vectors_int(json_object_get(vector, "message"), "deadline_ms", -1);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    lw_programs_sender_init(&sender);
    assert_true(lw_programs_frames.write_request(&sender, vectors_int(vector, "id", 0),
                                                 delivery, deadline_ms));
    assert_int_equal(lw_programs_sender_flush(&sender, ends[1]), LW_PROGRAMS_SENT_ALL);
    ssize_t size = read(ends[0], written, sizeof written);
    assert_true(size > 4);
    check_frame(vectors_text(vector, "name"), json_object_get(vector, "frame"), written,
                (size_t)size);
    lw_programs_sender_deinit(&sender);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static void
check_request(struct world *world, const json_t *vector)
{
    struct vectors_kept kept = { .count = 0 };
    struct lw_header headers[VECTORS_HEADERS_MAX];
    struct lw_text text;
    const json_t *message = json_object_get(vector, "message");
    struct lw_delivery *delivery = delivery_of(world, message, &kept);
    world->headers = headers;
    world->header_count = vectors_headers(json_object_get(message, "headers"), headers, &kept);
    lw_text_init(&text);
    assert_true(lw_programs_request_write(&text, vectors_int(vector, "id", 0), delivery,
                                          vectors_int(message, "deadline_ms", -1)));
    assert_int_equal(text.data[text.size - 1], '\n');
    vectors_expect_bytes(vectors_text(vector, "name"), "line",
                         (struct lw_bytes){ text.data, text.size - 1 },
                         vectors_content(json_object_get(vector, "line"), &kept));
    check_framed_request(delivery, vector);
    delivery->message.value = (struct lw_bytes){ NULL, 0 };
    lw_text_deinit(&text);
    vectors_forget(&kept);
}

static void
requests_are_written_as_the_vectors_say(void **state)
{
    struct world *world = world_create();
    json_t *root = vectors_load("requests.json");
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
    json_t *root = vectors_load("requests.json");
    const json_t *vector = json_object_get(root, "hello");
    const json_t *hello = json_object_get(vector, "hello");
    struct vectors_kept kept = { .count = 0 };
    const struct lw_batch_options no_batch = { .size = 0 };
    struct lw_text text;
    (void)state;
    lw_text_init(&text);
    lw_programs_request_hello(&text, vectors_text(hello, "service"),
                              vectors_text(hello, "handler"),
                              (uint32_t)vectors_int(hello, "window", 0), &no_batch);
    vectors_expect_bytes("hello", "line", (struct lw_bytes){ text.data, text.size - 1 },
                         vectors_content(json_object_get(vector, "line"), &kept));
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

static void
check_applied(const char *name, const struct lw_programs_answer *answer, const json_t *wanted)
{
    struct lw_delivery delivery = { .attempt = 1 };
    enum lw_verdict verdict = lw_programs_answer_apply(answer, &delivery);
    vectors_check_outcome(name, verdict, delivery.outcome, wanted);
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
        assert_int_equal(answer->protocol, vectors_int(wanted, "protocol", -1));
        assert_int_equal(answer->is_concurrent,
                         json_is_true(json_object_get(wanted, "concurrent")));
        return;
    case LW_PROGRAMS_LINE_ANSWER:
        assert_int_equal(answer->id, vectors_int(wanted, "id", -1));
        check_applied(name, answer, wanted);
        return;
    case LW_PROGRAMS_LINE_EXTEND:
        assert_int_equal(answer->id, vectors_int(wanted, "id", -1));
        assert_int_equal(answer->extend_ms, vectors_int(wanted, "extend_ms", -1));
        return;
    case LW_PROGRAMS_LINE_LOG:
        assert_string_equal(levels[answer->level], vectors_text(wanted, "level"));
        assert_true(lw_text_is_equal(answer->text, vectors_text(wanted, "text")));
        return;
    }
}

/* A frame means the same as its line. */
static void
check_framed_answer(const json_t *vector, const json_t *frame)
{
    struct vectors_kept kept = { .count = 0 };
    struct lw_programs_answer answer;
    struct lw_programs_reader reader;
    const json_t *wanted = json_object_get(vector, "is");
    struct lw_bytes header = vectors_content(json_object_get(frame, "header"), &kept);
    struct lw_bytes tail = vectors_content(json_object_get(frame, "tail"), &kept);
    unsigned char length[4] = { 0, 0, (unsigned char)(header.size >> 8),
                                (unsigned char)header.size };
    lw_programs_reader_init(&reader, LW_PROGRAMS_UNIT_MAX, false);
    reader.end = 4 + header.size + tail.size;
    reader.data = lw_alloc_array(reader.end, 1);
    reader.capacity = reader.end;
    memcpy(reader.data, length, 4);
    memcpy(reader.data + 4, header.data, header.size);
    if (tail.size > 0) {
        memcpy(reader.data + 4 + header.size, tail.data, tail.size);
    }
    assert_int_equal(lw_programs_frames.next(&reader, &answer), LW_PROGRAMS_NEXT_UNIT);
    assert_int_equal(answer.kind, kind_named(vectors_text(wanted, "kind")));
    check_meaning(vectors_text(vector, "name"), &answer, wanted);
    lw_programs_answer_clear(&answer);
    assert_int_equal(reader.begin, reader.end);
    lw_programs_reader_deinit(&reader);
    vectors_forget(&kept);
}

static void
check_answer(const json_t *vector)
{
    struct lw_programs_answer answer;
    struct vectors_kept kept = { .count = 0 };
    const char *name = vectors_text(vector, "name");
    const json_t *wanted = json_object_get(vector, "is");
    lw_programs_answer_read(vectors_content(json_object_get(vector, "line"), &kept), &answer);
    if (answer.kind != kind_named(vectors_text(wanted, "kind"))) {
        fail_msg("%s: the line is taken for kind %d", name, answer.kind);
    }
    check_meaning(name, &answer, wanted);
    lw_programs_answer_clear(&answer);
    if (json_object_get(vector, "frame")) {
        check_framed_answer(vector, json_object_get(vector, "frame"));
    }
    vectors_forget(&kept);
}

static void
answers_mean_what_the_vectors_say(void **state)
{
    json_t *root = vectors_load("answers.json");
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
