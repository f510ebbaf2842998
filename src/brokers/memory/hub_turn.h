/* SPDX-License-Identifier: Apache-2.0 */
/* What the hub does as time goes by; every turn of every broker calls it, so it is idempotent. */
#ifndef LW_BROKERS_MEMORY_HUB_TURN_H
#define LW_BROKERS_MEMORY_HUB_TURN_H

#include "brokers/memory/data.h"

void lw_memory_hub_advance(struct lw_memory_hub *hub, uint64_t now);
uint64_t lw_memory_hub_due(const struct lw_memory_hub *hub);
/* The host whose time is the hub's: that of its first living broker, NULL without any. */
struct lw_host *lw_memory_hub_host(const struct lw_memory_hub *hub);

#endif
