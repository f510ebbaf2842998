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
    struct lw_text log;
    bool is_started;
};

/* One handler at a time unless `slots` says more; hub options NULL: positions. */
void world_init(struct world *world, uint32_t slots, const struct lw_memory_options *hub);
/* Frees all; the dispatcher is aborted when it still runs. */
void world_deinit(struct world *world);
/* Options of a subscription of that topic and priority, to be changed before world_add. */
struct lw_subscription_options world_options(const char *topic, int32_t priority);
void world_add(struct world *world, const struct lw_subscription_options *options);
void world_topic(struct world *world, const char *topic, int32_t partitions);
void world_start(struct world *world);
/* Publishes values "0".."count-1" under one key (NULL: none) to a partition (-1: by key). */
void world_send(struct world *world, const char *topic, int32_t partition, const char *key,
                uint32_t count);
void world_turn(struct world *world);           /* until nothing is due now */
void world_pass(struct world *world, int64_t ms); /* lets time go by */
/* Finishes the i-th running delivery and turns; it leaves `running`. */
void world_finish(struct world *world, uint32_t i, enum lw_verdict verdict);
/* Finishes whatever runs with ok until nothing is left to start. */
void world_finish_all(struct world *world);
/* Topic, partition and position of a running one as "orders/0/3". */
const char *world_name(struct world *world, uint32_t i);
int64_t world_committed(struct world *world, const char *topic, int32_t partition);
size_t world_count(struct world *world, const char *topic);
/* Turns and passes time until the dispatcher is closed; fails the test after an hour of it. */
enum lw_status world_close(struct world *world);

#endif
