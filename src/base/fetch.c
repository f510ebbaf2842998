/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcurl by its multi interface, on the host's loop. One easy handle for each request: tokens are
 * fetched seldom.
 */
#include "base/fetch.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/curl.h"

enum { TIMEOUT_MS = 10000 };

/* -- The host's loop for libcurl ------------------------------------------------------------------ */

static void finish(struct lw_fetch *fetch);

static void
act(struct lw_fetch *fetch, int fd, int events)
{
    int running = 0;
    (void)fetch->library->multi_socket_action(fetch->multi, fd, events, &running);
    if (running == 0 && fetch->easy) {
        finish(fetch);
    }
}

static void
on_socket_ready(int fd, int events, void *user)
{
    act(user, fd, events); /* LW_READABLE and LW_WRITABLE are libcurl's own 1 and 2 */
}

static struct lw_fetch_socket *
find_socket(struct lw_fetch *fetch, int fd)
{
    for (size_t i = 0; i < LW_FETCH_SOCKETS_MAX; i++) {
        if (fetch->sockets[i].fd == fd) {
            return &fetch->sockets[i];
        }
    }
    return NULL;
}

static void
drop_socket(struct lw_fetch *fetch, struct lw_fetch_socket *socket)
{
    if (socket->watch) {
        fetch->host->ops->unwatch(socket->watch);
    }
    socket->watch = NULL;
    socket->fd = -1;
}

static int
on_socket_wanted(void *easy, int fd, int what, void *user, void *socket_user)
{
    (void)easy, (void)socket_user;
    struct lw_fetch *fetch = user;
    struct lw_fetch_socket *socket = find_socket(fetch, fd);
    if (socket) {
        drop_socket(fetch, socket);
    }
    socket = what == LW_CURL_POLL_REMOVE ? NULL : find_socket(fetch, -1);
    if (socket) {
        socket->fd = fd;
        socket->watch = fetch->host->ops->watch(fetch->host, fd, what & 3, on_socket_ready,
                                                fetch);
    }
    return 0;
}

static int
on_timer_wanted(void *multi, long timeout_ms, void *user)
{
    (void)multi;
    struct lw_fetch *fetch = user;
    struct lw_host *host = fetch->host;
    if (timeout_ms < 0) {
        lw_timers_disarm(&host->timers, &fetch->timer);
    } else {
        lw_timers_arm(&host->timers, &fetch->timer, host->now + (uint64_t)timeout_ms * LW_MS);
    }
    return 0;
}

static void
on_timer_due(struct lw_timer *timer, uint64_t now)
{
    (void)now;
    act(LW_CONTAINER(timer, struct lw_fetch, timer), LW_CURL_SOCKET_TIMEOUT, 0);
}

static size_t
on_data(char *data, size_t size, size_t count, void *user)
{
    struct lw_fetch *fetch = user;
    if (fetch->answer.size + size * count > LW_FETCH_ANSWER_BYTES_MAX) {
        return 0;
    }
    lw_text_append_bytes(&fetch->answer, data, size * count);
    return fetch->answer.is_failed ? 0 : size * count;
}

/* -- One request ------------------------------------------------------------------------------------ */

static void
end_request(struct lw_fetch *fetch)
{
    if (fetch->easy) {
        (void)fetch->library->multi_remove_handle(fetch->multi, fetch->easy);
        fetch->library->easy_cleanup(fetch->easy);
        fetch->easy = NULL;
    }
    if (fetch->headers) {
        fetch->library->slist_free_all(fetch->headers);
        fetch->headers = NULL;
    }
}

static void
finish(struct lw_fetch *fetch)
{
    int left = 0;
    struct lw_curl_message *message = fetch->library->multi_info_read(fetch->multi, &left);
    if (!message) {
        return;
    }
    char failure[320];
    int result = message->is.result;
    struct lw_fetch_answer answer = { .data = fetch->answer.data ? fetch->answer.data : "",
                                      .size = fetch->answer.size };
    (void)fetch->library->easy_getinfo(fetch->easy, LW_CURLINFO_RESPONSE_CODE, &answer.code);
    if (result != 0) {
        answer.failure = fetch->error[0] ? fetch->error : "the request failed";
    } else if (answer.code != 200) {
        (void)snprintf(failure, sizeof failure, "answers %ld: %.200s", answer.code,
                       answer.data);
        answer.failure = failure;
    }
    end_request(fetch);
    struct lw_text body = fetch->answer; /* the callback may start the next request */
    lw_text_init(&fetch->answer);
    fetch->is_busy = false;
    fetch->fn(&answer, fetch->user);
    lw_text_deinit(&body);
}

static void
on_start_failed(struct lw_deferred *deferred)
{
    struct lw_fetch *fetch = LW_CONTAINER(deferred, struct lw_fetch, deferred);
    struct lw_fetch_answer answer = { .failure = fetch->start_failure, .data = "" };
    fetch->is_busy = false;
    fetch->fn(&answer, fetch->user);
}

static bool
set_text(struct lw_fetch *fetch, int option, const char *text)
{
    return !text || fetch->library->easy_setopt(fetch->easy, option, text) == 0;
}

static bool
set_headers(struct lw_fetch *fetch, const struct lw_fetch_request *request)
{
    for (size_t i = 0; i < LW_FETCH_HEADERS_MAX && request->headers[i]; i++) {
        void *list = fetch->library->slist_append(fetch->headers, request->headers[i]);
        if (!list) {
            return false;
        }
        fetch->headers = list;
    }
    return !fetch->headers ||
           fetch->library->easy_setopt(fetch->easy, LW_CURLOPT_HTTPHEADER, fetch->headers) == 0;
}

static bool
set_trust(struct lw_fetch *fetch, const struct lw_fetch_request *request)
{
    int (*set)(void *, int, ...) = fetch->library->easy_setopt;
    bool any_host = request->allows_any_certificate || request->allows_any_host;
    return (!request->allows_any_certificate ||
            set(fetch->easy, LW_CURLOPT_SSL_VERIFYPEER, 0L) == 0) &&
           (!any_host || set(fetch->easy, LW_CURLOPT_SSL_VERIFYHOST, 0L) == 0);
}

static bool
set_options(struct lw_fetch *fetch, const struct lw_fetch_request *request)
{
    struct lw_curl *curl = fetch->library;
    long timeout_ms = request->timeout_ms > 0 ? (long)request->timeout_ms : (long)TIMEOUT_MS;
    fetch->error[0] = '\0';
    /* Without it, an end would wait on the loop for a name that is still looked up. */
    (void)curl->easy_setopt(fetch->easy, LW_CURLOPT_QUICK_EXIT, 1L); /* since 7.87 */
    (void)curl->easy_setopt(fetch->easy, LW_CURLOPT_PROTOCOLS_STR,
                            "http,https"); /* since 7.85 */
    return set_text(fetch, LW_CURLOPT_URL, request->url) &&
           set_text(fetch, LW_CURLOPT_COPYPOSTFIELDS, request->form) &&
           set_text(fetch, LW_CURLOPT_USERNAME, request->username) &&
           set_text(fetch, LW_CURLOPT_PASSWORD, request->password) &&
           set_text(fetch, LW_CURLOPT_CAINFO, request->ca_file) &&
           set_text(fetch, LW_CURLOPT_SSLCERT, request->certificate_file) &&
           set_text(fetch, LW_CURLOPT_SSLKEY, request->key_file) &&
           set_text(fetch, LW_CURLOPT_CUSTOMREQUEST, request->method) &&
           set_headers(fetch, request) && set_trust(fetch, request) &&
           curl->easy_setopt(fetch->easy, LW_CURLOPT_HTTPAUTH, (long)LW_CURLAUTH_BASIC) == 0 &&
           curl->easy_setopt(fetch->easy, LW_CURLOPT_NOSIGNAL, 1L) == 0 &&
           curl->easy_setopt(fetch->easy, LW_CURLOPT_TIMEOUT_MS, timeout_ms) == 0 &&
           curl->easy_setopt(fetch->easy, LW_CURLOPT_ERRORBUFFER, fetch->error) == 0 &&
           curl->easy_setopt(fetch->easy, LW_CURLOPT_WRITEFUNCTION, on_data) == 0 &&
           curl->easy_setopt(fetch->easy, LW_CURLOPT_WRITEDATA, fetch) == 0;
}

static bool
open_multi(struct lw_fetch *fetch)
{
    if (fetch->multi) {
        return true;
    }
    if (!fetch->library) {
        fetch->library = lw_alloc(sizeof *fetch->library);
    }
    struct lw_curl *curl = fetch->library;
    if (!curl || !lw_curl_load(curl)) {
        return false;
    }
    fetch->multi = curl->multi_init();
    return fetch->multi &&
           curl->multi_setopt(fetch->multi, LW_CURLMOPT_SOCKETFUNCTION, on_socket_wanted) ==
               0 &&
           curl->multi_setopt(fetch->multi, LW_CURLMOPT_SOCKETDATA, fetch) == 0 &&
           curl->multi_setopt(fetch->multi, LW_CURLMOPT_TIMERFUNCTION, on_timer_wanted) == 0 &&
           curl->multi_setopt(fetch->multi, LW_CURLMOPT_TIMERDATA, fetch) == 0;
}

static void
fail_start(struct lw_fetch *fetch, const char *why)
{
    fetch->start_failure = why;
    lw_host_defer(fetch->host, &fetch->deferred);
}

void
lw_fetch_start(struct lw_fetch *fetch, const struct lw_fetch_request *request, lw_fetch_fn fn,
               void *user)
{
    lw_assert(!fetch->is_busy);
    fetch->is_busy = true;
    fetch->fn = fn;
    fetch->user = user;
    lw_text_clear(&fetch->answer);
    if (!open_multi(fetch)) {
        fail_start(fetch, "libcurl (libcurl.so.4) could not be loaded; install libcurl4");
        return;
    }
    fetch->easy = fetch->library->easy_init();
    if (!fetch->easy || !set_options(fetch, request) ||
        fetch->library->multi_add_handle(fetch->multi, fetch->easy) != 0) {
        end_request(fetch);
        fail_start(fetch, "the request could not be made");
    }
}

bool
lw_fetch_is_busy(const struct lw_fetch *fetch)
{
    return fetch->is_busy;
}

void
lw_fetch_escape(struct lw_text *out, const char *text)
{
    static const char unreserved[] = "abcdefghijklmnopqrstuvwxyz"
                                     "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                     "0123456789-._~";
    for (; *text; text++) {
        if (strchr(unreserved, *text)) {
            lw_text_append_char(out, *text);
        } else {
            lw_text_format(out, "%%%02X", (unsigned int)(unsigned char)*text);
        }
    }
}

/* -- Life ---------------------------------------------------------------------------------------- */

void
lw_fetch_init(struct lw_fetch *fetch, struct lw_host *host)
{
    memset(fetch, 0, sizeof *fetch);
    fetch->host = host;
    lw_text_init(&fetch->answer);
    lw_timer_init(&fetch->timer, on_timer_due);
    lw_deferred_init(&fetch->deferred, on_start_failed);
    for (size_t i = 0; i < LW_FETCH_SOCKETS_MAX; i++) {
        fetch->sockets[i].fd = -1;
    }
}

void
lw_fetch_deinit(struct lw_fetch *fetch)
{
    end_request(fetch);
    if (fetch->multi) {
        (void)fetch->library->multi_cleanup(fetch->multi);
    }
    for (size_t i = 0; i < LW_FETCH_SOCKETS_MAX; i++) {
        drop_socket(fetch, &fetch->sockets[i]);
    }
    lw_timers_disarm(&fetch->host->timers, &fetch->timer);
    lw_deferred_cancel(&fetch->deferred);
    if (fetch->library) {
        lw_curl_unload(fetch->library);
    }
    lw_free(fetch->library);
    lw_text_deinit(&fetch->answer);
}
