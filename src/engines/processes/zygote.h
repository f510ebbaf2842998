/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The zygote: a small process that loads a handler once and forks workers from that state when
 * its owner orders them. It never runs a message. It reaps its workers and says how each ended.
 */
#ifndef LW_ENGINES_PROCESSES_ZYGOTE_H
#define LW_ENGINES_PROCESSES_ZYGOTE_H

/*
 * Serves the owner at the other end of `control` until that closes; then kills what is left.
 * Returns the exit status; in a worker it does not return.
 */
int lw_processes_zygote_run(int control);

#endif
