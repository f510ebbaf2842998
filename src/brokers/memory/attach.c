/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources over time: heads that become due, and the connection of sources that settle
 * individually. Those attach to the backlog of their subscription in every partition, each slot
 * with a generation of its own (the real broker has one consumer per partition); an exclusive
 * subscription that is taken refuses, and is asked again every second. A nack of an exclusive or
 * failover one rewinds: the generation is lost, and a new one begins with all that has no ack. Loop
 * thread.
 */
#include "brokers/memory/backlog.h"
#include "brokers/memory/broker.h"
#include "brokers/memory/consumers.h"
#include "brokers/memory/source.h"
#include "brokers/memory/topic.h"

#define ATTACH_AGAIN_NS (1000 * LW_MS)

static int64_t
initial_position(const struct lw_memory_source *source,
                 const struct lw_memory_partition *partition)
{
    return source->reset == LW_MEMORY_LATEST ? partition->log.end : partition->log.start;
}

/* True when another member holds the subscription in any partition. */
static bool
is_taken(const struct lw_memory_source *source)
{
    for (int32_t i = 0; i < source->topic->partition_count; i++) {
        const struct lw_memory_backlog *backlog = lw_memory_backlog_find(
            source->topic->partitions[i], source->subscription);
        if (backlog && backlog->holder && backlog->holder->source != source) {
            return true;
        }
    }
    return false;
}

static void
attach_partition(struct lw_memory_source *source, struct lw_memory_partition *partition)
{
    enum lw_memory_sharing sharing = source->broker->hub->options.sharing;
    struct lw_memory_slot *slot = lw_memory_source_slot(source, partition, false);
    if (!slot) {
        source->retry_at = source->broker->base.host->now + ATTACH_AGAIN_NS;
        return;
    }
    if (slot->is_assigned || slot->joined) {
        return;
    }
    struct lw_memory_backlog *backlog = lw_memory_backlog_use(
        partition, source->subscription, sharing, initial_position(source, partition));
    if (!backlog) {
        lw_memory_source_fail(source, LW_STATUS_NO_MEMORY, "", false, "no memory to attach");
        source->retry_at = source->broker->base.host->now + ATTACH_AGAIN_NS;
        return;
    }
    if (sharing == LW_MEMORY_FAILOVER) {
        lw_memory_consumers_join(backlog, slot); /* that may assign it, now or later */
        return;
    }
    slot->backlog = backlog;
    backlog->holder = sharing == LW_MEMORY_EXCLUSIVE ? slot : NULL;
    lw_memory_slot_assign(slot, lw_broker_next_generation(), -1);
    if (sharing == LW_MEMORY_KEY_SHARED) {
        lw_memory_consumers_join(backlog, slot);
    }
}

static void
attach(struct lw_memory_source *source, uint64_t now)
{
    source->retry_at = LW_NEVER;
    if (!source->topic || source->is_stopped) {
        return; /* lw_memory_source_on_topic comes back here */
    }
    if (source->broker->hub->options.sharing == LW_MEMORY_EXCLUSIVE && is_taken(source)) {
        if (!source->is_refused) {
            lw_memory_source_fail(source, LW_STATUS_UNAVAILABLE, "", false,
                                  "an exclusive consumer is already connected");
        }
        source->is_refused = true;
        source->retry_at = now + ATTACH_AGAIN_NS;
        return;
    }
    source->is_refused = false;
    for (int32_t i = 0; i < source->topic->partition_count; i++) {
        attach_partition(source, source->topic->partitions[i]);
    }
}

static void
rewind_slot(struct lw_memory_slot *slot)
{
    struct lw_memory_backlog *backlog = slot->backlog;
    lw_memory_slot_lose(slot);
    slot->backlog = backlog;
    backlog->holder = slot;
    lw_memory_slot_assign(slot, lw_broker_next_generation(), -1);
}

void
lw_memory_source_advance(struct lw_memory_source *source, uint64_t now)
{
    if (source->retry_at <= now) {
        source->retry_at = LW_NEVER;
        if (!source->member) {
            attach(source, now);
        }
    }
    for (uint32_t i = 0; i < source->slot_count; i++) {
        struct lw_memory_slot *slot = source->slots[i];
        if (slot->due <= now) {
            slot->due = LW_NEVER;
            lw_memory_slot_wake(slot);
        }
        if (slot->rewind_at <= now && slot->is_assigned && !slot->is_revoking) {
            rewind_slot(slot);
        }
    }
}

uint64_t
lw_memory_source_due(const struct lw_memory_source *source)
{
    uint64_t due = source->retry_at;
    for (uint32_t i = 0; i < source->slot_count; i++) {
        const struct lw_memory_slot *slot = source->slots[i];
        due = slot->due < due ? slot->due : due;
        due = slot->is_assigned && slot->rewind_at < due ? slot->rewind_at : due;
    }
    return due;
}
