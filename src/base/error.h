/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills struct lw_error, what a person reads when an operation failed. `ret_error` may be NULL
 * everywhere; the status is returned for `return`. Too long texts are cut. Any thread.
 */
#ifndef LW_BASE_ERROR_H
#define LW_BASE_ERROR_H

#include <laneway/laneway.h>

/* code: "E0501" or "" ; format gives the sentence. Clears help, position and flags. */
enum lw_status lw_error_set(struct lw_error *ret_error, enum lw_status status, const char *code,
                            const char *format, ...) __attribute__((format(printf, 4, 5)));
void lw_error_help(struct lw_error *ret_error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void lw_error_at(struct lw_error *ret_error, const char *file, int line, int column);

#endif
