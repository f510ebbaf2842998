/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message in the dispatcher's hands. `owner` is the client's message, which pins the whole fetch
 * buffer it came in; `entry` is NULL or what was made for it here: the array of its headers
 * (lw_kafka_extra with views into the client's memory), or after `detach` a copy of all of it (then
 * `owner` is NULL). Headers may be asked for by the thread that holds the delivery; everything
 * else is for the loop thread.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "brokers/kafka/kafka.h"

struct lw_kafka_extra {
    int64_t timestamp_ms; /* of a copy */
    int32_t partition;    /* of a copy */
    size_t header_count;
    struct lw_header headers[];
};

static void
destroy_owner(struct lw_kafka_broker *broker, struct lw_message *message)
{
    if (message->owner) {
        lw_kafka_spent_add(&broker->spent, message->owner);
        message->owner = NULL;
        broker->live--;
    }
}

void
lw_kafka_message_release(struct lw_kafka_broker *broker, struct lw_message *const messages[],
                         size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct lw_message *message = messages[i];
        destroy_owner(broker, message);
        if (__builtin_expect(message->entry != NULL, 0)) {
            lw_free(message->entry);
            message->entry = NULL;
        }
    }
}

/* The client parses headers on first use and keeps them with the message. */
static size_t
count_headers(const rd_kafka_message_t *owner, rd_kafka_headers_t **ret_headers)
{
    *ret_headers = NULL;
    if (rd_kafka_message_headers(owner, ret_headers) != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return 0;
    }
    return rd_kafka_header_cnt(*ret_headers);
}

static void
read_header(const rd_kafka_headers_t *headers, size_t index, struct lw_header *header)
{
    const char *name = "";
    const void *value = NULL;
    size_t size = 0;
    (void)rd_kafka_header_get_all(headers, index, &name, &value, &size);
    header->name = (struct lw_bytes){ name, strlen(name) };
    header->value = (struct lw_bytes){ value, value ? size : 0 };
}

static struct lw_kafka_extra *
parse_headers(const rd_kafka_message_t *owner)
{
    rd_kafka_headers_t *headers = NULL;
    size_t count = count_headers(owner, &headers);
    if (count == 0) {
        return NULL;
    }
    struct lw_kafka_extra *extra = lw_alloc(sizeof *extra + count * sizeof *extra->headers);
    if (!extra) {
        return NULL;
    }
    extra->header_count = count;
    for (size_t i = 0; i < count; i++) {
        read_header(headers, i, &extra->headers[i]);
    }
    return extra;
}

const struct lw_header *
lw_kafka_message_headers(const struct lw_message *message, size_t *ret_count)
{
    struct lw_kafka_extra *extra = message->entry;
    if (!extra && message->owner) {
        extra = parse_headers(message->owner);
        /* The delivery that holds the message is not const; only this view of it is. */
        ((struct lw_message *)(uintptr_t)message)->entry = extra;
    }
    *ret_count = extra ? extra->header_count : 0;
    return extra ? extra->headers : NULL;
}

static int64_t
timestamp_of(const rd_kafka_message_t *owner)
{
    rd_kafka_timestamp_type_t type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
    int64_t timestamp = rd_kafka_message_timestamp(owner, &type);
    return type == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE ? -1 : timestamp;
}

void
lw_kafka_message_times(const struct lw_message *message, struct lw_message_times *ret_times)
{
    const struct lw_kafka_extra *extra = message->entry;
    ret_times->timestamp_ms = message->owner ? timestamp_of(message->owner)
                              : extra        ? extra->timestamp_ms
                                             : -1;
    ret_times->event_time_ms = -1; /* Kafka has one time only */
}

int32_t
lw_kafka_message_partition(const struct lw_message *message)
{
    const rd_kafka_message_t *owner = message->owner;
    const struct lw_kafka_extra *extra = message->entry;
    return owner ? owner->partition : extra ? extra->partition : -1;
}

static size_t
size_of_headers(const rd_kafka_headers_t *headers, size_t count)
{
    size_t size = 0;
    for (size_t i = 0; i < count; i++) {
        struct lw_header header;
        read_header(headers, i, &header);
        size += header.name.size + header.value.size;
    }
    return size;
}

/* Copies to *at and moves it; null stays null, empty stays empty. */
static struct lw_bytes
copy_bytes(unsigned char **at, struct lw_bytes from)
{
    struct lw_bytes copy = { from.data ? *at : NULL, from.size };
    if (from.size > 0 && from.data) {
        memcpy(*at, from.data, from.size);
        *at += from.size;
    }
    return copy;
}

bool
lw_kafka_message_detach(struct lw_kafka_broker *broker, struct lw_message *message)
{
    rd_kafka_message_t *owner = message->owner;
    if (!owner) {
        return true;
    }
    rd_kafka_headers_t *headers = NULL;
    size_t count = count_headers(owner, &headers);
    size_t bytes = message->key.size + message->value.size + size_of_headers(headers, count);
    /* One more byte, so that an empty value has an address. */
    struct lw_kafka_extra *copy = lw_alloc(sizeof *copy + count * sizeof *copy->headers +
                                           bytes + 1);
    if (!copy) {
        return false;
    }
    unsigned char *at = (unsigned char *)&copy->headers[count];
    copy->timestamp_ms = timestamp_of(owner);
    copy->partition = owner->partition;
    copy->header_count = count;
    message->key = copy_bytes(&at, message->key);
    message->value = copy_bytes(&at, message->value);
    for (size_t i = 0; i < count; i++) {
        struct lw_header header;
        read_header(headers, i, &header);
        copy->headers[i].name = copy_bytes(&at, header.name);
        copy->headers[i].value = copy_bytes(&at, header.value);
    }
    lw_free(message->entry);
    message->entry = copy;
    destroy_owner(broker, message);
    return true;
}
