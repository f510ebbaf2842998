/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protocol once as an engine: one process for each message, as many at once as `workers` says.
 * Its making is that of the programs engine (engine.h), whose options, failures and pauses it
 * shares.
 */
#ifndef LW_ENGINES_PROGRAMS_ONCE_H
#define LW_ENGINES_PROGRAMS_ONCE_H

#include "engines/programs/engine.h"

enum lw_status
lw_once_engine_create(struct lw_host *host, struct lw_completions *completions,
                      const char *name, const struct lw_programs_options *options,
                      struct lw_engine **ret_engine);

#endif
