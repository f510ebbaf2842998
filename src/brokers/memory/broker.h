/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory broker's table (URL `memory:` or `memory:NAME`), and what the other files of this
 * folder need of a broker. Properties at creation count for a hub that is new: mode (position,
 * individual), sharing (shared, exclusive), protocol (eager, cooperative), partitions.
 */
#ifndef LW_BROKERS_MEMORY_BROKER_H
#define LW_BROKERS_MEMORY_BROKER_H

#include <laneway/plugin.h>

struct lw_memory_broker;
struct lw_memory_hub;

const struct lw_broker_ops *lw_memory_broker_ops(void);
/* The hub of a broker that was made by that table. */
struct lw_memory_hub *lw_memory_broker_hub(struct lw_broker *broker);
/*
 * For tests of crashes: to the hub, the process of this broker died just now. Its publications
 * and commit in flight arrive (is_applied) or do not; its group waits for its session to end.
 * The broker itself stays a broker, so that what uses it can be ended in order: it says LOST for
 * all that it had and UNKNOWN for what was in flight, accepts and delivers nothing, and closes.
 */
void lw_memory_broker_vanish(struct lw_broker *broker, bool is_applied);

struct lw_memory_broker *lw_memory_broker_of(struct lw_broker *broker);
void lw_memory_broker_init_turns(struct lw_memory_broker *broker);
/* Takes it out of all groups and partitions, dead or by leaving. */
void lw_memory_broker_detach(struct lw_memory_broker *broker, bool is_dead);
/* A turn of its host follows. */
void lw_memory_broker_poke(struct lw_memory_broker *broker);
/* A turn follows at `due` at the latest; a source may have something to do then. */
void lw_memory_broker_wake_at(struct lw_memory_broker *broker, uint64_t due);
/* The hub went down or came up, or its session ended meanwhile. */
void lw_memory_broker_on_down(struct lw_memory_broker *broker);
void lw_memory_broker_on_up(struct lw_memory_broker *broker);
void lw_memory_broker_on_session_end(struct lw_memory_broker *broker);
/* Loses all that it has, without warning, and begins again. */
void lw_memory_broker_lose(struct lw_memory_broker *broker);

#endif
