/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Publications wait in a ring until their time (latency, scripted slowness) has come; then the
 * first goes into its log and its receipt is an event. The order of acceptance is kept, also
 * behind a slow one. What a fault decides is decided at acceptance, so that a script counts
 * publications in the order in which they were given. While the hub is down everything waits.
 * By position a delayed one goes to the tier topic that fits: the smallest tier that is not
 * shorter than the delay, else the longest. Loop thread.
 */
#include "brokers/memory/producer.h"

#include <string.h>

#include "base/alloc.h"
#include "brokers/memory/broker.h"
#include "brokers/memory/events.h"
#include "brokers/memory/faults.h"
#include "brokers/memory/source.h"
#include "brokers/memory/topic.h"

enum { RING_FIRST = 64, TOPIC_NAME_SIZE = 512 };

static struct lw_memory_pending *
at(struct lw_memory_producer *producer, uint32_t index)
{
    return &producer->items[(producer->first + index) & (producer->capacity - 1)];
}

static bool
reserve(struct lw_memory_broker *broker)
{
    struct lw_memory_producer *producer = &broker->producer;
    if (!lw_memory_events_reserve(broker, 1)) {
        return false;
    }
    if (producer->count < producer->capacity) {
        return true;
    }
    uint32_t capacity = producer->capacity ? producer->capacity * 2 : RING_FIRST;
    struct lw_memory_pending *items = lw_alloc_array(capacity, sizeof *items);
    if (!items) {
        return false;
    }
    for (uint32_t i = 0; i < producer->count; i++) {
        items[i] = *at(producer, i);
    }
    lw_free(producer->items);
    producer->items = items;
    producer->first = 0;
    producer->capacity = capacity;
    return true;
}

static bool
has_room(const struct lw_memory_broker *broker)
{
    const struct lw_memory_hub *hub = broker->hub;
    return broker->state < LW_MEMORY_BROKER_VANISHED && !hub->has_no_room &&
           broker->producer.count < hub->options.publish_queue_max;
}

static void
accept(struct lw_memory_broker *broker, struct lw_publication *publication)
{
    struct lw_memory_hub *hub = broker->hub;
    struct lw_memory_producer *producer = &broker->producer;
    struct lw_memory_pending *pending = at(producer, producer->count);
    uint64_t due = broker->base.host->now + hub->options.publish_latency_ns;
    struct lw_memory_fault fault;
    *pending = (struct lw_memory_pending){ .publication = publication, .is_stored = true };
    if (lw_memory_fault_take(hub, LW_MEMORY_REFUSE_PUBLISH, publication->topic, &fault)) {
        pending->status = fault.status;
        pending->is_stored = false;
    } else if (lw_memory_fault_take(hub, LW_MEMORY_LOSE_RECEIPT, publication->topic, &fault)) {
        pending->status = LW_STATUS_UNKNOWN;
        pending->is_stored = fault.is_applied;
    }
    if (lw_memory_fault_take(hub, LW_MEMORY_SLOW_PUBLISH, publication->topic, &fault)) {
        due += fault.delay_ns;
    }
    uint64_t last = producer->count > 0 ? at(producer, producer->count - 1)->due : 0;
    pending->due = due > last ? due : last;
    producer->count++;
    lw_memory_broker_wake_at(broker, pending->due);
}

size_t
lw_memory_producer_publish(struct lw_memory_broker *broker,
                           struct lw_publication *const items[], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!has_room(broker) || !reserve(broker)) {
            broker->producer.owes_room = true;
            lw_memory_broker_poke(broker);
            return i;
        }
        accept(broker, items[i]);
    }
    return n;
}

/* -- Storing --------------------------------------------------------------------------------- */

static const struct lw_memory_source *
source_of_retry_topic(const struct lw_memory_broker *broker, const char *topic)
{
    const struct lw_list *head = &broker->sources;
    for (struct lw_list *node = head->next; node != head; node = node->next) {
        const struct lw_memory_source *source = LW_CONTAINER(node, struct lw_memory_source,
                                                             link);
        if (source->retry_topic && source->tier_count > 0 &&
            strcmp(source->retry_topic, topic) == 0) {
            return source;
        }
    }
    return NULL;
}

/* The topic that it goes to, made if the hub does so; NULL when there is none. */
static struct lw_memory_topic *
target(struct lw_memory_broker *broker, const struct lw_publication *publication)
{
    const struct lw_memory_source *source = NULL;
    if (publication->delay_ms > 0 && broker->hub->options.mode == LW_MEMORY_POSITION) {
        source = source_of_retry_topic(broker, publication->topic);
    }
    if (!source) {
        return lw_memory_topic_use(broker->hub, publication->topic, 0);
    }
    size_t tier = 0;
    while (tier + 1 < source->tier_count && source->tiers_ms[tier] < publication->delay_ms) {
        tier++;
    }
    char name[TOPIC_NAME_SIZE];
    if (!lw_memory_source_tier(source, source->tiers_ms[tier], name, sizeof name)) {
        return NULL;
    }
    int32_t partitions = source->topic ? source->topic->partition_count : 0;
    return lw_memory_topic_use(broker->hub, name, partitions);
}

static enum lw_status
store(struct lw_memory_broker *broker, const struct lw_publication *publication)
{
    struct lw_memory_topic *topic = target(broker, publication);
    if (!topic) {
        return LW_STATUS_NOT_FOUND;
    }
    struct lw_memory_item item = {
        .topic = topic->name,
        .partition = publication->partition,
        .key = publication->key,
        .ordering_key = publication->ordering_key,
        .value = publication->value,
        .headers = publication->headers,
        .header_count = publication->header_count,
        .event_time_ms = publication->event_time_ms,
        .delay_ms = publication->delay_ms,
    };
    return lw_memory_topic_append(broker->hub, topic, &item, NULL, NULL);
}

static void
finish(struct lw_memory_broker *broker, struct lw_memory_pending pending)
{
    struct lw_memory_stats *stats = &broker->hub->stats;
    if (pending.is_stored) {
        enum lw_status stored = store(broker, pending.publication);
        pending.status = pending.status == LW_STATUS_OK ? stored : pending.status;
    }
    stats->published += pending.status == LW_STATUS_OK;
    stats->refused += pending.status != LW_STATUS_OK;
    struct lw_event event = {
        .kind = LW_EVENT_PUBLISHED,
        .publication = pending.publication,
        .status = pending.status,
    };
    lw_memory_events_push(broker, &event);
}

static struct lw_memory_pending
pop(struct lw_memory_producer *producer)
{
    struct lw_memory_pending pending = *at(producer, 0);
    producer->first = (producer->first + 1) & (producer->capacity - 1);
    producer->count--;
    return pending;
}

void
lw_memory_producer_advance(struct lw_memory_broker *broker, uint64_t now)
{
    struct lw_memory_producer *producer = &broker->producer;
    if (broker->state != LW_MEMORY_BROKER_UP) {
        return;
    }
    while (producer->count > 0 && at(producer, 0)->due <= now) {
        finish(broker, pop(producer));
    }
    if (producer->owes_room && has_room(broker) &&
        producer->count <= broker->hub->options.publish_queue_max / 2) {
        producer->owes_room = false;
        lw_memory_events_push_kind(broker, LW_EVENT_PUBLISH_ROOM);
    }
}

uint64_t
lw_memory_producer_due(const struct lw_memory_broker *broker)
{
    const struct lw_memory_producer *producer = &broker->producer;
    bool waits = producer->count > 0 && broker->state == LW_MEMORY_BROKER_UP;
    return waits ? producer->items[producer->first].due : LW_NEVER;
}

void
lw_memory_producer_end(struct lw_memory_broker *broker, bool is_stored)
{
    while (broker->producer.count > 0) {
        struct lw_memory_pending pending = pop(&broker->producer);
        pending.is_stored = pending.is_stored && is_stored;
        pending.status = LW_STATUS_UNKNOWN;
        finish(broker, pending);
    }
}
