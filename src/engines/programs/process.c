/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting and ending a child. posix_spawn rather than fork: the parent has threads and much
 * memory. The file actions close everything behind what the child gets, since
 * client libraries open descriptors that are not close-on-exec. The end is seen through a pidfd;
 * where the kernel or an emulator has none, through a pipe whose other end only the child holds.
 * The group is signalled before the leader is reaped, so the number cannot have been reused. A
 * session rather than a group only: its leader can neither move into another group, where no
 * signal of ours would find it, nor open the terminal that Laneway was started from.
 */
#include "engines/programs/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"

enum { LAST_TARGET_FD = 4 }; /* of those that the child gets */

extern char **environ;

/* In the order of the child's descriptors. */
enum pipe_index { PIPE_INPUT, PIPE_OUTPUT, PIPE_ERRORS, PIPE_ANSWERS, PIPE_STATUS, PIPE_COUNT };

struct pipes {
    int ours[PIPE_COUNT];
    int theirs[PIPE_COUNT];
    int count; /* without the status pipe, if a pidfd will do */
};

static void
close_fd(int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd);
        *fd = -1;
    }
}

static void
close_pipes(struct pipes *pipes, bool ours_too)
{
    for (int i = 0; i < PIPE_COUNT; i++) {
        close_fd(&pipes->theirs[i]);
        if (ours_too) {
            close_fd(&pipes->ours[i]);
        }
    }
}

/* The child's ends must lie above those that they are copied to. */
static int
move_up(int *fd)
{
    if (*fd > LAST_TARGET_FD) {
        return 0;
    }
    int moved = fcntl(*fd, F_DUPFD_CLOEXEC, LAST_TARGET_FD + 1);
    if (moved < 0) {
        return errno;
    }
    (void)close(*fd);
    *fd = moved;
    return 0;
}

static int
open_pipe(struct pipes *pipes, int index)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return errno;
    }
    bool we_write = index == PIPE_INPUT;
    pipes->ours[index] = ends[we_write ? 1 : 0];
    pipes->theirs[index] = ends[we_write ? 0 : 1];
    int flags = fcntl(pipes->ours[index], F_GETFL);
    if (flags < 0 || fcntl(pipes->ours[index], F_SETFL, flags | O_NONBLOCK) != 0) {
        return errno;
    }
    return move_up(&pipes->theirs[index]);
}

static int
open_pipes(struct pipes *pipes, bool has_status, bool has_answers)
{
    int failed = 0;
    pipes->count = has_status ? PIPE_COUNT : PIPE_STATUS;
    for (int i = 0; i < PIPE_COUNT; i++) {
        pipes->ours[i] = -1;
        pipes->theirs[i] = -1;
    }
    for (int i = 0; i < pipes->count && !failed; i++) {
        failed = i == PIPE_ANSWERS && !has_answers ? 0 : open_pipe(pipes, i);
    }
    return failed;
}

static int
open_pidfd(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

bool
lw_programs_process_has_pidfd(void)
{
    int fd = open_pidfd(getpid());
    if (fd >= 0) {
        (void)close(fd);
    }
    return fd >= 0;
}

/* -- What the child gets ------------------------------------------------------------------- */

static int
fill_actions(posix_spawn_file_actions_t *actions, const struct pipes *pipes,
             const char *directory)
{
    int failed = 0;
    int next = 0;
    for (int i = 0; i < pipes->count && !failed; i++) {
        if (pipes->theirs[i] >= 0) {
            failed = posix_spawn_file_actions_adddup2(actions, pipes->theirs[i], next++);
        }
    }
    if (!failed) {
        failed = posix_spawn_file_actions_addclosefrom_np(actions, next);
    }
    if (!failed && directory) {
        failed = posix_spawn_file_actions_addchdir_np(actions, directory);
    }
    return failed;
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
    short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID;
    return failed ? failed : posix_spawnattr_setflags(attributes, flags);
}

static bool
is_overridden(const char *entry, const char *const *over)
{
    size_t length = strcspn(entry, "=");
    for (; over && *over; over++) {
        if (strcspn(*over, "=") == length && memcmp(entry, *over, length) == 0) {
            return true;
        }
    }
    return false;
}

static size_t
count_entries(const char *const *entries)
{
    size_t count = 0;
    while (entries && entries[count]) {
        count++;
    }
    return count;
}

/* An array that borrows its texts; freed by lw_free. posix_spawn wants them unqualified. */
static char **
build_environment(const char *const *over)
{
    size_t count = count_entries((const char *const *)environ) + count_entries(over);
    char **built = lw_alloc_array(count + 1, sizeof *built);
    size_t used = 0;
    for (char **entry = environ; built && entry && *entry; entry++) {
        if (!is_overridden(*entry, over)) {
            built[used++] = *entry;
        }
    }
    for (; built && over && *over; over++) {
        if (strchr(*over, '=')) {
            memcpy(&built[used++], over, sizeof *over);
        }
    }
    return built;
}

static int
spawn(const struct lw_programs_command *command, const struct pipes *pipes, pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    char **environment = build_environment(command->environment);
    char *const *argv = NULL;
    memcpy(&argv, &command->program, sizeof argv);
    if (!environment) {
        return ENOMEM;
    }
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed) {
        lw_free(environment);
        return failed;
    }
    failed = posix_spawnattr_init(&attributes);
    if (!failed) {
        failed = fill_actions(&actions, pipes, command->directory);
        failed = failed ? failed : fill_attributes(&attributes);
        failed = failed
                     ? failed
                     : posix_spawnp(ret_pid, argv[0], &actions, &attributes, argv, environment);
        (void)posix_spawnattr_destroy(&attributes);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    lw_free(environment);
    return failed;
}

/* -- Start and end ----------------------------------------------------------------------------- */

static void
keep_pipes(struct lw_programs_process *process, const struct pipes *pipes)
{
    process->input = pipes->ours[PIPE_INPUT];
    process->output = pipes->ours[PIPE_OUTPUT];
    process->errors = pipes->ours[PIPE_ERRORS];
    process->answers = pipes->ours[PIPE_ANSWERS];
}

int
lw_programs_process_spawn(const struct lw_programs_command *command,
                          struct lw_programs_process *ret_process)
{
    struct pipes pipes;
    struct lw_programs_process process = { .is_pidfd = command->has_pidfd };
    int failed = open_pipes(&pipes, !process.is_pidfd, command->has_answers);
    failed = failed ? failed : spawn(command, &pipes, &process.pid);
    close_pipes(&pipes, failed != 0);
    if (failed) {
        return failed;
    }
    keep_pipes(&process, &pipes);
    process.exit_fd = process.is_pidfd ? open_pidfd(process.pid) : pipes.ours[PIPE_STATUS];
    if (process.exit_fd < 0) {
        failed = errno;
        (void)lw_programs_process_end(&process);
        return failed;
    }
    *ret_process = process;
    return 0;
}

bool
lw_programs_process_is_over(const struct lw_programs_process *process)
{
    siginfo_t info;
    memset(&info, 0, sizeof info);
    int failed = waitid(P_PID, (id_t)process->pid, &info, WEXITED | WNOHANG | WNOWAIT);
    return failed ? errno == ECHILD : info.si_pid == process->pid;
}

void
lw_programs_process_signal(const struct lw_programs_process *process, int signal)
{
    if (process->pid > 0) {
        (void)kill(-process->pid, signal);
    }
}

struct lw_programs_exit
lw_programs_process_end(struct lw_programs_process *process)
{
    struct lw_programs_exit end = { .is_known = false };
    siginfo_t info;
    memset(&info, 0, sizeof info);
    lw_programs_process_signal(process, SIGKILL);
    int failed = 0;
    do {
        failed = waitid(P_PID, (id_t)process->pid, &info, WEXITED);
    } while (failed && errno == EINTR);
    if (!failed) {
        end.is_known = true;
        end.signal = info.si_code == CLD_EXITED ? 0 : info.si_status;
        end.status = info.si_code == CLD_EXITED ? info.si_status : 0;
    }
    close_fd(&process->input);
    close_fd(&process->output);
    close_fd(&process->answers);
    close_fd(&process->errors);
    close_fd(&process->exit_fd);
    process->pid = 0;
    return end;
}
