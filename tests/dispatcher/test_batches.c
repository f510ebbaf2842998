/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers that take several messages at once: how tasks fill, what follows a partly failed one,
 * verdicts that are missing or too many, one verdict for all, and what waits for company when
 * partitions go, a subscription pauses or all ends.
 */
#include "tests/support/test.h"

#include "tests/dispatcher/crew.h"

#include <string.h>

static struct lw_subscription_options
options_of(enum lw_ordering ordering)
{
    struct lw_subscription_options options = world_options("orders", 100);
    options.ordering = ordering;
    options.retry.in_place_backoff.jitter_ms = 0;
    return options;
}

static void
begin(struct crew *crew, uint32_t slots, enum lw_ordering ordering)
{
    struct lw_subscription_options options = options_of(ordering);
    struct lw_batch_options batch = crew_batch();
    crew_begin(crew, slots, 1, &options, &batch);
}

static const struct lw_counters *
counters(const struct crew *crew)
{
    return &crew->world.dispatcher.streams[0]->counters;
}

/* -- Filling ---------------------------------------------------------------------------------- */

static void
a_batch_fills_to_its_size_and_what_is_left_waits(void **state)
{
    struct crew crew;
    (void)state;
    begin(&crew, 4, LW_ORDERING_NONE);
    world_send(&crew.world, "orders", 0, NULL, 4);
    world_turn(&crew.world);
    assert_string_equal(crew_task(&crew, 0), "0,1,2");
    assert_string_equal(crew_task(&crew, 1), "-");
    world_pass(&crew.world, 9);
    assert_string_equal(crew_task(&crew, 1), "-");
    world_pass(&crew.world, 2);
    assert_string_equal(crew_task(&crew, 1), "3");
    crew_end(&crew);
}

static void
while_a_batch_waits_no_slot_is_taken(void **state)
{
    struct crew crew;
    (void)state;
    begin(&crew, 1, LW_ORDERING_NONE);
    world_send(&crew.world, "orders", 0, NULL, 2);
    world_turn(&crew.world);
    assert_int_equal(crew.world.dispatcher.scheduler.busy_slots, 0);
    world_send(&crew.world, "orders", 0, NULL, 1);
    world_turn(&crew.world);
    assert_string_equal(crew_task(&crew, 0), "0,1,2");
    assert_int_equal(crew.world.dispatcher.scheduler.busy_slots, 1);
    crew_end(&crew);
}

static void
of_one_key_no_other_is_in_the_batch(void **state)
{
    struct crew crew;
    struct lw_subscription_options options = options_of(LW_ORDERING_KEY);
    struct lw_batch_options batch = crew_batch();
    (void)state;
    batch.keys = LW_BATCH_KEYS_ONE;
    crew_begin(&crew, 4, 1, &options, &batch);
    world_send(&crew.world, "orders", 0, "a", 2);
    world_send(&crew.world, "orders", 0, "b", 3);
    world_turn(&crew.world);
    assert_string_equal(crew_task(&crew, 0), "2,3,4");
    assert_string_equal(crew_task(&crew, 1), "-");
    world_pass(&crew.world, 11);
    assert_string_equal(crew_task(&crew, 1), "0,1");
    crew_end(&crew);
}

static void
a_batch_ends_where_it_has_its_bytes(void **state)
{
    struct crew crew;
    struct lw_subscription_options options = options_of(LW_ORDERING_NONE);
    struct lw_batch_options batch = crew_batch();
    (void)state;
    batch.bytes = 2; /* values of one byte */
    crew_begin(&crew, 4, 1, &options, &batch);
    world_send(&crew.world, "orders", 0, NULL, 4);
    world_turn(&crew.world);
    assert_string_equal(crew_task(&crew, 0), "0,1");
    assert_string_equal(crew_task(&crew, 1), "2,3");
    crew_end(&crew);
}

static void
a_batch_that_can_never_fill_is_refused(void **state)
{
    struct world world;
    struct lw_error error = { 0 };
    struct lw_subscription_options options = options_of(LW_ORDERING_NONE);
    (void)state;
    world_init(&world, 1, NULL);
    world.engine->batch = crew_batch();
    options.max_in_flight = 2;
    assert_int_equal(
        lw_dispatcher_add_stream(&world.dispatcher, &options, world.engine, &error),
        LW_STATUS_INVALID);
    assert_string_equal(error.code, "E0320");
    options.max_in_flight = 100;
    world.engine->batch.keys = LW_BATCH_KEYS_ONE;
    assert_int_equal(
        lw_dispatcher_add_stream(&world.dispatcher, &options, world.engine, &error),
        LW_STATUS_INVALID);
    assert_non_null(strstr(error.message, "no order"));
    world_deinit(&world);
}

/* Its reply is refused when those behind it are over: it could only run again behind them. */
static void
a_reply_that_leads_to_a_retry_in_place_is_refused_where_there_is_order(void **state)
{
    struct world world;
    struct lw_error error = { 0 };
    struct lw_subscription_options options = options_of(LW_ORDERING_KEY);
    (void)state;
    world_init(&world, 1, NULL);
    world.engine->batch = crew_batch();
    options.reply.topic = "replies";
    options.reply.on_oversize = LW_ON_OVERSIZE_RETRY;
    assert_int_equal(
        lw_dispatcher_add_stream(&world.dispatcher, &options, world.engine, &error),
        LW_STATUS_INVALID);
    assert_string_equal(error.code, "E0320");
    assert_non_null(strstr(error.message, "run again, in place, behind those of its key"));
    world_topic(&world, "orders", 1);
    world_topic(&world, "others", 1);
    options.retry.max_attempts = 1; /* then it is dead */
    world_add(&world, &options);
    options.topic = "others";
    options.retry.max_attempts = 3;
    options.ordering = LW_ORDERING_NONE;
    world_add(&world, &options);
    world_deinit(&world);
}

/* The last eighth of the limit is kept for partitions that have nothing to give. */
static void
what_is_held_back_for_other_partitions_is_not_waited_for(void **state)
{
    struct crew crew;
    struct lw_subscription_options options = options_of(LW_ORDERING_NONE);
    struct lw_batch_options batch = crew_batch();
    (void)state;
    options.max_in_flight = 100;
    batch.size = 100;
    batch.wait_ms = 3600000;
    crew_begin(&crew, 4, 2, &options, &batch);
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < 10; i++) { /* not all at once, which one receive would bring */
            world_send(&crew.world, "orders", 0, NULL, 10);
            world_pass(&crew.world, 20);
        }
        assert_int_equal(crew.count, 1);
        assert_in_range(crew.tasks[0]->task_count, 80, 95);
        crew_answer_rest(&crew);
    }
    crew_end(&crew);
}

/* At max_uncommitted, too, no more can come. */
static void
what_the_offsets_window_holds_up_is_not_waited_for(void **state)
{
    struct crew crew;
    struct lw_subscription_options options = options_of(LW_ORDERING_NONE);
    struct lw_batch_options batch = crew_batch();
    (void)state;
    options.max_uncommitted = 64;
    batch.size = 100;
    batch.wait_ms = 3600000;
    crew_begin(&crew, 4, 1, &options, &batch);
    world_send(&crew.world, "orders", 0, NULL, 192);
    for (uint32_t handled = 0; handled < 192;) {
        world_pass(&crew.world, 200);
        assert_int_equal(crew.count, 1);
        assert_in_range(crew.tasks[0]->task_count, 60, 68);
        handled += crew.tasks[0]->task_count;
        crew_answer_all(&crew, 0, LW_OK);
    }
    crew_end(&crew);
}

/* -- Verdicts of each ------------------------------------------------------------------------- */

static void
a_partly_failed_batch_goes_on_from_its_failed_member(void **state)
{
    struct crew crew;
    (void)state;
    begin(&crew, 4, LW_ORDERING_KEY);
    world_send(&crew.world, "orders", 0, "a", 3);
    world_turn(&crew.world);
    crew_answer(&crew, 0, "oro");
    assert_true(world_told(&crew.world, "settle:orders/0/0=0"));
    assert_false(world_told(&crew.world, "settle:orders/0/2"));
    assert_string_equal(crew_task(&crew, 0), "-");
    world_pass(&crew.world, 1001);
    assert_string_equal(crew_task(&crew, 0), "1,2");
    assert_int_equal(crew_member(&crew, 0, 0)->attempt, 2);
    assert_int_equal(crew_member(&crew, 0, 1)->attempt, 1);
    crew_answer(&crew, 0, "oo");
    world_pass(&crew.world, 200);
    assert_int_equal(world_committed(&crew.world, "orders", 0), 3);
    crew_end(&crew);
}

static void
without_order_only_the_failed_one_runs_again(void **state)
{
    struct crew crew;
    (void)state;
    begin(&crew, 4, LW_ORDERING_NONE);
    world_send(&crew.world, "orders", 0, NULL, 3);
    world_turn(&crew.world);
    crew_answer(&crew, 0, "oro");
    assert_true(world_told(&crew.world, "settle:orders/0/2=0"));
    world_pass(&crew.world, 1001);
    assert_string_equal(crew_task(&crew, 0), "1");
    crew_end(&crew);
}

static void
a_failed_one_holds_up_its_own_key_only(void **state)
{
    struct crew crew;
    struct lw_subscription_options options = options_of(LW_ORDERING_KEY);
    struct lw_batch_options batch = crew_batch();
    (void)state;
    batch.size = 4;
    crew_begin(&crew, 4, 1, &options, &batch);
    world_send(&crew.world, "orders", 0, "a", 2);
    world_send(&crew.world, "orders", 0, "b", 2);
    world_turn(&crew.world);
    assert_string_equal(crew_task(&crew, 0), "0,1,2,3");
    crew_answer(&crew, 0, "rooo");
    assert_false(world_told(&crew.world, "settle:orders/0/1"));
    assert_true(world_told(&crew.world, "settle:orders/0/2=0"));
    assert_true(world_told(&crew.world, "settle:orders/0/3=0"));
    world_pass(&crew.world, 1001);
    assert_string_equal(crew_task(&crew, 0), "0,1");
    crew_end(&crew);
}

static void
a_dead_one_does_not_hold_up_those_behind_it(void **state)
{
    struct crew crew;
    (void)state;
    begin(&crew, 4, LW_ORDERING_KEY);
    world_send(&crew.world, "orders", 0, "a", 3);
    world_turn(&crew.world);
    crew_answer(&crew, 0, "odx");
    world_pass(&crew.world, 200);
    assert_int_equal(world_count(&crew.world, "orders.dlq"), 1);
    assert_int_equal(world_committed(&crew.world, "orders", 0), 3);
    assert_int_equal(counters(&crew)->settled[LW_SETTLED_DROPPED], 1);
    crew_end(&crew);
}

static void
each_member_has_its_own_reply(void **state)
{
    struct crew crew;
    struct lw_subscription_options options = options_of(LW_ORDERING_KEY);
    struct lw_batch_options batch = crew_batch();
    (void)state;
    options.reply.topic = "replies";
    crew_begin(&crew, 4, 1, &options, &batch);
    world_topic(&crew.world, "replies", 1);
    world_send(&crew.world, "orders", 0, "a", 3);
    world_turn(&crew.world);
    (void)lw_delivery_reply(crew_member(&crew, 0, 0), lw_bytes_of("first"));
    (void)lw_delivery_reply(crew_member(&crew, 0, 2), lw_bytes_of("third"));
    crew_answer(&crew, 0, "ooo");
    world_pass(&crew.world, 200);
    assert_int_equal(world_count(&crew.world, "replies"), 2);
    assert_memory_equal(world_stored(&crew.world, "replies", 0), "a|first|", 8);
    assert_memory_equal(world_stored(&crew.world, "replies", 1), "a|third|", 8);
    assert_int_equal(world_committed(&crew.world, "orders", 0), 3);
    crew_end(&crew);
}

static void
a_held_one_keeps_those_behind_it_back(void **state)
{
    struct crew crew;
    struct lw_subscription_options options = options_of(LW_ORDERING_KEY);
    struct lw_batch_options batch = crew_batch();
    (void)state;
    options.dead_letter.is_off = true;
    options.on_exhausted = LW_ON_EXHAUSTED_HOLD;
    crew_begin(&crew, 4, 1, &options, &batch);
    world_send(&crew.world, "orders", 0, "a", 3);
    world_turn(&crew.world);
    crew_answer(&crew, 0, "odo");
    world_pass(&crew.world, 5000);
    assert_string_equal(crew_task(&crew, 0), "-");
    assert_int_equal(world_committed(&crew.world, "orders", 0), 1);
    assert_int_equal(counters(&crew)->held, 1);
    crew_end(&crew);
}

/* -- Too few, too many ------------------------------------------------------------------------ */

static void
those_without_a_verdict_are_retried_and_it_is_said(void **state)
{
    struct crew crew;
    (void)state;
    begin(&crew, 4, LW_ORDERING_NONE);
    world_send(&crew.world, "orders", 0, NULL, 3);
    world_turn(&crew.world);
    crew_answer(&crew, 0, "oo");
    assert_true(world_logged(&crew.world, "batch.mismatch"));
    assert_true(world_logged(&crew.world, "2 verdicts for 3 messages"));
    assert_int_equal(counters(&crew)->mismatches, 1);
    world_pass(&crew.world, 1001);
    assert_string_equal(crew_task(&crew, 0), "2");
    assert_int_equal(crew_member(&crew, 0, 0)->attempt, 2);
    crew_end(&crew);
}

static void
verdicts_beyond_the_messages_are_ignored_and_it_is_said(void **state)
{
    struct crew crew;
    (void)state;
    begin(&crew, 4, LW_ORDERING_NONE);
    world_send(&crew.world, "orders", 0, NULL, 3);
    world_turn(&crew.world);
    crew_answer(&crew, 0, "oooo");
    world_pass(&crew.world, 200);
    assert_true(world_logged(&crew.world, "batch.mismatch"));
    assert_int_equal(world_committed(&crew.world, "orders", 0), 3);
    crew_end(&crew);
}

/* -- One for all ------------------------------------------------------------------------------ */

static void
one_verdict_ends_them_all(void **state)
{
    struct crew crew;
    (void)state;
    begin(&crew, 4, LW_ORDERING_KEY);
    world_send(&crew.world, "orders", 0, "a", 3);
    world_turn(&crew.world);
    crew_answer_all(&crew, 0, LW_OK);
    world_send(&crew.world, "orders", 0, "a", 3);
    world_turn(&crew.world);
    (void)lw_delivery_dead(crew_member(&crew, 0, 0), "unreadable");
    crew_answer_all(&crew, 0, LW_DEAD);
    world_pass(&crew.world, 200);
    assert_int_equal(world_count(&crew.world, "orders.dlq"), 3);
    assert_int_equal(world_times(&crew.world, "settle:orders/0/5=2"), 1);
    assert_int_equal(world_committed(&crew.world, "orders", 0), 6);
    crew_end(&crew);
}

static void
a_batch_that_fails_as_a_whole_runs_again_one_by_one(void **state)
{
    struct crew crew;
    (void)state;
    begin(&crew, 4, LW_ORDERING_KEY);
    world_send(&crew.world, "orders", 0, "a", 3);
    world_turn(&crew.world);
    crew_answer_all(&crew, 0, LW_ERROR);
    assert_string_equal(crew_task(&crew, 0), "0");
    assert_int_equal(crew_member(&crew, 0, 0)->attempt, 1);
    crew_answer_all(&crew, 0, LW_OK);
    for (uint32_t attempt = 1; attempt <= 3; attempt++) {
        assert_string_equal(crew_task(&crew, 0), "1");
        assert_int_equal(crew_member(&crew, 0, 0)->attempt, attempt);
        crew_answer_all(&crew, 0, LW_ERROR);
        world_pass(&crew.world, 2001);
    }
    assert_string_equal(crew_task(&crew, 0), "2");
    crew_answer_all(&crew, 0, LW_OK);
    world_pass(&crew.world, 200);
    assert_int_equal(world_count(&crew.world, "orders.dlq"), 1);
    assert_int_equal(world_committed(&crew.world, "orders", 0), 3);
    assert_int_equal(counters(&crew)->taken_apart, 1);
    crew_end(&crew);
}

static void
a_delay_said_of_all_holds_every_key_and_charges_nobody(void **state)
{
    struct crew crew;
    (void)state;
    begin(&crew, 4, LW_ORDERING_KEY);
    world_send(&crew.world, "orders", 0, "a", 2);
    world_send(&crew.world, "orders", 0, "b", 1);
    world_turn(&crew.world);
    (void)lw_delivery_retry(crew_member(&crew, 0, 0), "the database is down", 5000);
    crew_answer_all(&crew, 0, LW_RETRY);
    assert_int_equal(crew.count, 0);
    world_pass(&crew.world, 4900);
    assert_int_equal(crew.count, 0);
    world_pass(&crew.world, 200);
    assert_string_equal(crew_task(&crew, 0), "0"); /* alone, and so is the other key's */
    assert_int_equal(crew_member(&crew, 0, 0)->attempt, 1);
    crew_answer_all(&crew, 0, LW_OK);
    while (crew.count > 0) {
        assert_int_equal(crew.tasks[0]->task_count, 1);
        assert_int_equal(crew_member(&crew, 0, 0)->attempt, 1);
        crew_answer_all(&crew, 0, LW_OK);
    }
    world_pass(&crew.world, 200);
    assert_int_equal(world_committed(&crew.world, "orders", 0), 3);
    crew_end(&crew);
}

static void
a_delay_said_of_all_is_a_day_at_most(void **state)
{
    struct crew crew;
    (void)state;
    begin(&crew, 4, LW_ORDERING_KEY);
    world_send(&crew.world, "orders", 0, "a", 3);
    world_turn(&crew.world);
    const struct lw_delivery *first = crew_member(&crew, 0, 0);
    (void)lw_delivery_retry(crew_member(&crew, 0, 0), "never", INT64_MAX);
    crew_answer_all(&crew, 0, LW_RETRY);
    assert_int_equal(first->state, LW_STATE_PARKED);
    assert_in_range(first->timer.due - crew.engine.host->now, 86399000 * LW_MS,
                    86400000 * LW_MS);
    crew_end(&crew);
}

/* Such as an answer of it for which there was no memory. */
static void
a_member_whose_answer_was_lost_runs_again_uncharged(void **state)
{
    struct crew crew;
    (void)state;
    begin(&crew, 4, LW_ORDERING_KEY);
    world_send(&crew.world, "orders", 0, "a", 3);
    world_turn(&crew.world);
    const struct lw_delivery *lost = crew_member(&crew, 0, 1);
    (void)lw_delivery_retry(crew_member(&crew, 0, 1), "no memory", 100);
    lw_delivery_outcome(crew_member(&crew, 0, 1))->is_uncharged = true;
    crew_answer(&crew, 0, "oro");
    assert_int_equal(crew.count, 0);
    world_pass(&crew.world, 200);
    assert_string_equal(crew_task(&crew, 0), "1,2");
    assert_int_equal(lost->attempt, 1);
    assert_int_equal(counters(&crew)->results[LW_RETRY], 0);
    crew_end(&crew);
}

static void
an_end_without_fault_may_put_all_off(void **state)
{
    struct crew crew;
    (void)state;
    begin(&crew, 4, LW_ORDERING_KEY);
    world_send(&crew.world, "orders", 0, "a", 3);
    world_turn(&crew.world);
    (void)lw_delivery_retry(crew_member(&crew, 0, 0), "no memory", 1000);
    lw_delivery_outcome(crew_member(&crew, 0, 0))->is_uncharged = true;
    crew_answer_all(&crew, 0, LW_RETRY);
    assert_int_equal(crew.count, 0);
    world_pass(&crew.world, 1200);
    assert_string_equal(crew_task(&crew, 0), "0,1,2");
    assert_int_equal(crew_member(&crew, 0, 0)->attempt, 1);
    crew_end(&crew);
}

static void
what_is_put_off_with_its_batch_is_given_back_at_a_drain(void **state)
{
    struct crew crew;
    (void)state;
    begin(&crew, 4, LW_ORDERING_KEY);
    world_send(&crew.world, "orders", 0, "a", 3);
    world_turn(&crew.world);
    (void)lw_delivery_retry(crew_member(&crew, 0, 0), "busy", 86400000);
    crew_answer_all(&crew, 0, LW_RETRY);
    lw_shutdown_begin(&crew.world.dispatcher, false);
    lw_host_want_turn(crew.engine.host);
    world_turn(&crew.world);
    assert_int_equal(crew.count, 0);
    assert_int_equal(crew.world.dispatcher.held_count, 0);
    assert_int_equal(world_close(&crew.world), LW_STATUS_UNFINISHED);
    assert_true(world_committed(&crew.world, "orders", 0) <= 0);
    crew_end(&crew);
}

static void
an_end_without_fault_charges_nobody(void **state)
{
    struct crew crew;
    (void)state;
    begin(&crew, 4, LW_ORDERING_KEY);
    world_send(&crew.world, "orders", 0, "a", 3);
    world_turn(&crew.world);
    lw_delivery_outcome(crew_member(&crew, 0, 0))->is_uncharged = true;
    crew_answer_all(&crew, 0, LW_ERROR);
    assert_string_equal(crew_task(&crew, 0), "0,1,2");
    assert_int_equal(crew_member(&crew, 0, 2)->attempt, 1);
    crew_end(&crew);
}

/* -- What comes between ------------------------------------------------------------------------ */

static void
a_refused_task_goes_back_in_order(void **state)
{
    struct crew crew;
    (void)state;
    begin(&crew, 4, LW_ORDERING_KEY);
    crew.refuse = 1;
    world_send(&crew.world, "orders", 0, "a", 3);
    world_turn(&crew.world);
    assert_string_equal(crew_task(&crew, 0), "0,1,2");
    assert_int_equal(crew_member(&crew, 0, 1)->attempt, 1);
    assert_int_equal(crew.world.dispatcher.scheduler.busy_slots, 1);
    crew_end(&crew);
}

static void
what_waits_for_company_is_given_up_with_its_partition(void **state)
{
    struct crew crew;
    struct world other;
    (void)state;
    struct lw_subscription_options options = options_of(LW_ORDERING_KEY);
    struct lw_batch_options batch = crew_batch();
    batch.wait_ms = 60000;
    crew_begin(&crew, 4, 2, &options, &batch);
    world_send(&crew.world, "orders", 0, "a", 2);
    world_send(&crew.world, "orders", 1, "b", 2);
    world_turn(&crew.world);
    assert_string_equal(crew_task(&crew, 0), "0,1,0");
    crew_answer(&crew, 0, "ooo");
    world_send(&crew.world, "orders", 0, "a", 1);
    world_turn(&crew.world);
    world_init_beside(&other, &crew.world, 4);
    world_add(&other, &options);
    world_start(&other);
    world_pass(&crew.world, 10000);
    assert_int_equal(counters(&crew)->started, 3);
    assert_int_equal(crew.world.dispatcher.scheduler.busy_slots, 0);
    assert_true(world_told(&crew.world, "drop:orders/"));
    world_deinit(&other);
    crew_end(&crew);
}

static void
a_running_batch_is_ended_only_when_all_of_it_is_taken_away(void **state)
{
    struct crew crew;
    struct world other;
    (void)state;
    struct lw_subscription_options options = options_of(LW_ORDERING_KEY);
    struct lw_batch_options batch = crew_batch();
    crew_begin(&crew, 4, 2, &options, &batch);
    world_send(&crew.world, "orders", 0, "a", 2);
    world_send(&crew.world, "orders", 1, "b", 1);
    world_turn(&crew.world);
    assert_string_equal(crew_task(&crew, 0), "0,1,0");
    world_init_beside(&other, &crew.world, 4);
    world_add(&other, &options);
    world_start(&other);
    world_pass(&crew.world,
               10000); /* one of the two partitions is taken away, or both come back */
    bool is_first_gone = lw_delivery_is_cancelled(crew_member(&crew, 0, 0));
    bool is_last_gone = lw_delivery_is_cancelled(crew_member(&crew, 0, 2));
    assert_true(is_first_gone || is_last_gone);
    assert_int_equal(crew.cancelled, is_first_gone && is_last_gone);
    crew_answer(&crew, 0, "ooo");
    assert_int_equal(counters(&crew)->stale, (is_first_gone ? 2 : 0) + (is_last_gone ? 1 : 0));
    world_deinit(&other);
    crew_end(&crew);
}

static void
a_pause_holds_what_waits_and_a_resume_lets_it_go(void **state)
{
    struct crew crew;
    (void)state;
    begin(&crew, 4, LW_ORDERING_NONE);
    struct lw_stream *stream = crew.world.dispatcher.streams[0];
    world_send(&crew.world, "orders", 0, NULL, 2);
    world_turn(&crew.world);
    lw_dispatcher_pause(&crew.world.dispatcher, stream, true);
    world_pass(&crew.world, 100);
    assert_string_equal(crew_task(&crew, 0), "-");
    lw_dispatcher_pause(&crew.world.dispatcher, stream, false);
    world_turn(&crew.world);
    assert_string_equal(crew_task(&crew, 0), "0,1");
    crew_end(&crew);
}

static void
at_a_drain_nothing_waits_for_company(void **state)
{
    struct crew crew;
    struct lw_subscription_options options = options_of(LW_ORDERING_KEY);
    struct lw_batch_options batch = crew_batch();
    (void)state;
    batch.wait_ms = 60000;
    crew_begin(&crew, 4, 1, &options, &batch);
    world_send(&crew.world, "orders", 0, "a", 2);
    world_turn(&crew.world);
    lw_shutdown_begin(&crew.world.dispatcher, false);
    lw_host_want_turn(crew.engine.host);
    world_turn(&crew.world);
    assert_string_equal(crew_task(&crew, 0), "0,1");
    crew_answer(&crew, 0, "oo");
    assert_int_equal(world_close(&crew.world), LW_STATUS_OK);
    assert_int_equal(world_committed(&crew.world, "orders", 0), 2);
    crew_end(&crew);
}

/* A handler that stops the service is heard in the middle of a step: nothing else wakes it then. */
static void
at_a_drain_that_begins_in_a_step_nothing_waits_for_company(void **state)
{
    struct crew crew;
    struct lw_subscription_options options = options_of(LW_ORDERING_NONE);
    struct lw_batch_options batch = crew_batch();
    (void)state;
    options.on_error = LW_ON_ERROR_STOP;
    batch.wait_ms = 3600000;
    crew_begin(&crew, 4, 1, &options, &batch);
    world_send(&crew.world, "orders", 0, NULL, 5);
    world_turn(&crew.world);
    assert_int_equal(crew.count, 1);
    crew_answer(&crew, 0, "eoo");
    assert_int_equal(crew.world.dispatcher.phase, LW_PHASE_DRAINING);
    assert_string_equal(crew_task(&crew, 0), "3,4");
    crew_end(&crew);
}

static void
at_the_drain_deadline_those_behind_a_failed_one_are_given_back(void **state)
{
    struct crew crew;
    (void)state;
    begin(&crew, 4, LW_ORDERING_KEY);
    world_send(&crew.world, "orders", 0, "a", 3);
    world_turn(&crew.world);
    lw_shutdown_begin(&crew.world.dispatcher, true);
    lw_host_want_turn(crew.engine.host);
    world_turn(&crew.world);
    assert_int_equal(crew.cancelled, 1);
    crew_answer(&crew, 0, "oeo");
    assert_int_equal(world_close(&crew.world), LW_STATUS_UNFINISHED);
    assert_true(world_committed(&crew.world, "orders", 0) <= 1);
    crew_end(&crew);
}

/* Its dead letter cannot be written, so it is held, and a drain gives it back. */
static void
what_is_given_back_takes_a_parked_one_behind_it_along(void **state)
{
    struct crew crew;
    (void)state;
    begin(&crew, 4, LW_ORDERING_KEY);
    lw_memory_hub_options(crew.world.hub)->publish_latency_ns = 50 * LW_MS;
    world_fault(&crew.world, LW_MEMORY_REFUSE_PUBLISH, 2, LW_STATUS_TOO_LARGE);
    world_send(&crew.world, "orders", 0, "a", 3);
    world_turn(&crew.world);
    crew_answer(&crew, 0, "dro");
    lw_shutdown_begin(&crew.world.dispatcher, false);
    lw_host_want_turn(crew.engine.host);
    world_pass(&crew.world, 3000);
    assert_true(world_logged(&crew.world, "message.undeliverable"));
    assert_string_equal(crew_task(&crew, 0), "-");
    assert_int_equal(counters(&crew)->started, 3);
    assert_int_equal(counters(&crew)->settled[LW_SETTLED_GIVEN_BACK], 3);
    assert_int_equal(world_close(&crew.world), LW_STATUS_UNFINISHED);
    crew_end(&crew);
}

static void
a_late_batch_is_taken_apart(void **state)
{
    struct crew crew;
    (void)state;
    begin(&crew, 4, LW_ORDERING_NONE);
    world_send(&crew.world, "orders", 0, NULL, 3);
    world_turn(&crew.world);
    for (uint32_t i = 0; i < 3; i++) {
        crew_member(&crew, 0, i)->is_late = true;
    }
    crew_answer_all(&crew, 0, LW_ERROR);
    assert_true(world_logged(&crew.world, "handler.late"));
    assert_int_equal(counters(&crew)->late, 3);
    assert_int_equal(crew.count, 3);
    crew_end(&crew);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_fills_to_its_size_and_what_is_left_waits),
        cmocka_unit_test(while_a_batch_waits_no_slot_is_taken),
        cmocka_unit_test(of_one_key_no_other_is_in_the_batch),
        cmocka_unit_test(a_batch_ends_where_it_has_its_bytes),
        cmocka_unit_test(a_batch_that_can_never_fill_is_refused),
        cmocka_unit_test(
            a_reply_that_leads_to_a_retry_in_place_is_refused_where_there_is_order),
        cmocka_unit_test(what_is_held_back_for_other_partitions_is_not_waited_for),
        cmocka_unit_test(what_the_offsets_window_holds_up_is_not_waited_for),
        cmocka_unit_test(a_partly_failed_batch_goes_on_from_its_failed_member),
        cmocka_unit_test(without_order_only_the_failed_one_runs_again),
        cmocka_unit_test(a_failed_one_holds_up_its_own_key_only),
        cmocka_unit_test(a_dead_one_does_not_hold_up_those_behind_it),
        cmocka_unit_test(each_member_has_its_own_reply),
        cmocka_unit_test(a_held_one_keeps_those_behind_it_back),
        cmocka_unit_test(those_without_a_verdict_are_retried_and_it_is_said),
        cmocka_unit_test(verdicts_beyond_the_messages_are_ignored_and_it_is_said),
        cmocka_unit_test(one_verdict_ends_them_all),
        cmocka_unit_test(a_batch_that_fails_as_a_whole_runs_again_one_by_one),
        cmocka_unit_test(a_delay_said_of_all_holds_every_key_and_charges_nobody),
        cmocka_unit_test(a_delay_said_of_all_is_a_day_at_most),
        cmocka_unit_test(a_member_whose_answer_was_lost_runs_again_uncharged),
        cmocka_unit_test(an_end_without_fault_may_put_all_off),
        cmocka_unit_test(what_is_put_off_with_its_batch_is_given_back_at_a_drain),
        cmocka_unit_test(an_end_without_fault_charges_nobody),
        cmocka_unit_test(a_refused_task_goes_back_in_order),
        cmocka_unit_test(what_waits_for_company_is_given_up_with_its_partition),
        cmocka_unit_test(a_running_batch_is_ended_only_when_all_of_it_is_taken_away),
        cmocka_unit_test(a_pause_holds_what_waits_and_a_resume_lets_it_go),
        cmocka_unit_test(at_a_drain_nothing_waits_for_company),
        cmocka_unit_test(at_a_drain_that_begins_in_a_step_nothing_waits_for_company),
        cmocka_unit_test(at_the_drain_deadline_those_behind_a_failed_one_are_given_back),
        cmocka_unit_test(what_is_given_back_takes_a_parked_one_behind_it_along),
        cmocka_unit_test(a_late_batch_is_taken_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
