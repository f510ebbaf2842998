/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the dispatcher's history into a file, one JSON object a line, so that an oracle outside
 * of the process can judge what a real run did. Switched on by LANEWAY_HISTORY=FILE. The file is
 * a shared mapping: what was recorded survives a SIGKILL at any instant without one call of the
 * system per event. Behind the last line it may hold zero bytes, which a reader skips. Loop
 * thread.
 */
#ifndef LW_SERVICE_HISTORY_FILE_H
#define LW_SERVICE_HISTORY_FILE_H

#include "dispatcher/dispatcher.h"

struct lw_history_file;

/* Creates or empties `path` and joins the dispatcher, which must not have started. */
LW_MUST_USE enum lw_status
lw_history_file_open(struct lw_dispatcher *dispatcher, const char *path,
                     struct lw_history_file **ret_file, struct lw_error *ret_error);
/* Leaves the dispatcher, cuts the file behind its last line, frees. NULL is fine. */
void lw_history_file_close(struct lw_history_file *file);

#endif
