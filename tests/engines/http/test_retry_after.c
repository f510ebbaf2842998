/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_retry_after.c: the values of Retry-After, in seconds and as the three dates of HTTP, and
 * what is neither.
 */
#include "tests/support/test.h"

#include <string.h>

#include "engines/http/retry_after.h"

#define NOW_MS INT64_C(784111777000) /* Sun, 06 Nov 1994 08:49:37 GMT */

static int64_t
wait_of(const char *value)
{
    int64_t ms = -2;
    return lw_http_retry_after(lw_bytes_of(value), NOW_MS, &ms) ? ms : -1;
}

static void
seconds_are_a_number(void **state)
{
    (void)state;
    assert_int_equal(wait_of("0"), 0);
    assert_int_equal(wait_of("120"), 120000);
    assert_int_equal(wait_of("7 "), 7000);
    assert_int_equal(wait_of("99999999999999999999999"), INT64_C(366) * 24 * 3600 * 1000);
}

static void
dates_come_in_three_forms(void **state)
{
    (void)state;
    assert_int_equal(wait_of("Sun, 06 Nov 1994 08:49:47 GMT"), 10000);
    assert_int_equal(wait_of("Sunday, 06-Nov-94 08:50:37 GMT"), 60000);
    assert_int_equal(wait_of("Sun Nov  6 08:49:38 1994"), 1000);
    assert_int_equal(wait_of("Tue, 29 Nov 1994 08:49:37 GMT"), INT64_C(23) * 86400 * 1000);
    assert_int_equal(wait_of("Wed, 01 Mar 1995 08:49:37 GMT"), INT64_C(115) * 86400 * 1000);
}

static void
what_is_past_is_now(void **state)
{
    (void)state;
    assert_int_equal(wait_of("Sun, 06 Nov 1994 08:49:36 GMT"), 0);
    assert_int_equal(wait_of("Thu, 01 Jan 1970 00:00:00 GMT"), 0);
}

static void
anything_else_is_nothing(void **state)
{
    static const char *const values[] = { "",
                                          "soon",
                                          "-1",
                                          "1.5",
                                          "5s",
                                          "Sun, 06 Foo 1994 08:49:37 GMT",
                                          "Sun, 06 Nov 1994 08:49 GMT",
                                          "Sun, 06 Nov 1994 24:00:00 GMT",
                                          "Sun, 32 Nov 1994 08:49:37 GMT",
                                          "Sun, 06 Nov 1902 08:49:37 GMT",
                                          "Sun, ",
                                          " " };
    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        if (wait_of(values[i]) != -1) {
            fail_msg("\"%s\" is taken for a time", values[i]);
        }
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seconds_are_a_number),
        cmocka_unit_test(dates_come_in_three_forms),
        cmocka_unit_test(what_is_past_is_now),
        cmocka_unit_test(anything_else_is_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
