/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts and ends the mock cluster of mock.h.
 *
 * The child reads its stdin to the end: it dies with the bench, however that ends. Its address comes
 * as its first line of output.
 */
#include "bench/support/mock.h"

#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGUMENTS_MAX 16

static void
become_mock(const char *argv0, const char *topics, const char *const *fills, size_t fill_count)
{
    char path[1024];
    char own[1024];
    const char *arguments[ARGUMENTS_MAX] = { path, "--topics", topics };
    size_t count = 3;
    snprintf(own, sizeof(own), "%s", argv0);
    snprintf(path, sizeof(path), "%s/../tests/support/mock_kafka", dirname(own));
    for (size_t i = 0; i < fill_count && count + 2 < ARGUMENTS_MAX; i++) {
        arguments[count++] = "--fill";
        arguments[count++] = fills[i];
    }
    execv(path, (char *const *)(void *)arguments);
    fprintf(stderr, "bench: cannot run %s\n", path);
    _exit(127);
}

static bool
read_address(struct lw_mock *mock, int output)
{
    char line[256];
    FILE *file = fdopen(output, "r");
    bool is_ok = file && fgets(line, sizeof(line), file) &&
                 sscanf(line, "READY %127s", mock->address) == 1;
    if (file) {
        fclose(file);
    }
    return is_ok;
}

bool
lw_mock_start(struct lw_mock *mock, const char *argv0, const char *topics,
              const char *const *fills, size_t fill_count)
{
    int input[2];
    int output[2];
    if (pipe(input) != 0 || pipe(output) != 0) {
        return false;
    }
    mock->pid = fork();
    if (mock->pid == 0) {
        dup2(input[0], STDIN_FILENO);
        dup2(output[1], STDOUT_FILENO);
        close(input[0]);
        close(input[1]);
        close(output[0]);
        close(output[1]);
        become_mock(argv0, topics, fills, fill_count);
    }
    close(input[0]);
    close(output[1]);
    mock->input = input[1];
    if (mock->pid > 0 && read_address(mock, output[0])) {
        return true;
    }
    fprintf(stderr, "bench: the mock cluster did not start\n");
    lw_mock_stop(mock);
    return false;
}

void
lw_mock_stop(struct lw_mock *mock)
{
    close(mock->input);
    if (mock->pid > 0) {
        kill(mock->pid, SIGTERM);
        waitpid(mock->pid, NULL, 0);
    }
}
