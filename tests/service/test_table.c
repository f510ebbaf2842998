/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables: the width of columns, and the short forms of ordinals, durations and numbers that
 * stand in them.
 */
#include "tests/support/test.h"

#include "service/table.h"

static void
columns_have_the_width_of_their_widest_cell(void **state)
{
    struct lw_table table;
    struct lw_text out;
    (void)state;
    lw_text_init(&out);
    lw_table_init(&table, "lr");
    lw_table_add(&table, "TOPIC");
    lw_table_add(&table, "LAG");
    lw_table_add(&table, "a");
    lw_table_add_count(&table, 12345);
    lw_table_add(&table, "longer");
    lw_table_add_count(&table, 0);
    lw_table_print(&table, "  ", &out);
    assert_string_equal(out.data, "  TOPIC     LAG\n  a       12.3k\n  longer     --\n");
    lw_table_deinit(&table);
    lw_text_deinit(&out);
}

static void
widths_count_characters_and_control_characters_are_not_printed(void **state)
{
    struct lw_table table;
    struct lw_text out;
    (void)state;
    lw_text_init(&out);
    lw_table_init(&table, "ll");
    lw_table_add(&table, "gr\xc3\xbc\xc3\x9f");
    lw_table_add(&table, "x");
    lw_table_add(&table, "a\033[m");
    lw_table_add(&table, "y");
    lw_table_print(&table, "", &out);
    assert_string_equal(out.data, "gr\xc3\xbc\xc3\x9f  x\na?[m  y\n");
    lw_table_deinit(&table);
    lw_text_deinit(&out);
}

static void
ordinals_are_english(void **state)
{
    static const struct {
        unsigned number;
        const char *text;
    } cases[] = { { 1, "1st" },   { 2, "2nd" },   { 3, "3rd" },      { 4, "4th" },
                  { 11, "11th" }, { 13, "13th" }, { 21, "21st" },    { 112, "112th" },
                  { 10, "10th" }, { 23, "23rd" }, { 1001, "1001st" } };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[16];
        lw_table_ordinal(cases[i].number, text);
        assert_string_equal(text, cases[i].text);
    }
}

static void
durations_keep_two_units(void **state)
{
    static const struct {
        long long ms;
        const char *text;
    } cases[] = { { -1, "--" },          { 0, "0ms" },       { 999, "999ms" },
                  { 3149, "3.1s" },      { 61000, "1m 1s" }, { 4320000, "1h 12m" },
                  { 273600000, "3d 4h" } };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[32];
        lw_table_duration(cases[i].ms, text);
        assert_string_equal(text, cases[i].text);
    }
}

static void
numbers_keep_three_digits(void **state)
{
    static const struct {
        unsigned long long number;
        const char *text;
    } cases[] = { { 9999, "9999" },
                  { 10000, "10.0k" },
                  { 81249, "81.2k" },
                  { 999999, "999.9k" },
                  { 3400000, "3.4M" },
                  { 1000000000, "1.0G" },
                  { 18446744073709551615U, "18.4E" } };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[16];
        lw_table_number(cases[i].number, text);
        assert_string_equal(text, cases[i].text);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_have_the_width_of_their_widest_cell),
        cmocka_unit_test(widths_count_characters_and_control_characters_are_not_printed),
        cmocka_unit_test(ordinals_are_english),
        cmocka_unit_test(durations_keep_two_units),
        cmocka_unit_test(numbers_keep_three_digits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
