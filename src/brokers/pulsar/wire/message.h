/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The payload part of SEND and MESSAGE: [0x0e02 size entry-metadata] [0x0e01 CRC32C] size
 * metadata payload, and the batch body that a payload may be. Reading: open the part (the
 * checksum comes first, since corrupt metadata must not be believed), decode the metadata,
 * decompress if need be (compress.h), then walk the members of a batch. Writing: the head of a
 * frame apart from the payload's bytes, which go to the socket from where they lie.
 */
#ifndef LW_BROKERS_PULSAR_WIRE_MESSAGE_H
#define LW_BROKERS_PULSAR_WIRE_MESSAGE_H

#include "brokers/pulsar/wire/command.h"
#include "brokers/pulsar/wire/crc32c.h"
#include "brokers/pulsar/wire/metadata.h"

enum { LW_PULSAR_MAGIC_CHECKSUM = 0x0e01 };

struct lw_pulsar_payload {
    bool has_checksum;
    uint32_t checksum;              /* as it came */
    struct lw_bytes entry_metadata; /* null: no such block */
    struct lw_bytes metadata;
    struct lw_bytes body; /* as transmitted: maybe compressed, encrypted, a batch, a chunk */
};

/*
 * Opens the payload part. LW_PULSAR_CHECKSUM_WRONG sets *ret_payload too: discard this message
 * with an ack, keep the connection; other faults leave it untouched.
 */
LW_INLINE enum lw_pulsar_fault
lw_pulsar_payload_open(struct lw_bytes rest, struct lw_pulsar_payload *ret_payload);
/* The same without a short way. */
enum lw_pulsar_fault
lw_pulsar_payload_open_any(struct lw_bytes rest, struct lw_pulsar_payload *ret_payload);

/* What nearly every one is: its checksum is right, and nothing of the broker's comes before it. */
LW_INLINE enum lw_pulsar_fault
lw_pulsar_payload_open(struct lw_bytes rest, struct lw_pulsar_payload *ret_payload)
{
    enum { CHECKSUM_AT = 2, SUMMED_AT = 6, METADATA_AT = 10 };
    const uint8_t *at = rest.data;
    if (rest.size < METADATA_AT || at[0] != LW_PULSAR_MAGIC_CHECKSUM >> 8 ||
        at[1] != (LW_PULSAR_MAGIC_CHECKSUM & 0xff)) {
        return lw_pulsar_payload_open_any(rest, ret_payload);
    }
    uint32_t size = lw_proto_load_be32(at + SUMMED_AT);
    uint32_t checksum = lw_proto_load_be32(at + CHECKSUM_AT);
    if (size > rest.size - METADATA_AT ||
        lw_crc32c(0, at + SUMMED_AT, rest.size - SUMMED_AT) != checksum) {
        return lw_pulsar_payload_open_any(rest, ret_payload);
    }
    ret_payload->has_checksum = true;
    ret_payload->checksum = checksum;
    ret_payload->entry_metadata = (struct lw_bytes){ NULL, 0 };
    ret_payload->metadata = (struct lw_bytes){ at + METADATA_AT, size };
    ret_payload->body = (struct lw_bytes){ at + METADATA_AT + size,
                                           rest.size - METADATA_AT - size };
    return LW_PULSAR_OK;
}

/* -- Batches ---------------------------------------------------------------------------------- */

enum { LW_PULSAR_MEMBER_BYTES_MIN = 6 }; /* of a member: its size and a payload_size */

LW_INLINE bool
lw_pulsar_metadata_is_batch(const struct lw_pulsar_metadata *metadata)
{
    return (metadata->has & LW_PULSAR_METADATA_HAS_NUM_MESSAGES) != 0;
}

LW_INLINE bool
lw_pulsar_metadata_is_chunk(const struct lw_pulsar_metadata *metadata)
{
    return metadata->uuid.data != NULL && metadata->num_chunks_from_msg > 1;
}

struct lw_pulsar_batch {
    struct lw_proto_reader reader;
    struct lw_pulsar_walk compacted; /* original indexes of what is left, if is_compacted */
    int32_t count;                   /* members of the batch as it was published */
    int32_t left;                    /* members not yet read */
    int32_t next_index;
    bool is_compacted;
    enum lw_pulsar_fault fault;
};

struct lw_pulsar_member {
    struct lw_pulsar_single_metadata metadata;
    struct lw_bytes value; /* null for null_value */
    int32_t index;         /* in the batch as it was published: for ids and ack sets */
};

/* Starts on an uncompressed body. A count that the body cannot hold is a fault at once. */
enum lw_pulsar_fault
lw_pulsar_batch_open(const struct lw_pulsar_metadata *metadata, struct lw_bytes body,
                     struct lw_pulsar_batch *ret_batch);
/*
 * Reads the next member, also those with metadata.compacted_out, which the caller passes over.
 * False after the last one and at a fault (batch.fault says which).
 */
bool lw_pulsar_batch_next(struct lw_pulsar_batch *batch, struct lw_pulsar_member *ret_member);
/* Appends a member to a body; sets payload_size (and null_value for a null value) itself. */
void lw_pulsar_batch_append(const struct lw_pulsar_single_metadata *metadata,
                            struct lw_bytes value, struct lw_proto_writer *writer);
/* Bytes that the same call would append. */
size_t lw_pulsar_batch_member_size(const struct lw_pulsar_single_metadata *metadata,
                                   struct lw_bytes value);

/* -- Writing ---------------------------------------------------------------------------------- */

/* The body of a frame, in the parts in which it lies in memory. */
struct lw_pulsar_body {
    const struct lw_bytes *parts;
    size_t count;
};

/*
 * Writes everything of a SEND or MESSAGE frame that comes before the body: sizes, command, entry
 * metadata (NULL: none; only brokers send it), checksum over metadata and body, metadata. The
 * body's bytes are read for the checksum and not copied; they follow on the wire.
 */
void lw_pulsar_payload_write_head(const struct lw_pulsar_command *command,
                                  const struct lw_pulsar_entry_metadata *entry,
                                  const struct lw_pulsar_metadata *metadata,
                                  struct lw_pulsar_body body, struct lw_proto_writer *writer);
/*
 * The same for metadata that is already encoded: a broker that stored it, a message that is sent
 * again. `entry` is null for none.
 */
void
lw_pulsar_payload_write_head_raw(const struct lw_pulsar_command *command, struct lw_bytes entry,
                                 struct lw_bytes metadata, struct lw_pulsar_body body,
                                 struct lw_proto_writer *writer);

#endif
