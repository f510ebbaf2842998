/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asking a spool from outside: through its owner's socket, or, when nobody owns it, by owning it for
 * the moment. Blocks; for the command, and for the thread of a broker that only publishes.
 */
#ifndef LW_BROKERS_SPOOL_CLIENT_H
#define LW_BROKERS_SPOOL_CLIENT_H

#include <stdatomic.h>

#include "brokers/spool/request.h"

struct lw_spool_client {
    struct lw_spool_store *store; /* NULL: through the socket */
    int fd;                       /* -1: none */
    const char *path;
    struct lw_text in;
    struct lw_text out;            /* the request */
    struct lw_spool_reader answer; /* behind status and text */
    bool is_refused;               /* the owner ended without having read the whole request */
    const _Atomic(uint64_t) *ends_at; /* no answer is awaited from then on, ns; NULL: always */
};

/* Locks the file or connects. NOT_FOUND: it is not there, and `is_made` does not say to make it. */
enum lw_status lw_spool_client_open(struct lw_spool_client *client, const char *path,
                                    const struct lw_spool_options *options, bool is_made,
                                    struct lw_error *ret_error);
/* Knows the path, and has no connection yet. */
void lw_spool_client_init(struct lw_spool_client *client, const char *path);
/* Only connects, to the owner that is there; 0: its id is not known. */
enum lw_status lw_spool_client_connect(struct lw_spool_client *client, const char *path,
                                       long pid, struct lw_error *ret_error);
/* The same again, when the owner has ended. */
enum lw_status
lw_spool_client_reconnect(struct lw_spool_client *client, struct lw_error *ret_error);
void lw_spool_client_close(struct lw_spool_client *client);
/*
 * Sends what stands in `out` and waits for the answer, at most so long (0: for ever). UNAVAILABLE: the
 * owner has ended and did not take it; UNKNOWN: it may have.
 */
enum lw_status
lw_spool_client_ask(struct lw_spool_client *client, int timeout_ms, struct lw_error *ret_error);
/*
 * Asks the owner to leave the file to one who reads it. OK: it will; what comes of it the lock says.
 * ALREADY: it reads it, too. UNAVAILABLE: nobody could be asked. UNKNOWN: there was no answer in a
 * second, and the question is forgotten.
 */
enum lw_status lw_spool_client_ask_to_yield(const char *path);

#endif
