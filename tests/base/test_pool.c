/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools: bound, growth in chunks, first-in-first-out reuse, stable addresses and indexes, and
 * that what an object carries besides its first pointer survives being free.
 */
#include "tests/support/test.h"

#include "base/alloc.h"
#include "base/pool.h"

struct thing {
    struct lw_queue_node link;
    uint32_t index;
    uint32_t serial;
    char rest[112];
};

static struct lw_pool pool;

static void
on_new(void *object, uint32_t index, void *user)
{
    struct thing *thing = object;
    thing->index = index;
    *(unsigned *)user += 1;
}

static unsigned made;

static int
set_up(void **state)
{
    (void)state;
    made = 0;
    return lw_pool_init(&pool, sizeof(struct thing), 10, 4, on_new, &made) != LW_STATUS_OK;
}

static int
tear_down(void **state)
{
    (void)state;
    lw_pool_deinit(&pool);
    return 0;
}

static void
pool_gives_up_to_its_bound_and_no_more(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) {
        assert_non_null(lw_pool_take(&pool));
    }
    assert_null(lw_pool_take(&pool));
    assert_int_equal(pool.taken_count, 10);
    assert_int_equal(made, 10);
}

static void
pool_grows_by_chunks_only_when_it_is_empty(void **state)
{
    (void)state;
    void *object = lw_pool_take(&pool);
    assert_int_equal(pool.count, 4);
    lw_pool_give(&pool, object);
    for (int i = 0; i < 4; i++) {
        assert_non_null(lw_pool_take(&pool));
    }
    assert_int_equal(pool.count, 4);
    assert_non_null(lw_pool_take(&pool));
    assert_int_equal(pool.count, 8);
}

static void
object_is_reused_as_late_as_possible(void **state)
{
    (void)state;
    void *first = lw_pool_take(&pool);
    lw_pool_give(&pool, first);
    for (int i = 0; i < 3; i++) {
        void *other = lw_pool_take(&pool);
        assert_ptr_not_equal(other, first);
        lw_pool_give(&pool, other);
    }
    assert_ptr_equal(lw_pool_take(&pool), first);
}

static void
objects_keep_their_address_index_and_serial(void **state)
{
    (void)state;
    struct thing *things[10];
    for (uint32_t i = 0; i < 10; i++) {
        things[i] = lw_pool_take(&pool);
        things[i]->serial = 100 + things[i]->index;
    }
    for (uint32_t i = 0; i < 10; i++) {
        lw_pool_give(&pool, things[i]);
        assert_ptr_equal(lw_pool_at(&pool, things[i]->index), things[i]);
        assert_int_equal(things[i]->serial, 100 + things[i]->index);
    }
    assert_null(lw_pool_at(&pool, 10));
}

static void
objects_of_whole_cache_lines_are_aligned_to_them(void **state)
{
    (void)state;
    assert_int_equal(sizeof(struct thing) % 64, 0);
    for (int i = 0; i < 10; i++) {
        assert_int_equal((uintptr_t)lw_pool_take(&pool) % 64, 0);
    }
}

static void
reserved_objects_are_taken_without_allocating(void **state)
{
    (void)state;
    assert_int_equal(lw_pool_reserve(&pool, 10), LW_STATUS_OK);
    uint64_t before = lw_alloc_count();
    while (lw_pool_take(&pool)) {
    }
    assert_int_equal(lw_alloc_count(), before);
    assert_int_equal(lw_pool_reserve(&pool, 11), LW_STATUS_TOO_LARGE);
}

static void
lack_of_memory_is_refused_and_can_pass(void **state)
{
    (void)state;
    lw_alloc_fail_at(1);
    assert_null(lw_pool_take(&pool));
    assert_non_null(lw_pool_take(&pool));
    struct lw_pool other;
    lw_alloc_fail_at(1);
    assert_int_equal(lw_pool_init(&other, 64, 8, 8, NULL, NULL), LW_STATUS_NO_MEMORY);
    lw_pool_deinit(&other);
}

static void
deinit_frees_everything(void **state)
{
    (void)state;
    uint64_t before = lw_alloc_live();
    struct lw_pool other;
    assert_int_equal(lw_pool_init(&other, 24, 1000, 64, NULL, NULL), LW_STATUS_OK);
    assert_int_equal(lw_pool_reserve(&other, 1000), LW_STATUS_OK);
    lw_pool_deinit(&other);
    assert_int_equal(lw_alloc_live(), before);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pool_gives_up_to_its_bound_and_no_more, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(pool_grows_by_chunks_only_when_it_is_empty, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(object_is_reused_as_late_as_possible, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(objects_keep_their_address_index_and_serial, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(objects_of_whole_cache_lines_are_aligned_to_them,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(reserved_objects_are_taken_without_allocating, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(lack_of_memory_is_refused_and_can_pass, set_up,
                                        tear_down),
        cmocka_unit_test(deinit_frees_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
