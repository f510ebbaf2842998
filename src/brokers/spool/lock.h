/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who owns a spool: an exclusive lock on PATH-owner, which holds the owner's process id as text
 * and is never removed, so that two cannot lock two files of one name. The kernel ends the lock
 * with the process, however it dies. It is not on the database itself: SQLite's own locks there
 * would end with the first descriptor that is closed.
 */
#ifndef LW_BROKERS_SPOOL_LOCK_H
#define LW_BROKERS_SPOOL_LOCK_H

#include <laneway/laneway.h>

struct lw_spool_lock {
    int fd; /* -1: not held */
};

/*
 * Takes the lock. ALREADY: somebody has it; *ret_pid says who (0: not known), ret_error is not
 * touched. May be NULL.
 */
enum lw_status lw_spool_lock_take(struct lw_spool_lock *lock, const char *path, long *ret_pid,
                                  struct lw_error *ret_error);
void lw_spool_lock_release(struct lw_spool_lock *lock);

#endif
