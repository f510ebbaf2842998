/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Up to where a reader of the compacted view of a topic has finished. Acknowledgements one by one
 * do not help there: the entries that compaction left out stay unacknowledged, and the broker
 * gives all that is behind the first of them to each new session. So what is finished is
 * acknowledged cumulatively, up to the last entry before the first unfinished one. The ids of what
 * came are kept in order; their number is bounded by what the broker sent since the oldest
 * unfinished one. Pure.
 */
#ifndef LW_BROKERS_PULSAR_COMPACTED_H
#define LW_BROKERS_PULSAR_COMPACTED_H

#include "brokers/pulsar/entry.h"

struct lw_pulsar_compacted {
    struct lw_pulsar_chunk_id *ids; /* a ring */
    uint32_t capacity;
    uint32_t first;
    uint32_t count;
    struct lw_pulsar_chunk_id mark; /* all that came up to it is acknowledged here */
    bool has_mark;                  /* it moved since it was taken */
};

void lw_pulsar_compacted_deinit(struct lw_pulsar_compacted *compacted);
/* A session or a rewind begins: all that is not acknowledged at the broker comes again. */
void lw_pulsar_compacted_reset(struct lw_pulsar_compacted *compacted);
/* An entry came; false without memory. */
bool
lw_pulsar_compacted_note(struct lw_pulsar_compacted *compacted, struct lw_pulsar_chunk_id id);
/* Moves the mark over what is acknowledged here; true: it moved since it was asked. */
bool lw_pulsar_compacted_take(struct lw_pulsar_compacted *compacted,
                              struct lw_pulsar_held *held, struct lw_pulsar_chunk_id *ret_mark);

#endif
