/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the exit code of a program means under protocol once: the table of docs/protocol.md, and
 * what the configuration says over it. Pure.
 */
#ifndef LW_ENGINES_PROGRAMS_EXIT_CODES_H
#define LW_ENGINES_PROGRAMS_EXIT_CODES_H

#include <laneway/laneway.h>

/* The first class that holds the code decides; without one, the table does. */
struct lw_exit_class
lw_programs_exit_meaning(const struct lw_exit_class *classes, size_t count, int code);
/* What a code conventionally says, such as "command not found"; NULL: nothing. */
const char *lw_programs_exit_name(int code);

#endif
