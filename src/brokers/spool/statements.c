/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every statement that runs while the spool works, prepared once, with the few calls through which
 * all others run them. Numbers are bound by position; blobs by the caller. No statement scans or
 * sorts: each is a range or a point of a primary key or of the one index, and a test asks SQLite
 * whether it is. One thread at a time.
 */
#include <errno.h>
#include <sqlite3.h>

#include "base/assert.h"
#include "brokers/spool/faults.h"
#include "brokers/spool/store.h"

#define BYTES                                                                                  \
    "(ifnull(length(key), 0) + ifnull(length(ordering_key), 0) + ifnull(length(headers), 0) "  \
    "+ "                                                                                       \
    "ifnull(length(value), 0))"

static const char *const texts[LW_SPOOL_STATEMENTS] = {
    [LW_SPOOL_BEGIN] = "BEGIN IMMEDIATE",
    [LW_SPOOL_COMMIT] = "COMMIT",
    [LW_SPOOL_ROLLBACK] = "ROLLBACK",
    [LW_SPOOL_ADD_TOPIC] = "INSERT INTO topic (name, retention_ms) VALUES (?2, ?1)",
    [LW_SPOOL_ADD_PARTITION] = "INSERT INTO partition (topic_id, number) VALUES (?1, ?2)",
    [LW_SPOOL_ADD_POSITION] = "INSERT INTO position (partition_id, next, given, group_name) "
                              "VALUES (?1, ?2, ?2, ?3)",
    [LW_SPOOL_APPEND] = "INSERT INTO message (id, time_ms, event_ms, due_ms, key, "
                        "ordering_key, headers, value) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    [LW_SPOOL_SET_PARTITION] = "UPDATE partition SET next = ?2, bytes = ?3 WHERE id = ?1",
    [LW_SPOOL_READ] = "SELECT id, time_ms, event_ms, due_ms, key, ordering_key, headers, value "
                      "FROM message WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT ?3",
    [LW_SPOOL_READ_ONE] = "SELECT id, time_ms, event_ms, due_ms, key, ordering_key, headers, "
                          "value FROM message WHERE id = ?1",
    [LW_SPOOL_DUE] =
        "SELECT due_ms, offset, redeliveries FROM unsettled WHERE position_id = ?1 "
        "AND (due_ms, offset) > (?2, ?3) AND due_ms <= ?4 "
        "ORDER BY due_ms, offset LIMIT ?5",
    [LW_SPOOL_NEXT_DUE] = "SELECT due_ms FROM unsettled WHERE position_id = ?1 AND "
                          "(due_ms, offset) > (?2, ?3) ORDER BY due_ms, offset LIMIT 1",
    [LW_SPOOL_SET_POSITION] = "UPDATE position SET next = ?2, given = ?3 WHERE id = ?1",
    [LW_SPOOL_PUT_UNSETTLED] =
        "INSERT INTO unsettled (position_id, offset, redeliveries, "
        "due_ms) VALUES (?1, ?2, ?3, nullif(?4, -1)) ON CONFLICT DO UPDATE SET "
        "redeliveries = excluded.redeliveries, due_ms = excluded.due_ms",
    [LW_SPOOL_TAKE_UNSETTLED] = "UPDATE unsettled SET due_ms = NULL WHERE position_id = ?1 AND "
                                "offset = ?2",
    [LW_SPOOL_DROP_UNSETTLED] = "DELETE FROM unsettled WHERE position_id = ?1 AND offset = ?2",
    [LW_SPOOL_LEAST_UNSETTLED] = "SELECT offset FROM unsettled WHERE position_id = ?1 "
                                 "ORDER BY offset LIMIT 1",
    [LW_SPOOL_TRIM] = "DELETE FROM message WHERE id >= ?1 AND id < ?2 AND time_ms < ?3",
    [LW_SPOOL_TRIM_UNSETTLED] = "DELETE FROM unsettled WHERE position_id = ?1 AND offset < ?2",
    [LW_SPOOL_FIRST] = "SELECT id FROM message WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT 1",
    [LW_SPOOL_SIZES] = "SELECT id, time_ms, " BYTES " FROM message WHERE id >= ?1 AND id < ?2 "
                       "ORDER BY id LIMIT ?3",
    [LW_SPOOL_COUNT_WAITING] = "SELECT count(*) FROM unsettled WHERE position_id = ?1 AND "
                               "due_ms IS NOT NULL",
    [LW_SPOOL_FREE_TAKEN] = "UPDATE unsettled SET due_ms = 0 WHERE position_id = ?1 AND due_ms "
                            "IS NULL",
    [LW_SPOOL_PAGES] = "PRAGMA page_count",
    [LW_SPOOL_FREE_PAGES] = "PRAGMA freelist_count",
};

enum lw_status
lw_spool_statements_prepare(struct lw_spool_store *store, struct lw_error *ret_error)
{
    for (int i = 0; i < LW_SPOOL_STATEMENTS; i++) {
        if (sqlite3_prepare_v3(store->db, texts[i], -1, SQLITE_PREPARE_PERSISTENT,
                               &store->statements[i], NULL) != SQLITE_OK) {
            return lw_spool_fault_sqlite(store->path, store->db, "read", ret_error);
        }
    }
    return LW_STATUS_OK;
}

void
lw_spool_statements_finalize(struct lw_spool_store *store)
{
    for (int i = 0; i < LW_SPOOL_STATEMENTS; i++) {
        (void)sqlite3_finalize(store->statements[i]);
        store->statements[i] = NULL;
    }
}

bool
lw_spool_fail(struct lw_spool_store *store, const char *doing)
{
    (void)lw_spool_fault_sqlite(store->path, store->db, doing, &store->error);
    return false;
}

struct sqlite3_stmt *
lw_spool_bind(struct lw_spool_store *store, enum lw_spool_statement which,
              const int64_t *numbers, int count)
{
    struct sqlite3_stmt *statement = store->statements[which];
    for (int i = 0; i < count; i++) {
        int bound = sqlite3_bind_int64(statement, i + 1, numbers[i]);
        lw_assert(bound == SQLITE_OK);
    }
    return statement;
}

bool
lw_spool_run(struct lw_spool_store *store, enum lw_spool_statement which,
             const int64_t *numbers, int count)
{
    struct sqlite3_stmt *statement = lw_spool_bind(store, which, numbers, count);
    errno = 0; /* a failed COMMIT tells the system's reason by it alone */
    bool is_done = sqlite3_step(statement) == SQLITE_DONE;
    if (!is_done) {
        (void)lw_spool_fail(store, "write");
    }
    (void)sqlite3_reset(statement);
    return is_done;
}

bool
lw_spool_ask(struct lw_spool_store *store, enum lw_spool_statement which,
             const int64_t *numbers, int count, int64_t *ret_value)
{
    struct sqlite3_stmt *statement = lw_spool_bind(store, which, numbers, count);
    int code = sqlite3_step(statement);
    if (code == SQLITE_ROW && sqlite3_column_type(statement, 0) != SQLITE_NULL) {
        *ret_value = sqlite3_column_int64(statement, 0);
    } else if (code != SQLITE_DONE && code != SQLITE_ROW) {
        (void)lw_spool_fail(store, "read");
    }
    (void)sqlite3_reset(statement);
    return code == SQLITE_DONE || code == SQLITE_ROW;
}

bool
lw_spool_begin(struct lw_spool_store *store)
{
    lw_assert(!store->is_in_transaction);
    store->is_in_transaction = lw_spool_run(store, LW_SPOOL_BEGIN, NULL, 0);
    return store->is_in_transaction;
}

bool
lw_spool_commit(struct lw_spool_store *store)
{
    lw_assert(store->is_in_transaction);
    if (!lw_spool_run(store, LW_SPOOL_COMMIT, NULL, 0)) {
        return false;
    }
    store->is_in_transaction = false;
    return true;
}

/*
 * Some errors have rolled back already, and a rollback can fail too (memory): SQLite knows, and the
 * next one ends what is left. The reason of the failure stays the one that is kept.
 */
void
lw_spool_rollback(struct lw_spool_store *store)
{
    if (!sqlite3_get_autocommit(store->db)) {
        struct sqlite3_stmt *statement = store->statements[LW_SPOOL_ROLLBACK];
        (void)sqlite3_step(statement);
        (void)sqlite3_reset(statement);
    }
    store->is_in_transaction = false;
}

/* What it cannot move stays where it is, and is as durable there. */
void
lw_spool_checkpoint(struct lw_spool_store *store)
{
    (void)sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
}
