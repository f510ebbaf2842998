/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lw_processes_init: a process forked from the program itself while it has one thread. It keeps the
 * program as it was then, and forks from that the zygotes of handlers that are functions of the
 * program. It ends with the program.
 */
#ifndef LW_ENGINES_PROCESSES_ORIGIN_H
#define LW_ENGINES_PROCESSES_ORIGIN_H

#include <stdbool.h>

#include "engines/processes/spawn.h"

/* lw_processes_init was called in this process. Any thread. */
bool lw_processes_has_origin(void);
/* Has a zygote forked; 0 or an errno (EPIPE: it was killed). Any thread; waits for its answer. */
int lw_processes_origin_spawn(struct lw_processes_zygote *ret_zygote);

#endif
