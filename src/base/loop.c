/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The libuv host. A turn is: sleep (or only look) in libuv, where watches are called; then
 * lw_host_turn. One timerfd holds the next deadline, one eventfd is written by posters of mail
 * while we sleep, and by ourselves when a foreign loop must call again at once.
 *
 * Invariants: the timerfd is never armed later than the next deadline; it may be earlier by up to
 * REARM_SLACK (a wake-up that finds nothing), which saves a system call per turn when deadlines
 * only move away. Between turns the mailbox knows that we sleep, so that mail makes the
 * descriptor readable. Loop thread only, except what the mailbox allows.
 */
#include "base/loop.h"

#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <uv.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"

#define REARM_SLACK (1000 * LW_MS)

struct lw_watch {
    uv_poll_t poll;
    struct lw_loop *loop;
    lw_watch_fn fn; /* NULL once unwatched: the memory waits for libuv's close callback */
    void *user;
    int fd;
};

struct lw_loop {
    struct lw_host host;
    uv_loop_t uv;
    struct lw_watch wake;     /* the eventfd */
    struct lw_watch deadline; /* the timerfd */
    uint64_t hooks_due;       /* what the hooks of the last turn want */
    uint64_t armed;           /* what the timerfd is set to; 0: it has fired, LW_NEVER: off */
    uint32_t watch_count;
    uint32_t lookup_count; /* names that are being looked up by a thread of libuv */
    bool is_stopped;
    bool is_fresh;     /* host.now was read since the last sleep */
    bool is_signalled; /* the eventfd is readable by our own hand */
    bool has_unsynced; /* a watch changed: libuv tells the kernel only when it polls next */
    bool is_signal_blocked;
    bool is_driving; /* inside of a turn or of a watch's call */
};

static struct lw_loop *
loop_of(struct lw_host *host)
{
    return LW_CONTAINER(host, struct lw_loop, host);
}

static uint64_t
refresh(struct lw_host *host)
{
    host->now = lw_clock_monotonic_ns();
    loop_of(host)->is_fresh = true;
    return host->now;
}

static int64_t
wall_ms(struct lw_host *host)
{
    (void)host;
    return lw_clock_wall_ms();
}

/* Makes our own descriptor readable until the next turn. */
static void
signal_self(struct lw_loop *loop)
{
    uint64_t one = 1;
    if (!loop->is_signalled) {
        ssize_t written = write(loop->wake.fd, &one, sizeof one);
        lw_assert(written > 0 || errno == EAGAIN);
        loop->is_signalled = true;
    }
}

/* Something changed: from outside of a turn a foreign loop, or our own next sleep, must hear of it. */
static void
wake(struct lw_host *host)
{
    struct lw_loop *loop = loop_of(host);
    if (!loop->is_driving) {
        signal_self(loop);
    }
}

/* -- Watches ----------------------------------------------------------------------------------- */

static void
on_poll(uv_poll_t *poll, int status, int uv_events)
{
    struct lw_watch *watch = LW_CONTAINER(poll, struct lw_watch, poll);
    struct lw_loop *loop = watch->loop;
    int events = 0;
    events |= uv_events & (UV_READABLE | UV_DISCONNECT) ? LW_READABLE : 0;
    events |= uv_events & UV_WRITABLE ? LW_WRITABLE : 0;
    if (status < 0) {
        events = LW_READABLE | LW_WRITABLE; /* the owner's read or write will tell the error */
    }
    if (!loop->is_fresh) {
        refresh(&loop->host);
    }
    if (watch->fn) {
        watch->fn(watch->fd, events, watch->user);
    }
}

static void
set_events(struct lw_watch *watch, int events)
{
    int uv_events = 0;
    uv_events |= events & LW_READABLE ? UV_READABLE : 0;
    uv_events |= events & LW_WRITABLE ? UV_WRITABLE : 0;
    int failed = uv_events ? uv_poll_start(&watch->poll, uv_events, on_poll)
                           : uv_poll_stop(&watch->poll);
    lw_assert(!failed);
    watch->loop->has_unsynced = true;
    wake(&watch->loop->host);
}

static bool
open_watch(struct lw_loop *loop, struct lw_watch *watch, int fd, lw_watch_fn fn, void *user)
{
    watch->loop = loop;
    watch->fd = fd;
    watch->fn = fn;
    watch->user = user;
    return uv_poll_init(&loop->uv, &watch->poll, fd) == 0;
}

static struct lw_watch *
watch_fd(struct lw_host *host, int fd, int events, lw_watch_fn fn, void *user)
{
    struct lw_watch *watch = lw_alloc(sizeof *watch);
    if (watch && !open_watch(loop_of(host), watch, fd, fn, user)) {
        lw_free(watch);
        return NULL;
    }
    if (watch) {
        watch->loop->watch_count++;
        set_events(watch, events);
    }
    return watch;
}

static void
rewatch_fd(struct lw_watch *watch, int events)
{
    set_events(watch, events);
}

static void
on_watch_closed(uv_handle_t *handle)
{
    struct lw_watch *watch = LW_CONTAINER(handle, struct lw_watch, poll);
    watch->loop->watch_count--;
    lw_free(watch);
}

static void
unwatch_fd(struct lw_watch *watch)
{
    watch->fn = NULL;
    watch->loop->has_unsynced = true;
    wake(&watch->loop->host);
    uv_close((uv_handle_t *)&watch->poll, on_watch_closed);
}

/* -- Names ------------------------------------------------------------------------------------- */

struct name_lookup {
    uv_getaddrinfo_t request;
    struct lw_loop *loop;
    struct lw_resolve *resolve; /* NULL: nobody waits any more */
};

static void
on_resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *addresses)
{
    struct name_lookup *lookup = LW_CONTAINER(request, struct name_lookup, request);
    struct lw_loop *loop = lookup->loop;
    struct lw_resolve *resolve = lookup->resolve;
    lw_free(lookup);
    loop->lookup_count--;
    if (!loop->is_fresh) {
        refresh(&loop->host);
    }
    if (resolve) {
        const char *failure = status != 0 || !addresses ? uv_strerror(status) : NULL;
        lw_resolve_answer(resolve, failure ? NULL : addresses, failure);
    }
    uv_freeaddrinfo(addresses);
}

static bool
resolve_name(struct lw_host *host, struct lw_resolve *resolve, const char *name)
{
    struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
    struct name_lookup *lookup = lw_alloc(sizeof *lookup);
    if (!lookup) {
        return false;
    }
    lookup->loop = loop_of(host);
    lookup->resolve = resolve;
    if (uv_getaddrinfo(&lookup->loop->uv, &lookup->request, on_resolved, name, NULL, &hints)) {
        lw_free(lookup);
        return false;
    }
    resolve->job = lookup;
    lookup->loop->lookup_count++;
    return true;
}

/* The thread may be in the middle of it: its answer is then thrown away. */
static void
unresolve_name(struct lw_host *host, struct lw_resolve *resolve)
{
    struct name_lookup *lookup = resolve->job;
    (void)host;
    lookup->resolve = NULL;
    (void)uv_cancel((uv_req_t *)&lookup->request);
}

static const struct lw_host_ops loop_ops = {
    .wall_ms = wall_ms,
    .refresh = refresh,
    .watch = watch_fd,
    .rewatch = rewatch_fd,
    .unwatch = unwatch_fd,
    .wake = wake,
    .resolve = resolve_name,
    .unresolve = unresolve_name,
};

/* -- Waking ------------------------------------------------------------------------------------ */

static void
on_wake(int fd, int events, void *user)
{
    struct lw_loop *loop = user;
    uint64_t count = 0;
    (void)events;
    ssize_t got = read(fd, &count, sizeof count);
    lw_assert(got > 0 || errno == EAGAIN || errno == EINTR);
    loop->is_signalled = false;
}

/* Setting the timerfd anew makes it unreadable, so it need not be read. */
static void
on_deadline(int fd, int events, void *user)
{
    (void)fd;
    (void)events;
    ((struct lw_loop *)user)->armed = 0;
}

static void
set_timer(struct lw_loop *loop, uint64_t due)
{
    bool is_off = due == LW_NEVER;
    struct itimerspec when = { .it_value = { 0, 0 } };
    if (loop->armed != 0 && due >= loop->armed && due - loop->armed <= REARM_SLACK) {
        return;
    }
    if (!is_off) {
        when.it_value.tv_sec = (time_t)(due / (1000 * LW_MS));
        when.it_value.tv_nsec = (long)(due % (1000 * LW_MS));
    }
    int failed = timerfd_settime(loop->deadline.fd, TFD_TIMER_ABSTIME, &when, NULL);
    lw_assert(!failed);
    loop->armed = due;
}

/* True when nothing is due before `until`: the timer is set and posters will wake us. */
static bool
may_sleep(struct lw_loop *loop, uint64_t until)
{
    uint64_t due = lw_host_next(&loop->host, loop->hooks_due);
    due = until < due ? until : due;
    if (due <= loop->host.now || lw_mailbox_sleep(&loop->host.mailbox)) {
        return false;
    }
    set_timer(loop, due);
    return true;
}

/* -- Turns ------------------------------------------------------------------------------------- */

/* A pipe that its reader closed is an error of write, not the end of the process. */
static void
block_sigpipe(struct lw_loop *loop)
{
    if (!loop->is_signal_blocked) {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGPIPE);
        int failed = pthread_sigmask(SIG_BLOCK, &set, NULL);
        lw_assert(!failed);
        loop->is_signal_blocked = true;
    }
}

/* Lets libuv sleep or only look, and call watches. */
static void
look(struct lw_loop *loop, uv_run_mode mode)
{
    loop->is_driving = true;
    loop->is_fresh = false;
    loop->has_unsynced = false;
    uv_run(&loop->uv, mode);
    lw_mailbox_awake(&loop->host.mailbox);
    loop->is_driving = false;
}

static void
take_turn(struct lw_loop *loop, uv_run_mode mode)
{
    block_sigpipe(loop);
    look(loop, mode);
    loop->is_driving = true;
    loop->hooks_due = lw_host_turn(&loop->host);
    loop->is_driving = false;
}

void
lw_loop_turn_until(struct lw_loop *loop, uint64_t deadline)
{
    take_turn(loop, may_sleep(loop, deadline) ? UV_RUN_ONCE : UV_RUN_NOWAIT);
}

void
lw_loop_poll(struct lw_loop *loop)
{
    take_turn(loop, UV_RUN_NOWAIT);
    if (!may_sleep(loop, LW_NEVER) || loop->has_unsynced) {
        signal_self(loop);
    }
}

void
lw_loop_run(struct lw_loop *loop)
{
    while (!loop->is_stopped) {
        lw_loop_turn_until(loop, LW_NEVER);
    }
    loop->is_stopped = false;
}

void
lw_loop_stop(struct lw_loop *loop)
{
    loop->is_stopped = true;
}

int
lw_loop_fd(struct lw_loop *loop)
{
    return uv_backend_fd(&loop->uv);
}

struct lw_host *
lw_loop_host(struct lw_loop *loop)
{
    return &loop->host;
}

struct lw_loop *
lw_loop_of(struct lw_host *host)
{
    return host->ops == &loop_ops ? LW_CONTAINER(host, struct lw_loop, host) : NULL;
}

/* -- Making and ending --------------------------------------------------------------------------- */

static void
close_fd(int fd)
{
    if (fd >= 0) {
        close(fd);
    }
}

/* Watches our own two descriptors; libuv tells the kernel in the first look. */
static bool
open_descriptors(struct lw_loop *loop)
{
    int wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (wake_fd < 0 || timer_fd < 0 || !open_watch(loop, &loop->wake, wake_fd, on_wake, loop)) {
        goto fail;
    }
    if (!open_watch(loop, &loop->deadline, timer_fd, on_deadline, loop)) {
        uv_close((uv_handle_t *)&loop->wake.poll, NULL);
        goto fail;
    }
    set_events(&loop->wake, LW_READABLE);
    set_events(&loop->deadline, LW_READABLE);
    return true;
fail:
    close_fd(wake_fd);
    close_fd(timer_fd);
    return false;
}

/* Runs libuv until it has called back every closed handle. */
static void
close_uv(struct lw_loop *loop)
{
    int failed = UV_EBUSY;
    for (int i = 0; i < 16 && failed == UV_EBUSY; i++) {
        uv_run(&loop->uv, UV_RUN_NOWAIT);
        failed = uv_loop_close(&loop->uv);
    }
    lw_assert(!failed);
}

enum lw_status
lw_loop_create(uint64_t seed, struct lw_loop **ret_loop)
{
    struct lw_loop *loop = lw_alloc(sizeof *loop);
    if (!loop) {
        return LW_STATUS_NO_MEMORY;
    }
    if (uv_loop_init(&loop->uv) != 0) {
        lw_free(loop);
        return LW_STATUS_SYSTEM;
    }
    if (!open_descriptors(loop)) {
        close_uv(loop);
        lw_free(loop);
        return LW_STATUS_SYSTEM;
    }
    loop->armed = LW_NEVER;
    loop->hooks_due = LW_NEVER;
    lw_host_init(&loop->host, &loop_ops, lw_clock_monotonic_ns(), seed ? seed : lw_clock_seed(),
                 loop->wake.fd);
    look(loop, UV_RUN_NOWAIT);
    loop->is_signalled = false;
    signal_self(loop); /* the first turn is due at once */
    *ret_loop = loop;
    return LW_STATUS_OK;
}

void
lw_loop_destroy(struct lw_loop *loop)
{
    if (!loop) {
        return;
    }
    uv_close((uv_handle_t *)&loop->wake.poll, NULL);
    uv_close((uv_handle_t *)&loop->deadline.poll, NULL);
    uv_run(&loop->uv, UV_RUN_NOWAIT);
    lw_assert(loop->watch_count == 0);
    while (loop->lookup_count >
           0) { /* threads of libuv hold them; the system's time-out ends */
        uv_run(&loop->uv, UV_RUN_ONCE);
    }
    close_uv(loop);
    close_fd(loop->wake.fd);
    close_fd(loop->deadline.fd);
    lw_free(loop);
}
