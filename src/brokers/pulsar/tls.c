/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A TLS session over two memory buffers of OpenSSL. Every call clears OpenSSL's queue of errors
 * first: it belongs to the thread, and a left-over entry would be taken for ours.
 */
#include "brokers/pulsar/tls.h"

#include <arpa/inet.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/text.h"
#include "brokers/pulsar/tls_session.h"

/* A few records each way: enough to keep a socket busy, and little when nobody reads. */
enum { INPUT_BYTES_MAX = 256 * 1024, OUTPUT_BYTES_MAX = 256 * 1024 };

static void
set_state(struct lw_pulsar_tls *tls, enum lw_pulsar_tls_state state)
{
    lw_assert(tls->state < LW_PULSAR_TLS_CLOSED);
    lw_assert(state > tls->state);
    tls->state = state;
    tls->was_open |= state == LW_PULSAR_TLS_OPEN;
}

static bool
is_ended(const struct lw_pulsar_tls *tls)
{
    return tls->state >= LW_PULSAR_TLS_CLOSED;
}

static void
fail(struct lw_pulsar_tls *tls)
{
    lw_pulsar_tls_explain(tls);
    set_state(tls, LW_PULSAR_TLS_FAILED);
}

/* What a call of OpenSSL that did nothing means for the session. */
static void
judge(struct lw_pulsar_tls *tls, int result)
{
    switch (SSL_get_error(tls->ssl, result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        break;
    case SSL_ERROR_ZERO_RETURN:
        set_state(tls, LW_PULSAR_TLS_CLOSED);
        break;
    default:
        fail(tls);
    }
}

static void
shake_hands(struct lw_pulsar_tls *tls)
{
    ERR_clear_error();
    int result = SSL_do_handshake(tls->ssl);
    if (result == 1) {
        set_state(tls, LW_PULSAR_TLS_OPEN);
    } else {
        judge(tls, result);
    }
}

static enum lw_status
end_status(const struct lw_pulsar_tls *tls)
{
    return tls->state == LW_PULSAR_TLS_FAILED ? tls->error.status : LW_STATUS_CLOSED;
}

/* -- Life -------------------------------------------------------------------------------------------- */

static bool
is_ip_literal(const char *host)
{
    struct in6_addr binary;
    return inet_pton(AF_INET, host, &binary) == 1 || inet_pton(AF_INET6, host, &binary) == 1;
}

static bool
set_peer(SSL *ssl, const char *host, bool is_checked)
{
    X509_VERIFY_PARAM *rules = SSL_get0_param(ssl);
    X509_VERIFY_PARAM_set_hostflags(rules, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    if (is_ip_literal(host)) {
        return !is_checked || X509_VERIFY_PARAM_set1_ip_asc(rules, host) == 1;
    }
    return SSL_set_tlsext_host_name(ssl, host) == 1 &&
           (!is_checked || SSL_set1_host(ssl, host) == 1);
}

/* A name in the DNS may end in a dot; in SNI and in certificates none does. */
static void
set_host(struct lw_pulsar_tls *tls, const char *host)
{
    lw_text_copy(tls->host, sizeof tls->host, host);
    size_t size = strlen(tls->host);
    if (size > 1 && tls->host[size - 1] == '.') {
        tls->host[size - 1] = '\0';
    }
}

static bool
open_session(struct lw_pulsar_tls *tls, struct lw_pulsar_tls_context *context)
{
    tls->ssl = SSL_new(context->ctx);
    tls->in = BIO_new(BIO_s_mem());
    tls->out = BIO_new(BIO_s_mem());
    if (!tls->ssl || !tls->in || !tls->out) {
        BIO_free(tls->in);
        BIO_free(tls->out);
        return false;
    }
    (void)BIO_set_mem_eof_return(tls->in, -1); /* empty means "later", not "ended" */
    (void)BIO_set_mem_eof_return(tls->out, -1);
    SSL_set_bio(tls->ssl, tls->in, tls->out);
    SSL_set_connect_state(tls->ssl);
    (void)SSL_set_app_data(tls->ssl, tls);
    return set_peer(tls->ssl, tls->host, context->validates_hostname);
}

enum lw_status
lw_pulsar_tls_create(struct lw_pulsar_tls_context *context, const char *host,
                     struct lw_pulsar_tls **ret_tls, struct lw_error *ret_error)
{
    struct lw_pulsar_tls *tls = lw_alloc(sizeof *tls);
    ERR_clear_error();
    if (tls) {
        set_host(tls, host);
    }
    if (!tls || !open_session(tls, context)) {
        lw_pulsar_tls_destroy(tls);
        ERR_clear_error();
        return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "no memory for TLS");
    }
    tls->has_certificate = context->has_certificate;
    tls->verify_error = X509_V_OK;
    shake_hands(tls);
    *ret_tls = tls;
    return LW_STATUS_OK;
}

void
lw_pulsar_tls_destroy(struct lw_pulsar_tls *tls)
{
    if (tls) {
        SSL_free(tls->ssl);
        lw_free(tls);
    }
}

/* -- The side of the socket --------------------------------------------------------------------------- */

size_t
lw_pulsar_tls_feed(struct lw_pulsar_tls *tls, const void *data, size_t size)
{
    if (is_ended(tls) || size == 0) {
        return size;
    }
    size_t waiting = BIO_ctrl_pending(tls->in);
    size_t room = waiting < INPUT_BYTES_MAX ? INPUT_BYTES_MAX - waiting : 0;
    size_t taken = size < room ? size : room;
    if (taken == 0) {
        return 0;
    }
    int written = BIO_write(tls->in, data, (int)taken);
    tls->has_received = true;
    if (tls->state == LW_PULSAR_TLS_HANDSHAKING) {
        shake_hands(tls);
    }
    return written > 0 ? (size_t)written : 0;
}

void
lw_pulsar_tls_end(struct lw_pulsar_tls *tls)
{
    if (!is_ended(tls)) {
        lw_pulsar_tls_explain_end(tls);
        set_state(tls, LW_PULSAR_TLS_FAILED);
    }
}

size_t
lw_pulsar_tls_take(struct lw_pulsar_tls *tls, void *out, size_t size)
{
    int wanted = size < INT_MAX ? (int)size : INT_MAX;
    int taken = wanted > 0 ? BIO_read(tls->out, out, wanted) : 0;
    return taken > 0 ? (size_t)taken : 0;
}

bool
lw_pulsar_tls_has_output(const struct lw_pulsar_tls *tls)
{
    return BIO_ctrl_pending(tls->out) > 0;
}

/* -- The side of the protocol ---------------------------------------------------------------------------- */

enum lw_status
lw_pulsar_tls_write(struct lw_pulsar_tls *tls, const void *data, size_t size,
                    size_t *ret_written)
{
    if (is_ended(tls)) {
        return end_status(tls);
    }
    if (tls->state == LW_PULSAR_TLS_HANDSHAKING || size == 0 ||
        BIO_ctrl_pending(tls->out) >= OUTPUT_BYTES_MAX) {
        return LW_STATUS_AGAIN;
    }
    size_t written = 0;
    ERR_clear_error();
    int result = SSL_write_ex(tls->ssl, data, size, &written);
    if (result == 1) {
        *ret_written = written;
        return LW_STATUS_OK;
    }
    judge(tls, result);
    return is_ended(tls) ? end_status(tls) : LW_STATUS_AGAIN;
}

enum lw_status
lw_pulsar_tls_read(struct lw_pulsar_tls *tls, void *out, size_t size, size_t *ret_read)
{
    if (is_ended(tls)) {
        return end_status(tls);
    }
    if (tls->state == LW_PULSAR_TLS_HANDSHAKING || size == 0) {
        return LW_STATUS_AGAIN;
    }
    size_t count = 0;
    ERR_clear_error();
    int result = SSL_read_ex(tls->ssl, out, size, &count);
    if (result == 1) {
        *ret_read = count;
        return LW_STATUS_OK;
    }
    judge(tls, result);
    return is_ended(tls) ? end_status(tls) : LW_STATUS_AGAIN;
}

void
lw_pulsar_tls_close(struct lw_pulsar_tls *tls)
{
    if (is_ended(tls)) {
        return;
    }
    ERR_clear_error();
    if (tls->state == LW_PULSAR_TLS_OPEN) {
        (void)SSL_shutdown(tls->ssl);
        ERR_clear_error();
    }
    set_state(tls, LW_PULSAR_TLS_CLOSED);
}

enum lw_pulsar_tls_state
lw_pulsar_tls_state(const struct lw_pulsar_tls *tls)
{
    return tls->state;
}

const struct lw_error *
lw_pulsar_tls_error(const struct lw_pulsar_tls *tls)
{
    return &tls->error;
}

const char *
lw_pulsar_tls_version(const struct lw_pulsar_tls *tls)
{
    return SSL_get_version(tls->ssl);
}

bool
lw_pulsar_tls_is_record(const void *data, size_t size)
{
    const unsigned char *byte = data;
    /* An alert or a handshake of TLS 1.x. A frame of Pulsar would be 336 MB long. */
    return size >= 3 && (byte[0] == 0x15 || byte[0] == 0x16) && byte[1] == 0x03 &&
           byte[2] <= 0x04;
}
