/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A dispatcher on a moved clock, a broker in memory and handlers in the test's hand: a started
 * delivery waits in `running` until the test finishes it. The history is a text, one word per
 * event, so that a test compares what happened with what should.
 */
#ifndef TESTS_DISPATCHER_WORLD_H
#define TESTS_DISPATCHER_WORLD_H

#include "brokers/memory/broker.h"
#include "brokers/memory/hub.h"
#include "dispatcher/dispatcher.h"
#include "tests/support/virtual_host.h"

#define WORLD_RUNNING 4096

struct world {
    struct virtual_host virtual_host;
    struct virtual_host *clock; /* its own, or that of the world it was made beside */
    struct lw_dispatcher dispatcher;
    struct lw_memory_hub *hub;
    struct lw_broker *broker;
    struct lw_engine *engine;
    struct lw_delivery *running[WORLD_RUNNING];
    uint32_t running_count;
    uint32_t started_count;
    enum lw_verdict (*answer)(struct lw_delivery *delivery, void *user); /* or NULL: by hand */
    void *user;
    struct lw_history history;
    struct lw_text story; /* "start:orders/0/3 ok:… commit:…" */
    struct lw_text log;   /* of the world that owns the clock */
    struct lw_text shown;
    char hub_name[32];
    bool is_started;
};

/* One handler at a time unless `slots` says more; hub options NULL: positions. */
void world_init(struct world *world, uint32_t slots, const struct lw_memory_options *hub);
/* A second member on the hub and the clock of `other`, which must live longer. */
void world_init_beside(struct world *world, struct world *other, uint32_t slots);
/* One more broker of the same hub options under that name, for copies; its hub is held by it. */
struct lw_memory_hub *world_add_broker(struct world *world, const char *name);
/* Frees all; the dispatcher is aborted when it still runs. */
void world_deinit(struct world *world);
/* Options of a subscription of that topic and priority, to be changed before world_add. */
struct lw_subscription_options world_options(const char *topic, int32_t priority);
void world_add(struct world *world, const struct lw_subscription_options *options);
void world_topic(struct world *world, const char *topic, int32_t partitions);
void world_start(struct world *world);
/* All of these: one topic of one partition and one subscription, started. */
void world_begin_one(struct world *world, uint32_t slots,
                     const struct lw_subscription_options *options);
/* Publishes values "0".."count-1" under one key (NULL: none) to a partition (-1: by key). */
void world_send(struct world *world, const char *topic, int32_t partition, const char *key,
                uint32_t count);
void world_turn(struct world *world);             /* until nothing is due now */
void world_pass(struct world *world, int64_t ms); /* lets time go by */
/* Finishes the i-th running delivery and turns; it leaves `running`. */
void world_finish(struct world *world, uint32_t i, enum lw_verdict verdict);
/* Finishes whatever runs with ok until nothing is left to start. */
void world_finish_all(struct world *world);
/* Makes things go wrong at the hub: the next `count` chances after `skip` others. */
void world_fault(struct world *world, enum lw_memory_fault_kind kind, uint32_t count,
                 enum lw_status status);
/* Does the story, or the log, hold that text? */
bool world_told(const struct world *world, const char *text);
bool world_logged(const struct world *world, const char *text);
/* How often the story holds that text. */
uint32_t world_times(const struct world *world, const char *text);
/* The i-th stored message of a topic as "key|value|name=text,name=text"; null is "-". */
const char *world_stored(struct world *world, const char *topic, size_t i);
/* Value of one header of it, "" when it has none of that name. */
const char *
world_stored_header(struct world *world, const char *topic, size_t i, const char *name);
/* Topic, partition and position of a running one as "orders/0/3". */
const char *world_name(struct world *world, uint32_t i);
int64_t world_committed(struct world *world, const char *topic, int32_t partition);
size_t world_count(struct world *world, const char *topic);
/* Turns and passes time until the dispatcher is closed; fails the test after an hour of it. */
enum lw_status world_close(struct world *world);

#endif
