/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A batch goes in frames of bounded size, one after the other; the owner's commits gather what
 * comes from all sides. The thread of a broker without a file.
 */
#include "brokers/spool/remote.h"

#include <unistd.h>

enum { FRAME_BYTES = 4 << 20, COUNT_PLACE = 12 };

static size_t
size_of(const struct lw_publication *publication)
{
    size_t size = publication->key.size + publication->ordering_key.size +
                  publication->value.size;
    for (size_t i = 0; i < publication->header_count; i++) {
        size += publication->headers[i].name.size + publication->headers[i].value.size + 8;
    }
    return size;
}

/* Puts items from `first` on into the request; returns behind which one it is full. */
static uint32_t
fill(struct lw_spool_client *client, struct lw_spool_batch *batch, uint32_t first)
{
    uint32_t count = 0;
    uint32_t i = first;
    lw_spool_begin_request(&client->out, LW_SPOOL_PUBLISH);
    lw_spool_put_u32(&client->out, 0);
    for (; i < batch->count && (count == 0 || client->out.size < FRAME_BYTES); i++) {
        struct lw_spool_item *item = &batch->items[i];
        item->status = LW_STATUS_OK;
        if (!lw_spool_is_topic(item->publication->topic)) {
            item->status = LW_STATUS_INVALID;
        } else if (size_of(item->publication) > LW_SPOOL_MESSAGE_BYTES_MAX) {
            item->status = LW_STATUS_TOO_LARGE;
        } else {
            lw_spool_put_publication(&client->out, item->publication);
            count++;
        }
    }
    lw_spool_patch_u32(&client->out, COUNT_PLACE, count);
    return i;
}

static void
read_statuses(struct lw_spool_client *client, struct lw_spool_batch *batch, uint32_t first,
              uint32_t end)
{
    for (uint32_t i = first; i < end; i++) {
        if (batch->items[i].status != LW_STATUS_OK) {
            continue;
        }
        uint32_t status = lw_spool_get_u32(&client->answer);
        bool is_bad = client->answer.is_bad || status > LW_STATUS_INTERNAL;
        batch->items[i].status = is_bad ? LW_STATUS_UNKNOWN : (enum lw_status)status;
    }
}

static void
refuse(struct lw_spool_batch *batch, uint32_t first, uint32_t end, enum lw_status status)
{
    for (uint32_t i = first; i < end; i++) {
        if (batch->items[i].status == LW_STATUS_OK) {
            batch->items[i].status = status;
        }
    }
}

/* One frame: asked, or refused. False: nothing of it was taken. */
static bool
publish(struct lw_spool_client *client, struct lw_spool_batch *batch, uint32_t first,
        uint32_t end, struct lw_error *ret_error)
{
    enum lw_status status = lw_spool_client_ask(client, 0, ret_error);
    if (status == LW_STATUS_OK) {
        read_statuses(client, batch, first, end);
        return true;
    }
    refuse(batch, first, end, status);
    if (status == LW_STATUS_UNKNOWN || status == LW_STATUS_UNAVAILABLE) {
        (void)close(client->fd);
        client->fd = -1;
    }
    return status == LW_STATUS_UNKNOWN;
}

bool
lw_spool_remote_publish(struct lw_spool_client *client, struct lw_spool_batch *batch,
                        bool *ret_is_taken, struct lw_error *ret_error)
{
    uint32_t end = 0;
    *ret_is_taken = false;
    for (uint32_t first = 0; first < batch->count; first = end) {
        bool is_there = client->fd >= 0 ||
                        lw_spool_client_reconnect(client, ret_error) == LW_STATUS_OK;
        end = fill(client, batch, first);
        if (is_there) {
            *ret_is_taken = publish(client, batch, first, end, ret_error) || *ret_is_taken;
        } else {
            refuse(batch, first, end, LW_STATUS_UNAVAILABLE);
        }
    }
    return client->fd >= 0;
}
