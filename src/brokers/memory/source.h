/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A subscription of one broker, and its slots (a partition each). `ready` rings the slots that
 * may have something; publishing puts them in, reading them dry takes them out, a hold (revoke
 * unanswered, hub down, stopped) empties the ring.
 */
#ifndef LW_BROKERS_MEMORY_SOURCE_H
#define LW_BROKERS_MEMORY_SOURCE_H

#include "brokers/memory/data.h"

enum lw_status
lw_memory_source_create(struct lw_memory_broker *broker,
                        const struct lw_source_options *options,
                        struct lw_memory_source **ret_source, struct lw_error *ret_error);
void lw_memory_source_destroy(struct lw_memory_source *source);
/* Finds or makes the slot of a partition; NULL without memory. */
struct lw_memory_slot *
lw_memory_source_slot(struct lw_memory_source *source, struct lw_memory_partition *partition,
                      bool is_companion);
/* Looks again whether it may receive: all its slots wake, or its ring is emptied. */
void lw_memory_source_update(struct lw_memory_source *source);
/* What is due: heads that may be delivered now, rewinds, attaching (individually). */
void lw_memory_source_advance(struct lw_memory_source *source, uint64_t now);
uint64_t lw_memory_source_due(const struct lw_memory_source *source);
/* A topic came or grew: sources that wait for it find it, groups are rebalanced. */
void lw_memory_source_on_topic(struct lw_memory_hub *hub, struct lw_memory_topic *topic);
size_t lw_memory_source_receive(struct lw_memory_source *source, struct lw_message *const out[],
                                size_t n, uint64_t bytes_max, bool *ret_has_more);
void lw_memory_source_settle(struct lw_memory_source *source,
                             const struct lw_settle_item *items, size_t n);
/* What waits for the slots that are assigned; false without one. */
bool lw_memory_source_lag(const struct lw_memory_source *source, struct lw_lag *ret_lag);
/* Writes the name of a retry tier: `<retry topic>.<delay>`. */
bool lw_memory_source_tier(const struct lw_memory_source *source, int64_t tier_ms, char *out,
                           size_t size);
/* Says an error of this source once. */
void lw_memory_source_fail(struct lw_memory_source *source, enum lw_status status,
                           const char *code, bool is_fatal, const char *message);

/* Begins to read at `position` (-1: where the backlog is) and says so. */
void lw_memory_slot_assign(struct lw_memory_slot *slot, uint64_t generation, int64_t position);
/* Stops reading and takes part no more; what it had goes back to the backlog. Says nothing. */
void lw_memory_slot_unassign(struct lw_memory_slot *slot);
/* Stops reading and says LOST; it takes part in its subscription as before. */
void lw_memory_slot_lose(struct lw_memory_slot *slot);
/* It may have something to deliver. */
void lw_memory_slot_wake(struct lw_memory_slot *slot);
/* It has nothing before `due`. */
void lw_memory_slot_wait(struct lw_memory_slot *slot, uint64_t due);

#endif
