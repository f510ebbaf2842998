/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Properties as users write them: the client's names and values, those that are ours and why,
 * near misses, values that would stall or wake the process. The client that is linked judges, so
 * these tests also say what must hold of any version of it.
 */
#include "tests/support/test.h"

#include <string.h>

#include "brokers/kafka/kafka.h"

static void
a_property_of_the_client_is_accepted(void **state)
{
    (void)state;
    assert_null(lw_kafka_property_check("security.protocol", "sasl_ssl"));
    assert_null(lw_kafka_property_check("sasl.mechanism", "SCRAM-SHA-512"));
    assert_null(lw_kafka_property_check("session.timeout.ms", "10000"));
    assert_null(lw_kafka_property_check("compression.type", "zstd"));
}

static void
an_unknown_property_brings_the_clients_own_words(void **state)
{
    (void)state;
    const char *reason = lw_kafka_property_check("securty.protocol", "ssl");
    assert_non_null(reason);
    assert_non_null(strstr(reason, "No such configuration property"));
}

static void
a_near_miss_is_suggested_and_nonsense_is_not(void **state)
{
    (void)state;
    char near[128];
    assert_true(lw_kafka_property_suggest("securty.protocol", near, sizeof near));
    assert_string_equal(near, "security.protocol");
    assert_false(lw_kafka_property_suggest("q", near, sizeof near));
}

static void
a_wrong_value_is_refused(void **state)
{
    (void)state;
    assert_non_null(lw_kafka_property_check("session.timeout.ms", "soon"));
    assert_non_null(lw_kafka_property_check("auto.offset.reset", "whenever"));
}

static void
what_would_break_a_promise_is_refused_with_the_reason(void **state)
{
    (void)state;
    static const char *const names[] = {
        "bootstrap.servers",        "group.id",         "enable.auto.commit",
        "enable.auto.offset.store", "transactional.id", "enable.idempotence",
        "enable.partition.eof",     "log.queue",        "rebalance_cb",
        "enable.gapless.guarantee", "opaque",           "auto.commit.interval.ms",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *reason = lw_kafka_property_check(names[i], "5");
        assert_non_null(reason);
        assert_true(strlen(reason) > 20);
    }
}

static void
the_value_that_we_use_anyway_may_be_written(void **state)
{
    (void)state;
    assert_null(lw_kafka_property_check("enable.auto.commit", "false"));
    assert_null(lw_kafka_property_check("enable.idempotence", "true"));
    assert_non_null(lw_kafka_property_check("enable.auto.commit", "true"));
}

static void
javas_none_is_understood(void **state)
{
    (void)state;
    assert_null(lw_kafka_property_check("auto.offset.reset", "none"));
}

static void
values_that_would_stall_or_wake_us_are_refused(void **state)
{
    (void)state;
    assert_non_null(lw_kafka_property_check("queued.max.messages.kbytes", "500"));
    assert_null(lw_kafka_property_check("queued.max.messages.kbytes", "4000"));
    assert_non_null(lw_kafka_property_check("statistics.interval.ms", "1000"));
    assert_null(lw_kafka_property_check("statistics.interval.ms", "0"));
    assert_non_null(lw_kafka_property_check("max.poll.interval.ms", "1000"));
}

static void
a_prefetch_is_a_number_of_bytes(void **state)
{
    (void)state;
    assert_null(lw_kafka_property_check("prefetch_bytes", "268435456"));
    assert_non_null(lw_kafka_property_check("prefetch_bytes", "much"));
    assert_non_null(lw_kafka_property_check("prefetch_bytes", "0"));
}

static void
client_credentials_are_ours_whatever_the_client_can(void **state)
{
    (void)state;
    assert_null(lw_kafka_property_check("sasl.oauthbearer.method", "oidc"));
    assert_null(lw_kafka_property_check("sasl.oauthbearer.client.id", "me"));
}

static void
the_scope_of_a_property_is_the_clients(void **state)
{
    (void)state;
    struct lw_kafka_property_table *table = lw_kafka_property_table_create();
    assert_int_equal(lw_kafka_property_scope(table, "linger.ms"), LW_KAFKA_SCOPE_PRODUCER);
    assert_int_equal(lw_kafka_property_scope(table, "session.timeout.ms"),
                     LW_KAFKA_SCOPE_CONSUMER);
    assert_int_equal(lw_kafka_property_scope(table, "security.protocol"), LW_KAFKA_SCOPE_BOTH);
    assert_int_equal(lw_kafka_property_scope(table, "no.such"), LW_KAFKA_SCOPE_NONE);
    lw_kafka_property_table_destroy(table);
}

static void
count(const char *name, bool is_owned, void *user)
{
    size_t *counts = user;
    assert_true(strlen(name) > 0);
    counts[is_owned ? 1 : 0]++;
}

static void
the_whole_list_can_be_walked(void **state)
{
    (void)state;
    size_t counts[2] = { 0, 0 };
    lw_kafka_property_each(count, counts);
    assert_true(counts[0] > 100);
    assert_true(counts[1] > 10);
}

static void
lists_are_equal_in_any_order_and_the_last_value_counts(void **state)
{
    (void)state;
    const struct lw_property first[] = { { "a", "1" }, { "b", "2" } };
    const struct lw_property second[] = { { "b", "9" }, { "b", "2" }, { "a", "1" } };
    struct lw_properties a;
    struct lw_properties b;
    struct lw_properties c;
    assert_true(lw_properties_copy(&a, first, 2));
    assert_true(lw_properties_copy(&b, second, 3));
    assert_true(lw_properties_copy(&c, first, 1));
    assert_true(lw_properties_are_equal(&a, &b));
    assert_false(lw_properties_are_equal(&a, &c));
    assert_string_equal(lw_properties_get(&b, "b"), "2");
    lw_properties_deinit(&a);
    lw_properties_deinit(&b);
    lw_properties_deinit(&c);
}

static void
prefetch_is_shared_and_bounded_both_ways(void **state)
{
    (void)state;
    const int64_t budget = INT64_C(256) << 20;
    assert_int_equal(lw_kafka_settings_prefetch_kbytes(budget, 16), 16 * 1024);
    assert_int_equal(lw_kafka_settings_prefetch_kbytes(budget, 1), 64 * 1024);
    assert_int_equal(lw_kafka_settings_prefetch_kbytes(budget, 0), 64 * 1024);
    assert_int_equal(lw_kafka_settings_prefetch_kbytes(budget, 10000), 2 * 1024);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_property_of_the_client_is_accepted),
        cmocka_unit_test(an_unknown_property_brings_the_clients_own_words),
        cmocka_unit_test(a_near_miss_is_suggested_and_nonsense_is_not),
        cmocka_unit_test(a_wrong_value_is_refused),
        cmocka_unit_test(what_would_break_a_promise_is_refused_with_the_reason),
        cmocka_unit_test(the_value_that_we_use_anyway_may_be_written),
        cmocka_unit_test(javas_none_is_understood),
        cmocka_unit_test(values_that_would_stall_or_wake_us_are_refused),
        cmocka_unit_test(a_prefetch_is_a_number_of_bytes),
        cmocka_unit_test(client_credentials_are_ours_whatever_the_client_can),
        cmocka_unit_test(the_scope_of_a_property_is_the_clients),
        cmocka_unit_test(the_whole_list_can_be_walked),
        cmocka_unit_test(lists_are_equal_in_any_order_and_the_last_value_counts),
        cmocka_unit_test(prefetch_is_shared_and_bounded_both_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
