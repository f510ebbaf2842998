/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the options that people give, by the names and units of the official clients, to the
 * settings of the parts, in theirs. Nothing is checked here: the options were. Pure.
 */
#include <laneway/laneway.h>

#include "base/alloc.h"
#include "brokers/pulsar/pulsar.h"

#define SECOND (1000 * LW_MS)

enum {
    PRODUCERS_MAX = 256, /* topics written to at once; more are closed and made again */
    IDLE_S = 60,
    UNCOMPRESSED_BYTES_MAX = 128 * 1024 * 1024,
    CHUNKED_BYTES_MAX = 128 * 1024 * 1024,
    QUEUE_MAX = 1000000
};

static uint64_t
ms(int64_t value)
{
    return value > 0 ? (uint64_t)value * LW_MS : 0;
}

void
lw_pulsar_settings_client(const struct lw_pulsar_client_options *options,
                          struct lw_pulsar_client_settings *ret_settings)
{
    *ret_settings = (struct lw_pulsar_client_settings){
        .operation_timeout_ns = ms(options->operation_timeout_seconds * 1000),
        .connection_timeout_ns = ms(options->connection_timeout_ms),
        .keep_alive_ns = ms(options->keep_alive_interval_in_seconds * 1000),
        .backoff_first_ns = ms(options->initial_backoff_interval_ms),
        .backoff_max_ns = ms(options->max_backoff_interval_ms),
        .lookups_max = (uint32_t)options->concurrent_lookup_requests,
        .rejected_max = (uint32_t)options->max_number_of_rejected_request_per_connection,
        .redirects_max = (uint32_t)options->max_lookup_redirects,
        .partitions_every_ns = ms(options->partitions_update_interval_seconds * 1000),
        .listener_name = options->listener_name,
        .client_version = "Laneway-" LW_VERSION_STRING,
        .description = options->description,
        .admin_url = options->admin_url,
        .wants_tls = options->use_tls,
        .tls = { .trust_file = options->tls_trust_certs_file_path,
                 .certificate_file = options->tls_certificate_file_path,
                 .key_file = options->tls_private_key_file_path,
                 .allows_insecure = options->tls_allow_insecure_connection,
                 .validates_hostname = options->tls_validate_hostname },
    };
    bool is_tls = false;
    ret_settings->has_proxy = options->proxy_service_url &&
                              lw_pulsar_address_parse_broker(options->proxy_service_url,
                                                             &ret_settings->proxy, &is_tls);
}

void
lw_pulsar_settings_auth(const struct lw_pulsar_client_options *options,
                        struct lw_pulsar_auth_options *ret_options)
{
    *ret_options = (struct lw_pulsar_auth_options){
        .plugin = options->auth_plugin,
        .params = options->auth_params,
        .token = options->token,
        .trust_file = options->tls_trust_certs_file_path,
        .certificate_file = options->tls_certificate_file_path,
        .key_file = options->tls_private_key_file_path,
    };
}

/* A batch is what one turn brought when no delay is wanted: a reply should not wait. */
void
lw_pulsar_settings_producer(const struct lw_pulsar_options *options,
                            struct lw_pulsar_producer_settings *ret_settings)
{
    const struct lw_pulsar_producer_options *from = &options->producer;
    *ret_settings = (struct lw_pulsar_producer_settings){
        .producer_name = from->producer_name,
        .compression = from->compression_type,
        .batches = from->batching_enabled,
        .batches_by_key = from->batching_type == LW_PULSAR_BATCHING_KEY_BASED,
        .batch_messages_max = (uint32_t)from->batching_max_messages,
        .batch_bytes_max = (uint32_t)from->batching_max_allowed_size_in_bytes,
        .batch_delay_ns = ms(from->batching_max_publish_delay_ms),
        .chunks = from->chunking_enabled,
        .send_timeout_ns = ms(from->send_timeout_millis),
        .pending_max = (uint32_t)from->max_pending_messages,
        .pending_topic_max = (uint32_t)from->max_pending_messages_across_partitions,
        .first_sequence_id = (uint64_t)(from->initial_sequence_id + 1),
        .pending_bytes_max = (uint64_t)options->client.memory_limit_bytes,
        .producers_max = PRODUCERS_MAX,
        .idle_ns = IDLE_S * SECOND,
        .access_mode = from->access_mode,
        .routing = from->message_routing_mode,
        .hashing = from->hashing_scheme,
        .properties = from->properties.items,
        .property_count = from->properties.count,
    };
}

static size_t
read_ranges(const char *text, struct lw_pulsar_range *ranges)
{
    struct lw_pulsar_sticky_range parsed[LW_PULSAR_STICKY_RANGES_MAX];
    size_t count = 0;
    if (!text || !lw_pulsar_sticky_ranges_parse(text, parsed, &count)) {
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        ranges[i] = (struct lw_pulsar_range){ (int32_t)parsed[i].start,
                                              (int32_t)parsed[i].end };
    }
    return count;
}

static uint64_t
nack_delay_max(const struct lw_pulsar_consumer_options *options)
{
    return options->negative_ack_max_delay_ms > 0
               ? ms(options->negative_ack_max_delay_ms)
               : ms(options->negative_ack_redelivery_delay_ms);
}

void
lw_pulsar_settings_consumer(const struct lw_pulsar_consumer_options *options,
                            const char *subscription, struct lw_pulsar_range *ranges,
                            struct lw_pulsar_consumer_settings *ret_settings)
{
    int64_t queue = options->receiver_queue_size;
    queue = queue < 1 ? 1 : queue > QUEUE_MAX ? QUEUE_MAX : queue;
    *ret_settings = (struct lw_pulsar_consumer_settings){
        .subscription = subscription,
        .consumer_name = options->consumer_name,
        .type = options->consumer_type,
        .initial_position = options->initial_position,
        .priority_level = (int32_t)options->priority_level,
        .reads_compacted = options->is_read_compacted,
        .replicates_state = options->replicate_subscription_state_enabled,
        .acks_batch_index = options->batch_index_ack_enabled,
        .wants_ack_receipts = options->ack_receipt_enabled,
        .receiver_queue_size = (uint32_t)queue,
        .ack_group_max = (uint32_t)options->ack_grouping_max_size,
        .ack_group_ns = ms(options->ack_grouping_time_ms),
        .nack_delay_ns = ms(options->negative_ack_redelivery_delay_ms),
        .nack_delay_max_ns = nack_delay_max(options),
        .nack_multiplier = options->negative_ack_multiplier,
        .ack_timeout_ns = ms(options->unacked_messages_timeout_ms),
        .chunked_pending_max = (uint32_t)options->max_pending_chunked_message,
        .chunked_bytes_max = CHUNKED_BYTES_MAX,
        .chunk_expiry_ns = ms(options->expire_time_of_incomplete_chunked_message_ms),
        .acks_oldest_chunked = options->auto_ack_oldest_chunked_message_on_queue_full,
        .max_redeliver_count = (uint32_t)options->max_redeliver_count,
        .dead_letter_topic = options->dead_letter_topic,
        .initial_subscription_name = options->initial_subscription_name,
        .uncompressed_bytes_max = UNCOMPRESSED_BYTES_MAX,
        .key_shared_mode = options->key_shared_mode,
        .allows_out_of_order = options->allow_out_of_order_delivery,
        .ranges = ranges,
        .range_count = read_ranges(options->sticky_ranges, ranges),
        .queue_total_max = (uint32_t)options->max_total_receiver_queue_size_across_partitions,
        .regex_mode = options->regex_subscription_mode,
        .discovery_ns = ms(options->pattern_auto_discovery_period * 1000),
        .starts_paused = options->start_paused,
        .properties = options->properties.items,
        .property_count = options->properties.count,
    };
}
