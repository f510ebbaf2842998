/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_batch_exchange.c: the vectors of batches.json, which the clients' tests read, too: requests
 * of several messages, in lines and the headers of frames, and what each message of a batch is
 * taken to have been answered.
 */
#include "tests/support/test.h"

#include <string.h>

#include "engines/programs/answer.h"
#include "engines/programs/request.h"
#include "tests/engines/vectors.h"
#include "tests/engines/world.h"

enum { MEMBERS = 3 };

/* The deliveries of a batch, the first of them. */
static struct lw_delivery *
chain_of(struct world *world, const json_t *messages, struct vectors_kept *kept)
{
    struct lw_delivery *first = NULL;
    for (size_t i = json_array_size(messages); i > 0; i--) {
        const json_t *message = json_array_get(messages, i - 1);
        struct lw_delivery *delivery = world_delivery(world, NULL);
        delivery->message.position = vectors_int(message, "offset", 0);
        delivery->message.key = vectors_content(json_object_get(message, "key"), kept);
        delivery->message.value = vectors_content(json_object_get(message, "value"), kept);
        delivery->attempt = 1;
        delivery->is_batch = true;
        delivery->task_next = first;
        first = delivery;
    }
    return first;
}

/* The world would free what the vectors own. */
static void
drop_values(struct lw_delivery *first)
{
    for (struct lw_delivery *member = first; member; member = member->task_next) {
        member->message.value = (struct lw_bytes){ NULL, 0 };
    }
}

static void
check_request(struct world *world, const json_t *vector)
{
    struct vectors_kept kept = { .count = 0 };
    struct lw_text text;
    const char *name = vectors_text(vector, "name");
    int64_t id = vectors_int(vector, "id", 0);
    int64_t deadline_ms = vectors_int(vector, "deadline_ms", -1);
    struct lw_delivery *first = chain_of(world, json_object_get(vector, "messages"), &kept);
    const json_t *frame = json_object_get(vector, "frame");
    lw_text_init(&text);
    assert_true(lw_programs_request_write(&text, id, first, deadline_ms));
    vectors_expect_bytes(name, "line", (struct lw_bytes){ text.data, text.size - 1 },
                         vectors_content(json_object_get(vector, "line"), &kept));
    lw_text_clear(&text);
    assert_true(lw_programs_request_header(&text, id, first, deadline_ms));
    vectors_expect_bytes(name, "header", (struct lw_bytes){ text.data, text.size },
                         vectors_content(json_object_get(frame, "header"), &kept));
    drop_values(first);
    lw_text_deinit(&text);
    vectors_forget(&kept);
}

static void
requests_are_written_as_the_vectors_say(void **state)
{
    struct world *world = world_create();
    json_t *root = vectors_load("batches.json");
    const json_t *list = json_object_get(root, "requests");
    (void)state;
    assert_in_range(json_array_size(list), 2, 1000);
    for (size_t i = 0; i < json_array_size(list); i++) {
        check_request(world, json_array_get(list, i));
    }
    json_decref(root);
    world_destroy(world);
}

static void
the_hello_is_written_as_its_vector_says(void **state)
{
    json_t *root = vectors_load("batches.json");
    const json_t *vector = json_object_get(root, "hello");
    const json_t *hello = json_object_get(vector, "hello");
    struct vectors_kept kept = { .count = 0 };
    const struct lw_batch_options batch = { .size = 100, .verdict = LW_BATCH_VERDICT_EACH };
    struct lw_text text;
    (void)state;
    lw_text_init(&text);
    lw_programs_request_hello(&text, vectors_text(hello, "service"),
                              vectors_text(hello, "handler"),
                              (uint32_t)vectors_int(hello, "window", 0), &batch);
    vectors_expect_bytes("hello", "line", (struct lw_bytes){ text.data, text.size - 1 },
                         vectors_content(json_object_get(vector, "line"), &kept));
    lw_text_deinit(&text);
    json_decref(root);
}

/* Applies an answer and looks at each member. */
static void
check_applied(const json_t *vector, const struct lw_programs_answer *answer)
{
    struct lw_delivery members[MEMBERS] = { 0 };
    const json_t *wanted = json_object_get(vector, "is");
    assert_int_equal(json_array_size(wanted), MEMBERS);
    for (size_t i = 0; i < MEMBERS; i++) {
        members[i].attempt = 1;
        members[i].is_batch = true;
        members[i].task_next = i + 1 < MEMBERS ? &members[i + 1] : NULL;
    }
    (void)lw_programs_answer_apply(answer, &members[0]);
    assert_true(members[0].is_each);
    for (size_t i = 0; i < MEMBERS; i++) {
        vectors_check_outcome(vectors_text(vector, "name"), (enum lw_verdict)members[i].verdict,
                              members[i].outcome, json_array_get(wanted, i));
        lw_outcome_destroy(members[i].outcome);
    }
}

static void
check_answer(const json_t *vector)
{
    struct vectors_kept kept = { .count = 0 };
    struct lw_programs_answer answer;
    const json_t *frame = json_object_get(vector, "frame");
    lw_programs_answer_read(vectors_content(json_object_get(vector, "line"), &kept), &answer);
    assert_int_equal(answer.kind, LW_PROGRAMS_LINE_ANSWER);
    check_applied(vector, &answer);
    lw_programs_answer_clear(&answer);
    if (frame) {
        uint64_t size = 0;
        lw_programs_answer_read(vectors_content(json_object_get(frame, "header"), &kept),
                                &answer);
        answer.tail = vectors_content(json_object_get(frame, "tail"), &kept);
        answer.is_framed = true;
        assert_true(lw_programs_answer_measure(&answer, &size));
        assert_int_equal(size, answer.tail.size);
        check_applied(vector, &answer);
        lw_programs_answer_clear(&answer);
    }
    vectors_forget(&kept);
}

static void
answers_mean_what_the_vectors_say(void **state)
{
    json_t *root = vectors_load("batches.json");
    const json_t *list = json_object_get(root, "answers");
    (void)state;
    assert_in_range(json_array_size(list), 4, 1000);
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
