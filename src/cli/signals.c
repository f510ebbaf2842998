/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals by a descriptor on the loop: nothing is interrupted, nothing runs in a signal handler.
 * Loop thread, but for lw_signals_block.
 */
#include "cli/signals.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/error.h"

static void
fill(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGHUP);
}

void
lw_signals_block(void)
{
    sigset_t set;
    fill(&set);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static void
on_signal(struct lw_signals *signals)
{
    signals->count++;
    if (signals->count > 1) {
        lw_dispatcher_request_abort(signals->dispatcher);
        return;
    }
    lw_dispatcher_request_close(signals->dispatcher);
    if (signals->on_first) {
        signals->on_first(signals->user);
    }
}

static void
on_readable(int fd, int events, void *user)
{
    struct lw_signals *signals = user;
    struct signalfd_siginfo info;
    (void)events;
    while (read(fd, &info, sizeof info) == (ssize_t)sizeof info) {
        signals->last = (int)info.ssi_signo;
        on_signal(signals);
    }
}

enum lw_status
lw_signals_watch(struct lw_signals *signals, struct lw_dispatcher *dispatcher,
                 struct lw_error *ret_error)
{
    sigset_t set;
    fill(&set);
    signals->dispatcher = dispatcher;
    signals->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals->fd < 0) {
        return lw_error_set(ret_error, LW_STATUS_SYSTEM, "", "cannot watch for signals: %s",
                            strerrordesc_np(errno));
    }
    signals->watch = lw_loop_watch(dispatcher, signals->fd, LW_READABLE, on_readable, signals);
    if (!signals->watch) {
        close(signals->fd);
        return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "out of memory");
    }
    return LW_STATUS_OK;
}

void
lw_signals_unwatch(struct lw_signals *signals)
{
    lw_loop_watch_cancel(signals->watch);
    signals->watch = NULL;
    close(signals->fd);
}
