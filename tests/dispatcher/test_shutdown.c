/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drain, deadline, abort and close: what still runs, what is given back with what order, and that
 * nothing holds the end for ever, whatever the broker does.
 */
#include "tests/support/test.h"

#include "tests/dispatcher/world.h"

#include <string.h>

static struct lw_subscription_options
open_world(struct world *world, uint32_t slots, const struct lw_memory_options *hub)
{
    world_init(world, slots, hub);
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
}

/* Asks for a drain and lets the step see it. */
static void
ask(struct world *world)
{
    lw_shutdown_begin(&world->dispatcher, false);
    world_turn(world);
}

static void
expect_closed(struct world *world, enum lw_status status)
{
    assert_int_equal(world->dispatcher.phase, LW_PHASE_CLOSED);
    assert_int_equal(world->dispatcher.end_status, status);
    assert_int_equal(world->dispatcher.held_count, 0);
}

/* -- draining ---------------------------------------------------------------------------------- */

static void
what_is_queued_runs_and_nothing_more_is_received(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, NULL);
    options.profile = LW_PROFILE_THROUGHPUT;
    options.receiver_queue_size = 20;
    begin(&world, &options);
    world_send(&world, "orders", 0, "k", 1000);
    world_turn(&world);
    uint32_t held = world.dispatcher.held_count;
    assert_in_range(held, 2, 30);
    ask(&world);
    world_finish_all(&world);
    world_pass(&world, 10);
    assert_int_equal(world.started_count, held);
    expect_closed(&world, LW_STATUS_OK);
    assert_int_equal(world_committed(&world, "orders", 0), held);
    world_deinit(&world);
}

static void
a_handler_that_ends_in_time_is_committed_before_the_end(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, NULL);
    begin(&world, &options);
    lw_memory_hub_options(world.hub)->commit_latency_ns = 500 * LW_MS;
    world_send(&world, "orders", 0, "k", 1);
    world_turn(&world);
    ask(&world);
    world_pass(&world, 2000);
    assert_int_equal(world.dispatcher.phase, LW_PHASE_DRAINING);
    world_finish(&world, 0, LW_OK);
    world_pass(&world, 400);
    assert_int_not_equal(world.dispatcher.phase, LW_PHASE_CLOSED);
    world_pass(&world, 700);
    expect_closed(&world, LW_STATUS_OK);
    assert_int_equal(world_committed(&world, "orders", 0), 1);
    world_deinit(&world);
}

static void
the_membership_is_kept_until_the_end_of_the_drain(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, NULL);
    begin(&world, &options);
    world_send(&world, "orders", 0, "k", 1);
    world_turn(&world);
    ask(&world);
    world_pass(&world, 20000);
    assert_string_equal(lw_memory_hub_owner(world.hub, "group", "orders", 0), "main");
    world_finish(&world, 0, LW_OK);
    world_pass(&world, 10);
    assert_null(lw_memory_hub_owner(world.hub, "group", "orders", 0));
    assert_int_equal(lw_memory_hub_member_count(world.hub, "group"), 0);
    world_deinit(&world);
}

static void
asking_twice_is_asking_once(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, NULL);
    begin(&world, &options);
    world_send(&world, "orders", 0, "k", 1);
    world_turn(&world);
    ask(&world);
    world_pass(&world, 20000);
    ask(&world);
    world_pass(&world, 4990); /* the deadline is that of the first */
    assert_int_equal(world.dispatcher.phase, LW_PHASE_DRAINING);
    world_pass(&world, 20);
    assert_true(world.dispatcher.phase > LW_PHASE_DRAINING);
    world_finish_all(&world);
    ask(&world);
    expect_closed(&world, LW_STATUS_UNFINISHED);
    world_deinit(&world);
}

static void
without_a_deadline_a_drain_waits_for_ever(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, NULL);
    world.dispatcher.options.drain_timeout_ms = 0;
    begin(&world, &options);
    world_send(&world, "orders", 0, "k", 1);
    world_turn(&world);
    ask(&world);
    world_pass(&world, INT64_C(24) * 3600 * 1000);
    assert_int_equal(world.dispatcher.phase, LW_PHASE_DRAINING);
    world_finish(&world, 0, LW_OK);
    world_pass(&world, 10);
    expect_closed(&world, LW_STATUS_OK);
    world_deinit(&world);
}

static void
a_start_after_the_request_takes_no_message(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, NULL);
    world_send(&world, "orders", 0, "k", 3);
    world_add(&world, &options);
    lw_shutdown_begin(&world.dispatcher, false);
    world_start(&world);
    world_pass(&world, 1000);
    assert_int_equal(lw_memory_hub_stats(world.hub).received, 0);
    expect_closed(&world, LW_STATUS_OK);
    world_deinit(&world);
}

/* -- the deadline --------------------------------------------------------------------------------- */

static void
at_the_deadline_the_rest_is_given_back(void **state)
{
    struct world world;
    struct world next;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, NULL);
    options.profile = LW_PROFILE_THROUGHPUT;
    begin(&world, &options);
    world_send(&world, "orders", 0, "k", 5);
    world_turn(&world);
    world_finish(&world, 0, LW_OK);
    ask(&world);
    world_pass(&world, 25001);
    assert_true(lw_delivery_is_cancelled(world.running[0]));
    assert_true(world_logged(&world, "service.deadline"));
    assert_true(world_logged(&world, "given_back=3 still_running=1"));
    assert_int_equal(world.dispatcher.phase, LW_PHASE_CLOSING); /* a function cannot be ended */
    world_finish(&world, 0, LW_OK);
    expect_closed(&world, LW_STATUS_UNFINISHED);
    assert_int_equal(world_committed(&world, "orders", 0), 1);
    world_init_beside(&next, &world, 1);
    begin(&next, &options);
    assert_string_equal(world_name(&next, 0), "orders/0/1");
    world_deinit(&next);
    world_deinit(&world);
}

static void
handlers_that_fail_because_they_were_cancelled_dead_letter_nothing(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 5, NULL);
    options.ordering = LW_ORDERING_NONE;
    options.retry.max_attempts = 1;
    begin(&world, &options);
    lw_memory_hub_options(world.hub)->commit_latency_ns = 1000 * LW_MS;
    world_send(&world, "orders", 0, NULL, 5);
    world_turn(&world);
    ask(&world);
    world_pass(&world, 24950);
    world_finish(&world, 0, LW_OK); /* its commit is awaited while the others come back */
    world_pass(&world, 60);
    assert_int_equal(world.dispatcher.phase, LW_PHASE_LEAVING);
    while (world.running_count > 0) {
        world_finish(&world, 0, LW_ERROR);
    }
    world_pass(&world, 5000);
    expect_closed(&world, LW_STATUS_UNFINISHED);
    assert_int_equal(world_count(&world, "orders.dlq"), 0);
    assert_int_equal(world_committed(&world, "orders", 0), 1);
    world_deinit(&world);
}

static void
an_abort_gives_back_at_once_and_waits_for_running_ones(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, NULL);
    options.profile = LW_PROFILE_THROUGHPUT;
    begin(&world, &options);
    world_send(&world, "orders", 0, "k", 5);
    world_turn(&world);
    lw_shutdown_begin(&world.dispatcher, true);
    world_turn(&world);
    assert_int_equal(world.dispatcher.held_count, 1);
    assert_int_equal(world.dispatcher.phase, LW_PHASE_CLOSING);
    world_finish(&world, 0, LW_OK);
    expect_closed(&world, LW_STATUS_UNFINISHED);
    assert_int_equal(world.started_count, 1);
    world_deinit(&world);
}

static void
an_abort_in_the_middle_of_a_drain_ends_it(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, NULL);
    world.dispatcher.options.drain_timeout_ms = 0;
    begin(&world, &options);
    world_send(&world, "orders", 0, "k", 1);
    world_turn(&world);
    world_finish(&world, 0, LW_RETRY);
    ask(&world);
    assert_int_equal(world.dispatcher.phase, LW_PHASE_DRAINING);
    lw_shutdown_begin(&world.dispatcher, true);
    world_turn(&world);
    expect_closed(&world, LW_STATUS_UNFINISHED);
    world_deinit(&world);
}

/* -- retries ------------------------------------------------------------------------------------ */

static void
retries_that_are_due_before_the_deadline_run(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, NULL);
    begin(&world, &options);
    world_send(&world, "orders", 0, "k", 1);
    world_turn(&world);
    world_finish(&world, 0, LW_RETRY);
    ask(&world);
    world_pass(&world, 1001);
    world_finish(&world, 0, LW_OK);
    world_pass(&world, 10);
    expect_closed(&world, LW_STATUS_OK);
    assert_int_equal(world_committed(&world, "orders", 0), 1);
    world_deinit(&world);
}

static void
retries_that_are_due_later_are_given_back_at_once_with_their_key(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 2, NULL);
    options.profile = LW_PROFILE_THROUGHPUT;
    begin(&world, &options);
    world_send(&world, "orders", 0, "a", 3);
    world_send(&world, "orders", 0, "b", 2);
    world_turn(&world);
    (void)lw_delivery_retry(world.running[0], "later", 60000);
    world_finish(&world, 0, LW_RETRY);
    ask(&world);
    assert_int_equal(world.dispatcher.given_back, 3); /* all of "a", in order */
    world_finish_all(&world);
    world_pass(&world, 10);
    expect_closed(&world, LW_STATUS_UNFINISHED);
    assert_int_equal(world.started_count, 3);
    assert_int_equal(world_committed(&world, "orders", 0), -1);
    world_deinit(&world);
}

static void
a_run_that_wants_a_late_retry_during_a_drain_is_given_back_with_its_key(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, NULL);
    options.profile = LW_PROFILE_THROUGHPUT;
    begin(&world, &options);
    world_send(&world, "orders", 0, "a", 3);
    world_turn(&world);
    ask(&world);
    (void)lw_delivery_retry(world.running[0], "later", 60000);
    world_finish(&world, 0, LW_RETRY);
    world_pass(&world, 10);
    expect_closed(&world, LW_STATUS_UNFINISHED);
    assert_int_equal(world.started_count, 1);
    world_deinit(&world);
}

/* -- publications --------------------------------------------------------------------------------- */

static void
pending_dead_letters_alone_hold_the_end_for_five_seconds(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, NULL);
    begin(&world, &options);
    world_fault(&world, LW_MEMORY_REFUSE_PUBLISH, 100000, LW_STATUS_UNAVAILABLE);
    world_send(&world, "orders", 0, "k", 1);
    world_turn(&world);
    world_finish(&world, 0, LW_DEAD);
    ask(&world);
    world_pass(&world, 4990);
    assert_int_equal(world.dispatcher.phase, LW_PHASE_DRAINING);
    world_pass(&world, 20);
    expect_closed(&world, LW_STATUS_UNFINISHED);
    assert_int_equal(world_committed(&world, "orders", 0), -1);
    world_deinit(&world);
}

static void
a_dead_letter_that_is_confirmed_in_time_ends_well(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, NULL);
    begin(&world, &options);
    world_fault(&world, LW_MEMORY_REFUSE_PUBLISH, 4, LW_STATUS_UNAVAILABLE);
    world_send(&world, "orders", 0, "k", 1);
    world_turn(&world);
    world_finish(&world, 0, LW_DEAD);
    ask(&world);
    world_pass(&world, 4000);
    expect_closed(&world, LW_STATUS_OK);
    assert_int_equal(world_count(&world, "orders.dlq"), 1);
    assert_int_equal(world_committed(&world, "orders", 0), 1);
    world_deinit(&world);
}

static void
a_receipt_that_never_comes_does_not_hold_the_end(void **state)
{
    struct world world;
    struct lw_memory_fault fault = { .kind = LW_MEMORY_SLOW_PUBLISH,
                                     .count = 1,
                                     .delay_ns = INT64_C(3600000) * LW_MS };
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, NULL);
    begin(&world, &options);
    assert_int_equal(lw_memory_hub_inject(world.hub, &fault), LW_STATUS_OK);
    world_send(&world, "orders", 0, "k", 1);
    world_turn(&world);
    world_finish(&world, 0, LW_DEAD);
    ask(&world);
    world_pass(&world, 5100);
    expect_closed(&world, LW_STATUS_UNFINISHED);
    assert_int_equal(world_committed(&world, "orders", 0), -1);
    world_deinit(&world);
}

static void
publications_without_room_do_not_hold_the_end(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, NULL);
    begin(&world, &options);
    lw_memory_hub_set_room(world.hub, false);
    world_send(&world, "orders", 0, "k", 1);
    world_turn(&world);
    world_finish(&world, 0, LW_DEAD);
    ask(&world);
    world_pass(&world, 5100);
    expect_closed(&world, LW_STATUS_UNFINISHED);
    world_deinit(&world);
}

/* -- pauses, rebalances, brokers ------------------------------------------------------------------ */

static void
a_paused_subscription_gives_back_and_does_not_hold_the_end(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, NULL);
    options.profile = LW_PROFILE_THROUGHPUT;
    world.dispatcher.options.drain_timeout_ms = 0;
    begin(&world, &options);
    world_send(&world, "orders", 0, "k", 3);
    world_send(&world, "orders", 0, "j", 3);
    world_turn(&world);
    world_finish(&world, 0, LW_RETRY); /* one is parked, one runs, the rest is queued */
    lw_dispatcher_pause(&world.dispatcher, world.dispatcher.streams[0], true);
    ask(&world);
    world_pass(&world, 2000);
    assert_int_equal(world.running_count, 1);
    world_finish(&world, 0, LW_RETRY); /* and may not run again */
    world_pass(&world, 10);
    expect_closed(&world, LW_STATUS_UNFINISHED);
    world_deinit(&world);
}

static void
what_waits_for_a_handler_that_goes_down_in_a_drain_does_not_hold_the_end(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, NULL);
    options.profile = LW_PROFILE_THROUGHPUT;
    world.dispatcher.options.drain_timeout_ms = 0;
    begin(&world, &options);
    world_send(&world, "orders", 0, "k", 3);
    world_turn(&world);
    ask(&world);
    world.engine->is_down = true;
    world.engine->has_changed = true;
    world_turn(&world);
    world_finish(&world, 0, LW_OK);
    world_pass(&world, 10);
    assert_int_equal(world.started_count, 1);
    expect_closed(&world, LW_STATUS_UNFINISHED);
    world_deinit(&world);
}

static void
a_pause_in_the_middle_of_a_drain_does_not_hold_the_end(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, NULL);
    options.profile = LW_PROFILE_THROUGHPUT;
    world.dispatcher.options.drain_timeout_ms = 0;
    begin(&world, &options);
    world_send(&world, "orders", 0, "k", 3);
    world_turn(&world);
    ask(&world);
    lw_dispatcher_pause(&world.dispatcher, world.dispatcher.streams[0], true);
    world_finish(&world, 0, LW_OK);
    world_pass(&world, 10);
    expect_closed(&world, LW_STATUS_UNFINISHED);
    assert_int_equal(world_committed(&world, "orders", 0), 1);
    world_deinit(&world);
}

static void
a_handler_that_goes_down_in_the_middle_of_a_drain_does_not_hold_the_end(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, NULL);
    options.profile = LW_PROFILE_THROUGHPUT;
    world.dispatcher.options.drain_timeout_ms = 0;
    begin(&world, &options);
    world_send(&world, "orders", 0, "k", 3);
    world_turn(&world);
    ask(&world);
    world.engine->is_down = true;
    world.engine->has_changed = true;
    lw_delivery_outcome(world.running[0])->is_uncharged = true;
    world_finish(&world, 0, LW_ERROR);
    world_pass(&world, 10);
    expect_closed(&world, LW_STATUS_UNFINISHED);
    assert_int_equal(world.started_count, 1);
    assert_int_equal(world_count(&world, "orders.dlq"), 0);
    world_deinit(&world);
}

static void
a_handler_that_is_back_before_the_deadline_is_waited_for(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, NULL);
    options.profile = LW_PROFILE_THROUGHPUT;
    begin(&world, &options);
    world_send(&world, "orders", 0, "k", 3);
    world_turn(&world);
    world.engine->is_down = true;
    world.engine->up_at = world.clock->host.now + 1000 * LW_MS;
    world.engine->has_changed = true;
    ask(&world);
    world_finish(&world, 0, LW_OK);
    world_pass(&world, 990);
    assert_int_equal(world.dispatcher.phase, LW_PHASE_DRAINING);
    world.engine->is_down = false;
    world.engine->has_changed = true;
    world_turn(&world);
    world_finish_all(&world);
    world_pass(&world, 10);
    expect_closed(&world, LW_STATUS_OK);
    assert_int_equal(world_committed(&world, "orders", 0), 3);
    world_deinit(&world);
}

static void
a_rebalance_during_a_drain_takes_its_messages_along(void **state)
{
    struct world world;
    struct world other;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, NULL);
    world_topic(&world, "bills", 2);
    struct lw_subscription_options bills = world_options("bills", 2);
    bills.profile = LW_PROFILE_THROUGHPUT;
    world_add(&world, &bills);
    begin(&world, &options);
    world_send(&world, "bills", 0, "k", 3);
    world_send(&world, "bills", 1, "k", 3);
    world_turn(&world);
    ask(&world);
    world_init_beside(&other, &world, 10);
    begin(&other, &bills); /* takes one of the two */
    world_pass(&world, 100);
    world_finish_all(&world);
    world_pass(&world, 100);
    assert_int_equal(world.dispatcher.phase, LW_PHASE_CLOSED);
    world_pass(&world, 100);
    world_finish_all(&other); /* and the second once the first member left */
    world_pass(&world, 200);
    world_finish_all(&other);
    world_pass(&world, 200);
    assert_int_equal(lw_memory_hub_backlog(world.hub, "group", "bills"), 0);
    world_deinit(&other);
    world_deinit(&world);
}

static void
a_last_commit_that_fails_does_not_hold_the_end(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, NULL);
    begin(&world, &options);
    world_fault(&world, LW_MEMORY_FAIL_COMMIT, 100000, LW_STATUS_DENIED);
    world_send(&world, "orders", 0, "k", 1);
    world_turn(&world);
    world_finish(&world, 0, LW_OK);
    ask(&world);
    world_pass(&world, 6000);
    assert_int_equal(world.dispatcher.phase, LW_PHASE_CLOSED);
    assert_int_equal(lw_memory_hub_member_count(world.hub, "group"), 0);
    world_deinit(&world);
}

static void
a_last_commit_that_never_answers_does_not_hold_the_end(void **state)
{
    struct world world;
    struct lw_memory_fault fault = { .kind = LW_MEMORY_SLOW_COMMIT,
                                     .count = 1,
                                     .delay_ns = INT64_C(3600000) * LW_MS };
    (void)state;
    struct lw_subscription_options options = open_world(&world, 1, NULL);
    begin(&world, &options);
    assert_int_equal(lw_memory_hub_inject(world.hub, &fault), LW_STATUS_OK);
    world_send(&world, "orders", 0, "k", 1);
    world_turn(&world);
    world_finish(&world, 0, LW_OK);
    ask(&world);
    world_pass(&world, 5100);
    assert_int_equal(world.dispatcher.phase, LW_PHASE_CLOSED);
    world_deinit(&world);
}

static void
a_broker_that_is_away_does_not_hold_the_end(void **state)
{
    struct world world;
    (void)state;
    struct lw_subscription_options options = open_world(&world, 2, NULL);
    options.reply.topic = "replies";
    begin(&world, &options);
    world_send(&world, "orders", 0, "k", 1);
    world_send(&world, "orders", 0, "j", 1);
    world_turn(&world);
    lw_memory_hub_set_down(world.hub, INT64_C(36000000) * LW_MS);
    world_finish(&world, 0, LW_OK);
    assert_int_equal(lw_delivery_reply(world.running[0], lw_bytes_of("r")), LW_STATUS_OK);
    world_finish(&world, 0, LW_OK);
    ask(&world);
    world_pass(&world, 31000);
    assert_int_equal(world.dispatcher.phase, LW_PHASE_CLOSED);
    world_deinit(&world);
}

/* -- individual settlement ----------------------------------------------------------------------- */

static void
what_is_given_back_comes_again_from_a_broker_with_acks(void **state)
{
    struct world world;
    struct world next;
    struct lw_memory_options hub;
    (void)state;
    lw_memory_options_init(&hub);
    hub.mode = LW_MEMORY_INDIVIDUAL;
    struct lw_subscription_options options = open_world(&world, 1, &hub);
    options.profile = LW_PROFILE_THROUGHPUT;
    begin(&world, &options);
    world_send(&world, "orders", 0, "k", 5);
    world_turn(&world);
    world_finish(&world, 0, LW_OK);
    lw_shutdown_begin(&world.dispatcher, true);
    world_turn(&world);
    world_finish_all(&world);
    world_pass(&world, 10);
    expect_closed(&world, LW_STATUS_UNFINISHED);
    world_init_beside(&next, &world, 1);
    begin(&next, &options);
    world_finish_all(&next);
    world_pass(&world, 100);
    assert_int_equal(next.started_count, 4);
    assert_int_equal(lw_memory_hub_backlog(world.hub, "group", "orders"), 0);
    world_deinit(&next);
    world_deinit(&world);
}

/* -- engines ------------------------------------------------------------------------------------ */

static uint64_t engine_deadline;
static const struct lw_engine_ops *engine_ops;

static void
remember_stop(struct lw_engine *engine, uint64_t deadline)
{
    engine_deadline = deadline;
    engine_ops->stop(engine, deadline);
}

/* How long after now the engine may take to end, in ms, when one message runs and then ends. */
static uint64_t
time_to_end(int64_t drain_timeout_ms, int64_t runs_ms, bool is_abort)
{
    struct world world;
    struct lw_subscription_options options = open_world(&world, 1, NULL);
    engine_ops = world.engine->ops;
    struct lw_engine_ops ops = *engine_ops;
    ops.stop = remember_stop;
    world.engine->ops = &ops;
    world.dispatcher.options.drain_timeout_ms = drain_timeout_ms;
    begin(&world, &options);
    world_send(&world, "orders", 0, "k", 1);
    world_turn(&world);
    engine_deadline = 0;
    lw_shutdown_begin(&world.dispatcher, is_abort);
    world_turn(&world);
    world_pass(&world, (uint64_t)runs_ms);
    uint64_t now = world.dispatcher.host->now;
    world_finish_all(&world);
    world_pass(&world, 10);
    assert_int_equal(world.dispatcher.phase, LW_PHASE_CLOSED);
    world.engine->ops = engine_ops;
    world_deinit(&world);
    return engine_deadline > now ? (engine_deadline - now) / LW_MS : 0;
}

static void
an_engine_that_holds_nothing_has_five_seconds_to_end(void **state)
{
    (void)state;
    assert_int_equal(time_to_end(25000, 1000, false), 5000);
    assert_int_equal(time_to_end(0, 1000, false), 5000);
}

/* When an engine is told that the drain's deadline is near, in ms from the drain's begin; 0 never. */
static uint64_t
time_of_hurry(int64_t drain_timeout_ms, bool can_end_early)
{
    struct world world;
    struct lw_subscription_options options = open_world(&world, 1, NULL);
    uint64_t told = 0;
    engine_ops = world.engine->ops;
    struct lw_engine_ops ops = *engine_ops;
    ops.stop = remember_stop;
    ops.can_end_early = can_end_early;
    world.engine->ops = &ops;
    world.dispatcher.options.drain_timeout_ms = drain_timeout_ms;
    begin(&world, &options);
    world_send(&world, "orders", 0, "k", 1);
    world_turn(&world);
    engine_deadline = 0;
    ask(&world);
    uint64_t begin_ns = world.dispatcher.host->now;
    for (int64_t i = 0; i < drain_timeout_ms / 100 - 1 && engine_deadline == 0; i++) {
        world_pass(&world, 100);
        told = engine_deadline ? (world.dispatcher.host->now - begin_ns) / LW_MS : 0;
    }
    assert_true(!told || engine_deadline == begin_ns + (uint64_t)drain_timeout_ms * LW_MS);
    assert_int_equal(world.running_count, 1);
    world_finish_all(&world);
    world.engine->ops = engine_ops;
    assert_int_equal(world_close(&world), LW_STATUS_OK);
    world_deinit(&world);
    return told;
}

static void
who_can_end_a_handler_is_told_before_the_drains_deadline(void **state)
{
    (void)state;
    assert_in_range(time_of_hurry(25000, true), 23000, 23100);
    assert_in_range(time_of_hurry(3000, true), 2400, 2500);
    assert_int_equal(time_of_hurry(25000, false), 0);
}

static void
an_engine_ends_no_later_than_the_drain(void **state)
{
    (void)state;
    assert_int_equal(time_to_end(3000, 1000, false), 2000);
    assert_int_equal(time_to_end(3000, 4000, false), 0);
    assert_int_equal(time_to_end(3000, 1000, true), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_queued_runs_and_nothing_more_is_received),
        cmocka_unit_test(a_handler_that_ends_in_time_is_committed_before_the_end),
        cmocka_unit_test(the_membership_is_kept_until_the_end_of_the_drain),
        cmocka_unit_test(asking_twice_is_asking_once),
        cmocka_unit_test(without_a_deadline_a_drain_waits_for_ever),
        cmocka_unit_test(a_start_after_the_request_takes_no_message),
        cmocka_unit_test(at_the_deadline_the_rest_is_given_back),
        cmocka_unit_test(handlers_that_fail_because_they_were_cancelled_dead_letter_nothing),
        cmocka_unit_test(an_abort_gives_back_at_once_and_waits_for_running_ones),
        cmocka_unit_test(an_abort_in_the_middle_of_a_drain_ends_it),
        cmocka_unit_test(retries_that_are_due_before_the_deadline_run),
        cmocka_unit_test(retries_that_are_due_later_are_given_back_at_once_with_their_key),
        cmocka_unit_test(
            a_run_that_wants_a_late_retry_during_a_drain_is_given_back_with_its_key),
        cmocka_unit_test(pending_dead_letters_alone_hold_the_end_for_five_seconds),
        cmocka_unit_test(a_dead_letter_that_is_confirmed_in_time_ends_well),
        cmocka_unit_test(a_receipt_that_never_comes_does_not_hold_the_end),
        cmocka_unit_test(publications_without_room_do_not_hold_the_end),
        cmocka_unit_test(a_paused_subscription_gives_back_and_does_not_hold_the_end),
        cmocka_unit_test(
            what_waits_for_a_handler_that_goes_down_in_a_drain_does_not_hold_the_end),
        cmocka_unit_test(a_pause_in_the_middle_of_a_drain_does_not_hold_the_end),
        cmocka_unit_test(
            a_handler_that_goes_down_in_the_middle_of_a_drain_does_not_hold_the_end),
        cmocka_unit_test(a_handler_that_is_back_before_the_deadline_is_waited_for),
        cmocka_unit_test(a_rebalance_during_a_drain_takes_its_messages_along),
        cmocka_unit_test(a_last_commit_that_fails_does_not_hold_the_end),
        cmocka_unit_test(a_last_commit_that_never_answers_does_not_hold_the_end),
        cmocka_unit_test(a_broker_that_is_away_does_not_hold_the_end),
        cmocka_unit_test(what_is_given_back_comes_again_from_a_broker_with_acks),
        cmocka_unit_test(an_engine_that_holds_nothing_has_five_seconds_to_end),
        cmocka_unit_test(who_can_end_a_handler_is_told_before_the_drains_deadline),
        cmocka_unit_test(an_engine_ends_no_later_than_the_drain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
