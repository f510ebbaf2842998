/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_processes_functions.c: functions of the program itself in worker processes, after
 * lw_processes_init: what they see of the program, their crashes, and when the call is refused.
 */
#include "tests/support/test.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engines/processes/origin.h"
#include "tests/engines/processes_world.h"

/* The sanitizer may have threads of its own. */
#if defined(__SANITIZE_THREAD__)
#define HAS_OTHER_THREADS 1
#define THREADS_TEXT " threads"
#else
#define HAS_OTHER_THREADS 0
#define THREADS_TEXT "2 threads"
#endif

/* As it was when main began, in every worker. */
static char greeting[32] = "hello from the beginning";
static pid_t program;
static unsigned at_exit_calls;

static void
count_end(void)
{
    at_exit_calls++;
    if (getpid() != program) {
        (void)fputs("the program's end was done in a worker\n", stderr);
    }
}

static enum lw_verdict
greet(struct lw_delivery *delivery, void *user)
{
    char text[64];
    struct lw_bytes value = lw_delivery_value(delivery);
    if (value.size == 5 && memcmp(value.data, "crash", 5) == 0) {
        (void)raise(SIGKILL);
    }
    (void)snprintf(text, sizeof text, "%s, %s", (const char *)user,
                   getpid() != program ? "from elsewhere" : "from here");
    return lw_delivery_reply(delivery, lw_bytes_of(text)) == LW_STATUS_OK ? LW_OK : LW_ERROR;
}

static struct lw_processes_options
options_of(lw_handler_fn handler)
{
    struct lw_processes_options options = processes_options("");
    options.path = NULL;
    options.zygote = NULL;
    options.handler = handler;
    options.user = greeting;
    options.workers = 2;
    return options;
}

static bool
says(const struct lw_delivery *delivery, const char *text)
{
    struct lw_output view;
    struct lw_header headers[1];
    assert_int_equal(delivery->verdict, LW_OK);
    assert_int_equal(delivery->outcome->output_count, 1);
    lw_outcome_view(delivery->outcome, 0, &view, headers);
    return lw_text_is_equal(view.value, text);
}

static void
a_function_of_the_program_runs_as_the_program_was_at_its_beginning(void **state)
{
    (void)state;
    struct lw_processes_options options = options_of(greet);
    (void)snprintf(greeting, sizeof greeting, "changed since");
    struct world *world = processes_open_world(&options);
    for (size_t i = 0; i < 20; i++) {
        world_run(world, "hi");
    }
    world_wait_results(world, 20);
    for (size_t i = 0; i < 20; i++) {
        assert_true(says(&world->deliveries[i], "hello from the beginning, from elsewhere"));
    }
    world->engine->ops->stop(world->engine, world->host->now + 5000 * LW_MS);
    world_wait(world, world_engine_is_stopped);
    assert_false(world_has_logged(world, "the program's end was done in a worker"));
    world_destroy(world);
}

static void
its_crash_is_charged_to_its_message(void **state)
{
    (void)state;
    struct lw_processes_options options = options_of(greet);
    struct world *world = processes_open_world(&options);
    struct lw_delivery *bad = world_run(world, "crash");
    struct lw_delivery *good = world_run(world, "hi");
    world_wait_results(world, 2);
    assert_int_equal(bad->verdict, LW_ERROR);
    assert_int_equal(bad->outcome->signal, SIGKILL);
    assert_int_equal(good->verdict, LW_OK);
    world_destroy(world);
}

static void
two_engines_have_zygotes_of_their_own(void **state)
{
    (void)state;
    struct lw_processes_options options = options_of(greet);
    struct world *one = processes_open_world(&options);
    struct world *other = processes_open_world(&options);
    world_run(one, "hi");
    world_wait_results(one, 1);
    processes_kill_zygote(one);
    world_destroy(one);
    struct lw_delivery *last = world_run(other, "hi");
    world_wait_results(other, 1);
    assert_int_equal(last->verdict, LW_OK);
    world_destroy(other);
}

/* An address where nothing of the program is. */
static void
a_function_that_came_later_takes_the_engine_down_and_says_so(void **state)
{
    (void)state;
    uintptr_t nowhere = 16;
    struct lw_processes_options options = options_of(NULL);
    memcpy(&options.handler, &nowhere, sizeof nowhere);
    struct world *world = processes_open_world(&options);
    world_wait(world, world_engine_is_down);
    assert_string_equal(world->engine->down_error.code, "E0606");
    world_destroy(world);
}

static void *
wait_for_ever(void *user)
{
    (void)user;
    for (;;) {
        (void)pause();
    }
    return NULL;
}

/* In a child of ours, which has no origin yet. */
static int
call_with_a_thread(void)
{
    struct lw_error error = { 0 };
    pthread_t thread;
    if (lw_processes_has_origin() || pthread_create(&thread, NULL, wait_for_ever, NULL) != 0) {
        return 1;
    }
    enum lw_status status = lw_processes_init(&error);
    bool is_refused = status == LW_STATUS_STATE && strcmp(error.code, "E0633") == 0 &&
                      strstr(error.message, THREADS_TEXT) && error.help[0];
    return is_refused && !lw_processes_has_origin() ? 0 : 2;
}

static void
it_is_refused_once_there_are_threads(void **state)
{
    int status = -1;
    (void)state;
    pid_t pid = fork();
    if (pid == 0) {
        _exit(call_with_a_thread());
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void
again_it_does_nothing(void **state)
{
    struct lw_error error = { 0 };
    (void)state;
    assert_int_equal(lw_processes_init(&error), LW_STATUS_OK);
    assert_true(lw_processes_has_origin());
}

int
main(void)
{
    struct lw_error error = { 0 };
    program = getpid();
    (void)atexit(count_end);
    if (lw_processes_init(&error) != LW_STATUS_OK) {
        print_message("left out: %s\n", error.message);
        return HAS_OTHER_THREADS ? 0 : 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_function_of_the_program_runs_as_the_program_was_at_its_beginning),
        cmocka_unit_test(its_crash_is_charged_to_its_message),
        cmocka_unit_test(two_engines_have_zygotes_of_their_own),
        cmocka_unit_test(a_function_that_came_later_takes_the_engine_down_and_says_so),
        cmocka_unit_test(again_it_does_nothing),
        cmocka_unit_test(it_is_refused_once_there_are_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
