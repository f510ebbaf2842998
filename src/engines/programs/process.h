/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child process with four pipes: its standard input, output and error, and descriptor 3 for
 * answers. It leads a session and process group of its own, has default signal dispositions, no
 * signal blocked, and none of our descriptors. Our ends are non-blocking and close-on-exec.
 */
#ifndef LW_ENGINES_PROGRAMS_PROCESS_H
#define LW_ENGINES_PROGRAMS_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include <laneway/laneway.h>

#define LW_PROGRAMS_ANSWERS_FD 3

struct lw_programs_process {
    pid_t pid;     /* 0: none */
    int exit_fd;   /* becomes readable when the process ends */
    bool is_pidfd; /* false: the read end of a pipe that only the process holds open */
    int input;     /* we write; -1 closed */
    int output;    /* we read; -1 closed */
    int answers;
    int errors;
};

/* Before there is one: no descriptor of ours may be taken for its. */
#define LW_PROGRAMS_NO_PROCESS                                                                 \
    (struct lw_programs_process)                                                               \
    {                                                                                          \
        .exit_fd = -1, .input = -1, .output = -1, .answers = -1, .errors = -1                  \
    }

struct lw_programs_exit {
    bool is_known; /* false: somebody else has reaped it */
    int status;    /* when it exited */
    int signal;    /* that killed it, 0 none */
};

struct lw_programs_command {
    const char *const *program;     /* argv; looked up in PATH */
    const char *directory;          /* NULL: ours */
    const char *const *environment; /* NAME=VALUE, NULL-terminated, over ours; may be NULL;
                                       NAME alone takes ours away */
    bool has_pidfd;                 /* from lw_programs_process_has_pidfd */
    bool has_answers;               /* descriptor 3 is for answers; else there is none */
};

/* Does the kernel (or what runs us) tell ends by a descriptor? Asked once, for it is a call. */
bool lw_programs_process_has_pidfd(void);

/* Answers 0, or the errno of what failed; exec's own failure is among them. */
int lw_programs_process_spawn(const struct lw_programs_command *command,
                              struct lw_programs_process *ret_process);
/* True when it has ended; it is not reaped yet, so its group can still be signalled. */
bool lw_programs_process_is_over(const struct lw_programs_process *process);
/* Signals the whole group. */
void lw_programs_process_signal(const struct lw_programs_process *process, int signal);
/* Kills what is left of the group, reaps, closes everything. Waits if it still runs. */
struct lw_programs_exit lw_programs_process_end(struct lw_programs_process *process);

#endif
