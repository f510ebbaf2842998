/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A map of ranks: nodes of dense priority ranks (0 is best), each rank a ring. First in the best
 * rank is found in O(1) by a two-level bitmap (64 x 64 = 4,096 ranks); equals take turns because
 * the caller rotates. No allocation after init; joining and leaving are O(1); joining in turn
 * passes as many as there are to the nearer end.
 */
#ifndef LW_CORE_RANKS_H
#define LW_CORE_RANKS_H

#include <stdbool.h>
#include <stdint.h>

#include <laneway/laneway.h>

#include "base/list.h"

#define LW_RANKS_MAX 4096

struct lw_rank_node {
    struct lw_list link;
    uint64_t turn; /* when it last had one, by the caller's count; 0: never */
    uint32_t rank;
    bool is_in;
};

struct lw_ranks {
    uint64_t top;
    uint64_t words[64];
    struct lw_list *rings; /* by rank */
    uint32_t count;        /* of ranks */
};

enum lw_status lw_ranks_init(struct lw_ranks *ranks, uint32_t count);
void lw_ranks_deinit(struct lw_ranks *ranks);
void lw_rank_node_init(struct lw_rank_node *node, uint32_t rank);

/* Before `at`, which is in its ring or the ring's head. */
static inline void
lw_ranks_add_before(struct lw_ranks *ranks, struct lw_list *at, struct lw_rank_node *node)
{
    lw_list_insert(at, &node->link);
    ranks->words[node->rank >> 6] |= UINT64_C(1) << (node->rank & 63);
    ranks->top |= UINT64_C(1) << (node->rank >> 6);
    node->is_in = true;
}

/* At the end of its ring. */
static inline void
lw_ranks_add(struct lw_ranks *ranks, struct lw_rank_node *node)
{
    if (!node->is_in) {
        lw_ranks_add_before(ranks, &ranks->rings[node->rank], node);
    }
}

static inline uint64_t
lw_rank_turn(const struct lw_list *link)
{
    return LW_CONTAINER_CONST(link, struct lw_rank_node, link)->turn;
}

/*
 * Behind those whose last turn came before its own: who was away loses no turn by it. Its place is
 * looked for from both ends, near one of which it is: who had a turn just now, or long ago.
 */
static inline void
lw_ranks_add_in_turn(struct lw_ranks *ranks, struct lw_rank_node *node)
{
    if (node->is_in) {
        return;
    }
    struct lw_list *ring = &ranks->rings[node->rank];
    struct lw_list *at = ring;
    struct lw_list *first = ring->next;
    while (at->prev != ring && lw_rank_turn(at->prev) > node->turn) {
        if (lw_rank_turn(first) > node->turn) {
            at = first;
            break;
        }
        at = at->prev;
        first = first->next;
    }
    lw_ranks_add_before(ranks, at, node);
}

static inline void
lw_ranks_remove(struct lw_ranks *ranks, struct lw_rank_node *node)
{
    if (!node->is_in) {
        return;
    }
    node->is_in = false;
    lw_list_remove(&node->link);
    if (lw_list_is_empty(&ranks->rings[node->rank])) {
        uint64_t *word = &ranks->words[node->rank >> 6];
        *word &= ~(UINT64_C(1) << (node->rank & 63));
        if (*word == 0) {
            ranks->top &= ~(UINT64_C(1) << (node->rank >> 6));
        }
    }
}

/* The node whose turn it is in the best rank, or NULL. */
static inline struct lw_rank_node *
lw_ranks_first(const struct lw_ranks *ranks)
{
    if (ranks->top == 0) {
        return NULL;
    }
    uint32_t high = (uint32_t)__builtin_ctzll(ranks->top);
    uint32_t rank = high * 64 + (uint32_t)__builtin_ctzll(ranks->words[high]);
    return LW_CONTAINER(ranks->rings[rank].next, struct lw_rank_node, link);
}

/* To the end of its ring: the others of its rank come first now. */
static inline void
lw_ranks_rotate(struct lw_ranks *ranks, struct lw_rank_node *node)
{
    struct lw_list *ring = &ranks->rings[node->rank];
    if (ring->prev != &node->link) {
        lw_list_remove(&node->link);
        lw_list_push(ring, &node->link);
    }
}

#endif
