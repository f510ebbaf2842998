/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON writer against exact output; base64 against the vectors of RFC 4648 and against what
 * a strict decoder must refuse; times against known dates.
 */
#include "tests/support/test.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"

static struct lw_text text;
static struct lw_json json;

static int
set_up(void **state)
{
    (void)state;
    lw_text_init(&text);
    lw_json_init(&json, &text);
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    lw_text_deinit(&text);
    return 0;
}

static void
nesting_puts_commas_where_they_belong(void **state)
{
    (void)state;
    lw_json_object(&json);
    lw_json_key(&json, "a");
    lw_json_array(&json);
    lw_json_int(&json, 1);
    lw_json_object(&json);
    lw_json_object_end(&json);
    lw_json_array(&json);
    lw_json_array_end(&json);
    lw_json_array_end(&json);
    lw_json_key(&json, "b");
    lw_json_bool(&json, true);
    lw_json_key(&json, "c");
    lw_json_null(&json);
    lw_json_object_end(&json);
    assert_string_equal(text.data, "{\"a\":[1,{},[]],\"b\":true,\"c\":null}");
}

static void
several_documents_can_stand_in_an_array_of_objects(void **state)
{
    (void)state;
    lw_json_array(&json);
    for (int i = 0; i < 3; i++) {
        lw_json_object(&json);
        lw_json_key(&json, "i");
        lw_json_int(&json, i);
        lw_json_object_end(&json);
    }
    lw_json_array_end(&json);
    assert_string_equal(text.data, "[{\"i\":0},{\"i\":1},{\"i\":2}]");
}

static void
sixty_levels_can_be_nested(void **state)
{
    (void)state;
    for (int i = 0; i < 60; i++) {
        lw_json_array(&json);
    }
    lw_json_int(&json, 1);
    for (int i = 0; i < 60; i++) {
        lw_json_array_end(&json);
    }
    assert_int_equal(text.size, 121);
    assert_null(strchr(text.data, ','));
}

static void
strings_are_escaped(void **state)
{
    (void)state;
    lw_json_string(&json, "q\" b\\ n\n r\r t\t b\b f\f \x01 \x7f / \xc3\xa9 \xf0\x9f\x9a\x80");
    assert_string_equal(text.data, "\"q\\\" b\\\\ n\\n r\\r t\\t b\\b f\\f \\u0001 \\u007f / "
                                   "\xc3\xa9 \xf0\x9f\x9a\x80\"");
}

static void
bytes_that_are_no_utf8_become_the_replacement_character(void **state)
{
    (void)state;
    lw_json_bytes(&json, (struct lw_bytes){ "a\xff\xe2\x82z\0", 6 });
    assert_string_equal(text.data, "\"a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz\\u0000\"");
}

static void
null_is_not_the_empty_string(void **state)
{
    (void)state;
    lw_json_array(&json);
    lw_json_string(&json, NULL);
    lw_json_string(&json, "");
    lw_json_bytes(&json, (struct lw_bytes){ NULL, 0 });
    lw_json_base64(&json, (struct lw_bytes){ NULL, 0 });
    lw_json_base64(&json, lw_bytes_of(""));
    lw_json_array_end(&json);
    assert_string_equal(text.data, "[null,\"\",null,null,\"\"]");
}

static void
numbers_are_written_shortest_and_come_back_the_same(void **state)
{
    (void)state;
    static const double values[] = { 0, 0.1, -2.5, 1e100, 1.0 / 3, DBL_MAX, DBL_MIN, 5e-324 };
    lw_json_double(&json, 0.1);
    assert_string_equal(text.data, "0.1");
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        lw_text_clear(&text);
        lw_json_init(&json, &text);
        lw_json_double(&json, values[i]);
        double back = strtod(text.data, NULL);
        assert_memory_equal(&back, &values[i], sizeof back);
    }
}

static void
what_json_cannot_say_as_a_number_is_null(void **state)
{
    (void)state;
    lw_json_array(&json);
    lw_json_double(&json, (double)NAN);
    lw_json_double(&json, (double)INFINITY);
    lw_json_int(&json, INT64_MIN);
    lw_json_array_end(&json);
    assert_string_equal(text.data, "[null,null,-9223372036854775808]");
}

static const char *const base64_vectors[][2] = {
    { "", "" },
    { "f", "Zg==" },
    { "fo", "Zm8=" },
    { "foo", "Zm9v" },
    { "foob", "Zm9vYg==" },
    { "fooba", "Zm9vYmE=" },
    { "foobar", "Zm9vYmFy" },
    { "\xfb\xff\xbf", "+/+/" },
};

static void
base64_writes_and_reads_the_vectors_of_the_standard(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof base64_vectors / sizeof base64_vectors[0]; i++) {
        const char *encoded = base64_vectors[i][1];
        lw_text_clear(&text);
        lw_json_init(&json, &text);
        lw_json_base64(&json, lw_bytes_of(base64_vectors[i][0]));
        assert_int_equal(text.size, strlen(encoded) + 2);
        assert_memory_equal(text.data + 1, encoded, strlen(encoded));
        void *data = NULL;
        size_t size = 99;
        assert_true(lw_base64_decode(encoded, strlen(encoded), &data, &size));
        assert_int_equal(size, strlen(base64_vectors[i][0]));
        assert_memory_equal(data, base64_vectors[i][0], size);
        lw_free(data);
    }
}

static void
base64_that_is_not_strict_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = { "Z",    "Zg",       "Zg=",  "Zg===",  "Zh==",
                                         "Zm9=", "Z===",     "====", "Zm9v\n", "Zm 9",
                                         "Zm-_", "Zg==Zm9v", "=Zm9", "Zm=v" };
    uint64_t live = lw_alloc_live();
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        void *data = NULL;
        size_t size = 0;
        assert_false(lw_base64_decode(texts[i], strlen(texts[i]), &data, &size));
        assert_null(data);
    }
    assert_int_equal(lw_alloc_live(), live);
}

static void
times_are_written_in_utc_with_milliseconds(void **state)
{
    (void)state;
    static const struct {
        int64_t ms;
        const char *text;
    } rows[] = {
        { 0, "1970-01-01T00:00:00.000Z" },
        { -1, "1969-12-31T23:59:59.999Z" },
        { 951782399999, "2000-02-28T23:59:59.999Z" },
        { 951782400000, "2000-02-29T00:00:00.000Z" },
        { 1767323045678, "2026-01-02T03:04:05.678Z" },
        { 4107542399000, "2100-02-28T23:59:59.000Z" },
        { 4107542400000, "2100-03-01T00:00:00.000Z" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char out[32];
        lw_json_time(rows[i].ms, out);
        assert_string_equal(out, rows[i].text);
    }
}

static void
times_that_cannot_be_written_become_the_first_or_last_that_can(void **state)
{
    (void)state;
    static const int64_t times[] = { INT64_MIN, -62167219200001, 253402300800000, INT64_MAX };
    for (size_t i = 0; i < 4; i++) {
        char out[32];
        lw_json_time(times[i], out);
        assert_string_equal(out,
                            i < 2 ? "0000-01-01T00:00:00.000Z" : "9999-12-31T23:59:59.999Z");
    }
}

static void
lack_of_memory_stays_in_the_text(void **state)
{
    (void)state;
    for (uint64_t nth = 1; nth <= 2; nth++) {
        lw_text_deinit(&text);
        lw_json_init(&json, &text);
        lw_alloc_fail_at(nth);
        lw_json_array(&json);
        for (int i = 0; i < 100; i++) {
            lw_json_string(&json, "a\n");
        }
        lw_json_array_end(&json);
        assert_true(text.is_failed);
    }
    void *data = NULL;
    size_t size = 0;
    lw_alloc_fail_at(1);
    assert_false(lw_base64_decode("Zm9v", 4, &data, &size));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nesting_puts_commas_where_they_belong, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(several_documents_can_stand_in_an_array_of_objects,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(sixty_levels_can_be_nested, set_up, tear_down),
        cmocka_unit_test_setup_teardown(strings_are_escaped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bytes_that_are_no_utf8_become_the_replacement_character,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(null_is_not_the_empty_string, set_up, tear_down),
        cmocka_unit_test_setup_teardown(numbers_are_written_shortest_and_come_back_the_same,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_json_cannot_say_as_a_number_is_null, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(base64_writes_and_reads_the_vectors_of_the_standard,
                                        set_up, tear_down),
        cmocka_unit_test(base64_that_is_not_strict_is_refused),
        cmocka_unit_test(times_are_written_in_utc_with_milliseconds),
        cmocka_unit_test(times_that_cannot_be_written_become_the_first_or_last_that_can),
        cmocka_unit_test_setup_teardown(lack_of_memory_stays_in_the_text, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
