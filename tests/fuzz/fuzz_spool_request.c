/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What comes through the socket of a spool's owner, or lies in its file as headers: any bytes. The
 * first byte chooses the reader. Views must lie inside, counts must fit, and what was taken is given
 * back.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "brokers/spool/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_inside(const uint8_t *data, size_t size, struct lw_bytes view)
{
    const uint8_t *at = view.data;
    lw_assert(view.size == 0 || (at >= data && at + view.size <= data + size));
}

static void
read_guests(struct lw_spool_reader *reader, const uint8_t *data, size_t size)
{
    struct lw_spool_guests guests;
    if (!lw_spool_read_guests(reader, &guests)) {
        return;
    }
    for (uint32_t i = 0; i < guests.count; i++) {
        const struct lw_publication *publication = guests.items[i].publication;
        check_inside(data, size, publication->key);
        check_inside(data, size, publication->value);
        (void)lw_spool_is_topic(publication->topic);
        for (size_t k = 0; k < publication->header_count; k++) {
            check_inside(data, size, publication->headers[k].name);
            check_inside(data, size, publication->headers[k].value);
        }
    }
    lw_spool_free_guests(&guests);
}

static void
read_headers(const uint8_t *data, size_t size)
{
    struct lw_bytes blob = { data, size };
    size_t count = lw_spool_count_headers(blob);
    if (count == SIZE_MAX) {
        return;
    }
    struct lw_header *headers = lw_alloc_array(count + 1, sizeof *headers);
    if (headers) {
        lw_spool_view_headers(blob, headers);
        for (size_t i = 0; i < count; i++) {
            check_inside(data, size, headers[i].name);
            check_inside(data, size, headers[i].value);
        }
    }
    lw_free(headers);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct lw_spool_reader reader;
    struct lw_spool_look look;
    uint64_t live = lw_alloc_live();
    if (size == 0) {
        return 0;
    }
    lw_spool_read_init(&reader, data + 1, size - 1);
    switch (data[0] % 4) {
    case 0:
        (void)lw_spool_read_request(&reader);
        read_guests(&reader, data, size);
        break;
    case 1:
        read_guests(&reader, data, size);
        break;
    case 2:
        (void)lw_spool_read_look(&reader, &look);
        break;
    default:
        read_headers(data + 1, size - 1);
        break;
    }
    lw_assert(lw_alloc_live() == live);
    return 0;
}
