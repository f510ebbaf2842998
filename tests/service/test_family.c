/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Families of priority topics: the six-topic table of two levels and three sublevels, and that a
 * wrong call changes nothing.
 */
#include "tests/support/test.h"

#include <string.h>

#include "dispatcher/dispatcher.h"
#include "tests/service/service_fixture.h"

static enum lw_verdict
ignore(struct lw_delivery *delivery, void *user)
{
    (void)delivery;
    (void)user;
    return LW_OK;
}

static const struct lw_level levels[] = { { "LIVE", 100 }, { "BATCH", 200 } };
static const struct lw_level sublevels[] = { { "HIGH", 10 }, { "LOW", 20 }, { "RETRY", 50 } };

static struct lw_family_options
six_topics(struct service_fixture *fixture)
{
    struct lw_family_options family;
    lw_family_options_init(&family);
    family.prefix = "orders";
    family.levels = levels;
    family.level_count = 2;
    family.sublevels = sublevels;
    family.sublevel_count = 3;
    fixture->options.topic = NULL;
    fixture->options.handler = ignore;
    fixture->options.retry.allow_overtaking = true;
    return family;
}

static enum lw_status
try_family(struct service_fixture *fixture, const struct lw_family_options *family)
{
    return lw_dispatcher_subscribe_family(fixture->dispatcher, family, &fixture->options,
                                          &fixture->error);
}

static void
a_family_makes_the_six_topics_of_the_table(void **state)
{
    struct service_fixture *fixture = *state;
    struct lw_family_options family = six_topics(fixture);
    static const struct {
        const char *topic;
        int priority;
        const char *retry;
    } expected[] = {
        { "orders_live_high", 110, "orders_live_retry" },
        { "orders_live_low", 120, "orders_live_retry" },
        { "orders_live_retry", 150, "orders_live_retry" },
        { "orders_batch_high", 210, "orders_batch_retry" },
        { "orders_batch_low", 220, "orders_batch_retry" },
        { "orders_batch_retry", 250, "orders_batch_retry" },
    };
    family.retry_sublevel = "RETRY";
    assert_int_equal(try_family(fixture, &family), LW_STATUS_OK);
    assert_int_equal(fixture->dispatcher->stream_count, 6);
    assert_int_equal(fixture->dispatcher->engine_count, 1);
    for (int i = 0; i < 6; i++) {
        const struct lw_stream *stream = fixture->dispatcher->streams[i];
        assert_string_equal(stream->topic, expected[i].topic);
        assert_int_equal(stream->subscription.priority, expected[i].priority);
        assert_string_equal(stream->retry_topic, expected[i].retry);
    }
}

static void
a_family_without_sublevels_has_a_topic_per_level(void **state)
{
    struct service_fixture *fixture = *state;
    struct lw_family_options family = six_topics(fixture);
    family.sublevels = NULL;
    family.sublevel_count = 0;
    assert_int_equal(try_family(fixture, &family), LW_STATUS_OK);
    assert_int_equal(fixture->dispatcher->stream_count, 2);
    assert_string_equal(fixture->dispatcher->streams[1]->topic, "orders_batch");
    assert_int_equal(fixture->dispatcher->streams[1]->subscription.priority, 200);
}

static void
one_retry_topic_serves_all_when_it_is_given(void **state)
{
    struct service_fixture *fixture = *state;
    struct lw_family_options family = six_topics(fixture);
    fixture->options.retry.topic = "orders_again";
    assert_int_equal(try_family(fixture, &family), LW_STATUS_OK);
    assert_string_equal(fixture->dispatcher->streams[0]->retry_topic, "orders_again");
    assert_string_equal(fixture->dispatcher->streams[5]->retry_topic, "orders_again");
}

/* -- Wrong calls ----------------------------------------------------------------------------------- */

static void
expect_nothing(struct service_fixture *fixture, const struct lw_family_options *family,
               const char *words)
{
    assert_int_equal(try_family(fixture, family), LW_STATUS_INVALID);
    assert_non_null(strstr(fixture->error.message, words));
    assert_int_equal(fixture->dispatcher->stream_count, 0);
    assert_int_equal(fixture->dispatcher->engine_count, 0);
}

static void
wrong_levels_leave_no_subscription(void **state)
{
    struct service_fixture *fixture = *state;
    struct lw_family_options family = six_topics(fixture);
    static const struct lw_level twice[] = { { "live", 100 }, { "LIVE", 200 } };
    static const struct lw_level same[] = { { "live", 100 }, { "batch", 100 } };
    static const struct lw_level nameless[] = { { "live", 100 }, { "", 200 } };
    family.levels = twice;
    expect_nothing(fixture, &family, "there twice");
    family.levels = same;
    expect_nothing(fixture, &family, "same value");
    family.levels = nameless;
    expect_nothing(fixture, &family, "no name");
    family.level_count = 0;
    expect_nothing(fixture, &family, "needs a level");
}

static void
wrong_sublevels_leave_no_subscription(void **state)
{
    struct service_fixture *fixture = *state;
    struct lw_family_options family = six_topics(fixture);
    static const struct lw_level wide[] = { { "high", 10 }, { "low", 100 } };
    static const struct lw_level negative[] = { { "high", -1 }, { "low", 20 } };
    family.sublevel_count = 2;
    family.sublevels = wide;
    expect_nothing(fixture, &family, "overlap");
    assert_string_equal(fixture->error.code, "E0305");
    family.sublevels = negative;
    expect_nothing(fixture, &family, "negative");
}

static void
wrong_retry_targets_leave_no_subscription(void **state)
{
    struct service_fixture *fixture = *state;
    struct lw_family_options family = six_topics(fixture);
    family.retry_sublevel = "later";
    expect_nothing(fixture, &family, "none of the sublevels");
    family.retry_sublevel = "retry";
    fixture->options.retry.topic = "orders_again";
    expect_nothing(fixture, &family, "both given");
}

static void
a_fault_in_the_last_topic_takes_the_first_ones_back(void **state)
{
    struct service_fixture *fixture = *state;
    struct lw_family_options family = six_topics(fixture);
    fixture->options.retry.max_attempts = 0;
    expect_nothing(fixture, &family, "max_attempts");
    fixture->options.retry.max_attempts = 3;
    family.prefix = "";
    expect_nothing(fixture, &family, "prefix");
    family.prefix = "orders";
    fixture->options.subscription = NULL;
    expect_nothing(fixture, &family, "subscription");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, service_setup, service_teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_family_makes_the_six_topics_of_the_table),
        TEST(a_family_without_sublevels_has_a_topic_per_level),
        TEST(one_retry_topic_serves_all_when_it_is_given),
        TEST(wrong_levels_leave_no_subscription),
        TEST(wrong_sublevels_leave_no_subscription),
        TEST(wrong_retry_targets_leave_no_subscription),
        TEST(a_fault_in_the_last_topic_takes_the_first_ones_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
