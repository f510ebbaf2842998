/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limits of what is in hand: where receiving stops, where it starts again, and that the
 * bounds hold (P7).
 */
#include "tests/support/test.h"

#include "core/limits.h"

static void
charge(struct lw_limits *limits, uint32_t count, uint32_t bytes)
{
    for (uint32_t i = 0; i < count; i++) {
        lw_limits_charge(limits, 1, bytes);
    }
}

/* Credits until receiving may start again; returns what is in hand then. */
static uint32_t
resume_count(struct lw_limits *limits, uint32_t bytes)
{
    while (!lw_limits_credit(limits, 1, bytes)) {
        assert_int_equal(lw_limits_room(limits), 0);
    }
    return limits->count;
}

static void
room_is_what_the_limit_leaves(void **state)
{
    (void)state;
    struct lw_limits limits;
    lw_limits_init(&limits, 20, 1000);
    assert_int_equal(lw_limits_room(&limits), 20);
    charge(&limits, 5, 10);
    assert_int_equal(lw_limits_room(&limits), 15);
    assert_false(lw_limits_credit(&limits, 1, 10));
    assert_int_equal(lw_limits_room(&limits), 16);
    assert_int_equal(limits.bytes, 40);
}

static void
receiving_stops_at_the_count_and_resumes_below_70_percent(void **state)
{
    (void)state;
    static const uint32_t bounds[][2] = {
        { 20, 13 }, { 1000, 699 }, { 10, 6 }, { 1, 0 }, { 2, 1 }
    };
    for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
        struct lw_limits limits;
        lw_limits_init(&limits, bounds[i][0], UINT64_MAX);
        charge(&limits, bounds[i][0] - 1, 1);
        assert_false(limits.is_stopped);
        charge(&limits, 1, 1);
        assert_true(limits.is_stopped);
        assert_int_equal(resume_count(&limits, 1), bounds[i][1]);
        assert_int_equal(lw_limits_room(&limits), bounds[i][0] - bounds[i][1]);
    }
}

static void
receiving_stops_at_the_bytes_and_resumes_below_70_percent(void **state)
{
    (void)state;
    struct lw_limits limits;
    lw_limits_init(&limits, 1000, 10000);
    charge(&limits, 9, 1000);
    assert_false(limits.is_stopped);
    charge(&limits, 1, 1000);
    assert_true(limits.is_stopped);
    assert_int_equal(lw_limits_room(&limits), 0);
    assert_int_equal(resume_count(&limits, 1000), 6);
}

static void
both_bounds_must_be_below_70_percent(void **state)
{
    (void)state;
    struct lw_limits limits;
    lw_limits_init(&limits, 10, 1000);
    charge(&limits, 1, 800);
    charge(&limits, 9, 10);
    assert_true(limits.is_stopped);
    for (int i = 0; i < 8; i++) {
        assert_false(lw_limits_credit(&limits, 1, 10));
    }
    assert_true(lw_limits_credit(&limits, 1, 800));
}

static void
an_idle_slot_resumes_below_seven_eighths(void **state)
{
    (void)state;
    struct lw_limits limits;
    lw_limits_init(&limits, 1000, 1000000);
    charge(&limits, 1000, 10);
    assert_int_equal(lw_limits_room_idle(&limits), 0);
    assert_false(lw_limits_credit(&limits, 125, 1250));
    assert_int_equal(lw_limits_room_idle(&limits), 0);
    assert_false(lw_limits_credit(&limits, 1, 10));
    assert_int_equal(lw_limits_room(&limits), 0);
    assert_int_equal(lw_limits_room_idle(&limits), 126);
    lw_limits_charge(&limits, 1, 875000);
    assert_int_equal(lw_limits_room_idle(&limits), 0);
}

static void
one_message_above_every_bound_is_let_in_alone(void **state)
{
    (void)state;
    struct lw_limits limits;
    lw_limits_init(&limits, 1000, 0);
    assert_true(lw_limits_room(&limits) > 0);
    charge(&limits, 1, 1000000);
    assert_int_equal(lw_limits_room(&limits), 0);
    assert_true(lw_limits_credit(&limits, 1, 1000000));
    assert_int_equal(limits.bytes, 0);
}

static void
limit_of_zero_messages_lets_one_in(void **state)
{
    (void)state;
    struct lw_limits limits;
    lw_limits_init(&limits, 0, 1000);
    assert_int_equal(lw_limits_room(&limits), 1);
    charge(&limits, 1, 1);
    assert_int_equal(lw_limits_room(&limits), 0);
    assert_true(lw_limits_credit(&limits, 1, 1));
}

static void
each_stop_is_counted_once(void **state)
{
    (void)state;
    struct lw_limits limits;
    lw_limits_init(&limits, 10, 1000);
    charge(&limits, 12,
           1); /* a receive may bring more than the room: counted, still one stop */
    assert_int_equal(limits.stops, 1);
    resume_count(&limits, 1);
    charge(&limits, 4, 1);
    assert_int_equal(limits.stops, 2);
}

static void
batch_is_charged_at_once(void **state)
{
    (void)state;
    struct lw_limits limits;
    lw_limits_init(&limits, 100, 10000);
    lw_limits_charge(&limits, 64, 640);
    assert_int_equal(lw_limits_room(&limits), 36);
    lw_limits_charge(&limits, 36, 360);
    assert_int_equal(limits.stops, 1);
    assert_int_equal(resume_count(&limits, 10), 69);
    assert_int_equal(limits.bytes, 690);
}

static void
huge_limits_do_not_overflow(void **state)
{
    (void)state;
    struct lw_limits limits;
    lw_limits_init(&limits, UINT32_MAX, UINT64_MAX);
    charge(&limits, 10, UINT32_MAX);
    assert_false(limits.is_stopped);
    assert_int_equal(lw_limits_room(&limits), UINT32_MAX - 10);
    limits.is_stopped = true;
    assert_true(lw_limits_credit(&limits, 1, UINT32_MAX));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(room_is_what_the_limit_leaves),
        cmocka_unit_test(receiving_stops_at_the_count_and_resumes_below_70_percent),
        cmocka_unit_test(receiving_stops_at_the_bytes_and_resumes_below_70_percent),
        cmocka_unit_test(both_bounds_must_be_below_70_percent),
        cmocka_unit_test(an_idle_slot_resumes_below_seven_eighths),
        cmocka_unit_test(one_message_above_every_bound_is_let_in_alone),
        cmocka_unit_test(limit_of_zero_messages_lets_one_in),
        cmocka_unit_test(each_stop_is_counted_once),
        cmocka_unit_test(batch_is_charged_at_once),
        cmocka_unit_test(huge_limits_do_not_overflow),
    };
    return cmocka_run_group_tests_name("core.limits", tests, NULL, NULL);
}
