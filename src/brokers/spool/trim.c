/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deleting what nobody needs: what every group of the partition has settled (`keep` after it was
 * written, if that is asked for), and, if a retention is given, what is too old or too much,
 * settled or not. A bounded number per transaction, so that no commit waits long. A partition that
 * no group ever read keeps everything. The worker's thread.
 */
#include <sqlite3.h>
#include <string.h>

#include "brokers/spool/store.h"

enum { STEP_ROWS = 1024 };

/* Looked up once after a write of the position: groups that nobody reads cost nothing. */
static bool
find_least(struct lw_spool_store *store, struct lw_spool_position *position)
{
    int64_t least = position->next;
    if (position->least >= 0) {
        return true;
    }
    if (!lw_spool_ask(store, LW_SPOOL_LEAST_UNSETTLED, &position->id, 1, &least)) {
        return false;
    }
    position->least = least < position->next ? least : position->next;
    return true;
}

/* Everything below is settled by every group; 0 without a group. */
static bool
find_floor(struct lw_spool_store *store, struct lw_spool_partition *partition,
           int64_t *ret_floor)
{
    int64_t floor = partition->stored;
    struct lw_list *head = &partition->positions;
    if (lw_list_is_empty(head)) {
        *ret_floor = 0;
        return true;
    }
    for (struct lw_list *node = head->next; node != head; node = node->next) {
        struct lw_spool_position *position = LW_CONTAINER(node, struct lw_spool_position, link);
        if (!find_least(store, position)) {
            return false;
        }
        floor = position->least < floor ? position->least : floor;
    }
    *ret_floor = floor;
    return true;
}

/* What may go, and what does. */
struct sizes {
    int64_t end;           /* nothing from here on */
    int64_t older_than_ms; /* written before */
    uint64_t excess;       /* or as many bytes of the oldest */
    uint64_t bytes;        /* of those that go */
    int64_t until;         /* behind the last of them */
};

/* The oldest messages from `first` to `end`: which are to go, and how large they are. */
static bool
measure(struct lw_spool_store *store, const struct lw_spool_partition *partition,
        struct sizes *sizes)
{
    int64_t numbers[] = { lw_spool_row(partition, partition->first),
                          lw_spool_row(partition, sizes->end), STEP_ROWS };
    struct sqlite3_stmt *row = lw_spool_bind(store, LW_SPOOL_SIZES, numbers, 3);
    int code = SQLITE_ROW;
    sizes->bytes = 0;
    sizes->until = partition->first;
    while ((code = sqlite3_step(row)) == SQLITE_ROW) {
        bool is_old = sqlite3_column_int64(row, 1) < sizes->older_than_ms;
        if (!is_old && sizes->bytes >= sizes->excess) {
            break;
        }
        sizes->bytes += (uint64_t)sqlite3_column_int64(row, 2);
        sizes->until = lw_spool_offset(sqlite3_column_int64(row, 0)) + 1;
    }
    (void)sqlite3_reset(row);
    return code == SQLITE_ROW || code == SQLITE_DONE || lw_spool_fail(store, "read");
}

static bool
forget_rows(struct lw_spool_store *store, struct lw_spool_partition *partition, int64_t until)
{
    struct lw_list *head = &partition->positions;
    for (struct lw_list *node = head->next; node != head; node = node->next) {
        struct lw_spool_position *position = LW_CONTAINER(node, struct lw_spool_position, link);
        int64_t numbers[] = { position->id, until };
        if (!lw_spool_run(store, LW_SPOOL_TRIM_UNSETTLED, numbers, 2)) {
            return false;
        }
        uint64_t count = (uint64_t)sqlite3_changes64(store->db);
        position->least = -1;
        position->waiting -= count < position->waiting ? count : position->waiting;
    }
    return true;
}

/* Deletes from `first` to `until`. `first` may stay behind when the transaction fails: harmless. */
static bool
delete_until(struct lw_spool_store *store, struct lw_spool_partition *partition,
             const struct sizes *sizes)
{
    int64_t numbers[] = { lw_spool_row(partition, partition->first),
                          lw_spool_row(partition, sizes->until), INT64_MAX };
    if (sizes->until <= partition->first) {
        return true;
    }
    if (!lw_spool_run(store, LW_SPOOL_TRIM, numbers, 3)) {
        return false;
    }
    partition->first = sizes->until;
    partition->bytes -= sizes->bytes < partition->bytes ? sizes->bytes : partition->bytes;
    if (lw_list_is_empty(&partition->dirty)) {
        lw_list_push(&store->dirty_partitions, &partition->dirty);
    }
    return true;
}

static bool
trim_settled(struct lw_spool_store *store, struct lw_spool_partition *partition, int64_t now_ms,
             bool *ret_has_more)
{
    int64_t floor = 0;
    int64_t keep_ms = store->options.keep_ms;
    if (store->keeps_settled) {
        return true;
    }
    if (!find_floor(store, partition, &floor)) {
        return false;
    }
    if (floor <= partition->first) {
        return true;
    }
    struct sizes sizes = { .end = floor,
                           .older_than_ms = keep_ms > 0 ? now_ms - keep_ms : INT64_MAX };
    if (!measure(store, partition, &sizes)) {
        return false;
    }
    if (keep_ms == 0 && floor - partition->first <= STEP_ROWS) {
        sizes.until = floor; /* over holes as well */
    }
    *ret_has_more = sizes.until > partition->first && sizes.until < floor;
    return delete_until(store, partition, &sizes);
}

static bool
trim_retained(struct lw_spool_store *store, struct lw_spool_partition *partition,
              int64_t now_ms, bool *ret_has_more)
{
    const struct lw_spool_options *options = &store->options;
    int64_t age_ms = partition->topic->retention_ms >= 0 ? partition->topic->retention_ms
                                                         : options->retention_ms;
    uint64_t bytes_max = options->retention_bytes;
    uint64_t excess = bytes_max > 0 && partition->stored_bytes > bytes_max
                          ? partition->stored_bytes - bytes_max
                          : 0;
    if (age_ms <= 0 && excess == 0) {
        return true;
    }
    struct sizes sizes = { .end = partition->stored,
                           .older_than_ms = age_ms > 0 ? now_ms - age_ms : 0,
                           .excess = excess };
    if (!measure(store, partition, &sizes)) {
        return false;
    }
    if (sizes.until <= partition->first) {
        return true;
    }
    *ret_has_more = true;
    return forget_rows(store, partition, sizes.until) && delete_until(store, partition, &sizes);
}

bool
lw_spool_has_worn(const struct lw_spool_store *store)
{
    return !lw_list_is_empty(&store->worn);
}

void
lw_spool_wear_one(struct lw_spool_store *store, struct lw_spool_partition *partition)
{
    if (lw_list_is_empty(&partition->worn)) {
        lw_list_push(&store->worn, &partition->worn);
    }
}

static void
forget_leasts(struct lw_spool_partition *partition)
{
    struct lw_list *head = &partition->positions;
    for (struct lw_list *node = head->next; node != head; node = node->next) {
        LW_CONTAINER(node, struct lw_spool_position, link)->least = -1;
    }
}

/* What was looked up may have been that of a transaction that failed. */
void
lw_spool_wear(struct lw_spool_store *store)
{
    struct lw_spool_partition *partition = lw_spool_next_partition(store, NULL);
    for (; partition; partition = lw_spool_next_partition(store, partition)) {
        forget_leasts(partition);
        lw_spool_wear_one(store, partition);
    }
}

bool
lw_spool_trim(struct lw_spool_store *store, int64_t now_ms)
{
    struct lw_list *node = lw_list_first(&store->worn);
    if (!node) {
        return true;
    }
    struct lw_spool_partition *partition = LW_CONTAINER(node, struct lw_spool_partition, worn);
    bool has_more = false;
    if (!trim_retained(store, partition, now_ms, &has_more) ||
        (!has_more && !trim_settled(store, partition, now_ms, &has_more))) {
        return false;
    }
    store->worn_count = 0;
    lw_list_remove(node);
    if (has_more) {
        lw_list_push(&store->worn, node); /* the others come first */
    }
    return true;
}
