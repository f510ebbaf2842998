/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The judge, as tables: every way of retrying with and without a destination, every on_error and
 * on_exhausted, error classes that overlap, delays of the handler's own, and publications that a
 * target refuses. P10: attempts and retries are only read here, and neither counts for the other.
 */
#include "tests/support/test.h"

#include "policy/judge.h"

#define DAY INT64_C(86400000)

/* What Kafka has without any option: in place, three runs, and a dead letter. */
static const struct lw_policy KAFKA = {
    .is_in_place = true,
    .max_attempts = 3,
    .in_place_backoff = { 1000, 2, 30000, 0 },
    .max_retries = -1,
    .backoff = { 1000, 2, 300000, 0 },
    .on_error = LW_ON_ERROR_RETRY,
    .on_exhausted = LW_ON_EXHAUSTED_DROP,
    .has_dead_letter = true,
};

/* What Pulsar has without any option: a negative ack. */
static struct lw_policy
pulsar(void)
{
    struct lw_policy policy = KAFKA;
    policy.is_in_place = false;
    policy.can_nack = true;
    policy.on_error = LW_ON_ERROR_REDELIVER;
    return policy;
}

static struct lw_policy
republishing(int64_t max_retries)
{
    struct lw_policy policy = KAFKA;
    policy.is_in_place = false;
    policy.has_retry_topic = true;
    policy.max_retries = max_retries;
    return policy;
}

static struct lw_case
said(enum lw_verdict verdict, uint32_t attempt, uint32_t retries)
{
    return (struct lw_case){
        .verdict = verdict, .delay_ms = -1, .attempt = attempt, .retries = retries
    };
}

static struct lw_ruling
judge(const struct lw_policy *policy, struct lw_case item)
{
    return lw_policy_judge(policy, &item, 0);
}

static void
expect(struct lw_ruling ruling, enum lw_action action, enum lw_cause cause, int64_t delay_ms)
{
    assert_int_equal(ruling.action, action);
    assert_int_equal(ruling.cause, cause);
    assert_int_equal(ruling.delay_ms, delay_ms);
}

/* -- Plain verdicts ------------------------------------------------------------------------- */

static void
ok_is_done(void **state)
{
    (void)state;
    struct lw_ruling ruling = judge(&KAFKA, said(LW_OK, 3, 0));
    expect(ruling, LW_ACTION_DONE, LW_CAUSE_NONE, -1);
    assert_int_equal(ruling.verdict, LW_OK);
}

static void
drop_is_dropped_and_no_failure(void **state)
{
    (void)state;
    struct lw_ruling ruling = judge(&KAFKA, said(LW_DROP, 1, 0));
    expect(ruling, LW_ACTION_DROP, LW_CAUSE_NONE, -1);
}

static void
dead_skips_the_attempts_and_retries_that_are_left(void **state)
{
    (void)state;
    struct lw_policy both = republishing(-1);
    both.is_in_place = true;
    expect(judge(&KAFKA, said(LW_DEAD, 1, 0)), LW_ACTION_DEAD, LW_CAUSE_HANDLER, -1);
    expect(judge(&both, said(LW_DEAD, 1, 0)), LW_ACTION_DEAD, LW_CAUSE_HANDLER, -1);
    struct lw_policy nack = pulsar();
    expect(judge(&nack, said(LW_DEAD, 1, 0)), LW_ACTION_DEAD, LW_CAUSE_HANDLER, -1);
}

static void
pending_as_an_answer_is_an_error(void **state)
{
    (void)state;
    struct lw_ruling ruling = judge(&KAFKA, said(LW_PENDING, 1, 0));
    expect(ruling, LW_ACTION_PARK, LW_CAUSE_NONE, 1000);
    assert_int_equal(ruling.verdict, LW_ERROR);
}

/* -- Ways of retrying ----------------------------------------------------------------------- */

static void
in_place_runs_three_times_in_all(void **state)
{
    (void)state;
    expect(judge(&KAFKA, said(LW_RETRY, 1, 0)), LW_ACTION_PARK, LW_CAUSE_NONE, 1000);
    expect(judge(&KAFKA, said(LW_RETRY, 2, 0)), LW_ACTION_PARK, LW_CAUSE_NONE, 2000);
    expect(judge(&KAFKA, said(LW_RETRY, 3, 0)), LW_ACTION_DEAD, LW_CAUSE_EXHAUSTED, -1);
}

static void
one_attempt_means_no_retry_in_place(void **state)
{
    (void)state;
    struct lw_policy policy = KAFKA;
    policy.max_attempts = 1;
    expect(judge(&policy, said(LW_RETRY, 1, 0)), LW_ACTION_DEAD, LW_CAUSE_EXHAUSTED, -1);
    policy.max_attempts = 0;
    expect(judge(&policy, said(LW_RETRY, 1, 0)), LW_ACTION_DEAD, LW_CAUSE_EXHAUSTED, -1);
}

static void
failure_after_the_last_republication_is_dead(void **state)
{
    (void)state;
    static const int64_t numbers[] = { 1, 5 };
    for (size_t i = 0; i < 2; i++) {
        struct lw_policy policy = republishing(numbers[i]);
        for (uint32_t retries = 0; retries < numbers[i]; retries++) {
            expect(judge(&policy, said(LW_RETRY, 1, retries)), LW_ACTION_REPUBLISH,
                   LW_CAUSE_NONE, 1000 << retries);
        }
        expect(judge(&policy, said(LW_RETRY, 1, (uint32_t)numbers[i])), LW_ACTION_DEAD,
               LW_CAUSE_EXHAUSTED, -1);
    }
}

static void
no_max_retries_means_without_end(void **state)
{
    (void)state;
    struct lw_policy policy = republishing(-1);
    expect(judge(&policy, said(LW_RETRY, 1, 1000000)), LW_ACTION_REPUBLISH, LW_CAUSE_NONE,
           300000);
    expect(judge(&policy, said(LW_RETRY, 1, UINT32_MAX)), LW_ACTION_REPUBLISH, LW_CAUSE_NONE,
           300000);
}

static void
no_retries_means_straight_to_the_dead_letter(void **state)
{
    (void)state;
    struct lw_policy policy = republishing(0);
    expect(judge(&policy, said(LW_RETRY, 1, 0)), LW_ACTION_DEAD, LW_CAUSE_EXHAUSTED, -1);
    struct lw_policy nack = pulsar();
    nack.max_retries = 0;
    expect(judge(&nack, said(LW_RETRY, 1, 0)), LW_ACTION_DEAD, LW_CAUSE_EXHAUSTED, -1);
}

static void
both_ways_run_here_first_and_are_republished_then(void **state)
{
    (void)state;
    struct lw_policy policy = republishing(2);
    policy.is_in_place = true;
    expect(judge(&policy, said(LW_RETRY, 1, 0)), LW_ACTION_PARK, LW_CAUSE_NONE, 1000);
    expect(judge(&policy, said(LW_RETRY, 3, 0)), LW_ACTION_REPUBLISH, LW_CAUSE_NONE, 1000);
    expect(judge(&policy, said(LW_RETRY, 2, 1)), LW_ACTION_PARK, LW_CAUSE_NONE, 2000);
    expect(judge(&policy, said(LW_RETRY, 3, 1)), LW_ACTION_REPUBLISH, LW_CAUSE_NONE, 2000);
    expect(judge(&policy, said(LW_RETRY, 3, 2)), LW_ACTION_DEAD, LW_CAUSE_EXHAUSTED, -1);
}

static void
max_retries_never_counts_runs_in_place(void **state)
{
    (void)state;
    struct lw_policy policy = KAFKA;
    policy.max_retries = 0;
    expect(judge(&policy, said(LW_RETRY, 1, 0)), LW_ACTION_PARK, LW_CAUSE_NONE, 1000);
    policy.max_retries = 5;
    expect(judge(&policy, said(LW_RETRY, 3, 0)), LW_ACTION_DEAD, LW_CAUSE_EXHAUSTED, -1);
}

static void
neither_way_is_a_negative_ack_where_there_is_one(void **state)
{
    (void)state;
    struct lw_policy policy = pulsar();
    expect(judge(&policy, said(LW_RETRY, 1, 0)), LW_ACTION_NACK, LW_CAUSE_NONE, -1);
    expect(judge(&policy, said(LW_RETRY, 99, 0)), LW_ACTION_NACK, LW_CAUSE_NONE, -1);
}

static void
neither_way_runs_in_place_where_there_is_no_negative_ack(void **state)
{
    (void)state;
    struct lw_policy policy = KAFKA;
    policy.is_in_place = false;
    expect(judge(&policy, said(LW_RETRY, 2, 0)), LW_ACTION_PARK, LW_CAUSE_NONE, 2000);
    expect(judge(&policy, said(LW_RETRY, 3, 0)), LW_ACTION_DEAD, LW_CAUSE_EXHAUSTED, -1);
}

static void
jitter_comes_from_the_number_given(void **state)
{
    (void)state;
    struct lw_policy policy = KAFKA;
    struct lw_case item = said(LW_RETRY, 1, 0);
    policy.in_place_backoff.jitter_ms = 200;
    assert_int_equal(lw_policy_judge(&policy, &item, 0).delay_ms, 1000);
    assert_int_equal(lw_policy_judge(&policy, &item, 200).delay_ms, 1200);
    assert_int_equal(lw_policy_judge(&policy, &item, 201).delay_ms, 1000);
}

/* -- The handler's own delay ------------------------------------------------------------------ */

static void
own_delay_wins_over_the_backoff_up_to_a_day(void **state)
{
    (void)state;
    static const int64_t cases[][2] = { { 0, 0 },     { 5, 5 },         { 3600000, 3600000 },
                                        { DAY, DAY }, { DAY + 1, DAY }, { INT64_MAX, DAY } };
    struct lw_policy policies[] = { KAFKA, republishing(3), pulsar() };
    static const enum lw_action actions[] = { LW_ACTION_PARK, LW_ACTION_REPUBLISH,
                                              LW_ACTION_NACK };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lw_case item = said(LW_RETRY, 1, 0);
        item.delay_ms = cases[i][0];
        for (size_t j = 0; j < 3; j++) {
            expect(judge(&policies[j], item), actions[j], LW_CAUSE_NONE, cases[i][1]);
        }
    }
}

static void
own_delay_does_not_buy_another_attempt(void **state)
{
    (void)state;
    struct lw_case item = said(LW_RETRY, 3, 0);
    item.delay_ms = 10;
    expect(judge(&KAFKA, item), LW_ACTION_DEAD, LW_CAUSE_EXHAUSTED, -1);
}

/* -- Errors -------------------------------------------------------------------------------------- */

static void
error_follows_on_error(void **state)
{
    (void)state;
    static const struct {
        enum lw_on_error on_error;
        enum lw_action action;
        enum lw_cause cause;
        int64_t delay_ms;
    } cases[] = {
        { LW_ON_ERROR_RETRY, LW_ACTION_PARK, LW_CAUSE_NONE, 1000 },
        { LW_ON_ERROR_REDELIVER, LW_ACTION_PARK, LW_CAUSE_NONE, 1000 },
        { LW_ON_ERROR_DEAD, LW_ACTION_DEAD, LW_CAUSE_HANDLER, -1 },
        { LW_ON_ERROR_DROP, LW_ACTION_DROP, LW_CAUSE_HANDLER, -1 },
        { LW_ON_ERROR_STOP, LW_ACTION_STOP, LW_CAUSE_HANDLER, -1 },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lw_policy policy = KAFKA;
        policy.on_error = cases[i].on_error;
        struct lw_ruling ruling = judge(&policy, said(LW_ERROR, 1, 0));
        expect(ruling, cases[i].action, cases[i].cause, cases[i].delay_ms);
        assert_int_equal(ruling.verdict, LW_ERROR);
    }
}

static void
redeliver_is_a_negative_ack_where_there_is_one(void **state)
{
    (void)state;
    struct lw_policy policy = republishing(3);
    policy.can_nack = true;
    policy.on_error = LW_ON_ERROR_REDELIVER;
    expect(judge(&policy, said(LW_ERROR, 1, 0)), LW_ACTION_NACK, LW_CAUSE_NONE, -1);
    policy.is_in_place = true;
    expect(judge(&policy, said(LW_ERROR, 1, 0)), LW_ACTION_NACK, LW_CAUSE_NONE, -1);
}

static struct lw_case
redelivered(enum lw_verdict verdict, uint32_t redeliveries)
{
    struct lw_case item = said(verdict, 1, 0);
    item.redeliveries = redeliveries;
    return item;
}

static void
what_is_given_back_too_often_is_dead(void **state)
{
    (void)state;
    static const enum lw_verdict verdicts[] = { LW_ERROR, LW_RETRY };
    struct lw_policy policy = pulsar();
    policy.redeliveries_max = 2;
    for (size_t i = 0; i < 2; i++) {
        expect(judge(&policy, redelivered(verdicts[i], 1)), LW_ACTION_NACK, LW_CAUSE_NONE, -1);
        expect(judge(&policy, redelivered(verdicts[i], 2)), LW_ACTION_DEAD, LW_CAUSE_EXHAUSTED,
               -1);
        expect(judge(&policy, redelivered(verdicts[i], UINT32_MAX)), LW_ACTION_DEAD,
               LW_CAUSE_EXHAUSTED, -1);
    }
    expect(judge(&policy, redelivered(LW_OK, 5)), LW_ACTION_DONE, LW_CAUSE_NONE, -1);
    policy.redeliveries_max = 0;
    expect(judge(&policy, redelivered(LW_ERROR, UINT32_MAX)), LW_ACTION_NACK, LW_CAUSE_NONE,
           -1);
}

static void
redeliveries_do_not_count_for_a_retry_topic(void **state)
{
    (void)state;
    struct lw_policy policy = republishing(3);
    policy.can_nack = true;
    policy.redeliveries_max = 1;
    expect(judge(&policy, redelivered(LW_RETRY, 7)), LW_ACTION_REPUBLISH, LW_CAUSE_NONE, 1000);
}

static void
beyond_the_last_redelivery_a_message_is_spent(void **state)
{
    (void)state;
    struct lw_policy policy = pulsar();
    assert_false(lw_policy_is_spent(&policy, UINT32_MAX));
    policy.redeliveries_max = 2;
    assert_false(lw_policy_is_spent(&policy, 2));
    assert_true(lw_policy_is_spent(&policy, 3));
    expect(lw_policy_judge_spent(&policy), LW_ACTION_DEAD, LW_CAUSE_EXHAUSTED, -1);
    policy.has_dead_letter = false;
    policy.on_exhausted = LW_ON_EXHAUSTED_HOLD;
    expect(lw_policy_judge_spent(&policy), LW_ACTION_HOLD, LW_CAUSE_EXHAUSTED, -1);
}

static void
redeliver_without_negative_ack_runs_in_place_and_ends(void **state)
{
    (void)state;
    struct lw_policy policy = KAFKA;
    policy.is_in_place = false;
    policy.on_error = LW_ON_ERROR_REDELIVER;
    expect(judge(&policy, said(LW_ERROR, 2, 0)), LW_ACTION_PARK, LW_CAUSE_NONE, 2000);
    expect(judge(&policy, said(LW_ERROR, 3, 0)), LW_ACTION_DEAD, LW_CAUSE_EXHAUSTED, -1);
    policy.has_retry_topic = true;
    expect(judge(&policy, said(LW_ERROR, 3, 0)), LW_ACTION_REPUBLISH, LW_CAUSE_NONE, 1000);
}

static void
error_that_means_retry_uses_the_retry_topic(void **state)
{
    (void)state;
    struct lw_policy policy = republishing(1);
    expect(judge(&policy, said(LW_ERROR, 1, 0)), LW_ACTION_REPUBLISH, LW_CAUSE_NONE, 1000);
    expect(judge(&policy, said(LW_ERROR, 1, 1)), LW_ACTION_DEAD, LW_CAUSE_EXHAUSTED, -1);
}

/* -- Error classes ----------------------------------------------------------------------------- */

static struct lw_case
coded(int code)
{
    struct lw_case item = said(LW_ERROR, 1, 0);
    item.has_code = true;
    item.code = code;
    return item;
}

static void
dead_beats_retry_beats_error_where_classes_overlap(void **state)
{
    (void)state;
    static const struct lw_error_class classes[] = { { 1, 9, LW_ERROR }, { 2, 8, LW_RETRY },
                                                     { 3, 7, LW_DEAD },  { 4, 6, LW_RETRY },
                                                     { 9, 10, LW_DROP }, { 10, 10, LW_OK } };
    static const enum lw_verdict expected[] = { LW_ERROR, LW_ERROR, LW_RETRY, LW_DEAD,
                                                LW_DEAD,  LW_DEAD,  LW_DEAD,  LW_DEAD,
                                                LW_RETRY, LW_ERROR, LW_DROP,  LW_ERROR };
    struct lw_policy policy = KAFKA;
    policy.errors = classes;
    policy.error_count = sizeof(classes) / sizeof(classes[0]);
    for (int code = 0; code < 12; code++) {
        assert_int_equal(judge(&policy, coded(code)).verdict, expected[code]);
    }
}

static void
order_of_the_classes_does_not_matter(void **state)
{
    (void)state;
    static const struct lw_error_class classes[] = { { 3, 3, LW_DEAD }, { 3, 3, LW_RETRY } };
    static const struct lw_error_class reversed[] = { { 3, 3, LW_RETRY }, { 3, 3, LW_DEAD } };
    struct lw_policy policy = KAFKA;
    policy.error_count = 2;
    policy.errors = classes;
    assert_int_equal(judge(&policy, coded(3)).action, LW_ACTION_DEAD);
    policy.errors = reversed;
    assert_int_equal(judge(&policy, coded(3)).action, LW_ACTION_DEAD);
}

static void
class_decides_whatever_on_error_says(void **state)
{
    (void)state;
    static const struct lw_error_class classes[] = { { 75, 75, LW_RETRY }, { 0, 0, LW_OK } };
    struct lw_policy policy = KAFKA;
    policy.on_error = LW_ON_ERROR_STOP;
    policy.errors = classes;
    policy.error_count = 2;
    expect(judge(&policy, coded(75)), LW_ACTION_PARK, LW_CAUSE_NONE, 1000);
    expect(judge(&policy, coded(0)), LW_ACTION_DONE, LW_CAUSE_NONE, -1);
    expect(judge(&policy, coded(-1)), LW_ACTION_STOP, LW_CAUSE_HANDLER, -1);
}

static void
class_needs_a_code_and_an_error(void **state)
{
    (void)state;
    static const struct lw_error_class classes[] = { { INT32_MIN, INT32_MAX, LW_DEAD } };
    struct lw_policy policy = KAFKA;
    policy.errors = classes;
    policy.error_count = 1;
    assert_int_equal(judge(&policy, said(LW_ERROR, 1, 0)).action, LW_ACTION_PARK);
    struct lw_case item = coded(5);
    item.verdict = LW_OK;
    assert_int_equal(judge(&policy, item).action, LW_ACTION_DONE);
    assert_int_equal(judge(&policy, coded(INT32_MIN)).action, LW_ACTION_DEAD);
    assert_int_equal(judge(&policy, coded(INT32_MAX)).action, LW_ACTION_DEAD);
}

/* -- Without a destination -------------------------------------------------------------------- */

static void
without_dead_letter_on_exhausted_decides(void **state)
{
    (void)state;
    static const struct {
        enum lw_on_exhausted on_exhausted;
        enum lw_action action;
    } cases[] = { { LW_ON_EXHAUSTED_DROP, LW_ACTION_DROP },
                  { LW_ON_EXHAUSTED_HOLD, LW_ACTION_HOLD },
                  { LW_ON_EXHAUSTED_STOP, LW_ACTION_STOP } };
    for (size_t i = 0; i < 3; i++) {
        struct lw_policy policy = KAFKA;
        policy.has_dead_letter = false;
        policy.on_exhausted = cases[i].on_exhausted;
        expect(judge(&policy, said(LW_RETRY, 3, 0)), cases[i].action, LW_CAUSE_EXHAUSTED, -1);
        expect(judge(&policy, said(LW_DEAD, 1, 0)), cases[i].action, LW_CAUSE_HANDLER, -1);
        policy.has_dead_letter = true;
        expect(judge(&policy, said(LW_RETRY, 3, 0)), LW_ACTION_DEAD, LW_CAUSE_EXHAUSTED, -1);
    }
}

static void
what_cannot_be_read_is_a_dead_letter_or_as_configured(void **state)
{
    (void)state;
    static const struct {
        enum lw_on_undecodable on_undecodable;
        bool has_dead_letter;
        enum lw_action action;
    } cases[] = { { LW_ON_UNDECODABLE_DEAD, true, LW_ACTION_DEAD },
                  { LW_ON_UNDECODABLE_DEAD, false, LW_ACTION_HOLD },
                  { LW_ON_UNDECODABLE_HOLD, true, LW_ACTION_HOLD },
                  { LW_ON_UNDECODABLE_DROP, true, LW_ACTION_DROP },
                  { LW_ON_UNDECODABLE_STOP, true, LW_ACTION_STOP } };
    for (size_t i = 0; i < 5; i++) {
        struct lw_policy policy = KAFKA;
        policy.on_undecodable = cases[i].on_undecodable;
        policy.has_dead_letter = cases[i].has_dead_letter;
        expect(lw_policy_judge_undecodable(&policy), cases[i].action, LW_CAUSE_UNDECODABLE, -1);
    }
}

/* -- Refused publications ---------------------------------------------------------------------- */

static void
refused_publication_is_dead_and_never_looped(void **state)
{
    (void)state;
    struct lw_case item = said(LW_OK, 1, 0);
    struct lw_ruling ruling = lw_policy_judge_refused(&KAFKA, false, &item, 0);
    expect(ruling, LW_ACTION_DEAD, LW_CAUSE_OVERSIZE, -1);
    assert_int_equal(ruling.verdict, LW_DEAD);
    expect(lw_policy_judge_refused(&KAFKA, true, &item, 0), LW_ACTION_DEAD, LW_CAUSE_OVERSIZE,
           -1);
}

static void
refused_reply_may_be_retried_until_attempts_run_out(void **state)
{
    (void)state;
    struct lw_policy policy = KAFKA;
    policy.reply_on_oversize = LW_ON_OVERSIZE_RETRY;
    struct lw_case item = said(LW_OK, 2, 0);
    struct lw_ruling ruling = lw_policy_judge_refused(&policy, true, &item, 0);
    expect(ruling, LW_ACTION_PARK, LW_CAUSE_NONE, 2000);
    assert_int_equal(ruling.verdict, LW_RETRY);
    item.attempt = 3;
    expect(lw_policy_judge_refused(&policy, true, &item, 0), LW_ACTION_DEAD, LW_CAUSE_OVERSIZE,
           -1);
    item.attempt = 1;
    expect(lw_policy_judge_refused(&policy, false, &item, 0), LW_ACTION_DEAD, LW_CAUSE_OVERSIZE,
           -1);
}

static void
refused_publication_without_dead_letter_follows_on_exhausted(void **state)
{
    (void)state;
    struct lw_policy policy = KAFKA;
    struct lw_case item = said(LW_OK, 1, 0);
    policy.has_dead_letter = false;
    policy.on_exhausted = LW_ON_EXHAUSTED_HOLD;
    expect(lw_policy_judge_refused(&policy, true, &item, 0), LW_ACTION_HOLD, LW_CAUSE_OVERSIZE,
           -1);
}

static void
causes_have_bounded_names(void **state)
{
    (void)state;
    assert_string_equal(lw_cause_name(LW_CAUSE_NONE), "none");
    assert_string_equal(lw_cause_name(LW_CAUSE_HANDLER), "handler");
    assert_string_equal(lw_cause_name(LW_CAUSE_EXHAUSTED), "retries_exhausted");
    assert_string_equal(lw_cause_name(LW_CAUSE_OVERSIZE), "oversize");
    assert_string_equal(lw_cause_name(LW_CAUSE_UNDELIVERABLE), "undeliverable");
}

/* -- Property: nothing is lost without a reason, whatever the options -------------------------- */

static struct lw_policy
policy_of(uint32_t bits)
{
    struct lw_policy policy = KAFKA;
    policy.is_in_place = (bits & 1) != 0;
    policy.has_retry_topic = (bits & 2) != 0;
    policy.can_nack = (bits & 4) != 0;
    policy.has_dead_letter = (bits & 8) != 0;
    policy.max_retries = (int64_t)(bits >> 4 & 3) - 1;
    policy.on_error = (enum lw_on_error)(1 + (bits >> 6) % 5);
    policy.on_exhausted = LW_ON_EXHAUSTED_HOLD;
    return policy;
}

static void
retry_and_dead_are_never_settled_silently(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 64 * 5; bits++) {
        struct lw_policy policy = policy_of(bits);
        for (uint32_t attempt = 1; attempt < 5; attempt++) {
            for (uint32_t retries = 0; retries < 4; retries++) {
                struct lw_ruling retry = judge(&policy, said(LW_RETRY, attempt, retries));
                struct lw_ruling dead = judge(&policy, said(LW_DEAD, attempt, retries));
                assert_true(retry.action != LW_ACTION_DONE && retry.action != LW_ACTION_DROP);
                assert_int_equal(dead.action,
                                 policy.has_dead_letter ? LW_ACTION_DEAD : LW_ACTION_HOLD);
                assert_true(retry.action != LW_ACTION_NACK || policy.can_nack);
                assert_true(retry.action != LW_ACTION_REPUBLISH || policy.has_retry_topic);
                assert_true(retry.action != LW_ACTION_PARK || attempt < policy.max_attempts);
            }
        }
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ok_is_done),
        cmocka_unit_test(drop_is_dropped_and_no_failure),
        cmocka_unit_test(dead_skips_the_attempts_and_retries_that_are_left),
        cmocka_unit_test(pending_as_an_answer_is_an_error),
        cmocka_unit_test(in_place_runs_three_times_in_all),
        cmocka_unit_test(one_attempt_means_no_retry_in_place),
        cmocka_unit_test(failure_after_the_last_republication_is_dead),
        cmocka_unit_test(no_max_retries_means_without_end),
        cmocka_unit_test(no_retries_means_straight_to_the_dead_letter),
        cmocka_unit_test(both_ways_run_here_first_and_are_republished_then),
        cmocka_unit_test(max_retries_never_counts_runs_in_place),
        cmocka_unit_test(neither_way_is_a_negative_ack_where_there_is_one),
        cmocka_unit_test(neither_way_runs_in_place_where_there_is_no_negative_ack),
        cmocka_unit_test(jitter_comes_from_the_number_given),
        cmocka_unit_test(own_delay_wins_over_the_backoff_up_to_a_day),
        cmocka_unit_test(own_delay_does_not_buy_another_attempt),
        cmocka_unit_test(error_follows_on_error),
        cmocka_unit_test(redeliver_is_a_negative_ack_where_there_is_one),
        cmocka_unit_test(redeliver_without_negative_ack_runs_in_place_and_ends),
        cmocka_unit_test(what_is_given_back_too_often_is_dead),
        cmocka_unit_test(redeliveries_do_not_count_for_a_retry_topic),
        cmocka_unit_test(beyond_the_last_redelivery_a_message_is_spent),
        cmocka_unit_test(error_that_means_retry_uses_the_retry_topic),
        cmocka_unit_test(dead_beats_retry_beats_error_where_classes_overlap),
        cmocka_unit_test(order_of_the_classes_does_not_matter),
        cmocka_unit_test(class_decides_whatever_on_error_says),
        cmocka_unit_test(class_needs_a_code_and_an_error),
        cmocka_unit_test(without_dead_letter_on_exhausted_decides),
        cmocka_unit_test(what_cannot_be_read_is_a_dead_letter_or_as_configured),
        cmocka_unit_test(refused_publication_is_dead_and_never_looped),
        cmocka_unit_test(refused_reply_may_be_retried_until_attempts_run_out),
        cmocka_unit_test(refused_publication_without_dead_letter_follows_on_exhausted),
        cmocka_unit_test(causes_have_bounded_names),
        cmocka_unit_test(retry_and_dead_are_never_settled_silently),
    };
    return cmocka_run_group_tests_name("policy.judge", tests, NULL, NULL);
}
