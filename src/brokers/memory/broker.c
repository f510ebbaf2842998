/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One broker: its life, its turn, and the table. A turn (by timer or poke) advances the hub, then
 * connects, sends receipts, answers the commit, and lets sources do what is due. All of it only
 * pushes events; nothing here calls the dispatcher. What the dispatcher calls is in table.c.
 * Loop thread.
 */
#include "brokers/memory/broker.h"

#include "base/error.h"
#include "brokers/memory/commit.h"
#include "brokers/memory/events.h"
#include "brokers/memory/group.h"
#include "brokers/memory/hub_turn.h"
#include "brokers/memory/member.h"
#include "brokers/memory/producer.h"
#include "brokers/memory/source.h"
#include "brokers/memory/topic.h"

struct lw_memory_broker *
lw_memory_broker_of(struct lw_broker *broker)
{
    return LW_CONTAINER(broker, struct lw_memory_broker, base);
}

typedef void (*source_fn)(struct lw_memory_source *source);

static void
each_source(struct lw_memory_broker *broker, source_fn fn)
{
    struct lw_list *head = &broker->sources;
    for (struct lw_list *node = head->next; node != head; node = node->next) {
        fn(LW_CONTAINER(node, struct lw_memory_source, link));
    }
}

typedef void (*member_fn)(struct lw_memory_member *member);

static void
each_member(struct lw_memory_broker *broker, member_fn fn)
{
    struct lw_list *next;
    for (struct lw_list *node = broker->members.next; node != &broker->members; node = next) {
        next = node->next;
        fn(LW_CONTAINER(node, struct lw_memory_member, broker_link));
    }
}

/* -- Turns ------------------------------------------------------------------------------------- */

void
lw_memory_broker_poke(struct lw_memory_broker *broker)
{
    lw_host_defer(broker->base.host, &broker->deferred);
}

static void
arm(struct lw_memory_broker *broker, uint64_t due)
{
    if (due < broker->timer.due) {
        lw_timers_arm(&broker->base.host->timers, &broker->timer, due);
    }
}

void
lw_memory_broker_wake_at(struct lw_memory_broker *broker, uint64_t due)
{
    broker->sources_due = due < broker->sources_due ? due : broker->sources_due;
    if (due <= broker->base.host->now) {
        lw_memory_broker_poke(broker);
    } else {
        arm(broker, due);
    }
}

/* Says what is missing once; the topic's coming is noticed by lw_memory_source_on_topic. */
static void
find_topic(struct lw_memory_source *source)
{
    if (!source->topic) {
        struct lw_memory_topic *topic = lw_memory_topic_use(source->broker->hub,
                                                            source->topic_name, 0);
        if (topic && !source->topic) { /* it was there before we subscribed */
            source->topic = topic;
            lw_list_push(&topic->sources, &source->topic_link);
        }
    }
    if (!source->topic && !source->is_missing_said) {
        source->is_missing_said = true;
        lw_memory_source_fail(source, LW_STATUS_NOT_FOUND, "E0503", false,
                              "the topic does not exist");
    }
    source->retry_at = 0;
}

static void
connect(struct lw_memory_broker *broker)
{
    broker->state = LW_MEMORY_BROKER_UP;
    broker->sources_due = 0;
    lw_memory_events_push_kind(broker, LW_EVENT_BROKER_UP);
    each_source(broker, find_topic);
    each_member(broker, lw_memory_member_join);
    each_source(broker, lw_memory_source_update);
}

static void
advance_sources(struct lw_memory_broker *broker, uint64_t now)
{
    if (broker->sources_due > now) {
        return;
    }
    if (broker->state != LW_MEMORY_BROKER_UP) {
        broker->sources_due = LW_NEVER; /* coming up looks at all of them */
        return;
    }
    uint64_t due = LW_NEVER;
    broker->sources_due = LW_NEVER;
    struct lw_list *head = &broker->sources;
    for (struct lw_list *node = head->next; node != head; node = node->next) {
        struct lw_memory_source *source = LW_CONTAINER(node, struct lw_memory_source, link);
        lw_memory_source_advance(source, now);
        uint64_t own = lw_memory_source_due(source);
        due = own < due ? own : due;
    }
    broker->sources_due = due < broker->sources_due ? due : broker->sources_due;
}

static uint64_t
earliest(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void
turn(struct lw_memory_broker *broker, uint64_t now)
{
    if (broker->state == LW_MEMORY_BROKER_CLOSED ||
        broker->state == LW_MEMORY_BROKER_VANISHED) {
        return;
    }
    lw_memory_hub_advance(broker->hub, now);
    bool is_connecting = broker->state == LW_MEMORY_BROKER_CONNECTING;
    if (is_connecting && broker->connect_at <= now && broker->hub->down_until == 0) {
        connect(broker);
    }
    lw_memory_producer_advance(broker, now);
    lw_memory_commit_advance(broker, now);
    advance_sources(broker, now);
    uint64_t due = earliest(lw_memory_hub_due(broker->hub), broker->sources_due);
    due = earliest(due, lw_memory_producer_due(broker));
    due = earliest(due, lw_memory_commit_due(broker));
    if (broker->state == LW_MEMORY_BROKER_CONNECTING && broker->hub->down_until == 0) {
        due = earliest(due, broker->connect_at);
    }
    arm(broker, due);
}

static void
on_timer(struct lw_timer *timer, uint64_t now)
{
    turn(LW_CONTAINER(timer, struct lw_memory_broker, timer), now);
}

static void
on_deferred(struct lw_deferred *deferred)
{
    struct lw_memory_broker *broker = LW_CONTAINER(deferred, struct lw_memory_broker, deferred);
    turn(broker, broker->base.host->now);
}

void
lw_memory_broker_init_turns(struct lw_memory_broker *broker)
{
    broker->sources_due = LW_NEVER;
    lw_timer_init(&broker->timer, on_timer);
    lw_deferred_init(&broker->deferred, on_deferred);
}

/* -- The hub's ups and downs ------------------------------------------------------------------- */

static void
lose_slots(struct lw_memory_source *source)
{
    for (uint32_t i = 0; i < source->slot_count; i++) {
        struct lw_memory_slot *slot = source->slots[i];
        if (slot->is_assigned) {
            lw_memory_slot_lose(slot);
        }
        lw_memory_slot_unassign(slot);
        slot->is_revoking = false;
    }
}

static void
lose_individual(struct lw_memory_source *source)
{
    if (!source->member) {
        lose_slots(source);
        source->retry_at = 0;
    }
}

void
lw_memory_broker_on_down(struct lw_memory_broker *broker)
{
    if (broker->state != LW_MEMORY_BROKER_UP) {
        return;
    }
    broker->state = LW_MEMORY_BROKER_DOWN;
    lw_error_set(&broker->error, LW_STATUS_UNAVAILABLE, "", "the memory hub is down");
    broker->error.is_retriable = true;
    struct lw_event event = {
        .kind = LW_EVENT_BROKER_DOWN,
        .status = LW_STATUS_UNAVAILABLE,
        .error = &broker->error,
    };
    lw_memory_events_push(broker, &event);
    each_source(broker, lose_individual);
    each_source(broker, lw_memory_source_update);
}

void
lw_memory_broker_on_up(struct lw_memory_broker *broker)
{
    if (broker->state == LW_MEMORY_BROKER_DOWN) {
        broker->state = LW_MEMORY_BROKER_UP;
        broker->sources_due = 0;
        lw_memory_events_push_kind(broker, LW_EVENT_BROKER_UP);
        each_source(broker, lw_memory_source_update);
    }
    lw_memory_broker_poke(broker);
}

void
lw_memory_broker_on_session_end(struct lw_memory_broker *broker)
{
    each_member(broker, lw_memory_member_lose);
}

void
lw_memory_broker_lose(struct lw_memory_broker *broker)
{
    each_member(broker, lw_memory_member_lose);
    each_source(broker, lose_individual);
    lw_memory_broker_wake_at(broker, 0);
}

/* -- The end -------------------------------------------------------------------------------- */

/* What close and vanish share: it is no member of anything any more. */
void
lw_memory_broker_detach(struct lw_memory_broker *broker, bool is_dead)
{
    while (!lw_list_is_empty(&broker->members)) {
        lw_memory_member_end(
            LW_CONTAINER(broker->members.next, struct lw_memory_member, broker_link), is_dead,
            broker->base.host->now);
    }
    struct lw_list *head = &broker->sources;
    for (struct lw_list *node = head->next; node != head; node = node->next) {
        struct lw_memory_source *source = LW_CONTAINER(node, struct lw_memory_source, link);
        source->is_stopped = true;
        for (uint32_t i = 0; i < source->slot_count; i++) {
            lw_memory_slot_unassign(source->slots[i]);
        }
    }
}

/* Says LOST for everything that it has; the generations of one are said once each. */
static void
lose_all(struct lw_memory_source *source)
{
    if (!source->member) {
        lose_slots(source);
    }
}

void
lw_memory_broker_vanish(struct lw_broker *base, bool is_applied)
{
    struct lw_memory_broker *broker = lw_memory_broker_of(base);
    bool is_reached = broker->state == LW_MEMORY_BROKER_UP;
    lw_memory_producer_end(broker, is_applied && is_reached);
    lw_memory_commit_end(broker, is_applied && is_reached);
    each_source(broker, lose_all);
    each_member(broker, lw_memory_member_say_lost);
    lw_memory_broker_detach(broker, true);
    broker->state = LW_MEMORY_BROKER_VANISHED;
    each_source(broker, lw_memory_source_update);
    lw_timers_disarm(&base->host->timers, &broker->timer);
}

struct lw_memory_hub *
lw_memory_broker_hub(struct lw_broker *base)
{
    return lw_memory_broker_of(base)->hub;
}
