/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a service answered, collected as it comes, and what it means (docs/handlers-http.md).
 * Everything comes from a service that may be wrong in any way: sizes are bounded, values are
 * checked, and a wrong one is named. Pure: no socket, no clock.
 */
#ifndef LW_ENGINES_HTTP_ANSWER_H
#define LW_ENGINES_HTTP_ANSWER_H

#include "base/text.h"
#include "core/delivery.h"

#define LW_HTTP_REASON_BYTES 500

/* What an answer without a body says about a reply. */
enum lw_http_reply { LW_HTTP_REPLY_BODY, LW_HTTP_REPLY_EMPTY, LW_HTTP_REPLY_NULL };

struct lw_http_answer {
    long status;         /* of the last status line; 0: none came */
    uint64_t bytes_max;  /* of a body; set by the owner */
    uint64_t body_bytes; /* that came */
    struct lw_text body; /* what is kept of them */
    size_t head_bytes;   /* of all header lines that came */
    bool is_head_over;   /* what looks like a header now is a trailer, and means nothing */
    bool is_too_large;   /* the body is cut at bytes_max, or was announced as larger */
    bool is_starved;     /* no memory for the body */
    bool has_retry_after;
    bool has_result;
    bool has_code;
    bool is_json_answer; /* content-type: application/vnd.laneway.answer+json */
    enum lw_http_reply reply;
    int64_t retry_after_ms;
    int64_t delay_ms; /* x-laneway-delay; -1 none */
    int code;
    enum lw_verdict result; /* x-laneway-result */
    char fault[160];        /* a header that cannot be used, in words; "" none */
    char reason[LW_REASON_MAX + 1];
    char location[160];
};

/* How an answer is read that is written as in the protocols of programs; false: no memory. */
typedef bool (*lw_http_read_fn)(struct lw_bytes json, struct lw_delivery *delivery,
                                enum lw_verdict *ret_verdict);

/* How a task of several messages is written as one request; false: no memory, nothing is written. */
typedef bool (*lw_http_write_fn)(struct lw_text *out, const struct lw_delivery *first,
                                 int64_t deadline_ms);

void lw_http_answer_init(struct lw_http_answer *answer, uint64_t bytes_max);
void lw_http_answer_deinit(struct lw_http_answer *answer);
/* Forgets the last answer; keeps a small buffer. */
void lw_http_answer_begin(struct lw_http_answer *answer);
/* One line, with or without its end. False: nothing more is wanted, end the transfer. */
bool
lw_http_answer_header(struct lw_http_answer *answer, struct lw_bytes line, int64_t wall_ms);
/* A piece of the body. False: as above. */
bool lw_http_answer_body(struct lw_http_answer *answer, struct lw_bytes piece);
/* 429 or 503, and no other word for it: retry, not charged. */
bool lw_http_answer_is_busy(const struct lw_http_answer *answer);
/*
 * Fills the delivery's outcome, which must exist, and gives the verdict. `read` may be NULL: then
 * such answers are refused. False: no memory, and nothing is known.
 */
bool lw_http_answer_judge(const struct lw_http_answer *answer, lw_http_read_fn read,
                          struct lw_delivery *delivery, enum lw_verdict *ret_verdict);
/* Makes bytes of a service fit for a reason: one line, UTF-8, at most LW_HTTP_REASON_BYTES. */
void lw_http_reason(char out[LW_REASON_MAX + 1], struct lw_bytes bytes);

#endif
