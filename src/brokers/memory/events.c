/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring of events, there from the beginning. Receipts reserve their place when their publication
 * is accepted; the few events of assignments grow the ring long before it is full, so that lack of
 * memory is met by later attempts. A full ring that cannot grow ends the program, since an event
 * that is dropped silently would be worse. Loop thread.
 */
#include "brokers/memory/events.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "brokers/memory/broker.h"

enum { EVENTS_FIRST = 64 };

bool
lw_memory_events_reserve(struct lw_memory_broker *broker, size_t extra)
{
    struct lw_memory_events *events = &broker->events;
    size_t wanted = events->count + broker->producer.count + extra;
    if (wanted <= events->capacity) {
        return true;
    }
    size_t capacity = events->capacity ? events->capacity * 2 : EVENTS_FIRST;
    while (capacity < wanted) {
        capacity *= 2;
    }
    struct lw_event *items = lw_alloc_array(capacity, sizeof *items);
    if (!items) {
        return false;
    }
    for (size_t i = 0; i < events->count; i++) {
        items[i] = events->items[(events->first + i) & (events->capacity - 1)];
    }
    lw_free(events->items);
    events->items = items;
    events->first = 0;
    events->capacity = capacity;
    return true;
}

void
lw_memory_events_push(struct lw_memory_broker *broker, const struct lw_event *event)
{
    struct lw_memory_events *events = &broker->events;
    if (events->count + broker->producer.count >= events->capacity / 4 * 3) {
        (void)lw_memory_events_reserve(broker, events->capacity / 2);
    }
    lw_assert(events->count < events->capacity);
    events->items[(events->first + events->count++) & (events->capacity - 1)] = *event;
    events->lost += event->kind == LW_EVENT_LOST;
    lw_memory_broker_poke(broker);
}

void
lw_memory_events_push_kind(struct lw_memory_broker *broker, enum lw_event_kind kind)
{
    lw_memory_events_push(broker, &(struct lw_event){ .kind = kind });
}

size_t
lw_memory_events_take(struct lw_memory_broker *broker, struct lw_event *out, size_t n)
{
    struct lw_memory_events *events = &broker->events;
    size_t count = n < events->count ? n : events->count;
    for (size_t i = 0; i < count; i++) {
        out[i] = events->items[(events->first + i) & (events->capacity - 1)];
        events->lost -= out[i].kind == LW_EVENT_LOST;
    }
    events->first = (events->first + count) & (events->capacity - 1);
    events->count -= count;
    return count;
}
