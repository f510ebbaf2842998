/* SPDX-License-Identifier: Apache-2.0 */
/* The commit of one broker: at most one in flight, answered by a COMMITTED event. */
#ifndef LW_BROKERS_MEMORY_COMMIT_H
#define LW_BROKERS_MEMORY_COMMIT_H

#include "brokers/memory/data.h"

enum lw_status lw_memory_commit_begin(struct lw_memory_broker *broker,
                                      const struct lw_commit_item *items, size_t n);
void lw_memory_commit_advance(struct lw_memory_broker *broker, uint64_t now);
uint64_t lw_memory_commit_due(const struct lw_memory_broker *broker);
/* Ends it with the answer UNKNOWN, stored or not. */
void lw_memory_commit_end(struct lw_memory_broker *broker, bool is_stored);

#endif
