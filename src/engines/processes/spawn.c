/* SPDX-License-Identifier: Apache-2.0 */
/*
 * posix_spawn rather than fork: the owner has threads and much memory. Its descriptors are closed
 * in the child from the first one on that is not for it, since client libraries open some that are
 * not close-on-exec.
 */
#include "engines/processes/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engines/processes/control.h"

enum { END_WAIT_MS = 3000 };

extern char **environ;

static void
close_fd(int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd);
        *fd = -1;
    }
}

/* The child's ends must lie above those that they are copied to. */
static int
move_up(int *fd)
{
    int moved = fcntl(*fd, F_DUPFD_CLOEXEC, LW_PROCESSES_CONTROL_FD + 1);
    if (moved < 0) {
        return errno;
    }
    (void)close(*fd);
    *fd = moved;
    return 0;
}

int
lw_processes_open_ends(struct lw_processes_zygote *ours, struct lw_processes_ends *theirs)
{
    int pair[2];
    int pipe_ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        return errno;
    }
    ours->control = pair[0];
    theirs->control = pair[1];
    if (fcntl(ours->control, F_SETFL, O_NONBLOCK) != 0 || pipe2(pipe_ends, O_CLOEXEC) != 0) {
        return errno;
    }
    ours->log = pipe_ends[0];
    theirs->log = pipe_ends[1];
    if (fcntl(ours->log, F_SETFL, O_NONBLOCK) != 0) {
        return errno;
    }
    int failed = move_up(&theirs->control);
    return failed ? failed : move_up(&theirs->log);
}

static int
fill_actions(posix_spawn_file_actions_t *actions, const struct lw_processes_ends *theirs)
{
    int failed = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY,
                                                  0);
    failed = failed ? failed
                    : posix_spawn_file_actions_adddup2(actions, theirs->log, STDOUT_FILENO);
    failed = failed ? failed
                    : posix_spawn_file_actions_adddup2(actions, theirs->log, STDERR_FILENO);
    failed = failed ? failed
                    : posix_spawn_file_actions_adddup2(actions, theirs->control,
                                                       LW_PROCESSES_CONTROL_FD);
    return failed
               ? failed
               : posix_spawn_file_actions_addclosefrom_np(actions, LW_PROCESSES_CONTROL_FD + 1);
}

static int
fill_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none;
    sigset_t all;
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    int failed = posix_spawnattr_setsigmask(attributes, &none);
    failed = failed ? failed : posix_spawnattr_setsigdefault(attributes, &all);
    failed = failed ? failed : posix_spawnattr_setpgroup(attributes, 0);
    short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP;
    return failed ? failed : posix_spawnattr_setflags(attributes, flags);
}

static int
spawn(const char *path, const struct lw_processes_ends *theirs, pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    char name[] = "laneway-zygote";
    char *argv[] = { name, NULL };
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed) {
        return failed;
    }
    failed = posix_spawnattr_init(&attributes);
    if (!failed) {
        failed = fill_actions(&actions, theirs);
        failed = failed ? failed : fill_attributes(&attributes);
        failed = failed ? failed
                        : posix_spawn(ret_pid, path, &actions, &attributes, argv, environ);
        (void)posix_spawnattr_destroy(&attributes);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    return failed;
}

int
lw_processes_spawn(const char *path, struct lw_processes_zygote *ret_zygote)
{
    struct lw_processes_zygote ours = { .pidfd = -1, .control = -1, .log = -1 };
    struct lw_processes_ends theirs = { -1, -1 };
    int failed = lw_processes_open_ends(&ours, &theirs);
    failed = failed ? failed : spawn(path, &theirs, &ours.pid);
    close_fd(&theirs.control);
    close_fd(&theirs.log);
    if (failed) {
        close_fd(&ours.control);
        close_fd(&ours.log);
        return failed;
    }
    ours.pidfd = (int)syscall(SYS_pidfd_open, ours.pid, 0);
    *ret_zygote = ours;
    return 0;
}

void
lw_processes_spawn_end(struct lw_processes_zygote *zygote)
{
    if (zygote->pid == 0) {
        return;
    }
    close_fd(&zygote->control);
    struct pollfd wait = { .fd = zygote->pidfd, .events = POLLIN };
    if (zygote->pidfd >= 0 && poll(&wait, 1, END_WAIT_MS) != 1) {
        (void)kill(zygote->pid, SIGKILL);
    }
    pid_t reaped = 0;
    do {
        reaped = waitpid(zygote->pid, NULL, 0);
    } while (reaped < 0 && errno == EINTR);
    close_fd(&zygote->pidfd);
    close_fd(&zygote->log);
    zygote->pid = 0;
}
