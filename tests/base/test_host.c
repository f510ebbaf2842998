/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shared part of hosts, driven by a host with a moved clock: the order of a turn, what may
 * be changed while it runs, when the next turn is due, randomness, log lines.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#include "base/host.h"

static struct lw_host host;
static uint64_t clock_ns;
static char story[256];

static uint64_t
refresh(struct lw_host *of)
{
    of->now = clock_ns;
    return clock_ns;
}

static const struct lw_host_ops ops = { .refresh = refresh };

static int
set_up(void **state)
{
    (void)state;
    clock_ns = 1000 * LW_MS;
    story[0] = '\0';
    lw_host_init(&host, &ops, clock_ns, 7, -1);
    return 0;
}

static void
tell(const char *what)
{
    strncat(story, what, sizeof story - strlen(story) - 1);
}

static void
on_timer(struct lw_timer *timer, uint64_t now)
{
    (void)timer;
    (void)now;
    tell("timer ");
}

static void
on_letter(struct lw_letter *letter)
{
    (void)letter;
    tell("letter ");
}

static void
on_deferred(struct lw_deferred *deferred)
{
    (void)deferred;
    tell("deferred ");
}

static uint64_t wanted;

static uint64_t
on_turn(struct lw_turn *turn, uint64_t now)
{
    (void)turn;
    (void)now;
    tell("turn ");
    return wanted;
}

static void
turn_runs_timers_letters_deferred_work_and_hooks_in_this_order(void **state)
{
    (void)state;
    struct lw_turn turn = { .fn = on_turn };
    struct lw_deferred deferred;
    struct lw_letter letter;
    struct lw_timer timer;
    wanted = LW_NEVER;
    lw_deferred_init(&deferred, on_deferred);
    lw_letter_init(&letter, on_letter);
    lw_timer_init(&timer, on_timer);
    lw_host_add_turn(&host, &turn);
    lw_host_defer(&host, &deferred);
    assert_true(lw_host_post(&host, &letter));
    assert_false(lw_host_post(&host, &letter));
    lw_timers_arm(&host.timers, &timer, clock_ns);
    clock_ns += LW_MS;
    assert_true(lw_host_turn(&host) == LW_NEVER);
    assert_string_equal(story, "timer letter deferred turn ");
    assert_true(lw_host_post(&host, &letter));
}

static void
next_turn_is_due_at_the_earlier_of_hooks_and_timers(void **state)
{
    (void)state;
    struct lw_turn turn = { .fn = on_turn };
    struct lw_timer timer;
    lw_timer_init(&timer, on_timer);
    lw_host_add_turn(&host, &turn);
    lw_timers_arm(&host.timers, &timer, clock_ns + 5 * LW_MS);
    wanted = clock_ns + 2 * LW_MS;
    assert_int_equal(lw_host_turn(&host), clock_ns + 2 * LW_MS);
    wanted = LW_NEVER;
    assert_in_range(lw_host_turn(&host), clock_ns + 5 * LW_MS, clock_ns + 6 * LW_MS);
    wanted = 3;
    assert_int_equal(lw_host_turn(&host), clock_ns);
}

static void
on_deferred_again(struct lw_deferred *deferred)
{
    tell("again ");
    lw_host_defer(&host, deferred);
}

static void
work_deferred_in_a_turn_makes_the_next_turn_due_at_once(void **state)
{
    (void)state;
    struct lw_deferred deferred;
    lw_deferred_init(&deferred, on_deferred_again);
    lw_host_defer(&host, &deferred);
    lw_host_defer(&host, &deferred);
    assert_int_equal(lw_host_turn(&host), clock_ns);
    assert_string_equal(story, "again ");
    lw_deferred_cancel(&deferred);
    assert_true(lw_host_turn(&host) == LW_NEVER);
    assert_string_equal(story, "again ");
}

static struct lw_turn first;
static struct lw_turn second;

static uint64_t
on_turn_leave(struct lw_turn *turn, uint64_t now)
{
    (void)now;
    tell("leave ");
    lw_host_remove_turn(turn);
    lw_host_remove_turn(&second);
    return LW_NEVER;
}

static void
hook_may_remove_itself_and_a_later_one(void **state)
{
    (void)state;
    struct lw_turn third = { .fn = on_turn };
    first.fn = on_turn_leave;
    second.fn = on_turn;
    wanted = LW_NEVER;
    lw_host_add_turn(&host, &first);
    lw_host_add_turn(&host, &second);
    lw_host_add_turn(&host, &third);
    lw_host_turn(&host);
    assert_string_equal(story, "leave turn ");
    lw_host_turn(&host);
    assert_string_equal(story, "leave turn turn ");
}

static void
wanted_turn_is_due_once(void **state)
{
    (void)state;
    assert_true(lw_host_turn(&host) == LW_NEVER);
    lw_host_want_turn(&host);
    assert_int_equal(lw_host_next(&host, LW_NEVER), clock_ns);
    assert_true(lw_host_turn(&host) == LW_NEVER);
}

static void
same_seed_gives_the_same_numbers_and_another_one_others(void **state)
{
    (void)state;
    static struct lw_host twin;
    static struct lw_host other;
    lw_host_init(&twin, &ops, 0, 7, -1);
    lw_host_init(&other, &ops, 0, 8, -1);
    for (int i = 0; i < 100; i++) {
        uint64_t number = lw_host_random(&host);
        assert_true(number == lw_host_random(&twin));
        assert_true(number != lw_host_random(&other));
    }
}

static void
bounded_numbers_reach_every_value_evenly(void **state)
{
    (void)state;
    unsigned counts[7] = { 0 };
    for (int i = 0; i < 70000; i++) {
        counts[lw_host_random_to(&host, 6)]++;
    }
    for (int i = 0; i < 7; i++) {
        assert_in_range(counts[i], 9500, 10500);
    }
    assert_int_equal(lw_host_random_to(&host, 0), 0);
    lw_host_random_to(&host, UINT64_MAX);
}

/* 3 * 2^62 values: a plain remainder would give the lowest third of them twice as often. */
static void
numbers_of_a_large_range_have_no_bias(void **state)
{
    (void)state;
    unsigned low = 0;
    for (int i = 0; i < 30000; i++) {
        low += lw_host_random_to(&host, (UINT64_C(3) << 62) - 1) < UINT64_C(1) << 62;
    }
    assert_in_range(low, 9500, 10500);
}

static void
on_log(enum lw_log_level level, const char *event, const char *text, const char *fields,
       void *user)
{
    (void)user;
    snprintf(story, sizeof story, "%d %s %s %s", (int)level, event, text, fields);
}

static void
log_line_is_formatted_at_its_level_and_not_below(void **state)
{
    (void)state;
    lw_host_log(&host, LW_LOG_ERROR, "a.b", "no sink yet", "x=%d", 1);
    host.log = on_log;
    lw_host_log(&host, LW_LOG_WARN, "a.b", "said", "x=%d y=%s", 5, "z");
    assert_string_equal(story, "1 a.b said x=5 y=z");
    lw_host_log(&host, LW_LOG_DEBUG, "a.b", "not said", "x=%d", 6);
    assert_string_equal(story, "1 a.b said x=5 y=z");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(turn_runs_timers_letters_deferred_work_and_hooks_in_this_order,
                               set_up),
        cmocka_unit_test_setup(next_turn_is_due_at_the_earlier_of_hooks_and_timers, set_up),
        cmocka_unit_test_setup(work_deferred_in_a_turn_makes_the_next_turn_due_at_once, set_up),
        cmocka_unit_test_setup(hook_may_remove_itself_and_a_later_one, set_up),
        cmocka_unit_test_setup(wanted_turn_is_due_once, set_up),
        cmocka_unit_test_setup(same_seed_gives_the_same_numbers_and_another_one_others, set_up),
        cmocka_unit_test_setup(bounded_numbers_reach_every_value_evenly, set_up),
        cmocka_unit_test_setup(numbers_of_a_large_range_have_no_bias, set_up),
        cmocka_unit_test_setup(log_line_is_formatted_at_its_level_and_not_below, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
