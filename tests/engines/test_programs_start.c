/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_programs_start.c: programs that cannot start: the engine is down, says why and what helps,
 * tries again ever more slowly, charges nobody (P10), and comes back by itself.
 */
#include "tests/support/test.h"

#include <string.h>

#include "tests/engines/programs_world.h"

static void
a_program_that_exits_at_once_takes_the_engine_down_and_says_why(void **state)
{
    struct world *world = programs_open_world("manners.py", "exits", "2", NULL);
    const struct lw_error *error = &world->engine->down_error;
    (void)state;
    world_wait(world, world_engine_is_down);
    assert_int_equal(world->engine->room, 0);
    assert_true(world->engine->has_changed);
    assert_string_equal(error->code, "E0602");
    assert_non_null(strstr(error->message, "handler \"obey\" cannot start: python3 -S "));
    assert_non_null(strstr(error->message, "exits 2: exit 2 before its first answer"));
    assert_string_equal(
        error->help, "pipeline orders is paused until it starts; 0 messages were consumed by "
                     "this. Next try in 1s. Last output of the program:\n"
                     "config.ini: no such file");
    assert_false(world_submit(world, world_delivery(world, "ok")));
    assert_int_equal(world->result_count, 0);
    world_destroy(world);
}

static bool
has_failed_twice(struct world *world)
{
    return strstr(world->engine->down_error.help, "Next try in 2s") != NULL;
}

static void
it_is_tried_again_ever_more_slowly(void **state)
{
    struct world *world = programs_open_world("manners.py", "exits", "1", NULL);
    (void)state;
    world_wait(world, world_engine_is_down);
    uint64_t first = world->host->now;
    world_wait(world, has_failed_twice);
    assert_true(world->host->now - first >= 1000 * LW_MS);
    assert_int_equal(world->engine->restarts, 1);
    world_destroy(world);
}

/* An emulator without vfork learns of it only by the child's status. */
static void
expect_not_executed(const struct world *world, const char *beginning)
{
    const char *message = world->engine->down_error.message;
    assert_memory_equal(message, beginning, strlen(beginning));
    assert_true(strstr(message, ": No such file or directory") ||
                strstr(message, ": exit 127 before its first answer"));
}

static void
a_program_that_does_not_exist_is_named(void **state)
{
    const char *program[] = { "/no/such/handler", "--fast", NULL };
    struct world *world = world_create();
    struct lw_programs_options options = programs_options("obey.py", NULL);
    (void)state;
    options.program = program;
    options.pipeline = NULL;
    programs_create(world, &options);
    world_wait(world, world_engine_is_down);
    expect_not_executed(world, "handler \"obey\" cannot start: /no/such/handler --fast: ");
    assert_string_equal(world->engine->down_error.help,
                        "its pipelines are paused until it starts; 0 messages were consumed by "
                        "this. Next try in 1s.");
    world_destroy(world);
}

static void
a_working_directory_that_does_not_exist_is_a_failed_start(void **state)
{
    struct world *world = world_create();
    struct lw_programs_options options = programs_options("obey.py", NULL);
    (void)state;
    options.directory = "/no/such/directory";
    programs_create(world, &options);
    world_wait(world, world_engine_is_down);
    expect_not_executed(world, "handler \"obey\" cannot start: python3 ");
    world_destroy(world);
}

static void
a_program_that_is_never_ready_is_ended_after_its_time(void **state)
{
    struct lw_programs_options options = programs_options("manners.py", "silent");
    (void)state;
    options.start_timeout_ms = 300;
    struct world *world = programs_open_world("manners.py", "silent", NULL, &options);
    world_wait(world, world_engine_is_down);
    assert_non_null(
        strstr(world->engine->down_error.message, ": it did not say ready within 300ms"));
    world_destroy(world);
}

static void
wrong_greetings_are_failed_starts(void **state)
{
    static const char *const manners[][2] = {
        { "future", ": it speaks protocol 2, this version speaks 1" },
        { "no-object", "\"ready\" is not an object such as {\"protocol\":1}" },
        { "early", ": it answered before it said ready" },
        { "ready-exits", ": exit 0 right after it was ready" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof manners / sizeof manners[0]; i++) {
        struct world *world = programs_open_world("manners.py", manners[i][0], NULL, NULL);
        world_wait(world, world_engine_is_down);
        assert_non_null(strstr(world->engine->down_error.message, manners[i][1]));
        world_destroy(world);
    }
}

static void
it_comes_up_again_when_it_can_start(void **state)
{
    struct world *world = programs_open_world("manners.py", "once-broken", programs_marker(),
                                              NULL);
    (void)state;
    world_wait(world, world_engine_is_down);
    world_wait(world, world_engine_has_room);
    assert_false(world->engine->is_down);
    assert_true(world_has_logged(world, "handler.up"));
    struct lw_delivery *delivery = world_run(world, "ok");
    world_wait_results(world, 1);
    assert_int_equal(delivery->verdict, LW_OK);
    assert_int_equal(delivery->attempt, 1);
    world_destroy(world);
    (void)programs_marker();
}

static void
a_slow_start_and_garbage_before_ready_are_tolerated(void **state)
{
    struct world *slow = programs_open_world("manners.py", "slow", "700", NULL);
    (void)state;
    world_run(slow, "ok");
    world_wait_results(slow, 1);
    assert_int_equal(slow->deliveries[0].verdict, LW_OK);
    world_destroy(slow);
    struct world *garbage = programs_open_world("manners.py", "garbage", NULL, NULL);
    world_run(garbage, "ok");
    world_wait_results(garbage, 1);
    assert_int_equal(garbage->deliveries[0].verdict, LW_OK);
    assert_int_equal(garbage->engine->restarts, 0);
    assert_int_equal(garbage->engine->stray_lines, 5);
    world_destroy(garbage);
}

static void
several_workers_are_started_only_when_the_first_is_ready(void **state)
{
    struct lw_programs_options options = programs_options("manners.py", "exits");
    (void)state;
    options.workers = 8;
    struct world *world = programs_open_world("manners.py", "exits", "3", &options);
    world_wait(world, world_engine_is_down);
    size_t started = 0;
    for (const char *at = world->log; (at = strstr(at, "handler.started")) != NULL; at++) {
        started++;
    }
    assert_int_equal(started, 1);
    world_destroy(world);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_that_exits_at_once_takes_the_engine_down_and_says_why),
        cmocka_unit_test(it_is_tried_again_ever_more_slowly),
        cmocka_unit_test(a_program_that_does_not_exist_is_named),
        cmocka_unit_test(a_working_directory_that_does_not_exist_is_a_failed_start),
        cmocka_unit_test(a_program_that_is_never_ready_is_ended_after_its_time),
        cmocka_unit_test(wrong_greetings_are_failed_starts),
        cmocka_unit_test(it_comes_up_again_when_it_can_start),
        cmocka_unit_test(a_slow_start_and_garbage_before_ready_are_tolerated),
        cmocka_unit_test(several_workers_are_started_only_when_the_first_is_ready),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
