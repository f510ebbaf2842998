/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_programs_refused.c: what the system refuses, under each protocol: processes, descriptors,
 * memory. The engine is down or waits, says why, charges nobody, and goes on by itself.
 */
#include "tests/support/test.h"

#include <dlfcn.h>
#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/alloc.h"
#include "engines/programs/programs.h"
#include "tests/engines/programs_world.h"
#include "tests/support/virtual_host.h"

typedef int (*spawn_fn)(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attributes, char *const argv[],
                        char *const environment[]);

static int refusals; /* so many processes are refused */
static int refusal;  /* in these words */

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
        return refusal;
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
        refusal = EAGAIN;
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

/* -- Memory ------------------------------------------------------------------------------------- */

static void
a_run_that_finds_no_memory_for_its_process_waits_and_says_so(void **state)
{
    (void)state;
    refusals = 3;
    refusal = ENOMEM;
    struct world *world = open_world(LW_PROTOCOL_ONCE);
    struct lw_delivery *delivery = world_delivery(world, "ok");
    for (int i = 0; i < 3; i++) {
        assert_false(world_submit(world, delivery));
        assert_int_equal(world->engine->room, 0);
        assert_true(world_has_logged(world, "handler.no_memory: there is no memory to run a "
                                            "program for a message"));
        assert_true(world_has_logged(world, "handler=obey tries=1 "
                                            "reason=\"Cannot allocate memory\""));
        world_wait(world, world_engine_has_room);
    }
    assert_true(world_submit(world, delivery));
    world_wait_results(world, 1);
    assert_int_equal(delivery->verdict, LW_OK);
    assert_int_equal(delivery->attempt, 1);
    assert_false(world_has_logged(world, "handler.down"));
    world_destroy(world);
}

static uint64_t tries_said;

static void
ignore_timer(struct lw_timer *timer, uint64_t now)
{
    (void)timer;
    (void)now;
}

static void
add_tries(enum lw_log_level level, const char *event, const char *text, const char *fields,
          void *user)
{
    size_t *count = user;
    assert_int_equal(level, LW_LOG_WARN);
    assert_string_equal(event, "handler.no_memory");
    assert_string_equal(text, "a test has none");
    tries_said += strtoull(strstr(fields, "tries=") + strlen("tries="), NULL, 10);
    (*count)++;
}

static void
a_lack_of_memory_that_lasts_is_said_every_ten_seconds_with_all_its_trials(void **state)
{
    enum { TRIALS = 350 }; /* 35 s, of which the last 5 are not said yet */
    struct virtual_host virtual_host;
    char name[] = "obey";
    struct lw_programs programs = { .name = name };
    size_t lines = 0;
    (void)state;
    virtual_host_init(&virtual_host, 1);
    programs.engine.host = &virtual_host.host;
    virtual_host.host.log = add_tries;
    virtual_host.host.log_user = &lines;
    virtual_host.host.log_level = LW_LOG_DEBUG;
    lw_timer_init(&programs.memory_timer, ignore_timer);
    for (int i = 0; i < TRIALS; i++) {
        lw_programs_wait_for_memory(&programs, "a test has none");
        assert_true(lw_timer_is_armed(&programs.memory_timer));
        virtual_host_pass(&virtual_host, 100 * LW_MS);
    }
    assert_int_equal(lines, 4);
    assert_int_equal(tries_said + programs.memory_tries, TRIALS);
    lw_timers_disarm(&virtual_host.host.timers, &programs.memory_timer);
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
        cmocka_unit_test(a_run_that_finds_no_memory_for_its_process_waits_and_says_so),
        cmocka_unit_test(
            a_lack_of_memory_that_lasts_is_said_every_ten_seconds_with_all_its_trials),
        cmocka_unit_test(whatever_allocation_fails_a_message_is_handled),
        cmocka_unit_test(a_reply_that_finds_no_memory_is_never_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
