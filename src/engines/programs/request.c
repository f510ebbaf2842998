/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing requests into a buffer that is reused. Headers are an object from name to value; a name
 * that comes more than once has an array, in order. Grouping sorts pointers by name, so that ten
 * thousand headers cost no ten thousand squared. Values that are no UTF-8 have a second object
 * of the same form, `headers_b64`.
 */
#include "engines/programs/request.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "engines/programs/answer.h"

enum { HEADERS_ON_STACK = 32 };

static void
end_line(struct lw_json *json)
{
    lw_json_object_end(json);
    lw_text_append_char(json->text, '\n');
}

static void
write_batch_options(struct lw_json *json, const struct lw_batch_options *batch)
{
    lw_json_key(json, "batch");
    lw_json_object(json);
    lw_json_key(json, "size");
    lw_json_int(json, batch->size);
    lw_json_key(json, "verdict");
    lw_json_string(json, batch->verdict == LW_BATCH_VERDICT_ONE ? "one" : "each");
    lw_json_object_end(json);
}

void
lw_programs_request_hello(struct lw_text *out, const char *service, const char *handler,
                          uint32_t window, const struct lw_batch_options *batch)
{
    struct lw_json json;
    lw_json_init(&json, out);
    lw_json_object(&json);
    lw_json_key(&json, "hello");
    lw_json_object(&json);
    lw_json_key(&json, "protocol");
    lw_json_int(&json, LW_PROGRAMS_PROTOCOL);
    lw_json_key(&json, "service");
    lw_json_string(&json, service);
    lw_json_key(&json, "handler");
    lw_json_string(&json, handler);
    lw_json_key(&json, "window");
    lw_json_int(&json, window);
    if (batch && batch->size > 0) {
        write_batch_options(&json, batch);
    }
    lw_json_object_end(&json);
    end_line(&json);
}

static bool
is_text(struct lw_bytes bytes)
{
    return !bytes.data || lw_text_is_utf8(bytes.data, bytes.size);
}

static void
write_content(struct lw_json *json, const char *name, const char *name_b64,
              struct lw_bytes bytes)
{
    if (!bytes.data) {
        return;
    }
    if (is_text(bytes)) {
        lw_json_key(json, name);
        lw_json_bytes(json, bytes);
    } else {
        lw_json_key(json, name_b64);
        lw_json_base64(json, bytes);
    }
}

static void
write_length(struct lw_json *json, const char *name, struct lw_bytes bytes)
{
    if (bytes.data) {
        lw_json_key(json, name);
        lw_json_int(json, (int64_t)bytes.size);
    }
}

/* -- Headers ----------------------------------------------------------------------------------- */

struct entry {
    const struct lw_header *header;
};

static int
compare_bytes(struct lw_bytes a, struct lw_bytes b)
{
    size_t least = a.size < b.size ? a.size : b.size;
    int order = least > 0 ? memcmp(a.data, b.data, least) : 0;
    return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

/* By name; equal names in the order of the message. */
static int
compare(const void *a, const void *b)
{
    const struct lw_header *left = ((const struct entry *)a)->header;
    const struct lw_header *right = ((const struct entry *)b)->header;
    int order = compare_bytes(left->name, right->name);
    return order != 0 ? order : (left > right) - (left < right);
}

static size_t
group_size(const struct entry *sorted, size_t count)
{
    size_t size = 1;
    while (size < count &&
           compare_bytes(sorted[0].header->name, sorted[size].header->name) == 0) {
        size++;
    }
    return size;
}

/* Writes those of a group that are text, or those that are not. */
static void
write_group(struct lw_json *json, const struct entry *group, size_t size, bool text)
{
    size_t matching = 0;
    for (size_t i = 0; i < size; i++) {
        matching += is_text(group[i].header->value) == text ? 1 : 0;
    }
    if (matching == 0) {
        return;
    }
    lw_json_key_bytes(json, group[0].header->name);
    if (matching > 1) {
        lw_json_array(json);
    }
    for (size_t i = 0; i < size; i++) {
        if (is_text(group[i].header->value) != text) {
            continue;
        }
        if (text) {
            lw_json_bytes(json, group[i].header->value);
        } else {
            lw_json_base64(json, group[i].header->value);
        }
    }
    if (matching > 1) {
        lw_json_array_end(json);
    }
}

static void
write_sorted(struct lw_json *json, const struct entry *sorted, size_t count, bool text)
{
    lw_json_key(json, text ? "headers" : "headers_b64");
    lw_json_object(json);
    for (size_t at = 0; at < count;) {
        size_t size = group_size(sorted + at, count - at);
        write_group(json, sorted + at, size, text);
        at += size;
    }
    lw_json_object_end(json);
}

static void
write_headers(struct lw_json *json, const struct lw_delivery *delivery)
{
    size_t count = 0;
    bool has_binary = false;
    struct entry on_stack[HEADERS_ON_STACK];
    const struct lw_header *headers = lw_delivery_headers(delivery, &count);
    struct entry *sorted = count > HEADERS_ON_STACK ? lw_alloc_array(count, sizeof *sorted)
                                                    : on_stack;
    if (!sorted) {
        json->text->is_failed = true;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        sorted[i].header = &headers[i];
        has_binary = has_binary || !is_text(headers[i].value);
    }
    if (count > 1) {
        qsort(sorted, count, sizeof *sorted, compare);
    }
    write_sorted(json, sorted, count, true);
    if (has_binary) {
        write_sorted(json, sorted, count, false);
    }
    if (sorted != on_stack) {
        lw_free(sorted);
    }
}

/* -- The message ------------------------------------------------------------------------------- */

static void
write_time(struct lw_json *json, const char *name, int64_t wall_ms)
{
    char text[32];
    if (wall_ms >= 0) {
        lw_json_time(wall_ms, text);
        lw_json_key(json, name);
        lw_json_string(json, text);
    }
}

static void
write_origin(struct lw_json *json, const struct lw_delivery *delivery)
{
    char message_id[1024];
    size_t size = lw_delivery_message_id(delivery, message_id, sizeof message_id);
    size = size < sizeof message_id ? size : sizeof message_id - 1;
    lw_json_key(json, "message_id");
    lw_json_bytes(json, (struct lw_bytes){ message_id, size });
    lw_json_key(json, "topic");
    lw_json_string(json, lw_delivery_topic(delivery));
    lw_json_key(json, "partition");
    lw_json_int(json, lw_delivery_partition(delivery));
    lw_json_key(json, "offset");
    lw_json_int(json, lw_delivery_offset(delivery));
    lw_json_key(json, "subscription");
    lw_json_string(json, lw_delivery_subscription(delivery));
    lw_json_key(json, "pipeline");
    lw_json_string(json, lw_delivery_pipeline(delivery));
}

static void
write_deadline(struct lw_json *json, int64_t deadline_ms)
{
    if (deadline_ms >= 0) {
        lw_json_key(json, "deadline_ms");
        lw_json_int(json, deadline_ms);
    }
}

static void
write_counts(struct lw_json *json, const struct lw_delivery *delivery, int64_t deadline_ms)
{
    lw_json_key(json, "attempt");
    lw_json_int(json, lw_delivery_attempt(delivery));
    lw_json_key(json, "retries");
    lw_json_int(json, lw_delivery_retries(delivery));
    lw_json_key(json, "redeliveries");
    lw_json_int(json, lw_delivery_redeliveries(delivery));
    write_deadline(json, deadline_ms);
}

/* What a handler sees of one message, but its id. */
static void
write_fields(struct lw_json *json, const struct lw_delivery *delivery, int64_t deadline_ms,
             bool is_framed)
{
    const struct lw_message *message = &delivery->message;
    write_origin(json, delivery);
    if (!is_framed) {
        write_content(json, "key", "key_b64", message->key);
    }
    write_content(json, "ordering_key", "ordering_key_b64", message->ordering_key);
    write_headers(json, delivery);
    write_time(json, "timestamp", lw_delivery_timestamp_ms(delivery));
    write_time(json, "event_time", lw_delivery_event_time_ms(delivery));
    write_counts(json, delivery, deadline_ms);
    if (is_framed) {
        write_length(json, "key_len", message->key);
        write_length(json, "value_len", message->value);
    } else {
        write_content(json, "value", "value_b64", message->value);
    }
}

/* The members of a task; its time is for all of them. */
static void
write_members(struct lw_json *json, const struct lw_delivery *first, int64_t deadline_ms,
              bool is_framed)
{
    write_deadline(json, deadline_ms);
    lw_json_key(json, "messages");
    lw_json_array(json);
    for (const struct lw_delivery *at = first; at; at = at->task_next) {
        lw_json_object(json);
        write_fields(json, at, -1, is_framed);
        lw_json_object_end(json);
    }
    lw_json_array_end(json);
}

static bool
write_message(struct lw_text *out, int64_t id, const struct lw_delivery *delivery,
              int64_t deadline_ms, bool is_framed)
{
    size_t size_before = out->size;
    struct lw_json json;
    lw_json_init(&json, out);
    lw_json_object(&json);
    lw_json_key(&json, "id");
    lw_json_int(&json, id);
    if (delivery->is_batch) {
        write_members(&json, delivery, deadline_ms, is_framed);
    } else {
        write_fields(&json, delivery, deadline_ms, is_framed);
    }
    end_line(&json);
    if (out->is_failed) {
        out->size = size_before;
        out->is_failed = false;
        return false;
    }
    return true;
}

bool
lw_programs_request_write(struct lw_text *out, int64_t id, const struct lw_delivery *delivery,
                          int64_t deadline_ms)
{
    return write_message(out, id, delivery, deadline_ms, false);
}

bool
lw_programs_request_header(struct lw_text *out, int64_t id, const struct lw_delivery *delivery,
                           int64_t deadline_ms)
{
    return write_message(out, id, delivery, deadline_ms, true);
}
