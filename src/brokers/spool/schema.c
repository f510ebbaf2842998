/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file's form: what it must look like before anything is read from it or written to it. A file
 * of a newer version, of another program or with damage is refused and left as it is. The one
 * connection excludes all others (locking_mode), so SQLite keeps the index of its log in memory.
 * What a crash left is turned into deliveries that count (see store.h). Before the thread starts.
 */
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "brokers/spool/faults.h"
#include "brokers/spool/store.h"

enum { PATH_BYTES = 4096, SPARE_PAGES_MAX = 1024 };

static const char tables[] =
    "CREATE TABLE topic (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,"
    " retention_ms INTEGER NOT NULL);"
    "CREATE TABLE partition (id INTEGER PRIMARY KEY, topic_id INTEGER NOT NULL,"
    " number INTEGER NOT NULL, next INTEGER NOT NULL DEFAULT 0,"
    " bytes INTEGER NOT NULL DEFAULT 0, UNIQUE (topic_id, number));"
    "CREATE TABLE message (id INTEGER PRIMARY KEY, time_ms INTEGER NOT NULL, event_ms INTEGER,"
    " due_ms INTEGER, key BLOB, ordering_key BLOB, headers BLOB, value BLOB);"
    "CREATE TABLE position (id INTEGER PRIMARY KEY, partition_id INTEGER NOT NULL,"
    " group_name TEXT NOT NULL, next INTEGER NOT NULL, given INTEGER NOT NULL,"
    " UNIQUE (partition_id, group_name));"
    "CREATE TABLE unsettled (position_id INTEGER NOT NULL, offset INTEGER NOT NULL,"
    " redeliveries INTEGER NOT NULL, due_ms INTEGER, PRIMARY KEY (position_id, offset))"
    " WITHOUT ROWID;"
    "CREATE INDEX unsettled_due ON unsettled (position_id, due_ms, offset);"
    "PRAGMA application_id = 1282892153;"
    "PRAGMA user_version = 1;";

/* What was out when the process died was delivered once more than is written. */
static const char recovery[] =
    "UPDATE unsettled SET due_ms = 0, redeliveries = redeliveries + 1 WHERE position_id IN"
    " (SELECT id FROM position) AND due_ms IS NULL;"
    "INSERT OR IGNORE INTO unsettled (position_id, offset, redeliveries, due_ms)"
    " SELECT p.id, m.id - (p.partition_id << 44), 1, 0 FROM position p JOIN message m"
    " ON m.id >= (p.partition_id << 44) + p.next AND m.id < (p.partition_id << 44) + p.given"
    " WHERE p.given > p.next;"
    "UPDATE position SET next = given WHERE given > next;";

static enum lw_status
fail(struct lw_spool_store *store, struct lw_error *ret_error)
{
    return lw_spool_fault_sqlite(store->path, store->db, "open", ret_error);
}

static enum lw_status
execute(struct lw_spool_store *store, const char *text, struct lw_error *ret_error)
{
    if (sqlite3_exec(store->db, text, NULL, NULL, NULL) != SQLITE_OK) {
        return fail(store, ret_error);
    }
    return LW_STATUS_OK;
}

static enum lw_status
ask_number(struct lw_spool_store *store, const char *text, int64_t *ret_value,
           struct lw_error *ret_error)
{
    struct sqlite3_stmt *statement = NULL;
    enum lw_status status = LW_STATUS_OK;
    if (sqlite3_prepare_v2(store->db, text, -1, &statement, NULL) != SQLITE_OK ||
        sqlite3_step(statement) != SQLITE_ROW) {
        status = fail(store, ret_error);
    } else {
        *ret_value = sqlite3_column_int64(statement, 0);
    }
    (void)sqlite3_finalize(statement);
    return status;
}

/* A new file has no tables; the marks say whose it is. */
static enum lw_status
check_marks(struct lw_spool_store *store, bool *ret_is_new, struct lw_error *ret_error)
{
    int64_t application = 0;
    int64_t version = 0;
    int64_t objects = 0;
    enum lw_status status = ask_number(store, "PRAGMA application_id", &application, ret_error);
    if (status == LW_STATUS_OK) {
        status = ask_number(store, "PRAGMA user_version", &version, ret_error);
    }
    if (status == LW_STATUS_OK) {
        status = ask_number(store, "SELECT count(*) FROM sqlite_schema", &objects, ret_error);
    }
    if (status != LW_STATUS_OK) {
        return status;
    }
    *ret_is_new = application == 0 && version == 0 && objects == 0;
    if (*ret_is_new) {
        return LW_STATUS_OK;
    }
    if (application != LW_SPOOL_APPLICATION) {
        return lw_spool_fault_foreign(store->path, ret_error);
    }
    if (version > LW_SPOOL_SCHEMA) {
        return lw_spool_fault_newer(store->path, (int)version, LW_SPOOL_SCHEMA, ret_error);
    }
    return LW_STATUS_OK;
}

/* Durability and memory of the connection; the file is not written by them. */
static enum lw_status
set_pragmas(struct lw_spool_store *store, struct lw_error *ret_error)
{
    static const char *const words[] = { "FULL", "NORMAL", "OFF" };
    char text[256];
    (void)snprintf(text, sizeof text,
                   "PRAGMA synchronous = %s; PRAGMA temp_store = MEMORY;"
                   "PRAGMA cache_size = -16384; PRAGMA journal_size_limit = 67108864;",
                   words[store->options.synchronous]);
    return execute(store, text, ret_error);
}

/*
 * Publications may not take the last eighth, since what makes room (a row for what is delayed or
 * was overtaken) may need some first; as much is there for it in a file that is full already, into
 * which a start wrote what a crash had left to write.
 */
static enum lw_status
limit_file(struct lw_spool_store *store, struct lw_error *ret_error)
{
    char text[64];
    int64_t page = 4096;
    int64_t count = 0;
    if (store->options.file_bytes_max == 0) {
        return LW_STATUS_OK;
    }
    enum lw_status status = ask_number(store, "PRAGMA page_size", &page, ret_error);
    if (status == LW_STATUS_OK) {
        status = ask_number(store, "PRAGMA page_count", &count, ret_error);
    }
    if (status == LW_STATUS_OK) {
        int64_t most = (int64_t)(store->options.file_bytes_max / (uint64_t)page);
        int64_t spare = most / 8 < SPARE_PAGES_MAX ? most / 8 : SPARE_PAGES_MAX;
        store->pages_max = most > spare ? most - spare : 1;
        most = most > count + spare ? most : count + spare;
        (void)snprintf(text, sizeof text, "PRAGMA max_page_count = %lld",
                       (long long)(most > 0 ? most : 1));
        status = execute(store, text, ret_error);
    }
    return status;
}

/* Turns the log on, which needs the file to be writable. */
static enum lw_status
begin_log(struct lw_spool_store *store, bool is_new, struct lw_error *ret_error)
{
    char text[sizeof tables + 64];
    enum lw_status status = execute(store, "PRAGMA journal_mode = WAL", ret_error);
    if (status == LW_STATUS_OK && is_new) {
        (void)snprintf(text, sizeof text, "BEGIN IMMEDIATE; %s COMMIT;", tables);
        status = execute(store, text, ret_error);
    }
    if (status == LW_STATUS_OK) {
        status = set_pragmas(store, ret_error);
    }
    if (status == LW_STATUS_OK && !is_new) {
        char steps[sizeof recovery + 64];
        (void)snprintf(steps, sizeof steps, "BEGIN IMMEDIATE; %s COMMIT;", recovery);
        status = execute(store, steps, ret_error);
    }
    return status == LW_STATUS_OK ? limit_file(store, ret_error) : status;
}

bool
lw_spool_is_there(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 || errno != ENOENT;
}

/* Made here, since messages are nobody else's; SQLite gives its log the same mode. */
static enum lw_status
make_file(const char *path, struct lw_error *ret_error)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600);
    if (fd < 0) {
        return lw_spool_fault_path(path, errno, ret_error);
    }
    (void)close(fd);
    return LW_STATUS_OK;
}

/* SQLite opens what it may not write for reading, and would say so much later. */
static enum lw_status
check_access(const char *path, bool is_made, struct lw_error *ret_error)
{
    struct stat info;
    if (stat(path, &info) != 0) {
        return errno == ENOENT && is_made ? make_file(path, ret_error)
                                          : lw_spool_fault_path(path, errno, ret_error);
    }
    if (!S_ISREG(info.st_mode)) {
        return lw_spool_fault_path(path, S_ISDIR(info.st_mode) ? EISDIR : EINVAL, ret_error);
    }
    return faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) == 0
               ? LW_STATUS_OK
               : lw_spool_fault_path(path, errno, ret_error);
}

/* ":memory:" and "file:..." are files like all others, which SQLite would not think. */
static int
open_file(struct lw_spool_store *store, int flags)
{
    char name[PATH_BYTES];
    int length = snprintf(name, sizeof name, "%s%s", store->path[0] == '/' ? "" : "./",
                          store->path);
    return length > 0 && (size_t)length < sizeof name
               ? sqlite3_open_v2(name, &store->db, flags, NULL)
               : SQLITE_CANTOPEN;
}

enum lw_status
lw_spool_schema_open(struct lw_spool_store *store, bool is_made, struct lw_error *ret_error)
{
    bool is_new = false;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX |
                (is_made ? SQLITE_OPEN_CREATE : 0);
    enum lw_status status = check_access(store->path, is_made, ret_error);
    if (status != LW_STATUS_OK) {
        return status;
    }
    if (open_file(store, flags) != SQLITE_OK) {
        return fail(store, ret_error);
    }
    (void)sqlite3_extended_result_codes(store->db, 0);
    status = execute(store, "PRAGMA locking_mode = EXCLUSIVE", ret_error);
    if (status == LW_STATUS_OK) {
        status = check_marks(store, &is_new, ret_error);
    }
    if (status == LW_STATUS_OK) {
        status = begin_log(store, is_new, ret_error);
    }
    return status;
}
