/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages between our process, the zygote and the workers, over sequenced-packet sockets,
 * descriptors along with them. The zygote and its workers are our own program running the user's
 * code: what comes from them is held against its size and kinds, like everything from outside.
 */
#ifndef LW_ENGINES_PROCESSES_CONTROL_H
#define LW_ENGINES_PROCESSES_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <laneway/laneway.h>

/* Changes with anything that both ends must agree on. */
#define LW_PROCESSES_PROTOCOL 3
#define LW_PROCESSES_CONTROL_FD 3

enum lw_processes_order_kind {
    LW_PROCESSES_LOAD, /* texts: path, symbol, service, handler, options by pairs; or function */
    LW_PROCESSES_FORK  /* descriptors as in enum lw_processes_fd */
};

enum lw_processes_fd {
    LW_PROCESSES_FD_MEMORY,
    LW_PROCESSES_FD_WAKE, /* a socket: each end sleeps on its own and wakes by it */
    LW_PROCESSES_FD_SOCKET,
    LW_PROCESSES_FD_LOG, /* standard output and error */
    LW_PROCESSES_FD_COUNT
};

enum { LW_PROCESSES_TEXTS_MAX = 32768 };

struct lw_processes_order {
    uint32_t kind;
    uint32_t protocol;
    uint64_t serial; /* of the process that is to be made */
    uint64_t ring_bytes;
    uint64_t item_bytes_max; /* of what a handler says */
    int64_t timeout_ms;
    uint64_t function; /* in place of a path: a handler in the zygote's memory, and its user */
    uint64_t user;
    uint32_t worker;
    int32_t cpu; /* that it is bound to; -1 none */
    uint32_t option_count;
    uint32_t texts_size;
    uint32_t is_batch; /* it is given batches, by its lw_handler_batch_fn */
    uint32_t is_one;   /* of whose messages the first verdict is that of all */
};

enum lw_processes_note_kind {
    LW_PROCESSES_LOADED,
    LW_PROCESSES_REFUSED, /* the zygote: not loaded; a worker: not opened; error says why */
    LW_PROCESSES_FORKED,  /* serial, pid; a pidfd along, where the kernel has them */
    LW_PROCESSES_NOT_FORKED,
    LW_PROCESSES_EXITED, /* serial, status or signal */
    LW_PROCESSES_READY,  /* a worker may be given messages */
    LW_PROCESSES_ITEM    /* either way between owner and worker: memory of one item along */
};

struct lw_processes_note {
    uint32_t kind;
    int32_t pid;
    uint64_t serial; /* of the process; of an item: of its request */
    int32_t status;
    int32_t signal;
    struct lw_error error;
};

/* Sends one message; 0 or an errno (EAGAIN: no room now, on a socket that does not block). */
int lw_processes_send(int socket, const void *message, size_t size, const int *fds,
                      size_t fd_count);

/* In place of a descriptor that came when our table of them was full. */
#define LW_PROCESSES_FD_LOST (-2)

/*
 * Receives one message of at most `size` bytes; its size, 0 at the end, -1 and errno. The
 * descriptors are close-on-exec; more than `fd_max` of them, or a message that is cut, is EPROTO.
 * When they found no room in our table, *ret_fd_count is 0 and fds[0] is LW_PROCESSES_FD_LOST.
 */
ssize_t lw_processes_receive(int socket, void *message, size_t size, int *fds, size_t fd_max,
                             size_t *ret_fd_count);

/*
 * Wakes who sleeps on the other end of a pair; 0 or an errno. An eventfd would be one descriptor in
 * two processes: the other one could make it block us. Here each end and each call is on its own.
 */
int lw_processes_wake(int socket);
/* Takes the wake-ups that have come: true when there were some; false and *ret_is_closed else. */
bool lw_processes_take_wakes(int socket, bool *ret_is_closed);

#endif
