/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Permits against a broker of arithmetic: what is granted follows the demand, never passes the
 * window, is coalesced, and never stalls, whatever was discarded or came in batches.
 */
#include "tests/support/test.h"

#include "brokers/pulsar/permits.h"

static struct lw_pulsar_permits
permits_of(bool is_exact, uint32_t window)
{
    struct lw_pulsar_permits permits;
    lw_pulsar_permits_init(&permits, is_exact, window, 1000000);
    lw_pulsar_permits_begin(&permits);
    lw_pulsar_permits_demand(&permits, UINT32_MAX, UINT64_MAX);
    return permits;
}

static void
nothing_is_granted_without_demand(void **state)
{
    (void)state;
    struct lw_pulsar_permits permits = permits_of(true, 100);
    lw_pulsar_permits_demand(&permits, 0, UINT64_MAX);
    assert_int_equal(lw_pulsar_permits_grant(&permits), 0);
    lw_pulsar_permits_demand(&permits, 10, 0);
    assert_int_equal(lw_pulsar_permits_grant(&permits), 0);
    lw_pulsar_permits_demand(&permits, 10, 1000);
    assert_int_equal(lw_pulsar_permits_grant(&permits), 10);
    assert_int_equal(lw_pulsar_permits_grant(&permits), 0);
}

static void
the_window_bounds_what_is_out_and_queued(void **state)
{
    (void)state;
    struct lw_pulsar_permits permits = permits_of(true, 100);
    assert_int_equal(lw_pulsar_permits_grant(&permits), 100);
    for (int i = 0; i < 100; i++) {
        lw_pulsar_permits_charge(&permits, 1, 10);
        lw_pulsar_permits_queue(&permits, 10);
    }
    assert_int_equal(lw_pulsar_permits_grant(&permits), 0);
    for (int i = 0; i < 49; i++) {
        lw_pulsar_permits_take(&permits, 1, 10);
    }
    assert_int_equal(lw_pulsar_permits_grant(&permits), 0); /* less than half */
    lw_pulsar_permits_take(&permits, 1, 10);
    assert_int_equal(lw_pulsar_permits_grant(&permits), 50);
}

static void
what_was_taken_is_off_the_demand(void **state)
{
    (void)state;
    struct lw_pulsar_permits permits = permits_of(true, 100);
    lw_pulsar_permits_demand(&permits, 1, UINT64_MAX);
    assert_int_equal(lw_pulsar_permits_grant(&permits), 1);
    lw_pulsar_permits_charge(&permits, 1, 10);
    lw_pulsar_permits_queue(&permits, 10);
    lw_pulsar_permits_take(&permits, 1, 10);
    assert_int_equal(lw_pulsar_permits_grant(&permits), 0);
    lw_pulsar_permits_demand(&permits, 1, UINT64_MAX);
    assert_int_equal(lw_pulsar_permits_grant(&permits), 1);
}

static void
discarded_ones_make_room_again(void **state)
{
    (void)state;
    struct lw_pulsar_permits permits = permits_of(true, 10);
    uint64_t granted = lw_pulsar_permits_grant(&permits);
    for (int i = 0; i < 1000; i++) {
        assert_true(permits.out > 0);
        lw_pulsar_permits_charge(&permits, 1, 10);
        granted += lw_pulsar_permits_grant(&permits);
    }
    assert_int_equal(granted, permits.granted);
    assert_int_equal((int64_t)granted - 1000, permits.out);
}

static void
on_shared_a_batch_more_than_the_window_cannot_come(void **state)
{
    (void)state;
    struct lw_pulsar_permits permits = permits_of(true, 100);
    lw_pulsar_permits_charge(&permits, 40, 400);
    lw_pulsar_permits_begin(&permits);
    uint32_t granted = lw_pulsar_permits_grant(&permits);
    assert_int_equal(granted, 61); /* one left, and a batch of 40 brings 100 */
}

static void
elsewhere_a_permit_stands_for_an_entry(void **state)
{
    (void)state;
    struct lw_pulsar_permits permits = permits_of(false, 1000);
    lw_pulsar_permits_charge(&permits, 100, 400);
    lw_pulsar_permits_begin(&permits);
    assert_int_equal(lw_pulsar_permits_grant(&permits), 10);
    for (int i = 0; i < 10; i++) { /* ten entries came for them: over-drawn by 990 */
        lw_pulsar_permits_charge(&permits, 100, 400);
    }
    assert_int_equal(permits.out, -990);
    assert_int_equal(lw_pulsar_permits_grant(&permits), 1000);
    assert_int_equal(permits.out, 10);
}

static void
bytes_bound_what_is_granted_but_never_to_a_standstill(void **state)
{
    (void)state;
    struct lw_pulsar_permits permits = permits_of(true, 1000);
    for (int i = 0; i < 200; i++) {
        lw_pulsar_permits_charge(&permits, 1, 100000);
    }
    lw_pulsar_permits_begin(&permits);
    assert_in_range(lw_pulsar_permits_grant(&permits), 9, 11);
    lw_pulsar_permits_begin(&permits);
    for (int i = 0; i < 200; i++) {
        lw_pulsar_permits_charge(&permits, 1, 100000000);
    }
    lw_pulsar_permits_begin(&permits);
    assert_int_equal(lw_pulsar_permits_grant(&permits), 1);
}

static void
the_sum_stays_below_what_the_broker_can_count(void **state)
{
    (void)state;
    struct lw_pulsar_permits permits = permits_of(true, UINT32_MAX);
    permits.bytes_max = UINT64_MAX;
    uint64_t granted = lw_pulsar_permits_grant(&permits);
    assert_true(granted > 0 && granted < INT32_MAX);
    assert_int_equal(lw_pulsar_permits_grant(&permits), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_granted_without_demand),
        cmocka_unit_test(the_window_bounds_what_is_out_and_queued),
        cmocka_unit_test(what_was_taken_is_off_the_demand),
        cmocka_unit_test(discarded_ones_make_room_again),
        cmocka_unit_test(on_shared_a_batch_more_than_the_window_cannot_come),
        cmocka_unit_test(elsewhere_a_permit_stands_for_an_entry),
        cmocka_unit_test(bytes_bound_what_is_granted_but_never_to_a_standstill),
        cmocka_unit_test(the_sum_stays_below_what_the_broker_can_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
