/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The payload part of frames and the bodies of batches, both ways. Every size is compared with
 * what is left before it is used; a batch whose count its bytes cannot hold is refused before
 * anybody makes room for the members. Pure.
 */
#include "brokers/pulsar/wire/message.h"

enum {
    MAGIC_ENTRY = 0x0e02,
    MAGIC_CHECKSUM = LW_PULSAR_MAGIC_CHECKSUM,
    MAGIC_BYTES = 2,
    SIZE_BYTES = 4,
    CHECKSUM_BYTES = 4,
};

LW_INLINE bool
has_magic(const struct lw_proto_reader *reader, unsigned magic)
{
    return reader->end - reader->at >= MAGIC_BYTES &&
           ((unsigned)reader->at[0] << 8 | reader->at[1]) == magic;
}

LW_INLINE bool
read_be32(struct lw_proto_reader *reader, uint32_t *ret_value)
{
    if (reader->end - reader->at < SIZE_BYTES) {
        return false;
    }
    *ret_value = lw_proto_load_be32(reader->at);
    reader->at += SIZE_BYTES;
    return true;
}

/* A block with its size before it. */
LW_INLINE bool
read_block(struct lw_proto_reader *reader, struct lw_bytes *ret_bytes)
{
    uint32_t size;
    if (!read_be32(reader, &size) || size > (size_t)(reader->end - reader->at)) {
        return false;
    }
    *ret_bytes = (struct lw_bytes){ reader->at, size };
    reader->at += size;
    return true;
}

enum lw_pulsar_fault
lw_pulsar_payload_open_any(struct lw_bytes rest, struct lw_pulsar_payload *ret_payload)
{
    struct lw_proto_reader reader = lw_proto_reader_of(rest);
    struct lw_pulsar_payload payload = { .has_checksum = false };
    bool is_good = true;
    if (rest.data == NULL) {
        return LW_PULSAR_METADATA_TOO_LARGE;
    }
    if (has_magic(&reader, MAGIC_ENTRY)) {
        reader.at += MAGIC_BYTES;
        if (!read_block(&reader, &payload.entry_metadata)) {
            return LW_PULSAR_ENTRY_MALFORMED;
        }
    }
    if (has_magic(&reader, MAGIC_CHECKSUM)) {
        reader.at += MAGIC_BYTES;
        payload.has_checksum = true;
        if (!read_be32(&reader, &payload.checksum)) {
            return LW_PULSAR_METADATA_TOO_LARGE;
        }
        is_good = lw_crc32c(0, reader.at, (size_t)(reader.end - reader.at)) == payload.checksum;
    }
    if (!read_block(&reader, &payload.metadata)) {
        /* the size itself may be what was corrupted */
        if (is_good) {
            return LW_PULSAR_METADATA_TOO_LARGE;
        }
        payload.metadata = (struct lw_bytes){ reader.end, 0 };
        reader.at = reader.end;
    }
    payload.body = (struct lw_bytes){ reader.at, (size_t)(reader.end - reader.at) };
    *ret_payload = payload;
    return is_good ? LW_PULSAR_OK : LW_PULSAR_CHECKSUM_WRONG;
}

/* -- Batches ---------------------------------------------------------------------------------- */

enum lw_pulsar_fault
lw_pulsar_batch_open(const struct lw_pulsar_metadata *metadata, struct lw_bytes body,
                     struct lw_pulsar_batch *ret_batch)
{
    struct lw_pulsar_batch batch = {
        .reader = lw_proto_reader_of(body),
        .compacted = lw_pulsar_list_walk(&metadata->compacted_batch_indexes),
        .count = metadata->num_messages_in_batch,
        .left = metadata->num_messages_in_batch,
        .is_compacted = metadata->compacted_batch_indexes.count > 0,
    };
    if (batch.is_compacted) {
        size_t left = lw_pulsar_list_numbers(&metadata->compacted_batch_indexes, NULL, 0);
        batch.left = left > INT32_MAX ? -1 : (int32_t)left;
    }
    bool is_sane = batch.count >= 1 && batch.left >= 0 && batch.left <= batch.count &&
                   (size_t)batch.left <= body.size / LW_PULSAR_MEMBER_BYTES_MIN;
    if (!is_sane) {
        return LW_PULSAR_BATCH_MALFORMED;
    }
    *ret_batch = batch;
    return LW_PULSAR_OK;
}

static bool
end_batch(struct lw_pulsar_batch *batch, enum lw_pulsar_fault fault)
{
    batch->fault = fault;
    batch->left = 0;
    return false;
}

/* The original index of the member that comes next: ascending in a compacted batch. */
static bool
take_index(struct lw_pulsar_batch *batch, int32_t *ret_index)
{
    if (!batch->is_compacted) {
        *ret_index = batch->next_index++;
        return true;
    }
    uint64_t index;
    if (!lw_pulsar_walk_number(&batch->compacted, &index) || index >= (uint64_t)batch->count) {
        return false;
    }
    *ret_index = (int32_t)index;
    return true;
}

bool
lw_pulsar_batch_next(struct lw_pulsar_batch *batch, struct lw_pulsar_member *ret_member)
{
    struct lw_bytes bytes;
    if (batch->left == 0) {
        return false;
    }
    if (!read_block(&batch->reader, &bytes) || !take_index(batch, &ret_member->index)) {
        return end_batch(batch, LW_PULSAR_BATCH_MALFORMED);
    }
    enum lw_pulsar_fault fault = lw_pulsar_single_metadata_decode(bytes, &ret_member->metadata);
    if (fault != LW_PULSAR_OK) {
        return end_batch(batch, fault);
    }
    int32_t size = ret_member->metadata.payload_size;
    if (size < 0 || size > batch->reader.end - batch->reader.at) {
        return end_batch(batch, LW_PULSAR_BATCH_MALFORMED);
    }
    bool is_null = ret_member->metadata.null_value;
    ret_member->value = (struct lw_bytes){ is_null ? NULL : batch->reader.at,
                                           is_null ? 0 : (size_t)size };
    batch->reader.at += size;
    batch->left--;
    return true;
}

void
lw_pulsar_batch_append(const struct lw_pulsar_single_metadata *metadata, struct lw_bytes value,
                       struct lw_proto_writer *writer)
{
    struct lw_pulsar_single_metadata own = *metadata;
    lw_assert(value.size <= INT32_MAX);
    own.payload_size = (int32_t)value.size;
    own.null_value = value.data == NULL;
    uint8_t *size_at = lw_proto_claim(writer, SIZE_BYTES);
    size_t begin = writer->size;
    lw_pulsar_single_metadata_encode(&own, writer);
    if (size_at != NULL) {
        lw_proto_store_be32(size_at, (uint32_t)(writer->size - begin));
    }
    lw_proto_put_raw(writer, value.data, value.size);
}

size_t
lw_pulsar_batch_member_size(const struct lw_pulsar_single_metadata *metadata,
                            struct lw_bytes value)
{
    struct lw_proto_writer measure = lw_proto_writer_of(NULL, 0);
    lw_pulsar_batch_append(metadata, value, &measure);
    return measure.size;
}

/* -- Writing ---------------------------------------------------------------------------------- */

/* Offsets in the writer of what is filled in when all that follows is known. */
struct head {
    size_t begin;
    size_t command_begin;
    size_t command_end;
    size_t checksum;
    size_t metadata_begin;
};

static struct head
begin_head(const struct lw_pulsar_command *command, struct lw_proto_writer *writer)
{
    lw_assert(lw_pulsar_command_has_payload(command->type));
    struct head head = { .begin = writer->size };
    (void)lw_proto_claim(writer, LW_PULSAR_HEAD_BYTES);
    head.command_begin = writer->size;
    lw_pulsar_command_encode(command, writer);
    head.command_end = writer->size;
    return head;
}

static void
begin_metadata(struct head *head, struct lw_proto_writer *writer)
{
    lw_proto_put_be16(writer, MAGIC_CHECKSUM);
    head->checksum = writer->size;
    (void)lw_proto_claim(writer, CHECKSUM_BYTES + SIZE_BYTES);
    head->metadata_begin = writer->size;
}

static void
end_head(const struct head *head, struct lw_pulsar_body body, struct lw_proto_writer *writer)
{
    size_t whole = writer->size - head->begin;
    for (size_t i = 0; i < body.count; i++) {
        whole += body.parts[i].size;
    }
    lw_assert(whole <= UINT32_MAX);
    if (lw_proto_is_overflow(writer) || writer->data == NULL) {
        return;
    }
    uint8_t *sizes = writer->data + head->begin;
    uint8_t *checksum = writer->data + head->checksum;
    uint8_t *covered = checksum + CHECKSUM_BYTES;
    size_t metadata_size = writer->size - head->metadata_begin;
    lw_proto_store_be32(sizes, (uint32_t)(whole - SIZE_BYTES));
    lw_proto_store_be32(sizes + SIZE_BYTES,
                        (uint32_t)(head->command_end - head->command_begin));
    lw_proto_store_be32(covered, (uint32_t)metadata_size);
    uint32_t crc = lw_crc32c(0, covered, SIZE_BYTES + metadata_size);
    for (size_t i = 0; i < body.count; i++) {
        crc = lw_crc32c(crc, body.parts[i].data, body.parts[i].size);
    }
    lw_proto_store_be32(checksum, crc);
}

void
lw_pulsar_payload_write_head(const struct lw_pulsar_command *command,
                             const struct lw_pulsar_entry_metadata *entry,
                             const struct lw_pulsar_metadata *metadata,
                             struct lw_pulsar_body body, struct lw_proto_writer *writer)
{
    struct head head = begin_head(command, writer);
    if (entry != NULL) {
        lw_proto_put_be16(writer, MAGIC_ENTRY);
        uint8_t *size_at = lw_proto_claim(writer, SIZE_BYTES);
        size_t begin = writer->size;
        lw_pulsar_entry_metadata_encode(entry, writer);
        if (size_at != NULL) {
            lw_proto_store_be32(size_at, (uint32_t)(writer->size - begin));
        }
    }
    begin_metadata(&head, writer);
    lw_pulsar_metadata_encode(metadata, writer);
    end_head(&head, body, writer);
}

void
lw_pulsar_payload_write_head_raw(const struct lw_pulsar_command *command, struct lw_bytes entry,
                                 struct lw_bytes metadata, struct lw_pulsar_body body,
                                 struct lw_proto_writer *writer)
{
    struct head head = begin_head(command, writer);
    if (entry.data != NULL) {
        lw_proto_put_be16(writer, MAGIC_ENTRY);
        lw_proto_put_be32(writer, (uint32_t)entry.size);
        lw_proto_put_raw(writer, entry.data, entry.size);
    }
    begin_metadata(&head, writer);
    lw_proto_put_raw(writer, metadata.data, metadata.size);
    end_head(&head, body, writer);
}
