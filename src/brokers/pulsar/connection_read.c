/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes in: one read(2) of as much as fits per event, frames used where they lie. A turn takes a
 * bounded number of frames; while more of them wait here nothing is read, so the kernel's window
 * holds the peer back and other connections and the dispatcher get their turn. When a block is
 * read into, it holds at most the beginning of one frame.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "brokers/pulsar/connection_state.h"

enum { ROOM_MIN = 16 * 1024, TLS_ROOM = 128 * 1024, PING_BYTES_MAX = 64 };

/* -- Why it ended --------------------------------------------------------------------------------------- */

static void
explain_end(struct lw_pulsar_connection *connection, struct lw_error *ret_error)
{
    const char *name = connection->client->name;
    int error = connection->end_error;
    if (connection->tls) {
        lw_pulsar_tls_end(connection->tls);
    }
    if (connection->tls && lw_pulsar_tls_state(connection->tls) == LW_PULSAR_TLS_FAILED) {
        *ret_error = *lw_pulsar_tls_error(connection->tls);
    } else if (connection->state == LW_PULSAR_READY) {
        (void)lw_error_set(ret_error, LW_STATUS_UNAVAILABLE, "E0501",
                           "broker \"%s\" at %s ended the connection%s%s", name,
                           connection->name, error ? ": " : "",
                           error ? strerrordesc_np(error) : "");
        lw_error_help(ret_error, "Connecting again; nothing is lost.");
    } else {
        (void)lw_error_set(ret_error, LW_STATUS_UNAVAILABLE, "E0501",
                           "broker \"%s\" at %s closed the connection before it greeted%s%s",
                           name, connection->name, error ? ": " : "",
                           error ? strerrordesc_np(error) : "");
        lw_error_help(ret_error, "a listener for TLS does that to plaintext (pulsar+ssl://), "
                                 "and a server that is no Pulsar. Still trying; nothing is "
                                 "lost.");
    }
}

static void
end(struct lw_pulsar_connection *connection)
{
    struct lw_error error;
    bool is_opening = connection->state == LW_PULSAR_CONNECTING;
    explain_end(connection, &error);
    if (is_opening) {
        lw_pulsar_connection_try_next(connection, &error);
    } else {
        lw_pulsar_connection_end(connection, -1, &error);
    }
}

/* The first bytes tell a peer that is something else. True when it was ended. */
static bool
is_stranger(struct lw_pulsar_connection *connection)
{
    struct lw_error error;
    const uint8_t *data = connection->block->data;
    if (connection->state == LW_PULSAR_READY || connection->received > connection->filled) {
        return false;
    }
    if (lw_pulsar_tls_is_record(data, connection->filled)) {
        lw_pulsar_tls_explain_plaintext(connection->name, &error);
    } else if (connection->filled >= 5 && memcmp(data, "HTTP/", 5) == 0) {
        (void)lw_error_set(&error, LW_STATUS_UNAVAILABLE, "E0501",
                           "broker \"%s\": what listens at %s is a web server",
                           connection->client->name, connection->name);
        lw_error_help(&error, "use the port of the binary protocol, usually 6650 (6651 with "
                              "TLS). Still trying; nothing is lost.");
    } else {
        return false;
    }
    lw_pulsar_connection_end(connection, -1, &error);
    return true;
}

/* -- Room ---------------------------------------------------------------------------------------------- */

static size_t
partial_bytes(const struct lw_pulsar_connection *connection)
{
    return connection->filled - connection->scanned;
}

/* Moves the beginning of a frame to where its rest has room: this block, or a new one. */
static bool
move_partial(struct lw_pulsar_connection *connection, size_t room)
{
    size_t partial = partial_bytes(connection);
    struct lw_pulsar_block *old = connection->block;
    struct lw_pulsar_block *block = old;
    if (!old || old->holds > 1 || old->capacity < partial + room) {
        block = lw_pulsar_block_create(connection->client, partial + room);
        if (!block) {
            return false;
        }
    }
    if (old) {
        memmove(block->data, old->data + connection->scanned, partial);
        if (block != old) {
            lw_pulsar_block_drop(old);
        }
    }
    connection->block = block;
    connection->scanned = 0;
    connection->filled = partial;
    return true;
}

/* True: at least ROOM_MIN bytes fit, and all of the frame that has begun. */
static bool
make_room(struct lw_pulsar_connection *connection)
{
    size_t partial = partial_bytes(connection);
    size_t room = connection->wanted > partial ? connection->wanted - partial : 0;
    size_t least = connection->tls ? TLS_ROOM : ROOM_MIN;
    struct lw_error error;
    room = room > least ? room : least;
    if (connection->block && connection->block->capacity - connection->filled >= room) {
        return true;
    }
    if (move_partial(connection, room)) {
        return true;
    }
    (void)lw_error_set(&error, LW_STATUS_NO_MEMORY, "", "no memory for received bytes");
    lw_pulsar_connection_end(connection, -1, &error);
    return false;
}

/* -- Frames -------------------------------------------------------------------------------------------- */

static const char *
fault_of(const struct lw_pulsar_connection *connection, const struct lw_pulsar_scan *scan)
{
    return connection->state == LW_PULSAR_READY ? lw_pulsar_fault_text(scan->fault)
                                                : "it is not the protocol of Pulsar";
}

/* Takes the next frame; false when there is none, or the connection ended. */
static bool
take_frame(struct lw_pulsar_connection *connection)
{
    struct lw_pulsar_scan scan = lw_pulsar_frame_scan(
        connection->block->data + connection->scanned, partial_bytes(connection),
        connection->frame_bytes_max);
    switch (scan.state) {
    case LW_PULSAR_SCAN_FRAME:
        connection->scanned += scan.size;
        connection->wanted = 0;
        connection->client->frames_in++;
        lw_pulsar_connection_take(connection, scan.command, scan.rest);
        return connection->state != LW_PULSAR_CLOSED;
    case LW_PULSAR_SCAN_MORE:
        connection->wanted = scan.size;
        /* A large frame on a slow line is a sign of life; a PING is not. */
        connection->has_heard |= scan.size > PING_BYTES_MAX && partial_bytes(connection) > 0;
        return false;
    case LW_PULSAR_SCAN_BAD:
        lw_pulsar_connection_break(connection, fault_of(connection, &scan));
        return false;
    }
    return false;
}

void
lw_pulsar_connection_scan(struct lw_pulsar_connection *connection)
{
    size_t count = 0;
    while (count < LW_PULSAR_FRAMES_PER_TURN && take_frame(connection)) {
        count++;
    }
    if (connection->state == LW_PULSAR_CLOSED) {
        return;
    }
    connection->has_frames = count == LW_PULSAR_FRAMES_PER_TURN;
    if (connection->has_frames) {
        lw_pulsar_connection_set_events(connection,
                                        connection->out.is_blocked ? LW_WRITABLE : 0);
        lw_host_defer(connection->client->host, &connection->resume);
        return;
    }
    if (connection->is_end) {
        end(connection);
        return;
    }
    lw_pulsar_connection_set_events(
        connection, connection->out.is_blocked ? LW_READABLE | LW_WRITABLE : LW_READABLE);
}

static void
count_in(struct lw_pulsar_connection *connection, size_t size)
{
    connection->filled += size;
    connection->received += size;
    connection->client->bytes_in += size;
}

/* Bytes read from the socket; 0: none now, or the end, which is noted. */
static size_t
read_socket(struct lw_pulsar_connection *connection, void *out, size_t size)
{
    ssize_t got = 0;
    do {
        got = read(connection->fd, out, size);
    } while (got < 0 && errno == EINTR);
    if (got == 0 || (got < 0 && errno != EAGAIN)) {
        connection->is_end = true;
        connection->end_error = got < 0 ? errno : 0;
    }
    return got > 0 ? (size_t)got : 0;
}

/* -- Plaintext ------------------------------------------------------------------------------------------- */

static void
read_plain(struct lw_pulsar_connection *connection)
{
    if (!make_room(connection)) {
        return;
    }
    uint8_t *at = connection->block->data + connection->filled;
    size_t got = read_socket(connection, at, connection->block->capacity - connection->filled);
    count_in(connection, got);
    if (got > 0 && is_stranger(connection)) {
        return;
    }
    lw_pulsar_connection_scan(connection);
}

/* -- TLS --------------------------------------------------------------------------------------------------- */

/* Moves what is decrypted into the block. False: no room left, scan first. */
static bool
decrypt(struct lw_pulsar_connection *connection)
{
    for (;;) {
        size_t got = 0;
        size_t room = connection->block->capacity - connection->filled;
        if (room == 0) {
            return false;
        }
        uint8_t *at = connection->block->data + connection->filled;
        if (lw_pulsar_tls_read(connection->tls, at, room, &got) != LW_STATUS_OK) {
            return true;
        }
        count_in(connection, got);
    }
}

/* The farewell of the peer in TLS, or a failure, is the end. */
static void
note_tls_state(struct lw_pulsar_connection *connection)
{
    enum lw_pulsar_tls_state state = lw_pulsar_tls_state(connection->tls);
    if (state == LW_PULSAR_TLS_CLOSED || state == LW_PULSAR_TLS_FAILED) {
        connection->is_end = true;
    }
}

static void
on_hands_shaken(struct lw_pulsar_connection *connection)
{
    if (connection->state == LW_PULSAR_CONNECTING &&
        connection->step == LW_PULSAR_SHAKING_HANDS && !connection->is_end &&
        lw_pulsar_tls_state(connection->tls) == LW_PULSAR_TLS_OPEN) {
        lw_pulsar_connection_greet(connection);
    }
}

static void
read_tls(struct lw_pulsar_connection *connection)
{
    struct lw_pulsar_cipher *cipher = connection->cipher;
    if (!make_room(connection)) {
        return;
    }
    if (cipher->in_used == cipher->in_size) {
        cipher->in_used = 0;
        cipher->in_size = read_socket(connection, cipher->in, sizeof cipher->in);
    }
    bool is_moving = true;
    while (is_moving && cipher->in_used < cipher->in_size) {
        size_t fed = lw_pulsar_tls_feed(connection->tls, cipher->in + cipher->in_used,
                                        cipher->in_size - cipher->in_used);
        cipher->in_used += fed;
        is_moving = decrypt(connection) && fed > 0;
    }
    note_tls_state(connection);
    lw_pulsar_connection_flush(connection); /* the handshake's answers, an alert */
    if (connection->state == LW_PULSAR_CLOSED) {
        return;
    }
    on_hands_shaken(connection);
    if (connection->state != LW_PULSAR_CLOSED) {
        lw_pulsar_connection_scan(connection);
    }
}

void
lw_pulsar_connection_read(struct lw_pulsar_connection *connection)
{
    if (connection->has_frames) {
        return; /* an event from before the pause */
    }
    if (connection->tls) {
        read_tls(connection);
    } else {
        read_plain(connection);
    }
}
