/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filling batches. Sizes are upper bounds that cost no encoding. Messages whose schema versions
 * differ do not share a batch, since the version stands once per entry.
 */
#include "brokers/pulsar/batch.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"
#include "base/text.h"
#include "brokers/pulsar/consumer.h"

enum { MEMBER_BYTES = 64, PAIR_BYTES = 24, FIRST_CAPACITY = 16, SPARE_MAX = 4 };

void
lw_pulsar_batches_init(struct lw_pulsar_batches *batches, uint32_t messages_max,
                       size_t bytes_max, bool is_by_key)
{
    *batches = (struct lw_pulsar_batches){ .messages_max = messages_max,
                                           .bytes_max = bytes_max,
                                           .is_by_key = is_by_key };
    lw_list_init(&batches->open);
    lw_list_init(&batches->spare);
}

static struct lw_pulsar_open_batch *
batch_at(struct lw_list *node)
{
    return node ? LW_CONTAINER(node, struct lw_pulsar_open_batch, link) : NULL;
}

static void
free_all(struct lw_list *list)
{
    for (struct lw_list *node; (node = lw_list_pop(list)) != NULL;) {
        struct lw_pulsar_open_batch *batch = batch_at(node);
        lw_free(batch->items);
        lw_free(batch);
    }
}

void
lw_pulsar_batches_deinit(struct lw_pulsar_batches *batches)
{
    free_all(&batches->open);
    free_all(&batches->spare);
}

size_t
lw_pulsar_member_bytes_max(const struct lw_publication *publication)
{
    size_t bytes = MEMBER_BYTES + publication->key.size + publication->key.size / 2 +
                   publication->ordering_key.size + publication->value.size;
    for (size_t i = 0; i < publication->header_count; i++) {
        const struct lw_header *header = &publication->headers[i];
        bytes += PAIR_BYTES + header->name.size + header->value.size;
    }
    return bytes;
}

bool
lw_pulsar_batches_takes(const struct lw_pulsar_batches *batches, size_t bytes)
{
    return bytes <= batches->bytes_max && batches->messages_max > 1;
}

static struct lw_bytes
version_of(const struct lw_publication *publication)
{
    return publication->base ? lw_pulsar_message_schema_version(publication->base)
                             : (struct lw_bytes){ NULL, 0 };
}

static const struct lw_publication *
first_of(const struct lw_pulsar_batches *batches)
{
    return batch_at(batches->open.next)->items[0].publication;
}

bool
lw_pulsar_batches_fits(const struct lw_pulsar_batches *batches,
                       const struct lw_publication *publication, size_t bytes)
{
    if (batches->count == 0) {
        return true;
    }
    return batches->count < batches->messages_max &&
           batches->bytes + bytes <= batches->bytes_max &&
           batches->open_count < LW_PULSAR_OPEN_BATCHES_MAX &&
           lw_bytes_is_equal(version_of(publication), version_of(first_of(batches)));
}

/* -- By key -------------------------------------------------------------------------------------- */

static struct lw_bytes
key_of(const struct lw_publication *publication)
{
    return publication->ordering_key.data ? publication->ordering_key : publication->key;
}

static struct lw_pulsar_open_batch *
find(const struct lw_pulsar_batches *batches, const struct lw_publication *publication,
     uint64_t hash)
{
    struct lw_bytes key = key_of(publication);
    for (struct lw_list *at = batches->open.next; at != &batches->open; at = at->next) {
        struct lw_pulsar_open_batch *batch = batch_at(at);
        if (!batches->is_by_key ||
            (batch->hash == hash &&
             lw_bytes_is_equal(key_of(batch->items[0].publication), key))) {
            return batch;
        }
    }
    return NULL;
}

static struct lw_pulsar_open_batch *
begin(struct lw_pulsar_batches *batches, uint64_t hash)
{
    struct lw_pulsar_open_batch *batch = batch_at(lw_list_pop(&batches->spare));
    if (!batch) {
        batch = lw_alloc(sizeof *batch);
    }
    if (batch) {
        batch->hash = hash;
        batch->count = 0;
        batch->bytes = 0;
        lw_list_push(&batches->open, &batch->link);
        batches->open_count++;
    }
    return batch;
}

static bool
grow(struct lw_pulsar_open_batch *batch)
{
    if (batch->count < batch->capacity) {
        return true;
    }
    uint32_t capacity = batch->capacity ? batch->capacity * 2 : FIRST_CAPACITY;
    void *items = lw_resize_array(batch->items, capacity, sizeof *batch->items);
    if (items) {
        batch->items = items;
        batch->capacity = capacity;
    }
    return items != NULL;
}

static void
leave(struct lw_pulsar_batches *batches, struct lw_pulsar_open_batch *batch)
{
    lw_list_remove(&batch->link);
    batches->open_count--;
    batches->count -= batch->count;
    batches->bytes -= batch->bytes;
}

bool
lw_pulsar_batches_add(struct lw_pulsar_batches *batches, struct lw_pulsar_waiting item,
                      size_t bytes)
{
    struct lw_bytes key = key_of(item.publication);
    uint64_t hash = batches->is_by_key ? lw_hash_bytes(key.data, key.size, 0) : 0;
    struct lw_pulsar_open_batch *batch = find(batches, item.publication, hash);
    if (!batch) {
        batch = begin(batches, hash);
    }
    if (!batch || !grow(batch)) {
        if (batch && batch->count == 0) {
            leave(batches, batch);
            lw_pulsar_batches_give(batches, batch);
        }
        return false;
    }
    batch->items[batch->count++] = item;
    batch->bytes += bytes;
    batches->count++;
    batches->bytes += bytes;
    return true;
}

bool
lw_pulsar_batches_is_full(const struct lw_pulsar_batches *batches)
{
    return batches->count >= batches->messages_max || batches->bytes >= batches->bytes_max;
}

struct lw_pulsar_open_batch *
lw_pulsar_batches_take(struct lw_pulsar_batches *batches)
{
    struct lw_pulsar_open_batch *batch = batch_at(lw_list_first(&batches->open));
    if (batch) {
        leave(batches, batch);
    }
    return batch;
}

struct lw_pulsar_open_batch *
lw_pulsar_batches_take_last(struct lw_pulsar_batches *batches)
{
    if (lw_list_is_empty(&batches->open)) {
        return NULL;
    }
    struct lw_pulsar_open_batch *batch = batch_at(batches->open.prev);
    leave(batches, batch);
    return batch;
}

void
lw_pulsar_batches_give(struct lw_pulsar_batches *batches, struct lw_pulsar_open_batch *batch)
{
    size_t spare = 0;
    for (struct lw_list *at = batches->spare.next; at != &batches->spare; at = at->next) {
        spare++;
    }
    if (spare >= SPARE_MAX) {
        lw_free(batch->items);
        lw_free(batch);
        return;
    }
    lw_list_push(&batches->spare, &batch->link);
}
