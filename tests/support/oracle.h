/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The oracle: reads an append-only history, event by event or from a file of JSON lines, and
 * judges the promises P1 to P6 and P10 and the bound of duplicates. The same judge for the
 * simulator, for brokers in other processes and for real ones.
 *
 * Order is judged per ownership (member, place, generation): starts of a key ascend and never
 * overlap; a new ownership may start again at the last commit; runs that return after the end of
 * their ownership are counted as stale, not as violations. Members of one task run together, in
 * order; one behind another that is to run again is not settled before that one. A place is a
 * partition as one subscription reads it. Events of one member come in the order in which they
 * happened.
 */
#ifndef TESTS_SUPPORT_ORACLE_H
#define TESTS_SUPPORT_ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dispatcher/history.h"

enum { ORACLE_MEMBERS_MAX = 24, ORACLE_TEXT_MAX = 512 };

enum oracle_promise {
    ORACLE_P1,   /* nothing is settled or committed before its effects */
    ORACLE_P2,   /* nothing at or above the first unfinished position is committed */
    ORACLE_P3,   /* order and no overlap */
    ORACLE_P4,   /* strict priority */
    ORACLE_P5,   /* each delivery ends exactly once */
    ORACLE_P6,   /* what is over changes nothing */
    ORACLE_P10,  /* attempts never go down */
    ORACLE_LOST, /* a message that nobody handled, though it was committed or all is over */
    ORACLE_DUPLICATES, /* more than losses of ownership explain */
    ORACLE_PROMISES
};

enum oracle_order { ORACLE_UNORDERED, ORACLE_BY_KEY, ORACLE_BY_PARTITION };

struct oracle_subscription {
    int32_t priority;
    enum oracle_order order;
    bool is_keyless_loose; /* messages without a key have no order */
    bool is_individual;    /* settled one by one: no positions are committed */
    bool has_keys_apart;   /* by key, and a key is at one member at a time (Key_Shared) */
    uint32_t concurrency;  /* 0: none of its own */
};

struct oracle_event {
    enum lw_history_kind kind;
    uint64_t now;
    uint32_t member;
    uint32_t place;
    uint64_t generation;
    int64_t position;
    uint64_t key_hash; /* 0: no key */
    uint32_t attempt;
    uint32_t task; /* of a start: which task it is a member of, 0: alone */
    int detail;
    int action;
};

struct oracle_report {
    uint64_t violations[ORACLE_PROMISES];
    uint64_t violation_count;
    char first[ORACLE_TEXT_MAX]; /* the first violation, for a person */
    uint64_t received;
    uint64_t started;
    uint64_t settled;
    uint64_t duplicates;     /* received again in a later ownership */
    uint64_t duplicates_max; /* what the losses of ownership allow */
    uint64_t stale;          /* returned after the end of their ownership */
    uint64_t dropped;
};

struct oracle;

struct oracle *oracle_create(void);
void oracle_destroy(struct oracle *oracle);
uint32_t
oracle_add_subscription(struct oracle *oracle, const struct oracle_subscription *subscription);
uint32_t oracle_add_place(struct oracle *oracle, uint32_t subscription);
/* What is received there goes into the lanes of `other` (a retry tier and its source). */
void oracle_share_lanes(struct oracle *oracle, uint32_t place, uint32_t other);
/* Asked only where P4 looks broken: may that subscription not start anything now (paused, its
 * engine full or down)? */
void oracle_set_blocked(struct oracle *oracle,
                        bool (*is_blocked)(void *user, uint32_t member, uint32_t subscription),
                        void *user);

/* A message exists there; without it a position counts as a hole. */
void oracle_produced(struct oracle *oracle, uint32_t place, int64_t position);
/* It was deleted: nobody need handle it. */
void oracle_deleted(struct oracle *oracle, uint32_t place, int64_t position);
void oracle_record(struct oracle *oracle, const struct oracle_event *event);
/* The process of a member died now: what it had is lost, nothing of it counts any more. */
void oracle_died(struct oracle *oracle, uint32_t member);
/* The broker itself has that committed now, whoever sent it. */
void oracle_committed(struct oracle *oracle, uint32_t place, int64_t position);
/* Individually, what the broker itself sees: it gives one out, a member acks or nacks one. */
void oracle_given(struct oracle *oracle, uint32_t place, int64_t position);
void oracle_acked(struct oracle *oracle, uint32_t place, int64_t position);
void oracle_nacked(struct oracle *oracle, uint32_t place, int64_t position);
/* So many messages more may be duplicates (acks that the test lost). */
void oracle_allow_duplicates(struct oracle *oracle, uint64_t count);
/* The end: nothing is open; with is_complete every produced message was handled. */
void oracle_finish(struct oracle *oracle, bool is_complete);
/* A violation that the caller found by itself. */
void oracle_violation(struct oracle *oracle, enum oracle_promise promise, const char *format,
                      ...) __attribute__((format(printf, 3, 4)));
bool oracle_is_done(const struct oracle *oracle, uint32_t place, int64_t position);
const struct oracle_report *oracle_report(const struct oracle *oracle);
const char *oracle_promise_name(enum oracle_promise promise);

/* Maps a topic and partition of a file to a place; UINT32_MAX: not judged. */
typedef uint32_t (*oracle_place_fn)(void *user, const char *topic, int32_t partition);
/* Reads a history file (LANEWAY_HISTORY) as that member's events; false if it is not one. */
bool oracle_read_file(struct oracle *oracle, const char *path, uint32_t member,
                      oracle_place_fn place_of, void *user);

#endif
