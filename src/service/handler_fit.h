/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which engine can run which form of handler: one table, asked by the configuration and by the
 * registry, so that both refuse the same combinations in the same words.
 */
#ifndef LW_SERVICE_HANDLER_FIT_H
#define LW_SERVICE_HANDLER_FIT_H

#include <laneway/handler.h>

#include "base/text.h"

enum lw_handler_form {
    LW_FORM_FUNCTION,     /* blocking: it returns its verdict */
    LW_FORM_ASYNC,        /* a function that finishes its deliveries later */
    LW_FORM_BATCH,        /* a function that takes several messages at once */
    LW_FORM_BATCH_ASYNC,  /* one that finishes them later */
    LW_FORM_PROGRAM,      /* a command */
    LW_FORM_PLUGIN,       /* a handler in a shared object: its `handle` */
    LW_FORM_PLUGIN_ASYNC, /* its `handle_async`, and so on */
    LW_FORM_PLUGIN_BATCH,
    LW_FORM_PLUGIN_BATCH_ASYNC,
    LW_FORM_SERVICE, /* something that is asked over HTTP */
    LW_HANDLER_FORMS
};

/* The word of the configuration, "threads"; NULL for a number that is no engine. */
const char *lw_engine_kind_name(enum lw_engine_kind engine);
bool lw_handler_fits(enum lw_engine_kind engine, enum lw_handler_form form);
/* "a program", "an asynchronous function" */
const char *lw_handler_form_name(enum lw_handler_form form);
/* Writes "a function runs on engine loop or threads", always terminated. */
void lw_handler_fit_help(enum lw_handler_form form, char *out, size_t size);

/*
 * Which of a plug-in's forms the engine calls, or would have to though it cannot run it.
 * `is_several`: the handler is to take several messages at once; one for one message is told then
 * when there is no other.
 */
enum lw_handler_form lw_handler_plugin_form(const struct lw_handler_plugin *table,
                                            enum lw_engine_kind engine, bool is_several);
/* Does that form, of a plug-in, take several messages? */
bool lw_handler_plugin_takes_several(enum lw_handler_form form);

#endif
