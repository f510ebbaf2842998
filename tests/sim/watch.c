/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is heard: the history of every dispatcher, and what the hub itself stores and has
 * committed, which nobody can colour. Both go to the oracle; effects (replies, copies, dead
 * letters) are counted by message, so that a settlement without its effect is seen (P1). Every
 * event goes into the hash of the run.
 */
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "tests/sim/world.h"

uint32_t
world_id_of(struct lw_bytes value)
{
    uint32_t id = 0;
    memcpy(&id, value.data, sizeof id);
    return id;
}

/* -- Places ---------------------------------------------------------------------------------------- */

static enum world_topic_kind
kind_of(const char *name)
{
    if (strcmp(name, "replies") == 0) {
        return WORLD_REPLIES;
    }
    if (strstr(name, ".retry.")) {
        return WORLD_TIER;
    }
    return strlen(name) == 2 ? WORLD_MAIN : WORLD_DEAD;
}

static struct world_topic *
find_topic(struct world *world, const char *name)
{
    for (uint32_t i = 0; i < world->topic_count; i++) {
        if (world->topics[i].name == name) {
            return &world->topics[i];
        }
    }
    struct world_topic *topic = &world->topics[world->topic_count++];
    *topic = (struct world_topic){ .name = name, .kind = kind_of(name) };
    if (topic->kind != WORLD_REPLIES) {
        topic->subscription = (uint32_t)(name[1] - '0');
    }
    for (uint32_t p = 0; p < PLAN_PARTITIONS_MAX; p++) {
        topic->places[p] = WORLD_NO_PLACE;
    }
    return topic;
}

/* A tier's partition uses the lanes of its source's. */
static void
share_lanes(struct world *world, const struct world_topic *tier, int32_t partition)
{
    for (uint32_t i = 0; i < world->topic_count; i++) {
        const struct world_topic *topic = &world->topics[i];
        if (topic->kind == WORLD_MAIN && topic->subscription == tier->subscription) {
            oracle_share_lanes(world->oracle, tier->places[partition],
                               topic->places[partition]);
        }
    }
}

static uint32_t
place_in(struct world *world, struct world_topic *topic, int32_t partition)
{
    if (topic->kind != WORLD_MAIN && topic->kind != WORLD_TIER) {
        return WORLD_NO_PLACE;
    }
    uint32_t *place = &topic->places[partition];
    if (*place == WORLD_NO_PLACE) {
        *place = oracle_add_place(world->oracle, world->subscriptions[topic->subscription]);
        share_lanes(world, topic, partition);
    }
    return *place;
}

uint32_t
world_place(struct world *world, const char *name, int32_t partition)
{
    return place_in(world, find_topic(world, name), partition);
}

/* -- The dispatchers' history -------------------------------------------------------------------------- */

static void
mix(struct world *world, uint64_t value)
{
    world->hash = lw_hash_mix(world->hash ^ value, LW_HASH_P1);
}

static void
hash_event(struct world *world, const struct oracle_event *event)
{
    mix(world, (uint64_t)event->kind | (uint64_t)event->member << 8 |
                   (uint64_t)event->place << 16 | (uint64_t)event->attempt << 32 |
                   (uint64_t)event->detail << 48 | (uint64_t)event->action << 56);
    mix(world, (event->generation - world->first_generation) << 32 ^ (uint64_t)event->position);
    mix(world, event->now);
}

/* A dead letter without payload does not say whose it is; one of those may be this one. */
static bool
has_dead_letter(struct world *world, const struct world_message *message)
{
    if (message->dead == 0 && world->nameless > 0) {
        world->nameless--;
        return true;
    }
    return message->dead > 0;
}

static const char *
missing_effect(struct world *world, const struct world_message *message,
               enum lw_settled outcome)
{
    switch (outcome) {
    case LW_SETTLED_ACKED:
        return message->replies < message->replies_due ? "acknowledged without its reply"
                                                       : NULL;
    case LW_SETTLED_RETRIED:
        return message->copies < message->copies_due ? "retried without a copy" : NULL;
    case LW_SETTLED_DEAD_LETTERED:
        return has_dead_letter(world, message) ? NULL : "dead-lettered without a dead letter";
    case LW_SETTLED_DROPPED:
    case LW_SETTLED_REDELIVERED:
    case LW_SETTLED_GIVEN_BACK:
        return NULL;
    }
    return "settled in an unknown way";
}

static void
on_settled(struct world *world, const struct lw_history_event *event)
{
    uint32_t id = world_id_of(event->delivery->message.value);
    struct world_message *message = &world->messages[id];
    enum lw_settled outcome = (enum lw_settled)event->detail;
    bool is_final = outcome == LW_SETTLED_ACKED || outcome == LW_SETTLED_DEAD_LETTERED ||
                    outcome == LW_SETTLED_DROPPED;
    const struct lw_outcome *said = event->delivery->outcome;
    message->replies_due += outcome == LW_SETTLED_ACKED && said && said->output_count > 0;
    message->copies_due += outcome == LW_SETTLED_RETRIED;
    const char *missing = missing_effect(world, message, outcome);
    if (missing) {
        oracle_violation(world->oracle, ORACLE_P1, "message %u was %s", id, missing);
    }
    if (is_final && !message->is_handled) {
        message->is_handled = true;
        world->handled++;
    }
}

static uint64_t
key_hash(const struct lw_delivery *delivery)
{
    const struct lw_bytes *key = &delivery->message.key;
    return key->data ? lw_hash_bytes(key->data, key->size, 7) | 1 : 0;
}

static void
tell_event(const struct oracle_event *event)
{
    static const char *const names[] = { "assigned",  "received",  "started", "returned",
                                         "judged",    "published", "settled", "dropped",
                                         "committed", "revoked" };
    printf("%12.6f m%u %-9s place %u gen %llu pos %lld attempt %u detail %d action %d\n",
           (double)(event->now - VIRTUAL_START) / 1e6, event->member, names[event->kind],
           event->place, (unsigned long long)event->generation, (long long)event->position,
           event->attempt, event->detail, event->action);
}

/* What a handler is told of earlier deliveries is what the broker said. */
static void
check_redeliveries(const struct member *member, const struct lw_delivery *delivery)
{
    struct world *world = member->world;
    uint32_t id = world_id_of(delivery->message.value);
    uint32_t given = world->messages[id].redeliveries;
    if (lw_delivery_redeliveries(delivery) != given) {
        oracle_violation(world->oracle, ORACLE_P10,
                         "message %u was redelivered %u times, member %u is told %u", id, given,
                         member->number, lw_delivery_redeliveries(delivery));
    }
}

static void
on_history(const struct lw_history_event *event, void *user)
{
    struct member *member = user;
    struct world *world = member->world;
    const struct lw_delivery *delivery = event->delivery;
    struct oracle_event told = {
        .kind = event->kind,
        .now = event->now,
        .member = member->number,
        .place = world_place(world, event->partition->topic, event->partition->number),
        .generation = event->partition->generation,
        .position = event->position,
        .key_hash = delivery ? key_hash(delivery) : 0,
        .attempt = delivery ? delivery->attempt : 0,
        .task = delivery && delivery->is_batch ? delivery->task_first->task_number : 0,
        .detail = event->detail,
        .action = event->action,
    };
    hash_event(world, &told);
    if (world->is_verbose) {
        tell_event(&told);
    }
    world->transitions += delivery != NULL && event->kind != LW_HISTORY_JUDGED;
    if (event->kind == LW_HISTORY_RECEIVED && world->plan.hub.mode == LW_MEMORY_INDIVIDUAL) {
        check_redeliveries(member, delivery);
    }
    if (event->kind == LW_HISTORY_SETTLED && member->state != MEMBER_DYING) {
        on_settled(world, event);
    }
    oracle_record(world->oracle, &told);
}

void
world_watch_member(struct member *member)
{
    if (member->world->plan.is_observed) {
        member->history = (struct lw_history){ on_history, member };
        member->dispatcher.history = &member->history;
    }
}

/* -- The hub -------------------------------------------------------------------------------------------- */

static void
on_appended(const struct lw_memory_view *view, void *user)
{
    struct world *world = user;
    struct world_topic *topic = find_topic(world, view->topic);
    uint32_t id = view->value.data ? world_id_of(view->value) : 0;
    struct world_message *message = &world->messages[id];
    uint32_t place = place_in(world, topic, view->partition);
    if (place != WORLD_NO_PLACE) {
        oracle_produced(world->oracle, place, view->position);
    }
    switch (topic->kind) {
    case WORLD_MAIN:
        world->ids[topic->subscription][view->partition][view->position] = id + 1;
        break;
    case WORLD_TIER:
        message->copies++;
        break;
    case WORLD_DEAD:
        message->dead += view->value.data != NULL;
        world->nameless += view->value.data == NULL;
        break;
    case WORLD_REPLIES:
        message->replies++;
        break;
    }
    mix(world, (uint64_t)id << 32 | (uint64_t)view->position << 8 | (uint64_t)topic->kind);
}

/* Without a history: everything below a committed position had a verdict, at least. */
static void
check_returned(struct world *world, const struct world_topic *topic, int32_t partition,
               int64_t position)
{
    for (int64_t i = 0; topic->kind == WORLD_MAIN && i < position; i++) {
        uint32_t id = world->ids[topic->subscription][partition][i] - 1;
        if (id != UINT32_MAX && !world->messages[id].has_returned) {
            oracle_violation(world->oracle, ORACLE_LOST,
                             "%s/%d@%lld was committed, message %u never handled", topic->name,
                             partition, (long long)position, id);
        }
    }
}

static void
on_committed(const char *group, const char *name, int32_t partition, int64_t position,
             void *user)
{
    struct world *world = user;
    struct world_topic *topic = find_topic(world, name);
    (void)group;
    mix(world, (uint64_t)position << 8 | (uint64_t)partition);
    if (world->is_verbose) {
        printf("%12.6f hub committed %s/%d@%lld\n",
               (double)(world->virtual_host.host.now - VIRTUAL_START) / 1e6, name, partition,
               (long long)position);
    }
    if (world->plan.is_observed) {
        oracle_committed(world->oracle, place_in(world, topic, partition), position);
    } else {
        check_returned(world, topic, partition, position);
    }
}

static void
on_given(const struct lw_memory_view *view, uint32_t redeliveries, void *user)
{
    struct world *world = user;
    struct world_topic *topic = find_topic(world, view->topic);
    world->messages[world_id_of(view->value)].redeliveries = redeliveries;
    if (world->plan.is_observed) {
        oracle_given(world->oracle, place_in(world, topic, view->partition), view->position);
    }
}

static void
on_hub_settled(const struct lw_memory_view *view, bool is_ack, void *user)
{
    struct world *world = user;
    uint32_t id = world_id_of(view->value);
    mix(world, (uint64_t)id << 1 | is_ack);
    if (!world->plan.is_observed) {
        if (is_ack && !world->messages[id].has_returned) {
            oracle_violation(world->oracle, ORACLE_P1,
                             "message %u was acknowledged before its handler returned", id);
        }
        return;
    }
    uint32_t place = place_in(world, find_topic(world, view->topic), view->partition);
    if (is_ack) {
        oracle_acked(world->oracle, place, view->position);
    } else {
        oracle_nacked(world->oracle, place, view->position);
    }
}

void
world_watch_hub(struct world *world)
{
    struct lw_memory_observer observer = { .appended = on_appended,
                                           .committed = on_committed,
                                           .given = on_given,
                                           .settled = on_hub_settled,
                                           .user = world };
    lw_memory_hub_observe(world->hub, &observer);
}
