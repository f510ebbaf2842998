/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who gets which partition of a group: ranges (eager), or as balanced as possible while moving as
 * little as possible (cooperative). Companions go with their source's partition.
 */
#ifndef LW_BROKERS_MEMORY_ASSIGNOR_H
#define LW_BROKERS_MEMORY_ASSIGNOR_H

#include "brokers/memory/data.h"

/* Cooperative: revokes exactly what has to move. */
void lw_memory_assignor_revoke_moving(struct lw_memory_hub *hub, struct lw_memory_group *group,
                                      uint64_t now);
/* Gives out everything that has no owner. What should move but still has one sets is_due. */
void lw_memory_assignor_assign(struct lw_memory_hub *hub, struct lw_memory_group *group);
/* The slot that reads the partition for that group, NULL when none. */
struct lw_memory_slot *lw_memory_assignor_owner(const struct lw_memory_group *group,
                                                const struct lw_memory_partition *partition);

#endif
