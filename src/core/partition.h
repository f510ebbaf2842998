/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One ownership of one partition: from its assignment to its end. Owns the list of held
 * deliveries in the order of their positions (the first is the lowest unfinished one, the
 * blocking head) and, where the broker settles by position, the offsets ledger. Leaves lanes to
 * core/lane, since a lane outlives an ownership.
 */
#ifndef LW_CORE_PARTITION_H
#define LW_CORE_PARTITION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "core/offsets.h"

struct lw_subscription;
struct lw_delivery;

struct lw_partition {
    struct lw_list held;  /* lw_delivery.held, by position */
    struct lw_list dirty; /* in the dispatcher's list of partitions with a commit to make */
    struct lw_subscription *subscription;
    const char *topic; /* the broker's string */
    int32_t number;
    uint32_t slot;
    uint64_t generation;
    uint64_t place; /* names (subscription, partition number) for lanes, exactly */
    bool is_plain;  /* has a ledger, not ended, nothing stashed: the ordinary case */
    bool is_acked;  /* the same without a ledger: its messages are settled one by one */
    bool is_dirty;  /* in the list of partitions with a commit to make */
    uint32_t held_count;
    bool has_ledger;
    bool is_ended; /* its generation is over; freed when held is empty */
    bool is_companion;
    bool is_window_full; /* offset_window: too much is done beyond the first unfinished */
    uint64_t received_bytes;
    struct lw_delivery *oldest_pinned; /* the first held one that pins client memory, or NULL */
    struct lw_offsets offsets;
    int64_t tail;          /* an end of the log that did not fit the window yet, -1 none */
    int64_t blocking;      /* the position that was said to block commits for long, -1 none */
    int64_t committed;     /* last position accepted by the broker, -1 none */
    int64_t committing;    /* in flight, -1 none */
    uint32_t completed;    /* settled since the last commit was sent */
    struct lw_queue stash; /* received, QUEUED, not opened yet: the offsets window is full */
    uint32_t stash_count;
    bool is_unstashing;  /* what is dropped on the way must not begin it again */
    struct lw_list link; /* of the subscription */
};

/* To be called after anything that `is_plain` and `is_acked` depend on changed. */
static inline void
lw_partition_update(struct lw_partition *partition)
{
    bool is_open = !partition->is_ended && partition->stash.first == NULL;
    partition->is_plain = is_open && partition->has_ledger;
    partition->is_acked = is_open && !partition->has_ledger;
}

#endif
