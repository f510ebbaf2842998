/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_batch.c: the loop and threads engines with a function that takes several messages at once:
 * the conformance suite, with tasks of one, and what tasks of several are owed: members in order,
 * a verdict each or one for all, missing ones seen, time and cancelling told to every member.
 */
#include "tests/support/test.h"

#include <pthread.h>
#include <string.h>

#include "engines/loop.h"
#include "engines/threads.h"
#include "tests/engines/conformance.h"

enum { MEMBERS = 4, THREADS = 4 };

static void
create_engine(struct world *world, const struct lw_handler_options *options)
{
    struct lw_error error = { 0 };
    enum lw_status status = options->threads > 0
                                ? lw_threads_engine_create(world->host, &world->completions,
                                                           "obey", options, &world->engine)
                                : lw_loop_engine_create(world->host, &world->completions,
                                                        "obey", options, &world->engine);
    assert_int_equal(status, LW_STATUS_OK);
    assert_int_equal(world->engine->ops->start(world->engine, &error), LW_STATUS_OK);
}

static size_t
obey_each(struct lw_delivery *const deliveries[], size_t count, enum lw_verdict verdicts[],
          void *user)
{
    for (size_t i = 0; i < count; i++) {
        verdicts[i] = conformance_handle(deliveries[i], user);
    }
    return count;
}

static struct lw_handler_options
options_of(lw_handler_batch_fn handler, uint32_t threads, int64_t timeout_ms)
{
    return (struct lw_handler_options){
        .handler_batch = handler,
        .batch = { .size = MEMBERS, .bytes = 1 << 20 },
        .timeout_ms = timeout_ms,
        .threads = threads,
    };
}

static void
create_on_loop(struct world *world, int64_t timeout_ms)
{
    struct lw_handler_options options = options_of(obey_each, 0, timeout_ms);
    create_engine(world, &options);
}

static void
create_on_threads(struct world *world, int64_t timeout_ms)
{
    struct lw_handler_options options = options_of(obey_each, THREADS, timeout_ms);
    create_engine(world, &options);
}

/* -- Several at once ---------------------------------------------------------------------------- */

/* Submits one task of these messages; returns its first. */
static struct lw_delivery *
run_task(struct world *world, const char *const *texts, size_t count)
{
    struct lw_delivery *first = NULL;
    struct lw_delivery *last = NULL;
    for (size_t i = 0; i < count; i++) {
        struct lw_delivery *member = world_delivery(world, texts[i]);
        if (last) {
            last->task_next = member;
            member->state = LW_STATE_QUEUED;
            lw_delivery_begin_run(member, world->host->now);
        }
        first = first ? first : member;
        member->task_first = first;
        member->is_batch = true;
        last = member;
    }
    first->task_count = (uint32_t)count;
    assert_true(world_submit(world, first));
    return first;
}

static struct world *
open_world(void **state, lw_handler_batch_fn handler, enum lw_batch_verdict verdict)
{
    struct world *world = world_create();
    bool is_on_threads = *(const bool *)*state;
    struct lw_handler_options options = options_of(handler, is_on_threads ? 2 : 0, 0);
    options.batch.verdict = verdict;
    create_engine(world, &options);
    return world;
}

static void
each_member_gets_what_was_said_of_it(void **state)
{
    static const char *const texts[] = { "ok", "dead bad", "reply yes", "retry 50 later" };
    struct world *world = open_world(state, obey_each, LW_BATCH_VERDICT_EACH);
    struct lw_delivery *first = run_task(world, texts, 4);
    world_wait_results(world, 1);
    assert_ptr_equal(world->results[0], first);
    assert_true(first->is_each);
    assert_int_equal(first->task_answers, 4);
    struct lw_delivery *second = first->task_next;
    assert_int_equal(first->verdict, LW_OK);
    assert_int_equal(second->verdict, LW_DEAD);
    assert_string_equal(lw_delivery_reason(second), "bad");
    assert_int_equal(second->task_next->outcome->output_count, 1);
    assert_int_equal(second->task_next->task_next->outcome->delay_ms, 50);
    world_destroy(world);
}

static size_t
say_too_few(struct lw_delivery *const deliveries[], size_t count, enum lw_verdict verdicts[],
            void *user)
{
    (void)deliveries;
    (void)user;
    verdicts[0] = LW_OK;
    return count - 2;
}

static void
members_without_a_verdict_are_pending(void **state)
{
    static const char *const texts[] = { "a", "b", "c", "d" };
    struct world *world = open_world(state, say_too_few, LW_BATCH_VERDICT_EACH);
    struct lw_delivery *first = run_task(world, texts, 4);
    world_wait_results(world, 1);
    assert_int_equal(first->task_answers, 2);
    assert_int_equal(first->verdict, LW_OK);
    for (struct lw_delivery *at = first->task_next; at; at = at->task_next) {
        assert_int_equal(at->verdict, LW_PENDING);
    }
    world_destroy(world);
}

static size_t
say_one(struct lw_delivery *const deliveries[], size_t count, enum lw_verdict verdicts[],
        void *user)
{
    (void)user;
    (void)count;
    verdicts[0] = lw_delivery_dead(deliveries[0], "all of it");
    return 1;
}

static void
one_verdict_is_for_all(void **state)
{
    static const char *const texts[] = { "a", "b" };
    struct world *world = open_world(state, say_one, LW_BATCH_VERDICT_ONE);
    struct lw_delivery *first = run_task(world, texts, 2);
    world_wait_results(world, 1);
    assert_false(first->is_each);
    assert_int_equal(first->task_answers, 1);
    assert_int_equal(first->verdict, LW_DEAD);
    assert_string_equal(lw_delivery_reason(first), "all of it");
    world_destroy(world);
}

static size_t
say_nonsense(struct lw_delivery *const deliveries[], size_t count, enum lw_verdict verdicts[],
             void *user)
{
    (void)deliveries;
    (void)user;
    verdicts[0] = (enum lw_verdict)77;
    verdicts[1] = LW_OK;
    return count;
}

static void
what_is_no_verdict_is_an_error_of_its_member(void **state)
{
    static const char *const texts[] = { "a", "b" };
    struct world *world = open_world(state, say_nonsense, LW_BATCH_VERDICT_EACH);
    struct lw_delivery *first = run_task(world, texts, 2);
    world_wait_results(world, 1);
    assert_int_equal(first->verdict, LW_ERROR);
    assert_non_null(strstr(lw_delivery_reason(first), "no verdict"));
    assert_int_equal(first->task_next->verdict, LW_OK);
    world_destroy(world);
}

static void
nobody_else_finishes_a_member(void **state)
{
    static const char *const texts[] = { "ok", "ok" };
    struct world *world = open_world(state, obey_each, LW_BATCH_VERDICT_EACH);
    struct lw_delivery *first = run_task(world, texts, 2);
    assert_int_equal(lw_delivery_finish(first->task_next, LW_DEAD), LW_STATUS_ALREADY);
    world_wait_results(world, 1);
    assert_int_equal(first->task_next->verdict, LW_OK);
    world_destroy(world);
}

static void
a_cancelled_task_tells_all_its_members(void **state)
{
    static const char *const texts[] = { "hold", "hold" };
    if (!*(const bool *)*state) {
        return; /* on the loop nobody can be told while it runs */
    }
    struct world *world = open_world(state, obey_each, LW_BATCH_VERDICT_EACH);
    struct lw_delivery *first = run_task(world, texts, 2);
    world->engine->ops->cancel(world->engine, first);
    world_wait_results(world, 1);
    assert_string_equal(lw_delivery_reason(first->task_next), "held");
    world_destroy(world);
}

static void
a_late_task_is_late_with_all_its_members(void **state)
{
    static const char *const texts[] = { "wait 1500 retry -1 why", "ok" };
    if (!*(const bool *)*state) {
        return;
    }
    struct world *world = world_create();
    struct lw_handler_options options = options_of(obey_each, 2, 100);
    create_engine(world, &options);
    struct lw_delivery *first = run_task(world, texts, 2);
    world_wait_results(world, 1);
    assert_string_equal(lw_delivery_reason(first), "timed out after 100ms");
    assert_true(first->task_next->is_late);
    assert_true(lw_delivery_is_cancelled(first->task_next));
    world_destroy(world);
}

static void
both_kinds_of_functions_at_once_are_refused(void **state)
{
    struct world *world = world_create();
    struct lw_engine *engine = NULL;
    struct lw_handler_options options = options_of(obey_each, 2, 0);
    (void)state;
    options.handler = conformance_handle;
    assert_int_equal(
        lw_loop_engine_create(world->host, &world->completions, "x", &options, &engine),
        LW_STATUS_INVALID);
    assert_int_equal(
        lw_threads_engine_create(world->host, &world->completions, "x", &options, &engine),
        LW_STATUS_INVALID);
    options.handler = NULL;
    options.batch.size = 0;
    assert_int_equal(
        lw_threads_engine_create(world->host, &world->completions, "x", &options, &engine),
        LW_STATUS_INVALID);
    world_destroy(world);
}

/* -- Asynchronous ones -------------------------------------------------------------------------- */

/* What a call was given, for the test to finish. */
static struct lw_delivery *kept[MEMBERS];
static size_t kept_count;

static void
keep_all(struct lw_delivery *const deliveries[], size_t count, void *user)
{
    (void)user;
    memcpy(kept, deliveries, count * sizeof deliveries[0]);
    kept_count = count;
}

static struct world *
open_keeping(enum lw_batch_verdict verdict, int64_t timeout_ms)
{
    struct world *world = world_create();
    struct lw_handler_options options = options_of(NULL, 0, timeout_ms);
    options.handler_batch_async = keep_all;
    options.batch.verdict = verdict;
    create_engine(world, &options);
    return world;
}

static void *
finish_on_a_thread(void *user)
{
    enum lw_verdict verdicts[MEMBERS];
    (void)user;
    for (size_t i = 0; i < kept_count; i++) {
        verdicts[i] = conformance_handle(kept[i], NULL);
    }
    assert_int_equal(lw_batch_finish(kept[0], verdicts, kept_count), LW_STATUS_OK);
    return NULL;
}

static void
a_batch_is_finished_from_another_thread(void **state)
{
    static const char *const texts[] = { "ok", "dead bad", "reply yes", "retry 50 later" };
    struct world *world = open_keeping(LW_BATCH_VERDICT_EACH, 0);
    pthread_t thread;
    (void)state;
    struct lw_delivery *first = run_task(world, texts, 4);
    assert_int_equal(pthread_create(&thread, NULL, finish_on_a_thread, NULL), 0);
    world_wait_results(world, 1);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_ptr_equal(world->results[0], first);
    assert_true(first->is_each);
    assert_int_equal(first->task_answers, 4);
    struct lw_delivery *second = first->task_next;
    assert_int_equal(second->verdict, LW_DEAD);
    assert_string_equal(lw_delivery_reason(second), "bad");
    assert_int_equal(second->task_next->outcome->output_count, 1);
    assert_int_equal(second->task_next->task_next->outcome->delay_ms, 50);
    world_destroy(world);
}

static void
a_batch_is_finished_once_and_whole(void **state)
{
    static const char *const texts[] = { "a", "b" };
    static const enum lw_verdict wrong[] = { LW_OK, LW_PENDING };
    static const enum lw_verdict right[] = { LW_OK, LW_DROP };
    struct world *world = open_keeping(LW_BATCH_VERDICT_EACH, 0);
    (void)state;
    struct lw_delivery *first = run_task(world, texts, 2);
    struct lw_ticket ticket = lw_delivery_ticket(first);
    assert_int_equal(lw_batch_finish(first, wrong, 2), LW_STATUS_INVALID);
    assert_int_equal(lw_batch_finish(first, right, 0), LW_STATUS_INVALID);
    assert_int_equal(lw_delivery_finish(first->task_next, LW_DEAD), LW_STATUS_ALREADY);
    assert_int_equal(lw_ticket_finish_batch(ticket, right, 2), LW_STATUS_OK);
    assert_int_equal(lw_ticket_finish_batch(ticket, right, 2), LW_STATUS_ALREADY);
    world_wait_results(world, 1);
    assert_int_equal(first->verdict, LW_OK);
    assert_int_equal(first->task_next->verdict, LW_DROP);
    world_destroy(world);
}

static void
one_verdict_ends_an_asynchronous_batch(void **state)
{
    static const char *const texts[] = { "a", "b" };
    static const enum lw_batch_verdict verdicts[] = { LW_BATCH_VERDICT_ONE,
                                                      LW_BATCH_VERDICT_EACH };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct world *world = open_keeping(verdicts[i], 0);
        struct lw_delivery *first = run_task(world, texts, 2);
        assert_int_equal(lw_delivery_finish(first, lw_delivery_dead(first, "all of it")),
                         LW_STATUS_OK);
        world_wait_results(world, 1);
        assert_int_equal(first->task_answers, 1);
        assert_int_equal(first->verdict, LW_DEAD);
        assert_int_equal(first->is_each, verdicts[i] == LW_BATCH_VERDICT_EACH);
        if (first->is_each) {
            assert_int_equal(first->task_next->verdict, LW_PENDING); /* retried, and said */
        }
        world_destroy(world);
    }
}

static bool
is_second_late(struct world *world)
{
    return world->deliveries[1].is_late;
}

static void
a_late_asynchronous_batch_is_late_with_all_its_members(void **state)
{
    static const char *const texts[] = { "a", "b" };
    static const enum lw_verdict verdicts[] = { LW_OK, LW_RETRY };
    struct world *world = open_keeping(LW_BATCH_VERDICT_EACH, 30);
    (void)state;
    struct lw_delivery *first = run_task(world, texts, 2);
    world_wait(world, is_second_late);
    assert_true(first->is_late);
    assert_true(lw_delivery_is_cancelled(first->task_next));
    assert_int_equal(lw_batch_finish(first, verdicts, 2), LW_STATUS_OK);
    world_wait_results(world, 1);
    assert_int_equal(first->verdict, LW_OK);
    assert_int_equal(first->task_next->verdict, LW_ERROR);
    assert_string_equal(lw_delivery_reason(first->task_next), "timed out after 30ms");
    world_destroy(world);
}

static void
it_is_not_stopped_while_a_batch_is_owed(void **state)
{
    static const char *const texts[] = { "a", "b" };
    static const enum lw_verdict verdicts[] = { LW_OK, LW_OK };
    struct world *world = open_keeping(LW_BATCH_VERDICT_EACH, 0);
    (void)state;
    struct lw_delivery *first = run_task(world, texts, 2);
    world->engine->ops->stop(world->engine, LW_NEVER);
    assert_false(world->engine->ops->is_stopped(world->engine));
    assert_int_equal(lw_batch_finish(first, verdicts, 2), LW_STATUS_OK);
    assert_true(world->engine->ops->is_stopped(world->engine));
    world_destroy(world);
}

static void
finish_at_once(struct lw_delivery *const deliveries[], size_t count, void *user)
{
    enum lw_verdict verdicts[MEMBERS];
    size_t given = conformance_handle_batch(deliveries, count, verdicts, user);
    (void)lw_batch_finish(deliveries[0], verdicts, given);
}

static struct world *
open_kit(const void *state, enum lw_batch_verdict verdict)
{
    const char *how = state;
    struct world *world = world_create();
    bool is_async = strcmp(how, "async") == 0;
    struct lw_handler_options options = options_of(is_async ? NULL : conformance_handle_batch,
                                                   strcmp(how, "threads") == 0 ? 2 : 0, 0);
    options.handler_batch_async = is_async ? finish_at_once : NULL;
    options.batch.verdict = verdict;
    options.user = verdict == LW_BATCH_VERDICT_ONE ? world : NULL;
    create_engine(world, &options);
    return world;
}

static int
run_kits(void)
{
    static const struct batch_kit kits[] = {
        { .name = "loop", .open = open_kit, .state = "loop" },
        { .name = "loop, asynchronous", .open = open_kit, .state = "async" },
        { .name = "threads", .open = open_kit, .state = "threads" },
    };
    int failed = 0;
    for (size_t i = 0; i < sizeof kits / sizeof kits[0]; i++) {
        failed += conformance_run_batches(&kits[i]);
    }
    return failed;
}

static int
run_asynchronous(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_is_finished_from_another_thread),
        cmocka_unit_test(a_batch_is_finished_once_and_whole),
        cmocka_unit_test(one_verdict_ends_an_asynchronous_batch),
        cmocka_unit_test(a_late_asynchronous_batch_is_late_with_all_its_members),
        cmocka_unit_test(it_is_not_stopped_while_a_batch_is_owed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

static int
run_all(bool is_on_threads)
{
    static bool place;
    place = is_on_threads;
#define CASE(name) cmocka_unit_test_prestate(name, &place)
    const struct CMUnitTest tests[] = {
        CASE(each_member_gets_what_was_said_of_it),
        CASE(members_without_a_verdict_are_pending),
        CASE(one_verdict_is_for_all),
        CASE(what_is_no_verdict_is_an_error_of_its_member),
        CASE(nobody_else_finishes_a_member),
        CASE(a_cancelled_task_tells_all_its_members),
        CASE(a_late_task_is_late_with_all_its_members),
        CASE(both_kinds_of_functions_at_once_are_refused),
    };
#undef CASE
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int
main(void)
{
    static const struct engine_kit on_loop = { .name = "loop, batches",
                                               .create = create_on_loop };
    static const struct engine_kit on_threads = {
        .name = "threads, batches",
        .create = create_on_threads,
        .room = THREADS,
        .can_wait = true,
    };
    int failures = conformance_run(&on_loop) + conformance_run(&on_threads);
    failures += run_kits();
    return failures + run_all(false) + run_all(true) + run_asynchronous();
}
