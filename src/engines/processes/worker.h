/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The owner's side of one worker process: its memory, its descriptors, what it holds.
 *
 *   IDLE      no process                                          next: STARTING
 *   STARTING  ordered from the zygote, opens its handler          next: READY, ENDING, IDLE
 *   READY     takes messages                                      next: LEAVING, ENDING, IDLE
 *   LEAVING   holds nothing and was told to go                    next: ENDING, IDLE
 *   ENDING    was sent a signal; its end is awaited               next: IDLE
 *
 * What it holds is a row of deliveries in the order of handing over, and it answers in that order;
 * they are named by numbers from 1 that never leave our own memory as pointers. Whatever is read
 * from shared memory is read once and held against what may be; a worker that fails that is killed.
 */
#ifndef LW_ENGINES_PROCESSES_WORKER_H
#define LW_ENGINES_PROCESSES_WORKER_H

#include "base/host.h"
#include "core/delivery.h"
#include "engines/common/handler_log.h"
#include "engines/processes/control.h"
#include "engines/processes/engine.h"
#include "engines/processes/record.h"
#include "engines/processes/shared.h"

struct lw_processes;
struct lw_partition;

enum lw_processes_state {
    LW_PROCESSES_IDLE,
    LW_PROCESSES_STARTING,
    LW_PROCESSES_TAKING, /* READY above */
    LW_PROCESSES_LEAVING,
    LW_PROCESSES_ENDING
};

enum lw_processes_cause {
    LW_PROCESSES_BY_ITSELF, /* a crash, an exit, a kill by somebody else */
    LW_PROCESSES_BY_LEAVING,
    LW_PROCESSES_BY_TIMEOUT,
    LW_PROCESSES_BY_START, /* it did not open its handler */
    LW_PROCESSES_BY_STOP,
    LW_PROCESSES_BY_LIMIT, /* it used more memory than it may */
    LW_PROCESSES_BY_BREACH /* it wrote what it must not */
};

/* What is known of the end of a process. */
struct lw_processes_end {
    enum lw_processes_cause cause;
    bool is_known; /* status and signal */
    int status;
    int signal;
    bool was_ready;
    bool has_started; /* its oldest open message was being handled */
    int fork_failed;  /* an errno: there was no process */
    char why[200];
};

/* A context that its process knows. */
struct lw_processes_known {
    const struct lw_partition *partition;
    uint64_t generation;
    bool has_prefix;
};

enum { LW_PROCESSES_LINE_MAX = 1024 };

struct lw_processes_worker {
    struct lw_processes *owner;
    uint32_t index;
    enum lw_processes_state state;
    uint64_t serial; /* of the process */
    pid_t pid;       /* 0: the zygote has not said it yet */
    int pidfd;       /* -1: none */
    int wake;        /* each wakes the other by it */
    int socket;
    int log_fd;
    struct lw_watch *pid_watch;
    struct lw_watch *wake_watch;
    struct lw_watch *socket_watch;
    struct lw_watch *log_watch;

    struct lw_processes_shared shared;
    uint64_t request_head; /* written, published up to `published` */
    uint64_t published;
    uint64_t request_tail; /* last seen */
    uint64_t answer_tail;
    bool is_owner_asleep; /* the worker was asked to wake us */

    struct lw_delivery **open; /* by number, in a ring of a power of two */
    uint64_t open_mask;
    uint64_t first;                 /* number of the oldest open one */
    uint64_t next;                  /* number of the next one */
    struct lw_delivery *unanswered; /* of the oldest, a batch: the member whose answer is next;
                                       NULL: its first */
    uint64_t published_next;
    uint64_t unflushed_since; /* ns; of the oldest that is not published */
    uint64_t front_since;     /* ns; when the oldest open one became the oldest */
    uint64_t probe;           /* number whose times are taken; 0 none */
    uint64_t probe_published_at;
    struct lw_processes_known known[LW_PROCESSES_CONTEXTS];
    struct lw_queue backlog; /* pinned to it and not handed over */
    uint64_t given;          /* to this process */
    uint64_t given_max;
    uint64_t answered;
    uint64_t starts;
    bool is_alone; /* runs a suspect and nothing else */
    int item_fd;   /* came before its answer; -1 none, or LW_PROCESSES_FD_LOST */
    uint64_t item_number;
    int later_fd; /* came behind it, while its answer is on its way; -1 none, or lost */
    uint64_t later_number;

    bool is_over;  /* the process has ended */
    bool has_exit; /* and the zygote has said how */
    struct lw_processes_end end;
    struct lw_error refusal;
    struct lw_timer timer; /* of the state: start, attempt, next step of ending */
    uint64_t kill_at;
    uint64_t word_due; /* until then the zygote may say what became of it; LW_NEVER not asked */
    bool is_term_sent;
    struct lw_handler_log log;
    char line[LW_PROCESSES_LINE_MAX];
    size_t line_size;
};

/* -- worker.c: its life -- */
bool lw_processes_worker_init(struct lw_processes_worker *worker, struct lw_processes *owner,
                              uint32_t index);
/* Kills and forgets; nothing is called back. */
void lw_processes_worker_deinit(struct lw_processes_worker *worker);
/* IDLE -> STARTING; or an errno, 0 is success. */
int lw_processes_worker_start(struct lw_processes_worker *worker);
/* What the zygote says of its process. `pidfd` is taken; -1 none. */
void lw_processes_worker_on_note(struct lw_processes_worker *worker,
                                 const struct lw_processes_note *note, int pidfd);
/* The zygote is gone: nobody will say how its process ends. */
void lw_processes_worker_on_orphaned(struct lw_processes_worker *worker);
/* Its socket is closed: without a pidfd and a zygote that is its end, when it is looked for. */
void lw_processes_worker_on_closed(struct lw_processes_worker *worker);
void lw_processes_worker_look_for_end(struct lw_processes_worker *worker);
/* Holds nothing: tells it to go. */
void lw_processes_worker_leave(struct lw_processes_worker *worker);
/* Sends KILL (or first TERM, when `kill_at` lies ahead). An ending worker keeps its cause. */
void lw_processes_worker_end(struct lw_processes_worker *worker, enum lw_processes_cause cause,
                             uint64_t kill_at, const char *why);
/* It broke a rule of the shared memory. */
void lw_processes_worker_breach(struct lw_processes_worker *worker, const char *what);
/* Arms the timer for the oldest message's deadline. */
void lw_processes_worker_watch_clock(struct lw_processes_worker *worker);

/* -- requests.c: handing over -- */
enum lw_processes_given {
    LW_PROCESSES_GIVEN,
    LW_PROCESSES_FULL,      /* no room in the ring, or for its memory, now */
    LW_PROCESSES_TOO_LARGE, /* never */
    LW_PROCESSES_NO_MEMORY
};
enum lw_processes_given
lw_processes_worker_give(struct lw_processes_worker *worker, struct lw_delivery *delivery);
/* Makes all that was given visible to the process and wakes it. */
void
lw_processes_worker_publish(struct lw_processes_worker *worker, enum lw_processes_flush reason);
/* Publishes if its time has come; returns when it will, LW_NEVER when nothing waits. */
uint64_t lw_processes_worker_flush(struct lw_processes_worker *worker);

/* -- answers.c: taking back -- */
/* Takes all answers that are there; how many. */
uint32_t lw_processes_worker_drain(struct lw_processes_worker *worker);
/* Asks to be woken by the next answer; true when there is one already. */
bool lw_processes_worker_fall_asleep(struct lw_processes_worker *worker);
void lw_processes_worker_on_socket(struct lw_processes_worker *worker);

static inline uint32_t
lw_processes_open_count(const struct lw_processes_worker *worker)
{
    return (uint32_t)(worker->next - worker->first);
}

static inline struct lw_delivery **
lw_processes_open_at(const struct lw_processes_worker *worker, uint64_t number)
{
    return &worker->open[number & worker->open_mask];
}

#endif
