/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection of the embedded broker: bytes in, frames out of them, bytes out. TLS runs on the
 * socket itself. Output is one growing buffer; the faults that concern bytes (cut after n, byte
 * by byte) and frames that go out are applied here. A connection that ended is doomed first and
 * buried at the end of the turn, when nobody stands on its objects.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/err.h>

#include "tests/support/pulsar/embedded_state.h"

enum { READ_BYTES = 256 * 1024 };

static uint8_t *
room_for(struct embedded_buffer *buffer, size_t size)
{
    if (buffer->at > 0 && (buffer->at == buffer->size || buffer->at > buffer->capacity / 2)) {
        memmove(buffer->data, buffer->data + buffer->at, buffer->size - buffer->at);
        buffer->size -= buffer->at;
        buffer->at = 0;
    }
    if (buffer->capacity - buffer->size < size) {
        size_t capacity = buffer->capacity < 4096 ? 4096 : buffer->capacity;
        while (capacity - buffer->size < size) {
            capacity *= 2;
        }
        buffer->data = embedded_bigger(buffer->data, capacity, 1);
        buffer->capacity = capacity;
    }
    return buffer->data + buffer->size;
}

bool
embedded_has_room(const struct embedded_session *session)
{
    return session->out.size - session->out.at < EMBEDDED_ROOM_BYTES;
}

void
embedded_doom(struct embedded_session *session, bool is_cut)
{
    session->is_doomed = true;
    session->is_cut = session->is_cut || is_cut;
    embedded_want_work(session->broker);
}

void
embedded_protest(struct embedded_session *session, const char *why)
{
    struct embedded_counts *counts = &session->broker->counts;
    counts->protocol_errors++;
    snprintf(counts->last_error, sizeof counts->last_error, "%s", why);
    embedded_doom(session, false);
}

/* -- Input ---------------------------------------------------------------------------------------- */

void
embedded_parse(struct embedded_session *session)
{
    size_t limit = lw_pulsar_frame_bytes_max(session->broker->settings.max_message_size);
    while (!session->is_doomed && !session->is_waiting && !session->is_stopped) {
        struct embedded_buffer *in = &session->in;
        struct lw_pulsar_scan scan = lw_pulsar_frame_scan(in->data + in->at, in->size - in->at,
                                                          limit);
        if (scan.state == LW_PULSAR_SCAN_BAD) {
            embedded_protest(session, lw_pulsar_fault_text(scan.fault));
            return;
        }
        if (scan.state == LW_PULSAR_SCAN_MORE ||
            !embedded_take(session, scan.command, scan.rest)) {
            return;
        }
        in->at += scan.size;
    }
}

static ssize_t
receive(struct embedded_session *session, void *out, size_t size)
{
    if (session->ssl == NULL) {
        return recv(session->fd, out, size, 0);
    }
    ERR_clear_error();
    int count = SSL_read(session->ssl, out, (int)size);
    if (count > 0) {
        return count;
    }
    int error = SSL_get_error(session->ssl, count);
    bool waits = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
    errno = waits ? EAGAIN : EPIPE;
    return error == SSL_ERROR_ZERO_RETURN ? 0 : -1;
}

/* False: nothing more for now. */
static bool
read_some(struct embedded_session *session)
{
    uint8_t *at = room_for(&session->in, READ_BYTES);
    ssize_t count = receive(session, at, READ_BYTES);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
        return false;
    }
    if (count <= 0) {
        embedded_doom(session, true);
        return false;
    }
    size_t allowed = embedded_cut_at(session->broker, EMBEDDED_IN, session->bytes_in,
                                     (size_t)count);
    session->bytes_in += allowed;
    session->broker->counts.bytes_in += allowed;
    session->in.size += allowed;
    embedded_parse(session);
    if (allowed < (size_t)count) {
        embedded_doom(session, true);
    }
    return !session->is_doomed && !session->is_stopped && !session->is_waiting;
}

static void
on_socket(int fd, int events, void *user)
{
    struct embedded_session *session = user;
    (void)fd;
    if ((events & LW_READABLE) != 0 && !session->is_stopped && !session->is_waiting) {
        while (!session->is_doomed && read_some(session)) {
        }
    }
    embedded_want_work(session->broker);
}

/* -- Output --------------------------------------------------------------------------------------- */

uint8_t *
embedded_output_begin(struct embedded_session *session, size_t size)
{
    return room_for(&session->out, size);
}

static void
flush_late(struct embedded_alarm *alarm)
{
    struct embedded_late *late = LW_CONTAINER(alarm, struct embedded_late, alarm);
    embedded_output_raw(late->session, late->data, late->size);
    lw_list_remove(&late->link);
    free(late);
}

static void
put_off(struct embedded_session *session, size_t size, int64_t ms)
{
    struct embedded *broker = session->broker;
    struct embedded_late *late = embedded_new(sizeof *late + size);
    late->session = session;
    late->size = size;
    memcpy(late->data, session->out.data + session->out.size, size);
    embedded_alarm_init(&late->alarm, flush_late);
    lw_list_push(&broker->late, &late->link);
    embedded_arm(broker, &late->alarm, embedded_now_ms(broker) + ms);
}

static const uint8_t unknown_command[] = { 0,    0,    0,    11,   0,    0,    0, 7,
                                           0x08, 0xe7, 0x07, 0xba, 0x3e, 0x01, 0 };
static const char garbage[] = "\xff\xff\xff\xff this is no frame at all";

/* Puts bytes before the frame that lies behind the end of the output. */
static void
put_before(struct embedded_session *session, const void *data, size_t size, size_t frame)
{
    room_for(&session->out, size + frame);
    uint8_t *at = session->out.data + session->out.size;
    memmove(at + size, at, frame);
    memcpy(at, data, size);
    session->out.size += size;
}

/* False: the frame does not go out now. */
static bool
apply_out(struct embedded_session *session, const struct embedded_fault *fault, int32_t type,
          size_t size)
{
    uint8_t *frame = session->out.data + session->out.size;
    switch (fault->kind) {
    case EMBEDDED_DROP:
        embedded_doom(session, false);
        return false;
    case EMBEDDED_DROP_AFTER:
        session->out.size += size;
        embedded_doom(session, false);
        return false;
    case EMBEDDED_LOSE:
        return false;
    case EMBEDDED_DUPLICATE:
        put_before(session, embedded_output_begin(session, 2 * size), size, size);
        return true;
    case EMBEDDED_DELAY:
        put_off(session, size, fault->ms);
        return false;
    case EMBEDDED_CHECKSUM:
        frame[size - 1] ^= type == LW_PULSAR_MESSAGE ? 0x55 : 0;
        return true;
    case EMBEDDED_GARBAGE:
        embedded_output_raw(session, garbage, sizeof garbage);
        embedded_doom(session, false);
        return false;
    case EMBEDDED_UNKNOWN:
        put_before(session, unknown_command, sizeof unknown_command, size);
        return true;
    case EMBEDDED_SILENCE:
        session->is_silent = true;
        return false;
    case EMBEDDED_STOP_READING:
        session->is_stopped = true;
        return true;
    case EMBEDDED_CALL:
    case EMBEDDED_CUT:
    case EMBEDDED_REFUSE:
        return true;
    }
    return true;
}

void
embedded_output_end(struct embedded_session *session, int32_t type, size_t size)
{
    struct embedded *broker = session->broker;
    if (session->is_doomed || session->is_silent) {
        return;
    }
    const struct embedded_fault *fault = embedded_match(broker, EMBEDDED_OUT, type);
    if (fault != NULL) {
        /* A call may write to this very connection: the frame must not lie behind the end. */
        uint8_t *copy = embedded_copy(session->out.data + session->out.size, size);
        struct embedded_fault it = *fault;
        if (it.kind == EMBEDDED_CALL) {
            it.fn(it.user);
        }
        memcpy(room_for(&session->out, 2 * size), copy, size);
        free(copy);
        bool goes = it.kind == EMBEDDED_CALL ? !session->is_doomed
                                             : apply_out(session, &it, type, size);
        if (!goes) {
            return;
        }
    }
    session->out.size += size;
    broker->counts.frames_out++;
    broker->counts.out[type]++;
    embedded_want_work(broker);
}

void
embedded_output_raw(struct embedded_session *session, const void *data, size_t size)
{
    memcpy(room_for(&session->out, size), data, size);
    session->out.size += size;
    embedded_want_work(session->broker);
}

static ssize_t
transmit(struct embedded_session *session, const void *data, size_t size)
{
    if (session->ssl == NULL) {
        return send(session->fd, data, size, MSG_NOSIGNAL);
    }
    ERR_clear_error();
    int count = SSL_write(session->ssl, data, (int)size);
    int error = SSL_get_error(session->ssl, count);
    bool waits = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
    errno = waits ? EAGAIN : EPIPE;
    return count > 0 ? count : -1;
}

static void
write_out(struct embedded_session *session)
{
    struct embedded_buffer *out = &session->out;
    size_t step = session->broker->settings.write_bytes_max;
    while (out->at < out->size && !session->is_cut) {
        size_t size = out->size - out->at;
        size = step > 0 && step < size ? step : size;
        size = size < 1 << 30 ? size : 1 << 30;
        size_t allowed = embedded_cut_at(session->broker, EMBEDDED_OUT, session->bytes_out,
                                         size);
        ssize_t count = allowed == 0 ? 0 : transmit(session, out->data + out->at, allowed);
        if (count < 0 && errno != EINTR) {
            if (errno != EAGAIN) {
                embedded_doom(session, true);
            }
            return;
        }
        out->at += count > 0 ? (size_t)count : 0;
        session->bytes_out += count > 0 ? (size_t)count : 0;
        session->broker->counts.bytes_out += count > 0 ? (size_t)count : 0;
        if (allowed < size) {
            embedded_doom(session, true);
        }
    }
}

void
embedded_watch_again(struct embedded_session *session)
{
    bool reads = !session->is_stopped && !session->is_waiting;
    bool writes = session->out.at < session->out.size;
    int events = (reads ? LW_READABLE : 0) | (writes ? LW_WRITABLE : 0);
    session->broker->host->ops->rewatch(session->watch, events);
}

void
embedded_flush(struct embedded_session *session)
{
    write_out(session);
    if (session->is_full && embedded_has_room(session)) {
        session->is_full = false;
        for (struct lw_list *node = session->consumers.next; node != &session->consumers;
             node = node->next) {
            embedded_want_dispatch(
                LW_CONTAINER(node, struct embedded_consumer, link)->subscription);
        }
    }
    if (!session->is_doomed) {
        embedded_watch_again(session);
    }
}

/* -- Birth and death ------------------------------------------------------------------------------ */

void
embedded_accept(struct embedded *broker, int listener, int member, bool is_tls)
{
    int fd;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        int on = 1;
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        struct embedded_session *session = embedded_new(sizeof *session);
        session->broker = broker;
        session->fd = fd;
        session->member = member;
        session->is_via_proxy = broker->members[member]->is_proxy;
        lw_list_init(&session->producers);
        lw_list_init(&session->consumers);
        lw_list_init(&session->watchers);
        lw_list_init(&session->recent);
        lw_list_push(&broker->sessions, &session->link);
        broker->counts.connections++;
        session->watch = broker->host->ops->watch(broker->host, fd, LW_READABLE, on_socket,
                                                  session);
        if (is_tls) {
            session->ssl = SSL_new(broker->tls);
            lw_assert(session->ssl != NULL && SSL_set_fd(session->ssl, fd) == 1);
            SSL_set_accept_state(session->ssl);
        }
        embedded_session_start(session);
        if (session->watch == NULL) {
            embedded_doom(session, true);
        }
    }
}

static void
drop_late(struct embedded_session *session)
{
    struct lw_list *next;
    for (struct lw_list *node = session->broker->late.next; node != &session->broker->late;
         node = next) {
        next = node->next;
        struct embedded_late *late = LW_CONTAINER(node, struct embedded_late, link);
        if (late->session == session) {
            embedded_disarm(&late->alarm);
            lw_list_remove(&late->link);
            free(late);
        }
    }
}

static void
free_lists(struct embedded_session *session)
{
    struct lw_list *node;
    while ((node = lw_list_first(&session->producers)) != NULL) {
        embedded_producer_free(LW_CONTAINER(node, struct embedded_producer, link));
    }
    while ((node = lw_list_first(&session->consumers)) != NULL) {
        embedded_consumer_free(LW_CONTAINER(node, struct embedded_consumer, link));
    }
    while ((node = lw_list_pop(&session->watchers)) != NULL) {
        free(LW_CONTAINER(node, struct embedded_watcher, link));
    }
    while ((node = lw_list_pop(&session->recent)) != NULL) {
        free(LW_CONTAINER(node, struct embedded_recent, link));
    }
}

/* What arrived and nobody read would turn the end into a reset, which loses what was sent. */
static void
close_socket(struct embedded_session *session)
{
    uint8_t scrap[4096];
    if (session->ssl != NULL) {
        (void)SSL_shutdown(session->ssl);
        SSL_free(session->ssl);
        ERR_clear_error();
    }
    (void)shutdown(session->fd, SHUT_WR);
    for (int i = 0; i < 10000 && recv(session->fd, scrap, sizeof scrap, 0) > 0; i++) {
    }
    close(session->fd);
}

static void
free_session(struct embedded_session *session)
{
    lw_list_remove(&session->link);
    embedded_disarm(&session->keep_alive);
    embedded_disarm(&session->challenge);
    embedded_disarm(&session->delay);
    drop_late(session);
    free_lists(session);
    embedded_contest_end(session);
    if (session->watch != NULL) {
        session->broker->host->ops->unwatch(session->watch);
    }
    close_socket(session);
    free(session->in.data);
    free(session->out.data);
    free(session);
}

void
embedded_bury(struct embedded *broker)
{
    struct lw_list *next;
    for (struct lw_list *node = broker->sessions.next; node != &broker->sessions; node = next) {
        struct embedded_session *session = LW_CONTAINER(node, struct embedded_session, link);
        next = node->next;
        if (session->is_doomed) {
            free_session(session);
        }
    }
}

void
embedded_drop_all(struct embedded *broker)
{
    for (struct lw_list *node = broker->sessions.next; node != &broker->sessions;
         node = node->next) {
        embedded_doom(LW_CONTAINER(node, struct embedded_session, link), true);
    }
    embedded_bury(broker);
}
