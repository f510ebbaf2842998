/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joining and leaving. A failover member that has to hand over loses its generation without being
 * asked, as on the real broker: what it had goes to the next one. One that is leaving by itself
 * keeps the partition until it has answered. Loop thread.
 */
#include "brokers/memory/consumers.h"

#include "brokers/memory/events.h"
#include "brokers/memory/keys.h"
#include "brokers/memory/source.h"
#include "brokers/memory/topic.h"

static struct lw_memory_slot *
choose(const struct lw_memory_backlog *backlog)
{
    const struct lw_list *head = &backlog->consumers;
    uint32_t count = 0;
    for (const struct lw_list *node = head->next; node != head; node = node->next) {
        count++;
    }
    if (count == 0) {
        return NULL;
    }
    struct lw_list *node = head->next;
    for (uint32_t left = (uint32_t)backlog->partition->number % count; left > 0; left--) {
        node = node->next;
    }
    return LW_CONTAINER(node, struct lw_memory_slot, consumer);
}

static void
hand_over(struct lw_memory_backlog *backlog)
{
    struct lw_memory_slot *active = choose(backlog);
    struct lw_memory_slot *holder = backlog->holder;
    if (!active || active == holder || (holder && holder->is_revoking)) {
        return;
    }
    if (holder) {
        lw_memory_slot_lose(holder);
    }
    active->backlog = backlog;
    backlog->holder = active;
    lw_memory_slot_assign(active, lw_broker_next_generation(), -1);
}

static void
share_out(struct lw_memory_backlog *backlog)
{
    if (backlog->keys) {
        lw_memory_keys_assign(backlog);
        lw_memory_partition_wake(backlog->partition);
    } else {
        hand_over(backlog);
    }
}

void
lw_memory_consumers_join(struct lw_memory_backlog *backlog, struct lw_memory_slot *slot)
{
    slot->joined = backlog;
    slot->consumer_id = ++slot->source->broker->hub->last_consumer_id;
    lw_list_push(&backlog->consumers, &slot->consumer);
    share_out(backlog);
}

void
lw_memory_consumers_leave(struct lw_memory_slot *slot)
{
    struct lw_memory_backlog *backlog = slot->joined;
    if (backlog) {
        slot->joined = NULL;
        lw_list_remove(&slot->consumer);
        share_out(backlog);
    }
}
