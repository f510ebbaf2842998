/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world.h: what an engine needs around it, without a dispatcher: a real loop, completions, a
 * broker that only knows headers and times, and deliveries made from a text. Results are
 * collected in the order in which they came; each is checked to come once per run.
 */
#ifndef TESTS_ENGINES_WORLD_H
#define TESTS_ENGINES_WORLD_H

#include "base/loop.h"
#include "core/delivery.h"
#include "core/partition.h"
#include "core/subscription.h"

#define WORLD_TASKS_MAX 4096
#define WORLD_WAIT_MS 60000

struct world {
    struct lw_loop *loop;
    struct lw_host *host;
    struct lw_completions completions;
    struct lw_turn turn;
    struct lw_engine *engine;
    struct lw_broker broker;
    struct lw_subscription subscription;
    struct lw_partition partition;
    struct lw_header *headers; /* of every message */
    size_t header_count;
    struct lw_message_times times;
    struct lw_delivery *deliveries;
    size_t delivery_count;
    struct lw_delivery *results[WORLD_TASKS_MAX];
    size_t result_count;
    size_t running;
    uint32_t expected_room; /* for a condition of a test */
    char log[65536];        /* events and texts, one line each */
    size_t log_size;
};

struct world *world_create(void);
/* Destroys the engine too, if there is one; frees everything. */
void world_destroy(struct world *world);
/* A delivery whose value is `text` (NULL: null), key "k", not yet running. */
struct lw_delivery *world_delivery(struct world *world, const char *text);
struct lw_delivery *world_delivery_of(struct world *world, struct lw_bytes value);
/* Begins a run and submits; false when the engine did not take it. */
bool world_submit(struct world *world, struct lw_delivery *delivery);
/* world_delivery and world_submit, waiting for room; fails the test after WORLD_WAIT_MS. */
struct lw_delivery *world_run(struct world *world, const char *text);
/* Turns the loop until `count` results are there in all; fails the test after WORLD_WAIT_MS. */
void world_wait_results(struct world *world, size_t count);
/* Turns the loop until fn says true. */
void world_wait(struct world *world, bool (*fn)(struct world *world));
void world_turn(struct world *world, int64_t at_most_ms);
/* Turns the loop for a time. */
void world_spend(struct world *world, int64_t ms);
/* The one output of a delivery that went well: its reply. Dies with the delivery's outcome. */
struct lw_bytes world_reply_of(const struct lw_delivery *delivery);
bool world_has_logged(const struct world *world, const char *text);
bool world_engine_is_stopped(struct world *world);
bool world_engine_has_room(struct world *world);
bool world_engine_is_down(struct world *world);

#endif
