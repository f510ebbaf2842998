/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process and its descendants use, by /proc. Memory is what is resident; pages that
 * several of them share count in each. A child that was disowned (its parent ended first) is not
 * found any more, since it has another parent.
 */
#ifndef LW_ENGINES_COMMON_USAGE_H
#define LW_ENGINES_COMMON_USAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define LW_USAGE_PROCESSES 512 /* more are not looked at */

struct lw_usage {
    uint64_t resident_bytes;
    uint64_t cpu_ms; /* of all, with the children that were waited for */
    uint32_t process_count;
};

/* Does the kernel list children? Without it only the process itself is seen. */
bool lw_usage_has_children(void);
/* False: there is no such process, or /proc does not tell. */
bool lw_usage_read(pid_t pid, struct lw_usage *ret_usage);
/*
 * Is more resident than `memory_max` bytes (0: as much as it wants)? Then `ret_why` tells both, in the
 * unit of the limit.
 */
bool
lw_usage_is_over(const struct lw_usage *usage, uint64_t memory_max, char *ret_why, size_t size);

#endif
