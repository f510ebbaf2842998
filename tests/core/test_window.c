/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The receive window: its rules one by one, and then in a small simulated world of topics with a
 * backlog at the broker, a number of slots, and a round trip between asking and getting. The
 * world counts inversions (a start of a worse topic while a better one had messages not yet
 * received) and how long everything took.
 */
#include "tests/support/test.h"

#include "core/window.h"

#define MS UINT64_C(1000000)
#define S (1000 * MS)

static void
window_starts_at_its_minimum(void **state)
{
    (void)state;
    struct lw_window window;
    lw_window_init(&window, 0, 0);
    assert_int_equal(window.size, 1);
    lw_window_init(&window, 2, 1000);
    assert_int_equal(window.size, 2);
    assert_int_equal(window.round_trip_ns, MS);
}

static void
dry_queue_doubles_the_window_up_to_the_maximum(void **state)
{
    (void)state;
    static const uint32_t expected[] = { 2, 4, 8, 16, 20, 20 };
    struct lw_window window;
    lw_window_init(&window, 1, 20);
    for (uint64_t i = 0; i < 6; i++) {
        lw_window_on_dry(&window, (i + 1) * MS);
        assert_int_equal(window.size, expected[i]);
    }
}

static void
dry_queue_counts_once_in_a_round_trip(void **state)
{
    (void)state;
    struct lw_window window;
    lw_window_init(&window, 1, 1000);
    for (uint64_t now = 10 * MS; now < 11 * MS; now += MS / 10) {
        lw_window_on_dry(&window, now);
    }
    assert_int_equal(window.size, 2);
    lw_window_on_dry(&window, 11 * MS);
    assert_int_equal(window.size, 4);
}

/* A window that ran dry up to `size`, the last time at `now`. */
static void
grow_to(struct lw_window *window, uint32_t size, uint64_t now)
{
    lw_window_init(window, 1, 1000);
    for (uint64_t left = 10; left-- > 0 && window->size < size;) {
        lw_window_on_dry(window, now - left * MS);
    }
    window->changed_at = now;
    assert_int_equal(window->size, size);
}

static void
long_wait_halves_the_window(void **state)
{
    (void)state;
    struct lw_window window;
    grow_to(&window, 16, S);
    lw_window_on_wait(&window, 7 * S - 4 * MS, 7 * S);
    assert_int_equal(window.size, 16);
    lw_window_on_wait(&window, 7 * S - 5 * MS, 7 * S);
    assert_int_equal(window.size, 8);
    lw_window_on_wait(&window, 7 * S - 5 * MS, 7 * S + MS);
    assert_int_equal(window.size, 8);
}

static void
window_reaches_the_minimum_when_halving_never_hurts(void **state)
{
    (void)state;
    struct lw_window window;
    grow_to(&window, 64, S);
    for (uint64_t now = S; now < 60 * S; now += 10 * MS) {
        lw_window_on_wait(&window, now - 10 * MS, now);
    }
    assert_int_equal(window.size, 1);
}

static void
halving_that_ran_dry_is_tried_again_later_and_later(void **state)
{
    (void)state;
    struct lw_window window;
    grow_to(&window, 32, S);
    uint32_t probes = 0;
    for (uint64_t now = S; now < 1000 * S; now += 10 * MS) {
        lw_window_on_wait(&window, now - 10 * MS, now);
        if (window.size < 32) {
            probes++;
            lw_window_on_dry(&window, now + 5 * MS);
        }
        assert_int_equal(window.size, 32);
    }
    assert_int_equal(probes, 4); /* 5, 20, 80 and 320 s after the one before */
}

static void
topic_that_stays_behind_better_ones_falls_to_the_minimum(void **state)
{
    (void)state;
    struct lw_window window;
    grow_to(&window, 512, S);
    for (uint64_t now = S; now < S + 4 * MS; now += MS) {
        lw_window_on_behind(&window, now);
        assert_int_equal(window.size, 512);
    }
    lw_window_on_behind(&window, S + 4 * MS);
    assert_int_equal(window.size, 1);
}

static void
topic_that_is_still_served_is_not_behind(void **state)
{
    (void)state;
    struct lw_window window;
    grow_to(&window, 64, S);
    for (uint64_t now = S; now < 2 * S; now += MS) {
        lw_window_on_behind(&window, now);
        lw_window_on_wait(&window, now - 2 * MS, now);
    }
    assert_int_equal(window.size, 64);
}

static void
change_without_effect_starts_no_pause(void **state)
{
    (void)state;
    struct lw_window window;
    lw_window_init(&window, 1, 1000);
    lw_window_on_behind(&window, 10 * MS);
    lw_window_on_wait(&window, MS, 10 * MS);
    lw_window_on_dry(&window, 10 * MS);
    assert_int_equal(window.size, 2);
}

static void
fixed_profile_never_moves(void **state)
{
    (void)state;
    struct lw_window window;
    lw_window_init(&window, 16, 16);
    for (uint64_t now = MS; now < 100 * S; now += 100 * MS) {
        lw_window_on_dry(&window, now);
        lw_window_on_behind(&window, now + 20 * MS);
        lw_window_on_wait(&window, now, now + 50 * MS);
        assert_int_equal(window.size, 16);
    }
}

static void
round_trip_is_smoothed_and_bounded(void **state)
{
    (void)state;
    struct lw_window window;
    lw_window_init(&window, 1, 1000);
    lw_window_on_round_trip(&window, 9 * MS);
    assert_int_equal(window.round_trip_ns, 2 * MS);
    for (int i = 0; i < 100; i++) {
        lw_window_on_round_trip(&window, UINT64_MAX);
    }
    assert_in_range(window.round_trip_ns, 999 * MS, S);
    for (int i = 0; i < 40; i++) {
        lw_window_on_round_trip(&window, 0);
    }
    assert_in_range(window.round_trip_ns, MS, MS + 1);
}

/* -- a broker that gives only what was demanded ------------------------------------------------ */

static void
quick_arrival_into_a_dry_queue_doubles_the_window(void **state)
{
    (void)state;
    struct lw_window window;
    lw_window_init(&window, 1, 1000);
    lw_window_set_on_demand(&window);
    lw_window_on_arrival(&window, 1, 0, S - 2 * MS, S);
    assert_int_equal(window.size, 2);
    grow_to(&window, 8, S);
    lw_window_on_arrival(&window, 3, 0, 2 * S - 2 * MS, 2 * S);
    assert_int_equal(window.size, 8); /* others of its messages may be on their way */
    lw_window_on_arrival(&window, 1, 0, 2 * S - 2 * MS, 2 * S);
    assert_int_equal(window.size, 16);
}

static void
window_grows_by_the_runs_that_were_missed(void **state)
{
    (void)state;
    struct lw_window window;
    lw_window_init(&window, 1, 1000);
    lw_window_set_on_demand(&window);
    lw_window_on_arrival(&window, 1, 19, S - 2 * MS, S);
    assert_int_equal(window.size, 20);
    lw_window_on_arrival(&window, 9, 30, 2 * S - 8 * MS, 2 * S);
    lw_window_on_arrival(&window, 1, 10, 2 * S - 8 * MS, 2 * S);
    assert_int_equal(window.size, 60);
    lw_window_on_arrival(&window, 60, UINT64_MAX, 3 * S - MS, 3 * S);
    assert_int_equal(window.size, 1000);
}

static void
slow_arrival_says_nothing_of_the_window(void **state)
{
    (void)state;
    struct lw_window window;
    lw_window_init(&window, 1, 1000);
    lw_window_set_on_demand(&window);
    lw_window_on_arrival(&window, 1, 19, S - 101 * MS, S);
    assert_int_equal(window.size, 1);
    lw_window_on_round_trip(&window, 500 * MS); /* a broker far away: that is quick */
    lw_window_on_arrival(&window, 1, 19, 2 * S - 101 * MS, 2 * S);
    assert_int_equal(window.size, 20);
}

static void
trickle_never_gets_a_large_window(void **state)
{
    (void)state;
    struct lw_window window;
    lw_window_init(&window, 1, 1000);
    lw_window_set_on_demand(&window);
    for (uint64_t now = S; now < 60 * S; now += 10 * MS) {
        lw_window_on_arrival(&window, 1, 0, now - 9 * MS, now);
    }
    assert_in_range(window.size, 8, 32);
}

static void
tenth_of_a_second_of_work_may_wait_where_a_gap_costs_a_round_trip(void **state)
{
    (void)state;
    struct lw_window window;
    grow_to(&window, 16, S);
    lw_window_set_on_demand(&window);
    lw_window_on_wait(&window, 10 * S - 99 * MS, 10 * S);
    assert_int_equal(window.size, 16);
    lw_window_on_wait(&window, 10 * S - 101 * MS, 10 * S);
    assert_int_equal(window.size, 8);
}

/* -- A simulated world ---------------------------------------------------------------------- */

enum { TOPICS = 3, SLOTS = 20, MAXIMUM = 1000, RING = 4096 };
#define TICK (MS / 20)

struct world_topic {
    struct lw_window window;
    uint32_t backlog; /* at the broker, not asked for */
    uint32_t on_way;  /* asked for, not yet here */
    uint32_t queued;  /* here */
    uint32_t started; /* in all */
    uint32_t step_started;
    uint64_t trickle_ns;  /* one more message every so often, 0 none */
    uint64_t queue[RING]; /* when each arrived */
    uint32_t head;
    uint64_t due[RING]; /* when each is here */
    uint32_t due_head;
    uint64_t dry_since; /* nothing here, and a slot was to be had; 0 not so */
    uint32_t worse_ended;
};

struct world {
    struct world_topic topics[TOPICS];
    uint64_t busy_until[SLOTS];
    int owner[SLOTS]; /* topic of the last run */
    uint64_t round_trip_ns;
    uint64_t handler_ns;
    uint64_t now;
    uint64_t settled_at;       /* inversions up to here are counted apart */
    uint32_t early_inversions; /* while windows were still growing */
    uint32_t inversions;
    uint64_t random;
    bool is_uneven;    /* handlers take 0.5 to 1.5 of their time */
    bool is_on_demand; /* the broker gives what was demanded, and does not say what it has */
};

static void
world_init(struct world *world, uint32_t first, uint32_t second, uint32_t third)
{
    static const struct world none;
    uint32_t backlogs[TOPICS] = { first, second, third };
    *world = none;
    world->round_trip_ns = MS;
    world->handler_ns = 5 * MS;
    world->random = 88172645463325252U;
    world->settled_at = 50 * MS;
    world->now = MS;
    for (int i = 0; i < TOPICS; i++) {
        lw_window_init(&world->topics[i].window, 1, MAXIMUM);
        world->topics[i].backlog = backlogs[i];
    }
}

/* Slots that run a topic worse than `topic`. */
static uint32_t
world_running(const struct world *world, int topic)
{
    uint32_t count = 0;
    for (int slot = 0; slot < SLOTS; slot++) {
        count += world->busy_until[slot] > world->now && world->owner[slot] > topic;
    }
    return count;
}

static uint32_t
world_worse(const struct world *world, int topic)
{
    uint32_t count = 0;
    for (int i = topic + 1; i < TOPICS; i++) {
        count += world->topics[i].started;
    }
    return count;
}

static uint32_t
world_free(const struct world *world)
{
    uint32_t count = 0;
    for (int slot = 0; slot < SLOTS; slot++) {
        count += world->busy_until[slot] <= world->now;
    }
    return count;
}

static void
world_arrive(struct world *world, int i, uint32_t count)
{
    struct world_topic *topic = &world->topics[i];
    if (topic->dry_since != 0) {
        uint32_t missed = world_worse(world, i) - topic->worse_ended + world_free(world);
        lw_window_on_arrival(&topic->window, count, missed, topic->dry_since, world->now);
        topic->dry_since = 0;
    }
}

static void
world_receive(struct world *world, struct world_topic *topic)
{
    bool is_received = false;
    uint32_t before = topic->queued;
    while (topic->on_way > 0 && topic->due[topic->due_head % RING] <= world->now) {
        topic->due_head++;
        topic->on_way--;
        topic->queue[(topic->head + topic->queued++) % RING] = world->now;
        is_received = true;
    }
    if (is_received) {
        world_arrive(world, (int)(topic - world->topics), topic->queued - before);
        lw_window_on_round_trip(&topic->window, world->round_trip_ns);
        lw_window_on_wait(&topic->window, topic->queue[topic->head % RING], world->now);
    }
}

static uint64_t
world_handler_time(struct world *world)
{
    if (!world->is_uneven) {
        return world->handler_ns;
    }
    world->random ^= world->random << 13;
    world->random ^= world->random >> 7;
    world->random ^= world->random << 17;
    return world->handler_ns / 2 + world->random % world->handler_ns;
}

static void
world_start(struct world *world, int chosen, uint64_t *slot)
{
    struct world_topic *topic = &world->topics[chosen];
    topic->head++;
    topic->queued--;
    topic->started++;
    topic->step_started++;
    *slot = world->now + world_handler_time(world);
    for (int better = 0; better < chosen; better++) {
        if (world->topics[better].backlog + world->topics[better].on_way > 0) {
            *(world->now < world->settled_at ? &world->early_inversions
                                             : &world->inversions) += 1;
            return;
        }
    }
}

/* Starts what may start; returns the number of slots still free. */
static int
world_choose(struct world *world)
{
    int free_count = 0;
    for (int slot = 0; slot < SLOTS; slot++) {
        if (world->busy_until[slot] > world->now) {
            continue;
        }
        int best = 0;
        while (best < TOPICS && world->topics[best].queued == 0) {
            best++;
        }
        if (best == TOPICS) {
            free_count++;
            continue;
        }
        world->owner[slot] = best;
        world_start(world, best, &world->busy_until[slot]);
    }
    return free_count;
}

static void
world_note_dry(struct world *world, int i)
{
    struct world_topic *topic = &world->topics[i];
    uint32_t running = world_running(world, i);
    bool is_dry = topic->queued == 0 && (world_free(world) > 0 || running > 0);
    if (!is_dry) {
        topic->dry_since = 0;
    } else if (topic->dry_since == 0) {
        topic->dry_since = world->now;
        topic->worse_ended = world_worse(world, i) - running;
    }
}

static void
world_tell(struct world *world, int free_count)
{
    uint32_t started = 0;
    for (int i = 0; i < TOPICS; i++) {
        started += world->topics[i].step_started;
    }
    uint32_t better_started = 0;
    for (int i = 0; i < TOPICS; i++) {
        struct world_topic *topic = &world->topics[i];
        /* A slot that a worse topic took was free for this one. */
        bool was_free = free_count > 0 || started > better_started + topic->step_started;
        if (world->is_on_demand) {
            world_note_dry(world, i);
        } else if (topic->queued == 0 && was_free && topic->backlog + topic->on_way > 0) {
            lw_window_on_dry(&topic->window, world->now);
        }
        if (free_count == 0 && topic->queued > 0 && topic->step_started == 0 &&
            better_started > 0) {
            lw_window_on_behind(&topic->window, world->now);
        }
        better_started += topic->step_started;
    }
}

static void
world_demand(struct world *world, struct world_topic *topic)
{
    topic->step_started = 0;
    if (topic->trickle_ns != 0 && world->now % topic->trickle_ns == 0) {
        topic->backlog++;
    }
    while (topic->backlog > 0 && topic->queued + topic->on_way < topic->window.size) {
        uint64_t due = world->now + world->round_trip_ns;
        topic->due[(topic->due_head + topic->on_way++) % RING] = due;
        topic->backlog--;
    }
}

static void
world_step(struct world *world)
{
    for (int i = 0; i < TOPICS; i++) {
        world_receive(world, &world->topics[i]);
    }
    world_tell(world, world_choose(world));
    for (int i = 0; i < TOPICS; i++) {
        world_demand(world, &world->topics[i]);
    }
    world->now += TICK;
}

/* Runs until `topic` started `count` messages; returns the time that took. */
static uint64_t
world_run(struct world *world, int topic, uint32_t count)
{
    uint64_t begin = world->now;
    while (world->topics[topic].started < count && world->now < begin + 1000 * S) {
        world_step(world);
    }
    return world->now - begin;
}

static void
three_topics_with_backlog_are_served_strictly(void **state)
{
    (void)state;
    static struct world world;
    world_init(&world, 16000, 16000, 16000);
    uint64_t taken = world_run(&world, 0, 16000);
    assert_int_equal(world.inversions, 0);
    world.settled_at = world.now + 50 * MS;
    taken += world_run(&world, 1, 16000);
    assert_int_equal(world.inversions, 0);
    taken += world_run(&world, 2, 16000);
    assert_in_range(world.early_inversions, 1, 32000 / 1000);
    assert_in_range(taken, 119 * S / 10, 12 * S * 100 / 95);
}

static void
three_topics_are_served_strictly_when_handlers_vary(void **state)
{
    (void)state;
    static struct world world;
    world_init(&world, 16000, 16000, 16000);
    world.is_uneven = true;
    world.settled_at = 100 * MS;
    uint64_t taken = world_run(&world, 0, 16000);
    assert_int_equal(world.inversions, 0);
    world.settled_at = world.now + 100 * MS;
    taken += world_run(&world, 1, 16000);
    assert_int_equal(world.inversions, 0);
    taken += world_run(&world, 2, 16000);
    assert_in_range(taken, 119 * S / 10, 12 * S * 100 / 95);
}

static void
world_set_on_demand(struct world *world)
{
    world->is_on_demand = true;
    for (int i = 0; i < TOPICS; i++) {
        lw_window_set_on_demand(&world->topics[i].window);
    }
}

static void
three_topics_are_served_strictly_by_a_broker_that_gives_on_demand(void **state)
{
    (void)state;
    static struct world world;
    world_init(&world, 16000, 16000, 16000);
    world_set_on_demand(&world);
    uint64_t taken = world_run(&world, 0, 16000);
    assert_int_equal(world.inversions, 0);
    world.settled_at = world.now + 50 * MS;
    taken += world_run(&world, 1, 16000);
    assert_int_equal(world.inversions, 0);
    taken += world_run(&world, 2, 16000);
    assert_in_range(world.early_inversions, 1, 32000 / 500);
    assert_in_range(taken, 119 * S / 10, 12 * S * 100 / 95);
}

static void
slow_messages_one_by_one_do_not_cost_strictness(void **state)
{
    (void)state;
    static struct world world;
    world_init(&world, 8000, 8000, 8000);
    world_set_on_demand(&world);
    world.is_uneven = true;
    world.round_trip_ns = 3 * MS;
    world.handler_ns = 20 * MS;
    world.settled_at = 200 * MS;
    uint64_t taken = world_run(&world, 0, 8000);
    assert_in_range(world.inversions, 0, 8000 / 500);
    world.settled_at = world.now + 200 * MS;
    taken += world_run(&world, 1, 8000);
    taken += world_run(&world, 2, 8000);
    assert_in_range(world.inversions + world.early_inversions, 1, 16000 / 100);
    assert_in_range(taken, 239 * S / 10, 24 * S * 100 / 95);
}

static void
slow_handlers_do_not_cost_strictness(void **state)
{
    (void)state;
    static struct world world;
    world_init(&world, 4000, 4000, 4000);
    world.handler_ns = S;
    world.settled_at = 5 * S;
    world_run(&world, 0, 4000);
    assert_in_range(world.inversions, 0, 4000 / 100);
    assert_in_range(world.topics[0].window.size, 8, 64);
}

static void
waiting_topics_have_a_window_of_one(void **state)
{
    (void)state;
    static struct world world;
    world_init(&world, 16000, 16000, 16000);
    world_run(&world, 0, 8000);
    assert_int_equal(world.topics[1].window.size, 1);
    assert_int_equal(world.topics[2].window.size, 1);
    assert_in_range(world.topics[0].window.size, 16, 64);
}

static void
trickle_of_urgent_messages_does_not_starve_the_bulk(void **state)
{
    (void)state;
    static struct world world;
    world_init(&world, 0, 40000, 0);
    world.topics[0].trickle_ns = MS; /* a quarter of the slots */
    uint64_t taken = world_run(&world, 1, 36000);
    assert_in_range(taken, 11 * S, 12 * S * 100 / 95);
    assert_in_range(world.topics[0].started, taken / MS * 99 / 100, taken / MS);
}

static void
fast_handlers_get_the_whole_window(void **state)
{
    (void)state;
    static struct world world;
    world_init(&world, 200000, 0, 0);
    world.handler_ns = TICK;
    uint64_t taken = world_run(&world, 0, 200000);
    assert_in_range(taken, S / 2, S / 2 * 100 / 95);
    assert_in_range(world.topics[0].window.size, 400, MAXIMUM);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(window_starts_at_its_minimum),
        cmocka_unit_test(dry_queue_doubles_the_window_up_to_the_maximum),
        cmocka_unit_test(dry_queue_counts_once_in_a_round_trip),
        cmocka_unit_test(long_wait_halves_the_window),
        cmocka_unit_test(window_reaches_the_minimum_when_halving_never_hurts),
        cmocka_unit_test(halving_that_ran_dry_is_tried_again_later_and_later),
        cmocka_unit_test(topic_that_stays_behind_better_ones_falls_to_the_minimum),
        cmocka_unit_test(topic_that_is_still_served_is_not_behind),
        cmocka_unit_test(change_without_effect_starts_no_pause),
        cmocka_unit_test(fixed_profile_never_moves),
        cmocka_unit_test(round_trip_is_smoothed_and_bounded),
        cmocka_unit_test(three_topics_with_backlog_are_served_strictly),
        cmocka_unit_test(three_topics_are_served_strictly_when_handlers_vary),
        cmocka_unit_test(quick_arrival_into_a_dry_queue_doubles_the_window),
        cmocka_unit_test(window_grows_by_the_runs_that_were_missed),
        cmocka_unit_test(slow_arrival_says_nothing_of_the_window),
        cmocka_unit_test(trickle_never_gets_a_large_window),
        cmocka_unit_test(tenth_of_a_second_of_work_may_wait_where_a_gap_costs_a_round_trip),
        cmocka_unit_test(three_topics_are_served_strictly_by_a_broker_that_gives_on_demand),
        cmocka_unit_test(slow_messages_one_by_one_do_not_cost_strictness),
        cmocka_unit_test(slow_handlers_do_not_cost_strictness),
        cmocka_unit_test(waiting_topics_have_a_window_of_one),
        cmocka_unit_test(trickle_of_urgent_messages_does_not_starve_the_bulk),
        cmocka_unit_test(fast_handlers_get_the_whole_window),
    };
    return cmocka_run_group_tests_name("core.window", tests, NULL, NULL);
}
