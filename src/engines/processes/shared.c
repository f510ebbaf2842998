/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making and mapping the shared memory. Its pages are asked for at once: a lack of memory is an
 * error of this call, not a fault in the middle of a message. Seals hold on the file, whoever has
 * it open or mapped.
 */
#include "engines/processes/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RING_MAX = 1 << 30 };

size_t
lw_processes_ring_bytes(size_t bytes)
{
    size_t size = LW_PROCESSES_PAGE;
    while (size < bytes && size < RING_MAX) {
        size *= 2;
    }
    return size;
}

static size_t
mapped_bytes(size_t ring_bytes)
{
    return LW_PROCESSES_PAGE + 4 * ring_bytes;
}

static bool
map_part(int fd, unsigned char *at, size_t size, size_t offset)
{
    return mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd,
                (off_t)offset) != MAP_FAILED;
}

static bool
map_all(int fd, unsigned char *base, size_t ring)
{
    unsigned char *requests = base + LW_PROCESSES_PAGE;
    unsigned char *answers = requests + 2 * ring;
    size_t first = LW_PROCESSES_PAGE;
    return map_part(fd, base, LW_PROCESSES_PAGE, 0) && map_part(fd, requests, ring, first) &&
           map_part(fd, requests + ring, ring, first) &&
           map_part(fd, answers, ring, first + ring) &&
           map_part(fd, answers + ring, ring, first + ring);
}

int
lw_processes_shared_open(int fd, size_t ring_bytes, struct lw_processes_shared *ret_shared)
{
    void *base = mmap(NULL, mapped_bytes(ring_bytes), PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
        return errno;
    }
    if (!map_all(fd, base, ring_bytes)) {
        int failed = errno;
        (void)munmap(base, mapped_bytes(ring_bytes));
        return failed;
    }
    unsigned char *bytes = base;
    *ret_shared = (struct lw_processes_shared){
        .words = base,
        .requests = bytes + LW_PROCESSES_PAGE,
        .answers = bytes + LW_PROCESSES_PAGE + 2 * ring_bytes,
        .request_bytes = ring_bytes,
        .answer_bytes = ring_bytes,
    };
    return 0;
}

static int
size_and_seal(int fd, size_t size)
{
    int failed = posix_fallocate(fd, 0, (off_t)size);
    if (failed) {
        return failed;
    }
    return fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0 ? 0 : errno;
}

int
lw_processes_shared_create(size_t ring_bytes, struct lw_processes_shared *ret_shared,
                           int *ret_fd)
{
    int fd = memfd_create("laneway-worker", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) {
        return errno;
    }
    int failed = size_and_seal(fd, LW_PROCESSES_PAGE + 2 * ring_bytes);
    failed = failed ? failed : lw_processes_shared_open(fd, ring_bytes, ret_shared);
    if (failed) {
        (void)close(fd);
        return failed;
    }
    *ret_fd = fd;
    return 0;
}

void
lw_processes_shared_close(struct lw_processes_shared *shared)
{
    if (shared->words) {
        (void)munmap(shared->words, mapped_bytes(shared->request_bytes));
        *shared = (struct lw_processes_shared){ .words = NULL };
    }
}

static bool
write_all(int fd, const unsigned char *data, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t written = write(fd, data + done, size - done);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            return false;
        }
        done += (size_t)written;
    }
    return true;
}

int
lw_processes_item_create(const void *data, size_t size)
{
    int fd = memfd_create("laneway-item", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int seals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    if (fd >= 0 && (!write_all(fd, data, size) || fcntl(fd, F_ADD_SEALS, seals) != 0)) {
        int failed = errno;
        (void)close(fd);
        errno = failed;
        fd = -1;
    }
    return fd;
}

bool
lw_processes_item_is_sound(int fd, size_t size)
{
    int wanted = F_SEAL_WRITE | F_SEAL_SHRINK;
    int seals = fcntl(fd, F_GET_SEALS);
    struct stat info;
    return seals >= 0 && (seals & wanted) == wanted && fstat(fd, &info) == 0 &&
           (size_t)info.st_size == size;
}

void
lw_processes_copy_once(void *out, const void *shared, size_t size)
{
    memcpy(out, shared, size);
    /* From here on the compiler must use the copy: the source may have changed. */
    __asm__ volatile("" : : "r"(out) : "memory");
}
