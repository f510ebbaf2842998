/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table: what a dispatcher calls. Messages are views into chunks of the log: `owner` is the
 * chunk, which counts who looks into it; `entry` is the record (by position) or the backlog's
 * entry (individually). A detached message has a chunk of its own, so that it pins nothing of the
 * log. What takes time is in broker.c, addresses and topic administration in address.c. Loop
 * thread.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "brokers/memory/address.h"
#include "brokers/memory/backlog.h"
#include "brokers/memory/broker.h"
#include "brokers/memory/commit.h"
#include "brokers/memory/events.h"
#include "brokers/memory/member.h"
#include "brokers/memory/producer.h"
#include "brokers/memory/source.h"

static const struct lw_broker_ops *ops_of(const struct lw_memory_options *options);

static struct lw_memory_source *
source_of(struct lw_source *source)
{
    return (struct lw_memory_source *)(void *)source;
}

/* -- Life ---------------------------------------------------------------------------------------- */

static void
destroy(struct lw_broker *base)
{
    if (!base) {
        return;
    }
    struct lw_memory_broker *broker = lw_memory_broker_of(base);
    lw_timers_disarm(&base->host->timers, &broker->timer);
    lw_list_remove(&broker->deferred.link);
    lw_list_remove(&broker->link);
    while (!lw_list_is_empty(&broker->members)) {
        lw_memory_member_end(
            LW_CONTAINER(broker->members.next, struct lw_memory_member, broker_link), false,
            base->host->now);
    }
    while (!lw_list_is_empty(&broker->sources)) {
        lw_memory_source_destroy(
            LW_CONTAINER(broker->sources.next, struct lw_memory_source, link));
    }
    lw_free(broker->events.items);
    lw_free(broker->producer.items);
    lw_free(broker->commit.entries);
    lw_free(broker->name);
    lw_memory_hub_close(broker->hub);
    lw_free(broker);
}

static struct lw_broker_caps
caps_of(const struct lw_memory_options *options)
{
    bool is_individual = options->mode == LW_MEMORY_INDIVIDUAL;
    bool has_keys = is_individual && options->sharing == LW_MEMORY_KEY_SHARED;
    bool is_shared = is_individual && (has_keys || options->sharing == LW_MEMORY_SHARED);
    enum lw_nack_kind nack = is_shared ? LW_NACK_MESSAGE : LW_NACK_REWINDS;
    return (struct lw_broker_caps){
        .settlement = is_individual ? LW_SETTLE_INDIVIDUAL : LW_SETTLE_POSITION,
        .nack = is_individual ? nack : LW_NACK_NONE,
        .has_native_delay = is_shared,
        .has_redelivery_count = is_shared,
        .message_bytes_max = options->message_bytes_max,
        .commit_metadata_max = is_individual ? 0 : 4096,
        .default_ordering = is_individual && !has_keys ? LW_ORDERING_NONE : LW_ORDERING_KEY,
        .default_keyless = is_individual ? LW_KEYLESS_ROTATE : LW_KEYLESS_SHARED,
        .retries_in_place = !is_individual,
        .has_faults = true,
    };
}

/* The table's signature has seven. NOLINTBEGIN(readability-function-size) */
static enum lw_status
create(struct lw_host *host, const char *name, const char *url,
       const struct lw_property *properties, size_t property_count,
       struct lw_broker **ret_broker, struct lw_error *ret_error)
{
    struct lw_memory_hub *hub = NULL;
    enum lw_status status = lw_memory_address_open(url, properties, property_count, &hub,
                                                   ret_error);
    if (status != LW_STATUS_OK) {
        return status;
    }
    struct lw_memory_broker *broker = lw_alloc(sizeof *broker);
    char *copy = lw_copy_text(name);
    if (!broker || !copy || !lw_memory_events_reserve(broker, 1)) {
        lw_free(broker);
        lw_free(copy);
        lw_memory_hub_close(hub);
        return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "no memory for a broker");
    }
    broker->base = (struct lw_broker){ ops_of(&hub->options), host, caps_of(&hub->options),
                                       copy };
    broker->hub = hub;
    broker->name = copy;
    lw_list_init(&broker->sources);
    lw_list_init(&broker->members);
    lw_memory_broker_init_turns(broker);
    lw_list_push(&hub->brokers, &broker->link);
    *ret_broker = &broker->base;
    return LW_STATUS_OK;
}
/* NOLINTEND(readability-function-size) */

static enum lw_status
subscribe(struct lw_broker *base, const struct lw_source_options *options,
          struct lw_source **ret_source, struct lw_error *ret_error)
{
    struct lw_memory_broker *broker = lw_memory_broker_of(base);
    if (broker->state != LW_MEMORY_BROKER_NEW) {
        return lw_error_set(ret_error, LW_STATUS_STATE, "", "subscribed after the start");
    }
    struct lw_memory_source *source = NULL;
    enum lw_status status = lw_memory_source_create(broker, options, &source, ret_error);
    if (status != LW_STATUS_OK) {
        return status;
    }
    if (broker->hub->options.mode == LW_MEMORY_POSITION &&
        lw_memory_member_add(broker, source) != LW_STATUS_OK) {
        lw_memory_source_destroy(source);
        return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "no memory for a member");
    }
    *ret_source = (struct lw_source *)source;
    return LW_STATUS_OK;
}

static void
unsubscribe(struct lw_source *base)
{
    struct lw_memory_source *source = (struct lw_memory_source *)(void *)base;
    lw_assert(source->broker->state == LW_MEMORY_BROKER_NEW);
    lw_memory_member_remove(source);
    lw_memory_source_destroy(source);
}

static enum lw_status
start(struct lw_broker *base, struct lw_error *ret_error)
{
    struct lw_memory_broker *broker = lw_memory_broker_of(base);
    if (broker->state != LW_MEMORY_BROKER_NEW) {
        return lw_error_set(ret_error, LW_STATUS_STATE, "", "started twice");
    }
    broker->state = LW_MEMORY_BROKER_CONNECTING;
    broker->connect_at = base->host->now + broker->hub->options.connect_latency_ns;
    lw_memory_broker_poke(broker);
    return LW_STATUS_OK;
}

static void
stop_source(struct lw_memory_source *source)
{
    source->is_stopped = true;
    lw_memory_source_update(source);
    if (source->member) {
        return; /* its member leaves */
    }
    for (uint32_t i = 0; i < source->slot_count; i++) {
        struct lw_memory_slot *slot = source->slots[i];
        if (!slot->is_assigned) {
            lw_memory_slot_unassign(slot); /* waits for its turn no more */
        } else if (!slot->is_revoking) {
            slot->is_revoking = true;
            struct lw_event event = {
                .kind = LW_EVENT_REVOKING,
                .source = (struct lw_source *)source,
                .slot = slot->number,
                .generation = slot->generation,
                .deadline = source->broker->base.host->now +
                            source->broker->hub->options.revoke_timeout_ns,
            };
            lw_memory_events_push(source->broker, &event);
        }
    }
}

static void
stop_sources(struct lw_broker *base)
{
    struct lw_memory_broker *broker = lw_memory_broker_of(base);
    if (!broker->is_stopping) {
        broker->is_stopping = true;
        struct lw_list *head = &broker->sources;
        for (struct lw_list *node = head->next; node != head; node = node->next) {
            stop_source(LW_CONTAINER(node, struct lw_memory_source, link));
        }
        head = &broker->members;
        for (struct lw_list *node = head->next; node != head; node = node->next) {
            struct lw_memory_member *member = LW_CONTAINER(node, struct lw_memory_member,
                                                           broker_link);
            lw_memory_member_leave(member, base->host->now);
        }
    }
}

static bool
end_individual(struct lw_memory_source *source, uint64_t generation)
{
    for (uint32_t i = 0; i < source->slot_count; i++) {
        struct lw_memory_slot *slot = source->slots[i];
        if (slot->is_revoking && slot->generation == generation) {
            slot->is_revoking = false;
            lw_memory_slot_unassign(slot);
            return true;
        }
    }
    return false;
}

static void
revoke_done(struct lw_broker *base, uint64_t generation)
{
    struct lw_memory_broker *broker = lw_memory_broker_of(base);
    struct lw_list *head = &broker->members;
    for (struct lw_list *node = head->next; node != head; node = node->next) {
        struct lw_memory_member *member = LW_CONTAINER(node, struct lw_memory_member,
                                                       broker_link);
        if (lw_memory_member_answer(member, generation)) {
            lw_memory_broker_poke(broker);
            return;
        }
    }
    head = &broker->sources;
    for (struct lw_list *node = head->next; node != head; node = node->next) {
        if (end_individual(LW_CONTAINER(node, struct lw_memory_source, link), generation)) {
            return;
        }
    }
}

static void
close_broker(struct lw_broker *base)
{
    struct lw_memory_broker *broker = lw_memory_broker_of(base);
    if (broker->state == LW_MEMORY_BROKER_CLOSED) {
        return;
    }
    lw_memory_producer_end(broker, broker->state == LW_MEMORY_BROKER_UP);
    lw_memory_commit_end(broker, false);
    lw_memory_broker_detach(broker, false);
    broker->state = LW_MEMORY_BROKER_CLOSED;
    lw_memory_events_push_kind(broker, LW_EVENT_CLOSED);
}

/* -- Messages ------------------------------------------------------------------------------ */

static void
demand(struct lw_source *source, uint32_t messages, uint64_t bytes)
{
    struct lw_memory_source *own = source_of(source);
    bool had = own->demand_messages > 0;
    own->demand_messages = bytes > 0 ? messages : 0;
    if (had != (own->demand_messages > 0)) {
        lw_memory_source_update(own);
    }
}

static bool
is_ready(const struct lw_source *source)
{
    const struct lw_memory_source *own = (const struct lw_memory_source *)(const void *)source;
    return !lw_list_is_empty(&own->ready);
}

static bool
lag(struct lw_source *source, struct lw_lag *ret_lag)
{
    return lw_memory_source_lag(source_of(source), ret_lag);
}

static void
limit_slots(struct lw_source *source, uint32_t *rooms)
{
    source_of(source)->rooms = rooms;
}

static size_t
receive(struct lw_source *source, struct lw_message *const out[], size_t n, uint64_t bytes_max,
        bool *ret_has_more)
{
    return lw_memory_source_receive(source_of(source), out, n, bytes_max, ret_has_more);
}

static void
settle(struct lw_source *source, const struct lw_settle_item *items, size_t n)
{
    lw_assert(!source_of(source)->member);
    lw_memory_source_settle(source_of(source), items, n);
}

static enum lw_status
commit(struct lw_broker *base, const struct lw_commit_item *items, size_t n)
{
    struct lw_memory_broker *broker = lw_memory_broker_of(base);
    lw_assert(broker->hub->options.mode == LW_MEMORY_POSITION);
    if (broker->state >= LW_MEMORY_BROKER_VANISHED) {
        return LW_STATUS_CLOSED;
    }
    return lw_memory_commit_begin(broker, items, n);
}

static size_t
publish(struct lw_broker *base, struct lw_publication *const items[], size_t n)
{
    return lw_memory_producer_publish(lw_memory_broker_of(base), items, n);
}

static bool
is_individual(const struct lw_memory_broker *broker)
{
    return broker->hub->options.mode == LW_MEMORY_INDIVIDUAL;
}

static void
release(struct lw_broker *base, struct lw_message *const messages[], size_t n)
{
    struct lw_memory_broker *broker = lw_memory_broker_of(base);
    lw_assert(broker->held >= n);
    broker->held -= n;
    for (size_t i = 0; i < n; i++) {
        if (is_individual(broker)) {
            lw_memory_entry_release(messages[i]->entry);
        }
        lw_memory_chunk_release(messages[i]->owner);
    }
}

static const struct lw_memory_record *
record_of(struct lw_broker *base, const struct lw_message *message)
{
    if (!is_individual(lw_memory_broker_of(base))) {
        return message->entry;
    }
    const struct lw_memory_entry *entry = message->entry;
    return entry->record;
}

/* Individually the entry keeps the chunk until the ack anyway; only views move then. */
static bool
detach(struct lw_broker *base, struct lw_message *message)
{
    struct lw_memory_chunk *copy = lw_memory_chunk_copy(record_of(base, message));
    if (!copy) {
        return false;
    }
    lw_memory_chunk_release(message->owner);
    struct lw_memory_record *record = &copy->records[0];
    message->owner = copy;
    message->key = record->key;
    message->ordering_key = record->ordering_key;
    message->value = record->value;
    if (!is_individual(lw_memory_broker_of(base))) {
        message->entry = record;
    }
    return true;
}

static const struct lw_header *
headers(struct lw_broker *base, const struct lw_message *message, size_t *ret_count)
{
    const struct lw_memory_record *record = record_of(base, message);
    *ret_count = record->header_count;
    return record->headers;
}

static void
times(struct lw_broker *base, const struct lw_message *message,
      struct lw_message_times *ret_times)
{
    const struct lw_memory_record *record = record_of(base, message);
    ret_times->timestamp_ms = record->timestamp_ms;
    ret_times->event_time_ms = record->event_time_ms;
}

static size_t
events(struct lw_broker *base, struct lw_event *out, size_t n)
{
    return lw_memory_events_take(lw_memory_broker_of(base), out, n);
}

#define LW_MEMORY_OPS(convention)                                                              \
    {                                                                                          \
        .scheme = "memory", .create = create, .subscribe = subscribe,                          \
        .unsubscribe = unsubscribe, .start = start, .events = events, .demand = demand,        \
        .is_ready = is_ready, .receive = receive, .limit_slots = limit_slots,                  \
        .settle = settle, .commit = commit, .publish = publish, .release = release,            \
        .detach = detach, .headers = headers, .times = times, .revoke_done = revoke_done,      \
        .stop_sources = stop_sources, .close = close_broker, .destroy = destroy,               \
        .default_topic = (convention), .describe_topics = lw_memory_address_describe,          \
        .create_topics = lw_memory_address_create, .lag = lag,                                 \
    }

/* The two ways to settle differ in the names of companion topics only. */
static const struct lw_broker_ops position_ops = LW_MEMORY_OPS(
    lw_memory_address_position_topic);
static const struct lw_broker_ops individual_ops = LW_MEMORY_OPS(
    lw_memory_address_individual_topic);

const struct lw_broker_ops *
lw_memory_broker_ops(void)
{
    return &position_ops;
}

static const struct lw_broker_ops *
ops_of(const struct lw_memory_options *options)
{
    return options->mode == LW_MEMORY_INDIVIDUAL ? &individual_ops : &position_ops;
}
