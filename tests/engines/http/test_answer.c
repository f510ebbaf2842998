/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_answer.c: an answer line by line, as libcurl hands it over, without a network: reasons made
 * fit, bounds, and what is forgotten between two answers.
 */
#include "tests/support/test.h"

#include <string.h>

#include "base/alloc.h"
#include "engines/http/answer.h"

struct stage {
    struct lw_http_answer answer;
    struct lw_delivery delivery;
    bool goes_on;
};

static void
begin(struct stage *stage, uint64_t bytes_max)
{
    memset(stage, 0, sizeof *stage);
    lw_http_answer_init(&stage->answer, bytes_max);
    stage->goes_on = true;
    assert_non_null(lw_delivery_outcome(&stage->delivery));
}

static void
end(struct stage *stage)
{
    lw_http_answer_deinit(&stage->answer);
    lw_outcome_destroy(stage->delivery.outcome);
}

static void
header(struct stage *stage, const char *line)
{
    stage->goes_on = stage->goes_on &&
                     lw_http_answer_header(&stage->answer, lw_bytes_of(line), 0);
}

static void
body(struct stage *stage, const char *piece)
{
    stage->goes_on = stage->goes_on && lw_http_answer_body(&stage->answer, lw_bytes_of(piece));
}

static enum lw_verdict
judge(struct stage *stage)
{
    enum lw_verdict verdict = LW_PENDING;
    lw_outcome_clear(stage->delivery.outcome);
    assert_true(lw_http_answer_judge(&stage->answer, NULL, &stage->delivery, &verdict));
    return verdict;
}

static void
a_reason_is_one_line_of_utf8_cut_between_characters(void **state)
{
    char out[LW_REASON_MAX + 1];
    char many[600];
    (void)state;
    lw_http_reason(out, lw_bytes_of("a\r\n\tb\xff\xc3\xa4 \n"));
    assert_string_equal(out, "a   b?\xc3\xa4");
    for (size_t i = 0; i < sizeof many; i += 3) {
        memcpy(many + i, "\xe2\x82\xac", 3);
    }
    lw_http_reason(out, (struct lw_bytes){ many, sizeof many });
    assert_int_equal(strlen(out), 498);
    assert_true(lw_text_is_utf8(out, 498));
}

static void
a_body_at_the_limit_is_fine_and_one_byte_more_is_not(void **state)
{
    struct stage stage;
    (void)state;
    begin(&stage, 8);
    header(&stage, "HTTP/1.1 200 OK\r\n");
    header(&stage, "\r\n");
    body(&stage, "1234");
    body(&stage, "5678");
    assert_true(stage.goes_on);
    assert_int_equal(judge(&stage), LW_OK);
    body(&stage, "9");
    assert_false(stage.goes_on);
    assert_int_equal(judge(&stage), LW_ERROR);
    end(&stage);
}

static void
an_announced_size_above_the_limit_ends_it_before_the_body(void **state)
{
    struct stage stage;
    (void)state;
    begin(&stage, 8);
    header(&stage, "HTTP/2 200 \r\n");
    header(&stage, "content-length: 9\r\n");
    assert_true(stage.goes_on);
    header(&stage, "\r\n");
    assert_false(stage.goes_on);
    end(&stage);
}

static void
of_a_body_that_is_only_a_reason_little_is_kept(void **state)
{
    struct stage stage;
    char piece[1001];
    (void)state;
    memset(piece, 'x', 1000);
    piece[1000] = '\0';
    begin(&stage, 1 << 20);
    header(&stage, "HTTP/1.1 400 Bad\r\n");
    header(&stage, "\r\n");
    for (int i = 0; i < 1000; i++) {
        body(&stage, piece);
    }
    assert_true(stage.goes_on);
    assert_in_range(stage.answer.body.size, 500, 2000);
    assert_int_equal(judge(&stage), LW_DEAD);
    for (int i = 0; i < 100; i++) {
        body(&stage, piece);
    }
    assert_false(stage.goes_on);
    assert_int_equal(judge(&stage), LW_DEAD);
    end(&stage);
}

static void
nothing_of_one_answer_reaches_the_next(void **state)
{
    struct stage stage;
    (void)state;
    begin(&stage, 1 << 20);
    header(&stage, "HTTP/1.1 503 No\r\n");
    header(&stage, "Retry-After: 9\r\n");
    header(&stage, "x-laneway-result: dead\r\n");
    header(&stage, "x-laneway-reason: why\r\n");
    header(&stage, "\r\n");
    body(&stage, "text");
    assert_int_equal(judge(&stage), LW_DEAD);
    assert_string_equal(lw_delivery_reason(&stage.delivery), "why");
    lw_http_answer_begin(&stage.answer);
    header(&stage, "HTTP/1.1 500 No\r\n");
    header(&stage, "\r\n");
    assert_int_equal(judge(&stage), LW_RETRY);
    assert_string_equal(lw_delivery_reason(&stage.delivery), "the service answered 500");
    assert_int_equal(stage.delivery.outcome->delay_ms, -1);
    end(&stage);
}

static void
retry_after_delays_the_message_on_every_retry(void **state)
{
    struct stage stage;
    (void)state;
    begin(&stage, 1 << 20);
    header(&stage, "HTTP/1.1 502 No\r\n");
    header(&stage, "Retry-After: 9\r\n");
    header(&stage, "\r\n");
    assert_int_equal(judge(&stage), LW_RETRY);
    assert_int_equal(stage.delivery.outcome->delay_ms, 9000);
    assert_false(lw_http_answer_is_busy(&stage.answer));
    end(&stage);
}

static void
trailers_mean_nothing_behind_an_empty_body_too(void **state)
{
    struct stage stage;
    (void)state;
    begin(&stage, 1 << 20);
    header(&stage, "HTTP/1.1 103 Early Hints\r\n");
    header(&stage, "\r\n");
    header(&stage, "HTTP/1.1 200 OK\r\n");
    header(&stage, "transfer-encoding: chunked\r\n");
    header(&stage, "\r\n");
    header(&stage, "x-laneway-result: drop\r\n");
    header(&stage, "\r\n");
    assert_true(stage.goes_on);
    assert_int_equal(judge(&stage), LW_OK);
    end(&stage);
}

static void
a_folded_line_is_no_header(void **state)
{
    struct stage stage;
    (void)state;
    begin(&stage, 1 << 20);
    header(&stage, "HTTP/1.1 200 OK\r\n");
    header(&stage, "x-told: what somebody wrote\r\n");
    header(&stage, " x-laneway-result: drop\r\n");
    header(&stage, "\r\n");
    assert_int_equal(judge(&stage), LW_OK);
    end(&stage);
}

static void
headers_without_an_end_are_cut_off_and_an_error(void **state)
{
    struct stage stage;
    int lines = 0;
    (void)state;
    begin(&stage, 1 << 20);
    header(&stage, "HTTP/1.1 200 OK\r\n");
    while (stage.goes_on && lines++ < 1000000) {
        header(&stage, "x-more: of the same\r\n");
    }
    assert_in_range(lines, 1000, 20000);
    assert_int_equal(judge(&stage), LW_ERROR);
    assert_non_null(strstr(lw_delivery_reason(&stage.delivery), "larger than 256 KiB"));
    lw_http_answer_begin(&stage.answer);
    stage.goes_on = true;
    header(&stage, "HTTP/1.1 200 OK\r\n");
    assert_true(stage.goes_on);
    assert_int_equal(judge(&stage), LW_OK);
    end(&stage);
}

static void
statuses_that_mean_nothing_are_errors(void **state)
{
    static const char *const lines[] = { "HTTP/1.1 101 Switching", "HTTP/1.1 600 What",
                                         "HTTP/1.1 000 Zero", "HTTP/1.1 9 Short" };
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct stage stage;
        begin(&stage, 1 << 20);
        header(&stage, lines[i]);
        header(&stage, "\r\n");
        assert_int_equal(judge(&stage), LW_ERROR);
        end(&stage);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reason_is_one_line_of_utf8_cut_between_characters),
        cmocka_unit_test(a_body_at_the_limit_is_fine_and_one_byte_more_is_not),
        cmocka_unit_test(an_announced_size_above_the_limit_ends_it_before_the_body),
        cmocka_unit_test(of_a_body_that_is_only_a_reason_little_is_kept),
        cmocka_unit_test(nothing_of_one_answer_reaches_the_next),
        cmocka_unit_test(retry_after_delays_the_message_on_every_retry),
        cmocka_unit_test(trailers_mean_nothing_behind_an_empty_body_too),
        cmocka_unit_test(a_folded_line_is_no_header),
        cmocka_unit_test(headers_without_an_end_are_cut_off_and_an_error),
        cmocka_unit_test(statuses_that_mean_nothing_are_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
