/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growing text and looking at text: appends and formats of every size, failed allocations that
 * are remembered, UTF-8 edges, patterns, distances.
 */
#include "tests/support/test.h"

#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

static void
appends_build_one_terminated_text(void **state)
{
    (void)state;
    struct lw_text text;
    lw_text_init(&text);
    lw_text_append(&text, "a");
    lw_text_append_char(&text, 'b');
    lw_text_append_bytes(&text, "cd", 1);
    lw_text_format(&text, "%d-%s", 42, "x");
    assert_string_equal(text.data, "abc42-x");
    assert_int_equal(text.size, 7);
    lw_text_deinit(&text);
}

static void
format_that_just_fits_or_just_does_not_is_whole(void **state)
{
    (void)state;
    for (int length = 50; length < 200; length++) {
        struct lw_text text;
        lw_text_init(&text);
        lw_text_append(&text, "0123456789");
        lw_text_format(&text, "%0*d", length, 7);
        assert_int_equal(text.size, 10 + length);
        assert_int_equal(strlen(text.data), text.size);
        assert_int_equal(text.data[text.size - 1], '7');
        lw_text_deinit(&text);
    }
}

static void
cleared_text_is_empty_and_keeps_its_memory(void **state)
{
    (void)state;
    struct lw_text text;
    lw_text_init(&text);
    lw_text_append(&text, "something");
    uint64_t count = lw_alloc_count();
    lw_text_clear(&text);
    assert_string_equal(text.data, "");
    lw_text_append(&text, "else");
    assert_string_equal(text.data, "else");
    assert_int_equal(lw_alloc_count(), count);
    lw_text_deinit(&text);
}

static void
failed_allocation_is_remembered_and_ends_in_null(void **state)
{
    (void)state;
    uint64_t live = lw_alloc_live();
    struct lw_text text;
    for (uint64_t nth = 1; nth <= 3; nth++) {
        lw_text_init(&text);
        lw_alloc_fail_at(nth);
        for (int i = 0; i < 40; i++) {
            lw_text_append(&text, "0123456789");
            lw_text_format(&text, "%d", i);
        }
        assert_true(text.is_failed);
        assert_int_equal(text.data ? strlen(text.data) : 0, text.size);
        assert_null(lw_text_take(&text));
    }
    assert_int_equal(lw_alloc_live(), live);
}

static void
taken_text_belongs_to_the_caller_even_when_empty(void **state)
{
    (void)state;
    struct lw_text text;
    lw_text_init(&text);
    char *empty = lw_text_take(&text);
    lw_text_append(&text, "full");
    char *full = lw_text_take(&text);
    assert_string_equal(empty, "");
    assert_string_equal(full, "full");
    assert_null(text.data);
    lw_free(empty);
    lw_free(full);
}

static void
copy_cuts_and_terminates(void **state)
{
    (void)state;
    char out[4] = "zzz";
    lw_text_copy(out, sizeof out, "abcdef");
    assert_string_equal(out, "abc");
    lw_text_copy(out, sizeof out, "");
    assert_string_equal(out, "");
    lw_text_copy(out, 0, "abc");
    assert_string_equal(out, "");
}

static void
null_bytes_equal_only_null(void **state)
{
    (void)state;
    struct lw_bytes null = { NULL, 0 };
    struct lw_bytes empty = lw_bytes_of("");
    assert_true(lw_bytes_is_equal(null, null));
    assert_false(lw_bytes_is_equal(null, empty));
    assert_true(lw_bytes_is_equal(empty, (struct lw_bytes){ "x", 0 }));
    assert_true(lw_text_is_equal(lw_bytes_of("abc"), "abc"));
    assert_false(lw_text_is_equal(lw_bytes_of("abc"), "abd"));
    assert_false(lw_text_is_equal(lw_bytes_of("abc"), "ab"));
}

static void
utf8_is_told_from_what_only_looks_like_it(void **state)
{
    (void)state;
    static const char *const valid[] = { "",
                                         "ascii",
                                         "\xc3\xa9",
                                         "\xe2\x82\xac",
                                         "\xf0\x9f\x9a\x80",
                                         "\xef\xbf\xbf",
                                         "\xf4\x8f\xbf\xbf",
                                         "\xed\x9f\xbf",
                                         "\xee\x80\x80" };
    static const char *const broken[] = {
        "\x80",         "\xc3",         "\xc0\xaf",         "\xc1\xbf",
        "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
        "\xf5\x80",     "\xe2\x82",     "\xe2\x28\xa1",     "a\xff",
        "\xe2\x82\x28",
    };
    for (size_t i = 0; i < sizeof valid / sizeof valid[0]; i++) {
        assert_true(lw_text_is_utf8(valid[i], strlen(valid[i])));
    }
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        assert_false(lw_text_is_utf8(broken[i], strlen(broken[i])));
    }
    assert_true(lw_text_is_utf8("a\0b", 3));
}

static void
patterns_match_as_in_a_shell(void **state)
{
    (void)state;
    static const char *const yes[][2] = {
        { "", "" },
        { "*", "" },
        { "a*c", "abbbc" },
        { "a?c", "abc" },
        { "*_dead", "a_dead_dead" },
        { "**", "x" },
        { "a*b*c", "a-b-b-c" },
        { "*a*", "bab" },
    };
    static const char *const no[][2] = {
        { "", "a" },       { "?", "" },       { "a*c", "abbbd" },
        { "abc", "abcd" }, { "abcd", "abc" }, { "*_dead", "a_dead2" },
    };
    for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++) {
        assert_true(lw_text_is_match(yes[i][0], yes[i][1]));
    }
    for (size_t i = 0; i < sizeof no / sizeof no[0]; i++) {
        assert_false(lw_text_is_match(no[i][0], no[i][1]));
    }
}

static void
distance_counts_edits_and_swapped_neighbours(void **state)
{
    (void)state;
    static const struct {
        const char *a;
        const char *b;
        size_t distance;
    } rows[] = {
        { "", "", 0 },          { "", "abc", 3 },      { "abc", "", 3 },
        { "chek", "check", 1 }, { "abcd", "acbd", 1 }, { "kitten", "sitting", 3 },
        { "ca", "abc", 3 },     { "run", "urn", 1 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(lw_text_distance(rows[i].a, rows[i].b), rows[i].distance);
        assert_int_equal(lw_text_distance(rows[i].b, rows[i].a), rows[i].distance);
    }
}

static void
distance_of_very_long_texts_is_bounded_by_their_beginning(void **state)
{
    (void)state;
    char a[500];
    char b[500];
    memset(a, 'a', sizeof a - 1);
    memset(b, 'b', sizeof b - 1);
    a[sizeof a - 1] = b[sizeof b - 1] = '\0';
    assert_int_equal(lw_text_distance(a, b), 127);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appends_build_one_terminated_text),
        cmocka_unit_test(format_that_just_fits_or_just_does_not_is_whole),
        cmocka_unit_test(cleared_text_is_empty_and_keeps_its_memory),
        cmocka_unit_test(failed_allocation_is_remembered_and_ends_in_null),
        cmocka_unit_test(taken_text_belongs_to_the_caller_even_when_empty),
        cmocka_unit_test(copy_cuts_and_terminates),
        cmocka_unit_test(null_bytes_equal_only_null),
        cmocka_unit_test(utf8_is_told_from_what_only_looks_like_it),
        cmocka_unit_test(patterns_match_as_in_a_shell),
        cmocka_unit_test(distance_counts_edits_and_swapped_neighbours),
        cmocka_unit_test(distance_of_very_long_texts_is_bounded_by_their_beginning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
