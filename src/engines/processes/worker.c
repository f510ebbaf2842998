/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of one worker: memory and descriptors, its states, clocks and end. A process has ended
 * when its pidfd says so and the zygote has said how; without the zygote the pidfd is enough, and
 * without a pidfd (an emulator) the zygote's word is. What it wrote before its end still counts.
 *
 * One timer per worker is armed for the earliest deadline that it knew of and looks again when it
 * fires, so an answer costs no timer operation.
 */
#include "engines/processes/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "engines/processes/processes.h"

enum { LOG_CHUNK = 4096, LOG_READS_MAX = 16 };
#define LEAVE_AFTER (1000 * LW_MS) /* to go by itself, before TERM */
#define KILL_AFTER (1000 * LW_MS)  /* after TERM */
#define WORD_AFTER (5000 * LW_MS)  /* so long its zygote may take to say what it must */

static void finish(struct lw_processes_worker *worker);

static struct lw_host *
host_of(const struct lw_processes_worker *worker)
{
    return worker->owner->engine.host;
}

static void
close_fd(int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd);
        *fd = -1;
    }
}

/* -- What it prints ------------------------------------------------------------------------------ */

static void
end_line(struct lw_processes_worker *worker)
{
    struct lw_bytes line = { worker->line, worker->line_size };
    lw_handler_log_line(&worker->log, line, "stderr");
    worker->line_size = 0;
}

static void
take_text(struct lw_processes_worker *worker, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\n') {
            end_line(worker);
        } else if (worker->line_size < sizeof worker->line) {
            worker->line[worker->line_size++] = text[i];
        }
    }
}

static bool
read_log(struct lw_processes_worker *worker)
{
    char chunk[LOG_CHUNK];
    for (int i = 0; i < LOG_READS_MAX; i++) {
        ssize_t got = read(worker->log_fd, chunk, sizeof chunk);
        if (got <= 0) {
            return got != 0 && (errno == EAGAIN || errno == EINTR);
        }
        take_text(worker, chunk, (size_t)got);
    }
    return true;
}

static void
unwatch(struct lw_processes_worker *worker, struct lw_watch **watch)
{
    if (*watch) {
        host_of(worker)->ops->unwatch(*watch);
        *watch = NULL;
    }
}

static void
on_log(int fd, int events, void *user)
{
    struct lw_processes_worker *worker = user;
    (void)fd;
    (void)events;
    if (!read_log(worker)) {
        unwatch(worker, &worker->log_watch);
    }
}

/* -- Clocks -------------------------------------------------------------------------------------- */

static void
arm(struct lw_processes_worker *worker, uint64_t due)
{
    if (due != LW_NEVER && (due < worker->timer.due || !lw_timer_is_armed(&worker->timer))) {
        lw_timers_arm(&host_of(worker)->timers, &worker->timer, due);
    }
}

static uint64_t
front_deadline(const struct lw_processes_worker *worker)
{
    int64_t timeout_ms = worker->owner->options.timeout_ms;
    bool has_clock = timeout_ms > 0 && worker->first < worker->published_next;
    return has_clock ? worker->front_since + (uint64_t)timeout_ms * LW_MS : LW_NEVER;
}

void
lw_processes_worker_watch_clock(struct lw_processes_worker *worker)
{
    if (worker->state == LW_PROCESSES_TAKING) {
        arm(worker, front_deadline(worker));
    }
}

/* An answer that came in time counts, though we look late. */
static void
look_for_late(struct lw_processes_worker *worker, uint64_t now)
{
    if (lw_processes_worker_drain(worker) > 0) {
        lw_host_want_turn(host_of(worker));
    }
    if (worker->state != LW_PROCESSES_TAKING) {
        return;
    }
    if (front_deadline(worker) <= now) {
        lw_processes_worker_end(worker, LW_PROCESSES_BY_TIMEOUT, now, "timed out");
    } else {
        arm(worker, front_deadline(worker));
    }
}

static void
send_signal(const struct lw_processes_worker *worker, int signal)
{
    if (worker->pidfd >= 0) {
        (void)syscall(SYS_pidfd_send_signal, worker->pidfd, signal, NULL, 0);
    } else if (worker->pid > 0 && !worker->has_exit) {
        (void)kill(worker->pid, signal);
    }
}

static void
await_word(struct lw_processes_worker *worker, uint64_t now)
{
    if (worker->word_due == LW_NEVER) {
        worker->word_due = now + WORD_AFTER;
    }
    arm(worker, worker->word_due);
}

/*
 * The next step of an end: TERM, then KILL. What is over, or was never said to have begun, waits
 * for the zygote's word.
 */
static void
press(struct lw_processes_worker *worker, uint64_t now)
{
    if (worker->is_over) {
        arm(worker, worker->word_due);
        return;
    }
    if (now >= worker->kill_at) {
        send_signal(worker, SIGKILL);
        if (worker->pid == 0) {
            await_word(worker, now);
        }
        return;
    }
    if (!worker->is_term_sent) {
        send_signal(worker, SIGTERM);
        worker->is_term_sent = worker->pid > 0;
    }
    arm(worker, worker->kill_at);
}

static void
say_late(struct lw_processes_worker *worker, uint64_t now)
{
    char duration[32];
    char why[80];
    lw_text_from_duration_ms(worker->owner->options.start_timeout_ms, duration,
                             sizeof duration);
    (void)snprintf(why, sizeof why, "it was not ready within %s", duration);
    lw_processes_worker_end(worker, LW_PROCESSES_BY_START, now, why);
}

/* A zygote that is stopped, or hangs, must not hold up what its workers held. */
static void
look_for_word(struct lw_processes_worker *worker, uint64_t now)
{
    if (now < worker->word_due) {
        arm(worker, worker->word_due);
        return;
    }
    lw_host_log(host_of(worker), LW_LOG_WARN, "handler.unheard",
                "the zygote does not say what became of a worker process",
                "handler=%s worker=%" PRIu32 " pid=%d", worker->owner->name, worker->index,
                (int)worker->pid);
    finish(worker);
}

static void
on_timer(struct lw_timer *timer, uint64_t now)
{
    struct lw_processes_worker *worker = LW_CONTAINER(timer, struct lw_processes_worker, timer);
    if (worker->word_due != LW_NEVER) {
        look_for_word(worker, now);
        return;
    }
    switch (worker->state) {
    case LW_PROCESSES_IDLE:
        return;
    case LW_PROCESSES_STARTING:
        say_late(worker, now);
        return;
    case LW_PROCESSES_TAKING:
        look_for_late(worker, now);
        return;
    case LW_PROCESSES_LEAVING:
        lw_processes_worker_end(worker, LW_PROCESSES_BY_LEAVING, now + KILL_AFTER,
                                "it did not go when it was told to");
        return;
    case LW_PROCESSES_ENDING:
        press(worker, now);
        return;
    }
}

/* -- Ending -------------------------------------------------------------------------------------- */

static void
set_cause(struct lw_processes_worker *worker, enum lw_processes_cause cause, const char *why)
{
    worker->end.cause = cause;
    worker->end.was_ready = worker->state == LW_PROCESSES_TAKING ||
                            worker->state == LW_PROCESSES_LEAVING;
    lw_text_copy(worker->end.why, sizeof worker->end.why, why);
}

void
lw_processes_worker_end(struct lw_processes_worker *worker, enum lw_processes_cause cause,
                        uint64_t kill_at, const char *why)
{
    if (worker->state == LW_PROCESSES_IDLE) {
        return;
    }
    if (worker->state != LW_PROCESSES_ENDING) {
        set_cause(worker, cause, why);
        worker->state = LW_PROCESSES_ENDING;
        worker->kill_at = kill_at;
        lw_timers_disarm(&host_of(worker)->timers, &worker->timer);
        lw_processes_update_room(worker->owner);
    } else if (kill_at < worker->kill_at) {
        worker->kill_at = kill_at;
    }
    press(worker, host_of(worker)->now);
}

void
lw_processes_worker_breach(struct lw_processes_worker *worker, const char *what)
{
    lw_host_log(host_of(worker), LW_LOG_ERROR, "handler.breach",
                "a worker process wrote what it must not; it is killed",
                "handler=%s worker=%" PRIu32 " pid=%d what=%s", worker->owner->name,
                worker->index, (int)worker->pid, what);
    lw_processes_worker_end(worker, LW_PROCESSES_BY_BREACH, 0, what);
    worker->end.cause = LW_PROCESSES_BY_BREACH; /* it is not believed any more */
}

void
lw_processes_worker_leave(struct lw_processes_worker *worker)
{
    lw_assert(worker->state == LW_PROCESSES_TAKING && worker->first == worker->next);
    set_cause(worker, LW_PROCESSES_BY_LEAVING, "it was told to go");
    worker->state = LW_PROCESSES_LEAVING;
    atomic_store_explicit(&worker->shared.words->is_leaving, 1, memory_order_seq_cst);
    (void)lw_processes_wake(worker->wake);
    lw_timers_disarm(&host_of(worker)->timers, &worker->timer);
    arm(worker, host_of(worker)->now + LEAVE_AFTER);
}

static void
release(struct lw_processes_worker *worker)
{
    unwatch(worker, &worker->pid_watch);
    unwatch(worker, &worker->wake_watch);
    unwatch(worker, &worker->socket_watch);
    unwatch(worker, &worker->log_watch);
    close_fd(&worker->pidfd);
    close_fd(&worker->wake);
    close_fd(&worker->socket);
    close_fd(&worker->log_fd);
    close_fd(&worker->item_fd);
    close_fd(&worker->later_fd);
    lw_processes_shared_close(&worker->shared);
    lw_timers_disarm(&host_of(worker)->timers, &worker->timer);
    worker->pid = 0;
}

static void
describe_exit(struct lw_processes_end *end)
{
    if (!end->is_known) {
        lw_text_copy(end->why, sizeof end->why, "it ended, nobody knows how");
    } else if (end->signal) {
        const char *name = sigabbrev_np(end->signal);
        (void)snprintf(end->why, sizeof end->why, "killed by signal %d (SIG%s)", end->signal,
                       name ? name : "?");
    } else {
        (void)snprintf(end->why, sizeof end->why, "exit %d", end->status);
    }
}

/*
 * Was its oldest message being handled? Until then its mark is the number before that one; further
 * ones are what it went on to while it was being killed. Any other mark it cannot have come by:
 * whoever writes over it must not get away uncharged, nor be charged at once for somebody else.
 */
static void
read_mark(struct lw_processes_worker *worker)
{
    uint64_t started = atomic_load_explicit(&worker->shared.words->started,
                                            memory_order_acquire);
    bool holds_some = worker->first < worker->published_next;
    bool is_before = started == worker->first - 1;
    bool is_possible = is_before ||
                       (started >= worker->first && started < worker->published_next);
    worker->end.has_started = holds_some && !is_before;
    if (holds_some && !is_possible && worker->end.cause == LW_PROCESSES_BY_TIMEOUT) {
        worker->end.cause = LW_PROCESSES_BY_BREACH;
        lw_text_copy(worker->end.why, sizeof worker->end.why,
                     "it timed out, and had written over its marks of what it began");
    }
}

/* What it wrote before its end counts, unless it was against the rules. */
static void
take_rest(struct lw_processes_worker *worker)
{
    if (worker->end.cause != LW_PROCESSES_BY_BREACH) {
        (void)lw_processes_worker_drain(worker);
    }
    (void)read_log(worker);
    if (worker->line_size > 0) {
        end_line(worker);
    }
    read_mark(worker);
}

static void
finish(struct lw_processes_worker *worker)
{
    worker->is_over = true;
    if (worker->state == LW_PROCESSES_STARTING || worker->state == LW_PROCESSES_TAKING) {
        set_cause(worker, LW_PROCESSES_BY_ITSELF, "");
    }
    take_rest(worker);
    if (worker->end.cause == LW_PROCESSES_BY_ITSELF) {
        describe_exit(&worker->end);
    }
    release(worker);
    worker->state = LW_PROCESSES_IDLE;
    lw_processes_on_end(worker);
}

/* Both have to say it, where there are both. */
static void
finish_when_over(struct lw_processes_worker *worker)
{
    bool has_zygote = worker->owner->zygote_state == LW_PROCESSES_SERVING;
    bool has_pidfd = worker->pidfd >= 0;
    bool is_certain = has_pidfd ? worker->is_over && (worker->has_exit || !has_zygote)
                                : worker->has_exit || (worker->is_over && !has_zygote);
    if (worker->state != LW_PROCESSES_IDLE && is_certain) {
        finish(worker);
    }
}

static void
on_pidfd(int fd, int events, void *user)
{
    struct lw_processes_worker *worker = user;
    (void)fd;
    (void)events;
    worker->is_over = true;
    host_of(worker)->ops->rewatch(worker->pid_watch, 0);
    finish_when_over(worker);
    if (worker->state != LW_PROCESSES_IDLE && worker->pidfd == fd) {
        await_word(worker, host_of(worker)->now);
    }
}

void
lw_processes_worker_on_orphaned(struct lw_processes_worker *worker)
{
    bool is_ready = worker->state == LW_PROCESSES_TAKING ||
                    worker->state == LW_PROCESSES_LEAVING;
    /* One that spoke before the zygote told its number is told by the end of its socket. */
    worker->is_over = worker->is_over || (worker->pid == 0 && !is_ready);
    finish_when_over(worker);
}

void
lw_processes_worker_on_closed(struct lw_processes_worker *worker)
{
    unwatch(worker, &worker->socket_watch);
    if (worker->pidfd < 0) {
        worker->is_over = true;
        await_word(worker, host_of(worker)->now);
    }
}

void
lw_processes_worker_look_for_end(struct lw_processes_worker *worker)
{
    finish_when_over(worker);
}

/* -- What the zygote says ------------------------------------------------------------------------ */

static void
on_forked(struct lw_processes_worker *worker, const struct lw_processes_note *note, int pidfd)
{
    worker->pid = note->pid;
    worker->pidfd = pidfd;
    worker->word_due = LW_NEVER;
    worker->is_over = worker->is_over && pidfd < 0; /* a closed socket said it: now that does */
    lw_host_log(host_of(worker), LW_LOG_DEBUG, "handler.started",
                "a worker process was started", "handler=%s worker=%" PRIu32 " pid=%d",
                worker->owner->name, worker->index, (int)worker->pid);
    if (pidfd >= 0) {
        worker->pid_watch = host_of(worker)->ops->watch(host_of(worker), pidfd, LW_READABLE,
                                                        on_pidfd, worker);
    }
    if (pidfd >= 0 && !worker->pid_watch) {
        close_fd(&worker->pidfd); /* without memory the zygote's word must do */
    }
    if (worker->state == LW_PROCESSES_ENDING) {
        press(worker, host_of(worker)->now);
    }
}

void
lw_processes_worker_on_note(struct lw_processes_worker *worker,
                            const struct lw_processes_note *note, int pidfd)
{
    if (note->kind == LW_PROCESSES_FORKED) {
        on_forked(worker, note, pidfd);
        return;
    }
    close_fd(&pidfd);
    worker->has_exit = true;
    worker->end.is_known = note->kind == LW_PROCESSES_EXITED;
    worker->end.status = note->status;
    worker->end.signal = note->signal;
    if (note->kind == LW_PROCESSES_NOT_FORKED) {
        char why[120];
        (void)snprintf(why, sizeof why, "no process could be forked: %s",
                       strerrordesc_np(note->status));
        worker->end.fork_failed = note->status;
        set_cause(worker, LW_PROCESSES_BY_START, why);
        worker->state = LW_PROCESSES_ENDING;
    }
    finish_when_over(worker);
}

/* -- Starting ------------------------------------------------------------------------------------ */

static void
on_wake(int fd, int events, void *user)
{
    struct lw_processes_worker *worker = user;
    bool is_closed = false;
    (void)events;
    if (lw_processes_take_wakes(fd, &is_closed)) {
        worker->owner->figures.owner_wakes++;
    } else if (is_closed) {
        unwatch(worker,
                &worker->wake_watch); /* its end follows, or it does not want us woken */
    }
    worker->is_owner_asleep = false;
    if (lw_processes_worker_drain(worker) > 0) {
        lw_processes_go_on(worker->owner);
    }
}

static void
on_socket(int fd, int events, void *user)
{
    (void)fd;
    (void)events;
    lw_processes_worker_on_socket(user);
}

/* The worker's ends of what is made for it. */
struct ends {
    int memory;
    int wake;
    int socket;
    int log;
};

static int
open_pair(int kind, int *ret_ours, int *ret_theirs)
{
    int pair[2];
    if (socketpair(AF_UNIX, kind | SOCK_CLOEXEC, 0, pair) != 0) {
        return errno;
    }
    *ret_ours = pair[0];
    *ret_theirs = pair[1];
    return 0;
}

static int
open_pairs(struct lw_processes_worker *worker, struct ends *theirs)
{
    int pipe_ends[2];
    int failed = open_pair(SOCK_STREAM, &worker->wake, &theirs->wake);
    failed = failed ? failed : open_pair(SOCK_SEQPACKET, &worker->socket, &theirs->socket);
    if (failed) {
        return failed;
    }
    if (pipe2(pipe_ends, O_CLOEXEC) != 0) {
        return errno;
    }
    worker->log_fd = pipe_ends[0];
    theirs->log = pipe_ends[1];
    bool is_set = fcntl(worker->socket, F_SETFL, O_NONBLOCK) == 0 &&
                  fcntl(worker->log_fd, F_SETFL, O_NONBLOCK) == 0;
    return is_set ? 0 : errno;
}

static int
open_all(struct lw_processes_worker *worker, struct ends *theirs)
{
    int failed = open_pairs(worker, theirs);
    return failed ? failed
                  : lw_processes_shared_create(worker->owner->ring_bytes, &worker->shared,
                                               &theirs->memory);
}

static int
order_fork(struct lw_processes_worker *worker, const struct ends *theirs)
{
    const struct lw_processes *owner = worker->owner;
    struct lw_processes_order order = {
        .kind = LW_PROCESSES_FORK,
        .protocol = LW_PROCESSES_PROTOCOL,
        .serial = worker->serial,
        .ring_bytes = owner->ring_bytes,
        .item_bytes_max = owner->options.tune.item_bytes_max,
        .timeout_ms = owner->options.timeout_ms,
        .worker = worker->index,
        .cpu = lw_processes_cpu_of(owner, worker->index),
        .is_one = owner->engine.batch.size > 0 &&
                  owner->engine.batch.verdict == LW_BATCH_VERDICT_ONE,
    };
    int fds[LW_PROCESSES_FD_COUNT] = {
        [LW_PROCESSES_FD_MEMORY] = theirs->memory,
        [LW_PROCESSES_FD_WAKE] = theirs->wake,
        [LW_PROCESSES_FD_SOCKET] = theirs->socket,
        [LW_PROCESSES_FD_LOG] = theirs->log,
    };
    return lw_processes_send(owner->zygote.control, &order, sizeof order, fds,
                             LW_PROCESSES_FD_COUNT);
}

static bool
watch_all(struct lw_processes_worker *worker)
{
    struct lw_host *host = host_of(worker);
    worker->wake_watch = host->ops->watch(host, worker->wake, LW_READABLE, on_wake, worker);
    worker->socket_watch = host->ops->watch(host, worker->socket, LW_READABLE, on_socket,
                                            worker);
    worker->log_watch = host->ops->watch(host, worker->log_fd, LW_READABLE, on_log, worker);
    return worker->wake_watch && worker->socket_watch && worker->log_watch;
}

static void
begin(struct lw_processes_worker *worker)
{
    struct lw_processes *owner = worker->owner;
    const struct lw_processes_tuning *tune = &owner->options.tune;
    worker->serial = ++owner->serials;
    worker->request_head = 0;
    worker->published = 0;
    worker->request_tail = 0;
    worker->answer_tail = 0;
    worker->first = 1;
    worker->unanswered = NULL;
    worker->next = 1;
    worker->published_next = 1;
    worker->probe = 0;
    worker->given = 0;
    worker->answered = 0;
    worker->is_owner_asleep = false;
    worker->is_alone = false;
    worker->is_over = false;
    worker->has_exit = false;
    worker->is_term_sent = false;
    worker->kill_at = LW_NEVER;
    worker->word_due = LW_NEVER;
    worker->line_size = 0;
    worker->item_fd = -1;
    worker->later_fd = -1;
    worker->end = (struct lw_processes_end){ .cause = LW_PROCESSES_BY_ITSELF };
    worker->refusal = (struct lw_error){ .status = LW_STATUS_OK };
    memset(worker->known, 0, sizeof worker->known);
    lw_handler_log_begin(&worker->log);
    worker->given_max = UINT64_MAX;
    if (tune->recycle_after > 0) {
        worker->given_max = tune->recycle_after +
                            lw_host_random_to(owner->engine.host, tune->recycle_jitter);
    }
}

int
lw_processes_worker_start(struct lw_processes_worker *worker)
{
    struct ends theirs = { -1, -1, -1, -1 };
    int64_t timeout_ms = worker->owner->options.start_timeout_ms;
    lw_assert(worker->state == LW_PROCESSES_IDLE);
    begin(worker);
    int failed = open_all(worker, &theirs);
    failed = failed || watch_all(worker) ? failed : ENOMEM;
    failed = failed ? failed : order_fork(worker, &theirs);
    close_fd(&theirs.memory);
    close_fd(&theirs.wake);
    close_fd(&theirs.socket);
    close_fd(&theirs.log);
    if (failed) {
        release(worker);
        return failed;
    }
    worker->state = LW_PROCESSES_STARTING;
    worker->starts++;
    if (timeout_ms > 0) {
        arm(worker, host_of(worker)->now + (uint64_t)timeout_ms * LW_MS);
    }
    return 0;
}

bool
lw_processes_worker_init(struct lw_processes_worker *worker, struct lw_processes *owner,
                         uint32_t index)
{
    uint64_t capacity = 1;
    while (capacity < owner->options.window) {
        capacity *= 2;
    }
    *worker = (struct lw_processes_worker){
        .owner = owner,
        .index = index,
        .pidfd = -1,
        .wake = -1,
        .socket = -1,
        .log_fd = -1,
        .item_fd = -1,
        .later_fd = -1,
        .word_due = LW_NEVER,
        .open_mask = capacity - 1,
    };
    lw_timer_init(&worker->timer, on_timer);
    lw_handler_log_init(&worker->log, owner->engine.host, owner->name);
    worker->open = lw_alloc_array((size_t)capacity, sizeof(struct lw_delivery *));
    return worker->open != NULL;
}

void
lw_processes_worker_deinit(struct lw_processes_worker *worker)
{
    if (worker->owner) {
        send_signal(worker, SIGKILL);
        release(worker);
        worker->state = LW_PROCESSES_IDLE;
    }
    lw_handler_log_deinit(&worker->log);
    lw_free(worker->open);
}
