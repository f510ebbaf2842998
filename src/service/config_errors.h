/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The error classes of a pipeline: which codes, given with the verdict error, mean what.
 */
#ifndef LW_SERVICE_CONFIG_ERRORS_H
#define LW_SERVICE_CONFIG_ERRORS_H

#include "service/config_build.h"

/* Reads a code ("2") or a range of codes ("10-19"); false: it is none. */
bool lw_config_codes_read(const char *text, int *ret_from, int *ret_to);
/* Reads `errors` of a pipeline into options->errors: dead first, then retry, then error. */
void lw_config_errors_read(struct lw_config_build *build, const struct lw_node *pipeline,
                           struct lw_subscription_options *options);

#endif
