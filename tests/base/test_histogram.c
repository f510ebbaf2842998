/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The histogram: small values exact, any value within 6.25 %, quantiles against a sorted array,
 * the ends of uint64, merging.
 */
#include "tests/support/test.h"

#include <stdlib.h>

#include "base/histogram.h"

static struct lw_histogram histogram;

static int
set_up(void **state)
{
    (void)state;
    histogram = (struct lw_histogram){ .count = 0 };
    return 0;
}

static void
empty_histogram_answers_zero(void **state)
{
    (void)state;
    assert_int_equal(lw_histogram_quantile(&histogram, 0.5), 0);
}

static void
single_value_is_every_quantile(void **state)
{
    (void)state;
    static const uint64_t values[] = { 0, 1, 15, 16, 17, 1000000007, UINT64_MAX };
    for (int i = 0; i < 7; i++) {
        histogram = (struct lw_histogram){ .count = 0 };
        lw_histogram_add(&histogram, values[i]);
        assert_true(lw_histogram_quantile(&histogram, 0) == values[i]);
        assert_true(lw_histogram_quantile(&histogram, 1) == values[i]);
    }
}

static void
every_value_is_at_most_a_sixteenth_off(void **state)
{
    (void)state;
    for (int bit = 0; bit < 63; bit++) {
        for (uint64_t step = 0; step < 40; step++) {
            uint64_t value = (UINT64_C(1) << bit) + step * (UINT64_C(1) << bit) / 40;
            histogram = (struct lw_histogram){ .count = 0 };
            lw_histogram_add(&histogram, value);
            lw_histogram_add(&histogram, UINT64_MAX);
            uint64_t told = lw_histogram_quantile(&histogram, 0.5);
            assert_true(told >= value && told - value <= value / 16);
        }
    }
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
        values[i] = x >> (20 + i % 40);
        lw_histogram_add(&histogram, values[i]);
    }
    qsort(values, 10000, sizeof values[0], compare);
    static const double quantiles[] = { 0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 1 };
    for (int i = 0; i < 7; i++) {
        uint64_t exact = values[(int)(quantiles[i] * 10000) - 1];
        uint64_t told = lw_histogram_quantile(&histogram, quantiles[i]);
        assert_true(told >= exact && told - exact <= exact / 16);
    }
}

static void
counts_sum_and_largest_are_exact(void **state)
{
    (void)state;
    for (uint64_t i = 1; i <= 100; i++) {
        lw_histogram_add(&histogram, i * 1000);
    }
    assert_int_equal(histogram.count, 100);
    assert_int_equal(histogram.sum, 5050000);
    assert_int_equal(histogram.max, 100000);
    assert_int_equal(lw_histogram_quantile(&histogram, 1), 100000);
}

static void
merging_equals_adding_everything_to_one(void **state)
{
    (void)state;
    struct lw_histogram parts[2] = { { .count = 0 }, { .count = 0 } };
    for (uint64_t i = 0; i < 1000; i++) {
        lw_histogram_add(&histogram, i * i);
        lw_histogram_add(&parts[i % 2], i * i);
    }
    lw_histogram_merge(&parts[0], &parts[1]);
    assert_memory_equal(&parts[0], &histogram, sizeof histogram);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(empty_histogram_answers_zero, set_up),
        cmocka_unit_test_setup(single_value_is_every_quantile, set_up),
        cmocka_unit_test_setup(every_value_is_at_most_a_sixteenth_off, set_up),
        cmocka_unit_test_setup(quantiles_agree_with_a_sorted_array, set_up),
        cmocka_unit_test_setup(counts_sum_and_largest_are_exact, set_up),
        cmocka_unit_test_setup(merging_equals_adding_everything_to_one, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
