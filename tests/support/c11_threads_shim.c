/* SPDX-License-Identifier: Apache-2.0 */
/*
 * c11_threads_shim.c: C11 threads over pthread, for builds with the thread sanitizer only. glibc's
 * own thrd_create is not intercepted by the sanitizer, so a thread that librdkafka starts with it
 * crashes at its first instrumented call. Linked into the executable and exported, these
 * definitions win over glibc's. glibc's mtx_t and cnd_t are pthread's objects in another wrapping.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <threads.h>
#include <time.h>

_Static_assert(sizeof(mtx_t) >= sizeof(pthread_mutex_t), "mtx_t holds a pthread mutex");
_Static_assert(sizeof(cnd_t) >= sizeof(pthread_cond_t), "cnd_t holds a pthread condition");

/* The tree is built with hidden symbols; these must be seen by librdkafka. */
#pragma GCC visibility push(default)

struct start {
    thrd_start_t run;
    void *user;
};

static int
to_c11(int code)
{
    switch (code) {
    case 0:
        return thrd_success;
    case ENOMEM:
        return thrd_nomem;
    case ETIMEDOUT:
        return thrd_timedout;
    case EBUSY:
        return thrd_busy;
    default:
        return thrd_error;
    }
}

static void *
run_start(void *user)
{
    struct start start = *(struct start *)user;
    free(user);
    return (void *)(intptr_t)start.run(start.user);
}

int
thrd_create(thrd_t *ret_thread, thrd_start_t run, void *user)
{
    struct start *start = malloc(sizeof(*start));
    if (start == NULL) {
        return thrd_nomem;
    }
    *start = (struct start){ .run = run, .user = user };
    int code = pthread_create(ret_thread, NULL, run_start, start);
    if (code != 0) {
        free(start);
    }
    return to_c11(code);
}

int
thrd_join(thrd_t thread, int *ret_result)
{
    void *result = NULL;
    int code = pthread_join(thread, &result);
    if (code == 0 && ret_result != NULL) {
        *ret_result = (int)(intptr_t)result;
    }
    return to_c11(code);
}

int
thrd_detach(thrd_t thread)
{
    return to_c11(pthread_detach(thread));
}

thrd_t
thrd_current(void)
{
    return pthread_self();
}

int
thrd_equal(thrd_t left, thrd_t right)
{
    return pthread_equal(left, right);
}

_Noreturn void
thrd_exit(int result)
{
    pthread_exit((void *)(intptr_t)result);
}

void
thrd_yield(void)
{
    sched_yield();
}

int
mtx_init(mtx_t *mutex, int type)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    if ((type & mtx_recursive) != 0) {
        pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    }
    int code = pthread_mutex_init((pthread_mutex_t *)mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
    return to_c11(code);
}

int
mtx_lock(mtx_t *mutex)
{
    return to_c11(pthread_mutex_lock((pthread_mutex_t *)mutex));
}

int
mtx_trylock(mtx_t *mutex)
{
    return to_c11(pthread_mutex_trylock((pthread_mutex_t *)mutex));
}

int
mtx_timedlock(mtx_t *restrict mutex, const struct timespec *restrict until)
{
    return to_c11(pthread_mutex_timedlock((pthread_mutex_t *)mutex, until));
}

int
mtx_unlock(mtx_t *mutex)
{
    return to_c11(pthread_mutex_unlock((pthread_mutex_t *)mutex));
}

void
mtx_destroy(mtx_t *mutex)
{
    pthread_mutex_destroy((pthread_mutex_t *)mutex);
}

int
cnd_init(cnd_t *condition)
{
    return to_c11(pthread_cond_init((pthread_cond_t *)condition, NULL));
}

int
cnd_signal(cnd_t *condition)
{
    return to_c11(pthread_cond_signal((pthread_cond_t *)condition));
}

int
cnd_broadcast(cnd_t *condition)
{
    return to_c11(pthread_cond_broadcast((pthread_cond_t *)condition));
}

int
cnd_wait(cnd_t *condition, mtx_t *mutex)
{
    return to_c11(pthread_cond_wait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex));
}

int
cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict mutex,
              const struct timespec *restrict until)
{
    return to_c11(
        pthread_cond_timedwait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex, until));
}

void
cnd_destroy(cnd_t *condition)
{
    pthread_cond_destroy((pthread_cond_t *)condition);
}

/*
 * The client destroys locks of its own after counting references by atomics that a sanitizer does
 * not see in a library built without it. Only that one act is passed over: calls of ours that race
 * with the client's threads are still found.
 */
const char *__tsan_default_suppressions(void);

const char *
__tsan_default_suppressions(void)
{
    return "race:pthread_rwlock_destroy\n";
}
