/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words for failed starts. posix_spawn tells one errno for all that the child does before the
 * program runs, so ENOENT is the folder, the file, or the interpreter in its first line: which of
 * them it was is looked up.
 */
#include "engines/common/spawn_failure.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *
lw_spawn_failure_help(int code)
{
    switch (code) {
    case EAGAIN:
        return "raise the limit of processes (ulimit -u, TasksMax= of a unit, pids.max of a "
               "container), or lower \"workers\"";
    case EMFILE:
        return "raise the limit of open files (ulimit -n, LimitNOFILE= of a unit), or lower "
               "\"workers\"";
    case ENFILE:
        return "the whole system has too many files open: fs.file-max";
    case ENOMEM:
        return "the system has no memory for it: lower \"workers\", or raise the limit of "
               "memory";
    case ENOSPC:
        return "shared memory is full: lower \"workers\" or \"processes.ring\"";
    case EFBIG:
        return "the limit of file sizes holds for shared memory, too: ulimit -f, LimitFSIZE= "
               "of a unit";
    case E2BIG:
        return "its arguments and its environment are too large together";
    default:
        return "";
    }
}

static bool
is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static const char *
about_denied(const char *path)
{
    return is_folder(path) ? "it is a folder"
                           : "make it executable (chmod +x) for the user of Laneway, and the "
                             "folders that it is in accessible";
}

const char *
lw_spawn_failure_program(const char *program, const char *directory, int code, char *out,
                         size_t size)
{
    char path[PATH_MAX];
    bool is_relative = directory && program[0] != '/';
    (void)snprintf(path, sizeof path, "%s%s%s", is_relative ? directory : "",
                   is_relative ? "/" : "", program);
    if (directory && (code == ENOENT || code == ENOTDIR || code == EACCES) &&
        (!is_folder(directory) || access(directory, X_OK) != 0)) {
        (void)snprintf(out, size, "its working directory %s is not there, or closed to Laneway",
                       directory);
        return out;
    }
    if (code == ENOEXEC) {
        return "it is neither a program for this machine nor a script whose first line is #! "
               "and the path of one";
    }
    if (code == ENOENT && strchr(program, '/') && access(path, F_OK) == 0) {
        return "the file is there, but what its first line (#!) or its loader names is not";
    }
    return code == EACCES && strchr(program, '/') ? about_denied(path)
                                                  : lw_spawn_failure_help(code);
}
