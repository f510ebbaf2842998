/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recent durations: every one within 1.6 %, quantiles against a sorted array, the ends of the
 * range, and what a new minute forgets.
 */
#include "tests/support/test.h"

#include <stdlib.h>

#include "base/latency.h"

#define MINUTE LW_LATENCY_MINUTE_NS

static struct lw_latency latency;

static int
set_up(void **state)
{
    (void)state;
    latency = (struct lw_latency){ .first = 0 };
    lw_latency_turn(&latency, 10 * MINUTE);
    return 0;
}

static uint64_t
quantile(uint64_t now, double q)
{
    uint64_t ns = UINT64_MAX;
    assert_true(lw_latency_quantile(&latency, now, q, &ns));
    return ns;
}

/* By 1/64, and half of the 1,024 ns that are one unit. */
static void
assert_near(uint64_t told, uint64_t exact)
{
    uint64_t off = told > exact ? told - exact : exact - told;
    assert_true(off <= exact / 64 + 1024);
}

static void
nothing_has_no_quantile(void **state)
{
    (void)state;
    uint64_t ns = 7;
    assert_false(lw_latency_quantile(&latency, 10 * MINUTE, 0.5, &ns));
    assert_int_equal(ns, 7);
}

static void
every_duration_is_told_within_a_sixty_fourth(void **state)
{
    (void)state;
    for (int bit = 10; bit < 42; bit++) {
        for (uint64_t step = 0; step < 100; step++) {
            uint64_t ns = (UINT64_C(1) << bit) + step * (UINT64_C(1) << bit) / 100;
            set_up(NULL);
            lw_latency_add(&latency, ns, 1);
            assert_near(quantile(10 * MINUTE, 0.5), ns);
        }
    }
}

static void
longer_than_the_range_counts_as_its_end(void **state)
{
    (void)state;
    lw_latency_add(&latency, UINT64_MAX, 1);
    assert_near(quantile(10 * MINUTE, 1), (uint64_t)UINT32_MAX << 10);
    lw_latency_add(&latency, 0, 3);
    assert_int_equal(quantile(10 * MINUTE, 0.5), 512);
}

static int
compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void
quantiles_agree_with_a_sorted_array(void **state)
{
    (void)state;
    static uint64_t values[10000];
    uint64_t x = 88172645463325252;
    for (int i = 0; i < 10000; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        values[i] = x >> (24 + i % 30);
        lw_latency_add(&latency, values[i], 1);
    }
    qsort(values, 10000, sizeof values[0], compare);
    static const double quantiles[] = { 0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 1 };
    for (int i = 0; i < 7; i++) {
        assert_near(quantile(10 * MINUTE, quantiles[i]),
                    values[(int)(quantiles[i] * 10000) - 1]);
    }
}

static void
a_count_stands_for_as_many_durations(void **state)
{
    (void)state;
    lw_latency_add(&latency, 1000000, 99);
    lw_latency_add(&latency, 50000000, 1);
    assert_near(quantile(10 * MINUTE, 0.5), 1000000);
    assert_near(quantile(10 * MINUTE, 0.99), 1000000);
    assert_near(quantile(10 * MINUTE, 1), 50000000);
}

static void
the_last_minute_counts_and_the_one_before_it_does_not(void **state)
{
    (void)state;
    uint64_t ns = 0;
    lw_latency_add(&latency, 1000000, 1);
    lw_latency_turn(&latency, 11 * MINUTE);
    lw_latency_add(&latency, 50000000, 1);
    assert_near(quantile(11 * MINUTE, 0), 1000000);
    assert_near(quantile(12 * MINUTE - 1, 1), 50000000);
    lw_latency_turn(&latency, 12 * MINUTE);
    assert_near(quantile(12 * MINUTE, 0), 50000000);
    assert_false(lw_latency_quantile(&latency, 13 * MINUTE, 0.5, &ns));
}

static void
what_is_old_is_not_told_though_no_minute_was_begun_since(void **state)
{
    (void)state;
    uint64_t ns = 0;
    lw_latency_add(&latency, 1000000, 1);
    assert_true(lw_latency_quantile(&latency, 11 * MINUTE, 0.5, &ns));
    assert_false(lw_latency_quantile(&latency, 12 * MINUTE, 0.5, &ns));
}

static void
beginning_a_minute_twice_forgets_nothing(void **state)
{
    (void)state;
    lw_latency_add(&latency, 1000000, 1);
    lw_latency_turn(&latency, 10 * MINUTE + 5);
    assert_near(quantile(10 * MINUTE, 0.5), 1000000);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(nothing_has_no_quantile, set_up),
        cmocka_unit_test_setup(every_duration_is_told_within_a_sixty_fourth, set_up),
        cmocka_unit_test_setup(longer_than_the_range_counts_as_its_end, set_up),
        cmocka_unit_test_setup(quantiles_agree_with_a_sorted_array, set_up),
        cmocka_unit_test_setup(a_count_stands_for_as_many_durations, set_up),
        cmocka_unit_test_setup(the_last_minute_counts_and_the_one_before_it_does_not, set_up),
        cmocka_unit_test_setup(what_is_old_is_not_told_though_no_minute_was_begun_since,
                               set_up),
        cmocka_unit_test_setup(beginning_a_minute_twice_forgets_nothing, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
