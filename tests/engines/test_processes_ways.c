/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_processes_ways.c: what engine processes is told by its options: what a handler sees, batches
 * and why they were handed over, workers that are replaced, lanes that are pinned; and kills at
 * random moments, after which every message has been answered once and nobody was charged.
 */
#include "tests/support/test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "tests/engines/processes_world.h"

static long
number_of(const struct lw_delivery *delivery)
{
    char text[32] = "";
    struct lw_bytes reply = world_reply_of(delivery);
    assert_true(reply.size < sizeof text);
    memcpy(text, reply.data, reply.size);
    return strtol(text, NULL, 10);
}

/* -- What a handler sees ---------------------------------------------------------------------------- */

static void
a_handler_sees_all_of_its_message_in_its_process(void **state)
{
    (void)state;
    struct lw_processes_options options = processes_options("naughty");
    struct world *world = processes_open_world(&options);
    struct lw_header header = { lw_bytes_of("h"), lw_bytes_of("1") };
    world->times = (struct lw_message_times){ 1111, 2222 };
    struct lw_delivery *plain = world_run(world, "see");
    world_wait_results(world, 1);
    world->headers = &header;
    world->header_count = 1;
    struct lw_delivery *again = world_delivery(world, "see");
    again->message.redeliveries = 4;
    again->attempt = 1;
    world_wait(world, world_engine_has_room);
    assert_true(world_submit(world, again));
    world_wait_results(world, 2);
    assert_true(lw_text_is_equal(
        world_reply_of(plain),
        "id=main/orders/3/0 topic=orders partition=3 offset=0 subscription=group pipeline=pipe "
        "key=k h= timestamp=1111 event=2222 attempt=1 retries=0 redeliveries=0 deadline=1 "
        "dispatcher=0"));
    assert_true(lw_text_is_equal(
        world_reply_of(again),
        "id=main/orders/3/1 topic=orders partition=3 offset=1 subscription=group pipeline=pipe "
        "key=k h=1 timestamp=1111 event=2222 attempt=2 retries=4 redeliveries=4 deadline=1 "
        "dispatcher=0"));
    world_destroy(world);
}

static void
a_running_handler_is_told_that_nobody_waits_for_it(void **state)
{
    (void)state;
    struct lw_processes_options options = processes_options("naughty");
    struct world *world = processes_open_world(&options);
    struct lw_delivery *held = world_run(world, "until-cancelled");
    world_wait(world, processes_have_begun);
    world->engine->ops->cancel(world->engine, held);
    world_wait_results(world, 1);
    assert_int_equal(held->verdict, LW_DROP);
    world_destroy(world);
}

/* -- Batches ----------------------------------------------------------------------------------------- */

static struct world *
open_batching(uint32_t size, int64_t wait_ms, enum lw_handover handover, int64_t residence_ms)
{
    struct lw_processes_options options = processes_options("naughty");
    options.window = 64;
    options.tune.batch_size = size;
    options.tune.batch_wait_ms = wait_ms;
    options.tune.handover = handover;
    options.tune.batch_min_residence_ms = residence_ms;
    struct world *world = processes_open_world(&options);
    world_wait(world, world_engine_has_room);
    return world;
}

static void
submit_now(struct world *world, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        assert_true(world_submit(world, world_delivery(world, "ok")));
    }
}

/*
 * A handler that takes no time may be given many. On a machine with other work the first runs may
 * take long, and weigh in what is expected of the next; how many were run.
 */
static uint32_t
learn_depth(struct world *world)
{
    uint32_t runs = 0;
    while (world->engine->room < 16) {
        submit_now(world, 2);
        runs += 2;
        world_wait_results(world, runs);
    }
    return runs;
}

static void
a_full_batch_is_handed_over_at_once(void **state)
{
    (void)state;
    struct world *world = open_batching(2, 60000, LW_HANDOVER_TIMER, 0);
    uint32_t runs = learn_depth(world);
    submit_now(world, 6);
    world_wait_results(world, runs + 6);
    struct lw_processes_figures figures = processes_figures(world);
    assert_int_equal(figures.flushes[LW_PROCESSES_BY_SIZE], runs / 2 + 3);
    assert_int_equal(figures.last_size, 2);
    assert_int_equal(figures.messages, runs + 6);
    world_destroy(world);
}

static void
what_is_no_batch_waits_for_the_timer(void **state)
{
    (void)state;
    struct world *world = open_batching(64, 1500, LW_HANDOVER_TIMER, 0);
    submit_now(world, 2);
    assert_int_equal(processes_figures(world).buffered, 2);
    world_turn(world, 0);
    assert_int_equal(processes_figures(world).flushes[LW_PROCESSES_BY_DEMAND], 0);
    world_wait_results(world, 2);
    struct lw_processes_figures figures = processes_figures(world);
    assert_int_equal(figures.flushes[LW_PROCESSES_BY_TIMER], 1);
    assert_true(figures.last_wait_ns >= 1500 * LW_MS);
    assert_int_equal(figures.buffered, 0);
    world_destroy(world);
}

static void
a_worker_without_work_demands_what_there_is(void **state)
{
    (void)state;
    struct world *world = open_batching(64, 60000, LW_HANDOVER_DEMAND, 0);
    submit_now(world, 2);
    world_wait_results(world, 2);
    assert_int_equal(processes_figures(world).flushes[LW_PROCESSES_BY_DEMAND], 1);
    world_destroy(world);
}

static void
demand_waits_for_the_least_residence(void **state)
{
    (void)state;
    struct world *world = open_batching(64, 60000, LW_HANDOVER_MIN_RESIDENCE, 80);
    submit_now(world, 2);
    world_wait_results(world, 2);
    struct lw_processes_figures figures = processes_figures(world);
    assert_int_equal(figures.flushes[LW_PROCESSES_BY_RESIDENCE], 1);
    assert_true(figures.last_wait_ns >= 80 * LW_MS);
    world_destroy(world);
}

static void
a_stop_hands_over_what_was_gathered(void **state)
{
    (void)state;
    struct world *world = open_batching(64, 60000, LW_HANDOVER_TIMER, 0);
    submit_now(world, 2);
    world->engine->ops->stop(world->engine, world->host->now + 10000 * LW_MS);
    world_wait_results(world, 2);
    assert_int_equal(world->deliveries[0].verdict, LW_OK);
    assert_int_equal(processes_figures(world).flushes[LW_PROCESSES_BY_CLOSE], 1);
    world_wait(world, world_engine_is_stopped);
    world_destroy(world);
}

static void
the_three_times_of_a_message_are_kept(void **state)
{
    (void)state;
    struct lw_processes_options options = processes_options("naughty");
    struct world *world = processes_open_world(&options);
    world_run(world, "spin 30");
    world_wait_results(world, 1);
    struct lw_processes_figures figures = processes_figures(world);
    assert_int_equal(figures.timed, 1);
    assert_true(figures.execution_ns >= 30 * LW_MS);
    assert_true(figures.last_handover_ns > 0 && figures.last_return_ns > 0);
    world_destroy(world);
}

/* -- Workers ----------------------------------------------------------------------------------------- */

static void
a_worker_is_replaced_after_its_number_of_messages(void **state)
{
    (void)state;
    struct lw_processes_options options = processes_options("naughty");
    options.window = 4;
    options.tune.recycle_after = 5;
    options.tune.recycle_jitter = 2;
    struct world *world = processes_open_world(&options);
    for (size_t i = 0; i < 40; i++) {
        world_run(world, "pid");
    }
    world_wait_results(world, 40);
    uint32_t processes = 1;
    uint32_t run = 1;
    for (size_t i = 1; i < 40; i++) {
        bool is_same = number_of(&world->deliveries[i]) == number_of(&world->deliveries[i - 1]);
        run = is_same ? run + 1 : 1;
        processes += is_same ? 0 : 1;
        assert_true(run <= 7);
        assert_int_equal(world->deliveries[i].attempt, 1);
    }
    assert_true(processes >= 6 && processes <= 8);
    assert_int_equal(processes_figures(world).charged, 0);
    world_destroy(world);
}

static void
a_pinned_key_always_meets_the_same_worker(void **state)
{
    static char keys[8][4];
    (void)state;
    struct lw_processes_options options = processes_options("naughty");
    options.workers = 3;
    options.window = 2;
    options.tune.pins_lanes = true;
    struct world *world = processes_open_world(&options);
    for (size_t i = 0; i < 80; i++) {
        (void)snprintf(keys[i % 8], sizeof keys[0], "k%zu", i % 8);
        struct lw_delivery *delivery = world_delivery(world, "pid");
        delivery->message.key = lw_bytes_of(keys[i % 8]);
        world_wait(world, world_engine_has_room);
        assert_true(world_submit(world, delivery));
    }
    world_wait_results(world, 80);
    for (size_t i = 8; i < 80; i++) {
        assert_int_equal(number_of(&world->deliveries[i]),
                         number_of(&world->deliveries[i % 8]));
    }
    world_destroy(world);
}

static bool
has_all_workers(struct world *world)
{
    return world->engine->room >= world->expected_room;
}

/* Also what was handed over to a process that died, started or not. */
static void
a_pinned_key_meets_the_same_worker_after_a_crash(void **state)
{
    (void)state;
    struct lw_processes_options options = processes_options("naughty");
    struct processes_once once;
    options.workers = 3;
    options.window = 4;
    options.tune.pins_lanes = true;
    processes_once_init(&once, "hang-once");
    struct world *world = processes_open_world(&options);
    world->expected_room = 6;
    world_wait(world, has_all_workers);
    struct lw_delivery *before = world_run(world, "worker");
    world_wait_results(world, 1);
    world_run(world, once.command);
    world_run(world, "worker");
    world_wait(world, processes_have_begun);
    assert_int_equal(kill(processes_pid(world, (uint32_t)number_of(before)), SIGKILL), 0);
    world_run(world, "worker");
    world_wait_results(world, 4);
    assert_int_equal(number_of(&world->deliveries[2]), number_of(before));
    assert_int_equal(number_of(&world->deliveries[3]), number_of(before));
    assert_int_equal(world->deliveries[1].verdict, LW_OK);
    assert_int_equal(processes_figures(world).crashes, 1);
    world_destroy(world);
    processes_once_deinit(&once);
}

/*
 * Those that a kill met while they ran alone as suspects are charged; and when kills met one worker
 * before it was ready and the other one soon after, all that waited is given back uncharged. Both
 * run once more. How many were charged.
 */
static uint32_t
run_unfinished_again(struct world *world, uint32_t count)
{
    uint32_t charged = 0;
    uint32_t again = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct lw_delivery *delivery = &world->deliveries[i];
        if (delivery->verdict == LW_OK) {
            continue;
        }
        assert_int_equal(delivery->verdict, LW_ERROR);
        if (!delivery->outcome->is_uncharged) {
            assert_int_equal(delivery->outcome->signal, SIGKILL);
            charged++;
        }
        world_wait(world, world_engine_has_room);
        assert_true(world_submit(world, delivery));
        again++;
    }
    world_wait_results(world, count + again);
    return charged;
}

struct round {
    uint32_t kills;
    uint64_t crashes;
    uint64_t charged;
};

/* One engine, that many messages, one kill in every `distance` of them, about. */
static struct round
kill_at_random(uint32_t messages, uint32_t distance)
{
    struct lw_processes_options options = processes_options("naughty");
    struct round round = { 0 };
    options.workers = 2;
    options.window = 16;
    struct world *world = processes_open_world(&options);
    for (uint32_t i = 0; i < messages; i++) {
        world_run(world, i % 50 == 0 ? "spin 2" : "ok");
        if ((uint32_t)rand() % distance == 0) {
            processes_kill_any(world, (uint32_t)rand());
            round.kills++;
        }
    }
    world_wait_results(world, messages);
    round.crashes = processes_figures(world).crashes;
    round.charged = processes_figures(world).charged;
    assert_int_equal(run_unfinished_again(world, messages), round.charged);
    for (uint32_t i = 0; i < messages; i++) {
        assert_int_equal(world->deliveries[i].verdict, LW_OK);
        assert_true(world->deliveries[i].attempt <= 2);
    }
    world_destroy(world);
    return round;
}

/* Who dies with large messages unread has sent its large answers all the same. */
static void
a_kill_among_large_messages_is_no_breach(void **state)
{
    enum { MESSAGES = 200, SIZE = 20000 };
    (void)state;
    struct lw_processes_options options = processes_options("naughty");
    options.window = 4;
    struct world *world = processes_open_world(&options);
    static char large[SIZE];
    memset(large, 'x', sizeof large);
    memcpy(large, "big 40000 ", 10);
    for (uint32_t i = 0; i < MESSAGES; i++) {
        struct lw_delivery *delivery = world_delivery_of(
            world, (struct lw_bytes){ large, sizeof large });
        world_wait(world, world_engine_has_room);
        assert_true(world_submit(world, delivery));
        if (i % 10 == 9) {
            processes_kill_any(world, 0);
        }
    }
    world_wait_results(world, MESSAGES);
    (void)run_unfinished_again(world, MESSAGES);
    assert_false(world_has_logged(world, "handler.breach"));
    world_destroy(world);
}

/* LANEWAY_TEST_KILLS asks for more of them: tools/long. */
static void
kills_at_random_moments_lose_nothing_and_charge_only_what_ran_alone(void **state)
{
    enum { MESSAGES = 3000, KILLS = 15 };
    (void)state;
    const char *wanted_text = getenv("LANEWAY_TEST_KILLS");
    const char *seed_text = getenv("LANEWAY_TEST_SEED");
    uint64_t seed = seed_text ? strtoull(seed_text, NULL, 10) : lw_clock_seed();
    unsigned long wanted = wanted_text ? strtoul(wanted_text, NULL, 10) : KILLS;
    struct round sum = { 0 };
    unsigned long messages = 0;
    srand((unsigned)seed);
    do {
        struct round round = kill_at_random(MESSAGES, MESSAGES / KILLS);
        messages += MESSAGES;
        sum.kills += round.kills;
        sum.crashes += round.crashes;
        sum.charged += round.charged;
    } while (sum.kills < wanted / 2 || (wanted_text && sum.kills < wanted));
    print_message("seed %llu: %lu messages, %u kills, %llu met a handler, %llu of them alone\n",
                  (unsigned long long)seed, messages, sum.kills,
                  (unsigned long long)sum.crashes, (unsigned long long)sum.charged);
}

/* -- Lack of memory ----------------------------------------------------------------------------------- */

static void
an_engine_is_made_whole_or_not_at_all(void **state)
{
    (void)state;
    struct lw_processes_options options = processes_options("naughty");
    struct lw_property option = { "open", "yes" };
    struct world *world = world_create();
    enum lw_status status = LW_STATUS_NO_MEMORY;
    uint32_t tries = 0;
    options.options = &option;
    options.option_count = 1;
    options.workers = 3;
    uint64_t live = lw_alloc_live();
    while (status != LW_STATUS_OK) {
        lw_alloc_fail_at(++tries);
        status = lw_processes_engine_create(world->host, &world->completions, "obey", &options,
                                            &world->engine);
        assert_true(status == LW_STATUS_OK || status == LW_STATUS_NO_MEMORY);
        assert_true(status == LW_STATUS_OK || lw_alloc_live() == live);
    }
    lw_alloc_fail_at(0);
    assert_true(tries > 8);
    world_destroy(world);
}

static void
a_message_that_finds_no_memory_waits_and_is_not_lost(void **state)
{
    enum { MESSAGES = 24 };
    (void)state;
    struct lw_processes_options options = processes_options("naughty");
    options.window = 2;
    struct world *world = processes_open_world(&options);
    static char large[200000];
    memset(large, 'x', sizeof large);
    memcpy(large, "size", 4);
    for (uint32_t i = 0; i < MESSAGES; i++) {
        struct lw_delivery *delivery = world_delivery_of(
            world, (struct lw_bytes){ large, sizeof large });
        world_wait(world, world_engine_has_room);
        lw_alloc_fail_at(1 + i % 4);
        assert_true(world_submit(world, delivery));
        lw_alloc_fail_at(0);
    }
    world_wait_results(world, MESSAGES);
    for (uint32_t i = 0; i < MESSAGES; i++) {
        assert_int_equal(number_of(&world->deliveries[i]), sizeof large);
    }
    world_destroy(world);
}

/* -- How many there are -------------------------------------------------------------------------- */

static bool
has_four_workers(struct world *world)
{
    return processes_figures(world).workers == 4;
}

static struct world *
open_growing(uint32_t workers, bool pins_lanes)
{
    struct lw_processes_options options = processes_options("naughty");
    options.workers = workers;
    options.tune.min_workers = 1;
    options.tune.pins_lanes = pins_lanes;
    return processes_open_world(&options);
}

static void
one_message_at_a_time_needs_one_worker(void **state)
{
    (void)state;
    struct lw_processes_options options = processes_options("naughty");
    options.workers = 4;
    options.window = 2;
    options.tune.min_workers = 1;
    struct world *world = processes_open_world(&options);
    for (uint32_t i = 0; i < 20; i++) {
        world_run(world, "ok");
        world_wait_results(world, i + 1);
    }
    assert_int_equal(processes_figures(world).workers, 1);
    assert_int_equal(world->engine->room, 2);
    world_destroy(world);
}

/* Each holds one and cannot be done with it: the next one needs another worker. */
static void
more_workers_are_forked_while_all_are_full_and_never_more_than_allowed(void **state)
{
    struct lw_delivery *held[4];
    (void)state;
    struct world *world = open_growing(4, false);
    for (size_t i = 0; i < 4; i++) {
        held[i] = world_run(world, "until-cancelled");
    }
    world_wait(world, has_four_workers);
    assert_int_equal(world->engine->room, 0);
    for (size_t i = 0; i < 4; i++) {
        world->engine->ops->cancel(world->engine, held[i]);
    }
    world_wait_results(world, 4);
    assert_int_equal(world->engine->room, 4);
    world_destroy(world);
}

static bool
has_two_workers(struct world *world)
{
    return processes_figures(world).workers == 2;
}

/* Where slots are fewer than what one worker may hold of messages that take microseconds. */
static void
more_workers_are_forked_while_messages_wait_though_there_is_room(void **state)
{
    struct lw_delivery *held[4];
    uint32_t runs = 0;
    (void)state;
    struct lw_processes_options options = processes_options("naughty");
    options.workers = 2;
    options.window = 16;
    options.tune.min_workers = 1;
    struct world *world = processes_open_world(&options);
    while (world->engine->room < 8) {
        world_run(world, "ok");
        world_wait_results(world, ++runs);
    }
    assert_int_equal(processes_figures(world).workers, 1);
    for (size_t i = 0; i < 4; i++) {
        held[i] = world_delivery(world, "until-cancelled");
        assert_true(world_submit(world, held[i]));
    }
    world_wait(world, has_two_workers);
    for (size_t i = 0; i < 4; i++) {
        world->engine->ops->cancel(world->engine, held[i]);
    }
    world_wait_results(world, runs + 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(held[i]->verdict, LW_DROP); /* none had to time out first */
    }
    world_destroy(world);
}

static void
nothing_is_put_behind_a_long_message_while_a_worker_can_be_forked(void **state)
{
    (void)state;
    struct lw_processes_options options = processes_options("naughty");
    options.workers = 2;
    options.window = 16;
    options.tune.min_workers = 1;
    struct world *world = processes_open_world(&options);
    struct lw_delivery *slow = world_run(world, "until-cancelled");
    world_wait(world, processes_have_begun);
    world_spend(world, 5);
    struct lw_delivery *next = world_run(world, "ok");
    world_wait_results(world, 1);
    assert_ptr_equal(world->results[0], next);
    world->engine->ops->cancel(world->engine, slow);
    world_wait_results(world, 2);
    world_destroy(world);
}

static void
a_suspect_is_run_alone_by_the_only_worker_that_there_is(void **state)
{
    (void)state;
    struct world *world = open_growing(4, false);
    struct lw_delivery *bad = world_run(world, "exit 3");
    world_wait_results(world, 1);
    assert_int_equal(bad->verdict, LW_ERROR);
    assert_false(bad->outcome->is_uncharged);
    world_destroy(world);
}

static void
pinned_lanes_have_all_workers_at_once(void **state)
{
    (void)state;
    struct world *world = open_growing(4, true);
    world_wait(world, has_four_workers);
    world_destroy(world);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_handler_sees_all_of_its_message_in_its_process),
        cmocka_unit_test(a_running_handler_is_told_that_nobody_waits_for_it),
        cmocka_unit_test(a_full_batch_is_handed_over_at_once),
        cmocka_unit_test(what_is_no_batch_waits_for_the_timer),
        cmocka_unit_test(a_worker_without_work_demands_what_there_is),
        cmocka_unit_test(demand_waits_for_the_least_residence),
        cmocka_unit_test(a_stop_hands_over_what_was_gathered),
        cmocka_unit_test(the_three_times_of_a_message_are_kept),
        cmocka_unit_test(a_worker_is_replaced_after_its_number_of_messages),
        cmocka_unit_test(a_pinned_key_always_meets_the_same_worker),
        cmocka_unit_test(a_pinned_key_meets_the_same_worker_after_a_crash),
        cmocka_unit_test(an_engine_is_made_whole_or_not_at_all),
        cmocka_unit_test(a_message_that_finds_no_memory_waits_and_is_not_lost),
        cmocka_unit_test(a_kill_among_large_messages_is_no_breach),
        cmocka_unit_test(kills_at_random_moments_lose_nothing_and_charge_only_what_ran_alone),
        cmocka_unit_test(one_message_at_a_time_needs_one_worker),
        cmocka_unit_test(
            more_workers_are_forked_while_all_are_full_and_never_more_than_allowed),
        cmocka_unit_test(more_workers_are_forked_while_messages_wait_though_there_is_room),
        cmocka_unit_test(nothing_is_put_behind_a_long_message_while_a_worker_can_be_forked),
        cmocka_unit_test(a_suspect_is_run_alone_by_the_only_worker_that_there_is),
        cmocka_unit_test(pinned_lanes_have_all_workers_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
