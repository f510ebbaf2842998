/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads /proc/PID/stat, and /proc/PID/task/TID/children of every thread, since the kernel lists a
 * child with the thread that forked it. About 30 us a process with one thread: cheap enough for
 * the loop thread four times a second, which a look through all of /proc would not be.
 */
#include "engines/common/usage.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

enum { FILE_BYTES_MAX = 4096, CHILDREN_BYTES = 512 };

/* The processes that were found and are still to be looked at. */
struct found {
    pid_t pids[LW_USAGE_PROCESSES];
    size_t count;
};

struct stat_line {
    uint64_t ticks;
    uint64_t resident_pages;
    uint64_t thread_count;
};

/* The beginning of a file as a text; false when it cannot be read. */
static bool
read_file(const char *path, char *out, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd >= 0 ? read(fd, out, size - 1) : -1;
    if (fd >= 0) {
        (void)close(fd);
    }
    out[length > 0 ? length : 0] = '\0';
    return length >= 0;
}

/* Fields are counted from the state, which is the third: a name may hold anything. */
static bool
read_stat(pid_t pid, struct stat_line *ret_line)
{
    char path[64];
    char text[FILE_BYTES_MAX];
    uint64_t fields[22] = { 0 };
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (!read_file(path, text, sizeof text)) {
        return false;
    }
    const char *at = strrchr(text, ')');
    size_t count = 0;
    for (at = at ? strchr(at, ' ') : NULL; at && count < 22; at = strchr(at + 1, ' ')) {
        fields[count++] = strtoull(at + 1, NULL, 10);
    }
    ret_line->ticks = fields[11] + fields[12] + fields[13] + fields[14];
    ret_line->thread_count = fields[17];
    ret_line->resident_pages = fields[21];
    return count == 22;
}

static void
add_children(struct found *found, pid_t pid, const char *thread)
{
    char path[64];
    char text[CHILDREN_BYTES * 8];
    (void)snprintf(path, sizeof path, "/proc/%d/task/%.16s/children", (int)pid, thread);
    if (!read_file(path, text, sizeof text)) {
        return;
    }
    char *next = text;
    for (const char *at = text; found->count < LW_USAGE_PROCESSES; at = next) {
        long child = strtol(at, &next, 10);
        if (next == at || *next != ' ') { /* each is followed by a space: none was cut */
            return;
        }
        found->pids[found->count++] = (pid_t)child;
    }
}

static void
add_children_of_threads(struct found *found, pid_t pid)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    const struct dirent *entry = NULL;
    while (folder && (entry = readdir(folder)) != NULL) { // NOLINT(concurrency-mt-unsafe)
        if (entry->d_name[0] != '.') {
            add_children(found, pid, entry->d_name);
        }
    }
    if (folder) {
        (void)closedir(folder);
    }
}

static void
find_children(struct found *found, pid_t pid, uint64_t thread_count)
{
    char thread[16];
    if (thread_count > 1) {
        add_children_of_threads(found, pid);
        return;
    }
    (void)snprintf(thread, sizeof thread, "%d", (int)pid);
    add_children(found, pid, thread);
}

bool
lw_usage_has_children(void)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)getpid(),
                   (int)getpid());
    return access(path, R_OK) == 0;
}

bool
lw_usage_read(pid_t pid, struct lw_usage *ret_usage)
{
    struct found found = { .pids = { pid }, .count = 1 };
    struct lw_usage usage = { .process_count = 0 };
    uint64_t ticks = 0;
    uint64_t pages = 0;
    for (size_t i = 0; i < found.count; i++) {
        struct stat_line line;
        if (!read_stat(found.pids[i], &line)) {
            continue;
        }
        usage.process_count++;
        ticks += line.ticks;
        pages += line.resident_pages;
        find_children(&found, found.pids[i], line.thread_count);
    }
    if (usage.process_count == 0) {
        return false;
    }
    usage.resident_bytes = pages * (uint64_t)sysconf(_SC_PAGESIZE);
    usage.cpu_ms = ticks * 1000 / (uint64_t)sysconf(_SC_CLK_TCK);
    *ret_usage = usage;
    return true;
}

bool
lw_usage_is_over(const struct lw_usage *usage, uint64_t memory_max, char *ret_why, size_t size)
{
    char used[32];
    char limit[32];
    uint64_t unit = memory_max % 1000000 == 0 ? 1000000 : 1 << 20; /* of both figures */
    if (memory_max == 0 || usage->resident_bytes <= memory_max) {
        return false;
    }
    lw_text_from_size((int64_t)((usage->resident_bytes / unit + 1) * unit), used, sizeof used);
    lw_text_from_size((int64_t)memory_max, limit, sizeof limit);
    (void)snprintf(ret_why, size, "it used %s of memory, memory_max is %s", used, limit);
    return true;
}
