/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scripted peer on a real socket and the client under test on a host with a moved clock, both
 * in one thread: a test says what the peer sends and looks at what it got. Waiting is for an event
 * with a limit far away; nothing sleeps to be safe.
 */
#ifndef TESTS_BROKERS_PULSAR_PEER_H
#define TESTS_BROKERS_PULSAR_PEER_H

#include "brokers/pulsar/connection.h"
#include "tests/support/virtual_host.h"

enum { PEER_BYTES = 16 * 1024 * 1024 };

struct peer_listener {
    int fd;
    uint16_t port;
};

/* One accepted connection. */
struct peer {
    int fd;
    void *ssl; /* SSL; NULL: plaintext */
    uint8_t *in;
    size_t size;
    size_t used;
    struct lw_pulsar_command command; /* the last one read; views live until the next read */
    struct lw_bytes rest;
    bool is_ended; /* the client closed */
};

struct world {
    struct virtual_host virtual_host;
    struct lw_host *host;
    struct lw_pulsar_client client;
    uint32_t up_count;
    uint32_t down_count;
    struct lw_error down;
    /* what a dial gave */
    struct lw_pulsar_dial dial;
    struct lw_pulsar_connection *connection;
    uint32_t dialled_count;
    struct lw_pulsar_failure failure;
};

/* The default settings of a client; a test changes them before world_init. */
struct lw_pulsar_client_settings world_settings(void);
void world_init(struct world *world, const char *url,
                const struct lw_pulsar_client_settings *settings);
void world_deinit(struct world *world);
/* Dials the service; what comes of it is noted in the world. */
void world_dial(struct world *world);
/* Turns until `is_true` says so; fails the test otherwise. */
void world_until(struct world *world, bool (*is_true)(void *user), void *user);
/* A few turns with looks at the sockets: for what must not happen. */
void world_rest(struct world *world);
bool world_is_dialled(void *world);

void peer_listen(struct peer_listener *listener, const char *address, uint16_t port);
void peer_unlisten(struct peer_listener *listener);
/* Its queue is full: connections to it are neither made nor refused. */
void peer_listen_dead(struct peer_listener *listener, const char *address, uint16_t port,
                      int fds[4]);
const char *peer_url(const struct peer_listener *listener);

void peer_accept(struct peer *peer, struct peer_listener *listener, struct world *world);
/* True when somebody wants to connect. */
bool peer_is_called(const struct peer_listener *listener);
void peer_hang_up(struct peer *peer); /* harmless when it was done */
/* Answers as a server of TLS from the next byte on; the files are PEM. */
void peer_offer_tls(struct peer *peer, const char *certificate, const char *key);
/* The same, and waits until hands are shaken. */
void peer_start_tls(struct peer *peer, struct world *world, const char *certificate,
                    const char *key);

/* The next command, whatever it takes to come; fails the test if its type is another one. */
const struct lw_pulsar_command *
peer_expect(struct peer *peer, struct world *world, enum lw_pulsar_command_type type);
/* The next command if it is there. */
const struct lw_pulsar_command *peer_poll(struct peer *peer);
void peer_expect_end(struct peer *peer, struct world *world);
void peer_send(struct peer *peer, const struct lw_pulsar_command *command);
void peer_send_bytes(struct peer *peer, const void *data, size_t size);
/* MESSAGE with a payload of `size` bytes that are all `fill`; no metadata that makes sense. */
void peer_send_message(struct peer *peer, uint64_t consumer_id, uint64_t entry, size_t size,
                       int fill);
void peer_send_simple(struct peer *peer, enum lw_pulsar_command_type type);
void peer_send_success(struct peer *peer, uint64_t request_id);
void peer_send_error(struct peer *peer, uint64_t request_id, int32_t code, const char *text);
/* Takes CONNECT and answers CONNECTED, as Pulsar 4.2 does. */
void peer_greet(struct peer *peer, struct world *world);
/* Accepts, greets, and waits until the dial in the world has a connection. */
void peer_serve(struct peer *peer, struct peer_listener *listener, struct world *world);
/* Bytes of a whole simple frame. */
size_t peer_frame(const struct lw_pulsar_command *command, uint8_t *out, size_t size);

#endif
