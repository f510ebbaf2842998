/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The offsets ledger of one partition: which positions were opened (fetched), which are done,
 * and what is safe to commit. Pure. A ring bitmap over [base, next): a set bit is done. Positions
 * that do not exist (compaction, transaction markers, retention) count as done as soon as a
 * higher one is opened or `lw_offsets_advance_to` closes the tail. Opening ascends; completing
 * comes in any order. The ring starts at 65,536 positions (8 KiB, made on first use), doubles up
 * to `window_max`, then open answers AGAIN: the partition stops receiving (`offset_window`).
 * A hole larger than the ring waits for an empty ledger, then moves the base.
 *
 * Invariant (P2): lw_offsets_safe never passes the first position that is opened and not done.
 * Cost: open and done are O(1) without a hole; safe is amortised O(positions / 64).
 */
#ifndef LW_CORE_OFFSETS_H
#define LW_CORE_OFFSETS_H

#include <stdbool.h>
#include <stdint.h>

#include <laneway/laneway.h>

struct lw_offsets {
    uint64_t *bits;       /* NULL until the first position that is opened */
    uint64_t mask;        /* ring size in positions - 1, a power of two >= 64 less one */
    uint64_t reach;       /* how far from base a position fits: within ring and window */
    int64_t base;         /* all below is done (or was never ours) */
    int64_t next;         /* the next position that may be opened; base <= next */
    uint64_t open;        /* opened and not done */
    uint64_t done_beyond; /* done, not yet below base (holes included) */
    uint32_t window_max;
};

/* start: the first position that may come; -1: the first opened one decides. */
void lw_offsets_init(struct lw_offsets *offsets, int64_t start, uint32_t window_max);
void lw_offsets_deinit(struct lw_offsets *offsets);

/* Slow paths of the two inline functions below. */
enum lw_status lw_offsets_open_slow(struct lw_offsets *offsets, int64_t position);
/*
 * Opens a position >= next; the positions skipped become done. AGAIN: it does not fit the
 * window now (nothing changed). ALREADY: below next (nothing changed). NO_MEMORY.
 */
static inline enum lw_status
lw_offsets_open(struct lw_offsets *offsets, int64_t position)
{
    if (__builtin_expect(position == offsets->next && offsets->bits != NULL &&
                             (uint64_t)(position - offsets->base) <= offsets->reach,
                         1)) {
        offsets->next = position + 1;
        offsets->open++;
        return LW_STATUS_OK;
    }
    return lw_offsets_open_slow(offsets, position);
}

/* True when position is opened and not done. */
bool lw_offsets_is_open(const struct lw_offsets *offsets, int64_t position);

/* Completes an opened position; false when it is not open (done before, or never opened). */
static inline bool
lw_offsets_done(struct lw_offsets *offsets, int64_t position)
{
    if (__builtin_expect(position < offsets->base || position >= offsets->next, 0)) {
        return false;
    }
    uint64_t index = (uint64_t)position & offsets->mask;
    uint64_t bit = UINT64_C(1) << (index & 63);
    uint64_t *word = &offsets->bits[index >> 6];
    if (__builtin_expect((*word & bit) != 0, 0)) {
        return false;
    }
    *word |= bit;
    offsets->open--;
    offsets->done_beyond++;
    return true;
}

/* True when `position` is the next one and fits the ring: lw_offsets_pass may be used for it. */
static inline bool
lw_offsets_may_pass(const struct lw_offsets *offsets, int64_t position)
{
    return position == offsets->next && offsets->bits != NULL &&
           (uint64_t)(position - offsets->base) <= offsets->reach;
}

/* Opens and completes the next position at once, after lw_offsets_may_pass said so. */
static inline void
lw_offsets_pass(struct lw_offsets *offsets, int64_t position)
{
    offsets->next = position + 1;
    if (__builtin_expect(offsets->base == position, 1)) {
        offsets->base = position + 1;
        return;
    }
    uint64_t index = (uint64_t)position & offsets->mask;
    offsets->bits[index >> 6] |= UINT64_C(1) << (index & 63);
    offsets->done_beyond++;
}

/* Nothing below `position` will come any more: closes the tail as done. Never goes back. */
enum lw_status lw_offsets_advance_to(struct lw_offsets *offsets, int64_t position);
/* Moves base over what is done and returns it: the next offset to commit; -1 when unknown. */
int64_t lw_offsets_safe(struct lw_offsets *offsets);
/* True when one more position at `next` would be refused. Moves base first. */
bool lw_offsets_is_full(struct lw_offsets *offsets);
/* Runs of done positions above the first open one (gaps in front of them), for status. */
uint64_t lw_offsets_gap_count(const struct lw_offsets *offsets);

#endif
