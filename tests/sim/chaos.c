/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens to a world: messages come in bursts, and, as long as the chaos lasts, things go
 * wrong at random times: receipts and commits are refused or lost, the hub goes down or stalls,
 * partitions move or are lost, members end, die and come, subscriptions are paused, handlers
 * cannot start. Then all of it is taken back, and the world must come to rest by itself.
 */
#include <stdio.h>

#include "tests/sim/world.h"

/* -- Messages -------------------------------------------------------------------------------------- */

/* `count` messages of one topic and key: a batch, when there are several. */
static void
produce_entry(struct world *world, uint32_t count)
{
    struct sim_random *random = &world->random;
    const struct plan *plan = &world->plan;
    uint32_t topic = sim_below(random, plan->topic_count);
    char key[16];
    snprintf(key, sizeof key, "k%u", sim_below(random, plan->key_count));
    bool has_key = !sim_chance(random, plan->keyless_percent);
    struct lw_memory_item item = lw_memory_item_of(plan->topics[topic].name,
                                                   has_key ? key : NULL, NULL);
    if (plan->hub.mode == LW_MEMORY_INDIVIDUAL && sim_chance(random, 5)) {
        item.delay_ms = sim_between(random, 1, 2000);
    }
    while (count > 0) {
        uint32_t id = world->produced++;
        world->messages[id].topic = (uint8_t)topic;
        item.value = (struct lw_bytes){ &id, sizeof id };
        item.batch_left = --count;
        (void)lw_memory_hub_publish(world->hub, &item, &item.partition, NULL);
    }
}

static void
produce(struct world *world)
{
    struct sim_random *random = &world->random;
    uint32_t left = world->plan.message_count - world->produced;
    uint32_t burst = sim_below(random, 40) + 1;
    burst = burst < left ? burst : left;
    while (burst > 0) {
        bool is_batch = sim_chance(random, world->plan.batch_percent);
        uint32_t size = is_batch ? (uint32_t)sim_between(random, 2, 9) : 1;
        size = size < burst ? size : burst;
        produce_entry(world, size);
        burst -= size;
    }
}

/* Holes in the log: markers, and messages that vanish before anybody saw them. */
static void
make_hole(struct world *world)
{
    struct sim_random *random = &world->random;
    const struct plan_topic *topic =
        &world->plan.topics[sim_below(random, world->plan.topic_count)];
    int32_t partition = (int32_t)sim_below(random, (uint32_t)topic->partitions);
    int64_t end = lw_memory_hub_end(world->hub, topic->name, partition);
    if (end + (int64_t)world->plan.message_count + 4 > WORLD_POSITIONS_MAX) {
        return; /* every position keeps its place in the table */
    }
    (void)lw_memory_hub_skip(world->hub, topic->name, partition, sim_between(random, 1, 3));
}

/* -- Faults ------------------------------------------------------------------------------------------ */

static void
inject(struct world *world)
{
    static const enum lw_status refusals[] = { LW_STATUS_UNAVAILABLE, LW_STATUS_DENIED,
                                               LW_STATUS_NOT_FOUND, LW_STATUS_TOO_LARGE };
    struct sim_random *random = &world->random;
    struct lw_memory_fault fault = { 0 };
    fault.kind = (enum lw_memory_fault_kind)sim_below(random, LW_MEMORY_DELIVER_TWICE + 1);
    fault.skip = sim_below(random, 5);
    fault.count = sim_below(random, 6) + 1;
    fault.status = refusals[sim_below(random, 4)];
    fault.is_applied = sim_chance(random, 50);
    fault.delay_ns = (uint64_t)sim_between(random, 1, 3000) * LW_MS;
    if (fault.status == LW_STATUS_TOO_LARGE) {
        fault.topic = "replies"; /* a dead letter that is refused for its size holds for good */
    }
    bool has_keys = world->plan.hub.sharing == LW_MEMORY_KEY_SHARED;
    if (fault.kind == LW_MEMORY_DELIVER_TWICE && has_keys) {
        fault.kind = LW_MEMORY_LOSE_ACK; /* where a key has an order nothing comes twice */
    }
    if (fault.kind == LW_MEMORY_FAIL_COMMIT) {
        fault.status = LW_STATUS_UNAVAILABLE;
    }
    (void)lw_memory_hub_inject(world->hub, &fault);
}

static struct member *
any_member(struct world *world)
{
    struct member *member = &world->members[sim_below(&world->random, PLAN_MEMBERS_MAX)];
    return member->state == MEMBER_RUNNING ? member : NULL;
}

static void
pause_or_resume(struct world *world, struct member *member)
{
    struct lw_dispatcher *dispatcher = &member->dispatcher;
    uint32_t index = sim_below(&world->random, dispatcher->stream_count);
    struct lw_stream *stream = dispatcher->streams[index];
    lw_dispatcher_pause(dispatcher, stream, !stream->subscription.is_paused);
}

static void
come(struct world *world)
{
    for (uint32_t i = 0; i < world->plan.member_count; i++) {
        if (world->members[i].state == MEMBER_ABSENT &&
            world->member_numbers < WORLD_MEMBERS_MAX) {
            world_begin_member(world, &world->members[i]);
            return;
        }
    }
}

/* All members join again, or this one's connection ends. */
static void
shake(struct world *world, const struct member *member)
{
    if (world->plan.hub.mode == LW_MEMORY_POSITION) {
        lw_memory_hub_rebalance(world->hub, "g");
    } else {
        lw_memory_broker_lose(lw_memory_broker_of(member->broker));
    }
}

static void
trouble_member(struct world *world, struct member *member)
{
    switch (sim_below(&world->random, 8)) {
    case 0:
    case 1:
        pause_or_resume(world, member);
        break;
    case 2:
        sim_engine_set_down(member->engine, !member->engine->base.is_down);
        break;
    case 3:
        world_end_member(member, sim_chance(&world->random, 30));
        break;
    case 4:
    case 5:
        if (world->plan.has_kills) {
            world_kill_member(member);
        }
        break;
    default:
        shake(world, member);
        break;
    }
}

static void
stall(struct world *world)
{
    uint32_t index = sim_below(&world->random, world->plan.topic_count);
    uint64_t duration_ns = (uint64_t)sim_between(&world->random, 1, 2000) * LW_MS;
    lw_memory_hub_stall(world->hub, world->plan.topics[index].name, duration_ns);
}

static void
trouble_hub(struct world *world)
{
    struct sim_random *random = &world->random;
    switch (sim_below(random, 10)) {
    case 0:
        lw_memory_hub_set_down(world->hub, (uint64_t)sim_between(random, 1, 4000) * LW_MS);
        break;
    case 1:
        stall(world);
        break;
    case 2:
        lw_memory_hub_set_room(world->hub, sim_chance(random, 50));
        break;
    case 3:
        lw_memory_hub_lose(world->hub, "main");
        break;
    case 4:
        make_hole(world);
        break;
    default:
        inject(world);
        break;
    }
}

/* -- Time ---------------------------------------------------------------------------------------------- */

void
world_arm_action(struct world *world)
{
    struct lw_host *host = &world->virtual_host.host;
    uint64_t wait_us = (uint64_t)sim_between(&world->random, 0, 300000);
    lw_timers_arm(&host->timers, &world->action_timer, host->now + wait_us * 1000);
}

void
world_on_action(struct lw_timer *timer, uint64_t now)
{
    struct world *world = LW_CONTAINER(timer, struct world, action_timer);
    struct sim_random *random = &world->random;
    produce(world);
    come(world);
    if (sim_chance(random, world->plan.fault_percent)) {
        struct member *member = any_member(world);
        if (member && sim_chance(random, 50)) {
            trouble_member(world, member);
        } else {
            trouble_hub(world);
        }
    }
    if (now < world->chaos_until || world->produced < world->plan.message_count) {
        world_arm_action(world);
    } else {
        world_calm(world);
    }
}

static void
calm_member(struct member *member)
{
    if (member->state != MEMBER_RUNNING) {
        return;
    }
    member->engine->is_calm = true;
    if (member->engine->base.is_down) {
        sim_engine_set_down(member->engine, false);
    }
    for (uint32_t i = 0; i < member->dispatcher.stream_count; i++) {
        lw_dispatcher_pause(&member->dispatcher, member->dispatcher.streams[i], false);
    }
}

void
world_calm(struct world *world)
{
    bool has_member = false;
    world->is_calm = true;
    lw_memory_hub_clear_faults(world->hub);
    lw_memory_hub_set_room(world->hub, true);
    if (world->plan.hub.mode == LW_MEMORY_INDIVIDUAL) {
        lw_memory_hub_lose(world->hub, "main"); /* what a lost ack holds comes again by this */
    }
    for (uint32_t i = 0; i < PLAN_MEMBERS_MAX; i++) {
        calm_member(&world->members[i]);
        has_member = has_member || world->members[i].state == MEMBER_RUNNING;
    }
    for (uint32_t i = 0; i < PLAN_MEMBERS_MAX && !has_member; i++) {
        if (world->members[i].state == MEMBER_ABSENT) {
            world_begin_member(world, &world->members[i]);
            has_member = true;
        }
    }
    if (!has_member) { /* all are ending: look again a little later */
        world_arm_action(world);
    }
}
