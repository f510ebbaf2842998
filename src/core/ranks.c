/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the map of ranks that is not on the path of a message: making and ending it. One
 * ring head per rank, so that joining and leaving never allocate. A heap was rejected, since its
 * cost grows with the number of subscriptions. Loop thread.
 */
#include "core/ranks.h"

#include "base/alloc.h"

enum lw_status
lw_ranks_init(struct lw_ranks *ranks, uint32_t count)
{
    *ranks = (struct lw_ranks){ 0 };
    if (count == 0 || count > LW_RANKS_MAX) {
        return LW_STATUS_INVALID;
    }
    ranks->rings = lw_alloc_array(count, sizeof(*ranks->rings));
    if (ranks->rings == NULL) {
        return LW_STATUS_NO_MEMORY;
    }
    ranks->count = count;
    for (uint32_t i = 0; i < count; i++) {
        lw_list_init(&ranks->rings[i]);
    }
    return LW_STATUS_OK;
}

void
lw_ranks_deinit(struct lw_ranks *ranks)
{
    lw_free(ranks->rings);
    *ranks = (struct lw_ranks){ 0 };
}

void
lw_rank_node_init(struct lw_rank_node *node, uint32_t rank)
{
    lw_list_init(&node->link);
    node->rank = rank;
    node->turn = 0;
    node->is_in = false;
}
