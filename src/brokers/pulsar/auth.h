/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Credentials: which method, and what data goes into CONNECT and into the answer to an
 * AUTH_CHALLENGE. One provider serves all connections of a broker. Files and the environment are
 * read whenever credentials are asked for, so a rotated token is found; tokens of OAuth2 client
 * credentials are fetched over HTTP without blocking, by one request for all who wait, kept until
 * nine tenths of their life are over, and the kept one is used when a renewal fails before it
 * expired. No message holds a secret. The loop thread.
 */
#ifndef LW_BROKERS_PULSAR_AUTH_H
#define LW_BROKERS_PULSAR_AUTH_H

#include "base/host.h"

enum lw_pulsar_auth_kind {
    LW_PULSAR_AUTH_NONE,
    LW_PULSAR_AUTH_TOKEN,
    LW_PULSAR_AUTH_BASIC,
    LW_PULSAR_AUTH_TLS, /* the client's certificate is the credential */
    LW_PULSAR_AUTH_OAUTH2
};

/* What the options say; texts are copied. */
struct lw_pulsar_auth_options {
    const char
        *plugin; /* none, token, basic, tls, oauth2, or a client's class; NULL: by token */
    const char *params;           /* as the plugin's class takes them; NULL: none */
    const char *token;            /* short for plugin token */
    const char *trust_file;       /* for requests to the issuer; NULL: the system's */
    const char *certificate_file; /* of TLS; plugin tls needs them, params may give them too */
    const char *key_file;
};

struct lw_pulsar_credentials {
    const char *method;   /* "none", "token", "basic" (or as configured), "tls" */
    struct lw_bytes data; /* null: the method has none (answers carry it empty, yet present) */
};

/* `error` is NULL, or why there are none; then the credentials are not set. */
struct lw_pulsar_auth_request;
typedef void (*lw_pulsar_auth_fn)(struct lw_pulsar_auth_request *request,
                                  const struct lw_pulsar_credentials *credentials,
                                  const struct lw_error *error);

/* Owned by who asks; begins as zeros. */
struct lw_pulsar_auth_request {
    struct lw_list link;
    lw_pulsar_auth_fn fn;
    bool is_asked;
};

struct lw_pulsar_auth;

/* Checks what can be checked without reading anything: E0417 or E0415 (a method not served). */
enum lw_status
lw_pulsar_auth_create(struct lw_host *host, const struct lw_pulsar_auth_options *options,
                      struct lw_pulsar_auth **ret_auth, struct lw_error *ret_error);
/* Requests that wait are forgotten without an answer. NULL is fine. */
void lw_pulsar_auth_destroy(struct lw_pulsar_auth *auth);
enum lw_pulsar_auth_kind lw_pulsar_auth_kind(const struct lw_pulsar_auth *auth);
/* Certificate and key that plugin tls names in its params; NULL: those of the options. */
const char *lw_pulsar_auth_certificate_file(const struct lw_pulsar_auth *auth);
const char *lw_pulsar_auth_key_file(const struct lw_pulsar_auth *auth);

/*
 * Asks; request->fn is called exactly once, later, on the loop. `is_challenge`: the broker holds
 * what we gave for expired, so a kept token is not given again (one fetched within the last
 * second is: other connections were challenged too).
 */
void lw_pulsar_auth_ask(struct lw_pulsar_auth *auth, struct lw_pulsar_auth_request *request,
                        lw_pulsar_auth_fn fn, bool is_challenge);
/* No call after this; harmless when nothing was asked. */
void lw_pulsar_auth_cancel(struct lw_pulsar_auth_request *request);
/* Why the last attempt to get credentials failed; NULL when it succeeded. */
const struct lw_error *lw_pulsar_auth_error(const struct lw_pulsar_auth *auth);
/*
 * Fills E0502 for a broker that refused what was given last: `reason` is the broker's text, which
 * tells nothing; the help says when the token expired, if it says so itself.
 */
void lw_pulsar_auth_explain(struct lw_pulsar_auth *auth, const char *broker, const char *reason,
                            struct lw_error *ret_error);

#endif
