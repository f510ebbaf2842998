/* SPDX-License-Identifier: Apache-2.0 */
/* What `laneway init` hands out: small configurations that run, with their handlers. */
#ifndef LW_CLI_STARTERS_H
#define LW_CLI_STARTERS_H

#include <stdbool.h>
#include <stddef.h>

struct lw_starter_file {
    const char *name;         /* relative; NULL ends the list */
    const char *const *lines; /* NULL ends them */
    bool is_program;
};

struct lw_starter {
    const char *name; /* NULL ends the list */
    const char *about;
    const struct lw_starter_file *files; /* the first one is the configuration */
};

extern const struct lw_starter lw_starters[];

#endif
