/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The promises P1 to P10, one test each: a random play of thousands of moves and one judge. That
 * nothing is lost in the end is part of every play.
 */
#include "tests/support/test.h"

#include "tests/dispatcher/play.h"

#include <stdio.h>
#include <string.h>

enum { SEEDS = 6, STEPS = 5000 };

/* The plan of an ordinary play: everything goes wrong now and then. */
static struct play_plan
rough_plan(void)
{
    return (struct play_plan){
        .steps = STEPS, .slots = 6, .fail_percent = 25, .reply_percent = 20, .fault_percent = 4
    };
}

static void
play_seeds(struct play_plan plan)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        plan.seed = seed * 7919;
        plan.slots = 1 + (uint32_t)(seed * 5) % 9;
        play_run(&plan);
    }
}

/* -- P1 ------------------------------------------------------------------------------------------ */

static void
judge_effects(struct play *play, const struct lw_history_event *event)
{
    if (event->kind != LW_HISTORY_SETTLED) {
        return;
    }
    const struct play_delivery *delivery = play_delivery_of(play, event->delivery);
    if (event->detail == LW_SETTLED_ACKED || event->detail == LW_SETTLED_RETRIED ||
        event->detail == LW_SETTLED_DEAD_LETTERED) {
        assert_int_equal(delivery->published, delivery->owed);
        assert_true(event->detail == LW_SETTLED_ACKED || delivery->owed == 1);
    }
}

/* What was settled is really there, whatever the receipts said. */
static void
judge_stored(struct play *play)
{
    if (play->moves % 64 == 0) {
        size_t stored = world_count(&play->world, "replies") +
                        world_count(&play->world, "dead");
        assert_true(stored >= play->effects);
    }
}

static void
p1_nothing_is_settled_before_its_effects_are_confirmed(void **state)
{
    struct play_plan plan = rough_plan();
    (void)state;
    plan.reply_percent = 60;
    plan.fault_percent = 10;
    plan.on_event = judge_effects;
    plan.after_move = judge_stored;
    play_seeds(plan);
    plan.is_individual = true;
    play_seeds(plan);
}

/* -- P2 ------------------------------------------------------------------------------------------ */

static void
judge_commits(struct play *play)
{
    for (uint32_t t = 0; t < PLAY_TOPICS; t++) {
        for (int32_t p = 0; p < PLAY_PARTITIONS; p++) {
            int64_t committed = world_committed(&play->world, play_topic_name(t), p);
            for (int64_t i = committed - 1; i >= 0 && i >= committed - 300; i--) {
                assert_true(play->messages[t][p][i].is_done);
            }
        }
    }
}

static void
p2_nothing_unfinished_is_committed(void **state)
{
    struct play_plan plan = rough_plan();
    (void)state;
    plan.fault_percent = 8;
    plan.after_move = judge_commits;
    play_seeds(plan);
}

/* -- P3 ------------------------------------------------------------------------------------------ */

/* Do two deliveries of one partition share a lane? By their keys, not by their lanes. */
static bool
is_same_lane(const struct lw_delivery *a, const struct lw_delivery *b)
{
    struct lw_bytes key = lw_delivery_ordering_key(a);
    struct lw_bytes other = lw_delivery_ordering_key(b);
    const struct lw_subscription *subscription = a->subscription;
    if (a->partition->place != b->partition->place) {
        return false;
    }
    if (subscription->ordering == LW_ORDERING_PARTITION) {
        return true;
    }
    if (!key.data || !other.data) {
        return !key.data && !other.data && subscription->keyless == LW_KEYLESS_SHARED;
    }
    return key.size == other.size && memcmp(key.data, other.data, key.size) == 0;
}

static void
judge_order(struct play *play, const struct lw_history_event *event)
{
    if (event->kind != LW_HISTORY_STARTED) {
        return;
    }
    const struct lw_delivery *started = event->delivery;
    struct lw_list *partitions = &started->subscription->partitions;
    (void)play;
    for (struct lw_list *at = partitions->next; at != partitions; at = at->next) {
        struct lw_partition *partition = LW_CONTAINER(at, struct lw_partition, link);
        for (struct lw_list *node = partition->held.next; node != &partition->held;
             node = node->next) {
            const struct lw_delivery *other = LW_CONTAINER(node, struct lw_delivery, held);
            if (other == started || !is_same_lane(started, other)) {
                continue;
            }
            assert_true(other->state != LW_STATE_RUNNING); /* also of an older generation */
            assert_true(partition != started->partition ||
                        other->message.position > started->message.position);
        }
    }
}

static void
p3_one_of_a_key_runs_and_starts_ascend(void **state)
{
    struct play_plan plan = rough_plan();
    (void)state;
    plan.fail_percent = 40;
    plan.fault_percent = 6;
    plan.on_event = judge_order;
    play_seeds(plan);
}

/* -- P4 ------------------------------------------------------------------------------------------ */

static void
judge_priority(struct play *play, const struct lw_history_event *event)
{
    if (event->kind != LW_HISTORY_STARTED) {
        return;
    }
    const struct lw_dispatcher *dispatcher = &play->world.dispatcher;
    for (uint32_t i = 0; i < dispatcher->stream_count; i++) {
        const struct lw_subscription *subscription = &dispatcher->streams[i]->subscription;
        if (subscription->priority < event->delivery->subscription->priority) {
            assert_false(lw_subscription_is_eligible(subscription));
        }
    }
}

static void
p4_no_start_passes_a_better_one(void **state)
{
    struct play_plan plan = rough_plan();
    (void)state;
    plan.on_event = judge_priority;
    play_seeds(plan);
    plan.is_individual = true;
    play_seeds(plan);
}

/* -- P5 and P6 ----------------------------------------------------------------------------------- */

static void
judge_ends(struct play *play, const struct lw_history_event *event)
{
    if (event->kind == LW_HISTORY_SETTLED || event->kind == LW_HISTORY_DROPPED) {
        assert_true(play_delivery_of(play, event->delivery)->is_held);
    }
}

static void
judge_books(struct play *play)
{
    uint32_t held = 0;
    for (uint32_t i = 0; i < PLAY_HELD; i++) {
        held += play->deliveries[i].is_held;
    }
    assert_int_equal(held, play->world.dispatcher.held_count);
}

static void
p5_every_delivery_ends_exactly_once(void **state)
{
    struct play_plan plan = rough_plan();
    (void)state;
    plan.fault_percent = 8;
    plan.on_event = judge_ends;
    plan.after_move = judge_books;
    play_seeds(plan);
    plan.is_individual = true;
    play_seeds(plan);
}

static void
judge_generations(struct play *play, const struct lw_history_event *event)
{
    (void)play;
    bool is_effect = event->kind == LW_HISTORY_SETTLED || event->kind == LW_HISTORY_STARTED ||
                     event->kind == LW_HISTORY_JUDGED;
    if (is_effect) {
        assert_false(event->partition->is_ended);
    }
}

static void
p6_a_late_answer_changes_nothing(void **state)
{
    struct play_plan plan = rough_plan();
    (void)state;
    plan.fault_percent = 15;
    plan.on_event = judge_generations;
    play_seeds(plan);
}

/* -- P7 ------------------------------------------------------------------------------------------ */

static void
judge_bounds(struct play *play)
{
    const struct lw_dispatcher *dispatcher = &play->world.dispatcher;
    uint32_t running = 0;
    for (uint32_t i = 0; i < dispatcher->stream_count; i++) {
        const struct lw_subscription *subscription = &dispatcher->streams[i]->subscription;
        const struct lw_limits *limits = &subscription->limits;
        assert_true(limits->count <= limits->count_max);
        assert_true(subscription->concurrency == 0 ||
                    subscription->running <= subscription->concurrency);
        running += subscription->running;
    }
    assert_int_equal(running, dispatcher->scheduler.busy_slots);
    assert_int_equal(running, play->world.running_count);
    assert_true(running <= dispatcher->scheduler.slots);
}

static void
p7_no_bound_is_ever_passed(void **state)
{
    struct play_plan plan = rough_plan();
    (void)state;
    plan.after_move = judge_bounds;
    play_seeds(plan);
    plan.is_individual = true;
    play_seeds(plan);
}

/* -- P8 ------------------------------------------------------------------------------------------ */

static bool
is_stashed(const struct lw_delivery *delivery)
{
    const struct lw_queue_node *node = delivery->partition->stash.first;
    while (node && node != &delivery->link) {
        node = node->next;
    }
    return node != NULL;
}

/* A queued one waits for the window, for its key, for a slot, or for its subscription. */
static bool
has_reason_to_queue(const struct play *play, const struct lw_delivery *delivery)
{
    const struct lw_scheduler *scheduler = &play->world.dispatcher.scheduler;
    if (is_stashed(delivery)) {
        return delivery->partition->offsets.open > 0;
    }
    if (delivery->lane && (delivery->lane->place == LW_LANE_BUSY ||
                           delivery->lane->waiting.first != &delivery->link)) {
        return true;
    }
    return scheduler->busy_slots == scheduler->slots ||
           !lw_subscription_may_run(delivery->subscription);
}

static bool
has_reason(const struct play *play, const struct lw_delivery *delivery)
{
    switch ((enum lw_state)delivery->state) {
    case LW_STATE_QUEUED:
        return has_reason_to_queue(play, delivery);
    case LW_STATE_RUNNING:
        for (uint32_t i = 0; i < play->world.running_count; i++) {
            if (play->world.running[i] == delivery) {
                return true;
            }
        }
        return false;
    case LW_STATE_PARKED:
        return lw_timer_is_armed(&delivery->timer);
    case LW_STATE_JUDGED:
        return lw_timer_is_armed(&delivery->timer) ||
               play->world.dispatcher.links[0]->waiting_room.first != NULL;
    case LW_STATE_PUBLISHING:
        return delivery->publishing != NULL;
    case LW_STATE_FREE:
    case LW_STATE_SETTLED:
    case LW_STATE_DROPPED:
        return false;
    }
    return false;
}

static void
judge_reasons(struct play *play)
{
    const struct lw_dispatcher *dispatcher = &play->world.dispatcher;
    for (uint32_t i = 0; i < dispatcher->stream_count; i++) {
        struct lw_list *partitions = &dispatcher->streams[i]->subscription.partitions;
        for (struct lw_list *at = partitions->next; at != partitions; at = at->next) {
            struct lw_partition *partition = LW_CONTAINER(at, struct lw_partition, link);
            for (struct lw_list *node = partition->held.next; node != &partition->held;
                 node = node->next) {
                assert_true(has_reason(play, LW_CONTAINER(node, struct lw_delivery, held)));
            }
        }
    }
}

static void
p8_every_held_delivery_has_a_reason_to_wait(void **state)
{
    struct play_plan plan = rough_plan();
    (void)state;
    plan.fault_percent = 8;
    plan.after_move = judge_reasons;
    play_seeds(plan);
}

/* -- P9 ------------------------------------------------------------------------------------------ */

/* A world with messages in every state, at a random moment of a play. */
static void
stop_in_the_middle(uint32_t finishes, bool has_commit_trouble)
{
    struct world world;
    world_init(&world, 4, NULL);
    struct lw_subscription_options options = world_options("t0", 1);
    options.reply.topic = "replies";
    world_topic(&world, "t0", 2);
    world_add(&world, &options);
    world_start(&world);
    for (int32_t i = 0; i < 40; i++) {
        char key[16];
        snprintf(key, sizeof(key), "k%d", i % 9);
        world_send(&world, "t0", i % 2, key, 2);
    }
    world_fault(&world, LW_MEMORY_REFUSE_PUBLISH, 5, LW_STATUS_UNAVAILABLE);
    if (has_commit_trouble) {
        world_fault(&world, LW_MEMORY_FAIL_COMMIT, 1000, LW_STATUS_UNAVAILABLE);
    }
    world_turn(&world);
    for (uint32_t i = 0; i < finishes && world.running_count > 0; i++) {
        (void)lw_delivery_reply(world.running[0], lw_bytes_of("r"));
        world_finish(&world, 0, (enum lw_verdict)(i % 5));
    }
    lw_shutdown_begin(&world.dispatcher, false);
    world_pass(&world, 25001 + 5000);
    world_finish_all(&world); /* handlers that were cancelled return */
    world_pass(&world, 1);
    assert_int_equal(world.dispatcher.phase, LW_PHASE_CLOSED);
    world_deinit(&world);
}

static void
p9_an_idle_dispatcher_sleeps_and_a_stop_ends_in_time(void **state)
{
    struct world world;
    (void)state;
    world_init(&world, 4, NULL);
    struct lw_subscription_options options = world_options("t0", 1);
    world_topic(&world, "t0", 2);
    world_add(&world, &options);
    world_start(&world);
    world_send(&world, "t0", 0, "k", 10);
    world_turn(&world);
    world_finish_all(&world);
    world_pass(&world, 1000);
    uint64_t turns = world.clock->turns;
    world_pass(&world, 3600 * 1000);
    assert_in_range(world.clock->turns - turns, 0, 70);
    world_deinit(&world);
    for (uint32_t i = 0; i < 40; i++) {
        stop_in_the_middle(i, i % 2 == 0);
    }
}

/* -- P10 ----------------------------------------------------------------------------------------- */

static void
judge_attempts(struct play *play, const struct lw_history_event *event)
{
    if (event->kind != LW_HISTORY_STARTED) {
        return;
    }
    const struct play_delivery *delivery = play_delivery_of(play, event->delivery);
    uint32_t expected = delivery->was_uncharged ? delivery->attempt : delivery->attempt + 1;
    assert_int_equal(event->delivery->attempt, expected);
    assert_in_range(event->delivery->attempt, 1, 3);
}

static void
p10_attempts_count_up_and_only_what_is_charged(void **state)
{
    struct play_plan plan = rough_plan();
    (void)state;
    plan.fail_percent = 60;
    plan.on_event = judge_attempts;
    play_seeds(plan);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(p1_nothing_is_settled_before_its_effects_are_confirmed),
        cmocka_unit_test(p2_nothing_unfinished_is_committed),
        cmocka_unit_test(p3_one_of_a_key_runs_and_starts_ascend),
        cmocka_unit_test(p4_no_start_passes_a_better_one),
        cmocka_unit_test(p5_every_delivery_ends_exactly_once),
        cmocka_unit_test(p6_a_late_answer_changes_nothing),
        cmocka_unit_test(p7_no_bound_is_ever_passed),
        cmocka_unit_test(p8_every_held_delivery_has_a_reason_to_wait),
        cmocka_unit_test(p9_an_idle_dispatcher_sleeps_and_a_stop_ends_in_time),
        cmocka_unit_test(p10_attempts_count_up_and_only_what_is_charged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
