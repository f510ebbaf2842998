/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can be seen from outside after every turn: bounds (P7), handlers within their slots; and
 * when a world is complete. A world that comes to rest before that is stuck: some delivery has
 * nobody to wake it (P8), and the picture of every member is printed.
 */
#include <stdio.h>

#include "tests/sim/world.h"

static void
check_stream(struct world *world, const struct member *member, const struct lw_stream *stream)
{
    const struct lw_limits *limits = &stream->subscription.limits;
    if (limits->count > limits->count_max) {
        oracle_violation(world->oracle, ORACLE_P5, "member %u: %u in hand, at most %u",
                         member->number, limits->count, limits->count_max);
    }
    uint64_t bytes_max = limits->bytes_max + world->plan.hub.message_bytes_max;
    if (limits->bytes > bytes_max) {
        oracle_violation(world->oracle, ORACLE_P5, "member %u: %llu bytes in hand",
                         member->number, (unsigned long long)limits->bytes);
    }
}

/* What waits for company goes on when it has waited long enough; a tick may pass. */
static void
check_company(struct world *world, const struct member *member, const struct lw_stream *stream)
{
    uint64_t now = member->dispatcher.host->now;
    uint64_t next = lw_gather_next(&stream->subscription);
    if (stream->subscription.is_batched && next != LW_NEVER && next + LW_MS < now) {
        oracle_violation(world->oracle, ORACLE_LOST, "member %u: %u wait %llu ns too long",
                         member->number, stream->subscription.gather.count,
                         (unsigned long long)(now - next));
    }
}

void
world_check(struct world *world)
{
    for (uint32_t i = 0; i < PLAN_MEMBERS_MAX; i++) {
        const struct member *member = &world->members[i];
        if (member->state == MEMBER_ABSENT) {
            continue;
        }
        for (uint32_t s = 0; s < member->dispatcher.stream_count; s++) {
            check_stream(world, member, member->dispatcher.streams[s]);
            check_company(world, member, member->dispatcher.streams[s]);
        }
    }
}

static uint64_t
backlog(const struct world *world)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < world->topic_count; i++) {
        const struct world_topic *topic = &world->topics[i];
        if (topic->kind == WORLD_MAIN || topic->kind == WORLD_TIER) {
            count += lw_memory_hub_backlog(world->hub, "g", topic->name);
        }
    }
    return count;
}

bool
world_is_complete(const struct world *world)
{
    return world->is_calm && world->produced == world->plan.message_count &&
           backlog(world) == 0;
}

/* Partitions where something is left, and who owns them. */
static void
explain_places(const struct world *world)
{
    for (uint32_t i = 0; i < world->topic_count; i++) {
        const struct world_topic *topic = &world->topics[i];
        int32_t count = lw_memory_hub_partitions(world->hub, topic->name);
        bool is_read = topic->kind == WORLD_MAIN || topic->kind == WORLD_TIER;
        for (int32_t p = 0; is_read && p < count; p++) {
            int64_t end = lw_memory_hub_end(world->hub, topic->name, p);
            int64_t committed = lw_memory_hub_committed(world->hub, "g", topic->name, p, NULL);
            const char *owner = lw_memory_hub_owner(world->hub, "g", topic->name, p);
            if (committed != end) {
                fprintf(stderr, "  %s/%d committed %lld end %lld owner %s\n", topic->name, p,
                        (long long)committed, (long long)end, owner ? owner : "none");
            }
        }
    }
}

/* What a stream still holds, by partition, with the first of each. */
static void
explain_held(const struct lw_stream *stream)
{
    const struct lw_list *head = &stream->subscription.partitions;
    for (struct lw_list *node = head->next; node != head; node = node->next) {
        const struct lw_partition *partition = LW_CONTAINER(node, struct lw_partition, link);
        if (lw_list_is_empty(&partition->held)) {
            continue;
        }
        const struct lw_delivery *first = LW_CONTAINER(partition->held.next, struct lw_delivery,
                                                       held);
        fprintf(stderr,
                "    %s/%d generation %llu ended %d held %u stash %u full %d: first %lld %s "
                "attempt %u verdict %d publishing %d timer %d\n",
                partition->topic, partition->number, (unsigned long long)partition->generation,
                partition->is_ended, partition->held_count, partition->stash_count,
                partition->is_window_full, (long long)first->message.position,
                lw_state_name((enum lw_state)first->state), first->attempt, (int)first->verdict,
                first->publishing != NULL, lw_timer_is_armed(&first->timer));
    }
}

void
world_explain(struct world *world)
{
    fprintf(stderr, "sim: seed %llu: backlog %llu, handled %u of %u\n",
            (unsigned long long)world->seed, (unsigned long long)backlog(world), world->handled,
            world->produced);
    explain_places(world);
    for (uint32_t i = 0; i < PLAN_MEMBERS_MAX; i++) {
        const struct member *member = &world->members[i];
        for (uint32_t s = 0; member->state != MEMBER_ABSENT && s < world->plan.topic_count;
             s++) {
            const struct lw_stream *stream = member->dispatcher.streams[s];
            const struct lw_subscription *subscription = &stream->subscription;
            fprintf(stderr,
                    "  member %u (%d, phase %d) %s: hand %u queued %u running %u parked %u "
                    "publishing %u window %u has_more %d demanded %u paused %d full %d down %d "
                    "blocked %d ready %d\n",
                    member->number, (int)member->state, (int)member->dispatcher.phase,
                    stream->topic, subscription->limits.count, subscription->queued,
                    subscription->running, subscription->parked, subscription->publishing,
                    subscription->window.size, stream->has_more, stream->demanded,
                    subscription->is_paused, subscription->is_engine_full,
                    subscription->is_engine_down, subscription->is_publish_blocked,
                    member->broker->ops->is_ready(stream->source));
            explain_held(stream);
        }
    }
}
