/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of the programs engine, for the files that share it: engine.c (the table), choice.c
 * (which worker gets what), supply.c (when processes are started), blame.c (who is charged),
 * limits.c (what a worker may use); once.c is the engine of protocol once, which shares options,
 * failures and limits.
 */
#ifndef LW_ENGINES_PROGRAMS_PROGRAMS_H
#define LW_ENGINES_PROGRAMS_PROGRAMS_H

#include <laneway/plugin.h>

#include "engines/programs/engine.h"
#include "engines/programs/launch.h"
#include "engines/programs/worker.h"

struct lw_programs {
    struct lw_engine engine;
    struct lw_programs_config config;
    struct lw_programs_worker *workers;
    uint32_t worker_count;
    struct lw_programs_tasks tasks;
    struct lw_list waiting;           /* run again, on any worker */
    struct lw_list suspects;          /* run again alone */
    struct lw_programs_worker *alone; /* which runs suspects */
    uint64_t good_answers;
    uint32_t failures; /* to start, in a row */
    uint64_t retry_at;
    bool is_proven;     /* a worker was ready since the last failure */
    bool is_stray_said; /* the warning about prints on stdout */
    bool is_stopping;
    uint64_t stop_deadline;
    struct lw_timer start_timer;
    struct lw_timer stop_timer;
    struct lw_timer memory_timer; /* room is 0 for want of memory: looks again */
    uint64_t memory_quiet_until;  /* it was said */
    uint64_t memory_tries;        /* since it was said */
    struct lw_timer sample_timer; /* armed while there is a process that has a limit */
    struct lw_programs_limits limits;
    struct lw_programs_launch launch;
    char *name;
    char *service;
    char *pipeline;
    char *directory;
    char **program;
    char **environment;
};

static inline struct lw_programs *
lw_programs_owner(const struct lw_programs_worker *worker)
{
    return worker->config->user;
}

static inline struct lw_programs_task *
lw_programs_task_in(struct lw_list *node)
{
    return LW_CONTAINER(node, struct lw_programs_task, link);
}

static inline uint32_t
lw_programs_count(const struct lw_list *list)
{
    uint32_t count = 0;
    for (const struct lw_list *node = list->next; node != list; node = node->next) {
        count++;
    }
    return count;
}

/* -- engine.c -- */
/* Of what `once` shares, too; the engine's ops, host and completions are set. */
bool lw_programs_init(struct lw_programs *programs, const char *name,
                      const struct lw_programs_options *options);
void lw_programs_deinit(struct lw_programs *programs);
/* A program may exit without reading: that is an error of write, not our end. */
void lw_programs_block_sigpipe(void);

/* -- choice.c -- */
/* Counts what ready workers would take now. */
void lw_programs_update_room(struct lw_programs *programs);
/* The ready worker that holds least; NULL: none has room. */
struct lw_programs_worker *lw_programs_least_loaded(struct lw_programs *programs);
/* Something changed at a worker: what waits goes on, and room is counted anew. */
void lw_programs_go_on(struct lw_programs *programs);
#define LW_PROGRAMS_NO_REQUEST                                                                 \
    "there is no memory to hand a message over, which waits: it is tried again every 100 ms"
/*
 * A message found no memory: nothing is taken until a timer has looked again. `what` says so in the
 * log, at most once in ten seconds.
 */
void lw_programs_wait_for_memory(struct lw_programs *programs, const char *what);
void lw_programs_on_memory_timer(struct lw_timer *timer, uint64_t now);

/* -- supply.c -- */
/* Starts what may be started now. */
void lw_programs_start_workers(struct lw_programs *programs);
/* Why a program is of no use now. */
struct lw_programs_failure {
    const char *code; /* of the catalogue of errors */
    const char *what; /* "cannot start" */
    const char *why;
    const char *help; /* what to change; NULL unknown */
    const char *last; /* lines of its output, "" none */
};
/* It cannot start, or did nothing right: nobody is charged, and it is tried again later. */
void lw_programs_fail(struct lw_programs *programs, const struct lw_programs_failure *failure);
/* The same after an errno of posix_spawn or of what it needs. */
void lw_programs_fail_spawn(struct lw_programs *programs, int failed);
void lw_programs_on_start_timer(struct lw_timer *timer, uint64_t now);

/* -- limits.c -- */
/* Tries what must be set before the program runs; may block for some milliseconds. */
enum lw_status
lw_programs_limits_open(struct lw_programs *programs, struct lw_error *ret_error);
/* A process was started: it is looked at every 250 ms, if there is a limit to look for. */
void lw_programs_limits_watch(struct lw_programs *programs);
/*
 * True when a process and its children use more than they may: sample->why says of what. `id`
 * names the message that it works on, 0 none.
 */
bool lw_programs_limits_are_over(const struct lw_programs *programs, pid_t pid, int64_t id,
                                 struct lw_programs_sample *sample);
void lw_programs_on_sample_timer(struct lw_timer *timer, uint64_t now);
void lw_programs_limits_close(struct lw_programs *programs);

/* -- blame.c -- */
/* Reports the task with the verdict that its delivery holds. */
void lw_programs_report(struct lw_programs *programs, struct lw_programs_task *task);
/* Reports every task of the list as given back: the run did not count. */
void lw_programs_give_back_all(struct lw_programs *programs, struct lw_list *list,
                               const char *reason);
void lw_programs_give_back(struct lw_programs *programs, struct lw_programs_task *task,
                           const char *reason);
/* A process ended: charges, gives back or sets waiting what was open. */
void lw_programs_on_end(struct lw_programs_worker *worker, const struct lw_programs_end *end);

#endif
