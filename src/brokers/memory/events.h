/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of events of one broker, which its dispatcher fetches once a turn. */
#ifndef LW_BROKERS_MEMORY_EVENTS_H
#define LW_BROKERS_MEMORY_EVENTS_H

#include "brokers/memory/data.h"

/* Makes room for `extra` more, so that pushing them cannot fail. */
bool lw_memory_events_reserve(struct lw_memory_broker *broker, size_t extra);
/* Appends and sees to it that a turn follows. */
void lw_memory_events_push(struct lw_memory_broker *broker, const struct lw_event *event);
/* Pushes an event that has nothing but its kind. */
void lw_memory_events_push_kind(struct lw_memory_broker *broker, enum lw_event_kind kind);
size_t lw_memory_events_take(struct lw_memory_broker *broker, struct lw_event *out, size_t n);

#endif
