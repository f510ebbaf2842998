/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receiving and settling: the path of every message. Fair over the partitions of a source: at
 * most QUOTA from one slot, then the next. By position a slot reads the log by its cursor and
 * touches nothing but the chunk's count of references; individually it takes what the backlog
 * gives. Allocates nothing per message. Loop thread.
 */
#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "brokers/memory/backlog.h"
#include "brokers/memory/broker.h"
#include "brokers/memory/events.h"
#include "brokers/memory/faults.h"
#include "brokers/memory/source.h"
#include "brokers/memory/topic.h"

enum { QUOTA = 16 };

/* One call of receive: what is still wanted, and where it goes. */
struct batch {
    struct lw_message *const *out;
    size_t room;
    size_t given;
    uint64_t bytes_left;
    uint64_t now;
    const struct lw_memory_slot *passed; /* the first that was passed over since one gave */
};

static void
fill(struct batch *batch, const struct lw_memory_slot *slot, struct lw_memory_chunk *chunk,
     const struct lw_memory_record *record)
{
    struct lw_message *message = batch->out[batch->given++];
    message->key = record->key;
    message->ordering_key = record->ordering_key;
    message->value = record->value;
    message->position = record->position;
    message->slot = slot->number;
    message->redeliveries = 0;
    message->fault = record->fault;
    message->owner = chunk;
    message->entry = (void *)(uintptr_t)record;
    chunk->refs++;
    uint64_t bytes = record->key.size + record->value.size;
    batch->bytes_left = bytes < batch->bytes_left ? batch->bytes_left - bytes : 0;
}

/* A retry copy carries the wall time before which it must not run; 0 for all else. */
static uint64_t
not_before(const struct lw_memory_slot *slot, const struct lw_memory_record *record,
           uint64_t now)
{
    struct lw_host *host = slot->source->broker->base.host;
    for (uint32_t i = 0; i < record->header_count; i++) {
        int64_t wall_ms = 0;
        if (lw_text_is_equal(record->headers[i].name, "x-laneway-not-before") &&
            lw_bytes_to_int(record->headers[i].value, &wall_ms)) {
            int64_t wait_ms = wall_ms - host->ops->wall_ms(host);
            return wait_ms > 0 ? now + (uint64_t)wait_ms * LW_MS : 0;
        }
    }
    return 0;
}

static uint64_t
due_of(const struct lw_memory_slot *slot, const struct lw_memory_record *record, uint64_t now)
{
    if (__builtin_expect(!slot->is_companion, 1)) {
        return record->visible_at;
    }
    uint64_t due = not_before(slot, record, now);
    return due > record->visible_at ? due : record->visible_at;
}

static bool
is_delivered_twice(const struct lw_memory_slot *slot)
{
    struct lw_memory_fault fault;
    return lw_memory_fault_take(slot->source->broker->hub, LW_MEMORY_DELIVER_TWICE,
                                slot->partition->topic->name, &fault);
}

/* The log has no more: says so when it ends behind what was delivered. */
static void
on_dry(struct lw_memory_slot *slot)
{
    lw_list_remove(&slot->ready);
    int64_t end = slot->partition->log.end;
    if (slot->next_position < end) {
        slot->next_position = end;
        struct lw_event event = {
            .kind = LW_EVENT_POSITION,
            .source = (struct lw_source *)slot->source,
            .slot = slot->number,
            .generation = slot->generation,
            .position = end,
        };
        lw_memory_events_push(slot->source->broker, &event);
    }
}

/* By position: reads on until the quota is full, the log is dry or its head is not due. */
static void
read_log(struct lw_memory_slot *slot, struct batch *batch, size_t until)
{
    struct lw_memory_log *log = &slot->partition->log;
    while (batch->given < until && batch->bytes_left > 0) {
        struct lw_memory_chunk *chunk = NULL;
        struct lw_memory_record *record = lw_memory_log_peek(log, &slot->cursor, &chunk);
        if (!record) {
            on_dry(slot);
            return;
        }
        uint64_t due = due_of(slot, record, batch->now);
        if (due > batch->now) {
            lw_memory_slot_wait(slot, due);
            return;
        }
        fill(batch, slot, chunk, record);
        slot->next_position = record->position + 1;
        if (!is_delivered_twice(slot)) {
            slot->cursor.index++;
        }
    }
}

static void
fill_entry(struct batch *batch, const struct lw_memory_slot *slot,
           struct lw_memory_entry *entry)
{
    fill(batch, slot, entry->chunk, entry->record);
    struct lw_message *message = batch->out[batch->given - 1];
    message->redeliveries = entry->redeliveries;
    message->entry = entry;
    entry->refs++;
    const struct lw_memory_observer *observer = &slot->source->broker->hub->observer;
    if (__builtin_expect(observer->given != NULL, 0)) {
        struct lw_memory_view view = lw_memory_partition_view(slot->partition, entry->record);
        observer->given(&view, entry->redeliveries, observer->user);
    }
}

static void
read_backlog(struct lw_memory_slot *slot, struct batch *batch, size_t until)
{
    while (batch->given < until && batch->bytes_left > 0) {
        struct lw_memory_entry *entry = lw_memory_backlog_next(slot->backlog, slot, batch->now);
        if (!entry) {
            lw_memory_slot_wait(slot, lw_memory_backlog_due(slot->backlog, slot));
            return;
        }
        fill_entry(batch, slot, entry);
        if (batch->given < until && is_delivered_twice(slot)) {
            fill_entry(batch, slot, entry);
        }
    }
}

/* What one slot may give in one turn. */
static size_t
quota_of(const struct lw_memory_slot *slot)
{
    const uint32_t *rooms = slot->source->rooms;
    return rooms && rooms[slot->number] < QUOTA ? rooms[slot->number] : QUOTA;
}

/* Takes off what the slot gave, or remembers that it was passed over. */
static void
note_given(struct lw_memory_slot *slot, struct batch *batch, size_t before)
{
    size_t given = batch->given - before;
    if (slot->source->rooms) {
        slot->source->rooms[slot->number] -= (uint32_t)given;
    }
    if (given > 0) {
        batch->passed = NULL;
    } else if (!batch->passed) {
        batch->passed = slot;
    }
}

static void
read_slot(struct lw_memory_slot *slot, struct batch *batch)
{
    size_t before = batch->given;
    size_t quota = quota_of(slot);
    size_t until = before + quota < batch->room ? before + quota : batch->room;
    if (slot->backlog) {
        read_backlog(slot, batch, until);
    } else {
        read_log(slot, batch, until);
    }
    if (!lw_list_is_empty(&slot->ready)) { /* not dry: the others come first now */
        lw_list_remove(&slot->ready);
        lw_list_push(&slot->source->ready, &slot->ready);
        note_given(slot, batch, before);
    }
}

size_t
lw_memory_source_receive(struct lw_memory_source *source, struct lw_message *const out[],
                         size_t n, uint64_t bytes_max, bool *ret_has_more)
{
    struct lw_memory_broker *broker = source->broker;
    struct batch batch = {
        .out = out,
        .room = n,
        .bytes_left = bytes_max > 0 ? bytes_max : 1,
        .now = broker->base.host->now,
    };
    while (batch.given < n && batch.bytes_left > 0 && !lw_list_is_empty(&source->ready)) {
        struct lw_memory_slot *slot = LW_CONTAINER(source->ready.next, struct lw_memory_slot,
                                                   ready);
        if (slot == batch.passed) {
            break; /* none of them has room */
        }
        read_slot(slot, &batch);
    }
    broker->held += batch.given;
    broker->hub->stats.received += batch.given;
    *ret_has_more = !lw_list_is_empty(&source->ready);
    return batch.given;
}

/* -- Settling ---------------------------------------------------------------------------------- */

static void
acknowledge(struct lw_memory_source *source, struct lw_memory_entry *entry)
{
    struct lw_memory_hub *hub = source->broker->hub;
    struct lw_memory_fault fault;
    if (hub->down_until != 0 ||
        lw_memory_fault_take(hub, LW_MEMORY_LOSE_ACK, source->topic_name, &fault)) {
        hub->stats.acks_lost++;
    } else if (lw_memory_backlog_ack(entry)) {
        hub->stats.acks++;
    } else {
        hub->stats.acks_repeated++;
    }
}

static void
give_back(struct lw_memory_slot *slot, struct lw_memory_entry *entry, int64_t delay_ms)
{
    struct lw_memory_hub *hub = slot->source->broker->hub;
    uint64_t now = slot->source->broker->base.host->now;
    uint64_t delay = delay_ms < 0 ? hub->options.nack_delay_ns : (uint64_t)delay_ms * LW_MS;
    hub->stats.nacks++;
    if (hub->down_until != 0 || !slot->is_assigned) {
        return; /* it comes again anyway */
    }
    if (!slot->backlog->is_shared) {
        slot->rewind_at = now + delay < slot->rewind_at ? now + delay : slot->rewind_at;
        lw_memory_broker_wake_at(slot->source->broker, slot->rewind_at);
        return;
    }
    lw_memory_backlog_nack(entry, slot, now + delay, now);
    lw_memory_partition_wake(slot->partition);
}

static void
tell_settled(const struct lw_memory_source *source, const struct lw_memory_entry *entry,
             bool is_ack)
{
    const struct lw_memory_observer *observer = &source->broker->hub->observer;
    if (__builtin_expect(observer->settled != NULL, 0)) {
        struct lw_memory_view view = lw_memory_partition_view(entry->backlog->partition,
                                                              entry->record);
        observer->settled(&view, is_ack, observer->user);
    }
}

void
lw_memory_source_settle(struct lw_memory_source *source, const struct lw_settle_item *items,
                        size_t n)
{
    if (source->broker->state == LW_MEMORY_BROKER_VANISHED) {
        return; /* its process is dead: nothing arrives */
    }
    for (size_t i = 0; i < n; i++) {
        struct lw_memory_entry *entry = items[i].message->entry;
        tell_settled(source, entry, items[i].is_ack);
        if (items[i].is_ack) {
            acknowledge(source, entry);
        } else {
            give_back(source->slots[items[i].message->slot], entry, items[i].delay_ms);
        }
    }
}
