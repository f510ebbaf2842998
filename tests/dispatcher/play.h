/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A random play: one member, a few topics of different priority, and a few thousand random moves
 * (messages come, handlers end in any way, time passes, commits and publications fail, partitions
 * go and come, subscriptions pause). After every move and on every event of the history a judge
 * looks. In the end all troubles stop and everything must be handled and committed.
 */
#ifndef TESTS_DISPATCHER_PLAY_H
#define TESTS_DISPATCHER_PLAY_H

#include "tests/dispatcher/world.h"

enum {
    PLAY_TOPICS = 3,
    PLAY_PARTITIONS = 2,
    PLAY_POSITIONS = 8192,
    PLAY_KEYS = 6,
    PLAY_HELD = 1024
};

struct play;

struct play_plan {
    uint64_t seed;
    uint32_t steps;
    uint32_t slots;
    uint32_t fail_percent;  /* of ends: any verdict but ok */
    uint32_t reply_percent; /* of ends with ok */
    uint32_t fault_percent; /* of moves: rebalances, refusals, failing commits, pauses */
    bool is_individual;
    void (*on_event)(struct play *play, const struct lw_history_event *event); /* or NULL */
    void (*after_move)(struct play *play);                                     /* or NULL */
};

/* What is known of the message at one position, over all ownerships. */
struct play_message {
    uint32_t held; /* deliveries received and not ended */
    uint32_t running;
    bool is_done; /* settled for good */
};

/* What is known of one delivery since it was received. */
struct play_delivery {
    const struct lw_delivery *delivery;
    uint32_t published; /* confirmed since it was judged */
    uint32_t owed;      /* publications that its settlement must wait for */
    uint32_t attempt;   /* of its last start */
    bool was_uncharged; /* its last run did not count */
    bool is_held;       /* received, and neither settled nor dropped */
};

struct play {
    struct play_plan plan;
    struct world world;
    struct lw_history history;
    uint64_t random;
    uint64_t events;
    uint64_t moves;
    uint64_t effects; /* replies and dead letters that settled deliveries owed */
    struct play_delivery deliveries[PLAY_HELD];
    struct play_message messages[PLAY_TOPICS][PLAY_PARTITIONS][PLAY_POSITIONS];
};

uint32_t play_dice(struct play *play, uint32_t sides);
uint32_t play_topic(const struct lw_partition *partition);
/* The message of an event that has a delivery. */
struct play_message *play_message_of(struct play *play, const struct lw_history_event *event);
struct play_delivery *play_delivery_of(struct play *play, const struct lw_delivery *delivery);
const char *play_topic_name(uint32_t topic);
/* Plays to the end; fails the test where a judge does, or when something is lost. */
void play_run(const struct play_plan *plan);

#endif
