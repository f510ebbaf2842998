/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open batches: what joins, what does not, one batch per key, and the order in which they leave.
 * Messages are told apart by their place in one array.
 */
#include "tests/support/test.h"

#include "brokers/pulsar/batch.h"

enum { MESSAGES = 8 };

static struct lw_publication publications[MESSAGES];
static struct lw_pulsar_batches batches;

static int
set_up(void **state)
{
    (void)state;
    for (size_t i = 0; i < MESSAGES; i++) {
        publications[i] = (struct lw_publication){ .value = lw_bytes_of("v") };
    }
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    lw_pulsar_batches_deinit(&batches);
    return 0;
}

static void
add(size_t index, const char *key)
{
    publications[index].key = lw_bytes_of(key);
    struct lw_pulsar_waiting item = { .publication = &publications[index] };
    assert_true(lw_pulsar_batches_add(&batches, item, 10));
}

/* Takes the oldest batch out and says which of its members it has at `at`. */
static long
take(uint32_t at, uint32_t count)
{
    struct lw_pulsar_open_batch *batch = lw_pulsar_batches_take(&batches);
    assert_non_null(batch);
    assert_int_equal(batch->count, count);
    long index = batch->items[at].publication - publications;
    lw_pulsar_batches_give(&batches, batch);
    return index;
}

static void
a_message_joins_only_if_count_and_bytes_fit(void **state)
{
    (void)state;
    lw_pulsar_batches_init(&batches, 3, 25, false);
    add(0, "a");
    assert_true(lw_pulsar_batches_fits(&batches, &publications[1], 10));
    assert_false(lw_pulsar_batches_fits(&batches, &publications[1], 16));
    add(1, "b");
    assert_false(lw_pulsar_batches_fits(&batches, &publications[2], 10));
    assert_false(lw_pulsar_batches_is_full(&batches));
    assert_int_equal(take(1, 2), 1);
    assert_int_equal(batches.count, 0);
    assert_int_equal(batches.bytes, 0);
}

static void
a_message_larger_than_a_batch_may_be_is_not_taken(void **state)
{
    (void)state;
    lw_pulsar_batches_init(&batches, 3, 25, false);
    assert_true(lw_pulsar_batches_takes(&batches, 25));
    assert_false(lw_pulsar_batches_takes(&batches, 26));
}

static void
the_count_makes_it_full(void **state)
{
    (void)state;
    lw_pulsar_batches_init(&batches, 2, 1000, false);
    add(0, NULL);
    add(1, NULL);
    assert_true(lw_pulsar_batches_is_full(&batches));
}

static void
by_key_each_key_has_a_batch_and_they_leave_by_their_first_message(void **state)
{
    (void)state;
    lw_pulsar_batches_init(&batches, 100, 1000, true);
    const char *const keys[] = { "z", "a", "z", NULL, "a", "z", "" };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        add(i, keys[i]);
    }
    assert_int_equal(batches.open_count, 4);
    assert_int_equal(take(2, 3), 5);
    assert_int_equal(take(1, 2), 4);
    assert_int_equal(take(0, 1), 3);
    assert_int_equal(take(0, 1), 6);
}

static void
the_ordering_key_goes_before_the_key(void **state)
{
    (void)state;
    lw_pulsar_batches_init(&batches, 100, 1000, true);
    publications[0].ordering_key = lw_bytes_of("o");
    publications[1].ordering_key = lw_bytes_of("o");
    add(0, "a");
    add(1, "b");
    assert_int_equal(batches.open_count, 1);
}

static void
limits_hold_for_the_sum_over_all_keys(void **state)
{
    (void)state;
    lw_pulsar_batches_init(&batches, 3, 1000, true);
    add(0, "a");
    add(1, "b");
    add(2, "c");
    assert_true(lw_pulsar_batches_is_full(&batches));
    assert_false(lw_pulsar_batches_fits(&batches, &publications[3], 10));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_message_joins_only_if_count_and_bytes_fit),
        TEST(a_message_larger_than_a_batch_may_be_is_not_taken),
        TEST(the_count_makes_it_full),
        TEST(by_key_each_key_has_a_batch_and_they_leave_by_their_first_message),
        TEST(the_ordering_key_goes_before_the_key),
        TEST(limits_hold_for_the_sum_over_all_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
