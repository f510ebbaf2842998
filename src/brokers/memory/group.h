/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Consumer groups, for hubs that settle by position: the rebalance (states in data.h) and what is
 * committed. As with the real broker nobody guards ownership: a member in good standing may
 * commit any partition, also backwards.
 */
#ifndef LW_BROKERS_MEMORY_GROUP_H
#define LW_BROKERS_MEMORY_GROUP_H

#include "brokers/memory/data.h"

struct lw_memory_group *lw_memory_group_find(const struct lw_memory_hub *hub, const char *name);
/* Finds or makes it; NULL without memory. */
struct lw_memory_group *lw_memory_group_use(struct lw_memory_hub *hub, const char *name);
void lw_memory_group_destroy(struct lw_memory_group *group);
/* A rebalance is wanted: somebody came, went, or a topic grew. */
void lw_memory_group_want(struct lw_memory_group *group);
/* All members take a turn, since something that is due has changed. */
void lw_memory_group_poke(struct lw_memory_group *group);
/* Does what is due: expires the dead, expels the late, revokes, assigns. */
void
lw_memory_group_advance(struct lw_memory_hub *hub, struct lw_memory_group *group, uint64_t now);
uint64_t lw_memory_group_due(const struct lw_memory_group *group);
/* The committed position, -1 none. */
int64_t lw_memory_group_committed(const struct lw_memory_group *group,
                                  const struct lw_memory_partition *partition,
                                  const char **ret_metadata);
/* Copies metadata; NO_MEMORY and nothing changed. */
enum lw_status lw_memory_group_commit(struct lw_memory_group *group,
                                      const struct lw_memory_partition *partition,
                                      int64_t position, const char *metadata);

#endif
