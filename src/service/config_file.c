/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading files and looking at paths for the loader. Plain descriptors: a folder, a device that
 * never ends and a file that grows are all refused by the same bound.
 */
#include "service/config_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK_BYTES = 64 * 1024, PATH_BYTES_MAX = 4096 };

static const char *
copy_reason(int code, struct lw_config_arena *arena)
{
    char buffer[128];
    const char *reason = strerror_r(code, buffer, sizeof(buffer));
    const char *copy = lw_config_arena_text(arena, reason, strlen(reason));
    return copy ? copy : "";
}

static bool
fail(struct lw_config_file *file, const char *why)
{
    *file = (struct lw_config_file){ .why = why };
    return false;
}

/* How much to read: one byte more than the file has, to notice that it grows. */
static size_t
choose_capacity(const struct stat *info, size_t bytes_max)
{
    if (S_ISREG(info->st_mode) && info->st_size > 0) {
        return (size_t)info->st_size + 1;
    }
    return bytes_max < CHUNK_BYTES ? bytes_max + 1 : CHUNK_BYTES;
}

static bool
read_all(int fd, size_t bytes_max, struct lw_config_arena *arena,
         struct lw_config_file *ret_file)
{
    struct stat info;
    if (fstat(fd, &info) != 0) {
        return fail(ret_file, copy_reason(errno, arena));
    }
    if (S_ISREG(info.st_mode) && (uintmax_t)info.st_size > bytes_max) {
        return fail(ret_file, "the file is too large");
    }
    size_t capacity = choose_capacity(&info, bytes_max);
    char *text = lw_config_arena_take(arena, capacity + 1);
    size_t size = 0;
    ssize_t got = 0;
    while (text && size < capacity && (got = read(fd, text + size, capacity - size)) > 0) {
        size += (size_t)got;
    }
    if (!text || got < 0) {
        return fail(ret_file, text ? copy_reason(errno, arena) : "");
    }
    if (size == capacity || size > bytes_max) {
        return fail(ret_file, "the file is too large, or grows while it is read");
    }
    text[size] = '\0';
    *ret_file = (struct lw_config_file){ .text = text, .size = size, .why = "" };
    return true;
}

bool
lw_config_file_read(const char *path, size_t bytes_max, struct lw_config_arena *arena,
                    struct lw_config_file *ret_file)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) {
        return fail(ret_file, copy_reason(errno, arena));
    }
    bool is_read = read_all(fd, bytes_max, arena, ret_file);
    close(fd);
    return is_read;
}

const char *
lw_config_file_directory(const char *path, struct lw_config_arena *arena)
{
    const char *slash = strrchr(path, '/');
    if (!slash) {
        return ".";
    }
    size_t length = slash == path ? 1 : (size_t)(slash - path);
    return lw_config_arena_text(arena, path, length);
}

const char *
lw_config_file_join(const char *directory, const char *path, struct lw_config_arena *arena)
{
    if (path[0] == '/' || strcmp(directory, ".") == 0) {
        return path;
    }
    return lw_config_arena_format(arena, "%s/%s", directory, path);
}

static bool
is_executable(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
}

bool
lw_config_file_is_program(const char *name, const char *directory, const char *search)
{
    char path[PATH_BYTES_MAX];
    if (strchr(name, '/')) {
        (void)snprintf(path, sizeof(path), "%s%s%s", name[0] == '/' ? "" : directory,
                       name[0] == '/' ? "" : "/", name);
        return is_executable(path);
    }
    for (const char *at = search ? search : "/usr/local/bin:/usr/bin:/bin"; *at;) {
        size_t length = strcspn(at, ":");
        (void)snprintf(path, sizeof(path), "%.*s/%s", length > 0 ? (int)length : 1,
                       length > 0 ? at : ".", name);
        if (is_executable(path)) {
            return true;
        }
        at += length + (at[length] == ':' ? 1 : 0);
    }
    return false;
}

const char *
lw_config_file_not_program(const char *path, const char *directory,
                           struct lw_config_arena *arena)
{
    struct stat info;
    const char *full = strchr(path, '/') ? lw_config_file_join(directory, path, arena) : NULL;
    if (!full || stat(full, &info) != 0) {
        return NULL;
    }
    return S_ISDIR(info.st_mode) ? "is a folder" : "is not executable";
}
