/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_programs.c: the programs engine with a handler that behaves: the conformance suite, what a
 * handler sees and may say, its surroundings, its words on the way to the log.
 */
#include "tests/support/test.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/engines/conformance.h"
#include "tests/engines/programs_world.h"

static void
create_obeying(struct world *world, int64_t timeout_ms)
{
    struct lw_programs_options options = programs_options("obey.py", NULL);
    options.workers = 2;
    options.timeout_ms = timeout_ms;
    programs_create(world, &options);
}

static void
create_concurrent(struct world *world, int64_t timeout_ms)
{
    struct lw_programs_options options = programs_options("obey.py", "concurrent");
    options.workers = 1;
    options.window = 2;
    options.timeout_ms = timeout_ms;
    programs_create(world, &options);
}

static void
create_on_descriptor_3(struct world *world, int64_t timeout_ms)
{
    struct lw_programs_options options = programs_options("obey.py", "fd3");
    options.workers = 2;
    options.timeout_ms = timeout_ms;
    programs_create(world, &options);
}

static struct world *
open_world(const char *how)
{
    struct world *world = world_create();
    struct lw_programs_options options = programs_options("obey.py", how);
    programs_create(world, &options);
    return world;
}

/* Runs one message and gives its reply as text, valid until the world ends. */
static const char *
ask(struct world *world, const char *text)
{
    static char reply[65536];
    size_t before = world->result_count;
    struct lw_delivery *delivery = world_run(world, text);
    world_wait_results(world, before + 1);
    assert_string_equal(lw_delivery_reason(delivery), "");
    struct lw_output view;
    lw_outcome_view(delivery->outcome, 0, &view, NULL);
    assert_in_range(view.value.size, 0, sizeof reply - 1);
    memcpy(reply, view.value.data, view.value.size);
    reply[view.value.size] = '\0';
    return reply;
}

static json_t *
show(struct world *world)
{
    json_t *seen = json_loads(ask(world, "show"), 0, NULL);
    assert_non_null(seen);
    return seen;
}

static const char *
text_in(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

static void
a_handler_sees_all_of_a_message(void **state)
{
    struct world *world = open_world(NULL);
    (void)state;
    world->times = (struct lw_message_times){ .timestamp_ms = 1795999339123,
                                              .event_time_ms = 0 };
    json_t *seen = show(world);
    assert_string_equal(text_in(seen, "message_id"), "main/orders/3/0");
    assert_string_equal(text_in(seen, "topic"), "orders");
    assert_string_equal(text_in(seen, "subscription"), "group");
    assert_string_equal(text_in(seen, "pipeline"), "pipe");
    assert_string_equal(text_in(seen, "key"), "k");
    assert_string_equal(text_in(seen, "timestamp"), "2026-11-30T00:42:19.123Z");
    assert_string_equal(text_in(seen, "event_time"), "1970-01-01T00:00:00.000Z");
    assert_int_equal(json_integer_value(json_object_get(seen, "partition")), 3);
    assert_int_equal(json_integer_value(json_object_get(seen, "attempt")), 1);
    assert_int_equal(json_integer_value(json_object_get(seen, "deadline_ms")), 10000);
    assert_true(json_is_integer(json_object_get(seen, "offset")));
    assert_true(json_is_integer(json_object_get(seen, "redeliveries")));
    assert_int_equal(json_object_size(json_object_get(seen, "headers")), 0);
    json_decref(seen);
    world_destroy(world);
}

static void
headers_that_repeat_are_arrays_and_bytes_are_base64(void **state)
{
    struct lw_header headers[] = {
        { lw_bytes_of("a"), lw_bytes_of("1") },     { lw_bytes_of("b"), lw_bytes_of("x") },
        { lw_bytes_of("a"), lw_bytes_of("2") },     { lw_bytes_of("raw"), { "\xff\x00", 2 } },
        { lw_bytes_of("null"), lw_bytes_of(NULL) },
    };
    struct world *world = open_world(NULL);
    (void)state;
    world->headers = headers;
    world->header_count = sizeof headers / sizeof headers[0];
    json_t *seen = show(world);
    const json_t *plain = json_object_get(seen, "headers");
    char *a = json_dumps(json_object_get(plain, "a"), JSON_COMPACT);
    assert_string_equal(a, "[\"1\",\"2\"]");
    assert_string_equal(text_in(plain, "b"), "x");
    assert_true(json_is_null(json_object_get(plain, "null")));
    assert_null(json_object_get(plain, "raw"));
    assert_string_equal(text_in(json_object_get(seen, "headers_b64"), "raw"), "/wA=");
    free(a);
    json_decref(seen);
    world_destroy(world);
}

static void
ten_thousand_headers_go_through(void **state)
{
    enum { COUNT = 10000 };
    struct world *world = open_world(NULL);
    struct lw_header *headers = calloc(COUNT, sizeof *headers);
    char(*names)[16] = calloc(COUNT, sizeof *names);
    (void)state;
    for (size_t i = 0; i < COUNT; i++) {
        (void)snprintf(names[i], sizeof names[i], "h%zu", i % 9000);
        headers[i] = (struct lw_header){ lw_bytes_of(names[i]), lw_bytes_of("v") };
    }
    world->headers = headers;
    world->header_count = COUNT;
    struct lw_delivery *delivery = world_run(world, "ok");
    world_wait_results(world, 1);
    assert_int_equal(delivery->verdict, LW_OK);
    world_destroy(world);
    free(headers);
    free(names);
}

static void
a_key_may_be_null_empty_or_bytes(void **state)
{
    struct world *world = open_world(NULL);
    struct lw_bytes keys[] = { { NULL, 0 }, { "", 0 }, { "\xfe\xff", 2 } };
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct lw_delivery *delivery = world_delivery(world, "show");
        struct lw_output view;
        delivery->message.key = keys[i];
        world_wait(world, world_engine_has_room);
        assert_true(world_submit(world, delivery));
        world_wait_results(world, i + 1);
        lw_outcome_view(delivery->outcome, 0, &view, NULL);
        json_t *seen = json_loadb(view.value.data, view.value.size, 0, NULL);
        const char *key = text_in(seen, "key");
        assert_true(i == 1 ? key && key[0] == '\0' : !key);
        const char *coded = text_in(seen, "key_b64");
        assert_true(i == 2 ? coded && strcmp(coded, "/v8=") == 0 : !coded);
        json_decref(seen);
    }
    world_destroy(world);
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
    world_wait(world, world_engine_has_room);
    assert_true(world_submit(world, delivery));
    world_wait_results(world, 1);
    struct lw_output view;
    lw_outcome_view(delivery->outcome, 0, &view, NULL);
    assert_true(lw_bytes_is_equal(view.value, (struct lw_bytes){ value, SIZE }));
    free(value);
    world_destroy(world);
}

static void
its_surroundings_are_clean(void **state)
{
    static const char *const environment[] = { "COLOUR=blue", "HOME=/nowhere", NULL };
    struct world *world = world_create();
    struct lw_programs_options options = programs_options("obey.py", NULL);
    (void)state;
    options.directory = "/tmp";
    options.environment = environment;
    programs_create(world, &options);
    assert_string_equal(ask(world, "env LANEWAY_PROTOCOL"), "lines");
    assert_string_equal(ask(world, "env LANEWAY_HANDLER"), "obey");
    assert_string_equal(ask(world, "env COLOUR"), "blue");
    assert_string_equal(ask(world, "env HOME"), "/nowhere");
    assert_string_not_equal(ask(world, "env PATH"), "-");
    assert_string_equal(ask(world, "cwd"), "/tmp");
    /* 0 to 3, and the one that lists them */
    assert_string_equal(ask(world, "descriptors"), "0 1 2 3 4");
    assert_string_equal(ask(world, "status SigBlk:"), "0000000000000000");
    world_destroy(world);
}

static void
it_leads_a_process_group_of_its_own(void **state)
{
    struct world *world = open_world(NULL);
    (void)state;
    int pid = atoi(ask(world, "pid"));
    assert_true(pid > 1);
    assert_int_equal(getpgid(pid), pid);
    world_destroy(world);
    assert_int_equal(getpgid(pid), -1);
}

static void
its_stderr_and_log_lines_reach_our_log(void **state)
{
    struct world *world = open_world(NULL);
    (void)state;
    world_run(world, "stderr caf\xc3\xa9 is open");
    world_run(world, "log warn cache is cold");
    world_wait_results(world, 2);
    assert_true(world_has_logged(world, "handler.output: caf\xc3\xa9 is open"));
    assert_true(world_has_logged(world, "stream=stderr"));
    assert_true(world_has_logged(world, "handler.log: cache is cold"));
    assert_int_equal(world->engine->stray_lines, 0);
    world_destroy(world);
}

enum { STORM_LINES = 20000, LINES_A_SECOND = 200 };

static struct {
    size_t passed;
    size_t counted;
} storm;

static void
count_storm(enum lw_log_level level, const char *event, const char *text, const char *fields,
            void *user)
{
    const char *lines = strstr(fields, "lines=");
    (void)level;
    (void)text;
    (void)user;
    if (strcmp(event, "handler.output") == 0) {
        storm.passed++;
    } else if (strcmp(event, "handler.output_dropped") == 0) {
        storm.counted += strtoull(lines + strlen("lines="), NULL, 10);
    }
}

static bool
is_accounted_for(struct world *world)
{
    (void)world;
    return storm.passed + storm.counted == STORM_LINES;
}

static void
a_log_storm_is_bounded_and_counted_though_silence_follows(void **state)
{
    struct world *world = open_world(NULL);
    uint64_t began = world->host->now;
    (void)state;
    world->host->log = count_storm;
    world_run(world, "storm 20000");
    world_wait(world, is_accounted_for);
    size_t seconds = (size_t)((world->host->now - began) / (1000 * LW_MS)) + 2;
    assert_in_range(storm.passed, 1, seconds * LINES_A_SECOND);
    assert_int_equal(world->result_count, 1);
    world_destroy(world);
}

static void
prints_on_stdout_are_tolerated_counted_and_warned_about_once(void **state)
{
    struct world *world = open_world("noisy");
    (void)state;
    struct lw_delivery *delivery = world_run(world, "print hello there");
    world_run(world, "print { broken json");
    world_wait_results(world, 2);
    assert_int_equal(delivery->verdict, LW_OK);
    assert_int_equal(world->engine->stray_lines, 4);
    const char *warning = strstr(world->log, "handler.stray");
    assert_non_null(warning);
    assert_null(strstr(warning + 1, "handler.stray"));
    assert_true(world_has_logged(world, "handler.output: hello there"));
    assert_int_equal(world->engine->restarts, 0);
    world_destroy(world);
}

static void
stdout_is_its_own_when_it_answers_on_descriptor_3(void **state)
{
    struct world *world = open_world("fd3");
    (void)state;
    struct lw_delivery *delivery = world_run(world, "print {\"id\":99,\"result\":\"ok\"}");
    world_wait_results(world, 1);
    world_run(world, "ok");
    world_wait_results(world, 2);
    assert_int_equal(delivery->verdict, LW_OK);
    assert_int_equal(world->engine->stray_lines, 0);
    assert_int_equal(world->engine->restarts, 0);
    assert_true(world_has_logged(world, "\"result\":\"ok\""));
    world_destroy(world);
}

static void
extend_moves_the_deadline(void **state)
{
    struct world *world = world_create();
    struct lw_programs_options options = programs_options("obey.py", NULL);
    (void)state;
    options.timeout_ms = 3000;
    programs_create(world, &options);
    struct lw_delivery *good = world_run(world, "extend 60s wait 4000 ok");
    world_wait_results(world, 1);
    struct lw_delivery *late = world_run(world, "extend 3100ms wait 60000 ok");
    world_wait_results(world, 2);
    assert_int_equal(good->verdict, LW_OK);
    assert_int_equal(late->verdict, LW_ERROR);
    assert_string_equal(lw_delivery_reason(late), "timed out after 3s and extensions");
    world_destroy(world);
}

static void
an_answer_that_cannot_be_used_is_that_messages_error(void **state)
{
    struct world *world = open_world(NULL);
    (void)state;
    struct lw_delivery *word = world_run(world, "raw {\"id\":ID,\"result\":\"fine\"}");
    world_wait_results(world, 1);
    struct lw_delivery *none = world_run(world, "raw {\"id\":ID}");
    world_wait_results(world, 2);
    struct lw_delivery *delay = world_run(world,
                                          "raw {\"id\":ID,\"result\":\"retry\",\"delay\":5}");
    world_wait_results(world, 3);
    assert_int_equal(word->verdict, LW_ERROR);
    assert_string_equal(lw_delivery_reason(word),
                        "the handler's answer cannot be used: "
                        "\"result\" is none of ok, retry, dead, drop, "
                        "error");
    assert_int_equal(none->verdict, LW_ERROR);
    assert_non_null(strstr(lw_delivery_reason(delay), "\"delay\" is not a text such as"));
    assert_int_equal(world->engine->restarts, 0);
    world_destroy(world);
}

static void
one_read_may_carry_many_answers_in_any_order(void **state)
{
    enum { COUNT = 400 };
    struct world *world = world_create();
    struct lw_programs_options options = programs_options("reverse.py", NULL);
    (void)state;
    options.window = COUNT;
    programs_create(world, &options);
    world_wait(world, world_engine_has_room);
    for (size_t i = 0; i < COUNT; i++) {
        assert_true(world_submit(world, world_delivery(world, "ok")));
    }
    assert_int_equal(world->engine->room, 0);
    world_wait_results(world, COUNT);
    assert_int_equal(world->engine->room, COUNT);
    assert_ptr_equal(world->results[0], &world->deliveries[COUNT - 1]);
    world_destroy(world);
}

static void
the_handler_of_the_readme_works(void **state)
{
    struct world *world = world_create();
    const char *program[] = { "python3", LW_SOURCE_DIR "/examples/handlers/confirm.py", NULL };
    struct lw_programs_options options = programs_options("obey.py", NULL);
    (void)state;
    options.program = program;
    programs_create(world, &options);
    assert_string_equal(ask(world, "{\"id\": 7}"), "{\"confirmed\": 7}");
    struct lw_delivery *dead = world_run(world, "{}");
    world_wait_results(world, 2);
    assert_int_equal(dead->verdict, LW_DEAD);
    assert_string_equal(lw_delivery_reason(dead), "bad order: 'id'");
    world_destroy(world);
}

static void
the_handler_that_works_on_several_at_once_works(void **state)
{
    struct world *world = world_create();
    const char *program[] = { "python3", LW_SOURCE_DIR "/examples/handlers/pool.py", NULL };
    struct lw_programs_options options = programs_options("obey.py", NULL);
    (void)state;
    options.program = program;
    options.window = 4;
    programs_create(world, &options);
    world_wait(world, world_engine_has_room);
    struct lw_delivery *good = world_run(world, "{\"id\": 7}");
    struct lw_delivery *busy = world_run(world, "{\"id\": 8, \"busy\": true}");
    struct lw_delivery *dead = world_run(world, "not json");
    world_wait_results(world, 3);
    assert_true(lw_text_is_equal(world_reply_of(good), "{\"confirmed\": 7}"));
    assert_int_equal(busy->verdict, LW_RETRY);
    assert_int_equal(busy->outcome->delay_ms, 2000);
    assert_int_equal(dead->verdict, LW_DEAD);
    world->engine->ops->stop(world->engine, world->host->now + 10000 * LW_MS);
    world_wait(world, world_engine_is_stopped);
    world_destroy(world);
}

static void
options_that_make_no_sense_are_refused(void **state)
{
    struct world *world = world_create();
    const char *none[] = { NULL };
    struct lw_programs_options options = programs_options("obey.py", NULL);
    struct lw_programs_options wrong[3] = { options, options, options };
    (void)state;
    wrong[0].program = none;
    wrong[1].workers = 0;
    wrong[2].window = 0;
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(lw_programs_engine_create(world->host, &world->completions, "x",
                                                   &wrong[i], &world->engine),
                         LW_STATUS_INVALID);
    }
    world_destroy(world);
}

int
main(void)
{
    const struct engine_kit kits[] = {
        { "programs", create_obeying, .room = 2, .can_wait = true, .can_end_early = true },
        { "programs, concurrent", create_concurrent, .room = 2, .can_wait = true,
          .can_end_early = true },
        { "programs, descriptor 3", create_on_descriptor_3, .room = 2, .can_wait = true,
          .can_end_early = true },
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_handler_sees_all_of_a_message),
        cmocka_unit_test(headers_that_repeat_are_arrays_and_bytes_are_base64),
        cmocka_unit_test(ten_thousand_headers_go_through),
        cmocka_unit_test(a_key_may_be_null_empty_or_bytes),
        cmocka_unit_test(megabytes_go_there_and_back),
        cmocka_unit_test(its_surroundings_are_clean),
        cmocka_unit_test(it_leads_a_process_group_of_its_own),
        cmocka_unit_test(its_stderr_and_log_lines_reach_our_log),
        cmocka_unit_test(a_log_storm_is_bounded_and_counted_though_silence_follows),
        cmocka_unit_test(prints_on_stdout_are_tolerated_counted_and_warned_about_once),
        cmocka_unit_test(stdout_is_its_own_when_it_answers_on_descriptor_3),
        cmocka_unit_test(extend_moves_the_deadline),
        cmocka_unit_test(an_answer_that_cannot_be_used_is_that_messages_error),
        cmocka_unit_test(one_read_may_carry_many_answers_in_any_order),
        cmocka_unit_test(the_handler_of_the_readme_works),
        cmocka_unit_test(the_handler_that_works_on_several_at_once_works),
        cmocka_unit_test(options_that_make_no_sense_are_refused),
    };
    int failed = 0;
    for (size_t i = 0; i < sizeof kits / sizeof kits[0]; i++) {
        failed += conformance_run(&kits[i]);
    }
    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
