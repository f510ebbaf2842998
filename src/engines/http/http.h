/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of the http engine, for the files that share it: engine.c (the table), transfer.c
 * (one request), multi.c (libcurl on the host's loop), circuit.c (whether the service is asked
 * at all), settings.c (what is copied at its making).
 *
 * The circuit of a handler:
 *   CLOSED     the service is asked           next: OPEN (cannot be reached, answers no HTTP)
 *   OPEN       nobody is asked until a time   next: PROBING, CLOSED (an older request was
 *                                             answered)
 *   PROBING    a connection is tried, without a message
 *                                             next: HALF_OPEN, OPEN, CLOSED
 *   HALF_OPEN  one message at a time, whatever older ones are still under way
 *                                             next: CLOSED (answered), OPEN
 * It is down while OPEN and PROBING. What requests of before say while it is PROBING counts
 * only when it is an answer, which ends the probe. A wait that the service asked for by
 * Retry-After is a pause of its own, whatever the circuit.
 */
#ifndef LW_ENGINES_HTTP_HTTP_H
#define LW_ENGINES_HTTP_HTTP_H

#include <laneway/plugin.h>

#include "base/curl.h"
#include "base/host.h"
#include "base/list.h"
#include "engines/http/answer.h"
#include "engines/http/engine.h"
#include "engines/http/request.h"
#include "engines/http/token.h"

enum { LW_HTTP_ERROR_BYTES = 256 }; /* libcurl's CURL_ERROR_SIZE */

enum lw_http_circuit { LW_HTTP_CLOSED, LW_HTTP_OPEN, LW_HTTP_PROBING, LW_HTTP_HALF_OPEN };

struct lw_http;

/* One request at a time, and the memory and easy handle that are used again for the next. */
struct lw_http_transfer {
    struct lw_list link; /* http->idle or http->running */
    struct lw_http *http;
    void *easy;                   /* made on first use */
    struct lw_delivery *delivery; /* NULL: idle, or the probe */
    struct lw_timer timer;        /* to connect, then to answer */
    uint64_t deadline;            /* of the attempt */
    uint32_t token_serial;        /* of the token that was sent */
    struct lw_http_request request;
    struct lw_text batch; /* the body, where it has several messages */
    struct lw_http_answer answer;
    bool is_starved; /* a socket of it is not watched, for want of memory */
    char error[LW_HTTP_ERROR_BYTES];
};

/* A descriptor of libcurl that is watched, or rests in its pool. */
struct lw_http_socket {
    struct lw_http *http;
    struct lw_watch *watch;
    int fd;
    int events;   /* that are watched */
    bool is_idle; /* libcurl does not want it now */
};

struct lw_http {
    struct lw_engine engine;
    struct lw_curl curl;
    void *multi;
    struct lw_timer timer;           /* libcurl's */
    bool is_timer_due;               /* at once: with the next flush */
    struct lw_http_socket **sockets; /* by descriptor */
    size_t socket_capacity;
    int socket_failure; /* errno of the last socket that could not be made; 0 none */

    struct lw_http_transfer *transfers;
    uint32_t connections;
    uint32_t running_count;
    struct lw_list idle;
    struct lw_list running;
    struct lw_http_transfer probe;
    const struct lw_http_transfer *trial; /* the one message of HALF_OPEN, under way */
    bool has_starved;                     /* a transfer is */
    bool has_done;                        /* results came since the last flush */

    enum lw_http_circuit circuit;
    uint32_t failures; /* in a row */
    bool has_answered; /* in HTTP, ever */
    bool is_stopping;
    uint64_t paused_until; /* Retry-After; 0 none */
    const char *pause_why;
    bool is_pause_said;    /* down_error tells of it */
    uint64_t busy_said_at; /* 0 never */
    bool is_memory_short;
    struct lw_timer circuit_timer;
    struct lw_timer pause_timer;
    struct lw_timer memory_timer;
    struct lw_timer stop_timer;

    struct lw_http_token token;
    struct lw_http_fixed fixed;
    struct lw_curl_line *fixed_lines; /* the headers of the configuration */
    struct lw_text fixed_text;
    struct lw_http_options options; /* its texts are ours */
    int64_t timeout_ms;
    lw_http_read_fn read;
    lw_http_write_fn write;
    char *name;
    char *pipeline;
    char *content_type;
    char *texts[8]; /* of options */
};

static inline struct lw_http *
lw_http_of(struct lw_engine *engine)
{
    return LW_CONTAINER(engine, struct lw_http, engine);
}

/* -- settings.c -- */
bool lw_http_settings_copy(struct lw_http *http, const struct lw_http_engine_options *options);
void lw_http_settings_free(struct lw_http *http);

/* -- multi.c -- */
/* Loads libcurl and makes its multi handle. */
bool lw_http_multi_open(struct lw_http *http);
/* After all easy handles are gone. */
void lw_http_multi_close(struct lw_http *http);
/* Lets libcurl work: on a descriptor, or on time; then takes what ended. */
void lw_http_multi_act(struct lw_http *http, int fd, int events);
/* Options of an easy handle that let the engine own its sockets. */
bool lw_http_multi_own_sockets(struct lw_http *http, void *easy);

/* -- transfer.c -- */
void lw_http_transfer_init(struct lw_http_transfer *transfer, struct lw_http *http);
void lw_http_transfer_deinit(struct lw_http_transfer *transfer);
/* Begins a request; false without memory, and nothing is changed. */
bool lw_http_transfer_begin(struct lw_http_transfer *transfer, struct lw_delivery *delivery);
/* Tries to connect, without a request. */
bool lw_http_transfer_begin_probe(struct lw_http_transfer *transfer);
/* Nothing happens when it is not under way. */
void lw_http_transfer_end_probe(struct lw_http_transfer *transfer);
/* libcurl says that it ended. */
void lw_http_transfer_on_end(struct lw_http_transfer *transfer, int result);
/* Ends it early; the message goes back, not charged. */
void lw_http_transfer_abort(struct lw_http_transfer *transfer, const char *reason);

/* -- circuit.c -- */
/* Counts how many requests would be taken now. */
void lw_http_update_room(struct lw_http *http);
/* The service spoke HTTP. */
void lw_http_circuit_on_answer(struct lw_http *http);
/* It cannot be reached (E0620), or answers something else (E0621). */
void lw_http_circuit_on_failure(struct lw_http *http, const char *code, const char *why);
/* A probe connected. */
void lw_http_circuit_on_connected(struct lw_http *http);
/* The service is left alone for a time; `why` is a constant, such as "Retry-After". */
void lw_http_circuit_pause(struct lw_http *http, int64_t wait_ms, const char *why);
/* Nothing is taken until a timer has looked again. */
void lw_http_wait_for_memory(struct lw_http *http);
void lw_http_circuit_init(struct lw_http *http);
void lw_http_circuit_deinit(struct lw_http *http);

#endif
