/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a handler said, as the body of an answer record: reason and outputs. The worker writes it
 * from its delivery's outcome; the owner reads it, from a private copy, into the delivery's. The
 * reader believes nothing: every size is held against what is there.
 */
#ifndef LW_ENGINES_PROCESSES_ANSWER_H
#define LW_ENGINES_PROCESSES_ANSWER_H

#include "core/delivery.h"
#include "engines/processes/record.h"

enum lw_processes_read {
    LW_PROCESSES_READ_OK,
    LW_PROCESSES_READ_BROKEN,   /* against the form: the worker is not to be trusted any more */
    LW_PROCESSES_READ_NO_MEMORY /* fine, but what it says cannot be kept */
};

/* Bytes of the body; 0 when the verdict says everything. NULL: nothing was said. */
size_t lw_processes_answer_measure(const struct lw_outcome *outcome);
/* Writes head and body (not the body when it is external), `size` as measured. */
void lw_processes_answer_write(const struct lw_outcome *outcome, unsigned char *out);

/* Reads a body of `head`'s size into the delivery's outcome, which is cleared first. */
enum lw_processes_read lw_processes_answer_read(const struct lw_processes_answer *head,
                                                const void *body, struct lw_delivery *delivery);

#endif
