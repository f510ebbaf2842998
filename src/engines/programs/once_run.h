/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run of a program for one message, under protocol once: a process is started, reads the
 * payload on its standard input, prints a reply, and its exit code is the verdict.
 *
 *   idle      no process                              next: running
 *   running   it has its time                         next: ending (timeout, limit, stop, it
 *                                                     prints too much, or more than there is
 *                                                     memory for), idle (it ended)
 *   ending    TERM was sent, later KILL               next: idle
 *
 * The run owns its process, pipes and clocks; what its end means for the message is judged in
 * once.c. Loop thread only.
 */
#ifndef LW_ENGINES_PROGRAMS_ONCE_RUN_H
#define LW_ENGINES_PROGRAMS_ONCE_RUN_H

#include "core/delivery.h"
#include "engines/common/handler_log.h"
#include "engines/programs/launch.h"
#include "engines/programs/process.h"
#include "engines/programs/reader.h"

enum lw_once_cause {
    LW_ONCE_BY_ITSELF,
    LW_ONCE_BY_TIMEOUT,
    LW_ONCE_BY_LIMIT,  /* it used more than it may: sample.why */
    LW_ONCE_BY_OUTPUT, /* it printed more than a reply may have */
    LW_ONCE_BY_MEMORY, /* there was no memory for what it printed */
    LW_ONCE_BY_STOP
};

struct lw_once_run;

struct lw_once_config {
    struct lw_host *host;
    const char *handler;
    struct lw_programs_command command; /* its environment is that of all runs */
    int64_t timeout_ms;                 /* 0: none */
    bool has_reply;                     /* what it prints is kept; else it goes to the log */
    void *user;
    /* The process ended and is reaped; what it printed is in `output` until this returns. */
    void (*on_end)(struct lw_once_run *run, struct lw_programs_exit exit);
};

struct lw_once_run {
    const struct lw_once_config *config;
    struct lw_list link;          /* the engine's */
    struct lw_delivery *delivery; /* NULL: idle */
    struct lw_programs_process process;
    struct lw_watch *input_watch;
    struct lw_watch *output_watch;
    struct lw_watch *errors_watch;
    struct lw_watch *exit_watch;
    struct lw_programs_reader output;
    struct lw_programs_reader errors;
    struct lw_handler_log log;
    size_t written; /* of the payload */
    size_t output_max;
    enum lw_once_cause cause;
    struct lw_programs_sample sample;
    bool is_term_sent;
    uint64_t kill_at;
    struct lw_timer timer;      /* the timeout, then the next step of ending */
    struct lw_timer look_timer; /* without a pidfd: has it ended? */
};

/* Why a run could not begin. */
struct lw_once_failure {
    int code;          /* an errno */
    bool is_oversized; /* the message's own variables are too much for a process */
};

void lw_once_run_init(struct lw_once_run *run, const struct lw_once_config *config);
/* Kills and reaps; nothing is called back. */
void lw_once_run_deinit(struct lw_once_run *run);
/* idle -> running; false: *ret_failure, and the run is idle. */
bool lw_once_run_start(struct lw_once_run *run, struct lw_delivery *delivery,
                       struct lw_once_failure *ret_failure);
/* TERM now, KILL at `kill_at`. A run that is ending already keeps its cause. */
void lw_once_run_end(struct lw_once_run *run, enum lw_once_cause cause, uint64_t kill_at);
/* In on_end: what it printed. */
struct lw_bytes lw_once_run_output(const struct lw_once_run *run);

#endif
