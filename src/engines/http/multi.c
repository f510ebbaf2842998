/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcurl's multi interface on the host's loop: its sockets are watched, its one timer is a node
 * of the wheel. Its callbacks only note what is wanted; libcurl is never called from inside them.
 *
 * libcurl forgets a socket whenever a request on it ends and asks for it again with the next one.
 * A connection that was answered on therefore stays watched between requests, which saves two
 * calls of the system a message; that is safe because the engine opens and closes all sockets of
 * connections itself, and so knows when a number is free for others.
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "engines/http/http.h"

enum { SOCKETS_MIN = 64 };

/* -- Sockets ------------------------------------------------------------------------------------- */

static struct lw_http_socket *
find_socket(const struct lw_http *http, int fd)
{
    return fd >= 0 && (size_t)fd < http->socket_capacity ? http->sockets[fd] : NULL;
}

static bool
reserve_socket(struct lw_http *http, int fd)
{
    size_t capacity = http->socket_capacity ? http->socket_capacity : SOCKETS_MIN;
    while (capacity <= (size_t)fd) {
        capacity *= 2;
    }
    if (capacity == http->socket_capacity) {
        return true;
    }
    void *grown = lw_resize_array(http->sockets, capacity, sizeof(struct lw_http_socket *));
    if (!grown) {
        return false;
    }
    http->sockets = grown;
    for (size_t i = http->socket_capacity; i < capacity; i++) {
        http->sockets[i] = NULL;
    }
    http->socket_capacity = capacity;
    return true;
}

static void
drop_socket(struct lw_http *http, int fd)
{
    struct lw_http_socket *socket = find_socket(http, fd);
    if (socket) {
        http->engine.host->ops->unwatch(socket->watch);
        http->sockets[fd] = NULL;
        lw_free(socket);
    }
}

static void
set_events(struct lw_http_socket *socket, int events)
{
    if (socket->events != events) {
        socket->events = events;
        socket->http->engine.host->ops->rewatch(socket->watch, events);
    }
}

static void
on_socket_ready(int fd, int events, void *user)
{
    struct lw_http_socket *socket = user;
    if (events & ~socket->events) {
        socket->events = 0; /* in error: the host paused it */
    }
    if (socket->is_idle) {
        set_events(socket, 0); /* the other side closed it: libcurl looks before it is used */
        return;
    }
    lw_http_multi_act(socket->http, fd, events); /* LW_READABLE, LW_WRITABLE: libcurl's 1, 2 */
}

static bool
watch_socket(struct lw_http *http, int fd, int events)
{
    struct lw_host *host = http->engine.host;
    struct lw_http_socket *socket = find_socket(http, fd);
    if (socket) {
        socket->is_idle = false;
        set_events(socket, events);
        return true;
    }
    socket = reserve_socket(http, fd) ? lw_alloc(sizeof *socket) : NULL;
    if (!socket) {
        return false;
    }
    *socket = (struct lw_http_socket){ .http = http, .fd = fd, .events = events };
    socket->watch = host->ops->watch(host, fd, events, on_socket_ready, socket);
    if (!socket->watch) {
        lw_free(socket);
        return false;
    }
    http->sockets[fd] = socket;
    return true;
}

static struct lw_http_transfer *
transfer_of(const struct lw_http *http, void *easy)
{
    char *transfer = NULL;
    (void)http->curl.easy_getinfo(easy, LW_CURLINFO_PRIVATE, &transfer);
    return (void *)transfer;
}

/* A connection on which an answer came goes back to the pool, if it is not closed right after. */
static bool
is_for_pool(const struct lw_http *http, void *easy)
{
    const struct lw_http_transfer *transfer = transfer_of(http, easy);
    return transfer && transfer->answer.status != 0;
}

static int
on_socket_wanted(void *easy, int fd, int what, void *user, void *socket_user)
{
    struct lw_http *http = user;
    (void)socket_user;
    if (what == LW_CURL_POLL_REMOVE) {
        struct lw_http_socket *socket = find_socket(http, fd);
        if (socket && is_for_pool(http, easy)) {
            socket->is_idle = true;
        } else {
            drop_socket(http, fd);
        }
    } else if (!watch_socket(http, fd, what & (LW_READABLE | LW_WRITABLE))) {
        struct lw_http_transfer *transfer = transfer_of(http, easy);
        if (transfer) {
            transfer->is_starved = true;
            http->has_starved = true;
        }
    }
    return 0;
}

/* struct curl_sockaddr, as far as it is needed. */
struct address {
    int family;
    int socktype;
    int protocol;
};

static int
open_socket(void *user, int purpose, struct address *address)
{
    struct lw_http *http = user;
    (void)purpose;
    int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    http->socket_failure = fd >= 0 ? 0 : errno;
    if (fd < 0) {
        return LW_CURL_SOCKET_BAD;
    }
    drop_socket(http, fd); /* the number was free, so nothing of that name is ours */
    return fd;
}

static int
close_socket(void *user, int fd)
{
    drop_socket(user, fd);
    return close(fd);
}

bool
lw_http_multi_own_sockets(struct lw_http *http, void *easy)
{
    int (*set)(void *, int, ...) = http->curl.easy_setopt;
    return set(easy, LW_CURLOPT_OPENSOCKETFUNCTION, open_socket) == 0 &&
           set(easy, LW_CURLOPT_OPENSOCKETDATA, http) == 0 &&
           set(easy, LW_CURLOPT_CLOSESOCKETFUNCTION, close_socket) == 0 &&
           set(easy, LW_CURLOPT_CLOSESOCKETDATA, http) == 0;
}

/* -- Time ---------------------------------------------------------------------------------------- */

static int
on_timer_wanted(void *multi, long timeout_ms, void *user)
{
    struct lw_http *http = user;
    struct lw_host *host = http->engine.host;
    (void)multi;
    http->is_timer_due = timeout_ms == 0;
    if (timeout_ms < 0) {
        lw_timers_disarm(&host->timers, &http->timer);
    } else {
        lw_timers_arm(&host->timers, &http->timer, host->now + (uint64_t)timeout_ms * LW_MS);
    }
    return 0;
}

static void
on_timer_due(struct lw_timer *timer, uint64_t now)
{
    (void)now;
    lw_http_multi_act(LW_CONTAINER(timer, struct lw_http, timer), LW_CURL_SOCKET_TIMEOUT, 0);
}

/* -- Acting ---------------------------------------------------------------------------------------- */

static void
take_ended(struct lw_http *http)
{
    int left = 0;
    struct lw_curl_message *message = NULL;
    while ((message = http->curl.multi_info_read(http->multi, &left)) != NULL) {
        int result = message->is.result;
        struct lw_http_transfer *transfer = transfer_of(http, message->easy);
        if (transfer) {
            lw_http_transfer_on_end(transfer, result);
        }
    }
}

static void
end_starved(struct lw_http *http)
{
    http->has_starved = false;
    for (uint32_t i = 0; i < http->connections; i++) {
        if (http->transfers[i].is_starved) {
            lw_http_transfer_abort(&http->transfers[i], "no memory for its request");
        }
    }
    if (http->probe.is_starved) {
        lw_http_transfer_on_end(&http->probe, LW_CURLE_OUT_OF_MEMORY);
    }
    lw_http_wait_for_memory(http);
}

void
lw_http_multi_act(struct lw_http *http, int fd, int events)
{
    int running = 0;
    http->is_timer_due = http->is_timer_due && fd != LW_CURL_SOCKET_TIMEOUT;
    (void)http->curl.multi_socket_action(http->multi, fd, events, &running);
    take_ended(http);
    if (http->has_starved) {
        end_starved(http);
    }
}

/* -- Life ------------------------------------------------------------------------------------------ */

bool
lw_http_multi_open(struct lw_http *http)
{
    struct lw_curl *curl = &http->curl;
    if (http->multi) {
        return true;
    }
    if (!lw_curl_load(curl)) {
        return false;
    }
    lw_timer_init(&http->timer, on_timer_due);
    http->multi = curl->multi_init();
    long most = (long)http->connections;
    return http->multi &&
           curl->multi_setopt(http->multi, LW_CURLMOPT_SOCKETFUNCTION, on_socket_wanted) == 0 &&
           curl->multi_setopt(http->multi, LW_CURLMOPT_SOCKETDATA, http) == 0 &&
           curl->multi_setopt(http->multi, LW_CURLMOPT_TIMERFUNCTION, on_timer_wanted) == 0 &&
           curl->multi_setopt(http->multi, LW_CURLMOPT_TIMERDATA, http) == 0 &&
           curl->multi_setopt(http->multi, LW_CURLMOPT_MAXCONNECTS, most) == 0;
}

void
lw_http_multi_close(struct lw_http *http)
{
    if (http->multi) {
        (void)http->curl.multi_cleanup(http->multi);
        http->multi = NULL;
    }
    for (size_t i = 0; i < http->socket_capacity; i++) {
        drop_socket(http, (int)i);
    }
    lw_free(http->sockets);
    http->sockets = NULL;
    http->socket_capacity = 0;
    if (http->curl.handle) {
        lw_timers_disarm(&http->engine.host->timers, &http->timer);
    }
    lw_curl_unload(&http->curl);
}
