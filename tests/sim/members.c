/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Members of a world: their making, their ordered end and their death. A death is a vanished
 * broker: for the hub the process is gone at that instant, for the oracle nothing that it still
 * says counts, while its dispatcher is brought to an end in order so that its memory can be
 * checked as well.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/world.h"

static void
must(enum lw_status status, const struct lw_error *error)
{
    if (status != LW_STATUS_OK) {
        fprintf(stderr, "sim: %s: %s\n", lw_status_name(status), error->message);
        abort();
    }
}

/* A run that nobody was charged for is followed by one with the same number (P10). */
static void
check_attempt(struct world *world, const struct member *member,
              const struct lw_delivery *delivery)
{
    struct world_message *message = &world->messages[world_id_of(delivery->message.value)];
    bool is_same = message->free_generation == delivery->partition->generation &&
                   message->free_position == delivery->message.position;
    if (is_same && message->free_attempt > 0 && delivery->attempt > message->free_attempt) {
        oracle_violation(world->oracle, ORACLE_P10,
                         "member %u position %lld: attempt %u after a free attempt %u",
                         member->number, (long long)delivery->message.position,
                         delivery->attempt, message->free_attempt);
    }
    message->free_attempt = 0;
}

static void
on_started(struct lw_delivery *delivery, void *user)
{
    struct member *member = user;
    struct world *world = member->world;
    member->running += !delivery->is_batch || delivery->task_first == delivery;
    if (member->running > world->plan.dispatcher.concurrency) {
        oracle_violation(world->oracle, ORACLE_P4, "member %u runs %u handlers of %u",
                         member->number, member->running, world->plan.dispatcher.concurrency);
    }
    check_attempt(world, member, delivery);
}

static void
on_returned(struct lw_delivery *delivery, enum lw_verdict verdict, void *user)
{
    struct member *member = user;
    struct world *world = member->world;
    struct world_message *message = &world->messages[world_id_of(delivery->message.value)];
    const struct lw_delivery *first = delivery->is_batch ? delivery->task_first : delivery;
    member->running -= delivery == first;
    bool is_charged = !first->outcome || !first->outcome->is_uncharged;
    message->has_returned |= is_charged;
    message->free_attempt = is_charged ? 0 : delivery->attempt;
    message->free_generation = delivery->partition->generation;
    message->free_position = delivery->message.position;
    if (!world->plan.is_observed) {
        world->transitions += 3; /* received or queued again, started, judged: not told apart */
        bool is_final = verdict == LW_OK || verdict == LW_DROP || verdict == LW_DEAD;
        message->is_handled |= is_charged && is_final;
    }
}

static void
add_streams(struct world *world, struct member *member)
{
    struct lw_error error = { 0 };
    for (uint32_t i = 0; i < world->plan.topic_count; i++) {
        must(lw_dispatcher_add_stream(&member->dispatcher, &world->plan.topics[i].options,
                                      &member->engine->base, &error),
             &error);
    }
}

void
world_begin_member(struct world *world, struct member *member)
{
    char url[64];
    struct lw_error error = { 0 };
    struct sim_engine_hooks hooks = { on_started, on_returned, member };
    memset(member, 0, sizeof *member);
    member->state = MEMBER_RUNNING;
    member->world = world;
    member->number = world->member_numbers++;
    snprintf(url, sizeof url, "memory:sim-%llu", (unsigned long long)world->seed);
    must(lw_dispatcher_init(&member->dispatcher, &world->virtual_host.host, -1,
                            &world->plan.dispatcher, &error),
         &error);
    must(lw_memory_broker_ops()->create(&world->virtual_host.host, "main", url, NULL, 0,
                                        &member->broker, &error),
         &error);
    /* As Pulsar's: what it has more of is not known, so windows learn from what came late. */
    member->broker->caps.gives_on_demand = world->plan.hub.mode == LW_MEMORY_INDIVIDUAL;
    must(lw_dispatcher_add_broker(&member->dispatcher, member->broker, NULL), &error);
    member->engine = sim_engine_create(&world->virtual_host.host,
                                       &member->dispatcher.completions, &world->plan,
                                       &world->random, &hooks);
    member->engine->is_calm = world->is_calm;
    must(lw_dispatcher_add_engine(&member->dispatcher, &member->engine->base), &error);
    add_streams(world, member);
    world_watch_member(member);
    must(lw_dispatcher_start(&member->dispatcher, &error), &error);
}

void
world_end_member(struct member *member, bool is_abort)
{
    member->state = MEMBER_ENDING;
    lw_shutdown_begin(&member->dispatcher, is_abort);
}

void
world_kill_member(struct member *member)
{
    struct world *world = member->world;
    oracle_died(world->oracle, member->number);
    member->state = MEMBER_DYING;
    lw_memory_broker_vanish(member->broker, sim_chance(&world->random, 50));
    lw_shutdown_begin(&member->dispatcher, true);
}

void
world_bury(struct world *world)
{
    for (uint32_t i = 0; i < PLAN_MEMBERS_MAX; i++) {
        struct member *member = &world->members[i];
        if (member->state != MEMBER_ABSENT && member->dispatcher.phase == LW_PHASE_CLOSED) {
            lw_dispatcher_deinit(&member->dispatcher);
            member->state = MEMBER_ABSENT;
        }
    }
}

static const struct member *
find_member(const struct world *world, uint32_t number)
{
    for (uint32_t i = 0; i < PLAN_MEMBERS_MAX; i++) {
        const struct member *member = &world->members[i];
        if (member->state != MEMBER_ABSENT && member->number == number) {
            return member;
        }
    }
    return NULL;
}

static bool
has_stash(const struct lw_subscription *subscription)
{
    const struct lw_list *head = &subscription->partitions;
    for (struct lw_list *node = head->next; node != head; node = node->next) {
        if (LW_CONTAINER(node, struct lw_partition, link)->stash_count > 0) {
            return true;
        }
    }
    return false;
}

/* A subscription that may not start anything: paused, its engine full or down, window full, or
 * all that could run waits for company. */
bool
world_is_member_blocked(void *user, uint32_t number, uint32_t subscription)
{
    const struct member *member = find_member(user, number);
    if (!member) {
        return true;
    }
    const struct lw_subscription *other =
        &member->dispatcher.streams[subscription]->subscription;
    return other->is_paused || other->is_engine_down || other->is_engine_full ||
           has_stash(other) || (other->is_batched && !lw_subscription_has_ready(other));
}
