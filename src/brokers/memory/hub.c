/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hub as a thing that is held, filled and looked into. Named hubs are in one list of the
 * process, so that brokers made from an address meet; it is not locked, since all brokers of a
 * hub live on one thread anyway: named hubs are opened and closed by one thread at a time. What
 * goes on by itself is in hub_turn.c.
 */
#include "brokers/memory/hub.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "brokers/memory/assignor.h"
#include "brokers/memory/backlog.h"
#include "brokers/memory/broker.h"
#include "brokers/memory/faults.h"
#include "brokers/memory/group.h"
#include "brokers/memory/topic.h"

static struct lw_list named_hubs = { &named_hubs, &named_hubs };

#define SECOND (1000 * LW_MS)

void
lw_memory_options_init(struct lw_memory_options *options)
{
    *options = (struct lw_memory_options){
        .default_partitions = 1,
        .message_bytes_max = (size_t)1024 * 1024,
        .publish_queue_max = 100000,
        .revoke_timeout_ns = 5 * SECOND,
        .rebalance_timeout_ns = 30 * SECOND,
        .session_timeout_ns = 10 * SECOND,
        .nack_delay_ns = 60 * SECOND,
    };
}

static struct lw_memory_hub *
find_named(const char *name)
{
    for (struct lw_list *node = named_hubs.next; node != &named_hubs; node = node->next) {
        struct lw_memory_hub *hub = LW_CONTAINER(node, struct lw_memory_hub, link);
        if (strcmp(hub->name, name) == 0) {
            return hub;
        }
    }
    return NULL;
}

static struct lw_memory_hub *
create(const char *name, const struct lw_memory_options *options)
{
    struct lw_memory_hub *hub = lw_alloc(sizeof *hub);
    char *copy = lw_copy_text(name);
    if (!hub || (name && !copy)) {
        lw_free(hub);
        lw_free(copy);
        return NULL;
    }
    hub->name = copy;
    lw_memory_options_init(&hub->options);
    if (options) {
        hub->options = *options;
    }
    lw_list_init(&hub->link);
    lw_list_init(&hub->topics);
    lw_list_init(&hub->groups);
    lw_list_init(&hub->brokers);
    lw_list_init(&hub->faults);
    if (name) {
        lw_list_push(&named_hubs, &hub->link);
    }
    return hub;
}

struct lw_memory_hub *
lw_memory_hub_open(const char *name, const struct lw_memory_options *options)
{
    bool is_named = name && *name;
    struct lw_memory_hub *hub = is_named ? find_named(name) : NULL;
    hub = hub ? hub : create(is_named ? name : NULL, options);
    if (hub) {
        hub->holders++;
    }
    return hub;
}

static void
destroy_backlogs(struct lw_memory_partition *partition)
{
    while (!lw_list_is_empty(&partition->backlogs)) {
        lw_memory_backlog_destroy(
            LW_CONTAINER(partition->backlogs.next, struct lw_memory_backlog, link));
    }
}

void
lw_memory_hub_close(struct lw_memory_hub *hub)
{
    if (!hub || --hub->holders > 0) {
        return;
    }
    lw_assert(lw_list_is_empty(&hub->brokers));
    while (!lw_list_is_empty(&hub->groups)) {
        lw_memory_group_destroy(LW_CONTAINER(hub->groups.next, struct lw_memory_group, link));
    }
    while (!lw_list_is_empty(&hub->topics)) {
        struct lw_memory_topic *topic = LW_CONTAINER(hub->topics.next, struct lw_memory_topic,
                                                     link);
        for (int32_t i = 0; i < topic->partition_count; i++) {
            destroy_backlogs(topic->partitions[i]);
        }
        lw_memory_topic_destroy(topic);
    }
    lw_memory_hub_clear_faults(hub);
    lw_list_remove(&hub->link);
    lw_free(hub->name);
    lw_free(hub);
}

struct lw_memory_options *
lw_memory_hub_options(struct lw_memory_hub *hub)
{
    return &hub->options;
}

struct lw_memory_stats
lw_memory_hub_stats(const struct lw_memory_hub *hub)
{
    return hub->stats;
}

void
lw_memory_hub_observe(struct lw_memory_hub *hub, const struct lw_memory_observer *observer)
{
    hub->observer = *observer;
}

/* -- Topics and their contents ---------------------------------------------------------------- */

static struct lw_memory_partition *
find_partition(const struct lw_memory_hub *hub, const char *topic, int32_t partition)
{
    return lw_memory_topic_partition(lw_memory_topic_find(hub, topic), partition);
}

enum lw_status
lw_memory_hub_create_topic(struct lw_memory_hub *hub, const char *topic, int32_t partitions)
{
    struct lw_memory_topic *found = NULL;
    return lw_memory_topic_make(hub, topic, partitions, &found);
}

const char *
lw_memory_hub_name(const struct lw_memory_hub *hub, const char *topic)
{
    const struct lw_memory_topic *found = lw_memory_topic_find(hub, topic);
    return found ? found->name : NULL;
}

int32_t
lw_memory_hub_partitions(const struct lw_memory_hub *hub, const char *topic)
{
    const struct lw_memory_topic *found = lw_memory_topic_find(hub, topic);
    return found ? found->partition_count : 0;
}

struct lw_memory_item
lw_memory_item_of(const char *topic, const char *key, const char *value)
{
    return (struct lw_memory_item){
        .topic = topic,
        .partition = -1,
        .key = lw_bytes_of(key),
        .value = lw_bytes_of(value),
        .event_time_ms = -1,
    };
}

enum lw_status
lw_memory_hub_publish(struct lw_memory_hub *hub, const struct lw_memory_item *item,
                      int32_t *ret_partition, int64_t *ret_position)
{
    struct lw_memory_topic *topic = lw_memory_topic_use(hub, item->topic, 0);
    if (!topic) {
        return LW_STATUS_NOT_FOUND;
    }
    enum lw_status status = lw_memory_topic_append(hub, topic, item, ret_partition,
                                                   ret_position);
    hub->stats.published += status == LW_STATUS_OK;
    return status;
}

enum lw_status
lw_memory_hub_delete(struct lw_memory_hub *hub, const char *topic, int32_t partition,
                     int64_t position)
{
    struct lw_memory_partition *found = find_partition(hub, topic, partition);
    bool is_deleted = found && lw_memory_log_delete(&found->log, position);
    return is_deleted ? LW_STATUS_OK : LW_STATUS_NOT_FOUND;
}

enum lw_status
lw_memory_hub_skip(struct lw_memory_hub *hub, const char *topic, int32_t partition,
                   int64_t count)
{
    struct lw_memory_partition *found = find_partition(hub, topic, partition);
    if (!found || count < 0) {
        return found ? LW_STATUS_INVALID : LW_STATUS_NOT_FOUND;
    }
    found->log.end += count;
    lw_memory_partition_wake(found);
    return LW_STATUS_OK;
}

enum lw_status
lw_memory_hub_raise_start(struct lw_memory_hub *hub, const char *topic, int32_t partition,
                          int64_t position)
{
    struct lw_memory_partition *found = find_partition(hub, topic, partition);
    if (!found) {
        return LW_STATUS_NOT_FOUND;
    }
    lw_memory_log_raise_start(&found->log, position);
    lw_memory_partition_wake(found);
    return LW_STATUS_OK;
}

enum lw_status
lw_memory_hub_truncate(struct lw_memory_hub *hub, const char *topic, int32_t partition)
{
    struct lw_memory_partition *found = find_partition(hub, topic, partition);
    if (!found) {
        return LW_STATUS_NOT_FOUND;
    }
    lw_memory_log_truncate(&found->log);
    while (!lw_list_is_empty(&found->readers)) { /* each loses the slot by this */
        struct lw_memory_slot *slot = LW_CONTAINER(found->readers.next, struct lw_memory_slot,
                                                   reader);
        lw_memory_broker_lose(slot->source->broker);
    }
    return LW_STATUS_OK;
}

int64_t
lw_memory_hub_start(const struct lw_memory_hub *hub, const char *topic, int32_t partition)
{
    const struct lw_memory_partition *found = find_partition(hub, topic, partition);
    return found ? found->log.start : -1;
}

int64_t
lw_memory_hub_end(const struct lw_memory_hub *hub, const char *topic, int32_t partition)
{
    const struct lw_memory_partition *found = find_partition(hub, topic, partition);
    return found ? found->log.end : -1;
}

static size_t
show_partition(const struct lw_memory_partition *partition, lw_memory_view_fn fn, void *user)
{
    size_t count = 0;
    struct lw_memory_chunk *chunk = NULL;
    struct lw_memory_cursor cursor = lw_memory_log_seek(&partition->log, partition->log.start);
    const struct lw_memory_record *record;
    while ((record = lw_memory_log_peek(&partition->log, &cursor, &chunk)) != NULL) {
        struct lw_memory_view view = lw_memory_partition_view(partition, record);
        if (fn) {
            fn(&view, user);
        }
        cursor.index++;
        count++;
    }
    return count;
}

size_t
lw_memory_hub_each(const struct lw_memory_hub *hub, const char *topic, lw_memory_view_fn fn,
                   void *user)
{
    const struct lw_memory_topic *found = lw_memory_topic_find(hub, topic);
    size_t count = 0;
    for (int32_t i = 0; found && i < found->partition_count; i++) {
        count += show_partition(found->partitions[i], fn, user);
    }
    return count;
}

/* -- Groups and subscriptions -------------------------------------------------------------------- */

int64_t
lw_memory_hub_committed(const struct lw_memory_hub *hub, const char *group, const char *topic,
                        int32_t partition, const char **ret_metadata)
{
    const struct lw_memory_group *found = lw_memory_group_find(hub, group);
    const struct lw_memory_partition *place = find_partition(hub, topic, partition);
    return found && place ? lw_memory_group_committed(found, place, ret_metadata) : -1;
}

enum lw_status
lw_memory_hub_set_committed(struct lw_memory_hub *hub, const char *group, const char *topic,
                            int32_t partition, int64_t position)
{
    const struct lw_memory_partition *place = find_partition(hub, topic, partition);
    if (!place) {
        return LW_STATUS_NOT_FOUND;
    }
    struct lw_memory_group *found = lw_memory_group_use(hub, group);
    return found ? lw_memory_group_commit(found, place, position, NULL) : LW_STATUS_NO_MEMORY;
}

enum lw_status
lw_memory_hub_set_metadata(struct lw_memory_hub *hub, const char *group, const char *topic,
                           int32_t partition, const char *metadata)
{
    int64_t position = lw_memory_hub_committed(hub, group, topic, partition, NULL);
    if (position < 0) {
        return LW_STATUS_NOT_FOUND;
    }
    return lw_memory_group_commit(lw_memory_group_find(hub, group),
                                  find_partition(hub, topic, partition), position, metadata);
}

size_t
lw_memory_hub_member_count(const struct lw_memory_hub *hub, const char *group)
{
    const struct lw_memory_group *found = lw_memory_group_find(hub, group);
    size_t count = 0;
    if (found) {
        const struct lw_list *head = &found->members;
        for (struct lw_list *node = head->next; node != head; node = node->next) {
            count++;
        }
    }
    return count;
}

const char *
lw_memory_hub_owner(const struct lw_memory_hub *hub, const char *group, const char *topic,
                    int32_t partition)
{
    const struct lw_memory_group *found = lw_memory_group_find(hub, group);
    const struct lw_memory_partition *place = find_partition(hub, topic, partition);
    const struct lw_memory_slot *slot = found && place ? lw_memory_assignor_owner(found, place)
                                                       : NULL;
    return slot ? slot->source->broker->name : NULL;
}

static uint64_t
backlog_of(const struct lw_memory_hub *hub, const struct lw_memory_partition *partition,
           const char *subscription)
{
    int64_t from = partition->log.start;
    if (hub->options.mode == LW_MEMORY_INDIVIDUAL) {
        const struct lw_memory_backlog *backlog = lw_memory_backlog_find(partition,
                                                                         subscription);
        if (backlog) {
            return lw_memory_backlog_count(backlog);
        }
    } else {
        const struct lw_memory_group *group = lw_memory_group_find(hub, subscription);
        int64_t committed = group ? lw_memory_group_committed(group, partition, NULL) : -1;
        from = committed > from ? committed : from;
    }
    return lw_memory_log_count_from(&partition->log, lw_memory_log_seek(&partition->log, from));
}

uint64_t
lw_memory_hub_backlog(const struct lw_memory_hub *hub, const char *subscription,
                      const char *topic)
{
    const struct lw_memory_topic *found = lw_memory_topic_find(hub, topic);
    uint64_t count = 0;
    for (int32_t i = 0; found && i < found->partition_count; i++) {
        count += backlog_of(hub, found->partitions[i], subscription);
    }
    return count;
}
