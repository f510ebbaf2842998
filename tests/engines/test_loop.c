/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_loop.c: the loop engine, blocking and asynchronous: the conformance suite, and what is
 * its own: finishing from other threads, tickets, timeouts that only mark, the ring of runs.
 */
#include "tests/support/test.h"

#include "engines/loop.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/inside.h"
#include "tests/engines/conformance.h"

static void
create_engine(struct world *world, const struct lw_handler_options *options)
{
    assert_int_equal(lw_loop_engine_create(world->host, &world->completions, "obey", options,
                                           &world->engine),
                     LW_STATUS_OK);
    assert_int_equal(world->engine->ops->start(world->engine, NULL), LW_STATUS_OK);
}

static void
create_blocking(struct world *world, int64_t timeout_ms)
{
    struct lw_handler_options options = { .handler = conformance_handle,
                                          .timeout_ms = timeout_ms };
    create_engine(world, &options);
}

static void
create_async(struct world *world, int64_t timeout_ms)
{
    struct lw_handler_options options = { .handler_async = conformance_handle_async,
                                          .user = world,
                                          .timeout_ms = timeout_ms };
    create_engine(world, &options);
}

/* Leaves the delivery to the test. */
static void
keep(struct lw_delivery *delivery, void *user)
{
    (void)delivery;
    (void)user;
}

static struct world *
open_keeping(int64_t timeout_ms)
{
    struct world *world = world_create();
    struct lw_handler_options options = { .handler_async = keep, .timeout_ms = timeout_ms };
    create_engine(world, &options);
    return world;
}

static void
a_second_finish_is_refused(void **state)
{
    struct world *world = open_keeping(0);
    (void)state;
    struct lw_delivery *delivery = world_run(world, "ok");
    assert_int_equal(lw_delivery_finish(delivery, LW_OK), LW_STATUS_OK);
    assert_int_equal(lw_delivery_finish(delivery, LW_DEAD), LW_STATUS_ALREADY);
    world_wait_results(world, 1);
    assert_int_equal(lw_delivery_finish(delivery, LW_DEAD), LW_STATUS_ALREADY);
    assert_int_equal(delivery->verdict, LW_OK);
    world_destroy(world);
}

static void
a_ticket_of_an_older_run_finishes_nothing(void **state)
{
    struct world *world = open_keeping(0);
    (void)state;
    struct lw_delivery *delivery = world_run(world, "ok");
    struct lw_ticket old = lw_delivery_ticket(delivery);
    assert_int_equal(lw_ticket_finish(old, LW_RETRY), LW_STATUS_OK);
    assert_int_equal(lw_ticket_finish(old, LW_RETRY), LW_STATUS_ALREADY);
    world_wait_results(world, 1);
    assert_true(world_submit(world, delivery));
    assert_int_equal(lw_ticket_finish(old, LW_DEAD), LW_STATUS_ALREADY);
    assert_int_equal(lw_ticket_finish(lw_delivery_ticket(delivery), LW_OK), LW_STATUS_OK);
    world_wait_results(world, 2);
    assert_int_equal(delivery->verdict, LW_OK);
    world_destroy(world);
}

static void
finishing_with_no_verdict_is_refused_and_changes_nothing(void **state)
{
    struct world *world = open_keeping(0);
    (void)state;
    struct lw_delivery *delivery = world_run(world, "ok");
    assert_int_equal(lw_delivery_finish(delivery, LW_PENDING), LW_STATUS_INVALID);
    assert_int_equal(lw_delivery_finish(delivery, (enum lw_verdict)77), LW_STATUS_INVALID);
    assert_int_equal(lw_delivery_finish(delivery, LW_DROP), LW_STATUS_OK);
    world_wait_results(world, 1);
    world_destroy(world);
}

/* Two threads race for each delivery; exactly one of them may win. */
struct racer {
    struct world *world;
    size_t count;
    _Atomic size_t *wins;
};

static void *
race(void *user)
{
    struct racer *racer = user;
    for (size_t i = 0; i < racer->count; i++) {
        enum lw_status status = lw_delivery_finish(&racer->world->deliveries[i], LW_OK);
        *racer->wins += status == LW_STATUS_OK ? 1 : 0;
    }
    return NULL;
}

static void
of_two_threads_that_finish_one_wins(void **state)
{
    enum { COUNT = 2000 };
    struct world *world = open_keeping(0);
    _Atomic size_t wins = 0;
    struct racer racer = { .world = world, .count = COUNT, .wins = &wins };
    pthread_t threads[2];
    (void)state;
    for (size_t i = 0; i < COUNT; i++) {
        world_run(world, "ok");
    }
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, race, &racer), 0);
    }
    world_wait_results(world, COUNT);
    for (size_t i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(wins, COUNT);
    assert_int_equal(world->result_count, COUNT);
    world_destroy(world);
}

static bool
is_first_late(struct world *world)
{
    return world->deliveries[0].is_late;
}

static void
a_late_ok_counts_and_is_marked_late(void **state)
{
    struct world *world = open_keeping(30);
    (void)state;
    struct lw_delivery *delivery = world_run(world, "ok");
    world_wait(world, is_first_late);
    assert_true(lw_delivery_is_cancelled(delivery));
    assert_true(world_has_logged(world, "handler.late"));
    assert_int_equal(lw_delivery_finish(delivery, LW_OK), LW_STATUS_OK);
    world_wait_results(world, 1);
    assert_int_equal(delivery->verdict, LW_OK);
    world_destroy(world);
}

static void
a_late_error_loses_its_code_to_the_timeout(void **state)
{
    struct world *world = open_keeping(30);
    (void)state;
    struct lw_delivery *delivery = world_run(world, "ok");
    world_wait(world, is_first_late);
    lw_delivery_finish(delivery, lw_delivery_error(delivery, 7, "my own reason"));
    world_wait_results(world, 1);
    assert_int_equal(delivery->verdict, LW_ERROR);
    assert_false(delivery->outcome->has_code);
    assert_string_equal(lw_delivery_reason(delivery), "timed out after 30ms");
    world_destroy(world);
}

static bool
are_sixteen_late(struct world *world)
{
    size_t late = 0;
    for (size_t i = 0; i < world->delivery_count; i++) {
        late += world->deliveries[i].is_late ? 1 : 0;
    }
    return late == 16;
}

/* Runs end out of order, so the ring is swept and grows while some stay. */
static void
runs_that_stay_are_timed_out_among_thousands_that_go(void **state)
{
    struct world *world = open_keeping(200);
    (void)state;
    struct lw_delivery *first = world_run(world, "ok");
    for (size_t i = 0; i < 1500; i++) {
        struct lw_delivery *delivery = world_run(world, "ok");
        if (i % 100 != 50) {
            lw_delivery_finish(delivery, LW_OK);
        }
    }
    world_wait(world, are_sixteen_late);
    assert_true(first->is_late);
    world_destroy(world);
}

static void
it_is_not_stopped_while_a_run_is_owed(void **state)
{
    struct world *world = open_keeping(0);
    (void)state;
    struct lw_delivery *delivery = world_run(world, "ok");
    world->engine->ops->stop(world->engine, LW_NEVER);
    assert_false(world->engine->ops->is_stopped(world->engine));
    lw_delivery_finish(delivery, LW_OK);
    assert_true(world->engine->ops->is_stopped(world->engine));
    world_destroy(world);
}

static enum lw_verdict
misuse(struct lw_delivery *delivery, void *user)
{
    *(enum lw_status *)user = lw_delivery_finish(delivery, LW_OK);
    return lw_inside_is() ? LW_PENDING : LW_OK;
}

static void
a_blocking_handler_cannot_finish_and_must_return_a_verdict(void **state)
{
    struct world *world = world_create();
    enum lw_status status = LW_STATUS_OK;
    struct lw_handler_options options = { .handler = misuse, .user = &status };
    (void)state;
    create_engine(world, &options);
    struct lw_delivery *delivery = world_run(world, "ok");
    world_wait_results(world, 1);
    assert_int_equal(status, LW_STATUS_ALREADY);
    assert_int_equal(delivery->verdict, LW_ERROR);
    assert_non_null(strstr(lw_delivery_reason(delivery), "LW_PENDING"));
    assert_false(lw_inside_is());
    world_destroy(world);
}

static void
one_handler_of_the_two_forms_is_needed(void **state)
{
    struct world *world = world_create();
    struct lw_handler_options none = { .handler = NULL };
    struct lw_handler_options both = { .handler = conformance_handle, .handler_async = keep };
    (void)state;
    assert_int_equal(
        lw_loop_engine_create(world->host, &world->completions, "x", &none, &world->engine),
        LW_STATUS_INVALID);
    assert_int_equal(
        lw_loop_engine_create(world->host, &world->completions, "x", &both, &world->engine),
        LW_STATUS_INVALID);
    world_destroy(world);
}

int
main(void)
{
    const struct engine_kit blocking = { .name = "loop, blocking", .create = create_blocking };
    const struct engine_kit async = { .name = "loop, asynchronous",
                                      .create = create_async,
                                      .can_wait = true };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_finish_is_refused),
        cmocka_unit_test(a_ticket_of_an_older_run_finishes_nothing),
        cmocka_unit_test(finishing_with_no_verdict_is_refused_and_changes_nothing),
        cmocka_unit_test(of_two_threads_that_finish_one_wins),
        cmocka_unit_test(a_late_ok_counts_and_is_marked_late),
        cmocka_unit_test(a_late_error_loses_its_code_to_the_timeout),
        cmocka_unit_test(runs_that_stay_are_timed_out_among_thousands_that_go),
        cmocka_unit_test(it_is_not_stopped_while_a_run_is_owed),
        cmocka_unit_test(a_blocking_handler_cannot_finish_and_must_return_a_verdict),
        cmocka_unit_test(one_handler_of_the_two_forms_is_needed),
    };
    int failed = conformance_run(&blocking) + conformance_run(&async);
    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
