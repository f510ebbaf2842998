/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The oracle where messages are settled one by one: what the broker hears against what the history
 * says, and a key that is at one member at a time. Each fault is found, by name.
 */
#include "tests/support/test.h"

#include "tests/support/oracle.h"

static uint64_t clock_ns;

static struct oracle *
create(void)
{
    struct oracle *oracle = oracle_create();
    struct oracle_subscription subscription = {
        .priority = 10, .order = ORACLE_BY_KEY, .is_individual = true, .has_keys_apart = true
    };
    (void)oracle_add_place(oracle, oracle_add_subscription(oracle, &subscription));
    clock_ns = 1;
    return oracle;
}

/* Generations are the members' numbers plus one; all messages have one key. */
static void
say(struct oracle *oracle, uint32_t member, enum lw_history_kind kind, int64_t position,
    int detail)
{
    struct oracle_event event = { .kind = kind,
                                  .now = clock_ns,
                                  .member = member,
                                  .generation = member + 1,
                                  .position = position,
                                  .key_hash = 7,
                                  .attempt = 1,
                                  .detail = detail };
    oracle_record(oracle, &event);
}

static void
start(struct oracle *oracle, uint32_t member, int64_t position)
{
    oracle_given(oracle, 0, position);
    say(oracle, member, LW_HISTORY_RECEIVED, position, 0);
    say(oracle, member, LW_HISTORY_STARTED, position, 0);
}

static void
settle(struct oracle *oracle, uint32_t member, int64_t position, enum lw_settled outcome)
{
    say(oracle, member, LW_HISTORY_RETURNED, position, 0);
    say(oracle, member, LW_HISTORY_SETTLED, position, (int)outcome);
}

/* Ends; the number of violations of that promise, when there are no others. */
static uint64_t
judge(struct oracle *oracle, enum oracle_promise promise)
{
    oracle_finish(oracle, false);
    const struct oracle_report *report = oracle_report(oracle);
    uint64_t count = report->violations[promise];
    assert_int_equal(report->violation_count, count);
    oracle_destroy(oracle);
    return count;
}

static void
an_ack_after_its_settlement_is_right(void **state)
{
    (void)state;
    struct oracle *oracle = create();
    say(oracle, 0, LW_HISTORY_ASSIGNED, -1, 0);
    start(oracle, 0, 0);
    settle(oracle, 0, 0, LW_SETTLED_ACKED);
    oracle_acked(oracle, 0, 0);
    assert_int_equal(judge(oracle, ORACLE_P1), 0);
}

static void
an_ack_before_its_settlement_is_found(void **state)
{
    (void)state;
    struct oracle *oracle = create();
    say(oracle, 0, LW_HISTORY_ASSIGNED, -1, 0);
    start(oracle, 0, 0);
    oracle_acked(oracle, 0, 0);
    settle(oracle, 0, 0, LW_SETTLED_ACKED);
    assert_int_equal(judge(oracle, ORACLE_P1), 1);
}

static void
a_second_ack_is_found(void **state)
{
    (void)state;
    struct oracle *oracle = create();
    say(oracle, 0, LW_HISTORY_ASSIGNED, -1, 0);
    start(oracle, 0, 0);
    settle(oracle, 0, 0, LW_SETTLED_ACKED);
    oracle_acked(oracle, 0, 0);
    oracle_acked(oracle, 0, 0);
    assert_int_equal(judge(oracle, ORACLE_P1), 1);
}

static void
a_nack_of_what_is_settled_is_found(void **state)
{
    (void)state;
    struct oracle *oracle = create();
    say(oracle, 0, LW_HISTORY_ASSIGNED, -1, 0);
    start(oracle, 0, 0);
    settle(oracle, 0, 0, LW_SETTLED_ACKED);
    oracle_acked(oracle, 0, 0);
    oracle_nacked(oracle, 0, 0);
    assert_int_equal(judge(oracle, ORACLE_P5), 1);
}

static void
what_was_dropped_is_not_settled_any_more(void **state)
{
    (void)state;
    struct oracle *oracle = create();
    say(oracle, 0, LW_HISTORY_ASSIGNED, -1, 0);
    start(oracle, 0, 0);
    settle(oracle, 0, 0, LW_SETTLED_ACKED);
    oracle_given(oracle, 0, 1);
    say(oracle, 0, LW_HISTORY_RECEIVED, 1, 0);
    say(oracle, 0, LW_HISTORY_REVOKED, -1, 0);
    say(oracle, 0, LW_HISTORY_DROPPED, 1, 0);
    oracle_acked(oracle, 0, 0);
    oracle_nacked(oracle, 0, 1);
    assert_int_equal(judge(oracle, ORACLE_P5), 1);
}

static void
a_key_at_two_members_is_found(void **state)
{
    (void)state;
    struct oracle *oracle = create();
    say(oracle, 0, LW_HISTORY_ASSIGNED, -1, 0);
    say(oracle, 1, LW_HISTORY_ASSIGNED, -1, 0);
    start(oracle, 0, 0);
    start(oracle, 1, 1);
    clock_ns++;
    settle(oracle, 0, 0, LW_SETTLED_ACKED);
    settle(oracle, 1, 1, LW_SETTLED_ACKED);
    assert_int_equal(judge(oracle, ORACLE_P3), 1);
}

static void
a_member_that_hears_of_its_loss_in_the_same_moment_is_right(void **state)
{
    (void)state;
    struct oracle *oracle = create();
    say(oracle, 0, LW_HISTORY_ASSIGNED, -1, 0);
    say(oracle, 1, LW_HISTORY_ASSIGNED, -1, 0);
    start(oracle, 0, 0);
    start(oracle, 1, 0);
    say(oracle, 0, LW_HISTORY_REVOKED, -1, 0);
    clock_ns++;
    say(oracle, 0, LW_HISTORY_RETURNED, 0, 0);
    say(oracle, 0, LW_HISTORY_DROPPED, 0, 0);
    settle(oracle, 1, 0, LW_SETTLED_ACKED);
    assert_int_equal(judge(oracle, ORACLE_P3), 0);
}

static void
a_dead_member_holds_no_key(void **state)
{
    (void)state;
    struct oracle *oracle = create();
    say(oracle, 0, LW_HISTORY_ASSIGNED, -1, 0);
    say(oracle, 1, LW_HISTORY_ASSIGNED, -1, 0);
    start(oracle, 0, 0);
    oracle_died(oracle, 0);
    clock_ns++;
    start(oracle, 1, 0);
    clock_ns++;
    settle(oracle, 1, 0, LW_SETTLED_ACKED);
    assert_int_equal(judge(oracle, ORACLE_P3), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_ack_after_its_settlement_is_right),
        cmocka_unit_test(an_ack_before_its_settlement_is_found),
        cmocka_unit_test(a_second_ack_is_found),
        cmocka_unit_test(a_nack_of_what_is_settled_is_found),
        cmocka_unit_test(what_was_dropped_is_not_settled_any_more),
        cmocka_unit_test(a_key_at_two_members_is_found),
        cmocka_unit_test(a_member_that_hears_of_its_loss_in_the_same_moment_is_right),
        cmocka_unit_test(a_dead_member_holds_no_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
