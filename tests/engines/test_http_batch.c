/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_http_batch.c: services that take several messages in one request: what they see, a result
 * for each, one for all, and what becomes of a batch whose service is busy or down.
 */
#include "tests/support/test.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engines/http/http.h"
#include "engines/programs/answer.h"
#include "engines/programs/request.h"
#include "tests/engines/conformance.h"
#include "tests/engines/http_world.h"

enum { MEMBERS = 4 };

static struct http_server server;

static bool
write_batch(struct lw_text *out, const struct lw_delivery *first, int64_t deadline_ms)
{
    return lw_programs_request_write(out, 1, first, deadline_ms);
}

static struct world *
open_with(const char *url, int64_t max_hold_ms, enum lw_batch_verdict verdict)
{
    struct world *world = world_create();
    struct lw_error error = { .message = "" };
    struct lw_http_options options = http_options(url);
    struct lw_http_engine_options run = { .name = "obey",
                                          .http = &options,
                                          .pipeline = "orders",
                                          .connections = 2,
                                          .timeout_ms = 20000,
                                          .read = lw_programs_answer_take,
                                          .batch = { .size = MEMBERS, .verdict = verdict },
                                          .write = write_batch };
    options.max_hold_ms = max_hold_ms;
    assert_int_equal(
        lw_http_engine_create(world->host, &world->completions, &run, &world->engine, &error),
        LW_STATUS_OK);
    assert_int_equal(world->engine->ops->start(world->engine, &error), LW_STATUS_OK);
    assert_int_equal(world->engine->batch.size, MEMBERS);
    return world;
}

static struct world *
open_at(const char *url, int64_t max_hold_ms)
{
    return open_with(url, max_hold_ms, LW_BATCH_VERDICT_EACH);
}

static struct world *
open_kit(const void *state, enum lw_batch_verdict verdict)
{
    (void)state;
    return open_with(server.url, 60000, verdict);
}

/* Submits a task of these messages and waits for its result; returns its first. */
static struct lw_delivery *
ask(struct world *world, const char *const *texts, size_t count)
{
    struct lw_delivery *first = NULL;
    struct lw_delivery *last = NULL;
    size_t before = world->result_count;
    for (size_t i = 0; i < count; i++) {
        struct lw_delivery *member = world_delivery(world, texts[i]);
        first = first ? first : member;
        member->task_first = first;
        member->is_batch = true;
        if (last) {
            last->task_next = member;
            lw_delivery_begin_run(member, world->host->now);
        }
        last = member;
    }
    first->task_count = (uint32_t)count;
    world_wait(world, world_engine_has_room);
    assert_true(world_submit(world, first));
    world_wait_results(world, before + 1);
    return first;
}

static void
each_message_has_its_own_result(void **state)
{
    static const char *const texts[] = { "ok", "reply 2nd", "dead bad", "retry busy" };
    (void)state;
    struct world *world = open_at(server.url, 60000);
    for (int round = 0; round < 3; round++) {
        struct lw_delivery *first = ask(world, texts, 4);
        struct lw_delivery *second = first->task_next;
        struct lw_delivery *third = second->task_next;
        assert_true(first->is_each);
        assert_int_equal(first->task_answers, 4);
        assert_int_equal(first->verdict, LW_OK);
        assert_int_equal(second->verdict, LW_OK);
        assert_string_equal(http_reply(second), "2nd");
        assert_int_equal(third->verdict, LW_DEAD);
        assert_string_equal(lw_delivery_reason(third), "bad");
        assert_int_equal(third->task_next->verdict, LW_RETRY);
    }
    world_destroy(world);
}

static void
a_service_sees_all_of_each_message(void **state)
{
    static const char *const texts[] = { "show", "two" };
    (void)state;
    struct world *world = open_at(server.url, 60000);
    struct lw_delivery *first = ask(world, texts, 2);
    json_t *root = json_loads(http_reply(first), 0, NULL);
    assert_non_null(root);
    const json_t *body = json_object_get(root, "body");
    const json_t *messages = json_object_get(body, "messages");
    assert_int_equal(json_array_size(messages), 2);
    assert_int_equal(json_integer_value(json_object_get(body, "deadline_ms")), 20000);
    const json_t *second = json_array_get(messages, 1);
    assert_string_equal(json_string_value(json_object_get(second, "value")), "two");
    assert_string_equal(json_string_value(json_object_get(second, "message_id")),
                        "main/orders/3/1");
    char *headers = json_dumps(json_object_get(root, "headers"), 0);
    assert_non_null(strstr(headers, "[\"x-laneway-messages\", \"2\"]"));
    assert_non_null(strstr(headers, "[\"x-laneway-topic\", \"orders\"]"));
    free(headers);
    json_decref(root);
    world_destroy(world);
}

static void
one_answer_is_for_all(void **state)
{
    static const char *const good[] = { "status 200", "two" };
    static const char *const bad[] = { "status 400", "two" };
    (void)state;
    struct world *world = open_at(server.url, 60000);
    struct lw_delivery *first = ask(world, good, 2);
    assert_false(first->is_each);
    assert_int_equal(first->verdict, LW_OK);
    assert_int_equal(first->outcome->output_count, 0); /* whose reply would it be? */
    first = ask(world, bad, 2);
    assert_false(first->is_each);
    assert_int_equal(first->verdict, LW_DEAD);
    assert_string_equal(lw_delivery_reason(first), "to all of them");
    world_destroy(world);
}

/* It would come again at once, as it is put together anew: so nothing is asked for a while. */
static void
a_busy_service_is_left_alone_and_nobody_is_charged(void **state)
{
    static const char *const busy[] = { "status 503", "two" };
    static const char *const good[] = { "ok", "ok" };
    (void)state;
    struct world *world = open_at(server.url, 300);
    struct lw_delivery *first = ask(world, busy, 2);
    assert_true(first->outcome->is_uncharged);
    assert_int_equal(world->engine->room, 0);
    assert_true(world->engine->is_down);
    assert_string_equal(world->engine->down_error.code, "E0622");
    assert_true(first->task_next->outcome->hold.since > 0);
    assert_int_equal(ask(world, good, 2)->verdict, LW_OK);
    first->state = LW_STATE_QUEUED;
    world_wait(world, world_engine_has_room);
    assert_true(world_submit(world, first)); /* after max_hold */
    world_wait_results(world, 3);
    assert_int_equal(first->verdict, LW_RETRY);
    assert_false(first->outcome->is_uncharged);
    world_destroy(world);
}

static void
a_service_that_is_down_charges_nobody(void **state)
{
    static const char *const texts[] = { "ok", "ok" };
    char url[64];
    (void)state;
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d/", http_free_port());
    struct world *world = open_at(url, 60000);
    struct lw_delivery *first = ask(world, texts, 2);
    assert_false(first->is_each);
    assert_true(first->outcome->is_uncharged);
    assert_true(world->engine->is_down);
    world_destroy(world);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_message_has_its_own_result),
        cmocka_unit_test(a_service_sees_all_of_each_message),
        cmocka_unit_test(one_answer_is_for_all),
        cmocka_unit_test(a_busy_service_is_left_alone_and_nobody_is_charged),
        cmocka_unit_test(a_service_that_is_down_charges_nobody),
    };
    static const struct batch_kit kit = { .name = "http",
                                          .open = open_kit,
                                          .all_dead = "status 400" };
    http_server_start(&server, 0, NULL);
    int failed = conformance_run_batches(&kit) + cmocka_run_group_tests(tests, NULL, NULL);
    http_server_stop(&server);
    return failed;
}
