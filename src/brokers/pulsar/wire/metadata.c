/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metadata of messages. Decoding is by hand, as every message and every member of a batch pays
 * for it; encoding goes through the field tables, against which tests compare the decoders.
 * Fields of brokers and of transactions that no client reads have a row and no hand: they are
 * decoded through the table, by the slow path of lw_pulsar_metadata_decode. Pure.
 */
#include "brokers/pulsar/wire/metadata.h"

#include "brokers/pulsar/wire/fields.h"

static const struct lw_pulsar_field metadata_fields[] = {
    REQUIRED(struct lw_pulsar_metadata, 1, BYTES, producer_name),
    REQUIRED(struct lw_pulsar_metadata, 2, U64, sequence_id),
    REQUIRED(struct lw_pulsar_metadata, 3, U64, publish_time),
    FIELD(struct lw_pulsar_metadata, 4, LIST, properties),
    FIELD(struct lw_pulsar_metadata, 5, BYTES, replicated_from),
    FIELD(struct lw_pulsar_metadata, 6, BYTES, partition_key),
    FIELD(struct lw_pulsar_metadata, 7, LIST, replicate_to),
    FIELD(struct lw_pulsar_metadata, 8, I32, compression),
    FIELD(struct lw_pulsar_metadata, 9, U32, uncompressed_size),
    DEFAULT(struct lw_pulsar_metadata, 11, I32, num_messages_in_batch, 1),
    FIELD(struct lw_pulsar_metadata, 12, U64, event_time),
    FIELD(struct lw_pulsar_metadata, 13, LIST, encryption_keys),
    FIELD(struct lw_pulsar_metadata, 14, BYTES, encryption_algo),
    FIELD(struct lw_pulsar_metadata, 15, BYTES, encryption_param),
    FIELD(struct lw_pulsar_metadata, 16, BYTES, schema_version),
    FIELD(struct lw_pulsar_metadata, 17, BOOL, is_key_b64),
    FIELD(struct lw_pulsar_metadata, 18, BYTES, ordering_key),
    FIELD(struct lw_pulsar_metadata, 19, U64, deliver_at_time),
    FIELD(struct lw_pulsar_metadata, 20, I32, marker_type),
    FIELD(struct lw_pulsar_metadata, 22, U64, txnid_least_bits),
    FIELD(struct lw_pulsar_metadata, 23, U64, txnid_most_bits),
    FIELD(struct lw_pulsar_metadata, 24, U64, highest_sequence_id),
    FIELD(struct lw_pulsar_metadata, 25, BOOL, null_value),
    FIELD(struct lw_pulsar_metadata, 26, BYTES, uuid),
    FIELD(struct lw_pulsar_metadata, 27, I32, num_chunks_from_msg),
    FIELD(struct lw_pulsar_metadata, 28, I32, total_chunk_msg_size),
    FIELD(struct lw_pulsar_metadata, 29, I32, chunk_id),
    FIELD(struct lw_pulsar_metadata, 30, BOOL, null_partition_key),
    FIELD(struct lw_pulsar_metadata, 31, NUMBERS, compacted_batch_indexes),
    FIELD(struct lw_pulsar_metadata, 32, BYTES, schema_id),
    FIELD(struct lw_pulsar_metadata, 33, U32, entry_hash_min),
    FIELD(struct lw_pulsar_metadata, 34, U32, entry_hash_max),
};
const struct lw_pulsar_table lw_pulsar_metadata_table = TABLE(
    struct lw_pulsar_metadata, metadata_fields, BIT(1) | BIT(2) | BIT(3));

static const struct lw_pulsar_field single_metadata_fields[] = {
    FIELD(struct lw_pulsar_single_metadata, 1, LIST, properties),
    FIELD(struct lw_pulsar_single_metadata, 2, BYTES, partition_key),
    REQUIRED(struct lw_pulsar_single_metadata, 3, I32, payload_size),
    FIELD(struct lw_pulsar_single_metadata, 4, BOOL, compacted_out),
    FIELD(struct lw_pulsar_single_metadata, 5, U64, event_time),
    FIELD(struct lw_pulsar_single_metadata, 6, BOOL, is_key_b64),
    FIELD(struct lw_pulsar_single_metadata, 7, BYTES, ordering_key),
    FIELD(struct lw_pulsar_single_metadata, 8, U64, sequence_id),
    FIELD(struct lw_pulsar_single_metadata, 9, BOOL, null_value),
    FIELD(struct lw_pulsar_single_metadata, 10, BOOL, null_partition_key),
};
const struct lw_pulsar_table lw_pulsar_single_metadata_table = TABLE(
    struct lw_pulsar_single_metadata, single_metadata_fields, BIT(3));

static const struct lw_pulsar_field entry_metadata_fields[] = {
    FIELD(struct lw_pulsar_entry_metadata, 1, U64, broker_timestamp),
    FIELD(struct lw_pulsar_entry_metadata, 2, U64, index),
};
const struct lw_pulsar_table lw_pulsar_entry_metadata_table = TABLE(
    struct lw_pulsar_entry_metadata, entry_metadata_fields, 0);

#define VARINT(id) LW_PROTO_KEY(id, LW_PROTO_VARINT)
#define BYTES(id) LW_PROTO_KEY(id, LW_PROTO_BYTES)

struct lw_pulsar_metadata
lw_pulsar_metadata_of(void)
{
    struct lw_pulsar_metadata metadata;
    lw_pulsar_fields_init(&lw_pulsar_metadata_table, &metadata);
    return metadata;
}

struct lw_pulsar_single_metadata
lw_pulsar_single_metadata_of(void)
{
    struct lw_pulsar_single_metadata metadata;
    lw_pulsar_fields_init(&lw_pulsar_single_metadata_table, &metadata);
    return metadata;
}

LW_INLINE void
read_i32(struct lw_proto_reader *reader, int32_t *ret_value)
{
    uint64_t number = 0;
    lw_proto_read_varint(reader, &number);
    *ret_value = (int32_t)(uint32_t)number;
}

LW_INLINE void
read_u32(struct lw_proto_reader *reader, uint32_t *ret_value)
{
    uint64_t number = 0;
    lw_proto_read_varint(reader, &number);
    *ret_value = (uint32_t)number;
}

LW_INLINE void
read_bool(struct lw_proto_reader *reader, bool *ret_value)
{
    uint64_t number = 0;
    lw_proto_read_varint(reader, &number);
    *ret_value = number != 0;
}

LW_INLINE void
read_pair_list(struct lw_proto_reader *reader, uint32_t id, const uint8_t *tag,
               struct lw_pulsar_list *list)
{
    struct lw_bytes bytes;
    if (lw_proto_read_bytes(reader, &bytes)) {
        lw_pulsar_list_extend(list, id, tag, reader->at);
    }
}

/* The fields that ordinary messages have. False: another field, nothing was read. */
LW_INLINE bool
decode_common(struct lw_proto_reader *reader, const uint8_t *tag, uint32_t key,
              struct lw_pulsar_metadata *out)
{
    switch (key) {
    case BYTES(1):
        lw_proto_read_bytes(reader, &out->producer_name);
        break;
    case VARINT(2):
        lw_proto_read_varint(reader, &out->sequence_id);
        break;
    case VARINT(3):
        lw_proto_read_varint(reader, &out->publish_time);
        break;
    case BYTES(4):
        read_pair_list(reader, 4, tag, &out->properties);
        break;
    case BYTES(6):
        lw_proto_read_bytes(reader, &out->partition_key);
        break;
    case VARINT(8):
        read_i32(reader, &out->compression);
        break;
    case VARINT(9):
        read_u32(reader, &out->uncompressed_size);
        break;
    case VARINT(11):
        read_i32(reader, &out->num_messages_in_batch);
        break;
    case VARINT(12):
        lw_proto_read_varint(reader, &out->event_time);
        break;
    case BYTES(16):
        lw_proto_read_bytes(reader, &out->schema_version);
        break;
    case VARINT(17):
        read_bool(reader, &out->is_key_b64);
        break;
    case BYTES(18):
        lw_proto_read_bytes(reader, &out->ordering_key);
        break;
    case VARINT(24):
        lw_proto_read_varint(reader, &out->highest_sequence_id);
        break;
    case VARINT(25):
        read_bool(reader, &out->null_value);
        break;
    default: /* rare or unknown */
        return false;
    }
    return true;
}

/* By plain stores: for all of it at once the compiler takes `rep stos`, which starts slowly. */
LW_INLINE void
clear(struct lw_pulsar_metadata *metadata)
{
    typedef uint64_t pair __attribute__((vector_size(16), aligned(8), may_alias));
    enum { COUNT = sizeof *metadata / sizeof(pair), REST = sizeof *metadata % sizeof(pair) };
    pair *at = (pair *)metadata;
#pragma GCC unroll 32
    for (size_t i = 0; i < COUNT; i++) {
        at[i] = (pair){ 0, 0 };
    }
    memset(at + COUNT, 0, REST);
}

/*
 * What messages begin with, or all that they have: the place behind it; *ret_has says what it was.
 * Calls nothing.
 */
LW_INLINE const uint8_t *
decode_usual(const uint8_t *at, const uint8_t *end, struct lw_pulsar_metadata *out,
             uint64_t *ret_has)
{
    const uint8_t *next = lw_proto_take_bytes(at, end, BYTES(1), &out->producer_name);
    next = lw_proto_take_field(next, end, VARINT(2), &out->sequence_id);
    next = lw_proto_take_time(next, end, VARINT(3), &out->publish_time);
    if (!next) {
        out->producer_name = (struct lw_bytes){ NULL, 0 };
        out->sequence_id = 0;
        *ret_has = 0;
        return at;
    }
    *ret_has = 1 << 1 | 1 << 2 | 1 << 3;
    at = lw_proto_take_bytes(next, end, BYTES(6), &out->partition_key);
    *ret_has |= at ? 1 << 6 : 0;
    return at ? at : next;
}

__attribute__((noinline)) static enum lw_pulsar_fault
decode_rest(struct lw_bytes bytes, const uint8_t *at, uint64_t has,
            struct lw_pulsar_metadata *ret_metadata)
{
    struct lw_proto_reader reader = lw_proto_reader_of(bytes);
    uint32_t key;
    reader.at = at;
    for (const uint8_t *tag = reader.at; lw_proto_read_key(&reader, &key); tag = reader.at) {
        if (!decode_common(&reader, tag, key, ret_metadata)) {
            return lw_pulsar_fields_decode(&lw_pulsar_metadata_table, bytes, ret_metadata);
        }
        has |= UINT64_C(1) << (key >> 3 & 63);
    }
    if (reader.is_bad) {
        return LW_PULSAR_PROTO_MALFORMED;
    }
    uint64_t required = lw_pulsar_metadata_table.required;
    ret_metadata->has = has;
    return (has & required) == required ? LW_PULSAR_OK : LW_PULSAR_FIELD_MISSING;
}

enum lw_pulsar_fault
lw_pulsar_metadata_decode(struct lw_bytes bytes, struct lw_pulsar_metadata *ret_metadata)
{
    const uint8_t *end = bytes.data ? (const uint8_t *)bytes.data + bytes.size : NULL;
    clear(ret_metadata);
    ret_metadata->num_messages_in_batch = 1;
    uint64_t has;
    const uint8_t *at = decode_usual(bytes.data, end, ret_metadata, &has);
    ret_metadata->has = has;
    if (__builtin_expect(at == end && has != 0, 1)) {
        return LW_PULSAR_OK;
    }
    return decode_rest(bytes, at, has, ret_metadata);
}

LW_INLINE uint64_t
decode_single_field(struct lw_proto_reader *reader, const uint8_t *tag, uint32_t key,
                    struct lw_pulsar_single_metadata *out)
{
    uint64_t bit = UINT64_C(1) << (key >> 3 & 63);
    switch (key) {
    case BYTES(1):
        read_pair_list(reader, 1, tag, &out->properties);
        break;
    case BYTES(2):
        lw_proto_read_bytes(reader, &out->partition_key);
        break;
    case VARINT(3):
        read_i32(reader, &out->payload_size);
        break;
    case VARINT(4):
        read_bool(reader, &out->compacted_out);
        break;
    case VARINT(5):
        lw_proto_read_varint(reader, &out->event_time);
        break;
    case VARINT(6):
        read_bool(reader, &out->is_key_b64);
        break;
    case BYTES(7):
        lw_proto_read_bytes(reader, &out->ordering_key);
        break;
    case VARINT(8):
        lw_proto_read_varint(reader, &out->sequence_id);
        break;
    case VARINT(9):
        read_bool(reader, &out->null_value);
        break;
    case VARINT(10):
        read_bool(reader, &out->null_partition_key);
        break;
    default: /* a field that we do not know */
        lw_proto_skip(reader, key & 7);
        bit = 0;
        break;
    }
    return bit;
}

enum lw_pulsar_fault
lw_pulsar_single_metadata_decode(struct lw_bytes bytes,
                                 struct lw_pulsar_single_metadata *ret_metadata)
{
    struct lw_proto_reader reader = lw_proto_reader_of(bytes);
    uint32_t key;
    uint64_t has = 0;
    memset(ret_metadata, 0, sizeof *ret_metadata);
    for (const uint8_t *tag = reader.at; lw_proto_read_key(&reader, &key); tag = reader.at) {
        has |= decode_single_field(&reader, tag, key, ret_metadata);
    }
    ret_metadata->has = has;
    if (reader.is_bad) {
        return LW_PULSAR_PROTO_MALFORMED;
    }
    uint64_t required = lw_pulsar_single_metadata_table.required;
    return (has & required) == required ? LW_PULSAR_OK : LW_PULSAR_FIELD_MISSING;
}

enum lw_pulsar_fault
lw_pulsar_entry_metadata_decode(struct lw_bytes bytes,
                                struct lw_pulsar_entry_metadata *ret_metadata)
{
    return lw_pulsar_fields_decode(&lw_pulsar_entry_metadata_table, bytes, ret_metadata);
}

void
lw_pulsar_metadata_encode(const struct lw_pulsar_metadata *metadata,
                          struct lw_proto_writer *writer)
{
    lw_pulsar_fields_encode(&lw_pulsar_metadata_table, metadata, writer);
}

void
lw_pulsar_single_metadata_encode(const struct lw_pulsar_single_metadata *metadata,
                                 struct lw_proto_writer *writer)
{
    lw_pulsar_fields_encode(&lw_pulsar_single_metadata_table, metadata, writer);
}

void
lw_pulsar_entry_metadata_encode(const struct lw_pulsar_entry_metadata *metadata,
                                struct lw_proto_writer *writer)
{
    lw_pulsar_fields_encode(&lw_pulsar_entry_metadata_table, metadata, writer);
}
