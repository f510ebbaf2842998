/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which delivery's handler is on the stack of this thread: the marker by which a finish inside
 * the call is told from one on another thread, and by which closing from inside is refused.
 * Enter returns what was there, since a handler may drive another dispatcher; give it to leave.
 */
#ifndef LW_BASE_INSIDE_H
#define LW_BASE_INSIDE_H

#include <stdbool.h>
#include <stddef.h>

/* The initial-exec model makes this two instructions in the shared library too. */
extern _Thread_local const void *lw_inside_current __attribute__((tls_model("initial-exec")));

static inline const void *
lw_inside_enter(const void *subject)
{
    const void *before = lw_inside_current;
    lw_inside_current = subject;
    return before;
}

static inline void
lw_inside_leave(const void *before)
{
    lw_inside_current = before;
}

/* What is on the stack, or NULL. */
static inline const void *
lw_inside_subject(void)
{
    return lw_inside_current;
}

static inline bool
lw_inside_is(void)
{
    return lw_inside_current != NULL;
}

#endif
