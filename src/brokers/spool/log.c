/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Appending. The partition of a keyed message is that of Kafka's clients (murmur2), of a keyless
 * one the next in turn. Positions run on in memory and become the file's with the partition's row
 * at the end of the transaction; when that fails they are taken back. The worker's thread.
 */
#include <sqlite3.h>
#include <string.h>

#include "brokers/common/partitioner.h"
#include "brokers/spool/faults.h"
#include "brokers/spool/store.h"
#include "brokers/spool/wire.h"

static struct lw_spool_partition *
choose(struct lw_spool_topic *topic, const struct lw_publication *publication)
{
    if (publication->partition >= topic->partition_count) {
        return NULL;
    }
    if (publication->partition >= 0) {
        return &topic->partitions[publication->partition];
    }
    struct lw_bytes key = publication->ordering_key.data ? publication->ordering_key
                                                         : publication->key;
    uint32_t count = (uint32_t)topic->partition_count;
    uint32_t number = count == 1 ? 0
                      : key.data ? (uint32_t)lw_partitioner_choose(key, topic->partition_count)
                                 : topic->rotation++ % count;
    return &topic->partitions[number];
}

/* A statement keeps what was bound: most messages lack most columns, and binding nothing costs too. */
static void
bind_nothing(struct lw_spool_store *store, int place)
{
    if ((store->append_bound & (1U << place)) != 0) {
        (void)sqlite3_bind_null(store->statements[LW_SPOOL_APPEND], place);
        store->append_bound &= ~(1U << place);
    }
}

static void
bind_bytes(struct lw_spool_store *store, int place, struct lw_bytes bytes)
{
    if (!bytes.data) {
        bind_nothing(store, place);
        return;
    }
    (void)sqlite3_bind_blob64(store->statements[LW_SPOOL_APPEND], place, bytes.data, bytes.size,
                              SQLITE_STATIC);
    store->append_bound |= 1U << place;
}

static void
bind_time(struct lw_spool_store *store, int place, int64_t time_ms, bool is_there)
{
    if (!is_there) {
        bind_nothing(store, place);
        return;
    }
    (void)sqlite3_bind_int64(store->statements[LW_SPOOL_APPEND], place, time_ms);
    store->append_bound |= 1U << place;
}

static bool
insert(struct lw_spool_store *store, int64_t row, const struct lw_publication *publication,
       struct lw_bytes headers, int64_t now_ms)
{
    int64_t numbers[] = { row, now_ms };
    struct sqlite3_stmt *statement = lw_spool_bind(store, LW_SPOOL_APPEND, numbers, 2);
    bind_time(store, 3, publication->event_time_ms, publication->event_time_ms >= 0);
    int64_t delay_ms = publication->delay_ms < LW_SPOOL_DELAY_MAX_MS ? publication->delay_ms
                                                                     : LW_SPOOL_DELAY_MAX_MS;
    bind_time(store, 4, now_ms + delay_ms, delay_ms > 0);
    bind_bytes(store, 5, publication->key);
    bind_bytes(store, 6, publication->ordering_key);
    bind_bytes(store, 7, headers);
    bind_bytes(store, 8, publication->value);
    bool is_done = sqlite3_step(statement) == SQLITE_DONE || lw_spool_fail(store, "write");
    (void)sqlite3_reset(statement);
    return is_done;
}

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

static bool
has_room(struct lw_spool_store *store)
{
    int64_t pages = 0;
    int64_t free_pages = 0;
    if (store->pages_max == 0) {
        return true;
    }
    if (!lw_spool_ask(store, LW_SPOOL_PAGES, NULL, 0, &pages) ||
        !lw_spool_ask(store, LW_SPOOL_FREE_PAGES, NULL, 0, &free_pages)) {
        return false;
    }
    if (pages - free_pages >= store->pages_max) {
        (void)lw_spool_fault_full(store->path, &store->error);
        return false;
    }
    return true;
}

enum lw_status
lw_spool_append(struct lw_spool_store *store, struct lw_spool_topic *topic,
                const struct lw_publication *publication, int64_t now_ms)
{
    struct lw_text headers;
    struct lw_spool_partition *partition = choose(topic, publication);
    size_t size = size_of(publication);
    if (!partition) {
        return LW_STATUS_NOT_FOUND;
    }
    if (size > LW_SPOOL_MESSAGE_BYTES_MAX) {
        return LW_STATUS_TOO_LARGE;
    }
    if (!has_room(store)) {
        return LW_STATUS_SYSTEM;
    }
    lw_text_init(&headers);
    lw_spool_put_headers(&headers, publication->headers, publication->header_count);
    struct lw_bytes blob = { headers.size > 0 ? headers.data : NULL, headers.size };
    enum lw_status status = headers.is_failed ? LW_STATUS_NO_MEMORY : LW_STATUS_OK;
    if (status == LW_STATUS_OK &&
        !insert(store, lw_spool_row(partition, partition->next), publication, blob, now_ms)) {
        status = LW_STATUS_SYSTEM;
    }
    lw_text_deinit(&headers);
    if (status == LW_STATUS_OK) {
        partition->next++;
        partition->bytes += size;
        if (lw_list_is_empty(&partition->dirty)) {
            lw_list_push(&store->dirty_partitions, &partition->dirty);
        }
    }
    return status;
}

bool
lw_spool_log_write(struct lw_spool_store *store)
{
    struct lw_list *head = &store->dirty_partitions;
    for (struct lw_list *node = head->next; node != head; node = node->next) {
        struct lw_spool_partition *partition = LW_CONTAINER(node, struct lw_spool_partition,
                                                            dirty);
        int64_t numbers[] = { partition->id, partition->next, (int64_t)partition->bytes };
        if (!lw_spool_run(store, LW_SPOOL_SET_PARTITION, numbers, 3)) {
            return false;
        }
    }
    return true;
}

void
lw_spool_log_apply(struct lw_spool_store *store)
{
    struct lw_list *node;
    while ((node = lw_list_pop(&store->dirty_partitions)) != NULL) {
        struct lw_spool_partition *partition = LW_CONTAINER(node, struct lw_spool_partition,
                                                            dirty);
        partition->stored = partition->next;
        partition->stored_bytes = partition->bytes;
        partition->stored_first = partition->first;
    }
}

void
lw_spool_log_revert(struct lw_spool_store *store)
{
    struct lw_list *node;
    while ((node = lw_list_pop(&store->dirty_partitions)) != NULL) {
        struct lw_spool_partition *partition = LW_CONTAINER(node, struct lw_spool_partition,
                                                            dirty);
        partition->next = partition->stored;
        partition->bytes = partition->stored_bytes;
        partition->first = partition->stored_first;
    }
}
