/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The assignors. `plan` writes the wanted owner of every partition of one topic into the group's
 * scratch array; revoking and assigning only compare it with what is. Candidates are counted and
 * indexed in the order of the topic's list of sources, so that the same members always give the
 * same plan. What memory was lacking for is given out a little later (lacks_memory).
 */
#include "brokers/memory/assignor.h"

#include "base/alloc.h"
#include "base/text.h"
#include "brokers/memory/group.h"
#include "brokers/memory/member.h"
#include "brokers/memory/source.h"
#include "brokers/memory/topic.h"

enum { TOPIC_NAME_SIZE = 512 };

typedef void (*topic_fn)(struct lw_memory_hub *hub, struct lw_memory_group *group,
                         struct lw_memory_topic *topic, uint64_t now);

static bool
is_candidate(const struct lw_memory_source *source, const struct lw_memory_group *group)
{
    return source->member && source->member->group == group &&
           lw_memory_member_is_active(source->member);
}

/* The index-th candidate of the topic, or NULL. */
static struct lw_memory_source *
candidate(const struct lw_memory_group *group, const struct lw_memory_topic *topic,
          int32_t index)
{
    const struct lw_list *head = &topic->sources;
    for (struct lw_list *node = head->next; node != head; node = node->next) {
        struct lw_memory_source *source = LW_CONTAINER(node, struct lw_memory_source,
                                                       topic_link);
        if (is_candidate(source, group) && index-- == 0) {
            return source;
        }
    }
    return NULL;
}

static int32_t
count_candidates(const struct lw_memory_group *group, const struct lw_memory_topic *topic)
{
    int32_t count = 0;
    while (candidate(group, topic, count)) {
        candidate(group, topic, count)->used = 0;
        count++;
    }
    return count;
}

struct lw_memory_slot *
lw_memory_assignor_owner(const struct lw_memory_group *group,
                         const struct lw_memory_partition *partition)
{
    const struct lw_list *head = &partition->readers;
    for (struct lw_list *node = head->next; node != head; node = node->next) {
        struct lw_memory_slot *slot = LW_CONTAINER(node, struct lw_memory_slot, reader);
        if (slot->source->member && slot->source->member->group == group) {
            return slot;
        }
    }
    return NULL;
}

/* -- Plans ------------------------------------------------------------------------------------- */

/* The first `count % k` members get one partition more, each a run of neighbours. */
static void
plan_ranges(struct lw_memory_group *group, const struct lw_memory_topic *topic, int32_t k)
{
    int32_t base = topic->partition_count / k;
    int32_t extra = topic->partition_count % k;
    int32_t partition = 0;
    for (int32_t i = 0; i < k; i++) {
        int32_t end = partition + base + (i < extra ? 1 : 0);
        while (partition < end) {
            group->targets[partition++] = candidate(group, topic, i);
        }
    }
}

static struct lw_memory_source *
least_used(const struct lw_memory_group *group, const struct lw_memory_topic *topic)
{
    struct lw_memory_source *least = NULL;
    for (int32_t i = 0; candidate(group, topic, i); i++) {
        struct lw_memory_source *source = candidate(group, topic, i);
        least = !least || source->used < least->used ? source : least;
    }
    return least;
}

/* Everybody keeps what it has up to its fair share; the rest goes to those with least. */
static void
plan_sticky(struct lw_memory_group *group, const struct lw_memory_topic *topic, int32_t k)
{
    uint32_t base = (uint32_t)(topic->partition_count / k);
    int32_t extra = topic->partition_count % k;
    for (int32_t p = 0; p < topic->partition_count; p++) {
        struct lw_memory_slot *owner = lw_memory_assignor_owner(group, topic->partitions[p]);
        struct lw_memory_source *source = owner && is_candidate(owner->source, group)
                                              ? owner->source
                                              : NULL;
        bool is_extra = source && source->used == base && extra > 0;
        extra -= is_extra;
        bool keeps = source && (source->used < base || is_extra);
        group->targets[p] = keeps ? source : NULL;
        if (keeps) {
            source->used++;
        }
    }
    for (int32_t p = 0; p < topic->partition_count; p++) {
        if (!group->targets[p]) {
            group->targets[p] = least_used(group, topic);
            group->targets[p]->used++;
        }
    }
}

/* False when there is nobody to plan for, or no memory. */
static bool
plan(const struct lw_memory_hub *hub, struct lw_memory_group *group,
     const struct lw_memory_topic *topic)
{
    int32_t k = count_candidates(group, topic);
    if (group->target_capacity < topic->partition_count) {
        void *targets = lw_resize_array(group->targets, (size_t)topic->partition_count,
                                        sizeof(struct lw_memory_source *));
        if (!targets) {
            group->lacks_memory = true;
            return false;
        }
        group->targets = targets;
        group->target_capacity = topic->partition_count;
    }
    if (k == 0) {
        return false;
    }
    if (hub->options.protocol == LW_MEMORY_COOPERATIVE) {
        plan_sticky(group, topic, k);
    } else {
        plan_ranges(group, topic, k);
    }
    return true;
}

/* -- Giving out ---------------------------------------------------------------------------------- */

static int64_t
reset_position(const struct lw_memory_slot *slot)
{
    const struct lw_memory_log *log = &slot->partition->log;
    if (slot->is_companion || slot->source->reset == LW_MEMORY_EARLIEST) {
        return log->start;
    }
    return slot->source->reset == LW_MEMORY_LATEST ? log->end : -1;
}

/* Where reading begins: the committed position while it exists, else what the reset says. */
static int64_t
start_position(const struct lw_memory_group *group, const struct lw_memory_slot *slot)
{
    const struct lw_memory_log *log = &slot->partition->log;
    int64_t committed = lw_memory_group_committed(group, slot->partition, NULL);
    bool is_there = committed >= log->start && committed <= log->end;
    return is_there ? committed : reset_position(slot);
}

static void
give(struct lw_memory_group *group, struct lw_memory_source *source,
     struct lw_memory_partition *partition, uint64_t generation, bool is_companion)
{
    struct lw_memory_slot *slot = lw_memory_source_slot(source, partition, is_companion);
    if (!slot) {
        group->lacks_memory = true;
        return;
    }
    int64_t position = start_position(group, slot);
    if (position < 0) {
        lw_memory_source_fail(source, LW_STATUS_NOT_FOUND, "", true,
                              "there is no committed offset, and auto.offset.reset is 'none'");
        return;
    }
    lw_memory_slot_assign(slot, generation, position);
}

static void
give_companions(struct lw_memory_hub *hub, struct lw_memory_group *group,
                struct lw_memory_source *source, int32_t number, uint64_t generation)
{
    if (!source->reads_tiers || !source->retry_topic) {
        return;
    }
    for (size_t i = 0; i < source->tier_count; i++) {
        char name[TOPIC_NAME_SIZE];
        struct lw_memory_topic *topic = NULL;
        if (lw_memory_source_tier(source, source->tiers_ms[i], name, sizeof name)) {
            topic = lw_memory_topic_use(hub, name, source->topic->partition_count);
            group->lacks_memory |= !topic && !hub->options.is_closed_world;
        }
        struct lw_memory_partition *partition = lw_memory_topic_partition(topic, number);
        if (partition && !lw_memory_assignor_owner(group, partition)) {
            give(group, source, partition, generation, true);
        }
    }
}

static uint64_t
generation_for(const struct lw_memory_hub *hub, struct lw_memory_member *member)
{
    if (hub->options.protocol == LW_MEMORY_COOPERATIVE) {
        return lw_broker_next_generation();
    }
    if (member->generation == 0) {
        member->generation = lw_broker_next_generation();
    }
    return member->generation;
}

static void
assign_partition(struct lw_memory_hub *hub, struct lw_memory_group *group,
                 struct lw_memory_partition *partition)
{
    struct lw_memory_source *target = group->targets[partition->number];
    struct lw_memory_slot *owner = lw_memory_assignor_owner(group, partition);
    if (!owner) {
        uint64_t generation = generation_for(hub, target->member);
        give(group, target, partition, generation, false);
        give_companions(hub, group, target, partition->number, generation);
    } else if (owner->source != target) {
        group->is_due = true;
    } else if (!owner->is_revoking) {
        give_companions(hub, group, target, partition->number, owner->generation);
    }
}

static void
assign_topic(struct lw_memory_hub *hub, struct lw_memory_group *group,
             struct lw_memory_topic *topic, uint64_t now)
{
    (void)now;
    if (!plan(hub, group, topic)) {
        return;
    }
    for (int32_t p = 0; p < topic->partition_count; p++) {
        assign_partition(hub, group, topic->partitions[p]);
    }
}

static void
revoke_topic(struct lw_memory_hub *hub, struct lw_memory_group *group,
             struct lw_memory_topic *topic, uint64_t now)
{
    if (!plan(hub, group, topic)) {
        return;
    }
    for (int32_t p = 0; p < topic->partition_count; p++) {
        struct lw_memory_slot *owner = lw_memory_assignor_owner(group, topic->partitions[p]);
        if (owner && !owner->is_companion && owner->source != group->targets[p]) {
            lw_memory_member_revoke_slot(owner, now);
        }
    }
}

/* The member's next topic that this walk has not seen, after `source`; NULL: none. */
static struct lw_memory_source *
next_unseen(const struct lw_memory_member *member, struct lw_list *after, uint64_t visit)
{
    for (struct lw_list *node = after->next; node != &member->sources; node = node->next) {
        struct lw_memory_source *source = LW_CONTAINER(node, struct lw_memory_source,
                                                       member_link);
        if (source->topic && source->topic->visit != visit) {
            source->topic->visit = visit;
            return source;
        }
    }
    return NULL;
}

/* Calls fn once for each topic that a member of the group subscribes to. */
static void
each_topic(struct lw_memory_hub *hub, struct lw_memory_group *group, topic_fn fn, uint64_t now)
{
    uint64_t visit = ++hub->visit;
    struct lw_list *members = &group->members;
    for (struct lw_list *node = members->next; node != members; node = node->next) {
        struct lw_memory_member *member = LW_CONTAINER(node, struct lw_memory_member, link);
        struct lw_memory_source *source = next_unseen(member, &member->sources, visit);
        while (source) {
            fn(hub, group, source->topic, now);
            source = next_unseen(member, &source->member_link, visit);
        }
    }
}

void
lw_memory_assignor_revoke_moving(struct lw_memory_hub *hub, struct lw_memory_group *group,
                                 uint64_t now)
{
    each_topic(hub, group, revoke_topic, now);
}

void
lw_memory_assignor_assign(struct lw_memory_hub *hub, struct lw_memory_group *group)
{
    struct lw_list *members = &group->members;
    for (struct lw_list *node = members->next; node != members; node = node->next) {
        struct lw_memory_member *member = LW_CONTAINER(node, struct lw_memory_member, link);
        member->generation = 0;
        member->is_rejoining = false;
    }
    group->epoch++;
    group->lacks_memory = false;
    each_topic(hub, group, assign_topic, 0);
}
