/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What ends an entry: its receipt, the broker's refusal, or its time. Receipts come in the order of
 * the SENDs; one below the oldest entry is late, one above all of it says that we and the broker
 * differ, and the connection is closed so that everything is sent again. The highest id in a
 * receipt is not looked at: brokers fill it with anything. A refusal that says nothing about the
 * message itself closes the connection, too, since what is behind the refused one may be refused
 * or not, and only sending all of it again keeps the order.
 */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "brokers/pulsar/producer_state.h"

static void
close_connection(struct lw_pulsar_producer *producer, const char *why)
{
    struct lw_error error;
    (void)lw_error_set(&error, LW_STATUS_UNAVAILABLE, "E0501",
                       "the connection to %s is made anew: %s, while publishing to %s",
                       lw_pulsar_connection_name(producer->connection), why, producer->name);
    lw_pulsar_connection_close(producer->connection, &error);
}

/* All chunks have the same sequence id: only the place tells a receipt that came twice. */
static bool
is_doubled(struct lw_pulsar_op *op, const struct lw_pulsar_message_id *stored)
{
    bool has_place = stored->ledger != UINT64_MAX;
    bool is_same = stored->ledger == op->stored_ledger && stored->entry == op->stored_entry;
    if (op->frame_count > 1 && op->receipts > 0 && has_place && is_same) {
        return true;
    }
    op->stored_ledger = stored->ledger;
    op->stored_entry = stored->entry;
    return false;
}

void
lw_pulsar_producer_on_receipt(struct lw_pulsar_producer *producer,
                              const struct lw_pulsar_send_receipt *receipt)
{
    struct lw_pulsar_publisher *publisher = lw_pulsar_publisher_of(producer);
    struct lw_pulsar_op *op = lw_pulsar_producer_head(producer);
    switch (lw_pulsar_receipt_judge(op, receipt->sequence_id)) {
    case LW_PULSAR_RECEIPT_LATE:
        return;
    case LW_PULSAR_RECEIPT_AHEAD:
        close_connection(producer, "a receipt came for what was sent later");
        return;
    case LW_PULSAR_RECEIPT_OF_HEAD:
        break;
    }
    if (op->receipts >= op->frames_sent || is_doubled(op, &receipt->message_id)) {
        return; /* it was not sent on this connection yet */
    }
    publisher->figures.receipts++;
    lw_pulsar_backoff_reset(&producer->backoff);
    if (++op->receipts == op->frame_count) {
        lw_pulsar_producer_end_op(producer, op, LW_STATUS_OK);
        lw_pulsar_producer_watch_deadline(producer);
        if (producer->ring.count > 0 || publisher->is_closing) {
            lw_pulsar_producer_defer_pump(producer);
        }
    }
}

/* -- Refusals -------------------------------------------------------------------------------------- */

static struct lw_pulsar_op *
find(const struct lw_pulsar_producer *producer, uint64_t sequence_id)
{
    for (struct lw_list *at = producer->pending.next; at != &producer->pending; at = at->next) {
        struct lw_pulsar_op *op = LW_CONTAINER(at, struct lw_pulsar_op, link);
        if (op->first_id == sequence_id && op->frames_sent > 0) {
            return op;
        }
    }
    return NULL;
}

static bool
has_text(struct lw_bytes message, const char *text)
{
    return message.data && memmem(message.data, message.size, text, strlen(text)) != NULL;
}

static bool
is_about_size(struct lw_bytes message)
{
    return has_text(message, "size") || has_text(message, "exceed") ||
           has_text(message, "Exceed") || has_text(message, "large");
}

/* A batch is refused as a whole for one of its members, or for its sum. */
static void
refuse_one(struct lw_pulsar_producer *producer, struct lw_pulsar_op *op,
           struct lw_bytes message)
{
    if (op->count > 1) {
        lw_pulsar_producer_split(producer, op);
        return;
    }
    lw_pulsar_producer_end_op(producer, op,
                              is_about_size(message) ? LW_STATUS_TOO_LARGE : LW_STATUS_INVALID);
}

/* Corrupted on the way: again. Changed here, against all promises: what it is now is refused. */
static void
on_checksum(struct lw_pulsar_producer *producer, struct lw_pulsar_op *op)
{
    for (uint32_t i = 0; i < op->frame_count; i++) {
        if (!lw_pulsar_frame_is_sound(op, &op->frames[i])) {
            lw_pulsar_producer_end_op(producer, op, LW_STATUS_UNAVAILABLE);
            return;
        }
    }
    close_connection(producer, "the broker saw a wrong checksum");
}

void
lw_pulsar_producer_on_send_error(struct lw_pulsar_producer *producer,
                                 const struct lw_pulsar_send_error *error)
{
    struct lw_pulsar_op *op = find(producer, error->sequence_id);
    struct lw_pulsar_failure failure;
    if (!op) {
        return; /* its time was over */
    }
    switch (error->error) {
    case LW_PULSAR_CHECKSUM_ERROR:
        on_checksum(producer, op);
        break;
    case LW_PULSAR_NOT_ALLOWED:
        refuse_one(producer, op, error->message);
        break;
    case LW_PULSAR_TOPIC_TERMINATED:
    case LW_PULSAR_PRODUCER_FENCED:
        lw_pulsar_failure_server(lw_pulsar_publisher_of(producer)->client, producer->what,
                                 error->error, error->message, &failure);
        lw_pulsar_producer_take_back(producer);
        lw_pulsar_producer_fail(producer, &failure);
        break;
    default: /* the broker's numbers, not ours */
        close_connection(producer, lw_pulsar_server_error_of(error->error)->meaning);
    }
}

/* -- Time ------------------------------------------------------------------------------------------ */

static uint64_t
first_deadline(const struct lw_pulsar_producer *producer)
{
    struct lw_pulsar_op *op = lw_pulsar_producer_head(producer);
    uint64_t due = op ? op->deadline : LW_NEVER;
    if (producer->ring.count > 0) {
        uint64_t first = lw_pulsar_ring_first(&producer->ring)->deadline;
        due = first < due ? first : due;
    }
    struct lw_list *open = lw_list_first(&producer->batches.open);
    if (open) {
        uint64_t first =
            LW_CONTAINER(open, struct lw_pulsar_open_batch, link)->items[0].deadline;
        due = first < due ? first : due;
    }
    return due;
}

/* An armed timer is left: it looks again when it fires, so that receipts do not touch the wheel. */
void
lw_pulsar_producer_watch_deadline(struct lw_pulsar_producer *producer)
{
    struct lw_timers *timers = &lw_pulsar_producer_host(producer)->timers;
    if (producer->messages == 0) {
        lw_timers_disarm(timers, &producer->deadline_timer);
    } else if (!lw_timer_is_armed(&producer->deadline_timer)) {
        lw_timers_arm(timers, &producer->deadline_timer, first_deadline(producer));
    }
}

static void
expire(struct lw_pulsar_producer *producer, uint64_t now)
{
    for (struct lw_pulsar_op *op;
         (op = lw_pulsar_producer_head(producer)) != NULL && op->deadline <= now;) {
        lw_pulsar_producer_end_op(producer, op,
                                  op->was_sent ? LW_STATUS_UNKNOWN : LW_STATUS_UNAVAILABLE);
    }
    while (producer->ring.count > 0 && lw_pulsar_ring_first(&producer->ring)->deadline <= now) {
        struct lw_pulsar_waiting item = lw_pulsar_ring_pop(&producer->ring);
        lw_pulsar_producer_receipt(producer, item.publication, LW_STATUS_UNAVAILABLE);
    }
}

void
lw_pulsar_producer_on_deadline(struct lw_timer *timer, uint64_t now)
{
    struct lw_pulsar_producer *producer = LW_CONTAINER(timer, struct lw_pulsar_producer,
                                                       deadline_timer);
    if (first_deadline(producer) <= now) {
        lw_pulsar_producer_unbatch(producer);
        expire(producer, now);
        lw_pulsar_producer_defer_pump(producer); /* puts what is left into batches again */
    }
    lw_pulsar_producer_watch_deadline(producer);
}
