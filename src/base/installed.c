/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks upwards from a file: /usr/bin/laneway finds /usr/libexec/laneway/NAME, and so does
 * build/tests/base/test_x in build/libexec/laneway. The library's own place comes second, for
 * programs that load it from another prefix than theirs. Any thread; blocks on the file system.
 */
#include "base/installed.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <laneway/laneway.h>

enum { LEVELS_MAX = 5 };

static bool
is_safe(const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode) || access(path, X_OK) != 0) {
        return false;
    }
    bool is_ours = info.st_uid == 0 || info.st_uid == geteuid();
    return is_ours && (info.st_mode & S_IWOTH) == 0;
}

static bool
try_folder(struct lw_bytes prefix, const char *rest, const char *name, char *ret_path,
           size_t size)
{
    char path[PATH_MAX];
    int written = snprintf(path, sizeof path, "%.*s%s/%s", (int)prefix.size,
                           (const char *)prefix.data, rest, name);
    if (written < 0 || (size_t)written >= sizeof path || (size_t)written >= size ||
        !is_safe(path)) {
        return false;
    }
    memcpy(ret_path, path, (size_t)written + 1);
    return true;
}

bool
lw_installed_find_near(const char *from, const char *name, char *ret_path, size_t size)
{
    size_t length = strlen(from);
    if (from[0] != '/' || length >= PATH_MAX) {
        return false;
    }
    for (int level = 0; level < LEVELS_MAX && length > 0; level++) {
        while (length > 0 && from[length - 1] != '/') {
            length--;
        }
        length -= length > 0 ? 1 : 0; /* the folder, without its slash */
        if (try_folder((struct lw_bytes){ from, length }, "/libexec/laneway", name, ret_path,
                       size)) {
            return true;
        }
    }
    return false;
}

static bool
find_near_command(const char *name, char *ret_path, size_t size)
{
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length <= 0) {
        return false;
    }
    self[length] = '\0';
    return lw_installed_find_near(self, name, ret_path, size);
}

static bool
find_near_library(const char *name, char *ret_path, size_t size)
{
    static const char here;
    Dl_info info;
    return dladdr(&here, &info) != 0 && info.dli_fname &&
           lw_installed_find_near(info.dli_fname, name, ret_path, size);
}

bool
lw_installed_find(const char *name, char *ret_path, size_t size)
{
    const struct lw_bytes prefix = { LW_LIBEXEC_DIR, strlen(LW_LIBEXEC_DIR) };
    return find_near_command(name, ret_path, size) || find_near_library(name, ret_path, size) ||
           try_folder(prefix, "", name, ret_path, size);
}
