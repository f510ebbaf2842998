/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a TLS session failed, in a sentence: the library's codes are sorted into the few causes that
 * a person can mend. Details of a refused certificate are noted while it is being checked, since
 * they are gone afterwards.
 */
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "brokers/pulsar/tls_session.h"

#define NOT_TLS "E0509"
#define NOT_TRUSTED "E0510"
#define WRONG_HOST "E0511"
#define REFUSED "E0512"
#define STILL " Still trying; nothing is lost."

/* -- Notes about certificates ---------------------------------------------------------------------- */

static void
note_time(const ASN1_TIME *when, char *out, size_t size)
{
    char *text = NULL;
    BIO *bio = BIO_new(BIO_s_mem());
    long length = bio && ASN1_TIME_print(bio, when) == 1 ? BIO_get_mem_data(bio, &text) : 0;
    (void)snprintf(out, size, "%.*s", (int)length, length > 0 ? text : "");
    BIO_free(bio);
}

static void
note_subject(X509 *certificate, char *out, size_t size)
{
    char *text = NULL;
    BIO *bio = BIO_new(BIO_s_mem());
    bool is_printed = bio && X509_NAME_print_ex(bio, X509_get_subject_name(certificate), 0,
                                                XN_FLAG_RFC2253) >= 0;
    long length = is_printed ? BIO_get_mem_data(bio, &text) : 0;
    (void)snprintf(out, size, "%.*s", (int)length, length > 0 ? text : "");
    BIO_free(bio);
}

static void
append_name(char *out, size_t size, const char *name, size_t length)
{
    size_t used = strlen(out);
    (void)snprintf(out + used, size - used, "%s%.*s", used > 0 ? ", " : "", (int)length, name);
}

static void
append_ip(char *out, size_t size, const ASN1_OCTET_STRING *ip)
{
    char text[64] = "";
    const unsigned char *byte = ASN1_STRING_get0_data(ip);
    int length = ASN1_STRING_length(ip);
    if (length == 4) {
        (void)snprintf(text, sizeof text, "%d.%d.%d.%d", byte[0], byte[1], byte[2], byte[3]);
    } else if (length == 16) {
        for (int i = 0; i < length; i += 2) {
            size_t used = strlen(text);
            (void)snprintf(text + used, sizeof text - used, "%s%x", i > 0 ? ":" : "",
                           (unsigned int)byte[i] << 8 | byte[i + 1]);
        }
    }
    if (text[0]) {
        append_name(out, size, text, strlen(text));
    }
}

static void
note_names(X509 *certificate, char *out, size_t size)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    out[0] = '\0';
    for (int i = 0; names && i < sk_GENERAL_NAME_num(names); i++) {
        int type = 0;
        const void *value = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names, i), &type);
        if (type == GEN_DNS) {
            append_name(out, size, (const char *)ASN1_STRING_get0_data(value),
                        (size_t)ASN1_STRING_length(value));
        } else if (type == GEN_IPADD) {
            append_ip(out, size, value);
        }
    }
    GENERAL_NAMES_free(names);
}

/* A certificate is the peer's: whatever it says is shown as plain text. */
static void
make_printable(char *text)
{
    for (char *at = text; *at; at++) {
        if ((unsigned char)*at < 0x20 || (unsigned char)*at >= 0x7f || *at == '"') {
            *at = '?';
        }
    }
}

int
lw_pulsar_tls_on_verify(int is_fine, X509_STORE_CTX *store)
{
    SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct lw_pulsar_tls *tls = SSL_get_app_data(ssl);
    X509 *certificate = X509_STORE_CTX_get_current_cert(store);
    if (is_fine || !tls || tls->verify_error != X509_V_OK) {
        return is_fine;
    }
    tls->verify_error = X509_STORE_CTX_get_error(store);
    if (certificate) {
        note_subject(certificate, tls->subject, sizeof tls->subject);
        note_time(X509_get0_notBefore(certificate), tls->not_before, sizeof tls->not_before);
        note_time(X509_get0_notAfter(certificate), tls->not_after, sizeof tls->not_after);
        note_names(certificate, tls->names, sizeof tls->names);
        make_printable(tls->subject);
        make_printable(tls->names);
    }
    return 0;
}

/* -- Causes ------------------------------------------------------------------------------------------ */

static void
say(struct lw_pulsar_tls *tls, const char *code, const char *what)
{
    (void)lw_error_set(&tls->error, LW_STATUS_UNAVAILABLE, code,
                       "no TLS connection to \"%s\": %s", tls->host, what);
    tls->error.is_retriable = true;
}

static void
explain_host(struct lw_pulsar_tls *tls)
{
    char what[400];
    (void)snprintf(what, sizeof what, "the certificate is for %s",
                   tls->names[0] ? tls->names : "no host at all (it has no alternative names)");
    say(tls, WRONG_HOST, what);
    lw_error_help(&tls->error,
                  "use the name that stands in the certificate as the address (and as the "
                  "broker's advertised address), or, if you accept any, "
                  "tls.validate_hostname: false." STILL);
}

static void
explain_time(struct lw_pulsar_tls *tls)
{
    char what[400];
    bool is_expired = tls->verify_error == X509_V_ERR_CERT_HAS_EXPIRED;
    (void)snprintf(what, sizeof what, "the certificate \"%.200s\" %s %s", tls->subject,
                   is_expired ? "expired at" : "is not valid before",
                   is_expired ? tls->not_after : tls->not_before);
    say(tls, NOT_TRUSTED, what);
    lw_error_help(&tls->error, "%s" STILL,
                  is_expired ? "renew it at the broker; if it is valid, this computer's clock "
                               "is wrong."
                             : "this computer's clock is probably wrong.");
}

static void
explain_trust(struct lw_pulsar_tls *tls)
{
    char what[400];
    (void)snprintf(what, sizeof what, "the certificate \"%.200s\" is not trusted: %s",
                   tls->subject, X509_verify_cert_error_string(tls->verify_error));
    say(tls, NOT_TRUSTED, what);
    lw_error_help(&tls->error,
                  "tls.trust_file must hold the certificate of the authority that "
                  "signed it; without it the system's authorities are trusted." STILL);
}

static void
explain_certificate(struct lw_pulsar_tls *tls)
{
    switch (tls->verify_error) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        explain_host(tls);
        break;
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
        explain_time(tls);
        break;
    default:
        explain_trust(tls);
    }
}

static void
explain_not_tls(struct lw_pulsar_tls *tls, const char *what)
{
    say(tls, NOT_TLS, what);
    lw_error_help(&tls->error,
                  "this is what a listener without TLS does to a TLS client: with "
                  "pulsar+ssl:// the port is usually 6651, with pulsar:// 6650." STILL);
}

/* The peer's own words, by its alert. */
static bool
is_about_our_certificate(int reason)
{
    switch (reason) {
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_SSLV3_ALERT_NO_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
        return true;
    default:
        return false;
    }
}

static bool
is_not_tls(int reason)
{
    switch (reason) {
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_HTTP_REQUEST:
    case SSL_R_UNKNOWN_PROTOCOL:
    case SSL_R_PACKET_LENGTH_TOO_LONG:
    case SSL_R_ENCRYPTED_LENGTH_TOO_LONG:
    case SSL_R_RECORD_TOO_SMALL:
        return true;
    default:
        return false;
    }
}

static void
explain_refused(struct lw_pulsar_tls *tls, int reason, const char *text)
{
    char what[300];
    bool is_certificate = is_about_our_certificate(reason) ||
                          (reason == SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE &&
                           !tls->has_certificate);
    if (is_certificate) {
        (void)snprintf(what, sizeof what, "the broker %s (%.150s)",
                       tls->has_certificate ? "refused our certificate"
                                            : "wants a certificate of ours",
                       text);
    } else {
        (void)snprintf(what, sizeof what, "%.200s", text);
    }
    say(tls, REFUSED, what);
    lw_error_help(&tls->error, "%s" STILL,
                  !is_certificate ? "compare the protocols and ciphers that the broker allows; "
                                    "Laneway offers TLS 1.2 and 1.3."
                  : tls->has_certificate
                      ? "the broker must trust the authority that signed the certificate in "
                        "tls_certificate_file_path, and it must be valid now."
                      : "give tls_certificate_file_path and tls_private_key_file_path.");
}

void
lw_pulsar_tls_explain(struct lw_pulsar_tls *tls)
{
    unsigned long code = ERR_peek_error();
    int reason = ERR_GET_REASON(code);
    const char *text = ERR_reason_error_string(code);
    if (tls->verify_error != X509_V_OK) {
        explain_certificate(tls);
    } else if (!tls->was_open && is_not_tls(reason)) {
        explain_not_tls(tls, "what it answers is not TLS");
    } else {
        explain_refused(tls, reason, text ? text : "the protocol was broken");
    }
    ERR_clear_error();
}

void
lw_pulsar_tls_explain_end(struct lw_pulsar_tls *tls)
{
    if (tls->was_open) {
        say(tls, REFUSED, "the connection ended without a farewell in TLS");
        lw_error_help(&tls->error, "it was cut off on its way, or the broker died." STILL);
    } else if (!tls->has_received) {
        explain_not_tls(tls, "it closed the connection at the first TLS message");
    } else {
        explain_refused(tls, SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE,
                        "it closed the connection during the handshake");
    }
}

void
lw_pulsar_tls_explain_plaintext(const char *host, struct lw_error *ret_error)
{
    (void)lw_error_set(ret_error, LW_STATUS_UNAVAILABLE, NOT_TLS,
                       "no connection to \"%s\": the listener speaks TLS, and this connection "
                       "is plaintext",
                       host);
    lw_error_help(ret_error, "write pulsar+ssl:// (the port is usually 6651), or use the port "
                             "for plaintext, usually 6650." STILL);
    if (ret_error) {
        ret_error->is_retriable = true;
    }
}
