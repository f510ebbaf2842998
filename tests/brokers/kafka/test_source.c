/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is refused before any connection: addresses, names of topics, properties, subscriptions
 * that contradict each other. No cluster is needed and none is asked; the host's clock stands
 * still.
 */
#include "tests/support/test.h"

#include <string.h>

#include "brokers/kafka/broker.h"
#include "brokers/kafka/kafka.h"
#include "tests/support/virtual_host.h"

static struct virtual_host world;
static struct lw_broker *broker;

static enum lw_status
make(const char *url, const char *name, const char *value, struct lw_error *error)
{
    const struct lw_property property = { name, value };
    virtual_host_init(&world, 1);
    memset(error, 0, sizeof *error);
    return lw_kafka_broker_ops()->create(&world.host, "main", url, &property, name ? 1 : 0,
                                         &broker, error);
}

static void
end(void)
{
    broker->ops->destroy(broker);
    broker = NULL;
}

static enum lw_status
subscribe(const char *topic, const char *group, const char *value, struct lw_error *error)
{
    const struct lw_property property = { "session.timeout.ms", value };
    struct lw_source *source = NULL;
    const struct lw_source_options options = { .topic = topic,
                                               .subscription = group,
                                               .properties = &property,
                                               .property_count = value ? 1 : 0 };
    memset(error, 0, sizeof *error);
    return broker->ops->subscribe(broker, &options, &source, error);
}

static void
addresses_are_checked(void **state)
{
    (void)state;
    struct lw_error error;
    static const char *const wrong[] = { "kafka://", "kafka:///x", "http://h:1",
                                         "kafka://user:secret@h:1", "kafka://h:1/path" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(make(wrong[i], NULL, NULL, &error), LW_STATUS_CONFIG);
        assert_string_equal(error.code, "E0122");
    }
    assert_int_equal(make("kafka://a:1,b:2/", NULL, NULL, &error), LW_STATUS_OK);
    assert_string_equal(((struct lw_kafka_broker *)(void *)broker)->addresses, "a:1,b:2");
    end();
}

static void
a_property_that_is_refused_names_itself_and_the_likely_one(void **state)
{
    (void)state;
    struct lw_error error;
    assert_int_equal(make("kafka://a:1", "securty.protocol", "ssl", &error), LW_STATUS_CONFIG);
    assert_string_equal(error.code, "E0410");
    assert_non_null(strstr(error.message, "securty.protocol"));
    assert_string_equal(error.help, "did you mean \"security.protocol\"?");
}

static void
names_of_topics_are_kafkas(void **state)
{
    (void)state;
    struct lw_error error;
    static const char *const wrong[] = { "", ".", "..", "a b", "^all", "ä" };
    assert_int_equal(make("kafka://a:1", NULL, NULL, &error), LW_STATUS_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(subscribe(wrong[i], "g", NULL, &error), LW_STATUS_CONFIG);
        assert_string_equal(error.code, "E0117");
    }
    end();
}

static void
one_group_has_one_set_of_properties(void **state)
{
    (void)state;
    struct lw_error error;
    assert_int_equal(make("kafka://a:1", NULL, NULL, &error), LW_STATUS_OK);
    assert_int_equal(subscribe("one", "g", "7000", &error), LW_STATUS_OK);
    assert_int_equal(subscribe("two", "g", "7000", &error), LW_STATUS_OK);
    assert_int_equal(subscribe("three", "g", "8000", &error), LW_STATUS_CONFIG);
    assert_string_equal(error.code, "E0306");
    assert_int_equal(subscribe("three", "other", "8000", &error), LW_STATUS_OK);
    end();
}

static void
a_topic_is_subscribed_once_in_a_group(void **state)
{
    (void)state;
    struct lw_error error;
    assert_int_equal(make("kafka://a:1", NULL, NULL, &error), LW_STATUS_OK);
    assert_int_equal(subscribe("one", "g", NULL, &error), LW_STATUS_OK);
    assert_int_equal(subscribe("one", "g", NULL, &error), LW_STATUS_CONFIG);
    assert_string_equal(error.code, "E0301");
    end();
}

static void
conventional_names_fit_or_are_refused(void **state)
{
    (void)state;
    char name[300];
    char longest[250];
    const struct lw_broker_ops *ops = lw_kafka_broker_ops();
    assert_true(ops->default_topic(LW_TOPIC_DEAD_LETTER, "orders", "g", name, sizeof name));
    assert_string_equal(name, "orders.dlq");
    assert_true(ops->default_topic(LW_TOPIC_RETRY, "orders", "g", name, sizeof name));
    assert_string_equal(name, "orders.retry");
    memset(longest, 'x', 249);
    longest[249] = '\0';
    assert_false(ops->default_topic(LW_TOPIC_RETRY, longest, "g", name, sizeof name));
    assert_false(ops->default_topic(LW_TOPIC_RETRY, "orders", "g", name, 5));
}

static void
a_delay_is_rounded_up_to_its_tier(void **state)
{
    (void)state;
    struct lw_kafka_tier tiers[] = { { .delay_ms = 1000 }, { .delay_ms = 5000 } };
    struct lw_kafka_source source = { .tiers = tiers, .tier_count = 2 };
    assert_ptr_equal(lw_kafka_tier_choose(&source, 1), &tiers[0]);
    assert_ptr_equal(lw_kafka_tier_choose(&source, 1000), &tiers[0]);
    assert_ptr_equal(lw_kafka_tier_choose(&source, 1001), &tiers[1]);
    assert_ptr_equal(lw_kafka_tier_choose(&source, 60000), &tiers[1]);
    source.tier_count = 0;
    assert_null(lw_kafka_tier_choose(&source, 1000));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_checked),
        cmocka_unit_test(a_property_that_is_refused_names_itself_and_the_likely_one),
        cmocka_unit_test(names_of_topics_are_kafkas),
        cmocka_unit_test(one_group_has_one_set_of_properties),
        cmocka_unit_test(a_topic_is_subscribed_once_in_a_group),
        cmocka_unit_test(conventional_names_fit_or_are_refused),
        cmocka_unit_test(a_delay_is_rounded_up_to_its_tier),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
