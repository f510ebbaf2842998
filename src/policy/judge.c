/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The judge: one small function per question. What did the handler mean (error classes)? May it
 * run again here? May it be republished? Where does it end when nothing is left? The order of
 * the questions is the meaning of `retry`: in place, then republished, then dead.
 *
 * `max_attempts` counts runs here and `max_retries` republications: neither ever counts for the
 * other. Where neither way is configured, a broker that takes messages back gets a negative ack,
 * and on any other the message runs again in place. Pure; asserts that no default is left open.
 */
#include "policy/judge.h"

#include "base/assert.h"

static struct lw_ruling
ruling(enum lw_action action, enum lw_cause cause, int64_t delay_ms)
{
    return (struct lw_ruling){ .action = action, .cause = cause, .delay_ms = delay_ms };
}

/* -1 when the handler named no delay of its own; its own wins, up to a day. */
static int64_t
own_delay_ms(const struct lw_case *item)
{
    if (item->delay_ms < 0) {
        return -1;
    }
    return item->delay_ms < LW_DELAY_MAX_MS ? item->delay_ms : LW_DELAY_MAX_MS;
}

static int64_t
delay_or_backoff_ms(const struct lw_case *item, const struct lw_backoff *backoff, uint32_t n,
                    uint64_t random)
{
    int64_t own_ms = own_delay_ms(item);
    return own_ms >= 0 ? own_ms : lw_backoff_ms(backoff, n, random);
}

/* Which class wins when several hold the code: the one that loses least. */
static int
weight(enum lw_verdict verdict)
{
    switch (verdict) {
    case LW_DEAD:
        return 4;
    case LW_RETRY:
        return 3;
    case LW_ERROR:
    case LW_PENDING:
        return 2;
    case LW_DROP:
        return 1;
    case LW_OK:
        return 0;
    }
    return 2;
}

static enum lw_verdict
classify(const struct lw_policy *policy, const struct lw_case *item)
{
    if (item->verdict == LW_PENDING) {
        return LW_ERROR;
    }
    if (item->verdict != LW_ERROR || !item->has_code) {
        return item->verdict;
    }
    const struct lw_error_class *best = NULL;
    for (size_t i = 0; i < policy->error_count; i++) {
        const struct lw_error_class *class = &policy->errors[i];
        bool has_code = class->from <= item->code && item->code <= class->to;
        if (has_code && (best == NULL || weight(class->verdict) > weight(best->verdict))) {
            best = class;
        }
    }
    return best == NULL || best->verdict == LW_PENDING ? LW_ERROR : best->verdict;
}

/* Its way ends here: a dead letter, or what the options say where there can be none. */
static struct lw_ruling
end(const struct lw_policy *policy, enum lw_cause cause)
{
    if (policy->has_dead_letter) {
        return ruling(LW_ACTION_DEAD, cause, -1);
    }
    switch (policy->on_exhausted) {
    case LW_ON_EXHAUSTED_HOLD:
        return ruling(LW_ACTION_HOLD, cause, -1);
    case LW_ON_EXHAUSTED_STOP:
        return ruling(LW_ACTION_STOP, cause, -1);
    case LW_ON_EXHAUSTED_DROP:
        break;
    }
    return ruling(LW_ACTION_DROP, cause, -1);
}

static struct lw_ruling
republish(const struct lw_policy *policy, const struct lw_case *item, enum lw_cause cause,
          uint64_t random)
{
    bool is_left = policy->max_retries < 0 || item->retries < policy->max_retries;
    if (!policy->has_retry_topic || !is_left) {
        return end(policy, cause);
    }
    uint32_t n = item->retries < UINT32_MAX ? item->retries + 1 : item->retries;
    return ruling(LW_ACTION_REPUBLISH, LW_CAUSE_NONE,
                  delay_or_backoff_ms(item, &policy->backoff, n, random));
}

static struct lw_ruling
run_here(const struct lw_policy *policy, const struct lw_case *item, enum lw_cause cause,
         uint64_t random)
{
    if (item->attempt < policy->max_attempts) {
        return ruling(
            LW_ACTION_PARK, LW_CAUSE_NONE,
            delay_or_backoff_ms(item, &policy->in_place_backoff, item->attempt, random));
    }
    return republish(policy, item, cause, random);
}

/* As in the official clients: with N redeliveries allowed it runs N + 1 times. */
static struct lw_ruling
give_back(const struct lw_policy *policy, const struct lw_case *item)
{
    if (policy->redeliveries_max > 0 && item->redeliveries >= policy->redeliveries_max) {
        return end(policy, LW_CAUSE_EXHAUSTED);
    }
    return ruling(LW_ACTION_NACK, LW_CAUSE_NONE, own_delay_ms(item));
}

/* `cause` is what is said once nothing is left to try. */
static struct lw_ruling
retry(const struct lw_policy *policy, const struct lw_case *item, enum lw_cause cause,
      uint64_t random)
{
    if (policy->is_in_place) {
        return run_here(policy, item, cause, random);
    }
    if (policy->has_retry_topic || policy->max_retries == 0) {
        return republish(policy, item, cause, random);
    }
    if (policy->can_nack) {
        return give_back(policy, item);
    }
    return run_here(policy, item, cause, random);
}

static struct lw_ruling
redeliver(const struct lw_policy *policy, const struct lw_case *item, uint64_t random)
{
    if (policy->can_nack) {
        return give_back(policy, item);
    }
    return run_here(policy, item, LW_CAUSE_EXHAUSTED, random);
}

static struct lw_ruling
error(const struct lw_policy *policy, const struct lw_case *item, uint64_t random)
{
    switch (policy->on_error) {
    case LW_ON_ERROR_REDELIVER:
        return redeliver(policy, item, random);
    case LW_ON_ERROR_RETRY:
        return retry(policy, item, LW_CAUSE_EXHAUSTED, random);
    case LW_ON_ERROR_DEAD:
        return end(policy, LW_CAUSE_HANDLER);
    case LW_ON_ERROR_DROP:
        return ruling(LW_ACTION_DROP, LW_CAUSE_HANDLER, -1);
    case LW_ON_ERROR_STOP:
        return ruling(LW_ACTION_STOP, LW_CAUSE_HANDLER, -1);
    case LW_ON_ERROR_DEFAULT:
        break;
    }
    lw_assert(policy->on_error != LW_ON_ERROR_DEFAULT);
    return ruling(LW_ACTION_HOLD, LW_CAUSE_NONE, -1);
}

struct lw_ruling
lw_policy_judge(const struct lw_policy *policy, const struct lw_case *item, uint64_t random)
{
    enum lw_verdict verdict = classify(policy, item);
    struct lw_ruling result = ruling(LW_ACTION_DONE, LW_CAUSE_NONE, -1);
    switch (verdict) {
    case LW_OK:
        break;
    case LW_DROP:
        result = ruling(LW_ACTION_DROP, LW_CAUSE_NONE, -1);
        break;
    case LW_DEAD:
        result = end(policy, LW_CAUSE_HANDLER);
        break;
    case LW_RETRY:
        result = retry(policy, item, LW_CAUSE_EXHAUSTED, random);
        break;
    case LW_ERROR:
    case LW_PENDING:
        result = error(policy, item, random);
        break;
    }
    result.verdict = verdict;
    return result;
}

bool
lw_policy_is_spent(const struct lw_policy *policy, uint32_t redeliveries)
{
    return policy->redeliveries_max > 0 && redeliveries > policy->redeliveries_max;
}

struct lw_ruling
lw_policy_judge_spent(const struct lw_policy *policy)
{
    struct lw_ruling result = end(policy, LW_CAUSE_EXHAUSTED);
    result.verdict = LW_ERROR;
    return result;
}

struct lw_ruling
lw_policy_judge_refused(const struct lw_policy *policy, bool is_reply,
                        const struct lw_case *item, uint64_t random)
{
    bool is_retry = is_reply && policy->reply_on_oversize == LW_ON_OVERSIZE_RETRY;
    struct lw_ruling result = is_retry ? retry(policy, item, LW_CAUSE_OVERSIZE, random)
                                       : end(policy, LW_CAUSE_OVERSIZE);
    result.verdict = is_retry ? LW_RETRY : LW_DEAD;
    return result;
}

struct lw_ruling
lw_policy_judge_undecodable(const struct lw_policy *policy)
{
    enum lw_action action = LW_ACTION_HOLD;
    switch (policy->on_undecodable) {
    case LW_ON_UNDECODABLE_DEAD:
        action = policy->has_dead_letter ? LW_ACTION_DEAD : LW_ACTION_HOLD;
        break;
    case LW_ON_UNDECODABLE_HOLD:
        break;
    case LW_ON_UNDECODABLE_DROP:
        action = LW_ACTION_DROP;
        break;
    case LW_ON_UNDECODABLE_STOP:
        action = LW_ACTION_STOP;
        break;
    }
    struct lw_ruling result = ruling(action, LW_CAUSE_UNDECODABLE, -1);
    result.verdict = LW_DEAD;
    return result;
}

const char *
lw_cause_name(enum lw_cause cause)
{
    switch (cause) {
    case LW_CAUSE_NONE:
        return "none";
    case LW_CAUSE_HANDLER:
        return "handler";
    case LW_CAUSE_EXHAUSTED:
        return "retries_exhausted";
    case LW_CAUSE_OVERSIZE:
        return "oversize";
    case LW_CAUSE_UNDELIVERABLE:
        return "undeliverable";
    case LW_CAUSE_UNDECODABLE:
        return "undecodable";
    }
    return "none";
}
