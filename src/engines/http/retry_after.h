/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the value of Retry-After (RFC 9110, 10.2.3): a number of seconds, or a date in one of the
 * three forms of HTTP. Pure.
 */
#ifndef LW_ENGINES_HTTP_RETRY_AFTER_H
#define LW_ENGINES_HTTP_RETRY_AFTER_H

#include <laneway/laneway.h>

/* Milliseconds from `wall_ms` on, 0 for what is past; false when it is neither. */
bool lw_http_retry_after(struct lw_bytes value, int64_t wall_ms, int64_t *ret_ms);

#endif
