/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sending and receiving with descriptors. Whatever is not taken is closed: a peer cannot fill our
 * table of descriptors.
 */
#include "engines/processes/control.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"

enum { FDS_MAX = 8, WAKES_AT_ONCE = 256 };

int
lw_processes_send(int socket, const void *message, size_t size, const int *fds, size_t fd_count)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
    } control;
    struct iovec part = { .iov_len = size };
    struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1 };
    memcpy(&part.iov_base, &message, sizeof message);
    if (fd_count > 0) {
        memset(&control, 0, sizeof control);
        header.msg_control = control.bytes;
        header.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
        struct cmsghdr *item = CMSG_FIRSTHDR(&header);
        lw_assert(item && fd_count <= FDS_MAX);
        item->cmsg_level = SOL_SOCKET;
        item->cmsg_type = SCM_RIGHTS;
        item->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
        memcpy(CMSG_DATA(item), fds, fd_count * sizeof(int));
    }
    ssize_t sent = 0;
    do {
        sent = sendmsg(socket, &header, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent < 0 ? errno : 0;
}

/* Keeps those for which there is room in `fds`, of which `seen` came before; closes the others. */
static size_t
take_fds_of(const struct cmsghdr *item, int *fds, size_t fd_max, size_t seen)
{
    size_t count = (item->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; i++) {
        int fd = -1;
        memcpy(&fd, CMSG_DATA(item) + i * sizeof fd, sizeof fd);
        if (seen + i < fd_max) {
            fds[seen + i] = fd;
        } else {
            (void)close(fd);
        }
    }
    return count;
}

/* Keeps the first `fd_max` descriptors and closes the others; false when there were others. */
static bool
take_fds(struct msghdr *header, int *fds, size_t fd_max, size_t *ret_count)
{
    size_t seen = 0;
    for (struct cmsghdr *item = CMSG_FIRSTHDR(header); item; item = CMSG_NXTHDR(header, item)) {
        if (item->cmsg_level == SOL_SOCKET && item->cmsg_type == SCM_RIGHTS) {
            seen += take_fds_of(item, fds, fd_max, seen);
        }
    }
    *ret_count = seen < fd_max ? seen : fd_max;
    return seen <= fd_max;
}

static void
close_all(const int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        (void)close(fds[i]);
    }
}

/* Bytes and descriptors are two arrays. NOLINTBEGIN(readability-function-size) */
ssize_t
lw_processes_receive(int socket, void *message, size_t size, int *fds, size_t fd_max,
                     size_t *ret_fd_count)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
    } control;
    struct iovec part = { .iov_base = message, .iov_len = size };
    struct msghdr header = { .msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes };
    size_t count = 0;
    ssize_t received = 0;
    bool was_reset = false;
    do {
        /* Said once when the other end died with unread messages; what it sent is still there. */
        was_reset = received < 0 && errno == ECONNRESET;
        received = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
    } while (received < 0 && (errno == EINTR || (errno == ECONNRESET && !was_reset)));
    if (received < 0) {
        return -1;
    }
    bool has_all = take_fds(&header, fds, fd_max, &count);
    bool is_cut = !has_all || (header.msg_flags & MSG_TRUNC) != 0;
    if (is_cut || (header.msg_flags & MSG_CTRUNC) != 0) {
        close_all(fds, count);
        count = 0;
    }
    if (is_cut) {
        errno = EPROTO;
        return -1;
    }
    if (header.msg_flags & MSG_CTRUNC) {
        fds[0] = LW_PROCESSES_FD_LOST;
    }
    *ret_fd_count = count;
    return received;
}
/* NOLINTEND(readability-function-size) */

int
lw_processes_wake(int socket)
{
    ssize_t sent = 0;
    do {
        sent = send(socket, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    /* Full: it is readable all the same. */
    return sent < 0 && errno != EAGAIN ? errno : 0;
}

bool
lw_processes_take_wakes(int socket, bool *ret_is_closed)
{
    char wakes[WAKES_AT_ONCE];
    ssize_t got = recv(socket, wakes, sizeof wakes, MSG_DONTWAIT);
    *ret_is_closed = got == 0;
    return got > 0;
}
