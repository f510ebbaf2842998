/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop that one would write by hand: easy handles that are used again, headers that are made
 * once, sockets told to epoll as libcurl asks for them, its timer as the time-out of epoll_wait.
 */
#include "bench/support/http_bare.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/curl.h"

enum { EVENTS = 64, CONNECTIONS_MAX = 256 };

struct bare {
    struct lw_curl curl;
    void *multi;
    int epoll;
    int timeout_ms;
    uint64_t left;
    uint64_t done;
    bool has_failed;
};

/* As many headers, and as long ones, as a message of the bench has. */
static const char *const lines[] = {
    "content-type: application/octet-stream",
    "ce-id: main/bench/0/123456",
    "ce-source: /bench",
    "ce-specversion: 1.0",
    "ce-type: laneway.message",
    "ce-time: 2026-11-30T13:02:19.123Z",
    "ce-partitionkey: key-0042",
    "x-laneway-message-id: main/bench/0/123456",
    "x-laneway-topic: bench",
    "x-laneway-partition: 0",
    "x-laneway-offset: 123456",
    "x-laneway-subscription: g",
    "x-laneway-pipeline: bench",
    "x-laneway-key: key-0042",
    "x-laneway-timestamp: 2026-11-30T13:02:19.123Z",
    "x-laneway-attempt: 1",
    "x-laneway-retries: 0",
    "x-laneway-redeliveries: 0",
    "x-laneway-deadline: 30000",
    "user-agent: laneway/0.1.0",
    "expect:",
};

static int
on_socket(void *easy, int fd, int what, void *user, void *socket_user)
{
    struct bare *bare = user;
    struct epoll_event event = { .data.fd = fd };
    (void)easy, (void)socket_user;
    event.events = (what & 1 ? EPOLLIN : 0U) | (what & 2 ? EPOLLOUT : 0U);
    if (what == LW_CURL_POLL_REMOVE) {
        (void)epoll_ctl(bare->epoll, EPOLL_CTL_DEL, fd, NULL);
    } else if (epoll_ctl(bare->epoll, EPOLL_CTL_MOD, fd, &event) != 0) {
        (void)epoll_ctl(bare->epoll, EPOLL_CTL_ADD, fd, &event);
    }
    return 0;
}

static int
on_timer(void *multi, long timeout_ms, void *user)
{
    (void)multi;
    ((struct bare *)user)->timeout_ms = (int)timeout_ms;
    return 0;
}

static size_t
drop(char *data, size_t size, size_t count, void *user)
{
    (void)data, (void)user;
    return size * count;
}

static void
begin(struct bare *bare, void *easy)
{
    if (bare->left > 0) {
        bare->left--;
        (void)bare->curl.multi_add_handle(bare->multi, easy);
    }
}

static void
take_ended(struct bare *bare)
{
    int left = 0;
    struct lw_curl_message *message = NULL;
    while ((message = bare->curl.multi_info_read(bare->multi, &left)) != NULL) {
        long code = 0;
        void *easy = message->easy;
        bare->has_failed = bare->has_failed || message->is.result != 0;
        (void)bare->curl.easy_getinfo(easy, LW_CURLINFO_RESPONSE_CODE, &code);
        bare->has_failed = bare->has_failed || code != 204;
        (void)bare->curl.multi_remove_handle(bare->multi, easy);
        bare->done++;
        begin(bare, easy);
    }
}

static void
act(struct bare *bare, int fd, int events)
{
    int running = 0;
    (void)bare->curl.multi_socket_action(bare->multi, fd, events, &running);
    take_ended(bare);
}

static void
turn(struct bare *bare)
{
    struct epoll_event events[EVENTS];
    int count = epoll_wait(bare->epoll, events, EVENTS, bare->timeout_ms);
    if (count == 0) {
        act(bare, LW_CURL_SOCKET_TIMEOUT, 0);
    }
    for (int i = 0; i < count; i++) {
        int what = (events[i].events & EPOLLIN ? 1 : 0) | (events[i].events & EPOLLOUT ? 2 : 0);
        act(bare, events[i].data.fd, what);
    }
    if (count > 0 && bare->timeout_ms == 0) {
        act(bare, LW_CURL_SOCKET_TIMEOUT, 0);
    }
}

static void *
make_easy(struct bare *bare, const char *url, void *list, const void *body, int64_t size)
{
    int (*set)(void *, int, ...) = bare->curl.easy_setopt;
    void *easy = bare->curl.easy_init();
    (void)set(easy, LW_CURLOPT_URL, url);
    (void)set(easy, LW_CURLOPT_NOSIGNAL, 1L);
    (void)set(easy, LW_CURLOPT_PROXY, "");
    (void)set(easy, LW_CURLOPT_HTTP_VERSION, (long)LW_CURL_HTTP_1_1);
    (void)set(easy, LW_CURLOPT_POSTFIELDSIZE_LARGE, size);
    (void)set(easy, LW_CURLOPT_POSTFIELDS, body);
    (void)set(easy, LW_CURLOPT_HTTPHEADER, list);
    (void)set(easy, LW_CURLOPT_HEADERFUNCTION, drop);
    (void)set(easy, LW_CURLOPT_WRITEFUNCTION, drop);
    return easy;
}

bool
lw_http_bare(const char *url, uint32_t connections, const void *body, int64_t size, uint64_t n)
{
    struct bare bare = { .left = n, .timeout_ms = -1 };
    void *easy[CONNECTIONS_MAX];
    void *list = NULL;
    if (!lw_curl_load(&bare.curl) || connections > CONNECTIONS_MAX) {
        return false;
    }
    bare.multi = bare.curl.multi_init();
    bare.epoll = epoll_create1(EPOLL_CLOEXEC);
    (void)bare.curl.multi_setopt(bare.multi, LW_CURLMOPT_SOCKETFUNCTION, on_socket);
    (void)bare.curl.multi_setopt(bare.multi, LW_CURLMOPT_SOCKETDATA, &bare);
    (void)bare.curl.multi_setopt(bare.multi, LW_CURLMOPT_TIMERFUNCTION, on_timer);
    (void)bare.curl.multi_setopt(bare.multi, LW_CURLMOPT_TIMERDATA, &bare);
    (void)bare.curl.multi_setopt(bare.multi, LW_CURLMOPT_MAXCONNECTS, (long)connections);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        list = bare.curl.slist_append(list, lines[i]);
    }
    for (uint32_t i = 0; i < connections; i++) {
        easy[i] = make_easy(&bare, url, list, body, size);
        begin(&bare, easy[i]);
    }
    while (bare.done < n && !bare.has_failed) {
        turn(&bare);
    }
    return !bare.has_failed;
}
