/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hub in time: being down, stalled topics, rebalances; and the commands of tests that start
 * those. The hub has no timer: each of its brokers turns at the time that lw_memory_hub_due
 * says. While it is down nothing moves but time: a session that is over then costs every
 * assignment at once, as the real client's own timer does.
 */
#include "brokers/memory/hub_turn.h"

#include <string.h>

#include "brokers/memory/broker.h"
#include "brokers/memory/group.h"
#include "brokers/memory/member.h"
#include "brokers/memory/topic.h"

typedef void (*broker_fn)(struct lw_memory_broker *broker);

static void
each_broker(struct lw_memory_hub *hub, broker_fn fn)
{
    for (struct lw_list *node = hub->brokers.next; node != &hub->brokers; node = node->next) {
        fn(LW_CONTAINER(node, struct lw_memory_broker, link));
    }
}

struct lw_host *
lw_memory_hub_host(const struct lw_memory_hub *hub)
{
    const struct lw_list *head = &hub->brokers;
    for (struct lw_list *node = head->next; node != head; node = node->next) {
        const struct lw_memory_broker *broker = LW_CONTAINER(node, struct lw_memory_broker,
                                                             link);
        if (broker->state < LW_MEMORY_BROKER_VANISHED) {
            return broker->base.host;
        }
    }
    return NULL;
}

static uint64_t
now_of(const struct lw_memory_hub *hub)
{
    const struct lw_host *host = lw_memory_hub_host(hub);
    return host ? host->now : 0;
}

/* -- Down -------------------------------------------------------------------------------------- */

static uint64_t
session_end(const struct lw_memory_hub *hub)
{
    return hub->down_since + hub->options.session_timeout_ns;
}

void
lw_memory_hub_set_down(struct lw_memory_hub *hub, uint64_t duration_ns)
{
    uint64_t now = now_of(hub);
    if (hub->down_until == 0) {
        hub->down_since = now;
        hub->is_session_over = false;
    }
    hub->down_until = now + duration_ns > 0 ? now + duration_ns : 1;
    each_broker(hub, lw_memory_broker_on_down);
    each_broker(hub, lw_memory_broker_poke);
}

static void
advance_down(struct lw_memory_hub *hub, uint64_t now)
{
    if (now >= session_end(hub) && !hub->is_session_over) {
        hub->is_session_over = true;
        each_broker(hub, lw_memory_broker_on_session_end);
    }
    if (now >= hub->down_until) {
        hub->down_until = 0;
        each_broker(hub, lw_memory_broker_on_up);
    }
}

/* -- Stalled topics ------------------------------------------------------------------------------ */

static void
wake_topic(struct lw_memory_topic *topic)
{
    for (int32_t i = 0; i < topic->partition_count; i++) {
        lw_memory_partition_wake(topic->partitions[i]);
    }
}

static void
silence(struct lw_memory_partition *partition)
{
    struct lw_list *head = &partition->readers;
    for (struct lw_list *node = head->next; node != head; node = node->next) {
        lw_list_remove(&LW_CONTAINER(node, struct lw_memory_slot, reader)->ready);
    }
}

void
lw_memory_hub_stall(struct lw_memory_hub *hub, const char *name, uint64_t duration_ns)
{
    struct lw_memory_topic *topic = lw_memory_topic_find(hub, name);
    if (!topic || duration_ns == 0) {
        return;
    }
    hub->stalled_count += topic->stalled_until == 0;
    topic->stalled_until = now_of(hub) + duration_ns;
    for (int32_t i = 0; i < topic->partition_count; i++) {
        silence(topic->partitions[i]);
    }
    each_broker(hub, lw_memory_broker_poke);
}

static void
advance_stalls(struct lw_memory_hub *hub, uint64_t now)
{
    for (struct lw_list *node = hub->topics.next; node != &hub->topics; node = node->next) {
        struct lw_memory_topic *topic = LW_CONTAINER(node, struct lw_memory_topic, link);
        if (topic->stalled_until != 0 && topic->stalled_until <= now) {
            topic->stalled_until = 0;
            hub->stalled_count--;
            wake_topic(topic);
        }
    }
}

static uint64_t
stalls_due(const struct lw_memory_hub *hub)
{
    uint64_t due = LW_NEVER;
    const struct lw_list *head = &hub->topics;
    for (struct lw_list *node = head->next; node != head; node = node->next) {
        const struct lw_memory_topic *topic = LW_CONTAINER(node, struct lw_memory_topic, link);
        if (topic->stalled_until != 0 && topic->stalled_until < due) {
            due = topic->stalled_until;
        }
    }
    return due;
}

/* -- Turns --------------------------------------------------------------------------------------- */

void
lw_memory_hub_advance(struct lw_memory_hub *hub, uint64_t now)
{
    if (hub->stalled_count > 0) {
        advance_stalls(hub, now);
    }
    if (hub->down_until != 0) {
        advance_down(hub, now);
    }
    if (hub->down_until != 0) {
        return;
    }
    for (struct lw_list *node = hub->groups.next; node != &hub->groups; node = node->next) {
        struct lw_memory_group *group = LW_CONTAINER(node, struct lw_memory_group, link);
        lw_memory_group_advance(hub, group, now);
    }
}

uint64_t
lw_memory_hub_due(const struct lw_memory_hub *hub)
{
    uint64_t due = hub->stalled_count > 0 ? stalls_due(hub) : LW_NEVER;
    if (hub->down_until != 0) {
        due = hub->down_until < due ? hub->down_until : due;
        uint64_t session = session_end(hub);
        return !hub->is_session_over && session < due ? session : due;
    }
    const struct lw_list *head = &hub->groups;
    for (struct lw_list *node = head->next; node != head; node = node->next) {
        uint64_t own = lw_memory_group_due(LW_CONTAINER(node, struct lw_memory_group, link));
        due = own < due ? own : due;
    }
    return due;
}

/* -- What a test may do at any time ---------------------------------------------------------------- */

void
lw_memory_hub_set_room(struct lw_memory_hub *hub, bool has_room)
{
    hub->has_no_room = !has_room;
    each_broker(hub, lw_memory_broker_poke);
}

void
lw_memory_hub_rebalance(struct lw_memory_hub *hub, const char *name)
{
    struct lw_memory_group *group = lw_memory_group_find(hub, name);
    if (group) {
        lw_memory_group_want(group);
    }
}

void
lw_memory_hub_lose(struct lw_memory_hub *hub, const char *name)
{
    for (struct lw_list *node = hub->brokers.next; node != &hub->brokers; node = node->next) {
        struct lw_memory_broker *broker = LW_CONTAINER(node, struct lw_memory_broker, link);
        if (strcmp(broker->name, name) == 0 && broker->state == LW_MEMORY_BROKER_UP) {
            lw_memory_broker_lose(broker);
        }
    }
}
