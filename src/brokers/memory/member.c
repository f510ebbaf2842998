/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Members. While one owes an answer to a REVOKING, all its sources are held, also those that keep
 * their partitions: the real client stands still then. An expelled member is not told; it finds
 * out when it answers, and joins again. A dead one stays in the group, without a broker, until
 * its session ends. Loop thread.
 */
#include "brokers/memory/member.h"

#include "base/alloc.h"
#include "brokers/memory/broker.h"
#include "brokers/memory/events.h"
#include "brokers/memory/group.h"
#include "brokers/memory/source.h"

typedef void (*slot_fn)(struct lw_memory_slot *slot, uint64_t generation);

/* Calls fn for every slot of the member. */
static void
each_slot(struct lw_memory_member *member, slot_fn fn, uint64_t generation)
{
    struct lw_list *head = &member->sources;
    for (struct lw_list *node = head->next; node != head; node = node->next) {
        struct lw_memory_source *source = LW_CONTAINER(node, struct lw_memory_source,
                                                       member_link);
        for (uint32_t i = 0; i < source->slot_count; i++) {
            fn(source->slots[i], generation);
        }
    }
}

static void
update_sources(struct lw_memory_member *member)
{
    struct lw_list *head = &member->sources;
    for (struct lw_list *node = head->next; node != head; node = node->next) {
        lw_memory_source_update(LW_CONTAINER(node, struct lw_memory_source, member_link));
    }
}

static struct lw_memory_member *
find(const struct lw_memory_broker *broker, const struct lw_memory_group *group)
{
    const struct lw_list *head = &broker->members;
    for (struct lw_list *node = head->next; node != head; node = node->next) {
        struct lw_memory_member *member = LW_CONTAINER(node, struct lw_memory_member,
                                                       broker_link);
        if (member->group == group) {
            return member;
        }
    }
    return NULL;
}

static struct lw_memory_member *
create(struct lw_memory_broker *broker, struct lw_memory_group *group)
{
    struct lw_memory_member *member = lw_alloc(sizeof *member);
    if (member) {
        lw_list_init(&member->link);
        lw_list_init(&member->sources);
        member->broker = broker;
        member->group = group;
        member->id = ++broker->hub->last_member_id;
        member->revoke_due = member->expires_at = LW_NEVER;
        lw_list_push(&broker->members, &member->broker_link);
    }
    return member;
}

enum lw_status
lw_memory_member_add(struct lw_memory_broker *broker, struct lw_memory_source *source)
{
    struct lw_memory_group *group = lw_memory_group_use(broker->hub, source->subscription);
    struct lw_memory_member *member = group ? find(broker, group) : NULL;
    member = member || !group ? member : create(broker, group);
    if (!member) {
        return LW_STATUS_NO_MEMORY;
    }
    source->member = member;
    lw_list_push(&member->sources, &source->member_link);
    return LW_STATUS_OK;
}

void
lw_memory_member_remove(struct lw_memory_source *source)
{
    struct lw_memory_member *member = source->member;
    if (member) {
        source->member = NULL;
        lw_list_remove(&source->member_link);
        if (lw_list_is_empty(&member->sources)) {
            lw_memory_member_destroy(member);
        }
    }
}

void
lw_memory_member_destroy(struct lw_memory_member *member)
{
    lw_list_remove(&member->link);
    lw_list_remove(&member->broker_link);
    lw_free(member);
}

bool
lw_memory_member_is_active(const struct lw_memory_member *member)
{
    return member->broker && member->is_joined && !member->is_expelled && !member->is_leaving;
}

void
lw_memory_member_join(struct lw_memory_member *member)
{
    if (!member->is_joined && !member->is_leaving) {
        member->is_joined = true;
        lw_list_push(&member->group->members, &member->link);
        lw_memory_group_want(member->group);
    }
}

static void
quit(struct lw_memory_member *member)
{
    struct lw_memory_group *group = member->group;
    if (member->is_joined) {
        member->is_joined = false;
        lw_memory_group_want(group);
        lw_list_remove(&member->link);
    }
}

static void
drop_slot(struct lw_memory_slot *slot, uint64_t generation)
{
    (void)generation;
    lw_memory_slot_unassign(slot);
}

void
lw_memory_member_end(struct lw_memory_member *member, bool is_dead, uint64_t now)
{
    each_slot(member, drop_slot, 0);
    while (!lw_list_is_empty(&member->sources)) {
        struct lw_memory_source *source = LW_CONTAINER(member->sources.next,
                                                       struct lw_memory_source, member_link);
        lw_list_remove(&source->member_link);
        source->member = NULL;
    }
    lw_list_remove(&member->broker_link);
    if (is_dead && member->is_joined) {
        member->expires_at = now + member->broker->hub->options.session_timeout_ns;
        member->broker = NULL;
        member->revokes = 0;
        lw_memory_group_poke(member->group);
        return;
    }
    quit(member);
    lw_memory_member_destroy(member);
}

/* -- Revoking -------------------------------------------------------------------------------- */

static void
mark_generation(struct lw_memory_slot *slot, uint64_t generation)
{
    if (slot->is_assigned && slot->generation == generation) {
        slot->is_revoking = true;
        lw_list_remove(&slot->ready);
    }
}

void
lw_memory_member_revoke_slot(struct lw_memory_slot *slot, uint64_t now)
{
    struct lw_memory_member *member = slot->source->member;
    const struct lw_memory_options *options = &member->broker->hub->options;
    if (!slot->is_assigned || slot->is_revoking) {
        return;
    }
    each_slot(member, mark_generation, slot->generation);
    member->revokes++;
    member->revoke_due = now + options->rebalance_timeout_ns;
    struct lw_event event = {
        .kind = LW_EVENT_REVOKING,
        .generation = slot->generation,
        .deadline = now + options->revoke_timeout_ns,
    };
    lw_memory_events_push(member->broker, &event);
    update_sources(member);
}

static void
revoke_at(struct lw_memory_slot *slot, uint64_t now)
{
    lw_memory_member_revoke_slot(slot, now);
}

void
lw_memory_member_revoke_all(struct lw_memory_member *member, uint64_t now)
{
    each_slot(member, revoke_at, now);
}

static void
end_generation(struct lw_memory_slot *slot, uint64_t generation)
{
    if (slot->is_revoking && slot->generation == generation) {
        slot->is_revoking = false;
        lw_memory_slot_unassign(slot);
    }
}

/* True when the source has a slot whose end was announced under that generation. */
static bool
is_source_pending(const struct lw_memory_source *source, uint64_t generation)
{
    for (uint32_t i = 0; i < source->slot_count; i++) {
        const struct lw_memory_slot *slot = source->slots[i];
        if (slot->is_revoking && slot->generation == generation) {
            return true;
        }
    }
    return false;
}

static bool
is_pending(const struct lw_memory_member *member, uint64_t generation)
{
    const struct lw_list *head = &member->sources;
    for (struct lw_list *node = head->next; node != head; node = node->next) {
        const struct lw_memory_source *source = LW_CONTAINER(node, struct lw_memory_source,
                                                             member_link);
        if (is_source_pending(source, generation)) {
            return true;
        }
    }
    return false;
}

bool
lw_memory_member_answer(struct lw_memory_member *member, uint64_t generation)
{
    if (!is_pending(member, generation)) {
        return false;
    }
    each_slot(member, end_generation, generation);
    if (--member->revokes > 0) {
        return true;
    }
    member->revoke_due = LW_NEVER;
    if (member->is_leaving) {
        quit(member);
        return true;
    }
    if (member->is_expelled) {
        member->is_expelled = false;
        lw_memory_group_want(member->group);
    }
    update_sources(member);
    lw_memory_broker_poke(member->broker);
    return true;
}

void
lw_memory_member_leave(struct lw_memory_member *member, uint64_t now)
{
    member->is_leaving = true;
    lw_memory_member_revoke_all(member, now);
    if (member->revokes == 0) {
        quit(member);
    }
}

void
lw_memory_member_expel(struct lw_memory_member *member)
{
    member->is_expelled = true;
    each_slot(member, drop_slot, 0); /* is_revoking stays: the answer will still come */
}

/* Says LOST once per generation: the slot that is asked last of it finds all others ended. */
static void
lose_slot(struct lw_memory_slot *slot, uint64_t generation)
{
    (void)generation;
    if (!slot->is_assigned && !slot->is_revoking) {
        return;
    }
    struct lw_event event = { .kind = LW_EVENT_LOST, .generation = slot->generation };
    lw_memory_events_push(slot->source->broker, &event);
    each_slot(slot->source->member, mark_generation, event.generation);
    each_slot(slot->source->member, end_generation, event.generation);
}

void
lw_memory_member_say_lost(struct lw_memory_member *member)
{
    each_slot(member, lose_slot, 0);
}

void
lw_memory_member_lose(struct lw_memory_member *member)
{
    each_slot(member, lose_slot, 0);
    member->revokes = 0;
    member->revoke_due = LW_NEVER;
    member->is_expelled = false;
    member->is_rejoining = true;
    update_sources(member);
    if (member->is_leaving) {
        quit(member);
    } else if (member->is_joined) {
        lw_memory_group_want(member->group);
    }
}
