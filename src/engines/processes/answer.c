/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing and reading bodies of answers. A reader's cursor only moves forward within the bytes
 * that are there; the number of headers that it makes room for is bounded by the bytes that they
 * would need. Pure; any thread.
 */
#include "engines/processes/answer.h"

#include <string.h>

#include "base/alloc.h"

enum { HEADERS_AT_HAND = 16, HEADER_BYTES_MIN = 2 * sizeof(uint32_t) };

/* -- Writing: the worker ------------------------------------------------------------------------- */

/* The bytes of an output's headers as the outcome stores them, which is how they are sent. */
static size_t
headers_size(const struct lw_outcome *outcome, const struct lw_stored_output *output)
{
    size_t at = output->headers;
    for (size_t i = 0; i < output->header_count; i++) {
        uint32_t sizes[2];
        memcpy(sizes, outcome->bytes.data + at, sizeof sizes);
        at += sizeof sizes + sizes[0] + (sizes[1] != UINT32_MAX ? sizes[1] : 0);
    }
    return at - output->headers;
}

size_t
lw_processes_answer_measure(const struct lw_outcome *outcome)
{
    size_t size = outcome ? strlen(outcome->reason) : 0;
    for (uint32_t i = 0; outcome && i < outcome->output_count; i++) {
        const struct lw_stored_output *output = &outcome->outputs[i];
        size += sizeof(struct lw_processes_output) + output->topic_size + output->key_size +
                output->value_size + headers_size(outcome, output);
    }
    return size;
}

static unsigned char *
put(unsigned char *out, const void *data, size_t size)
{
    if (size > 0) {
        memcpy(out, data, size);
    }
    return out + size;
}

static unsigned char *
put_output(unsigned char *out, const struct lw_outcome *outcome,
           const struct lw_stored_output *output)
{
    const char *bytes = outcome->bytes.data;
    struct lw_processes_output head = {
        .is_reply = output->is_reply,
        .flags = (output->has_key ? LW_PROCESSES_HAS_KEY : 0U) |
                 (output->has_value ? LW_PROCESSES_HAS_VALUE : 0U),
        .topic_size = (uint32_t)output->topic_size,
        .header_count = (uint32_t)output->header_count,
        .delay_ms = output->delay_ms,
        .key_size = output->key_size,
        .value_size = output->value_size,
    };
    out = put(out, &head, sizeof head);
    out = put(out, bytes + output->topic, output->topic_size);
    out = put(out, bytes + output->key, output->key_size);
    out = put(out, bytes + output->value, output->value_size);
    return put(out, bytes + output->headers, headers_size(outcome, output));
}

void
lw_processes_answer_write(const struct lw_outcome *outcome, unsigned char *out)
{
    out = put(out, outcome->reason, strlen(outcome->reason));
    for (uint32_t i = 0; i < outcome->output_count; i++) {
        out = put_output(out, outcome, &outcome->outputs[i]);
    }
}

/* -- Reading: the owner -------------------------------------------------------------------------- */

struct cursor {
    const unsigned char *at;
    size_t left;
};

/* The next `size` bytes, or NULL when they are not there. */
static const void *
take(struct cursor *cursor, uint64_t size)
{
    if (size > cursor->left) {
        return NULL;
    }
    const void *taken = cursor->at;
    cursor->at += size;
    cursor->left -= (size_t)size;
    return taken;
}

static bool
take_head(struct cursor *cursor, void *out, size_t size)
{
    const void *bytes = take(cursor, size);
    if (bytes) {
        memcpy(out, bytes, size);
    }
    return bytes != NULL;
}

/* A view of the next bytes; false when they are not there, or when nothing should be. */
static bool
take_view(struct cursor *cursor, bool is_there, uint64_t size, struct lw_bytes *ret_view)
{
    const void *bytes = take(cursor, size);
    *ret_view = (struct lw_bytes){ is_there ? bytes : NULL, (size_t)size };
    return bytes && (is_there || size == 0);
}

static bool
take_headers(struct cursor *cursor, struct lw_header *headers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t sizes[2];
        if (!take_head(cursor, sizes, sizeof sizes)) {
            return false;
        }
        bool has_value = sizes[1] != UINT32_MAX;
        if (!take_view(cursor, true, sizes[0], &headers[i].name) ||
            !take_view(cursor, has_value, has_value ? sizes[1] : 0, &headers[i].value)) {
            return false;
        }
    }
    return true;
}

/* A topic as a text; it may be no text with a zero in it. */
static bool
take_topic(struct cursor *cursor, size_t size, struct lw_text *topic)
{
    const void *bytes = take(cursor, size);
    if (!bytes || memchr(bytes, 0, size)) {
        return false;
    }
    lw_text_clear(topic);
    lw_text_append_bytes(topic, bytes, size);
    return true;
}

static enum lw_processes_read
add(struct lw_outcome *outcome, bool is_reply, const struct lw_output *output)
{
    enum lw_status status = lw_outcome_add(outcome, is_reply, output);
    return status == LW_STATUS_OK          ? LW_PROCESSES_READ_OK
           : status == LW_STATUS_TOO_LARGE ? LW_PROCESSES_READ_BROKEN
                                           : LW_PROCESSES_READ_NO_MEMORY;
}

static enum lw_processes_read
read_views(struct cursor *cursor, const struct lw_processes_output *head,
           struct lw_output *output, struct lw_header *headers, struct lw_outcome *outcome)
{
    bool has_key = head->flags & LW_PROCESSES_HAS_KEY;
    bool has_value = head->flags & LW_PROCESSES_HAS_VALUE;
    if (!take_view(cursor, has_key, head->key_size, &output->key) ||
        !take_view(cursor, has_value, head->value_size, &output->value) ||
        !take_headers(cursor, headers, head->header_count)) {
        return LW_PROCESSES_READ_BROKEN;
    }
    output->headers = headers;
    output->header_count = head->header_count;
    output->delay_ms = head->delay_ms;
    return add(outcome, head->is_reply != 0, output);
}

static enum lw_processes_read
read_output(struct cursor *cursor, struct lw_outcome *outcome, struct lw_text *topic)
{
    struct lw_processes_output head;
    struct lw_header at_hand[HEADERS_AT_HAND];
    struct lw_output output = { .topic = NULL };
    if (!take_head(cursor, &head, sizeof head) || !take_topic(cursor, head.topic_size, topic) ||
        head.header_count > cursor->left / HEADER_BYTES_MIN || head.is_reply > 1) {
        return LW_PROCESSES_READ_BROKEN;
    }
    bool is_many = head.header_count > HEADERS_AT_HAND;
    struct lw_header *headers = is_many ? lw_alloc_array(head.header_count, sizeof *headers)
                                        : at_hand;
    enum lw_processes_read read = LW_PROCESSES_READ_NO_MEMORY;
    output.topic = head.topic_size > 0 ? topic->data : NULL;
    if (headers && !topic->is_failed) {
        read = read_views(cursor, &head, &output, headers, outcome);
    }
    if (is_many) {
        lw_free(headers);
    }
    return read;
}

enum lw_processes_read
lw_processes_answer_read(const struct lw_processes_answer *head, const void *body,
                         struct lw_delivery *delivery)
{
    struct cursor cursor = { body, (size_t)head->body_size };
    struct lw_outcome *outcome = lw_delivery_outcome(delivery);
    if (!outcome) {
        return LW_PROCESSES_READ_NO_MEMORY;
    }
    lw_outcome_clear(outcome);
    outcome->delay_ms = head->delay_ms;
    outcome->has_code = head->flags & LW_PROCESSES_HAS_CODE;
    outcome->code = outcome->has_code ? head->code : 0;
    const char *reason = take(&cursor, head->reason_size);
    if (!reason || head->reason_size > LW_REASON_MAX || memchr(reason, 0, head->reason_size)) {
        return LW_PROCESSES_READ_BROKEN;
    }
    lw_outcome_set_reason(outcome, reason, head->reason_size);
    struct lw_text topic;
    lw_text_init(&topic);
    enum lw_processes_read read = LW_PROCESSES_READ_OK;
    for (uint32_t i = 0; i < head->output_count && read == LW_PROCESSES_READ_OK; i++) {
        read = read_output(&cursor, outcome, &topic);
    }
    lw_text_deinit(&topic);
    return read == LW_PROCESSES_READ_OK && cursor.left > 0 ? LW_PROCESSES_READ_BROKEN : read;
}
