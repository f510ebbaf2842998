/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands of Pulsar as tables, in the order of their numbers: field number, kind, member,
 * default; and the table of all of them with their names. Fields that no client and no broker of
 * ours touches (auth_method of CONNECT) have no row and are skipped. To add a command: its struct
 * in command.h, its fields here, one line at the end.
 */
#include "brokers/pulsar/wire/command.h"
#include "brokers/pulsar/wire/fields.h"

static const struct lw_pulsar_field feature_flags_fields[] = {
    FIELD(struct lw_pulsar_feature_flags, 1, BOOL, supports_auth_refresh),
    FIELD(struct lw_pulsar_feature_flags, 2, BOOL, supports_broker_entry_metadata),
    FIELD(struct lw_pulsar_feature_flags, 3, BOOL, supports_partial_producer),
    FIELD(struct lw_pulsar_feature_flags, 4, BOOL, supports_topic_watchers),
    FIELD(struct lw_pulsar_feature_flags, 5, BOOL,
          supports_get_partitioned_metadata_without_auto_creation),
    FIELD(struct lw_pulsar_feature_flags, 6, BOOL, supports_repl_dedup_by_lid_and_eid),
    FIELD(struct lw_pulsar_feature_flags, 7, BOOL, supports_topic_watcher_reconcile),
    FIELD(struct lw_pulsar_feature_flags, 8, BOOL, supports_scalable_topics),
    FIELD(struct lw_pulsar_feature_flags, 9, BOOL, supports_tc_metadata_discovery),
};
static const struct lw_pulsar_table feature_flags_table = TABLE(struct lw_pulsar_feature_flags,
                                                                feature_flags_fields, 0);

static const struct lw_pulsar_field auth_data_fields[] = {
    FIELD(struct lw_pulsar_auth_data, 1, BYTES, auth_method_name),
    FIELD(struct lw_pulsar_auth_data, 2, BYTES, auth_data),
};
static const struct lw_pulsar_table auth_data_table = TABLE(struct lw_pulsar_auth_data,
                                                            auth_data_fields, 0);

static const struct lw_pulsar_field schema_fields[] = {
    REQUIRED(struct lw_pulsar_schema, 1, BYTES, name),
    REQUIRED(struct lw_pulsar_schema, 3, BYTES, schema_data),
    REQUIRED(struct lw_pulsar_schema, 4, I32, type),
    FIELD(struct lw_pulsar_schema, 5, LIST, properties),
};
static const struct lw_pulsar_table schema_table = TABLE(struct lw_pulsar_schema, schema_fields,
                                                         BIT(1) | BIT(3) | BIT(4));

static const struct lw_pulsar_field key_shared_meta_fields[] = {
    REQUIRED(struct lw_pulsar_key_shared_meta, 1, I32, mode),
    FIELD(struct lw_pulsar_key_shared_meta, 3, LIST, ranges),
    FIELD(struct lw_pulsar_key_shared_meta, 4, BOOL, allow_out_of_order_delivery),
};
static const struct lw_pulsar_table key_shared_meta_table = TABLE(
    struct lw_pulsar_key_shared_meta, key_shared_meta_fields, BIT(1));

static const struct lw_pulsar_field connect_fields[] = {
    REQUIRED(struct lw_pulsar_connect, 1, BYTES, client_version),
    FIELD(struct lw_pulsar_connect, 3, BYTES, auth_data),
    FIELD(struct lw_pulsar_connect, 4, I32, protocol_version),
    FIELD(struct lw_pulsar_connect, 5, BYTES, auth_method_name),
    FIELD(struct lw_pulsar_connect, 6, BYTES, proxy_to_broker_url),
    FIELD(struct lw_pulsar_connect, 7, BYTES, original_principal),
    FIELD(struct lw_pulsar_connect, 8, BYTES, original_auth_data),
    FIELD(struct lw_pulsar_connect, 9, BYTES, original_auth_method),
    PART(struct lw_pulsar_connect, 10, feature_flags, feature_flags_table),
    FIELD(struct lw_pulsar_connect, 11, BYTES, proxy_version),
};
static const struct lw_pulsar_table connect_table = TABLE(struct lw_pulsar_connect,
                                                          connect_fields, BIT(1));

static const struct lw_pulsar_field connected_fields[] = {
    REQUIRED(struct lw_pulsar_connected, 1, BYTES, server_version),
    FIELD(struct lw_pulsar_connected, 2, I32, protocol_version),
    FIELD(struct lw_pulsar_connected, 3, I32, max_message_size),
    PART(struct lw_pulsar_connected, 4, feature_flags, feature_flags_table),
};
static const struct lw_pulsar_table connected_table = TABLE(struct lw_pulsar_connected,
                                                            connected_fields, BIT(1));

static const struct lw_pulsar_field subscribe_fields[] = {
    REQUIRED(struct lw_pulsar_subscribe, 1, BYTES, topic),
    REQUIRED(struct lw_pulsar_subscribe, 2, BYTES, subscription),
    REQUIRED(struct lw_pulsar_subscribe, 3, I32, sub_type),
    REQUIRED(struct lw_pulsar_subscribe, 4, U64, consumer_id),
    REQUIRED(struct lw_pulsar_subscribe, 5, U64, request_id),
    FIELD(struct lw_pulsar_subscribe, 6, BYTES, consumer_name),
    FIELD(struct lw_pulsar_subscribe, 7, I32, priority_level),
    DEFAULT(struct lw_pulsar_subscribe, 8, BOOL, durable, 1),
    PART(struct lw_pulsar_subscribe, 9, start_message_id, lw_pulsar_message_id_table),
    FIELD(struct lw_pulsar_subscribe, 10, LIST, metadata),
    FIELD(struct lw_pulsar_subscribe, 11, BOOL, read_compacted),
    PART(struct lw_pulsar_subscribe, 12, schema, schema_table),
    FIELD(struct lw_pulsar_subscribe, 13, I32, initial_position),
    FIELD(struct lw_pulsar_subscribe, 14, BOOL, replicate_subscription_state),
    DEFAULT(struct lw_pulsar_subscribe, 15, BOOL, force_topic_creation, 1),
    FIELD(struct lw_pulsar_subscribe, 16, U64, start_message_rollback_duration_sec),
    PART(struct lw_pulsar_subscribe, 17, key_shared_meta, key_shared_meta_table),
    FIELD(struct lw_pulsar_subscribe, 18, LIST, subscription_properties),
    FIELD(struct lw_pulsar_subscribe, 19, U64, consumer_epoch),
};
static const struct lw_pulsar_table subscribe_table = TABLE(
    struct lw_pulsar_subscribe, subscribe_fields, BIT(1) | BIT(2) | BIT(3) | BIT(4) | BIT(5));

static const struct lw_pulsar_field producer_fields[] = {
    REQUIRED(struct lw_pulsar_producer_command, 1, BYTES, topic),
    REQUIRED(struct lw_pulsar_producer_command, 2, U64, producer_id),
    REQUIRED(struct lw_pulsar_producer_command, 3, U64, request_id),
    FIELD(struct lw_pulsar_producer_command, 4, BYTES, producer_name),
    FIELD(struct lw_pulsar_producer_command, 5, BOOL, encrypted),
    FIELD(struct lw_pulsar_producer_command, 6, LIST, metadata),
    PART(struct lw_pulsar_producer_command, 7, schema, schema_table),
    FIELD(struct lw_pulsar_producer_command, 8, U64, epoch),
    DEFAULT(struct lw_pulsar_producer_command, 9, BOOL, user_provided_producer_name, 1),
    FIELD(struct lw_pulsar_producer_command, 10, I32, producer_access_mode),
    FIELD(struct lw_pulsar_producer_command, 11, U64, topic_epoch),
    FIELD(struct lw_pulsar_producer_command, 12, BOOL, txn_enabled),
    FIELD(struct lw_pulsar_producer_command, 13, BYTES, initial_subscription_name),
};
static const struct lw_pulsar_table producer_table = TABLE(
    struct lw_pulsar_producer_command, producer_fields, BIT(1) | BIT(2) | BIT(3));

static const struct lw_pulsar_field send_fields[] = {
    REQUIRED(struct lw_pulsar_send, 1, U64, producer_id),
    REQUIRED(struct lw_pulsar_send, 2, U64, sequence_id),
    DEFAULT(struct lw_pulsar_send, 3, I32, num_messages, 1),
    FIELD(struct lw_pulsar_send, 4, U64, txnid_least_bits),
    FIELD(struct lw_pulsar_send, 5, U64, txnid_most_bits),
    FIELD(struct lw_pulsar_send, 6, U64, highest_sequence_id),
    FIELD(struct lw_pulsar_send, 7, BOOL, is_chunk),
    FIELD(struct lw_pulsar_send, 8, BOOL, marker),
    FIELD(struct lw_pulsar_send, 9, BYTES, message_id),
};
static const struct lw_pulsar_table send_table = TABLE(struct lw_pulsar_send, send_fields,
                                                       BIT(1) | BIT(2));

static const struct lw_pulsar_field send_receipt_fields[] = {
    REQUIRED(struct lw_pulsar_send_receipt, 1, U64, producer_id),
    REQUIRED(struct lw_pulsar_send_receipt, 2, U64, sequence_id),
    PART(struct lw_pulsar_send_receipt, 3, message_id, lw_pulsar_message_id_table),
    FIELD(struct lw_pulsar_send_receipt, 4, U64, highest_sequence_id),
};
static const struct lw_pulsar_table send_receipt_table = TABLE(
    struct lw_pulsar_send_receipt, send_receipt_fields, BIT(1) | BIT(2));

static const struct lw_pulsar_field send_error_fields[] = {
    REQUIRED(struct lw_pulsar_send_error, 1, U64, producer_id),
    REQUIRED(struct lw_pulsar_send_error, 2, U64, sequence_id),
    REQUIRED(struct lw_pulsar_send_error, 3, I32, error),
    REQUIRED(struct lw_pulsar_send_error, 4, BYTES, message),
};
static const struct lw_pulsar_table send_error_table = TABLE(
    struct lw_pulsar_send_error, send_error_fields, BIT(1) | BIT(2) | BIT(3) | BIT(4));

static const struct lw_pulsar_field message_fields[] = {
    REQUIRED(struct lw_pulsar_message, 1, U64, consumer_id),
    PART_REQUIRED(struct lw_pulsar_message, 2, message_id, lw_pulsar_message_id_table),
    FIELD(struct lw_pulsar_message, 3, U32, redelivery_count),
    FIELD(struct lw_pulsar_message, 4, NUMBERS, ack_set),
    FIELD(struct lw_pulsar_message, 5, U64, consumer_epoch),
};
static const struct lw_pulsar_table message_table = TABLE(struct lw_pulsar_message,
                                                          message_fields, BIT(1) | BIT(2));

static const struct lw_pulsar_field ack_fields[] = {
    REQUIRED(struct lw_pulsar_ack, 1, U64, consumer_id),
    REQUIRED(struct lw_pulsar_ack, 2, I32, ack_type),
    FIELD(struct lw_pulsar_ack, 3, LIST, message_ids),
    FIELD(struct lw_pulsar_ack, 4, I32, validation_error),
    FIELD(struct lw_pulsar_ack, 5, LIST, properties),
    FIELD(struct lw_pulsar_ack, 6, U64, txnid_least_bits),
    FIELD(struct lw_pulsar_ack, 7, U64, txnid_most_bits),
    FIELD(struct lw_pulsar_ack, 8, U64, request_id),
};
static const struct lw_pulsar_table ack_table = TABLE(struct lw_pulsar_ack, ack_fields,
                                                      BIT(1) | BIT(2));

static const struct lw_pulsar_field flow_fields[] = {
    REQUIRED(struct lw_pulsar_flow, 1, U64, consumer_id),
    REQUIRED(struct lw_pulsar_flow, 2, U32, message_permits),
};
static const struct lw_pulsar_table flow_table = TABLE(struct lw_pulsar_flow, flow_fields,
                                                       BIT(1) | BIT(2));

static const struct lw_pulsar_field unsubscribe_fields[] = {
    REQUIRED(struct lw_pulsar_unsubscribe, 1, U64, consumer_id),
    REQUIRED(struct lw_pulsar_unsubscribe, 2, U64, request_id),
    FIELD(struct lw_pulsar_unsubscribe, 3, BOOL, force),
};
static const struct lw_pulsar_table unsubscribe_table = TABLE(
    struct lw_pulsar_unsubscribe, unsubscribe_fields, BIT(1) | BIT(2));

static const struct lw_pulsar_field success_fields[] = {
    REQUIRED(struct lw_pulsar_success, 1, U64, request_id),
    PART(struct lw_pulsar_success, 2, schema, schema_table),
};
static const struct lw_pulsar_table success_table = TABLE(struct lw_pulsar_success,
                                                          success_fields, BIT(1));

static const struct lw_pulsar_field error_fields[] = {
    REQUIRED(struct lw_pulsar_error, 1, U64, request_id),
    REQUIRED(struct lw_pulsar_error, 2, I32, error),
    REQUIRED(struct lw_pulsar_error, 3, BYTES, message),
};
static const struct lw_pulsar_table error_table = TABLE(struct lw_pulsar_error, error_fields,
                                                        BIT(1) | BIT(2) | BIT(3));

static const struct lw_pulsar_field close_fields[] = {
    REQUIRED(struct lw_pulsar_close, 1, U64, id),
    REQUIRED(struct lw_pulsar_close, 2, U64, request_id),
    FIELD(struct lw_pulsar_close, 3, BYTES, assigned_broker_service_url),
    FIELD(struct lw_pulsar_close, 4, BYTES, assigned_broker_service_url_tls),
};
static const struct lw_pulsar_table close_table = TABLE(struct lw_pulsar_close, close_fields,
                                                        BIT(1) | BIT(2));

static const struct lw_pulsar_field producer_success_fields[] = {
    REQUIRED(struct lw_pulsar_producer_success, 1, U64, request_id),
    REQUIRED(struct lw_pulsar_producer_success, 2, BYTES, producer_name),
    DEFAULT(struct lw_pulsar_producer_success, 3, U64, last_sequence_id, -1),
    FIELD(struct lw_pulsar_producer_success, 4, BYTES, schema_version),
    FIELD(struct lw_pulsar_producer_success, 5, U64, topic_epoch),
    DEFAULT(struct lw_pulsar_producer_success, 6, BOOL, producer_ready, 1),
};
static const struct lw_pulsar_table producer_success_table = TABLE(
    struct lw_pulsar_producer_success, producer_success_fields, BIT(1) | BIT(2));

static const struct lw_pulsar_table empty_table = { .size = sizeof(struct lw_pulsar_empty) };

static const struct lw_pulsar_field redeliver_fields[] = {
    REQUIRED(struct lw_pulsar_redeliver, 1, U64, consumer_id),
    FIELD(struct lw_pulsar_redeliver, 2, LIST, message_ids),
    FIELD(struct lw_pulsar_redeliver, 3, U64, consumer_epoch),
};
static const struct lw_pulsar_table redeliver_table = TABLE(struct lw_pulsar_redeliver,
                                                            redeliver_fields, BIT(1));

static const struct lw_pulsar_field partitioned_metadata_fields[] = {
    REQUIRED(struct lw_pulsar_partitioned_metadata, 1, BYTES, topic),
    REQUIRED(struct lw_pulsar_partitioned_metadata, 2, U64, request_id),
    FIELD(struct lw_pulsar_partitioned_metadata, 3, BYTES, original_principal),
    FIELD(struct lw_pulsar_partitioned_metadata, 4, BYTES, original_auth_data),
    FIELD(struct lw_pulsar_partitioned_metadata, 5, BYTES, original_auth_method),
    DEFAULT(struct lw_pulsar_partitioned_metadata, 6, BOOL, metadata_auto_creation_enabled, 1),
};
static const struct lw_pulsar_table partitioned_metadata_table = TABLE(
    struct lw_pulsar_partitioned_metadata, partitioned_metadata_fields, BIT(1) | BIT(2));

static const struct lw_pulsar_field partitioned_metadata_response_fields[] = {
    FIELD(struct lw_pulsar_partitioned_metadata_response, 1, U32, partitions),
    REQUIRED(struct lw_pulsar_partitioned_metadata_response, 2, U64, request_id),
    DEFAULT(struct lw_pulsar_partitioned_metadata_response, 3, I32, response, 1),
    FIELD(struct lw_pulsar_partitioned_metadata_response, 4, I32, error),
    FIELD(struct lw_pulsar_partitioned_metadata_response, 5, BYTES, message),
};
static const struct lw_pulsar_table partitioned_metadata_response_table = TABLE(
    struct lw_pulsar_partitioned_metadata_response, partitioned_metadata_response_fields,
    BIT(2));

static const struct lw_pulsar_field lookup_fields[] = {
    REQUIRED(struct lw_pulsar_lookup, 1, BYTES, topic),
    REQUIRED(struct lw_pulsar_lookup, 2, U64, request_id),
    FIELD(struct lw_pulsar_lookup, 3, BOOL, authoritative),
    FIELD(struct lw_pulsar_lookup, 4, BYTES, original_principal),
    FIELD(struct lw_pulsar_lookup, 5, BYTES, original_auth_data),
    FIELD(struct lw_pulsar_lookup, 6, BYTES, original_auth_method),
    FIELD(struct lw_pulsar_lookup, 7, BYTES, advertised_listener_name),
    FIELD(struct lw_pulsar_lookup, 8, LIST, properties),
};
static const struct lw_pulsar_table lookup_table = TABLE(struct lw_pulsar_lookup, lookup_fields,
                                                         BIT(1) | BIT(2));

static const struct lw_pulsar_field lookup_response_fields[] = {
    FIELD(struct lw_pulsar_lookup_response, 1, BYTES, broker_service_url),
    FIELD(struct lw_pulsar_lookup_response, 2, BYTES, broker_service_url_tls),
    DEFAULT(struct lw_pulsar_lookup_response, 3, I32, response, 2),
    REQUIRED(struct lw_pulsar_lookup_response, 4, U64, request_id),
    FIELD(struct lw_pulsar_lookup_response, 5, BOOL, authoritative),
    FIELD(struct lw_pulsar_lookup_response, 6, I32, error),
    FIELD(struct lw_pulsar_lookup_response, 7, BYTES, message),
    FIELD(struct lw_pulsar_lookup_response, 8, BOOL, proxy_through_service_url),
};
static const struct lw_pulsar_table lookup_response_table = TABLE(
    struct lw_pulsar_lookup_response, lookup_response_fields, BIT(4));

static const struct lw_pulsar_field consumer_stats_fields[] = {
    REQUIRED(struct lw_pulsar_consumer_stats, 1, U64, request_id),
    REQUIRED(struct lw_pulsar_consumer_stats, 4, U64, consumer_id),
};
static const struct lw_pulsar_table consumer_stats_table = TABLE(
    struct lw_pulsar_consumer_stats, consumer_stats_fields, BIT(1) | BIT(4));

static const struct lw_pulsar_field consumer_stats_response_fields[] = {
    REQUIRED(struct lw_pulsar_consumer_stats_response, 1, U64, request_id),
    FIELD(struct lw_pulsar_consumer_stats_response, 2, I32, error_code),
    FIELD(struct lw_pulsar_consumer_stats_response, 3, BYTES, error_message),
    FIELD(struct lw_pulsar_consumer_stats_response, 4, DOUBLE, msg_rate_out),
    FIELD(struct lw_pulsar_consumer_stats_response, 5, DOUBLE, msg_throughput_out),
    FIELD(struct lw_pulsar_consumer_stats_response, 6, DOUBLE, msg_rate_redeliver),
    FIELD(struct lw_pulsar_consumer_stats_response, 7, BYTES, consumer_name),
    FIELD(struct lw_pulsar_consumer_stats_response, 8, U64, available_permits),
    FIELD(struct lw_pulsar_consumer_stats_response, 9, U64, unacked_messages),
    FIELD(struct lw_pulsar_consumer_stats_response, 10, BOOL, blocked_consumer_on_unacked_msgs),
    FIELD(struct lw_pulsar_consumer_stats_response, 11, BYTES, address),
    FIELD(struct lw_pulsar_consumer_stats_response, 12, BYTES, connected_since),
    FIELD(struct lw_pulsar_consumer_stats_response, 13, BYTES, type),
    FIELD(struct lw_pulsar_consumer_stats_response, 14, DOUBLE, msg_rate_expired),
    FIELD(struct lw_pulsar_consumer_stats_response, 15, U64, msg_backlog),
    FIELD(struct lw_pulsar_consumer_stats_response, 16, DOUBLE, message_ack_rate),
};
static const struct lw_pulsar_table consumer_stats_response_table = TABLE(
    struct lw_pulsar_consumer_stats_response, consumer_stats_response_fields, BIT(1));

static const struct lw_pulsar_field end_of_topic_fields[] = {
    REQUIRED(struct lw_pulsar_end_of_topic, 1, U64, consumer_id),
};
static const struct lw_pulsar_table end_of_topic_table = TABLE(struct lw_pulsar_end_of_topic,
                                                               end_of_topic_fields, BIT(1));

static const struct lw_pulsar_field seek_fields[] = {
    REQUIRED(struct lw_pulsar_seek, 1, U64, consumer_id),
    REQUIRED(struct lw_pulsar_seek, 2, U64, request_id),
    PART(struct lw_pulsar_seek, 3, message_id, lw_pulsar_message_id_table),
    FIELD(struct lw_pulsar_seek, 4, U64, message_publish_time),
};
static const struct lw_pulsar_table seek_table = TABLE(struct lw_pulsar_seek, seek_fields,
                                                       BIT(1) | BIT(2));

static const struct lw_pulsar_field get_last_message_id_fields[] = {
    REQUIRED(struct lw_pulsar_get_last_message_id, 1, U64, consumer_id),
    REQUIRED(struct lw_pulsar_get_last_message_id, 2, U64, request_id),
};
static const struct lw_pulsar_table get_last_message_id_table = TABLE(
    struct lw_pulsar_get_last_message_id, get_last_message_id_fields, BIT(1) | BIT(2));

static const struct lw_pulsar_field get_last_message_id_response_fields[] = {
    PART_REQUIRED(struct lw_pulsar_get_last_message_id_response, 1, last_message_id,
                  lw_pulsar_message_id_table),
    REQUIRED(struct lw_pulsar_get_last_message_id_response, 2, U64, request_id),
    PART(struct lw_pulsar_get_last_message_id_response, 3, consumer_mark_delete_position,
         lw_pulsar_message_id_table),
};
static const struct lw_pulsar_table get_last_message_id_response_table = TABLE(
    struct lw_pulsar_get_last_message_id_response, get_last_message_id_response_fields,
    BIT(1) | BIT(2));

static const struct lw_pulsar_field active_consumer_change_fields[] = {
    REQUIRED(struct lw_pulsar_active_consumer_change, 1, U64, consumer_id),
    FIELD(struct lw_pulsar_active_consumer_change, 2, BOOL, is_active),
};
static const struct lw_pulsar_table active_consumer_change_table = TABLE(
    struct lw_pulsar_active_consumer_change, active_consumer_change_fields, BIT(1));

static const struct lw_pulsar_field get_topics_fields[] = {
    REQUIRED(struct lw_pulsar_get_topics, 1, U64, request_id),
    REQUIRED(struct lw_pulsar_get_topics, 2, BYTES, namespace_name),
    FIELD(struct lw_pulsar_get_topics, 3, I32, mode),
    FIELD(struct lw_pulsar_get_topics, 4, BYTES, topics_pattern),
    FIELD(struct lw_pulsar_get_topics, 5, BYTES, topics_hash),
    FIELD(struct lw_pulsar_get_topics, 6, LIST, properties),
};
static const struct lw_pulsar_table get_topics_table = TABLE(
    struct lw_pulsar_get_topics, get_topics_fields, BIT(1) | BIT(2));

static const struct lw_pulsar_field get_topics_response_fields[] = {
    REQUIRED(struct lw_pulsar_get_topics_response, 1, U64, request_id),
    FIELD(struct lw_pulsar_get_topics_response, 2, LIST, topics),
    FIELD(struct lw_pulsar_get_topics_response, 3, BOOL, filtered),
    FIELD(struct lw_pulsar_get_topics_response, 4, BYTES, topics_hash),
    DEFAULT(struct lw_pulsar_get_topics_response, 5, BOOL, changed, 1),
};
static const struct lw_pulsar_table get_topics_response_table = TABLE(
    struct lw_pulsar_get_topics_response, get_topics_response_fields, BIT(1));

static const struct lw_pulsar_field get_schema_fields[] = {
    REQUIRED(struct lw_pulsar_get_schema, 1, U64, request_id),
    REQUIRED(struct lw_pulsar_get_schema, 2, BYTES, topic),
    FIELD(struct lw_pulsar_get_schema, 3, BYTES, schema_version),
};
static const struct lw_pulsar_table get_schema_table = TABLE(
    struct lw_pulsar_get_schema, get_schema_fields, BIT(1) | BIT(2));

static const struct lw_pulsar_field get_schema_response_fields[] = {
    REQUIRED(struct lw_pulsar_get_schema_response, 1, U64, request_id),
    FIELD(struct lw_pulsar_get_schema_response, 2, I32, error_code),
    FIELD(struct lw_pulsar_get_schema_response, 3, BYTES, error_message),
    PART(struct lw_pulsar_get_schema_response, 4, schema, schema_table),
    FIELD(struct lw_pulsar_get_schema_response, 5, BYTES, schema_version),
};
static const struct lw_pulsar_table get_schema_response_table = TABLE(
    struct lw_pulsar_get_schema_response, get_schema_response_fields, BIT(1));

static const struct lw_pulsar_field auth_challenge_fields[] = {
    FIELD(struct lw_pulsar_auth_challenge, 1, BYTES, server_version),
    PART(struct lw_pulsar_auth_challenge, 2, challenge, auth_data_table),
    FIELD(struct lw_pulsar_auth_challenge, 3, I32, protocol_version),
};
static const struct lw_pulsar_table auth_challenge_table = TABLE(
    struct lw_pulsar_auth_challenge, auth_challenge_fields, 0);

static const struct lw_pulsar_field auth_response_fields[] = {
    FIELD(struct lw_pulsar_auth_response, 1, BYTES, client_version),
    PART(struct lw_pulsar_auth_response, 2, response, auth_data_table),
    FIELD(struct lw_pulsar_auth_response, 3, I32, protocol_version),
};
static const struct lw_pulsar_table auth_response_table = TABLE(struct lw_pulsar_auth_response,
                                                                auth_response_fields, 0);

static const struct lw_pulsar_field ack_response_fields[] = {
    REQUIRED(struct lw_pulsar_ack_response, 1, U64, consumer_id),
    FIELD(struct lw_pulsar_ack_response, 2, U64, txnid_least_bits),
    FIELD(struct lw_pulsar_ack_response, 3, U64, txnid_most_bits),
    FIELD(struct lw_pulsar_ack_response, 4, I32, error),
    FIELD(struct lw_pulsar_ack_response, 5, BYTES, message),
    FIELD(struct lw_pulsar_ack_response, 6, U64, request_id),
};
static const struct lw_pulsar_table ack_response_table = TABLE(struct lw_pulsar_ack_response,
                                                               ack_response_fields, BIT(1));

static const struct lw_pulsar_field get_or_create_schema_fields[] = {
    REQUIRED(struct lw_pulsar_get_or_create_schema, 1, U64, request_id),
    REQUIRED(struct lw_pulsar_get_or_create_schema, 2, BYTES, topic),
    PART_REQUIRED(struct lw_pulsar_get_or_create_schema, 3, schema, schema_table),
    FIELD(struct lw_pulsar_get_or_create_schema, 4, BYTES, producer_name),
};
static const struct lw_pulsar_table get_or_create_schema_table = TABLE(
    struct lw_pulsar_get_or_create_schema, get_or_create_schema_fields,
    BIT(1) | BIT(2) | BIT(3));

static const struct lw_pulsar_field get_or_create_schema_response_fields[] = {
    REQUIRED(struct lw_pulsar_get_or_create_schema_response, 1, U64, request_id),
    FIELD(struct lw_pulsar_get_or_create_schema_response, 2, I32, error_code),
    FIELD(struct lw_pulsar_get_or_create_schema_response, 3, BYTES, error_message),
    FIELD(struct lw_pulsar_get_or_create_schema_response, 4, BYTES, schema_version),
};
static const struct lw_pulsar_table get_or_create_schema_response_table = TABLE(
    struct lw_pulsar_get_or_create_schema_response, get_or_create_schema_response_fields,
    BIT(1));

static const struct lw_pulsar_field new_txn_fields[] = {
    REQUIRED(struct lw_pulsar_new_txn, 1, U64, request_id),
    FIELD(struct lw_pulsar_new_txn, 2, U64, txn_ttl_millis),
    FIELD(struct lw_pulsar_new_txn, 3, U64, tc_id),
};
static const struct lw_pulsar_table new_txn_table = TABLE(struct lw_pulsar_new_txn,
                                                          new_txn_fields, BIT(1));

static const struct lw_pulsar_field tc_client_connect_fields[] = {
    REQUIRED(struct lw_pulsar_tc_client_connect, 1, U64, request_id),
    REQUIRED(struct lw_pulsar_tc_client_connect, 2, U64, tc_id),
};
static const struct lw_pulsar_table tc_client_connect_table = TABLE(
    struct lw_pulsar_tc_client_connect, tc_client_connect_fields, BIT(1) | BIT(2));

static const struct lw_pulsar_field watch_topic_list_fields[] = {
    REQUIRED(struct lw_pulsar_watch_topic_list, 1, U64, request_id),
    REQUIRED(struct lw_pulsar_watch_topic_list, 2, U64, watcher_id),
    REQUIRED(struct lw_pulsar_watch_topic_list, 3, BYTES, namespace_name),
    REQUIRED(struct lw_pulsar_watch_topic_list, 4, BYTES, topics_pattern),
    FIELD(struct lw_pulsar_watch_topic_list, 5, BYTES, topics_hash),
};
static const struct lw_pulsar_table watch_topic_list_table = TABLE(
    struct lw_pulsar_watch_topic_list, watch_topic_list_fields,
    BIT(1) | BIT(2) | BIT(3) | BIT(4));

static const struct lw_pulsar_field watch_topic_list_success_fields[] = {
    REQUIRED(struct lw_pulsar_watch_topic_list_success, 1, U64, request_id),
    REQUIRED(struct lw_pulsar_watch_topic_list_success, 2, U64, watcher_id),
    FIELD(struct lw_pulsar_watch_topic_list_success, 3, LIST, topics),
    REQUIRED(struct lw_pulsar_watch_topic_list_success, 4, BYTES, topics_hash),
};
static const struct lw_pulsar_table watch_topic_list_success_table = TABLE(
    struct lw_pulsar_watch_topic_list_success, watch_topic_list_success_fields,
    BIT(1) | BIT(2) | BIT(4));

static const struct lw_pulsar_field watch_topic_update_fields[] = {
    REQUIRED(struct lw_pulsar_watch_topic_update, 1, U64, watcher_id),
    FIELD(struct lw_pulsar_watch_topic_update, 2, LIST, new_topics),
    FIELD(struct lw_pulsar_watch_topic_update, 3, LIST, deleted_topics),
    REQUIRED(struct lw_pulsar_watch_topic_update, 4, BYTES, topics_hash),
};
static const struct lw_pulsar_table watch_topic_update_table = TABLE(
    struct lw_pulsar_watch_topic_update, watch_topic_update_fields, BIT(1) | BIT(4));

static const struct lw_pulsar_field watch_topic_list_close_fields[] = {
    REQUIRED(struct lw_pulsar_watch_topic_list_close, 1, U64, request_id),
    REQUIRED(struct lw_pulsar_watch_topic_list_close, 2, U64, watcher_id),
};
static const struct lw_pulsar_table watch_topic_list_close_table = TABLE(
    struct lw_pulsar_watch_topic_list_close, watch_topic_list_close_fields, BIT(1) | BIT(2));

static const struct lw_pulsar_field topic_migrated_fields[] = {
    REQUIRED(struct lw_pulsar_topic_migrated, 1, U64, resource_id),
    REQUIRED(struct lw_pulsar_topic_migrated, 2, I32, resource_type),
    FIELD(struct lw_pulsar_topic_migrated, 3, BYTES, broker_service_url),
    FIELD(struct lw_pulsar_topic_migrated, 4, BYTES, broker_service_url_tls),
};
static const struct lw_pulsar_table topic_migrated_table = TABLE(
    struct lw_pulsar_topic_migrated, topic_migrated_fields, BIT(1) | BIT(2));

struct named_table {
    const char *name;
    const struct lw_pulsar_table *table;
};

static const struct named_table commands[LW_PULSAR_COMMAND_TYPE_MAX + 1] = {
    [LW_PULSAR_CONNECT] = { "CONNECT", &connect_table },
    [LW_PULSAR_CONNECTED] = { "CONNECTED", &connected_table },
    [LW_PULSAR_SUBSCRIBE] = { "SUBSCRIBE", &subscribe_table },
    [LW_PULSAR_PRODUCER] = { "PRODUCER", &producer_table },
    [LW_PULSAR_SEND] = { "SEND", &send_table },
    [LW_PULSAR_SEND_RECEIPT] = { "SEND_RECEIPT", &send_receipt_table },
    [LW_PULSAR_SEND_ERROR] = { "SEND_ERROR", &send_error_table },
    [LW_PULSAR_MESSAGE] = { "MESSAGE", &message_table },
    [LW_PULSAR_ACK] = { "ACK", &ack_table },
    [LW_PULSAR_FLOW] = { "FLOW", &flow_table },
    [LW_PULSAR_UNSUBSCRIBE] = { "UNSUBSCRIBE", &unsubscribe_table },
    [LW_PULSAR_SUCCESS] = { "SUCCESS", &success_table },
    [LW_PULSAR_ERROR] = { "ERROR", &error_table },
    [LW_PULSAR_CLOSE_PRODUCER] = { "CLOSE_PRODUCER", &close_table },
    [LW_PULSAR_CLOSE_CONSUMER] = { "CLOSE_CONSUMER", &close_table },
    [LW_PULSAR_PRODUCER_SUCCESS] = { "PRODUCER_SUCCESS", &producer_success_table },
    [LW_PULSAR_PING] = { "PING", &empty_table },
    [LW_PULSAR_PONG] = { "PONG", &empty_table },
    [LW_PULSAR_REDELIVER_UNACKNOWLEDGED] = { "REDELIVER_UNACKNOWLEDGED_MESSAGES",
                                             &redeliver_table },
    [LW_PULSAR_PARTITIONED_METADATA] = { "PARTITIONED_METADATA", &partitioned_metadata_table },
    [LW_PULSAR_PARTITIONED_METADATA_RESPONSE] = { "PARTITIONED_METADATA_RESPONSE",
                                                  &partitioned_metadata_response_table },
    [LW_PULSAR_LOOKUP] = { "LOOKUP", &lookup_table },
    [LW_PULSAR_LOOKUP_RESPONSE] = { "LOOKUP_RESPONSE", &lookup_response_table },
    [LW_PULSAR_CONSUMER_STATS] = { "CONSUMER_STATS", &consumer_stats_table },
    [LW_PULSAR_CONSUMER_STATS_RESPONSE] = { "CONSUMER_STATS_RESPONSE",
                                            &consumer_stats_response_table },
    [LW_PULSAR_REACHED_END_OF_TOPIC] = { "REACHED_END_OF_TOPIC", &end_of_topic_table },
    [LW_PULSAR_SEEK] = { "SEEK", &seek_table },
    [LW_PULSAR_GET_LAST_MESSAGE_ID] = { "GET_LAST_MESSAGE_ID", &get_last_message_id_table },
    [LW_PULSAR_GET_LAST_MESSAGE_ID_RESPONSE] = { "GET_LAST_MESSAGE_ID_RESPONSE",
                                                 &get_last_message_id_response_table },
    [LW_PULSAR_ACTIVE_CONSUMER_CHANGE] = { "ACTIVE_CONSUMER_CHANGE",
                                           &active_consumer_change_table },
    [LW_PULSAR_GET_TOPICS_OF_NAMESPACE] = { "GET_TOPICS_OF_NAMESPACE", &get_topics_table },
    [LW_PULSAR_GET_TOPICS_OF_NAMESPACE_RESPONSE] = { "GET_TOPICS_OF_NAMESPACE_RESPONSE",
                                                     &get_topics_response_table },
    [LW_PULSAR_GET_SCHEMA] = { "GET_SCHEMA", &get_schema_table },
    [LW_PULSAR_GET_SCHEMA_RESPONSE] = { "GET_SCHEMA_RESPONSE", &get_schema_response_table },
    [LW_PULSAR_AUTH_CHALLENGE] = { "AUTH_CHALLENGE", &auth_challenge_table },
    [LW_PULSAR_AUTH_RESPONSE] = { "AUTH_RESPONSE", &auth_response_table },
    [LW_PULSAR_ACK_RESPONSE] = { "ACK_RESPONSE", &ack_response_table },
    [LW_PULSAR_GET_OR_CREATE_SCHEMA] = { "GET_OR_CREATE_SCHEMA", &get_or_create_schema_table },
    [LW_PULSAR_GET_OR_CREATE_SCHEMA_RESPONSE] = { "GET_OR_CREATE_SCHEMA_RESPONSE",
                                                  &get_or_create_schema_response_table },
    [LW_PULSAR_NEW_TXN] = { "NEW_TXN", &new_txn_table },
    [LW_PULSAR_TC_CLIENT_CONNECT_REQUEST] = { "TC_CLIENT_CONNECT_REQUEST",
                                              &tc_client_connect_table },
    [LW_PULSAR_WATCH_TOPIC_LIST] = { "WATCH_TOPIC_LIST", &watch_topic_list_table },
    [LW_PULSAR_WATCH_TOPIC_LIST_SUCCESS] = { "WATCH_TOPIC_LIST_SUCCESS",
                                             &watch_topic_list_success_table },
    [LW_PULSAR_WATCH_TOPIC_UPDATE] = { "WATCH_TOPIC_UPDATE", &watch_topic_update_table },
    [LW_PULSAR_WATCH_TOPIC_LIST_CLOSE] = { "WATCH_TOPIC_LIST_CLOSE",
                                           &watch_topic_list_close_table },
    [LW_PULSAR_TOPIC_MIGRATED] = { "TOPIC_MIGRATED", &topic_migrated_table },
};

const struct lw_pulsar_table *
lw_pulsar_command_table(int32_t type)
{
    return type >= 0 && type <= LW_PULSAR_COMMAND_TYPE_MAX ? commands[type].table : NULL;
}

const char *
lw_pulsar_command_name(int32_t type)
{
    return lw_pulsar_command_table(type) == NULL ? "UNKNOWN" : commands[type].name;
}
