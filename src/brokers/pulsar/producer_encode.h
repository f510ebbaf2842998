/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From publications to frames: metadata, keys, properties, compression, batch bodies, chunks. The
 * head of a frame is written into the op; a message that travels alone and is not compressed keeps
 * its bytes where the publication has them. What a frame's size allows is checked here, before
 * anything is given an id or written. Pure but for memory.
 */
#ifndef LW_BROKERS_PULSAR_PRODUCER_ENCODE_H
#define LW_BROKERS_PULSAR_PRODUCER_ENCODE_H

#include "brokers/pulsar/batch.h"
#include "brokers/pulsar/producer_op.h"

/* What all entries of one producer have in common, and what counts at this moment. */
struct lw_pulsar_encoding {
    struct lw_pulsar_ops *ops;
    uint64_t producer_id;
    struct lw_bytes producer_name;
    struct lw_bytes schema_version; /* of the topic, as its broker told; null: none */
    int32_t compression;
    bool chunks;
    size_t message_bytes_max; /* of the connection: metadata and body */
    uint64_t next_id;
    int64_t wall_ms;
};

/*
 * The key as it stands on the wire: a text as it is, bytes in base64 (then *ret_is_bytes), null for
 * none or without memory. Valid until the scratch is used again.
 */
struct lw_bytes
lw_pulsar_encode_key(struct lw_pulsar_ops *ops, const struct lw_publication *publication,
                     bool *ret_is_bytes);
/*
 * An op of one message, in chunks if it must and may be. TOO_LARGE, or NO_MEMORY (also when too
 * many are on their way). Takes one id.
 */
enum lw_status
lw_pulsar_encode_single(struct lw_pulsar_encoding *encoding,
                        const struct lw_pulsar_waiting *item, struct lw_pulsar_op **ret_op);
/* An op of a batch of two or more. TOO_LARGE: its members must go alone. Takes an id for each. */
enum lw_status
lw_pulsar_encode_batch(struct lw_pulsar_encoding *encoding,
                       const struct lw_pulsar_open_batch *batch, struct lw_pulsar_op **ret_op);

/* -- chunk_out.c ---------------------------------------------------------------------------------- */

/* Metadata of a whole message; `payload` is what is cut. */
enum lw_status lw_pulsar_encode_chunks(struct lw_pulsar_encoding *encoding,
                                       struct lw_pulsar_metadata *metadata,
                                       struct lw_bytes payload, struct lw_pulsar_op *op);

#endif
