/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and exit codes of statuses (sysexits, and ours: 75 unfinished, 79 stopped by policy),
 * the version, views of text.
 */
#include "tests/support/test.h"

#include <string.h>

#include <laneway/laneway.h>

static void
every_status_has_a_name_of_its_own(void **state)
{
    (void)state;
    for (int i = LW_STATUS_OK; i <= LW_STATUS_INTERNAL; i++) {
        assert_true(strlen(lw_status_name((enum lw_status)i)) > 1);
        for (int j = LW_STATUS_OK; j < i; j++) {
            assert_string_not_equal(lw_status_name((enum lw_status)i),
                                    lw_status_name((enum lw_status)j));
        }
    }
    assert_string_equal(lw_status_name(LW_STATUS_TOO_LARGE), "too_large");
    assert_string_equal(lw_status_name((enum lw_status)1000), "internal");
}

static int
exit_code(enum lw_status status)
{
    struct lw_error error = { .status = status };
    return lw_error_exit_code(&error);
}

static void
exit_codes_are_those_of_sysexits_and_ours(void **state)
{
    (void)state;
    assert_int_equal(lw_error_exit_code(NULL), 0);
    assert_int_equal(exit_code(LW_STATUS_OK), 0);
    assert_int_equal(exit_code(LW_STATUS_INVALID), 64);
    assert_int_equal(exit_code(LW_STATUS_NOT_FOUND), 66);
    assert_int_equal(exit_code(LW_STATUS_UNAVAILABLE), 69);
    assert_int_equal(exit_code(LW_STATUS_INTERNAL), 70);
    assert_int_equal(exit_code(LW_STATUS_NO_MEMORY), 71);
    assert_int_equal(exit_code(LW_STATUS_UNFINISHED), 75);
    assert_int_equal(exit_code(LW_STATUS_DENIED), 77);
    assert_int_equal(exit_code(LW_STATUS_CONFIG), 78);
    assert_int_equal(exit_code(LW_STATUS_STOPPED), 79);
}

static void
no_failure_ends_with_zero(void **state)
{
    (void)state;
    for (int i = LW_STATUS_OK + 1; i <= LW_STATUS_INTERNAL; i++) {
        assert_int_not_equal(exit_code((enum lw_status)i), 0);
    }
}

static void
version_of_the_library_is_that_of_the_header(void **state)
{
    (void)state;
    assert_string_equal(lw_version(), LW_VERSION_STRING);
}

static void
view_of_nothing_is_null_and_view_of_empty_is_not(void **state)
{
    (void)state;
    assert_null(lw_bytes_of(NULL).data);
    assert_non_null(lw_bytes_of("").data);
    assert_int_equal(lw_bytes_of("abc").size, 3);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_a_name_of_its_own),
        cmocka_unit_test(exit_codes_are_those_of_sysexits_and_ours),
        cmocka_unit_test(no_failure_ends_with_zero),
        cmocka_unit_test(version_of_the_library_is_that_of_the_header),
        cmocka_unit_test(view_of_nothing_is_null_and_view_of_empty_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
