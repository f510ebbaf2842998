/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commits take effect when their answer is made. A member that was expelled or left or lost its
 * assignment, or that has answered its revoke and is not assigned again yet, gets STATE, and so
 * does a commit that a rebalance overtook; nothing is stored then. All others
 * may store what they like, also for partitions of somebody else (the real broker does not look).
 * A split commit stores the tail and puts the error on the whole. Loop thread.
 */
#include "brokers/memory/commit.h"

#include "base/alloc.h"
#include "brokers/memory/broker.h"
#include "brokers/memory/events.h"
#include "brokers/memory/faults.h"
#include "brokers/memory/group.h"
#include "brokers/memory/member.h"

/* Of a commit that was sent before the loss of its assignment was noticed. */
#define NO_EPOCH UINT64_MAX

static bool
reserve(struct lw_memory_commit *commit, size_t n)
{
    if (n <= commit->capacity) {
        return true;
    }
    void *entries = lw_resize_array(commit->entries, n, sizeof(*commit->entries));
    if (!entries) {
        return false;
    }
    commit->entries = entries;
    commit->capacity = n;
    return true;
}

/* What the script wants of this commit. */
static void
script(struct lw_memory_hub *hub, struct lw_memory_commit *commit)
{
    struct lw_memory_fault fault;
    const char *topic = commit->count > 0 ? commit->entries[0].partition->topic->name : NULL;
    if (lw_memory_fault_take(hub, LW_MEMORY_FAIL_COMMIT, topic, &fault)) {
        commit->status = fault.status;
        commit->first_stored = fault.is_applied ? 0 : commit->count;
    } else if (lw_memory_fault_take(hub, LW_MEMORY_SPLIT_COMMIT, topic, &fault)) {
        commit->status = LW_STATUS_TOO_LARGE;
        commit->first_stored = commit->count > 0 ? 1 : 0;
    }
    if (lw_memory_fault_take(hub, LW_MEMORY_SLOW_COMMIT, topic, &fault)) {
        commit->due += fault.delay_ns;
    }
}

enum lw_status
lw_memory_commit_begin(struct lw_memory_broker *broker, const struct lw_commit_item *items,
                       size_t n)
{
    struct lw_memory_commit *commit = &broker->commit;
    if (commit->is_in_flight || !reserve(commit, n) || !lw_memory_events_reserve(broker, 1)) {
        return LW_STATUS_AGAIN;
    }
    for (size_t i = 0; i < n; i++) {
        const struct lw_memory_source *source =
            (const struct lw_memory_source *)(const void *)items[i].source;
        commit->entries[i] = (struct lw_memory_commit_entry){
            .member = source->member,
            .partition = source->slots[items[i].slot]->partition,
            .position = items[i].position,
            .epoch = broker->events.lost > 0 ? NO_EPOCH : source->member->group->epoch,
        };
    }
    commit->count = n;
    commit->is_in_flight = true;
    commit->status = LW_STATUS_OK;
    commit->first_stored = 0;
    commit->due = broker->base.host->now + broker->hub->options.commit_latency_ns;
    script(broker->hub, commit);
    lw_memory_broker_wake_at(broker, commit->due);
    return LW_STATUS_OK;
}

/* Eager members are between two generations once they answered; their commits come too late. */
static bool
is_believed(const struct lw_memory_hub *hub, const struct lw_memory_member *member)
{
    if (!member->is_joined || member->is_expelled || member->is_rejoining) {
        return false;
    }
    return hub->options.protocol == LW_MEMORY_COOPERATIVE || member->revokes > 0 ||
           member->group->state == LW_MEMORY_GROUP_STABLE;
}

static enum lw_status
store(struct lw_memory_hub *hub, const struct lw_memory_commit *commit)
{
    for (size_t i = 0; i < commit->count; i++) {
        const struct lw_memory_member *member = commit->entries[i].member;
        if (!is_believed(hub, member) || commit->entries[i].epoch != member->group->epoch) {
            return LW_STATUS_STATE;
        }
    }
    for (size_t i = commit->first_stored; i < commit->count; i++) {
        const struct lw_memory_commit_entry *entry = &commit->entries[i];
        if (lw_memory_group_commit(entry->member->group, entry->partition, entry->position,
                                   NULL) != LW_STATUS_OK) {
            return LW_STATUS_UNAVAILABLE;
        }
        if (hub->observer.committed) {
            hub->observer.committed(entry->member->group->name, entry->partition->topic->name,
                                    entry->partition->number, entry->position,
                                    hub->observer.user);
        }
    }
    return LW_STATUS_OK;
}

void
lw_memory_commit_advance(struct lw_memory_broker *broker, uint64_t now)
{
    struct lw_memory_commit *commit = &broker->commit;
    if (!commit->is_in_flight || broker->state != LW_MEMORY_BROKER_UP || commit->due > now) {
        return;
    }
    enum lw_status stored = store(broker->hub, commit);
    commit->is_in_flight = false;
    struct lw_event event = {
        .kind = LW_EVENT_COMMITTED,
        .status = stored == LW_STATUS_OK ? commit->status : stored,
    };
    broker->hub->stats.commits += event.status == LW_STATUS_OK;
    broker->hub->stats.commits_failed += event.status != LW_STATUS_OK;
    lw_memory_events_push(broker, &event);
}

uint64_t
lw_memory_commit_due(const struct lw_memory_broker *broker)
{
    bool waits = broker->commit.is_in_flight && broker->state == LW_MEMORY_BROKER_UP;
    return waits ? broker->commit.due : LW_NEVER;
}

void
lw_memory_commit_end(struct lw_memory_broker *broker, bool is_stored)
{
    if (!broker->commit.is_in_flight) {
        return;
    }
    if (is_stored) {
        (void)store(broker->hub, &broker->commit);
    }
    broker->commit.is_in_flight = false;
    struct lw_event event = { .kind = LW_EVENT_COMMITTED, .status = LW_STATUS_UNKNOWN };
    lw_memory_events_push(broker, &event);
}
