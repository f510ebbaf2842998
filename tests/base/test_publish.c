/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The published struct: sizes that are no multiple of a word, zeros before the first write, and
 * readers on other threads that never see half of a write.
 */
#include "tests/support/test.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "base/alloc.h"
#include "base/publish.h"

static void
reader_sees_zeros_before_and_the_newest_after(void **state)
{
    (void)state;
    struct lw_publish publish;
    struct lw_error in = { .line = 7, .message = "hello" };
    struct lw_error out;
    assert_int_equal(lw_publish_init(&publish, sizeof in), LW_STATUS_OK);
    lw_publish_read(&publish, &out);
    assert_int_equal(out.line, 0);
    lw_publish_write(&publish, &in);
    in.line = 8;
    lw_publish_write(&publish, &in);
    lw_publish_read(&publish, &out);
    assert_int_equal(out.line, 8);
    assert_string_equal(out.message, "hello");
    lw_publish_deinit(&publish);
}

static void
any_size_is_copied_whole_and_not_beyond(void **state)
{
    (void)state;
    for (size_t size = 1; size <= 33; size++) {
        struct lw_publish publish;
        char in[40];
        char out[40];
        memset(in, 'i', sizeof in);
        memset(out, 'o', sizeof out);
        assert_int_equal(lw_publish_init(&publish, size), LW_STATUS_OK);
        lw_publish_write(&publish, in);
        lw_publish_read(&publish, out);
        assert_memory_equal(out, in, size);
        assert_int_equal(out[size], 'o');
        lw_publish_deinit(&publish);
    }
}

static void
lack_of_memory_is_told(void **state)
{
    (void)state;
    struct lw_publish publish;
    lw_alloc_fail_at(1);
    assert_int_equal(lw_publish_init(&publish, 8), LW_STATUS_NO_MEMORY);
}

struct snapshot {
    uint64_t numbers[31];
};

struct shared {
    struct lw_publish publish;
    atomic_bool is_over;
    atomic_uint torn_count;
    atomic_uint changes; /* how often readers saw a newer snapshot than before */
};

static void *
read_many(void *argument)
{
    struct shared *shared = argument;
    uint64_t newest = 0;
    while (!atomic_load(&shared->is_over)) {
        struct snapshot snapshot;
        lw_publish_read(&shared->publish, &snapshot);
        bool is_torn = snapshot.numbers[0] < newest;
        for (int i = 1; i < 31; i++) {
            is_torn |= snapshot.numbers[i] != snapshot.numbers[0];
        }
        atomic_fetch_add(&shared->torn_count, is_torn);
        atomic_fetch_add(&shared->changes, snapshot.numbers[0] > newest);
        newest = snapshot.numbers[0];
    }
    return NULL;
}

/* Writes until the readers together saw many different snapshots. */
static void
readers_on_other_threads_never_see_half_a_write(void **state)
{
    (void)state;
    struct shared shared;
    pthread_t threads[2];
    atomic_init(&shared.is_over, false);
    atomic_init(&shared.torn_count, 0);
    atomic_init(&shared.changes, 0);
    assert_int_equal(lw_publish_init(&shared.publish, sizeof(struct snapshot)), LW_STATUS_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, read_many, &shared), 0);
    }
    for (uint64_t number = 1; number < 10000 || atomic_load(&shared.changes) < 200; number++) {
        struct snapshot snapshot;
        for (int i = 0; i < 31; i++) {
            snapshot.numbers[i] = number;
        }
        lw_publish_write(&shared.publish, &snapshot);
        if (number % 64 == 0) {
            sched_yield();
        }
    }
    atomic_store(&shared.is_over, true);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(atomic_load(&shared.torn_count), 0);
    lw_publish_deinit(&shared.publish);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reader_sees_zeros_before_and_the_newest_after),
        cmocka_unit_test(any_size_is_copied_whole_and_not_beyond),
        cmocka_unit_test(lack_of_memory_is_told),
        cmocka_unit_test(readers_on_other_threads_never_see_half_a_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
