/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choice: strict priority (P4), equals in turn, blocking heads first, lanes and unordered ones
 * in turn; against a naive chooser over random histories.
 */
#include "tests/support/test.h"

#include "tests/core/stage.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

static void
init(struct lw_scheduler *scheduler, uint32_t slots, uint32_t ranks)
{
    assert_int_equal(lw_scheduler_init(scheduler, slots, ranks, 100000, 7), LW_STATUS_OK);
}

static void
init_topic(struct stage_topic *topic, uint32_t index, uint32_t rank)
{
    stage_topic_init(topic, index, rank, LW_ORDERING_NONE, LW_KEYLESS_SHARED, false);
}

/* Chooses, checks that it is of that topic, and ends it. */
static void
expect_turn(struct lw_scheduler *scheduler, const struct stage_topic *topic)
{
    struct lw_delivery *chosen = lw_scheduler_choose(scheduler);
    assert_non_null(chosen);
    assert_ptr_equal(chosen->subscription, &topic->subscription);
    stage_end(scheduler, chosen);
}

static void
the_slot_comes_first(void **state)
{
    struct lw_scheduler scheduler;
    struct stage_topic topic;
    (void)state;
    init(&scheduler, 1, 1);
    init_topic(&topic, 0, 0);
    stage_admit(&scheduler, &topic, NULL);
    stage_admit(&scheduler, &topic, NULL);
    struct lw_delivery *first = lw_scheduler_choose(&scheduler);
    assert_non_null(first);
    assert_null(lw_scheduler_choose(&scheduler));
    assert_int_equal(topic.subscription.queued, 1);
    stage_end(&scheduler, first);
    expect_turn(&scheduler, &topic);
    assert_null(lw_scheduler_choose(&scheduler));
    lw_scheduler_deinit(&scheduler);
}

static void
a_better_priority_is_always_chosen_first(void **state)
{
    struct lw_scheduler scheduler;
    struct stage_topic topics[3];
    (void)state;
    init(&scheduler, 1, 3);
    for (uint32_t i = 0; i < 3; i++) {
        init_topic(&topics[i], i, 2 - i);
        stage_admit(&scheduler, &topics[i], NULL);
    }
    for (int i = 2; i >= 0; i--) {
        expect_turn(&scheduler, &topics[i]);
    }
    lw_scheduler_deinit(&scheduler);
}

static void
equals_alternate_whatever_gaps_they_have(void **state)
{
    struct lw_scheduler scheduler;
    struct stage_topic topics[2];
    (void)state;
    init(&scheduler, 1, 1);
    init_topic(&topics[0], 0, 0);
    init_topic(&topics[1], 1, 0);
    for (int i = 0; i < 6; i++) {
        stage_admit(&scheduler, &topics[0], NULL);
    }
    stage_admit(&scheduler, &topics[1], NULL);
    expect_turn(&scheduler, &topics[0]);
    expect_turn(&scheduler, &topics[1]);
    expect_turn(&scheduler, &topics[0]);
    stage_admit(&scheduler, &topics[1], NULL); /* it was dry and comes back: its turn is next */
    expect_turn(&scheduler, &topics[1]);
    for (int i = 0; i < 4; i++) {
        expect_turn(&scheduler, &topics[0]);
    }
    lw_scheduler_deinit(&scheduler);
}

/* An engine that is full takes all of them out of the map, and lets them in one by one. */
static void
equals_alternate_though_all_leave_and_join_between_turns(void **state)
{
    struct lw_scheduler scheduler;
    struct stage_topic topics[3];
    (void)state;
    init(&scheduler, 1, 1);
    for (uint32_t i = 0; i < 3; i++) {
        init_topic(&topics[i], i, 0);
        for (int j = 0; j < 4; j++) {
            stage_admit(&scheduler, &topics[i], NULL);
        }
    }
    for (int turn = 0; turn < 12; turn++) {
        expect_turn(&scheduler, &topics[turn % 3]);
        for (int is_full = 1; is_full >= 0; is_full--) {
            for (uint32_t i = 0; i < 3; i++) {
                topics[i].subscription.is_engine_full = is_full;
                lw_scheduler_update(&scheduler, &topics[i].subscription);
            }
        }
    }
    lw_scheduler_deinit(&scheduler);
}

static void
lanes_and_loose_ones_take_turns(void **state)
{
    struct lw_scheduler scheduler;
    struct stage_topic topic;
    (void)state;
    init(&scheduler, 1, 1);
    stage_topic_init(&topic, 0, 0, LW_ORDERING_KEY, LW_KEYLESS_ROTATE, false);
    for (int i = 0; i < 4; i++) {
        char key[16];
        snprintf(key, sizeof(key), "k%d", i);
        stage_admit(&scheduler, &topic, NULL);
        stage_admit(&scheduler, &topic, key);
    }
    int keyed = 0;
    for (int i = 0; i < 8; i++) {
        struct lw_delivery *chosen = lw_scheduler_choose(&scheduler);
        keyed += chosen->lane ? 1 : -1;
        assert_in_range(keyed + 1, 0, 2);
        stage_end(&scheduler, chosen);
    }
    lw_scheduler_deinit(&scheduler);
}

static void
a_lane_that_blocks_a_commit_goes_before_all_others(void **state)
{
    struct lw_scheduler scheduler;
    struct stage_topic topic;
    (void)state;
    init(&scheduler, 4, 1);
    stage_topic_init(&topic, 0, 0, LW_ORDERING_KEY, LW_KEYLESS_ROTATE, true);
    struct lw_delivery *first = stage_admit(&scheduler, &topic, "a");
    struct lw_delivery *loose = stage_admit(&scheduler, &topic, NULL);
    struct lw_delivery *second = stage_admit(&scheduler, &topic, "b");
    assert_ptr_equal(lw_scheduler_choose(&scheduler), first);
    stage_park(&scheduler, first);
    lw_scheduler_requeue(&scheduler, first); /* ready last, but it blocks */
    assert_ptr_equal(lw_scheduler_choose(&scheduler), first);
    stage_end(&scheduler, first);
    stage_end(&scheduler, lw_scheduler_choose(&scheduler));
    stage_end(&scheduler, lw_scheduler_choose(&scheduler));
    (void)loose;
    (void)second;
    assert_null(lw_scheduler_choose(&scheduler));
    lw_scheduler_deinit(&scheduler);
}

static void
an_own_concurrency_counts_beside_the_slots(void **state)
{
    struct lw_scheduler scheduler;
    struct stage_topic topics[2];
    (void)state;
    init(&scheduler, 3, 2);
    init_topic(&topics[0], 0, 0);
    init_topic(&topics[1], 1, 1);
    topics[0].subscription.concurrency = 1;
    for (int i = 0; i < 4; i++) {
        stage_admit(&scheduler, &topics[i % 2], NULL);
    }
    struct lw_delivery *better = lw_scheduler_choose(&scheduler);
    struct lw_delivery *worse = lw_scheduler_choose(&scheduler);
    assert_ptr_equal(better->subscription, &topics[0].subscription);
    assert_ptr_equal(worse->subscription, &topics[1].subscription);
    stage_end(&scheduler, better); /* eligible again at once, and better */
    expect_turn(&scheduler, &topics[0]);
    stage_end(&scheduler, worse);
    expect_turn(&scheduler, &topics[1]);
    lw_scheduler_deinit(&scheduler);
}

static void
pauses_and_full_engines_take_a_subscription_out(void **state)
{
    struct lw_scheduler scheduler;
    struct stage_topic topic;
    bool *const flags[] = { &topic.subscription.is_paused, &topic.subscription.is_engine_full,
                            &topic.subscription.is_engine_down };
    (void)state;
    init(&scheduler, 3, 1);
    init_topic(&topic, 0, 0);
    for (size_t i = 0; i < 3; i++) {
        *flags[i] = true;
        lw_scheduler_update(&scheduler, &topic.subscription);
        stage_admit(&scheduler, &topic, NULL);
        assert_null(lw_scheduler_choose(&scheduler));
        *flags[i] = false;
        lw_scheduler_update(&scheduler, &topic.subscription);
        expect_turn(&scheduler, &topic);
    }
    lw_scheduler_deinit(&scheduler);
}

static void
a_parked_one_holds_its_lane_and_not_its_slot(void **state)
{
    struct lw_scheduler scheduler;
    struct stage_topic topic;
    (void)state;
    init(&scheduler, 1, 1);
    stage_topic_init(&topic, 0, 0, LW_ORDERING_KEY, LW_KEYLESS_SHARED, false);
    struct lw_delivery *parked = stage_admit(&scheduler, &topic, "a");
    stage_admit(&scheduler, &topic, "a");
    struct lw_delivery *other = stage_admit(&scheduler, &topic, "b");
    assert_ptr_equal(lw_scheduler_choose(&scheduler), parked);
    stage_park(&scheduler, parked);
    assert_ptr_equal(lw_scheduler_choose(&scheduler), other);
    stage_end(&scheduler, other);
    assert_null(lw_scheduler_choose(&scheduler));
    lw_scheduler_requeue(&scheduler, parked);
    assert_ptr_equal(lw_scheduler_choose(&scheduler), parked);
    stage_end(&scheduler, parked);
    stage_end(&scheduler, lw_scheduler_choose(&scheduler));
    lw_scheduler_deinit(&scheduler);
}

static void
removing_the_last_queued_one_takes_the_subscription_out(void **state)
{
    struct lw_scheduler scheduler;
    struct stage_topic topic;
    (void)state;
    init(&scheduler, 1, 1);
    stage_topic_init(&topic, 0, 0, LW_ORDERING_KEY, LW_KEYLESS_ROTATE, true);
    struct lw_delivery *keyed = stage_admit(&scheduler, &topic, "a");
    struct lw_delivery *loose = stage_admit(&scheduler, &topic, NULL);
    lw_scheduler_remove(&scheduler, keyed);
    lw_scheduler_remove(&scheduler, loose);
    assert_int_equal(topic.subscription.queued, 0);
    assert_false(topic.subscription.choose.is_in);
    assert_null(lw_scheduler_choose(&scheduler));
    stage_free(keyed);
    stage_free(loose);
    lw_scheduler_deinit(&scheduler);
}

static void
orderings_choose_the_lane(void **state)
{
    static const struct {
        enum lw_ordering ordering;
        enum lw_keyless keyless;
        uint32_t lanes; /* of the keys a, b, a, null, null */
        uint32_t loose;
    } cases[] = { { LW_ORDERING_KEY, LW_KEYLESS_SHARED, 3, 0 },
                  { LW_ORDERING_KEY, LW_KEYLESS_ROTATE, 2, 2 },
                  { LW_ORDERING_PARTITION, LW_KEYLESS_SHARED, 1, 0 },
                  { LW_ORDERING_NONE, LW_KEYLESS_SHARED, 0, 5 } };
    static const char *const keys[] = { "a", "b", "a", NULL, NULL };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct lw_scheduler scheduler;
        struct stage_topic topic;
        uint32_t loose = 0;
        init(&scheduler, 1, 1);
        stage_topic_init(&topic, 0, 0, cases[i].ordering, cases[i].keyless, false);
        for (size_t j = 0; j < 5; j++) {
            loose += stage_admit(&scheduler, &topic, keys[j])->lane == NULL;
        }
        assert_int_equal(scheduler.lanes.count, cases[i].lanes);
        assert_int_equal(loose, cases[i].loose);
        for (size_t j = 0; j < 5; j++) {
            expect_turn(&scheduler, &topic);
        }
        lw_scheduler_deinit(&scheduler);
    }
}

static void
the_ordering_key_goes_before_the_key(void **state)
{
    struct lw_scheduler scheduler;
    struct stage_topic topic;
    (void)state;
    init(&scheduler, 1, 1);
    stage_topic_init(&topic, 0, 0, LW_ORDERING_KEY, LW_KEYLESS_SHARED, false);
    struct lw_delivery *a = stage_make(&topic, "key");
    struct lw_delivery *b = stage_make(&topic, "other");
    a->message.ordering_key = b->message.ordering_key = lw_bytes_of("order");
    assert_int_equal(lw_scheduler_admit(&scheduler, a), LW_STATUS_OK);
    assert_int_equal(lw_scheduler_admit(&scheduler, b), LW_STATUS_OK);
    assert_ptr_equal(a->lane, b->lane);
    expect_turn(&scheduler, &topic);
    expect_turn(&scheduler, &topic);
    lw_scheduler_deinit(&scheduler);
}

static void
without_memory_for_a_lane_nothing_happens(void **state)
{
    struct lw_scheduler scheduler;
    struct stage_topic topic;
    (void)state;
    init(&scheduler, 1, 1);
    stage_topic_init(&topic, 0, 0, LW_ORDERING_KEY, LW_KEYLESS_SHARED, false);
    struct lw_delivery *delivery = stage_make(&topic, "k");
    lw_alloc_fail_at(1);
    assert_int_equal(lw_scheduler_admit(&scheduler, delivery), LW_STATUS_NO_MEMORY);
    assert_int_equal(topic.subscription.queued, 0);
    assert_null(lw_scheduler_choose(&scheduler));
    assert_int_equal(lw_scheduler_admit(&scheduler, delivery), LW_STATUS_OK);
    expect_turn(&scheduler, &topic);
    lw_scheduler_deinit(&scheduler);
}

/* -- against a naive chooser ------------------------------------------------------------------ */

enum { TOPICS = 12, SLOTS = 7, STEPS = 200000, BUSY_MAX = 400 };

struct play {
    struct lw_scheduler scheduler;
    struct stage_topic topics[TOPICS];
    struct lw_delivery *running[SLOTS];
    uint32_t running_count;
    struct lw_delivery *parked[BUSY_MAX];
    uint32_t parked_count;
    uint64_t random;
};

static uint32_t
dice(struct play *play, uint32_t sides)
{
    play->random ^= play->random << 13;
    play->random ^= play->random >> 7;
    play->random ^= play->random << 17;
    return (uint32_t)(play->random % sides);
}

/* By looking at every delivery: has the topic one whose key nobody holds? */
static bool
has_ready(const struct stage_topic *topic)
{
    struct lw_list *head = topic->partition.held.next->prev;
    for (struct lw_list *node = head->next; node != head; node = node->next) {
        const struct lw_delivery *delivery = LW_CONTAINER(node, struct lw_delivery, held);
        if (delivery->state == LW_STATE_QUEUED &&
            (!delivery->lane || delivery->lane->place != LW_LANE_BUSY)) {
            return true;
        }
    }
    return false;
}

static bool
could_run(const struct stage_topic *topic)
{
    const struct lw_subscription *subscription = &topic->subscription;
    bool is_open = !subscription->is_paused && !subscription->is_engine_full &&
                   (subscription->concurrency == 0 ||
                    subscription->running < subscription->concurrency);
    return is_open && has_ready(topic);
}

static uint32_t
topic_of(const struct play *play, const struct lw_delivery *delivery)
{
    const struct stage_topic *topic = LW_CONTAINER(delivery->subscription, struct stage_topic,
                                                   subscription);
    return (uint32_t)(topic - play->topics);
}

/* Nothing of a better rank could run; of its key it is the first. */
static void
check_choice(struct play *play, const struct lw_delivery *chosen)
{
    uint32_t own = topic_of(play, chosen);
    for (uint32_t i = 0; i < TOPICS; i++) {
        if (play->topics[i].subscription.choose.rank <
            play->topics[own].subscription.choose.rank) {
            assert_false(could_run(&play->topics[i]));
        }
    }
    struct lw_list *head = &play->topics[own].partition.held;
    for (struct lw_list *node = head->next; node != &chosen->held; node = node->next) {
        const struct lw_delivery *before = LW_CONTAINER(node, struct lw_delivery, held);
        assert_true(!chosen->lane || before->lane != chosen->lane);
    }
}

static void
choose(struct play *play)
{
    struct lw_delivery *chosen = lw_scheduler_choose(&play->scheduler);
    if (!chosen) {
        for (uint32_t i = 0; play->running_count < SLOTS && i < TOPICS; i++) {
            assert_false(could_run(&play->topics[i]));
        }
        return;
    }
    lw_delivery_set_state(chosen, LW_STATE_RUNNING);
    check_choice(play, chosen);
    play->running[play->running_count++] = chosen;
}

static void
finish(struct play *play)
{
    if (play->running_count == 0) {
        return;
    }
    uint32_t i = dice(play, play->running_count);
    struct lw_delivery *delivery = play->running[i];
    play->running[i] = play->running[--play->running_count];
    if (dice(play, 3) == 0 && play->parked_count < BUSY_MAX) {
        stage_park(&play->scheduler, delivery);
        lw_delivery_set_state(delivery, LW_STATE_JUDGED);
        lw_delivery_set_state(delivery, LW_STATE_PARKED);
        play->parked[play->parked_count++] = delivery;
    } else {
        stage_end(&play->scheduler, delivery);
    }
}

static void
unpark(struct play *play)
{
    if (play->parked_count > 0) {
        uint32_t i = dice(play, play->parked_count);
        struct lw_delivery *delivery = play->parked[i];
        play->parked[i] = play->parked[--play->parked_count];
        lw_delivery_set_state(delivery, LW_STATE_QUEUED);
        lw_scheduler_requeue(&play->scheduler, delivery);
    }
}

static void
turn_a_switch(struct play *play)
{
    struct lw_subscription *subscription = &play->topics[dice(play, TOPICS)].subscription;
    if (dice(play, 2) == 0) {
        subscription->is_paused = !subscription->is_paused;
    } else {
        subscription->is_engine_full = !subscription->is_engine_full;
    }
    lw_scheduler_update(&play->scheduler, subscription);
}

static void
admit(struct play *play)
{
    char key[16];
    struct stage_topic *topic = &play->topics[dice(play, TOPICS)];
    if (topic->subscription.queued < 20) {
        /* the key is only read while it is admitted: lanes copy it */
        snprintf(key, sizeof(key), "k%u", dice(play, 5));
        struct lw_delivery *delivery = stage_admit(&play->scheduler, topic,
                                                   dice(play, 4) ? key : NULL);
        delivery->message.key = (struct lw_bytes){ NULL, 0 };
    }
}

static void
drain(struct play *play)
{
    for (uint32_t i = 0; i < TOPICS; i++) {
        play->topics[i].subscription.is_paused = false;
        play->topics[i].subscription.is_engine_full = false;
        lw_scheduler_update(&play->scheduler, &play->topics[i].subscription);
    }
    for (int i = 0; i < 100000 && play->scheduler.lanes.count + play->parked_count > 0; i++) {
        unpark(play);
        choose(play);
        finish(play);
        lw_lanes_trim(&play->scheduler.lanes);
    }
    assert_int_equal(play->scheduler.lanes.count, 0);
    assert_int_equal(play->scheduler.busy_slots, play->running_count);
}

static void
no_choice_ever_passes_a_better_one(void **state)
{
    static struct play play;
    (void)state;
    play.random = 0x2545f4914f6cdd1d;
    init(&play.scheduler, SLOTS, 4);
    for (uint32_t i = 0; i < TOPICS; i++) {
        enum lw_ordering ordering = i % 3 == 0 ? LW_ORDERING_NONE : LW_ORDERING_KEY;
        stage_topic_init(&play.topics[i], i, i % 4, ordering,
                         i % 2 ? LW_KEYLESS_SHARED : LW_KEYLESS_ROTATE, i % 5 != 0);
        play.topics[i].subscription.concurrency = i % 4 == 3 ? 2 : 0;
    }
    static void (*const moves[])(struct play *) = { admit,  admit,  choose, choose,
                                                    choose, finish, finish, unpark };
    for (int step = 0; step < STEPS; step++) {
        moves[dice(&play, 8)](&play);
        if (dice(&play, 50) == 0) {
            turn_a_switch(&play);
        }
    }
    drain(&play);
    while (play.running_count > 0) {
        stage_end(&play.scheduler, play.running[--play.running_count]);
    }
    lw_scheduler_deinit(&play.scheduler);
}

static void
ten_thousand_subscriptions_are_served_in_order_of_rank_and_then_in_turn(void **state)
{
    enum { MANY = 10000, RANKS = 4096 };
    struct lw_scheduler scheduler;
    struct stage_topic *topics = lw_alloc_array(MANY, sizeof(*topics));
    (void)state;
    assert_non_null(topics);
    init(&scheduler, 1, RANKS);
    for (uint32_t i = 0; i < MANY; i++) {
        init_topic(&topics[i], i, (i * 2654435761U) % RANKS);
        stage_admit(&scheduler, &topics[i], NULL);
        stage_admit(&scheduler, &topics[i], NULL);
    }
    uint32_t previous = 0;
    for (uint32_t i = 0; i < 2 * MANY; i++) {
        struct lw_delivery *chosen = lw_scheduler_choose(&scheduler);
        uint32_t rank = chosen->subscription->choose.rank;
        assert_true(rank >= previous);
        assert_true(chosen->message.position == 0 || rank == previous);
        previous = rank;
        stage_end(&scheduler, chosen);
    }
    lw_scheduler_deinit(&scheduler);
    lw_free(topics);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_slot_comes_first),
        cmocka_unit_test(a_better_priority_is_always_chosen_first),
        cmocka_unit_test(equals_alternate_whatever_gaps_they_have),
        cmocka_unit_test(equals_alternate_though_all_leave_and_join_between_turns),
        cmocka_unit_test(lanes_and_loose_ones_take_turns),
        cmocka_unit_test(a_lane_that_blocks_a_commit_goes_before_all_others),
        cmocka_unit_test(an_own_concurrency_counts_beside_the_slots),
        cmocka_unit_test(pauses_and_full_engines_take_a_subscription_out),
        cmocka_unit_test(a_parked_one_holds_its_lane_and_not_its_slot),
        cmocka_unit_test(removing_the_last_queued_one_takes_the_subscription_out),
        cmocka_unit_test(orderings_choose_the_lane),
        cmocka_unit_test(the_ordering_key_goes_before_the_key),
        cmocka_unit_test(without_memory_for_a_lane_nothing_happens),
        cmocka_unit_test(no_choice_ever_passes_a_better_one),
        cmocka_unit_test(
            ten_thousand_subscriptions_are_served_in_order_of_rank_and_then_in_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
