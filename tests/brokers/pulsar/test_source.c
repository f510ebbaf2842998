/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A subscription's topics through the broker's table: partitions and topics that come, vanish and
 * come back, and an ownership that changes while it is given up.
 */
#include "tests/support/test.h"

#include <string.h>

#include "tests/brokers/pulsar/dealing.h"

static struct dealing dealing;

static int
set_up(void **state)
{
    (void)state;
    dealing_init(&dealing);
    dealing_serve(&dealing);
    dealing_property(&dealing, "partitions_update_interval_seconds", "10");
    dealing_open(&dealing);
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    dealing_deinit(&dealing);
    return 0;
}

static void
subscribe(const char *topic, const char *type)
{
    const struct lw_property properties[] = { { "consumer_type", type },
                                              { "initial_position", "Earliest" },
                                              { "pattern_auto_discovery_period", "10" } };
    struct lw_source_options options = client_options(topic, "s");
    options.receiver_queue_size = 100;
    options.properties = properties;
    options.property_count = 3;
    (void)client_subscribe_with(dealing.client, &options);
    client_start(dealing.client);
}

static void
publish(const char *topic)
{
    struct embedded_publish message = { .value = lw_bytes_of("v") };
    (void)embedded_publish(dealing.broker, topic, &message);
}

static void
a_question_about_partitions_that_fails_changes_nothing(void **state)
{
    struct embedded_fault refuse = { .kind = EMBEDDED_REFUSE,
                                     .direction = EMBEDDED_IN,
                                     .type = LW_PULSAR_PARTITIONED_METADATA,
                                     .times = 3,
                                     .error = LW_PULSAR_SERVICE_NOT_READY,
                                     .text = "the broker do not have test listener" };
    (void)state;
    embedded_set_partitions(dealing.broker, "t", 4);
    subscribe("t", "Shared");
    dealing_until_live(&dealing, 4);
    embedded_add_fault(dealing.broker, &refuse);
    dealing_pass_ms(&dealing, 60000);
    assert_int_equal(dealing_live(&dealing), 4);
    publish("t-partition-3");
    dealing_until_messages(&dealing, 1);
    dealing_close(&dealing);
}

static void
partitions_and_matching_topics_that_come_later_are_given_permits(void **state)
{
    (void)state;
    embedded_set_partitions(dealing.broker, "grows", 1);
    subscribe("persistent://public/default/gro.*", "Shared");
    dealing_until_live(&dealing, 1);
    embedded_set_partitions(dealing.broker, "grows", 3);
    embedded_create_topic(dealing.broker, "ground");
    embedded_create_topic(dealing.broker, "background");
    publish("grows-partition-2");
    publish("ground");
    publish("background");
    dealing_until_live(&dealing, 4);
    dealing_until_messages(&dealing, 2);
    dealing_pass_ms(&dealing, 30000);
    (void)dealing_receive(&dealing);
    assert_int_equal(dealing.client->message_count, 2);
    dealing_close(&dealing);
}

/* Missing in one list only: its cursor must survive. */
static void
a_topic_that_vanishes_from_a_pattern_is_left_and_not_unsubscribed(void **state)
{
    (void)state;
    embedded_create_topic(dealing.broker, "one");
    subscribe("persistent://public/default/on.*", "Shared");
    dealing_until_live(&dealing, 1);
    dealing_pass_ms(&dealing, 3000); /* it asks for its backlog first */
    embedded_settings(dealing.broker)->creates_topics = false;
    embedded_delete_topic(dealing.broker, "one");
    dealing_pass_ms(&dealing, 15000);
    client_answer(dealing.client);
    dealing_pass_ms(&dealing, 15000);
    assert_int_equal(dealing_live(&dealing), 0);
    assert_int_equal(embedded_counts(dealing.broker)->in[LW_PULSAR_UNSUBSCRIBE], 0);
    embedded_create_topic(dealing.broker, "one");
    publish("one");
    dealing_until_live(&dealing, 1);
    dealing_until_messages(&dealing, 1);
    dealing_close(&dealing);
}

static void
say_active(bool is_active)
{
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_ACTIVE_CONSUMER_CHANGE);
    command.active_consumer_change.consumer_id = 0;
    command.active_consumer_change.is_active = is_active;
    embedded_say(dealing.broker, &command);
    dealing_pass_ms(&dealing, 10);
}

static void
who_becomes_active_while_it_is_given_up_still_ends(void **state)
{
    (void)state;
    embedded_create_topic(dealing.broker, "t");
    subscribe("t", "Failover");
    for (int i = 0; i < 5 && dealing_live(&dealing) == 0; i++) {
        embedded_pass_ms(dealing.broker, 1000);
        dealing_pass_ms(&dealing, 10);
    }
    assert_int_equal(dealing_live(&dealing), 1);
    dealing.client->ops->stop_sources(dealing.client->broker);
    dealing_pass_ms(&dealing, 10);
    assert_int_equal(dealing.client->revoking_count, 1);
    say_active(false);
    say_active(true);
    assert_int_equal(dealing.client->slot_count, 1); /* no other ownership was said */
    dealing_close(&dealing);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_question_about_partitions_that_fails_changes_nothing),
        TEST(partitions_and_matching_topics_that_come_later_are_given_permits),
        TEST(a_topic_that_vanishes_from_a_pattern_is_left_and_not_unsubscribed),
        TEST(who_becomes_active_while_it_is_given_up_still_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
