/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line of a file made fit to be shown under a message: found by its number, tabs and control
 * characters made visible, the value behind a secret-looking key replaced by ***, and a caret
 * that still points at the right thing.
 */
#ifndef LW_SERVICE_SOURCE_LINE_H
#define LW_SERVICE_SOURCE_LINE_H

#include "service/diagnostic.h"

struct lw_shown_line {
    char *text;            /* freed by the taker with lw_free */
    uint32_t caret_column; /* characters before the caret */
    uint32_t caret_length; /* at least 1 */
};

/* False when there is no such line, when it is too long to help, or without memory. */
bool lw_source_line_show(const struct lw_place *place, struct lw_shown_line *ret_shown);
/* True for names such as sasl.password, token, ssl.key.pem. */
bool lw_name_is_secret(const char *name, size_t length);

#endif
