/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The http engine: the handler is a service that is asked over HTTP, one request for each
 * message, or batch of them, by libcurl on the loop. Room is what the pool of connections
 * takes. What a service answers, and what that means, is in docs/handlers-http.md. A service
 * that cannot be reached takes the engine down: nobody is charged, and a connection is tried
 * after 1 s, then twice as long each time, 30 s at most.
 */
#ifndef LW_ENGINES_HTTP_ENGINE_H
#define LW_ENGINES_HTTP_ENGINE_H

#include <laneway/plugin.h>

#include "engines/http/answer.h"

struct lw_http_engine_options {
    const char *name; /* the handler's */
    const struct lw_http_options *http;
    const char *pipeline;          /* for messages to people; NULL: several */
    uint32_t connections;          /* requests at once, at least 1 */
    int64_t timeout_ms;            /* of one attempt; 0 none */
    lw_http_read_fn read;          /* reads answers in JSON; NULL: they are refused */
    struct lw_batch_options batch; /* size 0: one message at a time */
    lw_http_write_fn write;        /* of batches */
};

/*
 * Everything is copied. CONFIG with an error when the address, a header
 * or the token cannot be used. The engine is destroyed through its table.
 */
enum lw_status lw_http_engine_create(struct lw_host *host, struct lw_completions *completions,
                                     const struct lw_http_engine_options *options,
                                     struct lw_engine **ret_engine, struct lw_error *ret_error);

#endif
