/* SPDX-License-Identifier: Apache-2.0 */
/* What the three files of TLS share: context, session, and how a failure is explained. */
#ifndef LW_BROKERS_PULSAR_TLS_SESSION_H
#define LW_BROKERS_PULSAR_TLS_SESSION_H

#include <openssl/ssl.h>

#include "base/error.h"
#include "brokers/pulsar/tls.h"

struct lw_pulsar_tls_context {
    SSL_CTX *ctx;
    bool validates_hostname;
    bool has_certificate;
};

struct lw_pulsar_tls {
    SSL *ssl;
    BIO *in;  /* owned by ssl */
    BIO *out; /* owned by ssl */
    enum lw_pulsar_tls_state state;
    bool has_received; /* anything at all */
    bool has_certificate;
    bool was_open;
    long verify_error;   /* X509_V_ERR_*, of the first certificate refused */
    char subject[256];   /* of that certificate */
    char not_before[32]; /* its times, in words */
    char not_after[32];  /* */
    char names[256];     /* hosts that the peer's own certificate is for */
    char host[256];      /* whom we wanted */
    struct lw_error error;
};

/* Notes what is needed to explain a refusal; OpenSSL calls it for every certificate. */
int lw_pulsar_tls_on_verify(int is_fine, X509_STORE_CTX *store);
/* Fills tls->error from OpenSSL's queue and what was noted. */
void lw_pulsar_tls_explain(struct lw_pulsar_tls *tls);
/* The same for a socket that ended without a farewell. */
void lw_pulsar_tls_explain_end(struct lw_pulsar_tls *tls);

#endif
