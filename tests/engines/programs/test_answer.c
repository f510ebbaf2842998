/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_answer.c: what a line from a program is taken for, and what an answer makes of its
 * message: transcripts of lines and what they mean.
 */
#include "tests/support/test.h"

#include "engines/programs/answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static struct lw_programs_answer
read_line(const char *line)
{
    struct lw_programs_answer answer;
    lw_programs_answer_read(lw_bytes_of(line), &answer);
    return answer;
}

static enum lw_programs_line
kind_of(const char *line)
{
    struct lw_programs_answer answer = read_line(line);
    enum lw_programs_line kind = answer.kind;
    lw_programs_answer_clear(&answer);
    return kind;
}

static enum lw_verdict
apply(struct lw_delivery *delivery, const char *line)
{
    struct lw_programs_answer answer = read_line(line);
    assert_int_equal(answer.kind, LW_PROGRAMS_LINE_ANSWER);
    if (delivery->outcome) {
        lw_outcome_clear(delivery->outcome);
    }
    enum lw_verdict verdict = lw_programs_answer_apply(&answer, delivery);
    lw_programs_answer_clear(&answer);
    return verdict;
}

static void
lines_are_told_apart(void **state)
{
    static const struct {
        const char *line;
        enum lw_programs_line kind;
    } rows[] = {
        { "", LW_PROGRAMS_LINE_STRAY },
        { "hello", LW_PROGRAMS_LINE_STRAY },
        { "17", LW_PROGRAMS_LINE_STRAY },
        { "[1]", LW_PROGRAMS_LINE_STRAY },
        { "{", LW_PROGRAMS_LINE_STRAY },
        { "{}", LW_PROGRAMS_LINE_STRAY },
        { "{\"level\":\"info\",\"msg\":\"x\"}", LW_PROGRAMS_LINE_STRAY },
        { "{\"id\":\"abc\",\"msg\":\"x\"}", LW_PROGRAMS_LINE_STRAY },
        { "{\"id\":-4}", LW_PROGRAMS_LINE_STRAY },
        { "{\"ready\":{\"protocol\":1}}", LW_PROGRAMS_LINE_READY },
        { "  {\"ready\":{}}", LW_PROGRAMS_LINE_READY },
        { "{\"ready\":true}", LW_PROGRAMS_LINE_BROKEN },
        { "{\"ready\":{\"protocol\":\"1\"}}", LW_PROGRAMS_LINE_BROKEN },
        { "{\"id\":1,\"result\":\"ok\"}", LW_PROGRAMS_LINE_ANSWER },
        { "{\"id\":1.0,\"result\":\"ok\",\"extra\":[{}]}", LW_PROGRAMS_LINE_ANSWER },
        { "{\"id\":1}", LW_PROGRAMS_LINE_ANSWER },
        { "{\"id\":1,\"result\":\"ok\",\"extend\":\"5s\"}", LW_PROGRAMS_LINE_ANSWER },
        { "{\"id\":1,\"result\":\"ok\",\"log\":\"info\"}", LW_PROGRAMS_LINE_ANSWER },
        { "{\"id\":\"1\",\"result\":\"ok\"}", LW_PROGRAMS_LINE_BROKEN },
        { "{\"id\":1.5,\"result\":\"ok\"}", LW_PROGRAMS_LINE_BROKEN },
        { "{\"id\":0,\"result\":\"ok\"}", LW_PROGRAMS_LINE_BROKEN },
        { "{\"id\":1e300,\"result\":\"ok\"}", LW_PROGRAMS_LINE_BROKEN },
        { "{\"id\":99999999999999999999,\"result\":\"ok\"}", LW_PROGRAMS_LINE_STRAY },
        { "{\"result\":\"ok\"}", LW_PROGRAMS_LINE_STRAY },
        { "{\"id\":1,\"extend\":\"30s\"}", LW_PROGRAMS_LINE_EXTEND },
        { "{\"id\":1,\"extend\":30}", LW_PROGRAMS_LINE_BROKEN },
        { "{\"id\":1,\"extend\":\"30\"}", LW_PROGRAMS_LINE_BROKEN },
        { "{\"log\":\"warn\",\"msg\":\"x\"}", LW_PROGRAMS_LINE_LOG },
        { "{\"log\":7,\"id\":3}", LW_PROGRAMS_LINE_LOG },
        { "{\"id\":1,\"result\":\"\xff\"}", LW_PROGRAMS_LINE_STRAY },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (kind_of(rows[i].line) != rows[i].kind) {
            fail_msg("%s is kind %d", rows[i].line, kind_of(rows[i].line));
        }
    }
}

static void
ready_carries_protocol_and_concurrency(void **state)
{
    (void)state;
    struct lw_programs_answer plain = read_line("{\"ready\":{}}");
    struct lw_programs_answer rich = read_line(
        "{\"ready\":{\"protocol\":3,\"concurrent\":true}}");
    assert_int_equal(plain.protocol, 1);
    assert_false(plain.is_concurrent);
    assert_int_equal(rich.protocol, 3);
    assert_true(rich.is_concurrent);
    lw_programs_answer_clear(&plain);
    lw_programs_answer_clear(&rich);
}

static void
log_lines_have_levels_and_unknown_ones_are_info(void **state)
{
    (void)state;
    struct lw_programs_answer warn = read_line("{\"log\":\"warn\",\"msg\":\"disk\"}");
    struct lw_programs_answer odd = read_line("{\"log\":\"loud\"}");
    assert_int_equal(warn.level, LW_LOG_WARN);
    assert_true(lw_text_is_equal(warn.text, "disk"));
    assert_int_equal(odd.level, LW_LOG_INFO);
    assert_null(odd.text.data);
    lw_programs_answer_clear(&warn);
    lw_programs_answer_clear(&odd);
}

static void
a_plain_ok_makes_no_outcome(void **state)
{
    struct lw_delivery delivery = { .attempt = 1 };
    (void)state;
    assert_int_equal(apply(&delivery, "{\"id\":1,\"result\":\"ok\"}"), LW_OK);
    assert_null(delivery.outcome);
}

static void
reason_delay_and_code_are_taken(void **state)
{
    struct lw_delivery delivery = { .attempt = 1 };
    (void)state;
    assert_int_equal(
        apply(&delivery,
              "{\"id\":1,\"result\":\"retry\",\"reason\":\"busy\",\"delay\":\"1m30s\"}"),
        LW_RETRY);
    assert_string_equal(delivery.outcome->reason, "busy");
    assert_int_equal(delivery.outcome->delay_ms, 90000);
    assert_int_equal(apply(&delivery, "{\"id\":1,\"result\":\"error\",\"code\":-12}"),
                     LW_ERROR);
    assert_true(delivery.outcome->has_code);
    assert_int_equal(delivery.outcome->code, -12);
    assert_int_equal(apply(&delivery, "{\"id\":1,\"result\":\"retry\",\"delay\":null,"
                                      "\"reason\":null,\"code\":null}"),
                     LW_RETRY);
    assert_int_equal(delivery.outcome->delay_ms, -1);
    assert_false(delivery.outcome->has_code);
    lw_outcome_destroy(delivery.outcome);
}

static struct lw_output
output_of(const struct lw_delivery *delivery, uint32_t index, struct lw_header *headers)
{
    struct lw_output view;
    assert_in_range(index, 0, delivery->outcome->output_count - 1);
    lw_outcome_view(delivery->outcome, index, &view, headers);
    return view;
}

static void
replies_are_text_bytes_or_null(void **state)
{
    struct lw_delivery delivery = { .attempt = 1 };
    (void)state;
    apply(&delivery, "{\"id\":1,\"result\":\"ok\",\"reply\":\"a\\u0000b\"}");
    assert_true(
        lw_bytes_is_equal(output_of(&delivery, 0, NULL).value, (struct lw_bytes){ "a\0b", 3 }));
    apply(&delivery, "{\"id\":1,\"result\":\"ok\",\"reply_b64\":\"/wA=\"}");
    assert_true(lw_bytes_is_equal(output_of(&delivery, 0, NULL).value,
                                  (struct lw_bytes){ "\xff\0", 2 }));
    apply(&delivery, "{\"id\":1,\"result\":\"ok\",\"reply\":null}");
    assert_null(output_of(&delivery, 0, NULL).value.data);
    apply(&delivery, "{\"id\":1,\"result\":\"ok\",\"reply\":\"\"}");
    assert_non_null(output_of(&delivery, 0, NULL).value.data);
    apply(&delivery, "{\"id\":1,\"result\":\"ok\",\"reply_b64\":\"\"}");
    assert_non_null(output_of(&delivery, 0, NULL).value.data);
    lw_outcome_destroy(delivery.outcome);
}

static void
outputs_have_all_their_parts(void **state)
{
    struct lw_delivery delivery = { .attempt = 1 };
    struct lw_header headers[4];
    (void)state;
    assert_int_equal(
        apply(&delivery,
              "{\"id\":1,\"result\":\"ok\",\"outputs\":[{\"topic\":\"t1\",\"key\":\"k\","
              "\"value\":\"v\",\"delay\":\"2s\",\"headers\":{\"a\":[\"1\",\"2\"],\"b\":null}},"
              "{\"topic\":\"t2\",\"key_b64\":\"/w==\",\"value_b64\":\"AA==\"},"
              "{\"topic\":\"t3\"}]}"),
        LW_OK);
    struct lw_output first = output_of(&delivery, 0, headers);
    assert_string_equal(first.topic, "t1");
    assert_int_equal(first.delay_ms, 2000);
    assert_int_equal(first.header_count, 3);
    assert_true(lw_text_is_equal(headers[1].name, "a"));
    assert_true(lw_text_is_equal(headers[1].value, "2"));
    assert_null(headers[2].value.data);
    struct lw_output second = output_of(&delivery, 1, headers);
    assert_int_equal(second.key.size, 1);
    assert_int_equal(second.value.size, 1);
    struct lw_output third = output_of(&delivery, 2, headers);
    assert_null(third.key.data);
    assert_null(third.value.data);
    lw_outcome_destroy(delivery.outcome);
}

/* Whatever is wrong, nothing of the answer is kept, and the reason names the field. */
static void
a_wrong_field_makes_an_error_that_names_it(void **state)
{
    static const char *const rows[][2] = {
        { "\"result\":\"OK\"", "\"result\" is none of" },
        { "\"result\":1", "\"result\" is none of" },
        { "\"result\":\"ok\",\"reply\":{\"a\":1}", "\"reply\" is neither a text nor null" },
        { "\"result\":\"ok\",\"reply_b64\":\"***\"", "\"reply\" as _b64 is not base64" },
        { "\"result\":\"ok\",\"reply_b64\":7", "\"reply\" as _b64 is not base64" },
        { "\"result\":\"dead\",\"reason\":7", "\"reason\" is not a text" },
        { "\"result\":\"retry\",\"delay\":\"5\"", "\"delay\" needs a unit" },
        { "\"result\":\"retry\",\"delay\":\"-5s\"", "\"delay\" " },
        { "\"result\":\"retry\",\"delay\":\"1\\u0000s\"", "\"delay\" " },
        { "\"result\":\"error\",\"code\":\"7\"", "\"code\" is not a whole number" },
        { "\"result\":\"error\",\"code\":7.5", "\"code\" is not a whole number" },
        { "\"result\":\"error\",\"code\":4294967296", "\"code\" is not a whole number" },
        { "\"result\":\"ok\",\"outputs\":{}", "\"outputs\" is not an array" },
        { "\"result\":\"ok\",\"outputs\":[7]", "\"outputs.topic\" is missing" },
        { "\"result\":\"ok\",\"outputs\":[{\"topic\":\"\"}]", "\"outputs.topic\" is missing" },
        { "\"result\":\"ok\",\"outputs\":[{\"topic\":\"t\",\"headers\":{\"a\":1}}]",
          "\"outputs.headers\" are not texts" },
        { "\"result\":\"ok\",\"outputs\":[{\"topic\":\"t\",\"delay\":1}]",
          "\"outputs.delay\" is not a text" },
        { "\"result\":\"ok\",\"outputs\":[{\"topic\":\"t\",\"key\":1}]",
          "\"key\" is neither a text nor null" },
    };
    struct lw_delivery delivery = { .attempt = 1 };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char line[256];
        (void)snprintf(line, sizeof line, "{\"id\":1,%s,\"pad\":0}", rows[i][0]);
        assert_int_equal(apply(&delivery, line), LW_ERROR);
        assert_int_equal(delivery.outcome->output_count, 0);
        assert_false(delivery.outcome->has_code);
        if (!strstr(delivery.outcome->reason, rows[i][1])) {
            fail_msg("%s: %s", line, delivery.outcome->reason);
        }
    }
    lw_outcome_destroy(delivery.outcome);
}

static void
more_than_1024_outputs_are_refused(void **state)
{
    struct lw_delivery delivery = { .attempt = 1 };
    struct lw_text line;
    (void)state;
    lw_text_init(&line);
    lw_text_append(&line, "{\"id\":1,\"result\":\"ok\",\"outputs\":[{\"topic\":\"t\"}");
    for (size_t i = 0; i < LW_OUTPUTS_MAX; i++) {
        lw_text_append(&line, ",{\"topic\":\"t\"}");
    }
    lw_text_append(&line, "]}");
    assert_int_equal(apply(&delivery, line.data), LW_ERROR);
    assert_non_null(strstr(delivery.outcome->reason, "\"outputs\" has too many items"));
    lw_text_deinit(&line);
    lw_outcome_destroy(delivery.outcome);
}

/* At every allocation that may fail: an error or the whole answer, and no leak. */
static void
lack_of_memory_never_gives_half_an_answer(void **state)
{
    const char *line = "{\"id\":1,\"result\":\"ok\",\"reply_b64\":\"AAAA\",\"outputs\":["
                       "{\"topic\":\"t\",\"key_b64\":\"AA==\",\"headers\":{\"a\":\"b\"}}]}";
    size_t refused = 0;
    (void)state;
    for (uint64_t nth = 1; nth < 20; nth++) {
        struct lw_delivery delivery = { .attempt = 1 };
        uint64_t live = lw_alloc_live();
        lw_alloc_fail_at(nth);
        enum lw_verdict verdict = apply(&delivery, line);
        lw_alloc_fail_at(0);
        assert_true(verdict == LW_ERROR || delivery.outcome->output_count == 2);
        refused += verdict == LW_ERROR ? 1 : 0;
        lw_outcome_destroy(delivery.outcome);
        assert_int_equal(lw_alloc_live(), live);
    }
    assert_in_range(refused, 4, 18);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_told_apart),
        cmocka_unit_test(ready_carries_protocol_and_concurrency),
        cmocka_unit_test(log_lines_have_levels_and_unknown_ones_are_info),
        cmocka_unit_test(a_plain_ok_makes_no_outcome),
        cmocka_unit_test(reason_delay_and_code_are_taken),
        cmocka_unit_test(replies_are_text_bytes_or_null),
        cmocka_unit_test(outputs_have_all_their_parts),
        cmocka_unit_test(a_wrong_field_makes_an_error_that_names_it),
        cmocka_unit_test(more_than_1024_outputs_are_refused),
        cmocka_unit_test(lack_of_memory_never_gives_half_an_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
