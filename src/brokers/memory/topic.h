/* SPDX-License-Identifier: Apache-2.0 */
/* Topics and their partitions: finding, making, growing them, and putting messages in. */
#ifndef LW_BROKERS_MEMORY_TOPIC_H
#define LW_BROKERS_MEMORY_TOPIC_H

#include "brokers/memory/data.h"

#define LW_MEMORY_PARTITIONS_MAX 10000

struct lw_memory_topic *lw_memory_topic_find(const struct lw_memory_hub *hub, const char *name);
/* Finds it, or makes it with that many partitions, or adds the missing ones. */
enum lw_status lw_memory_topic_make(struct lw_memory_hub *hub, const char *name,
                                    int32_t partitions, struct lw_memory_topic **ret_topic);
/* Finds it, or makes it if the hub does so on first use; partitions 0: the hub's default. */
struct lw_memory_topic *
lw_memory_topic_use(struct lw_memory_hub *hub, const char *name, int32_t partitions);
void lw_memory_topic_destroy(struct lw_memory_topic *topic);
struct lw_memory_partition *
lw_memory_topic_partition(const struct lw_memory_topic *topic,
                          int32_t number); /* NULL when there is none */
/* Stores a message and wakes the readers; the outputs may be NULL. */
enum lw_status lw_memory_topic_append(struct lw_memory_hub *hub, struct lw_memory_topic *topic,
                                      const struct lw_memory_item *item, int32_t *ret_partition,
                                      int64_t *ret_position);
struct lw_memory_view lw_memory_partition_view(const struct lw_memory_partition *partition,
                                               const struct lw_memory_record *record);
void lw_memory_partition_wake(struct lw_memory_partition *partition);

#endif
