/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_exchange.c: the vectors of http.json, what a service behind HTTP answers and what that is
 * taken for: with the body in one piece, and byte by byte.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#include "engines/http/answer.h"
#include "engines/programs/answer.h"
#include "tests/engines/vectors.h"

enum { ANSWER_BYTES_MAX = 1 << 20 };

static void
feed_headers(struct lw_http_answer *answer, const json_t *vector)
{
    char line[256];
    const char *name = NULL;
    json_t *value = NULL;
    (void)snprintf(line, sizeof line, "HTTP/1.1 %d Any\r\n",
                   (int)vectors_int(vector, "status", 0));
    assert_true(lw_http_answer_header(answer, lw_bytes_of(line), 0));
    json_object_foreach(json_object_get(vector, "headers"), name, value)
    {
        (void)snprintf(line, sizeof line, "%s: %s\r\n", name, json_string_value(value));
        assert_true(lw_http_answer_header(answer, lw_bytes_of(line), 0));
    }
    assert_true(lw_http_answer_header(answer, lw_bytes_of("\r\n"), 0));
}

static void
feed_body(struct lw_http_answer *answer, struct lw_bytes body, size_t step)
{
    for (size_t at = 0; at < body.size; at += step) {
        size_t size = body.size - at < step ? body.size - at : step;
        struct lw_bytes piece = { (const char *)body.data + at, size };
        assert_true(lw_http_answer_body(answer, piece));
    }
}

static void
check_vector(const json_t *vector, size_t step)
{
    struct lw_http_answer answer;
    struct lw_delivery delivery = { .attempt = 1 };
    struct vectors_kept kept = { .count = 0 };
    enum lw_verdict verdict = LW_ERROR;
    const json_t *wanted = json_object_get(vector, "is");
    lw_http_answer_init(&answer, ANSWER_BYTES_MAX);
    lw_http_answer_begin(&answer);
    feed_headers(&answer, vector);
    feed_body(&answer, vectors_content(json_object_get(vector, "body"), &kept), step);
    assert_int_equal(lw_http_answer_is_busy(&answer),
                     json_is_true(json_object_get(wanted, "busy")));
    assert_non_null(lw_delivery_outcome(&delivery));
    assert_true(lw_http_answer_judge(&answer, lw_programs_answer_take, &delivery, &verdict));
    vectors_check_outcome(vectors_text(vector, "name"), verdict, delivery.outcome, wanted);
    lw_outcome_destroy(delivery.outcome);
    lw_http_answer_deinit(&answer);
}

static void
check_all(size_t step)
{
    json_t *root = vectors_load("http.json");
    const json_t *list = json_object_get(root, "answers");
    assert_in_range(json_array_size(list), 40, 1000);
    for (size_t i = 0; i < json_array_size(list); i++) {
        check_vector(json_array_get(list, i), step);
    }
    json_decref(root);
}

static void
answers_mean_what_the_vectors_say(void **state)
{
    (void)state;
    check_all(ANSWER_BYTES_MAX);
}

static void
answers_in_pieces_mean_the_same(void **state)
{
    (void)state;
    check_all(1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_mean_what_the_vectors_say),
        cmocka_unit_test(answers_in_pieces_mean_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
