/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who takes part in a subscription that several members read in turns or by key: the slots of its
 * backlog in the order of their coming. Failover: one of them reads, chosen by the partition's
 * number, the others wait. Key_Shared: all of them read, their keys are shared out again.
 */
#ifndef LW_BROKERS_MEMORY_CONSUMERS_H
#define LW_BROKERS_MEMORY_CONSUMERS_H

#include "brokers/memory/data.h"

void lw_memory_consumers_join(struct lw_memory_backlog *backlog, struct lw_memory_slot *slot);
/* Does nothing for a slot that takes part in none. */
void lw_memory_consumers_leave(struct lw_memory_slot *slot);

#endif
