/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every option that is called served does something: a value that is not its default, read as a
 * property, makes another setting, and that setting is read outside of settings.c. The table names
 * the setting of each row; a row without one fails, and so does a setting that nobody reads.
 */
#include "tests/support/test.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "brokers/pulsar/pulsar.h"

/* All that options become. */
struct everything {
    struct lw_pulsar_client_settings client;
    struct lw_pulsar_auth_options auth;
    struct lw_pulsar_producer_settings producer;
    struct lw_pulsar_consumer_settings consumer;
    struct lw_pulsar_range ranges[LW_PULSAR_STICKY_RANGES_MAX];
};

struct effect {
    enum lw_pulsar_scope scope;
    const char *option;
    const char *value; /* NULL: one is made up that is not the default */
    const char *setting;
    size_t offset;
    size_t size;
};

#define SHOWS(scope, option, value, member)                                                    \
    {                                                                                          \
        LW_PULSAR_SCOPE_##scope, option, value, #member, offsetof(struct everything, member),  \
            sizeof(((struct everything *)0)->member)                                           \
    }

static const struct effect effects[] = {
    SHOWS(CLIENT, "operation_timeout_seconds", NULL, client.operation_timeout_ns),
    SHOWS(CLIENT, "connection_timeout_ms", NULL, client.connection_timeout_ns),
    SHOWS(CLIENT, "concurrent_lookup_requests", NULL, client.lookups_max),
    SHOWS(CLIENT, "max_lookup_redirects", NULL, client.redirects_max),
    SHOWS(CLIENT, "max_number_of_rejected_request_per_connection", NULL, client.rejected_max),
    SHOWS(CLIENT, "keep_alive_interval_in_seconds", NULL, client.keep_alive_ns),
    SHOWS(CLIENT, "initial_backoff_interval_ms", NULL, client.backoff_first_ns),
    SHOWS(CLIENT, "max_backoff_interval_ms", NULL, client.backoff_max_ns),
    SHOWS(CLIENT, "memory_limit_bytes", NULL, producer.pending_bytes_max),
    SHOWS(CLIENT, "partitions_update_interval_seconds", NULL, client.partitions_every_ns),
    SHOWS(CLIENT, "use_tls", NULL, client.wants_tls),
    SHOWS(CLIENT, "tls_trust_certs_file_path", NULL, client.tls.trust_file),
    SHOWS(CLIENT, "tls_allow_insecure_connection", NULL, client.tls.allows_insecure),
    SHOWS(CLIENT, "tls_validate_hostname", NULL, client.tls.validates_hostname),
    SHOWS(CLIENT, "tls_certificate_file_path", NULL, client.tls.certificate_file),
    SHOWS(CLIENT, "tls_private_key_file_path", NULL, client.tls.key_file),
    SHOWS(CLIENT, "auth_plugin", NULL, auth.plugin),
    SHOWS(CLIENT, "auth_params", NULL, auth.params),
    SHOWS(CLIENT, "token", NULL, auth.token),
    SHOWS(CLIENT, "listener_name", NULL, client.listener_name),
    SHOWS(CLIENT, "proxy_service_url", "pulsar+ssl://proxy:4443", client.has_proxy),
    SHOWS(CLIENT, "proxy_service_url", "pulsar+ssl://proxy:4443", client.proxy),
    SHOWS(CLIENT, "admin_url", NULL, client.admin_url),
    SHOWS(CLIENT, "description", NULL, client.description),
    SHOWS(CONSUMER, "consumer_type", NULL, consumer.type),
    SHOWS(CONSUMER, "initial_position", NULL, consumer.initial_position),
    SHOWS(CONSUMER, "receiver_queue_size", NULL, consumer.receiver_queue_size),
    SHOWS(CONSUMER, "max_total_receiver_queue_size_across_partitions", NULL,
          consumer.queue_total_max),
    SHOWS(CONSUMER, "consumer_name", NULL, consumer.consumer_name),
    SHOWS(CONSUMER, "unacked_messages_timeout_ms", NULL, consumer.ack_timeout_ns),
    SHOWS(CONSUMER, "negative_ack_redelivery_delay_ms", NULL, consumer.nack_delay_ns),
    SHOWS(CONSUMER, "negative_ack_redelivery_backoff.max_ms", NULL, consumer.nack_delay_max_ns),
    SHOWS(CONSUMER, "negative_ack_redelivery_backoff.multiplier", NULL,
          consumer.nack_multiplier),
    SHOWS(CONSUMER, "ack_grouping_time_ms", NULL, consumer.ack_group_ns),
    SHOWS(CONSUMER, "ack_grouping_max_size", NULL, consumer.ack_group_max),
    SHOWS(CONSUMER, "ack_receipt_enabled", NULL, consumer.wants_ack_receipts),
    SHOWS(CONSUMER, "batch_index_ack_enabled", NULL, consumer.acks_batch_index),
    SHOWS(CONSUMER, "is_read_compacted", NULL, consumer.reads_compacted),
    SHOWS(CONSUMER, "replicate_subscription_state_enabled", NULL, consumer.replicates_state),
    SHOWS(CONSUMER, "start_paused", NULL, consumer.starts_paused),
    SHOWS(CONSUMER, "priority_level", NULL, consumer.priority_level),
    SHOWS(CONSUMER, "pattern_auto_discovery_period", NULL, consumer.discovery_ns),
    SHOWS(CONSUMER, "regex_subscription_mode", NULL, consumer.regex_mode),
    SHOWS(CONSUMER, "max_pending_chunked_message", NULL, consumer.chunked_pending_max),
    SHOWS(CONSUMER, "auto_ack_oldest_chunked_message_on_queue_full", NULL,
          consumer.acks_oldest_chunked),
    SHOWS(CONSUMER, "expire_time_of_incomplete_chunked_message_ms", NULL,
          consumer.chunk_expiry_ns),
    SHOWS(CONSUMER, "key_shared_policy.key_shared_mode", NULL, consumer.key_shared_mode),
    SHOWS(CONSUMER, "key_shared_policy.allow_out_of_order_delivery", NULL,
          consumer.allows_out_of_order),
    SHOWS(CONSUMER, "key_shared_policy.sticky_ranges", "5-9", consumer.range_count),
    SHOWS(CONSUMER, "key_shared_policy.sticky_ranges", "5-9", ranges[0]),
    SHOWS(CONSUMER, "dead_letter_policy.max_redeliver_count", NULL,
          consumer.max_redeliver_count),
    SHOWS(CONSUMER, "dead_letter_policy.dead_letter_topic", NULL, consumer.dead_letter_topic),
    SHOWS(CONSUMER, "dead_letter_policy.initial_subscription_name", NULL,
          consumer.initial_subscription_name),
    SHOWS(CONSUMER, "properties.*", NULL, consumer.property_count),
    SHOWS(PRODUCER, "producer_name", NULL, producer.producer_name),
    SHOWS(PRODUCER, "initial_sequence_id", NULL, producer.first_sequence_id),
    SHOWS(PRODUCER, "send_timeout_millis", NULL, producer.send_timeout_ns),
    SHOWS(PRODUCER, "compression_type", NULL, producer.compression),
    SHOWS(PRODUCER, "max_pending_messages", NULL, producer.pending_max),
    SHOWS(PRODUCER, "max_pending_messages_across_partitions", NULL, producer.pending_topic_max),
    SHOWS(PRODUCER, "batching_enabled", NULL, producer.batches),
    SHOWS(PRODUCER, "batching_max_messages", NULL, producer.batch_messages_max),
    SHOWS(PRODUCER, "batching_max_allowed_size_in_bytes", NULL, producer.batch_bytes_max),
    SHOWS(PRODUCER, "batching_max_publish_delay_ms", NULL, producer.batch_delay_ns),
    SHOWS(PRODUCER, "batching_type", NULL, producer.batches_by_key),
    SHOWS(PRODUCER, "chunking_enabled", NULL, producer.chunks),
    SHOWS(PRODUCER, "message_routing_mode", NULL, producer.routing),
    SHOWS(PRODUCER, "hashing_scheme", NULL, producer.hashing),
    SHOWS(PRODUCER, "access_mode", NULL, producer.access_mode),
    SHOWS(PRODUCER, "properties.*", NULL, producer.property_count),
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const enum lw_pulsar_scope scopes[] = { LW_PULSAR_SCOPE_CLIENT, LW_PULSAR_SCOPE_CONSUMER,
                                               LW_PULSAR_SCOPE_PRODUCER };

/* -- Values that are not the default --------------------------------------------------------- */

static const char *
other_number(const struct lw_option *row)
{
    static char text[32];
    int64_t initial = row->initial ? strtoll(row->initial, NULL, 10) : 0;
    int64_t other = (double)initial + 1 <= row->max ? initial + 1 : initial - 1;
    (void)snprintf(text, sizeof text, "%lld", (long long)other);
    return text;
}

static const char *
other_word(const struct lw_option *row)
{
    for (const struct lw_option_word *word = row->words; word->word; word++) {
        if (!word->is_alias && !word->is_later && strcmp(word->word, row->initial) != 0) {
            return word->word;
        }
    }
    fail_msg("\"%s\" has no other word", row->name);
    return NULL;
}

static const char *
other_value(const struct lw_option *row)
{
    if (row->type == LW_OPTION_BOOL) {
        return strcmp(row->initial, "true") == 0 ? "false" : "true";
    }
    if (row->type == LW_OPTION_INT) {
        return other_number(row);
    }
    if (row->type == LW_OPTION_ENUM) {
        return other_word(row);
    }
    return row->type == LW_OPTION_DOUBLE ? "1.5" : "another";
}

static void
build(const struct lw_property *properties, size_t count, struct everything *all)
{
    static struct lw_pulsar_options options;
    struct lw_error error = { 0 };
    lw_pulsar_options_init(&options);
    if (lw_pulsar_options_read_broker(&options, properties, count, &error) != LW_STATUS_OK) {
        fail_msg("%s=%s: %s", properties->name, properties->value, error.message);
    }
    memset(all, 0, sizeof *all);
    lw_pulsar_settings_client(&options.client, &all->client);
    lw_pulsar_settings_auth(&options.client, &all->auth);
    lw_pulsar_settings_producer(&options, &all->producer);
    lw_pulsar_settings_consumer(&options.consumer, "s", all->ranges, &all->consumer);
}

/* -- The tests --------------------------------------------------------------------------------- */

static bool
has_effect(enum lw_pulsar_scope scope, const char *option)
{
    for (size_t i = 0; i < COUNT(effects); i++) {
        if (effects[i].scope == scope && strcmp(effects[i].option, option) == 0) {
            return true;
        }
    }
    return false;
}

static void
every_served_option_has_a_setting(void **state)
{
    (void)state;
    size_t served = 0;
    for (size_t i = 0; i < COUNT(scopes); i++) {
        const struct lw_option *row = lw_pulsar_option_rows(scopes[i]);
        for (; row->name; row++) {
            bool is_served = lw_pulsar_option_fate(row) == LW_PULSAR_OPTION_SERVED;
            served += is_served;
            if (is_served != has_effect(scopes[i], row->name)) {
                fail_msg("\"%s\" is %s", row->name,
                         is_served ? "served, but no setting shows it"
                                   : "not served, but a setting is named");
            }
        }
    }
    print_message("%zu options are served\n", served);
}

static void
every_served_option_changes_its_setting(void **state)
{
    static const char *const prefixes[] = { "client.", "consumer.", "producer." };
    static struct everything before;
    static struct everything after;
    (void)state;
    build(NULL, 0, &before);
    for (size_t i = 0; i < COUNT(effects); i++) {
        const struct effect *effect = &effects[i];
        const struct lw_option *row = lw_option_find(lw_pulsar_option_rows(effect->scope),
                                                     effect->option, NULL);
        assert_non_null(row);
        bool is_metadata = row->type == LW_OPTION_PROPERTIES;
        char name[128];
        (void)snprintf(name, sizeof name, "%s%s", prefixes[effect->scope],
                       is_metadata ? "properties.team" : row->name);
        struct lw_property property = { name,
                                        effect->value ? effect->value : other_value(row) };
        build(&property, 1, &after);
        if (memcmp((char *)&before + effect->offset, (char *)&after + effect->offset,
                   effect->size) == 0) {
            fail_msg("\"%s\" does not reach %s", effect->option, effect->setting);
        }
    }
}

static bool
reads_member(const char *text, const char *member)
{
    size_t size = strlen(member);
    for (const char *at = text; (at = strstr(at, member)) != NULL; at += size) {
        bool is_access = at > text && (at[-1] == '.' || at[-1] == '>');
        const char *end = at + size;
        bool is_whole = !isalnum((unsigned char)*end) && *end != '_';
        end += strspn(end, " ");
        bool is_set = end[0] == '=' && end[1] != '=';
        if (is_access && is_whole && !is_set) {
            return true;
        }
    }
    return false;
}

static bool
file_reads(const char *name, const char *member)
{
    char path[512];
    static char text[128 * 1024];
    (void)snprintf(path, sizeof path, LW_SOURCE_DIR "/src/brokers/pulsar/%s", name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t size = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    text[size] = '\0';
    return reads_member(text, member);
}

/* Options and settings only say what there is. */
static bool
is_user(const char *name)
{
    size_t size = strlen(name);
    return size > 2 && strcmp(name + size - 2, ".c") == 0 && strcmp(name, "settings.c") != 0 &&
           strncmp(name, "option", 6) != 0;
}

static bool
is_read(const char *member)
{
    DIR *folder = opendir(LW_SOURCE_DIR "/src/brokers/pulsar");
    struct dirent *each;
    bool is_found = false;
    assert_non_null(folder);
    while (!is_found && (each = readdir(folder)) != NULL) {
        is_found = is_user(each->d_name) && file_reads(each->d_name, member);
    }
    (void)closedir(folder);
    return is_found;
}

static void
every_setting_is_read_by_somebody(void **state)
{
    (void)state;
    assert_false(is_read("max_redeliver_counter"));
    for (size_t i = 0; i < COUNT(effects); i++) {
        char member[64];
        const char *dot = strrchr(effects[i].setting, '.');
        (void)snprintf(member, sizeof member, "%s", dot ? dot + 1 : effects[i].setting);
        member[strcspn(member, "[")] = '\0';
        if (!is_read(member)) {
            fail_msg("nobody reads %s, which is \"%s\"", effects[i].setting, effects[i].option);
        }
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_served_option_has_a_setting),
        cmocka_unit_test(every_served_option_changes_its_setting),
        cmocka_unit_test(every_setting_is_read_by_somebody),
    };
    return cmocka_run_group_tests_name("brokers.pulsar.settings", tests, NULL, NULL);
}
