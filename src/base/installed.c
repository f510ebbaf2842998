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
is_ours(const struct stat *info)
{
    return info->st_uid == 0 || info->st_uid == geteuid();
}

/* Neither it nor the link that it may be is somebody else's to change. */
static bool
is_safe(const char *path, struct stat *ret_info)
{
    struct stat link;
    return lstat(path, &link) == 0 && is_ours(&link) && stat(path, ret_info) == 0 &&
           is_ours(ret_info) && (ret_info->st_mode & S_IWOTH) == 0;
}

/* What somebody may put in another's place after we looked must not be run: /tmp is such a place. */
static bool
is_in_safe_folders(struct lw_bytes prefix, const char *rest)
{
    char path[PATH_MAX];
    struct stat info;
    for (const char *end = strchr(rest + 1, '/');; end = strchr(end + 1, '/')) {
        int length = end ? (int)(end - rest) : (int)strlen(rest);
        int written = snprintf(path, sizeof path, "%.*s%.*s", (int)prefix.size,
                               (const char *)prefix.data, length, rest);
        if (written < 0 || (size_t)written >= sizeof path || !is_safe(path, &info)) {
            return false;
        }
        if (!end) {
            return true;
        }
    }
}

static bool
try_folder(struct lw_bytes prefix, const char *rest, const char *name, char *ret_path,
           size_t size)
{
    char path[PATH_MAX];
    struct stat info;
    int written = snprintf(path, sizeof path, "%.*s%s/%s", (int)prefix.size,
                           (const char *)prefix.data, rest, name);
    if (written < 0 || (size_t)written >= sizeof path || (size_t)written >= size ||
        !is_in_safe_folders(prefix, rest) || !is_safe(path, &info) || !S_ISREG(info.st_mode) ||
        access(path, X_OK) != 0) {
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
    static const char folder[] = "/laneway";
    const struct lw_bytes prefix = { LW_LIBEXEC_DIR, strlen(LW_LIBEXEC_DIR) - strlen(folder) };
    return find_near_command(name, ret_path, size) || find_near_library(name, ret_path, size) ||
           try_folder(prefix, folder, name, ret_path, size);
}
