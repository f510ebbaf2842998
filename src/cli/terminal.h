/* SPDX-License-Identifier: Apache-2.0 */
/* Whether to colour, how wide the terminal is, and writing that survives short writes. */
#ifndef LW_CLI_TERMINAL_H
#define LW_CLI_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/command.h"

/* Colours only on a terminal unless asked for; NO_COLOR, FORCE_COLOR and TERM=dumb are heeded. */
bool lw_terminal_is_coloured(int fd, enum lw_color color);
bool lw_terminal_is(int fd);
/* Columns and rows, 80 and 24 when nobody knows. */
void lw_terminal_size(int fd, unsigned *ret_columns, unsigned *ret_rows);
/* Writes all of it; false when that is impossible (errno says why). */
bool lw_terminal_write(int fd, const void *data, size_t size);

#endif
