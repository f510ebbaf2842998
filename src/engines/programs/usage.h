/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process and its descendants use, by /proc. Memory is what is resident; pages that
 * several of them share count in each. A child that was disowned (its parent ended first) is not
 * found any more, since it has another parent.
 */
#ifndef LW_ENGINES_PROGRAMS_USAGE_H
#define LW_ENGINES_PROGRAMS_USAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define LW_PROGRAMS_USAGE_PROCESSES 512 /* more are not looked at */

struct lw_programs_usage {
    uint64_t resident_bytes;
    uint64_t cpu_ms; /* of all, with the children that were waited for */
    uint32_t process_count;
};

/* What a process had used when it was seen to begin a message, and what is too much. */
struct lw_programs_sample {
    int64_t id; /* of the message, 0 none */
    uint64_t cpu_ms;
    char why[128];
};

/* Does the kernel list children? Without it only the process itself is seen. */
bool lw_programs_usage_has_children(void);
/* False: there is no such process, or /proc does not tell. */
bool lw_programs_usage_read(pid_t pid, struct lw_programs_usage *ret_usage);

#endif
