/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is owed after a handler's verdict: (verdict, attempt, retries, policy) -> ruling. Pure.
 * Error classes map codes first (dead beats retry beats error); then `retry` runs in place while
 * attempts are left, is republished while retries are left, and is dead after that. What would be
 * given back to the broker is dead when it was redelivered often enough.
 */
#ifndef LW_POLICY_JUDGE_H
#define LW_POLICY_JUDGE_H

#include <stdbool.h>
#include <stdint.h>

#include <laneway/laneway.h>

#include "policy/backoff.h"

/* One subscription's failure policy, every default resolved for its broker. */
struct lw_policy {
    bool is_in_place;
    uint32_t max_attempts;
    struct lw_backoff in_place_backoff;
    bool has_retry_topic;
    int64_t max_retries; /* -1 unlimited */
    struct lw_backoff backoff;
    bool can_nack;             /* the broker takes a message back by itself */
    uint32_t redeliveries_max; /* after so many it is not given back any more; 0: always */
    enum lw_on_error on_error; /* never DEFAULT */
    enum lw_on_exhausted on_exhausted;
    enum lw_on_undecodable on_undecodable;
    bool has_dead_letter;
    enum lw_on_oversize reply_on_oversize;
    const struct lw_error_class *errors;
    size_t error_count;
};

enum lw_action {
    LW_ACTION_DONE,      /* publish replies and outputs, then settle as done */
    LW_ACTION_PARK,      /* again here after delay_ms */
    LW_ACTION_REPUBLISH, /* a retry copy with delay_ms, then settle */
    LW_ACTION_DEAD,      /* a dead letter, then settle */
    LW_ACTION_DROP,      /* settle, counted as dropped */
    LW_ACTION_NACK,      /* the broker redelivers; delay_ms -1: its default */
    LW_ACTION_HOLD,      /* keep it unfinished and say so */
    LW_ACTION_STOP       /* stop the service: exit 79; the message stays unfinished */
};

enum lw_cause {
    LW_CAUSE_NONE,
    LW_CAUSE_HANDLER,   /* the handler said dead, or a class said so */
    LW_CAUSE_EXHAUSTED, /* attempts, retries or redeliveries ran out */
    LW_CAUSE_OVERSIZE,  /* a reply, output or copy that the target refuses for its size */
    LW_CAUSE_UNDELIVERABLE,
    LW_CAUSE_UNDECODABLE /* no handler can be given it */
};

struct lw_case {
    enum lw_verdict verdict;
    bool has_code;
    int code;
    int64_t delay_ms;      /* the handler's own, -1 none */
    uint32_t attempt;      /* this run, from 1; uncharged runs do not count */
    uint32_t retries;      /* republications so far */
    uint32_t redeliveries; /* the broker's count */
};

struct lw_ruling {
    enum lw_action action;
    enum lw_cause cause;
    enum lw_verdict verdict; /* after error classes */
    int64_t delay_ms;
};

/* `random` is any 64-bit random number, used for jitter only. */
struct lw_ruling
lw_policy_judge(const struct lw_policy *policy, const struct lw_case *item, uint64_t random);
/* Redelivered more often than allowed, so that its last run never ended: it does not run again. */
bool lw_policy_is_spent(const struct lw_policy *policy, uint32_t redeliveries);
struct lw_ruling lw_policy_judge_spent(const struct lw_policy *policy);
/* The target refused a publication for the message's own fault. */
struct lw_ruling lw_policy_judge_refused(const struct lw_policy *policy, bool is_reply,
                                         const struct lw_case *item, uint64_t random);
/* The message cannot be read. */
struct lw_ruling lw_policy_judge_undecodable(const struct lw_policy *policy);
const char *lw_cause_name(enum lw_cause cause);

#endif
