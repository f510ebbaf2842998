/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What handlers may ask of a delivery that needs a clock or the origin headers, for core/view.c,
 * which has neither a clock nor policy. Called on whatever thread holds the delivery; reads only
 * what does not change while it runs.
 */
#include <string.h>

#include "base/clock.h"
#include "dispatcher/dispatcher.h"

void
lw_view_read_origin(const struct lw_delivery *delivery, struct lw_origin *ret_origin)
{
    size_t count = 0;
    const struct lw_header *headers = lw_delivery_headers(delivery, &count);
    lw_origin_read(lw_stream_of(delivery)->family, headers, count, ret_origin);
}

static uint32_t
retries(const struct lw_delivery *delivery)
{
    struct lw_origin origin;
    lw_view_read_origin(delivery, &origin);
    return origin.retries;
}

static size_t
message_id(const struct lw_delivery *delivery, char *out, size_t size)
{
    struct lw_origin origin;
    char place[LW_PLACE_BYTES];
    const struct lw_stream *stream = lw_stream_of(delivery);
    const struct lw_origin_facts facts = {
        .family = stream->family,
        .broker = stream->link->broker->name,
        .topic = delivery->partition->topic,
        .partition = delivery->partition->number,
        .position = delivery->message.position,
        .place = lw_stream_place(delivery, place, sizeof(place)),
    };
    lw_view_read_origin(delivery, &origin);
    return lw_origin_identity(&origin, &facts, out, size);
}

const struct lw_view_ops lw_dispatcher_view = {
    .retries = retries,
    .message_id = message_id,
    .now = lw_clock_monotonic_ns,
};
