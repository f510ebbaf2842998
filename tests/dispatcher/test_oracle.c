/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The oracle itself: a history that keeps every promise passes, and for each promise one that
 * breaks it is found, by name. Histories are written as rows; `judge` runs them over one place of
 * one subscription (or two, for priorities) with ten messages produced.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "policy/judge.h"
#include "tests/support/oracle.h"

#define ASSIGN(g, p)                                                                           \
    {                                                                                          \
        .kind = LW_HISTORY_ASSIGNED, .generation = (g), .position = (p)                        \
    }
#define GET(g, p, k)                                                                           \
    {                                                                                          \
        .kind = LW_HISTORY_RECEIVED, .generation = (g), .position = (p), .key_hash = (k)       \
    }
#define RUN(g, p, a)                                                                           \
    {                                                                                          \
        .kind = LW_HISTORY_STARTED, .generation = (g), .position = (p), .attempt = (a)         \
    }
#define BACK(g, p)                                                                             \
    {                                                                                          \
        .kind = LW_HISTORY_RETURNED, .generation = (g), .position = (p)                        \
    }
#define JUDGE(g, p)                                                                            \
    {                                                                                          \
        .kind = LW_HISTORY_JUDGED, .generation = (g), .position = (p)                          \
    }
#define SENT(g, p, d)                                                                          \
    {                                                                                          \
        .kind = LW_HISTORY_PUBLISHED, .generation = (g), .position = (p), .detail = (d)        \
    }
#define SETTLE(g, p, d)                                                                        \
    {                                                                                          \
        .kind = LW_HISTORY_SETTLED, .generation = (g), .position = (p), .detail = (d)          \
    }
#define DROP(g, p)                                                                             \
    {                                                                                          \
        .kind = LW_HISTORY_DROPPED, .generation = (g), .position = (p)                         \
    }
#define COMMIT(g, p)                                                                           \
    {                                                                                          \
        .kind = LW_HISTORY_COMMITTED, .generation = (g), .position = (p)                       \
    }
#define REVOKE(g)                                                                              \
    {                                                                                          \
        .kind = LW_HISTORY_REVOKED, .generation = (g), .position = -1                          \
    }
/* A start as a member of task `t`. */
#define JOIN(g, p, a, t)                                                                       \
    {                                                                                          \
        .kind = LW_HISTORY_STARTED, .generation = (g), .position = (p), .attempt = (a),        \
        .task = (t)                                                                            \
    }
#define PARK(g, p)                                                                             \
    {                                                                                          \
        .kind = LW_HISTORY_JUDGED, .generation = (g), .position = (p),                         \
        .action = LW_ACTION_PARK                                                               \
    }
#define WHOLE(g, p) GET(g, p, 7), RUN(g, p, 1), BACK(g, p), SETTLE(g, p, LW_SETTLED_ACKED)

enum { PRODUCED = 10 };

static struct oracle *
create(enum oracle_order order)
{
    struct oracle *oracle = oracle_create();
    struct oracle_subscription subscription = { .priority = 10, .order = order };
    uint32_t place = oracle_add_place(oracle, oracle_add_subscription(oracle, &subscription));
    for (int64_t i = 0; i < PRODUCED; i++) {
        oracle_produced(oracle, place, i);
    }
    return oracle;
}

static void
play(struct oracle *oracle, const struct oracle_event *events, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        oracle_record(oracle, &events[i]);
    }
    oracle_finish(oracle, false);
}

/* The only promise that the history breaks; ORACLE_PROMISES when it breaks none. */
static enum oracle_promise
judge(enum oracle_order order, const struct oracle_event *events, size_t count)
{
    struct oracle *oracle = create(order);
    play(oracle, events, count);
    const struct oracle_report *report = oracle_report(oracle);
    enum oracle_promise broken = ORACLE_PROMISES;
    for (int i = 0; i < ORACLE_PROMISES; i++) {
        if (report->violations[i] > 0) {
            assert_true(broken == ORACLE_PROMISES); /* one fault, one name */
            broken = (enum oracle_promise)i;
        }
    }
    oracle_destroy(oracle);
    return broken;
}

#define ASSERT_BREAKS(promise, ...)                                                            \
    do {                                                                                       \
        const struct oracle_event rows[] = { __VA_ARGS__ };                                    \
        assert_int_equal(judge(ORACLE_BY_KEY, rows, sizeof rows / sizeof *rows), promise);     \
    } while (0)
#define ASSERT_KEEPS(...) ASSERT_BREAKS(ORACLE_PROMISES, __VA_ARGS__)

static void
a_history_that_keeps_all_promises_passes(void **state)
{
    (void)state;
    ASSERT_KEEPS(ASSIGN(1, 0), WHOLE(1, 0), WHOLE(1, 1), COMMIT(1, 2), REVOKE(1), ASSIGN(2, 2),
                 WHOLE(2, 2), COMMIT(2, 3));
}

static void
settling_before_the_handler_returned_breaks_p1(void **state)
{
    (void)state;
    ASSERT_BREAKS(ORACLE_P1, ASSIGN(1, 0), GET(1, 0, 7), SETTLE(1, 0, LW_SETTLED_ACKED));
    ASSERT_BREAKS(ORACLE_P1, ASSIGN(1, 0), GET(1, 0, 7), RUN(1, 0, 1), BACK(1, 0),
                  SETTLE(1, 0, LW_SETTLED_DEAD_LETTERED));
    ASSERT_BREAKS(ORACLE_P1, ASSIGN(1, 0), GET(1, 0, 7), RUN(1, 0, 1), BACK(1, 0),
                  SENT(1, 0, LW_PUBLISH_DEAD_LETTER), SETTLE(1, 0, LW_SETTLED_RETRIED));
    ASSERT_KEEPS(ASSIGN(1, 0), GET(1, 0, 7), RUN(1, 0, 1), BACK(1, 0),
                 SENT(1, 0, LW_PUBLISH_RETRY), SETTLE(1, 0, LW_SETTLED_RETRIED));
}

static void
members_of_a_task_run_together_and_in_order(void **state)
{
    (void)state;
    ASSERT_KEEPS(ASSIGN(1, 0), GET(1, 0, 7), GET(1, 1, 7), JOIN(1, 0, 1, 3), JOIN(1, 1, 1, 3),
                 BACK(1, 0), BACK(1, 1), SETTLE(1, 0, LW_SETTLED_ACKED),
                 SETTLE(1, 1, LW_SETTLED_ACKED));
    ASSERT_BREAKS(ORACLE_P3, ASSIGN(1, 0), GET(1, 0, 7), GET(1, 1, 7), JOIN(1, 1, 1, 3),
                  JOIN(1, 0, 1, 3), DROP(1, 0), DROP(1, 1));
    ASSERT_BREAKS(ORACLE_P3, ASSIGN(1, 0), GET(1, 0, 7), GET(1, 1, 7), GET(1, 2, 7),
                  JOIN(1, 0, 1, 3), JOIN(1, 2, 1, 3), DROP(1, 0), DROP(1, 1), DROP(1, 2));
}

static void
what_is_behind_one_that_runs_again_is_not_settled_before_it(void **state)
{
    (void)state;
    ASSERT_BREAKS(ORACLE_P3, ASSIGN(1, 0), GET(1, 0, 7), GET(1, 1, 7), JOIN(1, 0, 1, 3),
                  JOIN(1, 1, 1, 3), BACK(1, 0), BACK(1, 1), PARK(1, 0),
                  SETTLE(1, 1, LW_SETTLED_ACKED), DROP(1, 0));
    ASSERT_KEEPS(ASSIGN(1, 0), GET(1, 0, 7), GET(1, 1, 7), JOIN(1, 0, 1, 3), JOIN(1, 1, 1, 3),
                 BACK(1, 0), BACK(1, 1), PARK(1, 0), JOIN(1, 0, 2, 4), JOIN(1, 1, 1, 4),
                 BACK(1, 0), BACK(1, 1), SETTLE(1, 0, LW_SETTLED_ACKED),
                 SETTLE(1, 1, LW_SETTLED_ACKED));
}

static void
an_attempt_that_nobody_judged_breaks_p10(void **state)
{
    (void)state;
    ASSERT_BREAKS(ORACLE_P10, ASSIGN(1, 0), GET(1, 0, 7), RUN(1, 0, 1), BACK(1, 0),
                  RUN(1, 0, 2), BACK(1, 0), SETTLE(1, 0, LW_SETTLED_ACKED));
}

static void
committing_beyond_the_first_unfinished_breaks_p2(void **state)
{
    (void)state;
    const struct oracle_event rows[] = {
        ASSIGN(1, 0), GET(1, 0, 1), WHOLE(1, 1), COMMIT(1, 2), DROP(1, 0),
    };
    struct oracle *oracle = create(ORACLE_UNORDERED);
    play(oracle, rows, sizeof rows / sizeof *rows);
    assert_int_equal(oracle_report(oracle)->violations[ORACLE_P2], 1);
    assert_int_equal(oracle_report(oracle)->violations[ORACLE_LOST], 1);
    assert_int_equal(oracle_report(oracle)->violation_count, 2);
    oracle_destroy(oracle);
}

static void
a_message_that_nobody_handled_below_a_commit_is_lost(void **state)
{
    (void)state;
    ASSERT_BREAKS(ORACLE_LOST, ASSIGN(1, 0), WHOLE(1, 0), WHOLE(1, 2), COMMIT(1, 3));
    struct oracle *oracle = create(ORACLE_BY_KEY);
    const struct oracle_event rows[] = { ASSIGN(1, 0), WHOLE(1, 0), WHOLE(1, 2), COMMIT(1, 3) };
    oracle_deleted(oracle, 0, 1); /* nobody need handle a hole */
    play(oracle, rows, sizeof rows / sizeof *rows);
    assert_int_equal(oracle_report(oracle)->violation_count, 0);
    oracle_destroy(oracle);
}

static void
overlap_and_overtaking_of_a_key_break_p3(void **state)
{
    (void)state;
    ASSERT_BREAKS(ORACLE_P3, ASSIGN(1, 0), GET(1, 0, 7), GET(1, 1, 7), RUN(1, 1, 1), BACK(1, 1),
                  DROP(1, 0), DROP(1, 1));
    ASSERT_BREAKS(ORACLE_P3, ASSIGN(1, 0), GET(1, 0, 7), GET(1, 1, 7), RUN(1, 0, 1), BACK(1, 0),
                  RUN(1, 1, 1), BACK(1, 1), DROP(1, 0), DROP(1, 1)); /* 0 is to be retried */
    ASSERT_KEEPS(ASSIGN(1, 0), GET(1, 0, 7), GET(1, 1, 8), RUN(1, 1, 1), RUN(1, 0, 1),
                 BACK(1, 0), BACK(1, 1), DROP(1, 0), DROP(1, 1));
}

static void
a_new_generation_waits_for_what_still_runs_of_the_old_one(void **state)
{
    (void)state;
    ASSERT_BREAKS(ORACLE_P3, ASSIGN(1, 0), GET(1, 0, 7), RUN(1, 0, 1), REVOKE(1), ASSIGN(2, 0),
                  GET(2, 0, 7), RUN(2, 0, 1), BACK(1, 0), DROP(1, 0), BACK(2, 0), DROP(2, 0));
    ASSERT_KEEPS(ASSIGN(1, 0), GET(1, 0, 7), RUN(1, 0, 1), REVOKE(1), ASSIGN(2, 0),
                 GET(2, 0, 7), BACK(1, 0), DROP(1, 0), RUN(2, 0, 1), BACK(2, 0),
                 SETTLE(2, 0, LW_SETTLED_ACKED));
}

static void
partition_order_binds_all_keys(void **state)
{
    (void)state;
    const struct oracle_event rows[] = {
        ASSIGN(1, 0), GET(1, 0, 1), GET(1, 1, 2), RUN(1, 1, 1),
        BACK(1, 1),   DROP(1, 1),   DROP(1, 0),
    };
    assert_int_equal(judge(ORACLE_BY_PARTITION, rows, 7), ORACLE_P3);
    assert_int_equal(judge(ORACLE_UNORDERED, rows, 7), ORACLE_PROMISES);
}

static bool
always(void *user, uint32_t member, uint32_t subscription)
{
    (void)member;
    (void)subscription;
    return *(bool *)user;
}

/* Two subscriptions, 5 before 10; the worse one starts while the better one waits. */
static uint64_t
priority_faults(bool is_blocked, uint32_t concurrency)
{
    struct oracle *oracle = oracle_create();
    struct oracle_subscription better = { .priority = 5, .concurrency = concurrency };
    struct oracle_subscription worse = { .priority = 10 };
    oracle_add_place(oracle, oracle_add_subscription(oracle, &better));
    oracle_add_place(oracle, oracle_add_subscription(oracle, &worse));
    oracle_set_blocked(oracle, always, &is_blocked);
    struct oracle_event rows[] = { ASSIGN(1, 0), ASSIGN(2, 0), GET(1, 0, 1), GET(1, 1, 2),
                                   RUN(1, 0, 1), GET(2, 0, 1), RUN(2, 0, 1) };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rows[i].place = rows[i].generation == 1 ? 0 : 1;
        oracle_record(oracle, &rows[i]);
    }
    uint64_t faults = oracle_report(oracle)->violations[ORACLE_P4];
    oracle_destroy(oracle);
    return faults;
}

static void
a_worse_start_breaks_p4_unless_the_better_one_may_not_start(void **state)
{
    (void)state;
    assert_int_equal(priority_faults(false, 0), 1);
    assert_int_equal(priority_faults(true, 0), 0);
    assert_int_equal(priority_faults(false, 1), 0);
}

static void
ending_twice_or_never_breaks_p5(void **state)
{
    (void)state;
    ASSERT_BREAKS(ORACLE_P5, ASSIGN(1, 0), WHOLE(1, 0), DROP(1, 0));
    ASSERT_BREAKS(ORACLE_P5, ASSIGN(1, 0), GET(1, 0, 7));
    ASSERT_BREAKS(ORACLE_P5, ASSIGN(1, 0), WHOLE(1, 0), RUN(1, 0, 2));
    ASSERT_KEEPS(ASSIGN(1, 0), GET(1, 0, 7), GET(1, 0, 7), DROP(1, 0), RUN(1, 0, 1), BACK(1, 0),
                 SETTLE(1, 0, LW_SETTLED_ACKED)); /* given twice, one of them dropped */
}

static void
what_an_ended_ownership_does_breaks_p6(void **state)
{
    (void)state;
    ASSERT_BREAKS(ORACLE_P6, ASSIGN(1, 0), GET(1, 0, 7), REVOKE(1), RUN(1, 0, 1), DROP(1, 0));
    ASSERT_BREAKS(ORACLE_P6, ASSIGN(1, 0), WHOLE(1, 0), REVOKE(1), COMMIT(1, 1));
    ASSERT_BREAKS(ORACLE_P6, ASSIGN(1, 0), ASSIGN(2, 0));
    ASSERT_BREAKS(ORACLE_P6, GET(1, 0, 7));
}

static void
a_commit_that_goes_back_breaks_p6(void **state)
{
    (void)state;
    struct oracle *oracle = create(ORACLE_BY_KEY);
    const struct oracle_event rows[] = { ASSIGN(1, 0), WHOLE(1, 0), WHOLE(1, 1) };
    play(oracle, rows, sizeof rows / sizeof *rows);
    oracle_committed(oracle, 0, 2);
    oracle_committed(oracle, 0, 1);
    assert_int_equal(oracle_report(oracle)->violations[ORACLE_P6], 1);
    oracle_destroy(oracle);
}

static void
attempts_that_go_down_break_p10(void **state)
{
    (void)state;
    ASSERT_BREAKS(ORACLE_P10, ASSIGN(1, 0), GET(1, 0, 7), RUN(1, 0, 2), BACK(1, 0),
                  RUN(1, 0, 1), BACK(1, 0), DROP(1, 0));
    ASSERT_KEEPS(ASSIGN(1, 0), GET(1, 0, 7), RUN(1, 0, 1), BACK(1, 0), RUN(1, 0, 1), BACK(1, 0),
                 DROP(1, 0)); /* a run that was not charged */
    ASSERT_BREAKS(ORACLE_P10, ASSIGN(1, 0), GET(1, 0, 7), RUN(1, 0, 1), BACK(1, 0), JUDGE(1, 0),
                  RUN(1, 0, 1), BACK(1, 0), DROP(1, 0)); /* judged, so it was */
}

static void
duplicates_are_bounded_by_what_was_lost(void **state)
{
    (void)state;
    ASSERT_KEEPS(ASSIGN(1, 0), WHOLE(1, 0), GET(1, 1, 8), DROP(1, 1), REVOKE(1), ASSIGN(2, 0),
                 WHOLE(2, 0));
    ASSERT_BREAKS(ORACLE_DUPLICATES, ASSIGN(1, 0), WHOLE(1, 0), COMMIT(1, 1), REVOKE(1),
                  ASSIGN(2, 0), WHOLE(2, 0)); /* covered by the commit, so it must not come */
}

static void
a_dead_member_owes_nothing_and_is_not_heard(void **state)
{
    (void)state;
    struct oracle *oracle = create(ORACLE_BY_KEY);
    struct oracle_event before[] = { ASSIGN(1, 0), GET(1, 0, 7), RUN(1, 0, 1) };
    for (size_t i = 0; i < 3; i++) {
        oracle_record(oracle, &before[i]);
    }
    oracle_died(oracle, 0);
    struct oracle_event after = SETTLE(1, 0, LW_SETTLED_ACKED);
    oracle_record(oracle, &after);
    struct oracle_event next[] = { ASSIGN(2, 0), WHOLE(2, 0) };
    for (size_t i = 0; i < sizeof next / sizeof *next; i++) {
        next[i].member = 1;
        oracle_record(oracle, &next[i]);
    }
    oracle_finish(oracle, false);
    assert_int_equal(oracle_report(oracle)->violation_count, 0);
    assert_int_equal(oracle_report(oracle)->duplicates, 1);
    assert_int_equal(oracle_report(oracle)->duplicates_max, 1);
    oracle_destroy(oracle);
}

static void
at_a_complete_end_everything_was_handled(void **state)
{
    (void)state;
    struct oracle *oracle = create(ORACLE_BY_KEY);
    struct oracle_event assign = ASSIGN(1, 0);
    oracle_record(oracle, &assign);
    for (int64_t i = 0; i < PRODUCED - 1; i++) {
        struct oracle_event rows[] = { WHOLE(1, i) };
        for (size_t j = 0; j < sizeof rows / sizeof *rows; j++) {
            oracle_record(oracle, &rows[j]);
        }
    }
    oracle_finish(oracle, true);
    assert_int_equal(oracle_report(oracle)->violations[ORACLE_LOST], 1);
    assert_non_null(strstr(oracle_report(oracle)->first, "position 9 was never handled"));
    oracle_destroy(oracle);
}

static void
many_keys_keep_their_queues_while_the_table_grows(void **state)
{
    (void)state;
    struct oracle *oracle = create(ORACLE_BY_KEY);
    struct oracle_event assign = ASSIGN(1, 0);
    oracle_record(oracle, &assign);
    for (int64_t i = 0; i < 2000; i++) {
        struct oracle_event get = GET(1, i, (uint64_t)(i % 1000 + 1));
        oracle_record(oracle, &get);
    }
    for (int64_t i = 0; i < 2000; i++) {
        struct oracle_event rows[] = { RUN(1, i, 1), BACK(1, i),
                                       SETTLE(1, i, LW_SETTLED_ACKED) };
        for (size_t j = 0; j < 3; j++) {
            oracle_record(oracle, &rows[j]);
        }
    }
    oracle_finish(oracle, true);
    assert_int_equal(oracle_report(oracle)->violation_count, 0);
    oracle_destroy(oracle);
}

static uint32_t
place_of(void *user, const char *topic, int32_t partition)
{
    (void)user;
    return strcmp(topic, "orders") == 0 ? (uint32_t)partition : UINT32_MAX;
}

static void
a_file_is_read_up_to_its_last_whole_line(void **state)
{
    (void)state;
    char path[] = "/tmp/oracle-XXXXXX";
    int fd = mkstemp(path);
    static const char text[] =
        "{\"t\":5,\"kind\":\"assigned\",\"topic\":\"orders\",\"partition\":0,\"generation\":3,"
        "\"position\":0,\"priority\":1,\"detail\":0,\"action\":0}\n"
        "{\"t\":6,\"kind\":\"received\",\"topic\":\"orders\",\"partition\":0,\"generation\":3,"
        "\"position\":0,\"priority\":1,\"detail\":0,\"action\":0,\"attempt\":0,\"key_hash\":9}"
        "\n"
        "{\"t\":6,\"kind\":\"received\",\"topic\":\"other\",\"partition\":0,\"generation\":9,"
        "\"position\":0,\"priority\":1,\"detail\":0,\"action\":0,\"attempt\":0,\"key_hash\":9}"
        "\n"
        "{\"t\":7,\"kind\":\"sta";
    assert_int_equal(write(fd, text, sizeof text - 1), sizeof text - 1);
    close(fd);
    struct oracle *oracle = create(ORACLE_BY_KEY);
    assert_true(oracle_read_file(oracle, path, 0, place_of, NULL));
    assert_int_equal(oracle_report(oracle)->received, 1);
    assert_int_equal(oracle_report(oracle)->violation_count, 0);
    assert_false(oracle_read_file(oracle, "/tmp/no/such/file", 0, place_of, NULL));
    oracle_destroy(oracle);
    unlink(path);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_history_that_keeps_all_promises_passes),
        cmocka_unit_test(settling_before_the_handler_returned_breaks_p1),
        cmocka_unit_test(members_of_a_task_run_together_and_in_order),
        cmocka_unit_test(what_is_behind_one_that_runs_again_is_not_settled_before_it),
        cmocka_unit_test(an_attempt_that_nobody_judged_breaks_p10),
        cmocka_unit_test(committing_beyond_the_first_unfinished_breaks_p2),
        cmocka_unit_test(a_message_that_nobody_handled_below_a_commit_is_lost),
        cmocka_unit_test(overlap_and_overtaking_of_a_key_break_p3),
        cmocka_unit_test(a_new_generation_waits_for_what_still_runs_of_the_old_one),
        cmocka_unit_test(partition_order_binds_all_keys),
        cmocka_unit_test(a_worse_start_breaks_p4_unless_the_better_one_may_not_start),
        cmocka_unit_test(ending_twice_or_never_breaks_p5),
        cmocka_unit_test(what_an_ended_ownership_does_breaks_p6),
        cmocka_unit_test(a_commit_that_goes_back_breaks_p6),
        cmocka_unit_test(attempts_that_go_down_break_p10),
        cmocka_unit_test(duplicates_are_bounded_by_what_was_lost),
        cmocka_unit_test(a_dead_member_owes_nothing_and_is_not_heard),
        cmocka_unit_test(at_a_complete_end_everything_was_handled),
        cmocka_unit_test(many_keys_keep_their_queues_while_the_table_grows),
        cmocka_unit_test(a_file_is_read_up_to_its_last_whole_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
