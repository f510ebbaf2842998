/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The headers of a request, as libcurl takes them: a list of lines in memory that is kept and
 * used again, so that a message allocates nothing once it has grown. Whatever a message holds, a
 * line is one header: names are tokens of HTTP, values have no control character; other bytes
 * are percent-encoded, and `%` itself, so that it can be taken back. A batch has its messages in
 * its body, and only what they have in common in its headers. Pure.
 */
#ifndef LW_ENGINES_HTTP_REQUEST_H
#define LW_ENGINES_HTTP_REQUEST_H

#include "base/curl.h"
#include "base/text.h"
#include "core/delivery.h"

/*
 * libcurl takes a head of 1 MiB, which a small body is part of. For HTTP/2 it takes 64 KiB, of
 * which each line costs 12 bytes more: above the second bound a request is one of HTTP/1.1.
 */
#define LW_HTTP_HEAD_BYTES_MAX ((size_t)768 * 1024)
#define LW_HTTP_HEAD_BYTES_MAX_2 ((size_t)48 * 1024)
#define LW_HTTP_LINE_BYTES_2 12

struct lw_http_request {
    struct lw_text text;        /* lines, each ended by a zero */
    struct lw_curl_line *lines; /* their list */
    size_t capacity;
    size_t count;
    size_t head_bytes; /* of the lines, as they are sent */
};

/* What every request of a handler has. */
struct lw_http_fixed {
    struct lw_curl_line *lines;    /* put behind each list; may be NULL */
    struct lw_bytes content_type;  /* of messages that have none */
    struct lw_bytes authorization; /* a whole line without its end; null: none */
};

void lw_http_request_init(struct lw_http_request *request);
void lw_http_request_deinit(struct lw_http_request *request);
/*
 * Writes all headers of a message; the list is good until the next write. deadline_ms: what is
 * left of the attempt, -1 none. NULL without memory.
 */
struct lw_curl_line *
lw_http_request_write(struct lw_http_request *request, const struct lw_delivery *delivery,
                      const struct lw_http_fixed *fixed, int64_t deadline_ms);

#endif
