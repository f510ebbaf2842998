/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The origin answers one order after the other: each brings the descriptors of a zygote, which is
 * forked, and is answered with its number and a pidfd. Its children are not waited for (SIGCHLD is
 * ignored), the owner sees their ends by themselves. Signals are as in a program that was just
 * started, and it leads a process group, so that a terminal's interrupt does not reach it.
 */
#include "engines/processes/origin.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <laneway/laneway.h>

#include "base/error.h"
#include "engines/processes/control.h"
#include "engines/processes/zygote.h"

enum { FD_CONTROL, FD_LOG, FD_COUNT };
enum { ANSWER_WITHIN_MS = 10000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* one order at a time */
static int origin_socket = -1;
static pid_t origin_owner; /* who called: a child of it has no origin */
static uint64_t order_serial;

static void
close_fd(int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd);
        *fd = -1;
    }
}

/* -- The origin -------------------------------------------------------------------------------- */

static void
set_signals(void)
{
    sigset_t none;
    for (int number = 1; number < NSIG; number++) {
        (void)signal(number, SIG_DFL); /* of those that cannot be changed it is so */
    }
    (void)signal(SIGCHLD, SIG_IGN);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static void
take_place(int fd, int place)
{
    if (fd >= 0 && fd != place) {
        (void)dup2(fd, place);
    }
}

/* It keeps nobody's terminal or pipe open. */
static void
close_input(void)
{
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        take_place(nothing, fd);
    }
    if (nothing > STDERR_FILENO) {
        (void)close(nothing);
    }
}

_Noreturn static void
become_zygote(int control, const int *fds)
{
    (void)setpgid(0, 0);
    (void)close(control);
    (void)signal(SIGCHLD, SIG_DFL);
    take_place(fds[FD_LOG], STDOUT_FILENO);
    take_place(fds[FD_LOG], STDERR_FILENO);
    (void)close(fds[FD_LOG]);
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    _exit(lw_processes_zygote_run(fds[FD_CONTROL]));
}

/* `fds` NULL: they found no room here. */
static void
fork_zygote(int control, uint64_t serial, const int *fds)
{
    struct lw_processes_note note = { .kind = LW_PROCESSES_NOT_FORKED, .serial = serial };
    int pidfd = -1;
    errno = EMFILE;
    pid_t pid = fds ? fork() : -1;
    if (pid == 0) {
        become_zygote(control, fds);
    }
    if (pid > 0) {
        note.kind = LW_PROCESSES_FORKED;
        note.pid = pid;
        pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    } else {
        note.status = errno;
    }
    (void)lw_processes_send(control, &note, sizeof note, &pidfd, pidfd >= 0 ? 1 : 0);
    if (pidfd >= 0) {
        (void)close(pidfd);
    }
}

_Noreturn static void
serve(int control)
{
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_NAME, "laneway-origin");
    set_signals();
    close_input();
    for (;;) {
        uint64_t serial = 0;
        int fds[FD_COUNT];
        size_t count = 0;
        ssize_t got = lw_processes_receive(control, &serial, sizeof serial, fds, FD_COUNT,
                                           &count);
        if (got <= 0) {
            _exit(0); /* the program is gone */
        }
        fork_zygote(control, serial, count == FD_COUNT ? fds : NULL);
        for (size_t i = 0; i < count; i++) {
            (void)close(fds[i]);
        }
    }
}

/* -- The program --------------------------------------------------------------------------------- */

/* Threads of this process; 0 when that cannot be told. */
static unsigned
thread_count(void)
{
    DIR *tasks = opendir("/proc/self/task");
    unsigned count = 0;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): of a folder that nobody else reads */
    for (struct dirent *entry = tasks ? readdir(tasks) : NULL; entry; entry = readdir(tasks)) {
        count += entry->d_name[0] != '.' ? 1 : 0;
    }
    if (tasks) {
        (void)closedir(tasks);
    }
    return count;
}

static enum lw_status
refuse_threads(unsigned count, struct lw_error *ret_error)
{
    enum lw_status status = lw_error_set(
        ret_error, LW_STATUS_STATE, "E0633",
        count ? "lw_processes_init: the program has %u threads already"
              : "lw_processes_init: nobody knows whether there are other threads (%u seen): "
                "/proc is not readable",
        count);
    lw_error_help(ret_error, "call it as the first thing in main, before anything that starts "
                             "threads, and not from a constructor");
    return status;
}

static enum lw_status
refuse_system(const char *what, int failed, struct lw_error *ret_error)
{
    return lw_error_set(ret_error, LW_STATUS_UNAVAILABLE, "E0633", "lw_processes_init: %s: %s",
                        what, strerrordesc_np(failed));
}

static enum lw_status
fork_origin(struct lw_error *ret_error)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        return refuse_system("a pair of sockets", errno, ret_error);
    }
    (void)fflush(NULL); /* what is buffered is printed by us, and not twice */
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(pair[0]);
        serve(pair[1]);
    }
    (void)close(pair[1]);
    if (pid < 0) {
        int failed = errno;
        (void)close(pair[0]);
        return refuse_system("no process could be forked", failed, ret_error);
    }
    origin_socket = pair[0];
    origin_owner = getpid();
    return LW_STATUS_OK;
}

enum lw_status
lw_processes_init(struct lw_error *ret_error)
{
    if (lw_processes_has_origin()) {
        return LW_STATUS_OK;
    }
    unsigned threads = thread_count();
    return threads == 1 ? fork_origin(ret_error) : refuse_threads(threads, ret_error);
}

bool
lw_processes_has_origin(void)
{
    return origin_socket >= 0 && origin_owner == getpid();
}

/* The next answer; 0 or an errno. */
static int
receive_answer(struct lw_processes_note *ret_note, int *ret_pidfd)
{
    struct pollfd wait = { .fd = origin_socket, .events = POLLIN };
    size_t count = 0;
    int ready = 0;
    do {
        ready = poll(&wait, 1, ANSWER_WITHIN_MS);
    } while (ready < 0 && errno == EINTR);
    if (ready != 1) {
        return ETIMEDOUT;
    }
    ssize_t got = lw_processes_receive(origin_socket, ret_note, sizeof *ret_note, ret_pidfd, 1,
                                       &count);
    if (got != (ssize_t)sizeof *ret_note) {
        return EPIPE;
    }
    *ret_pidfd = count > 0 ? *ret_pidfd : -1;
    return 0;
}

/* The answer to this order, not a late one to an order before; 0 or an errno. */
static int
await_answer(uint64_t serial, struct lw_processes_zygote *zygote)
{
    struct lw_processes_note note = { .serial = 0 };
    while (note.serial != serial) {
        close_fd(&zygote->pidfd);
        int failed = receive_answer(&note, &zygote->pidfd);
        if (failed) {
            return failed;
        }
    }
    if (note.kind != LW_PROCESSES_FORKED) {
        return note.status ? note.status : EPROTO;
    }
    zygote->pid = note.pid;
    return 0;
}

int
lw_processes_origin_spawn(struct lw_processes_zygote *ret_zygote)
{
    struct lw_processes_zygote ours = { .pidfd = -1, .control = -1, .log = -1 };
    struct lw_processes_ends theirs = { -1, -1 };
    int failed = lw_processes_open_ends(&ours, &theirs);
    if (!failed) {
        const int fds[FD_COUNT] = { [FD_CONTROL] = theirs.control, [FD_LOG] = theirs.log };
        (void)pthread_mutex_lock(&mutex);
        uint64_t serial = ++order_serial;
        failed = lw_processes_send(origin_socket, &serial, sizeof serial, fds, FD_COUNT);
        failed = failed ? failed : await_answer(serial, &ours);
        (void)pthread_mutex_unlock(&mutex);
    }
    close_fd(&theirs.control);
    close_fd(&theirs.log);
    if (failed) {
        close_fd(&ours.control);
        close_fd(&ours.log);
        close_fd(&ours.pidfd);
        return failed;
    }
    *ret_zygote = ours;
    return 0;
}
