/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting and ending the zygote: a child by posix_spawn with a socket for orders and a pipe for
 * what is printed, in a process group of its own, with none of our descriptors.
 */
#ifndef LW_ENGINES_PROCESSES_SPAWN_H
#define LW_ENGINES_PROCESSES_SPAWN_H

#include <sys/types.h>

struct lw_processes_zygote {
    pid_t pid;   /* 0: none */
    int pidfd;   /* -1 none */
    int control; /* does not block */
    int log;     /* does not block */
};

/* The zygote's ends of the two. */
struct lw_processes_ends {
    int control;
    int log;
};

/* Makes them, and ours; 0 or an errno, the caller closes what is there (-1: is not) either way. */
int lw_processes_open_ends(struct lw_processes_zygote *ours, struct lw_processes_ends *theirs);
/* 0 or an errno; exec's own failure is among them. */
int lw_processes_spawn(const char *path, struct lw_processes_zygote *ret_zygote);
/* Closes its socket, waits for its end, kills it if that does not come; closes everything. */
void lw_processes_spawn_end(struct lw_processes_zygote *zygote);

#endif
