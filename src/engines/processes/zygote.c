/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The zygote's loop: orders from the owner, ends of workers by a signalfd. Every worker leads a
 * process group of its own, which is killed as a whole before its leader is reaped: what a handler
 * started does not outlive its worker, and no number can have been reused by then. Single-threaded,
 * as a process that forks must be; a handler's threads begin in its `open`, in the worker.
 */
#include "engines/processes/zygote.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "engines/processes/child.h"

enum { TEXTS_BEFORE_OPTIONS = 4, OPTIONS_MAX = 1000, EXIT_BROKEN = 70 };

struct member {
    pid_t pid;
    uint64_t serial;
};

struct zygote {
    int control;
    int signals;
    bool is_loaded;
    struct lw_plugin_file file;
    bool has_function; /* in place of a file */
    void *user;        /* of it */
    struct lw_handler_setup setup;
    struct lw_property *options;
    char *texts;
    struct member *members;
    size_t member_count;
    size_t member_capacity;
    struct {
        struct lw_processes_order order;
        char texts[LW_PROCESSES_TEXTS_MAX];
    } message;
};

static void
tell(const struct zygote *zygote, const struct lw_processes_note *note, const int *fd)
{
    (void)lw_processes_send(zygote->control, note, sizeof *note, fd, fd ? 1 : 0);
}

static sigset_t
block_sigchld(void)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    return set;
}

/* -- Loading ------------------------------------------------------------------------------------- */

/* The next of the texts that lie one behind the other, each with its zero. */
static const char *
next_text(const char **at, const char *end)
{
    const char *text = *at;
    const char *zero = text < end ? memchr(text, 0, (size_t)(end - text)) : NULL;
    if (!zero) {
        return NULL;
    }
    *at = zero + 1;
    return text;
}

static bool
keep_options(struct zygote *zygote, const char *at, const char *end, size_t count)
{
    zygote->options = lw_alloc_array(count + 1, sizeof *zygote->options);
    for (size_t i = 0; zygote->options && i < count; i++) {
        zygote->options[i].name = next_text(&at, end);
        zygote->options[i].value = next_text(&at, end);
        if (!zygote->options[i].value) {
            return false;
        }
    }
    zygote->setup.options = zygote->options;
    zygote->setup.option_count = count;
    return zygote->options != NULL;
}

/* A number that the owner has from the same memory, from before this process was forked of it. */
static void *
pointer_of(uint64_t number)
{
    return (void *)(uintptr_t)number; /* NOLINT(performance-no-int-to-ptr) */
}

static enum lw_status
take_function(struct zygote *zygote, const struct lw_processes_order *order, const char *name,
              struct lw_error *ret_error)
{
    Dl_info info;
    if (dladdr(pointer_of(order->function), &info) == 0) {
        enum lw_status status = lw_error_set(
            ret_error, LW_STATUS_CONFIG, "E0606",
            "handler \"%s\": its function was not there yet when lw_processes_init was called",
            name);
        lw_error_help(ret_error, "link it to the program, or give it as a plug-in");
        return status;
    }
    zygote->file.table = (struct lw_handler_plugin){ .abi = LW_HANDLER_ABI,
                                                     .size = sizeof zygote->file.table };
    /* NOLINTBEGIN(performance-no-int-to-ptr) */
    if (order->is_batch) {
        zygote->file.table.handle_batch = (lw_handler_batch_fn)(uintptr_t)order->function;
    } else {
        zygote->file.table.handle = (lw_handler_fn)(uintptr_t)order->function;
    }
    /* NOLINTEND(performance-no-int-to-ptr) */
    zygote->has_function = true;
    zygote->user = pointer_of(order->user);
    return LW_STATUS_OK;
}

/* The owner looked at it, too; but a file may be replaced. */
static enum lw_status
check_form(const struct lw_handler_plugin *table, bool is_batch, const char *name,
           struct lw_error *ret_error)
{
    if (is_batch ? table->handle_batch != NULL : table->handle != NULL) {
        return LW_STATUS_OK;
    }
    enum lw_status status = lw_error_set(
        ret_error, LW_STATUS_CONFIG, is_batch ? "E0320" : "E0606", "handler \"%s\": %s", name,
        is_batch ? "the plug-in takes one message at a time"
                 : "engine processes cannot run an asynchronous function");
    lw_error_help(ret_error, "%s",
                  is_batch ? "leave batch out, or give the plug-in handle_batch"
                           : "give the plug-in a `handle`, or use engine loop");
    return status;
}

static enum lw_status
load_texts(struct zygote *zygote, const struct lw_processes_order *order, size_t size,
           struct lw_error *ret_error)
{
    const char *texts[TEXTS_BEFORE_OPTIONS] = { NULL };
    const char *at = zygote->texts;
    const char *end = at + size;
    bool is_whole = order->option_count <= OPTIONS_MAX;
    for (size_t i = 0; i < TEXTS_BEFORE_OPTIONS && is_whole; i++) {
        texts[i] = next_text(&at, end);
        is_whole = texts[i] != NULL;
    }
    if (!is_whole || !keep_options(zygote, at, end, order->option_count)) {
        return lw_error_set(ret_error, LW_STATUS_INTERNAL, "E0602",
                            "the zygote did not understand its order");
    }
    zygote->setup.size = sizeof zygote->setup;
    zygote->setup.service = texts[2];
    zygote->setup.handler = texts[3];
    zygote->setup.engine = LW_ENGINE_PROCESSES;
    if (order->function) {
        return take_function(zygote, order, texts[3], ret_error);
    }
    enum lw_status status = lw_plugin_file_load(
        texts[3], texts[0], texts[1][0] ? texts[1] : NULL, &zygote->file, ret_error);
    return status == LW_STATUS_OK
               ? check_form(&zygote->file.table, order->is_batch, texts[3], ret_error)
               : status;
}

/*
 * What a constructor may have changed that we live by: children must be waited for, and the places
 * of input and output taken, or what workers are given would land there.
 */
static void
set_right(void)
{
    struct sigaction action;
    bool is_deaf = sigaction(SIGCHLD, NULL, &action) == 0 &&
                   (action.sa_handler == SIG_IGN || (action.sa_flags & SA_NOCLDWAIT));
    if (is_deaf) {
        struct sigaction usual = { .sa_handler = SIG_DFL };
        (void)sigaction(SIGCHLD, &usual, NULL);
    }
    block_sigchld();
    for (int fd = open("/dev/null", O_RDWR); fd >= 0; fd = open("/dev/null", O_RDWR)) {
        if (fd > STDERR_FILENO) {
            (void)close(fd);
            break;
        }
    }
}

static void
load(struct zygote *zygote, size_t size)
{
    struct lw_processes_note note = { .kind = LW_PROCESSES_LOADED };
    const struct lw_processes_order *order = &zygote->message.order;
    zygote->texts = lw_copy_bytes(zygote->message.texts, size ? size : 1);
    if (order->protocol != LW_PROCESSES_PROTOCOL) {
        (void)lw_error_set(&note.error, LW_STATUS_UNSUPPORTED, "E0602",
                           "laneway-zygote is of another version (%s)", lw_version());
        lw_error_help(&note.error,
                      "install command, library and helper programs of one version");
    } else if (!zygote->texts || zygote->is_loaded) {
        (void)lw_error_set(&note.error, LW_STATUS_NO_MEMORY, "E0602", "out of memory");
    } else {
        zygote->is_loaded = load_texts(zygote, order, size, &note.error) == LW_STATUS_OK;
    }
    note.kind = zygote->is_loaded ? LW_PROCESSES_LOADED : LW_PROCESSES_REFUSED;
    (void)fflush(NULL); /* what it printed is its own, and not each worker's */
    set_right();
    tell(zygote, &note, NULL);
}

/* -- Forking ------------------------------------------------------------------------------------- */

static bool
reserve_member(struct zygote *zygote)
{
    if (zygote->member_count < zygote->member_capacity) {
        return true;
    }
    size_t capacity = zygote->member_capacity ? 2 * zygote->member_capacity : 16;
    struct member *grown = lw_resize_array(zygote->members, capacity, sizeof *grown);
    if (grown) {
        zygote->members = grown;
        zygote->member_capacity = capacity;
    }
    return grown != NULL;
}

static void
bind_to(int32_t cpu)
{
    cpu_set_t set;
    if (cpu >= 0 && cpu < CPU_SETSIZE) {
        CPU_ZERO(&set);
        CPU_SET((size_t)cpu, &set);
        (void)sched_setaffinity(0, sizeof set, &set); /* a wish */
    }
}

_Noreturn static void
become_worker(struct zygote *zygote, const int fds[LW_PROCESSES_FD_COUNT])
{
    struct lw_processes_child_setup setup = { .order = zygote->message.order,
                                              .file = &zygote->file,
                                              .has_function = zygote->has_function,
                                              .user = zygote->user,
                                              .plugin = zygote->setup };
    sigset_t none;
    memcpy(setup.fds, fds, sizeof setup.fds);
    setup.plugin.worker = zygote->message.order.worker;
    (void)setpgid(0, 0);
    (void)close(zygote->control);
    (void)close(zygote->signals);
    (void)dup2(fds[LW_PROCESSES_FD_LOG], STDOUT_FILENO);
    (void)dup2(fds[LW_PROCESSES_FD_LOG], STDERR_FILENO);
    (void)close(fds[LW_PROCESSES_FD_LOG]);
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    bind_to(zygote->message.order.cpu);
    lw_processes_child_run(&setup);
}

static void
refuse_fork(const struct zygote *zygote, int failed)
{
    struct lw_processes_note note = { .kind = LW_PROCESSES_NOT_FORKED,
                                      .serial = zygote->message.order.serial,
                                      .status = failed };
    tell(zygote, &note, NULL);
}

static void
fork_worker(struct zygote *zygote, int fds[LW_PROCESSES_FD_COUNT])
{
    struct lw_processes_note note = { .kind = LW_PROCESSES_NOT_FORKED,
                                      .serial = zygote->message.order.serial };
    int pidfd = -1;
    errno = ENOMEM;
    pid_t pid = zygote->is_loaded && reserve_member(zygote) ? fork() : -1;
    if (pid == 0) {
        become_worker(zygote, fds);
    }
    if (pid > 0) {
        (void)setpgid(pid, pid);
        zygote->members[zygote->member_count++] = (struct member){ pid, note.serial };
        pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
        note.kind = LW_PROCESSES_FORKED;
        note.pid = pid;
    } else {
        note.status = errno;
    }
    tell(zygote, &note, pidfd >= 0 ? &pidfd : NULL);
    if (pidfd >= 0) {
        (void)close(pidfd);
    }
}

/* -- Ends ---------------------------------------------------------------------------------------- */

static uint64_t
forget_member(struct zygote *zygote, pid_t pid)
{
    for (size_t i = 0; i < zygote->member_count; i++) {
        if (zygote->members[i].pid == pid) {
            uint64_t serial = zygote->members[i].serial;
            zygote->members[i] = zygote->members[--zygote->member_count];
            return serial;
        }
    }
    return 0;
}

/* Reaps one child that has ended; false when there is none. */
static bool
reap_one(struct zygote *zygote)
{
    siginfo_t info;
    memset(&info, 0, sizeof info);
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) {
        return false;
    }
    pid_t pid = info.si_pid;
    (void)kill(-pid, SIGKILL);
    (void)waitid(P_PID, (id_t)pid, &info, WEXITED);
    uint64_t serial = forget_member(zygote, pid);
    if (serial != 0) {
        bool is_exit = info.si_code == CLD_EXITED;
        struct lw_processes_note note = { .kind = LW_PROCESSES_EXITED,
                                          .pid = pid,
                                          .serial = serial,
                                          .status = is_exit ? info.si_status : 0,
                                          .signal = is_exit ? 0 : info.si_status };
        tell(zygote, &note, NULL);
    }
    return true;
}

static void
reap(struct zygote *zygote)
{
    struct signalfd_siginfo info;
    ssize_t got = read(zygote->signals, &info, sizeof info);
    (void)got; /* one for many ends */
    while (reap_one(zygote)) {
    }
}

static int
end(struct zygote *zygote)
{
    for (size_t i = 0; i < zygote->member_count; i++) {
        (void)kill(-zygote->members[i].pid, SIGKILL);
        (void)kill(zygote->members[i].pid, SIGKILL);
    }
    while (zygote->member_count > 0 && waitpid(-1, NULL, 0) > 0) {
        zygote->member_count--;
    }
    lw_free(zygote->members);
    lw_free(zygote->options);
    lw_free(zygote->texts);
    return EXIT_SUCCESS;
}

/* -- The loop ------------------------------------------------------------------------------------ */

/* One order; false when the owner is gone, or speaks another language. */
static bool
obey(struct zygote *zygote)
{
    int fds[LW_PROCESSES_FD_COUNT];
    size_t fd_count = 0;
    ssize_t got = lw_processes_receive(zygote->control, &zygote->message,
                                       sizeof zygote->message, fds, LW_PROCESSES_FD_COUNT,
                                       &fd_count);
    if (got < (ssize_t)sizeof zygote->message.order) {
        return false;
    }
    if (zygote->message.order.kind == LW_PROCESSES_LOAD) {
        load(zygote, (size_t)got - sizeof zygote->message.order);
    } else if (fd_count == LW_PROCESSES_FD_COUNT) {
        fork_worker(zygote, fds);
    } else {
        refuse_fork(zygote, EMFILE);
    }
    for (size_t i = 0; i < fd_count; i++) {
        (void)close(fds[i]);
    }
    return true;
}

static int
watch_children(void)
{
    sigset_t set = block_sigchld();
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int
lw_processes_zygote_run(int control)
{
    static struct zygote zygote; /* its message is large */
    zygote.control = control;
    zygote.signals = watch_children();
    (void)fcntl(control, F_SETFD, FD_CLOEXEC);
    if (zygote.signals < 0) {
        return EXIT_BROKEN;
    }
    for (;;) {
        struct pollfd fds[2] = { { .fd = control, .events = POLLIN },
                                 { .fd = zygote.signals, .events = POLLIN } };
        if (poll(fds, 2, -1) < 0 && errno != EINTR) {
            return end(&zygote);
        }
        if (fds[1].revents) {
            reap(&zygote);
        }
        if (fds[0].revents && !obey(&zygote)) {
            return end(&zygote);
        }
    }
}
