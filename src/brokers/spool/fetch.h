/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading on: what one position may be given now. Messages that are due again come first, then
 * fresh ones, up to a number and a size. The worker's thread.
 */
#ifndef LW_BROKERS_SPOOL_FETCH_H
#define LW_BROKERS_SPOOL_FETCH_H

#include "brokers/spool/chunk.h"
#include "brokers/spool/store.h"

/* What a slot asks for, and gets. */
struct lw_spool_fetch {
    uint32_t messages_max;
    uint64_t bytes_max;
    struct lw_spool_chunk *chunk; /* NULL: nothing came */
    uint64_t waiting;             /* at the file, not given out */
};

/*
 * Reads; true when the chunk has something. What is not due yet is put aside (it makes the position
 * dirty). False with *ret_is_failed: store->error, or no memory; nothing is lost by it.
 */
bool lw_spool_fetch_read(struct lw_spool_store *store, struct lw_spool_position *position,
                         struct lw_spool_fetch *fetch, int64_t now_ms, bool *ret_is_failed);
/* True when reading would find something now. */
bool lw_spool_fetch_is_due(const struct lw_spool_position *position, int64_t now_ms);
uint64_t lw_spool_fetch_waiting(const struct lw_spool_position *position);

#endif
