/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment of one run under protocol once: what the handler has for all its runs, and the
 * message's own variables. Everything of a message is untrusted, so names of headers are reduced
 * to capitals, digits and underscores, and bytes that no variable can hold are coded in base64.
 */
#ifndef LW_ENGINES_PROGRAMS_ONCE_ENVIRONMENT_H
#define LW_ENGINES_PROGRAMS_ONCE_ENVIRONMENT_H

#include "base/text.h"
#include "core/delivery.h"

struct lw_programs_environment {
    struct lw_text text;
    size_t message_bytes; /* of the message's own variables */
    const char **entries; /* NAME=VALUE, or NAME: not inherited; NULL-terminated */
};

/* False without memory; the caller deinits in either case. deadline_ms < 0: none. */
bool lw_programs_environment_init(struct lw_programs_environment *environment,
                                  const char *const *fixed, const struct lw_delivery *delivery,
                                  int64_t deadline_ms);
void lw_programs_environment_deinit(struct lw_programs_environment *environment);

#endif
