/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which engine can run which form of handler: one table, asked by the configuration and by the
 * registry, so that both refuse the same combinations in the same words.
 */
#ifndef LW_SERVICE_HANDLER_FIT_H
#define LW_SERVICE_HANDLER_FIT_H

#include "base/text.h"

enum lw_handler_form {
    LW_FORM_FUNCTION,     /* blocking: it returns its verdict */
    LW_FORM_ASYNC,        /* a function that finishes its deliveries later */
    LW_FORM_BATCH,        /* a function that takes several messages at once */
    LW_FORM_PROGRAM,      /* a command */
    LW_FORM_PLUGIN,       /* a handler in a shared object that has `handle` */
    LW_FORM_PLUGIN_ASYNC, /* one that has only `handle_async` */
    LW_FORM_PLUGIN_BATCH, /* one that has only `handle_batch` */
    LW_FORM_SERVICE,      /* something that is asked over HTTP */
    LW_HANDLER_FORMS
};

/* The word of the configuration, "threads"; NULL for a number that is no engine. */
const char *lw_engine_kind_name(enum lw_engine_kind engine);
bool lw_handler_fits(enum lw_engine_kind engine, enum lw_handler_form form);
/* "a program", "an asynchronous function" */
const char *lw_handler_form_name(enum lw_handler_form form);
/* Writes "a function runs on engine loop or threads", always terminated. */
void lw_handler_fit_help(enum lw_handler_form form, char *out, size_t size);

#endif
