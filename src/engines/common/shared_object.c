/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The headers of an ELF file, as far as a person can get them wrong: another kind of file, another
 * machine, a program or an object file, and loadable parts that lie behind the end of the file.
 * Everything else is left to the loader.
 */
#include "engines/common/shared_object.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#else
#define MACHINE EM_NONE /* not compared */
#endif

#if UINTPTR_MAX > UINT32_MAX
#define WORD_CLASS ELFCLASS64
#else
#define WORD_CLASS ELFCLASS32
#endif

static const char cut_short[] = "it is cut short: its parts lie behind its end";

static bool
is_of_this_machine(const ElfW(Ehdr) * head)
{
    const uint16_t one = 1;
    unsigned char order = *(const unsigned char *)&one == 1 ? ELFDATA2LSB : ELFDATA2MSB;
    return head->e_ident[EI_CLASS] == WORD_CLASS && head->e_ident[EI_DATA] == order &&
           (MACHINE == EM_NONE || head->e_machine == MACHINE);
}

static const char *
find_fault(const ElfW(Ehdr) * head, size_t size)
{
    if (size < SELFMAG || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0) {
        return "it is not a shared object";
    }
    if (size < sizeof *head) {
        return cut_short;
    }
    if (!is_of_this_machine(head)) {
        return "it is a shared object for another kind of machine";
    }
    if (head->e_type != ET_DYN || head->e_phentsize != sizeof(ElfW(Phdr))) {
        return "it is a program or an object file, not a shared object";
    }
    return NULL;
}

/* True when all that is to be mapped is in the file. */
static bool
has_all_parts(int fd, const ElfW(Ehdr) * head, uint64_t file_bytes)
{
    for (size_t i = 0; i < head->e_phnum; i++) {
        ElfW(Phdr) part;
        uint64_t at = head->e_phoff + i * sizeof part;
        if (at > file_bytes || pread(fd, &part, sizeof part, (off_t)at) != sizeof part) {
            return false;
        }
        bool is_inside = part.p_offset <= file_bytes &&
                         part.p_filesz <= file_bytes - part.p_offset;
        if (part.p_type == PT_LOAD && !is_inside) {
            return false;
        }
    }
    return true;
}

static const char *
look_into(int fd, int *ret_code)
{
    ElfW(Ehdr) head;
    struct stat about;
    if (fstat(fd, &about) != 0) {
        *ret_code = errno;
        return strerrordesc_np(*ret_code);
    }
    if (!S_ISREG(about.st_mode)) {
        return "it is not a file";
    }
    ssize_t size = pread(fd, &head, sizeof head, 0);
    if (size < 0) {
        *ret_code = errno;
        return strerrordesc_np(*ret_code);
    }
    const char *fault = find_fault(&head, (size_t)size);
    if (!fault && !has_all_parts(fd, &head, (uint64_t)about.st_size)) {
        fault = cut_short;
    }
    return fault;
}

const char *
lw_shared_object_fault(const char *path, int *ret_code)
{
    *ret_code = 0;
    /* Not to be held up by a pipe of that name. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        *ret_code = errno;
        return strerrordesc_np(*ret_code);
    }
    const char *fault = look_into(fd, ret_code);
    (void)close(fd);
    return fault;
}
