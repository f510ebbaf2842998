/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exit codes of a handler that is run once for each message: which codes mean what, over the
 * table that the protocol has.
 */
#ifndef LW_SERVICE_CONFIG_EXIT_CODES_H
#define LW_SERVICE_CONFIG_EXIT_CODES_H

#include "service/config_build.h"

/* Reads `exit_codes` of a handler into run.exit_codes, single codes before ranges. */
void
lw_config_exit_codes_read(struct lw_config_build *build, struct lw_config_handler *handler);

#endif
