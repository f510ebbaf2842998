/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stage for lanes and the scheduler: subscriptions with one partition each and deliveries made
 * by hand, without a broker. A delivery is held by its partition from stage_make to stage_end.
 */
#ifndef TESTS_CORE_STAGE_H
#define TESTS_CORE_STAGE_H

#include "core/partition.h"
#include "core/scheduler.h"

struct stage_topic {
    struct lw_subscription subscription;
    struct lw_partition partition;
    int64_t next; /* position of the next message */
};

/* `has_ledger`: its first held delivery blocks a commit. */
void stage_topic_init(struct stage_topic *topic, uint32_t index, uint32_t rank,
                      enum lw_ordering ordering, enum lw_keyless keyless, bool has_ledger);
/* A QUEUED delivery with that key (NULL: none); not admitted yet. */
struct lw_delivery *stage_make(struct stage_topic *topic, const char *key);
/* Makes and admits one. */
struct lw_delivery *
stage_admit(struct lw_scheduler *scheduler, struct stage_topic *topic, const char *key);
/* A chosen one ended: slot, lane and place in its partition come back; it is freed. */
void stage_end(struct lw_scheduler *scheduler, struct lw_delivery *delivery);
/* A chosen one waits for a retry: its slot comes back. */
void stage_park(struct lw_scheduler *scheduler, struct lw_delivery *delivery);
/* Frees it without telling the scheduler. */
void stage_free(struct lw_delivery *delivery);

#endif
