/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays of members: what is given back is taken again, only for about its size, and what is kept
 * has a bound.
 */
#include "tests/support/test.h"

#include <string.h>

#include "base/alloc.h"
#include "brokers/pulsar/arrays.h"

static void
an_array_that_was_given_back_is_taken_again_without_an_allocation(void **state)
{
    (void)state;
    struct lw_pulsar_arrays arrays = { .spare_bytes = 0 };
    void *first = lw_pulsar_arrays_take(&arrays, 3000);
    lw_pulsar_arrays_give(&arrays, first);
    assert_int_equal(arrays.spare_bytes, 4096);
    uint64_t count = lw_alloc_count();
    assert_ptr_equal(lw_pulsar_arrays_take(&arrays, 4096), first);
    assert_int_equal(lw_alloc_count(), count);
    assert_int_equal(arrays.spare_bytes, 0);
    lw_pulsar_arrays_give(&arrays, first);
    lw_pulsar_arrays_deinit(&arrays);
}

static void
an_array_holds_what_was_asked_for_and_is_aligned(void **state)
{
    (void)state;
    struct lw_pulsar_arrays arrays = { .spare_bytes = 0 };
    const size_t sizes[] = { 1, 32, 33, 64, 65, 524288, 524289, 3000000 };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        void *array = lw_pulsar_arrays_take(&arrays, sizes[i]);
        assert_non_null(array);
        assert_int_equal((uintptr_t)array % 16, 0);
        memset(array, 0x5a, sizes[i]);
        lw_pulsar_arrays_give(&arrays, array);
    }
    lw_pulsar_arrays_deinit(&arrays);
}

static void
a_large_array_does_not_serve_a_small_batch(void **state)
{
    (void)state;
    struct lw_pulsar_arrays arrays = { .spare_bytes = 0 };
    void *large = lw_pulsar_arrays_take(&arrays, 100000);
    lw_pulsar_arrays_give(&arrays, large);
    void *small = lw_pulsar_arrays_take(&arrays, 100);
    assert_ptr_not_equal(small, large);
    lw_pulsar_arrays_give(&arrays, small);
    lw_pulsar_arrays_deinit(&arrays);
}

static void
no_more_than_the_bound_is_kept_and_the_largest_never(void **state)
{
    (void)state;
    enum { COUNT = 20, BYTES = 400000 };
    struct lw_pulsar_arrays arrays = { .spare_bytes = 0 };
    uint64_t live = lw_alloc_live();
    void *taken[COUNT];
    for (int i = 0; i < COUNT; i++) {
        taken[i] = lw_pulsar_arrays_take(&arrays, i == 0 ? 600000 : BYTES);
    }
    for (int i = 0; i < COUNT; i++) {
        lw_pulsar_arrays_give(&arrays, taken[i]);
        assert_in_range(arrays.spare_bytes, 0, LW_PULSAR_SPARE_ARRAY_BYTES_MAX);
    }
    assert_int_equal(lw_alloc_live() - live, LW_PULSAR_SPARE_ARRAY_BYTES_MAX / 524288);
    lw_pulsar_arrays_deinit(&arrays);
    assert_int_equal(lw_alloc_live(), live);
}

static void
lack_of_memory_gives_none(void **state)
{
    (void)state;
    struct lw_pulsar_arrays arrays = { .spare_bytes = 0 };
    lw_alloc_fail_at(1);
    assert_null(lw_pulsar_arrays_take(&arrays, 100));
    lw_alloc_fail_at(0);
    assert_null(lw_pulsar_arrays_take(&arrays, SIZE_MAX - 8));
    lw_pulsar_arrays_deinit(&arrays);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_array_that_was_given_back_is_taken_again_without_an_allocation),
        cmocka_unit_test(an_array_holds_what_was_asked_for_and_is_aligned),
        cmocka_unit_test(a_large_array_does_not_serve_a_small_batch),
        cmocka_unit_test(no_more_than_the_bound_is_kept_and_the_largest_never),
        cmocka_unit_test(lack_of_memory_gives_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
