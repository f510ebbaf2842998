/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a broker will tell the dispatcher: a ring that grows. A receipt or a partition's end must
 * never be lost for lack of memory, so whoever will owe an event later reserves its place when it
 * takes on the duty (a publication accepted, a partition assigned). Errors are copied; they live
 * until the call of lw_events_take after the one that gave them out. Loop thread.
 */
#ifndef LW_BROKERS_COMMON_EVENTS_H
#define LW_BROKERS_COMMON_EVENTS_H

#include <laneway/plugin.h>

#include "base/host.h"

struct lw_events {
    struct lw_host *host;
    struct lw_event *items; /* a ring */
    size_t first;
    size_t count;
    size_t capacity;
    size_t reserved;         /* promised by reserve, not yet pushed */
    struct lw_error **shown; /* errors of the events given out last */
    size_t shown_count;
    size_t shown_capacity;
};

void lw_events_init(struct lw_events *events, struct lw_host *host);
void lw_events_deinit(struct lw_events *events);
/* Makes sure that n more pushes cannot fail; false without memory. */
bool lw_events_reserve(struct lw_events *events, size_t n);
/* Gives back what reserve took and nobody will push. */
void lw_events_unreserve(struct lw_events *events, size_t n);
/* A state that will be said again if it was lost; takes no reserved place. */
void lw_events_push(struct lw_events *events, const struct lw_event *event);
/* Uses one reserved place; never fails. */
void lw_events_push_reserved(struct lw_events *events, const struct lw_event *event);
/* Pushes with a copy of the error. */
void lw_events_push_error(struct lw_events *events, const struct lw_event *event,
                          const struct lw_error *error);
size_t lw_events_take(struct lw_events *events, struct lw_event *out, size_t n);

#endif
