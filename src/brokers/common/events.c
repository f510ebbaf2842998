/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the dispatcher will be told: a ring that grows. A receipt or a partition's end must never
 * be lost for lack of memory, so whoever will owe an event later reserves its place when it
 * takes on the duty (a publication accepted, a partition assigned). Errors are copied; they live
 * until the call of `events` after the one that gave them out. Loop thread.
 */
#include "brokers/common/events.h"

#include "base/alloc.h"
#include "base/assert.h"

static const struct lw_error no_memory_error = { .status = LW_STATUS_NO_MEMORY,
                                                 .message = "no memory left for the reason" };

static bool
grow(struct lw_events *events, size_t wanted)
{
    size_t capacity = events->capacity ? events->capacity : 64;
    while (capacity < wanted) {
        capacity *= 2;
    }
    struct lw_event *items = lw_alloc_array(capacity, sizeof *items);
    if (!items) {
        return false;
    }
    for (size_t i = 0; events->capacity > 0 && i < events->count; i++) {
        items[i] = events->items[(events->first + i) % events->capacity];
    }
    lw_free(events->items);
    events->items = items;
    events->capacity = capacity;
    events->first = 0;
    return true;
}

bool
lw_events_reserve(struct lw_events *events, size_t n)
{
    size_t wanted = events->count + events->reserved + n;
    if (wanted > events->capacity && !grow(events, wanted)) {
        return false;
    }
    events->reserved += n;
    return true;
}

void
lw_events_unreserve(struct lw_events *events, size_t n)
{
    lw_assert(events->reserved >= n);
    events->reserved -= n;
}

static void
free_error(const struct lw_error *error)
{
    if (error && error != &no_memory_error) {
        lw_free((void *)(uintptr_t)error);
    }
}

static void
append(struct lw_events *events, const struct lw_event *event)
{
    lw_assert(events->count < events->capacity);
    events->items[(events->first + events->count) % events->capacity] = *event;
    events->count++;
    lw_host_want_turn(events->host);
}

void
lw_events_push(struct lw_events *events, const struct lw_event *event)
{
    if (lw_events_reserve(events, 1)) {
        lw_events_push_reserved(events, event);
        return;
    }
    lw_host_log(events->host, LW_LOG_ERROR, "broker.no_memory",
                "an event of the broker was dropped for lack of memory", "kind=%d",
                (int)event->kind);
    free_error(event->error);
}

void
lw_events_push_reserved(struct lw_events *events, const struct lw_event *event)
{
    lw_assert(events->reserved > 0);
    events->reserved--;
    append(events, event);
}

void
lw_events_push_error(struct lw_events *events, const struct lw_event *event,
                     const struct lw_error *error)
{
    struct lw_event copy = *event;
    copy.error = lw_copy_bytes(error, sizeof *error);
    if (!copy.error) {
        copy.error = &no_memory_error;
    }
    lw_events_push(events, &copy);
}

static void
forget_shown(struct lw_events *events)
{
    for (size_t i = 0; i < events->shown_count; i++) {
        lw_free(events->shown[i]);
    }
    events->shown_count = 0;
}

/* Remembers the error for its end; without memory for that the event shows the constant one. */
static void
show(struct lw_events *events, struct lw_event *event)
{
    if (!event->error || event->error == &no_memory_error) {
        return;
    }
    if (events->shown_count == events->shown_capacity) {
        size_t capacity = events->shown_capacity + 16;
        struct lw_error **shown = lw_resize_array(events->shown, capacity,
                                                  sizeof(struct lw_error *));
        if (!shown) {
            free_error(event->error);
            event->error = &no_memory_error;
            return;
        }
        events->shown = shown;
        events->shown_capacity = capacity;
    }
    events->shown[events->shown_count++] = (struct lw_error *)(uintptr_t)event->error;
}

size_t
lw_events_take(struct lw_events *events, struct lw_event *out, size_t n)
{
    forget_shown(events);
    size_t taken = 0;
    while (taken < n && events->count > 0) {
        out[taken] = events->items[events->first];
        show(events, &out[taken]);
        events->first = (events->first + 1) % events->capacity;
        events->count--;
        taken++;
    }
    return taken;
}

void
lw_events_init(struct lw_events *events, struct lw_host *host)
{
    *events = (struct lw_events){ .host = host };
}

void
lw_events_deinit(struct lw_events *events)
{
    forget_shown(events);
    for (size_t i = 0; i < events->count; i++) {
        free_error(events->items[(events->first + i) % events->capacity].error);
    }
    lw_free(events->shown);
    lw_free(events->items);
}
