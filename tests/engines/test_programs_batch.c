/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_programs_batch.c: programs that take several messages at once, in lines and in frames: the
 * handshake that says so, a request with all messages, an answer with a result for each or one
 * for all, too few and too many of them, and a death with a batch in hand.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#include "tests/engines/conformance.h"
#include "tests/engines/programs_world.h"

enum { MEMBERS = 4 };

static struct world *
open_world(const bool *is_framed, const char *how, enum lw_batch_verdict verdict)
{
    struct lw_programs_options options = programs_options("batch.py", how);
    struct world *world = world_create();
    options.protocol = *is_framed ? LW_PROTOCOL_FRAMES : LW_PROTOCOL_LINES;
    options.batch = (struct lw_batch_options){ .size = MEMBERS, .verdict = verdict };
    programs_create(world, &options);
    return world;
}

/* Submits one task of these messages, once there is room for it; returns its first. */
static struct lw_delivery *
run_task(struct world *world, const char *const *texts, size_t count)
{
    struct lw_delivery *first = NULL;
    struct lw_delivery *last = NULL;
    for (size_t i = 0; i < count; i++) {
        struct lw_delivery *member = world_delivery(world, texts[i]);
        first = first ? first : member;
        member->task_first = first;
        member->is_batch = true;
        if (last) {
            last->task_next = member;
            member->state = LW_STATE_QUEUED;
            lw_delivery_begin_run(member, world->host->now);
        }
        last = member;
    }
    first->task_count = (uint32_t)count;
    world_wait(world, world_engine_has_room);
    assert_true(world_submit(world, first));
    return first;
}

static void
each_message_has_its_own_result(void **state)
{
    static const char *const texts[] = { "ok", "reply first \xc3\xa4", "dead bad",
                                         "reply 2nd" };
    struct world *world = open_world(*state, "", LW_BATCH_VERDICT_EACH);
    for (int round = 0; round < 3; round++) {
        struct lw_delivery *first = run_task(world, texts, 4);
        world_wait_results(world, (size_t)round + 1);
        struct lw_delivery *second = first->task_next;
        struct lw_delivery *third = second->task_next;
        assert_true(first->is_each);
        assert_int_equal(first->task_answers, 4);
        assert_int_equal(first->verdict, LW_OK);
        assert_true(lw_bytes_is_equal(world_reply_of(second), lw_bytes_of("first \xc3\xa4")));
        assert_int_equal(third->verdict, LW_DEAD);
        assert_string_equal(lw_delivery_reason(third), "bad");
        assert_true(lw_bytes_is_equal(world_reply_of(third->task_next), lw_bytes_of("2nd")));
    }
    world_destroy(world);
}

static void
a_result_too_few_leaves_the_last_without_one(void **state)
{
    static const char *const texts[] = { "ok", "reply yes", "ok" };
    struct world *world = open_world(*state, "short", LW_BATCH_VERDICT_EACH);
    struct lw_delivery *first = run_task(world, texts, 3);
    world_wait_results(world, 1);
    assert_int_equal(first->task_answers, 2);
    assert_int_equal(first->task_next->verdict, LW_OK);
    assert_int_equal(first->task_next->task_next->verdict, LW_PENDING);
    world_destroy(world);
}

static void
a_result_too_many_is_counted(void **state)
{
    static const char *const texts[] = { "ok", "retry busy" };
    struct world *world = open_world(*state, "long", LW_BATCH_VERDICT_EACH);
    struct lw_delivery *first = run_task(world, texts, 2);
    world_wait_results(world, 1);
    assert_int_equal(first->task_answers, 3);
    assert_int_equal(first->task_next->verdict, LW_RETRY);
    assert_string_equal(lw_delivery_reason(first->task_next), "busy");
    world_destroy(world);
}

static void
one_result_is_for_all(void **state)
{
    static const char *const texts[] = { "ok", "retry busy", "ok" };
    struct world *world = open_world(*state, "one", LW_BATCH_VERDICT_ONE);
    struct lw_delivery *first = run_task(world, texts, 3);
    world_wait_results(world, 1);
    assert_false(first->is_each);
    assert_int_equal(first->verdict, LW_RETRY);
    assert_string_equal(lw_delivery_reason(first), "busy");
    world_destroy(world);
}

static void
a_program_that_does_not_say_that_it_takes_batches_gets_none(void **state)
{
    struct world *world = open_world(*state, "old", LW_BATCH_VERDICT_EACH);
    world_wait(world, world_engine_is_down);
    assert_non_null(strstr(world->engine->down_error.message, "takes batches"));
    assert_int_equal(world->engine->room, 0);
    world_destroy(world);
}

static void
a_death_is_charged_to_the_batch_that_was_alone(void **state)
{
    static const char *const deadly[] = { "ok", "die", "ok" };
    static const char *const good[] = { "ok", "ok" };
    struct world *world = open_world(*state, "", LW_BATCH_VERDICT_EACH);
    struct lw_delivery *first = run_task(world, deadly, 3);
    world_wait_results(world, 1);
    assert_false(first->is_each);
    assert_int_equal(first->verdict, LW_ERROR);
    assert_false(first->outcome->is_uncharged);
    assert_non_null(strstr(lw_delivery_reason(first), "exit 9"));
    struct lw_delivery *second = run_task(world, good, 2);
    world_wait_results(world, 2);
    assert_int_equal(second->task_next->verdict, LW_OK);
    world_destroy(world);
}

static struct world *
open_kit(const void *state, enum lw_batch_verdict verdict)
{
    return open_world(state, verdict == LW_BATCH_VERDICT_ONE ? "one" : "", verdict);
}

static int
run_all(bool *is_framed)
{
    const struct batch_kit kit = { .name = *is_framed ? "frames" : "lines",
                                   .open = open_kit,
                                   .state = is_framed,
                                   .deadly = "die" };
#define CASE(name) cmocka_unit_test_prestate(name, is_framed)
    const struct CMUnitTest tests[] = {
        CASE(each_message_has_its_own_result),
        CASE(a_result_too_few_leaves_the_last_without_one),
        CASE(a_result_too_many_is_counted),
        CASE(one_result_is_for_all),
        CASE(a_program_that_does_not_say_that_it_takes_batches_gets_none),
        CASE(a_death_is_charged_to_the_batch_that_was_alone),
    };
#undef CASE
    printf("batches in %s\n", *is_framed ? "frames" : "lines");
    return conformance_run_batches(&kit) + cmocka_run_group_tests(tests, NULL, NULL);
}

int
main(void)
{
    bool lines = false;
    bool frames = true;
    return run_all(&lines) + run_all(&frames);
}
