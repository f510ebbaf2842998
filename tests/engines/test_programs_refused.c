/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_programs_refused.c: what the system refuses, under each protocol: processes, descriptors,
 * memory. The engine is down or waits, says why, charges nobody, and goes on by itself.
 */
#include "tests/support/test.h"

#include <dlfcn.h>
#include <errno.h>
#include <spawn.h>
#include <string.h>
#include <sys/resource.h>

#include "base/alloc.h"
#include "tests/engines/programs_world.h"

typedef int (*spawn_fn)(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attributes, char *const argv[],
                        char *const environment[]);

static int refusals; /* so many processes are refused */

/* In place of the C library's, which it calls. */
int
posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
             const posix_spawnattr_t *attributes, char *const argv[], char *const environment[])
{
    void *found = dlsym(RTLD_NEXT, "posix_spawnp");
    spawn_fn real = NULL;
    memcpy(&real, &found, sizeof real);
    if (refusals > 0) {
        refusals--;
        return EAGAIN;
    }
    return real(pid, file, actions, attributes, argv, environment);
}

static struct lw_programs_options
options_of(enum lw_protocol protocol)
{
    static const char *const once[] = { LW_BINARY_DIR "/tests/support/obey_once", NULL };
    struct lw_programs_options options = programs_options("obey.py", NULL);
    options.protocol = protocol;
    options.program = protocol == LW_PROTOCOL_ONCE ? once : options.program;
    return options;
}

static struct world *
open_world(enum lw_protocol protocol)
{
    struct world *world = world_create();
    struct lw_programs_options options = options_of(protocol);
    programs_create(world, &options);
    return world;
}

/* Under once a process is wanted only when a message is there. */
static void
want_process(struct world *world, enum lw_protocol protocol)
{
    if (protocol == LW_PROTOCOL_ONCE) {
        assert_false(world_submit(world, world_delivery(world, "ok")));
    }
    world_wait(world, world_engine_is_down);
}

static void
expect_recovery(struct world *world, const char *why)
{
    const struct lw_error *error = &world->engine->down_error;
    assert_string_equal(error->code, "E0602");
    if (!strstr(error->message, why)) {
        fail_msg("%s: lacks: %s", error->message, why);
    }
    assert_non_null(strstr(error->help, "pipeline orders is paused"));
    assert_int_equal(world->result_count, 0);
    struct lw_delivery *delivery = world_run(world, "ok");
    world_wait_results(world, 1);
    assert_int_equal(delivery->verdict, LW_OK);
    assert_int_equal(delivery->attempt, 1);
    assert_false(world->engine->is_down);
    world_destroy(world);
}

static void
refused_processes_pause_and_come_back(void **state)
{
    (void)state;
    for (int i = LW_PROTOCOL_LINES; i <= LW_PROTOCOL_ONCE; i++) {
        refusals = 1;
        struct world *world = open_world((enum lw_protocol)i);
        want_process(world, (enum lw_protocol)i);
        assert_int_equal(refusals, 0);
        expect_recovery(world, "Resource temporarily unavailable");
    }
}

static void
exhausted_descriptors_pause_and_come_back(void **state)
{
    struct rlimit limit;
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const struct rlimit none = { .rlim_cur = 3, .rlim_max = limit.rlim_max };
    for (int i = LW_PROTOCOL_LINES; i <= LW_PROTOCOL_ONCE; i++) {
        struct world *world = world_create();
        struct lw_programs_options options = options_of((enum lw_protocol)i);
        assert_int_equal(lw_programs_engine_create(world->host, &world->completions, "obey",
                                                   &options, &world->engine),
                         LW_STATUS_OK);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
        assert_int_equal(world->engine->ops->start(world->engine, NULL), LW_STATUS_OK);
        want_process(world, (enum lw_protocol)i);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        expect_recovery(world, "Too many open files");
    }
}

/* Gives one message until it is judged by its handler; false: the engine could not be made. */
static bool
survive(enum lw_protocol protocol, uint64_t nth)
{
    struct world *world = world_create();
    struct lw_programs_options options = options_of(protocol);
    enum lw_status status = lw_programs_engine_create(world->host, &world->completions, "obey",
                                                      &options, &world->engine);
    assert_int_equal(status, LW_STATUS_OK);
    assert_int_equal(world->engine->ops->start(world->engine, NULL), LW_STATUS_OK);
    struct lw_delivery *delivery = world_delivery(world, "reply seen");
    world_wait(world, world_engine_has_room);
    lw_alloc_fail_at(nth);
    uint64_t before = lw_alloc_count();
    size_t results = 0;
    bool is_ok = false;
    while (!is_ok) {
        world_wait(world, world_engine_has_room);
        if (world_submit(world, delivery)) {
            world_wait_results(world, ++results);
            is_ok = delivery->verdict == LW_OK;
        }
        assert_in_range(results, 0, 3);
    }
    bool was_reached = lw_alloc_count() - before >= nth;
    lw_alloc_fail_at(0);
    assert_int_equal(world->running, 0);
    world_destroy(world);
    return was_reached;
}

static void
whatever_allocation_fails_a_message_is_handled(void **state)
{
    uint64_t live = lw_alloc_live();
    (void)state;
    for (int i = LW_PROTOCOL_LINES; i <= LW_PROTOCOL_ONCE; i++) {
        uint64_t nth = 1;
        while (survive((enum lw_protocol)i, nth)) {
            nth++;
        }
        print_message("protocol %d: %llu allocations failed in turn\n", i,
                      (unsigned long long)nth - 1);
        assert_true(nth > 3);
    }
    assert_int_equal(lw_alloc_live(), live);
}

/* What it printed is the reply as a whole, or none of it, and then nobody is charged. */
static bool
is_whole_or_uncharged(uint64_t nth)
{
    enum { SIZE = 100000 };
    struct lw_programs_options options = options_of(LW_PROTOCOL_ONCE);
    struct lw_output view;
    options.has_reply = true;
    struct world *world = world_create();
    programs_create(world, &options);
    struct lw_delivery *delivery = world_delivery(world, "print 100000");
    lw_alloc_fail_at(nth);
    uint64_t before = lw_alloc_count();
    bool is_taken = world_submit(world, delivery);
    if (is_taken) {
        world_wait_results(world, 1);
    }
    bool was_reached = lw_alloc_count() - before >= nth;
    lw_alloc_fail_at(0);
    if (is_taken && delivery->verdict == LW_OK) {
        assert_int_equal(delivery->outcome->output_count, 1);
        lw_outcome_view(delivery->outcome, 0, &view, NULL);
        assert_int_equal(view.value.size, SIZE);
    } else if (is_taken) {
        assert_true(!delivery->outcome || delivery->outcome->is_uncharged ||
                    strstr(lw_delivery_reason(delivery), "no memory"));
    }
    world_destroy(world);
    return was_reached;
}

static void
a_reply_that_finds_no_memory_is_never_cut(void **state)
{
    uint64_t nth = 1;
    (void)state;
    while (is_whole_or_uncharged(nth)) {
        nth++;
    }
    assert_true(nth > 3);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused_processes_pause_and_come_back),
        cmocka_unit_test(exhausted_descriptors_pause_and_come_back),
        cmocka_unit_test(whatever_allocation_fails_a_message_is_handled),
        cmocka_unit_test(a_reply_that_finds_no_memory_is_never_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
