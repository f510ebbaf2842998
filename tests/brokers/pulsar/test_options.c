/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of the official clients: every name is known, defaults and ranges hold, what is refused
 * says why, contradictions are found, and the page lists the table as it is.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#include "brokers/pulsar/options.h"
#include "brokers/pulsar/wire/command.h"
#include "brokers/pulsar/wire/compress.h"

/* What the constructor, subscribe and create_producer of the Python client 3.13.0 take. */
static const char *const python_client[] = {
    "service_url",
    "authentication",
    "operation_timeout_seconds",
    "io_threads",
    "message_listener_threads",
    "concurrent_lookup_requests",
    "log_conf_file_path",
    "stats_interval_in_seconds",
    "use_tls",
    "tls_trust_certs_file_path",
    "tls_allow_insecure_connection",
    "tls_validate_hostname",
    "logger",
    "connection_timeout_ms",
    "listener_name",
    "tls_private_key_file_path",
    "tls_certificate_file_path",
};
static const char *const python_consumer[] = {
    "topic",
    "subscription_name",
    "consumer_type",
    "schema",
    "message_listener",
    "receiver_queue_size",
    "max_total_receiver_queue_size_across_partitions",
    "consumer_name",
    "unacked_messages_timeout_ms",
    "broker_consumer_stats_cache_time_ms",
    "negative_ack_redelivery_delay_ms",
    "is_read_compacted",
    "properties",
    "pattern_auto_discovery_period",
    "initial_position",
    "crypto_key_reader",
    "replicate_subscription_state_enabled",
    "max_pending_chunked_message",
    "auto_ack_oldest_chunked_message_on_queue_full",
    "start_message_id_inclusive",
    "batch_receive_policy",
    "key_shared_policy",
    "batch_index_ack_enabled",
    "regex_subscription_mode",
    "dead_letter_policy",
    "crypto_failure_action",
    /* and those of pulsar-dispatcher's subscribe */
    "process_message",
    "priority",
    "fatal_exception_class",
    "retry_exception_class",
    "retry_topic",
    "retry_backoff_function",
    "max_retries",
    "reply_topic",
};
static const char *const python_producer[] = {
    "topic",
    "producer_name",
    "schema",
    "initial_sequence_id",
    "send_timeout_millis",
    "compression_type",
    "max_pending_messages",
    "max_pending_messages_across_partitions",
    "block_if_queue_full",
    "batching_enabled",
    "batching_max_messages",
    "batching_max_allowed_size_in_bytes",
    "batching_max_publish_delay_ms",
    "chunking_enabled",
    "message_routing_mode",
    "lazy_start_partitioned_producers",
    "properties",
    "batching_type",
    "encryption_key",
    "crypto_key_reader",
    "access_mode",
    "message_router",
};

static void
expect_known(const char *prefix, const char *const names[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char name[128];
        enum lw_pulsar_scope scope;
        (void)snprintf(name, sizeof name, "%s%s", prefix, names[i]);
        if (!lw_pulsar_option_find(name, &scope)) {
            fail_msg("unknown: %s", name);
        }
    }
}

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void
every_option_of_the_clients_is_known_by_name(void **state)
{
    (void)state;
    expect_known("client.", python_client, COUNT(python_client));
    expect_known("consumer.", python_consumer, COUNT(python_consumer));
    expect_known("producer.", python_producer, COUNT(python_producer));
}

static void
every_row_has_a_text_and_a_default_that_is_a_value(void **state)
{
    (void)state;
    for (int scope = 0; scope < 3; scope++) {
        const struct lw_option *rows = lw_pulsar_option_rows((enum lw_pulsar_scope)scope);
        for (const struct lw_option *row = rows; row->name; row++) {
            union lw_option_value value;
            assert_true(row->doc && strlen(row->doc) > 8);
            assert_ptr_equal(lw_option_find(rows, row->name, NULL), row); /* no name twice */
            if (row->initial && lw_option_is_scalar(row)) {
                assert_int_equal(lw_option_parse(row, row->initial, &value), LW_OPTION_FINE);
            }
        }
    }
}

static struct lw_pulsar_options options;
static struct lw_error error;

static enum lw_status
read_broker(const struct lw_property *properties, size_t count)
{
    lw_pulsar_options_init(&options);
    return lw_pulsar_options_read_broker(&options, properties, count, &error);
}

#define READ(...)                                                                              \
    read_broker((const struct lw_property[]){ __VA_ARGS__ },                                   \
                COUNT(((const struct lw_property[]){ __VA_ARGS__ })))

static void
defaults_are_those_of_the_page(void **state)
{
    (void)state;
    lw_pulsar_options_init(&options);
    assert_int_equal(options.client.operation_timeout_seconds, 30);
    assert_true(options.client.tls_validate_hostname);
    assert_int_equal(options.consumer.consumer_type, LW_PULSAR_SUB_SHARED);
    assert_int_equal(options.consumer.receiver_queue_size, 1000);
    assert_int_equal(options.consumer.negative_ack_redelivery_delay_ms, 60000);
    assert_true(options.consumer.negative_ack_multiplier > 1.9);
    assert_int_equal(options.producer.initial_sequence_id, -1);
    assert_int_equal(options.producer.compression_type, LW_PULSAR_COMPRESSION_NONE);
    assert_true(options.producer.batching_enabled);
    assert_int_equal(lw_pulsar_options_check_broker(&options, &error), LW_STATUS_OK);
    assert_int_equal(lw_pulsar_options_check_consumer(&options.consumer, &error), LW_STATUS_OK);
}

static void
values_reach_their_fields(void **state)
{
    (void)state;
    assert_int_equal(
        READ({ "operation_timeout_seconds", "5" }, { "use_tls", "True" },
             { "consumer_type", "KeyShared" }, { "producer.compression_type", "LZ4" },
             { "initial_position", "earliest" }, { "consumer.priority_level", "3" },
             { "negative_ack_redelivery_backoff.multiplier", "1.5" }, { "token", "abc" },
             { "subscription_type", "failover" }, { "listener_name", "" }),
        LW_STATUS_OK);
    assert_int_equal(options.client.operation_timeout_seconds, 5);
    assert_true(options.client.use_tls);
    assert_int_equal(options.consumer.consumer_type, LW_PULSAR_SUB_FAILOVER);
    assert_int_equal(options.producer.compression_type, LW_PULSAR_COMPRESSION_LZ4);
    assert_int_equal(options.consumer.initial_position, LW_PULSAR_INITIAL_EARLIEST);
    assert_int_equal(options.consumer.priority_level, 3);
    assert_string_equal(options.client.token, "abc");
    assert_null(options.client.listener_name);
}

static void
metadata_is_collected_by_its_owner(void **state)
{
    (void)state;
    assert_int_equal(READ({ "properties.team", "a" }, { "producer.properties.team", "b" },
                          { "properties.team", "c" }, { "consumer.properties.x", "y" }),
                     LW_STATUS_OK);
    assert_int_equal(options.consumer.properties.count, 2);
    assert_string_equal(options.consumer.properties.items[0].name, "team");
    assert_string_equal(options.consumer.properties.items[0].value, "c");
    assert_int_equal(options.producer.properties.count, 1);
    assert_string_equal(options.producer.properties.items[0].value, "b");
}

static void
too_much_metadata_is_refused(void **state)
{
    (void)state;
    struct lw_property items[LW_PULSAR_METADATA_MAX + 1];
    char names[LW_PULSAR_METADATA_MAX + 1][32];
    for (size_t i = 0; i < COUNT(items); i++) {
        (void)snprintf(names[i], sizeof names[i], "properties.n%zu", i);
        items[i] = (struct lw_property){ names[i], "v" };
    }
    assert_int_equal(read_broker(items, COUNT(items) - 1), LW_STATUS_OK);
    assert_int_equal(read_broker(items, COUNT(items)), LW_STATUS_CONFIG);
    assert_string_equal(error.code, "E0416");
}

static void
metadata_that_does_not_fit_a_command_is_refused(void **state)
{
    (void)state;
    char value[LW_PULSAR_METADATA_BYTES_MAX + 1];
    memset(value, 'v', sizeof value);
    value[LW_PULSAR_METADATA_BYTES_MAX - 1] = '\0';
    assert_int_equal(READ({ "properties.n", value }), LW_STATUS_OK);
    assert_int_equal(READ({ "properties.nn", value }), LW_STATUS_CONFIG);
    assert_string_equal(error.code, "E0416");
    assert_non_null(strstr(error.message, "3072 bytes"));
}

static void
unknown_names_are_refused_with_a_suggestion(void **state)
{
    (void)state;
    assert_int_equal(READ({ "reciever_queue_size", "1" }), LW_STATUS_CONFIG);
    assert_string_equal(error.code, "E0414");
    assert_non_null(strstr(error.help, "\"receiver_queue_size\""));
    assert_int_equal(READ({ "negativeAckRedeliveryDelayMs", "1" }), LW_STATUS_CONFIG);
    assert_non_null(strstr(error.help, "\"negative_ack_redelivery_delay_ms\""));
    assert_int_equal(READ({ "zzzzzzzzzzzz", "1" }), LW_STATUS_CONFIG);
    assert_non_null(strstr(error.help, "docs/pulsar-options.md"));
    assert_int_equal(READ({ "client.receiver_queue_size", "1" }), LW_STATUS_CONFIG);
    assert_int_equal(READ({ "properties.", "1" }), LW_STATUS_CONFIG);
}

static void
refused_options_say_why_and_take_their_default(void **state)
{
    (void)state;
    assert_int_equal(READ({ "crypto_key_reader", "x" }), LW_STATUS_UNSUPPORTED);
    assert_string_equal(error.code, "E0415");
    assert_non_null(strstr(error.message, "encryption"));
    assert_int_equal(READ({ "crypto_failure_action", "FAIL" }, { "retry_enable", "false" }),
                     LW_STATUS_OK);
    assert_int_equal(READ({ "crypto_failure_action", "CONSUME" }), LW_STATUS_UNSUPPORTED);
    assert_non_null(strstr(error.help, "leave it at FAIL"));
    assert_non_null(lw_pulsar_property_owned("authentication", "x"));
    assert_null(lw_pulsar_property_owned("connections_per_broker", "1"));
    assert_null(lw_pulsar_property_owned("token", "x"));
}

static void
a_word_that_is_not_served_says_why(void **state)
{
    (void)state;
    assert_int_equal(READ({ "hashing_scheme", "boost_hash" }), LW_STATUS_UNSUPPORTED);
    assert_string_equal(error.code, "E0415");
    assert_non_null(strstr(error.help, "Boost"));
    assert_int_equal(READ({ "hashing_scheme", "BoostHash" }), LW_STATUS_UNSUPPORTED);
    assert_int_equal(READ({ "start_message_id_inclusive", "true" }), LW_STATUS_UNSUPPORTED);
    assert_int_equal(READ({ "start_message_id_inclusive", "False" }), LW_STATUS_OK);
}

static void
a_proxy_is_one_address_with_tls(void **state)
{
    (void)state;
    static const char *const wrong[] = { "proxy:4443", "pulsar://proxy:4443",
                                         "pulsar+ssl://a:1,b:2", "pulsar+ssl://" };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        assert_int_equal(READ({ "proxy_service_url", wrong[i] }), LW_STATUS_CONFIG);
        assert_string_equal(error.code, "E0416");
    }
    assert_int_equal(
        READ({ "proxy_service_url", "pulsar+ssl://proxy:4443" }, { "proxy_protocol", "SNI" }),
        LW_STATUS_OK);
    assert_int_equal(READ({ "proxy_protocol", "HTTP" }), LW_STATUS_CONFIG);
}

static void
a_description_has_its_bound(void **state)
{
    (void)state;
    char text[66];
    memset(text, 'd', sizeof text);
    text[65] = '\0';
    assert_int_equal(READ({ "description", text }), LW_STATUS_CONFIG);
    assert_string_equal(error.code, "E0416");
    assert_int_equal(READ({ "description", text + 1 }), LW_STATUS_OK);
}

static void
options_that_set_nothing_are_accepted_and_checked(void **state)
{
    (void)state;
    enum lw_pulsar_scope scope;
    const struct lw_option *row = lw_pulsar_option_find("io_threads", &scope);
    assert_int_equal(lw_pulsar_option_fate(row), LW_PULSAR_OPTION_EMPTY);
    assert_int_equal(READ({ "io_threads", "4" }, { "block_if_queue_full", "true" }),
                     LW_STATUS_OK);
    assert_int_equal(READ({ "io_threads", "many" }), LW_STATUS_CONFIG);
    assert_string_equal(error.code, "E0416");
}

static void
wrong_values_are_refused_with_their_range(void **state)
{
    (void)state;
    assert_int_equal(READ({ "receiver_queue_size", "0" }), LW_STATUS_CONFIG);
    assert_string_equal(error.code, "E0416");
    assert_non_null(strstr(error.message, "from 1 to 1000000000"));
    assert_int_equal(READ({ "consumer_type", "sharde" }), LW_STATUS_CONFIG);
    assert_non_null(strstr(error.message, "exclusive | shared | failover | key_shared"));
    assert_int_equal(READ({ "use_tls", "yes" }), LW_STATUS_CONFIG);
    assert_int_equal(READ({ "operation_timeout_seconds", "5s" }), LW_STATUS_CONFIG);
    assert_non_null(lw_pulsar_property_check("priority_level", "-1"));
    assert_null(lw_pulsar_property_check("priority_level", "1"));
}

static void
an_error_changes_nothing(void **state)
{
    (void)state;
    struct lw_pulsar_options before;
    lw_pulsar_options_init(&options);
    before = options;
    const struct lw_property items[] = { { "priority_level", "7" }, { "nonsense_", "1" } };
    assert_int_not_equal(lw_pulsar_options_read_broker(&options, items, 2, &error),
                         LW_STATUS_OK);
    assert_int_not_equal(lw_pulsar_options_read_consumer(&options.consumer, items, 2, &error),
                         LW_STATUS_OK);
    assert_memory_equal(&options, &before, sizeof before);
}

static void
a_subscription_takes_its_own_options_only(void **state)
{
    (void)state;
    lw_pulsar_options_init(&options);
    const struct lw_property mine[] = { { "receiver_queue_size", "1" },
                                        { "properties.a", "b" } };
    const struct lw_property others[] = { { "use_tls", "true" } };
    assert_int_equal(lw_pulsar_options_read_consumer(&options.consumer, mine, 2, &error),
                     LW_STATUS_OK);
    assert_int_equal(options.consumer.receiver_queue_size, 1);
    assert_int_equal(lw_pulsar_options_read_consumer(&options.consumer, others, 1, &error),
                     LW_STATUS_CONFIG);
    assert_non_null(strstr(error.help, "broker"));
}

static void
chunking_and_batching_exclude_each_other(void **state)
{
    (void)state;
    assert_int_equal(READ({ "chunking_enabled", "true" }), LW_STATUS_OK);
    assert_false(options.producer.batching_enabled);
    assert_int_equal(READ({ "chunking_enabled", "true" }, { "batching_enabled", "true" }),
                     LW_STATUS_CONFIG);
    assert_string_equal(error.code, "E0419");
    assert_int_equal(
        READ({ "initial_backoff_interval_ms", "500" }, { "max_backoff_interval_ms", "100" }),
        LW_STATUS_CONFIG);
    assert_string_equal(error.code, "E0419");
}

struct contradiction {
    struct lw_property items[3];
    size_t count;
    const char *code; /* NULL: fine */
};

static const struct contradiction contradictions[] = {
    { { { "is_read_compacted", "true" } }, 1, "E0419" },
    { { { "is_read_compacted", "true" }, { "consumer_type", "exclusive" } }, 2, NULL },
    { { { "key_shared_policy.key_shared_mode", "sticky" } }, 1, "E0419" },
    { { { "key_shared_policy.key_shared_mode", "sticky" }, { "consumer_type", "key_shared" } },
      2,
      "E0419" },
    { { { "key_shared_policy.key_shared_mode", "sticky" },
        { "consumer_type", "key_shared" },
        { "key_shared_policy.sticky_ranges", "0-9,20-65535" } },
      3,
      NULL },
    { { { "key_shared_policy.key_shared_mode", "sticky" },
        { "consumer_type", "key_shared" },
        { "key_shared_policy.sticky_ranges", "0-9,9-20" } },
      3,
      "E0416" },
    { { { "key_shared_policy.sticky_ranges", "0-9" }, { "consumer_type", "key_shared" } },
      2,
      "E0419" },
    { { { "dead_letter_policy.max_redeliver_count", "3" } }, 1, NULL },
    { { { "dead_letter_policy.max_redeliver_count", "3" }, { "consumer_type", "failover" } },
      2,
      "E0419" },
    { { { "dead_letter_policy.dead_letter_topic", "x" } }, 1, "E0419" },
    { { { "unacked_messages_timeout_ms", "9999" } }, 1, "E0416" },
    { { { "unacked_messages_timeout_ms", "10000" } }, 1, NULL },
    { { { "negative_ack_redelivery_backoff.max_ms", "10" } }, 1, "E0419" },
};

static void
contradictions_of_a_subscription_are_found(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(contradictions); i++) {
        const struct contradiction *one = &contradictions[i];
        lw_pulsar_options_init(&options);
        assert_int_equal(
            lw_pulsar_options_read_consumer(&options.consumer, one->items, one->count, &error),
            LW_STATUS_OK);
        enum lw_status status = lw_pulsar_options_check_consumer(&options.consumer, &error);
        assert_int_equal(status, one->code ? LW_STATUS_CONFIG : LW_STATUS_OK);
        if (one->code) {
            assert_string_equal(error.code, one->code);
        }
    }
}

static void
sticky_ranges_are_read(void **state)
{
    (void)state;
    size_t count = 0;
    struct lw_pulsar_sticky_range ranges[LW_PULSAR_STICKY_RANGES_MAX];
    static const char *const bad[] = { "",        "1",       "1-",  "5-4",  "0-65536", "0-1,",
                                       "0-1 2-3", "0-5,5-9", "a-b", "-1-5", "0-1;2-3" };
    assert_true(lw_pulsar_sticky_ranges_parse("7-7, 0-5 ,65535-65535", ranges, &count));
    assert_int_equal(count, 3);
    assert_int_equal(ranges[0].start, 7);
    assert_int_equal(ranges[2].end, 65535);
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_false(lw_pulsar_sticky_ranges_parse(bad[i], ranges, &count));
    }
}

static void
secrets_are_not_shown(void **state)
{
    (void)state;
    enum lw_pulsar_scope scope;
    assert_true(lw_pulsar_option_find("token", &scope)->is_secret);
    assert_true(lw_pulsar_option_find("auth_params", &scope)->is_secret);
}

/* The page is made from the table; what it should be is left in the build folder. */
static void
the_page_lists_the_table_as_it_is(void **state)
{
    (void)state;
    struct lw_text page;
    struct lw_text file_text;
    char bytes[4096];
    size_t size = 0;
    lw_text_init(&page);
    lw_text_init(&file_text);
    lw_pulsar_options_reference(&page);
    FILE *made = fopen(LW_BINARY_DIR "/pulsar-options.md", "w");
    assert_non_null(made);
    assert_int_equal(fwrite(page.data, 1, page.size, made), page.size);
    assert_int_equal(fclose(made), 0);
    FILE *file = fopen(LW_SOURCE_DIR "/docs/pulsar-options.md", "r");
    assert_non_null(file);
    while ((size = fread(bytes, 1, sizeof bytes, file)) > 0) {
        lw_text_append_bytes(&file_text, bytes, size);
    }
    (void)fclose(file);
    if (strcmp(page.data, file_text.data) != 0) {
        fail_msg("docs/pulsar-options.md is not " LW_BINARY_DIR "/pulsar-options.md");
    }
    lw_text_deinit(&page);
    lw_text_deinit(&file_text);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_option_of_the_clients_is_known_by_name),
        cmocka_unit_test(every_row_has_a_text_and_a_default_that_is_a_value),
        cmocka_unit_test(defaults_are_those_of_the_page),
        cmocka_unit_test(values_reach_their_fields),
        cmocka_unit_test(metadata_is_collected_by_its_owner),
        cmocka_unit_test(too_much_metadata_is_refused),
        cmocka_unit_test(metadata_that_does_not_fit_a_command_is_refused),
        cmocka_unit_test(unknown_names_are_refused_with_a_suggestion),
        cmocka_unit_test(refused_options_say_why_and_take_their_default),
        cmocka_unit_test(a_word_that_is_not_served_says_why),
        cmocka_unit_test(a_proxy_is_one_address_with_tls),
        cmocka_unit_test(a_description_has_its_bound),
        cmocka_unit_test(options_that_set_nothing_are_accepted_and_checked),
        cmocka_unit_test(wrong_values_are_refused_with_their_range),
        cmocka_unit_test(an_error_changes_nothing),
        cmocka_unit_test(a_subscription_takes_its_own_options_only),
        cmocka_unit_test(chunking_and_batching_exclude_each_other),
        cmocka_unit_test(contradictions_of_a_subscription_are_found),
        cmocka_unit_test(sticky_ranges_are_read),
        cmocka_unit_test(secrets_are_not_shown),
        cmocka_unit_test(the_page_lists_the_table_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
