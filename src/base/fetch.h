/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One HTTP request at a time on the host's loop, for tokens. libcurl is loaded on first use, so
 * that a start without tokens does not pay for it, and runs by its socket interface: nothing
 * blocks. The owner keeps the fetcher in its own memory. The loop thread.
 */
#ifndef LW_BASE_FETCH_H
#define LW_BASE_FETCH_H

#include "base/host.h"
#include "base/text.h"

enum {
    LW_FETCH_SOCKETS_MAX = 16,
    LW_FETCH_HEADERS_MAX = 4,
    LW_FETCH_ANSWER_BYTES_MAX = 1 << 20
};

struct lw_fetch_request {
    const char *url;
    const char *method;                        /* NULL: POST with a form, GET without */
    const char *form;                          /* the body; NULL: none */
    const char *headers[LW_FETCH_HEADERS_MAX]; /* "Name: value"; the first NULL ends them */
    const char *username;                      /* basic authentication; NULL: none */
    const char *password;
    const char *ca_file;          /* NULL: the system's */
    const char *certificate_file; /* of ours; NULL: none */
    const char *key_file;
    bool allows_any_certificate;
    bool allows_any_host; /* the certificate may be for another one */
    int64_t timeout_ms;   /* 0: ten seconds */
};

struct lw_fetch_answer {
    const char *failure; /* NULL: answered with 200; else why not, or "answers 401: ..." */
    const char *data;    /* terminated; "" when there is none */
    size_t size;
    long code; /* of HTTP; 0 when there was no answer */
};

/* The answer lives during the call. The next request may be started from in it. */
typedef void (*lw_fetch_fn)(const struct lw_fetch_answer *answer, void *user);

struct lw_fetch {
    struct lw_host *host;
    struct lw_curl *library; /* NULL until first used */
    void *multi;
    void *easy;    /* the request under way, or NULL */
    void *headers; /* its own */
    struct lw_text answer;
    char error[256];
    struct lw_timer timer;
    struct lw_deferred deferred; /* carries a failure to start */
    const char *start_failure;
    struct lw_fetch_socket {
        int fd; /* -1: free */
        struct lw_watch *watch;
    } sockets[LW_FETCH_SOCKETS_MAX];
    lw_fetch_fn fn;
    void *user;
    bool is_busy;
};

void lw_fetch_init(struct lw_fetch *fetch, struct lw_host *host);
/* A request under way is given up without an answer. */
void lw_fetch_deinit(struct lw_fetch *fetch);
/* Starts; `fn` is called exactly once, later. Texts are copied. Not while one is under way. */
void lw_fetch_start(struct lw_fetch *fetch, const struct lw_fetch_request *request,
                    lw_fetch_fn fn, void *user);
/* True from the start until just before the answer. */
bool lw_fetch_is_busy(const struct lw_fetch *fetch);
/* Appends text percent-encoded, for forms and URLs. */
void lw_fetch_escape(struct lw_text *out, const char *text);

#endif
