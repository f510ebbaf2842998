/* SPDX-License-Identifier: Apache-2.0 */
/* What libcurl itself does: its multi interface on a bare epoll, with requests like ours. */
#ifndef LW_BENCH_HTTP_BARE_H
#define LW_BENCH_HTTP_BARE_H

#include <stdbool.h>
#include <stdint.h>

/* Asks `url` n times, `connections` at once, with that body; false when it failed. */
bool
lw_http_bare(const char *url, uint32_t connections, const void *body, int64_t size, uint64_t n);

#endif
