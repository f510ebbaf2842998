/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounds what kept messages pin at the client (pinned.h). The whole is measured by a walk over all
 * that is held, after each sixteenth of the budget that was received: a running sum would cost
 * every message for what is needed once in many thousands.
 */
#include "dispatcher/pinned.h"

static struct lw_delivery *
next_of(const struct lw_partition *partition, const struct lw_delivery *delivery)
{
    struct lw_list *next = delivery->held.next;
    return next == &partition->held ? NULL : LW_CONTAINER(next, struct lw_delivery, held);
}

bool
lw_pinned_copy(struct lw_delivery *delivery)
{
    struct lw_broker *broker = delivery->subscription->broker;
    bool is_read = delivery->state == LW_STATE_RUNNING &&
                   delivery->subscription->engine->ops->reads_in_place;
    if (!is_read && !delivery->is_detached && !delivery->publishing) {
        delivery->is_detached = broker->ops->detach(broker, &delivery->message);
    }
    return delivery->is_detached;
}

void
lw_pinned_pass(struct lw_partition *partition)
{
    struct lw_delivery *delivery = partition->oldest_pinned;
    while (delivery &&
           partition->received_bytes - delivery->pinned_mark > LW_PINNED_SPAN_BYTES) {
        (void)lw_pinned_copy(delivery);
        delivery = next_of(partition, delivery);
    }
    partition->oldest_pinned = delivery;
}

/* -- the budget ------------------------------------------------------------------------------ */

static uint64_t
bytes_of_partition(const struct lw_partition *partition)
{
    uint64_t bytes = 0;
    uint64_t counted = 0; /* what lies below is counted, or pinned by nobody */
    const struct lw_list *head = &partition->held;
    for (const struct lw_list *node = head->next; node != head; node = node->next) {
        const struct lw_delivery *delivery = LW_CONTAINER_CONST(node, struct lw_delivery, held);
        if (delivery->is_detached || delivery->pinned_mark <= counted) {
            continue;
        }
        uint64_t from = (delivery->pinned_mark - delivery->held_bytes) / LW_PINNED_SPAN_BYTES *
                        LW_PINNED_SPAN_BYTES;
        uint64_t to = (delivery->pinned_mark + LW_PINNED_SPAN_BYTES - 1) /
                      LW_PINNED_SPAN_BYTES * LW_PINNED_SPAN_BYTES;
        from = from > counted ? from : counted;
        to = to < partition->received_bytes ? to : partition->received_bytes;
        bytes += to - from;
        counted = to;
    }
    return bytes;
}

static uint64_t
bytes_of_stream(const struct lw_stream *stream)
{
    uint64_t bytes = 0;
    const struct lw_list *head = &stream->subscription.partitions;
    for (const struct lw_list *node = head->next; node != head; node = node->next) {
        bytes += bytes_of_partition(LW_CONTAINER_CONST(node, struct lw_partition, link));
    }
    return bytes;
}

uint64_t
lw_pinned_bytes(const struct lw_dispatcher *dispatcher)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < dispatcher->stream_count; i++) {
        bytes += bytes_of_stream(dispatcher->streams[i]);
    }
    return bytes;
}

/* Copies out all of the partition that can be; returns how much it pins less. */
static uint64_t
copy_partition(struct lw_partition *partition)
{
    uint64_t before = bytes_of_partition(partition);
    struct lw_list *head = &partition->held;
    for (struct lw_list *node = head->next; node != head; node = node->next) {
        (void)lw_pinned_copy(LW_CONTAINER(node, struct lw_delivery, held));
    }
    partition->oldest_pinned = NULL;
    return before - bytes_of_partition(partition);
}

static uint64_t
copy_stream(struct lw_stream *stream, uint64_t excess)
{
    uint64_t freed = 0;
    struct lw_list *head = &stream->subscription.partitions;
    for (struct lw_list *node = head->next; node != head && freed < excess; node = node->next) {
        freed += copy_partition(LW_CONTAINER(node, struct lw_partition, link));
    }
    return freed;
}

static uint64_t
copy_all(struct lw_dispatcher *dispatcher, uint64_t excess)
{
    uint64_t freed = 0;
    for (uint32_t i = 0; i < dispatcher->stream_count && freed < excess; i++) {
        freed += copy_stream(dispatcher->streams[i], excess - freed);
    }
    return freed;
}

void
lw_pinned_check(struct lw_dispatcher *dispatcher)
{
    uint64_t budget = dispatcher->options.pinned_bytes;
    uint64_t bytes = lw_pinned_bytes(dispatcher);
    bool is_over = bytes > budget;
    if (is_over) {
        bytes -= copy_all(dispatcher, bytes - budget / 4 * 3);
    }
    dispatcher->pinned_unchecked = 0;
    dispatcher->pinned_check_at = is_over ? 1 : budget / 16;
    dispatcher->is_pinned_tight = bytes > budget / 2;
}
