/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What to write instead of something that is no broker's address. Pure.
 */
#ifndef LW_SERVICE_ADDRESS_HELP_H
#define LW_SERVICE_ADDRESS_HELP_H

#include <stddef.h>

/* Writes a help for `url`, which may be any text; NULL: one that must not be repeated. */
void lw_address_help(const char *url, char *out, size_t size);

#endif
