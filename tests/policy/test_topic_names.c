/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Topic names: templates filled with the source, tiers named by their delay, and what Kafka
 * accepts. A name that does not fit is refused and leaves the buffer untouched, since a cut name
 * could be somebody else's topic.
 */
#include "tests/support/test.h"

#include <string.h>

#include "policy/topic_names.h"

static void
place_is_filled_wherever_it_stands(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        { "{topic}.retry", "orders.retry" },
        { "dead.{topic}", "dead.orders" },
        { "{topic}-{topic}", "orders-orders" },
        { "orders_dead", "orders_dead" },
        { "{topic", "{topic" },
        { "{{topic}}", "{orders}" },
        { "{Topic}.{topic}", "{Topic}.orders" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char out[64];
        assert_true(lw_topic_expand(cases[i][0], "orders", out, sizeof(out)));
        assert_string_equal(out, cases[i][1]);
    }
}

static void
source_that_looks_like_the_place_is_not_filled_again(void **state)
{
    (void)state;
    char out[64];
    assert_true(lw_topic_expand("{topic}.retry", "{topic}", out, sizeof(out)));
    assert_string_equal(out, "{topic}.retry");
}

static void
name_that_does_not_fit_is_refused_and_not_cut(void **state)
{
    (void)state;
    char out[13] = "untouched";
    assert_false(lw_topic_expand("{topic}.retry", "orders", out, 12));
    assert_string_equal(out, "untouched");
    assert_true(lw_topic_expand("{topic}.retry", "orders", out, 13));
    assert_string_equal(out, "orders.retry");
}

static void
empty_name_is_refused(void **state)
{
    (void)state;
    char out[8];
    assert_false(lw_topic_expand("", "orders", out, sizeof(out)));
    assert_false(lw_topic_expand("{topic}", "", out, sizeof(out)));
    assert_false(lw_topic_expand(NULL, "orders", out, sizeof(out)));
    assert_false(lw_topic_expand("{topic}", NULL, out, sizeof(out)));
    assert_false(lw_topic_expand("a", "orders", out, 0));
}

static void
tier_is_named_by_its_delay(void **state)
{
    (void)state;
    static const struct {
        int64_t delay_ms;
        const char *name;
    } cases[] = { { 30000, "orders.retry.30s" },
                  { 250, "orders.retry.250ms" },
                  { 300000, "orders.retry.5m" },
                  { 5400000, "orders.retry.1h30m" } };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char out[64];
        assert_true(lw_topic_tier("orders.retry", cases[i].delay_ms, out, sizeof(out)));
        assert_string_equal(out, cases[i].name);
    }
}

static void
tier_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    char out[17] = "untouched";
    assert_false(lw_topic_tier("orders.retry", 30000, out, 16));
    assert_false(lw_topic_tier("", 30000, out, sizeof(out)));
    assert_false(lw_topic_tier("orders.retry", -1, out, sizeof(out)));
    assert_string_equal(out, "untouched");
    assert_true(lw_topic_tier("orders.retry", 30000, out, 17));
}

static void
kafka_names_are_checked(void **state)
{
    (void)state;
    static const char *const good[] = { "a", "orders", "Orders_2.live-high", "...", "._-" };
    static const char *const bad[] = { "", ".", "..", "a b", "a/b", "a:b", "\xc3\xa9", "a\n" };
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_true(lw_topic_is_valid_kafka(good[i]));
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(lw_topic_is_valid_kafka(bad[i]));
    }
}

static void
kafka_names_are_249_long_at_most(void **state)
{
    (void)state;
    char name[251];
    memset(name, 'a', sizeof(name));
    name[249] = '\0';
    assert_true(lw_topic_is_valid_kafka(name));
    name[249] = 'a';
    name[250] = '\0';
    assert_false(lw_topic_is_valid_kafka(name));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(place_is_filled_wherever_it_stands),
        cmocka_unit_test(source_that_looks_like_the_place_is_not_filled_again),
        cmocka_unit_test(name_that_does_not_fit_is_refused_and_not_cut),
        cmocka_unit_test(empty_name_is_refused),
        cmocka_unit_test(tier_is_named_by_its_delay),
        cmocka_unit_test(tier_that_does_not_fit_is_refused),
        cmocka_unit_test(kafka_names_are_checked),
        cmocka_unit_test(kafka_names_are_249_long_at_most),
    };
    return cmocka_run_group_tests_name("policy.topic_names", tests, NULL, NULL);
}
