/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_builtin.c: the built-in handlers on the loop and on threads, how they are named, and what
 * a wrong name or argument is told.
 */
#include "tests/support/test.h"

#include "engines/builtin.h"

#include <string.h>

#include "engines/builtin/sha256.h"
#include "engines/loop.h"
#include "engines/threads.h"
#include "tests/engines/world.h"

struct trial {
    struct world *world;
    struct lw_builtin *builtin;
};

static struct trial
open_trial(const char *text, bool on_threads)
{
    struct trial trial = { .world = world_create() };
    struct lw_error error = { 0 };
    assert_int_equal(lw_builtin_create(text, &trial.builtin, &error), LW_STATUS_OK);
    bool is_async = !on_threads && trial.builtin->handler_async;
    struct lw_handler_options options = {
        .handler = is_async ? NULL : trial.builtin->handler,
        .handler_async = is_async ? trial.builtin->handler_async : NULL,
        .user = trial.builtin->user,
        .timeout_ms = 10000,
        .threads = 2,
    };
    enum lw_status status = (on_threads ? lw_threads_engine_create : lw_loop_engine_create)(
        trial.world->host, &trial.world->completions, text, &options, &trial.world->engine);
    assert_int_equal(status, LW_STATUS_OK);
    assert_int_equal(trial.world->engine->ops->start(trial.world->engine, NULL), LW_STATUS_OK);
    return trial;
}

static void
close_trial(struct trial *trial)
{
    world_destroy(trial->world);
    lw_builtin_destroy(trial->builtin);
}

static void
all_of_them_work_on_the_loop_and_on_threads(void **state)
{
    static const char *const names[] = { "echo",   "noop",  "none",    "sleep:2ms",
                                         "io:2ms", "cpu:3", "fail-n:0" };
    (void)state;
    for (size_t i = 0; i < 2 * sizeof names / sizeof names[0]; i++) {
        struct trial trial = open_trial(names[i / 2], i % 2 != 0);
        struct lw_delivery *first = world_run(trial.world, "payload");
        struct lw_delivery *second = world_run(trial.world, "payload");
        world_wait_results(trial.world, 2);
        assert_int_equal(first->verdict, LW_OK);
        assert_int_equal(second->verdict, LW_OK);
        close_trial(&trial);
    }
}

static void
echo_replies_with_the_payload(void **state)
{
    struct trial trial = open_trial("echo", false);
    struct lw_output view;
    (void)state;
    struct lw_delivery *delivery = world_run(trial.world, "payload");
    world_wait_results(trial.world, 1);
    assert_int_equal(delivery->outcome->output_count, 1);
    lw_outcome_view(delivery->outcome, 0, &view, NULL);
    assert_true(lw_text_is_equal(view.value, "payload"));
    close_trial(&trial);
}

static void
fail_n_is_ok_after_n_runs(void **state)
{
    struct trial trial = open_trial("fail-n:2", false);
    (void)state;
    struct lw_delivery *delivery = world_run(trial.world, "x");
    world_wait_results(trial.world, 1);
    assert_int_equal(delivery->verdict, LW_RETRY);
    assert_string_equal(lw_delivery_reason(delivery), "fails on purpose, run 1 of 2");
    world_submit(trial.world, delivery);
    world_wait_results(trial.world, 2);
    assert_int_equal(delivery->verdict, LW_RETRY);
    world_submit(trial.world, delivery);
    world_wait_results(trial.world, 3);
    assert_int_equal(delivery->verdict, LW_OK);
    close_trial(&trial);
}

static void
io_on_the_loop_waits_for_many_at_once(void **state)
{
    struct trial trial = open_trial("io:300ms", false);
    (void)state;
    uint64_t began = trial.world->host->ops->refresh(trial.world->host);
    for (size_t i = 0; i < 200; i++) {
        world_run(trial.world, "x");
    }
    world_wait_results(trial.world, 200);
    uint64_t taken = trial.world->host->ops->refresh(trial.world->host) - began;
    assert_in_range(taken / LW_MS, 300, 30000); /* one after another: 60 s */
    close_trial(&trial);
}

static void
destroying_ends_what_still_waits(void **state)
{
    struct trial trial = open_trial("io:60s", false);
    (void)state;
    world_run(trial.world, "x");
    world_turn(trial.world, 0);
    trial.world->engine->ops->destroy(trial.world->engine);
    trial.world->engine = NULL;
    lw_builtin_destroy(trial.builtin);
    assert_int_equal(trial.world->host->timers.count, 0);
    world_destroy(trial.world);
}

static void
a_wrong_name_or_argument_is_explained(void **state)
{
    static const char *const wrong[][2] = {
        { "ecko", "does not exist" },      { "", "does not exist" },
        { "echo:1", "takes no argument" }, { "cpu", "needs a number" },
        { "cpu:-1", "needs a number" },    { "cpu:1x", "needs a number" },
        { "fail-n:", "needs a number" },   { "sleep", "is not a duration" },
        { "sleep:5", "needs a unit" },     { "sleepy:5ms", "does not exist" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct lw_builtin *builtin = NULL;
        struct lw_error error = { 0 };
        assert_int_equal(lw_builtin_create(wrong[i][0], &builtin, &error), LW_STATUS_INVALID);
        assert_null(builtin);
        assert_non_null(strstr(error.message, wrong[i][1]));
        assert_non_null(strstr(error.help, "sleep:5ms"));
    }
}

static void
digests_are_those_of_the_standard(void **state)
{
    static const uint8_t abc[] = { 0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea };
    static const uint8_t empty[] = { 0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14 };
    static const uint8_t two_blocks[] = { 0x24, 0x8d, 0x6a, 0x61, 0xd2, 0x06, 0x38, 0xb8 };
    const char *text = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    uint8_t digest[LW_SHA256_BYTES];
    (void)state;
    lw_sha256("abc", 3, digest);
    assert_memory_equal(digest, abc, sizeof abc);
    lw_sha256("", 0, digest);
    assert_memory_equal(digest, empty, sizeof empty);
    lw_sha256(text, strlen(text), digest);
    assert_memory_equal(digest, two_blocks, sizeof two_blocks);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_them_work_on_the_loop_and_on_threads),
        cmocka_unit_test(echo_replies_with_the_payload),
        cmocka_unit_test(fail_n_is_ok_after_n_runs),
        cmocka_unit_test(io_on_the_loop_waits_for_many_at_once),
        cmocka_unit_test(destroying_ends_what_still_waits),
        cmocka_unit_test(a_wrong_name_or_argument_is_explained),
        cmocka_unit_test(digests_are_those_of_the_standard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
