/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The http engine, made: its batches and answers in JSON are those of programs, so the engine
 * for programs writes and reads them. Engines do not know of each other; this file, as the
 * registry, knows both.
 */
#include "service/registry_http.h"

#include "engines/http/engine.h"
#include "engines/programs/answer.h"
#include "engines/programs/request.h"

/* As a line for a program; the id is of no use here, and need not be answered. */
static bool
write_batch(struct lw_text *out, const struct lw_delivery *first, int64_t deadline_ms)
{
    return lw_programs_request_write(out, 1, first, deadline_ms);
}

enum lw_status
lw_registry_http(struct lw_dispatcher *dispatcher, const struct lw_engine_request *request,
                 uint32_t slots, struct lw_engine **ret_engine, struct lw_error *ret_error)
{
    const struct lw_subscription_options *options = request->options;
    struct lw_http_engine_options run = {
        .name = request->name,
        .http = options->http,
        .pipeline = options->pipeline,
        .connections = options->http->connections ? options->http->connections : slots,
        .timeout_ms = options->timeout_ms,
        .read = lw_programs_answer_take,
        .batch = options->batch,
        .write = write_batch,
    };
    run.batch.size = run.batch.size > 1 ? run.batch.size : 0;
    return lw_http_engine_create(dispatcher->host, &dispatcher->completions, &run, ret_engine,
                                 ret_error);
}
