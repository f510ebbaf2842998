/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_world.h: the http engine with the service of tests/support/http_server.py in a process of
 * its own, which ends with the test.
 */
#ifndef TESTS_ENGINES_HTTP_WORLD_H
#define TESTS_ENGINES_HTTP_WORLD_H

#include <stdio.h>
#include <sys/types.h>

#include "engines/http/engine.h"
#include "tests/engines/world.h"

struct http_server {
    pid_t pid;
    int input; /* closing it ends the server */
    int port;  /* 0: it did not start */
    char url[96];
};

/* `arguments` of the program, NULL-terminated, or NULL; "--port" is added when port is not 0. */
void http_server_start(struct http_server *server, int port, const char *const *arguments);
/* Ends it and waits for it. */
void http_server_stop(struct http_server *server);

/* A world whose engine, named "obey", asks the server; `over` may be NULL. */
struct world *http_open_world(const struct http_server *server,
                              const struct lw_http_options *over, int64_t timeout_ms);
/* A world whose engine asks at that address, with defaults. */
struct world *http_open_at(const char *url, int64_t timeout_ms);
/* Fails the test unless the delivery was given back and the engine is down for that reason. */
void
http_assert_down(struct world *world, const struct lw_delivery *delivery, const char *code);
/* A port whose connections are never accepted nor answered; returns its socket. */
int http_listen_silently(int *ret_port);
/* Creates and starts world->engine. */
void http_create(struct world *world, const struct lw_http_options *options,
                 uint32_t connections, int64_t timeout_ms);
/* The defaults, with that address. */
struct lw_http_options http_options(const char *url);
/* The one reply of a delivery as a text; good until the next call. */
const char *http_reply(const struct lw_delivery *delivery);
/* Runs one message and waits for its result. */
struct lw_delivery *http_ask(struct world *world, const char *text);
/*
 * A port on which nobody listens, and which nobody else gets while this process lives: its socket
 * stays open. The server may be started on it, as often as need be.
 */
int http_free_port(void);
/* Files of a certificate for 127.0.0.1 and "localhost" that signed itself, made once. */
const char *http_certificate(void);
const char *http_key(void);

#endif
