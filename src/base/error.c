/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filling struct lw_error: the one place that formats what a person reads when an operation
 * failed. Never allocates, cuts what is too long, accepts NULL for "nobody asks". Any thread.
 */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

enum lw_status
lw_error_set(struct lw_error *ret_error, enum lw_status status, const char *code,
             const char *format, ...)
{
    if (!ret_error) {
        return status;
    }
    memset(ret_error, 0, sizeof *ret_error);
    ret_error->status = status;
    lw_text_copy(ret_error->code, sizeof ret_error->code, code);
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(ret_error->message, sizeof ret_error->message, format, arguments);
    va_end(arguments);
    return status;
}

void
lw_error_help(struct lw_error *ret_error, const char *format, ...)
{
    if (!ret_error) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(ret_error->help, sizeof ret_error->help, format, arguments);
    va_end(arguments);
}

void
lw_error_at(struct lw_error *ret_error, const char *file, int line, int column)
{
    if (!ret_error) {
        return;
    }
    lw_text_copy(ret_error->file, sizeof ret_error->file, file);
    ret_error->line = line;
    ret_error->column = column;
}
