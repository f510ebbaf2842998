/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request, from its message to its verdict. The body is read where the message lies, so it
 * is not copied; headers are written into memory that is kept; the easy handle is used again.
 * libcurl itself allocates for each request, which is its own affair.
 *
 * Who is charged: what was answered in HTTP is judged by answer.c, and 429 and 503 are nobody's
 * fault until max_hold. No connection, no TLS, no way through a proxy: nobody, and the circuit
 * opens. Something that is no HTTP, or an end before an answer: the message, if this service ever
 * answered well, since otherwise the address is wrong. Its time is over: the message, once it was
 * sent.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "core/partition.h"
#include "engines/http/http.h"

#define HOLD_MIN_MS 1000
#define HOLD_MAX_MS 30000
#define BUSY_SAID_EVERY (60000 * LW_MS)
#define BATCH_BYTES_KEPT ((size_t)64 * 1024)
#define MEMORY_BYTES                                                                           \
    ((size_t)256 * 1024) /* what libcurl asks for at most for one thing, about */

/* -- The easy handle ------------------------------------------------------------------------------- */

static size_t
on_header(char *data, size_t size, size_t count, void *user)
{
    struct lw_http_transfer *transfer = user;
    struct lw_host *host = transfer->http->engine.host;
    struct lw_bytes line = { data, size * count };
    bool may_be_date = line.size > 0 && (*data == 'r' || *data == 'R'); /* Retry-After */
    int64_t wall_ms = may_be_date ? host->ops->wall_ms(host) : 0;
    bool is_wanted = lw_http_answer_header(&transfer->answer, line, wall_ms);
    return is_wanted ? line.size : 0;
}

static size_t
on_body(char *data, size_t size, size_t count, void *user)
{
    struct lw_http_transfer *transfer = user;
    struct lw_bytes piece = { data, size * count };
    return lw_http_answer_body(&transfer->answer, piece) ? piece.size : 0;
}

static bool
set_text(struct lw_http_transfer *transfer, int option, const char *text)
{
    return !text || transfer->http->curl.easy_setopt(transfer->easy, option, text) == 0;
}

static bool
is_tls(const struct lw_http *http)
{
    return strncasecmp(http->options.url, "https:", 6) == 0;
}

/*
 * Without TLS never 2: libcurl 7.88 cannot use such a connection a second time.
 */
static long
version_of(const struct lw_http *http)
{
    bool may_be_2 = http->options.version == LW_HTTP_VERSION_AUTO && is_tls(http);
    return may_be_2 ? LW_CURL_HTTP_2TLS : LW_CURL_HTTP_1_1;
}

static bool
set_trust(struct lw_http_transfer *transfer)
{
    const struct lw_http_options *options = &transfer->http->options;
    int (*set)(void *, int, ...) = transfer->http->curl.easy_setopt;
    bool checks_host = options->validates_hostname && !options->allows_insecure;
    return set_text(transfer, LW_CURLOPT_CAINFO, options->trust_file) &&
           set_text(transfer, LW_CURLOPT_SSLCERT, options->certificate_file) &&
           set_text(transfer, LW_CURLOPT_SSLKEY, options->key_file) &&
           (!options->allows_insecure ||
            set(transfer->easy, LW_CURLOPT_SSL_VERIFYPEER, 0L) == 0) &&
           (checks_host || set(transfer->easy, LW_CURLOPT_SSL_VERIFYHOST, 0L) == 0);
}

static bool
set_callbacks(struct lw_http_transfer *transfer)
{
    int (*set)(void *, int, ...) = transfer->http->curl.easy_setopt;
    return set(transfer->easy, LW_CURLOPT_PRIVATE, transfer) == 0 &&
           set(transfer->easy, LW_CURLOPT_ERRORBUFFER, transfer->error) == 0 &&
           set(transfer->easy, LW_CURLOPT_HEADERFUNCTION, on_header) == 0 &&
           set(transfer->easy, LW_CURLOPT_HEADERDATA, transfer) == 0 &&
           set(transfer->easy, LW_CURLOPT_WRITEFUNCTION, on_body) == 0 &&
           set(transfer->easy, LW_CURLOPT_WRITEDATA, transfer) == 0;
}

static bool
set_up(struct lw_http_transfer *transfer)
{
    struct lw_http *http = transfer->http;
    const struct lw_http_options *options = &http->options;
    int (*set)(void *, int, ...) = http->curl.easy_setopt;
    long version = version_of(http);
    /* Without it, ending a request would wait for a name that is still looked up. */
    (void)set(transfer->easy, LW_CURLOPT_QUICK_EXIT, 1L);              /* since 7.87 */
    (void)set(transfer->easy, LW_CURLOPT_PROTOCOLS_STR, "http,https"); /* since 7.85 */
    (void)set(transfer->easy, LW_CURLOPT_PIPEWAIT, version == LW_CURL_HTTP_2TLS ? 1L : 0L);
    /* What a proxy says of the way to the service is not the service's answer. */
    (void)set(transfer->easy, LW_CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L); /* since 7.54 */
    return set(transfer->easy, LW_CURLOPT_URL, options->url) == 0 &&
           set(transfer->easy, LW_CURLOPT_NOSIGNAL, 1L) == 0 &&
           set(transfer->easy, LW_CURLOPT_PROXY, options->proxy ? options->proxy : "") == 0 &&
           set(transfer->easy, LW_CURLOPT_NOPROXY, "") == 0 && /* nor the environment's */
           set(transfer->easy, LW_CURLOPT_HTTP_VERSION, version) == 0 &&
           set_callbacks(transfer) && set_trust(transfer) &&
           lw_http_multi_own_sockets(http, transfer->easy);
}

static void
drop_easy(struct lw_http_transfer *transfer)
{
    if (transfer->easy) {
        transfer->http->curl.easy_cleanup(transfer->easy);
        transfer->easy = NULL;
    }
}

static bool
make_easy(struct lw_http_transfer *transfer)
{
    if (transfer->easy) {
        return true;
    }
    transfer->easy = transfer->http->curl.easy_init();
    if (transfer->easy && set_up(transfer)) {
        return true;
    }
    drop_easy(transfer);
    return false;
}

/* -- Results --------------------------------------------------------------------------------------- */

static void
report(struct lw_http_transfer *transfer, enum lw_verdict verdict)
{
    struct lw_http *http = transfer->http;
    struct lw_delivery *delivery = transfer->delivery;
    transfer->delivery = NULL;
    delivery->engine_data = NULL;
    delivery->verdict = (uint8_t)verdict;
    lw_list_remove(&transfer->link);
    lw_list_push_front(&http->idle, &transfer->link);
    http->running_count--;
    http->trial = http->trial == transfer ? NULL : http->trial;
    http->has_done = true;
    lw_engine_done(&http->engine, delivery);
}

static void
say(struct lw_http_transfer *transfer, const char *reason)
{
    struct lw_outcome *outcome = transfer->delivery->outcome;
    lw_outcome_clear(outcome);
    lw_outcome_set_reason(outcome, reason, strlen(reason));
}

/* -- Beginning ------------------------------------------------------------------------------------- */

/* NULL: POST, which a body is by itself. */
static const char *
method_of(const struct lw_http *http)
{
    switch (http->options.method) {
    case LW_HTTP_METHOD_POST:
        return NULL;
    case LW_HTTP_METHOD_PUT:
        return "PUT";
    case LW_HTTP_METHOD_PATCH:
        return "PATCH";
    }
    return NULL;
}

static long
version_for(const struct lw_http_transfer *transfer)
{
    const struct lw_http_request *request = &transfer->request;
    bool is_large = request->head_bytes + request->count * LW_HTTP_LINE_BYTES_2 >
                    LW_HTTP_HEAD_BYTES_MAX_2;
    return is_large ? LW_CURL_HTTP_1_1 : version_of(transfer->http);
}

/* Where the message lies, or the batch as it was written. */
static struct lw_bytes
body_of(const struct lw_http_transfer *transfer, const struct lw_delivery *delivery)
{
    return delivery->is_batch ? (struct lw_bytes){ transfer->batch.data, transfer->batch.size }
                              : delivery->message.value;
}

static bool
write_batch(struct lw_http_transfer *transfer, const struct lw_delivery *first)
{
    struct lw_http *http = transfer->http;
    if (transfer->batch.capacity > BATCH_BYTES_KEPT || transfer->batch.is_failed) {
        lw_text_deinit(&transfer->batch);
        lw_text_init(&transfer->batch);
    }
    lw_text_clear(&transfer->batch);
    return http->write(&transfer->batch, first, http->timeout_ms > 0 ? http->timeout_ms : -1);
}

static bool
set_message(struct lw_http_transfer *transfer, const struct lw_delivery *delivery,
            struct lw_curl_line *lines)
{
    struct lw_http *http = transfer->http;
    int (*set)(void *, int, ...) = http->curl.easy_setopt;
    struct lw_bytes value = body_of(transfer, delivery);
    const char *method = method_of(http);
    return set(transfer->easy, LW_CURLOPT_POSTFIELDSIZE_LARGE, (int64_t)value.size) == 0 &&
           set(transfer->easy, LW_CURLOPT_POSTFIELDS, value.size > 0 ? value.data : "") == 0 &&
           (!method || set(transfer->easy, LW_CURLOPT_CUSTOMREQUEST, method) == 0) &&
           set(transfer->easy, LW_CURLOPT_HTTP_VERSION, version_for(transfer)) == 0 &&
           set(transfer->easy, LW_CURLOPT_HTTPHEADER, lines) == 0;
}

static void
arm(struct lw_http_transfer *transfer)
{
    struct lw_host *host = transfer->http->engine.host;
    uint64_t connect_by = host->now +
                          (uint64_t)transfer->http->options.connect_timeout_ms * LW_MS;
    lw_timers_arm(&host->timers, &transfer->timer,
                  connect_by < transfer->deadline ? connect_by : transfer->deadline);
}

static bool
add(struct lw_http_transfer *transfer)
{
    struct lw_http *http = transfer->http;
    transfer->error[0] = '\0';
    transfer->is_starved = false;
    lw_http_answer_begin(&transfer->answer);
    if (http->curl.multi_add_handle(http->multi, transfer->easy) != 0) {
        return false;
    }
    arm(transfer);
    return true;
}

static void
look_at_token(struct lw_http *http, bool at_once)
{
    struct lw_error error;
    if (lw_http_token_look(&http->token, http->engine.host->now, at_once, &error)) {
        lw_host_log(http->engine.host, LW_LOG_INFO, "handler.token",
                    "the token changed and was read again", "handler=%s", http->name);
    } else if (error.status != LW_STATUS_OK) {
        lw_host_log(http->engine.host, LW_LOG_ERROR, "handler.token_bad", error.message,
                    "code=%s handler=%s help=%s", error.code, http->name, error.help);
    }
    http->fixed.authorization = lw_http_token_line(&http->token);
}

static void
take(struct lw_http_transfer *transfer, struct lw_delivery *delivery)
{
    struct lw_http *http = transfer->http;
    transfer->delivery = delivery;
    delivery->deadline = transfer->deadline;
    delivery->engine_data = transfer;
    lw_list_remove(&transfer->link);
    lw_list_push(&http->running, &transfer->link);
    http->running_count++;
    http->trial = http->circuit == LW_HTTP_HALF_OPEN ? transfer : http->trial;
}

/* No service could be told of it: that is the message's own fault, and no retry mends it. */
static void
refuse(struct lw_http_transfer *transfer)
{
    char reason[160];
    (void)snprintf(reason, sizeof reason,
                   "key and headers make %zu KiB of headers of a request, and 768 KiB is the "
                   "most",
                   transfer->request.head_bytes / 1024);
    say(transfer, reason);
    report(transfer, LW_DEAD);
}

bool
lw_http_transfer_begin(struct lw_http_transfer *transfer, struct lw_delivery *delivery)
{
    struct lw_http *http = transfer->http;
    uint64_t now = http->engine.host->now;
    bool has_end = http->timeout_ms > 0;
    if (!make_easy(transfer) || !lw_delivery_outcome(delivery) ||
        (delivery->is_batch && !write_batch(transfer, delivery))) {
        return false;
    }
    look_at_token(http, false);
    transfer->token_serial = http->token.serial;
    struct lw_curl_line *lines = lw_http_request_write(
        &transfer->request, delivery, &http->fixed, has_end ? http->timeout_ms : -1);
    transfer->deadline = has_end ? now + (uint64_t)http->timeout_ms * LW_MS : LW_NEVER;
    if (lines && transfer->request.head_bytes > LW_HTTP_HEAD_BYTES_MAX) {
        take(transfer, delivery);
        refuse(transfer);
        return true;
    }
    if (!lines || !set_message(transfer, delivery, lines) || !add(transfer)) {
        return false;
    }
    take(transfer, delivery);
    return true;
}

bool
lw_http_transfer_begin_probe(struct lw_http_transfer *transfer)
{
    struct lw_http *http = transfer->http;
    transfer->deadline = LW_NEVER;
    return make_easy(transfer) &&
           http->curl.easy_setopt(transfer->easy, LW_CURLOPT_CONNECT_ONLY, 1L) == 0 &&
           add(transfer);
}

/* -- Ending ---------------------------------------------------------------------------------------- */

/* Takes it away from libcurl, whatever it was doing. */
static void
leave(struct lw_http_transfer *transfer)
{
    struct lw_http *http = transfer->http;
    (void)http->curl.multi_remove_handle(http->multi, transfer->easy);
    lw_timers_disarm(&http->engine.host->timers, &transfer->timer);
    transfer->is_starved = false;
}

static void
give_back(struct lw_http_transfer *transfer, const char *reason)
{
    say(transfer, reason);
    transfer->delivery->outcome->is_uncharged = true;
    report(transfer, LW_ERROR);
}

static void
charge(struct lw_http_transfer *transfer, const char *reason)
{
    say(transfer, reason);
    report(transfer, LW_ERROR);
}

void
lw_http_transfer_abort(struct lw_http_transfer *transfer, const char *reason)
{
    leave(transfer);
    give_back(transfer, reason);
    lw_http_update_room(transfer->http);
}

/* -- Busy services --------------------------------------------------------------------------------- */

/* Since when this very message is put off. */
static uint64_t
held_since(const struct lw_delivery *delivery, uint64_t now)
{
    struct lw_hold *hold = &delivery->outcome->hold;
    bool is_same = hold->since > 0 && hold->generation == delivery->partition->generation &&
                   hold->position == delivery->message.position;
    if (!is_same) {
        *hold = (struct lw_hold){ .generation = delivery->partition->generation,
                                  .position = delivery->message.position,
                                  .since = now > 0 ? now : 1 };
    }
    return hold->since;
}

/* It was put off for as long as may be. */
static bool
is_held_long(const struct lw_http_transfer *transfer)
{
    uint64_t now = transfer->http->engine.host->now;
    uint64_t held_ms = (now - held_since(transfer->delivery, now)) / LW_MS;
    return held_ms >= (uint64_t)transfer->http->options.max_hold_ms;
}

static int64_t
busy_delay_ms(const struct lw_http_transfer *transfer, uint64_t held_ms)
{
    const struct lw_http_answer *answer = &transfer->answer;
    int64_t most_ms = transfer->http->options.max_hold_ms;
    int64_t delay_ms = held_ms < HOLD_MIN_MS   ? HOLD_MIN_MS
                       : held_ms > HOLD_MAX_MS ? HOLD_MAX_MS
                                               : (int64_t)held_ms;
    /* "At once" from a service that is busy would be asked again without a breath. */
    if (answer->delay_ms > 0) {
        delay_ms = answer->delay_ms;
    } else if (answer->has_retry_after && answer->retry_after_ms > 0) {
        delay_ms = answer->retry_after_ms;
    }
    return delay_ms < most_ms ? delay_ms : most_ms;
}

/* Nothing is down and nobody is charged, so nothing else would tell why messages wait. */
static void
say_busy(struct lw_http *http, long status)
{
    struct lw_host *host = http->engine.host;
    if (http->busy_said_at > 0 && host->now - http->busy_said_at < BUSY_SAID_EVERY) {
        return;
    }
    http->busy_said_at = host->now > 0 ? host->now : 1;
    lw_host_log(host, LW_LOG_WARN, "handler.busy",
                "the service says it is busy: messages are put off, and not charged",
                "handler=%s status=%ld", http->name, status);
}

/* Those behind the first of a batch are put off as it is, together or later alone. */
static void
hold_members(const struct lw_delivery *first, uint64_t now)
{
    for (struct lw_delivery *member = first->task_next; member; member = member->task_next) {
        if (lw_delivery_outcome(member)) {
            (void)held_since(member, now);
        }
    }
}

/* A batch is put together anew each time, so the whole handler waits. */
static void
hold_batch(struct lw_http_transfer *transfer, uint64_t now)
{
    const struct lw_delivery *first = transfer->delivery;
    hold_members(first, now);
    lw_http_circuit_pause(transfer->http, first->outcome->delay_ms, "it is busy");
}

/* Puts the message off without a charge; false when it was put off for long enough. */
static bool
hold(struct lw_http_transfer *transfer)
{
    struct lw_http *http = transfer->http;
    if (is_held_long(transfer)) {
        return false;
    }
    uint64_t now = http->engine.host->now;
    uint64_t held_ms = (now - held_since(transfer->delivery, now)) / LW_MS;
    char reason[64];
    (void)snprintf(reason, sizeof reason, "the service answered %ld: it is busy",
                   transfer->answer.status);
    say(transfer, transfer->answer.reason[0] ? transfer->answer.reason : reason);
    transfer->delivery->outcome->delay_ms = busy_delay_ms(transfer, held_ms);
    say_busy(http, transfer->answer.status);
    if (transfer->delivery->is_batch) {
        hold_batch(transfer, now);
    }
    transfer->delivery->outcome->is_uncharged = true;
    report(transfer, LW_RETRY);
    return true;
}

static void
slow_down(struct lw_http *http, const struct lw_http_answer *answer)
{
    bool is_asked = (answer->status == 429 || answer->status == 503) && answer->has_retry_after;
    if (is_asked && answer->retry_after_ms > 0) {
        lw_http_circuit_pause(http, answer->retry_after_ms, "Retry-After");
    }
}

/* -- Judging --------------------------------------------------------------------------------------- */

/* The token was changed meanwhile: then the message did nothing wrong. */
static bool
was_token_old(const struct lw_http_transfer *transfer)
{
    struct lw_http *http = transfer->http;
    if (transfer->answer.status != 401 || !http->token.source) {
        return false;
    }
    look_at_token(http, true);
    return http->token.serial != transfer->token_serial;
}

static void
on_answered(struct lw_http_transfer *transfer)
{
    struct lw_http *http = transfer->http;
    enum lw_verdict verdict = LW_ERROR;
    lw_http_circuit_on_answer(http);
    slow_down(http, &transfer->answer);
    if (was_token_old(transfer)) {
        give_back(transfer, "the service refused a token that has been replaced");
        return;
    }
    if (lw_http_answer_is_busy(&transfer->answer) && hold(transfer)) {
        return;
    }
    if (lw_http_answer_judge(&transfer->answer, http->read, transfer->delivery, &verdict)) {
        report(transfer, verdict);
    } else {
        give_back(transfer, "no memory for the service's answer");
        lw_http_wait_for_memory(http);
    }
}

enum trouble {
    TROUBLE_NONE,
    TROUBLE_CONNECTION,
    TROUBLE_GARBAGE,
    TROUBLE_BROKEN,
    TROUBLE_TOO_LARGE,
    TROUBLE_MEMORY
};

/* TLS 1.3 tells a client of a refused certificate only after its own side is through. */
static bool
is_alert(const struct lw_http_transfer *transfer)
{
    return transfer->answer.status == 0 && strstr(transfer->error, "alert") != NULL;
}

/*
 * libcurl says "out of memory" also of what is larger than it takes, such as a header of 100 KiB
 * in an answer. That would be so again with every try, so it is told apart.
 */
static enum trouble
trouble_of_memory(const struct lw_http_transfer *transfer)
{
    void *memory = lw_alloc(MEMORY_BYTES);
    bool is_short = !memory || transfer->is_starved || transfer->answer.is_starved;
    lw_free(memory);
    return is_short ? TROUBLE_MEMORY : TROUBLE_TOO_LARGE;
}

/* It wants credentials: that says nothing of the message. */
static bool
is_refused_by_proxy(const struct lw_http_transfer *transfer)
{
    return transfer->answer.status == 407 && transfer->http->options.proxy != NULL;
}

/* Its request is, or was, on its way. */
static bool
is_sent(const struct lw_http_transfer *transfer)
{
    int64_t sent_us = 0;
    (void)transfer->http->curl.easy_getinfo(transfer->easy, LW_CURLINFO_PRETRANSFER_TIME_T,
                                            &sent_us);
    return sent_us > 0 || transfer->answer.status != 0;
}

static enum trouble
trouble_of_stream(const struct lw_http_transfer *transfer)
{
    if (is_alert(transfer) || !is_sent(transfer)) {
        return TROUBLE_CONNECTION;
    }
    return transfer->answer.status == 0 ? TROUBLE_GARBAGE : TROUBLE_BROKEN;
}

static enum trouble
trouble_of(const struct lw_http_transfer *transfer, int result)
{
    switch (result) {
    case LW_CURLE_OK:
        return is_refused_by_proxy(transfer) ? TROUBLE_CONNECTION : TROUBLE_NONE;
    case LW_CURLE_COULDNT_RESOLVE_PROXY:
    case LW_CURLE_COULDNT_RESOLVE_HOST:
    case LW_CURLE_COULDNT_CONNECT:
    case LW_CURLE_OPERATION_TIMEDOUT: /* ours are the wheel's: this is libcurl's connecting */
    case LW_CURLE_SSL_CONNECT_ERROR:
    case LW_CURLE_INTERFACE_FAILED:
    case LW_CURLE_SSL_ENGINE_NOTFOUND:
    case LW_CURLE_SSL_ENGINE_SETFAILED:
    case LW_CURLE_SSL_CERTPROBLEM:
    case LW_CURLE_SSL_CIPHER:
    case LW_CURLE_PEER_FAILED_VERIFICATION:
    case LW_CURLE_SSL_ENGINE_INITFAILED:
    case LW_CURLE_SSL_CACERT_BADFILE:
    case LW_CURLE_SSL_CRL_BADFILE:
    case LW_CURLE_SSL_ISSUER_ERROR:
    case LW_CURLE_SSL_PINNEDPUBKEYNOTMATCH:
    case LW_CURLE_SSL_INVALIDCERTSTATUS:
    case LW_CURLE_PROXY:
    case LW_CURLE_SSL_CLIENTCERT:
        return TROUBLE_CONNECTION;
    case LW_CURLE_WRITE_ERROR: /* we ended it */
        return transfer->answer.is_starved     ? TROUBLE_MEMORY
               : is_refused_by_proxy(transfer) ? TROUBLE_CONNECTION
                                               : TROUBLE_NONE;
    case LW_CURLE_OUT_OF_MEMORY:
        return trouble_of_memory(transfer);
    case LW_CURLE_TOO_LARGE:
        return TROUBLE_TOO_LARGE;
    case LW_CURLE_PARTIAL_FILE:
        return TROUBLE_BROKEN;
    case LW_CURLE_GOT_NOTHING:
    case LW_CURLE_SEND_ERROR:
    case LW_CURLE_RECV_ERROR:
    case LW_CURLE_HTTP2:
    case LW_CURLE_HTTP2_STREAM:
        return trouble_of_stream(transfer);
    default:
        return is_sent(transfer) ? TROUBLE_GARBAGE : TROUBLE_CONNECTION;
    }
}

static const char *
words_of(const struct lw_http_transfer *transfer, int result)
{
    int failure = transfer->http->socket_failure;
    if (is_refused_by_proxy(transfer)) {
        return "the proxy wants credentials (407)";
    }
    if (result == LW_CURLE_COULDNT_CONNECT && failure != 0) {
        return strerrordesc_np(failure); /* "Too many open files": libcurl would not tell */
    }
    return transfer->error[0] ? transfer->error : transfer->http->curl.easy_strerror(result);
}

static void
fail(struct lw_http_transfer *transfer, const char *code, const char *why)
{
    struct lw_http *http = transfer->http;
    give_back(transfer, "the service cannot be used now");
    lw_http_circuit_on_failure(http, code, why);
}

/* It said nothing at all, as one does that died of the message. */
static bool
is_silent(int result)
{
    return result == LW_CURLE_GOT_NOTHING || result == LW_CURLE_SEND_ERROR ||
           result == LW_CURLE_RECV_ERROR;
}

/*
 * A service that never answered is probably another one, but one that is ended by this very message
 * would be started and ended by it for ever.
 */
static void
on_garbage(struct lw_http_transfer *transfer, int result, const char *words)
{
    const struct lw_http *http = transfer->http;
    char reason[LW_REASON_MAX];
    bool is_charged = http->has_answered || (is_silent(result) && is_held_long(transfer));
    (void)snprintf(reason, sizeof reason, "the service gave no usable answer: %s", words);
    if (is_charged) {
        charge(transfer, reason);
    } else {
        fail(transfer, "E0621", words);
    }
}

static void
on_broken(struct lw_http_transfer *transfer, const char *words)
{
    char reason[LW_REASON_MAX];
    lw_http_circuit_on_answer(transfer->http);
    (void)snprintf(reason, sizeof reason,
                   "the service answered %ld and ended the connection in the middle: %s",
                   transfer->answer.status, words);
    charge(transfer, reason);
}

void
lw_http_transfer_end_probe(struct lw_http_transfer *transfer)
{
    if (transfer->easy) {
        leave(transfer);
        drop_easy(transfer); /* its connection could not be used again */
    }
}

static void
on_probe_end(struct lw_http *http, enum trouble trouble, const char *words)
{
    drop_easy(&http->probe);
    if (http->circuit != LW_HTTP_PROBING) {
        return;
    }
    if (trouble == TROUBLE_NONE) {
        lw_http_circuit_on_connected(http);
    } else {
        lw_http_circuit_on_failure(http, "E0620", words);
    }
}

void
lw_http_transfer_on_end(struct lw_http_transfer *transfer, int result)
{
    struct lw_http *http = transfer->http;
    char words[LW_HTTP_ERROR_BYTES];
    enum trouble trouble = trouble_of(transfer, result);
    lw_text_copy(words, sizeof words, words_of(transfer, result));
    leave(transfer);
    if (transfer == &http->probe) {
        on_probe_end(http, trouble, words);
        return;
    }
    switch (trouble) {
    case TROUBLE_NONE:
        on_answered(transfer);
        break;
    case TROUBLE_CONNECTION:
        fail(transfer, "E0620", words);
        break;
    case TROUBLE_GARBAGE:
        on_garbage(transfer, result, words);
        break;
    case TROUBLE_BROKEN:
        on_broken(transfer, words);
        break;
    case TROUBLE_TOO_LARGE:
        if (transfer->answer.status != 0) {
            lw_http_circuit_on_answer(http);
        }
        charge(transfer, "a header of its request, or of the service's answer, is larger than "
                         "libcurl takes (about 100 KiB)");
        break;
    case TROUBLE_MEMORY:
        give_back(transfer, "no memory for its request");
        lw_http_wait_for_memory(http);
        break;
    }
    lw_http_update_room(http);
}

/* -- Time ------------------------------------------------------------------------------------------ */

static void
on_timer(struct lw_timer *timer, uint64_t now)
{
    struct lw_http_transfer *transfer = LW_CONTAINER(timer, struct lw_http_transfer, timer);
    struct lw_http *http = transfer->http;
    bool was_connected = transfer != &http->probe && is_sent(transfer);
    char duration[32];
    char reason[96];
    if (was_connected && now < transfer->deadline) {
        lw_timers_arm(&http->engine.host->timers, timer, transfer->deadline);
        return;
    }
    int64_t connect_ms = http->options.connect_timeout_ms;
    bool is_shorter = http->timeout_ms > 0 && http->timeout_ms < connect_ms;
    lw_text_from_duration_ms(was_connected || is_shorter ? http->timeout_ms : connect_ms,
                             duration, sizeof duration);
    if (!was_connected) {
        (void)snprintf(reason, sizeof reason, "no connection within %s", duration);
        lw_text_copy(transfer->error, sizeof transfer->error, reason);
        lw_http_transfer_on_end(transfer, LW_CURLE_OPERATION_TIMEDOUT);
        return;
    }
    (void)snprintf(reason, sizeof reason, "timed out after %s", duration);
    leave(transfer);
    charge(transfer, reason);
    lw_http_update_room(http);
}

/* -- Life ------------------------------------------------------------------------------------------ */

void
lw_http_transfer_init(struct lw_http_transfer *transfer, struct lw_http *http)
{
    *transfer = (struct lw_http_transfer){ .http = http };
    lw_list_init(&transfer->link);
    lw_timer_init(&transfer->timer, on_timer);
    lw_http_request_init(&transfer->request);
    lw_text_init(&transfer->batch);
    lw_http_answer_init(&transfer->answer, http->options.answer_bytes_max);
}

void
lw_http_transfer_deinit(struct lw_http_transfer *transfer)
{
    struct lw_http *http = transfer->http;
    if (transfer->easy) {
        (void)http->curl.multi_remove_handle(http->multi, transfer->easy);
    }
    drop_easy(transfer);
    lw_timers_disarm(&http->engine.host->timers, &transfer->timer);
    lw_http_request_deinit(&transfer->request);
    lw_text_deinit(&transfer->batch);
    lw_http_answer_deinit(&transfer->answer);
}
