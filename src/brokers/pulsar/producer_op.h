/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One entry on its way: a message, a batch, or all chunks of a message, from the moment when it
 * gets its sequence ids until its receipt. Its frames are kept so that they can be sent again as
 * they were: heads and bodies of batches are the op's, the bytes of a message that travels alone
 * stay with its publication. Ops come from a pool and keep small memory for the next use.
 */
#ifndef LW_BROKERS_PULSAR_PRODUCER_OP_H
#define LW_BROKERS_PULSAR_PRODUCER_OP_H

#include <laneway/plugin.h>

#include "base/pool.h"
#include "brokers/pulsar/connection.h"
#include "brokers/pulsar/wire/compress.h"
#include "brokers/pulsar/wire/message.h"

/* Memory for a body; kept for the next one if it is of the usual size. */
struct lw_pulsar_body_buffer {
    struct lw_pulsar_body_buffer *next;
    size_t capacity;
    uint8_t data[];
};

/* What ops share: of a publisher. */
struct lw_pulsar_ops {
    struct lw_pool pool;
    struct lw_pulsar_body_buffer *spare;
    uint32_t spare_count;
    struct lw_pulsar_codec *codec;
    uint8_t *scratch; /* properties and keys while a head is written */
    size_t scratch_capacity;
    uint64_t copies; /* bytes of payloads that were copied */
};

struct lw_pulsar_frame {
    struct lw_pulsar_output output; /* linked while the connection has it */
    size_t head_at;                 /* in the op's head */
    size_t head_size;
};

struct lw_pulsar_op {
    struct lw_list link; /* of the producer's pending ones */
    uint64_t first_id;
    uint64_t last_id;
    uint64_t deadline;
    struct lw_publication **items;
    uint32_t count;
    uint32_t items_capacity;
    uint8_t *head;
    size_t head_size;
    size_t head_capacity;
    struct lw_pulsar_body_buffer *body; /* NULL: the payload is the publication's */
    struct lw_bytes payload;
    struct lw_pulsar_frame *frames; /* &frame, or of its own */
    struct lw_pulsar_frame frame;
    uint32_t frame_count;   /* more than one: chunks */
    uint32_t frames_sent;   /* to the present connection */
    uint32_t receipts;      /* of it */
    uint64_t stored_ledger; /* where the last chunk with a receipt is stored */
    uint64_t stored_entry;
    struct lw_pulsar_connection *connection; /* that got frames last */
    bool was_sent;                           /* ever: without a receipt its fate is unknown */
};

enum lw_status lw_pulsar_ops_init(struct lw_pulsar_ops *ops, uint32_t count_max);
void lw_pulsar_ops_deinit(struct lw_pulsar_ops *ops); /* all were given back */
/* With room for `count` publications; NULL without memory or at the bound. */
struct lw_pulsar_op *lw_pulsar_op_take(struct lw_pulsar_ops *ops, uint32_t count);
/* What a connection still has of it stays valid. */
void lw_pulsar_op_give(struct lw_pulsar_ops *ops, struct lw_pulsar_op *op);
struct lw_pulsar_body_buffer *lw_pulsar_ops_buffer(struct lw_pulsar_ops *ops, size_t bytes);
void lw_pulsar_ops_drop_buffer(struct lw_pulsar_ops *ops, struct lw_pulsar_body_buffer *buffer);
uint8_t *lw_pulsar_ops_scratch(struct lw_pulsar_ops *ops, size_t bytes);
/* Head memory of the op; false without memory. */
bool lw_pulsar_op_reserve_head(struct lw_pulsar_op *op, size_t bytes);
/*
 * Takes the frame's output from a connection that has not sent it yet, by leaving a copy of the
 * body there. Without memory that connection is closed.
 */
void lw_pulsar_op_free_output(struct lw_pulsar_op *op, struct lw_pulsar_frame *frame);

struct lw_bytes
lw_pulsar_frame_head(const struct lw_pulsar_op *op, const struct lw_pulsar_frame *frame);
/* Bytes of metadata and body, which the broker's limit concerns. */
size_t lw_pulsar_frame_message_bytes(const struct lw_pulsar_op *op,
                                     const struct lw_pulsar_frame *frame);
/* Whether the checksum in the head is still that of metadata and body. */
bool
lw_pulsar_frame_is_sound(const struct lw_pulsar_op *op, const struct lw_pulsar_frame *frame);

/* What a SEND_RECEIPT says of the oldest op. */
enum lw_pulsar_receipt {
    LW_PULSAR_RECEIPT_LATE,
    LW_PULSAR_RECEIPT_OF_HEAD,
    LW_PULSAR_RECEIPT_AHEAD
};
enum lw_pulsar_receipt
lw_pulsar_receipt_judge(const struct lw_pulsar_op *head, uint64_t sequence_id);

#endif
