/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing headers: CloudEvents in binary mode (its HTTP binding 1.0), Laneway's own, the trace,
 * and the message's headers under x-msg-. A message that is a CloudEvent already (Kafka's binary
 * mode, headers ce_...) keeps its own attributes. Two alphabets: attributes of CloudEvents encode
 * blanks, quotes and all that is no visible ASCII; other values keep blanks inside.
 */
#include "engines/http/request.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/json.h"
#include "engines/http/url.h"

enum { TEXT_BYTES_KEPT = 32 * 1024, LINES_MIN = 32, MESSAGE_ID_BYTES_MAX = 1024 };

/* -- Lines ------------------------------------------------------------------------------------- */

enum alphabet { ALPHABET_EVENT, ALPHABET_VALUE, ALPHABET_NAME };

static bool
is_plain(unsigned char c, enum alphabet alphabet)
{
    if (c == '%') {
        return false;
    }
    switch (alphabet) {
    case ALPHABET_EVENT:
        return c > ' ' && c < 0x7f && c != '"';
    case ALPHABET_VALUE:
        return c >= ' ' && c < 0x7f;
    case ALPHABET_NAME:
        return lw_http_is_token(c);
    }
    return false;
}

static void
append_encoded(struct lw_text *text, struct lw_bytes bytes, enum alphabet alphabet)
{
    static const char digits[] = "0123456789ABCDEF";
    const unsigned char *at = bytes.data;
    size_t done = 0;
    if (bytes.size == 0) {
        return;
    }
    for (size_t i = 0; i < bytes.size; i++) {
        /* Blanks at the ends of a value are not part of it for those who read it. */
        bool is_end = at[i] == ' ' && (i == 0 || i + 1 == bytes.size);
        if (is_plain(at[i], alphabet) && !is_end) {
            continue;
        }
        char code[3] = { '%', digits[at[i] >> 4], digits[at[i] & 15] };
        lw_text_append_bytes(text, at + done, i - done);
        lw_text_append_bytes(text, code, sizeof code);
        done = i + 1;
    }
    lw_text_append_bytes(text, at + done, bytes.size - done);
}

static void
end_line(struct lw_http_request *request)
{
    lw_text_append_char(&request->text, '\0');
    request->count++;
}

/* libcurl sends "name;" as a header with an empty value; "name:" would take one away. */
static void
begin_value(struct lw_http_request *request, bool is_empty)
{
    lw_text_append(&request->text, is_empty ? ";" : ": ");
}

static void
put(struct lw_http_request *request, const char *name, struct lw_bytes value,
    enum alphabet alphabet)
{
    if (value.data) {
        lw_text_append(&request->text, name);
        begin_value(request, value.size == 0);
        append_encoded(&request->text, value, alphabet);
        end_line(request);
    }
}

static void
put_text(struct lw_http_request *request, const char *name, const char *value)
{
    if (value) {
        put(request, name, lw_bytes_of(value), ALPHABET_VALUE);
    }
}

static void
put_int(struct lw_http_request *request, const char *name, int64_t value)
{
    char line[64];
    int size = snprintf(line, sizeof line, "%s: %" PRId64, name, value);
    lw_text_append_bytes(&request->text, line, (size_t)size);
    end_line(request);
}

static void
put_time(struct lw_http_request *request, const char *name, int64_t wall_ms)
{
    char text[32];
    if (wall_ms >= 0) {
        lw_json_time(wall_ms, text);
        put_text(request, name, text);
    }
}

/* -- Headers of the message ---------------------------------------------------------------------- */

/* Which headers stand for themselves. */
struct own {
    struct lw_bytes content_type;
    struct lw_bytes trace_parent;
    struct lw_bytes trace_state;
    bool is_event; /* it has ce_specversion: its ce_ headers are attributes */
};

static bool
is_named(const struct lw_header *header, const char *name)
{
    return header->name.size == strlen(name) &&
           strncasecmp(header->name.data, name, header->name.size) == 0;
}

static bool
is_attribute(const struct lw_header *header)
{
    return header->name.size > 3 && strncasecmp(header->name.data, "ce_", 3) == 0;
}

/* Taken as it is, or not at all: an encoded trace or type would be another one. */
static bool
is_whole(struct lw_bytes value)
{
    for (size_t i = 0; i < value.size; i++) {
        unsigned char c = ((const unsigned char *)value.data)[i];
        if (c < ' ' || c >= 0x7f) {
            return false;
        }
    }
    return value.size > 0;
}

static void
find_own(const struct lw_header *headers, size_t count, struct own *ret_own)
{
    *ret_own = (struct own){ .content_type = { NULL, 0 } };
    for (size_t i = 0; i < count; i++) {
        const struct lw_header *header = &headers[i];
        if (is_named(header, "ce_specversion")) {
            ret_own->is_event = true;
        } else if (!is_whole(header->value)) {
            continue;
        } else if (is_named(header, "content-type")) {
            ret_own->content_type = header->value;
        } else if (is_named(header, "traceparent")) {
            ret_own->trace_parent = header->value;
        } else if (is_named(header, "tracestate")) {
            ret_own->trace_state = header->value;
        }
    }
}

static void
put_raw(struct lw_http_request *request, const char *name, struct lw_bytes value)
{
    if (value.data) {
        lw_text_append(&request->text, name);
        lw_text_append(&request->text, ": ");
        lw_text_append_bytes(&request->text, value.data, value.size);
        end_line(request);
    }
}

static void
put_message_header(struct lw_http_request *request, const struct lw_header *header,
                   const struct own *own)
{
    struct lw_bytes name = header->name;
    struct lw_text *text = &request->text;
    enum alphabet alphabet = ALPHABET_VALUE;
    if (own->is_event && is_attribute(header)) {
        lw_text_append(text, "ce-");
        name.data = (const char *)name.data + 3;
        name.size -= 3;
        alphabet = ALPHABET_EVENT;
    } else {
        lw_text_append(text, "x-msg-");
    }
    append_encoded(text, name, ALPHABET_NAME);
    begin_value(request, header->value.size == 0);
    append_encoded(text, header->value, alphabet);
    end_line(request);
}

static void
put_message_headers(struct lw_http_request *request, const struct lw_header *headers,
                    size_t count, const struct own *own)
{
    for (size_t i = 0; i < count; i++) {
        const void *value = headers[i].value.data;
        bool is_own = value &&
                      (value == own->content_type.data || value == own->trace_parent.data ||
                       value == own->trace_state.data);
        if (!is_own) {
            put_message_header(request, &headers[i], own);
        }
    }
}

/* -- Laneway's own ------------------------------------------------------------------------------- */

static void
put_event(struct lw_http_request *request, const struct lw_delivery *delivery,
          struct lw_bytes message_id)
{
    struct lw_text *text = &request->text;
    put(request, "ce-id", message_id, ALPHABET_EVENT);
    lw_text_append(text, "ce-source: /");
    append_encoded(text, lw_bytes_of(lw_delivery_topic(delivery)), ALPHABET_EVENT);
    end_line(request);
    lw_text_append(text, "ce-specversion: 1.0");
    end_line(request);
    lw_text_append(text, "ce-type: laneway.message");
    end_line(request);
    put_time(request, "ce-time", lw_delivery_timestamp_ms(delivery));
    put(request, "ce-partitionkey", lw_delivery_ordering_key(delivery), ALPHABET_EVENT);
}

static void
put_origin(struct lw_http_request *request, const struct lw_delivery *delivery,
           struct lw_bytes message_id)
{
    put(request, "x-laneway-message-id", message_id, ALPHABET_VALUE);
    put_text(request, "x-laneway-topic", lw_delivery_topic(delivery));
    put_int(request, "x-laneway-partition", lw_delivery_partition(delivery));
    put_int(request, "x-laneway-offset", lw_delivery_offset(delivery));
    put_text(request, "x-laneway-subscription", lw_delivery_subscription(delivery));
    put_text(request, "x-laneway-pipeline", lw_delivery_pipeline(delivery));
    put(request, "x-laneway-key", delivery->message.key, ALPHABET_VALUE);
    put(request, "x-laneway-ordering-key", delivery->message.ordering_key, ALPHABET_VALUE);
    put_time(request, "x-laneway-timestamp", lw_delivery_timestamp_ms(delivery));
    put_time(request, "x-laneway-event-time", lw_delivery_event_time_ms(delivery));
}

static void
put_counts(struct lw_http_request *request, const struct lw_delivery *delivery,
           int64_t deadline_ms)
{
    put_int(request, "x-laneway-attempt", lw_delivery_attempt(delivery));
    put_int(request, "x-laneway-retries", lw_delivery_retries(delivery));
    put_int(request, "x-laneway-redeliveries", lw_delivery_redeliveries(delivery));
    if (deadline_ms >= 0) {
        put_int(request, "x-laneway-deadline", deadline_ms);
    }
    if (!delivery->message.value.data) {
        put_text(request, "x-laneway-tombstone", "true");
    }
}

static void
put_authorization(struct lw_http_request *request, const struct lw_http_fixed *fixed)
{
    if (fixed->authorization.data) {
        lw_text_append_bytes(&request->text, fixed->authorization.data,
                             fixed->authorization.size);
        end_line(request);
    }
}

static void
put_batch(struct lw_http_request *request, const struct lw_delivery *first,
          const struct lw_http_fixed *fixed, int64_t deadline_ms)
{
    put_text(request, "content-type", "application/vnd.laneway.batch+json");
    put_authorization(request, fixed);
    put_text(request, "x-laneway-topic", lw_delivery_topic(first));
    put_text(request, "x-laneway-subscription", lw_delivery_subscription(first));
    put_text(request, "x-laneway-pipeline", lw_delivery_pipeline(first));
    put_int(request, "x-laneway-messages", first->task_count);
    if (deadline_ms >= 0) {
        put_int(request, "x-laneway-deadline", deadline_ms);
    }
}

static void
put_all(struct lw_http_request *request, const struct lw_delivery *delivery,
        const struct lw_http_fixed *fixed, int64_t deadline_ms)
{
    char id[MESSAGE_ID_BYTES_MAX];
    size_t count = 0;
    struct own own;
    const struct lw_header *headers = lw_delivery_headers(delivery, &count);
    size_t size = lw_delivery_message_id(delivery, id, sizeof id);
    struct lw_bytes message_id = { id, size < sizeof id ? size : sizeof id - 1 };
    find_own(headers, count, &own);
    put_raw(request, "content-type",
            own.content_type.data ? own.content_type : fixed->content_type);
    put_authorization(request, fixed);
    if (!own.is_event) {
        put_event(request, delivery, message_id);
    }
    put_origin(request, delivery, message_id);
    put_counts(request, delivery, deadline_ms);
    put_raw(request, "traceparent", own.trace_parent);
    put_raw(request, "tracestate", own.trace_state);
    put_message_headers(request, headers, count, &own);
}

/* -- The list ------------------------------------------------------------------------------------ */

static bool
reserve_lines(struct lw_http_request *request)
{
    size_t capacity = request->capacity ? request->capacity : LINES_MIN;
    while (capacity < request->count) {
        capacity *= 2;
    }
    if (capacity == request->capacity) {
        return true;
    }
    void *grown = lw_resize_array(request->lines, capacity, sizeof *request->lines);
    if (!grown) {
        return false;
    }
    request->lines = grown;
    request->capacity = capacity;
    return true;
}

static struct lw_curl_line *
link_lines(struct lw_http_request *request, struct lw_curl_line *behind)
{
    char *at = request->text.data;
    for (size_t i = 0; i < request->count; i++) {
        request->lines[i].data = at;
        request->lines[i].next = i + 1 < request->count ? &request->lines[i + 1] : behind;
        at += strlen(at) + 1;
    }
    return request->count > 0 ? &request->lines[0] : behind;
}

struct lw_curl_line *
lw_http_request_write(struct lw_http_request *request, const struct lw_delivery *delivery,
                      const struct lw_http_fixed *fixed, int64_t deadline_ms)
{
    if (request->text.capacity > TEXT_BYTES_KEPT || request->text.is_failed) {
        lw_text_deinit(&request->text);
        lw_text_init(&request->text);
    }
    lw_text_clear(&request->text);
    request->count = 0;
    if (delivery->is_batch) {
        put_batch(request, delivery, fixed, deadline_ms);
    } else {
        put_all(request, delivery, fixed, deadline_ms);
    }
    request->head_bytes = request->text.size + request->count; /* a line ends with two bytes */
    if (request->text.is_failed || !reserve_lines(request)) {
        return NULL;
    }
    return link_lines(request, fixed->lines);
}

void
lw_http_request_init(struct lw_http_request *request)
{
    *request = (struct lw_http_request){ .lines = NULL };
    lw_text_init(&request->text);
}

void
lw_http_request_deinit(struct lw_http_request *request)
{
    lw_text_deinit(&request->text);
    lw_free(request->lines);
    request->lines = NULL;
}
