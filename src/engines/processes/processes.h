/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of the processes engine, for the files that share it: engine.c (the table), choice.c
 * (which worker gets what), supply.c (the zygote and its workers), limits.c (their memory), blame.c
 * (who is charged), and worker.h for one worker.
 */
#ifndef LW_ENGINES_PROCESSES_PROCESSES_H
#define LW_ENGINES_PROCESSES_PROCESSES_H

#include "engines/processes/spawn.h"
#include "engines/processes/worker.h"

enum lw_processes_zygote_state {
    LW_PROCESSES_NO_ZYGOTE,
    LW_PROCESSES_LOADING, /* started, its handler not loaded yet */
    LW_PROCESSES_SERVING,
    LW_PROCESSES_LOST /* killed: nothing can be started any more */
};

struct lw_processes {
    struct lw_engine engine;
    struct lw_processes_options options;
    struct lw_processes_worker *workers;
    uint32_t worker_count;
    uint32_t wanted; /* the first so many are to be there; it never falls */
    size_t ring_bytes;
    struct lw_queue waiting;           /* found no room, or run again; on any worker */
    uint32_t waiting_count;            /* with what waits for one worker */
    struct lw_queue suspects;          /* run again alone */
    struct lw_processes_worker *alone; /* which runs a suspect */
    uint64_t serials;
    uint64_t execution_ns; /* of a handler, smoothed; 0 not known yet */
    uint64_t good_answers;
    struct lw_processes_figures figures;
    enum lw_processes_zygote_state zygote_state;
    struct lw_processes_zygote zygote;
    struct lw_watch *control_watch;
    struct lw_watch *zygote_log_watch;
    struct lw_handler_log zygote_log;
    uint32_t failures; /* to start, in a row */
    uint64_t retry_at;
    bool is_stopping;
    uint64_t stop_deadline;
    struct lw_timer start_timer;
    struct lw_timer load_timer;
    struct lw_timer stop_timer;
    struct lw_timer flush_timer;
    struct lw_timer memory_timer;
    struct lw_timer sample_timer;
    char zygote_path[4096];
    char *name;
    char *path;
    char *symbol;
    char *service;
    char *pipeline;
    struct lw_property *properties; /* of the plug-in; their texts too */
};

static inline struct lw_delivery *
lw_processes_delivery_in(struct lw_queue_node *node)
{
    return LW_CONTAINER(node, struct lw_delivery, link);
}

/* Its result is not wanted; a batch's only when none of its members' is. */
static inline bool
lw_processes_is_cancelled(const struct lw_delivery *delivery)
{
    return delivery->is_batch
               ? delivery->task_cancelled >= delivery->task_count
               : atomic_load_explicit(&delivery->is_cancelled, memory_order_relaxed);
}

/* -- choice.c -- */
/* Counts what workers would take now. */
void lw_processes_update_room(struct lw_processes *processes);
/* Hands one over, or lets it wait here. */
void lw_processes_take(struct lw_processes *processes, struct lw_delivery *delivery);
/* Where it waits for a worker. */
struct lw_queue *
lw_processes_queue_of(struct lw_processes *processes, const struct lw_delivery *delivery);
/* Something changed at a worker: what waits goes on, and room is counted anew. */
void lw_processes_go_on(struct lw_processes *processes);
/* Without a zygote, at the end of a worker: what waits for it goes to another, or back. */
void lw_processes_move_on(struct lw_processes_worker *worker);
void lw_processes_on_memory_timer(struct lw_timer *timer, uint64_t now);

/* -- supply.c -- */
/* The processor that this worker is bound to; -1: none. */
int32_t lw_processes_cpu_of(const struct lw_processes *processes, uint32_t index);
/* Starts what may be started now: the zygote, then workers. */
void lw_processes_start_workers(struct lw_processes *processes);
/* As many again, when messages wait at all that there are, or find no room there. */
void lw_processes_grow(struct lw_processes *processes);
/* The handler cannot start: nobody is charged, and it is tried again later. */
void lw_processes_fail(struct lw_processes *processes, const struct lw_error *error,
                       const struct lw_handler_log *log);
void lw_processes_end_zygote(struct lw_processes *processes);
void lw_processes_on_start_timer(struct lw_timer *timer, uint64_t now);
void lw_processes_on_load_timer(struct lw_timer *timer, uint64_t now);

/* -- limits.c -- */
/* Can what is asked for be watched? */
enum lw_status
lw_processes_limits_check(struct lw_processes *processes, struct lw_error *ret_error);
/* There is a worker again. */
void lw_processes_limits_watch(struct lw_processes *processes);
void lw_processes_on_sample_timer(struct lw_timer *timer, uint64_t now);

/* -- blame.c -- */
void lw_processes_give_back(struct lw_processes *processes, struct lw_delivery *delivery,
                            const char *reason);
void lw_processes_give_back_all(struct lw_processes *processes, const char *reason);
/* It can never be handed over. */
void lw_processes_refuse_large(struct lw_processes *processes, struct lw_delivery *delivery);
/* A process ended: charges, gives back or sets waiting what was open. */
void lw_processes_on_end(struct lw_processes_worker *worker);

/* -- engine.c -- */
void lw_processes_on_ready(struct lw_processes_worker *worker);
/* It has answered all that it held and was to go, or it may be told to go now. */
void lw_processes_on_drained(struct lw_processes_worker *worker);

#endif
