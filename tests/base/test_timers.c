/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timer wheel: exact examples of its edges, then a property test against a plain array over
 * hours of virtual time: each timer fires once, never early, at most one tick late when the
 * wheel is driven by its own deadlines, and in the order of ticks.
 */
#include "tests/support/test.h"

#include <string.h>

#include "base/timers.h"

#define TICK UINT64_C(65536)
#define SECOND (1000 * LW_MS)

struct probe {
    struct lw_timer timer;
    uint64_t fired_at; /* 0: not yet */
    unsigned fired;
};

static struct lw_timers wheel;

static void
on_fire(struct lw_timer *timer, uint64_t now)
{
    struct probe *probe = LW_CONTAINER(timer, struct probe, timer);
    probe->fired_at = now;
    probe->fired++;
}

static struct probe
probe_new(void)
{
    struct probe probe = { .fired = 0 };
    return probe;
}

static void
arm(struct probe *probe, uint64_t due)
{
    lw_timer_init(&probe->timer, on_fire);
    lw_timers_arm(&wheel, &probe->timer, due);
}

static void
idle_wheel_has_no_deadline(void **state)
{
    (void)state;
    lw_timers_init(&wheel, 5 * SECOND);
    assert_true(lw_timers_next(&wheel) == LW_NEVER);
    assert_int_equal(lw_timers_advance(&wheel, 3600 * SECOND), 0);
}

static void
timer_fires_at_its_tick_and_never_before(void **state)
{
    (void)state;
    struct probe probe = probe_new();
    lw_timers_init(&wheel, 0);
    arm(&probe, 10 * TICK + 1);
    assert_int_equal(lw_timers_next(&wheel), 11 * TICK);
    assert_int_equal(lw_timers_advance(&wheel, 11 * TICK - 1), 0);
    assert_int_equal(lw_timers_advance(&wheel, 11 * TICK), 1);
    assert_false(lw_timer_is_armed(&probe.timer));
}

static void
past_time_fires_at_the_next_advance(void **state)
{
    (void)state;
    struct probe probe = probe_new();
    lw_timers_init(&wheel, 100 * TICK + 5);
    arm(&probe, 3);
    assert_true(lw_timers_next(&wheel) <= 100 * TICK + 5);
    assert_int_equal(lw_timers_advance(&wheel, 100 * TICK + 5), 1);
    assert_int_equal(probe.fired, 1);
}

static void
disarmed_timer_does_not_fire_and_frees_its_slot(void **state)
{
    (void)state;
    struct probe probe = probe_new();
    lw_timers_init(&wheel, 0);
    static const uint64_t dues[] = { 1, 300 * TICK, 70000 * TICK, TICK << 25, TICK << 40 };
    for (size_t i = 0; i < 5; i++) {
        arm(&probe, dues[i]);
        lw_timers_disarm(&wheel, &probe.timer);
        assert_true(lw_timers_next(&wheel) == LW_NEVER);
        assert_int_equal(wheel.count, 0);
    }
    assert_int_equal(lw_timers_advance(&wheel, UINT64_MAX - 1), 0);
}

static void
rearming_moves_the_deadline(void **state)
{
    (void)state;
    struct probe probe = probe_new();
    lw_timers_init(&wheel, 0);
    arm(&probe, 20 * TICK);
    lw_timers_arm(&wheel, &probe.timer, 5 * SECOND);
    assert_int_equal(wheel.count, 1);
    assert_int_equal(lw_timers_advance(&wheel, 4 * SECOND), 0);
    assert_int_equal(lw_timers_advance(&wheel, 5 * SECOND + TICK), 1);
}

static void
arming_for_never_disarms(void **state)
{
    (void)state;
    struct probe probe = probe_new();
    lw_timers_init(&wheel, 0);
    arm(&probe, 20 * TICK);
    lw_timers_arm(&wheel, &probe.timer, LW_NEVER);
    assert_false(lw_timer_is_armed(&probe.timer));
    assert_int_equal(wheel.count, 0);
}

/* Advances by the wheel's own deadlines until the probe fired; returns how often. */
static unsigned
wake_until_fired(struct probe *probe)
{
    unsigned wakes = 0;
    while (!probe->fired && wakes < 100) {
        lw_timers_advance(&wheel, lw_timers_next(&wheel));
        wakes++;
    }
    return wakes;
}

static void
lonely_far_timer_wakes_once(void **state)
{
    (void)state;
    static const uint64_t dues[] = { 60 * SECOND, 3600 * SECOND, 400000 * SECOND };
    for (size_t i = 0; i < 3; i++) {
        struct probe probe = probe_new();
        lw_timers_init(&wheel, 12345);
        arm(&probe, dues[i]);
        assert_int_equal(wake_until_fired(&probe), 1);
        assert_true(probe.fired_at >= dues[i] && probe.fired_at < dues[i] + TICK);
    }
}

static void
crowded_far_slot_wakes_at_most_four_times(void **state)
{
    (void)state;
    struct probe probes[40];
    lw_timers_init(&wheel, 12345);
    for (unsigned i = 0; i < 40; i++) {
        probes[i] = probe_new();
        arm(&probes[i], 60 * SECOND + i * LW_MS);
    }
    assert_in_range(wake_until_fired(&probes[0]), 1, 4);
}

static void
timers_of_an_hour_fire_in_the_order_of_ticks_in_one_advance(void **state)
{
    (void)state;
    static struct probe *order[8];
    static unsigned count;
    struct probe probes[8];
    static const unsigned seconds[] = { 7, 3600, 1, 17, 300, 2, 60, 900 };
    static const unsigned sorted[] = { 1, 2, 7, 17, 60, 300, 900, 3600 };
    lw_timers_init(&wheel, 0);
    for (int i = 0; i < 8; i++) {
        probes[i] = probe_new();
        arm(&probes[i], seconds[i] * SECOND);
    }
    for (count = 0; count < 8; count++) {
        lw_timers_advance(&wheel, lw_timers_next(&wheel));
        for (int i = 0; i < 8; i++) {
            if (probes[i].fired == 1) {
                order[count] = &probes[i];
                probes[i].fired = 2;
            }
        }
        assert_int_equal(seconds[order[count] - probes], sorted[count]);
    }
}

static struct probe chained;

static void
on_fire_disarm_chained(struct lw_timer *timer, uint64_t now)
{
    (void)timer;
    (void)now;
    lw_timers_disarm(&wheel, &chained.timer);
}

static void
callback_may_disarm_a_timer_of_the_same_tick(void **state)
{
    (void)state;
    struct lw_timer first;
    chained = probe_new();
    lw_timers_init(&wheel, 0);
    lw_timer_init(&first, on_fire_disarm_chained);
    lw_timers_arm(&wheel, &first, 7 * TICK);
    arm(&chained, 7 * TICK);
    assert_int_equal(lw_timers_advance(&wheel, 9 * TICK), 1);
    assert_int_equal(chained.fired, 0);
    assert_int_equal(wheel.count, 0);
}

static unsigned loops;

static void
on_fire_again_now(struct lw_timer *timer, uint64_t now)
{
    loops++;
    lw_timers_arm(&wheel, timer, now);
}

static void
timer_that_rearms_itself_for_now_fires_once_an_advance(void **state)
{
    (void)state;
    struct lw_timer timer;
    loops = 0;
    lw_timers_init(&wheel, 0);
    lw_timer_init(&timer, on_fire_again_now);
    lw_timers_arm(&wheel, &timer, 256 * TICK);
    assert_int_equal(lw_timers_advance(&wheel, 256 * TICK), 1);
    assert_int_equal(lw_timers_advance(&wheel, 256 * TICK), 1);
    assert_int_equal(loops, 2);
}

static void
timer_at_the_end_of_time_is_kept(void **state)
{
    (void)state;
    struct probe probe = probe_new();
    lw_timers_init(&wheel, 0);
    arm(&probe, LW_NEVER - 1);
    assert_true(lw_timers_next(&wheel) < LW_NEVER);
    assert_int_equal(lw_timers_advance(&wheel, SECOND), 0);
    assert_int_equal(lw_timers_advance(&wheel, LW_NEVER - 1), 1);
}

/* -- Against a plain array ------------------------------------------------------------------- */

enum { MODEL_COUNT = 200 };

static struct probe model[MODEL_COUNT];
static uint64_t model_due[MODEL_COUNT]; /* what the array thinks; LW_NEVER when not armed */
static uint64_t last_tick_fired;
static uint64_t random_state;

static uint64_t
next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* Short, middle, long, very long and past times in one mix. */
static uint64_t
random_due(uint64_t now)
{
    static const int bits[] = { 16, 20, 24, 30, 36, 42, 49 };
    if (next_random() % 16 == 0) {
        return now - (now < 1000 ? now : next_random() % 1000);
    }
    return now + (next_random() & ((UINT64_C(1) << bits[next_random() % 7]) - 1));
}

static uint64_t
ceil_tick(uint64_t due)
{
    return (due + TICK - 1) / TICK;
}

static void
on_model_fire(struct lw_timer *timer, uint64_t now)
{
    size_t i = (size_t)(LW_CONTAINER(timer, struct probe, timer) - model);
    assert_true(model_due[i] <= now);
    if (ceil_tick(model_due[i]) >= last_tick_fired) {
        last_tick_fired = ceil_tick(model_due[i]);
    } else {
        assert_int_equal(model[i].fired_at, 1); /* only what was armed for the past */
    }
    model_due[i] = LW_NEVER;
    if (next_random() % 4 == 0) {
        model_due[i] = random_due(now);
        model[i].fired_at = model_due[i] <= now;
        lw_timers_arm(&wheel, timer, model_due[i]);
    }
}

static uint64_t
model_next(void)
{
    uint64_t next = LW_NEVER;
    for (int i = 0; i < MODEL_COUNT; i++) {
        next = model_due[i] < next ? model_due[i] : next;
    }
    return next;
}

static void
change_some(uint64_t now)
{
    size_t i = next_random() % MODEL_COUNT;
    if (next_random() % 3 == 0) {
        lw_timers_disarm(&wheel, &model[i].timer);
        model_due[i] = LW_NEVER;
    } else {
        model_due[i] = random_due(now);
        model[i].fired_at = model_due[i] <= now;
        lw_timers_arm(&wheel, &model[i].timer, model_due[i]);
    }
}

/* Nothing that is due a tick ago may still be armed, and next must not be late. */
static void
check_model(uint64_t now)
{
    size_t armed = 0;
    for (int i = 0; i < MODEL_COUNT; i++) {
        armed += model_due[i] != LW_NEVER;
        assert_true(lw_timer_is_armed(&model[i].timer) == (model_due[i] != LW_NEVER));
    }
    assert_int_equal(wheel.count, armed);
    uint64_t first = model_next();
    uint64_t next = lw_timers_next(&wheel);
    if (first == LW_NEVER) {
        assert_true(next == LW_NEVER);
    } else {
        uint64_t latest = ceil_tick(first) * TICK;
        assert_true(next <= (latest > now ? latest : now));
    }
}

static void
run_model(uint64_t seed, int steps)
{
    uint64_t now = seed * 977 * SECOND;
    random_state = seed;
    lw_timers_init(&wheel, now);
    for (int i = 0; i < MODEL_COUNT; i++) {
        lw_timer_init(&model[i].timer, on_model_fire);
        model_due[i] = LW_NEVER;
    }
    for (int step = 0; step < steps; step++) {
        for (uint64_t n = next_random() % 8; n > 0; n--) {
            change_some(now);
        }
        check_model(now);
        uint64_t next = lw_timers_next(&wheel);
        bool is_jump = next_random() % 8 == 0;
        now = is_jump || next == LW_NEVER ? now + next_random() % SECOND
              : next > now                ? next
                                          : now;
        last_tick_fired = 0;
        lw_timers_advance(&wheel, now);
        for (int i = 0; i < MODEL_COUNT; i++) {
            bool is_done = model_due[i] == LW_NEVER || model[i].fired_at == 1 ||
                           model_due[i] + TICK > now;
            assert_true(is_done);
        }
    }
}

static void
random_timers_fire_as_a_sorted_list_says(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        run_model(seed, 3000);
    }
}

static void
wheel_crosses_the_end_of_its_levels(void **state)
{
    (void)state;
    struct probe probe = probe_new();
    static const int bits[] = { 8, 16, 24, 32, 40 };
    for (int i = 0; i < 5; i++) {
        uint64_t edge = TICK << bits[i];
        lw_timers_init(&wheel, edge - 2 * TICK);
        probe.fired = 0;
        arm(&probe, edge + TICK);
        assert_int_equal(lw_timers_next(&wheel), edge + TICK);
        assert_int_equal(lw_timers_advance(&wheel, edge), 0);
        assert_int_equal(lw_timers_advance(&wheel, edge + TICK), 1);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idle_wheel_has_no_deadline),
        cmocka_unit_test(timer_fires_at_its_tick_and_never_before),
        cmocka_unit_test(past_time_fires_at_the_next_advance),
        cmocka_unit_test(disarmed_timer_does_not_fire_and_frees_its_slot),
        cmocka_unit_test(rearming_moves_the_deadline),
        cmocka_unit_test(arming_for_never_disarms),
        cmocka_unit_test(lonely_far_timer_wakes_once),
        cmocka_unit_test(crowded_far_slot_wakes_at_most_four_times),
        cmocka_unit_test(timers_of_an_hour_fire_in_the_order_of_ticks_in_one_advance),
        cmocka_unit_test(callback_may_disarm_a_timer_of_the_same_tick),
        cmocka_unit_test(timer_that_rearms_itself_for_now_fires_once_an_advance),
        cmocka_unit_test(timer_at_the_end_of_time_is_kept),
        cmocka_unit_test(random_timers_fire_as_a_sorted_list_says),
        cmocka_unit_test(wheel_crosses_the_end_of_its_levels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
