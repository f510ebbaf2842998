/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults of the file: code, sentence, what to do. A full disk passes (someone makes room), so it
 * is retriable; a damaged file does not pass. Nothing here logs. Any thread.
 */
#include "brokers/spool/faults.h"

#include <errno.h>
#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

enum lw_status
lw_spool_fault_path(const char *path, int system_error, struct lw_error *ret_error)
{
    bool is_denied = system_error == EACCES || system_error == EPERM || system_error == EROFS;
    enum lw_status status = is_denied                ? LW_STATUS_DENIED
                            : system_error == ENOSPC ? LW_STATUS_UNAVAILABLE
                            : system_error == ENOENT ? LW_STATUS_NOT_FOUND
                                                     : LW_STATUS_SYSTEM;
    (void)lw_error_set(ret_error, status, system_error == ENOSPC ? "E0524" : "E0523",
                       "the spool \"%s\" cannot be opened: %s", path,
                       strerrordesc_np(system_error));
    lw_error_help(ret_error, "%s",
                  system_error == ENOENT ? "the folder must exist; the file is made by its "
                                           "first use"
                  : is_denied ? "file and folder must be writable: beside the file lie its "
                                "log and the owner's lock"
                              : "check the path, the disk and the process's limits");
    return status;
}

enum lw_status
lw_spool_fault_full(const char *path, struct lw_error *ret_error)
{
    (void)lw_error_set(ret_error, LW_STATUS_UNAVAILABLE, "E0524",
                       "the spool \"%s\" has no room: the disk or its limit is full", path);
    lw_error_help(ret_error,
                  "make room, or raise file_bytes_max; nothing that was confirmed is "
                  "lost, and publishing goes on by itself");
    if (ret_error) {
        ret_error->is_retriable = true;
    }
    return LW_STATUS_UNAVAILABLE;
}

static enum lw_status
damaged(const char *path, const char *words, struct lw_error *ret_error)
{
    (void)lw_error_set(ret_error, LW_STATUS_SYSTEM, "E0521", "the spool \"%s\" is damaged: %s",
                       path, words);
    lw_error_help(
        ret_error,
        "leave the file as it is and copy it with its -wal; \"sqlite3 FILE .recover\" "
        "reads what can be read; start with another file");
    if (ret_error) {
        ret_error->is_fatal = true;
    }
    return LW_STATUS_SYSTEM;
}

enum lw_status
lw_spool_fault_foreign(const char *path, struct lw_error *ret_error)
{
    (void)lw_error_set(ret_error, LW_STATUS_SYSTEM, "E0521", "\"%s\" is no spool of Laneway",
                       path);
    lw_error_help(ret_error, "name another file; this one was not changed");
    if (ret_error) {
        ret_error->is_fatal = true;
    }
    return LW_STATUS_SYSTEM;
}

/* Whoever has a spool holds its lock, so it is none of ours; or it has another name of the file. */
static enum lw_status
busy(const char *path, struct lw_error *ret_error)
{
    (void)lw_error_set(ret_error, LW_STATUS_UNAVAILABLE, "E0520",
                       "the spool \"%s\" is open in another program", path);
    lw_error_help(ret_error, "end that program, such as sqlite3 or a backup; or it is another "
                             "Laneway that has the file by another name, as through a link");
    if (ret_error) {
        ret_error->is_retriable = true;
    }
    return LW_STATUS_UNAVAILABLE;
}

static bool
is_full(int code, int system_error)
{
    return code == SQLITE_FULL ||
           (code == SQLITE_IOERR &&
            (system_error == ENOSPC || system_error == EFBIG || system_error == EDQUOT));
}

/* Right behind the call that failed: the system's own reason may stand in errno only. */
enum lw_status
lw_spool_fault_sqlite(const char *path, struct sqlite3 *db, const char *doing,
                      struct lw_error *ret_error)
{
    int code = db ? sqlite3_errcode(db) : SQLITE_NOMEM;
    int system_error = db && sqlite3_system_errno(db) ? sqlite3_system_errno(db) : errno;
    const char *words = db ? sqlite3_errmsg(db) : "out of memory";
    bool is_io = code == SQLITE_IOERR && system_error != 0;
    if (is_full(code, system_error)) {
        return lw_spool_fault_full(path, ret_error);
    }
    if (code == SQLITE_CORRUPT) {
        return damaged(path, words, ret_error);
    }
    if (code == SQLITE_NOTADB) {
        return lw_spool_fault_foreign(path, ret_error);
    }
    if (code == SQLITE_NOMEM) {
        return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "",
                            "no memory for the spool \"%s\"", path);
    }
    if (code == SQLITE_BUSY || code == SQLITE_LOCKED) {
        return busy(path, ret_error);
    }
    if (code == SQLITE_READONLY || code == SQLITE_CANTOPEN || code == SQLITE_PERM) {
        return lw_spool_fault_path(path, system_error ? system_error : EACCES, ret_error);
    }
    (void)lw_error_set(ret_error, LW_STATUS_SYSTEM, "E0525",
                       "cannot %s the spool \"%s\": %s%s%s", doing, path, words,
                       is_io ? ": " : "", is_io ? strerrordesc_np(system_error) : "");
    lw_error_help(ret_error,
                  "look at the disk and the system's log; nothing that was confirmed "
                  "is lost, and writing is tried again");
    if (ret_error) {
        ret_error->is_retriable = true;
    }
    return LW_STATUS_SYSTEM;
}

enum lw_status
lw_spool_fault_owned(const char *path, long pid, struct lw_error *ret_error)
{
    if (pid == (long)getpid()) {
        (void)lw_error_set(ret_error, LW_STATUS_UNAVAILABLE, "E0520",
                           "the spool \"%s\" is in use by this process, as another broker",
                           path);
        lw_error_help(ret_error,
                      "name the file once, and use that broker in every pipeline; or "
                      "it is a process of another container, which has this number, "
                      "too");
        return LW_STATUS_UNAVAILABLE;
    }
    if (pid > 0) {
        (void)lw_error_set(ret_error, LW_STATUS_UNAVAILABLE, "E0520",
                           "the spool \"%s\" is in use by process %ld", path, pid);
    } else {
        (void)lw_error_set(ret_error, LW_STATUS_UNAVAILABLE, "E0520",
                           "the spool \"%s\" is in use by another process", path);
    }
    lw_error_help(ret_error,
                  "one process reads a spool: stop that one, put both pipelines into "
                  "one service, or use another file");
    return LW_STATUS_UNAVAILABLE;
}

enum lw_status
lw_spool_fault_newer(const char *path, int found, int known, struct lw_error *ret_error)
{
    (void)lw_error_set(
        ret_error, LW_STATUS_UNSUPPORTED, "E0522",
        "the spool \"%s\" was written by a newer Laneway: version %d of its form, "
        "this one knows %d",
        path, found, known);
    lw_error_help(ret_error, "use the newer Laneway; the file was not changed");
    return LW_STATUS_UNSUPPORTED;
}
