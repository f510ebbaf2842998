/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunks: one message in several frames with the same sequence id, each with the whole metadata and
 * its number, so that a consumer puts them together. They are one op, since only all of them are
 * the message: its receipt is that of the last one, and after a lost connection all are sent again
 * from the first. Sizes are those of metadata with the largest numbers, so no frame passes the
 * limit.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "brokers/pulsar/producer_encode.h"

enum { UUID_BYTES = 1024, NAME_BYTES_MAX = 960, HEAD_ROOM = 64, CHUNKS_MAX = 1 << 16 };

static size_t
measure(const struct lw_pulsar_metadata *metadata)
{
    struct lw_proto_writer writer = lw_proto_writer_of(NULL, 0);
    lw_pulsar_metadata_encode(metadata, &writer);
    return writer.size;
}

static void
write_frame(const struct lw_pulsar_command *command, const struct lw_pulsar_metadata *metadata,
            struct lw_pulsar_op *op, struct lw_pulsar_frame *frame)
{
    struct lw_pulsar_body body = { &frame->output.body, 1 };
    struct lw_proto_writer writer = lw_proto_writer_of(op->head + op->head_size,
                                                       op->head_capacity - op->head_size);
    lw_pulsar_payload_write_head(command, NULL, metadata, body, &writer);
    lw_assert(!lw_proto_is_overflow(&writer));
    frame->head_at = op->head_size;
    frame->head_size = writer.size;
    op->head_size += writer.size;
}

static bool
reserve(struct lw_pulsar_op *op, uint32_t count, size_t metadata_bytes)
{
    struct lw_pulsar_frame *frames = lw_alloc_array(count, sizeof *frames);
    if (!frames || !lw_pulsar_op_reserve_head(op, count * (metadata_bytes + HEAD_ROOM))) {
        lw_free(frames);
        return false;
    }
    op->frames = frames;
    op->frame_count = count;
    op->head_size = 0;
    return true;
}

static void
write_frames(const struct lw_pulsar_encoding *encoding, struct lw_pulsar_metadata *metadata,
             size_t each, struct lw_pulsar_op *op)
{
    const uint8_t *data = op->payload.data;
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_SEND);
    command.send.producer_id = encoding->producer_id;
    command.send.sequence_id = encoding->next_id;
    command.send.is_chunk = true;
    for (uint32_t i = 0; i < op->frame_count; i++) {
        size_t left = op->payload.size - i * each;
        op->frames[i].output.body = (struct lw_bytes){ data + i * each,
                                                       left < each ? left : each };
        metadata->chunk_id = (int32_t)i;
        write_frame(&command, metadata, op, &op->frames[i]);
    }
}

enum lw_status
lw_pulsar_encode_chunks(struct lw_pulsar_encoding *encoding,
                        struct lw_pulsar_metadata *metadata, struct lw_bytes payload,
                        struct lw_pulsar_op *op)
{
    char uuid[UUID_BYTES];
    size_t name = encoding->producer_name.size;
    int length = snprintf(uuid, sizeof uuid, "%.*s-%" PRIu64,
                          (int)(name < NAME_BYTES_MAX ? name : NAME_BYTES_MAX),
                          (const char *)encoding->producer_name.data, encoding->next_id);
    if (payload.size > INT32_MAX || length < 0) {
        return LW_STATUS_TOO_LARGE;
    }
    metadata->uuid = (struct lw_bytes){ uuid, (size_t)length };
    metadata->has |= LW_PULSAR_METADATA_HAS_NUM_CHUNKS |
                     LW_PULSAR_METADATA_HAS_TOTAL_CHUNK_SIZE | LW_PULSAR_METADATA_HAS_CHUNK_ID;
    metadata->total_chunk_msg_size = (int32_t)payload.size;
    metadata->num_chunks_from_msg = INT32_MAX;
    metadata->chunk_id = INT32_MAX;
    size_t bytes = measure(metadata);
    if (bytes >= encoding->message_bytes_max) {
        return LW_STATUS_TOO_LARGE;
    }
    size_t each = encoding->message_bytes_max - bytes;
    size_t count = (payload.size + each - 1) / each;
    if (count > CHUNKS_MAX) {
        return LW_STATUS_TOO_LARGE;
    }
    metadata->num_chunks_from_msg = (int32_t)count;
    if (!reserve(op, (uint32_t)count, bytes)) {
        return LW_STATUS_NO_MEMORY;
    }
    write_frames(encoding, metadata, each, op);
    return LW_STATUS_OK;
}
