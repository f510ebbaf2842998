/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Topics and partitions. A topic only grows; it lives as long as its hub, so that everybody may
 * point to it and to its name. Partitions are allocated one by one and never move. Putting a
 * message in is the only place that stamps it: time, visibility, position.
 */
#include "brokers/memory/topic.h"

#include <string.h>

#include "base/alloc.h"
#include "brokers/common/partitioner.h"
#include "brokers/memory/hub_turn.h"
#include "brokers/memory/source.h"

enum { NAME_MAX_LENGTH = 249 };

struct lw_memory_topic *
lw_memory_topic_find(const struct lw_memory_hub *hub, const char *name)
{
    const struct lw_list *head = &hub->topics;
    for (struct lw_list *node = head->next; node != head; node = node->next) {
        struct lw_memory_topic *topic = LW_CONTAINER(node, struct lw_memory_topic, link);
        if (strcmp(topic->name, name) == 0) {
            return topic;
        }
    }
    return NULL;
}

static struct lw_memory_topic *
create(struct lw_memory_hub *hub, const char *name)
{
    struct lw_memory_topic *topic = lw_alloc(sizeof *topic);
    char *copy = lw_copy_text(name);
    if (!topic || !copy) {
        lw_free(topic);
        lw_free(copy);
        return NULL;
    }
    topic->name = copy;
    lw_list_init(&topic->sources);
    lw_list_push(&hub->topics, &topic->link);
    return topic;
}

void
lw_memory_topic_destroy(struct lw_memory_topic *topic)
{
    for (int32_t i = 0; i < topic->partition_count; i++) {
        lw_memory_log_deinit(&topic->partitions[i]->log);
        lw_free(topic->partitions[i]);
    }
    lw_list_remove(&topic->link);
    lw_free(topic->partitions);
    lw_free(topic->name);
    lw_free(topic);
}

/* Adds partitions up to `count`; false without memory, with what there was for. */
static bool
grow(struct lw_memory_topic *topic, int32_t count)
{
    void *partitions = lw_resize_array(topic->partitions, (size_t)count,
                                       sizeof(struct lw_memory_partition *));
    if (!partitions) {
        return false;
    }
    topic->partitions = partitions;
    while (topic->partition_count < count) {
        struct lw_memory_partition *partition = lw_alloc(sizeof *partition);
        if (!partition) {
            return false;
        }
        partition->topic = topic;
        partition->number = topic->partition_count;
        lw_list_init(&partition->readers);
        lw_list_init(&partition->backlogs);
        topic->partitions[topic->partition_count++] = partition;
    }
    return true;
}

static bool
is_name(const char *name)
{
    size_t length = strlen(name);
    return length > 0 && length <= NAME_MAX_LENGTH;
}

enum lw_status
lw_memory_topic_make(struct lw_memory_hub *hub, const char *name, int32_t partitions,
                     struct lw_memory_topic **ret_topic)
{
    if (!is_name(name) || partitions < 1 || partitions > LW_MEMORY_PARTITIONS_MAX) {
        return LW_STATUS_INVALID;
    }
    struct lw_memory_topic *topic = lw_memory_topic_find(hub, name);
    if (topic && topic->partition_count >= partitions) {
        *ret_topic = topic;
        return LW_STATUS_ALREADY;
    }
    topic = topic ? topic : create(hub, name);
    if (!topic || !grow(topic, partitions)) {
        if (topic && topic->partition_count == 0) {
            lw_memory_topic_destroy(topic);
        }
        return LW_STATUS_NO_MEMORY;
    }
    lw_memory_source_on_topic(hub, topic);
    *ret_topic = topic;
    return LW_STATUS_OK;
}

struct lw_memory_topic *
lw_memory_topic_use(struct lw_memory_hub *hub, const char *name, int32_t partitions)
{
    struct lw_memory_topic *topic = lw_memory_topic_find(hub, name);
    if (topic || hub->options.is_closed_world) {
        return topic;
    }
    (void)lw_memory_topic_make(
        hub, name, partitions > 0 ? partitions : hub->options.default_partitions, &topic);
    return topic;
}

struct lw_memory_partition *
lw_memory_topic_partition(const struct lw_memory_topic *topic, int32_t number)
{
    bool is_there = topic && number >= 0 && number < topic->partition_count;
    return is_there ? topic->partitions[number] : NULL;
}

void
lw_memory_partition_wake(struct lw_memory_partition *partition)
{
    const struct lw_list *head = &partition->readers;
    for (struct lw_list *node = head->next; node != head; node = node->next) {
        lw_memory_slot_wake(LW_CONTAINER(node, struct lw_memory_slot, reader));
    }
}

struct lw_memory_view
lw_memory_partition_view(const struct lw_memory_partition *partition,
                         const struct lw_memory_record *record)
{
    return (struct lw_memory_view){
        .topic = partition->topic->name,
        .partition = partition->number,
        .position = record->position,
        .key = record->key,
        .ordering_key = record->ordering_key,
        .value = record->value,
        .headers = record->headers,
        .header_count = record->header_count,
        .timestamp_ms = record->timestamp_ms,
        .event_time_ms = record->event_time_ms,
    };
}

static int32_t
choose(struct lw_memory_topic *topic, const struct lw_memory_item *item)
{
    if (item->partition >= 0) {
        return item->partition;
    }
    struct lw_bytes key = item->ordering_key.data ? item->ordering_key : item->key;
    if (key.data) {
        return lw_partitioner_choose(key, topic->partition_count);
    }
    return (int32_t)(topic->rotation++ % (uint32_t)topic->partition_count);
}

static size_t
size_of(const struct lw_memory_item *item)
{
    size_t size = item->key.size + item->ordering_key.size + item->value.size;
    for (size_t i = 0; i < item->header_count; i++) {
        size += item->headers[i].name.size + item->headers[i].value.size;
    }
    return size;
}

/* By position a delay is the business of tier topics; one reader alone gets it at once. */
static uint64_t
visible_at(const struct lw_memory_hub *hub, const struct lw_memory_item *item, uint64_t now)
{
    uint64_t wait = hub->options.fetch_latency_ns;
    enum lw_memory_sharing sharing = hub->options.sharing;
    bool is_shared = hub->options.mode == LW_MEMORY_INDIVIDUAL &&
                     (sharing == LW_MEMORY_SHARED || sharing == LW_MEMORY_KEY_SHARED);
    if (is_shared && item->delay_ms > 0) {
        wait += (uint64_t)item->delay_ms * LW_MS;
    }
    return wait > 0 ? now + wait : 0;
}

enum lw_status
lw_memory_topic_append(struct lw_memory_hub *hub, struct lw_memory_topic *topic,
                       const struct lw_memory_item *item, int32_t *ret_partition,
                       int64_t *ret_position)
{
    struct lw_memory_partition *partition = lw_memory_topic_partition(topic,
                                                                      choose(topic, item));
    if (!partition) {
        return LW_STATUS_NOT_FOUND;
    }
    if (size_of(item) > hub->options.message_bytes_max) {
        return LW_STATUS_TOO_LARGE;
    }
    struct lw_memory_record *record = lw_memory_log_append(&partition->log, item);
    if (!record) {
        return LW_STATUS_UNAVAILABLE;
    }
    struct lw_host *host = lw_memory_hub_host(hub);
    record->visible_at = visible_at(hub, item, host ? host->now : 0);
    record->timestamp_ms = host ? host->ops->wall_ms(host) : 0;
    if (hub->observer.appended) {
        struct lw_memory_view view = lw_memory_partition_view(partition, record);
        hub->observer.appended(&view, hub->observer.user);
    }
    if (ret_partition) {
        *ret_partition = partition->number;
    }
    if (ret_position) {
        *ret_position = record->position;
    }
    lw_memory_log_retain(&partition->log, hub->options.retained_count,
                         hub->options.retained_bytes);
    lw_memory_partition_wake(partition);
    return LW_STATUS_OK;
}
