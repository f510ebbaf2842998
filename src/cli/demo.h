/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of `laneway demo`: a broker in memory with six lanes (live and batch, each high, low
 * and retry), somebody who sends bursts (demo_load.c), a handler that waits like a database and
 * sometimes fails (demo_load.c), and what is shown (demo_view.c). One thread.
 */
#ifndef LW_CLI_DEMO_H
#define LW_CLI_DEMO_H

#include "base/histogram.h"
#include "brokers/memory/hub.h"
#include "cli/command.h"
#include "cli/signals.h"
#include "service/report.h"

enum {
    DEMO_LANES = 6,
    DEMO_EVENTS = 5,
    DEMO_KEYS = 40,          /* customers of each lane */
    DEMO_BACKLOG_MAX = 1000, /* of one topic; above it the sender waits */
    DEMO_SLOTS_MAX = 1000
};

#define DEMO_PREFIX "orders"
#define DEMO_DEAD "orders_dead"
#define DEMO_REPLY "order_confirmations"

struct demo_lane {
    char topic[32];
    int32_t priority;
    unsigned share; /* of what is sent, in percent */
    bool is_live;   /* bursts hit it */
    double owed;    /* messages to send, a fraction kept */
    uint64_t sent;
    uint64_t handled;
    uint64_t retried;
    uint64_t dead;
    uint64_t last_handled;          /* at the last frame */
    struct lw_histogram wait_ms;    /* from publishing to the start of the handler */
    const void *running[DEMO_KEYS]; /* by key: who runs now; proves the order */
};

struct demo_options {
    long long rate; /* messages a second, on average */
    long long slots;
    int64_t for_ms; /* time of sending; 0: until Ctrl-C */
    long long seed;
};

struct demo {
    struct lw_cli *cli;
    struct demo_options options;
    struct lw_dispatcher *dispatcher;
    struct lw_memory_hub *hub;
    struct lw_report report;
    struct lw_signals signals;
    struct demo_lane lanes[DEMO_LANES];
    struct demo_call *calls; /* free ones */
    struct lw_loop_timer *send_timer;
    struct lw_loop_timer *frame_timer;
    bool is_terminal;
    bool is_sending;
    bool is_closing;
    uint64_t started_at; /* ns */
    uint64_t sent_at;    /* ns, the last time something was sent */
    uint64_t framed_at;
    uint64_t next_id;
    uint64_t overlaps; /* two of one key at once: must stay 0 */
    uint64_t random;
    char events[DEMO_EVENTS][160]; /* the last log lines; a ring */
    unsigned event_count;
};

/* -- demo_load.c -- */
bool demo_load_init(struct demo *demo);
void demo_load_deinit(struct demo *demo);
/* The asynchronous handler; `user` is the demo. */
void demo_handle(struct lw_delivery *delivery, void *user);
/* Sends what is due since the last call. */
void demo_send(struct demo *demo);
/* Messages that are sent and not yet done, everywhere. */
uint64_t demo_backlog(const struct demo *demo);

/* -- demo_view.c -- */
/* Redraws the terminal. */
void demo_draw(struct demo *demo);
void demo_enter_screen(struct demo *demo);
void demo_leave_screen(struct demo *demo);
/* Appends the summary to cli->out; false when something was lost or out of order. */
bool demo_sum_up(struct demo *demo);
/* Keeps the event for the screen; an lw_log_fn. */
void demo_log(enum lw_log_level level, const char *event, const char *text, const char *fields,
              void *user);

#endif
