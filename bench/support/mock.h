/* SPDX-License-Identifier: Apache-2.0 */
/* librdkafka's mock cluster as a child process: build/tests/support/mock_kafka. */
#ifndef LW_BENCH_MOCK_H
#define LW_BENCH_MOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct lw_mock {
    pid_t pid;
    int input; /* its stdin: closing it ends the child */
    char address[128];
};

/* Starts it beside the bench's own file; false (with a line on stderr) when it cannot. */
bool lw_mock_start(struct lw_mock *mock, const char *argv0, const char *topics,
                   const char *const *fills, size_t fill_count);
void lw_mock_stop(struct lw_mock *mock);

#endif
