/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rebalance of a group, as a passive machine: it is called when something may be due and says
 * when it wants to be called again. A rebalance waits until every REVOKING is answered (or the
 * member that owes the answer is expelled) and until the session of every dead member has ended;
 * then everything without an owner is given out. What comes meanwhile is taken in at the end.
 * Offsets are arrays per topic, made on first commit and never dropped.
 */
#include "brokers/memory/group.h"

#include <string.h>

#include "base/alloc.h"
#include "brokers/memory/assignor.h"
#include "brokers/memory/broker.h"
#include "brokers/memory/member.h"

#define MEMORY_RETRY_NS (100 * LW_MS)

struct lw_memory_group *
lw_memory_group_find(const struct lw_memory_hub *hub, const char *name)
{
    const struct lw_list *head = &hub->groups;
    for (struct lw_list *node = head->next; node != head; node = node->next) {
        struct lw_memory_group *group = LW_CONTAINER(node, struct lw_memory_group, link);
        if (strcmp(group->name, name) == 0) {
            return group;
        }
    }
    return NULL;
}

struct lw_memory_group *
lw_memory_group_use(struct lw_memory_hub *hub, const char *name)
{
    struct lw_memory_group *group = lw_memory_group_find(hub, name);
    if (group) {
        return group;
    }
    group = lw_alloc(sizeof *group);
    char *copy = lw_copy_text(name);
    if (!group || !copy) {
        lw_free(group);
        lw_free(copy);
        return NULL;
    }
    group->name = copy;
    lw_list_init(&group->members);
    lw_list_init(&group->offsets);
    lw_list_push(&hub->groups, &group->link);
    return group;
}

static void
destroy_offsets(struct lw_memory_offsets *offsets)
{
    for (int32_t i = 0; i < offsets->count; i++) {
        lw_free(offsets->metadata[i]);
    }
    lw_list_remove(&offsets->link);
    lw_free(offsets->metadata);
    lw_free(offsets->positions);
    lw_free(offsets);
}

void
lw_memory_group_destroy(struct lw_memory_group *group)
{
    while (!lw_list_is_empty(&group->members)) {
        lw_memory_member_destroy(
            LW_CONTAINER(group->members.next, struct lw_memory_member, link));
    }
    while (!lw_list_is_empty(&group->offsets)) {
        destroy_offsets(LW_CONTAINER(group->offsets.next, struct lw_memory_offsets, link));
    }
    lw_list_remove(&group->link);
    lw_free(group->targets);
    lw_free(group->name);
    lw_free(group);
}

/* -- The rebalance --------------------------------------------------------------------------- */

void
lw_memory_group_want(struct lw_memory_group *group)
{
    group->is_due = true;
    lw_memory_group_poke(group);
}

void
lw_memory_group_poke(struct lw_memory_group *group)
{
    struct lw_list *head = &group->members;
    for (struct lw_list *node = head->next; node != head; node = node->next) {
        struct lw_memory_member *member = LW_CONTAINER(node, struct lw_memory_member, link);
        if (member->broker) {
            lw_memory_broker_poke(member->broker);
        }
    }
}

/* Ends what is overdue; true when the rebalance still waits for somebody. */
static bool
is_awaited(struct lw_memory_hub *hub, struct lw_memory_group *group, uint64_t now)
{
    bool waits = false;
    struct lw_list *next;
    for (struct lw_list *node = group->members.next; node != &group->members; node = next) {
        next = node->next;
        struct lw_memory_member *member = LW_CONTAINER(node, struct lw_memory_member, link);
        if (!member->broker && now >= member->expires_at) {
            lw_memory_member_destroy(member);
            group->is_due = true;
            continue;
        }
        if (member->revokes > 0 && !member->is_expelled && now >= member->revoke_due) {
            lw_memory_member_expel(member);
            hub->stats.expulsions++;
            group->is_due = true;
        }
        waits = waits || !member->broker || (member->revokes > 0 && !member->is_expelled);
    }
    return waits;
}

static void
revoke(struct lw_memory_hub *hub, struct lw_memory_group *group, uint64_t now)
{
    if (hub->options.protocol == LW_MEMORY_COOPERATIVE) {
        lw_memory_assignor_revoke_moving(hub, group, now);
        return;
    }
    struct lw_list *head = &group->members;
    for (struct lw_list *node = head->next; node != head; node = node->next) {
        struct lw_memory_member *member = LW_CONTAINER(node, struct lw_memory_member, link);
        if (member->broker && !member->is_leaving && !member->is_expelled) {
            lw_memory_member_revoke_all(member, now);
        }
    }
}

void
lw_memory_group_advance(struct lw_memory_hub *hub, struct lw_memory_group *group, uint64_t now)
{
    bool waits = is_awaited(hub, group, now);
    if (group->state == LW_MEMORY_GROUP_STABLE && group->is_due) {
        group->is_due = false;
        group->state = LW_MEMORY_GROUP_REVOKING;
        revoke(hub, group, now);
        waits = is_awaited(hub, group, now);
    }
    if (group->state == LW_MEMORY_GROUP_REVOKING && !waits) {
        group->state = LW_MEMORY_GROUP_JOINING;
        group->assign_at = now + hub->options.join_delay_ns;
    }
    if (group->state == LW_MEMORY_GROUP_JOINING && now >= group->assign_at) {
        group->state = LW_MEMORY_GROUP_STABLE;
        group->is_due = false;
        lw_memory_assignor_assign(hub, group);
        hub->stats.rebalances++;
        if (group->lacks_memory) {
            group->state = LW_MEMORY_GROUP_JOINING;
            group->assign_at = now + MEMORY_RETRY_NS;
        } else if (group->is_due) { /* cooperative: more has to move */
            lw_memory_group_want(group);
        }
    }
}

uint64_t
lw_memory_group_due(const struct lw_memory_group *group)
{
    uint64_t due = group->state == LW_MEMORY_GROUP_JOINING ? group->assign_at : LW_NEVER;
    const struct lw_list *head = &group->members;
    for (struct lw_list *node = head->next; node != head; node = node->next) {
        const struct lw_memory_member *member = LW_CONTAINER(node, struct lw_memory_member,
                                                             link);
        uint64_t own = LW_NEVER;
        if (!member->broker) {
            own = member->expires_at;
        } else if (member->revokes > 0 && !member->is_expelled) {
            own = member->revoke_due;
        }
        due = own < due ? own : due;
    }
    return due;
}

/* -- Committed offsets ------------------------------------------------------------------------- */

static struct lw_memory_offsets *
find_offsets(const struct lw_memory_group *group, const struct lw_memory_topic *topic)
{
    const struct lw_list *head = &group->offsets;
    for (struct lw_list *node = head->next; node != head; node = node->next) {
        struct lw_memory_offsets *offsets = LW_CONTAINER(node, struct lw_memory_offsets, link);
        if (offsets->topic == topic) {
            return offsets;
        }
    }
    return NULL;
}

/* Makes the arrays cover every partition that the topic has now. */
static bool
cover(struct lw_memory_offsets *offsets, int32_t count)
{
    if (offsets->count >= count) {
        return true;
    }
    void *positions = lw_resize_array(offsets->positions, (size_t)count,
                                      sizeof(*offsets->positions));
    offsets->positions = positions ? positions : offsets->positions;
    void *metadata = lw_resize_array(offsets->metadata, (size_t)count, sizeof(char *));
    offsets->metadata = metadata ? metadata : offsets->metadata;
    if (!positions || !metadata) {
        return false;
    }
    for (; offsets->count < count; offsets->count++) {
        offsets->positions[offsets->count] = -1;
        offsets->metadata[offsets->count] = NULL;
    }
    return true;
}

static struct lw_memory_offsets *
use_offsets(struct lw_memory_group *group, struct lw_memory_topic *topic)
{
    struct lw_memory_offsets *offsets = find_offsets(group, topic);
    if (!offsets) {
        offsets = lw_alloc(sizeof *offsets);
        if (!offsets) {
            return NULL;
        }
        offsets->topic = topic;
        lw_list_push(&group->offsets, &offsets->link);
    }
    return cover(offsets, topic->partition_count) ? offsets : NULL;
}

int64_t
lw_memory_group_committed(const struct lw_memory_group *group,
                          const struct lw_memory_partition *partition,
                          const char **ret_metadata)
{
    const struct lw_memory_offsets *offsets = find_offsets(group, partition->topic);
    if (!offsets || partition->number >= offsets->count) {
        return -1;
    }
    if (ret_metadata) {
        const char *metadata = offsets->metadata[partition->number];
        *ret_metadata = metadata ? metadata : "";
    }
    return offsets->positions[partition->number];
}

enum lw_status
lw_memory_group_commit(struct lw_memory_group *group,
                       const struct lw_memory_partition *partition, int64_t position,
                       const char *metadata)
{
    struct lw_memory_offsets *offsets = use_offsets(group, partition->topic);
    char *copy = lw_copy_text(metadata);
    if (!offsets || (metadata && !copy)) {
        lw_free(copy);
        return LW_STATUS_NO_MEMORY;
    }
    lw_free(offsets->metadata[partition->number]);
    offsets->metadata[partition->number] = copy;
    offsets->positions[partition->number] = position;
    return LW_STATUS_OK;
}
