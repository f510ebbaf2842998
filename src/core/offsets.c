/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slow half of the offsets ledger: first use, holes, growth, and moving the base.
 *
 * Outside [base, next) every bit of the ring is clear: a position is cleared when the base passes
 * it, so opening one never has to. The ring is a power of two of at least 64 positions, hence a
 * word of the ring always holds 64 neighbours; only the word of the base may hold two ranges
 * (positions from base up, and positions next to `next` a whole ring later). The window is
 * exact: the ring is the power of two that holds it. Loop thread. A sorted set of open positions
 * was rejected: it costs 20 times as much for each completion.
 */
#include "core/offsets.h"

#include "base/alloc.h"
#include "base/assert.h"

enum { WORD_BITS = 64, RING_FIRST = 65536 };

/* Far above any offset, and far enough from the end that no sum here can overflow. */
#define POSITION_MAX (INT64_C(1) << 62)

static uint64_t
span(const struct lw_offsets *offsets)
{
    return (uint64_t)(offsets->next - offsets->base);
}

static uint64_t
ring_max(const struct lw_offsets *offsets)
{
    uint64_t size = WORD_BITS;
    while (size < offsets->window_max) {
        size *= 2;
    }
    return size;
}

static uint64_t *
word_of(const struct lw_offsets *offsets, int64_t position)
{
    return &offsets->bits[((uint64_t)position & offsets->mask) / WORD_BITS];
}

/* The bits of `word` (a number of 64 positions) that lie in [from, to). */
static uint64_t
bits_within(int64_t word, int64_t from, int64_t to)
{
    int64_t first = word * WORD_BITS;
    uint64_t bits = UINT64_MAX;
    if (from > first) {
        bits &= from - first >= WORD_BITS ? 0 : UINT64_MAX << (from - first);
    }
    if (to < first + WORD_BITS) {
        bits &= to <= first ? 0 : UINT64_MAX >> (first + WORD_BITS - to);
    }
    return bits;
}

void
lw_offsets_init(struct lw_offsets *offsets, int64_t start, uint32_t window_max)
{
    *offsets = (struct lw_offsets){ .base = start,
                                    .next = start,
                                    .window_max = window_max > 0 ? window_max : 1 };
    if (start < 0) {
        offsets->base = -1;
        offsets->next = -1;
    }
}

void
lw_offsets_deinit(struct lw_offsets *offsets)
{
    lw_free(offsets->bits);
    offsets->bits = NULL;
    offsets->mask = 0;
    offsets->next = offsets->base;
    offsets->open = 0;
    offsets->done_beyond = 0;
}

/* Moves the base over done positions, a word at a time, and clears what it passes. */
static void
move_base(struct lw_offsets *offsets)
{
    while (offsets->base < offsets->next) {
        uint64_t *word = word_of(offsets, offsets->base);
        unsigned shift = (unsigned)((uint64_t)offsets->base % WORD_BITS);
        uint64_t open = ~*word & (UINT64_MAX << shift);
        unsigned end = open != 0 ? (unsigned)__builtin_ctzll(open) : WORD_BITS;
        if (end == shift) {
            break;
        }
        int64_t count = (int64_t)(end - shift);
        int64_t word_number = offsets->base / WORD_BITS;
        *word &= ~bits_within(word_number, offsets->base, offsets->base + count);
        offsets->base += count;
        offsets->done_beyond -= (uint64_t)count;
    }
    lw_assert(offsets->base <= offsets->next);
    lw_assert(offsets->open + offsets->done_beyond == span(offsets));
}

/* Lays the bits of [base, next) out again in a ring of `size` positions. */
static bool
resize_ring(struct lw_offsets *offsets, uint64_t size)
{
    uint64_t *bits = lw_alloc_array(size / WORD_BITS, sizeof(*bits));
    if (bits == NULL) {
        return false;
    }
    for (int64_t word = offsets->base / WORD_BITS;
         offsets->base < offsets->next && word <= (offsets->next - 1) / WORD_BITS; word++) {
        uint64_t within = bits_within(word, offsets->base, offsets->next);
        bits[(uint64_t)word & (size / WORD_BITS - 1)] |= *word_of(offsets, word * WORD_BITS) &
                                                         within;
    }
    lw_free(offsets->bits);
    offsets->bits = bits;
    offsets->mask = size - 1;
    offsets->reach = size < offsets->window_max ? size - 1 : offsets->window_max - 1;
    return true;
}

static bool
make_ring(struct lw_offsets *offsets)
{
    uint64_t size_max = ring_max(offsets);
    return resize_ring(offsets, size_max < RING_FIRST ? size_max : RING_FIRST);
}

/* Makes room for every position below `end`; there is a ring. */
static enum lw_status
reserve(struct lw_offsets *offsets, int64_t end)
{
    uint64_t needed = (uint64_t)(end - offsets->base);
    uint64_t size = offsets->mask + 1;
    if (needed > offsets->window_max) {
        return LW_STATUS_AGAIN;
    }
    if (needed <= size) {
        return LW_STATUS_OK;
    }
    while (size < needed) {
        size *= 2;
    }
    return resize_ring(offsets, size) ? LW_STATUS_OK : LW_STATUS_NO_MEMORY;
}

/* Marks [next, position) done; the ring has room for it. */
static void
close_hole(struct lw_offsets *offsets, int64_t position)
{
    int64_t from = offsets->next;
    for (int64_t word = from / WORD_BITS; from < position && word * WORD_BITS < position;
         word++) {
        *word_of(offsets, word * WORD_BITS) |= bits_within(word, from, position);
    }
    offsets->done_beyond += (uint64_t)(position - from);
    offsets->next = position;
}

/* Goes to `position` >= next, with room for `room` more; what is skipped is done. */
static enum lw_status
skip_to(struct lw_offsets *offsets, int64_t position, int64_t room)
{
    move_base(offsets);
    if (offsets->open == 0) {
        offsets->base = position;
        offsets->next = position;
        return LW_STATUS_OK;
    }
    enum lw_status status = reserve(offsets, position + room);
    if (status == LW_STATUS_OK) {
        close_hole(offsets, position);
    }
    return status;
}

enum lw_status
lw_offsets_open_slow(struct lw_offsets *offsets, int64_t position)
{
    if (position < 0 || position < offsets->next) {
        return LW_STATUS_ALREADY;
    }
    if (position > POSITION_MAX) {
        return LW_STATUS_INVALID;
    }
    if (offsets->bits == NULL && !make_ring(offsets)) {
        return LW_STATUS_NO_MEMORY;
    }
    enum lw_status status = skip_to(offsets, position, 1);
    if (status == LW_STATUS_OK) {
        offsets->next = position + 1;
        offsets->open++;
    }
    return status;
}

bool
lw_offsets_is_open(const struct lw_offsets *offsets, int64_t position)
{
    if (position < offsets->base || position >= offsets->next) {
        return false;
    }
    return (*word_of(offsets, position) >> ((uint64_t)position % WORD_BITS) & 1) == 0;
}

enum lw_status
lw_offsets_advance_to(struct lw_offsets *offsets, int64_t position)
{
    if (position < 0 || position > POSITION_MAX) {
        return LW_STATUS_INVALID;
    }
    return position <= offsets->next ? LW_STATUS_OK : skip_to(offsets, position, 0);
}

int64_t
lw_offsets_safe(struct lw_offsets *offsets)
{
    move_base(offsets);
    return offsets->base;
}

bool
lw_offsets_is_full(struct lw_offsets *offsets)
{
    move_base(offsets);
    return span(offsets) >= offsets->window_max;
}

uint64_t
lw_offsets_gap_count(const struct lw_offsets *offsets)
{
    uint64_t count = 0;
    uint64_t before = 1; /* below the base all is done: the run that touches it has no gap */
    for (int64_t word = offsets->base / WORD_BITS;
         offsets->base < offsets->next && word <= (offsets->next - 1) / WORD_BITS; word++) {
        uint64_t done = *word_of(offsets, word * WORD_BITS);
        done |= ~bits_within(word, offsets->base, INT64_MAX);
        done &= bits_within(word, 0, offsets->next);
        count += (uint64_t)__builtin_popcountll(done & ~(done << 1 | before));
        before = done >> (WORD_BITS - 1);
    }
    return count;
}
