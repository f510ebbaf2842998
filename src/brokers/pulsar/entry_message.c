/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message in the dispatcher's hands: headers on demand, times, its id, a copy of its own when it
 * is kept for long, its end. `owner` is the member, `entry` the array of headers once it was asked
 * for. Headers may be asked for by the thread that holds the delivery.
 */
#include <string.h>

#include "base/alloc.h"
#include "brokers/pulsar/consumer.h"
#include "brokers/pulsar/entry.h"

struct headers {
    size_t count;
    struct lw_header rows[];
};

void
lw_pulsar_message_release(struct lw_message *message)
{
    struct lw_pulsar_received *member = message->owner;
    if (__builtin_expect(message->entry != NULL, 0)) {
        lw_free(message->entry);
        message->entry = NULL;
    }
    message->owner = NULL;
    if (member) {
        lw_pulsar_received_end(member);
    }
}

/* -- Headers ------------------------------------------------------------------------------------------ */

static struct headers *
parse(const struct lw_pulsar_list *list)
{
    struct headers *headers = lw_alloc(sizeof *headers + list->count * sizeof *headers->rows);
    struct lw_pulsar_walk walk = lw_pulsar_list_walk(list);
    struct lw_pulsar_pair pair;
    if (!headers) {
        return NULL;
    }
    while (headers->count < list->count && lw_pulsar_walk_pair(&walk, &pair)) {
        headers->rows[headers->count++] = (struct lw_header){ pair.key, pair.value };
    }
    return headers;
}

const struct lw_header *
lw_pulsar_message_headers(const struct lw_message *message, size_t *ret_count)
{
    const struct lw_pulsar_received *member = message->owner;
    struct headers *headers = message->entry;
    if (!headers && member && member->properties.count > 0) {
        headers = parse(&member->properties);
        /* The delivery that holds the message is not const; only this view of it is. */
        ((struct lw_message *)(uintptr_t)message)->entry = headers;
    }
    *ret_count = headers ? headers->count : 0;
    return headers ? headers->rows : NULL;
}

void
lw_pulsar_message_times(const struct lw_message *message, struct lw_message_times *ret_times)
{
    const struct lw_pulsar_received *member = message->owner;
    ret_times->timestamp_ms = member ? (int64_t)member->arrival->publish_time : -1;
    bool has_event_time = member && member->event_time > 0;
    ret_times->event_time_ms = has_event_time ? (int64_t)member->event_time : -1;
}

struct lw_pulsar_message_id
lw_pulsar_message_own_id(const struct lw_message *message)
{
    const struct lw_pulsar_received *member = message->owner;
    const struct lw_pulsar_entry *entry = member->arrival->entry;
    struct lw_pulsar_message_id id = lw_pulsar_message_id_of(entry->ledger, entry->id);
    id.partition = entry->partition;
    id.batch_index = member->index;
    id.batch_size = entry->batch_size;
    id.has = LW_PULSAR_ID_HAS_PARTITION;
    if (entry->batch_size > 0) {
        id.has |= LW_PULSAR_ID_HAS_BATCH_INDEX | LW_PULSAR_ID_HAS_BATCH_SIZE;
    }
    return id;
}

struct lw_bytes
lw_pulsar_message_schema_version(const struct lw_message *message)
{
    const struct lw_pulsar_received *member = message->owner;
    return member ? member->schema_version : (struct lw_bytes){ NULL, 0 };
}

const struct lw_pulsar_consumer *
lw_pulsar_message_consumer(const struct lw_message *message)
{
    const struct lw_pulsar_received *member = message->owner;
    return member ? member->arrival->entry->consumer : NULL;
}

bool
lw_pulsar_message_has_bytes_key(const struct lw_message *message)
{
    const struct lw_pulsar_received *member = message->owner;
    return member && member->has_bytes_key;
}

/* -- Detach ------------------------------------------------------------------------------------------- */

/* Copies to *at and moves it; null stays null, empty stays empty. */
static struct lw_bytes
move_bytes(uint8_t **at, struct lw_bytes from)
{
    if (!from.data) {
        return from;
    }
    uint8_t *to = *at;
    if (from.size > 0) {
        memcpy(to, from.data, from.size);
    }
    *at += from.size;
    return (struct lw_bytes){ to, from.size };
}

bool
lw_pulsar_message_detach(struct lw_message *message)
{
    struct lw_pulsar_received *member = message->owner;
    if (!member || member->copy) {
        return true;
    }
    size_t properties = member->properties.count > 0 ? member->properties.size : 0;
    size_t size = member->key.size + member->ordering_key.size + member->value.size +
                  member->schema_version.size + properties;
    uint8_t *at = lw_alloc(size + 1); /* an empty value needs a place, too */
    if (!at) {
        return false;
    }
    member->copy = at;
    message->key = member->key = move_bytes(&at, member->key);
    message->ordering_key = member->ordering_key = move_bytes(&at, member->ordering_key);
    message->value = member->value = move_bytes(&at, member->value);
    member->schema_version = move_bytes(&at, member->schema_version);
    if (properties > 0) {
        memcpy(at, member->properties.at, properties);
        member->properties.at = at;
    }
    if (message->entry) { /* they look into what goes now */
        lw_free(message->entry);
        message->entry = NULL;
    }
    lw_pulsar_arrival_unpin(member->arrival);
    return true;
}

/* -- Keys --------------------------------------------------------------------------------------------- */

static int
digit_of(uint8_t c)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }
    return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

/* Bytes of text without the padding; SIZE_MAX when it is no base64. */
static size_t
digits_in(const uint8_t *text, size_t size)
{
    while (size > 0 && text[size - 1] == '=') {
        size--;
    }
    for (size_t i = 0; i < size; i++) {
        if (digit_of(text[i]) < 0) {
            return SIZE_MAX;
        }
    }
    return size % 4 == 1 ? SIZE_MAX : size;
}

bool
lw_pulsar_key_decode(struct lw_bytes *key)
{
    uint8_t *text = (uint8_t *)(uintptr_t)key->data; /* our block; nobody reads it again */
    size_t digits = digits_in(text, key->size);
    size_t size = 0;
    uint32_t bits = 0;
    if (digits == SIZE_MAX) {
        return false;
    }
    for (size_t i = 0; i < digits; i++) {
        bits = bits << 6 | (uint32_t)digit_of(text[i]);
        if (i % 4 > 0) {
            text[size++] = (uint8_t)(bits >> (6 - 2 * (i % 4)));
        }
    }
    key->size = size;
    return true;
}
