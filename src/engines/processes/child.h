/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a worker process: takes requests from its ring, calls the handler for one after
 * the other, writes answers into the other ring. One thread; the handler may have more.
 */
#ifndef LW_ENGINES_PROCESSES_CHILD_H
#define LW_ENGINES_PROCESSES_CHILD_H

#include "engines/common/plugin_file.h"
#include "engines/processes/control.h"

struct lw_processes_child_setup {
    int fds[LW_PROCESSES_FD_COUNT];
    struct lw_processes_order order;
    struct lw_plugin_file *file; /* loaded, not opened */
    bool has_function;           /* of the program itself: called with `user` */
    void *user;
    struct lw_handler_setup plugin; /* what its `open` is told */
};

/* Never returns: ends the process when it is told to, or when the owner is gone. */
_Noreturn void lw_processes_child_run(const struct lw_processes_child_setup *setup);

#endif
