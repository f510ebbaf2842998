/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_programs_faults.c: programs that misbehave: that die, hang, answer wrongly, close their
 * pipes. In all of them a message is answered once, and only the guilty one is
 * charged (P5, P10).
 */
#include "tests/support/test.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/engines/programs_world.h"

static struct world *
open_obeying(uint32_t workers, uint32_t window, int64_t timeout_ms)
{
    struct lw_programs_options options = programs_options("obey.py", NULL);
    options.workers = workers;
    options.window = window;
    options.timeout_ms = timeout_ms;
    return programs_open_world("obey.py", NULL, NULL, &options);
}

static void
submit_all(struct world *world, const char *const *commands, size_t count)
{
    world_wait(world, world_engine_has_room);
    for (size_t i = 0; i < count; i++) {
        assert_true(world_submit(world, world_delivery(world, commands[i])));
    }
}

static size_t
count_verdicts(const struct world *world, enum lw_verdict verdict)
{
    size_t count = 0;
    for (size_t i = 0; i < world->delivery_count; i++) {
        count += world->deliveries[i].verdict == verdict ? 1 : 0;
    }
    return count;
}

static size_t
count_descriptors(void)
{
    size_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder)) {
        count++;
    }
    closedir(folder);
    return count;
}

/* -- It dies ---------------------------------------------------------------------------------- */

static void
a_death_with_one_message_open_is_that_messages_error(void **state)
{
    struct world *world = open_obeying(1, 1, 10000);
    (void)state;
    struct lw_delivery *crash = world_run(world, "crash");
    world_wait_results(world, 1);
    struct lw_delivery *exit = world_run(world, "exit 3");
    world_wait_results(world, 2);
    struct lw_delivery *good = world_run(world, "ok");
    world_wait_results(world, 3);
    assert_int_equal(crash->verdict, LW_ERROR);
    assert_int_equal(crash->outcome->signal, SIGKILL);
    assert_false(crash->outcome->is_uncharged);
    assert_string_equal(lw_delivery_reason(crash),
                        "the handler's process ended: killed by signal 9 (SIGKILL)");
    assert_string_equal(lw_delivery_reason(exit),
                        "the handler's process ended: exit 3; last output: about to exit");
    assert_int_equal(good->verdict, LW_OK);
    assert_int_equal(world->engine->restarts, 2);
    assert_false(world->engine->is_down);
    world_destroy(world);
}

static void
of_several_open_at_a_death_only_the_killer_is_charged(void **state)
{
    static const char *const commands[] = { "wait 30 ok", "ok", "crash", "ok", "reply yes" };
    struct world *world = open_obeying(1, 5, 10000);
    (void)state;
    submit_all(world, commands, 5);
    world_wait_results(world, 5);
    world_spend(world, 100);
    assert_int_equal(world->result_count, 5);
    assert_int_equal(world->deliveries[2].verdict, LW_ERROR);
    assert_int_equal(world->deliveries[2].outcome->signal, SIGKILL);
    assert_int_equal(count_verdicts(world, LW_OK), 4);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(world->deliveries[i].attempt, 1);
    }
    world_destroy(world);
}

static bool
has_room_for_eight(struct world *world)
{
    return world->engine->room == 8;
}

static void
two_killers_in_one_window_are_found_one_by_one(void **state)
{
    static const char *const commands[] = { "exit 4", "ok", "crash", "ok" };
    struct world *world = open_obeying(2, 4, 10000);
    (void)state;
    submit_all(world, commands, 4);
    world_wait_results(world, 4);
    assert_int_equal(world->deliveries[0].verdict, LW_ERROR);
    assert_int_equal(world->deliveries[2].verdict, LW_ERROR);
    assert_int_equal(count_verdicts(world, LW_OK), 2);
    world_run(world, "ok");
    world_wait_results(world, 5);
    world_wait(world, has_room_for_eight);
    world_destroy(world);
}

/* It dies of something else, such as a lack of memory: run alone, all of them are well. */
static void
suspects_that_are_innocent_are_not_charged(void **state)
{
    char command[96];
    const char *commands[] = { "wait 20 ok", command, "ok" };
    struct world *world = open_obeying(1, 3, 10000);
    (void)state;
    (void)snprintf(command, sizeof command, "first-time %s", programs_marker());
    submit_all(world, commands, 3);
    world_wait_results(world, 3);
    assert_int_equal(count_verdicts(world, LW_OK), 3);
    assert_int_equal(world->engine->restarts, 1);
    world_destroy(world);
    (void)programs_marker();
}

/* Without that, every retirement would cost the next message an attempt. */
static void
a_program_may_retire_after_some_messages(void **state)
{
    enum { COUNT = 20 };
    struct lw_programs_options options = programs_options("manners.py", "retires");
    (void)state;
    options.workers = 2;
    struct world *world = programs_open_world("manners.py", "retires", "5", &options);
    for (size_t i = 0; i < COUNT; i++) {
        world_run(world, "ok");
    }
    world_wait_results(world, COUNT);
    assert_int_equal(count_verdicts(world, LW_OK), COUNT);
    assert_in_range(world->engine->restarts, 2, 4);
    assert_false(world->engine->is_down);
    world_destroy(world);
}

/* It dies of the second message whichever that is, such as a leak that meets memory_max. */
static void
what_one_suspect_left_is_not_held_against_the_next(void **state)
{
    static const char *const commands[] = { "ok", "ok" };
    struct lw_programs_options options = programs_options("manners.py", "exhausted");
    (void)state;
    options.window = 2;
    struct world *world = programs_open_world("manners.py", "exhausted", programs_marker(),
                                              &options);
    submit_all(world, commands, 2);
    world_wait_results(world, 2);
    assert_int_equal(count_verdicts(world, LW_OK), 2);
    assert_int_equal(world->engine->restarts, 2);
    assert_false(world->engine->is_down);
    world_destroy(world);
    (void)programs_marker();
}

static void
workers_killed_from_outside_lose_no_message_and_no_descriptor(void **state)
{
    enum { ROUNDS = 12 };
    struct world *world = open_obeying(2, 1, 10000);
    size_t before = 0;
    (void)state;
    for (size_t i = 0; i < ROUNDS; i++) {
        struct lw_delivery *asked = world_run(world, "pid");
        world_wait_results(world, world->result_count + 1);
        struct lw_output view;
        lw_outcome_view(asked->outcome, 0, &view, NULL);
        int pid = atoi(view.value.data);
        assert_true(pid > 1);
        assert_int_equal(kill(pid, SIGKILL), 0);
        world_run(world, "ok");
        world_run(world, "ok");
        world_wait_results(world, world->delivery_count);
        before = i == 2 ? count_descriptors() : before;
    }
    assert_int_equal(world->engine->restarts, ROUNDS);
    assert_in_range(count_descriptors(), before - 10, before + 10);
    /* One that was killed while it had read a message is charged; none is lost. */
    assert_int_equal(world->result_count, 3 * ROUNDS);
    world_destroy(world);
}

/* Dead or gone: an orphan stays a zombie where nobody reaps it. */
static bool
is_dead(int pid)
{
    char path[64];
    char stat[256] = "";
    (void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "r");
    if (!file) {
        return true;
    }
    size_t size = fread(stat, 1, sizeof stat - 1, file);
    stat[size] = '\0';
    fclose(file);
    const char *state = strrchr(stat, ')');
    return state && state[2] == 'Z';
}

static void
its_children_die_with_it(void **state)
{
    struct world *world = open_obeying(1, 1, 10000);
    (void)state;
    struct lw_delivery *asked = world_run(world, "child");
    world_wait_results(world, 1);
    struct lw_output view;
    lw_outcome_view(asked->outcome, 0, &view, NULL);
    int pid = atoi(view.value.data);
    assert_false(is_dead(pid));
    world->engine->ops->stop(world->engine, world->host->now + 3000 * LW_MS);
    world_wait(world, world_engine_is_stopped);
    for (int i = 0; i < WORLD_WAIT_MS && !is_dead(pid); i++) {
        world_spend(world, 1);
    }
    assert_true(is_dead(pid));
    world_destroy(world);
}

/* -- It hangs --------------------------------------------------------------------------------- */

static void
a_timeout_charges_the_late_one_and_not_its_neighbours(void **state)
{
    static const char *const commands[] = { "ok", "hold", "ok", "ok" };
    struct world *world = open_obeying(1, 4, 3000);
    (void)state;
    submit_all(world, commands, 4);
    world_wait_results(world, 4);
    assert_int_equal(world->deliveries[1].verdict, LW_ERROR);
    assert_string_equal(lw_delivery_reason(&world->deliveries[1]), "timed out after 3s");
    assert_int_equal(count_verdicts(world, LW_OK), 3);
    assert_int_equal(world->engine->restarts, 1);
    world_destroy(world);
}

/* Four of 1 s one after another take 4 s, and none is late with 3. */
static void
the_clock_of_a_message_starts_when_those_before_it_are_answered(void **state)
{
    static const char *const commands[] = { "wait 1000 ok", "wait 1000 ok", "wait 1000 ok",
                                            "wait 1000 ok" };
    struct world *world = open_obeying(1, 4, 3000);
    (void)state;
    submit_all(world, commands, 4);
    world_wait_results(world, 4);
    assert_int_equal(count_verdicts(world, LW_OK), 4);
    assert_int_equal(world->engine->restarts, 0);
    world_destroy(world);
}

/* Long enough that it has surely ignored TERM before that comes. */
static void
one_that_ignores_term_is_killed(void **state)
{
    struct world *world = open_obeying(1, 1, 3000);
    (void)state;
    struct lw_delivery *delivery = world_run(world, "stubborn");
    uint64_t began = world->host->ops->refresh(world->host);
    world_wait_results(world, 1);
    uint64_t taken_ms = (world->host->ops->refresh(world->host) - began) / LW_MS;
    assert_true(taken_ms >= 5000);
    assert_string_equal(lw_delivery_reason(delivery), "timed out after 3s");
    world_run(world, "ok");
    world_wait_results(world, 2);
    world_destroy(world);
}

/* Nothing it does makes a kill miss it, or hold up the loop that waits for its end. */
static void
one_that_would_leave_its_group_is_killed(void **state)
{
    struct world *world = open_obeying(1, 1, 2000);
    (void)state;
    struct lw_delivery *asked = world_run(world, "session");
    struct lw_delivery *wanders = world_run(world, "wander");
    struct lw_delivery *after = world_run(world, "ok");
    world_wait_results(world, 3);
    struct lw_output view;
    lw_outcome_view(asked->outcome, 0, &view, NULL);
    assert_true(lw_text_is_equal(view.value, "True"));
    assert_string_equal(lw_delivery_reason(wanders), "timed out after 2s");
    assert_int_equal(after->verdict, LW_OK);
    world_destroy(world);
}

static bool
is_stubborn(struct world *world)
{
    return world_has_logged(world, "handler.output: stubborn");
}

static void
a_stop_kills_one_that_ignores_everything(void **state)
{
    struct world *world = open_obeying(1, 2, 0);
    static const char *const commands[] = { "stubborn", "ok" };
    (void)state;
    submit_all(world, commands, 2);
    world_wait(world, is_stubborn);
    uint64_t began = world->host->ops->refresh(world->host);
    world->engine->ops->stop(world->engine, began + 600 * LW_MS);
    world_wait(world, world_engine_is_stopped);
    assert_true(world->host->ops->refresh(world->host) - began >= 550 * LW_MS);
    world_wait_results(world, 2);
    assert_true(world->deliveries[0].outcome->is_uncharged);
    assert_true(world->deliveries[1].outcome->is_uncharged);
    world_destroy(world);
}

static bool
has_lingered(struct world *world)
{
    return world_has_logged(world, "handler.output: lingered");
}

/*
 * As in a drain that ends just before its deadline. (On a machine that stands still for a second,
 * that is over before it did anything.)
 */
static void
a_second_stop_does_not_hurry_one_that_is_about_to_exit(void **state)
{
    struct world *world = programs_open_world("manners.py", "lingers", NULL, NULL);
    (void)state;
    world_run(world, "ok");
    world_wait_results(world, 1);
    uint64_t began = world->host->ops->refresh(world->host);
    world->engine->ops->stop(world->engine, began + 30000 * LW_MS);
    world->engine->ops->stop(world->engine, began + 30000 * LW_MS);
    world_wait(world, world_engine_is_stopped);
    bool had_its_second = world->host->ops->refresh(world->host) - began >= 1000 * LW_MS;
    assert_true(has_lingered(world) || had_its_second);
    world_destroy(world);
}

/* A stop may last for ever only for messages, and this one holds none. */
static void
a_stop_without_end_kills_one_that_was_never_ready(void **state)
{
    struct world *world = programs_open_world("manners.py", "stubborn", NULL, NULL);
    (void)state;
    world_wait(world, is_stubborn);
    world->engine->ops->stop(world->engine, LW_NEVER);
    world_wait(world, world_engine_is_stopped);
    world_destroy(world);
}

/* -- It closes its pipes ---------------------------------------------------------------------- */

static void
one_that_closes_its_output_is_ended(void **state)
{
    struct world *world = open_obeying(1, 1, 0);
    (void)state;
    struct lw_delivery *delivery = world_run(world, "mute");
    world_wait_results(world, 1);
    assert_int_equal(delivery->verdict, LW_ERROR);
    assert_string_equal(lw_delivery_reason(delivery),
                        "the handler's process ended: it closed its standard output");
    world_run(world, "ok");
    world_wait_results(world, 2);
    world_destroy(world);
}

static bool
has_restarted(struct world *world)
{
    return world->engine->restarts > 0;
}

/* Whether its line met a closed pipe or stayed in it: nobody has seen it. */
static void
a_message_that_was_never_read_is_not_charged(void **state)
{
    struct lw_programs_options options = programs_options("manners.py", "deaf");
    (void)state;
    options.timeout_ms = 400;
    struct world *world = programs_open_world("manners.py", "deaf", NULL, &options);
    struct lw_delivery *delivery = world_run(world, "ok");
    world_wait_results(world, 1);
    assert_true(delivery->outcome->is_uncharged);
    assert_true(world->engine->is_down);
    world_destroy(world);
}

static void
a_line_without_end_is_cut_off(void **state)
{
    struct world *world = open_obeying(1, 1, 0);
    (void)state;
    struct lw_delivery *large = world_run(world, "large 2000000");
    world_wait_results(world, 1);
    struct lw_delivery *huge = world_run(world, "huge 17");
    world_wait_results(world, 2);
    assert_int_equal(large->verdict, LW_OK);
    world_run(world, "ok");
    world_wait_results(world, 3);
    assert_int_equal(huge->verdict, LW_ERROR);
    assert_non_null(strstr(lw_delivery_reason(huge), "it wrote a line of more than 16 MiB"));
    world_destroy(world);
}

/* -- It answers wrongly ----------------------------------------------------------------------- */

static void
an_answer_to_an_unknown_id_restarts_and_spares_the_others(void **state)
{
    static const char *const commands[] = { "ok", "unknown", "ok", "ok" };
    struct world *world = open_obeying(1, 4, 10000);
    (void)state;
    submit_all(world, commands, 4);
    world_wait_results(world, 4);
    assert_int_equal(world->deliveries[1].verdict, LW_ERROR);
    assert_non_null(strstr(lw_delivery_reason(&world->deliveries[1]), "which is not open"));
    assert_int_equal(count_verdicts(world, LW_OK), 3);
    assert_in_range(world->engine->restarts, 2, 3);
    world_destroy(world);
}

static void
a_second_answer_restarts_and_charges_nobody(void **state)
{
    struct world *world = open_obeying(1, 1, 10000);
    (void)state;
    world_run(world, "ok");
    struct lw_delivery *twice = world_run(world, "twice");
    world_wait_results(world, 2);
    world_wait(world, has_restarted);
    world_run(world, "ok");
    world_wait_results(world, 3);
    assert_int_equal(twice->verdict, LW_OK);
    assert_int_equal(count_verdicts(world, LW_OK), 3);
    assert_true(world_has_logged(world, "which is not open"));
    world_destroy(world);
}

static void
a_handler_that_never_answers_rightly_is_down_and_charges_nobody(void **state)
{
    struct world *world = programs_open_world("manners.py", "wrong-ids", NULL, NULL);
    (void)state;
    struct lw_delivery *delivery = world_run(world, "ok");
    world_wait_results(world, 1);
    assert_true(delivery->outcome->is_uncharged);
    assert_true(world->engine->is_down);
    assert_string_equal(world->engine->down_error.code, "E0603");
    assert_non_null(strstr(world->engine->down_error.message, "\"obey\" breaks the protocol"));
    assert_non_null(strstr(world->engine->down_error.message, "which is not open"));
    world_destroy(world);
}

static void
after_faults_of_all_kinds_each_message_was_answered_once(void **state)
{
    static const char *const commands[] = { "ok",
                                            "crash",
                                            "reply a",
                                            "unknown",
                                            "ok",
                                            "exit 0",
                                            "twice",
                                            "exit 7",
                                            "mute",
                                            "ok",
                                            "raw {\"id\":true,\"result\":\"ok\"}" };
    enum { KINDS = sizeof commands / sizeof commands[0], ROUNDS = 2 };
    struct world *world = open_obeying(3, 2, 4000);
    (void)state;
    for (size_t i = 0; i < ROUNDS * KINDS; i++) {
        world_run(world, commands[i * 7 % KINDS]);
    }
    while (world->result_count < ROUNDS * KINDS) {
        world_wait_results(world, world->result_count + 1);
    }
    world_spend(world, 50);
    assert_int_equal(world->result_count, ROUNDS * KINDS);
    assert_int_equal(world->running, 0);
    for (size_t i = 0; i < ROUNDS * KINDS; i++) {
        bool is_good = strcmp(commands[i * 7 % KINDS], "ok") == 0;
        assert_true(!is_good || world->deliveries[i].verdict == LW_OK);
    }
    world_destroy(world);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_death_with_one_message_open_is_that_messages_error),
        cmocka_unit_test(of_several_open_at_a_death_only_the_killer_is_charged),
        cmocka_unit_test(two_killers_in_one_window_are_found_one_by_one),
        cmocka_unit_test(suspects_that_are_innocent_are_not_charged),
        cmocka_unit_test(a_program_may_retire_after_some_messages),
        cmocka_unit_test(what_one_suspect_left_is_not_held_against_the_next),
        cmocka_unit_test(workers_killed_from_outside_lose_no_message_and_no_descriptor),
        cmocka_unit_test(its_children_die_with_it),
        cmocka_unit_test(a_timeout_charges_the_late_one_and_not_its_neighbours),
        cmocka_unit_test(the_clock_of_a_message_starts_when_those_before_it_are_answered),
        cmocka_unit_test(one_that_ignores_term_is_killed),
        cmocka_unit_test(one_that_would_leave_its_group_is_killed),
        cmocka_unit_test(a_stop_kills_one_that_ignores_everything),
        cmocka_unit_test(a_second_stop_does_not_hurry_one_that_is_about_to_exit),
        cmocka_unit_test(a_stop_without_end_kills_one_that_was_never_ready),
        cmocka_unit_test(one_that_closes_its_output_is_ended),
        cmocka_unit_test(a_message_that_was_never_read_is_not_charged),
        cmocka_unit_test(a_line_without_end_is_cut_off),
        cmocka_unit_test(an_answer_to_an_unknown_id_restarts_and_spares_the_others),
        cmocka_unit_test(a_second_answer_restarts_and_charges_nobody),
        cmocka_unit_test(a_handler_that_never_answers_rightly_is_down_and_charges_nobody),
        cmocka_unit_test(after_faults_of_all_kinds_each_message_was_answered_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
