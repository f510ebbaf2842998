/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A service for benches, in a process of its own: HTTP/1.1, kept connections, 204 to everything,
 * as fast as one thread can. It ends with the bench, however that ends.
 */
#ifndef LW_BENCH_HTTP_SERVICE_H
#define LW_BENCH_HTTP_SERVICE_H

#include <stdbool.h>
#include <sys/types.h>

struct lw_http_service {
    pid_t pid;
    char url[64];
};

bool lw_http_service_start(struct lw_http_service *service);
void lw_http_service_stop(struct lw_http_service *service);

#endif
