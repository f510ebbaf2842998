/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_http.c: arbitrary bytes as the answer of a service, cut as libcurl would: lines of the head
 * up to an empty one, then the body in pieces. Nothing may crash, and what is made of it is whole:
 * a known verdict, a terminated reason of one line in UTF-8, delays that make sense, never more of
 * a body than was allowed. The same bytes are headers of a message: no line breaks out. And they
 * are an address, and a time to wait.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "core/partition.h"
#include "core/subscription.h"
#include "engines/http/answer.h"
#include "engines/http/request.h"
#include "engines/http/retry_after.h"
#include "engines/http/url.h"
#include "engines/programs/answer.h"

enum { BODY_BYTES_MAX = 2000, PIECE_BYTES = 700 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* -- Answers --------------------------------------------------------------------------------------- */

static void
check_outcome(const struct lw_http_answer *answer, const struct lw_outcome *outcome,
              enum lw_verdict verdict)
{
    lw_assert(verdict <= LW_ERROR);
    lw_assert(strlen(outcome->reason) <= LW_REASON_MAX);
    lw_assert(outcome->delay_ms >= -1);
    lw_assert(answer->body.size <= BODY_BYTES_MAX);
    for (uint32_t i = 0; !answer->is_json_answer && i < outcome->output_count; i++) {
        struct lw_output view;
        lw_outcome_view(outcome, i, &view, NULL);
        lw_assert(outcome->outputs[i].is_reply && view.value.size <= BODY_BYTES_MAX);
        lw_assert(verdict == LW_OK);
    }
}

static void
judge(const struct lw_http_answer *answer)
{
    struct lw_delivery delivery = { .attempt = 1 };
    enum lw_verdict verdict = LW_PENDING;
    char reason[LW_REASON_MAX + 1];
    lw_assert(lw_delivery_outcome(&delivery) != NULL);
    lw_assert(lw_http_answer_judge(answer, lw_programs_answer_take, &delivery, &verdict));
    check_outcome(answer, delivery.outcome, verdict);
    (void)lw_http_answer_is_busy(answer);
    lw_http_reason(reason, (struct lw_bytes){ answer->body.data, answer->body.size });
    lw_assert(strlen(reason) <= LW_HTTP_REASON_BYTES);
    lw_assert(lw_text_is_utf8(reason, strlen(reason)));
    lw_outcome_destroy(delivery.outcome);
}

static const char *
read_head(struct lw_http_answer *answer, const char *at, const char *end)
{
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline ? newline + 1 : end;
        struct lw_bytes line = { at, (size_t)(stop - at) };
        bool is_last = line.size == 1 || (line.size == 2 && *at == '\r');
        at = stop;
        if (!lw_http_answer_header(answer, line, INT64_C(1764511339123))) {
            return NULL;
        }
        if (is_last && answer->status >= 200) {
            break;
        }
    }
    return at;
}

static void
read_answer(struct lw_http_answer *answer, const char *at, const char *end)
{
    lw_http_answer_begin(answer);
    at = read_head(answer, at, end);
    while (at && at < end) {
        size_t left = (size_t)(end - at);
        size_t size = left < PIECE_BYTES ? left : PIECE_BYTES;
        if (!lw_http_answer_body(answer, (struct lw_bytes){ at, size })) {
            break;
        }
        at += size;
    }
    judge(answer);
}

/* -- Requests -------------------------------------------------------------------------------------- */

static struct lw_header the_header;

static const struct lw_header *
headers(struct lw_broker *broker, const struct lw_message *message, size_t *ret_count)
{
    (void)broker, (void)message;
    *ret_count = 1;
    return &the_header;
}

static void
times(struct lw_broker *broker, const struct lw_message *message,
      struct lw_message_times *ret_times)
{
    (void)broker, (void)message;
    *ret_times = (struct lw_message_times){ 1, -1 };
}

/* What the dispatcher answers from its own book-keeping, which there is none of here. */
static uint32_t
retries(const struct lw_delivery *delivery)
{
    return delivery->attempt;
}

static size_t
message_id(const struct lw_delivery *delivery, char *out, size_t size)
{
    return (size_t)snprintf(out, size, "main/t/0/%u", delivery->attempt);
}

static const struct lw_view_ops view_ops = { .retries = retries, .message_id = message_id };

static void
write_request(const char *bytes, size_t size)
{
    static const struct lw_broker_ops ops = { .headers = headers, .times = times };
    struct lw_broker broker = { .ops = &ops, .name = "main" };
    struct lw_subscription subscription = {
        .name = "g", .pipeline = "p", .broker = &broker, .view = &view_ops
    };
    struct lw_partition partition = { .topic = "t" };
    struct lw_delivery delivery = { .subscription = &subscription, .partition = &partition };
    struct lw_http_fixed fixed = { .content_type = { "a/b", 3 } };
    struct lw_http_request request;
    size_t half = size / 2;
    subscription.topic = "t";
    the_header = (struct lw_header){ { bytes, half }, { bytes + half, size - half } };
    delivery.message.key = (struct lw_bytes){ bytes, size };
    lw_http_request_init(&request);
    struct lw_curl_line *line = lw_http_request_write(&request, &delivery, &fixed, 1);
    lw_assert(line != NULL);
    for (; line; line = line->next) {
        lw_assert(strpbrk(line->data, "\r\n") == NULL && strpbrk(line->data, ":;") != NULL);
    }
    lw_http_request_deinit(&request);
}

/* -- Texts ----------------------------------------------------------------------------------------- */

static void
read_texts(const char *bytes, size_t size)
{
    char text[512];
    char why[160];
    size_t at = 0;
    int64_t ms = 0;
    size_t kept = size < sizeof text - 1 ? size : sizeof text - 1;
    if (kept > 0) {
        memcpy(text, bytes, kept);
    }
    text[kept] = '\0';
    if (!lw_http_url_check(text, &at, why, sizeof why)) {
        lw_assert(at <= strlen(text) && why[0]);
    }
    if (lw_http_retry_after((struct lw_bytes){ bytes, size }, 1000, &ms)) {
        lw_assert(ms >= 0);
    }
    (void)lw_http_header_fault(text, text, size % 2 == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const char *text = (const char *)bytes;
    struct lw_http_answer answer;
    lw_http_answer_init(&answer, BODY_BYTES_MAX);
    read_answer(&answer, text, text + size);
    read_answer(&answer, text, text + size); /* nothing of the first may reach the second */
    lw_http_answer_deinit(&answer);
    if (size > 0) {
        write_request(text, size);
        read_texts(text, size);
    }
    return 0;
}
