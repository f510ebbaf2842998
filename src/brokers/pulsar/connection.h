/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One TCP connection to a broker or proxy, with TLS if the service URL says so, shared by the
 * consumers and producers of that broker. Handshake with credentials, keep-alive in both
 * directions, answers to challenges, a table of requests with deadlines, output in order without
 * copying payloads. A connection is never used again after it was closed.
 *
 *   CONNECTING -> GREETING -> READY -> CLOSED, from each state to CLOSED
 *
 * Those who use it are told of its end once, after it left the pool: first every request fails,
 * then every user's on_closed is called. Callbacks may start requests on other connections and
 * attach to them. Loop thread.
 */
#ifndef LW_BROKERS_PULSAR_CONNECTION_H
#define LW_BROKERS_PULSAR_CONNECTION_H

#include "brokers/pulsar/block.h"
#include "brokers/pulsar/client.h"
#include "brokers/pulsar/wire/command.h"

struct lw_pulsar_connection;

enum lw_pulsar_connection_state {
    LW_PULSAR_CONNECTING, /* name, TCP, TLS */
    LW_PULSAR_GREETING,   /* CONNECT is sent */
    LW_PULSAR_READY,
    LW_PULSAR_CLOSED
};

/* -- Getting one ----------------------------------------------------------------------------- */

/* Where the commands are meant for, and where TCP goes if that is elsewhere (a proxy). */
struct lw_pulsar_target {
    struct lw_pulsar_host logical;
    struct lw_pulsar_host physical;
};

/* Owned by who waits; begins as zeros. `connection` NULL: `failure` says why. Called later, once. */
struct lw_pulsar_dial;
typedef void (*lw_pulsar_dial_fn)(struct lw_pulsar_dial *dial,
                                  struct lw_pulsar_connection *connection,
                                  const struct lw_pulsar_failure *failure);
struct lw_pulsar_dial {
    struct lw_list link;
    lw_pulsar_dial_fn fn;
    struct lw_pulsar_connection *connection; /* that it waits for; NULL: idle */
    struct lw_deferred refusal;              /* no memory for one */
    size_t hosts_left;                       /* of the service, after this one */
    bool is_service;
};

/* The pool: one connection per target, made on demand; those who wait for one share it. */
void
lw_pulsar_dial_target(struct lw_pulsar_client *client, const struct lw_pulsar_target *target,
                      struct lw_pulsar_dial *dial, lw_pulsar_dial_fn fn);
/* The service: the rotation's host, the next one at once when it fails, all of them once. */
void lw_pulsar_dial_service(struct lw_pulsar_client *client, struct lw_pulsar_dial *dial,
                            lw_pulsar_dial_fn fn);
void lw_pulsar_dial_cancel(struct lw_pulsar_dial *dial); /* harmless if idle */

enum lw_pulsar_connection_state
lw_pulsar_connection_state(const struct lw_pulsar_connection *connection);
/* Negotiated; 5 MiB until CONNECTED. */
size_t lw_pulsar_connection_message_bytes_max(const struct lw_pulsar_connection *connection);
int32_t lw_pulsar_connection_protocol(const struct lw_pulsar_connection *connection);
bool lw_pulsar_connection_has_topic_watchers(const struct lw_pulsar_connection *connection);
/* "host:port", for logs. */
const char *lw_pulsar_connection_name(const struct lw_pulsar_connection *connection);
/*
 * Ends it: requests fail, users are told, at the next turn. `error` is copied; NULL: closed by us
 * in order. From then on sends do nothing. The memory lives until all are told.
 */
void lw_pulsar_connection_close(struct lw_pulsar_connection *connection,
                                const struct lw_error *error);

/* -- Requests ---------------------------------------------------------------------------------- */

/*
 * A command that is answered by one with the same request id, or by ERROR. `answer` is NULL when
 * there is none, then `failure` says why (also for ERROR). A LOOKUP_RESPONSE and the like that
 * carry an error are given as answers. `keeps`: set by fn to stay in the table and get another
 * answer (producer_ready = false), then without a deadline.
 */
struct lw_pulsar_request;
typedef void (*lw_pulsar_request_fn)(struct lw_pulsar_request *request,
                                     const struct lw_pulsar_command *answer,
                                     const struct lw_pulsar_failure *failure);
struct lw_pulsar_request { /* owned by who asks; begins as zeros */
    struct lw_list link;
    struct lw_timer timer;
    lw_pulsar_request_fn fn;
    struct lw_pulsar_connection *connection; /* NULL: not under way */
    const char *what;                        /* for texts, such as "subscribe to ..." */
    uint64_t id;
    int32_t answer; /* type of the answer that the command sent wants; 0: not sent yet */
    bool keeps;
};

/*
 * The id to put into the command, which the caller sends right after. On a connection that is
 * closed the request fails at the next turn. An answer of another type than the command wants is
 * a failure. An ACK_RESPONSE whose id is no request's goes to its consumer's on_command.
 */
uint64_t lw_pulsar_request_begin(struct lw_pulsar_connection *connection,
                                 struct lw_pulsar_request *request, lw_pulsar_request_fn fn,
                                 const char *what, uint64_t timeout_ns);
void lw_pulsar_request_cancel(struct lw_pulsar_request *request); /* harmless if idle */

/* -- Consumers, producers, watchers ------------------------------------------------------------------- */

enum lw_pulsar_user_kind {
    LW_PULSAR_USER_CONSUMER,
    LW_PULSAR_USER_PRODUCER,
    LW_PULSAR_USER_WATCHER
};

struct lw_pulsar_user;
struct lw_pulsar_user_ops {
    /* Any command with this user's id but MESSAGE; views live during the call. It stays attached
     * after CLOSE_*. */
    void (*on_command)(struct lw_pulsar_user *user, const struct lw_pulsar_command *command);
    /* MESSAGE (consumers only): `rest` lies in `block`, which lives on if it is held. */
    void (*on_message)(struct lw_pulsar_user *user, const struct lw_pulsar_message *message,
                       struct lw_bytes rest, struct lw_pulsar_block *block);
    /* The socket takes more again after lw_pulsar_connection_has_room was false. */
    void (*on_room)(struct lw_pulsar_user *user);
    /* It is detached already. Ignore it if it is not your current connection. */
    void (*on_closed)(struct lw_pulsar_user *user, struct lw_pulsar_connection *connection,
                      const struct lw_pulsar_failure *failure);
};
struct lw_pulsar_user { /* embedded in a consumer or producer; begins as zeros */
    struct lw_list link;
    const struct lw_pulsar_user_ops *ops;
    enum lw_pulsar_user_kind kind;
    uint64_t id;
    struct lw_pulsar_connection *connection; /* NULL: detached */
};

/*
 * Before PRODUCER or SUBSCRIBE is sent. Found by id in constant time. False: no memory. To a
 * closed connection: on_closed follows.
 */
bool lw_pulsar_connection_attach(struct lw_pulsar_connection *connection,
                                 struct lw_pulsar_user *user);
void lw_pulsar_connection_detach(struct lw_pulsar_user *user);

/* -- Output ------------------------------------------------------------------------------------- */

/*
 * Encodes into the output buffer; goes out at the end of the turn at the latest, together with
 * all of that turn. False: the connection is closed, or no memory, which closes it.
 */
bool lw_pulsar_connection_send(struct lw_pulsar_connection *connection,
                               const struct lw_pulsar_command *command);
/*
 * A frame in two parts, for SEND: `head` is copied, `body` is not: it stays untouched until
 * `sent` is called or the connection was closed. PINGs and PONGs may overtake between frames.
 */
struct lw_pulsar_output { /* owned by who sends; begins as zeros; one per frame in flight */
    struct lw_list link;
    struct lw_bytes body;
    size_t head_bytes; /* the connection's */
    /* The last byte is with the kernel (TLS: encrypted). May be NULL. Not called after a close. */
    void (*on_sent)(struct lw_pulsar_output *output);
    /* The connection ended before that: for freeing the output, nothing else. May be NULL. */
    void (*on_dropped)(struct lw_pulsar_output *output);
};
bool lw_pulsar_connection_send_frame(struct lw_pulsar_connection *connection,
                                     struct lw_bytes head, struct lw_pulsar_output *output);
/* False while more than a few MiB wait for the socket: send no more payloads until on_room. */
bool lw_pulsar_connection_has_room(const struct lw_pulsar_connection *connection);

#endif
