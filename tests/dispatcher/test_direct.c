/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocking handlers on the loop thread, which take the short way when nobody observes: the same
 * order, the same holds and the same ends as on the ordinary way.
 */
#include "tests/support/test.h"

#include "tests/dispatcher/world.h"

#include <string.h>

#include "base/alloc.h"
#include "engines/loop.h"

enum { SEEN_MAX = 4096 };

/* What the handler saw, and what it says of a value. */
struct script {
    enum lw_verdict (*say)(struct script *script, struct lw_delivery *delivery);
    int64_t seen[SEEN_MAX];
    uint32_t count;
    uint32_t inside;
};

static enum lw_verdict
handle(struct lw_delivery *delivery, void *user)
{
    struct script *script = user;
    assert_int_equal(script->inside++, 0);
    assert_true(script->count < SEEN_MAX);
    script->seen[script->count++] = lw_delivery_offset(delivery);
    enum lw_verdict verdict = script->say ? script->say(script, delivery) : LW_OK;
    script->inside--;
    return verdict;
}

static bool
has_key(const struct lw_delivery *delivery, const char *key)
{
    return lw_text_is_equal(lw_delivery_key(delivery), key);
}

static struct lw_subscription_options
open_world(struct world *world, struct script *script, uint32_t slots)
{
    struct lw_handler_options handler = { .handler = handle, .user = script };
    memset(script, 0, sizeof(*script));
    world_init(world, slots, NULL);
    world->dispatcher.history = NULL;
    assert_int_equal(lw_loop_engine_create(&world->clock->host, &world->dispatcher.completions,
                                           "direct", &handler, &world->engine),
                     LW_STATUS_OK);
    assert_int_equal(lw_dispatcher_add_engine(&world->dispatcher, world->engine), LW_STATUS_OK);
    world_topic(world, "orders", 1);
    struct lw_subscription_options options = world_options("orders", 1);
    options.retry.in_place_backoff = (struct lw_backoff_options){ 1000, 1, 1000, 0 };
    return options;
}

static void
begin(struct world *world, const struct lw_subscription_options *options)
{
    world_add(world, options);
    world_start(world);
    world_send(world, "orders", 0, "warm", 1); /* makes the ring of the ledger */
    world_turn(world);
}

static void
expect_seen(const struct script *script, const int64_t *expected, uint32_t count)
{
    assert_int_equal(script->count, count);
    assert_memory_equal(script->seen, expected, count * sizeof(*expected));
}

static void
all_messages_run_in_order_and_are_committed(void **state)
{
    struct world world;
    struct script script;
    (void)state;
    struct lw_subscription_options options = open_world(&world, &script, 1);
    begin(&world, &options);
    world_send(&world, "orders", 0, "k", 1000);
    world_pass(&world, 200);
    assert_int_equal(script.count, 1001);
    for (uint32_t i = 0; i < script.count; i++) {
        assert_int_equal(script.seen[i], i);
    }
    assert_int_equal(world_committed(&world, "orders", 0), 1001);
    assert_int_equal(world.dispatcher.held_count, 0);
    assert_int_equal(world.dispatcher.streams[0]->subscription.limits.count, 0);
    world_deinit(&world);
}

static enum lw_verdict
retry_once(struct script *script, struct lw_delivery *delivery)
{
    (void)script;
    return has_key(delivery, "a") && lw_delivery_attempt(delivery) == 1 &&
                   lw_delivery_offset(delivery) == 1
               ? LW_RETRY
               : LW_OK;
}

static void
later_messages_of_a_retried_key_wait(void **state)
{
    static const int64_t before[] = { 0, 1, 3 };
    static const int64_t after[] = { 0, 1, 3, 1, 2, 4 };
    struct world world;
    struct script script;
    (void)state;
    struct lw_subscription_options options = open_world(&world, &script, 4);
    script.say = retry_once;
    begin(&world, &options);
    world_send(&world, "orders", 0, "a", 2);
    world_send(&world, "orders", 0, "b", 1);
    world_send(&world, "orders", 0, "a", 1);
    world_turn(&world);
    expect_seen(&script, before, 3);
    world_pass(&world, 1001);
    expect_seen(&script, after, 6);
    world_pass(&world, 200);
    assert_int_equal(world_committed(&world, "orders", 0), 5);
    world_deinit(&world);
}

static enum lw_verdict
fail_first_a(struct script *script, struct lw_delivery *delivery)
{
    (void)script;
    return lw_delivery_offset(delivery) == 1 ? LW_ERROR : LW_OK;
}

static void
later_messages_of_a_held_key_wait_for_ever(void **state)
{
    static const int64_t expected[] = { 0, 1, 3, 5 };
    struct world world;
    struct script script;
    (void)state;
    struct lw_subscription_options options = open_world(&world, &script, 4);
    options.on_error = LW_ON_ERROR_DEAD;
    options.dead_letter.is_off = true;
    options.on_exhausted = LW_ON_EXHAUSTED_HOLD;
    script.say = fail_first_a;
    begin(&world, &options);
    world_send(&world, "orders", 0, "a", 2);
    world_send(&world, "orders", 0, "b", 1);
    world_turn(&world);
    world_send(&world, "orders", 0, "a", 1); /* in a batch of its own */
    world_send(&world, "orders", 0, "c", 1);
    world_pass(&world, 5000);
    expect_seen(&script, expected, 4);
    assert_int_equal(world_committed(&world, "orders", 0), 1);
    world_deinit(&world);
}

static void
later_messages_of_the_key_do_not_run_after_a_stop(void **state)
{
    struct world world;
    struct script script;
    (void)state;
    struct lw_subscription_options options = open_world(&world, &script, 4);
    options.on_error = LW_ON_ERROR_STOP;
    script.say = fail_first_a;
    begin(&world, &options);
    world_send(&world, "orders", 0, "a", 10);
    world_pass(&world, 1000);
    assert_int_equal(world.dispatcher.phase, LW_PHASE_CLOSED);
    assert_int_equal(world.dispatcher.end_status, LW_STATUS_STOPPED);
    assert_int_equal(script.count, 2);
    assert_int_equal(world_committed(&world, "orders", 0), 1);
    world_deinit(&world);
}

static enum lw_verdict
reply(struct script *script, struct lw_delivery *delivery)
{
    (void)script;
    assert_int_equal(lw_delivery_reply(delivery, lw_delivery_value(delivery)), LW_STATUS_OK);
    return LW_OK;
}

static void
replies_are_confirmed_and_their_key_waits(void **state)
{
    struct world world;
    struct script script;
    (void)state;
    struct lw_subscription_options options = open_world(&world, &script, 4);
    options.reply.topic = "replies";
    script.say = reply;
    begin(&world, &options);
    lw_memory_hub_options(world.hub)->publish_latency_ns = 100 * LW_MS;
    world_send(&world, "orders", 0, "k", 3);
    for (uint32_t i = 0; i < 3; i++) {
        world_pass(&world, 90);
        assert_int_equal(script.count, i + 2);
        world_pass(&world, 11);
    }
    world_pass(&world, 300);
    assert_int_equal(world_count(&world, "replies"), 4);
    assert_int_equal(world_committed(&world, "orders", 0), 4);
    world_deinit(&world);
}

static void
partition_order_waits_for_the_retry_of_any_key(void **state)
{
    static const int64_t expected[] = { 0, 1, 1, 2, 3 };
    struct world world;
    struct script script;
    (void)state;
    struct lw_subscription_options options = open_world(&world, &script, 4);
    options.ordering = LW_ORDERING_PARTITION;
    script.say = retry_once;
    begin(&world, &options);
    world_send(&world, "orders", 0, "a", 1);
    world_send(&world, "orders", 0, "b", 2);
    world_turn(&world);
    assert_int_equal(script.count, 2);
    world_pass(&world, 1001);
    expect_seen(&script, expected, 5);
    world_deinit(&world);
}

static void
without_memory_for_a_lane_the_message_runs_later_and_order_holds(void **state)
{
    struct world world;
    struct script script;
    (void)state;
    for (uint64_t n = 1; n <= 3; n++) {
        char key[200] = { 0 };
        memset(key, 'k', sizeof(key) - 1); /* too long to be kept inline */
        struct lw_subscription_options options = open_world(&world, &script, 4);
        script.say = fail_first_a;
        begin(&world, &options);
        world_send(&world, "orders", 0, key, 3);
        world.clock->host.log = NULL;
        lw_alloc_fail_at(n);
        world_turn(&world);
        lw_alloc_fail_at(0);
        world_pass(&world, 5000);
        int64_t last = 0;
        for (uint32_t i = 0; i < script.count; i++) {
            assert_true(script.seen[i] >= last);
            last = script.seen[i];
        }
        assert_int_equal(last, 3);
        assert_int_equal(world_committed(&world, "orders", 0), 4);
        world_deinit(&world);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_messages_run_in_order_and_are_committed),
        cmocka_unit_test(later_messages_of_a_retried_key_wait),
        cmocka_unit_test(later_messages_of_a_held_key_wait_for_ever),
        cmocka_unit_test(later_messages_of_the_key_do_not_run_after_a_stop),
        cmocka_unit_test(replies_are_confirmed_and_their_key_waits),
        cmocka_unit_test(partition_order_waits_for_the_retry_of_any_key),
        cmocka_unit_test(without_memory_for_a_lane_the_message_runs_later_and_order_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
