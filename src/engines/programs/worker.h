/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One worker: a slot for a process that speaks lines or frames, and the messages it holds.
 *
 *   IDLE      no process                          next: STARTING
 *   STARTING  spawned, hello sent                 next: READY, ENDING (no ready in time, against
 *                                                 the protocol, stop), IDLE (it ended)
 *   READY     takes and answers messages          next: ENDING (timeout, protocol, stop, it closed
 *                                                 its output), IDLE (it ended)
 *   ENDING    is being ended: TERM, later KILL    next: IDLE
 *
 * The worker owns its process, pipes, buffers and clocks. Who is to blame for an end, and what
 * becomes of the messages that were open, the engine decides in `on_end`. Loop thread only.
 */
#ifndef LW_ENGINES_PROGRAMS_WORKER_H
#define LW_ENGINES_PROGRAMS_WORKER_H

#include "engines/common/handler_log.h"
#include "engines/programs/answer.h"
#include "engines/programs/launch.h"
#include "engines/programs/process.h"
#include "engines/programs/protocol.h"
#include "engines/programs/tasks.h"

#define LW_PROGRAMS_KILL_AFTER (5000 * LW_MS) /* TERM */

enum lw_programs_state {
    LW_PROGRAMS_IDLE,
    LW_PROGRAMS_STARTING,
    LW_PROGRAMS_READY,
    LW_PROGRAMS_ENDING
};

enum lw_programs_cause {
    LW_PROGRAMS_BY_ITSELF, /* it exited, crashed, or closed its output */
    LW_PROGRAMS_BY_START,  /* it did not become ready, or not in our protocol */
    LW_PROGRAMS_BY_TIMEOUT,
    LW_PROGRAMS_BY_LIMIT, /* it used more than it may */
    LW_PROGRAMS_BY_PROTOCOL,
    LW_PROGRAMS_BY_STOP
};

/* Why and how a worker's process ended. */
struct lw_programs_end {
    enum lw_programs_cause cause;
    struct lw_programs_exit exit;
    bool was_ready;
    bool has_spoken;   /* it said anything of the protocol */
    uint64_t answered; /* messages, in its life */
    char why[160];     /* a phrase such as "exit 3" or "answered id 7, which is not open" */
};

struct lw_programs_config {
    struct lw_host *host;
    struct lw_programs_tasks *tasks;
    const struct lw_programs_protocol *protocol;
    struct lw_batch_options batch; /* of size 0: one message at a time */
    const char *service;
    const char *handler;
    struct lw_programs_command command;
    uint32_t window;
    int64_t timeout_ms;       /* 0: none */
    int64_t start_timeout_ms; /* 0: none */
    void *user;
    void (*on_ready)(struct lw_programs_worker *worker);
    /* Its answer is in the delivery; the task is in no list any more. */
    void (*on_answer)(struct lw_programs_worker *worker, struct lw_programs_task *task);
    void (*on_stray)(struct lw_programs_worker *worker);
    /* It takes no more messages: it is ENDING. */
    void (*on_ending)(struct lw_programs_worker *worker);
    /* The worker is IDLE; its open tasks are still in `open` and must be taken out. */
    void (*on_end)(struct lw_programs_worker *worker, const struct lw_programs_end *end);
};

struct lw_programs_worker {
    const struct lw_programs_config *config;
    uint32_t index;
    enum lw_programs_state state;
    struct lw_programs_process process;
    struct lw_watch *input_watch; /* waits for room in the pipe; NULL when there was no need */
    struct lw_watch *output_watch;
    struct lw_watch *answers_watch;
    struct lw_watch *errors_watch;
    struct lw_watch *exit_watch;
    struct lw_programs_reader output;
    struct lw_programs_reader answers;
    struct lw_programs_reader errors;
    struct lw_handler_log log;
    struct lw_programs_sender sender;
    bool is_closing;   /* its input is to be closed once all is written */
    bool is_over;      /* its process has ended; what it left is being read */
    bool uses_answers; /* the protocol is on descriptor 3, stdout is text */
    bool is_concurrent;
    bool has_spoken;     /* anything of the protocol */
    bool is_cut_short;   /* its last words were half a frame */
    struct lw_list open; /* lw_programs_task.link, in the order of handing over */
    uint32_t open_count;
    size_t open_bytes_max; /* the longest request since nothing was open: bounds answers */
    uint64_t answered;
    uint64_t starts;
    struct lw_programs_sample sample;
    struct lw_timer timer;      /* of the state: start, attempts, the next step of ending */
    struct lw_timer look_timer; /* without a pidfd: has it ended? */
    bool is_term_sent;
    uint64_t kill_at;
    struct lw_programs_end end; /* what is known of it so far */
};

void lw_programs_worker_init(struct lw_programs_worker *worker,
                             const struct lw_programs_config *config, uint32_t index);
/* Kills and reaps; nothing is called back. */
void lw_programs_worker_deinit(struct lw_programs_worker *worker);
/* IDLE -> STARTING; or an errno, 0 is success. */
int lw_programs_worker_start(struct lw_programs_worker *worker);
/* Messages that it would take now. */
uint32_t lw_programs_worker_room(const struct lw_programs_worker *worker);
/* Hands a task over; false without memory. Written by the next flush. */
bool lw_programs_worker_give(struct lw_programs_worker *worker, struct lw_programs_task *task);
void lw_programs_worker_flush(struct lw_programs_worker *worker);
/* In on_end: the process has surely not read this task's line. */
bool lw_programs_worker_is_unread(const struct lw_programs_worker *worker,
                                  const struct lw_programs_task *task);
/* Finish what you hold, then exit. */
void lw_programs_worker_close_input(struct lw_programs_worker *worker);
/* TERM now, KILL at `kill_at`. A worker that is ending already keeps its cause. */
void lw_programs_worker_end(struct lw_programs_worker *worker, enum lw_programs_cause cause,
                            uint64_t kill_at, const char *why);

/* -- For channels.c ------------------------------------------------------------------------- */

static inline struct lw_programs_task *
lw_programs_worker_first_open(const struct lw_programs_worker *worker)
{
    struct lw_list *node = lw_list_first(&worker->open);
    return node ? LW_CONTAINER(node, struct lw_programs_task, link) : NULL;
}

/* The task's attempt begins now. */
void lw_programs_worker_start_clock(struct lw_programs_worker *worker,
                                    struct lw_programs_task *task);
/* It will say nothing more: it gets a moment to exit by itself, then TERM, then KILL. */
void lw_programs_worker_end_quietly(struct lw_programs_worker *worker,
                                    enum lw_programs_cause cause, const char *why);
void lw_programs_worker_close_when_done(struct lw_programs_worker *worker);
void lw_programs_worker_unwatch(struct lw_programs_worker *worker, struct lw_watch **watch);

/* -- channels.c ----------------------------------------------------------------------------- */

/* New readers for a new process. */
void lw_programs_channels_begin(struct lw_programs_worker *worker);
bool lw_programs_channels_open(struct lw_programs_worker *worker);
/* Reads what the dead process left, its last line even without an end. */
void lw_programs_channels_drain(struct lw_programs_worker *worker);
void lw_programs_channels_close(struct lw_programs_worker *worker);
void lw_programs_channels_deinit(struct lw_programs_worker *worker);

#endif
