/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_processes_faults.c: handlers that crash, hang, print, answer too much, or write over the
 * memory that they share with us; workers and zygotes that are killed. Whatever they do, every
 * message is answered once, and nobody else is charged.
 */
#include "tests/support/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/engines/processes_world.h"

static struct world *
open_world(uint32_t workers, uint32_t window)
{
    struct lw_processes_options options = processes_options("naughty");
    options.workers = workers;
    options.window = window;
    return processes_open_world(&options);
}

static bool
has_expected_room(struct world *world)
{
    return world->engine->room >= world->expected_room;
}

/* -- Crashes ------------------------------------------------------------------------------------- */

static void
a_message_that_crashes_alone_is_charged_with_signal_and_last_words(void **state)
{
    (void)state;
    struct world *world = open_world(1, 4);
    struct lw_delivery *bad = world_run(world, "crash no such order");
    world_wait_results(world, 1);
    assert_int_equal(bad->verdict, LW_ERROR);
    assert_int_equal(bad->outcome->signal, SIGSEGV);
    assert_false(bad->outcome->is_uncharged);
    assert_non_null(strstr(lw_delivery_reason(bad), "killed by signal 11 (SIGSEGV)"));
    assert_non_null(strstr(lw_delivery_reason(bad), "no such order"));
    assert_int_equal(processes_figures(world).crashes, 2);
    assert_int_equal(processes_figures(world).charged, 1);
    world_destroy(world);
}

static void
the_third_charged_crash_makes_a_message_dead(void **state)
{
    (void)state;
    struct world *world = open_world(1, 4);
    struct lw_delivery *bad = world_run(world, "crash it is me again");
    for (size_t run = 1; run <= 2; run++) {
        world_wait_results(world, run);
        assert_int_equal(bad->verdict, LW_ERROR);
        world_wait(world, world_engine_has_room);
        assert_true(world_submit(world, bad));
    }
    world_wait_results(world, 3);
    assert_int_equal(bad->verdict, LW_DEAD);
    assert_non_null(strstr(lw_delivery_reason(bad), "SIGSEGV) (crash 3 of this message)"));
    assert_non_null(strstr(lw_delivery_reason(bad), "it is me again"));
    world_destroy(world);
}

static void
what_was_handed_over_beside_a_crash_runs_again_uncharged(void **state)
{
    (void)state;
    struct world *world = open_world(1, 8);
    world_run(world, "ok"); /* the depth is known from here on */
    world_wait_results(world, 1);
    for (size_t i = 0; i < 8; i++) {
        world_wait(world, world_engine_has_room);
        assert_true(world_submit(world, world_delivery(world, i == 3 ? "exit 3" : "ok")));
    }
    world_wait_results(world, 9);
    for (size_t i = 1; i <= 8; i++) {
        bool is_bad = i == 4;
        assert_int_equal(world->deliveries[i].verdict, is_bad ? LW_ERROR : LW_OK);
        assert_int_equal(world->deliveries[i].attempt, 1);
    }
    assert_non_null(strstr(lw_delivery_reason(&world->deliveries[4]), "exit 3"));
    assert_int_equal(processes_figures(world).charged, 1);
    world_destroy(world);
}

static void
several_suspects_each_get_a_process_of_their_own(void **state)
{
    (void)state;
    struct world *world = open_world(3, 1);
    world->expected_room = 3;
    for (size_t i = 0; i < 9; i++) {
        world_run(world, i % 3 == 0 ? "crash one of many" : "ok");
    }
    world_wait_results(world, 9);
    for (size_t i = 0; i < 9; i++) {
        assert_int_equal(world->deliveries[i].verdict, i % 3 == 0 ? LW_ERROR : LW_OK);
    }
    assert_int_equal(processes_figures(world).charged, 3);
    assert_int_equal(processes_figures(world).crashes, 6);
    world_destroy(world);
}

static void
a_kill_from_outside_charges_nobody(void **state)
{
    (void)state;
    struct processes_once once;
    processes_once_init(&once, "hang-once");
    struct world *world = open_world(1, 2);
    struct lw_delivery *slow = world_run(world, once.command);
    world_wait(world, processes_have_begun);
    assert_int_equal(kill(processes_pid(world, 0), SIGKILL), 0);
    world_wait_results(world, 1);
    assert_int_equal(slow->verdict, LW_OK);
    assert_int_equal(slow->attempt, 1);
    assert_int_equal(processes_figures(world).charged, 0);
    assert_true(world_has_logged(world, "killed by signal 9 (SIGKILL)"));
    world_destroy(world);
    processes_once_deinit(&once);
}

static void
a_late_message_is_charged_and_the_one_behind_it_is_not(void **state)
{
    (void)state;
    struct lw_processes_options options = processes_options("naughty");
    options.window = 2;
    options.timeout_ms = 2000;
    struct world *world = processes_open_world(&options);
    struct lw_delivery *late = world_run(world, "spin 60000");
    struct lw_delivery *behind = world_run(world, "ok");
    world_wait_results(world, 2);
    assert_int_equal(late->verdict, LW_ERROR);
    assert_string_equal(lw_delivery_reason(late), "timed out after 2s");
    assert_false(late->outcome->is_uncharged);
    assert_int_equal(behind->verdict, LW_OK);
    assert_int_equal(behind->attempt, 1);
    world_destroy(world);
}

/* -- What does not start ----------------------------------------------------------------------------- */

static void
a_handler_that_refuses_to_open_takes_the_engine_down_in_its_words(void **state)
{
    (void)state;
    struct lw_property option = { "open", "no" };
    struct lw_processes_options options = processes_options("naughty");
    options.options = &option;
    options.option_count = 1;
    struct world *world = processes_open_world(&options);
    world_wait(world, world_engine_is_down);
    assert_int_equal(world->engine->room, 0);
    assert_string_equal(world->engine->down_error.code, "E0609");
    assert_non_null(
        strstr(world->engine->down_error.message, "the moon is in the wrong place"));
    assert_non_null(strstr(world->engine->down_error.help, "Next try in 1s"));
    assert_false(world->engine->down_error.is_fatal);
    world_destroy(world);
}

static void
a_handler_that_crashes_while_it_opens_shows_its_last_words(void **state)
{
    (void)state;
    struct lw_property option = { "open", "crash" };
    struct lw_processes_options options = processes_options("naughty");
    options.options = &option;
    options.option_count = 1;
    struct world *world = processes_open_world(&options);
    world_wait(world, world_engine_is_down);
    assert_non_null(strstr(world->engine->down_error.message, "SIGSEGV) before it was ready"));
    assert_non_null(strstr(world->engine->down_error.help, "constructor of everything failed"));
    world_destroy(world);
}

static void
a_plugin_that_is_not_there_is_said_and_tried_again(void **state)
{
    (void)state;
    struct lw_processes_options options = processes_options("no_such_plugin");
    struct world *world = processes_open_world(&options);
    world_wait(world, world_engine_is_down);
    assert_string_equal(world->engine->down_error.code, "E0601");
    assert_true(world_has_logged(world, "next_try=1s"));
    world_destroy(world);
}

/* -- Large ones --------------------------------------------------------------------------------------- */

static struct lw_delivery *
run_sized(struct world *world, size_t size)
{
    char *bytes = malloc(size);
    assert_non_null(bytes);
    memset(bytes, 'x', size);
    memcpy(bytes, "size", 4);
    struct lw_delivery *delivery = world_delivery_of(world, (struct lw_bytes){ bytes, size });
    free(bytes);
    world_wait(world, world_engine_has_room);
    assert_true(world_submit(world, delivery));
    return delivery;
}

static void
messages_of_every_size_come_through_in_memory_of_their_own_or_not(void **state)
{
    static const size_t sizes[] = { 4,     100,   16000,   16384,   16385, 60000,
                                    65536, 70000, 1 << 20, 3 << 20, 5,     2 << 20 };
    enum { COUNT = sizeof sizes / sizeof sizes[0] };
    (void)state;
    struct world *world = open_world(2, 3);
    for (size_t i = 0; i < COUNT; i++) {
        run_sized(world, sizes[i]);
    }
    world_wait_results(world, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        char text[32];
        (void)snprintf(text, sizeof text, "%zu", sizes[i]);
        assert_true(lw_text_is_equal(world_reply_of(&world->deliveries[i]), text));
    }
    assert_true(processes_figures(world).items >= 6);
    world_destroy(world);
}

static void
a_message_above_the_limit_is_dead_and_its_neighbours_go_on(void **state)
{
    (void)state;
    struct world *world = open_world(1, 4);
    struct lw_delivery *before = run_sized(world, 10);
    struct lw_delivery *large = run_sized(world, (4 << 20) + 1);
    struct lw_delivery *after = run_sized(world, 10);
    world_wait_results(world, 3);
    assert_int_equal(large->verdict, LW_DEAD);
    assert_non_null(strstr(lw_delivery_reason(large), "item_max: 4MiB"));
    assert_int_equal(before->verdict, LW_OK);
    assert_int_equal(after->verdict, LW_OK);
    world_destroy(world);
}

/* Nothing else is in hand, whose end would have room counted anew. */
static void
messages_above_the_limit_take_no_room(void **state)
{
    (void)state;
    struct world *world = open_world(1, 1);
    for (size_t i = 1; i <= 3; i++) {
        struct lw_delivery *large = run_sized(world, (4 << 20) + 1);
        world_wait_results(world, i);
        assert_int_equal(large->verdict, LW_DEAD);
    }
    struct lw_delivery *after = run_sized(world, 10);
    world_wait_results(world, 4);
    assert_int_equal(after->verdict, LW_OK);
    world_destroy(world);
}

static void
replies_of_every_size_come_back(void **state)
{
    (void)state;
    struct world *world = open_world(1, 4);
    struct lw_delivery *small = world_run(world, "big 15000");
    struct lw_delivery *middle = world_run(world, "big 40000");
    struct lw_delivery *large = world_run(world, "big 3000000");
    struct lw_delivery *none = world_run(world, "big 5000000");
    struct lw_delivery *last = world_run(world, "big 0");
    world_wait_results(world, 5);
    assert_int_equal(world_reply_of(small).size, 15000);
    assert_int_equal(world_reply_of(middle).size, 40000);
    assert_int_equal(world_reply_of(large).size, 3000000);
    assert_int_equal(((const char *)world_reply_of(large).data)[2999999], 'b');
    assert_int_equal(none->verdict, LW_DEAD);
    assert_non_null(strstr(lw_delivery_reason(none), "`item_max`"));
    assert_int_equal(world_reply_of(last).size, 0);
    world_destroy(world);
}

/* -- Bad company --------------------------------------------------------------------------------------- */

/*
 * A worker that was broken before it got this one may keep it until its time is over; and one that
 * wiped out what it did looks like a handler that cannot start: all is given back, uncharged.
 */
static bool
is_unharmed(const struct lw_delivery *delivery)
{
    return delivery->verdict == LW_OK ||
           (delivery->outcome && delivery->outcome->is_uncharged) ||
           strcmp(lw_delivery_reason(delivery), "timed out after 500ms") == 0;
}

/* Each message with the harm that its number says; the world must survive them all. */
static void
do_harm(const char *how, uint32_t rounds)
{
    struct lw_processes_options options = processes_options("naughty");
    char command[64];
    uint32_t kept = 0;
    options.workers = 2;
    options.timeout_ms = 500;
    struct world *world = processes_open_world(&options);
    for (uint32_t i = 0; i < rounds; i++) {
        (void)snprintf(command, sizeof command, "%s %u", how, i + 1);
        world_run(world, command);
        world_run(world, "ok");
    }
    world_wait_results(world, 2 * rounds);
    for (uint32_t i = 0; i < rounds; i++) {
        kept += world->deliveries[2 * i].verdict == LW_OK ? 1 : 0;
        if (!is_unharmed(&world->deliveries[2 * i + 1])) {
            fail_msg("%s %u harmed its neighbour: verdict %d, %s", how, i + 1,
                     (int)world->deliveries[2 * i + 1].verdict,
                     lw_delivery_reason(&world->deliveries[2 * i + 1]));
        }
    }
    print_message("%s: %u rounds, %u passed by, %u workers replaced\n", how, rounds, kept,
                  world->engine->restarts);
    assert_true(world->engine->restarts > 0);
    world_destroy(world);
}

static void
a_worker_that_writes_over_all_shared_memory_harms_itself_only(void **state)
{
    (void)state;
    do_harm("scribble", 5);
}

static void
a_worker_that_writes_over_the_words_of_the_rings_harms_itself_only(void **state)
{
    (void)state;
    do_harm("words", 5);
}

/* Its mark says neither that it began nor that it did not. */
static void
who_writes_over_its_mark_is_charged_all_the_same(void **state)
{
    static const char *const how[] = { "unmark", "unmark-crash" };
    (void)state;
    struct lw_processes_options options = processes_options("naughty");
    options.timeout_ms = 1000;
    for (size_t i = 0; i < 2; i++) {
        struct world *world = processes_open_world(&options);
        struct lw_delivery *bad = world_run(world, how[i]);
        world_wait_results(world, 1);
        assert_int_equal(bad->verdict, LW_ERROR);
        assert_false(bad->outcome->is_uncharged);
        assert_int_equal(processes_figures(world).charged, 1);
        world_destroy(world);
    }
}

static void
nothing_of_a_refused_answer_is_left_when_its_message_runs_again(void **state)
{
    struct processes_once once;
    (void)state;
    processes_once_init(&once, "forge");
    struct world *world = open_world(1, 1);
    struct lw_delivery *forged = world_run(world, once.command);
    world_wait_results(world, 1);
    assert_true(world_has_logged(world, "its answer is against the form"));
    assert_int_equal(forged->verdict, LW_OK);
    assert_true(!forged->outcome || forged->outcome->output_count == 0);
    world_destroy(world);
    processes_once_deinit(&once);
}

/* The one behind it is handed over while it hangs: that must not wait for it. */
static void
a_worker_cannot_make_its_owner_block_on_what_they_share(void **state)
{
    (void)state;
    struct lw_processes_options options = processes_options("naughty");
    options.window = 2;
    options.timeout_ms = 3000;
    struct world *world = processes_open_world(&options);
    struct lw_delivery *bad = world_run(world, "clog");
    world_wait(world, processes_have_begun);
    struct lw_delivery *behind = world_run(world, "ok");
    world_wait_results(world, 2);
    assert_string_equal(lw_delivery_reason(bad), "timed out after 3s");
    assert_int_equal(behind->verdict, LW_OK);
    world_destroy(world);
}

/* Without a timeout nothing but its end would tell us. */
static void
a_handler_that_closes_our_descriptors_ends_its_worker_and_keeps_its_answer(void **state)
{
    (void)state;
    struct lw_processes_options options = processes_options("naughty");
    options.timeout_ms = 0;
    struct world *world = processes_open_world(&options);
    for (size_t i = 0; i < 4; i++) {
        world_run(world, i % 2 == 0 ? "close-all" : "ok");
    }
    world_wait_results(world, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(world->deliveries[i].verdict, LW_OK);
    }
    assert_true(world->engine->restarts > 0);
    world_destroy(world);
}

static void
what_finds_no_descriptor_here_is_no_fault_of_its_message(void **state)
{
    enum { DESCRIPTORS = 256 };
    (void)state;
    static int taken[DESCRIPTORS];
    size_t count = 0;
    struct rlimit before;
    struct world *world = open_world(1, 1);
    world_run(world, "ok");
    world_wait_results(world, 1);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit few = { DESCRIPTORS, before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    while (count < DESCRIPTORS && (taken[count] = open("/dev/null", O_RDONLY)) >= 0) {
        count++;
    }
    struct lw_delivery *large = world_run(world, "big 40000");
    world_wait_results(world, 2);
    while (count > 0) {
        (void)close(taken[--count]);
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(large->verdict, LW_RETRY);
    assert_true(large->outcome->is_uncharged);
    assert_false(world_has_logged(world, "handler.breach"));
    world_destroy(world);
}

static void
without_descriptors_for_workers_the_engine_is_down_and_says_what_helps(void **state)
{
    struct rlimit limit;
    (void)state;
    struct lw_processes_options options = processes_options("naughty");
    struct world *world = world_create();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    int next = dup(STDIN_FILENO); /* the number of the first one that is free */
    assert_int_equal(close(next), 0);
    struct rlimit none = { .rlim_cur = (rlim_t)next, .rlim_max = limit.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    processes_create(world, &options);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_true(world->engine->is_down);
    assert_non_null(strstr(world->engine->down_error.message, "Too many open files"));
    assert_non_null(strstr(world->engine->down_error.help, "raise the limit of open files"));
    struct lw_delivery *later = world_run(world, "ok");
    world_wait_results(world, 1);
    assert_int_equal(later->verdict, LW_OK);
    world_destroy(world);
}

static void
a_flood_of_prints_blocks_nobody(void **state)
{
    (void)state;
    struct world *world = open_world(1, 1);
    struct lw_delivery *loud = world_run(world, "flood 20000");
    struct lw_delivery *next = world_run(world, "ok");
    world_wait_results(world, 2);
    assert_int_equal(loud->verdict, LW_OK);
    assert_int_equal(next->verdict, LW_OK);
    world_destroy(world);
}

static void
a_killed_zygote_is_fatal_and_its_workers_finish(void **state)
{
    (void)state;
    struct world *world = open_world(2, 2);
    struct lw_delivery *slow = world_run(world, "spin 300");
    world_wait(world, world_engine_has_room);
    processes_kill_zygote(world);
    struct lw_delivery *later = world_run(world, "ok");
    world_wait_results(world, 2);
    assert_int_equal(slow->verdict, LW_OK);
    assert_int_equal(later->verdict, LW_OK);
    assert_true(world->engine->down_error.is_fatal);
    assert_string_equal(world->engine->down_error.code, "E0631");
    world->engine->ops->stop(world->engine, world->host->now + 5000 * LW_MS);
    world_wait(world, world_engine_is_stopped);
    world_destroy(world);
}

static void
without_a_zygote_a_crash_gives_everything_back_uncharged(void **state)
{
    (void)state;
    struct world *world = open_world(1, 4);
    world_run(world, "ok");
    world_wait_results(world, 1);
    processes_kill_zygote(world);
    world_wait(world, world_engine_has_room);
    assert_true(world_submit(world, world_delivery(world, "crash it all")));
    while (world->engine->room > 0) { /* two at least are handed over in this turn */
        assert_true(world_submit(world, world_delivery(world, "ok")));
    }
    assert_true(world->delivery_count > 2);
    world_wait_results(world, world->delivery_count);
    for (size_t i = 1; i < world->delivery_count; i++) {
        assert_int_equal(world->deliveries[i].verdict, LW_ERROR);
        assert_true(world->deliveries[i].outcome->is_uncharged);
    }
    assert_true(world->engine->is_down);
    world_destroy(world);
}

static void
without_a_zygote_a_pinned_key_goes_on_at_another_worker(void **state)
{
    (void)state;
    struct lw_processes_options options = processes_options("naughty");
    options.workers = 2;
    options.window = 2;
    options.tune.pins_lanes = true;
    struct world *world = processes_open_world(&options);
    world->expected_room = 4;
    world_wait(world, has_expected_room);
    processes_kill_zygote(world);
    world_run(world, "crash it");
    world_run(world, "ok");
    world_wait_results(world, 2);
    struct lw_delivery *later = world_run(world, "ok");
    world_wait_results(world, 3);
    assert_int_equal(later->verdict, LW_OK);
    world_destroy(world);
}

/* It is alive, but says nothing any more. */
static void
a_zygote_that_was_stopped_holds_up_neither_a_message_nor_the_end(void **state)
{
    (void)state;
    struct world *world = open_world(1, 1);
    world_run(world, "ok");
    world_wait_results(world, 1);
    (void)processes_pid(world, 0); /* it has said all that it has to say of its beginning */
    processes_signal_zygote(world, SIGSTOP);
    struct lw_delivery *gone = world_run(world, "exit 3");
    world_wait(world, processes_first_is_over);
    world->engine->ops->stop(world->engine, world->host->now + 1000 * LW_MS);
    world_wait_results(world, 2);
    assert_int_equal(gone->verdict, LW_ERROR);
    assert_true(gone->outcome->is_uncharged);
    world_wait(world, world_engine_is_stopped);
    processes_signal_zygote(world, SIGCONT);
    world_destroy(world);
}

static void
a_plugin_that_ignores_its_children_is_still_told_of(void **state)
{
    (void)state;
    struct lw_processes_options options = processes_options("childless");
    struct world *world = processes_open_world(&options);
    struct lw_delivery *bad = world_run(world, "exit");
    world_wait_results(world, 1);
    assert_int_equal(bad->verdict, LW_ERROR);
    assert_non_null(strstr(lw_delivery_reason(bad), "exit 3"));
    assert_false(world_has_logged(world, "handler.unheard"));
    world_destroy(world);
}

static void
a_worker_that_gives_no_room_back_does_not_stop_the_others(void **state)
{
    enum { MESSAGES_MAX = 2000, SIZE = 12000 };
    (void)state;
    static char slow[SIZE];
    memset(slow, 'x', sizeof slow);
    memcpy(slow, "spin 3 ", 7); /* its other thread shall run, too */
    struct world *world = open_world(1, 1);
    world_run(world, "hold-room");
    /* Whether its lie stands when we look is chance. */
    for (size_t i = 0; i < MESSAGES_MAX && !world_has_logged(world, "handler.breach"); i++) {
        struct lw_delivery *delivery = world_delivery_of(
            world, (struct lw_bytes){ slow, sizeof slow });
        world_wait(world, world_engine_has_room);
        assert_true(world_submit(world, delivery));
    }
    world_wait_results(world, world->delivery_count);
    for (size_t i = 1; i < world->delivery_count; i++) {
        assert_int_equal(world->deliveries[i].verdict, LW_OK);
    }
    assert_true(world_has_logged(world, "handler.breach"));
    world_destroy(world);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_that_crashes_alone_is_charged_with_signal_and_last_words),
        cmocka_unit_test(the_third_charged_crash_makes_a_message_dead),
        cmocka_unit_test(what_was_handed_over_beside_a_crash_runs_again_uncharged),
        cmocka_unit_test(several_suspects_each_get_a_process_of_their_own),
        cmocka_unit_test(a_kill_from_outside_charges_nobody),
        cmocka_unit_test(a_late_message_is_charged_and_the_one_behind_it_is_not),
        cmocka_unit_test(a_handler_that_refuses_to_open_takes_the_engine_down_in_its_words),
        cmocka_unit_test(a_handler_that_crashes_while_it_opens_shows_its_last_words),
        cmocka_unit_test(a_plugin_that_is_not_there_is_said_and_tried_again),
        cmocka_unit_test(messages_of_every_size_come_through_in_memory_of_their_own_or_not),
        cmocka_unit_test(a_message_above_the_limit_is_dead_and_its_neighbours_go_on),
        cmocka_unit_test(messages_above_the_limit_take_no_room),
        cmocka_unit_test(replies_of_every_size_come_back),
        cmocka_unit_test(a_worker_that_writes_over_all_shared_memory_harms_itself_only),
        cmocka_unit_test(a_worker_that_writes_over_the_words_of_the_rings_harms_itself_only),
        cmocka_unit_test(who_writes_over_its_mark_is_charged_all_the_same),
        cmocka_unit_test(nothing_of_a_refused_answer_is_left_when_its_message_runs_again),
        cmocka_unit_test(a_worker_cannot_make_its_owner_block_on_what_they_share),
        cmocka_unit_test(
            a_handler_that_closes_our_descriptors_ends_its_worker_and_keeps_its_answer),
        cmocka_unit_test(what_finds_no_descriptor_here_is_no_fault_of_its_message),
        cmocka_unit_test(
            without_descriptors_for_workers_the_engine_is_down_and_says_what_helps),
        cmocka_unit_test(a_flood_of_prints_blocks_nobody),
        cmocka_unit_test(a_killed_zygote_is_fatal_and_its_workers_finish),
        cmocka_unit_test(without_a_zygote_a_crash_gives_everything_back_uncharged),
        cmocka_unit_test(without_a_zygote_a_pinned_key_goes_on_at_another_worker),
        cmocka_unit_test(a_zygote_that_was_stopped_holds_up_neither_a_message_nor_the_end),
        cmocka_unit_test(a_plugin_that_ignores_its_children_is_still_told_of),
        cmocka_unit_test(a_worker_that_gives_no_room_back_does_not_stop_the_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
