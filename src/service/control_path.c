/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The places of control sockets, in the order in which both sides look at them. Blocking calls,
 * for start-up and the command only.
 */
#include "service/control_path.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"

enum { PLACES = 3 };

static bool
join(char out[LW_CONTROL_PATH_MAX], const char *directory, const char *name, const char *ending)
{
    int length = snprintf(out, LW_CONTROL_PATH_MAX, "%s/%s%s", directory, name, ending);
    return length > 0 && length < LW_CONTROL_PATH_MAX;
}

/* Writes the n-th place; false when there is no such one here. */
static bool
write_place(int place, char out[LW_CONTROL_PATH_MAX])
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    const char *temporary = getenv("TMPDIR");
    char own[32];
    switch (place) {
    case 0:
        if (!runtime || runtime[0] != '/' || strlen(runtime) >= LW_CONTROL_PATH_MAX) {
            return false;
        }
        lw_text_copy(out, LW_CONTROL_PATH_MAX, runtime);
        return true;
    case 1:
        lw_text_copy(out, LW_CONTROL_PATH_MAX, "/run/laneway");
        return true;
    default:
        (void)snprintf(own, sizeof own, "laneway-%lu", (unsigned long)getuid());
        return join(out, temporary && temporary[0] == '/' ? temporary : "/tmp", own, "");
    }
}

/* A directory of our own name in a place where everybody writes must be ours alone. */
static bool
is_ours(const char *directory)
{
    struct stat info;
    return lstat(directory, &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == getuid() &&
           (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

static bool
prepare(int place, const char *directory)
{
    if (place == PLACES - 1) {
        return (mkdir(directory, 0700) == 0 || errno == EEXIST) && is_ours(directory);
    }
    return access(directory, W_OK | X_OK) == 0;
}

enum lw_status
lw_control_path_make(const char *name, char out[LW_CONTROL_PATH_MAX],
                     struct lw_error *ret_error)
{
    char directory[LW_CONTROL_PATH_MAX] = "";
    for (int place = 0; place < PLACES; place++) {
        if (write_place(place, directory) && prepare(place, directory) &&
            join(out, directory, name, ".sock")) {
            return LW_STATUS_OK;
        }
    }
    enum lw_status status = lw_error_set(
        ret_error, LW_STATUS_SYSTEM, "E0801",
        "there is no place for the control socket of \"%s\" (last tried: %s)", name, directory);
    lw_error_help(ret_error, "set service.control to a path in a directory that you can write");
    return status;
}

bool
lw_control_path_with_pid(const char *path, long pid, char out[LW_CONTROL_PATH_MAX])
{
    size_t length = strlen(path);
    bool has_ending = length > 5 && strcmp(path + length - 5, ".sock") == 0;
    int written = snprintf(out, LW_CONTROL_PATH_MAX, "%.*s-%ld.sock",
                           (int)(has_ending ? length - 5 : length), path, pid);
    return written > 0 && written < LW_CONTROL_PATH_MAX;
}

int
lw_control_path_connect(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    if (strlen(path) >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    lw_text_copy(address.sun_path, sizeof address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        int problem = errno;
        close(fd);
        errno = problem;
        return -1;
    }
    return fd;
}

static bool
is_live(const char *path)
{
    int fd = lw_control_path_connect(path);
    if (fd >= 0) {
        close(fd);
    }
    return fd >= 0;
}

static void
find_in(const char *directory, struct lw_control_paths *paths)
{
    DIR *handle = opendir(directory);
    const struct dirent *entry;
    while (handle && (entry = readdir(handle)) != NULL) {
        size_t length = strlen(entry->d_name);
        size_t room = sizeof paths->paths / sizeof paths->paths[0];
        char *path = paths->paths[paths->count < room ? paths->count : 0];
        if (length > 5 && strcmp(entry->d_name + length - 5, ".sock") == 0 &&
            paths->count < room && join(path, directory, entry->d_name, "") && is_live(path)) {
            paths->count++;
        }
    }
    if (handle) {
        (void)closedir(handle);
    }
}

void
lw_control_paths_find(struct lw_control_paths *ret_paths)
{
    char directory[LW_CONTROL_PATH_MAX];
    ret_paths->count = 0;
    for (int place = 0; place < PLACES; place++) {
        if (write_place(place, directory)) {
            find_in(directory, ret_paths);
        }
    }
}
