/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What travels beside a message's bytes: MessageMetadata (one per entry), SingleMessageMetadata
 * (one per member of a batch), BrokerEntryMetadata. Conventions are those of command.h: views
 * into the frame, lists for repeated fields, defaults for what is absent, `has` by field number.
 */
#ifndef LW_BROKERS_PULSAR_WIRE_METADATA_H
#define LW_BROKERS_PULSAR_WIRE_METADATA_H

#include "brokers/pulsar/wire/fault.h"
#include "brokers/pulsar/wire/list.h"

#define LW_PULSAR_METADATA_HAS_NUM_MESSAGES (UINT64_C(1) << 11) /* batch format, even when 1 */
#define LW_PULSAR_METADATA_HAS_DELIVER_AT (UINT64_C(1) << 19)
#define LW_PULSAR_METADATA_HAS_HIGHEST_SEQUENCE_ID (UINT64_C(1) << 24)
#define LW_PULSAR_METADATA_HAS_NUM_CHUNKS (UINT64_C(1) << 27)
#define LW_PULSAR_METADATA_HAS_TOTAL_CHUNK_SIZE (UINT64_C(1) << 28)
#define LW_PULSAR_METADATA_HAS_CHUNK_ID (UINT64_C(1) << 29)

/* Compressed, in the format of batches, encrypted, a chunk: more is to do than to look at the body. */
#define LW_PULSAR_METADATA_HAS_MORE_TO_DO                                                      \
    (UINT64_C(1) << 8 | UINT64_C(1) << 11 | UINT64_C(1) << 13 | UINT64_C(1) << 26)

struct lw_pulsar_metadata {
    uint64_t has;
    struct lw_bytes producer_name;
    uint64_t sequence_id;
    uint64_t publish_time;            /* ms since 1970 */
    struct lw_pulsar_list properties; /* pairs */
    struct lw_bytes replicated_from;
    struct lw_bytes partition_key; /* null: no key; raw bytes in base64 when is_key_b64 */
    struct lw_pulsar_list replicate_to;
    int32_t compression; /* enum lw_pulsar_compression or a value we do not know */
    uint32_t uncompressed_size;
    int32_t num_messages_in_batch;         /* default 1 */
    uint64_t event_time;                   /* ms since 1970; 0: none */
    struct lw_pulsar_list encryption_keys; /* not empty: the payload is encrypted */
    struct lw_bytes encryption_algo;
    struct lw_bytes encryption_param;
    struct lw_bytes schema_version;
    bool is_key_b64; /* partition_key_b64_encoded */
    struct lw_bytes ordering_key;
    int64_t deliver_at_time;
    int32_t marker_type;
    uint64_t txnid_least_bits;
    uint64_t txnid_most_bits;
    uint64_t highest_sequence_id;
    bool null_value;
    struct lw_bytes uuid; /* not null together with num_chunks_from_msg: a chunk */
    int32_t num_chunks_from_msg;
    int32_t total_chunk_msg_size;
    int32_t chunk_id;
    bool null_partition_key;
    struct lw_pulsar_list compacted_batch_indexes; /* numbers */
    struct lw_bytes schema_id;
    uint32_t entry_hash_min;
    uint32_t entry_hash_max;
};

struct lw_pulsar_single_metadata {
    uint64_t has;
    struct lw_pulsar_list properties; /* pairs */
    struct lw_bytes partition_key;
    int32_t payload_size;
    bool compacted_out;
    uint64_t event_time;
    bool is_key_b64;
    struct lw_bytes ordering_key;
    uint64_t sequence_id;
    bool null_value;
    bool null_partition_key;
};

#define LW_PULSAR_ENTRY_HAS_TIMESTAMP (UINT64_C(1) << 1)
#define LW_PULSAR_ENTRY_HAS_INDEX (UINT64_C(1) << 2)
struct lw_pulsar_entry_metadata {
    uint64_t has;
    uint64_t broker_timestamp; /* ms since 1970 */
    uint64_t index;            /* of the last message of the entry */
};

struct lw_pulsar_metadata lw_pulsar_metadata_of(void);
struct lw_pulsar_single_metadata lw_pulsar_single_metadata_of(void);

enum lw_pulsar_fault
lw_pulsar_metadata_decode(struct lw_bytes bytes, struct lw_pulsar_metadata *ret_metadata);
enum lw_pulsar_fault
lw_pulsar_single_metadata_decode(struct lw_bytes bytes,
                                 struct lw_pulsar_single_metadata *ret_metadata);
enum lw_pulsar_fault
lw_pulsar_entry_metadata_decode(struct lw_bytes bytes,
                                struct lw_pulsar_entry_metadata *ret_metadata);

void lw_pulsar_metadata_encode(const struct lw_pulsar_metadata *metadata,
                               struct lw_proto_writer *writer);
void lw_pulsar_single_metadata_encode(const struct lw_pulsar_single_metadata *metadata,
                                      struct lw_proto_writer *writer);
void lw_pulsar_entry_metadata_encode(const struct lw_pulsar_entry_metadata *metadata,
                                     struct lw_proto_writer *writer);

#endif
