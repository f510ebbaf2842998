/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_threads.c: the threads engine: the conformance suite, and what is its own: one task per
 * thread, parallel running, no lost wake-up, ends that meet running handlers.
 */
#include "tests/support/test.h"

#include "engines/threads.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>

#include "base/inside.h"
#include "tests/engines/conformance.h"

enum { THREADS = 4 };

static void
create_engine(struct world *world, const struct lw_handler_options *options)
{
    struct lw_error error = { 0 };
    assert_int_equal(lw_threads_engine_create(world->host, &world->completions, "obey", options,
                                              &world->engine),
                     LW_STATUS_OK);
    assert_int_equal(world->engine->ops->start(world->engine, &error), LW_STATUS_OK);
}

static void
create_obeying(struct world *world, int64_t timeout_ms)
{
    struct lw_handler_options options = { .handler = conformance_handle,
                                          .timeout_ms = timeout_ms,
                                          .threads = THREADS };
    create_engine(world, &options);
}

struct gauge {
    atomic_int running;
    atomic_int highest;
    atomic_int calls;
    atomic_bool was_inside;
};

/* Meets the others: returns only when all threads run at once. */
static enum lw_verdict
meet(struct lw_delivery *delivery, void *user)
{
    struct gauge *gauge = user;
    int running = atomic_fetch_add(&gauge->running, 1) + 1;
    while (atomic_load(&gauge->running) < THREADS && running <= THREADS) {
        sched_yield();
    }
    gauge->was_inside = lw_inside_subject() == delivery;
    return LW_OK;
}

static void
handlers_run_at_the_same_time_on_all_threads(void **state)
{
    struct world *world = world_create();
    struct gauge gauge = { .running = 0 };
    struct lw_handler_options options = { .handler = meet, .user = &gauge, .threads = THREADS };
    (void)state;
    create_engine(world, &options);
    for (size_t i = 0; i < THREADS; i++) {
        world_run(world, "ok");
    }
    world_wait_results(world, THREADS);
    assert_true(gauge.was_inside);
    assert_false(lw_inside_is());
    world_destroy(world);
}

static enum lw_verdict
count_running(struct lw_delivery *delivery, void *user)
{
    struct gauge *gauge = user;
    int running = atomic_fetch_add(&gauge->running, 1) + 1;
    int highest = atomic_load(&gauge->highest);
    while (running > highest &&
           !atomic_compare_exchange_weak(&gauge->highest, &highest, running)) {
    }
    atomic_fetch_add(&gauge->calls, 1);
    (void)delivery;
    atomic_fetch_sub(&gauge->running, 1);
    return LW_OK;
}

/* A wake-up that is lost shows as a task that never returns. */
static void
tens_of_thousands_of_short_tasks_lose_no_wake_up(void **state)
{
    enum { ROUNDS = 20000 };
    struct world *world = world_create();
    struct gauge gauge = { .running = 0 };
    struct lw_handler_options options = {
        .handler = count_running, .user = &gauge, .timeout_ms = 60000, .threads = THREADS
    };
    (void)state;
    create_engine(world, &options);
    struct lw_delivery *delivery = world_run(world, "ok");
    struct lw_delivery *other = world_run(world, "ok");
    for (size_t i = 0; i < ROUNDS; i++) {
        world_wait_results(world, 2);
        world->result_count = 0;
        assert_true(world_submit(world, delivery));
        assert_true(world_submit(world, other));
    }
    world_wait_results(world, 2);
    assert_int_equal(gauge.calls, 2 * ROUNDS + 2);
    assert_in_range(gauge.highest, 1, THREADS);
    assert_int_equal(world->engine->room, THREADS);
    world_destroy(world);
}

static bool
is_first_late(struct world *world)
{
    return world->deliveries[0].is_late;
}

/* Keeps its first message until the test lets go. */
static enum lw_verdict
keep_first(struct lw_delivery *delivery, void *user)
{
    atomic_bool *may_go = user;
    while (lw_delivery_offset(delivery) == 0 && !atomic_load(may_go)) {
        sched_yield();
    }
    return LW_OK;
}

static void
a_handler_that_is_late_keeps_only_its_own_thread(void **state)
{
    struct world *world = world_create();
    atomic_bool may_go = false;
    struct lw_handler_options options = {
        .handler = keep_first, .user = &may_go, .timeout_ms = 50, .threads = THREADS
    };
    (void)state;
    create_engine(world, &options);
    struct lw_delivery *late = world_run(world, "ok");
    for (size_t i = 0; i < 50; i++) {
        world_run(world, "ok");
    }
    world_wait_results(world, 50);
    world_wait(world, is_first_late);
    assert_int_equal(world->engine->room, THREADS - 1);
    assert_true(world_has_logged(world, "handler.thread_late"));
    atomic_store(&may_go, true);
    world_wait_results(world, 51);
    assert_int_equal(late->verdict, LW_OK);
    world_destroy(world);
}

static void
destroying_waits_for_a_running_handler(void **state)
{
    struct world *world = world_create();
    (void)state;
    create_obeying(world, 0);
    struct lw_delivery *delivery = world_run(world, "wait 150 dead seen");
    world_turn(world, 0);
    world->engine->ops->destroy(world->engine);
    world->engine = NULL;
    assert_int_equal(delivery->verdict, LW_DEAD);
    world_destroy(world);
}

static enum lw_verdict
look_at_signals(struct lw_delivery *delivery, void *user)
{
    sigset_t set;
    (void)delivery;
    pthread_sigmask(SIG_SETMASK, NULL, &set);
    *(bool *)user = sigismember(&set, SIGTERM) && sigismember(&set, SIGCHLD);
    return LW_OK;
}

static void
signals_stay_with_the_programs_own_threads(void **state)
{
    struct world *world = world_create();
    bool is_blocked = false;
    struct lw_handler_options options = { .handler = look_at_signals,
                                          .user = &is_blocked,
                                          .threads = 1 };
    (void)state;
    create_engine(world, &options);
    world_run(world, "ok");
    world_wait_results(world, 1);
    assert_true(is_blocked);
    world_destroy(world);
}

static void
an_asynchronous_handler_is_refused(void **state)
{
    struct world *world = world_create();
    struct lw_handler_options options = { .handler_async = conformance_handle_async,
                                          .threads = 1 };
    (void)state;
    assert_int_equal(lw_threads_engine_create(world->host, &world->completions, "x", &options,
                                              &world->engine),
                     LW_STATUS_INVALID);
    world_destroy(world);
}

int
main(void)
{
    const struct engine_kit kit = {
        .name = "threads", .create = create_obeying, .room = THREADS, .can_wait = true
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handlers_run_at_the_same_time_on_all_threads),
        cmocka_unit_test(tens_of_thousands_of_short_tasks_lose_no_wake_up),
        cmocka_unit_test(a_handler_that_is_late_keeps_only_its_own_thread),
        cmocka_unit_test(destroying_waits_for_a_running_handler),
        cmocka_unit_test(signals_stay_with_the_programs_own_threads),
        cmocka_unit_test(an_asynchronous_handler_is_refused),
    };
    int failed = conformance_run(&kit);
    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
