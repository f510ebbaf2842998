/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers, durations and sizes: what is accepted, what is refused and why, the ends of int64,
 * and that what we write we read back as the same.
 */
#include "tests/support/test.h"

#include "base/text.h"

static void
whole_numbers_are_read_to_the_ends_of_int64(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t value;
    } rows[] = {
        { "0", 0 },
        { "-0", 0 },
        { "+7", 7 },
        { "42", 42 },
        { "-42", -42 },
        { "007", 7 },
        { "9223372036854775807", INT64_MAX },
        { "-9223372036854775808", INT64_MIN },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t value = 1;
        assert_true(lw_text_to_int(rows[i].text, &value));
        assert_true(value == rows[i].value);
    }
}

static void
what_is_no_whole_number_is_refused_and_leaves_the_output(void **state)
{
    (void)state;
    static const char *const texts[] = { "",
                                         "-",
                                         "+",
                                         "x",
                                         "1x",
                                         " 1",
                                         "1 ",
                                         "1.5",
                                         "0x1",
                                         "--1",
                                         "1e3",
                                         "9223372036854775808",
                                         "-9223372036854775809",
                                         "99999999999999999999" };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        int64_t value = 5;
        assert_false(lw_text_to_int(texts[i], &value));
        assert_int_equal(value, 5);
    }
}

static void
bytes_are_a_number_only_as_a_whole(void **state)
{
    (void)state;
    int64_t value = 0;
    assert_true(lw_bytes_to_int((struct lw_bytes){ "123", 2 }, &value));
    assert_int_equal(value, 12);
    assert_false(lw_bytes_to_int((struct lw_bytes){ NULL, 0 }, &value));
    assert_false(lw_bytes_to_int((struct lw_bytes){ "1\0", 2 }, &value));
}

static void
durations_are_read_in_milliseconds(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ms;
    } rows[] = {
        { "0", 0 },         { "0s", 0 },
        { "250ms", 250 },   { "30s", 30000 },
        { "5m", 300000 },   { "1h30m", 5400000 },
        { "1d", 86400000 }, { "1s500ms", 1500 },
        { "90m", 5400000 }, { "9223372036854775807ms", INT64_MAX },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t ms = 0;
        const char *why = NULL;
        assert_true(lw_text_to_duration_ms(rows[i].text, &ms, &why));
        assert_true(ms == rows[i].ms);
    }
}

static void
wrong_durations_say_what_is_wrong(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        { "", "is empty" },
        { "30", "needs a unit" },
        { "1h30", "needs a unit" },
        { "5 s", "has an unknown unit" },
        { "5x", "has an unknown unit" },
        { "5S", "has an unknown unit" },
        { "1.5s", "must be a whole number" },
        { "-5s", "must not be negative" },
        { "soon", "is not a number with a unit" },
        { "5s1h", "must name larger units first" },
        { "1s1s", "must name larger units first" },
        { "9999999999999d", "is too large" },
        { "1d9223372036854775807ms", "is too large" },
        { "99999999999999999999s", "is too large" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t ms = 5;
        const char *why = NULL;
        assert_false(lw_text_to_duration_ms(rows[i][0], &ms, &why));
        assert_string_equal(why, rows[i][1]);
        assert_int_equal(ms, 5);
    }
}

static void
sizes_are_read_in_bytes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t bytes;
    } rows[] = {
        { "0", 0 },         { "10B", 10 },       { "64KiB", 65536 },
        { "1MB", 1000000 }, { "1MiB", 1 << 20 }, { "2GiB", INT64_C(1) << 31 },
        { "1kB", 1000 },    { "1KB", 1000 },     { "1TiB", INT64_C(1) << 40 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t bytes = 0;
        const char *why = NULL;
        assert_true(lw_text_to_size(rows[i].text, &bytes, &why));
        assert_true(bytes == rows[i].bytes);
    }
}

static void
wrong_sizes_say_what_is_wrong(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        { "", "is empty" },
        { "64", "needs a unit" },
        { "64kib", "has an unknown unit" },
        { "64K", "has an unknown unit" },
        { "-1B", "must not be negative" },
        { "1MiB5B", "has something behind its unit" },
        { "9999999999TiB", "is too large" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t bytes = 5;
        const char *why = NULL;
        assert_false(lw_text_to_size(rows[i][0], &bytes, &why));
        assert_string_equal(why, rows[i][1]);
        assert_int_equal(bytes, 5);
    }
}

static void
durations_are_written_as_they_are_read(void **state)
{
    (void)state;
    static const char *const texts[] = { "0s",    "250ms", "30s",        "5m",
                                         "1h30m", "1d",    "1d2h3m4s5ms" };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        int64_t ms = 0;
        const char *why = NULL;
        char out[64];
        assert_true(lw_text_to_duration_ms(texts[i], &ms, &why));
        lw_text_from_duration_ms(ms, out, sizeof out);
        assert_string_equal(out, texts[i]);
    }
}

static void
sizes_are_written_with_the_largest_whole_unit(void **state)
{
    (void)state;
    static const struct {
        int64_t bytes;
        const char *text;
    } rows[] = { { 0, "0B" },
                 { 65536, "64KiB" },
                 { 1000000, "1MB" },
                 { 1001, "1001B" },
                 { 1 << 20, "1MiB" },
                 { 1024000, "1000KiB" },
                 { INT64_C(3) << 40, "3TiB" } };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char out[64];
        lw_text_from_size(rows[i].bytes, out, sizeof out);
        assert_string_equal(out, rows[i].text);
    }
}

static void
longest_duration_fits(void **state)
{
    (void)state;
    char out[64];
    lw_text_from_duration_ms(INT64_MAX, out, sizeof out);
    assert_string_equal(out, "106751991167d7h12m55s807ms");
    lw_text_from_duration_ms(INT64_MIN, out, sizeof out);
    assert_string_equal(out, "-106751991167d7h12m55s808ms");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_numbers_are_read_to_the_ends_of_int64),
        cmocka_unit_test(what_is_no_whole_number_is_refused_and_leaves_the_output),
        cmocka_unit_test(bytes_are_a_number_only_as_a_whole),
        cmocka_unit_test(durations_are_read_in_milliseconds),
        cmocka_unit_test(wrong_durations_say_what_is_wrong),
        cmocka_unit_test(sizes_are_read_in_bytes),
        cmocka_unit_test(wrong_sizes_say_what_is_wrong),
        cmocka_unit_test(durations_are_written_as_they_are_read),
        cmocka_unit_test(sizes_are_written_with_the_largest_whole_unit),
        cmocka_unit_test(longest_duration_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
