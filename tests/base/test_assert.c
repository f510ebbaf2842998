/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lw_assert: a true condition is evaluated once and passes; a false one says what and where on
 * stderr and aborts the process.
 */
#include "tests/support/test.h"

#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"

static void
true_condition_is_evaluated_once_and_passes(void **state)
{
    (void)state;
    int evaluated = 0;
    lw_assert(++evaluated == 1);
    assert_int_equal(evaluated, 1);
}

/* Runs a failing assertion in a child; returns its wait status and what it said. */
static int
fail_in_child(char *said, size_t size)
{
    int pipe_fds[2];
    assert_int_equal(pipe(pipe_fds), 0);
    pid_t child = fork();
    if (child == 0) {
        const struct rlimit no_core = { 0, 0 };
        setrlimit(RLIMIT_CORE, &no_core);
        signal(SIGABRT, SIG_DFL);
        dup2(pipe_fds[1], STDERR_FILENO);
        lw_assert(1 + 1 == 3);
        _exit(0);
    }
    close(pipe_fds[1]);
    ssize_t got = read(pipe_fds[0], said, size - 1);
    said[got > 0 ? got : 0] = '\0';
    close(pipe_fds[0]);
    int status = 0;
    waitpid(child, &status, 0);
    return status;
}

static void
false_condition_says_where_and_aborts(void **state)
{
    (void)state;
    char said[512];
    int status = fail_in_child(said, sizeof said);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(strstr(said, "1 + 1 == 3"));
    assert_non_null(strstr(said, "test_assert.c:"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(true_condition_is_evaluated_once_and_passes),
        cmocka_unit_test(false_condition_says_where_and_aborts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
