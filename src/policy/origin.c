/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a message's own headers say of its first appearance, and its stable identity. Reading
 * trusts nothing: a number that is malformed or huge counts as absent and is told, so that a
 * forged header neither wraps a count nor postpones a message for ever. Of duplicates the last
 * one counts, as everywhere. Building the headers of copies is in origin_build.c. Pure.
 */
#include "policy/origin.h"

#include <stdio.h>
#include <string.h>

#include "policy/header_names.h"
#include "policy/origin_id.h"

#define PARTITION "-partition-"

enum { TOPIC_BYTES_MAX = 1024 };

/* 1 January 10000: a time beyond is an error, not a plan. */
#define WALL_MS_MAX INT64_C(253402300800000)

/* The value of the last header of that name; null when there is none or it is empty. */
static struct lw_bytes
find(const struct lw_header *headers, size_t count, const char *name)
{
    for (size_t i = count; i-- > 0;) {
        if (lw_text_is_equal(headers[i].name, name)) {
            struct lw_bytes value = headers[i].value;
            return value.size > 0 ? value : (struct lw_bytes){ NULL, 0 };
        }
    }
    return (struct lw_bytes){ NULL, 0 };
}

static int64_t
number(struct lw_bytes value, int64_t max, int64_t absent, bool *is_malformed)
{
    int64_t result = 0;
    if (value.data == NULL) {
        return absent;
    }
    if (!lw_bytes_to_int(value, &result) || result < 0 || result > max) {
        *is_malformed = true;
        return absent;
    }
    return result;
}

static void
read_kafka(const struct lw_header *headers, size_t count, struct lw_origin *origin)
{
    bool *is_malformed = &origin->is_malformed;
    origin->message_id = find(headers, count, LW_HEADER_ID);
    origin->topic = find(headers, count, LW_HEADER_SOURCE_TOPIC);
    origin->dead_letter_topic = find(headers, count, LW_HEADER_DEAD_LETTER_TOPIC);
    origin->retries = (uint32_t)number(find(headers, count, LW_HEADER_RETRIES), LW_RETRIES_MAX,
                                       0, is_malformed);
    origin->not_before_ms = number(find(headers, count, LW_HEADER_NOT_BEFORE), WALL_MS_MAX, -1,
                                   is_malformed);
    origin->timestamp_ms = number(find(headers, count, LW_HEADER_TIMESTAMP), WALL_MS_MAX, -1,
                                  is_malformed);
    /* The names of the source's place are common words: only our own copies mean them so. */
    if (origin->message_id.data == NULL) {
        origin->topic = (struct lw_bytes){ NULL, 0 };
    }
}

static void
read_pulsar(const struct lw_header *headers, size_t count, struct lw_origin *origin)
{
    origin->message_id = find(headers, count, LW_HEADER_ID);
    origin->client_id = find(headers, count, LW_PROPERTY_ORIGIN_ID);
    if (origin->client_id.data == NULL) {
        origin->client_id = find(headers, count, LW_PROPERTY_ORIGIN_ID_JAVA);
    }
    origin->topic = find(headers, count, LW_PROPERTY_REAL_TOPIC);
    origin->dead_letter_topic = find(headers, count, LW_PROPERTY_DEAD_LETTER_TOPIC);
    origin->retries = (uint32_t)number(find(headers, count, LW_PROPERTY_RECONSUME_TIMES),
                                       LW_RETRIES_MAX, 0, &origin->is_malformed);
}

void
lw_origin_read(enum lw_header_family family, const struct lw_header *headers, size_t count,
               struct lw_origin *ret_origin)
{
    *ret_origin = (struct lw_origin){ .not_before_ms = -1, .timestamp_ms = -1 };
    switch (family) {
    case LW_HEADERS_KAFKA:
        read_kafka(headers, count, ret_origin);
        break;
    case LW_HEADERS_PULSAR:
        read_pulsar(headers, count, ret_origin);
        break;
    }
}

struct writer {
    char *out;
    size_t size;
    size_t length; /* needed, which may be more than fits */
};

static void
write_char(struct writer *writer, char c)
{
    if (writer->length + 1 < writer->size) {
        writer->out[writer->length] = c;
    }
    writer->length++;
}

static void
write_text(struct writer *writer, const char *text)
{
    while (*text != '\0') {
        write_char(writer, *text++);
    }
}

static bool
is_unreserved(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '-' || c == '.' || c == '_' || c == '~';
}

static void
write_encoded(struct writer *writer, struct lw_bytes text)
{
    static const char digits[] = "0123456789ABCDEF";
    const char *bytes = text.data;
    for (size_t i = 0; i < text.size; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (is_unreserved(c)) {
            write_char(writer, bytes[i]);
        } else {
            write_char(writer, '%');
            write_char(writer, digits[c >> 4]);
            write_char(writer, digits[c & 15]);
        }
    }
}

static size_t
end_text(const struct writer *writer)
{
    if (writer->size > 0) {
        size_t last = writer->size - 1;
        writer->out[writer->length < last ? writer->length : last] = '\0';
    }
    return writer->length;
}

/*
 * Official clients name the partition in the topic or leave it out, so an identity never has it
 * there: it would change with the client that wrote the copy.
 */
static struct lw_bytes
base_topic(struct lw_bytes topic, int32_t partition)
{
    char suffix[sizeof(PARTITION) + 12];
    size_t size = (size_t)snprintf(suffix, sizeof(suffix), PARTITION "%ld", (long)partition);
    const char *bytes = topic.data;
    if (topic.size > size && memcmp(bytes + topic.size - size, suffix, size) == 0) {
        topic.size -= size;
    }
    return topic;
}

struct place {
    struct lw_bytes topic;
    int32_t partition;
    const char *position;
};

static size_t
write_identity(const char *broker, const struct place *place, char *out, size_t size)
{
    char number[LW_PLACE_BYTES];
    struct writer writer = { .out = out, .size = size };
    write_text(&writer, broker);
    write_char(&writer, '/');
    write_encoded(&writer, place->topic);
    (void)snprintf(number, sizeof(number), "/%ld/", (long)place->partition);
    write_text(&writer, number);
    write_text(&writer, place->position);
    return end_text(&writer);
}

size_t
lw_origin_message_id(const struct lw_origin_facts *facts, char *out, size_t size)
{
    char number[LW_PLACE_BYTES];
    struct place place = { lw_bytes_of(facts->topic), facts->partition, facts->place };
    if (facts->family == LW_HEADERS_PULSAR) {
        place.topic = base_topic(place.topic, place.partition);
    }
    if (place.position == NULL) {
        (void)snprintf(number, sizeof(number), "%lld", (long long)facts->position);
        place.position = number;
    }
    return write_identity(facts->broker, &place, out, size);
}

static size_t
write_bytes(struct lw_bytes bytes, char *out, size_t size)
{
    struct writer writer = { .out = out, .size = size };
    for (size_t i = 0; i < bytes.size; i++) {
        write_char(&writer, ((const char *)bytes.data)[i]);
    }
    return end_text(&writer);
}

/* An identity is a text: a forged one with a NUL in it would end there. */
static bool
is_printable(struct lw_bytes bytes)
{
    for (size_t i = 0; i < bytes.size; i++) {
        if (((const uint8_t *)bytes.data)[i] < 0x20) {
            return false;
        }
    }
    return true;
}

size_t
lw_origin_identity(const struct lw_origin *origin, const struct lw_origin_facts *facts,
                   char *out, size_t size)
{
    struct lw_origin_id id;
    char position[LW_ORIGIN_ID_BYTES];
    if (origin->message_id.data != NULL) {
        return write_bytes(origin->message_id, out, size);
    }
    if (origin->client_id.data == NULL || !is_printable(origin->client_id)) {
        return lw_origin_message_id(facts, out, size);
    }
    if (origin->topic.data == NULL || !lw_origin_id_parse(origin->client_id, &id)) {
        return write_bytes(origin->client_id, out, size); /* somebody's own, but it stays */
    }
    struct place place = { .partition = id.partition < 0 ? 0 : id.partition };
    place.topic = base_topic(origin->topic, id.partition);
    lw_origin_id_write_place(&id, position);
    place.position = position;
    return write_identity(facts->broker, &place, out, size);
}

bool
lw_origin_is_allowed(struct lw_bytes topic, const char *const *patterns, size_t count)
{
    char text[TOPIC_BYTES_MAX];
    if (topic.size == 0 || topic.size >= sizeof(text) ||
        memchr(topic.data, '\0', topic.size) != NULL) {
        return false;
    }
    memcpy(text, topic.data, topic.size);
    text[topic.size] = '\0';
    for (size_t i = 0; i < count; i++) {
        if (lw_text_is_match(patterns[i], text)) {
            return true;
        }
    }
    return false;
}
