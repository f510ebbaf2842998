/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a handler may read of a delivery, from the thread that holds it. Times and headers are
 * asked of the broker, since most messages are never asked; what needs a clock or the origin
 * headers is asked of the subscription's view: dispatcher/view.c, or a worker process's own.
 */
#include <string.h>

#include "base/text.h"
#include "core/delivery.h"
#include "core/partition.h"
#include "core/subscription.h"

struct lw_bytes
lw_delivery_value(const struct lw_delivery *delivery)
{
    return delivery->message.value;
}

struct lw_bytes
lw_delivery_key(const struct lw_delivery *delivery)
{
    return delivery->message.key;
}

struct lw_bytes
lw_delivery_ordering_key(const struct lw_delivery *delivery)
{
    const struct lw_message *message = &delivery->message;
    return message->ordering_key.data ? message->ordering_key : message->key;
}

const char *
lw_delivery_topic(const struct lw_delivery *delivery)
{
    return delivery->partition->topic;
}

const char *
lw_delivery_subscription(const struct lw_delivery *delivery)
{
    return delivery->subscription->name;
}

const char *
lw_delivery_pipeline(const struct lw_delivery *delivery)
{
    return delivery->subscription->pipeline;
}

int32_t
lw_delivery_partition(const struct lw_delivery *delivery)
{
    return delivery->partition->number;
}

int64_t
lw_delivery_offset(const struct lw_delivery *delivery)
{
    return delivery->message.position;
}

static struct lw_message_times
times_of(const struct lw_delivery *delivery)
{
    struct lw_message_times times = { -1, -1 };
    struct lw_broker *broker = delivery->subscription->broker;
    broker->ops->times(broker, &delivery->message, &times);
    return times;
}

int64_t
lw_delivery_timestamp_ms(const struct lw_delivery *delivery)
{
    return times_of(delivery).timestamp_ms;
}

int64_t
lw_delivery_event_time_ms(const struct lw_delivery *delivery)
{
    return times_of(delivery).event_time_ms;
}

uint32_t
lw_delivery_attempt(const struct lw_delivery *delivery)
{
    return delivery->attempt;
}

uint32_t
lw_delivery_redeliveries(const struct lw_delivery *delivery)
{
    return delivery->message.redeliveries;
}

bool
lw_delivery_is_cancelled(const struct lw_delivery *delivery)
{
    const struct lw_subscription *subscription = delivery->subscription;
    const struct lw_view_ops *view = subscription ? subscription->view : NULL;
    return atomic_load_explicit(&delivery->is_cancelled, memory_order_relaxed) ||
           (view && view->is_cancelled && view->is_cancelled(delivery));
}

uint32_t
lw_delivery_retries(const struct lw_delivery *delivery)
{
    return delivery->subscription->view->retries(delivery);
}

size_t
lw_delivery_message_id(const struct lw_delivery *delivery, char *out, size_t size)
{
    return delivery->subscription->view->message_id(delivery, out, size);
}

int64_t
lw_delivery_deadline_ms(const struct lw_delivery *delivery)
{
    if (delivery->deadline == LW_NEVER) {
        return -1;
    }
    uint64_t now = delivery->subscription->view->now();
    return now < delivery->deadline ? (int64_t)((delivery->deadline - now) / LW_MS) : 0;
}

struct lw_dispatcher *
lw_delivery_dispatcher(const struct lw_delivery *delivery)
{
    return delivery->subscription->dispatcher;
}

const struct lw_header *
lw_delivery_headers(const struct lw_delivery *delivery, size_t *ret_count)
{
    struct lw_broker *broker = delivery->subscription->broker;
    return broker->ops->headers(broker, &delivery->message, ret_count);
}

struct lw_bytes
lw_delivery_header(const struct lw_delivery *delivery, const char *name)
{
    size_t count = 0;
    const struct lw_header *headers = lw_delivery_headers(delivery, &count);
    while (count > 0) {
        const struct lw_header *header = &headers[--count];
        if (lw_text_is_equal(header->name, name)) {
            return header->value;
        }
    }
    return (struct lw_bytes){ NULL, 0 };
}
