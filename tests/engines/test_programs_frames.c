/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_programs_frames.c: the programs engine with protocol frames: the conformance suite, bytes
 * that go there and back untouched, prints between frames, and programs that speak the other
 * protocol, half a frame, or nonsense.
 */
#include "tests/support/test.h"

#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "tests/engines/conformance.h"
#include "tests/engines/programs_world.h"

static struct lw_programs_options
options_of(const char *script, const char *how)
{
    struct lw_programs_options options = programs_options(script, how);
    options.protocol = LW_PROTOCOL_FRAMES;
    return options;
}

static void
create_obeying(struct world *world, int64_t timeout_ms)
{
    struct lw_programs_options options = options_of("obey.py", NULL);
    options.workers = 2;
    options.timeout_ms = timeout_ms;
    programs_create(world, &options);
}

static struct world *
open_world(const char *script, const char *how, uint32_t window)
{
    struct world *world = world_create();
    struct lw_programs_options options = options_of(script, how);
    options.window = window;
    programs_create(world, &options);
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

/* -- What goes through -------------------------------------------------------------------------- */

static void
lengths_stand_in_place_of_key_and_value(void **state)
{
    struct world *world = open_world("obey.py", NULL, 1);
    (void)state;
    struct lw_bytes reply = world_reply_of(run_one(world, "show"));
    json_t *seen = json_loadb(reply.data, reply.size, 0, NULL);
    assert_non_null(seen);
    assert_int_equal(json_integer_value(json_object_get(seen, "key_len")), 1);
    assert_int_equal(json_integer_value(json_object_get(seen, "value_len")), 4);
    assert_null(json_object_get(seen, "key"));
    assert_null(json_object_get(seen, "value"));
    assert_int_equal(json_integer_value(json_object_get(seen, "deadline_ms")), 10000);
    assert_string_equal(json_string_value(json_object_get(seen, "message_id")),
                        "main/orders/3/0");
    json_decref(seen);
    assert_true(
        lw_text_is_equal(world_reply_of(run_one(world, "env LANEWAY_PROTOCOL")), "frames"));
    world_destroy(world);
}

/* Of every size from a few bytes to far more than a pipe holds, several at once. */
static void
bytes_of_every_size_go_there_and_back(void **state)
{
    static const size_t sizes[] = { 1,     4095,  4096,    4097,    65535, 65536,
                                    65537, 99999, 1 << 20, 5000000, 3,     1 << 21 };
    enum { COUNT = sizeof sizes / sizeof sizes[0] };
    struct world *world = open_world("obey.py", NULL, 4);
    char *bytes = malloc(5000000);
    (void)state;
    for (size_t i = 0; i < 5000000; i++) {
        bytes[i] = (char)(unsigned char)(i * 7919 >> 8);
    }
    bytes[0] = '\x01'; /* an echo */
    for (size_t i = 0; i < COUNT; i++) {
        world_wait(world, world_engine_has_room);
        assert_true(world_submit(
            world, world_delivery_of(world, (struct lw_bytes){ bytes, sizes[i] })));
    }
    world_wait_results(world, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        struct lw_bytes expected = { bytes, sizes[i] };
        assert_true(lw_bytes_is_equal(world_reply_of(&world->deliveries[i]), expected));
    }
    assert_int_equal(world->engine->restarts, 0);
    free(bytes);
    world_destroy(world);
}

/* A broker may move a running message's bytes out of its client's memory at any time. */
static void
bytes_may_move_while_they_are_written(void **state)
{
    enum { SIZE = 4 * 1024 * 1024 };
    struct world *world = open_world("obey.py", NULL, 1);
    char *bytes = malloc(SIZE);
    (void)state;
    memset(bytes, 'm', SIZE);
    bytes[0] = '\x01';
    struct lw_delivery *delivery = world_delivery_of(world, (struct lw_bytes){ bytes, SIZE });
    world_wait(world, world_engine_has_room);
    assert_true(world_submit(world, delivery));
    world->engine->ops->flush(world->engine);
    char *old = (char *)(uintptr_t)delivery->message.value.data;
    delivery->message.value.data = bytes;
    memset(old, '!', SIZE);
    world_wait_results(world, 1);
    assert_true(lw_bytes_is_equal(world_reply_of(delivery), (struct lw_bytes){ bytes, SIZE }));
    delivery->message.value.data = old; /* the world frees it */
    free(bytes);
    world_destroy(world);
}

/* An answer ends the delivery, although half of its payload is still to be written. */
static void
one_that_answers_before_it_reads_gets_the_rest_all_the_same(void **state)
{
    enum { SIZE = 2 * 1024 * 1024 };
    struct world *world = open_world("framed.py", "early", 1);
    char *bytes = malloc(SIZE);
    (void)state;
    memset(bytes, 'e', SIZE);
    struct lw_delivery *delivery = world_delivery_of(world, (struct lw_bytes){ bytes, SIZE });
    world_wait(world, world_engine_has_room);
    assert_true(world_submit(world, delivery));
    world_wait_results(world, 1);
    memset((char *)(uintptr_t)delivery->message.value.data, '!', SIZE);
    assert_true(lw_text_is_equal(world_reply_of(run_one(world, "sum")), "2097152 e"));
    assert_int_equal(world->engine->restarts, 0);
    free(bytes);
    world_destroy(world);
}

static void
prints_between_frames_are_tolerated_and_told(void **state)
{
    struct world *world = open_world("obey.py", "noisy", 1);
    (void)state;
    assert_int_equal(run_one(world, "print caf\xc3\xa9 is open")->verdict, LW_OK);
    assert_int_equal(run_one(world, "reply yes")->verdict, LW_OK);
    assert_true(world_has_logged(world, "handler.output: caf\xc3\xa9 is open"));
    assert_true(world_has_logged(world, "handler.stray"));
    assert_int_equal(world->engine->stray_lines, 3);
    assert_int_equal(world->engine->restarts, 0);
    world_destroy(world);
}

static void
stdout_is_its_own_when_it_answers_on_descriptor_3(void **state)
{
    struct world *world = open_world("obey.py", "fd3", 1);
    (void)state;
    assert_int_equal(run_one(world, "print {\"id\":99,\"result\":\"ok\"}")->verdict, LW_OK);
    assert_int_equal(run_one(world, "ok")->verdict, LW_OK);
    assert_int_equal(world->engine->stray_lines, 0);
    assert_int_equal(world->engine->restarts, 0);
    world_destroy(world);
}

static void
extend_log_and_delay_are_said_in_frames_too(void **state)
{
    struct world *world = world_create();
    struct lw_programs_options options = options_of("obey.py", NULL);
    (void)state;
    options.timeout_ms = 2000;
    programs_create(world, &options);
    assert_int_equal(run_one(world, "extend 60s wait 3000 ok")->verdict, LW_OK);
    assert_int_equal(run_one(world, "log warn cache is cold")->verdict, LW_OK);
    assert_true(world_has_logged(world, "handler.log: cache is cold"));
    const struct lw_delivery *retry = run_one(world, "retry 250 busy");
    assert_int_equal(retry->outcome->delay_ms, 250);
    world_destroy(world);
}

/* -- The other protocol ------------------------------------------------------------------------- */

static void
expect_down(struct world *world, const char *code, const char *why)
{
    world_wait(world, world_engine_is_down);
    assert_string_equal(world->engine->down_error.code, code);
    if (!strstr(world->engine->down_error.message, why)) {
        fail_msg("%s: lacks: %s", world->engine->down_error.message, why);
    }
    assert_int_equal(world->result_count, 0);
    world_destroy(world);
}

static void
a_program_for_lines_is_told_apart(void **state)
{
    (void)state;
    expect_down(open_world("manners.py", "hasty", 1), "E0602",
                "it answers in lines, but is configured with \"protocol: frames\"; write "
                "protocol: lines");
    expect_down(open_world("manners.py", "plain", 1), "E0602",
                "exit 1 before its first answer: it was spoken to in frames; one that speaks "
                "lines needs \"protocol: lines\"");
}

static void
a_program_for_frames_is_told_apart(void **state)
{
    struct world *silent = world_create();
    struct world *eager = world_create();
    struct lw_programs_options options = programs_options("obey.py", "frames");
    (void)state;
    options.start_timeout_ms = 1000;
    programs_create(silent, &options);
    expect_down(silent, "E0602",
                "it did not say ready within 1s: it was spoken to in lines; one that speaks "
                "frames needs \"protocol: frames\"");
    options = programs_options("framed.py", "eager");
    programs_create(eager, &options);
    expect_down(eager, "E0602",
                "it answers in frames, but is configured with \"protocol: lines\"; write "
                "protocol: frames");
}

static void
another_version_is_refused(void **state)
{
    (void)state;
    expect_down(open_world("framed.py", "future", 1), "E0602",
                "it speaks protocol 2, this version speaks 1");
}

/* -- Nonsense ------------------------------------------------------------------------------------ */

static void
half_a_frame_and_death_says_so(void **state)
{
    struct world *world = open_world("obey.py", NULL, 1);
    (void)state;
    const struct lw_delivery *delivery = run_one(world, "half 3");
    assert_int_equal(delivery->verdict, LW_ERROR);
    assert_string_equal(lw_delivery_reason(delivery),
                        "the handler's process ended: exit 3 in the middle of a frame");
    assert_int_equal(run_one(world, "ok")->verdict, LW_OK);
    assert_int_equal(world->engine->restarts, 1);
    world_destroy(world);
}

/* Each breaks the stream alone, after a good answer: that message is charged, and told why. */
static void
frames_that_make_no_sense_are_named(void **state)
{
    static const char *const rows[][2] = {
        { "bytes ffffffff", "it announced a header of 4294967295 bytes; less than 16 MiB" },
        { "bytes 0100000000", "it announced a header of 16777216 bytes; less than 16 MiB" },
        { "bytes 1a0000007b7d", "a length with the lowest byte first; it must be big-endian" },
        { "bytes 000000037b7b7b", "the header of a frame is wrong: not JSON" },
        { "bytes 000000025b5d", "the header of a frame is wrong: not a JSON object" },
        { "bytes 000000117b226b65795f6c656e223a2d31337d2020",
          "the header of a frame is wrong: \"key_len\" is no number of bytes" },
        { "bytes 000000177b227265706c795f6c656e223a3939393939393939397d",
          "it announced a frame of 1000000026 bytes, too many" },
        { "bytes 0000000200", NULL }, /* ends in the middle, and by its timeout */
    };
    struct world *world = world_create();
    struct lw_programs_options options = options_of("obey.py", NULL);
    (void)state;
    options.timeout_ms = 3000;
    programs_create(world, &options);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(run_one(world, "ok")->verdict, LW_OK);
        const struct lw_delivery *delivery = run_one(world, rows[i][0]);
        assert_int_equal(delivery->verdict, LW_ERROR);
        const char *why = rows[i][1] ? rows[i][1] : "timed out after 3s";
        if (!strstr(lw_delivery_reason(delivery), why)) {
            fail_msg("%s: lacks: %s", lw_delivery_reason(delivery), why);
        }
        assert_false(delivery->outcome->is_uncharged);
    }
    world_destroy(world);
}

static void
of_several_open_at_a_death_only_the_killer_is_charged(void **state)
{
    static const char *const commands[] = { "wait 30 ok", "ok", "crash", "ok", "reply yes" };
    struct world *world = open_world("obey.py", NULL, 5);
    (void)state;
    world_wait(world, world_engine_has_room);
    for (size_t i = 0; i < 5; i++) {
        assert_true(world_submit(world, world_delivery(world, commands[i])));
    }
    world_wait_results(world, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(world->deliveries[i].verdict, i == 2 ? LW_ERROR : LW_OK);
    }
    assert_int_equal(world->deliveries[2].outcome->signal, SIGKILL);
    world_destroy(world);
}

int
main(void)
{
    const struct engine_kit frames = {
        .name = "programs, frames",
        .create = create_obeying,
        .room = 2,
        .can_wait = true,
        .can_end_early = true,
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths_stand_in_place_of_key_and_value),
        cmocka_unit_test(bytes_of_every_size_go_there_and_back),
        cmocka_unit_test(bytes_may_move_while_they_are_written),
        cmocka_unit_test(one_that_answers_before_it_reads_gets_the_rest_all_the_same),
        cmocka_unit_test(prints_between_frames_are_tolerated_and_told),
        cmocka_unit_test(stdout_is_its_own_when_it_answers_on_descriptor_3),
        cmocka_unit_test(extend_log_and_delay_are_said_in_frames_too),
        cmocka_unit_test(a_program_for_lines_is_told_apart),
        cmocka_unit_test(a_program_for_frames_is_told_apart),
        cmocka_unit_test(another_version_is_refused),
        cmocka_unit_test(half_a_frame_and_death_says_so),
        cmocka_unit_test(frames_that_make_no_sense_are_named),
        cmocka_unit_test(of_several_open_at_a_death_only_the_killer_is_charged),
    };
    return conformance_run(&frames) + cmocka_run_group_tests(tests, NULL, NULL);
}
