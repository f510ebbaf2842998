/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcurl by its multi interface. The few constants below are part of its binary interface; its
 * headers are not needed to build.
 */
#include "base/fetch.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

enum {
    OPT_WRITEDATA = 10001,
    OPT_URL = 10002,
    OPT_ERRORBUFFER = 10010,
    OPT_HTTPHEADER = 10023,
    OPT_CUSTOMREQUEST = 10036,
    OPT_SSL_VERIFYPEER = 64,
    OPT_SSL_VERIFYHOST = 81,
    OPT_SSLCERT = 10025,
    OPT_CAINFO = 10065,
    OPT_SSLKEY = 10087,
    OPT_NOSIGNAL = 99,
    OPT_HTTPAUTH = 107,
    OPT_TIMEOUT_MS = 155,
    OPT_COPYPOSTFIELDS = 10165,
    OPT_USERNAME = 10173,
    OPT_PASSWORD = 10174,
    OPT_PROTOCOLS_STR = 10318,
    OPT_WRITEFUNCTION = 20011,
    MOPT_SOCKETFUNCTION = 20001,
    MOPT_SOCKETDATA = 10002,
    MOPT_TIMERFUNCTION = 20004,
    MOPT_TIMERDATA = 10005,
    INFO_RESPONSE_CODE = 0x200002,
    POLL_REMOVE = 4,
    SOCKET_TIMEOUT = -1,
    AUTH_BASIC = 1,
    TIMEOUT_MS = 10000
};

struct curl_message {
    int kind;
    void *easy;
    union {
        void *data;
        int result;
    } is;
};

struct lw_fetch_library {
    void *handle;
    void *(*easy_init)(void);
    void (*easy_cleanup)(void *easy);
    int (*easy_setopt)(void *easy, int option, ...);
    int (*easy_getinfo)(void *easy, int info, ...);
    void *(*slist_append)(void *list, const char *line);
    void (*slist_free_all)(void *list);
    void *(*multi_init)(void);
    int (*multi_cleanup)(void *multi);
    int (*multi_setopt)(void *multi, int option, ...);
    int (*multi_add_handle)(void *multi, void *easy);
    int (*multi_remove_handle)(void *multi, void *easy);
    int (*multi_socket_action)(void *multi, int fd, int events, int *running);
    struct curl_message *(*multi_info_read)(void *multi, int *left);
};

/* -- Loading --------------------------------------------------------------------------------------- */

static bool
find_symbol(void *handle, const char *name, void *ret_function)
{
    void *symbol = dlsym(handle, name);
    memcpy(ret_function, &symbol, sizeof symbol); /* an object pointer to a function's */
    return symbol != NULL;
}

static bool
find_all(struct lw_fetch_library *curl)
{
    void *handle = curl->handle;
    return find_symbol(handle, "curl_easy_init", &curl->easy_init) &&
           find_symbol(handle, "curl_easy_cleanup", &curl->easy_cleanup) &&
           find_symbol(handle, "curl_easy_setopt", &curl->easy_setopt) &&
           find_symbol(handle, "curl_easy_getinfo", &curl->easy_getinfo) &&
           find_symbol(handle, "curl_slist_append", &curl->slist_append) &&
           find_symbol(handle, "curl_slist_free_all", &curl->slist_free_all) &&
           find_symbol(handle, "curl_multi_init", &curl->multi_init) &&
           find_symbol(handle, "curl_multi_cleanup", &curl->multi_cleanup) &&
           find_symbol(handle, "curl_multi_setopt", &curl->multi_setopt) &&
           find_symbol(handle, "curl_multi_add_handle", &curl->multi_add_handle) &&
           find_symbol(handle, "curl_multi_remove_handle", &curl->multi_remove_handle) &&
           find_symbol(handle, "curl_multi_socket_action", &curl->multi_socket_action) &&
           find_symbol(handle, "curl_multi_info_read", &curl->multi_info_read);
}

static bool
load(struct lw_fetch_library *curl)
{
    static const char *const names[] = { "libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.so" };
    for (size_t i = 0; !curl->handle && i < sizeof names / sizeof *names; i++) {
        curl->handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    }
    return curl->handle && find_all(curl);
}

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
    socket = what == POLL_REMOVE ? NULL : find_socket(fetch, -1);
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
    act(LW_CONTAINER(timer, struct lw_fetch, timer), SOCKET_TIMEOUT, 0);
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
    struct curl_message *message = fetch->library->multi_info_read(fetch->multi, &left);
    if (!message) {
        return;
    }
    char failure[320];
    int result = message->is.result;
    struct lw_fetch_answer answer = { .data = fetch->answer.data ? fetch->answer.data : "",
                                      .size = fetch->answer.size };
    (void)fetch->library->easy_getinfo(fetch->easy, INFO_RESPONSE_CODE, &answer.code);
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
           fetch->library->easy_setopt(fetch->easy, OPT_HTTPHEADER, fetch->headers) == 0;
}

static bool
set_trust(struct lw_fetch *fetch, const struct lw_fetch_request *request)
{
    int (*set)(void *, int, ...) = fetch->library->easy_setopt;
    bool any_host = request->allows_any_certificate || request->allows_any_host;
    return (!request->allows_any_certificate ||
            set(fetch->easy, OPT_SSL_VERIFYPEER, 0L) == 0) &&
           (!any_host || set(fetch->easy, OPT_SSL_VERIFYHOST, 0L) == 0);
}

static bool
set_options(struct lw_fetch *fetch, const struct lw_fetch_request *request)
{
    struct lw_fetch_library *curl = fetch->library;
    long timeout_ms = request->timeout_ms > 0 ? (long)request->timeout_ms : (long)TIMEOUT_MS;
    fetch->error[0] = '\0';
    (void)curl->easy_setopt(fetch->easy, OPT_PROTOCOLS_STR, "http,https"); /* since 7.85 */
    return set_text(fetch, OPT_URL, request->url) &&
           set_text(fetch, OPT_COPYPOSTFIELDS, request->form) &&
           set_text(fetch, OPT_USERNAME, request->username) &&
           set_text(fetch, OPT_PASSWORD, request->password) &&
           set_text(fetch, OPT_CAINFO, request->ca_file) &&
           set_text(fetch, OPT_SSLCERT, request->certificate_file) &&
           set_text(fetch, OPT_SSLKEY, request->key_file) &&
           set_text(fetch, OPT_CUSTOMREQUEST, request->method) && set_headers(fetch, request) &&
           set_trust(fetch, request) &&
           curl->easy_setopt(fetch->easy, OPT_HTTPAUTH, (long)AUTH_BASIC) == 0 &&
           curl->easy_setopt(fetch->easy, OPT_NOSIGNAL, 1L) == 0 &&
           curl->easy_setopt(fetch->easy, OPT_TIMEOUT_MS, timeout_ms) == 0 &&
           curl->easy_setopt(fetch->easy, OPT_ERRORBUFFER, fetch->error) == 0 &&
           curl->easy_setopt(fetch->easy, OPT_WRITEFUNCTION, on_data) == 0 &&
           curl->easy_setopt(fetch->easy, OPT_WRITEDATA, fetch) == 0;
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
    struct lw_fetch_library *curl = fetch->library;
    if (!curl || !load(curl)) {
        return false;
    }
    fetch->multi = curl->multi_init();
    return fetch->multi &&
           curl->multi_setopt(fetch->multi, MOPT_SOCKETFUNCTION, on_socket_wanted) == 0 &&
           curl->multi_setopt(fetch->multi, MOPT_SOCKETDATA, fetch) == 0 &&
           curl->multi_setopt(fetch->multi, MOPT_TIMERFUNCTION, on_timer_wanted) == 0 &&
           curl->multi_setopt(fetch->multi, MOPT_TIMERDATA, fetch) == 0;
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
    if (fetch->library && fetch->library->handle) {
        (void)dlclose(fetch->library->handle);
    }
    lw_free(fetch->library);
    lw_text_deinit(&fetch->answer);
}
