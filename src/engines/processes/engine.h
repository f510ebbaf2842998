/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes engine: C handlers from a plug-in, each worker a process of its own, so that they
 * use all processors and a crash takes nobody along. Messages go over rings in shared memory. A
 * handler that cannot be loaded or opened takes the engine down: nobody is charged, and it is
 * tried again after 1 s, then twice as long each time, 30 s at most. When the zygote is killed no
 * worker can be replaced: down_error is fatal then.
 */
#ifndef LW_ENGINES_PROCESSES_ENGINE_H
#define LW_ENGINES_PROCESSES_ENGINE_H

#include <laneway/plugin.h>

/* Messages that a worker may hold when nobody says it. */
#define LW_PROCESSES_WINDOW 64

struct lw_processes_options {
    const char *path;                  /* of the plug-in; or NULL and */
    lw_handler_fn handler;             /* a function of this program, see lw_processes_init */
    lw_handler_batch_fn handler_batch; /* or such a one, with a batch */
    void *user;                        /* for it */
    const char *symbol;                /* NULL: lw_handler */
    const char *service;               /* its name */
    const char *pipeline;              /* for messages to people; NULL: several */
    const struct lw_property *options; /* for the plug-in */
    size_t option_count;
    const char *zygote;              /* path of laneway-zygote; NULL: the installed one */
    uint32_t workers;                /* at least 1 */
    uint32_t window;                 /* messages that one may hold, at least 1 */
    int64_t timeout_ms;              /* of one attempt; 0 none */
    int64_t start_timeout_ms;        /* of loading and opening; 0 none */
    uint64_t memory_max;             /* resident bytes of a worker and its children; 0 none */
    struct lw_processes_tuning tune; /* as in laneway.h */
    struct lw_batch_options batch;   /* of size 0: one message at a time, by `handle` */
};

/* Why a batch of messages was handed over. */
enum lw_processes_flush {
    LW_PROCESSES_BY_SIZE,
    LW_PROCESSES_BY_TIMER,
    LW_PROCESSES_BY_DEMAND,
    LW_PROCESSES_BY_RESIDENCE, /* demand, once the oldest had waited for long enough */
    LW_PROCESSES_BY_CLOSE,
    LW_PROCESSES_FLUSH_COUNT
};

/* Times are of one message of each batch, in ns. */
struct lw_processes_figures {
    uint64_t flushes[LW_PROCESSES_FLUSH_COUNT];
    uint64_t messages;     /* handed over, those that ran again included */
    uint64_t last_size;    /* of a batch */
    uint64_t last_wait_ns; /* of its oldest message, before it was handed over */
    uint64_t worker_wakes; /* sleeping workers that were woken */
    uint64_t owner_wakes;  /* times that a worker woke us */
    uint64_t items;        /* messages that went in memory of their own */
    uint64_t timed;        /* messages that the sums below are of */
    uint64_t handover_ns;  /* sums: published until its handler began */
    uint64_t execution_ns;
    uint64_t return_ns; /* its handler returned until we read the answer */
    uint64_t last_handover_ns;
    uint64_t last_execution_ns;
    uint64_t last_return_ns;
    uint32_t workers; /* that take messages now */
    uint64_t crashes; /* ends by itself, with a message started */
    uint64_t charged;
    uint64_t recycled;
    uint32_t buffered;    /* not handed over yet */
    uint64_t buffered_ns; /* age of the oldest of those */
};

/* Everything is copied. `name` is the handler's. The engine is destroyed through its table. */
enum lw_status
lw_processes_engine_create(struct lw_host *host, struct lw_completions *completions,
                           const char *name, const struct lw_processes_options *options,
                           struct lw_engine **ret_engine);

/* NULL-safe question by its table: is it one of these? */
bool lw_processes_engine_is(const struct lw_engine *engine);
void lw_processes_engine_figures(const struct lw_engine *engine,
                                 struct lw_processes_figures *ret_figures);

#endif
