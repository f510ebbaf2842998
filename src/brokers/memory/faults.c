/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scripted faults. Deterministic: a fault counts the chances that it had (its kind, its topic),
 * lets `skip` of them pass, takes the next `count`, and is gone. The first one that matches and
 * does not skip wins; those before it that skip have counted this chance. Owned by the hub.
 */
#include "brokers/memory/faults.h"

#include <string.h>

#include "base/alloc.h"

static void
drop(struct lw_memory_injected *injected)
{
    lw_list_remove(&injected->link);
    lw_free((void *)(uintptr_t)injected->fault.topic);
    lw_free(injected);
}

static bool
is_match(const struct lw_memory_fault *fault, enum lw_memory_fault_kind kind, const char *topic)
{
    return fault->kind == kind &&
           (!fault->topic || (topic && strcmp(fault->topic, topic) == 0));
}

bool
lw_memory_fault_find(struct lw_memory_hub *hub, enum lw_memory_fault_kind kind,
                     const char *topic, struct lw_memory_fault *ret_fault)
{
    struct lw_list *next;
    for (struct lw_list *node = hub->faults.next; node != &hub->faults; node = next) {
        next = node->next;
        struct lw_memory_injected *injected = LW_CONTAINER(node, struct lw_memory_injected,
                                                           link);
        struct lw_memory_fault *fault = &injected->fault;
        if (!is_match(fault, kind, topic)) {
            continue;
        }
        if (fault->skip > 0) {
            fault->skip--;
            continue;
        }
        *ret_fault = *fault;
        ret_fault->topic = NULL; /* the text may be gone now */
        if (--fault->count == 0) {
            drop(injected);
        }
        return true;
    }
    return false;
}

enum lw_status
lw_memory_hub_inject(struct lw_memory_hub *hub, const struct lw_memory_fault *fault)
{
    if (fault->count == 0) {
        return LW_STATUS_INVALID;
    }
    struct lw_memory_injected *injected = lw_alloc(sizeof *injected);
    char *topic = lw_copy_text(fault->topic);
    if (!injected || (fault->topic && !topic)) {
        lw_free(injected);
        lw_free(topic);
        return LW_STATUS_NO_MEMORY;
    }
    injected->fault = *fault;
    injected->fault.topic = topic;
    lw_list_push(&hub->faults, &injected->link);
    return LW_STATUS_OK;
}

void
lw_memory_hub_clear_faults(struct lw_memory_hub *hub)
{
    while (!lw_list_is_empty(&hub->faults)) {
        drop(LW_CONTAINER(hub->faults.next, struct lw_memory_injected, link));
    }
}
