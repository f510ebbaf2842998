/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A world of the simulator: a hub in memory, up to three members at a time (each a dispatcher
 * with a broker and a scripted engine) on one host with a moved clock, messages that are counted
 * by number, and an oracle that hears everything. A member that ends or dies is followed by a new
 * one with a new number.
 */
#ifndef TESTS_SIM_WORLD_H
#define TESTS_SIM_WORLD_H

#include "brokers/memory/broker.h"
#include "dispatcher/dispatcher.h"
#include "tests/sim/engine.h"
#include "tests/sim/plan.h"
#include "tests/support/oracle.h"
#include "tests/support/virtual_host.h"

enum {
    WORLD_MESSAGES_MAX = 640,
    WORLD_TOPICS_MAX = 24,
    WORLD_POSITIONS_MAX = 1024,
    WORLD_MEMBERS_MAX = 14, /* that chaos begins; more come for the end */
    WORLD_NO_PLACE = UINT32_MAX
};

/* What became of one produced message. */
struct world_message {
    uint8_t topic;
    bool is_handled;       /* settled for good by a member that lived */
    bool has_returned;     /* a handler gave a verdict, whatever it was */
    uint32_t replies;      /* in the reply topic */
    uint32_t dead;         /* in the dead-letter topic */
    uint32_t copies;       /* in retry topics */
    uint32_t copies_due;   /* settled as retried */
    uint32_t free_attempt; /* its last run, when nobody was charged for it; else 0 */
    uint64_t free_generation;
    int64_t free_position;
    uint32_t replies_due;  /* settled as ok with a reply */
    uint32_t redeliveries; /* the hub's count when it gave it out last */
};

enum world_topic_kind { WORLD_MAIN, WORLD_TIER, WORLD_DEAD, WORLD_REPLIES };

struct world_topic {
    const char *name; /* the hub's string */
    enum world_topic_kind kind;
    uint32_t subscription;
    int32_t partitions;
    uint32_t places[PLAN_PARTITIONS_MAX]; /* WORLD_NO_PLACE: none yet */
};

enum member_state { MEMBER_ABSENT, MEMBER_RUNNING, MEMBER_ENDING, MEMBER_DYING };

struct world;

struct member {
    enum member_state state;
    uint32_t number; /* for the oracle */
    struct world *world;
    struct lw_dispatcher dispatcher;
    struct lw_broker *broker;
    struct sim_engine *engine;
    struct lw_history history;
    uint32_t running; /* as the engine sees it */
};

struct world {
    uint64_t seed;
    struct sim_random random;
    struct plan plan;
    struct virtual_host virtual_host;
    struct lw_memory_hub *hub;
    struct oracle *oracle;
    struct member members[PLAN_MEMBERS_MAX];
    uint32_t member_numbers; /* used so far */
    struct world_topic topics[WORLD_TOPICS_MAX];
    uint32_t topic_count;
    uint32_t subscriptions[PLAN_TOPICS_MAX];
    struct world_message messages[WORLD_MESSAGES_MAX];
    /* The message at each position of the main topics, plus 1; 0: a hole. */
    uint32_t ids[PLAN_TOPICS_MAX][PLAN_PARTITIONS_MAX][WORLD_POSITIONS_MAX];
    uint32_t nameless; /* dead letters without payload */
    uint32_t produced;
    uint32_t handled;
    uint64_t chaos_until;
    struct lw_timer action_timer;
    bool is_calm;
    uint64_t first_generation;
    uint64_t hash;
    uint64_t transitions;
    uint64_t turns;
    bool is_verbose;
};

/* Runs a seed to its end; the caller reads hash, transitions and the oracle, then frees. */
void world_run(struct world *world, uint64_t seed, bool is_verbose);
void world_free(struct world *world);

/* members.c: begins a member in a free place; asks for its end; kills it. */
void world_begin_member(struct world *world, struct member *member);
void world_end_member(struct member *member, bool is_abort);
void world_kill_member(struct member *member);
/* Frees members that ended. */
void world_bury(struct world *world);
bool world_is_member_blocked(void *user, uint32_t number, uint32_t subscription);

/* watch.c: everything that the oracle and the counts hear. */
void world_watch_member(struct member *member);
void world_watch_hub(struct world *world);
uint32_t world_place(struct world *world, const char *topic, int32_t partition);
uint32_t world_id_of(struct lw_bytes value);

/* chaos.c: what goes wrong, and the end of it. */
void world_arm_action(struct world *world);
void world_on_action(struct lw_timer *timer, uint64_t now);
void world_calm(struct world *world);

/* check.c: promises that can be seen from outside at any time. */
void world_check(struct world *world);
bool world_is_complete(const struct world *world);
void world_explain(struct world *world);

#endif
