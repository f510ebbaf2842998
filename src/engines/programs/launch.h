/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a worker's process is given before its program runs, by way of the installed program
 * laneway-exec: a limit of open files and a user, for good. Everything is tried once at start, so
 * that what cannot be set is an error there and not at the first message.
 */
#ifndef LW_ENGINES_PROGRAMS_LAUNCH_H
#define LW_ENGINES_PROGRAMS_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

#include <laneway/laneway.h>

#define LW_PROGRAMS_LAUNCH_VARIABLES 3

/* What a process had used when it was seen to begin a message, and what is too much. */
struct lw_programs_sample {
    int64_t id; /* of the message, 0 none */
    uint64_t cpu_ms;
    char why[128];
};

/* What holds for each worker; zeros and NULL: nothing. */
struct lw_programs_limits {
    uint64_t memory_max; /* bytes, resident, of a worker and its children */
    int64_t cpu_max_ms;  /* processor time on one message, its children's too */
    uint32_t nofile;     /* open files of each of its processes */
    const char *user;    /* NAME or NUMBER, then :GROUP if it is not the user's own */
};

/* Of the environment NAME alone is what the user has not; NULL: it is not touched. */
struct lw_programs_launch {
    char **argv;        /* laneway-exec, its options, the program; NULL: it is not needed */
    char **environment; /* HOME, USER, LOGNAME of the user */
};

/* True when laneway-exec is needed. */
bool lw_programs_launch_is_needed(const struct lw_programs_limits *limits);
struct lw_programs_launch_request {
    const struct lw_programs_limits *limits;
    const char *handler;        /* for the error */
    const char *const *program; /* argv, NULL-terminated */
    const char *directory;      /* NULL: ours */
};

/* Makes the words and tries them (E0611). Blocks for some milliseconds: for the start. */
enum lw_status
lw_programs_launch_create(const struct lw_programs_launch_request *request,
                          struct lw_programs_launch *ret_launch, struct lw_error *ret_error);
void lw_programs_launch_destroy(struct lw_programs_launch *launch);

#endif
