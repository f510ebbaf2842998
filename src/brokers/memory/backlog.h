/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of one subscription in one partition, where messages are settled one by one: what
 * was never delivered (a cursor), what is out, what comes again now or later. It outlives its
 * members, so that what a lost one had is delivered again.
 */
#ifndef LW_BROKERS_MEMORY_BACKLOG_H
#define LW_BROKERS_MEMORY_BACKLOG_H

#include "brokers/memory/data.h"

/* Finds or makes the backlog; a new one begins at `position`. NULL without memory. */
struct lw_memory_backlog *
lw_memory_backlog_use(struct lw_memory_partition *partition, const char *subscription,
                      enum lw_memory_sharing sharing, int64_t position);
struct lw_memory_backlog *
lw_memory_backlog_find(const struct lw_memory_partition *partition, const char *subscription);
void lw_memory_backlog_destroy(struct lw_memory_backlog *backlog);
/* The next message for this slot, now its own; NULL: none now. */
struct lw_memory_entry *lw_memory_backlog_next(struct lw_memory_backlog *backlog,
                                               struct lw_memory_slot *slot, uint64_t now);
/* When the slot, that got nothing just now, may get something though nobody wakes it. */
uint64_t
lw_memory_backlog_due(struct lw_memory_backlog *backlog, const struct lw_memory_slot *slot);
/* False when it was acknowledged before. */
bool lw_memory_backlog_ack(struct lw_memory_entry *entry);
/* Gives one message back, to come again at `due`; only while `slot` has it. */
void lw_memory_backlog_nack(struct lw_memory_entry *entry, const struct lw_memory_slot *slot,
                            uint64_t due, uint64_t now);
/* The slot is gone: all that it had comes again at once. */
void lw_memory_backlog_return(struct lw_memory_slot *slot, bool is_counted);
/* A message that waits is about to be given to this slot (keys.c). */
void lw_memory_entry_send(struct lw_memory_entry *entry, struct lw_memory_slot *slot);
/* Messages that are not acknowledged, never delivered ones included. */
uint64_t lw_memory_backlog_count(const struct lw_memory_backlog *backlog);
/* A message that pointed to the entry is released. */
void lw_memory_entry_release(struct lw_memory_entry *entry);

#endif
