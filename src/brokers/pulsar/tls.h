/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS without sockets: bytes received go in, bytes to send come out, plaintext on the other side.
 * A context holds certificates and keys and is shared by connections; files are read when it is
 * made, so it is made anew where files may have been replaced (at a reconnect, off the hot path).
 * A session is one connection and is never used again:
 *
 *   HANDSHAKING -> OPEN     the peer is who it should be
 *   HANDSHAKING, OPEN -> CLOSED    the peer said so in TLS, or we did
 *   HANDSHAKING, OPEN -> FAILED    lw_pulsar_tls_error has the reason in a sentence
 *
 * TLS 1.2 and later, no renegotiation, no compression, no ALPN. What waits inside is bounded in
 * both directions. Nothing here asks at a terminal. The loop thread.
 */
#ifndef LW_BROKERS_PULSAR_TLS_H
#define LW_BROKERS_PULSAR_TLS_H

#include <laneway/laneway.h>

struct lw_pulsar_tls_options {
    const char *trust_file;       /* PEM; NULL: the system's certificates */
    const char *certificate_file; /* PEM, with its chain; NULL: none */
    const char *key_file;         /* PEM, not encrypted; given with the certificate */
    bool allows_insecure;         /* no certificate is checked at all */
    bool validates_hostname;
};

struct lw_pulsar_tls_context;
struct lw_pulsar_tls;

enum lw_pulsar_tls_state {
    LW_PULSAR_TLS_HANDSHAKING, /* next: OPEN, CLOSED, FAILED */
    LW_PULSAR_TLS_OPEN,        /* next: CLOSED, FAILED */
    LW_PULSAR_TLS_CLOSED,      /* end */
    LW_PULSAR_TLS_FAILED       /* end */
};

/* Reads the files; E0418 names the one that is absent, unreadable or wrong. */
enum lw_status lw_pulsar_tls_context_create(const struct lw_pulsar_tls_options *options,
                                            struct lw_pulsar_tls_context **ret_context,
                                            struct lw_error *ret_error);
/* Sessions that still live keep what they need. NULL is fine. */
void lw_pulsar_tls_context_destroy(struct lw_pulsar_tls_context *context);

/*
 * Begins a session. `host` is the logical broker's name or IP literal (or the proxy's, when the
 * connection ends there): it is sent as SNI unless it is a literal, and the certificate must be
 * for it. The first bytes to send are there at once.
 */
enum lw_status lw_pulsar_tls_create(struct lw_pulsar_tls_context *context, const char *host,
                                    struct lw_pulsar_tls **ret_tls, struct lw_error *ret_error);
void lw_pulsar_tls_destroy(struct lw_pulsar_tls *tls); /* NULL is fine */

/*
 * Takes received bytes; returns how many, fewer than given only while plaintext waits to be read
 * (read, then feed the rest). In an end state all are taken and forgotten.
 */
size_t lw_pulsar_tls_feed(struct lw_pulsar_tls *tls, const void *data, size_t size);
/* The socket ended; without a farewell in TLS that is a failure while handshaking or open. */
void lw_pulsar_tls_end(struct lw_pulsar_tls *tls);
/* Moves bytes that are to be sent into `out`; 0 when there are none. In every state. */
size_t lw_pulsar_tls_take(struct lw_pulsar_tls *tls, void *out, size_t size);
bool lw_pulsar_tls_has_output(const struct lw_pulsar_tls *tls);

/*
 * Encrypts plaintext. OK with *ret_written > 0; AGAIN while handshaking or while too much output
 * waits to be taken; CLOSED or the failure's status in an end state. The next call may come with
 * another buffer.
 */
enum lw_status lw_pulsar_tls_write(struct lw_pulsar_tls *tls, const void *data, size_t size,
                                   size_t *ret_written);
/* Reads plaintext. OK with *ret_read > 0; AGAIN when bytes are missing; else as write. */
enum lw_status
lw_pulsar_tls_read(struct lw_pulsar_tls *tls, void *out, size_t size, size_t *ret_read);
/* Says farewell to the peer; what is already received can no longer be read. */
void lw_pulsar_tls_close(struct lw_pulsar_tls *tls);

enum lw_pulsar_tls_state lw_pulsar_tls_state(const struct lw_pulsar_tls *tls);
/* The reason of FAILED: E0509 to E0512. */
const struct lw_error *lw_pulsar_tls_error(const struct lw_pulsar_tls *tls);
/* "TLSv1.3" once the session is open. */
const char *lw_pulsar_tls_version(const struct lw_pulsar_tls *tls);

/*
 * True when the first bytes of a connection that was meant to be plaintext are TLS (a listener
 * for TLS answers plaintext with an alert, or only ends the connection).
 */
bool lw_pulsar_tls_is_record(const void *data, size_t size);
/* Fills in E0509 for plaintext that met a TLS listener. */
void lw_pulsar_tls_explain_plaintext(const char *host, struct lw_error *ret_error);

#endif
