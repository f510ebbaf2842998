/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_processes_limits.c: a worker process that uses more memory than memory_max, itself or by a
 * child, is killed; the message that did it is charged once it did it alone, and the rest goes on.
 */
#include "tests/support/test.h"

#include <string.h>

#include "tests/engines/processes_world.h"

#define MB (UINT64_C(1000) * 1000)

static struct world *
open_limited(uint64_t memory_max, uint32_t window)
{
    struct lw_processes_options options = processes_options("naughty");
    options.window = window;
    options.timeout_ms = 120000;
    options.memory_max = memory_max;
    return processes_open_world(&options);
}

static void
assert_charged(const struct lw_delivery *leak)
{
    assert_int_equal(leak->verdict, LW_ERROR);
    assert_false(leak->outcome->is_uncharged);
    assert_int_equal(leak->outcome->signal, 9);
    assert_non_null(strstr(lw_delivery_reason(leak), " of memory, memory_max is 200MB"));
}

static void
one_that_leaks_is_killed_and_charged_and_the_rest_goes_on(void **state)
{
    static const char *const commands[] = { "ok", "leak 1000", "ok", "ok" };
    (void)state;
    struct world *world = open_limited(200 * MB, 4);
    for (size_t i = 0; i < 4; i++) {
        world_run(world, commands[i]);
    }
    world_wait_results(world, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(world->deliveries[i].verdict, i == 1 ? LW_ERROR : LW_OK);
    }
    assert_charged(&world->deliveries[1]);
    assert_int_equal(processes_figures(world).charged, 1);
    assert_false(world->engine->is_down);
    world_destroy(world);
}

static void
the_memory_of_its_children_counts(void **state)
{
    (void)state;
    struct world *world = open_limited(200 * MB, 1);
    struct lw_delivery *leak = world_run(world, "leak-child 1000");
    world_wait_results(world, 1);
    assert_charged(leak);
    struct lw_delivery *after = world_run(world, "ok");
    world_wait_results(world, 2);
    assert_int_equal(after->verdict, LW_OK);
    world_destroy(world);
}

static void
what_leaks_whenever_it_runs_is_dead_in_the_end(void **state)
{
    (void)state;
    struct lw_processes_options options = processes_options("naughty");
    options.timeout_ms = 120000;
    options.memory_max = 200 * MB;
    options.tune.max_crashes = 1;
    struct world *world = processes_open_world(&options);
    struct lw_delivery *leak = world_run(world, "leak 1000");
    world_wait_results(world, 1);
    assert_int_equal(leak->verdict, LW_DEAD);
    assert_non_null(strstr(lw_delivery_reason(leak), "(crash 1 of this message)"));
    world_destroy(world);
}

/* It is over its limit with nothing to do: nobody is charged, and it is not tried for ever. */
static void
a_worker_that_starts_above_its_limit_is_down(void **state)
{
    (void)state;
    struct world *world = open_limited(1, 1);
    world_wait(world, world_engine_is_down);
    assert_string_equal(world->engine->down_error.code, "E0602");
    assert_non_null(strstr(world->engine->down_error.message, "of memory, memory_max is 1B"));
    assert_int_equal(world->result_count, 0);
    world_destroy(world);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_leaks_is_killed_and_charged_and_the_rest_goes_on),
        cmocka_unit_test(the_memory_of_its_children_counts),
        cmocka_unit_test(what_leaks_whenever_it_runs_is_dead_in_the_end),
        cmocka_unit_test(a_worker_that_starts_above_its_limit_is_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
