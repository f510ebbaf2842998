/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of what is on its way. A connection reads a body until the kernel has it; when an op ends
 * before (its time is over, it goes to another connection), a copy takes its place in that
 * connection's queue and frees itself when it was sent. Such orphans are rare: a socket that takes
 * nothing for a whole send time-out, or a topic that moves meanwhile.
 */
#include "brokers/pulsar/producer_op.h"

#include <string.h>

#include "base/alloc.h"
#include "brokers/pulsar/wire/crc32c.h"

enum {
    CHUNK = 64,
    KEPT_ITEMS = 64,
    KEPT_HEAD = 2048,
    KEPT_BUFFER = 256 * 1024,
    BUFFER_MIN = 4096,
    SPARE_MAX = 32,
    MARK_BYTES = 2,
    CHECKSUM_BYTES = 4,
    SIZE_BYTES = 4
};

enum lw_status
lw_pulsar_ops_init(struct lw_pulsar_ops *ops, uint32_t count_max)
{
    memset(ops, 0, sizeof *ops);
    ops->codec = lw_pulsar_codec_create();
    return ops->codec ? lw_pool_init(&ops->pool, sizeof(struct lw_pulsar_op), count_max, CHUNK,
                                     NULL, NULL)
                      : LW_STATUS_NO_MEMORY;
}

void
lw_pulsar_ops_deinit(struct lw_pulsar_ops *ops)
{
    struct lw_pulsar_op *op;
    for (uint32_t i = 0; (op = lw_pool_at(&ops->pool, i)) != NULL; i++) {
        lw_free(op->items);
        lw_free(op->head);
    }
    lw_pool_deinit(&ops->pool);
    while (ops->spare) {
        struct lw_pulsar_body_buffer *buffer = ops->spare;
        ops->spare = buffer->next;
        lw_free(buffer);
    }
    lw_pulsar_codec_destroy(ops->codec);
    lw_free(ops->scratch);
}

/* -- Bodies ---------------------------------------------------------------------------------------- */

struct lw_pulsar_body_buffer *
lw_pulsar_ops_buffer(struct lw_pulsar_ops *ops, size_t bytes)
{
    struct lw_pulsar_body_buffer *buffer = ops->spare;
    if (buffer && buffer->capacity >= bytes) {
        ops->spare = buffer->next;
        ops->spare_count--;
        return buffer;
    }
    size_t capacity = bytes > BUFFER_MIN ? bytes : BUFFER_MIN;
    buffer = capacity < SIZE_MAX - sizeof *buffer ? lw_alloc(sizeof *buffer + capacity) : NULL;
    if (buffer) {
        buffer->capacity = capacity;
    }
    return buffer;
}

void
lw_pulsar_ops_drop_buffer(struct lw_pulsar_ops *ops, struct lw_pulsar_body_buffer *buffer)
{
    bool is_kept = buffer && buffer->capacity <= KEPT_BUFFER && ops->spare_count < SPARE_MAX;
    if (is_kept) {
        buffer->next = ops->spare;
        ops->spare = buffer;
        ops->spare_count++;
    } else {
        lw_free(buffer);
    }
}

uint8_t *
lw_pulsar_ops_scratch(struct lw_pulsar_ops *ops, size_t bytes)
{
    if (bytes > ops->scratch_capacity) {
        uint8_t *scratch = lw_resize_array(ops->scratch, bytes * 2, 1);
        if (!scratch) {
            return NULL;
        }
        ops->scratch = scratch;
        ops->scratch_capacity = bytes * 2;
    }
    return ops->scratch;
}

/* -- Ops ------------------------------------------------------------------------------------------- */

static bool
reserve_items(struct lw_pulsar_op *op, uint32_t count)
{
    if (count > op->items_capacity) {
        void *items = lw_resize_array(op->items, count, sizeof(struct lw_publication *));
        if (!items) {
            return false;
        }
        op->items = items;
        op->items_capacity = count;
    }
    return true;
}

struct lw_pulsar_op *
lw_pulsar_op_take(struct lw_pulsar_ops *ops, uint32_t count)
{
    struct lw_pulsar_op *op = lw_pool_take(&ops->pool);
    if (!op) {
        return NULL;
    }
    lw_list_init(&op->link);
    op->body = NULL;
    op->payload = (struct lw_bytes){ NULL, 0 };
    op->frame = (struct lw_pulsar_frame){ 0 };
    op->frames = &op->frame;
    op->frame_count = 1;
    op->frames_sent = 0;
    op->receipts = 0;
    op->connection = NULL;
    op->was_sent = false;
    op->head_size = 0;
    op->count = count;
    if (!reserve_items(op, count)) {
        lw_pool_give(&ops->pool, op);
        return NULL;
    }
    return op;
}

void
lw_pulsar_op_give(struct lw_pulsar_ops *ops, struct lw_pulsar_op *op)
{
    for (uint32_t i = 0; i < op->frame_count; i++) {
        lw_pulsar_op_free_output(op, &op->frames[i]);
    }
    lw_list_remove(&op->link);
    if (op->frames != &op->frame) {
        lw_free(op->frames);
    }
    lw_pulsar_ops_drop_buffer(ops, op->body);
    if (op->items_capacity > KEPT_ITEMS) {
        lw_free(op->items);
        op->items = NULL;
        op->items_capacity = 0;
    }
    if (op->head_capacity > KEPT_HEAD) {
        lw_free(op->head);
        op->head = NULL;
        op->head_capacity = 0;
    }
    lw_pool_give(&ops->pool, op);
}

bool
lw_pulsar_op_reserve_head(struct lw_pulsar_op *op, size_t bytes)
{
    if (bytes > op->head_capacity) {
        uint8_t *head = lw_resize_array(op->head, bytes + bytes / 2, 1);
        if (!head) {
            return false;
        }
        op->head = head;
        op->head_capacity = bytes + bytes / 2;
    }
    return true;
}

/* -- Orphans --------------------------------------------------------------------------------------- */

struct orphan {
    struct lw_pulsar_output output;
    uint8_t body[];
};

static void
free_orphan(struct lw_pulsar_output *output)
{
    lw_free(LW_CONTAINER(output, struct orphan, output));
}

static bool
leave_orphan(struct lw_pulsar_output *output)
{
    struct orphan *orphan = lw_alloc(sizeof *orphan + output->body.size);
    if (!orphan) {
        return false;
    }
    if (output->body.size > 0) {
        memcpy(orphan->body, output->body.data, output->body.size);
    }
    orphan->output = (struct lw_pulsar_output){ .body = { orphan->body, output->body.size },
                                                .head_bytes = output->head_bytes,
                                                .on_sent = free_orphan,
                                                .on_dropped = free_orphan };
    lw_list_insert(&output->link, &orphan->output.link);
    lw_list_remove(&output->link);
    return true;
}

void
lw_pulsar_op_free_output(struct lw_pulsar_op *op, struct lw_pulsar_frame *frame)
{
    struct lw_pulsar_output *output = &frame->output;
    bool is_linked = output->link.next && !lw_list_is_empty(&output->link);
    if (is_linked && !leave_orphan(output)) {
        struct lw_error error = { .status = LW_STATUS_NO_MEMORY,
                                  .message = "no memory for what is being sent" };
        lw_pulsar_connection_close(op->connection, &error);
    }
}

/* -- Frames ---------------------------------------------------------------------------------------- */

struct lw_bytes
lw_pulsar_frame_head(const struct lw_pulsar_op *op, const struct lw_pulsar_frame *frame)
{
    return (struct lw_bytes){ op->head + frame->head_at, frame->head_size };
}

/* Where the checksum stands: behind the sizes, the command and the mark. */
static const uint8_t *
checksum_of(struct lw_bytes head)
{
    const uint8_t *at = head.data;
    return at + LW_PULSAR_HEAD_BYTES + lw_proto_load_be32(at + SIZE_BYTES) + MARK_BYTES;
}

size_t
lw_pulsar_frame_message_bytes(const struct lw_pulsar_op *op,
                              const struct lw_pulsar_frame *frame)
{
    struct lw_bytes head = lw_pulsar_frame_head(op, frame);
    return lw_proto_load_be32(checksum_of(head) + CHECKSUM_BYTES) + frame->output.body.size;
}

bool
lw_pulsar_frame_is_sound(const struct lw_pulsar_op *op, const struct lw_pulsar_frame *frame)
{
    struct lw_bytes head = lw_pulsar_frame_head(op, frame);
    const uint8_t *checksum = checksum_of(head);
    const uint8_t *covered = checksum + CHECKSUM_BYTES;
    const uint8_t *end = (const uint8_t *)head.data + head.size;
    uint32_t crc = lw_crc32c(0, covered, (size_t)(end - covered));
    crc = lw_crc32c(crc, frame->output.body.data, frame->output.body.size);
    return crc == lw_proto_load_be32(checksum);
}

enum lw_pulsar_receipt
lw_pulsar_receipt_judge(const struct lw_pulsar_op *head, uint64_t sequence_id)
{
    if (!head || sequence_id < head->first_id) {
        return LW_PULSAR_RECEIPT_LATE;
    }
    return sequence_id <= head->last_id ? LW_PULSAR_RECEIPT_OF_HEAD : LW_PULSAR_RECEIPT_AHEAD;
}
