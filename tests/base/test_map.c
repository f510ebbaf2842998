/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of names: null bytes in keys, replacing, removal that must not hide followers (random
 * operations against a plain array), walking, lack of memory.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/map.h"

static struct lw_map map;
static int values[2048];

static int
set_up(void **state)
{
    (void)state;
    lw_map_init(&map, 5);
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    lw_map_deinit(&map);
    return 0;
}

static void
set(const char *key, void *value)
{
    assert_int_equal(lw_map_set(&map, lw_bytes_of(key), value), LW_STATUS_OK);
}

static void
empty_map_has_nothing(void **state)
{
    (void)state;
    assert_null(lw_map_get(&map, lw_bytes_of("a")));
    assert_null(lw_map_remove(&map, lw_bytes_of("a")));
    assert_null(lw_map_next(&map, NULL));
}

static void
value_is_found_replaced_and_removed(void **state)
{
    (void)state;
    set("a", &values[1]);
    set("a", &values[2]);
    assert_int_equal(map.count, 1);
    assert_ptr_equal(lw_map_get(&map, lw_bytes_of("a")), &values[2]);
    assert_ptr_equal(lw_map_remove(&map, lw_bytes_of("a")), &values[2]);
    assert_null(lw_map_get(&map, lw_bytes_of("a")));
    assert_int_equal(map.count, 0);
}

static void
keys_are_copied_and_compared_as_bytes(void **state)
{
    (void)state;
    char key[] = "ab";
    struct lw_bytes with_zero = { "a\0b", 3 };
    set(key, &values[1]);
    key[0] = 'x';
    assert_int_equal(lw_map_set(&map, with_zero, &values[2]), LW_STATUS_OK);
    set("a", &values[3]);
    set("", &values[4]);
    assert_ptr_equal(lw_map_get(&map, lw_bytes_of("ab")), &values[1]);
    assert_ptr_equal(lw_map_get(&map, with_zero), &values[2]);
    assert_ptr_equal(lw_map_get(&map, lw_bytes_of("a")), &values[3]);
    assert_ptr_equal(lw_map_get(&map, lw_bytes_of("")), &values[4]);
    assert_null(lw_map_get(&map, lw_bytes_of("xb")));
}

static void
walk_meets_each_entry_once(void **state)
{
    (void)state;
    static unsigned met[500];
    for (int i = 0; i < 500; i++) {
        char key[16];
        snprintf(key, sizeof key, "key-%d", i);
        set(key, &values[i]);
    }
    const struct lw_map_entry *entry = NULL;
    while ((entry = lw_map_next(&map, entry))) {
        met[(int *)entry->value - values]++;
    }
    for (int i = 0; i < 500; i++) {
        assert_int_equal(met[i], 1);
    }
}

/* 2,000 keys, 60,000 random changes, every key looked up after each thousand of them. */
static void
random_changes_agree_with_a_plain_array(void **state)
{
    (void)state;
    static bool is_there[2000];
    uint64_t x = 42;
    for (int step = 1; step <= 60000; step++) {
        x = x * UINT64_C(6364136223846793005) + 1442695040888963407;
        unsigned i = (unsigned)(x >> 33) % 2000;
        char key[16];
        snprintf(key, sizeof key, "k%u", i);
        if (x >> 63) {
            set(key, &values[i]);
            is_there[i] = true;
        } else {
            assert_ptr_equal(lw_map_remove(&map, lw_bytes_of(key)),
                             is_there[i] ? &values[i] : NULL);
            is_there[i] = false;
        }
        for (unsigned j = 0; step % 1000 == 0 && j < 2000; j++) {
            snprintf(key, sizeof key, "k%u", j);
            assert_ptr_equal(lw_map_get(&map, lw_bytes_of(key)),
                             is_there[j] ? &values[j] : NULL);
        }
    }
}

static void
lack_of_memory_leaves_the_map_as_it_was(void **state)
{
    (void)state;
    char key[16];
    unsigned failures = 0;
    for (int i = 0; i < 200; i++) {
        snprintf(key, sizeof key, "k%d", i);
        for (uint64_t nth = 1; nth <= 2; nth++) {
            lw_alloc_fail_at(nth);
            if (lw_map_set(&map, lw_bytes_of(key), &values[i]) == LW_STATUS_NO_MEMORY) {
                failures++;
                assert_int_equal(map.count, i);
                assert_null(lw_map_get(&map, lw_bytes_of(key)));
            }
        }
        lw_alloc_fail_at(0);
        set(key, &values[i]);
    }
    assert_true(failures > 200);
    for (int i = 0; i < 200; i++) {
        snprintf(key, sizeof key, "k%d", i);
        assert_ptr_equal(lw_map_get(&map, lw_bytes_of(key)), &values[i]);
    }
}

static void
deinit_frees_all_keys(void **state)
{
    (void)state;
    uint64_t live = lw_alloc_live();
    struct lw_map other;
    lw_map_init(&other, 1);
    for (int i = 0; i < 100; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%d", i);
        assert_int_equal(lw_map_set(&other, lw_bytes_of(key), &values[i]), LW_STATUS_OK);
    }
    lw_map_deinit(&other);
    assert_int_equal(lw_alloc_live(), live);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(empty_map_has_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(value_is_found_replaced_and_removed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(keys_are_copied_and_compared_as_bytes, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(walk_meets_each_entry_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(random_changes_agree_with_a_plain_array, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(lack_of_memory_leaves_the_map_as_it_was, set_up,
                                        tear_down),
        cmocka_unit_test(deinit_frees_all_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
