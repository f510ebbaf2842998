/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources and slots: their making and end, and which slots may have something. Receiving is in
 * receive.c, attaching to backlogs in attach.c. A slot is in the ready ring only while its source
 * may receive, so that is_ready is one comparison. Loop thread.
 */
#include "brokers/memory/source.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "brokers/memory/backlog.h"
#include "brokers/memory/broker.h"
#include "brokers/memory/consumers.h"
#include "brokers/memory/events.h"
#include "brokers/memory/group.h"
#include "brokers/memory/topic.h"

/* -- Sources --------------------------------------------------------------------------------- */

static enum lw_status
read_reset(const char *value, enum lw_memory_reset *ret_reset)
{
    static const char *const names[] = { "earliest", "latest", "none" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(value, names[i]) == 0) {
            *ret_reset = (enum lw_memory_reset)i;
            return LW_STATUS_OK;
        }
    }
    return LW_STATUS_INVALID;
}

static enum lw_status
read_properties(struct lw_memory_source *source, const struct lw_source_options *options,
                struct lw_error *ret_error)
{
    for (size_t i = 0; i < options->property_count; i++) {
        const struct lw_property *property = &options->properties[i];
        if (strcmp(property->name, "auto.offset.reset") != 0) {
            return lw_error_set(ret_error, LW_STATUS_INVALID, "",
                                "the memory broker has no consumer property '%s'",
                                property->name);
        }
        if (read_reset(property->value, &source->reset) != LW_STATUS_OK) {
            return lw_error_set(ret_error, LW_STATUS_INVALID, "",
                                "auto.offset.reset is 'earliest', 'latest' or 'none', not '%s'",
                                property->value);
        }
    }
    return LW_STATUS_OK;
}

static bool
copy_options(struct lw_memory_source *source, const struct lw_source_options *options)
{
    source->topic_name = lw_copy_text(options->topic);
    source->subscription = lw_copy_text(options->subscription);
    source->retry_topic = lw_copy_text(options->retry_topic);
    source->tier_count = options->tier_count;
    source->tiers_ms = lw_alloc_array(options->tier_count, sizeof *source->tiers_ms);
    source->reads_tiers = options->reads_tiers;
    source->demand_messages = options->receiver_queue_size ? options->receiver_queue_size : 1;
    if (!source->topic_name || !source->subscription || !source->tiers_ms ||
        (options->retry_topic && !source->retry_topic)) {
        return false;
    }
    for (size_t i = 0; i < options->tier_count; i++) {
        source->tiers_ms[i] = options->tiers_ms[i];
    }
    return true;
}

enum lw_status
lw_memory_source_create(struct lw_memory_broker *broker,
                        const struct lw_source_options *options,
                        struct lw_memory_source **ret_source, struct lw_error *ret_error)
{
    struct lw_memory_source *source = lw_alloc(sizeof *source);
    if (!source) {
        return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "no memory for a source");
    }
    lw_list_init(&source->link);
    lw_list_init(&source->member_link);
    lw_list_init(&source->topic_link);
    lw_list_init(&source->ready);
    source->broker = broker;
    source->is_held = true;
    source->retry_at = LW_NEVER;
    enum lw_status status = read_properties(source, options, ret_error);
    if (status == LW_STATUS_OK && !copy_options(source, options)) {
        status = lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "no memory for a source");
    }
    if (status != LW_STATUS_OK) {
        lw_memory_source_destroy(source);
        return status;
    }
    lw_list_push(&broker->sources, &source->link);
    *ret_source = source;
    return LW_STATUS_OK;
}

void
lw_memory_source_destroy(struct lw_memory_source *source)
{
    for (uint32_t i = 0; i < source->slot_count; i++) {
        lw_memory_slot_unassign(source->slots[i]);
        lw_free(source->slots[i]);
    }
    lw_list_remove(&source->link);
    lw_list_remove(&source->member_link);
    lw_list_remove(&source->topic_link);
    lw_free(source->slots);
    lw_free(source->topic_name);
    lw_free(source->subscription);
    lw_free(source->retry_topic);
    lw_free(source->tiers_ms);
    lw_free(source);
}

static struct lw_memory_slot *
create_slot(struct lw_memory_source *source)
{
    if (source->slot_count == source->slot_capacity) {
        uint32_t capacity = source->slot_capacity ? source->slot_capacity * 2 : 4;
        void *slots = lw_resize_array(source->slots, capacity, sizeof(struct lw_memory_slot *));
        if (!slots) {
            return NULL;
        }
        source->slots = slots;
        source->slot_capacity = capacity;
    }
    struct lw_memory_slot *slot = lw_alloc(sizeof *slot);
    if (slot) {
        slot->number = source->slot_count;
        source->slots[source->slot_count++] = slot;
    }
    return slot;
}

struct lw_memory_slot *
lw_memory_source_slot(struct lw_memory_source *source, struct lw_memory_partition *partition,
                      bool is_companion)
{
    for (uint32_t i = 0; i < source->slot_count; i++) {
        if (source->slots[i]->partition == partition) {
            return source->slots[i];
        }
    }
    struct lw_memory_slot *slot = create_slot(source);
    if (!slot) {
        lw_memory_source_fail(source, LW_STATUS_NO_MEMORY, "", false, "no memory for a slot");
        return NULL;
    }
    lw_list_init(&slot->reader);
    lw_list_init(&slot->ready);
    lw_list_init(&slot->consumer);
    lw_list_init(&slot->sent);
    lw_list_init(&slot->out);
    slot->source = source;
    slot->partition = partition;
    slot->is_companion = is_companion;
    slot->due = slot->rewind_at = LW_NEVER;
    return slot;
}

static bool
may_receive(const struct lw_memory_source *source)
{
    const struct lw_memory_member *member = source->member;
    return source->broker->state == LW_MEMORY_BROKER_UP && !source->is_stopped &&
           source->demand_messages > 0 &&
           (!member || (member->revokes == 0 && !member->is_expelled));
}

void
lw_memory_source_update(struct lw_memory_source *source)
{
    source->is_held = !may_receive(source);
    for (uint32_t i = 0; i < source->slot_count; i++) {
        if (source->is_held) {
            lw_list_remove(&source->slots[i]->ready);
        } else {
            lw_memory_slot_wake(source->slots[i]);
        }
    }
}

bool
lw_memory_source_tier(const struct lw_memory_source *source, int64_t tier_ms, char *out,
                      size_t size)
{
    char delay[32];
    lw_text_from_duration_ms(tier_ms, delay, sizeof delay);
    int length = snprintf(out, size, "%s.%s", source->retry_topic, delay);
    return length > 0 && (size_t)length < size;
}

void
lw_memory_source_fail(struct lw_memory_source *source, enum lw_status status, const char *code,
                      bool is_fatal, const char *message)
{
    lw_error_set(&source->error, status, code, "%s (topic %s)", message, source->topic_name);
    source->error.is_fatal = is_fatal;
    source->error.is_retriable = !is_fatal;
    struct lw_event event = {
        .kind = LW_EVENT_SOURCE_ERROR,
        .source = (struct lw_source *)source,
        .status = status,
        .error = &source->error,
    };
    lw_memory_events_push(source->broker, &event);
}

/* The source may wait for this topic, or read it with fewer partitions than it has now. */
static void
notice_topic(struct lw_memory_source *source, struct lw_memory_topic *topic)
{
    if (strcmp(source->topic_name, topic->name) != 0) {
        return;
    }
    if (!source->topic) {
        source->topic = topic;
        lw_list_push(&topic->sources, &source->topic_link);
    }
    source->retry_at = 0;
    lw_memory_broker_wake_at(source->broker, 0);
    if (source->member && source->member->is_joined) {
        lw_memory_group_want(source->member->group);
    }
}

void
lw_memory_source_on_topic(struct lw_memory_hub *hub, struct lw_memory_topic *topic)
{
    for (struct lw_list *node = hub->brokers.next; node != &hub->brokers; node = node->next) {
        struct lw_memory_broker *broker = LW_CONTAINER(node, struct lw_memory_broker, link);
        struct lw_list *head = &broker->sources;
        for (struct lw_list *at = head->next; at != head; at = at->next) {
            notice_topic(LW_CONTAINER(at, struct lw_memory_source, link), topic);
        }
    }
}

/* -- Slots ----------------------------------------------------------------------------------- */

void
lw_memory_slot_assign(struct lw_memory_slot *slot, uint64_t generation, int64_t position)
{
    struct lw_memory_source *source = slot->source;
    slot->is_assigned = true;
    slot->is_revoking = false;
    slot->generation = generation;
    slot->due = slot->rewind_at = LW_NEVER;
    if (!slot->backlog) {
        slot->cursor = lw_memory_log_seek(&slot->partition->log, position);
        slot->next_position = position;
    }
    lw_list_push(&slot->partition->readers, &slot->reader);
    struct lw_event event = {
        .kind = LW_EVENT_ASSIGNED,
        .source = (struct lw_source *)source,
        .slot = slot->number,
        .generation = generation,
        .topic = slot->partition->topic->name,
        .partition = slot->partition->number,
        .is_companion = slot->is_companion,
        .position = position,
    };
    lw_memory_events_push(source->broker, &event);
    lw_memory_slot_wake(slot);
}

static void
end_reading(struct lw_memory_slot *slot)
{
    if (!slot->is_assigned) {
        return;
    }
    slot->is_assigned = false;
    lw_list_remove(&slot->reader);
    lw_list_remove(&slot->ready);
    if (slot->backlog) {
        lw_memory_backlog_return(slot, slot->backlog->is_shared);
        if (slot->backlog->holder == slot) {
            slot->backlog->holder = NULL;
        }
        lw_memory_partition_wake(slot->partition);
        slot->backlog = NULL;
    }
}

void
lw_memory_slot_unassign(struct lw_memory_slot *slot)
{
    end_reading(slot);
    lw_memory_consumers_leave(slot);
}

void
lw_memory_slot_lose(struct lw_memory_slot *slot)
{
    struct lw_event event = {
        .kind = LW_EVENT_LOST,
        .source = (struct lw_source *)slot->source,
        .slot = slot->number,
        .generation = slot->generation,
    };
    lw_memory_events_push(slot->source->broker, &event);
    end_reading(slot);
}

void
lw_memory_slot_wake(struct lw_memory_slot *slot)
{
    struct lw_memory_source *source = slot->source;
    if (source->is_held || !slot->is_assigned || slot->is_revoking ||
        slot->partition->topic->stalled_until != 0 || !lw_list_is_empty(&slot->ready)) {
        return;
    }
    if (lw_list_is_empty(&source->ready)) {
        lw_memory_broker_poke(source->broker);
    }
    lw_list_push(&source->ready, &slot->ready);
}

void
lw_memory_slot_wait(struct lw_memory_slot *slot, uint64_t due)
{
    lw_list_remove(&slot->ready);
    if (due < slot->due) {
        slot->due = due;
        lw_memory_broker_wake_at(slot->source->broker, due);
    }
}
