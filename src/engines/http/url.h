/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What people write about a service: its address, and headers. Checked before anything starts,
 * with the place of the mistake. Pure.
 */
#ifndef LW_ENGINES_HTTP_URL_H
#define LW_ENGINES_HTTP_URL_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* A byte of a header's name (RFC 9110, 5.6.2). */
static inline bool
lw_http_is_token(unsigned char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

/*
 * http://HOST[:PORT][/PATH][?QUERY], or https://. False: *ret_at is the offset of what is wrong,
 * and `why` says it as the end of a sentence ("has no host").
 */
bool lw_http_url_check(const char *url, size_t *ret_at, char *why, size_t size);
/* How much of a right address is scheme, host and port: what may be shown of it. */
size_t lw_http_url_origin(const char *url);
/*
 * NULL: it may be sent with every request; else why not, as the end of a sentence. `has_token`:
 * the token is a header already.
 */
const char *lw_http_header_fault(const char *name, const char *value, bool has_token);

#endif
