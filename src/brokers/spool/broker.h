/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A durable broker for one machine: queues in one file, "spool:orders.db", without a server. One
 * process owns the file; others publish and look through its socket. Messages are settled one by
 * one. How the file is used is in store.h, the thread that does it in worker.h.
 */
#ifndef LW_BROKERS_SPOOL_BROKER_H
#define LW_BROKERS_SPOOL_BROKER_H

#include <laneway/plugin.h>

const struct lw_broker_ops *lw_spool_broker_ops(void);
/* How many transactions were committed; known after CLOSED. For benches. */
uint64_t lw_spool_broker_commits(struct lw_broker *broker);

#endif
