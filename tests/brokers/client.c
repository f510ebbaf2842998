/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The test client. It keeps what the contract of plugin.h asks a dispatcher to keep: slots by
 * their ASSIGNED events, every received message until it is released, every publication until its
 * receipt. It checks what must hold for any broker at any time: a slot's generation is new, a
 * receipt belongs to a publication and comes once, messages name a live slot.
 */
#include "tests/support/test.h"

#include "tests/brokers/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
tell(struct client *client, const char *separator, const char *format, ...)
{
    size_t length = strlen(client->text);
    size_t room = sizeof client->text - length;
    int written = snprintf(client->text + length, room, "%s", length > 0 ? separator : "");
    if ((size_t)written >= room) {
        return; /* it tells no more */
    }
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(client->text + length + written, room - (size_t)written, format, arguments);
    va_end(arguments);
}

/* All of them are the table's. NOLINTBEGIN(readability-function-size) */
struct client *
client_create_with(struct lw_host *host, const struct lw_broker_ops *ops, const char *name,
                   const char *url, const struct lw_property *properties, size_t property_count)
{
    struct client *client = calloc(1, sizeof *client);
    struct lw_error error = { 0 };
    assert_non_null(client);
    enum lw_status status = ops->create(host, name, url, properties, property_count,
                                        &client->broker, &error);
    if (status != LW_STATUS_OK) {
        fail_msg("create: %s", error.message);
    }
    client->ops = client->broker->ops;
    return client;
}
/* NOLINTEND(readability-function-size) */

struct client *
client_create(struct lw_host *host, const struct lw_broker_ops *ops, const char *name,
              const char *url)
{
    return client_create_with(host, ops, name, url, NULL, 0);
}

void
client_destroy(struct client *client)
{
    client->ops->destroy(client->broker);
    free(client);
}

struct lw_source_options
client_options(const char *topic, const char *subscription)
{
    return (struct lw_source_options){
        .topic = topic,
        .subscription = subscription,
        .receiver_queue_size = 1000,
        .queue_bytes_max = 1 << 20,
    };
}

struct lw_source *
client_subscribe_with(struct client *client, const struct lw_source_options *options)
{
    struct lw_error error = { 0 };
    struct lw_source **source = &client->sources[client->source_count];
    if (client->ops->subscribe(client->broker, options, source, &error) != LW_STATUS_OK) {
        fail_msg("subscribe: %s", error.message);
    }
    return client->sources[client->source_count++];
}

struct lw_source *
client_subscribe(struct client *client, const char *topic, const char *subscription)
{
    struct lw_source_options options = client_options(topic, subscription);
    return client_subscribe_with(client, &options);
}

void
client_start(struct client *client)
{
    struct lw_error error = { 0 };
    if (client->ops->start(client->broker, &error) != LW_STATUS_OK) {
        fail_msg("start: %s", error.message);
    }
    for (size_t i = 0; i < client->source_count; i++) {
        client->ops->demand(client->sources[i], 1000, 1 << 20);
    }
}

/* -- Events ------------------------------------------------------------------------------------ */

static struct client_slot *
find_slot(struct client *client, const struct lw_source *source, uint32_t number)
{
    for (size_t i = 0; i < client->slot_count; i++) {
        struct client_slot *slot = &client->slots[i];
        if (slot->source == source && slot->slot == number) {
            return slot;
        }
    }
    return NULL;
}

static void
on_assigned(struct client *client, const struct lw_event *event)
{
    struct client_slot *slot = find_slot(client, event->source, event->slot);
    for (size_t i = 0; i < client->slot_count; i++) {
        bool is_same = client->slots[i].generation == event->generation;
        assert_false(is_same && !client->slots[i].is_live); /* an ended one never comes back */
    }
    if (!slot) {
        assert_true(client->slot_count < CLIENT_SLOTS_MAX);
        slot = &client->slots[client->slot_count++];
    }
    assert_false(slot->is_live);
    *slot = (struct client_slot){ .source = event->source,
                                  .slot = event->slot,
                                  .partition = event->partition,
                                  .generation = event->generation,
                                  .is_live = true };
    snprintf(slot->topic, sizeof slot->topic, "%s", event->topic);
    tell(client, ", ", "assigned %s%s/%d@%lld", event->is_companion ? "+" : "", event->topic,
         (int)event->partition, (long long)event->position);
}

static void
end_generation(struct client *client, uint64_t generation)
{
    size_t ended = 0;
    for (size_t i = 0; i < client->slot_count; i++) {
        if (client->slots[i].is_live && client->slots[i].generation == generation) {
            client->slots[i].is_live = false;
            ended++;
        }
    }
    assert_true(ended > 0);
}

static void
forget_revoking(struct client *client, uint64_t generation)
{
    for (size_t i = 0; i < client->revoking_count; i++) {
        if (client->revoking[i] == generation) {
            client->revoking[i] = client->revoking[--client->revoking_count];
            return;
        }
    }
}

static void
on_published(struct client *client, const struct lw_event *event)
{
    struct client_sent *sent = event->publication->user;
    assert_true(sent >= client->sent && sent < client->sent + client->sent_count);
    sent->receipts++;
    sent->status = event->status;
    assert_int_equal(sent->receipts, 1);
    tell(client, ", ", "published %s", lw_status_name(event->status));
}

static void
on_position(struct client *client, const struct lw_event *event)
{
    const struct client_slot *slot = find_slot(client, event->source, event->slot);
    assert_non_null(slot);
    tell(client, ", ", "position %s/%d@%lld", slot->topic, (int)slot->partition,
         (long long)event->position);
}

static void
on_event(struct client *client, const struct lw_event *event)
{
    switch (event->kind) {
    case LW_EVENT_ASSIGNED:
        on_assigned(client, event);
        break;
    case LW_EVENT_REVOKING:
        client->revoking[client->revoking_count++] = event->generation;
        client->deadline = event->deadline;
        tell(client, ", ", "revoking");
        break;
    case LW_EVENT_LOST:
        end_generation(client, event->generation);
        forget_revoking(client, event->generation);
        tell(client, ", ", "lost");
        break;
    case LW_EVENT_POSITION:
        on_position(client, event);
        break;
    case LW_EVENT_PUBLISHED:
        on_published(client, event);
        break;
    case LW_EVENT_PUBLISH_ROOM:
        tell(client, ", ", "room");
        break;
    case LW_EVENT_COMMITTED:
        client->commits_answered++;
        client->last_commit = event->status;
        tell(client, ", ", "committed %s", lw_status_name(event->status));
        break;
    case LW_EVENT_BROKER_UP:
        client->is_up = true;
        tell(client, ", ", "up");
        break;
    case LW_EVENT_BROKER_DOWN:
        client->is_up = false;
        client->last_error = *event->error;
        tell(client, ", ", "down");
        break;
    case LW_EVENT_SOURCE_ERROR:
        client->last_error = *event->error;
        tell(client, ", ", "error %s%s", lw_status_name(event->error->status),
             event->error->is_fatal ? "!" : "");
        break;
    case LW_EVENT_CLOSED:
        client->is_closed = true;
        tell(client, ", ", "closed");
        break;
    }
}

const char *
client_events(struct client *client)
{
    struct lw_event events[16];
    size_t count = 0;
    client->text[0] = '\0';
    do {
        count = client->ops->events(client->broker, events, 16);
        for (size_t i = 0; i < count; i++) {
            on_event(client, &events[i]);
        }
    } while (count == 16);
    return client->text;
}

size_t
client_count(const char *text, const char *piece)
{
    size_t count = 0;
    for (const char *at = strstr(text, piece); at; at = strstr(at + 1, piece)) {
        count++;
    }
    return count;
}

/* -- Messages ---------------------------------------------------------------------------------- */

static void
tell_message(struct client *client, const struct lw_source *source,
             const struct lw_message *message)
{
    const struct client_slot *slot = find_slot(client, source, message->slot);
    assert_non_null(slot);
    assert_true(slot->is_live);
    tell(client, " ", "%d:%lld=%.*s", (int)slot->partition, (long long)message->position,
         message->value.data ? (int)message->value.size : 4,
         message->value.data ? (const char *)message->value.data : "null");
    if (message->redeliveries > 0) {
        tell(client, "", "x%u", message->redeliveries);
    }
}

const char *
client_receive(struct client *client, struct lw_source *source, size_t n)
{
    struct lw_message *out[CLIENT_HELD_MAX];
    bool has_more = true;
    size_t first = client->message_count;
    client->text[0] = '\0';
    assert_true(first + n <= CLIENT_HELD_MAX);
    for (size_t i = 0; i < n; i++) {
        out[i] = &client->messages[first + i];
    }
    while (has_more && client->message_count < first + n && client->ops->is_ready(source)) {
        size_t at = client->message_count - first;
        size_t count = client->ops->receive(source, out + at, n - at, 1 << 20, &has_more);
        client->message_count += count;
    }
    for (size_t i = first; i < client->message_count; i++) {
        client->is_held[i] = true;
        client->origin[i] = source;
        tell_message(client, source, &client->messages[i]);
    }
    return client->text;
}

void
client_release(struct client *client, size_t index)
{
    struct lw_message *message = &client->messages[index];
    assert_true(client->is_held[index]);
    client->is_held[index] = false;
    client->ops->release(client->broker, &message, 1);
}

void
client_release_all(struct client *client)
{
    for (size_t i = 0; i < client->message_count; i++) {
        if (client->is_held[i]) {
            client_release(client, i);
        }
    }
}

enum lw_status
client_commit(struct client *client, const char *topic, int32_t partition, int64_t position)
{
    for (size_t i = 0; i < client->slot_count; i++) {
        const struct client_slot *slot = &client->slots[i];
        if (slot->partition == partition && strcmp(slot->topic, topic) == 0) {
            struct lw_commit_item item = { slot->source, slot->slot, position };
            return client->ops->commit(client->broker, &item, 1);
        }
    }
    fail_msg("no slot for %s/%d", topic, (int)partition);
    return LW_STATUS_INTERNAL;
}

static void
settle(struct client *client, size_t index, bool is_ack, int64_t delay_ms)
{
    struct lw_settle_item item = { &client->messages[index], is_ack, delay_ms };
    client->ops->settle(client->origin[index], &item, 1);
    client_release(client, index);
}

void
client_ack(struct client *client, size_t index)
{
    settle(client, index, true, 0);
}

void
client_nack(struct client *client, size_t index, int64_t delay_ms)
{
    settle(client, index, false, delay_ms);
}

void
client_answer(struct client *client)
{
    while (client->revoking_count > 0) {
        uint64_t generation = client->revoking[--client->revoking_count];
        end_generation(client, generation);
        client->ops->revoke_done(client->broker, generation);
    }
}

size_t
client_offer(struct client *client, const struct lw_publication *publication)
{
    assert_true(client->sent_count < CLIENT_SENT_MAX);
    struct client_sent *sent = &client->sent[client->sent_count];
    *sent = (struct client_sent){ .publication = *publication };
    sent->publication.user = sent;
    struct lw_publication *item = &sent->publication;
    client->sent_count++;
    if (client->ops->publish(client->broker, &item, 1) == 0) {
        client->sent_count--;
        return SIZE_MAX;
    }
    return client->sent_count - 1;
}

size_t
client_publish(struct client *client, const char *topic, const char *key, const char *value)
{
    struct lw_publication publication = {
        .kind = LW_PUBLISH_OUTPUT,
        .topic = topic,
        .partition = -1,
        .key = lw_bytes_of(key),
        .value = lw_bytes_of(value),
        .event_time_ms = -1,
    };
    return client_offer(client, &publication);
}
