/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A world whose handlers take several messages at once: an engine whose tasks are in the test's
 * hand until it answers them, member by member or as a whole.
 */
#ifndef TESTS_DISPATCHER_CREW_H
#define TESTS_DISPATCHER_CREW_H

#include "tests/dispatcher/world.h"

enum { CREW_TASKS = 64 };

struct crew {
    struct lw_engine engine; /* first */
    struct world world;
    struct lw_delivery *tasks[CREW_TASKS]; /* that run */
    uint32_t count;
    uint32_t cancelled; /* tasks that the engine was told to end */
    uint32_t refuse;    /* so many submits are refused */
    bool is_stopping;
};

/* Size 3, 10 ms, many keys, a verdict each. */
struct lw_batch_options crew_batch(void);
/* A world with one topic of that many partitions and one subscription, started. */
void
crew_begin(struct crew *crew, uint32_t slots, int32_t partitions,
           const struct lw_subscription_options *options, const struct lw_batch_options *batch);
/* Frees all. */
void crew_end(struct crew *crew);
/* Positions of a running task's messages as "0,1,2"; "-" when there is none. */
const char *crew_task(const struct crew *crew, uint32_t i);
/* One letter for each verdict: o(k), r(etry), d(ead), x (drop), e(rror). Then it turns. */
void crew_answer(struct crew *crew, uint32_t i, const char *verdicts);
/* The same verdict for all. */
void crew_answer_all(struct crew *crew, uint32_t i, enum lw_verdict verdict);
/* The k-th member of a running task. */
struct lw_delivery *crew_member(const struct crew *crew, uint32_t i, uint32_t k);
/* Answers whatever runs with ok, until nothing does. */
void crew_answer_rest(struct crew *crew);

#endif
