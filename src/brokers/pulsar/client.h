/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all parts of one Pulsar broker share: the host, the service URL, credentials, time-outs,
 * the pool of connections, memory for received bytes, and numbers. The broker (broker.c) owns it;
 * connections, lookups, consumers and producers hang on it. Loop thread.
 */
#ifndef LW_BROKERS_PULSAR_CLIENT_H
#define LW_BROKERS_PULSAR_CLIENT_H

#include "base/host.h"
#include "base/list.h"
#include "base/map.h"
#include "brokers/pulsar/address.h"
#include "brokers/pulsar/arrays.h"
#include "brokers/pulsar/auth.h"
#include "brokers/pulsar/tls.h"
#include "brokers/pulsar/wire/server_error.h"

/* Why something did not work: for the code that decides (code, is_retried) and for people. */
struct lw_pulsar_failure {
    int32_t code;    /* enum lw_pulsar_server_error; -1: no answer (disconnected, timed out) */
    bool is_retried; /* again with backoff; false: final for this operation */
    struct lw_error error;
};

struct lw_pulsar_client_settings {
    uint64_t operation_timeout_ns;  /* 30 s */
    uint64_t connection_timeout_ns; /* 10 s: name, TCP, TLS, CONNECTED together */
    uint64_t keep_alive_ns;         /* 30 s */
    uint64_t backoff_first_ns;      /* 100 ms */
    uint64_t backoff_max_ns;        /* 60 s */
    uint32_t lookups_max;           /* in flight; more wait here */
    uint32_t rejected_max;  /* TooManyRequests in 60 s before the connection is closed: 50 */
    uint32_t redirects_max; /* of one lookup: 20 */
    uint64_t partitions_every_ns; /* grown partitions are looked for: 60 s */
    const char *listener_name;    /* NULL: none */
    const char *client_version;   /* "Laneway-VERSION" */
    const char *description;      /* appended to it; NULL: none */
    const char *admin_url;        /* NULL: made from the address */
    struct lw_pulsar_host
        proxy; /* routes by the name in TLS: TCP goes there, whoever is meant */
    bool has_proxy;
    bool wants_tls; /* though the address does not say it */
    struct lw_pulsar_tls_options tls;
};

struct lw_pulsar_client;

/*
 * How the broker hears of the connection to the service; each at most once per change, never from
 * in a call of the functions of this folder. Down: no host of the service could be reached. Up: a
 * connection is ready.
 */
struct lw_pulsar_client_ops {
    void (*on_up)(struct lw_pulsar_client *client);
    void (*on_down)(struct lw_pulsar_client *client, const struct lw_error *error);
};

struct lw_pulsar_client {
    struct lw_host *host;
    const char *name; /* the broker's configured name, for texts */
    const struct lw_pulsar_client_ops *ops;
    struct lw_pulsar_client_settings options;
    struct lw_pulsar_address address;
    struct lw_pulsar_rotation rotation;
    struct lw_pulsar_auth *auth;
    struct lw_list connections; /* pool.c: those that can be used or are being made */
    struct lw_list ended;       /* closed ones, until all who used them are told */
    struct lw_list dirty;       /* connections with output for the end of the turn */
    struct lw_turn turn;
    struct lw_deferred flush; /* for output that came after our turn hook */
    struct lw_pulsar_tls_context *tls;
    uint64_t tls_made_at;   /* files are read again for a connection made later than a second */
    struct lw_map searches; /* lookup.c: under way or waiting, equal ones share */
    struct lw_list lookups; /* in flight */
    struct lw_list lookups_waiting;
    struct lw_list lookups_refused; /* without memory, answered at the next turn */
    struct lw_deferred lookups_deferred;
    uint32_t lookup_count;
    struct lw_pulsar_block *spare_blocks; /* block.c */
    uint32_t spare_count;
    struct lw_pulsar_arrays arrays; /* of the members of batches */
    uint64_t next_request_id;
    uint64_t next_consumer_id;
    uint64_t next_producer_id;
    uint64_t next_watcher_id;
    uint64_t frames_in;
    uint64_t bytes_in;
    uint64_t bytes_out;
    bool is_up;
    bool is_down;    /* both false: not known yet */
    bool is_proxied; /* brokers were last reached through the service URL */
    bool is_closing;
};

/*
 * The caller sets `address` and `auth` (NULL: none) before, which are taken over; all else is set
 * here. Options are copied, the texts in them are not.
 */
void lw_pulsar_client_init(struct lw_pulsar_client *client, struct lw_host *host,
                           const char *name, const struct lw_pulsar_client_settings *options,
                           const struct lw_pulsar_client_ops *ops);
/* Closes what is left; nobody is called any more. No block may be held any more. */
void lw_pulsar_client_deinit(struct lw_pulsar_client *client);

/* -- Backoff ------------------------------------------------------------------------------------ */

/* One per consumer, producer, service connection: 100 ms doubled to 60 s, times 0.9 to 1.0. */
struct lw_pulsar_backoff {
    uint32_t failures;
};

/* The next pause in ns; counts a failure. */
uint64_t
lw_pulsar_backoff_next(struct lw_pulsar_backoff *backoff, struct lw_pulsar_client *client);
/* After success of the operation, not of the TCP connection. */
void lw_pulsar_backoff_reset(struct lw_pulsar_backoff *backoff);

/* -- Failures ----------------------------------------------------------------------------------- */

/*
 * What the broker answered; `what` is such as "subscribe to persistent://a/b/c". is_retried follows
 * the table of codes; where that says that the operation's owner decides, it is true except for
 * TopicNotFound, which is final unless the broker is only starting ("Namespace not found").
 */
void lw_pulsar_failure_server(struct lw_pulsar_client *client, const char *what, int32_t code,
                              struct lw_bytes message, struct lw_pulsar_failure *ret_failure);
/* No answer; always retried. */
void lw_pulsar_failure_disconnected(struct lw_pulsar_client *client, const char *what,
                                    const struct lw_error *cause,
                                    struct lw_pulsar_failure *ret_failure);
void lw_pulsar_failure_timeout(struct lw_pulsar_client *client, const char *what,
                               struct lw_pulsar_failure *ret_failure);

#endif
