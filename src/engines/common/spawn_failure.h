/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What people can do when a process could not be started: the system's own word for it ("Exec
 * format error") says what it met, and not what to change. Asks the file system, so it is only
 * called after a failure. Any thread.
 */
#ifndef LW_ENGINES_COMMON_SPAWN_FAILURE_H
#define LW_ENGINES_COMMON_SPAWN_FAILURE_H

#include <stddef.h>

/* Returns a sentence without its stop about an errno of a fork, a pipe or shared memory; "" none. */
const char *lw_spawn_failure_help(int code);
/*
 * Returns the same about a program that was to be run in `directory` (NULL: ours), where the errno
 * may also be about the file. Written to `out` where it holds a name.
 */
const char *lw_spawn_failure_program(const char *program, const char *directory, int code,
                                     char *out, size_t size);

#endif
