/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Defaults of the public structs come from the rows. The numbers here are written a second time
 * on purpose: they are promises of the public header, and a changed row must be noticed by
 * somebody who reads this.
 */
#include "tests/support/test.h"

#include <string.h>

#include "service/options.h"

static void
a_dispatcher_starts_with_the_documented_defaults(void **state)
{
    (void)state;
    struct lw_dispatcher_options options;
    memset(&options, 0xFF, sizeof(options));
    lw_dispatcher_options_init(&options);
    assert_int_equal(options.size, sizeof(options));
    assert_string_equal(options.name, "laneway");
    assert_int_equal(options.concurrency, 16);
    assert_int_equal(options.drain_timeout_ms, 25000);
    assert_false(options.is_abort);
    assert_int_equal(options.commit_interval_ms, 100);
    assert_int_equal(options.commit_count, 10000);
    assert_int_equal(options.random_seed, 0);
    assert_null(options.log);
}

static void
a_subscription_starts_with_the_documented_limits(void **state)
{
    (void)state;
    struct lw_subscription_options options;
    memset(&options, 0xFF, sizeof(options));
    lw_subscription_options_init(&options);
    assert_int_equal(options.size, sizeof(options));
    assert_int_equal(options.priority, 100);
    assert_int_equal(options.ordering, LW_ORDERING_DEFAULT);
    assert_int_equal(options.max_in_flight, 1000);
    assert_int_equal(options.max_in_flight_bytes, 64 * 1024 * 1024);
    assert_int_equal(options.max_uncommitted, 1048576);
    assert_int_equal(options.receiver_queue_size, 1000);
    assert_int_equal(options.receive_stall_timeout_ms, 60000);
    assert_int_equal(options.timeout_ms, 30000);
    assert_int_equal(options.window, 0); /* by the engine */
    assert_int_equal(options.start_timeout_ms, 10000);
    assert_null(options.topic);
}

static void
a_subscription_starts_with_the_documented_retries(void **state)
{
    (void)state;
    struct lw_subscription_options options;
    lw_subscription_options_init(&options);
    assert_int_equal(options.retry.in_place, LW_DEFAULT);
    assert_int_equal(options.retry.max_attempts, 3);
    assert_int_equal(options.retry.max_retries, -1);
    assert_int_equal(options.retry.backoff.initial_ms, 1000);
    assert_true(options.retry.backoff.multiplier == 2.0);
    assert_int_equal(options.retry.backoff.max_ms, 300000);
    assert_int_equal(options.retry.backoff.jitter_ms, 0);
    assert_int_equal(options.retry.in_place_backoff.max_ms, 30000);
    assert_int_equal(options.retry.in_place_backoff.jitter_ms, 200);
    assert_int_equal(options.on_error, LW_ON_ERROR_DEFAULT);
    assert_int_equal(options.on_exhausted, LW_ON_EXHAUSTED_DROP);
    assert_int_equal(options.reply.on_oversize, LW_ON_OVERSIZE_DEAD);
    assert_string_equal(options.reply.key, "keep");
}

static void
a_family_starts_empty(void **state)
{
    (void)state;
    struct lw_family_options options;
    memset(&options, 0xFF, sizeof(options));
    lw_family_options_init(&options);
    assert_int_equal(options.size, sizeof(options));
    assert_null(options.prefix);
    assert_int_equal(options.level_count, 0);
}

static void
profiles_are_listed_in_the_order_of_the_enum(void **state)
{
    (void)state;
    size_t count = 0;
    const struct lw_profile_row *rows = lw_profile_rows(&count);
    assert_int_equal(count, 5);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(rows[i].profile, i);
    }
    assert_int_equal(lw_profile_find(LW_PROFILE_PRIORITY)->receiver_queue_size, 1);
    assert_true(lw_profile_find(LW_PROFILE_THROUGHPUT)->is_window_fixed);
    assert_false(lw_profile_find(LW_PROFILE_ADAPTIVE)->is_window_fixed);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dispatcher_starts_with_the_documented_defaults),
        cmocka_unit_test(a_subscription_starts_with_the_documented_limits),
        cmocka_unit_test(a_subscription_starts_with_the_documented_retries),
        cmocka_unit_test(a_family_starts_empty),
        cmocka_unit_test(profiles_are_listed_in_the_order_of_the_enum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
