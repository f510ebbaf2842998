/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_programs_once.c: a process for each message: the conformance suite, what the process sees,
 * what its exit code means, and handlers that are broken, absent, deaf or stubborn.
 */
#include "tests/support/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engines/programs/exit_codes.h"
#include "tests/engines/conformance.h"
#include "tests/engines/programs_world.h"

#define OBEY LW_BINARY_DIR "/tests/support/obey_once"

static struct lw_programs_options
options_of(const char *how)
{
    static const char *argv[3];
    argv[0] = OBEY;
    argv[1] = how;
    argv[2] = NULL;
    return (struct lw_programs_options){
        .program = argv,
        .protocol = LW_PROTOCOL_ONCE,
        .service = "test",
        .pipeline = "orders",
        .workers = 2,
        .window = 1,
        .timeout_ms = 10000,
        .has_reply = true,
    };
}

static void
create_obeying(struct world *world, int64_t timeout_ms)
{
    struct lw_programs_options options = options_of(NULL);
    options.timeout_ms = timeout_ms;
    programs_create(world, &options);
}

static struct world *
open_world(const struct lw_programs_options *options)
{
    struct world *world = world_create();
    struct lw_programs_options plain = options_of(NULL);
    programs_create(world, options ? options : &plain);
    return world;
}

static struct lw_delivery *
run_one(struct world *world, const char *text)
{
    size_t before = world->result_count;
    struct lw_delivery *delivery = world_run(world, text);
    world_wait_results(world, before + 1);
    return delivery;
}

/* Runs one message and gives its reply as text, "(none)" without one. */
static const char *
ask(struct world *world, const char *text)
{
    static char reply[4096];
    const struct lw_delivery *delivery = run_one(world, text);
    struct lw_output view;
    assert_int_equal(delivery->verdict, LW_OK);
    if (!delivery->outcome || delivery->outcome->output_count == 0) {
        return "(none)";
    }
    lw_outcome_view(delivery->outcome, 0, &view, NULL);
    assert_in_range(view.value.size, 0, sizeof reply - 1);
    memcpy(reply, view.value.data, view.value.size);
    reply[view.value.size] = '\0';
    return reply;
}

/* -- What the process sees ---------------------------------------------------------------------- */

static void
all_of_a_message_is_in_its_environment(void **state)
{
    struct world *world = open_world(NULL);
    (void)state;
    world->times = (struct lw_message_times){ .timestamp_ms = 1795999339123,
                                              .event_time_ms = -1 };
    assert_string_equal(ask(world, "env LANEWAY_TOPIC"), "orders");
    assert_string_equal(ask(world, "env LANEWAY_PARTITION"), "3");
    assert_string_equal(ask(world, "env LANEWAY_OFFSET"), "2");
    assert_string_equal(ask(world, "env LANEWAY_MESSAGE_ID"), "main/orders/3/3");
    assert_string_equal(ask(world, "env LANEWAY_KEY"), "k");
    assert_string_equal(ask(world, "env LANEWAY_TIMESTAMP"), "2026-11-30T00:42:19.123Z");
    assert_string_equal(ask(world, "env LANEWAY_EVENT_TIME"), "(unset)");
    assert_string_equal(ask(world, "env LANEWAY_ATTEMPT"), "1");
    assert_string_equal(ask(world, "env LANEWAY_SUBSCRIPTION"), "group");
    assert_string_equal(ask(world, "env LANEWAY_PIPELINE"), "pipe");
    assert_string_equal(ask(world, "env LANEWAY_DEADLINE_MS"), "10000");
    assert_string_equal(ask(world, "env LANEWAY_PROTOCOL"), "once");
    assert_string_equal(ask(world, "env LANEWAY_VALUE_NULL"), "(unset)");
    assert_string_equal(ask(world, "env LANEWAY_FD"), "(unset)");
    assert_string_equal(ask(world, "descriptors"), "0 1 2 ");
    world_destroy(world);
}

static void
headers_are_variables_with_names_made_safe(void **state)
{
    struct lw_header headers[] = {
        { lw_bytes_of("trace-id"), lw_bytes_of("() { :;}; echo no") },
        { lw_bytes_of("a=b\n"), lw_bytes_of("odd") },
        { lw_bytes_of("twice"), lw_bytes_of("one") },
        { lw_bytes_of("raw"), { "\xff\x00", 2 } },
        { lw_bytes_of("TWICE"), lw_bytes_of("two") },
        { lw_bytes_of("null"), lw_bytes_of(NULL) },
    };
    struct world *world = open_world(NULL);
    (void)state;
    world->headers = headers;
    world->header_count = sizeof headers / sizeof headers[0];
    assert_string_equal(ask(world, "env LANEWAY_HEADER_TRACE_ID"), "() { :;}; echo no");
    assert_string_equal(ask(world, "env LANEWAY_HEADER_A_B_"), "odd");
    assert_string_equal(ask(world, "env LANEWAY_HEADER_TWICE"), "two");
    assert_string_equal(ask(world, "env LANEWAY_HEADER_RAW"), "(unset)");
    assert_string_equal(ask(world, "env LANEWAY_HEADER_RAW_B64"), "/wA=");
    assert_string_equal(ask(world, "env LANEWAY_HEADER_NULL"), "(none)");
    world_destroy(world);
}

static void
what_we_inherited_is_not_taken_for_the_messages(void **state)
{
    (void)state;
    assert_int_equal(setenv("LANEWAY_HEADER_LEFT", "over", 1), 0);
    assert_int_equal(setenv("LANEWAY_ORDERING_KEY", "over", 1), 0);
    assert_int_equal(setenv("LANEWAY_KEY_B64", "b3Zlcg==", 1), 0);
    struct world *world = open_world(NULL);
    assert_string_equal(ask(world, "env LANEWAY_HEADER_LEFT"), "(unset)");
    assert_string_equal(ask(world, "env LANEWAY_ORDERING_KEY"), "(unset)");
    assert_string_equal(ask(world, "env LANEWAY_KEY_B64"), "(unset)");
    world_destroy(world);
    assert_int_equal(unsetenv("LANEWAY_HEADER_LEFT"), 0);
    assert_int_equal(unsetenv("LANEWAY_ORDERING_KEY"), 0);
    assert_int_equal(unsetenv("LANEWAY_KEY_B64"), 0);
}

static void
megabytes_go_there_and_back(void **state)
{
    enum { SIZE = 3 * 1024 * 1024 };
    struct world *world = open_world(NULL);
    char *value = malloc(SIZE);
    (void)state;
    memset(value, 'z', SIZE);
    value[0] = '\x01'; /* an echo */
    struct lw_delivery *delivery = world_delivery_of(world, (struct lw_bytes){ value, SIZE });
    assert_true(world_submit(world, delivery));
    world_wait_results(world, 1);
    struct lw_output view;
    lw_outcome_view(delivery->outcome, 0, &view, NULL);
    assert_true(lw_bytes_is_equal(view.value, (struct lw_bytes){ value, SIZE }));
    free(value);
    world_destroy(world);
}

/* -- What it says ------------------------------------------------------------------------------- */

static void
exit_codes_are_verdicts(void **state)
{
    static const struct {
        int code;
        enum lw_verdict verdict;
        bool is_broken;
    } rows[] = {
        { 0, LW_OK, false },      { 75, LW_RETRY, false }, { 71, LW_RETRY, false },
        { 111, LW_RETRY, false }, { 65, LW_DEAD, false },  { 100, LW_DEAD, false },
        { 99, LW_DROP, false },   { 126, LW_ERROR, true }, { 127, LW_ERROR, true },
        { 64, LW_ERROR, true },   { 78, LW_ERROR, true },  { 1, LW_ERROR, false },
        { 255, LW_ERROR, false },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct lw_exit_class meaning = lw_programs_exit_meaning(NULL, 0, rows[i].code);
        assert_int_equal(meaning.verdict, rows[i].verdict);
        assert_int_equal(meaning.is_broken, rows[i].is_broken);
    }
}

static void
a_configuration_may_give_codes_another_meaning(void **state)
{
    static const struct lw_exit_class classes[] = { { 12, 12, LW_DROP, false },
                                                    { 10, 19, LW_DEAD, false },
                                                    { 127, 127, LW_RETRY, false } };
    struct lw_programs_options options = options_of(NULL);
    (void)state;
    options.exit_codes = classes;
    options.exit_code_count = 3;
    struct world *world = open_world(&options);
    assert_int_equal(run_one(world, "exit 12")->verdict, LW_DROP);
    assert_int_equal(run_one(world, "exit 19")->verdict, LW_DEAD);
    assert_int_equal(run_one(world, "exit 127")->verdict, LW_RETRY);
    const struct lw_delivery *error = run_one(world, "exit 3");
    assert_int_equal(error->verdict, LW_ERROR);
    assert_int_equal(error->outcome->code, 3);
    assert_string_equal(lw_delivery_reason(error), "exit 3");
    assert_false(world->engine->is_down);
    world_destroy(world);
}

static void
the_reason_is_the_last_line_of_standard_error(void **state)
{
    struct world *world = open_world(NULL);
    (void)state;
    const struct lw_delivery *dead = run_one(world, "dead bad order");
    assert_string_equal(lw_delivery_reason(dead), "bad order");
    assert_true(world_has_logged(world, "handler.output: first line"));
    const struct lw_delivery *crash = run_one(world, "crash");
    assert_int_equal(crash->verdict, LW_ERROR);
    assert_int_equal(crash->outcome->signal, SIGKILL);
    assert_string_equal(lw_delivery_reason(crash),
                        "the handler's process ended: killed by signal 9 (SIGKILL); last "
                        "output: about to crash");
    world_destroy(world);
}

static void
without_a_reply_topic_what_it_prints_goes_to_the_log(void **state)
{
    struct lw_programs_options options = options_of(NULL);
    (void)state;
    options.has_reply = false;
    struct world *world = open_world(&options);
    assert_string_equal(ask(world, "reply seen it"), "(none)");
    assert_true(world_has_logged(world, "handler.log: seen it"));
    world_destroy(world);
}

static void
a_reply_without_end_is_cut_off(void **state)
{
    struct world *world = open_world(NULL);
    (void)state;
    const struct lw_delivery *delivery = run_one(world, "print 17000000");
    assert_int_equal(delivery->verdict, LW_ERROR);
    assert_string_equal(lw_delivery_reason(delivery), "it printed more than 16 MiB");
    assert_string_equal(ask(world, "reply fine"), "fine");
    world_destroy(world);
}

static void
one_that_does_not_read_its_input_is_in_its_right(void **state)
{
    enum { SIZE = 1024 * 1024 };
    struct lw_programs_options options = options_of("deaf");
    char *value = calloc(1, SIZE);
    (void)state;
    struct world *world = open_world(&options);
    for (size_t i = 0; i < 20; i++) {
        world_wait(world, world_engine_has_room);
        assert_true(
            world_submit(world, world_delivery_of(world, (struct lw_bytes){ value, SIZE })));
    }
    world_wait_results(world, 20);
    for (size_t i = 0; i < 20; i++) {
        assert_int_equal(world->deliveries[i].verdict, LW_OK);
    }
    free(value);
    world_destroy(world);
}

/* -- It is broken ------------------------------------------------------------------------------- */

static bool
is_up(struct world *world)
{
    return !world->engine->is_down;
}

static void
a_code_that_says_broken_pauses_and_charges_nobody(void **state)
{
    char command[96];
    struct world *world = open_world(NULL);
    (void)state;
    (void)snprintf(command, sizeof command, "first-time %s 78", programs_marker());
    struct lw_delivery *delivery = run_one(world, command);
    assert_true(delivery->outcome->is_uncharged);
    assert_true(world->engine->is_down);
    assert_int_equal(world->engine->room, 0);
    assert_string_equal(world->engine->down_error.code, "E0605");
    assert_non_null(strstr(world->engine->down_error.message,
                           "obey_once: exit 78 (its configuration is wrong)"));
    assert_non_null(strstr(world->engine->down_error.help, "pipeline orders is paused"));
    world_wait(world, is_up);
    assert_int_equal(world->engine->room, 1); /* one tries for all */
    assert_true(world_submit(world, delivery));
    world_wait_results(world, 2);
    assert_int_equal(delivery->verdict, LW_OK);
    assert_int_equal(world->engine->room, 2);
    assert_true(world_has_logged(world, "handler.up"));
    world_destroy(world);
    (void)programs_marker();
}

/* What an emulator without vfork tells only by the child's status is the same. */
static void
expect_absent(const char *program, const char *errno_text, int status)
{
    const char *argv[] = { program, NULL };
    char by_status[32];
    struct lw_programs_options options = options_of(NULL);
    options.program = argv;
    struct world *world = open_world(&options);
    struct lw_delivery *delivery = world_delivery(world, "ok");
    (void)snprintf(by_status, sizeof by_status, "exit %d", status);
    if (world_submit(world, delivery)) {
        world_wait_results(world, 1);
        assert_true(delivery->outcome->is_uncharged);
    }
    assert_true(world->engine->is_down);
    assert_string_equal(world->engine->down_error.code, "E0602");
    assert_non_null(strstr(world->engine->down_error.message, program));
    assert_true(strstr(world->engine->down_error.message, errno_text) ||
                strstr(world->engine->down_error.message, by_status));
    assert_false(world_submit(world, delivery));
    world_destroy(world);
}

static void
a_program_that_is_missing_or_not_executable_is_named(void **state)
{
    (void)state;
    expect_absent("/no/such/handler", "No such file or directory", 127);
    expect_absent(LW_SOURCE_DIR "/README.md", "Permission denied", 126);
}

static void
headers_that_no_environment_holds_are_that_messages_death(void **state)
{
    enum { SIZE = 1024 * 1024 };
    struct world *world = open_world(NULL);
    char *value = malloc(SIZE);
    (void)state;
    memset(value, 'x', SIZE);
    struct lw_header header = { lw_bytes_of("large"), { value, SIZE } };
    world->headers = &header;
    world->header_count = 1;
    const struct lw_delivery *delivery = run_one(world, "ok");
    assert_int_equal(delivery->verdict, LW_DEAD);
    assert_string_equal(lw_delivery_reason(delivery),
                        "its key and headers do not fit into the environment of a process");
    world->header_count = 0;
    assert_int_equal(run_one(world, "ok")->verdict, LW_OK);
    assert_false(world->engine->is_down);
    free(value);
    world_destroy(world);
}

static void
exhausted_descriptors_pause_and_lose_nothing(void **state)
{
    struct rlimit limit;
    struct world *world = open_world(NULL);
    (void)state;
    assert_int_equal(run_one(world, "ok")->verdict, LW_OK);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    struct rlimit none = { .rlim_cur = 3, .rlim_max = limit.rlim_max };
    struct lw_delivery *delivery = world_delivery(world, "ok");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    bool is_taken = world_submit(world, delivery);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_false(is_taken);
    assert_true(world->engine->is_down);
    assert_non_null(strstr(world->engine->down_error.message, "Too many open files"));
    world_wait(world, world_engine_has_room);
    assert_true(world_submit(world, delivery));
    world_wait_results(world, 2);
    assert_int_equal(delivery->verdict, LW_OK);
    assert_int_equal(delivery->attempt, 1);
    world_destroy(world);
}

/* -- It does not end ----------------------------------------------------------------------------- */

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
    (void)fclose(file);
    const char *at = strrchr(stat, ')');
    return at && at[2] == 'Z';
}

static void
its_children_die_with_it_and_do_not_hold_it_open(void **state)
{
    struct world *world = open_world(NULL);
    (void)state;
    int pid = atoi(ask(world, "child"));
    assert_true(pid > 1);
    for (int i = 0; i < WORLD_WAIT_MS && !is_dead(pid); i++) {
        world_spend(world, 1);
    }
    assert_true(is_dead(pid));
    world_destroy(world);
}

static void
one_that_ignores_term_is_killed(void **state)
{
    struct lw_programs_options options = options_of(NULL);
    (void)state;
    options.timeout_ms = 3000; /* surely it has ignored TERM by then */
    struct world *world = open_world(&options);
    uint64_t began = world->host->ops->refresh(world->host);
    const struct lw_delivery *delivery = run_one(world, "stubborn");
    uint64_t taken_ms = (world->host->ops->refresh(world->host) - began) / LW_MS;
    assert_true(taken_ms >= 5000);
    assert_int_equal(delivery->verdict, LW_ERROR);
    assert_string_equal(lw_delivery_reason(delivery), "timed out after 3s");
    world_destroy(world);
}

int
main(void)
{
    const struct engine_kit once = {
        .name = "once",
        .create = create_obeying,
        .room = 2,
        .can_wait = true,
        .can_end_early = true,
        .is_plain = true,
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_a_message_is_in_its_environment),
        cmocka_unit_test(headers_are_variables_with_names_made_safe),
        cmocka_unit_test(what_we_inherited_is_not_taken_for_the_messages),
        cmocka_unit_test(megabytes_go_there_and_back),
        cmocka_unit_test(exit_codes_are_verdicts),
        cmocka_unit_test(a_configuration_may_give_codes_another_meaning),
        cmocka_unit_test(the_reason_is_the_last_line_of_standard_error),
        cmocka_unit_test(without_a_reply_topic_what_it_prints_goes_to_the_log),
        cmocka_unit_test(a_reply_without_end_is_cut_off),
        cmocka_unit_test(one_that_does_not_read_its_input_is_in_its_right),
        cmocka_unit_test(a_code_that_says_broken_pauses_and_charges_nobody),
        cmocka_unit_test(a_program_that_is_missing_or_not_executable_is_named),
        cmocka_unit_test(headers_that_no_environment_holds_are_that_messages_death),
        cmocka_unit_test(exhausted_descriptors_pause_and_lose_nothing),
        cmocka_unit_test(its_children_die_with_it_and_do_not_hold_it_open),
        cmocka_unit_test(one_that_ignores_term_is_killed),
    };
    return conformance_run(&once) + cmocka_run_group_tests(tests, NULL, NULL);
}
