/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_usage.c: what a process and its descendants use, seen from outside: memory that was
 * touched, processor time that was spent, children of children, children of other threads.
 */
#include "tests/support/test.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engines/common/usage.h"

enum { TOUCHED = 64 * 1024 * 1024 };

static struct lw_usage
usage_of(pid_t pid)
{
    struct lw_usage usage;
    assert_true(lw_usage_read(pid, &usage));
    return usage;
}

/* Forks; the child runs `fn`, says so through a pipe, and lives until it is killed. */
static pid_t
begin_child(void (*fn)(void))
{
    int ends[2];
    char said = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        fn();
        if (write(ends[1], "x", 1) == 1) {
            pause();
        }
        _exit(1);
    }
    assert_int_equal(read(ends[0], &said, 1), 1);
    close(ends[0]);
    close(ends[1]);
    return child;
}

static void
end_child(pid_t child)
{
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static void
touch(void)
{
    char *data = malloc(TOUCHED);
    for (size_t at = 0; data && at < TOUCHED; at += 1024) {
        ((volatile char *)data)[at] = 1;
    }
}

static void
spin(void)
{
    while (clock() < CLOCKS_PER_SEC / 2) {
    }
}

static void
nothing(void)
{
}

static void
touch_in_a_grandchild(void)
{
    (void)begin_child(touch);
}

/* The thread stays: with its end, its child would go to another thread. */
static void *
fork_and_stay(void *user)
{
    __atomic_store_n((pid_t *)user, begin_child(touch), __ATOMIC_SEQ_CST);
    pause();
    return NULL;
}

static void
touch_by_a_thread(void)
{
    static pid_t child;
    pthread_t thread;
    (void)pthread_create(&thread, NULL, fork_and_stay, &child);
    while (__atomic_load_n(&child, __ATOMIC_SEQ_CST) == 0) {
        usleep(1000);
    }
}

static void
memory_and_time_are_seen(void **state)
{
    pid_t idle = begin_child(nothing);
    pid_t large = begin_child(touch);
    pid_t busy = begin_child(spin);
    (void)state;
    assert_true(usage_of(large).resident_bytes >= usage_of(idle).resident_bytes + TOUCHED / 2);
    assert_in_range(usage_of(busy).cpu_ms, 400, 60000);
    assert_int_equal(usage_of(idle).process_count, 1);
    end_child(busy);
    end_child(large);
    end_child(idle);
}

static void
what_descendants_use_counts(void **state)
{
    (void)state;
    if (!lw_usage_has_children()) {
        print_message("left out: this kernel does not list children\n");
        return;
    }
    static void (*const kinds[])(void) = { touch_in_a_grandchild, touch_by_a_thread };
    for (size_t i = 0; i < 2; i++) {
        pid_t parent = begin_child(kinds[i]);
        struct lw_usage usage = usage_of(parent);
        assert_int_equal(usage.process_count, 2);
        assert_true(usage.resident_bytes >= TOUCHED);
        end_child(parent);
    }
}

static void
a_process_that_is_gone_uses_nothing(void **state)
{
    struct lw_usage usage = { .process_count = 77 };
    pid_t child = begin_child(nothing);
    (void)state;
    end_child(child);
    assert_false(lw_usage_read(child, &usage));
    assert_int_equal(usage.process_count, 77);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_and_time_are_seen),
        cmocka_unit_test(what_descendants_use_counts),
        cmocka_unit_test(a_process_that_is_gone_uses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
