/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of a connection share. Who does what:
 *
 *   connection_open    name, TCP, TLS: every address in turn, within one deadline
 *   connection_greet   credentials, CONNECT, CONNECTED, challenges, keep-alive
 *   connection_read    bytes into blocks, frames out of them, some at a turn
 *   connection_command a frame's command to the request or the user that it is for
 *   connection_write   output in order, urgent commands between frames
 *   connection         users, requests' table, closing
 *   pool               who waits for a connection
 *
 * Closing only marks: the socket is gone and the connection is out of the pool at once, but those
 * who use it are told by deferred work, so no callback comes from in a call, and the memory goes
 * when all are told.
 */
#ifndef LW_BROKERS_PULSAR_CONNECTION_STATE_H
#define LW_BROKERS_PULSAR_CONNECTION_STATE_H

#include <netdb.h>
#include <sys/socket.h>

#include "brokers/pulsar/connection.h"
#include "brokers/pulsar/ids.h"

enum {
    LW_PULSAR_ADDRESSES_MAX = 16,
    LW_PULSAR_FRAMES_PER_TURN = 256,
    LW_PULSAR_CIPHER_BYTES = 64 * 1024,
    LW_PULSAR_OUTPUT_BYTES_MAX = 4 * 1024 * 1024, /* above: no room */
    LW_PULSAR_OUTPUT_BYTES_LOW = 1024 * 1024,     /* below: room again */
};

/* Within CONNECTING. */
enum lw_pulsar_step {
    LW_PULSAR_RESOLVING, /* next: REACHING */
    LW_PULSAR_REACHING,  /* TCP; next: SHAKING_HANDS, ASKING, or REACHING the next address */
    LW_PULSAR_SHAKING_HANDS, /* TLS; next: ASKING, or REACHING the next address */
    LW_PULSAR_ASKING         /* for credentials; then GREETING */
};

struct lw_pulsar_socket_address {
    struct sockaddr_storage address;
    socklen_t size;
};

/* TLS: ciphertext on its way in and out. */
struct lw_pulsar_cipher {
    size_t in_size;
    size_t in_used;
    size_t out_size;
    size_t out_used;
    uint8_t in[LW_PULSAR_CIPHER_BYTES];
    uint8_t out[LW_PULSAR_CIPHER_BYTES];
};

/*
 * Output is one stream: `small` holds the commands and the heads of frames in order, each output
 * in `outputs` says after how many bytes of it its body comes.
 */
struct lw_pulsar_out {
    uint8_t *small;
    size_t small_at; /* sent */
    size_t small_size;
    size_t small_capacity;
    size_t tail_bytes;      /* of small, behind the last output */
    struct lw_list outputs; /* struct lw_pulsar_output */
    struct lw_list sent;    /* complete, not yet told */
    size_t body_sent;       /* of the first output */
    size_t body_bytes;      /* of all outputs, not yet sent */
    size_t frame_left;      /* of the frame that has begun to be sent; 0: between frames */
    uint8_t urgent[8192];   /* PONG, PING, credentials: sent between frames, before others */
    size_t urgent_at;
    size_t urgent_size;
    bool is_blocked;  /* the socket takes no more */
    bool is_crowded;  /* has_room was false */
    bool is_flushing; /* callbacks of a flush do not flush again */
};

struct lw_pulsar_connection {
    struct lw_list link; /* in client->connections or client->ended */
    struct lw_pulsar_client *client;
    enum lw_pulsar_connection_state state;
    enum lw_pulsar_step step;
    struct lw_pulsar_target target;
    char name[LW_PULSAR_HOST_BYTES + 16];

    /* opening */
    struct lw_resolve resolve;
    struct lw_pulsar_socket_address addresses[LW_PULSAR_ADDRESSES_MAX];
    size_t address_count;
    size_t address_at;
    uint64_t deadline;       /* of the whole way to CONNECTED */
    struct lw_error attempt; /* why the last address did not do */
    struct lw_timer timer;   /* opening, then keep-alive */
    struct lw_pulsar_auth_request auth;

    int fd; /* -1: none */
    struct lw_watch *watch;
    int events;
    struct lw_pulsar_tls *tls;
    struct lw_pulsar_cipher *cipher;

    /* in */
    struct lw_pulsar_block *block;
    size_t filled;
    size_t scanned;
    size_t wanted; /* the size of the frame that has begun; 0: not known */
    size_t frame_bytes_max;
    uint64_t received;         /* bytes in all */
    bool has_frames;           /* more than a turn may take are in the block */
    bool is_end;               /* the peer closed, or reading failed with end_error */
    struct lw_deferred resume; /* goes on with them */
    int end_error;

    struct lw_pulsar_out out;
    struct lw_list dirty; /* in client->dirty */

    /* the peer */
    size_t message_bytes_max;
    int32_t protocol;
    bool has_topic_watchers;
    bool has_partitions_without_creation;
    bool is_ping_out;
    bool has_heard; /* something that shows life came since the last tick */
    uint32_t silent_ticks;
    bool has_told_unknown;
    uint32_t rejected_count; /* TooManyRequests and lookups without an answer */
    uint64_t rejected_since;

    /* who uses it */
    struct lw_list dials;
    struct lw_list requests;
    struct lw_list users;
    struct lw_pulsar_ids requests_by_id;
    struct lw_pulsar_ids consumers_by_id;
    struct lw_pulsar_ids producers_by_id;
    struct lw_pulsar_ids watchers_by_id;
    struct lw_deferred tell;
    struct lw_pulsar_failure failure; /* of the end */
};

/* -- connection.c ---------------------------------------------------------------------------------- */

/* NULL: no memory. It opens at once; its end is told like any other. */
struct lw_pulsar_connection *lw_pulsar_connection_create(struct lw_pulsar_client *client,
                                                         const struct lw_pulsar_target *target);
/* As close, with the code of a broker's ERROR (-1: none). */
void lw_pulsar_connection_end(struct lw_pulsar_connection *connection, int32_t code,
                              const struct lw_error *error);
/* Frees without telling anybody. */
void lw_pulsar_connection_drop(struct lw_pulsar_connection *connection);
void lw_pulsar_request_finish(struct lw_pulsar_request *request,
                              const struct lw_pulsar_command *answer,
                              const struct lw_pulsar_failure *failure);
/* Notes which answer a request wants whose command is being sent. */
void lw_pulsar_request_note(struct lw_pulsar_connection *connection,
                            const struct lw_pulsar_command *command);
/* Counts a refusal by too many requests; closes when there were too many of them. */
void lw_pulsar_connection_count_rejected(struct lw_pulsar_connection *connection);

/* -- connection_open.c ------------------------------------------------------------------------------ */

void lw_pulsar_connection_open(struct lw_pulsar_connection *connection);
/* The way to this address failed: the next one, or the end. */
void lw_pulsar_connection_try_next(struct lw_pulsar_connection *connection,
                                   const struct lw_error *error);
void lw_pulsar_connection_close_socket(struct lw_pulsar_connection *connection);
void lw_pulsar_connection_set_events(struct lw_pulsar_connection *connection, int events);
/* TCP (and TLS) are there. */
void lw_pulsar_connection_on_open(struct lw_pulsar_connection *connection);

/* -- connection_greet.c ------------------------------------------------------------------------------ */

void lw_pulsar_connection_greet(struct lw_pulsar_connection *connection);
void lw_pulsar_connection_on_connected(struct lw_pulsar_connection *connection,
                                       const struct lw_pulsar_connected *connected);
void lw_pulsar_connection_on_challenge(struct lw_pulsar_connection *connection);
/* ERROR that is not tied to a request. */
void lw_pulsar_connection_on_refused(struct lw_pulsar_connection *connection, int32_t code,
                                     struct lw_bytes message);
void lw_pulsar_connection_on_ping(struct lw_pulsar_connection *connection);
void lw_pulsar_connection_on_tick(struct lw_pulsar_connection *connection);

/* -- connection_read.c ------------------------------------------------------------------------------ */

/* The socket is readable. */
void lw_pulsar_connection_read(struct lw_pulsar_connection *connection);
/* Frames that are here already, up to what a turn may take. */
void lw_pulsar_connection_scan(struct lw_pulsar_connection *connection);

/* -- connection_command.c ---------------------------------------------------------------------------- */

void lw_pulsar_connection_take(struct lw_pulsar_connection *connection, struct lw_bytes command,
                               struct lw_bytes rest);
/* The peer breaks the protocol: ends the connection. */
void lw_pulsar_connection_break(struct lw_pulsar_connection *connection, const char *why);

/* -- connection_write.c ------------------------------------------------------------------------------ */

bool lw_pulsar_connection_send_urgent(struct lw_pulsar_connection *connection,
                                      const struct lw_pulsar_command *command);
/* Writes what the socket takes. */
void lw_pulsar_connection_flush(struct lw_pulsar_connection *connection);
/* Forgets what was not sent. */
void lw_pulsar_connection_drop_output(struct lw_pulsar_connection *connection);
void lw_pulsar_client_flush(struct lw_pulsar_client *client);

/* -- pool.c -------------------------------------------------------------------------------------------- */

void lw_pulsar_pool_on_ready(struct lw_pulsar_connection *connection);
/* It has just been closed; it is out of the pool already. */
void lw_pulsar_pool_on_ended(struct lw_pulsar_connection *connection);
/* Tells one who waits that there is none, or sends it to the service's next host. */
void lw_pulsar_dial_fail(struct lw_pulsar_dial *dial, struct lw_pulsar_connection *connection);
void lw_pulsar_pool_drop_all(struct lw_pulsar_client *client);

#endif
