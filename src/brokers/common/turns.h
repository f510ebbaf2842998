/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose turn it is: the partitions of a source that may have something, in a ring. Each gives a
 * share before the next has its turn, so that none starves another. Inline, since every batch
 * passes here; one thread.
 */
#ifndef LW_BROKERS_COMMON_TURNS_H
#define LW_BROKERS_COMMON_TURNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

#define LW_TURN_SHARE_MIN 64 /* messages; less would pay the change of turns too often */

struct lw_turns {
    struct lw_list ring;
    uint32_t count;
};

static inline void
lw_turns_init(struct lw_turns *turns)
{
    lw_list_init(&turns->ring);
    turns->count = 0;
}

/* Its turn comes after all that are in; nothing happens when it is in. */
static inline void
lw_turns_add(struct lw_turns *turns, struct lw_list *node)
{
    if (lw_list_is_empty(node)) {
        lw_list_push(&turns->ring, node);
        turns->count++;
    }
}

static inline void
lw_turns_remove(struct lw_turns *turns, struct lw_list *node)
{
    if (!lw_list_is_empty(node)) {
        lw_list_remove(node);
        turns->count--;
    }
}

/* Takes out whose turn it is; not when empty. */
static inline struct lw_list *
lw_turns_next(struct lw_turns *turns)
{
    struct lw_list *node = turns->ring.next;
    lw_turns_remove(turns, node);
    return node;
}

/* What the one whose turn it is may give of n; before it is taken out. */
static inline size_t
lw_turns_share(const struct lw_turns *turns, size_t n)
{
    size_t share = n / turns->count;
    share = share < LW_TURN_SHARE_MIN ? LW_TURN_SHARE_MIN : share;
    return share < n ? share : n;
}

#endif
