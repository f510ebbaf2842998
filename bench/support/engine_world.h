/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an engine needs around it in a bench, and nothing that costs: a loop, completions, and as
 * many deliveries as may be in hand, given out again when their results come. Results are counted;
 * a verdict that is not ok ends the bench, since its figure would mean nothing.
 */
#ifndef BENCH_SUPPORT_ENGINE_WORLD_H
#define BENCH_SUPPORT_ENGINE_WORLD_H

#include "base/loop.h"
#include "core/delivery.h"
#include "core/partition.h"
#include "core/subscription.h"

struct lw_engine_world {
    struct lw_loop *loop;
    struct lw_host *host;
    struct lw_completions completions;
    struct lw_engine *engine; /* put in by the bench, destroyed by close */
    struct lw_turn turn;
    struct lw_broker broker;
    struct lw_subscription subscription;
    struct lw_partition partition;
    struct lw_delivery *deliveries;
    struct lw_delivery **spare;
    uint32_t spare_count;
    uint64_t left;
    uint64_t done;
};

/* `in_hand` deliveries whose value is `value`, which must live as long as the world. */
void
lw_engine_world_open(struct lw_engine_world *world, uint32_t in_hand, struct lw_bytes value);
/* Starts the engine and turns until it has room for `room` tasks. */
void lw_engine_world_start(struct lw_engine_world *world, uint32_t room);
/* Sends that many messages through it; seconds from the first submit to the last result. */
double lw_engine_world_run(struct lw_engine_world *world, uint64_t messages);
void lw_engine_world_close(struct lw_engine_world *world);

#endif
