/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conformance.h: what every engine owes the dispatcher, as one suite. An engine brings a kit; its
 * handlers obey the message's text:
 *   ok | echo | reply TEXT | reply-null | output TOPIC TEXT | dead WHY | drop WHY
 *   retry DELAY_MS WHY | error CODE WHY | wait MS COMMAND | hold | crash
 *   flaky TEXT: a retry at first, then that reply
 * `hold` answers `drop held` when it is cancelled, and never where a handler cannot be told.
 */
#ifndef TESTS_ENGINES_CONFORMANCE_H
#define TESTS_ENGINES_CONFORMANCE_H

#include "tests/engines/world.h"

struct engine_kit {
    const char *name;
    /* Creates and starts world->engine with a handler that obeys. timeout_ms 0: none. */
    void (*create)(struct world *world, int64_t timeout_ms);
    uint32_t room; /* once all of it is there; 0: any number of tasks */
    bool can_wait; /* a task may take its time while the loop turns */
    bool is_plain; /* verdict, code, reason and bytes only: no delay, outputs or nulls */
    bool
        can_end_early; /* programs: a task is ended at its timeout and at the stop's deadline */
};

/* An engine with a handler that takes several messages, and obeys ok, reply TEXT and dead WHY. */
struct batch_kit {
    const char *name;
    /* A world with such an engine, of 4 messages at most; `state` is the kit's own. */
    struct world *(*open)(const void *state, enum lw_batch_verdict verdict);
    const void *state;
    const char *all_dead; /* what makes it say dead of all, as the first; NULL: "dead bad" */
    const char *deadly;   /* what ends its process; NULL: it has none, or is ours */
};

enum { CONFORMANCE_COMMAND_MAX = 256, CONFORMANCE_HOLD_LOOK_MS = 2 };

/* The message's text as a command; payloads that are none are "echo". */
void
conformance_read(const struct lw_delivery *delivery, char command[CONFORMANCE_COMMAND_MAX]);
/* True for `wait` and `hold`. */
bool conformance_takes_time(const char *command);
/* Does what takes no time. */
enum lw_verdict conformance_obey(struct lw_delivery *delivery, const char *command);
/* Obey as a blocking handler, and as an asynchronous one (user: the world). */
enum lw_verdict conformance_handle(struct lw_delivery *delivery, void *user);
void conformance_handle_async(struct lw_delivery *delivery, void *user);
/* The same of several messages; `user` not NULL: it says one verdict, the first's, for all. */
size_t conformance_handle_batch(struct lw_delivery *const deliveries[], size_t count,
                                enum lw_verdict verdicts[], void *user);
/* A task of these messages; fails the test when there is no room for long. Returns its first. */
struct lw_delivery *
conformance_run_task(struct world *world, const char *const *texts, size_t count);
/* Runs the suite of tasks of several messages; returns the number of failures. */
int conformance_run_batches(const struct batch_kit *kit);
/* Runs the suite; returns the number of failures. */
int conformance_run(const struct engine_kit *kit);

#endif
