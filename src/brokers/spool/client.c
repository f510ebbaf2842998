/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The other end of the owner's socket, and the same questions answered here when the file is free.
 * An owner may end between the look at the lock and the connection, and somebody may come in
 * between, so both are tried in turn for a moment. Any one thread.
 */
#include "brokers/spool/client.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "brokers/spool/faults.h"
#include "brokers/spool/socket.h"

#define MS UINT64_C(1000000)

enum { TURNS = 50, PAUSE_MS = 20, SLICE_MS = 100, YIELD_MS = 1000 };

void
lw_spool_client_init(struct lw_spool_client *client, const char *path)
{
    *client = (struct lw_spool_client){ .fd = -1, .path = path };
    lw_text_init(&client->in);
    lw_text_init(&client->out);
}

static enum lw_status
gone(const struct lw_spool_client *client, struct lw_error *ret_error)
{
    (void)lw_error_set(ret_error, LW_STATUS_UNKNOWN, "E0520",
                       "the process that has the spool \"%s\" ended or does not answer",
                       client->path);
    lw_error_help(ret_error, "publishing goes on by itself with the next owner");
    return LW_STATUS_UNKNOWN;
}

/* Half a request is none; and a connection is reset when the end left something unread. */
static enum lw_status
refused(const struct lw_spool_client *client, struct lw_error *ret_error)
{
    (void)gone(client, ret_error);
    if (ret_error) {
        ret_error->status = LW_STATUS_UNAVAILABLE;
    }
    return LW_STATUS_UNAVAILABLE;
}

enum lw_status
lw_spool_client_connect(struct lw_spool_client *client, const char *path, long pid,
                        struct lw_error *ret_error)
{
    lw_spool_client_init(client, path);
    client->fd = lw_spool_socket_connect(path);
    if (client->fd >= 0) {
        return LW_STATUS_OK;
    }
    int why = errno;
    if (pid > 0) {
        (void)lw_error_set(ret_error, LW_STATUS_UNAVAILABLE, "E0520",
                           "process %ld has the spool \"%s\" and does not answer: %s", pid,
                           path, strerrordesc_np(why));
    } else {
        (void)lw_error_set(ret_error, LW_STATUS_UNAVAILABLE, "E0520",
                           "no owner of the spool \"%s\" answers: %s", path,
                           strerrordesc_np(why));
    }
    lw_error_help(ret_error, "whoever owns a spool serves others through its socket; stop that "
                             "process, or use its user");
    return LW_STATUS_UNAVAILABLE;
}

enum lw_status
lw_spool_client_reconnect(struct lw_spool_client *client, struct lw_error *ret_error)
{
    const _Atomic(uint64_t) *ends_at = client->ends_at;
    if (ends_at && atomic_load(ends_at) <= lw_clock_monotonic_ns()) {
        return gone(client, ret_error);
    }
    lw_spool_client_close(client);
    enum lw_status status = lw_spool_client_connect(client, client->path, 0, ret_error);
    client->ends_at = ends_at;
    return status;
}

enum lw_status
lw_spool_client_open(struct lw_spool_client *client, const char *path,
                     const struct lw_spool_options *options, bool is_made,
                     struct lw_error *ret_error)
{
    enum lw_status status = LW_STATUS_ALREADY;
    lw_spool_client_init(client, path);
    if (!is_made && !lw_spool_is_there(path)) {
        return lw_spool_fault_path(path, ENOENT, ret_error); /* nor is a lock made for it */
    }
    for (int turn = 0; turn < TURNS; turn++) {
        struct lw_spool_opening opening = { path, options, is_made, 0 };
        lw_spool_client_init(client, path);
        status = lw_spool_store_open(&opening, &client->store, ret_error);
        if (status != LW_STATUS_ALREADY) {
            return status;
        }
        status = lw_spool_client_connect(client, path, opening.owner_pid, ret_error);
        if (status == LW_STATUS_OK) {
            return status;
        }
        (void)poll(NULL, 0, PAUSE_MS); /* it is coming or going */
    }
    return status;
}

void
lw_spool_client_close(struct lw_spool_client *client)
{
    lw_spool_store_close(client->store);
    client->store = NULL;
    if (client->fd >= 0) {
        (void)close(client->fd);
        client->fd = -1;
    }
    lw_text_deinit(&client->in);
    lw_text_deinit(&client->out);
}

/* -- Through the socket ---------------------------------------------------------------------------- */

/* False: it is too late. */
static bool
await(const struct lw_spool_client *client, short events, uint64_t deadline)
{
    struct pollfd poll_fd = { .fd = client->fd, .events = events };
    int count = 0;
    while (count == 0) {
        uint64_t now = lw_clock_monotonic_ns();
        uint64_t ends_at = client->ends_at ? atomic_load(client->ends_at) : UINT64_MAX;
        uint64_t end = ends_at < deadline ? ends_at : deadline;
        if (now >= end) {
            return false;
        }
        uint64_t left_ms = (end - now) / MS + 1;
        count = poll(&poll_fd, 1, left_ms < SLICE_MS ? (int)left_ms : SLICE_MS);
    }
    return count > 0 || errno == EINTR;
}

static bool
send_all(struct lw_spool_client *client, uint64_t deadline)
{
    size_t sent = 0;
    while (sent < client->out.size) {
        if (!await(client, POLLOUT, deadline)) {
            return false;
        }
        ssize_t count = send(client->fd, client->out.data + sent, client->out.size - sent,
                             MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count < 0 && errno != EAGAIN && errno != EINTR) {
            return false;
        }
        sent += count > 0 ? (size_t)count : 0;
    }
    return true;
}

static bool
is_whole(struct lw_spool_client *client, bool *ret_is_bad)
{
    struct lw_spool_reader reader;
    lw_spool_read_init(&reader, client->in.data, client->in.size);
    if (client->in.size < 4) {
        return false;
    }
    uint32_t size = lw_spool_get_u32(&reader);
    *ret_is_bad = size > LW_SPOOL_FRAME_MAX || lw_spool_left(&reader) > size;
    return lw_spool_left(&reader) == size;
}

static bool
receive_all(struct lw_spool_client *client, uint64_t deadline)
{
    char buffer[65536];
    bool is_bad = false;
    client->is_refused = false;
    lw_text_clear(&client->in);
    while (!is_whole(client, &is_bad) && !is_bad && !client->in.is_failed) {
        if (!await(client, POLLIN, deadline)) {
            return false;
        }
        ssize_t got = recv(client->fd, buffer, sizeof buffer, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
            client->is_refused = got < 0 && errno == ECONNRESET && client->in.size == 0;
            return false;
        }
        if (got > 0) {
            lw_text_append_bytes(&client->in, buffer, (size_t)got);
        }
    }
    return !is_bad && !client->in.is_failed;
}

/* -- Both ------------------------------------------------------------------------------------------- */

/* Answers itself; publications go another way (worker.c). */
static void
answer_here(struct lw_spool_client *client)
{
    struct lw_spool_reader reader;
    struct lw_spool_look look;
    lw_spool_read_init(&reader, client->out.data + 4, client->out.size - 4);
    switch (lw_spool_read_request(&reader)) {
    case LW_SPOOL_TOPICS:
        lw_spool_answer_topics(client->store, &reader, &client->in);
        return;
    case LW_SPOOL_LOOK:
        if (lw_spool_read_look(&reader, &look)) {
            (void)lw_spool_answer_look(client->store, &look, true, &client->in);
            return;
        }
        break;
    default:
        break;
    }
    lw_spool_answer_error(&client->in, LW_STATUS_INVALID, "the request cannot be read");
}

static enum lw_status
read_head(struct lw_spool_client *client, struct lw_error *ret_error)
{
    lw_spool_read_init(&client->answer, client->in.data + 4, client->in.size - 4);
    uint32_t status = lw_spool_get_u32(&client->answer);
    const char *why = lw_spool_get_text(&client->answer);
    if (client->answer.is_bad || status > LW_STATUS_INTERNAL) {
        return gone(client, ret_error);
    }
    if (status != LW_STATUS_OK) {
        (void)lw_error_set(ret_error, (enum lw_status)status, "", "%s", why);
    }
    return (enum lw_status)status;
}

enum lw_status
lw_spool_client_ask(struct lw_spool_client *client, int timeout_ms, struct lw_error *ret_error)
{
    uint64_t deadline = timeout_ms > 0 ? lw_clock_monotonic_ns() + (uint64_t)timeout_ms * MS
                                       : UINT64_MAX;
    lw_spool_end_frame(&client->out);
    if (client->out.is_failed) {
        return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "no memory for a request");
    }
    if (client->store) {
        answer_here(client);
    } else if (!send_all(client, deadline)) {
        return refused(client, ret_error);
    } else if (!receive_all(client, deadline)) {
        return client->is_refused ? refused(client, ret_error) : gone(client, ret_error);
    }
    if (client->in.is_failed) {
        return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "no memory for an answer");
    }
    return read_head(client, ret_error);
}

enum lw_status
lw_spool_client_ask_to_yield(const char *path)
{
    struct lw_spool_client client;
    lw_spool_client_init(&client, path);
    client.fd = lw_spool_socket_connect(path);
    if (client.fd < 0) {
        return errno == EAGAIN ? LW_STATUS_UNKNOWN : LW_STATUS_UNAVAILABLE;
    }
    lw_spool_begin_request(&client.out, LW_SPOOL_YIELD);
    enum lw_status status = lw_spool_client_ask(&client, YIELD_MS, NULL);
    lw_spool_client_close(&client);
    return status;
}
