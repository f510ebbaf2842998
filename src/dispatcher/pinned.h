/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What kept messages pin at the client. A client does not tell which of its fetch buffers a message
 * lies in; it is known to live until the last of its messages is released, whatever came and went
 * beside it. So the bytes that came from a partition are cut into spans of a buffer's size, and a
 * span counts in full as long as one message of it is kept and not copied out.
 *
 * Copied out is what a megabyte of its partition came after, what is parked for over a second
 * (dispatcher.c), and, when all spans together pass the budget, as much as can be. Not copied is
 * what a handler reads in place, at most one a slot, and what a publication points into: while
 * half of the budget is used, messages are copied before they are published. Loop thread.
 */
#ifndef LW_DISPATCHER_PINNED_H
#define LW_DISPATCHER_PINNED_H

#include "dispatcher/dispatcher.h"

/* Also the largest share of a partition in one answer of Kafka, by default. */
#define LW_PINNED_SPAN_BYTES (UINT64_C(1024) * 1024)

/* Copies out those that too much of their partition came after. */
void lw_pinned_pass(struct lw_partition *partition);
/* Copies it out if nobody looks at it; true when it pins nothing. */
bool lw_pinned_copy(struct lw_delivery *delivery);
/* Bytes that all kept messages pin, by spans. */
uint64_t lw_pinned_bytes(const struct lw_dispatcher *dispatcher);
/* Measures and copies out until the budget is kept. */
void lw_pinned_check(struct lw_dispatcher *dispatcher);

/*
 * So much was received: looks at the whole when it could matter. Once copying was needed, at every
 * batch, since a few new messages may pin a buffer of each partition.
 */
static inline void
lw_pinned_note(struct lw_dispatcher *dispatcher, uint64_t bytes)
{
    dispatcher->pinned_unchecked += bytes;
    if (__builtin_expect(dispatcher->pinned_unchecked >= dispatcher->pinned_check_at, 0)) {
        lw_pinned_check(dispatcher);
    }
}

#endif
