/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream, a link and a broker of which only what a handler may ask is filled in. Headers are
 * asked of the broker by message, so each delivery carries its sample in the message's `owner`.
 */
#include "cli/handler_sample.h"

#include "base/alloc.h"
#include "core/partition.h"
#include "dispatcher/dispatcher.h"

struct lw_samples {
    struct lw_broker broker;
    struct lw_link link;
    struct lw_stream stream;
    struct lw_partition partition;
    int64_t position;
};

static const struct lw_header *
headers(struct lw_broker *broker, const struct lw_message *message, size_t *ret_count)
{
    const struct lw_sample *sample = message->owner;
    (void)broker;
    *ret_count = sample->header_count;
    return sample->headers;
}

/* 2026-01-02 03:04:05.678 UTC: the same in every run, so that two reports can be compared. */
static void
times(struct lw_broker *broker, const struct lw_message *message,
      struct lw_message_times *ret_times)
{
    (void)broker;
    ret_times->timestamp_ms = INT64_C(1767323045678) + message->position;
    ret_times->event_time_ms = -1;
}

static const struct lw_broker_ops broker_ops = {
    .scheme = "check",
    .headers = headers,
    .times = times,
};

struct lw_samples *
lw_samples_create(void)
{
    struct lw_samples *samples = lw_alloc(sizeof *samples);
    if (!samples) {
        return NULL;
    }
    samples->broker.ops = &broker_ops;
    samples->broker.name = "check";
    samples->link.broker = &samples->broker;
    samples->stream.link = &samples->link;
    samples->stream.family = LW_HEADERS_KAFKA;
    lw_subscription_init(&samples->stream.subscription, 0);
    samples->stream.subscription.topic = "check";
    samples->stream.subscription.name = "check";
    samples->stream.subscription.pipeline = "check";
    samples->stream.subscription.broker = &samples->broker;
    samples->stream.subscription.view = &lw_dispatcher_view;
    samples->partition.topic = "check";
    samples->partition.subscription = &samples->stream.subscription;
    return samples;
}

void
lw_samples_destroy(struct lw_samples *samples)
{
    lw_free(samples);
}

struct lw_delivery *
lw_samples_take(struct lw_samples *samples, const struct lw_sample *sample)
{
    struct lw_delivery *delivery = lw_alloc(sizeof *delivery);
    if (!delivery) {
        return NULL;
    }
    delivery->message = (struct lw_message){
        .key = sample->key,
        .value = sample->value,
        .position = sample->position ? sample->position : ++samples->position,
        .redeliveries = sample->redeliveries,
        .owner = (void *)(uintptr_t)sample,
    };
    delivery->subscription = &samples->stream.subscription;
    delivery->partition = &samples->partition;
    delivery->state = LW_STATE_QUEUED;
    lw_delivery_begin_run(delivery, 0);
    delivery->attempt = sample->attempt ? sample->attempt : 1;
    return delivery;
}

void
lw_samples_drop(struct lw_delivery *delivery)
{
    if (delivery) {
        lw_outcome_destroy(delivery->outcome);
        lw_free(delivery);
    }
}
