/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the oracle share: its structures, and the lanes. Nobody else includes it. */
#ifndef TESTS_SUPPORT_ORACLE_STATE_H
#define TESTS_SUPPORT_ORACLE_STATE_H

#include "tests/support/oracle.h"

enum {
    FLAG_PRODUCED = 1,
    FLAG_DELETED = 2,
    FLAG_SEEN = 4,
    FLAG_DONE = 8,

    RUN_JUDGED = 1, /* since its last start: that one was charged */
    RUN_RETURNED = 2,
    RUN_RETRY_CONFIRMED = 4,
    RUN_DEAD_CONFIRMED = 8,
    RUN_SETTLED = 16,
    RUN_FINISHED = 32, /* settled, and not to come again */
    RUN_FRESH = 64,
    RUN_RECEIVED = 128, /* at least once */
    RUN_WAITS = 256,    /* judged to run again, or to be held, and not started since */
    NONE = -1
};

/* One position in one ownership. */
struct run {
    uint16_t flags;
    uint8_t open;    /* received and not over */
    uint8_t running; /* more than one only without order */
    uint32_t attempt;
    uint32_t task; /* of its last start */
    int32_t key;   /* index in the seat's table */
    int32_t next;  /* in the key's queue, as an index of runs */
};

/* What of one key runs and waits at one member, over all places that share lanes. */
struct lane {
    struct lane *next;
    uint64_t hash;
    uint32_t group;
    uint32_t running;
    uint32_t task;    /* that what runs belongs to, 0: none */
    uint32_t held;    /* started and not over, in any generation: they have the lane */
    uint32_t waiting; /* queues whose first was never started */
    bool is_fresh;    /* something waits and nothing has the lane: it may start */
};

/* One key at one seat: the queue of what was received and is not over. */
struct key {
    uint64_t hash;
    uint64_t generation; /* of the queue */
    int32_t head;
    int32_t tail;
    struct lane *lane; /* NULL: not used */
    bool is_waiting;
};

struct ownership {
    struct ownership *older;
    uint64_t generation;
    int64_t base; /* position of runs[0] */
    struct run *runs;
    int64_t count;
    int64_t capacity;
    int64_t low; /* nothing below is open */
    uint64_t open;
    bool is_ended;
};

/* A member at a place. */
struct seat {
    struct ownership *ownership;
    struct key *keys;
    uint32_t key_count;
    uint32_t key_capacity; /* a power of two */
    uint32_t member;
    uint32_t place;
};

/* What the broker and the members owe each other about one position. */
struct account {
    uint8_t out;      /* given out and neither settled nor dropped */
    uint8_t ack_due;  /* settled for good, not yet acknowledged */
    uint8_t nack_due; /* settled to come again, not yet said */
};

struct place {
    uint32_t subscription;
    uint32_t group; /* the place whose lanes it uses */
    uint8_t *flags;
    struct account *accounts; /* as long as flags */
    int64_t count;
    int64_t capacity;
    int64_t committed; /* -1 none */
    int64_t checked;   /* all below that exist are done */
    struct seat *seats[ORACLE_MEMBERS_MAX];
};

/* A subscription at a member. */
struct load {
    uint32_t fresh;
    uint32_t running;
};

/* A key seems to run at two members: the earlier one may not have heard yet of its loss. */
struct overlap {
    uint64_t now;
    uint64_t generation;
    int64_t position;
    uint32_t member; /* that had it first */
    uint32_t place;
};

enum { OVERLAPS_MAX = 16 };

struct oracle {
    struct oracle_report report;
    struct overlap overlaps[OVERLAPS_MAX];
    uint32_t overlap_count;
    struct oracle_subscription *subscriptions;
    uint32_t subscription_count;
    struct place *places;
    uint32_t place_count;
    struct load *loads; /* by member * subscription_count + subscription */
    struct lane *lanes[ORACLE_MEMBERS_MAX];
    bool is_dead[ORACLE_MEMBERS_MAX];
    uint64_t allowed;
    uint64_t now;
    bool (*is_blocked)(void *user, uint32_t member, uint32_t subscription);
    void *user;
};

uint8_t *oracle_flags_at(struct oracle *oracle, uint32_t index, int64_t position);

/* -- oracle_shared.c: what only brokers that settle one by one do -------------------------------- */

/* A start, where a key is at one member at a time. */
void oracle_check_apart(struct oracle *oracle, const struct oracle_event *event, uint64_t hash);
/* Time went on, or all is over: an overlap that is still there is one. */
void oracle_judge_overlaps(struct oracle *oracle);
/* A settlement that the broker is about to hear of. */
void oracle_owe(struct oracle *oracle, const struct oracle_event *event, bool is_final);
/* So many deliveries of it ended without a word to the broker. */
void oracle_write_off(struct oracle *oracle, uint32_t place, int64_t position, uint32_t count);

/* -- oracle_lanes.c ----------------------------------------------------------------------------- */

struct load *oracle_load_of(struct oracle *oracle, const struct seat *seat);
/* Index of the key in the seat's table, made when missing. */
int32_t oracle_find_key(struct oracle *oracle, struct seat *seat, uint64_t hash);
/* Looks again whether the first of the key's queue waits for its first start. */
void oracle_update_key(struct oracle *oracle, struct seat *seat, struct key *key);
/* A run without order is not fresh any more. */
void oracle_stale_fresh(struct oracle *oracle, struct seat *seat, struct run *run);
/* Appends run `at` of the present ownership to the queue of key `index`. */
void oracle_push_key(struct oracle *oracle, struct seat *seat, int32_t index, int32_t at);
/* Takes run `at` out of the queue: it was given back behind one that is not over. */
void oracle_unlink_key(struct seat *seat, int32_t index, int32_t at);
/* Takes what is over from the front; what was given back in the middle goes when it comes. */
void oracle_trim_key(struct oracle *oracle, struct seat *seat, struct key *key);

#endif
