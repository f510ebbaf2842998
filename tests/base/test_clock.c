/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clocks: monotonic time does not go back and counts nanoseconds like the kernel's, wall time
 * counts milliseconds since 1970, seeds differ and are never 0 (0 means "choose one").
 */
#include "tests/support/test.h"

#include <time.h>

#include "base/clock.h"

static void
monotonic_time_is_the_kernels_and_does_not_go_back(void **state)
{
    (void)state;
    struct timespec kernel;
    uint64_t before = lw_clock_monotonic_ns();
    clock_gettime(CLOCK_MONOTONIC, &kernel);
    uint64_t after = lw_clock_monotonic_ns();
    uint64_t between = (uint64_t)kernel.tv_sec * 1000000000 + (uint64_t)kernel.tv_nsec;
    assert_true(before <= between && between <= after);
}

static void
wall_time_counts_milliseconds_since_1970(void **state)
{
    (void)state;
    int64_t before = (int64_t)time(NULL) * 1000 - 1000;
    int64_t wall_ms = lw_clock_wall_ms();
    int64_t after = ((int64_t)time(NULL) + 1) * 1000;
    assert_true(before <= wall_ms && wall_ms <= after);
}

static void
seeds_differ_and_are_not_zero(void **state)
{
    (void)state;
    uint64_t seed = lw_clock_seed();
    assert_true(seed != 0);
    assert_true(lw_clock_seed() != seed);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(monotonic_time_is_the_kernels_and_does_not_go_back),
        cmocka_unit_test(wall_time_counts_milliseconds_since_1970),
        cmocka_unit_test(seeds_differ_and_are_not_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
