/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes out: one stream of frames in the order in which they were sent. Commands and heads are
 * copied into one buffer, bodies stay where they are; all of a turn leaves in one call at its
 * end, the rest when the socket takes more. The stream knows where frames end (their sizes stand
 * in it), so urgent commands (PONG, PING, credentials) go between two frames, before what is
 * queued. With TLS the stream is encrypted piece by piece into a buffer of bounded size.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "brokers/pulsar/connection_state.h"

enum { PIECES_MAX = 64, TLS_PIECE_BYTES = 16 * 1024, SMALL_FIRST = 4096, SMALL_KEPT = 1 << 20 };

static size_t
small_left(const struct lw_pulsar_out *out)
{
    return out->small_size - out->small_at;
}

static size_t
waiting_bytes(const struct lw_pulsar_out *out)
{
    return small_left(out) + out->body_bytes;
}

static bool
is_urgent(const struct lw_pulsar_out *out)
{
    return out->urgent_at < out->urgent_size;
}

/* -- Queueing ------------------------------------------------------------------------------------------ */

static bool
reserve_small(struct lw_pulsar_out *out, size_t size)
{
    if (out->small && out->small_at > 0 && out->small_size + size > out->small_capacity) {
        memmove(out->small, out->small + out->small_at, small_left(out));
        out->small_size -= out->small_at;
        out->small_at = 0;
    }
    size_t wanted = out->small_size + size;
    if (wanted <= out->small_capacity) {
        return true;
    }
    size_t capacity = out->small_capacity ? out->small_capacity : SMALL_FIRST;
    while (capacity < wanted) {
        capacity *= 2;
    }
    uint8_t *small = lw_resize_array(out->small, capacity, 1);
    if (!small) {
        return false;
    }
    out->small = small;
    out->small_capacity = capacity;
    return true;
}

static bool
end_without_memory(struct lw_pulsar_connection *connection)
{
    struct lw_error error;
    (void)lw_error_set(&error, LW_STATUS_NO_MEMORY, "", "no memory for what is sent to %s",
                       connection->name);
    lw_pulsar_connection_end(connection, -1, &error);
    return false;
}

/* It leaves at the end of this turn; if our hook has run already, in the next one, which follows. */
static void
mark_dirty(struct lw_pulsar_connection *connection)
{
    struct lw_pulsar_client *client = connection->client;
    if (waiting_bytes(&connection->out) > LW_PULSAR_OUTPUT_BYTES_MAX) {
        connection->out.is_crowded = true; /* has_room is false: on_room follows */
    }
    if (!connection->out.is_blocked && lw_list_is_empty(&connection->dirty)) {
        lw_list_push(&client->dirty, &connection->dirty);
        lw_host_defer(client->host, &client->flush);
    }
}

bool
lw_pulsar_connection_send(struct lw_pulsar_connection *connection,
                          const struct lw_pulsar_command *command)
{
    struct lw_pulsar_out *out = &connection->out;
    if (connection->state == LW_PULSAR_CLOSED) {
        return false;
    }
    lw_pulsar_request_note(connection, command);
    size_t room = out->small_capacity - out->small_size;
    struct lw_proto_writer writer = lw_proto_writer_of(
        out->small ? out->small + out->small_size : NULL, room);
    lw_pulsar_command_write(command, &writer);
    if (lw_proto_is_overflow(&writer)) {
        size_t size = writer.size;
        if (!reserve_small(out, size)) {
            return end_without_memory(connection);
        }
        writer = lw_proto_writer_of(out->small + out->small_size, size);
        lw_pulsar_command_write(command, &writer);
    }
    out->small_size += writer.size;
    out->tail_bytes += writer.size;
    mark_dirty(connection);
    return true;
}

bool
lw_pulsar_connection_send_frame(struct lw_pulsar_connection *connection, struct lw_bytes head,
                                struct lw_pulsar_output *output)
{
    struct lw_pulsar_out *out = &connection->out;
    if (connection->state == LW_PULSAR_CLOSED) {
        return false;
    }
    lw_assert(head.size >= LW_PULSAR_HEAD_BYTES);
    if (!reserve_small(out, head.size)) {
        return end_without_memory(connection);
    }
    memcpy(out->small + out->small_size, head.data, head.size);
    out->small_size += head.size;
    output->head_bytes = out->tail_bytes + head.size;
    out->tail_bytes = 0;
    out->body_bytes += output->body.size;
    lw_list_push(&out->outputs, &output->link);
    mark_dirty(connection);
    return true;
}

bool
lw_pulsar_connection_send_urgent(struct lw_pulsar_connection *connection,
                                 const struct lw_pulsar_command *command)
{
    struct lw_pulsar_out *out = &connection->out;
    if (connection->state == LW_PULSAR_CLOSED) {
        return false;
    }
    if (!is_urgent(out)) {
        out->urgent_at = 0;
        out->urgent_size = 0;
    }
    struct lw_proto_writer writer = lw_proto_writer_of(out->urgent + out->urgent_size,
                                                       sizeof out->urgent - out->urgent_size);
    lw_pulsar_command_write(command, &writer);
    if (lw_proto_is_overflow(&writer)) {
        /* Long credentials, or a peer that asks and does not read: in order, then. */
        return lw_pulsar_connection_send(connection, command);
    }
    out->urgent_size += writer.size;
    mark_dirty(connection);
    return true;
}

bool
lw_pulsar_connection_has_room(const struct lw_pulsar_connection *connection)
{
    return waiting_bytes(&connection->out) <= LW_PULSAR_OUTPUT_BYTES_MAX;
}

/* -- What was sent --------------------------------------------------------------------------------------- */

static struct lw_pulsar_output *
first_output(const struct lw_pulsar_out *out)
{
    struct lw_list *node = lw_list_first(&out->outputs);
    return node ? LW_CONTAINER(node, struct lw_pulsar_output, link) : NULL;
}

static void
pass_complete(struct lw_pulsar_out *out, struct lw_pulsar_output *output)
{
    if (output->head_bytes == 0 && out->body_sent == output->body.size) {
        lw_list_remove(&output->link);
        lw_list_push(&out->sent, &output->link);
        out->body_sent = 0;
    }
}

/* Passes over part of one piece of the stream: a head, a body, or the tail. Returns how much. */
static size_t
pass_piece(struct lw_pulsar_out *out, size_t size)
{
    struct lw_pulsar_output *output = first_output(out);
    size_t small = output ? output->head_bytes : out->tail_bytes;
    if (output && small == 0) {
        size_t left = output->body.size - out->body_sent;
        size = size < left ? size : left;
        out->body_sent += size;
        out->body_bytes -= size;
    } else {
        size = size < small ? size : small;
        out->small_at += size;
        *(output ? &output->head_bytes : &out->tail_bytes) -= size;
    }
    if (output) {
        pass_complete(out, output);
    }
    return size;
}

static void
pass(struct lw_pulsar_out *out, size_t size)
{
    while (size > 0) {
        if (out->frame_left == 0) {
            /* A frame begins in `small`, with its size. */
            lw_assert(small_left(out) >= LW_PULSAR_HEAD_BYTES);
            out->frame_left = (size_t)lw_proto_load_be32(out->small + out->small_at) + 4;
        }
        size_t part = size < out->frame_left ? size : out->frame_left;
        size_t passed = pass_piece(out, part);
        out->frame_left -= passed;
        size -= passed;
    }
    if (small_left(out) == 0) {
        out->small_at = 0;
        out->small_size = 0;
    }
}

/* -- What comes next ---------------------------------------------------------------------------------------- */

struct pieces {
    struct iovec vector[PIECES_MAX];
    int count;
    size_t bytes;
    size_t limit;
};

/* False when no more fit. */
static bool
add_piece(struct pieces *pieces, const void *data, size_t size)
{
    size_t left = pieces->limit - pieces->bytes;
    size = size < left ? size : left;
    if (size > 0 && pieces->count < PIECES_MAX) {
        pieces->vector[pieces->count++] = (struct iovec){ .iov_base = (void *)(uintptr_t)data,
                                                          .iov_len = size };
        pieces->bytes += size;
    }
    return pieces->bytes < pieces->limit && pieces->count < PIECES_MAX;
}

/* The next bytes of the stream; up to the end of the begun frame when something is urgent. */
static void
gather(const struct lw_pulsar_out *out, struct pieces *pieces)
{
    const uint8_t *small = out->small ? out->small + out->small_at : NULL;
    size_t body_sent = out->body_sent;
    bool has_space = true;
    for (struct lw_list *node = out->outputs.next; has_space && node != &out->outputs;
         node = node->next) {
        const struct lw_pulsar_output *output = LW_CONTAINER_CONST(
            node, struct lw_pulsar_output, link);
        size_t left = output->body.size - body_sent;
        const uint8_t *body = left > 0 ? (const uint8_t *)output->body.data + body_sent : small;
        has_space = add_piece(pieces, small, output->head_bytes) &&
                    add_piece(pieces, body, left);
        small += output->head_bytes;
        body_sent = 0;
    }
    if (has_space) {
        (void)add_piece(pieces, small, out->tail_bytes);
    }
}

/* Urgent bytes between frames, else the stream. */
static void
gather_next(const struct lw_pulsar_out *out, struct pieces *pieces, size_t limit)
{
    pieces->count = 0;
    pieces->bytes = 0;
    pieces->limit = limit;
    if (is_urgent(out) && out->frame_left == 0) {
        (void)add_piece(pieces, out->urgent + out->urgent_at,
                        out->urgent_size - out->urgent_at);
        return;
    }
    if (is_urgent(out) && out->frame_left < limit) {
        pieces->limit = out->frame_left;
    }
    if (waiting_bytes(out) > 0) {
        gather(out, pieces);
    }
}

/* Urgent bytes that were partly sent are finished before anything else, since they come next. */
static void
pass_next(struct lw_pulsar_out *out, bool was_urgent, size_t size)
{
    if (was_urgent) {
        out->urgent_at += size;
        if (out->urgent_at == out->urgent_size) {
            out->urgent_at = 0;
            out->urgent_size = 0;
        }
    } else {
        pass(out, size);
    }
}

static bool
is_urgent_next(const struct lw_pulsar_out *out)
{
    return is_urgent(out) && out->frame_left == 0;
}

/* -- Into the socket ------------------------------------------------------------------------------------------ */

/* Bytes written; 0: it takes no more now, or it is broken, which reading will tell. */
static size_t
write_socket(struct lw_pulsar_connection *connection, struct iovec *vector, int count)
{
    ssize_t put = 0;
    do {
        struct msghdr message = { .msg_iov = vector, .msg_iovlen = (size_t)count };
        put = sendmsg(connection->fd, &message, MSG_NOSIGNAL);
    } while (put < 0 && errno == EINTR);
    if (put < 0 && errno != EAGAIN) {
        connection->is_end = true;
        connection->end_error = errno;
    }
    if (put > 0) {
        connection->client->bytes_out += (uint64_t)put;
    }
    return put > 0 ? (size_t)put : 0;
}

static void
block(struct lw_pulsar_connection *connection)
{
    connection->out.is_blocked = true;
    lw_pulsar_connection_set_events(connection, connection->events | LW_WRITABLE);
}

static void
flush_plain(struct lw_pulsar_connection *connection)
{
    struct lw_pulsar_out *out = &connection->out;
    struct pieces pieces;
    for (gather_next(out, &pieces, SIZE_MAX); pieces.count > 0;
         gather_next(out, &pieces, SIZE_MAX)) {
        bool was_urgent = is_urgent_next(out);
        size_t put = write_socket(connection, pieces.vector, pieces.count);
        pass_next(out, was_urgent, put);
        if (put < pieces.bytes) {
            block(connection);
            return;
        }
    }
}

/* Fills the buffer of ciphertext; false when there is nothing to send. */
static bool
encrypt(struct lw_pulsar_connection *connection)
{
    struct lw_pulsar_out *out = &connection->out;
    struct lw_pulsar_cipher *cipher = connection->cipher;
    struct pieces pieces;
    cipher->out_used = 0;
    cipher->out_size = lw_pulsar_tls_take(connection->tls, cipher->out, sizeof cipher->out);
    while (sizeof cipher->out - cipher->out_size > (size_t)2 * TLS_PIECE_BYTES) {
        size_t put = 0;
        gather_next(out, &pieces, TLS_PIECE_BYTES);
        if (pieces.count == 0 ||
            lw_pulsar_tls_write(connection->tls, pieces.vector[0].iov_base,
                                pieces.vector[0].iov_len, &put) != LW_STATUS_OK) {
            break;
        }
        pass_next(out, is_urgent_next(out), put);
        cipher->out_size += lw_pulsar_tls_take(connection->tls, cipher->out + cipher->out_size,
                                               sizeof cipher->out - cipher->out_size);
    }
    return cipher->out_size > 0;
}

static void
flush_tls(struct lw_pulsar_connection *connection)
{
    struct lw_pulsar_cipher *cipher = connection->cipher;
    while (cipher->out_used < cipher->out_size || encrypt(connection)) {
        struct iovec left = { cipher->out + cipher->out_used,
                              cipher->out_size - cipher->out_used };
        size_t put = write_socket(connection, &left, 1);
        cipher->out_used += put;
        if (put < left.iov_len) {
            block(connection);
            return;
        }
    }
}

/* -- After it ---------------------------------------------------------------------------------------------------- */

static void
tell_sent(struct lw_pulsar_connection *connection)
{
    for (struct lw_list *node; (node = lw_list_pop(&connection->out.sent)) != NULL;) {
        struct lw_pulsar_output *output = LW_CONTAINER(node, struct lw_pulsar_output, link);
        if (output->on_sent) {
            output->on_sent(output);
        }
    }
}

/* A marker walks, since those who are told may attach, detach and close. */
static void
tell_room(struct lw_pulsar_connection *connection)
{
    struct lw_pulsar_out *out = &connection->out;
    struct lw_list marker;
    if (!out->is_crowded || waiting_bytes(out) >= LW_PULSAR_OUTPUT_BYTES_LOW) {
        return;
    }
    out->is_crowded = false;
    lw_list_push_front(&connection->users, &marker);
    while (marker.next != &connection->users && connection->state == LW_PULSAR_READY) {
        struct lw_list *node = marker.next;
        lw_list_remove(&marker);
        lw_list_insert(node->next, &marker);
        struct lw_pulsar_user *user = LW_CONTAINER(node, struct lw_pulsar_user, link);
        if (user->ops->on_room) {
            user->ops->on_room(user);
        }
    }
    lw_list_remove(&marker);
}

/* A write that failed: what the peer said before it is read first, then the end is told. */
static void
settle_end(struct lw_pulsar_connection *connection)
{
    if (connection->is_end && connection->fd >= 0) {
        lw_pulsar_connection_set_events(connection, LW_READABLE);
    }
}

void
lw_pulsar_connection_flush(struct lw_pulsar_connection *connection)
{
    struct lw_pulsar_out *out = &connection->out;
    if (out->is_flushing) {
        return; /* from in a callback of it: another flush follows */
    }
    lw_list_remove(&connection->dirty);
    if (connection->fd < 0 || out->is_blocked || connection->is_end) {
        return;
    }
    out->is_flushing = true;
    if (connection->tls) {
        flush_tls(connection);
    } else {
        flush_plain(connection);
    }
    if (out->small_capacity > SMALL_KEPT && out->small_size == 0) {
        lw_free(out->small);
        out->small = NULL;
        out->small_capacity = 0;
    }
    tell_sent(connection);
    tell_room(connection);
    out->is_flushing = false;
    if (!out->is_blocked) {
        /* A socket that takes all is always writable: nobody may watch for that. */
        lw_pulsar_connection_set_events(connection, connection->events & ~LW_WRITABLE);
    }
    settle_end(connection);
}

void
lw_pulsar_client_flush(struct lw_pulsar_client *client)
{
    lw_deferred_cancel(&client->flush);
    struct lw_list batch;
    lw_list_init(&batch);
    for (struct lw_list *node; (node = lw_list_pop(&client->dirty)) != NULL;) {
        lw_list_push(&batch, node);
    }
    for (struct lw_list *node; (node = lw_list_first(&batch)) != NULL;) {
        lw_pulsar_connection_flush(LW_CONTAINER(node, struct lw_pulsar_connection, dirty));
    }
}

static void
forget_outputs(struct lw_list *list)
{
    for (struct lw_list *node; (node = lw_list_pop(list)) != NULL;) {
        struct lw_pulsar_output *output = LW_CONTAINER(node, struct lw_pulsar_output, link);
        if (output->on_dropped) {
            output->on_dropped(output);
        }
    }
}

void
lw_pulsar_connection_drop_output(struct lw_pulsar_connection *connection)
{
    struct lw_pulsar_out *out = &connection->out;
    lw_list_remove(&connection->dirty);
    forget_outputs(&out->outputs);
    forget_outputs(&out->sent);
    out->small_at = 0;
    out->small_size = 0;
    out->tail_bytes = 0;
    out->body_sent = 0;
    out->body_bytes = 0;
    out->frame_left = 0;
    out->urgent_at = 0;
    out->urgent_size = 0;
    out->is_blocked = false;
}
