/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory: zeroing, overflow, the n-th allocation failing once, the counters, and a foreign
 * allocator taking everything over.
 */
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static void
memory_comes_zeroed(void **state)
{
    (void)state;
    unsigned char *bytes = lw_alloc(1000);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(bytes[i], 0);
    }
    lw_free(bytes);
}

static void
empty_allocations_are_real_ones(void **state)
{
    (void)state;
    void *empty = lw_alloc(0);
    void *copy = lw_copy_bytes(NULL, 0);
    assert_non_null(empty);
    assert_non_null(copy);
    lw_free(empty);
    lw_free(copy);
    lw_free(NULL);
}

static void
array_that_overflows_is_refused(void **state)
{
    (void)state;
    uint64_t live = lw_alloc_live();
    assert_null(lw_alloc_array(SIZE_MAX / 2, 3));
    assert_null(lw_resize_array(NULL, SIZE_MAX / 2, 3));
    assert_null(lw_copy_text_n("", SIZE_MAX));
    assert_int_equal(lw_alloc_live(), live);
}

static void
resizing_keeps_contents_and_counts_as_one_live_piece(void **state)
{
    (void)state;
    uint64_t live = lw_alloc_live();
    char *text = lw_resize_array(NULL, 4, 1);
    memcpy(text, "abc", 4);
    text = lw_resize_array(text, 4000, 1);
    assert_string_equal(text, "abc");
    assert_int_equal(lw_alloc_live(), live + 1);
    lw_free(text);
    assert_int_equal(lw_alloc_live(), live);
}

static void
nth_allocation_fails_once(void **state)
{
    (void)state;
    void *kept[4];
    lw_alloc_fail_at(3);
    for (int i = 0; i < 4; i++) {
        kept[i] = lw_alloc(8);
        assert_int_equal(kept[i] == NULL, i == 2);
    }
    for (int i = 0; i < 4; i++) {
        lw_free(kept[i]);
    }
}

static void
failed_resize_leaves_the_old_piece(void **state)
{
    (void)state;
    uint64_t live = lw_alloc_live();
    char *text = lw_copy_text("kept");
    lw_alloc_fail_at(1);
    assert_null(lw_resize_array(text, 100, 1));
    assert_string_equal(text, "kept");
    lw_free(text);
    assert_int_equal(lw_alloc_live(), live);
}

static void
switching_off_lets_everything_succeed(void **state)
{
    (void)state;
    lw_alloc_fail_at(1);
    lw_alloc_fail_at(0);
    void *pointer = lw_alloc(8);
    assert_non_null(pointer);
    lw_free(pointer);
}

static void
copies_of_text_are_terminated(void **state)
{
    (void)state;
    char *part = lw_copy_text_n("abcdef", 3);
    assert_string_equal(part, "abc");
    assert_null(lw_copy_text(NULL));
    lw_free(part);
}

static unsigned foreign_calls;

static void *
foreign_alloc(size_t size, void *user)
{
    assert_ptr_equal(user, &foreign_calls);
    foreign_calls++;
    void *pointer = malloc(size);
    memset(pointer, 0xaa, size);
    return pointer;
}

static void *
foreign_resize(void *pointer, size_t size, void *user)
{
    (void)user;
    foreign_calls++;
    return realloc(pointer, size);
}

static void
foreign_free(void *pointer, void *user)
{
    (void)user;
    foreign_calls++;
    free(pointer);
}

static void
foreign_allocator_serves_everything_and_memory_is_still_zeroed(void **state)
{
    (void)state;
    struct lw_allocator foreign = { foreign_alloc, foreign_resize, foreign_free,
                                    &foreign_calls };
    lw_allocator_set(&foreign);
    char *bytes = lw_alloc(16);
    assert_int_equal(bytes[15], 0);
    bytes = lw_resize_array(bytes, 32, 1);
    lw_free(bytes);
    assert_int_equal(foreign_calls, 3);
    lw_allocator_set(&(struct lw_allocator){ .user = NULL });
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_comes_zeroed),
        cmocka_unit_test(empty_allocations_are_real_ones),
        cmocka_unit_test(array_that_overflows_is_refused),
        cmocka_unit_test(resizing_keeps_contents_and_counts_as_one_live_piece),
        cmocka_unit_test(nth_allocation_fails_once),
        cmocka_unit_test(failed_resize_leaves_the_old_piece),
        cmocka_unit_test(switching_off_lets_everything_succeed),
        cmocka_unit_test(copies_of_text_are_terminated),
        cmocka_unit_test(foreign_allocator_serves_everything_and_memory_is_still_zeroed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
