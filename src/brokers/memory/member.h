/* SPDX-License-Identifier: Apache-2.0 */
/* A member of a consumer group: one per (broker, group). Its life, and how assignments end. */
#ifndef LW_BROKERS_MEMORY_MEMBER_H
#define LW_BROKERS_MEMORY_MEMBER_H

#include "brokers/memory/data.h"

/* Finds or makes the broker's member of that group and puts the source under it. */
enum lw_status
lw_memory_member_add(struct lw_memory_broker *broker, struct lw_memory_source *source);
void lw_memory_member_destroy(struct lw_memory_member *member);
void lw_memory_member_join(struct lw_memory_member *member);
/* Gives everything up in two phases, then leaves. */
void lw_memory_member_leave(struct lw_memory_member *member, uint64_t now);
/* Leaves without any phase: closed, or (is_dead) silent until its session ends. */
void lw_memory_member_end(struct lw_memory_member *member, bool is_dead, uint64_t now);
void lw_memory_member_revoke_all(struct lw_memory_member *member, uint64_t now);
/* Announces the end of the generation that this slot has; of its companions too. */
void lw_memory_member_revoke_slot(struct lw_memory_slot *slot, uint64_t now);
/* The dispatcher gave that generation up; false when it is none of this member's. */
bool lw_memory_member_answer(struct lw_memory_member *member, uint64_t generation);
/* Overran its revoke: loses its place without a sign. */
void lw_memory_member_expel(struct lw_memory_member *member);
/* Loses everything at once and says so. */
void lw_memory_member_say_lost(struct lw_memory_member *member);
/* The same, and joins again. */
void lw_memory_member_lose(struct lw_memory_member *member);
/* Takes a source out again, before anything joined; the member goes with its last one. */
void lw_memory_member_remove(struct lw_memory_source *source);
/* May take part in an assignment, and be believed when it commits. */
bool lw_memory_member_is_active(const struct lw_memory_member *member);

#endif
