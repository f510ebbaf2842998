/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the header lists of retry copies, dead letters and replies. One builder serves every
 * way a copy can come about: the message's headers in order, bit for bit, without those that are
 * ours, then ours once each. So a list stops growing after the first copy, however often the
 * message comes round.
 *
 * What tells of the first appearance is written once and then kept: the identity, the place (its
 * four headers stand or fall together), the time, and the dead-letter topic of the original
 * subscription. A message is a copy of ours when it carries an identity. Pure.
 */
#include "policy/origin.h"

#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "policy/header_names.h"
#include "policy/origin_id.h"

enum { OWN_MAX = 12, REASON_BYTES_MAX = 512 };

/* One header of ours: text in the list's memory, a view that is kept, or nothing at all. */
struct own {
    const char *name;
    bool is_dropped;
    struct lw_bytes kept; /* null: the text at offset */
    size_t offset;
    size_t size;
};

struct build {
    const struct lw_origin_facts *facts;
    const struct lw_header *from;
    size_t count;
    struct lw_headers *out;
    struct own own[OWN_MAX];
    size_t own_count;
    struct lw_origin origin;
    bool is_copy; /* it carries an identity */
};

void
lw_headers_init(struct lw_headers *headers)
{
    *headers = (struct lw_headers){ 0 };
    lw_text_init(&headers->memory);
}

void
lw_headers_deinit(struct lw_headers *headers)
{
    lw_free(headers->items);
    lw_text_deinit(&headers->memory);
    *headers = (struct lw_headers){ 0 };
}

/* Empties the list and makes room; what it had before is no longer used. */
static bool
start_list(struct lw_headers *headers, size_t capacity)
{
    headers->count = 0;
    headers->is_failed = false;
    lw_text_clear(&headers->memory);
    if (capacity > headers->capacity) {
        struct lw_header *items = lw_resize_array(headers->items, capacity, sizeof(*items));
        if (items == NULL) {
            headers->is_failed = true;
            return false;
        }
        headers->items = items;
        headers->capacity = capacity;
    }
    return true;
}

static struct lw_bytes
find(const struct build *build, const char *name)
{
    for (size_t i = build->count; i-- > 0;) {
        if (lw_text_is_equal(build->from[i].name, name)) {
            return build->from[i].value;
        }
    }
    return (struct lw_bytes){ NULL, 0 };
}

static bool
has(const struct build *build, const char *name)
{
    return find(build, name).size > 0;
}

/* -- One header of ours ---------------------------------------------------------------------- */

static struct own *
add(struct build *build, const char *name)
{
    struct own *own = &build->own[build->own_count++];
    *own = (struct own){ .name = name, .offset = build->out->memory.size };
    return own;
}

static void
add_dropped(struct build *build, const char *name)
{
    add(build, name)->is_dropped = true;
}

static void
add_text(struct build *build, const char *name, const char *text)
{
    struct own *own = add(build, name);
    lw_text_append(&build->out->memory, text);
    own->size = build->out->memory.size - own->offset;
}

static void
add_number(struct build *build, const char *name, int64_t number)
{
    struct own *own = add(build, name);
    lw_text_format(&build->out->memory, "%lld", (long long)number);
    own->size = build->out->memory.size - own->offset;
}

static void
add_retries(struct build *build, const char *name)
{
    uint32_t retries = build->facts->retries;
    add_number(build, name, retries < LW_RETRIES_MAX ? retries : LW_RETRIES_MAX);
}

static void
add_kept(struct build *build, const char *name)
{
    add(build, name)->kept = find(build, name);
}

/* What is there stays, if `may_keep`; else `text`, or nothing without one. */
static void
add_first(struct build *build, const char *name, const char *text, bool may_keep)
{
    if (may_keep && has(build, name)) {
        add_kept(build, name);
    } else if (text != NULL) {
        add_text(build, name, text);
    } else {
        add_dropped(build, name);
    }
}

/* Dropped when it is -1. */
static void
add_time(struct build *build, const char *name, int64_t ms)
{
    if (ms >= 0) {
        add_number(build, name, ms);
    } else {
        add_dropped(build, name);
    }
}

static bool
is_control(const char *text, size_t size)
{
    const unsigned char *bytes = (const unsigned char *)text;
    return (size == 1 && (bytes[0] < 0x20 || bytes[0] == 0x7f)) ||
           (size == 2 && bytes[0] == 0xc2 && bytes[1] < 0xa0);
}

/* Bounded, valid UTF-8, without control characters: a reason is for people and log lines. */
static void
add_reason(struct build *build)
{
    const char *reason = build->facts->reason != NULL ? build->facts->reason : "";
    struct own *own = add(build, LW_HEADER_REASON);
    size_t left = strlen(reason);
    while (left > 0) {
        size_t size = lw_text_utf8_size(reason, left);
        const char *part = size == 0 ? "\xef\xbf\xbd" : is_control(reason, size) ? " " : reason;
        size_t part_size = part == reason ? size : strlen(part);
        if (own->size + part_size > REASON_BYTES_MAX) {
            break;
        }
        lw_text_append_bytes(&build->out->memory, part, part_size);
        own->size += part_size;
        size = size > 0 ? size : 1;
        reason += size;
        left -= size;
    }
}

static void
add_identity(struct build *build, const char *name)
{
    const struct lw_origin_facts *facts = build->facts;
    size_t length = lw_origin_identity(&build->origin, facts, NULL, 0);
    char *text = lw_alloc(length + 1);
    if (text == NULL) {
        build->out->is_failed = true;
        return;
    }
    lw_origin_identity(&build->origin, facts, text, length + 1);
    add_text(build, name, text);
    lw_free(text);
}

/* -- The families ------------------------------------------------------------------------------ */

static void
add_kafka_place(struct build *build)
{
    const struct lw_origin_facts *facts = build->facts;
    if (build->is_copy && has(build, LW_HEADER_SOURCE_TOPIC) &&
        has(build, LW_HEADER_PARTITION) && has(build, LW_HEADER_OFFSET) &&
        has(build, LW_HEADER_EPOCH)) {
        add_kept(build, LW_HEADER_SOURCE_TOPIC);
        add_kept(build, LW_HEADER_PARTITION);
        add_kept(build, LW_HEADER_OFFSET);
        add_kept(build, LW_HEADER_EPOCH);
        return;
    }
    add_text(build, LW_HEADER_SOURCE_TOPIC, facts->topic);
    add_number(build, LW_HEADER_PARTITION, facts->partition);
    add_number(build, LW_HEADER_OFFSET, facts->position);
    add_number(build, LW_HEADER_EPOCH, (int64_t)facts->generation);
}

static void
add_kafka_origin(struct build *build)
{
    const struct lw_origin_facts *facts = build->facts;
    if (build->is_copy) {
        add_kept(build, LW_HEADER_ID);
    } else {
        add_identity(build, LW_HEADER_ID);
    }
    if (build->is_copy && has(build, LW_HEADER_TIMESTAMP)) {
        add_kept(build, LW_HEADER_TIMESTAMP);
    } else {
        add_time(build, LW_HEADER_TIMESTAMP, facts->timestamp_ms);
    }
    add_first(build, LW_HEADER_DEAD_LETTER_TOPIC, facts->dead_letter_topic, build->is_copy);
}

static void
add_kafka(struct build *build)
{
    const struct lw_origin_facts *facts = build->facts;
    add_reason(build);
    add_number(build, LW_HEADER_ATTEMPT, facts->attempt);
    add_kafka_place(build);
    add_kafka_origin(build);
    add_retries(build, LW_HEADER_RETRIES);
    add_time(build, LW_HEADER_NOT_BEFORE, facts->not_before_ms);
}

/* Each name in the form of the client that it comes from; what is there stays as it is. */
static void
add_client_id(struct build *build, const char *name, const char *twin, bool is_java)
{
    struct lw_origin_id id;
    char text[LW_ORIGIN_ID_BYTES];
    const char *own = build->facts->id_text;
    if (has(build, name)) {
        add_kept(build, name);
    } else if (has(build, twin)) {
        add(build, name)->kept = find(build, twin);
    } else if (own == NULL) {
        add_identity(build, name);
    } else if (is_java && lw_origin_id_parse(lw_bytes_of(own), &id)) {
        lw_origin_id_write_java(&id, text);
        add_text(build, name, text);
    } else {
        add_text(build, name, own);
    }
}

static void
add_pulsar_origin(struct build *build)
{
    if (build->is_copy) {
        add_kept(build, LW_HEADER_ID);
    } else {
        add_identity(build, LW_HEADER_ID);
    }
    add_first(build, LW_PROPERTY_REAL_TOPIC, build->facts->topic, true);
    add_first(build, LW_PROPERTY_REAL_SUBSCRIPTION, build->facts->subscription, true);
    add_client_id(build, LW_PROPERTY_ORIGIN_ID, LW_PROPERTY_ORIGIN_ID_JAVA, false);
    add_client_id(build, LW_PROPERTY_ORIGIN_ID_JAVA, LW_PROPERTY_ORIGIN_ID, true);
}

static void
add_pulsar_retry(struct build *build)
{
    const struct lw_origin_facts *facts = build->facts;
    add_pulsar_origin(build);
    add_retries(build, LW_PROPERTY_RECONSUME_TIMES);
    add_time(build, LW_PROPERTY_DELAY_TIME, facts->delay_ms);
    add_first(build, LW_PROPERTY_DEAD_LETTER_TOPIC, facts->dead_letter_topic, true);
}

static void
add_pulsar_dead_letter(struct build *build)
{
    add_pulsar_origin(build);
    add_retries(build, LW_PROPERTY_RECONSUME_TIMES);
    add_dropped(build, LW_PROPERTY_DELAY_TIME);
    add_first(build, LW_PROPERTY_DEAD_LETTER_TOPIC, NULL, true);
    add_reason(build);
    add_number(build, LW_HEADER_ATTEMPT, build->facts->attempt);
}

/* -- The list ------------------------------------------------------------------------------------ */

static bool
is_own(const struct build *build, struct lw_bytes name)
{
    for (size_t i = 0; i < build->own_count; i++) {
        if (lw_text_is_equal(name, build->own[i].name)) {
            return true;
        }
    }
    return false;
}

/* Everything was appended by now, so the memory no longer moves. */
static bool
finish_list(struct build *build)
{
    struct lw_headers *out = build->out;
    if (out->is_failed || out->memory.is_failed) {
        out->is_failed = true;
        return false;
    }
    for (size_t i = 0; i < build->count; i++) {
        if (!is_own(build, build->from[i].name)) {
            out->items[out->count++] = build->from[i];
        }
    }
    for (size_t i = 0; i < build->own_count; i++) {
        const struct own *own = &build->own[i];
        if (own->is_dropped) {
            continue;
        }
        struct lw_bytes value = own->kept;
        if (value.data == NULL) {
            value = (struct lw_bytes){ out->memory.data + own->offset, own->size };
        }
        out->items[out->count++] = (struct lw_header){ .name = lw_bytes_of(own->name),
                                                       .value = value };
    }
    return true;
}

static bool
build_copy(struct build *build, void (*add_pulsar)(struct build *build))
{
    if (!start_list(build->out, build->count + OWN_MAX)) {
        return false;
    }
    lw_origin_read(build->facts->family, build->from, build->count, &build->origin);
    build->is_copy = has(build, LW_HEADER_ID);
    switch (build->facts->family) {
    case LW_HEADERS_KAFKA:
        add_kafka(build);
        break;
    case LW_HEADERS_PULSAR:
        add_pulsar(build);
        break;
    }
    return finish_list(build);
}

bool
lw_origin_build_retry(const struct lw_origin_facts *facts, const struct lw_header *from,
                      size_t count, struct lw_headers *ret_headers)
{
    struct build build = { .facts = facts, .from = from, .count = count, .out = ret_headers };
    return build_copy(&build, add_pulsar_retry);
}

bool
lw_origin_build_dead_letter(const struct lw_origin_facts *facts, const struct lw_header *from,
                            size_t count, struct lw_headers *ret_headers)
{
    struct build build = { .facts = facts, .from = from, .count = count, .out = ret_headers };
    return build_copy(&build, add_pulsar_dead_letter);
}

/* -- Replies ----------------------------------------------------------------------------------- */

/* Names of what is passed on are compared as HTTP does: people write Content-Type, too. */
static bool
is_named(const struct lw_header *header, const char *name)
{
    return header->name.size == strlen(name) &&
           strncasecmp(header->name.data, name, header->name.size) == 0;
}

static const struct lw_header *
last_named(const struct lw_header *headers, size_t count, const char *name)
{
    for (size_t i = count; i-- > 0;) {
        if (is_named(&headers[i], name)) {
            return &headers[i];
        }
    }
    return NULL;
}

static void
pass_on(struct lw_headers *out, const struct lw_header *from, size_t count, const char *name)
{
    const struct lw_header *header = last_named(from, count, name);
    if (header != NULL) {
        out->items[out->count++] = *header;
    }
}

bool
lw_origin_build_reply(const struct lw_header *own, size_t own_count,
                      const struct lw_header *from, size_t count,
                      struct lw_headers *ret_headers)
{
    enum { PASSED_ON_MAX = 3 };
    if (!start_list(ret_headers, own_count + PASSED_ON_MAX)) {
        return false;
    }
    for (size_t i = 0; i < own_count; i++) {
        ret_headers->items[ret_headers->count++] = own[i];
    }
    /* The two halves of a trace context belong together: both from the message, or neither. */
    if (last_named(own, own_count, LW_HEADER_TRACE_PARENT) == NULL &&
        last_named(own, own_count, LW_HEADER_TRACE_STATE) == NULL) {
        pass_on(ret_headers, from, count, LW_HEADER_TRACE_PARENT);
        pass_on(ret_headers, from, count, LW_HEADER_TRACE_STATE);
    }
    if (last_named(own, own_count, LW_HEADER_CONTENT_TYPE) == NULL) {
        pass_on(ret_headers, from, count, LW_HEADER_CONTENT_TYPE);
    }
    return true;
}
