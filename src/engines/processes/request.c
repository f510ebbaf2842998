/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measuring and writing requests. The identity of a message without headers is the prefix of its
 * partition and its position, so nothing is formatted for it; only one with headers may come from
 * a retry copy and has its identity asked for and sent along. Loop thread.
 */
#include "engines/processes/request.h"

#include <string.h>

#include "core/partition.h"
#include "core/subscription.h"

static size_t
measure_headers(const struct lw_header *headers, size_t count)
{
    size_t size = 0;
    for (size_t i = 0; i < count; i++) {
        size += 2 * sizeof(uint32_t) + headers[i].name.size + headers[i].value.size;
    }
    return size;
}

static size_t
measure_place(const struct lw_delivery *delivery, char place[LW_PROCESSES_PLACE_MAX])
{
    const struct lw_broker_ops *ops = delivery->subscription->broker->ops;
    if (!ops->place) {
        return 0;
    }
    ops->place(&delivery->message, place, LW_PROCESSES_PLACE_MAX);
    return strlen(place);
}

static size_t
measure_identity(const struct lw_delivery *delivery, char *out)
{
    size_t size = lw_delivery_message_id(delivery, out, LW_PROCESSES_IDENTITY_MAX);
    return size < LW_PROCESSES_IDENTITY_MAX ? size : LW_PROCESSES_IDENTITY_MAX - 1;
}

void
lw_processes_request_measure(const struct lw_delivery *delivery,
                             struct lw_processes_facts *ret_facts)
{
    struct lw_processes_facts *facts = ret_facts;
    const struct lw_message *message = &delivery->message;
    facts->delivery = delivery;
    facts->headers = lw_delivery_headers(delivery, &facts->header_count);
    facts->headers_size = 0;
    facts->identity_size = 0;
    facts->retries = 0;
    if (facts->header_count > 0) {
        facts->headers_size = measure_headers(facts->headers, facts->header_count);
        facts->identity_size = measure_identity(delivery, facts->identity);
        facts->retries = lw_delivery_retries(delivery);
    }
    facts->place_size = measure_place(delivery, facts->place);
    facts->size = lw_processes_round(
        sizeof(struct lw_processes_request) + message->key.size + message->ordering_key.size +
        facts->identity_size + facts->place_size + facts->headers_size + message->value.size);
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
put_headers(unsigned char *out, const struct lw_header *headers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct lw_header *header = &headers[i];
        uint32_t sizes[2] = { (uint32_t)header->name.size,
                              header->value.data ? (uint32_t)header->value.size : UINT32_MAX };
        out = put(out, sizes, sizeof sizes);
        out = put(out, header->name.data, header->name.size);
        out = put(out, header->value.data, header->value.data ? header->value.size : 0);
    }
    return out;
}

static uint32_t
flags_of(const struct lw_message *message)
{
    return (message->key.data ? LW_PROCESSES_HAS_KEY : 0U) |
           (message->ordering_key.data ? LW_PROCESSES_HAS_ORDERING_KEY : 0U) |
           (message->value.data ? LW_PROCESSES_HAS_VALUE : 0U);
}

void
lw_processes_request_write(const struct lw_processes_facts *facts, uint64_t seq,
                           uint16_t context, unsigned char *out)
{
    const struct lw_delivery *delivery = facts->delivery;
    const struct lw_message *message = &delivery->message;
    struct lw_broker *broker = delivery->subscription->broker;
    struct lw_message_times times = { -1, -1 };
    broker->ops->times(broker, message, &times);
    struct lw_processes_request head = {
        .size = (uint32_t)facts->size,
        .kind = LW_PROCESSES_MESSAGE,
        .context = context,
        .seq = seq,
        .position = message->position,
        .timestamp_ms = times.timestamp_ms,
        .event_time_ms = times.event_time_ms,
        .attempt = delivery->attempt,
        .retries = facts->retries,
        .redeliveries = message->redeliveries,
        .flags = flags_of(message),
        .key_size = (uint32_t)message->key.size,
        .ordering_key_size = (uint32_t)message->ordering_key.size,
        .identity_size = (uint32_t)facts->identity_size,
        .place_size = (uint32_t)facts->place_size,
        .headers_size = (uint32_t)facts->headers_size,
        .header_count = (uint32_t)facts->header_count,
        .value_size = message->value.size,
    };
    out = put(out, &head, sizeof head);
    out = put(out, message->key.data, message->key.size);
    out = put(out, message->ordering_key.data, message->ordering_key.size);
    out = put(out, facts->identity, facts->identity_size);
    out = put(out, facts->place, facts->place_size);
    out = put_headers(out, facts->headers, facts->header_count);
    (void)put(out, message->value.data, message->value.size);
}

/* -- Contexts ------------------------------------------------------------------------------------ */

static size_t
measure_prefix(const struct lw_delivery *delivery, char *out)
{
    size_t count = 0;
    (void)lw_delivery_headers(delivery, &count);
    if (count > 0) {
        return 0;
    }
    size_t size = measure_identity(delivery, out);
    while (size > 0 && out[size - 1] != '/') {
        size--;
    }
    return size;
}

static const char *
text_or_none(const char *text)
{
    return text ? text : "";
}

void
lw_processes_context_measure(const struct lw_delivery *delivery,
                             struct lw_processes_texts *ret_texts)
{
    struct lw_processes_texts *texts = ret_texts;
    texts->topic = text_or_none(delivery->partition->topic);
    texts->subscription = text_or_none(delivery->subscription->name);
    texts->pipeline = text_or_none(delivery->subscription->pipeline);
    texts->prefix_size = measure_prefix(delivery, texts->prefix);
    texts->size = lw_processes_round(sizeof(struct lw_processes_context) +
                                     strlen(texts->topic) + strlen(texts->subscription) +
                                     strlen(texts->pipeline) + texts->prefix_size + 4);
}

static unsigned char *
put_text(unsigned char *out, const char *text, size_t size)
{
    out = put(out, text, size);
    *out = '\0';
    return out + 1;
}

void
lw_processes_context_write(const struct lw_processes_texts *texts, int32_t partition,
                           uint16_t place, unsigned char *out)
{
    struct lw_processes_context head = {
        .size = (uint32_t)texts->size,
        .kind = LW_PROCESSES_CONTEXT,
        .place = place,
        .partition = partition,
        .topic_size = (uint32_t)strlen(texts->topic),
        .subscription_size = (uint32_t)strlen(texts->subscription),
        .pipeline_size = (uint32_t)strlen(texts->pipeline),
        .prefix_size = (uint32_t)texts->prefix_size,
    };
    out = put(out, &head, sizeof head);
    out = put_text(out, texts->topic, head.topic_size);
    out = put_text(out, texts->subscription, head.subscription_size);
    out = put_text(out, texts->pipeline, head.pipeline_size);
    (void)put_text(out, texts->prefix, head.prefix_size);
}

/* -- Several messages ---------------------------------------------------------------------------- */

/* The context that the next message of a batch is read with. */
struct reach {
    const struct lw_partition *partition;
    bool has_prefix;
};

static bool
is_within(const struct reach *reach, const struct lw_processes_facts *facts)
{
    return reach->partition == facts->delivery->partition &&
           (reach->has_prefix || facts->identity_size > 0);
}

static void
extend(struct reach *reach, const struct lw_delivery *delivery,
       struct lw_processes_texts *ret_texts)
{
    lw_processes_context_measure(delivery, ret_texts);
    reach->partition = delivery->partition;
    reach->has_prefix = ret_texts->prefix_size > 0;
}

bool
lw_processes_batch_measure(const struct lw_delivery *first, size_t item_bytes_max,
                           size_t *ret_size)
{
    struct lw_processes_facts facts;
    struct lw_processes_texts texts;
    struct reach reach = { .partition = NULL };
    size_t size = sizeof(struct lw_processes_batch);
    for (const struct lw_delivery *at = first; at; at = at->task_next) {
        lw_processes_request_measure(at, &facts);
        if (facts.size > item_bytes_max) {
            return false;
        }
        if (!is_within(&reach, &facts)) {
            extend(&reach, at, &texts);
            size += texts.size;
        }
        size += facts.size;
    }
    *ret_size = size;
    return size <= UINT32_MAX;
}

void
lw_processes_batch_write(const struct lw_delivery *first, uint64_t seq, size_t size,
                         unsigned char *out)
{
    struct lw_processes_facts facts;
    struct lw_processes_texts texts;
    struct reach reach = { .partition = NULL };
    struct lw_processes_batch head = { .size = (uint32_t)size,
                                       .kind = LW_PROCESSES_BATCH,
                                       .seq = seq };
    unsigned char *begin = out;
    out += sizeof head;
    for (const struct lw_delivery *at = first; at; at = at->task_next) {
        lw_processes_request_measure(at, &facts);
        if (!is_within(&reach, &facts)) {
            extend(&reach, at, &texts);
            lw_processes_context_write(&texts, at->partition->number, 0, out);
            out += texts.size;
        }
        lw_processes_request_write(&facts, seq, 0, out);
        out += facts.size;
        head.count++;
    }
    memcpy(begin, &head, sizeof head);
}
