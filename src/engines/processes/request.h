/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A delivery as a request record, written by the owner: measured first, then written once into
 * the ring (or into memory of its own), which is the one copy of a payload on its way to a
 * handler. Texts that all messages of a partition share are sent apart, once, as a context.
 */
#ifndef LW_ENGINES_PROCESSES_REQUEST_H
#define LW_ENGINES_PROCESSES_REQUEST_H

#include "core/delivery.h"
#include "engines/processes/record.h"

enum { LW_PROCESSES_IDENTITY_MAX = 1024, LW_PROCESSES_PLACE_MAX = 64 };

/* What was found out about a delivery while measuring; good until it is written. */
struct lw_processes_facts {
    const struct lw_delivery *delivery;
    const struct lw_header *headers;
    size_t header_count;
    size_t headers_size;
    size_t identity_size; /* 0: it follows from the context and the place */
    size_t place_size;    /* 0: the position in decimal */
    size_t size;          /* of the record */
    uint32_t retries;
    char identity[LW_PROCESSES_IDENTITY_MAX];
    char place[LW_PROCESSES_PLACE_MAX];
};

void lw_processes_request_measure(const struct lw_delivery *delivery,
                                  struct lw_processes_facts *ret_facts);
/* Fills `out`, which has facts->size bytes. */
void lw_processes_request_write(const struct lw_processes_facts *facts, uint64_t seq,
                                uint16_t context, unsigned char *out);

/*
 * A task of several messages as one record: measured; false when it cannot be handed over, since a
 * message is larger than `item_bytes_max`, or all are together than a record may be.
 */
bool lw_processes_batch_measure(const struct lw_delivery *first, size_t item_bytes_max,
                                size_t *ret_size);
/* Fills `out`, which has the measured size. */
void lw_processes_batch_write(const struct lw_delivery *first, uint64_t seq, size_t size,
                              unsigned char *out);

/* The context of a delivery; its texts are borrowed. */
struct lw_processes_texts {
    const char *topic;
    const char *subscription;
    const char *pipeline;
    size_t prefix_size; /* of `prefix`, up to its last slash; 0 when it is not known yet */
    size_t size;        /* of the record */
    char prefix[LW_PROCESSES_IDENTITY_MAX];
};

void lw_processes_context_measure(const struct lw_delivery *delivery,
                                  struct lw_processes_texts *ret_texts);
void lw_processes_context_write(const struct lw_processes_texts *texts, int32_t partition,
                                uint16_t place, unsigned char *out);

#endif
