/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The short way where messages are settled one by one: each is acknowledged once, what fails is
 * given back, and what answers more than ok takes the ordinary way from there.
 */
#include "tests/support/test.h"

#include "tests/dispatcher/world.h"

#include <string.h>

#include "engines/loop.h"

enum { SEEN_MAX = 4096 };

struct script {
    enum lw_verdict (*say)(struct lw_delivery *delivery);
    int64_t seen[SEEN_MAX];
    uint32_t count;
};

static enum lw_verdict
handle(struct lw_delivery *delivery, void *user)
{
    struct script *script = user;
    assert_true(script->count < SEEN_MAX);
    script->seen[script->count++] = lw_delivery_offset(delivery);
    return script->say ? script->say(delivery) : LW_OK;
}

static struct lw_subscription_options
open_world(struct world *world, struct script *script, enum lw_memory_sharing sharing)
{
    struct lw_handler_options handler = { .handler = handle, .user = script };
    struct lw_memory_options hub;
    lw_memory_options_init(&hub);
    hub.mode = LW_MEMORY_INDIVIDUAL;
    hub.sharing = sharing;
    memset(script, 0, sizeof(*script));
    world_init(world, 4, &hub);
    world->dispatcher.history = NULL; /* nobody observes */
    assert_int_equal(lw_loop_engine_create(&world->clock->host, &world->dispatcher.completions,
                                           "direct", &handler, &world->engine),
                     LW_STATUS_OK);
    assert_int_equal(lw_dispatcher_add_engine(&world->dispatcher, world->engine), LW_STATUS_OK);
    world_topic(world, "orders", 1);
    struct lw_subscription_options options = world_options("orders", 1);
    options.profile = LW_PROFILE_THROUGHPUT;
    return options;
}

static void
begin(struct world *world, const struct lw_subscription_options *options)
{
    world_add(world, options);
    world_start(world);
}

static struct lw_memory_stats
stats(const struct world *world)
{
    return lw_memory_hub_stats(world->hub);
}

static uint64_t
backlog(const struct world *world)
{
    return lw_memory_hub_backlog(world->hub, "group", "orders");
}

static bool
is_value(const struct lw_delivery *delivery, const char *value)
{
    return lw_text_is_equal(lw_delivery_value(delivery), value);
}

static void
each_runs_in_order_and_is_acked_once(void **state)
{
    struct world world;
    struct script script;
    (void)state;
    struct lw_subscription_options options = open_world(&world, &script, LW_MEMORY_SHARED);
    begin(&world, &options);
    world_send(&world, "orders", 0, "k", 700);
    world_turn(&world);
    assert_int_equal(script.count, 700);
    for (uint32_t i = 0; i < 700; i++) {
        assert_int_equal(script.seen[i], i);
    }
    assert_int_equal(stats(&world).acks, 700);
    assert_int_equal(stats(&world).acks_repeated, 0);
    assert_int_equal(backlog(&world), 0);
    world_deinit(&world);
}

static enum lw_verdict
fail_first_run_of_2(struct lw_delivery *delivery)
{
    return is_value(delivery, "2") && lw_delivery_redeliveries(delivery) == 0 ? LW_ERROR
                                                                              : LW_OK;
}

static void
an_error_is_given_back_and_the_others_are_acked(void **state)
{
    static const int64_t expected[] = { 0, 1, 2, 3, 4, 2 };
    struct world world;
    struct script script;
    (void)state;
    struct lw_subscription_options options = open_world(&world, &script, LW_MEMORY_SHARED);
    lw_memory_hub_options(world.hub)->nack_delay_ns = 3000 * LW_MS;
    script.say = fail_first_run_of_2;
    begin(&world, &options);
    world_send(&world, "orders", 0, "k", 5);
    world_turn(&world);
    assert_int_equal(stats(&world).acks, 4);
    assert_int_equal(stats(&world).nacks, 1);
    world_pass(&world, 3001);
    assert_int_equal(script.count, 6);
    assert_memory_equal(script.seen, expected, sizeof(expected));
    assert_int_equal(stats(&world).acks, 5);
    assert_int_equal(stats(&world).acks_repeated, 0);
    assert_int_equal(backlog(&world), 0);
    world_deinit(&world);
}

static enum lw_verdict
reply(struct lw_delivery *delivery)
{
    assert_int_equal(lw_delivery_reply(delivery, lw_delivery_value(delivery)), LW_STATUS_OK);
    return LW_OK;
}

static void
a_reply_is_confirmed_before_its_message_is_acked(void **state)
{
    struct world world;
    struct script script;
    (void)state;
    struct lw_subscription_options options = open_world(&world, &script, LW_MEMORY_SHARED);
    world_topic(&world, "replies", 1);
    options.reply.topic = "replies";
    script.say = reply;
    begin(&world, &options);
    lw_memory_hub_options(world.hub)->publish_latency_ns = 100 * LW_MS;
    world_send(&world, "orders", 0, "k", 1);
    world_turn(&world);
    assert_int_equal(script.count, 1);
    assert_int_equal(stats(&world).acks, 0);
    world_pass(&world, 101);
    assert_int_equal(stats(&world).acks, 1);
    assert_int_equal(world_count(&world, "replies"), 1);
    world_deinit(&world);
}

static enum lw_verdict
fail_first_a(struct lw_delivery *delivery)
{
    bool is_a = lw_text_is_equal(lw_delivery_key(delivery), "a");
    return is_a && lw_delivery_attempt(delivery) == 1 ? LW_ERROR : LW_OK;
}

static void
later_ones_of_a_key_wait_for_its_retry_in_place(void **state)
{
    static const int64_t expected[] = { 0, 2, 0, 1 };
    struct world world;
    struct script script;
    (void)state;
    struct lw_subscription_options options = open_world(&world, &script, LW_MEMORY_FAILOVER);
    options.ordering = LW_ORDERING_KEY;
    options.on_error = LW_ON_ERROR_RETRY;
    options.retry.in_place = LW_YES;
    options.retry.in_place_backoff = (struct lw_backoff_options){ 1000, 1, 1000, 0 };
    script.say = fail_first_a;
    begin(&world, &options);
    world_send(&world, "orders", 0, "a", 2);
    world_send(&world, "orders", 0, "b", 1);
    world_turn(&world);
    assert_int_equal(script.count, 2);
    world_pass(&world, 1001);
    assert_true(script.count >= 4);
    assert_memory_equal(script.seen, expected, sizeof(expected));
    world_deinit(&world);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_runs_in_order_and_is_acked_once),
        cmocka_unit_test(an_error_is_given_back_and_the_others_are_acked),
        cmocka_unit_test(a_reply_is_confirmed_before_its_message_is_acked),
        cmocka_unit_test(later_ones_of_a_key_wait_for_its_retry_in_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
