/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Option rows: reading, storing, printing, walking, on a table with every kind of nesting. The
 * rows of the product are tested where they are used; here it is the machinery, its limits and
 * its words for what is wrong.
 */
#include "tests/support/test.h"

#include <string.h>

#include "base/option.h"

struct inner {
    int64_t delay_ms;
    double factor;
};

struct outer {
    bool is_on;
    int32_t level;
    uint32_t count;
    uint64_t bytes;
    const char *name;
    struct inner inner;
    bool is_off;
    const char *const *texts;
    const int64_t *delays;
    size_t delay_count;
};

#define OUTER(member)                                                                          \
    .offset = offsetof(struct outer, member), .size = sizeof(((struct outer *)0)->member)
#define INNER(member)                                                                          \
    .offset = offsetof(struct inner, member), .size = sizeof(((struct inner *)0)->member)

static const struct lw_option_word words[] = { { .word = "all", .value = 0 }, { 0 } };

static const struct lw_option inner_rows[] = {
    { .name = "delay",
      .type = LW_OPTION_DURATION,
      INNER(delay_ms),
      .initial = "5s",
      .max = 60000 },
    { .name = "factor", .type = LW_OPTION_DOUBLE, INNER(factor), .initial = "1.5" },
    { 0 }
};
static const struct lw_option more_rows[] = {
    { .name = "bytes", .type = LW_OPTION_BYTES, OUTER(bytes), .initial = "1KiB" }, { 0 }
};
static const struct lw_option rows[] = {
    { .name = "on", .type = LW_OPTION_BOOL, OUTER(is_on), .initial = "true" },
    { .name = "level", .type = LW_OPTION_INT, OUTER(level), .initial = "-3" },
    { .name = "count",
      .alias = "number",
      .type = LW_OPTION_UINT,
      OUTER(count),
      .words = words,
      .min = 1,
      .max = 10 },
    { .type = LW_OPTION_INCLUDE, .rows = more_rows },
    { .name = "name", .type = LW_OPTION_TEXT, OUTER(name) },
    { .name = "inner",
      .type = LW_OPTION_GROUP,
      .offset = offsetof(struct outer, inner),
      .rows = inner_rows,
      .off_word = "none",
      .off_offset = offsetof(struct outer, is_off) },
    { .name = "delays",
      .type = LW_OPTION_DURATIONS,
      OUTER(delays),
      .count_offset = offsetof(struct outer, delay_count) },
    { 0 }
};

static const struct lw_option *
row_of(const char *name)
{
    return lw_option_find(strcmp(name, "delay") == 0 ? inner_rows : rows, name, NULL);
}

static void
defaults_reach_sections_and_includes(void **state)
{
    (void)state;
    struct outer outer = { .count = 7 };
    lw_option_init(rows, &outer);
    assert_true(outer.is_on);
    assert_int_equal(outer.level, -3);
    assert_int_equal(outer.count, 7);
    assert_int_equal(outer.bytes, 1024);
    assert_int_equal(outer.inner.delay_ms, 5000);
    assert_true(outer.inner.factor == 1.5);
}

static void
values_are_told_apart_by_what_is_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        const char *text;
        enum lw_option_fault fault;
    } cases[] = {
        { "on", "true", LW_OPTION_FINE },
        { "on", "true # really", LW_OPTION_FINE },
        { "on", "yes", LW_OPTION_WRONG_TYPE },
        { "level", "-2147483648", LW_OPTION_FINE },
        { "level", "-2147483649", LW_OPTION_OUT_OF_RANGE },
        { "level", "99999999999999999999", LW_OPTION_OUT_OF_RANGE },
        { "level", "1x", LW_OPTION_WRONG_TYPE },
        { "level", "", LW_OPTION_WRONG_TYPE },
        { "count", "0", LW_OPTION_OUT_OF_RANGE },
        { "count", "10", LW_OPTION_FINE },
        { "count", "11", LW_OPTION_OUT_OF_RANGE },
        { "count", "all", LW_OPTION_FINE },
        { "bytes", "64", LW_OPTION_NEEDS_UNIT },
        { "bytes", "0", LW_OPTION_FINE },
        { "bytes", "64MiB", LW_OPTION_FINE },
        { "bytes", "64x", LW_OPTION_WRONG_TYPE },
        { "delay", "30", LW_OPTION_NEEDS_UNIT },
        { "delay", "1.5", LW_OPTION_NEEDS_UNIT },
        { "delay", "1m", LW_OPTION_FINE },
        { "delay", "61s", LW_OPTION_OUT_OF_RANGE },
        { "delay", "-1s", LW_OPTION_WRONG_TYPE },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        union lw_option_value value;
        assert_int_equal(lw_option_parse(row_of(cases[i].row), cases[i].text, &value),
                         cases[i].fault);
    }
}

static void
real_numbers_are_finite_and_decimal(void **state)
{
    (void)state;
    union lw_option_value value = { .real = 0 };
    assert_int_equal(lw_option_parse(&inner_rows[1], "2.25", &value), LW_OPTION_FINE);
    assert_true(value.real == 2.25);
    assert_int_equal(lw_option_parse(&inner_rows[1], "nan", &value), LW_OPTION_WRONG_TYPE);
    assert_int_equal(lw_option_parse(&inner_rows[1], "0x10", &value), LW_OPTION_WRONG_TYPE);
    assert_int_equal(lw_option_parse(&inner_rows[1], "1e999", &value), LW_OPTION_WRONG_TYPE);
}

static void
a_stored_value_is_printed_as_it_was_written(void **state)
{
    (void)state;
    static const char *const pairs[][2] = { { "on", "false" },  { "level", "12" },
                                            { "count", "all" }, { "bytes", "3MiB" },
                                            { "name", "x y" },  { "on", "true" } };
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        struct outer outer = { .level = 0 };
        union lw_option_value value;
        struct lw_text text;
        ptrdiff_t offset = 0;
        const struct lw_option *row = lw_option_find(rows, pairs[i][0], &offset);
        assert_int_equal(lw_option_parse(row, pairs[i][1], &value), LW_OPTION_FINE);
        lw_option_store(row, value, &outer, offset);
        lw_text_init(&text);
        lw_option_format(row, &outer, offset, &text);
        assert_string_equal(text.data, pairs[i][1]);
        lw_text_deinit(&text);
    }
}

static void
a_list_is_printed_with_its_own_count(void **state)
{
    (void)state;
    static const int64_t delays[] = { 1000, 60000 };
    struct outer outer = { .delays = delays, .delay_count = 2 };
    struct lw_text text;
    ptrdiff_t offset = 0;
    const struct lw_option *row = lw_option_find(rows, "delays", &offset);
    lw_text_init(&text);
    lw_option_format(row, &outer, offset, &text);
    assert_string_equal(text.data, "[1s, 1m]");
    lw_text_deinit(&text);
}

static void
a_copy_takes_all_fields_and_counts(void **state)
{
    (void)state;
    static const int64_t delays[] = { 1 };
    struct outer from = { .level = 5, .is_off = true, .delays = delays, .delay_count = 1 };
    struct outer to = { .name = "kept?" };
    from.inner.delay_ms = 9;
    from.bytes = 77;
    lw_option_copy(rows, &to, &from);
    assert_int_equal(to.level, 5);
    assert_int_equal(to.inner.delay_ms, 9);
    assert_int_equal(to.bytes, 77);
    assert_int_equal(to.delay_count, 1);
    assert_true(to.is_off);
    assert_null(to.name);
}

static void
a_walk_yields_sections_before_their_keys(void **state)
{
    (void)state;
    static const char *const wanted[] = { "on",          "level",        "count",
                                          "bytes",       "name",         "inner",
                                          "inner.delay", "inner.factor", "delays" };
    struct lw_option_walk walk;
    size_t count = 0;
    lw_option_walk_start(&walk, rows, LW_WALK_STRUCT);
    while (lw_option_walk_next(&walk)) {
        struct lw_text path;
        lw_text_init(&path);
        lw_option_walk_path(&walk, &path);
        assert_string_equal(path.data, wanted[count++]);
        assert_int_equal(walk.level, strchr(path.data, '.') ? 1 : 0);
        lw_text_deinit(&path);
    }
    assert_int_equal(count, sizeof(wanted) / sizeof(wanted[0]));
    assert_false(lw_option_walk_next(&walk));
}

static void
keys_are_found_by_name_and_alias(void **state)
{
    (void)state;
    ptrdiff_t offset = 0;
    assert_ptr_equal(lw_option_find(rows, "number", &offset), &rows[2]);
    assert_int_equal(offset, offsetof(struct outer, count));
    assert_ptr_equal(lw_option_find(rows, "bytes", &offset), &more_rows[0]);
    assert_null(lw_option_find(rows, "delay", &offset));
}

static void
only_near_names_are_suggested(void **state)
{
    (void)state;
    size_t distance = 0;
    assert_string_equal(lw_option_nearest(rows, "levl"), "level");
    assert_string_equal(lw_option_nearest(rows, "coutn"), "count");
    assert_null(lw_option_nearest(rows, "completely"));
    assert_null(lw_option_nearest(rows, "x"));
    assert_true(lw_option_is_near("max_retrys", "max_retries", &distance));
    assert_int_equal(distance, 2);
    assert_false(lw_option_is_near("man", "memory", &distance));
}

static void
types_are_named_for_readers(void **state)
{
    (void)state;
    struct lw_text text;
    lw_text_init(&text);
    lw_option_type_name(row_of("count"), &text);
    assert_string_equal(text.data, "whole number | all");
    lw_text_clear(&text);
    lw_option_type_name(&rows[5], &text);
    assert_string_equal(text.data, "section | none");
    lw_text_deinit(&text);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_reach_sections_and_includes),
        cmocka_unit_test(values_are_told_apart_by_what_is_wrong),
        cmocka_unit_test(real_numbers_are_finite_and_decimal),
        cmocka_unit_test(a_stored_value_is_printed_as_it_was_written),
        cmocka_unit_test(a_list_is_printed_with_its_own_count),
        cmocka_unit_test(a_copy_takes_all_fields_and_counts),
        cmocka_unit_test(a_walk_yields_sections_before_their_keys),
        cmocka_unit_test(keys_are_found_by_name_and_alias),
        cmocka_unit_test(only_near_names_are_suggested),
        cmocka_unit_test(types_are_named_for_readers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
