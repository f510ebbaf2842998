/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The programs engine: handlers are programs of any language, kept alive, that speak lines or
 * frames, or are run once for each message (docs/protocol.md). Room is what ready workers would
 * take now. A program that cannot start, or ends right after its start, takes the engine down:
 * nobody is charged, and it is tried again after 1 s, then twice as long each time, 30 s at
 * most.
 */
#ifndef LW_ENGINES_PROGRAMS_ENGINE_H
#define LW_ENGINES_PROGRAMS_ENGINE_H

#include <laneway/plugin.h>

#include "engines/programs/launch.h"

struct lw_programs_options {
    enum lw_protocol protocol;
    const struct lw_exit_class *exit_codes; /* once: over the table of codes */
    size_t exit_code_count;
    bool has_reply;                 /* once: what is printed is a reply, not text for the log */
    const char *const *program;     /* argv, NULL-terminated; looked up in PATH, no shell */
    const char *directory;          /* NULL: ours */
    const char *const *environment; /* NAME=VALUE, NULL-terminated, over ours; may be NULL */
    const char *service;            /* for the hello */
    const char *pipeline;           /* for messages to people; NULL: several */
    uint32_t workers;               /* processes at once, at least 1 */
    uint32_t window;                /* messages that one may hold, at least 1 */
    struct lw_batch_options batch;  /* lines, frames; size 0: one message at a time */
    int64_t timeout_ms;             /* of one attempt; 0 none */
    int64_t start_timeout_ms;       /* until `ready`; 0 none */
    struct lw_programs_limits limits;
};

/* Everything is copied. `name` is the handler's. The engine is destroyed through its table. */
enum lw_status
lw_programs_engine_create(struct lw_host *host, struct lw_completions *completions,
                          const char *name, const struct lw_programs_options *options,
                          struct lw_engine **ret_engine);

#endif
