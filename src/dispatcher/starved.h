/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams that had nothing to choose while a slot was to be had. A broker that gives only what was
 * demanded (Pulsar's permits) answers after the slot was given away, to a worse stream or to none,
 * and it never says that it has more. So it is seen here, from how long such a stream was dry and
 * what others began meanwhile, and told to its window. Streams of other brokers are never starved:
 * what those have is received before a worse one is chosen. Loop thread.
 */
#ifndef LW_DISPATCHER_STARVED_H
#define LW_DISPATCHER_STARVED_H

#include "dispatcher/dispatcher.h"

#define LW_LATE_NS (100 * LW_MS) /* what began together delivers within about so long */

/* Nothing here could be chosen, and a slot is free or a worse one has it, which is the same. */
bool lw_starved_is(const struct lw_stream *stream);
/* At the end of a step; `room` is what the stream may receive. */
void lw_starved_update(struct lw_stream *stream, uint32_t room, uint64_t now);
/* It was starved and `count` messages came: its window learns what was missed. */
void lw_starved_end(struct lw_stream *stream, uint32_t count, uint64_t now);

#endif
