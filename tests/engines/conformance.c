/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conformance.c: the promises of the engine table, one test each, run by every engine: each
 * accepted task is answered exactly once (P5), with all that its handler said, room is kept
 * (P7), a stop ends within its deadline (P9), nobody but the message's own handler is charged
 * (P10).
 */
#include "tests/support/test.h"

#include "tests/engines/conformance.h"

#include <stdio.h>
#include <string.h>

#define KIT(state) ((const struct engine_kit *)*(state))

enum { TIMEOUT_MS = 2000, LONG_MS = 10000 };

static struct world *
open_world(void **state, int64_t timeout_ms)
{
    struct world *world = world_create();
    KIT(state)->create(world, timeout_ms);
    assert_non_null(world->engine);
    return world;
}

static void
every_accepted_task_is_answered_exactly_once(void **state)
{
    struct world *world = open_world(state, LONG_MS);
    for (size_t i = 0; i < 300; i++) {
        world_run(world, "ok");
    }
    world_wait_results(world, 300);
    for (size_t i = 0; i < 300; i++) {
        assert_int_equal(world->deliveries[i].state, LW_STATE_JUDGED);
        assert_int_equal(world->deliveries[i].verdict, LW_OK);
    }
    assert_int_equal(world->running, 0);
    world_destroy(world);
}

static void
verdict_reason_delay_and_code_are_carried(void **state)
{
    struct world *world = open_world(state, LONG_MS);
    struct lw_delivery *retry = world_run(world, "retry 2500 database is busy");
    struct lw_delivery *dead = world_run(world, "dead bad order");
    struct lw_delivery *drop = world_run(world, "drop not ours");
    struct lw_delivery *error = world_run(world, "error 12 class twelve");
    world_wait_results(world, 4);
    assert_int_equal(retry->verdict, LW_RETRY);
    assert_int_equal(retry->outcome->delay_ms, KIT(state)->is_plain ? -1 : 2500);
    assert_string_equal(lw_delivery_reason(retry), "database is busy");
    assert_int_equal(dead->verdict, LW_DEAD);
    assert_string_equal(lw_delivery_reason(dead), "bad order");
    assert_int_equal(drop->verdict, LW_DROP);
    assert_int_equal(error->verdict, LW_ERROR);
    assert_true(error->outcome->has_code);
    assert_int_equal(error->outcome->code, 12);
    world_destroy(world);
}

static void
replies_are_carried_and_null_is_not_empty(void **state)
{
    struct world *world = open_world(state, LONG_MS);
    struct lw_delivery *text = world_run(world, "reply confirmed \xc3\xa4");
    struct lw_delivery *none = world_run(world, "ok");
    world_wait_results(world, 2);
    assert_true(lw_bytes_is_equal(world_reply_of(text), lw_bytes_of("confirmed \xc3\xa4")));
    assert_true(!none->outcome || none->outcome->output_count == 0);
    if (!KIT(state)->is_plain) {
        struct lw_delivery *empty = world_run(world, "reply ");
        struct lw_delivery *null = world_run(world, "reply-null");
        world_wait_results(world, 4);
        assert_non_null(world_reply_of(empty).data);
        assert_int_equal(world_reply_of(empty).size, 0);
        assert_null(world_reply_of(null).data);
    }
    world_destroy(world);
}

static void
payloads_reach_the_handler_bit_for_bit(void **state)
{
    static const char binary[] = "\x01\x00\xff\xfe tail";
    struct world *world = open_world(state, LONG_MS);
    struct lw_bytes value = { binary, sizeof binary - 1 };
    struct lw_delivery *delivery = world_delivery_of(world, value);
    struct lw_delivery *null = world_delivery(world, NULL);
    struct lw_delivery *empty = world_delivery(world, "");
    struct lw_delivery *all[] = { delivery, null, empty };
    for (size_t i = 0; i < 3; i++) {
        world_wait(world, world_engine_has_room);
        assert_true(world_submit(world, all[i]));
    }
    world_wait_results(world, 3);
    assert_true(lw_bytes_is_equal(world_reply_of(delivery), value));
    if (!KIT(state)->is_plain) {
        assert_null(world_reply_of(null).data);
        assert_non_null(world_reply_of(empty).data);
    }
    world_destroy(world);
}

static void
outputs_are_carried_with_key_headers_and_delay(void **state)
{
    if (KIT(state)->is_plain) {
        return;
    }
    struct world *world = open_world(state, LONG_MS);
    struct lw_delivery *delivery = world_run(world, "output audit seen it");
    world_wait_results(world, 1);
    struct lw_output view;
    struct lw_header header;
    assert_int_equal(delivery->outcome->output_count, 1);
    assert_false(delivery->outcome->outputs[0].is_reply);
    lw_outcome_view(delivery->outcome, 0, &view, &header);
    assert_string_equal(view.topic, "audit");
    assert_true(lw_text_is_equal(view.key, "out"));
    assert_true(lw_text_is_equal(view.value, "seen it"));
    assert_int_equal(view.header_count, 1);
    assert_true(lw_text_is_equal(header.name, "h"));
    assert_true(lw_text_is_equal(header.value, "1"));
    assert_int_equal(view.delay_ms, 1500);
    world_destroy(world);
}

static bool
has_all_room(struct world *world)
{
    return world->engine->room == world->expected_room;
}

static void
no_more_than_room_is_taken_and_room_comes_back(void **state)
{
    struct world *world = open_world(state, LONG_MS);
    const char *command = KIT(state)->can_wait ? "wait 100 ok" : "ok";
    uint32_t taken = KIT(state)->room ? KIT(state)->room : 64;
    world->expected_room = KIT(state)->room ? KIT(state)->room : world->engine->room;
    world_wait(world, has_all_room);
    for (uint32_t i = 0; i < taken; i++) {
        assert_true(world_submit(world, world_delivery(world, command)));
    }
    if (KIT(state)->room) {
        assert_int_equal(world->engine->room, 0);
        assert_false(world_submit(world, world_delivery(world, "ok")));
    }
    world_wait_results(world, taken);
    assert_true(has_all_room(world));
    assert_true(world->engine->has_changed);
    world_destroy(world);
}

static void
a_cancelled_task_is_still_answered_once(void **state)
{
    struct world *world = open_world(state, LONG_MS);
    struct lw_delivery *delivery = world_run(world, KIT(state)->can_wait ? "wait 50 ok" : "ok");
    world->engine->ops->cancel(world->engine, delivery);
    world_wait_results(world, 1);
    assert_ptr_equal(world->results[0], delivery);
    assert_true(lw_delivery_is_cancelled(delivery));
    world->engine->ops->stop(world->engine, LW_NEVER);
    world_wait(world, world_engine_is_stopped);
    assert_int_equal(world->result_count, 1);
    world_destroy(world);
}

static void
a_task_that_overruns_its_time_is_an_error_that_says_so(void **state)
{
    if (!KIT(state)->can_wait) {
        return;
    }
    struct world *world = open_world(state, TIMEOUT_MS);
    struct lw_delivery *late = world_run(world, "wait 3500 retry -1 why not");
    struct lw_delivery *good = world_run(world, "wait 20 ok");
    world_wait_results(world, 2);
    assert_int_equal(good->verdict, LW_OK);
    assert_int_equal(late->verdict, LW_ERROR);
    assert_string_equal(lw_delivery_reason(late), "timed out after 2s");
    assert_false(late->outcome->is_uncharged);
    world_destroy(world);
}

static void
the_engine_works_on_after_a_timeout(void **state)
{
    if (!KIT(state)->can_wait) {
        return;
    }
    struct world *world = open_world(state, TIMEOUT_MS);
    world_run(world, "wait 3500 ok");
    world_wait_results(world, 1);
    for (size_t i = 0; i < 20; i++) {
        world_run(world, "ok");
    }
    world_wait_results(world, 21);
    assert_int_equal(world->deliveries[20].verdict, LW_OK);
    world_destroy(world);
}

static void
stop_lets_running_tasks_end(void **state)
{
    struct world *world = open_world(state, LONG_MS);
    struct lw_delivery *delivery = world_run(world,
                                             KIT(state)->can_wait ? "wait 150 ok" : "ok");
    world->engine->ops->stop(world->engine, world->host->now + 15000 * LW_MS);
    assert_int_equal(world->engine->room, 0);
    world_wait(world, world_engine_is_stopped);
    world_wait_results(world, 1);
    assert_int_equal(delivery->verdict, LW_OK);
    world_destroy(world);
}

static void
nothing_is_taken_after_stop(void **state)
{
    struct world *world = open_world(state, LONG_MS);
    world_run(world, "ok");
    world_wait_results(world, 1);
    world->engine->ops->stop(world->engine, LW_NEVER);
    assert_false(world_submit(world, world_delivery(world, "ok")));
    world_wait(world, world_engine_is_stopped);
    assert_int_equal(world->result_count, 1);
    world_destroy(world);
}

static void
stop_ends_within_its_deadline(void **state)
{
    if (!KIT(state)->can_wait) {
        return;
    }
    struct world *world = open_world(state, 0);
    struct lw_delivery *delivery = world_run(world, "hold");
    uint64_t began = world->host->ops->refresh(world->host);
    world->engine->ops->stop(world->engine, began + 400 * LW_MS);
    world_wait(world, world_engine_is_stopped);
    world_wait_results(world, 1);
    uint64_t taken_ms = (world->host->ops->refresh(world->host) - began) / LW_MS;
    assert_true(taken_ms >= 200); /* half of it, at the least, before a TERM */
    if (KIT(state)->can_end_early) {
        assert_true(delivery->outcome->is_uncharged);
    } else {
        assert_string_equal(lw_delivery_reason(delivery), "held");
    }
    world_destroy(world);
}

static void
an_engine_that_never_worked_stops(void **state)
{
    struct world *world = open_world(state, LONG_MS);
    world->engine->ops->stop(world->engine, world->host->now + 10000 * LW_MS);
    world_wait(world, world_engine_is_stopped);
    assert_int_equal(world->result_count, 0);
    world_destroy(world);
}

static void
a_delivery_may_run_again(void **state)
{
    struct world *world = open_world(state, LONG_MS);
    struct lw_delivery *delivery = world_run(world, "ok");
    for (size_t runs = 1; runs <= 5; runs++) {
        world_wait_results(world, runs);
        assert_int_equal(delivery->attempt, runs);
        world_wait(world, world_engine_has_room);
        assert_true(world_submit(world, delivery));
    }
    world_wait_results(world, 6);
    world_destroy(world);
}

int
conformance_run(const struct engine_kit *kit)
{
    void *state = (void *)(uintptr_t)kit;
#define CASE(name) cmocka_unit_test_prestate(name, state)
    const struct CMUnitTest tests[] = {
        CASE(every_accepted_task_is_answered_exactly_once),
        CASE(verdict_reason_delay_and_code_are_carried),
        CASE(replies_are_carried_and_null_is_not_empty),
        CASE(payloads_reach_the_handler_bit_for_bit),
        CASE(outputs_are_carried_with_key_headers_and_delay),
        CASE(no_more_than_room_is_taken_and_room_comes_back),
        CASE(a_cancelled_task_is_still_answered_once),
        CASE(a_task_that_overruns_its_time_is_an_error_that_says_so),
        CASE(the_engine_works_on_after_a_timeout),
        CASE(stop_lets_running_tasks_end),
        CASE(nothing_is_taken_after_stop),
        CASE(stop_ends_within_its_deadline),
        CASE(an_engine_that_never_worked_stops),
        CASE(a_delivery_may_run_again),
    };
#undef CASE
    printf("conformance of %s\n", kit->name);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
