/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encoding. A key is a text on the wire, so one that is not UTF-8, or that came as bytes in the
 * message of which this is a copy, goes in base64 with a mark. The first member's keys stand on
 * the batch as well, or a Key_Shared subscription would see none. A payload that compression does
 * not make smaller is sent as it is.
 */
#include "brokers/pulsar/producer_encode.h"

#include <string.h>

#include "base/text.h"
#include "brokers/pulsar/consumer.h"

enum { PAIR_BYTES = 24, HEAD_BYTES = 128 };

/* What metadata of messages and of members share. */
struct parts {
    struct lw_pulsar_list properties;
    struct lw_bytes key;
    bool is_bytes;
};

/* -- Keys and properties --------------------------------------------------------------------------- */

static size_t
base64_bytes(size_t size)
{
    return (size + 2) / 3 * 4;
}

static void
put_base64(struct lw_bytes from, uint8_t *out)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *at = from.data;
    for (size_t i = 0; i < from.size; i += 3, out += 4) {
        size_t left = from.size - i;
        uint32_t bits = (uint32_t)at[i] << 16;
        bits |= left > 1 ? (uint32_t)at[i + 1] << 8 : 0;
        bits |= left > 2 ? at[i + 2] : 0;
        out[0] = (uint8_t)digits[bits >> 18];
        out[1] = (uint8_t)digits[bits >> 12 & 63];
        out[2] = (uint8_t)(left > 1 ? digits[bits >> 6 & 63] : '=');
        out[3] = (uint8_t)(left > 2 ? digits[bits & 63] : '=');
    }
}

static bool
is_bytes_key(const struct lw_publication *publication)
{
    const struct lw_message *base = publication->base;
    struct lw_bytes key = publication->key;
    if (!lw_text_is_utf8(key.data, key.size)) {
        return true;
    }
    return base && lw_pulsar_message_has_bytes_key(base) && lw_bytes_is_equal(base->key, key);
}

static size_t
key_scratch_bytes(const struct lw_publication *publication)
{
    return base64_bytes(publication->key.size) + 1;
}

static struct lw_bytes
key_into(const struct lw_publication *publication, uint8_t *scratch, bool *ret_is_bytes)
{
    *ret_is_bytes = publication->key.data && is_bytes_key(publication);
    if (!*ret_is_bytes) {
        return publication->key;
    }
    put_base64(publication->key, scratch);
    return (struct lw_bytes){ scratch, base64_bytes(publication->key.size) };
}

struct lw_bytes
lw_pulsar_encode_key(struct lw_pulsar_ops *ops, const struct lw_publication *publication,
                     bool *ret_is_bytes)
{
    uint8_t *scratch = lw_pulsar_ops_scratch(ops, key_scratch_bytes(publication));
    *ret_is_bytes = false;
    return scratch ? key_into(publication, scratch, ret_is_bytes)
                   : (struct lw_bytes){ NULL, 0 };
}

static size_t
pair_bytes_max(const struct lw_publication *publication)
{
    size_t bytes = 0;
    for (size_t i = 0; i < publication->header_count; i++) {
        const struct lw_header *header = &publication->headers[i];
        bytes += PAIR_BYTES + header->name.size + header->value.size;
    }
    return bytes;
}

static bool
make_parts(struct lw_pulsar_ops *ops, const struct lw_publication *publication,
           struct parts *ret_parts)
{
    size_t pairs = pair_bytes_max(publication);
    uint8_t *scratch = lw_pulsar_ops_scratch(ops, pairs + key_scratch_bytes(publication));
    if (!scratch) {
        return false;
    }
    struct lw_proto_writer writer = lw_proto_writer_of(scratch, pairs);
    for (size_t i = 0; i < publication->header_count; i++) {
        const struct lw_header *header = &publication->headers[i];
        lw_pulsar_list_put_pair(&writer, header->name, header->value);
    }
    ret_parts->properties = lw_pulsar_list_of(&writer);
    ret_parts->key = key_into(publication, scratch + pairs, &ret_parts->is_bytes);
    return true;
}

static struct lw_bytes
schema_of(const struct lw_pulsar_encoding *encoding, const struct lw_publication *publication)
{
    if (encoding->schema_version.size > 0 || !publication->base) {
        return encoding->schema_version;
    }
    return lw_pulsar_message_schema_version(publication->base);
}

static struct lw_pulsar_metadata
metadata_of(const struct lw_pulsar_encoding *encoding, const struct lw_publication *publication,
            const struct parts *parts)
{
    struct lw_pulsar_metadata metadata = lw_pulsar_metadata_of();
    metadata.producer_name = encoding->producer_name;
    metadata.sequence_id = encoding->next_id;
    metadata.publish_time = (uint64_t)encoding->wall_ms;
    metadata.partition_key = parts->key;
    metadata.is_key_b64 = parts->is_bytes;
    metadata.ordering_key = publication->ordering_key;
    metadata.schema_version = schema_of(encoding, publication);
    if (metadata.schema_version.size == 0) {
        metadata.schema_version.data = NULL;
    }
    return metadata;
}

/* -- Compression ----------------------------------------------------------------------------------- */

/* The smaller form in *buffer, or `plain` as it is; marks the metadata. False without memory. */
static bool
compress(struct lw_pulsar_encoding *encoding, struct lw_bytes plain,
         struct lw_pulsar_metadata *metadata, struct lw_pulsar_body_buffer **ret_buffer,
         struct lw_bytes *ret_bytes)
{
    *ret_bytes = plain;
    size_t bound = plain.size > 0 && encoding->compression != LW_PULSAR_COMPRESSION_NONE
                       ? lw_pulsar_compress_bound(encoding->compression, plain.size)
                       : 0;
    if (bound == 0) {
        return true;
    }
    struct lw_pulsar_body_buffer *buffer = lw_pulsar_ops_buffer(encoding->ops, bound);
    if (!buffer) {
        return false;
    }
    struct lw_proto_writer writer = lw_proto_writer_of(buffer->data, buffer->capacity);
    enum lw_pulsar_fault fault = lw_pulsar_compress(encoding->ops->codec, encoding->compression,
                                                    plain, &writer);
    if (fault != LW_PULSAR_OK || writer.size >= plain.size || plain.size > UINT32_MAX) {
        lw_pulsar_ops_drop_buffer(encoding->ops, buffer);
        return fault == LW_PULSAR_OK || fault != LW_PULSAR_NO_MEMORY;
    }
    metadata->compression = encoding->compression;
    metadata->uncompressed_size = (uint32_t)plain.size;
    *ret_buffer = buffer;
    *ret_bytes = lw_proto_written(&writer);
    return true;
}

/* -- Heads ------------------------------------------------------------------------------------------ */

static bool
write_head(struct lw_pulsar_op *op, const struct lw_pulsar_command *command,
           const struct lw_pulsar_metadata *metadata)
{
    struct lw_pulsar_body body = { &op->payload, 1 };
    for (int pass = 0; pass < 2; pass++) {
        struct lw_proto_writer writer = lw_proto_writer_of(op->head, op->head_capacity);
        lw_pulsar_payload_write_head(command, NULL, metadata, body, &writer);
        op->head_size = writer.size;
        if (!lw_proto_is_overflow(&writer) && op->head) {
            op->frame.head_at = 0;
            op->frame.head_size = writer.size;
            op->frame.output.body = op->payload;
            return true;
        }
        if (!lw_pulsar_op_reserve_head(op, writer.size + HEAD_BYTES)) {
            return false;
        }
    }
    return false;
}

static size_t
metadata_bytes(const struct lw_pulsar_metadata *metadata)
{
    struct lw_proto_writer measure = lw_proto_writer_of(NULL, 0);
    lw_pulsar_metadata_encode(metadata, &measure);
    return measure.size;
}

static struct lw_pulsar_command
send_of(const struct lw_pulsar_encoding *encoding)
{
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_SEND);
    command.send.producer_id = encoding->producer_id;
    command.send.sequence_id = encoding->next_id;
    return command;
}

static void
take_ids(struct lw_pulsar_encoding *encoding, struct lw_pulsar_op *op)
{
    op->first_id = encoding->next_id;
    op->last_id = encoding->next_id + op->count - 1;
    encoding->next_id += op->count;
}

static enum lw_status
give_up(struct lw_pulsar_encoding *encoding, struct lw_pulsar_op *op, enum lw_status status)
{
    lw_pulsar_op_give(encoding->ops, op);
    return status;
}

/* -- One message ------------------------------------------------------------------------------------ */

static bool
is_small_enough(const struct lw_pulsar_encoding *encoding, const struct lw_pulsar_op *op,
                const struct lw_pulsar_metadata *metadata)
{
    /* Most are far below the limit: only those near it are measured. */
    size_t about = op->payload.size + metadata->properties.size + metadata->partition_key.size +
                   metadata->ordering_key.size + metadata->producer_name.size +
                   metadata->schema_version.size + HEAD_BYTES;
    return about <= encoding->message_bytes_max ||
           metadata_bytes(metadata) + op->payload.size <= encoding->message_bytes_max;
}

static void
set_single(const struct lw_pulsar_encoding *encoding, const struct lw_publication *publication,
           const struct parts *parts, struct lw_pulsar_metadata *metadata)
{
    metadata->properties = parts->properties;
    metadata->event_time = publication->event_time_ms > 0 ? (uint64_t)publication->event_time_ms
                                                          : 0;
    metadata->null_value = publication->value.data == NULL;
    if (publication->delay_ms > 0) {
        metadata->has |= LW_PULSAR_METADATA_HAS_DELIVER_AT;
        metadata->deliver_at_time = encoding->wall_ms + publication->delay_ms;
    }
}

/*
 * A copy of an encrypted message: its bytes go as they came, with all that decrypting and unpacking
 * them needs. False: it is none.
 */
static bool
seal(const struct lw_publication *publication, struct lw_pulsar_metadata *metadata)
{
    struct lw_pulsar_metadata from;
    struct lw_bytes sealed = { NULL, 0 };
    if (publication->base && publication->value.data) {
        sealed = lw_pulsar_message_sealed(publication->base);
    }
    if (!sealed.data || lw_pulsar_metadata_decode(sealed, &from) != LW_PULSAR_OK) {
        return false;
    }
    metadata->has |= from.has &
                     (LW_PULSAR_METADATA_HAS_NUM_MESSAGES | LW_PULSAR_METADATA_HAS_NUM_CHUNKS |
                      LW_PULSAR_METADATA_HAS_TOTAL_CHUNK_SIZE |
                      LW_PULSAR_METADATA_HAS_CHUNK_ID);
    metadata->num_messages_in_batch = from.num_messages_in_batch;
    metadata->uuid = from.uuid;
    metadata->num_chunks_from_msg = from.num_chunks_from_msg;
    metadata->total_chunk_msg_size = from.total_chunk_msg_size;
    metadata->chunk_id = from.chunk_id;
    metadata->compression = from.compression;
    metadata->uncompressed_size = from.uncompressed_size;
    metadata->encryption_keys = from.encryption_keys;
    metadata->encryption_algo = from.encryption_algo;
    metadata->encryption_param = from.encryption_param;
    return true;
}

static enum lw_status
write_single(struct lw_pulsar_encoding *encoding, struct lw_pulsar_metadata *metadata,
             struct lw_pulsar_op *op)
{
    bool is_sealed = metadata->encryption_keys.count > 0; /* it cannot be cut */
    if (!is_small_enough(encoding, op, metadata)) {
        return encoding->chunks && !is_sealed
                   ? lw_pulsar_encode_chunks(encoding, metadata, op->payload, op)
                   : LW_STATUS_TOO_LARGE;
    }
    struct lw_pulsar_command command = send_of(encoding);
    if (metadata->has & LW_PULSAR_METADATA_HAS_NUM_MESSAGES) {
        command.send.has |= LW_PULSAR_SEND_HAS_NUM_MESSAGES;
        command.send.num_messages = metadata->num_messages_in_batch;
    }
    return write_head(op, &command, metadata) ? LW_STATUS_OK : LW_STATUS_NO_MEMORY;
}

enum lw_status
lw_pulsar_encode_single(struct lw_pulsar_encoding *encoding,
                        const struct lw_pulsar_waiting *item, struct lw_pulsar_op **ret_op)
{
    const struct lw_publication *publication = item->publication;
    struct parts parts;
    struct lw_pulsar_op *op = lw_pulsar_op_take(encoding->ops, 1);
    if (!op) {
        return LW_STATUS_NO_MEMORY;
    }
    if (!make_parts(encoding->ops, publication, &parts)) {
        return give_up(encoding, op, LW_STATUS_NO_MEMORY);
    }
    struct lw_pulsar_metadata metadata = metadata_of(encoding, publication, &parts);
    set_single(encoding, publication, &parts, &metadata);
    op->payload = publication->value;
    if (!seal(publication, &metadata) &&
        !compress(encoding, publication->value, &metadata, &op->body, &op->payload)) {
        return give_up(encoding, op, LW_STATUS_NO_MEMORY);
    }
    op->items[0] = item->publication;
    op->deadline = item->deadline;
    enum lw_status status = write_single(encoding, &metadata, op);
    if (status != LW_STATUS_OK) {
        return give_up(encoding, op, status);
    }
    encoding->ops->copies += op->body ? op->payload.size : 0;
    take_ids(encoding, op);
    *ret_op = op;
    return LW_STATUS_OK;
}

/* -- Batches ---------------------------------------------------------------------------------------- */

static bool
append(struct lw_pulsar_encoding *encoding, const struct lw_publication *publication,
       uint64_t id, struct lw_proto_writer *writer)
{
    struct parts parts;
    struct lw_pulsar_single_metadata metadata = lw_pulsar_single_metadata_of();
    if (!make_parts(encoding->ops, publication, &parts)) {
        return false;
    }
    metadata.properties = parts.properties;
    metadata.partition_key = parts.key;
    metadata.is_key_b64 = parts.is_bytes;
    metadata.ordering_key = publication->ordering_key;
    metadata.event_time = publication->event_time_ms > 0 ? (uint64_t)publication->event_time_ms
                                                         : 0;
    metadata.sequence_id = id;
    lw_pulsar_batch_append(&metadata, publication->value, writer);
    encoding->ops->copies += publication->value.size;
    return true;
}

/* The body, not compressed. NULL without memory. */
static struct lw_pulsar_body_buffer *
make_body(struct lw_pulsar_encoding *encoding, const struct lw_pulsar_open_batch *batch,
          struct lw_pulsar_op *op)
{
    struct lw_pulsar_body_buffer *buffer = lw_pulsar_ops_buffer(encoding->ops, batch->bytes);
    if (!buffer) {
        return NULL;
    }
    struct lw_proto_writer writer = lw_proto_writer_of(buffer->data, buffer->capacity);
    for (uint32_t i = 0; i < batch->count; i++) {
        op->items[i] = batch->items[i].publication;
        if (!append(encoding, op->items[i], encoding->next_id + i, &writer)) {
            lw_pulsar_ops_drop_buffer(encoding->ops, buffer);
            return NULL;
        }
    }
    lw_assert(!lw_proto_is_overflow(&writer));
    op->payload = lw_proto_written(&writer);
    return buffer;
}

static bool
pack_body(struct lw_pulsar_encoding *encoding, struct lw_pulsar_metadata *metadata,
          struct lw_pulsar_op *op)
{
    struct lw_pulsar_body_buffer *packed = NULL;
    if (!compress(encoding, op->payload, metadata, &packed, &op->payload)) {
        return false;
    }
    if (packed) {
        lw_pulsar_ops_drop_buffer(encoding->ops, op->body);
        op->body = packed;
        encoding->ops->copies += op->payload.size;
    }
    return true;
}

static enum lw_status
write_batch(struct lw_pulsar_encoding *encoding, struct lw_pulsar_op *op)
{
    struct parts parts;
    struct lw_pulsar_command command = send_of(encoding);
    if (!make_parts(encoding->ops, op->items[0], &parts)) {
        return LW_STATUS_NO_MEMORY;
    }
    struct lw_pulsar_metadata metadata = metadata_of(encoding, op->items[0], &parts);
    metadata.num_messages_in_batch = (int32_t)op->count;
    metadata.has |= LW_PULSAR_METADATA_HAS_NUM_MESSAGES |
                    LW_PULSAR_METADATA_HAS_HIGHEST_SEQUENCE_ID;
    metadata.highest_sequence_id = encoding->next_id + op->count - 1;
    command.send.has |= LW_PULSAR_SEND_HAS_NUM_MESSAGES |
                        LW_PULSAR_SEND_HAS_HIGHEST_SEQUENCE_ID;
    command.send.num_messages = (int32_t)op->count;
    command.send.highest_sequence_id = metadata.highest_sequence_id;
    if (!pack_body(encoding, &metadata, op)) {
        return LW_STATUS_NO_MEMORY;
    }
    if (!is_small_enough(encoding, op, &metadata)) {
        return LW_STATUS_TOO_LARGE;
    }
    return write_head(op, &command, &metadata) ? LW_STATUS_OK : LW_STATUS_NO_MEMORY;
}

enum lw_status
lw_pulsar_encode_batch(struct lw_pulsar_encoding *encoding,
                       const struct lw_pulsar_open_batch *batch, struct lw_pulsar_op **ret_op)
{
    struct lw_pulsar_op *op = lw_pulsar_op_take(encoding->ops, batch->count);
    if (!op) {
        return LW_STATUS_NO_MEMORY;
    }
    op->deadline = batch->items[0].deadline;
    op->body = make_body(encoding, batch, op);
    if (!op->body) {
        return give_up(encoding, op, LW_STATUS_NO_MEMORY);
    }
    enum lw_status status = write_batch(encoding, op);
    if (status != LW_STATUS_OK) {
        return give_up(encoding, op, status);
    }
    take_ids(encoding, op);
    *ret_op = op;
    return LW_STATUS_OK;
}
