/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Key_Shared: which member gets which keys. Keys are told apart by a hash of the ordering key or
 * the key; those without one have one hash together. A hash belongs to one member, chosen by
 * rendezvous, so that a member that comes or goes moves only what must move. What moves waits
 * until its earlier holder has nothing of it any more: a key is never at two members.
 */
#ifndef LW_BROKERS_MEMORY_KEYS_H
#define LW_BROKERS_MEMORY_KEYS_H

#include "brokers/memory/data.h"

/* No more is read ahead while so many wait for their members. */
enum { LW_MEMORY_KEYS_AHEAD = 1024 };

struct lw_memory_keys *lw_memory_keys_create(void); /* NULL without memory */
uint8_t lw_memory_keys_hash(const struct lw_memory_record *record);
/* Members came or went: every hash finds its owner again. */
void lw_memory_keys_assign(struct lw_memory_backlog *backlog);
/* May a message that was never delivered go there now? Nothing of its hash waits then. */
bool lw_memory_keys_may(const struct lw_memory_keys *keys, uint8_t hash,
                        const struct lw_memory_slot *slot);
/* Puts an entry that is READY in line, by position, and wakes who gets it. */
void lw_memory_keys_wait(struct lw_memory_entry *entry);
/* Takes it out of the line. */
void lw_memory_keys_unwait(struct lw_memory_entry *entry);
/* Sends what waits for this slot longest, with its batch; false: nothing may go there. */
bool lw_memory_keys_send(struct lw_memory_backlog *backlog, struct lw_memory_slot *slot);
/* The slot has this one of its hash now; it has it no more. */
void lw_memory_keys_hold(struct lw_memory_entry *entry, struct lw_memory_slot *slot);
void lw_memory_keys_release(struct lw_memory_entry *entry);

#endif
