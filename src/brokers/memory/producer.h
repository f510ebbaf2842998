/* SPDX-License-Identifier: Apache-2.0 */
/* One broker's publications: accepted in order, stored in order, each with one receipt. */
#ifndef LW_BROKERS_MEMORY_PRODUCER_H
#define LW_BROKERS_MEMORY_PRODUCER_H

#include "brokers/memory/data.h"

size_t lw_memory_producer_publish(struct lw_memory_broker *broker,
                                  struct lw_publication *const items[], size_t n);
/* Stores what is due and sends the receipts; tells of room. */
void lw_memory_producer_advance(struct lw_memory_broker *broker, uint64_t now);
uint64_t lw_memory_producer_due(const struct lw_memory_broker *broker);
/* Ends all that waits with receipts UNKNOWN, stored or not. */
void lw_memory_producer_end(struct lw_memory_broker *broker, bool is_stored);

#endif
