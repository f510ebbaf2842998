/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The signals that end a command that runs a dispatcher: the first SIGINT, SIGTERM or SIGHUP asks
 * for a drain, the second for a stop at once. They are read from a descriptor on the loop; no
 * handler is installed, so nothing runs at a bad moment.
 */
#ifndef LW_CLI_SIGNALS_H
#define LW_CLI_SIGNALS_H

#include <laneway/laneway.h>

struct lw_signals {
    struct lw_dispatcher *dispatcher;
    struct lw_loop_watch *watch;
    int fd;
    int count;                    /* how many came */
    int last;                     /* the last one's number */
    void (*on_first)(void *user); /* may be NULL */
    void *user;
};

/* Keeps the signals from ending the process; before any thread is made, so that all inherit it. */
void lw_signals_block(void);
enum lw_status lw_signals_watch(struct lw_signals *signals, struct lw_dispatcher *dispatcher,
                                struct lw_error *ret_error);
void lw_signals_unwatch(struct lw_signals *signals);

#endif
