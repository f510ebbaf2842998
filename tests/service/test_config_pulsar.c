/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configurations for Pulsar: addresses, credentials, options of the official clients, names of
 * topics in every spelling, and what a type of subscription can keep. Each rule has a
 * configuration that breaks it and one beside it that does not.
 */
#include "tests/service/config_fixture.h"

#include <stdio.h>
#include <string.h>

#if LW_WITH_PULSAR

static char text[4000];

/* One pipeline "p" that reads orders as "sub", with these keys of broker, consumer, pipeline. */
static const char *
whole(const char *broker, const char *consumer, const char *keys)
{
    snprintf(text, sizeof(text),
             "version: 1\n"
             "brokers: { main: { url: 'pulsar://localhost:6650'%s } }\n"
             "handlers: { h: { builtin: echo } }\n"
             "pipelines:\n"
             "  p:\n"
             "    broker: main\n"
             "    handler: h\n"
             "    consumer: { subscription: sub%s }\n"
             "%s%s",
             broker, consumer, strstr(keys, "topics:") ? "" : "    topics: [orders]\n", keys);
    return text;
}

static const char *
consumer(const char *keys)
{
    return whole("", keys, "");
}

static const char *
broker(const char *keys)
{
    return whole(keys, "", "");
}

static const char *
pipeline(const char *keys)
{
    return whole("", "", keys);
}

static const char *
property(const struct lw_property *items, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(items[i].name, name) == 0) {
            return items[i].value;
        }
    }
    return "(none)";
}

/* -- Brokers --------------------------------------------------------------------------------- */

static void
both_schemes_and_several_hosts_are_taken(void **state)
{
    (void)state;
    config_is_fine(consumer(""));
    char *at = strstr(text, "pulsar://localhost:6650");
    memcpy(at, "pulsar+ssl://a:1,b,c:2'", 23);
    memmove(at + 22, at + 23, strlen(at + 23) + 1);
    config_is_fine(text);
}

static void
an_address_with_credentials_is_refused_where_it_stands(void **state)
{
    (void)state;
    consumer("");
    memcpy(strstr(text, "localhost:6650"), "me:secret@x:99", 14);
    config_mentions(text, "bad.yaml:2:25: error[E0122]");
    struct config_fixture fixture;
    config_open(&fixture, text);
    const char *first = strchr(fixture.printed.data, '\n');
    assert_null(
        memmem(fixture.printed.data, (size_t)(first - fixture.printed.data), "secret", 6));
    config_close(&fixture);
}

static void
short_words_become_options_and_paths_begin_at_the_file(void **state)
{
    (void)state;
    struct config_fixture fixture;
    config_open(&fixture, broker(", auth: { token: abc }, tls: { trust_file: /ca.pem, "
                                 "validate_hostname: false }"));
    assert_non_null(fixture.config);
    const struct lw_config_broker *main = &fixture.config->brokers[0];
    assert_int_equal(main->kind, LW_CONFIG_PULSAR);
    assert_string_equal(property(main->properties, main->property_count, "token"), "abc");
    assert_string_equal(
        property(main->properties, main->property_count, "tls_trust_certs_file_path"),
        "/ca.pem");
    assert_string_equal(
        property(main->properties, main->property_count, "tls_validate_hostname"), "false");
    assert_string_equal(property(main->properties, main->property_count, "auth_plugin"),
                        "(none)");
    config_close(&fixture);
}

static void
a_token_is_never_shown_by_the_plan(void **state)
{
    (void)state;
    struct config_fixture fixture;
    struct lw_text plan;
    config_open(&fixture, broker(", auth: { token: hidden-word }, properties: { "
                                 "listener_name: inside }"));
    lw_text_init(&plan);
    lw_config_plan_print(fixture.config, &plan);
    assert_null(strstr(plan.data, "hidden-word"));
    assert_non_null(strstr(plan.data, "brokers.main.auth.token"));
    assert_non_null(strstr(plan.data, "inside"));
    lw_text_deinit(&plan);
    config_close(&fixture);
}

static void
a_short_word_and_its_option_exclude_each_other(void **state)
{
    (void)state;
    config_mentions(broker(", auth: { token: a }, properties: { token: b }"),
                    "error[E0419]: \"token\" and the property \"token\" say the same; keep one "
                    "of them\n");
    config_mentions(consumer(", type: shared, properties: { consumer_type: failover }"),
                    "error[E0419]: \"type\" and the property \"consumer_type\" say the same");
}

static void
credentials_for_kafka_are_refused_rather_than_ignored(void **state)
{
    (void)state;
    broker(", auth: { token: abc }");
    memcpy(strstr(text, "pulsar://localhost"), "kafka://localhosts", 18);
    config_mentions(text, "error[E0420]: \"auth\" is for Pulsar; broker \"main\" is none\n");
    config_mentions(text, "help: Kafka's are among its properties: security.protocol");
}

/* -- Options --------------------------------------------------------------------------------- */

static void
unknown_options_are_named_with_the_nearest(void **state)
{
    (void)state;
    config_mentions(broker(", properties: { operation_timeout_second: 3 }"),
                    "bad.yaml:2:66: error[E0414]: there is no option "
                    "\"operation_timeout_second\" of Pulsar\n");
    config_mentions(text, "help: did you mean \"operation_timeout_seconds\"?\n");
    config_mentions(consumer(", properties: { receiverQueueSize: 3 }"),
                    "help: did you mean \"receiver_queue_size\"?\n");
}

static void
options_of_the_client_do_not_belong_to_a_consumer(void **state)
{
    (void)state;
    config_mentions(consumer(", properties: { use_tls: true }"),
                    "error[E0414]: \"use_tls\" is no option of a subscription\n");
}

static void
options_that_are_not_served_say_why(void **state)
{
    (void)state;
    config_mentions(
        consumer(", properties: { batch_receive_policy: 10 }"),
        "error[E0415]: the option \"batch_receive_policy\" of the Pulsar clients is "
        "not served: messages are received one by one as slots become free\n");
    config_is_fine(consumer(", properties: { crypto_failure_action: FAIL }"));
}

static void
wrong_values_are_shown_at_their_place_and_secrets_are_not(void **state)
{
    (void)state;
    config_mentions(
        consumer(", properties: { priority_level: high }"),
        "error[E0416]: \"priority_level\" cannot be \"high\": it wants a whole number");
    const char *const env[] = { "LEVEL=hidden-word", NULL };
    consumer(", properties: { priority_level: '${LEVEL}' }");
    struct lw_config_text document = { "bad.yaml", text, strlen(text) };
    struct config_fixture fixture;
    config_open_source(
        &fixture, (struct lw_config_source){ .texts = &document, .text_count = 1, .env = env });
    assert_non_null(strstr(fixture.printed.data, "\"priority_level\" has a wrong value\n"));
    assert_null(strstr(fixture.printed.data, "hidden-word"));
    config_close(&fixture);
}

static void
options_that_contradict_each_other_are_refused(void **state)
{
    (void)state;
    config_mentions(broker(", properties: { chunking_enabled: true, batching_enabled: true }"),
                    "error[E0419]: chunking_enabled and batching_enabled exclude each other\n");
    config_mentions(consumer(", type: failover, properties: { "
                             "dead_letter_policy.max_redeliver_count: 3 }"),
                    "error[E0419]: dead_letter_policy counts redeliveries");
    config_mentions(consumer(", properties: { is_read_compacted: true }"),
                    "error[E0419]: is_read_compacted needs a subscription of one reader");
    config_is_fine(consumer(", type: failover, properties: { is_read_compacted: true }"));
}

static void
the_type_reaches_the_broker_and_the_queue_size_the_window(void **state)
{
    (void)state;
    struct config_fixture fixture;
    config_open(&fixture,
                consumer(", type: key_shared, properties: { receiver_queue_size: 1 }"));
    assert_non_null(strstr(fixture.printed.data, "note[W0317]"));
    const struct lw_subscription_options *options = &fixture.config->subscriptions[0].options;
    assert_string_equal(property(options->properties, options->property_count, "consumer_type"),
                        "key_shared");
    assert_string_equal(
        property(options->properties, options->property_count, "receiver_queue_size"),
        "(none)");
    assert_int_equal(options->receiver_queue_size, 1);
    config_close(&fixture);
}

static void
the_pipelines_own_queue_size_wins(void **state)
{
    (void)state;
    struct config_fixture fixture;
    config_open(&fixture, whole("", ", properties: { receiver_queue_size: 1 }",
                                "    receiver_queue_size: 7\n"));
    assert_int_equal(fixture.config->subscriptions[0].options.receiver_queue_size, 7);
    config_close(&fixture);
}

static void
a_type_elsewhere_has_no_effect_and_says_so(void **state)
{
    (void)state;
    consumer(", type: shared");
    memcpy(strstr(text, "pulsar://localhost"), "kafka://localhosts", 18);
    config_mentions(text, "warning[W0308]: \"type\" has no effect: types of subscriptions are "
                          "Pulsar's\n");
}

/* -- Types ----------------------------------------------------------------------------------- */

static void
key_order_needs_a_type_that_keeps_keys(void **state)
{
    (void)state;
    static const char *const good[] = { ", type: key_shared", ", type: failover",
                                        ", type: exclusive",
                                        ", properties: { consumer_type: failover }" };
    config_mentions(whole("", ", type: shared", "    ordering: key\n"),
                    "error[E0312]: \"ordering: key\" cannot be kept on a shared subscription: "
                    "the broker gives messages of one key to several members\n");
    config_mentions(text, "help: write consumer.type: key_shared, failover or exclusive\n");
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        config_is_fine(whole("", good[i], "    ordering: key\n"));
    }
}

static void
shared_is_the_type_when_none_is_given(void **state)
{
    (void)state;
    config_mentions(pipeline("    ordering: key\n"), "cannot be kept on a shared subscription");
    config_is_fine(pipeline(""));
}

static void
partition_order_needs_one_member(void **state)
{
    (void)state;
    config_mentions(whole("", ", type: key_shared", "    ordering: partition\n"),
                    "error[E0312]: \"ordering: partition\" cannot be kept on a key_shared");
    config_is_fine(whole("", ", type: exclusive", "    ordering: partition\n"));
}

static void
one_message_cannot_be_delayed_where_the_broker_rewinds(void **state)
{
    (void)state;
    const char *delayed = "    retry: { backoff: { initial: 5s } }\n";
    config_mentions(whole("", ", type: exclusive", delayed),
                    "error[E0313]: on exclusive subscriptions the broker cannot delay one "
                    "message");
    config_mentions(whole("", ", type: failover", delayed), "error[E0313]");
    config_is_fine(whole("", ", type: shared", delayed));
    config_is_fine(whole("", ", type: exclusive", "    retry: { in_place: true }\n"));
}

static void
two_ways_to_a_dead_letter_exclude_each_other(void **state)
{
    (void)state;
    const char *policy = ", properties: { dead_letter_policy.max_redeliver_count: 3 }";
    config_mentions(whole("", policy, "    dead_letter: { topic: dead }\n"),
                    "error[E0419]: dead_letter and the client's dead_letter_policy are both "
                    "given\n");
    config_is_fine(consumer(policy));
}

static void
the_topic_of_the_clients_policy_is_a_dead_letter_topic_like_others(void **state)
{
    (void)state;
    struct config_fixture fixture;
    config_open(&fixture, consumer(", properties: { dead_letter_policy.max_redeliver_count: 3, "
                                   "dead_letter_policy.dead_letter_topic: grave }"));
    assert_non_null(fixture.config);
    assert_string_equal(fixture.config->subscriptions[0].dead_letter_topic, "grave");
    assert_string_equal(fixture.config->subscriptions[0].options.dead_letter.topic, "grave");
    config_close(&fixture);
}

/* -- Names ----------------------------------------------------------------------------------- */

static void
conventional_names_follow_the_spelling_of_the_topic(void **state)
{
    (void)state;
    static const struct {
        const char *topic;
        const char *dead_letter;
        const char *id;
    } rows[] = {
        { "orders", "orders-sub-DLQ", "persistent://public/default/orders-sub-DLQ" },
        { "a/b/orders", "a/b/orders-sub-DLQ", "persistent://a/b/orders-sub-DLQ" },
        { "non-persistent://a/b/orders", "non-persistent://a/b/orders-sub-DLQ",
          "non-persistent://a/b/orders-sub-DLQ" },
        { "orders-partition-3", "orders-sub-DLQ",
          "persistent://public/default/orders-sub-DLQ" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char keys[200];
        struct config_fixture fixture;
        snprintf(keys, sizeof(keys), "    topics: ['%s']\n", rows[i].topic);
        config_open(&fixture, pipeline(keys));
        assert_non_null(fixture.config);
        assert_string_equal(fixture.config->subscriptions[0].dead_letter_topic,
                            rows[i].dead_letter);
        assert_string_equal(fixture.config->subscriptions[0].dead_letter_id, rows[i].id);
        config_close(&fixture);
    }
}

static void
a_retry_topic_by_convention_is_the_clients(void **state)
{
    (void)state;
    struct config_fixture fixture;
    config_open(&fixture, pipeline("    topics: [orders, orders-sub-RETRY]\n"
                                   "    retry: { max_retries: 3 }\n"));
    assert_non_null(fixture.config);
    assert_string_equal(fixture.config->subscriptions[0].options.retry.topic,
                        "orders-sub-RETRY");
    config_close(&fixture);
}

static void
a_name_that_is_none_is_refused(void **state)
{
    (void)state;
    config_mentions(pipeline("    topics: ['http://x']\n"), "error[E0123]");
    config_mentions(pipeline("    dead_letter: { topic: 'persistent://only/two' }\n"),
                    "bad.yaml:10:27: error[E0123]");
}

static void
one_topic_in_two_spellings_is_read_twice(void **state)
{
    (void)state;
    config_mentions(pipeline("    topics: [orders, 'persistent://public/default/orders']\n"),
                    "error[E0301]: the topic \"persistent://public/default/orders\" is there "
                    "twice\n");
}

static void
a_loop_is_found_in_any_spelling(void **state)
{
    (void)state;
    config_mentions(
        pipeline("    dead_letter: { topic: 'persistent://public/default/orders' }\n"),
        "error[E0302]: dead letters of \"orders\" go to "
        "\"persistent://public/default/orders\", the topic itself");
}

static void
a_pattern_that_reads_its_own_dead_letters_is_refused(void **state)
{
    (void)state;
    config_mentions(pipeline("    topics: ['orders_.*']\n"),
                    "error[E0302]: the pattern \"orders_.*\" also reads its own dead letters, "
                    "\"{topic}-sub-DLQ\"");
    config_is_fine(pipeline("    topics: ['orders_.*']\n    dead_letter: { topic: dead }\n"));
    config_is_fine(pipeline("    topics: ['orders_[a-z]+']\n"));
    config_mentions(pipeline("    topics: ['orders_.*']\n    dead_letter: { topic: orders_dead "
                             "}\n"),
                    "error[E0302]");
}

static void
a_wrong_pattern_is_refused(void **state)
{
    (void)state;
    config_mentions(pipeline("    topics: ['orders_(?=x)']\n"), "error[E0124]");
}

/* -- Retry topics ---------------------------------------------------------------------------- */

static const char *
retried(const char *mode, const char *type, const char *topics)
{
    snprintf(text, sizeof(text),
             "version: 1\n"
             "service: { retry_warnings: %s }\n"
             "brokers: { main: { url: 'pulsar://localhost:6650' } }\n"
             "handlers: { h: { builtin: echo } }\n"
             "pipelines:\n"
             "  p: { broker: main, handler: h, consumer: { subscription: sub },\n"
             "       topics: [orders%s], retry: { topic: orders-retry } }\n"
             "  q: { broker: main, handler: h, consumer: { subscription: sub%s },\n"
             "       topics: [other] }\n",
             mode, topics, type);
    return text;
}

static void
a_retry_topic_that_nobody_reads_is_said_by_its_canonical_name(void **state)
{
    (void)state;
    config_mentions(retried("print", "", ""),
                    "warning[W0301]: nobody here reads the retry topic \"orders-retry\"\n");
    config_is_fine(retried("silent", "", ""));
    config_mentions(retried("error", "", ""),
                    "error[E0309]: nobody here reads the retry topic \"orders-retry\"\n");
    config_is_fine(retried("error", "", ", 'persistent://public/default/orders-retry'"));
    config_is_fine(retried("error", "",
                           ", 'orders-[a-z]*'], dead_letter: { topic: dead }, "
                           "errors: [{ codes: [1], verdict: dead }"));
}

static const char *
read_as(const char *mode, const char *type)
{
    retried(mode, type, "");
    char *other = strstr(text, "[other]");
    memcpy(other, "['public/default/orders-retry'] }\n", 35);
    return text;
}

static void
a_retry_topic_read_without_delays_is_said_in_three_modes(void **state)
{
    (void)state;
    static const char *const types[] = { ", type: exclusive", ", type: failover" };
    for (size_t i = 0; i < 2; i++) {
        config_mentions(read_as("print", types[i]),
                        "warning[W0316]: delays are not kept, since its subscription is not "
                        "shared: retry topic \"orders-retry\"\n");
        config_is_fine(read_as("silent", types[i]));
        config_mentions(read_as("error", types[i]), "error[E0309]: delays are not kept");
    }
    config_is_fine(read_as("error", ", type: shared"));
}

static void
the_dispatcher_is_told_of_a_retry_topic_as_its_reader_spells_it(void **state)
{
    (void)state;
    struct config_fixture fixture;
    config_open(&fixture, read_as("print", ""));
    assert_non_null(fixture.config);
    assert_string_equal(fixture.config->subscriptions[0].options.retry.topic,
                        "public/default/orders-retry");
    config_close(&fixture);
}

static void
subscriptions_of_one_name_may_have_properties_of_their_own(void **state)
{
    (void)state;
    retried("silent", ", properties: { priority_level: 3 }", "");
    config_is_fine(text);
}

/* -- The family of six ------------------------------------------------------------------------ */

static void
six_lanes_have_the_priorities_and_retry_topics_of_the_family(void **state)
{
    (void)state;
    static const struct {
        const char *topic;
        int priority;
        const char *retry;
    } rows[] = {
        { "orders_live_high", 110, "orders_live_retry" },
        { "orders_live_low", 120, "orders_live_retry" },
        { "orders_live_retry", 150, "orders_live_retry" },
        { "orders_batch_high", 210, "orders_batch_retry" },
        { "orders_batch_low", 220, "orders_batch_retry" },
        { "orders_batch_retry", 250, "orders_batch_retry" },
    };
    struct config_fixture fixture;
    config_open(&fixture,
                pipeline("    topics:\n"
                         "      matrix:\n"
                         "        name: 'orders_{level}_{lane}'\n"
                         "        level: { LIVE: 100, BATCH: 200 }\n"
                         "        lane: { HIGH: 10, LOW: 20, RETRY: 50 }\n"
                         "    retry: { topic: 'orders_{level}_retry', max_retries: 5 }\n"));
    assert_int_equal(fixture.printed.size, 0);
    assert_int_equal(fixture.config->subscription_count, 6);
    for (size_t i = 0; i < 6; i++) {
        const struct lw_config_subscription *item = &fixture.config->subscriptions[i];
        assert_string_equal(item->options.topic, rows[i].topic);
        assert_int_equal(item->options.priority, rows[i].priority);
        assert_string_equal(item->options.retry.topic, rows[i].retry);
        assert_int_equal(item->rank, i + 1);
    }
    config_close(&fixture);
}

static void
the_plan_says_what_windows_do_to_several_members(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        { "", "several members: each holds what it has slots for, up to 1000" },
        { "    profile: throughput\n", "several members share unevenly: each may hoard 1000" },
        { "    profile: priority\n", "several members share evenly" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct config_fixture fixture;
        struct lw_text plan;
        config_open(&fixture, pipeline(rows[i][0]));
        lw_text_init(&plan);
        lw_config_plan_print(fixture.config, &plan);
        assert_non_null(strstr(plan.data, rows[i][1]));
        assert_non_null(strstr(plan.data, "broker main (pulsar)   subscription sub (shared)"));
        lw_text_deinit(&plan);
        config_close(&fixture);
    }
}

/* The options of Pulsar have underscores of their own; those of Kafka have none. */
static void
variables_keep_the_underscores_of_options(void **state)
{
    (void)state;
    const char *env[] = {
        "LANEWAY_BROKERS__MAIN__PROPERTIES__ADMIN_URL=http://a:8080",
        "LANEWAY_PIPELINES__P__CONSUMER__PROPERTIES__KEY_SHARED_POLICY__KEY_SHARED_MODE="
        "auto_split",
        NULL
    };
    const char *from = consumer(", type: key_shared");
    struct lw_config_text file = { "pulsar.yaml", from, strlen(from) };
    struct config_fixture fixture;
    config_open_source(
        &fixture, (struct lw_config_source){ .texts = &file, .text_count = 1, .env = env });
    assert_non_null(fixture.config);
    const struct lw_config_broker *main_broker = &fixture.config->brokers[0];
    const struct lw_config_pipeline *p = &fixture.config->pipelines[0];
    assert_string_equal(
        property(main_broker->properties, main_broker->property_count, "admin_url"),
        "http://a:8080");
    assert_string_equal(
        property(p->properties, p->property_count, "key_shared_policy.key_shared_mode"),
        "auto_split");
    config_close(&fixture);
}

#define ROW(name) cmocka_unit_test(name)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        ROW(both_schemes_and_several_hosts_are_taken),
        ROW(variables_keep_the_underscores_of_options),
        ROW(an_address_with_credentials_is_refused_where_it_stands),
        ROW(short_words_become_options_and_paths_begin_at_the_file),
        ROW(a_token_is_never_shown_by_the_plan),
        ROW(a_short_word_and_its_option_exclude_each_other),
        ROW(credentials_for_kafka_are_refused_rather_than_ignored),
        ROW(unknown_options_are_named_with_the_nearest),
        ROW(options_of_the_client_do_not_belong_to_a_consumer),
        ROW(options_that_are_not_served_say_why),
        ROW(wrong_values_are_shown_at_their_place_and_secrets_are_not),
        ROW(options_that_contradict_each_other_are_refused),
        ROW(the_type_reaches_the_broker_and_the_queue_size_the_window),
        ROW(the_pipelines_own_queue_size_wins),
        ROW(a_type_elsewhere_has_no_effect_and_says_so),
        ROW(key_order_needs_a_type_that_keeps_keys),
        ROW(shared_is_the_type_when_none_is_given),
        ROW(partition_order_needs_one_member),
        ROW(one_message_cannot_be_delayed_where_the_broker_rewinds),
        ROW(two_ways_to_a_dead_letter_exclude_each_other),
        ROW(the_topic_of_the_clients_policy_is_a_dead_letter_topic_like_others),
        ROW(conventional_names_follow_the_spelling_of_the_topic),
        ROW(a_retry_topic_by_convention_is_the_clients),
        ROW(a_name_that_is_none_is_refused),
        ROW(one_topic_in_two_spellings_is_read_twice),
        ROW(a_loop_is_found_in_any_spelling),
        ROW(a_pattern_that_reads_its_own_dead_letters_is_refused),
        ROW(a_wrong_pattern_is_refused),
        ROW(a_retry_topic_that_nobody_reads_is_said_by_its_canonical_name),
        ROW(a_retry_topic_read_without_delays_is_said_in_three_modes),
        ROW(the_dispatcher_is_told_of_a_retry_topic_as_its_reader_spells_it),
        ROW(subscriptions_of_one_name_may_have_properties_of_their_own),
        ROW(six_lanes_have_the_priorities_and_retry_topics_of_the_family),
        ROW(the_plan_says_what_windows_do_to_several_members),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int
main(void)
{
    return 77; /* Pulsar is not built */
}

#endif
