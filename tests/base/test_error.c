/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filling errors: every setter may be told that nobody asks, long texts are cut and terminated,
 * setting again clears what an earlier error left.
 */
#include "tests/support/test.h"

#include <string.h>

#include "base/error.h"

static void
error_carries_status_code_and_sentence(void **state)
{
    (void)state;
    struct lw_error error;
    enum lw_status status = lw_error_set(&error, LW_STATUS_CONFIG, "E0104",
                                         "\"%s\" needs a unit", "30");
    assert_int_equal(status, LW_STATUS_CONFIG);
    assert_int_equal(error.status, LW_STATUS_CONFIG);
    assert_string_equal(error.code, "E0104");
    assert_string_equal(error.message, "\"30\" needs a unit");
}

static void
help_and_position_are_added_and_cleared_by_the_next_error(void **state)
{
    (void)state;
    struct lw_error error;
    lw_error_set(&error, LW_STATUS_CONFIG, "E0104", "first");
    lw_error_help(&error, "write %d%s", 30, "s");
    lw_error_at(&error, "my.yaml", 12, 14);
    assert_string_equal(error.help, "write 30s");
    assert_string_equal(error.file, "my.yaml");
    assert_int_equal(error.line * 100 + error.column, 1214);
    lw_error_set(&error, LW_STATUS_SYSTEM, "", "second");
    assert_string_equal(error.help, "");
    assert_string_equal(error.file, "");
    assert_int_equal(error.line, 0);
}

static void
nobody_asking_is_fine(void **state)
{
    (void)state;
    assert_int_equal(lw_error_set(NULL, LW_STATUS_DENIED, "E1", "x"), LW_STATUS_DENIED);
    lw_error_help(NULL, "x");
    lw_error_at(NULL, "x", 1, 1);
}

static void
long_texts_are_cut_and_terminated(void **state)
{
    (void)state;
    struct lw_error error;
    char text[2000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    lw_error_set(&error, LW_STATUS_CONFIG, "E0104TOOLONG", "%s", text);
    lw_error_help(&error, "%s", text);
    lw_error_at(&error, text, 1, 1);
    assert_int_equal(strlen(error.message), sizeof error.message - 1);
    assert_int_equal(strlen(error.help), sizeof error.help - 1);
    assert_int_equal(strlen(error.file), sizeof error.file - 1);
    assert_string_equal(error.code, "E0104TO");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(error_carries_status_code_and_sentence),
        cmocka_unit_test(help_and_position_are_added_and_cleared_by_the_next_error),
        cmocka_unit_test(nobody_asking_is_fine),
        cmocka_unit_test(long_texts_are_cut_and_terminated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
