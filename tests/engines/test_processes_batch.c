/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_processes_batch.c: engine processes with tasks of several messages: what each member sees
 * and says, in the ring and beside it, too few verdicts, one for all, and ends of the process in the
 * middle, which charge no member, however many crashes it takes to be dead.
 */
#include "tests/support/test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/engines/conformance.h"
#include "tests/engines/processes_world.h"

enum { MEMBERS = 100 };

static struct lw_processes_options
options_of(enum lw_batch_verdict verdict)
{
    struct lw_processes_options options = processes_options("naughty");
    static const struct lw_property one[] = { { "verdict", "one" } };
    options.options = one;
    options.option_count = verdict == LW_BATCH_VERDICT_ONE;
    options.batch = (struct lw_batch_options){ .size = MEMBERS, .verdict = verdict };
    return options;
}

static struct world *
open_world(enum lw_batch_verdict verdict)
{
    struct lw_processes_options options = options_of(verdict);
    return processes_open_world(&options);
}

/* Appends a member to the task of `first`, or begins one. */
static struct lw_delivery *
add(struct world *world, struct lw_delivery *first, struct lw_bytes value)
{
    struct lw_delivery *member = world_delivery_of(world, value);
    member->is_batch = true;
    if (!first) {
        member->task_first = member;
        member->task_count = 1;
        return member;
    }
    struct lw_delivery *last = first;
    while (last->task_next) {
        last = last->task_next;
    }
    last->task_next = member;
    member->task_first = first;
    member->state = LW_STATE_QUEUED;
    lw_delivery_begin_run(member, world->host->now);
    first->task_count++;
    return first;
}

static struct lw_delivery *
submit(struct world *world, struct lw_delivery *first)
{
    world_wait(world, world_engine_has_room);
    assert_true(world_submit(world, first));
    return first;
}

/* Of commands of naughty.c. */
static struct lw_delivery *
run_task(struct world *world, const char *const *texts, size_t count)
{
    struct lw_delivery *first = NULL;
    for (size_t i = 0; i < count; i++) {
        first = add(world, first, lw_bytes_of(texts[i]));
    }
    return submit(world, first);
}

static struct lw_delivery *
member_of(struct lw_delivery *first, size_t i)
{
    for (; i > 0; i--) {
        first = first->task_next;
    }
    return first;
}

static bool
says(const struct lw_delivery *delivery, const char *text)
{
    struct lw_bytes reply = world_reply_of(delivery);
    return memmem(reply.data, reply.size, text, strlen(text)) != NULL;
}

/* -- What is said and seen ------------------------------------------------------------------------- */

static void
each_member_gets_what_was_said_of_it(void **state)
{
    static const char *const texts[] = { "ok", "size", "what", "pid" };
    struct world *world = open_world(LW_BATCH_VERDICT_EACH);
    (void)state;
    for (size_t round = 1; round <= 3; round++) {
        struct lw_delivery *first = run_task(world, texts, 4);
        world_wait_results(world, round);
        assert_ptr_equal(world->results[round - 1], first);
        assert_true(first->is_each);
        assert_int_equal(first->task_answers, 4);
        assert_int_equal(first->verdict, LW_OK);
        assert_true(says(member_of(first, 1), "4"));
        assert_int_equal(member_of(first, 2)->verdict, LW_ERROR);
        assert_int_equal(strtol(world_reply_of(member_of(first, 3)).data, NULL, 10),
                         processes_pid(world, 0));
    }
    world_destroy(world);
}

static void
each_member_sees_its_own_place(void **state)
{
    struct world *world = open_world(LW_BATCH_VERDICT_EACH);
    struct lw_partition other = world->partition;
    struct lw_delivery *first = NULL;
    char id[128];
    char text[160];
    (void)state;
    other.number = world->partition.number + 7;
    for (int i = 0; i < 6; i++) {
        first = add(world, first, lw_bytes_of("see"));
        struct lw_delivery *member = member_of(first, (size_t)i);
        member->partition = i / 2 == 1 ? &other : &world->partition;
    }
    submit(world, first);
    world_wait_results(world, 1);
    for (size_t i = 0; i < 6; i++) {
        const struct lw_delivery *member = member_of(first, i);
        (void)lw_delivery_message_id(member, id, sizeof id);
        (void)snprintf(text, sizeof text, "id=%s topic=", id);
        assert_true(says(member, text));
        (void)snprintf(text, sizeof text, "partition=%d offset=%lld ",
                       member->partition->number, (long long)member->message.position);
        assert_true(says(member, text));
    }
    world_destroy(world);
}

/* Together they are larger than the ring, each is small. */
static void
a_batch_larger_than_the_ring_goes_beside_it(void **state)
{
    struct world *world = open_world(LW_BATCH_VERDICT_EACH);
    struct lw_delivery *first = NULL;
    static char value[2000] = "size ";
    (void)state;
    memset(value + 5, 'x', sizeof value - 5);
    for (size_t i = 0; i < MEMBERS; i++) {
        first = add(world, first, (struct lw_bytes){ value, sizeof value - i });
    }
    submit(world, first);
    world_wait_results(world, 1);
    for (size_t i = 0; i < MEMBERS; i++) {
        assert_int_equal(strtoul(world_reply_of(member_of(first, i)).data, NULL, 10),
                         sizeof value - i);
    }
    assert_int_equal(processes_figures(world).items, 1);
    world_destroy(world);
}

static void
answers_larger_than_the_ring_come_beside_it(void **state)
{
    static const char *const texts[] = { "big 100000", "ok", "big 30000", "big 20000",
                                         "big 200000" };
    struct world *world = open_world(LW_BATCH_VERDICT_EACH);
    (void)state;
    struct lw_delivery *first = run_task(world, texts, 5);
    world_wait_results(world, 1);
    assert_int_equal(world_reply_of(first).size, 100000);
    assert_int_equal(world_reply_of(member_of(first, 2)).size, 30000);
    assert_int_equal(world_reply_of(member_of(first, 3)).size, 20000);
    assert_int_equal(world_reply_of(member_of(first, 4)).size, 200000);
    world_destroy(world);
}

static void
too_few_verdicts_are_seen(void **state)
{
    static const char *const texts[] = { "short", "ok", "ok" };
    struct world *world = open_world(LW_BATCH_VERDICT_EACH);
    (void)state;
    struct lw_delivery *first = run_task(world, texts, 3);
    world_wait_results(world, 1);
    assert_int_equal(first->task_answers, 2);
    assert_int_equal(member_of(first, 1)->verdict, LW_OK);
    assert_int_equal(member_of(first, 2)->verdict, LW_PENDING);
    world_destroy(world);
}

static void
one_verdict_is_for_all(void **state)
{
    static const char *const texts[] = { "size", "ok" };
    struct world *world = open_world(LW_BATCH_VERDICT_ONE);
    (void)state;
    struct lw_delivery *first = run_task(world, texts, 2);
    world_wait_results(world, 1);
    assert_false(first->is_each);
    assert_int_equal(first->verdict, LW_OK);
    world_destroy(world);
}

/* As on any engine: the others are ignored, which is said, and nothing runs again. */
static void
of_more_than_the_one_verdict_the_first_counts(void **state)
{
    static const char *const texts[] = { "ok", "what", "size" };
    struct lw_processes_options options = options_of(LW_BATCH_VERDICT_ONE);
    options.option_count = 0; /* its handler does not know that */
    struct world *world = processes_open_world(&options);
    (void)state;
    struct lw_delivery *first = run_task(world, texts, 3);
    world_wait_results(world, 1);
    assert_false(first->is_each);
    assert_int_equal(first->task_answers, 3);
    assert_int_equal(first->verdict, LW_OK);
    world_destroy(world);
}

/* Else the batch would be done without that reply. */
static void
a_reply_too_large_takes_the_one_verdict_back(void **state)
{
    static const char *const texts[] = { "ok", "big 200000", "ok" };
    struct lw_processes_options options = options_of(LW_BATCH_VERDICT_ONE);
    options.tune.item_bytes_max = 100000;
    struct world *world = processes_open_world(&options);
    (void)state;
    struct lw_delivery *first = run_task(world, texts, 3);
    world_wait_results(world, 1);
    assert_false(first->is_each);
    assert_int_equal(first->verdict, LW_ERROR);
    assert_non_null(strstr(lw_delivery_reason(first), "cannot be kept"));
    struct lw_delivery *alone = run_task(world, texts + 1, 1);
    world_wait_results(world, 2);
    assert_int_equal(alone->verdict, LW_DEAD);
    world_destroy(world);
}

/* -- Ends ------------------------------------------------------------------------------------------ */

static void
a_crash_is_charged_to_the_batch_and_makes_nobody_dead(void **state)
{
    static const char *const deadly[] = { "ok", "crash of one of them", "ok" };
    static const char *const good[] = { "ok", "size" };
    struct lw_processes_options options = options_of(LW_BATCH_VERDICT_EACH);
    options.tune.max_crashes = 1;
    struct world *world = processes_open_world(&options);
    (void)state;
    struct lw_delivery *first = run_task(world, deadly, 3);
    world_wait_results(world, 1);
    assert_false(first->is_each);
    assert_int_equal(first->verdict, LW_ERROR);
    assert_false(first->outcome->is_uncharged);
    assert_int_equal(first->outcome->signal, SIGSEGV);
    assert_non_null(strstr(lw_delivery_reason(first), "of one of them"));
    struct lw_delivery *second = run_task(world, good, 2);
    world_wait_results(world, 2);
    assert_true(says(member_of(second, 1), "4"));
    world_destroy(world);
}

static void
a_kill_from_outside_runs_the_batch_again_and_charges_nobody(void **state)
{
    struct processes_once once;
    (void)state;
    processes_once_init(&once, "hang-once");
    const char *const texts[] = { once.command, "size" };
    struct world *world = open_world(LW_BATCH_VERDICT_EACH);
    struct lw_delivery *first = run_task(world, texts, 2);
    world_wait(world, processes_have_begun);
    assert_int_equal(kill(processes_pid(world, 0), SIGKILL), 0);
    world_wait_results(world, 1);
    assert_int_equal(first->verdict, LW_OK);
    assert_int_equal(first->task_answers, 2);
    assert_true(says(member_of(first, 1), "4"));
    assert_int_equal(processes_figures(world).crashes, 1);
    assert_int_equal(processes_figures(world).charged, 0);
    world_destroy(world);
    processes_once_deinit(&once);
}

static void
a_member_too_large_is_told_of_the_batch(void **state)
{
    struct lw_processes_options options = options_of(LW_BATCH_VERDICT_EACH);
    options.tune.item_bytes_max = 100000;
    struct world *world = processes_open_world(&options);
    static char large[200000];
    (void)state;
    struct lw_delivery *first = add(world, NULL, lw_bytes_of("ok"));
    first = add(world, first, (struct lw_bytes){ large, sizeof large });
    submit(world, first);
    world_wait_results(world, 1);
    assert_int_equal(first->verdict, LW_ERROR); /* each runs again alone */
    struct lw_delivery *alone = add(world, NULL, (struct lw_bytes){ large, sizeof large });
    submit(world, alone);
    world_wait_results(world, 2);
    assert_int_equal(alone->verdict, LW_DEAD);
    assert_non_null(strstr(lw_delivery_reason(alone), "item_max"));
    world_destroy(world);
}

static void
a_batch_is_cancelled_when_all_of_it_is(void **state)
{
    static const char *const before[] = { "spin 100" };
    static const char *const texts[] = { "until-cancelled", "ok" };
    struct lw_processes_options options = options_of(LW_BATCH_VERDICT_EACH);
    options.window = 2;
    struct world *world = processes_open_world(&options);
    (void)state;
    (void)run_task(world, before, 1);
    struct lw_delivery *first = run_task(world, texts, 2);
    atomic_store(&first->is_cancelled, true);
    first->task_cancelled = 1;
    world_wait_results(world, 1); /* from here on it is the oldest */
    world_wait(world, processes_have_begun);
    world_spend(world, 50); /* if it were told, it would answer within a few */
    assert_int_equal(world->result_count, 1);
    first->task_cancelled = 2;
    world->engine->ops->cancel(world->engine, first);
    world_wait_results(world, 2);
    assert_int_equal(first->verdict, LW_DROP);
    assert_int_equal(member_of(first, 1)->verdict, LW_OK);
    world_destroy(world);
}

static struct world *
open_kit(const void *state, enum lw_batch_verdict verdict)
{
    struct lw_processes_options options = options_of(verdict);
    struct lw_processes_options obeying = processes_options("obey");
    options.path = obeying.path;
    options.batch.size = 4;
    options.window = 2;
    (void)state;
    return processes_open_world(&options);
}

int
main(void)
{
    static const struct batch_kit kit = { .name = "processes",
                                          .open = open_kit,
                                          .deadly = "crash" };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_member_gets_what_was_said_of_it),
        cmocka_unit_test(each_member_sees_its_own_place),
        cmocka_unit_test(a_batch_larger_than_the_ring_goes_beside_it),
        cmocka_unit_test(answers_larger_than_the_ring_come_beside_it),
        cmocka_unit_test(too_few_verdicts_are_seen),
        cmocka_unit_test(one_verdict_is_for_all),
        cmocka_unit_test(of_more_than_the_one_verdict_the_first_counts),
        cmocka_unit_test(a_reply_too_large_takes_the_one_verdict_back),
        cmocka_unit_test(a_crash_is_charged_to_the_batch_and_makes_nobody_dead),
        cmocka_unit_test(a_kill_from_outside_runs_the_batch_again_and_charges_nobody),
        cmocka_unit_test(a_member_too_large_is_told_of_the_batch),
        cmocka_unit_test(a_batch_is_cancelled_when_all_of_it_is),
    };
    return conformance_run_batches(&kit) + cmocka_run_group_tests(tests, NULL, NULL);
}
