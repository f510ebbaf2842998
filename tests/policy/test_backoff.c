/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Backoff as tables: the defaults in place and for republication, caps, jitter, the largest n,
 * and the tiers that come of it.
 */
#include "tests/support/test.h"

#include <stdbool.h>

#include "policy/backoff.h"

#define MINUTE INT64_C(60000)

static const struct lw_backoff IN_PLACE = { 1000, 2, 30000, 200 };
static const struct lw_backoff REPUBLISH = { 1000, 2, 5 * MINUTE, 0 };

static void
delay_doubles_up_to_its_cap(void **state)
{
    (void)state;
    static const int64_t expected[] = { 1000,  2000,   4000,   8000,   16000, 32000,
                                        64000, 128000, 256000, 300000, 300000 };
    for (uint32_t n = 1; n <= 11; n++) {
        assert_int_equal(lw_backoff_ms(&REPUBLISH, n, 12345), expected[n - 1]);
    }
}

static void
no_number_of_retries_overflows(void **state)
{
    (void)state;
    static const uint32_t numbers[] = { 32, 63, 64, 65, 1024, 1U << 31, UINT32_MAX };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        assert_int_equal(lw_backoff_ms(&REPUBLISH, numbers[i], 0), 5 * MINUTE);
    }
    assert_int_equal(lw_backoff_ms(&REPUBLISH, 0, 0), 1000);
}

static void
jitter_is_only_added_and_never_more_than_asked(void **state)
{
    (void)state;
    bool has_zero = false;
    bool has_all = false;
    for (uint64_t random = 0; random < 1000; random++) {
        int64_t delay_ms = lw_backoff_ms(&IN_PLACE, 1, random);
        assert_in_range(delay_ms, 1000, 1200);
        has_zero |= delay_ms == 1000;
        has_all |= delay_ms == 1200;
    }
    assert_true(has_zero && has_all);
    assert_in_range(lw_backoff_ms(&IN_PLACE, 9, UINT64_MAX), 30000, 30200);
}

static void
fraction_as_multiplier_grows_exactly(void **state)
{
    (void)state;
    static const struct lw_backoff slow = { 1000, 1.5, 100000, 0 };
    static const int64_t expected[] = { 1000, 1500, 2250, 3375, 5062 };
    for (uint32_t n = 1; n <= 5; n++) {
        assert_int_equal(lw_backoff_ms(&slow, n, 0), expected[n - 1]);
    }
}

static void
odd_options_give_odd_but_bounded_delays(void **state)
{
    (void)state;
    static const struct {
        struct lw_backoff backoff;
        int64_t first;
        int64_t later;
    } cases[] = {
        { { 0, 2, 1000, 0 }, 0, 0 },
        { { 5000, 2, 1000, 0 }, 1000, 1000 },
        { { 5000, 1, 60000, 0 }, 5000, 5000 },
        { { 5000, 0, 60000, 0 }, 5000, 5000 },
        { { -5, 2, 1000, -5 }, 0, 0 },
        { { 1000, 2, -1, 0 }, 0, 0 },
        { { INT64_MAX, 10, INT64_MAX, INT64_MAX }, LW_DELAY_MAX_MS, LW_DELAY_MAX_MS },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(lw_backoff_ms(&cases[i].backoff, 1, 7), cases[i].first);
        assert_int_equal(lw_backoff_ms(&cases[i].backoff, 50, 7), cases[i].later);
    }
}

static void
multiplier_that_is_no_number_counts_as_one(void **state)
{
    (void)state;
    struct lw_backoff backoff = { 1000, __builtin_nan(""), 60000, 0 };
    assert_int_equal(lw_backoff_ms(&backoff, 1, 0), 1000);
    assert_int_equal(lw_backoff_ms(&backoff, 100, 0), 1000);
    backoff.multiplier = __builtin_inf();
    assert_int_equal(lw_backoff_ms(&backoff, 1, 0), 1000);
    assert_int_equal(lw_backoff_ms(&backoff, 2, 0), 60000);
}

static void
tiers_are_the_distinct_steps(void **state)
{
    (void)state;
    static const int64_t expected[] = { 1000,  2000,  4000,   8000,   16000,
                                        32000, 64000, 128000, 256000, 300000 };
    int64_t steps[32];
    assert_int_equal(lw_backoff_steps(&REPUBLISH, steps, 32), 10);
    assert_memory_equal(steps, expected, sizeof(expected));
}

static void
constant_backoff_is_one_tier(void **state)
{
    (void)state;
    static const struct lw_backoff constant = { 30000, 1, 60000, 5000 };
    int64_t steps[4];
    assert_int_equal(lw_backoff_steps(&constant, steps, 4), 1);
    assert_int_equal(steps[0], 30000);
    assert_int_equal(lw_backoff_steps(&constant, steps, 0), 0);
}

static void
too_many_steps_end_with_the_longest_delay(void **state)
{
    (void)state;
    static const int64_t expected[] = { 1000, 2000, 300000 };
    static const struct lw_backoff creeping = { 1, 1.0000001, 60000, 0 };
    int64_t steps[3];
    assert_int_equal(lw_backoff_steps(&REPUBLISH, steps, 3), 3);
    assert_memory_equal(steps, expected, sizeof(expected));
    size_t count = lw_backoff_steps(&creeping, steps, 3);
    assert_int_equal(steps[count - 1], 60000);
}

static void
every_delay_is_rounded_up_to_a_tier(void **state)
{
    (void)state;
    static const int64_t tiers[] = { 1000, 30000, 300000 };
    static const int64_t cases[][2] = {
        { 0, 1000 },      { 1000, 1000 },     { 1001, 30000 },
        { 30000, 30000 }, { 300000, 300000 }, { 999999, 300000 }
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(lw_backoff_tier(tiers, 3, cases[i][0]), cases[i][1]);
    }
    assert_int_equal(lw_backoff_tier(NULL, 0, 5000), 5000);
}

static void
every_step_of_a_backoff_has_its_own_tier(void **state)
{
    (void)state;
    int64_t steps[32];
    size_t count = lw_backoff_steps(&REPUBLISH, steps, 32);
    for (uint32_t n = 1; n < 100; n++) {
        int64_t delay_ms = lw_backoff_ms(&REPUBLISH, n, 0);
        assert_int_equal(lw_backoff_tier(steps, count, delay_ms), delay_ms);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(delay_doubles_up_to_its_cap),
        cmocka_unit_test(no_number_of_retries_overflows),
        cmocka_unit_test(jitter_is_only_added_and_never_more_than_asked),
        cmocka_unit_test(fraction_as_multiplier_grows_exactly),
        cmocka_unit_test(odd_options_give_odd_but_bounded_delays),
        cmocka_unit_test(multiplier_that_is_no_number_counts_as_one),
        cmocka_unit_test(tiers_are_the_distinct_steps),
        cmocka_unit_test(constant_backoff_is_one_tier),
        cmocka_unit_test(too_many_steps_end_with_the_longest_delay),
        cmocka_unit_test(every_delay_is_rounded_up_to_a_tier),
        cmocka_unit_test(every_step_of_a_backoff_has_its_own_tier),
    };
    return cmocka_run_group_tests_name("policy.backoff", tests, NULL, NULL);
}
