/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages that `laneway handler check` shows to a handler: deliveries as the engine would
 * hand them over, with a stream and a broker behind them that only answer what a handler sees.
 */
#ifndef LW_CLI_HANDLER_SAMPLE_H
#define LW_CLI_HANDLER_SAMPLE_H

#include "core/delivery.h"

/* Everything about one message; views live as long as the sample is in use. */
struct lw_sample {
    struct lw_bytes key;   /* null: none */
    struct lw_bytes value; /* null: a tombstone */
    const struct lw_header *headers;
    size_t header_count;
    uint32_t attempt; /* 0: the first */
    uint32_t redeliveries;
    int64_t position;    /* 0: one more than the last one */
    bool has_more_words; /* fields that this version does not know */
};

struct lw_samples; /* makes deliveries of samples; one at a time may be looked at */

struct lw_samples *lw_samples_create(void); /* NULL without memory */
void lw_samples_destroy(struct lw_samples *samples);
/* A delivery of its own, running; NULL without memory. Given back by lw_samples_drop. */
struct lw_delivery *lw_samples_take(struct lw_samples *samples, const struct lw_sample *sample);
void lw_samples_drop(struct lw_delivery *delivery);

#endif
