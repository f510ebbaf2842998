/* SPDX-License-Identifier: Apache-2.0 */
/* The hub's list of scripted faults: each is met a number of times, in the order of injection. */
#ifndef LW_BROKERS_MEMORY_FAULTS_H
#define LW_BROKERS_MEMORY_FAULTS_H

#include "brokers/memory/data.h"

/* The slow path of lw_memory_fault_take. */
bool lw_memory_fault_find(struct lw_memory_hub *hub, enum lw_memory_fault_kind kind,
                          const char *topic, struct lw_memory_fault *ret_fault);

/* True when the script wants this kind of fault here and now; it is used up by that. `topic`
 * NULL matches only faults for any topic. */
static inline bool
lw_memory_fault_take(struct lw_memory_hub *hub, enum lw_memory_fault_kind kind,
                     const char *topic, struct lw_memory_fault *ret_fault)
{
    return __builtin_expect(!lw_list_is_empty(&hub->faults), 0) &&
           lw_memory_fault_find(hub, kind, topic, ret_fault);
}

#endif
