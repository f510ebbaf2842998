/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conformance_batches.c: what every engine that takes several messages at once owes the dispatcher: a
 * result once for each task, members in order and each with what was said of it, one verdict for all
 * that is marked as such, and a death in the middle that counts for nobody alone. That a key keeps its
 * order, and that a partly failed batch goes on from its failed member, follows from these in the
 * dispatcher (tests/dispatcher/test_batches.c).
 */
#include "tests/support/test.h"

#include "tests/engines/conformance.h"

#include <stdio.h>
#include <string.h>

#define KIT(state) ((const struct batch_kit *)*(state))

enum { ROUNDS = 20, MEMBERS = 4 };

static struct world *
open_world(void **state, enum lw_batch_verdict verdict)
{
    struct world *world = KIT(state)->open(KIT(state)->state, verdict);
    assert_non_null(world->engine);
    assert_int_equal(world->engine->batch.size, MEMBERS);
    return world;
}

struct lw_delivery *
conformance_run_task(struct world *world, const char *const *texts, size_t count)
{
    struct lw_delivery *first = NULL;
    struct lw_delivery *last = NULL;
    for (size_t i = 0; i < count; i++) {
        struct lw_delivery *member = world_delivery(world, texts[i]);
        if (last) {
            last->task_next = member;
            lw_delivery_begin_run(member, world->host->now);
        }
        first = first ? first : member;
        member->task_first = first;
        member->is_batch = true;
        last = member;
    }
    first->task_count = (uint32_t)count;
    first->task_answers = 1;
    world_wait(world, world_engine_has_room);
    assert_true(world_submit(world, first));
    return first;
}

/* Two are on their way at once, where the engine has room for it. */
static void
each_member_of_each_batch_gets_what_was_said_of_it(void **state)
{
    static const char *const texts[] = { "reply first \xc3\xa4", "ok", "dead bad",
                                         "reply last" };
    struct world *world = open_world(state, LW_BATCH_VERDICT_EACH);
    for (size_t i = 0; i < ROUNDS; i++) {
        (void)conformance_run_task(world, texts, MEMBERS - i % 2);
    }
    world_wait_results(world, ROUNDS);
    for (size_t i = 0; i < ROUNDS; i++) {
        const struct lw_delivery *first = world->results[i];
        const struct lw_delivery *third = first->task_next->task_next;
        assert_true(first->is_each);
        assert_int_equal(first->task_answers, first->task_count);
        assert_true(lw_bytes_is_equal(world_reply_of(first), lw_bytes_of(texts[0] + 6)));
        assert_int_equal(first->task_next->verdict, LW_OK);
        assert_int_equal(third->verdict, LW_DEAD);
        assert_string_equal(lw_delivery_reason(third), "bad");
        if (third->task_next) {
            assert_true(
                lw_bytes_is_equal(world_reply_of(third->task_next), lw_bytes_of("last")));
        }
    }
    world_destroy(world);
}

static void
one_verdict_is_for_all_of_a_batch(void **state)
{
    const char *all_dead = KIT(state)->all_dead ? KIT(state)->all_dead : "dead bad";
    const char *const bad[] = { all_dead, "ok", "ok" };
    struct world *world = open_world(state, LW_BATCH_VERDICT_ONE);
    struct lw_delivery *first = conformance_run_task(world, bad, 3);
    world_wait_results(world, 1);
    assert_false(first->is_each);
    assert_int_equal(first->task_answers, 1);
    assert_int_equal(first->verdict, LW_DEAD);
    assert_false(first->outcome->is_uncharged);
    world_destroy(world);
}

static void
a_batch_of_one_is_a_batch(void **state)
{
    static const char *const texts[] = { "dead bad" };
    struct world *world = open_world(state, LW_BATCH_VERDICT_EACH);
    struct lw_delivery *first = conformance_run_task(world, texts, 1);
    world_wait_results(world, 1);
    assert_int_equal(first->task_answers, 1);
    assert_int_equal(first->verdict, LW_DEAD);
    world_destroy(world);
}

/* The first member was done by then; nobody may believe that. */
static void
a_death_in_the_middle_is_one_error_for_all_and_work_goes_on(void **state)
{
    static const char *const good[] = { "ok", "ok" };
    if (!KIT(state)->deadly) {
        return;
    }
    const char *const deadly[] = { "reply done", KIT(state)->deadly, "ok" };
    struct world *world = open_world(state, LW_BATCH_VERDICT_EACH);
    struct lw_delivery *first = conformance_run_task(world, deadly, 3);
    world_wait_results(world, 1);
    assert_false(first->is_each);
    assert_int_equal(first->task_answers, 1);
    assert_int_equal(first->verdict, LW_ERROR);
    assert_false(first->outcome->is_uncharged);
    assert_int_equal(first->outcome->output_count, 0);
    struct lw_delivery *second = conformance_run_task(world, good, 2);
    world_wait_results(world, 2);
    assert_int_equal(second->verdict, LW_OK);
    assert_int_equal(second->task_next->verdict, LW_OK);
    world_destroy(world);
}

static void
a_batch_that_runs_at_a_stop_ends(void **state)
{
    static const char *const texts[] = { "ok", "dead bad", "ok" };
    struct world *world = open_world(state, LW_BATCH_VERDICT_EACH);
    struct lw_delivery *first = conformance_run_task(world, texts, 3);
    world->engine->ops->stop(world->engine, world->host->now + 15000 * LW_MS);
    world_wait(world, world_engine_is_stopped);
    world_wait_results(world, 1);
    assert_int_equal(first->verdict, LW_OK);
    assert_int_equal(first->task_next->verdict, LW_DEAD);
    world_destroy(world);
}

int
conformance_run_batches(const struct batch_kit *kit)
{
    void *state = (void *)(uintptr_t)kit;
#define CASE(name) cmocka_unit_test_prestate(name, state)
    const struct CMUnitTest tests[] = {
        CASE(each_member_of_each_batch_gets_what_was_said_of_it),
        CASE(one_verdict_is_for_all_of_a_batch),
        CASE(a_batch_of_one_is_a_batch),
        CASE(a_death_in_the_middle_is_one_error_for_all_and_work_goes_on),
        CASE(a_batch_that_runs_at_a_stop_ends),
    };
#undef CASE
    printf("conformance of %s, batches\n", kit->name);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
