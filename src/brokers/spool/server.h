/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The owner's end of its socket: a few connections, one request of each at a time. Reading puts
 * publications among those that the next commit writes; answers follow the commit. A connection
 * that breaks the protocol or its bounds is closed; the others do not notice. The worker's thread.
 */
#ifndef LW_BROKERS_SPOOL_SERVER_H
#define LW_BROKERS_SPOOL_SERVER_H

#include <poll.h>

#include "brokers/spool/request.h"

enum { LW_SPOOL_GUESTS_MAX = 64 };

struct lw_spool_server;

/* NULL: nobody can connect, which the owner survives. Only a reader keeps the file for itself. */
struct lw_spool_server *lw_spool_server_create(const char *path, bool is_reader);
void lw_spool_server_destroy(struct lw_spool_server *server); /* NULL is fine */
/* Fills at most LW_SPOOL_GUESTS_MAX + 1 entries, and returns how many. */
size_t lw_spool_server_poll(struct lw_spool_server *server, struct pollfd *out);
/* What came; batches of publications are pushed to the list. `now` in ns, for patience. */
void
lw_spool_server_read(struct lw_spool_server *server, struct lw_list *ret_batches, uint64_t now);
/* After the commit: answers. `why`: what was wrong with the last write. */
void lw_spool_server_answer(struct lw_spool_server *server, struct lw_spool_store *store,
                            const char *why, uint64_t now);
/* Somebody was told that the file will be left to him. */
bool lw_spool_server_has_yielded(const struct lw_spool_server *server);
/* When somebody's patience ends, in ns; UINT64_MAX: nobody waits. */
uint64_t lw_spool_server_due(const struct lw_spool_server *server);

#endif
