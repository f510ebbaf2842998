/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts of the last hour: what leaves it, minute by minute, a steady rate, and a place in the
 * ring that is used again after a long silence.
 */
#include "tests/support/test.h"

#include "base/hourly.h"

#define MINUTE UINT64_C(60000000000)

static void
an_empty_one_counts_nothing_at_any_time(void **state)
{
    (void)state;
    struct lw_hourly hourly = { .counts = { 0 } };
    assert_int_equal(lw_hourly_count(&hourly, 0), 0);
    assert_int_equal(lw_hourly_count(&hourly, 1000 * MINUTE), 0);
}

static void
what_happened_counts_for_an_hour(void **state)
{
    (void)state;
    struct lw_hourly hourly = { .counts = { 0 } };
    lw_hourly_add(&hourly, 1000 * MINUTE);
    lw_hourly_add(&hourly, 1000 * MINUTE + 1);
    assert_int_equal(lw_hourly_count(&hourly, 1000 * MINUTE + 1), 2);
    assert_int_equal(lw_hourly_count(&hourly, 1060 * MINUTE - 1), 2);
    assert_int_equal(lw_hourly_count(&hourly, 1060 * MINUTE), 0);
}

static void
a_steady_rate_is_counted_as_sixty_minutes_of_it(void **state)
{
    (void)state;
    struct lw_hourly hourly = { .counts = { 0 } };
    for (uint64_t minute = 5; minute < 500; minute++) {
        lw_hourly_add(&hourly, minute * MINUTE);
        lw_hourly_add(&hourly, minute * MINUTE + MINUTE - 1);
    }
    assert_int_equal(lw_hourly_count(&hourly, 500 * MINUTE - 1), 120);
    assert_int_equal(lw_hourly_count(&hourly, 529 * MINUTE), 60);
}

static void
a_place_used_again_after_hours_begins_at_nothing(void **state)
{
    (void)state;
    struct lw_hourly hourly = { .counts = { 0 } };
    lw_hourly_add(&hourly, 7 * MINUTE);
    lw_hourly_add(&hourly, 607 * MINUTE);
    assert_int_equal(lw_hourly_count(&hourly, 607 * MINUTE), 1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_one_counts_nothing_at_any_time),
        cmocka_unit_test(what_happened_counts_for_an_hour),
        cmocka_unit_test(a_steady_rate_is_counted_as_sixty_minutes_of_it),
        cmocka_unit_test(a_place_used_again_after_hours_begins_at_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
