/* SPDX-License-Identifier: Apache-2.0 */
/* What goes wrong with a spool's file, in words for a person. */
#ifndef LW_BROKERS_SPOOL_FAULTS_H
#define LW_BROKERS_SPOOL_FAULTS_H

#include <laneway/laneway.h>

struct sqlite3;

/* A file or folder that cannot be opened, made or locked. Returns the status. */
enum lw_status
lw_spool_fault_path(const char *path, int system_error, struct lw_error *ret_error);
/* What SQLite says of its last call. `doing`: "open", "write", "read". */
enum lw_status lw_spool_fault_sqlite(const char *path, struct sqlite3 *db, const char *doing,
                                     struct lw_error *ret_error);
enum lw_status lw_spool_fault_full(const char *path, struct lw_error *ret_error);
enum lw_status lw_spool_fault_owned(const char *path, long pid, struct lw_error *ret_error);
enum lw_status lw_spool_fault_foreign(const char *path, struct lw_error *ret_error);
enum lw_status
lw_spool_fault_newer(const char *path, int found, int known, struct lw_error *ret_error);

#endif
