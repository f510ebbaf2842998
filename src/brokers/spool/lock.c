/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The owner's lock by flock, which belongs to the open file and not to the process: two owners
 * inside one process exclude each other like two processes. What is read of the id is advice for
 * a person; the lock alone decides. Any thread.
 */
#include "brokers/spool/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "brokers/spool/faults.h"

enum { PATH_BYTES = 4096, PID_BYTES = 24 };

static long
read_pid(int fd)
{
    char text[PID_BYTES] = "";
    int64_t pid = 0;
    ssize_t got = pread(fd, text, sizeof text - 1, 0);
    text[got > 0 ? got : 0] = '\0';
    text[strcspn(text, " \n")] = '\0';
    return lw_text_to_int(text, &pid) ? (long)pid : 0;
}

/* A full disk must not keep the owner from its file: the number is for others to read only. */
static void
write_pid(int fd)
{
    char text[PID_BYTES];
    int length = snprintf(text, sizeof text, "%-20ld\n", (long)getpid());
    ssize_t written = pwrite(fd, text, (size_t)length, 0);
    (void)written;
}

enum lw_status
lw_spool_lock_take(struct lw_spool_lock *lock, const char *path, long *ret_pid,
                   struct lw_error *ret_error)
{
    char name[PATH_BYTES];
    int length = snprintf(name, sizeof name, "%s-owner", path);
    if (length < 0 || (size_t)length >= sizeof name) {
        return lw_spool_fault_path(path, ENAMETOOLONG, ret_error);
    }
    int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return lw_spool_fault_path(path, errno, ret_error);
    }
    int failed = 0;
    do {
        failed = flock(fd, LOCK_EX | LOCK_NB);
    } while (failed && errno == EINTR);
    if (failed) {
        int why = errno;
        if (ret_pid) {
            *ret_pid = read_pid(fd);
        }
        (void)close(fd);
        return why == EWOULDBLOCK ? LW_STATUS_ALREADY
                                  : lw_spool_fault_path(path, why, ret_error);
    }
    write_pid(fd);
    lock->fd = fd;
    return LW_STATUS_OK;
}

void
lw_spool_lock_release(struct lw_spool_lock *lock)
{
    if (lock->fd >= 0) {
        (void)close(lock->fd);
        lock->fd = -1;
    }
}
