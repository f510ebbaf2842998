/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A handler in a shared object (laneway/handler.h): found, checked, opened once, closed once. What
 * can be told from the file is told before any of its code runs; its constructors run in `load`,
 * its own functions from `open` on. Errors are for a person: they name the handler, the file and
 * what to do.
 *
 * A shared object stays mapped when its last handler is closed: a thread or an exit function that
 * it left behind would otherwise run into nothing.
 */
#ifndef LW_ENGINES_COMMON_PLUGIN_FILE_H
#define LW_ENGINES_COMMON_PLUGIN_FILE_H

#include <laneway/handler.h>

struct lw_plugin_file {
    void *object;                   /* of dlopen */
    struct lw_handler_plugin table; /* what an older plug-in does not know is NULL */
    void *user;                     /* from its `open` */
    bool is_open;
};

/*
 * Looks at the file without running any of it: is it there, may it be read, is it a shared object
 * for this machine. `handler` is the name in the configuration, for the errors.
 */
enum lw_status
lw_plugin_file_check(const char *handler, const char *path, struct lw_error *ret_error);

/*
 * Checks, loads, and finds the handler; `symbol` NULL is "lw_handler". A path without a slash is
 * looked for in the working directory, never in those of the loader. On failure *ret_file is
 * untouched and nothing is to be closed.
 */
enum lw_status lw_plugin_file_load(const char *handler, const char *path, const char *symbol,
                                   struct lw_plugin_file *ret_file, struct lw_error *ret_error);

/* Calls the plug-in's `open`, if it has one; once. May block. */
enum lw_status
lw_plugin_file_open(struct lw_plugin_file *file, const struct lw_handler_setup *setup,
                    struct lw_error *ret_error);

/* Calls its `close` if it was opened, and gives the object back; twice is fine. */
void lw_plugin_file_close(struct lw_plugin_file *file);

#endif
