/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_tasks.c: ids on the wire: each names one handing-over and no other, ever; and making an
 * engine when memory ends at any allocation.
 */
#include "tests/support/test.h"

#include "engines/programs/tasks.h"

#include "base/alloc.h"
#include "tests/engines/programs_world.h"

static void
ids_go_up_and_none_comes_twice(void **state)
{
    struct lw_programs_tasks tasks;
    struct lw_delivery deliveries[3] = { 0 };
    struct lw_programs_task *held[3];
    int64_t last = 0;
    (void)state;
    assert_true(lw_programs_tasks_init(&tasks, 3));
    for (size_t round = 0; round < 1000; round++) {
        size_t count = 1 + round % 3;
        for (size_t i = 0; i < count; i++) {
            held[i] = lw_programs_tasks_take(&tasks, &deliveries[i]);
            int64_t id = lw_programs_tasks_name(&tasks, held[i]);
            assert_true(id > last);
            last = id;
            assert_ptr_equal(lw_programs_tasks_find(&tasks, id), held[i]);
        }
        for (size_t i = 0; i < count; i++) {
            lw_programs_tasks_give(&tasks, held[count - 1 - i]);
        }
        assert_null(lw_programs_tasks_find(&tasks, last));
    }
    assert_true(last < 3 * 3000);
    lw_programs_tasks_deinit(&tasks);
}

static void
a_new_name_ends_the_old_one(void **state)
{
    struct lw_programs_tasks tasks;
    struct lw_delivery delivery = { 0 };
    (void)state;
    assert_true(lw_programs_tasks_init(&tasks, 4));
    struct lw_programs_task *task = lw_programs_tasks_take(&tasks, &delivery);
    int64_t first = lw_programs_tasks_name(&tasks, task);
    int64_t second = lw_programs_tasks_name(&tasks, task);
    assert_null(lw_programs_tasks_find(&tasks, first));
    assert_ptr_equal(lw_programs_tasks_find(&tasks, second), task);
    assert_null(lw_programs_tasks_find(&tasks, 0));
    assert_null(lw_programs_tasks_find(&tasks, -second));
    lw_programs_tasks_deinit(&tasks);
}

static void
the_table_is_bounded(void **state)
{
    struct lw_programs_tasks tasks;
    struct lw_delivery deliveries[3] = { 0 };
    (void)state;
    assert_true(lw_programs_tasks_init(&tasks, 2));
    assert_non_null(lw_programs_tasks_take(&tasks, &deliveries[0]));
    assert_non_null(lw_programs_tasks_take(&tasks, &deliveries[1]));
    assert_null(lw_programs_tasks_take(&tasks, &deliveries[2]));
    assert_int_equal(tasks.count, 2);
    lw_programs_tasks_deinit(&tasks);
}

static void
making_an_engine_fails_cleanly_at_every_allocation(void **state)
{
    struct world *world = world_create();
    struct lw_programs_options options = programs_options("obey.py", NULL);
    enum lw_status status = LW_STATUS_NO_MEMORY;
    uint64_t nth = 0;
    (void)state;
    while (status != LW_STATUS_OK && nth < 100) {
        uint64_t live = lw_alloc_live();
        struct lw_engine *engine = NULL;
        lw_alloc_fail_at(++nth);
        status = lw_programs_engine_create(world->host, &world->completions, "obey", &options,
                                           &engine);
        lw_alloc_fail_at(0);
        assert_true(status == LW_STATUS_OK || status == LW_STATUS_NO_MEMORY);
        if (engine) {
            engine->ops->destroy(engine);
        }
        assert_int_equal(lw_alloc_live(), live);
    }
    assert_in_range(nth, 10, 40);
    world_destroy(world);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_go_up_and_none_comes_twice),
        cmocka_unit_test(a_new_name_ends_the_old_one),
        cmocka_unit_test(the_table_is_bounded),
        cmocka_unit_test(making_an_engine_fails_cleanly_at_every_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
