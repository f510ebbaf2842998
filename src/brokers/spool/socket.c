/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A socket's path is limited to some hundred bytes and a spool's is not, so the folder is opened and
 * the socket named through that descriptor. Any thread.
 */
#include "brokers/spool/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define SUFFIX "-socket"

enum { PATH_BYTES = 4096, CONNECTIONS = 64, CONNECT_S = 5 };

struct place {
    int folder; /* -1 none */
    char name[PATH_BYTES];
    struct sockaddr_un address;
};

/* False: the path cannot be used (errno). */
static bool
find_place(const char *path, struct place *ret_place)
{
    char folder[PATH_BYTES];
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    size_t length = slash ? (size_t)(slash - path) : 0;
    ret_place->folder = -1;
    if (length >= sizeof folder) {
        errno = ENAMETOOLONG;
        return false;
    }
    (void)snprintf(folder, sizeof folder, "%.*s", (int)length, path);
    const char *opened = !slash ? "." : length == 0 ? "/" : folder;
    ret_place->folder = open(opened, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (ret_place->folder < 0) {
        return false;
    }
    ret_place->address = (struct sockaddr_un){ .sun_family = AF_UNIX };
    int named = snprintf(ret_place->name, sizeof ret_place->name, "%s" SUFFIX, base);
    int size = snprintf(ret_place->address.sun_path, sizeof ret_place->address.sun_path,
                        "/proc/self/fd/%d/%s", ret_place->folder, ret_place->name);
    if (named < 0 || size < 0 || (size_t)size >= sizeof ret_place->address.sun_path) {
        (void)close(ret_place->folder);
        errno = ENAMETOOLONG;
        return false;
    }
    return true;
}

/* Nobody can connect before the mode is right. */
static bool
bind_place(int fd, const struct place *place)
{
    (void)unlinkat(place->folder, place->name, 0);
    const struct sockaddr *address = (const struct sockaddr *)(const void *)&place->address;
    return bind(fd, address, sizeof place->address) == 0 &&
           fchmodat(place->folder, place->name, 0600, 0) == 0 && listen(fd, CONNECTIONS) == 0;
}

int
lw_spool_socket_listen(const char *path)
{
    struct place place;
    if (!find_place(path, &place)) {
        return -1;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && !bind_place(fd, &place)) {
        int why = errno;
        (void)close(fd);
        fd = -1;
        errno = why;
    }
    (void)close(place.folder);
    return fd;
}

int
lw_spool_socket_connect(const char *path)
{
    struct place place;
    if (!find_place(path, &place)) {
        return -1;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct timeval patience = {
        .tv_sec = CONNECT_S
    }; /* with an owner that has stopped */
    if (fd >= 0) {
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    }
    const struct sockaddr *address = (const struct sockaddr *)(const void *)&place.address;
    if (fd >= 0 && connect(fd, address, sizeof place.address) != 0) {
        int why = errno;
        (void)close(fd);
        fd = -1;
        errno = why;
    }
    (void)close(place.folder);
    return fd;
}

void
lw_spool_socket_remove(const char *path)
{
    struct place place;
    if (find_place(path, &place)) {
        (void)unlinkat(place.folder, place.name, 0);
        (void)close(place.folder);
    }
}
