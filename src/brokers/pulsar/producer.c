/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages of one concrete topic, in order: they wait until there is a session, are batched,
 * get their ids when their entry is made, and are pending until its receipt. Entries are only made
 * while there is a session and its connection has room, so all that is pending is or was on its
 * way; after a reconnect it is sent first, as it was.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "brokers/pulsar/consumer.h"
#include "brokers/pulsar/producer_state.h"

static void on_pump(struct lw_deferred *deferred);
static void on_batch_due(struct lw_timer *timer, uint64_t now);

static const uint8_t next_states[] = {
    [LW_PULSAR_PRODUCER_WAITING] = 1 << LW_PULSAR_PRODUCER_FINDING,
    [LW_PULSAR_PRODUCER_FINDING] = 1 << LW_PULSAR_PRODUCER_CREATING |
                                   1 << LW_PULSAR_PRODUCER_WAITING,
    [LW_PULSAR_PRODUCER_CREATING] = 1 << LW_PULSAR_PRODUCER_READY |
                                    1 << LW_PULSAR_PRODUCER_QUEUED |
                                    1 << LW_PULSAR_PRODUCER_WAITING,
    [LW_PULSAR_PRODUCER_QUEUED] = 1 << LW_PULSAR_PRODUCER_READY |
                                  1 << LW_PULSAR_PRODUCER_WAITING,
    [LW_PULSAR_PRODUCER_READY] = 1 << LW_PULSAR_PRODUCER_WAITING |
                                 1 << LW_PULSAR_PRODUCER_CLOSING,
    [LW_PULSAR_PRODUCER_CLOSING] = 1 << LW_PULSAR_PRODUCER_WAITING,
    [LW_PULSAR_PRODUCER_ENDED] = 0,
};

void
lw_pulsar_producer_set_state(struct lw_pulsar_producer *producer,
                             enum lw_pulsar_producer_state state)
{
    lw_assert(state == LW_PULSAR_PRODUCER_ENDED ||
              (next_states[producer->state] & 1 << state) != 0);
    producer->state = state;
}

/* -- Life ------------------------------------------------------------------------------------------ */

static char *
join(const char *a, const char *b)
{
    size_t size = strlen(a) + strlen(b) + 1;
    char *text = lw_alloc(size);
    if (text) {
        (void)snprintf(text, size, "%s%s", a, b);
    }
    return text;
}

/* "NAME-TOPIC": names are the broker's for each topic, ours are shown in its statistics. */
static bool
take_name(struct lw_pulsar_producer *producer, const char *prefix)
{
    if (!prefix) {
        return true;
    }
    char *start = join(prefix, "-");
    producer->producer_name = start ? join(start, producer->name) : NULL;
    producer->is_name_ours = true;
    lw_free(start);
    return producer->producer_name != NULL;
}

static void
init_parts(struct lw_pulsar_producer *producer,
           const struct lw_pulsar_producer_settings *options)
{
    lw_list_init(&producer->pending);
    lw_list_init(&producer->link);
    lw_timer_init(&producer->retry_timer, lw_pulsar_producer_on_retry);
    lw_timer_init(&producer->deadline_timer, lw_pulsar_producer_on_deadline);
    lw_timer_init(&producer->batch_timer, on_batch_due);
    lw_deferred_init(&producer->pump, on_pump);
    lw_pulsar_batches_init(&producer->batches,
                           options->batches ? options->batch_messages_max : 1,
                           options->batch_bytes_max, options->batches_by_key);
}

struct lw_pulsar_producer *
lw_pulsar_producer_create(struct lw_pulsar_topic *topic, const char *name,
                          struct lw_pulsar_producer **place)
{
    struct lw_pulsar_publisher *publisher = topic->publisher;
    struct lw_pulsar_producer *producer = lw_alloc(sizeof *producer);
    if (!producer) {
        return NULL;
    }
    producer->topic = topic;
    producer->place = place;
    init_parts(producer, publisher->options);
    producer->name = lw_copy_text(name);
    producer->what = join("publish to ", name);
    producer->user = (struct lw_pulsar_user){ .ops = &lw_pulsar_producer_user_ops,
                                              .kind = LW_PULSAR_USER_PRODUCER,
                                              .id = publisher->client->next_producer_id++ };
    producer->used_at = publisher->client->host->now;
    topic->producer_count++;
    publisher->producer_count++;
    publisher->figures.producers++;
    lw_list_push_front(&publisher->producers, &producer->link);
    *place = producer;
    if (!producer->name || !producer->what ||
        !take_name(producer, publisher->options->producer_name)) {
        lw_pulsar_producer_destroy(producer);
        return NULL;
    }
    return producer;
}

void
lw_pulsar_producer_destroy(struct lw_pulsar_producer *producer)
{
    struct lw_pulsar_publisher *publisher = lw_pulsar_publisher_of(producer);
    struct lw_timers *timers = &publisher->client->host->timers;
    lw_pulsar_producer_detach(producer);
    lw_pulsar_request_cancel(&producer->close);
    lw_pulsar_find_cancel(&producer->find);
    lw_timers_disarm(timers, &producer->retry_timer);
    lw_timers_disarm(timers, &producer->deadline_timer);
    lw_timers_disarm(timers, &producer->batch_timer);
    lw_deferred_cancel(&producer->pump);
    for (struct lw_list *node; (node = lw_list_first(&producer->pending)) != NULL;) {
        lw_pulsar_op_give(&publisher->entries, LW_CONTAINER(node, struct lw_pulsar_op, link));
    }
    publisher->producer_count -= producer->state == LW_PULSAR_PRODUCER_CLOSING ? 0 : 1;
    publisher->figures.producers--;
    producer->topic->producer_count--;
    *producer->place = NULL;
    lw_list_remove(&producer->link);
    lw_pulsar_batches_deinit(&producer->batches);
    lw_pulsar_ring_deinit(&producer->ring);
    lw_free(producer->schema_memory);
    lw_free(producer->producer_name);
    lw_free(producer->what);
    lw_free(producer->name);
    lw_free(producer);
}

/* -- Taking ---------------------------------------------------------------------------------------- */

static bool
has_room(const struct lw_pulsar_producer *producer, uint64_t bytes)
{
    const struct lw_pulsar_producer_settings *options =
        lw_pulsar_publisher_of(producer)->options;
    uint32_t parts = producer->topic->partitions;
    uint32_t share = parts > 0 ? options->pending_topic_max / parts : 0;
    uint32_t most = options->pending_max;
    if (parts > 0 && options->pending_topic_max > 0 && share < most) {
        most = share > 0 ? share : 1;
    }
    bool fits = options->pending_bytes_max == 0 || producer->messages == 0 ||
                producer->bytes + bytes <= options->pending_bytes_max;
    return fits && producer->messages < most;
}

/*
 * A topic that cannot be written to must not hold up the others: what it has no room for is
 * refused for a passing reason, while one that only is slow makes its callers wait.
 */
enum lw_pulsar_accepted
lw_pulsar_producer_take(struct lw_pulsar_producer *producer, struct lw_pulsar_waiting item)
{
    struct lw_pulsar_publisher *publisher = lw_pulsar_publisher_of(producer);
    uint64_t bytes = lw_pulsar_publication_bytes(item.publication);
    if (!has_room(producer, bytes)) {
        return producer->is_blocked ? LW_PULSAR_REFUSED : LW_PULSAR_NO_ROOM;
    }
    if (!lw_pulsar_ring_reserve(&producer->ring, producer->messages + 1)) {
        return LW_PULSAR_NO_ROOM;
    }
    lw_pulsar_ring_push(&producer->ring, item);
    producer->messages++;
    producer->bytes += bytes;
    publisher->figures.pending++;
    publisher->figures.pending_bytes += bytes;
    producer->used_at = publisher->client->host->now;
    if (publisher->producers.next != &producer->link) {
        lw_list_remove(&producer->link);
        lw_list_push_front(&publisher->producers, &producer->link);
    }
    lw_pulsar_producer_defer_pump(producer);
    return LW_PULSAR_ACCEPTED;
}

void
lw_pulsar_producer_defer_pump(struct lw_pulsar_producer *producer)
{
    lw_host_defer(lw_pulsar_producer_host(producer), &producer->pump);
}

/* -- Receipts -------------------------------------------------------------------------------------- */

void
lw_pulsar_producer_receipt(struct lw_pulsar_producer *producer,
                           struct lw_publication *publication, enum lw_status status)
{
    struct lw_pulsar_publisher *publisher = lw_pulsar_publisher_of(producer);
    uint64_t bytes = lw_pulsar_publication_bytes(publication);
    producer->messages--;
    producer->bytes -= bytes;
    publisher->figures.pending--;
    publisher->figures.pending_bytes -= bytes;
    lw_pulsar_publisher_receipt(publisher, publication, status);
}

struct lw_pulsar_op *
lw_pulsar_producer_head(const struct lw_pulsar_producer *producer)
{
    struct lw_list *node = lw_list_first(&producer->pending);
    return node ? LW_CONTAINER(node, struct lw_pulsar_op, link) : NULL;
}

static void
forget_op(struct lw_pulsar_producer *producer, struct lw_pulsar_op *op)
{
    if (producer->unsent == op) {
        struct lw_list *next = op->link.next;
        producer->unsent = next == &producer->pending
                               ? NULL
                               : LW_CONTAINER(next, struct lw_pulsar_op, link);
    }
    lw_pulsar_op_give(&lw_pulsar_publisher_of(producer)->entries, op);
}

void
lw_pulsar_producer_end_op(struct lw_pulsar_producer *producer, struct lw_pulsar_op *op,
                          enum lw_status status)
{
    for (uint32_t i = 0; i < op->count; i++) {
        lw_pulsar_producer_receipt(producer, op->items[i], status);
    }
    forget_op(producer, op);
}

void
lw_pulsar_producer_split(struct lw_pulsar_producer *producer, struct lw_pulsar_op *op)
{
    for (uint32_t i = op->count; i > 0; i--) {
        struct lw_pulsar_waiting item = { op->items[i - 1], op->deadline, true };
        lw_pulsar_ring_push_front(&producer->ring, item);
    }
    forget_op(producer, op);
    lw_pulsar_producer_defer_pump(producer);
}

void
lw_pulsar_producer_unbatch(struct lw_pulsar_producer *producer)
{
    struct lw_pulsar_batches *batches = &producer->batches;
    for (struct lw_pulsar_open_batch *batch;
         (batch = lw_pulsar_batches_take_last(batches)) != NULL;) {
        for (uint32_t i = batch->count; i > 0; i--) {
            lw_pulsar_ring_push_front(&producer->ring, batch->items[i - 1]);
        }
        lw_pulsar_batches_give(batches, batch);
    }
    lw_timers_disarm(&lw_pulsar_producer_host(producer)->timers, &producer->batch_timer);
}

void
lw_pulsar_producer_refuse_all(struct lw_pulsar_producer *producer, enum lw_status status)
{
    lw_pulsar_producer_unbatch(producer);
    for (struct lw_pulsar_op *op; (op = lw_pulsar_producer_head(producer)) != NULL;) {
        lw_pulsar_producer_end_op(producer, op, op->was_sent ? LW_STATUS_UNKNOWN : status);
    }
    while (producer->ring.count > 0) {
        struct lw_pulsar_waiting item = lw_pulsar_ring_pop(&producer->ring);
        lw_pulsar_producer_receipt(producer, item.publication, status);
    }
}

/* -- Sending --------------------------------------------------------------------------------------- */

static bool
can_send(const struct lw_pulsar_producer *producer)
{
    return producer->state == LW_PULSAR_PRODUCER_READY &&
           lw_pulsar_connection_state(producer->connection) == LW_PULSAR_READY &&
           lw_pulsar_connection_has_room(producer->connection);
}

static void
count_sent(struct lw_pulsar_producer *producer, const struct lw_pulsar_op *op)
{
    struct lw_pulsar_publisher_figures *figures = &lw_pulsar_publisher_of(producer)->figures;
    figures->sent += op->count;
    figures->sent_again += op->was_sent ? op->count : 0;
}

/* True when all of it is with the connection. */
static bool
send_op(struct lw_pulsar_producer *producer, struct lw_pulsar_op *op)
{
    while (op->frames_sent < op->frame_count && can_send(producer)) {
        struct lw_pulsar_frame *frame = &op->frames[op->frames_sent];
        lw_pulsar_op_free_output(op, frame);
        if (op->frames_sent == 0) {
            count_sent(producer, op);
        }
        op->connection = producer->connection;
        op->was_sent = true;
        if (!lw_pulsar_connection_send_frame(producer->connection,
                                             lw_pulsar_frame_head(op, frame), &frame->output)) {
            return false; /* it was closed, which is told soon */
        }
        op->frames_sent++;
    }
    return op->frames_sent == op->frame_count;
}

/* This connection takes less than the one for which the op was made. */
static bool
is_too_large(const struct lw_pulsar_producer *producer, const struct lw_pulsar_op *op)
{
    size_t limit = lw_pulsar_connection_message_bytes_max(producer->connection);
    return op->frames_sent == 0 && lw_pulsar_frame_message_bytes(op, &op->frames[0]) > limit;
}

static void
send_pending(struct lw_pulsar_producer *producer)
{
    while (producer->unsent && can_send(producer)) {
        struct lw_pulsar_op *op = producer->unsent;
        if (is_too_large(producer, op)) {
            lw_pulsar_producer_split(producer, op); /* made anew, in its members, if they fit */
            continue;
        }
        if (!send_op(producer, op)) {
            return;
        }
        struct lw_list *next = op->link.next;
        producer->unsent = next == &producer->pending
                               ? NULL
                               : LW_CONTAINER(next, struct lw_pulsar_op, link);
    }
}

static void
add_op(struct lw_pulsar_producer *producer, struct lw_pulsar_op *op)
{
    lw_list_push(&producer->pending, &op->link);
    if (!producer->unsent) {
        producer->unsent = op;
    }
    send_pending(producer);
}

/* -- Making entries -------------------------------------------------------------------------------- */

static struct lw_pulsar_encoding
encoding_of(struct lw_pulsar_producer *producer)
{
    struct lw_pulsar_publisher *publisher = lw_pulsar_publisher_of(producer);
    struct lw_host *host = publisher->client->host;
    return (struct lw_pulsar_encoding){
        .ops = &publisher->entries,
        .producer_id = producer->user.id,
        .producer_name = lw_bytes_of(producer->producer_name),
        .schema_version = { producer->schema_version, producer->schema_version_size },
        .compression = publisher->options->compression,
        .chunks = publisher->options->chunks && producer->topic->is_persistent,
        .message_bytes_max = lw_pulsar_connection_message_bytes_max(producer->connection),
        .next_id = producer->next_id,
        .wall_ms = host->ops->wall_ms(host),
    };
}

static void
make_single(struct lw_pulsar_producer *producer, struct lw_pulsar_waiting item)
{
    struct lw_pulsar_encoding encoding = encoding_of(producer);
    struct lw_pulsar_op *op = NULL;
    enum lw_status status = lw_pulsar_encode_single(&encoding, &item, &op);
    producer->next_id = encoding.next_id;
    if (status == LW_STATUS_OK) {
        add_op(producer, op);
    } else {
        lw_pulsar_producer_receipt(producer, item.publication,
                                   status == LW_STATUS_NO_MEMORY ? LW_STATUS_UNAVAILABLE
                                                                 : status);
    }
}

/* A batch that cannot be made goes message by message. */
static void
make_batch(struct lw_pulsar_producer *producer, const struct lw_pulsar_open_batch *batch)
{
    struct lw_pulsar_encoding encoding = encoding_of(producer);
    struct lw_pulsar_op *op = NULL;
    if (batch->count > 1 && lw_pulsar_encode_batch(&encoding, batch, &op) == LW_STATUS_OK) {
        producer->next_id = encoding.next_id;
        add_op(producer, op);
        return;
    }
    for (uint32_t i = 0; i < batch->count; i++) {
        make_single(producer, batch->items[i]);
    }
}

static void
flush_batches(struct lw_pulsar_producer *producer)
{
    struct lw_pulsar_batches *batches = &producer->batches;
    for (struct lw_pulsar_open_batch *batch;
         (batch = lw_pulsar_batches_take(batches)) != NULL;) {
        make_batch(producer, batch);
        lw_pulsar_batches_give(batches, batch);
    }
    lw_timers_disarm(&lw_pulsar_producer_host(producer)->timers, &producer->batch_timer);
}

/* Goes behind what is open, which leaves first: nothing overtakes. */
static void
make_alone(struct lw_pulsar_producer *producer, struct lw_pulsar_waiting item)
{
    flush_batches(producer);
    make_single(producer, item);
}

static void
make(struct lw_pulsar_producer *producer, struct lw_pulsar_waiting item)
{
    struct lw_pulsar_batches *batches = &producer->batches;
    size_t bytes = lw_pulsar_member_bytes_max(item.publication);
    const struct lw_message *base = item.publication->base;
    if (item.is_alone || item.publication->delay_ms > 0 ||
        !lw_pulsar_batches_takes(batches, bytes) ||
        (base && lw_pulsar_message_sealed(base).data)) {
        make_alone(producer, item);
        return;
    }
    if (!lw_pulsar_batches_fits(batches, item.publication, bytes)) {
        flush_batches(producer);
    }
    if (!lw_pulsar_batches_add(batches, item, bytes)) {
        make_alone(producer, item);
    } else if (lw_pulsar_batches_is_full(batches)) {
        flush_batches(producer);
    }
}

/* Open batches leave at the end of the turn, or when their time is over. */
static void
care_for_open(struct lw_pulsar_producer *producer)
{
    struct lw_pulsar_publisher *publisher = lw_pulsar_publisher_of(producer);
    struct lw_host *host = publisher->client->host;
    uint64_t delay = publisher->options->batch_delay_ns;
    if (producer->batches.count == 0) {
        return;
    }
    if (delay == 0 || publisher->is_closing) {
        flush_batches(producer);
    } else if (!lw_timer_is_armed(&producer->batch_timer)) {
        lw_timers_arm(&host->timers, &producer->batch_timer, host->now + delay);
    }
}

static void
on_batch_due(struct lw_timer *timer, uint64_t now)
{
    struct lw_pulsar_producer *producer = LW_CONTAINER(timer, struct lw_pulsar_producer,
                                                       batch_timer);
    (void)now;
    if (can_send(producer)) {
        flush_batches(producer);
    }
}

void
lw_pulsar_producer_pump(struct lw_pulsar_producer *producer)
{
    if (producer->state != LW_PULSAR_PRODUCER_READY) {
        lw_pulsar_producer_wake(producer);
    } else {
        send_pending(producer);
        while (producer->ring.count > 0 && !producer->unsent && can_send(producer)) {
            make(producer, lw_pulsar_ring_pop(&producer->ring));
        }
        if (can_send(producer)) {
            care_for_open(producer);
        }
    }
    lw_pulsar_producer_watch_deadline(producer);
    if (lw_pulsar_publisher_of(producer)->is_closing && producer->messages == 0) {
        lw_pulsar_producer_close(producer);
    }
}

static void
on_pump(struct lw_deferred *deferred)
{
    lw_pulsar_producer_pump(LW_CONTAINER(deferred, struct lw_pulsar_producer, pump));
}
