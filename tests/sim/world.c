/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A seed from its plan to its judgement: begin, chaos, calm until everything is handled and
 * committed, an ordered end of all members, and the oracle's last word. Time is moved from
 * deadline to deadline; an hour of it without completion, or rest before completion, is a
 * violation. Memory that is left over at the end is one too.
 */
#include "tests/sim/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"

#define WORLD_TIME_MAX (3600 * 1000 * LW_MS)
enum { TURNS_MAX = 400000, ROUNDS_MAX = 4 };

static void
add_subscriptions(struct world *world)
{
    const struct plan *plan = &world->plan;
    for (uint32_t i = 0; i < plan->topic_count; i++) {
        const struct lw_subscription_options *options = &plan->topics[i].options;
        static const enum oracle_order orders[] = {
            [LW_ORDERING_DEFAULT] = ORACLE_UNORDERED,
            [LW_ORDERING_KEY] = ORACLE_BY_KEY,
            [LW_ORDERING_PARTITION] = ORACLE_BY_PARTITION,
            [LW_ORDERING_NONE] = ORACLE_UNORDERED,
        };
        struct oracle_subscription subscription = {
            .priority = options->priority,
            .order = orders[options->ordering],
            .is_keyless_loose = options->keyless == LW_KEYLESS_ROTATE,
            .is_individual = plan->hub.mode == LW_MEMORY_INDIVIDUAL,
            .has_keys_apart = plan->hub.mode == LW_MEMORY_INDIVIDUAL &&
                              plan->hub.sharing == LW_MEMORY_KEY_SHARED,
            .concurrency = options->concurrency,
        };
        world->subscriptions[i] = oracle_add_subscription(world->oracle, &subscription);
        (void)lw_memory_hub_create_topic(world->hub, plan->topics[i].name,
                                         plan->topics[i].partitions);
        for (int32_t p = 0; p < plan->topics[i].partitions; p++) {
            (void)world_place(world, lw_memory_hub_name(world->hub, plan->topics[i].name), p);
        }
    }
}

static void
begin(struct world *world, uint64_t seed)
{
    char name[32];
    world->seed = seed;
    world->random.state = lw_hash_u64(seed, 1); /* neighbours share nothing */
    world->hash = seed;
    plan_init(&world->plan, &world->random);
    virtual_host_init(&world->virtual_host, seed + 1);
    snprintf(name, sizeof name, "sim-%llu", (unsigned long long)seed);
    world->hub = lw_memory_hub_open(name, &world->plan.hub);
    world->oracle = oracle_create();
    oracle_set_blocked(world->oracle, world_is_member_blocked, world);
    world_watch_hub(world);
    add_subscriptions(world);
    world->first_generation = lw_broker_next_generation();
    world->chaos_until = world->virtual_host.host.now + (uint64_t)world->plan.chaos_ms * LW_MS;
    lw_timer_init(&world->action_timer, world_on_action);
    world_arm_action(world);
    world_begin_member(world, &world->members[0]);
}

/* One jump of the clock; false when nothing will ever happen again, or all is over. */
static bool
go_on(struct world *world)
{
    if (++world->turns > TURNS_MAX) {
        oracle_violation(world->oracle, ORACLE_LOST, "no end after %d turns", TURNS_MAX);
        return false;
    }
    if (!virtual_host_jump(&world->virtual_host, VIRTUAL_START + WORLD_TIME_MAX)) {
        return false;
    }
    world_check(world);
    world_bury(world);
    return true;
}

static void
be_stuck(struct world *world, const char *what)
{
    if (oracle_report(world->oracle)->violation_count == 0) {
        world_explain(world);
    }
    oracle_violation(world->oracle, ORACLE_LOST, "%s: nobody wakes what is left", what);
}

static bool
has_members(const struct world *world)
{
    for (uint32_t i = 0; i < PLAN_MEMBERS_MAX; i++) {
        if (world->members[i].state != MEMBER_ABSENT) {
            return true;
        }
    }
    return false;
}

/* Nothing that exists is left uncommitted; markers at the very end may be. */
static void
check_committed(struct world *world)
{
    for (uint32_t i = 0; i < world->plan.topic_count; i++) {
        const struct plan_topic *topic = &world->plan.topics[i];
        for (int32_t p = 0; p < topic->partitions; p++) {
            int64_t end = lw_memory_hub_end(world->hub, topic->name, p);
            int64_t committed = lw_memory_hub_committed(world->hub, "g", topic->name, p, NULL);
            uint64_t left = lw_memory_hub_backlog(world->hub, "g", topic->name);
            if (committed > end || left > 0) {
                oracle_violation(world->oracle, ORACLE_LOST,
                                 "%s/%d ends at %lld, committed is %lld, left are %llu",
                                 topic->name, p, (long long)end, (long long)committed,
                                 (unsigned long long)left);
            }
        }
    }
}

static void
check_handled(struct world *world)
{
    for (uint32_t id = 0; id < world->produced; id++) {
        const struct world_message *message = &world->messages[id];
        bool is_done = world->plan.is_observed ? message->is_handled : message->has_returned;
        if (!is_done) {
            oracle_violation(world->oracle, ORACLE_LOST, "message %u was never handled", id);
        }
    }
}

static void
ask_to_end(struct world *world)
{
    for (uint32_t i = 0; i < PLAN_MEMBERS_MAX; i++) {
        if (world->members[i].state == MEMBER_RUNNING) {
            world_end_member(&world->members[i], false);
        }
    }
    virtual_host_settle(&world->virtual_host);
    world_bury(world);
}

/* Ends all members, also one that the plan starts meanwhile; false when they do not end. */
static bool
end_members(struct world *world)
{
    ask_to_end(world);
    while (has_members(world) && go_on(world)) {
        ask_to_end(world);
    }
    return !has_members(world);
}

static bool
complete(struct world *world)
{
    virtual_host_settle(&world->virtual_host);
    while (!world_is_complete(world) && go_on(world)) {
        continue;
    }
    return world_is_complete(world);
}

/*
 * Chaos, then everything handled, then everybody ended. A copy that was sent before may arrive
 * only now, when its message was handled otherwise: one more member deals with it.
 */
static bool
live(struct world *world)
{
    for (int round = 0; round < ROUNDS_MAX; round++) {
        if (!complete(world)) {
            be_stuck(world, "chaos is over");
            return false;
        }
        if (!end_members(world)) {
            be_stuck(world, "the end");
            return false;
        }
        if (world_is_complete(world)) {
            return true;
        }
        world_begin_member(world, &world->members[0]);
    }
    be_stuck(world, "round after round");
    return false;
}

static void
judge(struct world *world)
{
    if (world->plan.hub.mode == LW_MEMORY_POSITION) {
        check_committed(world);
    }
    check_handled(world);
    if (world->plan.is_observed) {
        struct lw_memory_stats stats = lw_memory_hub_stats(world->hub);
        oracle_allow_duplicates(world->oracle, stats.acks_lost + stats.acks_undone);
        oracle_finish(world->oracle, true);
    }
}

void
world_run(struct world *world, uint64_t seed, bool is_verbose)
{
    uint64_t allocations = lw_alloc_live();
    memset(world, 0, sizeof *world);
    world->is_verbose = is_verbose;
    begin(world, seed);
    if (!live(world)) {
        return; /* its memory is left, so that a debugger finds it */
    }
    judge(world);
    lw_timers_disarm(&world->virtual_host.host.timers, &world->action_timer);
    lw_memory_hub_close(world->hub);
    world->hub = NULL;
    if (lw_alloc_live() != allocations) {
        oracle_violation(world->oracle, ORACLE_P5, "%lld allocations are left",
                         (long long)(lw_alloc_live() - allocations));
    }
}

void
world_free(struct world *world)
{
    oracle_destroy(world->oracle);
}
