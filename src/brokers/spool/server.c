/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections of the owner's socket. Each is idle, or has a request that waits (for the commit, or
 * for something to look at), or an answer that is being sent; it reads only while idle, so what it
 * holds is one request and one answer. The worker's thread.
 */
#include "brokers/spool/server.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "brokers/spool/socket.h"

#define MS UINT64_C(1000000)

enum { READ_BYTES = 65536, PATIENCE_MAX_MS = 60000, ACCEPT_AGAIN_MS = 100 };

enum guest_state {
    GUEST_FREE,
    GUEST_IDLE,     /* a request may come; next: WRITING, ASKING, LOOKING, YIELDING, FREE */
    GUEST_WRITING,  /* publications that the next commit has; next: SENDING */
    GUEST_ASKING,   /* about topics; next: SENDING */
    GUEST_YIELDING, /* wants the file; next: SENDING */
    GUEST_LOOKING,  /* waits for messages to look at; next: SENDING, FREE */
    GUEST_SENDING   /* next: IDLE, FREE */
};

struct guest {
    enum guest_state state;
    int fd;
    struct lw_text in;
    struct lw_text out;
    size_t sent;
    struct lw_spool_reader reader; /* behind the head of the request */
    struct lw_spool_batch batch;
    struct lw_spool_guests guests;
    struct lw_spool_look look;
    uint64_t due;
};

struct lw_spool_server {
    int fd;
    char *path;
    bool is_reader;
    bool has_yielded;
    uint64_t accept_at; /* no descriptor was left: not before; 0: at once */
    struct guest guests[LW_SPOOL_GUESTS_MAX];
};

struct lw_spool_server *
lw_spool_server_create(const char *path, bool is_reader)
{
    struct lw_spool_server *server = lw_alloc(sizeof *server);
    char *copy = lw_copy_text(path);
    int fd = server && copy ? lw_spool_socket_listen(path) : -1;
    if (fd < 0) {
        lw_free(server);
        lw_free(copy);
        return NULL;
    }
    server->fd = fd;
    server->path = copy;
    server->is_reader = is_reader;
    return server;
}

static void
leave(struct guest *guest)
{
    (void)close(guest->fd);
    lw_text_deinit(&guest->in);
    lw_text_deinit(&guest->out);
    lw_spool_free_guests(&guest->guests);
    guest->state = GUEST_FREE;
}

void
lw_spool_server_destroy(struct lw_spool_server *server)
{
    if (!server) {
        return;
    }
    for (size_t i = 0; i < LW_SPOOL_GUESTS_MAX; i++) {
        if (server->guests[i].state != GUEST_FREE) {
            leave(&server->guests[i]);
        }
    }
    lw_spool_socket_remove(server->path);
    (void)close(server->fd);
    lw_free(server->path);
    lw_free(server);
}

/* -- Waiting ------------------------------------------------------------------------------------- */

size_t
lw_spool_server_poll(struct lw_spool_server *server, struct pollfd *out)
{
    size_t count = 0;
    bool has_room = false;
    for (size_t i = 0; server && i < LW_SPOOL_GUESTS_MAX; i++) {
        const struct guest *guest = &server->guests[i];
        has_room = has_room || guest->state == GUEST_FREE;
        if (guest->state == GUEST_IDLE || guest->state == GUEST_LOOKING) {
            out[count++] = (struct pollfd){ .fd = guest->fd, .events = POLLIN };
        } else if (guest->state == GUEST_SENDING) {
            out[count++] = (struct pollfd){ .fd = guest->fd, .events = POLLOUT };
        }
    }
    if (server && has_room && server->accept_at == 0) {
        out[count++] = (struct pollfd){ .fd = server->fd, .events = POLLIN };
    }
    return count;
}

uint64_t
lw_spool_server_due(const struct lw_spool_server *server)
{
    uint64_t due = server && server->accept_at > 0 ? server->accept_at : UINT64_MAX;
    for (size_t i = 0; server && i < LW_SPOOL_GUESTS_MAX; i++) {
        const struct guest *guest = &server->guests[i];
        bool is_earlier = guest->state == GUEST_LOOKING && guest->due < due;
        due = is_earlier ? guest->due : due;
    }
    return due;
}

/* -- Reading ------------------------------------------------------------------------------------- */

/* Who cannot be let in for lack of a descriptor stays at the door, and would wake us at once. */
static void
accept_guests(struct lw_spool_server *server, uint64_t now)
{
    if (server->accept_at > now) {
        return;
    }
    server->accept_at = 0;
    for (size_t i = 0; i < LW_SPOOL_GUESTS_MAX; i++) {
        struct guest *guest = &server->guests[i];
        if (guest->state != GUEST_FREE) {
            continue;
        }
        int fd = accept4(server->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            bool is_nobody = errno == EAGAIN || errno == EINTR || errno == ECONNABORTED;
            server->accept_at = is_nobody ? 0 : now + ACCEPT_AGAIN_MS * MS;
            return;
        }
        *guest = (struct guest){ .state = GUEST_IDLE, .fd = fd };
        lw_list_init(&guest->batch.link);
    }
}

static void
start_sending(struct guest *guest)
{
    lw_spool_free_guests(&guest->guests);
    guest->sent = 0;
    guest->state = GUEST_SENDING;
}

static bool
start_writing(struct guest *guest, struct lw_list *batches)
{
    if (!lw_spool_read_guests(&guest->reader, &guest->guests)) {
        return false;
    }
    guest->batch.items = guest->guests.items;
    guest->batch.count = guest->guests.count;
    guest->state = GUEST_WRITING;
    lw_list_push(batches, &guest->batch.link);
    return true;
}

static bool
start_looking(struct guest *guest, uint64_t now)
{
    if (!lw_spool_read_look(&guest->reader, &guest->look)) {
        return false;
    }
    uint32_t patience = guest->look.patience_ms;
    patience = patience < PATIENCE_MAX_MS ? patience : PATIENCE_MAX_MS;
    guest->due = now + patience * MS;
    guest->state = GUEST_LOOKING;
    return true;
}

static bool
take_request(struct guest *guest, struct lw_list *batches, uint64_t now)
{
    switch (lw_spool_read_request(&guest->reader)) {
    case LW_SPOOL_PUBLISH:
        return start_writing(guest, batches);
    case LW_SPOOL_TOPICS:
        guest->state = GUEST_ASKING;
        return true;
    case LW_SPOOL_LOOK:
        return start_looking(guest, now);
    case LW_SPOOL_YIELD:
        guest->state = GUEST_YIELDING;
        return true;
    default:
        return false;
    }
}

/* A whole frame begins its request; a wrong one is answered and then the connection ends. */
static bool
take_frame(struct guest *guest, struct lw_list *batches, uint64_t now)
{
    struct lw_spool_reader head;
    lw_spool_read_init(&head, guest->in.data, guest->in.size);
    if (guest->in.size < 4) {
        return true;
    }
    uint32_t size = lw_spool_get_u32(&head);
    if (size > LW_SPOOL_FRAME_MAX) {
        return false;
    }
    if (lw_spool_left(&head) < size) {
        return true;
    }
    if (lw_spool_left(&head) > size) {
        return false; /* nobody asks before the answer */
    }
    lw_spool_read_init(&guest->reader, head.at, size);
    return take_request(guest, batches, now);
}

static bool
read_guest(struct guest *guest, struct lw_list *batches, uint64_t now)
{
    char buffer[READ_BYTES];
    ssize_t got = 0;
    while ((got = recv(guest->fd, buffer, sizeof buffer, 0)) > 0) {
        if (guest->state != GUEST_IDLE ||
            guest->in.size + (size_t)got > (size_t)LW_SPOOL_FRAME_MAX + 4) {
            return false;
        }
        lw_text_append_bytes(&guest->in, buffer, (size_t)got);
    }
    if (got == 0 || (errno != EAGAIN && errno != EINTR) || guest->in.is_failed) {
        return false;
    }
    return guest->state != GUEST_IDLE || take_frame(guest, batches, now);
}

void
lw_spool_server_read(struct lw_spool_server *server, struct lw_list *ret_batches, uint64_t now)
{
    if (!server) {
        return;
    }
    accept_guests(server, now);
    for (size_t i = 0; i < LW_SPOOL_GUESTS_MAX; i++) {
        struct guest *guest = &server->guests[i];
        bool may_come = guest->state == GUEST_IDLE || guest->state == GUEST_LOOKING;
        if (may_come && !read_guest(guest, ret_batches, now)) {
            leave(guest);
        }
    }
}

/* -- Answering ------------------------------------------------------------------------------------ */

/* False: the other end is gone. */
static bool
send_answer(struct guest *guest)
{
    while (guest->sent < guest->out.size) {
        ssize_t sent = send(guest->fd, guest->out.data + guest->sent,
                            guest->out.size - guest->sent, MSG_NOSIGNAL);
        if (sent < 0) {
            return errno == EAGAIN || errno == EINTR;
        }
        guest->sent += (size_t)sent;
    }
    lw_text_deinit(&guest->in); /* a large one is not kept for the next */
    lw_text_deinit(&guest->out);
    lw_text_init(&guest->in);
    lw_text_init(&guest->out);
    guest->state = GUEST_IDLE;
    return true;
}

static void
answer(struct lw_spool_server *server, struct guest *guest, struct lw_spool_store *store,
       const char *why, uint64_t now)
{
    bool is_answered = true;
    if (guest->state == GUEST_WRITING) {
        lw_list_remove(&guest->batch.link);
        lw_spool_answer_guests(&guest->out, &guest->guests, why);
    } else if (guest->state == GUEST_ASKING) {
        lw_spool_answer_topics(store, &guest->reader, &guest->out);
    } else if (guest->state == GUEST_YIELDING) {
        lw_spool_answer_yield(&guest->out, server->is_reader);
        server->has_yielded = !server->is_reader;
    } else if (guest->state == GUEST_LOOKING) {
        is_answered = lw_spool_answer_look(store, &guest->look, guest->due <= now, &guest->out);
    } else {
        is_answered = false;
    }
    if (is_answered) {
        start_sending(guest);
    }
}

void
lw_spool_server_answer(struct lw_spool_server *server, struct lw_spool_store *store,
                       const char *why, uint64_t now)
{
    for (size_t i = 0; server && i < LW_SPOOL_GUESTS_MAX; i++) {
        struct guest *guest = &server->guests[i];
        answer(server, guest, store, why, now);
        bool is_lost = guest->out.is_failed;
        if (guest->state == GUEST_SENDING && (is_lost || !send_answer(guest))) {
            leave(guest);
        }
    }
}

bool
lw_spool_server_has_yielded(const struct lw_spool_server *server)
{
    return server && server->has_yielded;
}
