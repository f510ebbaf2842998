/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pulsar's commands, one struct each, for both directions: what a client encodes a test broker
 * decodes, and the reverse. Texts and bytes are views into the frame (null: the field did not
 * come), repeated fields are lists over its bytes, absent fields hold the protocol's default.
 * `has` keeps which fields came: bit n for field number n; bits with a name matter to somebody.
 * Encoding writes a field when it is required, when its bit is set, when it is not the default,
 * or when its bytes are not null; start from lw_pulsar_command_of, which sets the defaults.
 * Enumerations are int32_t, since a peer may send values that we do not know. Field tables live
 * in command_tables.c; the names are those of the protocol.
 */
#ifndef LW_BROKERS_PULSAR_WIRE_COMMAND_H
#define LW_BROKERS_PULSAR_WIRE_COMMAND_H

#include "brokers/pulsar/wire/fault.h"
#include "brokers/pulsar/wire/frame.h"
#include "brokers/pulsar/wire/list.h"
#include "brokers/pulsar/wire/message_id.h"

enum lw_pulsar_command_type {
    LW_PULSAR_CONNECT = 2,
    LW_PULSAR_CONNECTED = 3,
    LW_PULSAR_SUBSCRIBE = 4,
    LW_PULSAR_PRODUCER = 5,
    LW_PULSAR_SEND = 6,
    LW_PULSAR_SEND_RECEIPT = 7,
    LW_PULSAR_SEND_ERROR = 8,
    LW_PULSAR_MESSAGE = 9,
    LW_PULSAR_ACK = 10,
    LW_PULSAR_FLOW = 11,
    LW_PULSAR_UNSUBSCRIBE = 12,
    LW_PULSAR_SUCCESS = 13,
    LW_PULSAR_ERROR = 14,
    LW_PULSAR_CLOSE_PRODUCER = 15,
    LW_PULSAR_CLOSE_CONSUMER = 16,
    LW_PULSAR_PRODUCER_SUCCESS = 17,
    LW_PULSAR_PING = 18,
    LW_PULSAR_PONG = 19,
    LW_PULSAR_REDELIVER_UNACKNOWLEDGED = 20,
    LW_PULSAR_PARTITIONED_METADATA = 21,
    LW_PULSAR_PARTITIONED_METADATA_RESPONSE = 22,
    LW_PULSAR_LOOKUP = 23,
    LW_PULSAR_LOOKUP_RESPONSE = 24,
    LW_PULSAR_CONSUMER_STATS = 25,
    LW_PULSAR_CONSUMER_STATS_RESPONSE = 26,
    LW_PULSAR_REACHED_END_OF_TOPIC = 27,
    LW_PULSAR_SEEK = 28,
    LW_PULSAR_GET_LAST_MESSAGE_ID = 29,
    LW_PULSAR_GET_LAST_MESSAGE_ID_RESPONSE = 30,
    LW_PULSAR_ACTIVE_CONSUMER_CHANGE = 31,
    LW_PULSAR_GET_TOPICS_OF_NAMESPACE = 32,
    LW_PULSAR_GET_TOPICS_OF_NAMESPACE_RESPONSE = 33,
    LW_PULSAR_GET_SCHEMA = 34,
    LW_PULSAR_GET_SCHEMA_RESPONSE = 35,
    LW_PULSAR_AUTH_CHALLENGE = 36,
    LW_PULSAR_AUTH_RESPONSE = 37,
    LW_PULSAR_ACK_RESPONSE = 38,
    LW_PULSAR_GET_OR_CREATE_SCHEMA = 39,
    LW_PULSAR_GET_OR_CREATE_SCHEMA_RESPONSE = 40,
    LW_PULSAR_NEW_TXN = 50,
    LW_PULSAR_TC_CLIENT_CONNECT_REQUEST = 62,
    LW_PULSAR_WATCH_TOPIC_LIST = 64,
    LW_PULSAR_WATCH_TOPIC_LIST_SUCCESS = 65,
    LW_PULSAR_WATCH_TOPIC_UPDATE = 66,
    LW_PULSAR_WATCH_TOPIC_LIST_CLOSE = 67,
    LW_PULSAR_TOPIC_MIGRATED = 68,
};
enum { LW_PULSAR_COMMAND_TYPE_MAX = LW_PULSAR_TOPIC_MIGRATED };

/* What brokers write where no request is meant. */
#define LW_PULSAR_NO_REQUEST UINT64_MAX

enum { LW_PULSAR_PROTOCOL_VERSION = 21 };
enum {
    LW_PULSAR_SUB_EXCLUSIVE,
    LW_PULSAR_SUB_SHARED,
    LW_PULSAR_SUB_FAILOVER,
    LW_PULSAR_SUB_KEY_SHARED
};
enum { LW_PULSAR_INITIAL_LATEST, LW_PULSAR_INITIAL_EARLIEST };
enum {
    LW_PULSAR_ACCESS_SHARED,
    LW_PULSAR_ACCESS_EXCLUSIVE,
    LW_PULSAR_ACCESS_WAIT_FOR_EXCLUSIVE,
    LW_PULSAR_ACCESS_EXCLUSIVE_WITH_FENCING
};
enum { LW_PULSAR_KEY_SHARED_AUTO_SPLIT, LW_PULSAR_KEY_SHARED_STICKY };
enum { LW_PULSAR_PARTITIONED_SUCCESS, LW_PULSAR_PARTITIONED_FAILED };
enum { LW_PULSAR_LOOKUP_REDIRECT, LW_PULSAR_LOOKUP_CONNECT, LW_PULSAR_LOOKUP_FAILED };
enum { LW_PULSAR_ACK_INDIVIDUAL, LW_PULSAR_ACK_CUMULATIVE };
enum {
    LW_PULSAR_INVALID_UNCOMPRESSED_SIZE,
    LW_PULSAR_INVALID_DECOMPRESSION,
    LW_PULSAR_INVALID_CHECKSUM,
    LW_PULSAR_INVALID_BATCH,
    LW_PULSAR_INVALID_DECRYPTION
};
enum { LW_PULSAR_RESOURCE_PRODUCER, LW_PULSAR_RESOURCE_CONSUMER };
enum { LW_PULSAR_TOPICS_PERSISTENT, LW_PULSAR_TOPICS_NON_PERSISTENT, LW_PULSAR_TOPICS_ALL };

/* -- Parts of commands ------------------------------------------------------------------------ */

struct lw_pulsar_feature_flags {
    uint64_t has;
    bool supports_auth_refresh;
    bool supports_broker_entry_metadata;
    bool supports_partial_producer;
    bool supports_topic_watchers;
    bool supports_get_partitioned_metadata_without_auto_creation;
    bool supports_repl_dedup_by_lid_and_eid;
    bool supports_topic_watcher_reconcile;
    bool supports_scalable_topics;
    bool supports_tc_metadata_discovery;
};

struct lw_pulsar_auth_data {
    uint64_t has;
    struct lw_bytes auth_method_name;
    struct lw_bytes auth_data;
};

struct lw_pulsar_schema {
    uint64_t has;
    struct lw_bytes name;
    struct lw_bytes schema_data;
    int32_t type;
    struct lw_pulsar_list properties; /* pairs */
};

struct lw_pulsar_key_shared_meta {
    uint64_t has;
    int32_t mode;                 /* LW_PULSAR_KEY_SHARED_ */
    struct lw_pulsar_list ranges; /* lw_pulsar_walk_range */
    bool allow_out_of_order_delivery;
};

/* -- Handshake and liveness ------------------------------------------------------------------- */

enum { LW_PULSAR_CONNECT_HAS_FEATURE_FLAGS = 1 << 10 };
struct lw_pulsar_connect {
    uint64_t has;
    struct lw_bytes client_version;
    struct lw_bytes auth_method_name;
    struct lw_bytes auth_data;
    int32_t protocol_version;
    struct lw_bytes proxy_to_broker_url;
    struct lw_bytes original_principal;
    struct lw_bytes original_auth_data;
    struct lw_bytes original_auth_method;
    struct lw_pulsar_feature_flags feature_flags;
    struct lw_bytes proxy_version;
};

enum {
    LW_PULSAR_CONNECTED_HAS_MAX_MESSAGE_SIZE = 1 << 3,
    LW_PULSAR_CONNECTED_HAS_FEATURE_FLAGS = 1 << 4,
};
struct lw_pulsar_connected {
    uint64_t has;
    struct lw_bytes server_version;
    int32_t protocol_version;
    int32_t max_message_size; /* 5 MiB when it did not come */
    struct lw_pulsar_feature_flags feature_flags;
};

enum { LW_PULSAR_AUTH_HAS_DATA = 1 << 2 };
struct lw_pulsar_auth_challenge {
    uint64_t has;
    struct lw_bytes server_version;
    struct lw_pulsar_auth_data challenge;
    int32_t protocol_version;
};

struct lw_pulsar_auth_response {
    uint64_t has;
    struct lw_bytes client_version;
    struct lw_pulsar_auth_data response; /* both of its fields not null, even if empty */
    int32_t protocol_version;
};

struct lw_pulsar_empty {
    uint64_t has;
};

/* -- Lookup and discovery --------------------------------------------------------------------- */

struct lw_pulsar_partitioned_metadata {
    uint64_t has;
    struct lw_bytes topic;
    uint64_t request_id;
    struct lw_bytes original_principal;
    struct lw_bytes original_auth_data;
    struct lw_bytes original_auth_method;
    bool metadata_auto_creation_enabled; /* default true */
};

struct lw_pulsar_partitioned_metadata_response {
    uint64_t has;
    uint32_t partitions;
    uint64_t request_id;
    int32_t response; /* LW_PULSAR_PARTITIONED_; absent counts as failed */
    int32_t error;
    struct lw_bytes message;
};

struct lw_pulsar_lookup {
    uint64_t has;
    struct lw_bytes topic;
    uint64_t request_id;
    bool authoritative;
    struct lw_bytes original_principal;
    struct lw_bytes original_auth_data;
    struct lw_bytes original_auth_method;
    struct lw_bytes advertised_listener_name;
    struct lw_pulsar_list properties; /* pairs */
};

struct lw_pulsar_lookup_response {
    uint64_t has;
    struct lw_bytes broker_service_url;
    struct lw_bytes broker_service_url_tls;
    int32_t response; /* LW_PULSAR_LOOKUP_; absent counts as failed */
    uint64_t request_id;
    bool authoritative;
    int32_t error;
    struct lw_bytes message;
    bool proxy_through_service_url;
};

struct lw_pulsar_get_topics {
    uint64_t has;
    uint64_t request_id;
    struct lw_bytes namespace_name;
    int32_t mode; /* LW_PULSAR_TOPICS_ */
    struct lw_bytes topics_pattern;
    struct lw_bytes topics_hash;
    struct lw_pulsar_list properties; /* pairs */
};

struct lw_pulsar_get_topics_response {
    uint64_t has;
    uint64_t request_id;
    struct lw_pulsar_list topics; /* texts */
    bool filtered;
    struct lw_bytes topics_hash;
    bool changed; /* default true */
};

struct lw_pulsar_watch_topic_list {
    uint64_t has;
    uint64_t request_id;
    uint64_t watcher_id;
    struct lw_bytes namespace_name;
    struct lw_bytes topics_pattern;
    struct lw_bytes topics_hash;
};

struct lw_pulsar_watch_topic_list_success {
    uint64_t has;
    uint64_t request_id;
    uint64_t watcher_id;
    struct lw_pulsar_list topics; /* texts */
    struct lw_bytes topics_hash;
};

struct lw_pulsar_watch_topic_update {
    uint64_t has;
    uint64_t watcher_id;
    struct lw_pulsar_list new_topics;     /* texts */
    struct lw_pulsar_list deleted_topics; /* texts */
    struct lw_bytes topics_hash;
};

struct lw_pulsar_watch_topic_list_close {
    uint64_t has;
    uint64_t request_id;
    uint64_t watcher_id;
};

/* -- Producer side ---------------------------------------------------------------------------- */

enum {
    LW_PULSAR_PRODUCER_HAS_SCHEMA = 1 << 7,
    LW_PULSAR_PRODUCER_HAS_TOPIC_EPOCH = 1 << 11,
};
struct lw_pulsar_producer_command {
    uint64_t has;
    struct lw_bytes topic;
    uint64_t producer_id;
    uint64_t request_id;
    struct lw_bytes producer_name;
    bool encrypted;
    struct lw_pulsar_list metadata; /* pairs */
    struct lw_pulsar_schema schema;
    uint64_t epoch;
    bool user_provided_producer_name; /* default true */
    int32_t producer_access_mode;     /* LW_PULSAR_ACCESS_ */
    uint64_t topic_epoch;
    bool txn_enabled;
    struct lw_bytes initial_subscription_name;
};

enum { LW_PULSAR_PRODUCER_SUCCESS_HAS_TOPIC_EPOCH = 1 << 5 };
struct lw_pulsar_producer_success {
    uint64_t has;
    uint64_t request_id;
    struct lw_bytes producer_name;
    int64_t last_sequence_id; /* default -1 */
    struct lw_bytes schema_version;
    uint64_t topic_epoch;
    bool producer_ready; /* default true */
};

enum {
    LW_PULSAR_SEND_HAS_NUM_MESSAGES = 1 << 3,
    LW_PULSAR_SEND_HAS_HIGHEST_SEQUENCE_ID = 1 << 6,
};
struct lw_pulsar_send {
    uint64_t has;
    uint64_t producer_id;
    uint64_t sequence_id;
    int32_t num_messages; /* default 1 */
    uint64_t txnid_least_bits;
    uint64_t txnid_most_bits;
    uint64_t highest_sequence_id;
    bool is_chunk;
    bool marker;
    struct lw_bytes message_id; /* replication only; an encoded MessageIdData */
};

enum {
    LW_PULSAR_RECEIPT_HAS_MESSAGE_ID = 1 << 3,
    LW_PULSAR_RECEIPT_HAS_HIGHEST_SEQUENCE_ID = 1 << 4,
};
struct lw_pulsar_send_receipt {
    uint64_t has;
    uint64_t producer_id;
    uint64_t sequence_id;
    struct lw_pulsar_message_id message_id; /* both parts 2^64-1: not stored now */
    uint64_t highest_sequence_id;           /* garbage unless the SEND carried one */
};

struct lw_pulsar_send_error {
    uint64_t has;
    uint64_t producer_id;
    uint64_t sequence_id;
    int32_t error;
    struct lw_bytes message;
};

/* CLOSE_PRODUCER and CLOSE_CONSUMER. */
struct lw_pulsar_close {
    uint64_t has;
    uint64_t id;         /* of the producer or the consumer */
    uint64_t request_id; /* LW_PULSAR_NO_REQUEST from a broker */
    struct lw_bytes assigned_broker_service_url;
    struct lw_bytes assigned_broker_service_url_tls;
};

/* -- Consumer side ---------------------------------------------------------------------------- */

enum {
    LW_PULSAR_SUBSCRIBE_HAS_PRIORITY_LEVEL = 1 << 7,
    LW_PULSAR_SUBSCRIBE_HAS_START_MESSAGE_ID = 1 << 9,
    LW_PULSAR_SUBSCRIBE_HAS_SCHEMA = 1 << 12,
    LW_PULSAR_SUBSCRIBE_HAS_KEY_SHARED_META = 1 << 17,
    LW_PULSAR_SUBSCRIBE_HAS_CONSUMER_EPOCH = 1 << 19,
};
struct lw_pulsar_subscribe {
    uint64_t has;
    struct lw_bytes topic;
    struct lw_bytes subscription;
    int32_t sub_type; /* LW_PULSAR_SUB_ */
    uint64_t consumer_id;
    uint64_t request_id;
    struct lw_bytes consumer_name;
    int32_t priority_level;
    bool durable; /* default true */
    struct lw_pulsar_message_id start_message_id;
    struct lw_pulsar_list metadata; /* pairs */
    bool read_compacted;
    struct lw_pulsar_schema schema;
    int32_t initial_position; /* LW_PULSAR_INITIAL_ */
    bool replicate_subscription_state;
    bool force_topic_creation; /* default true */
    uint64_t start_message_rollback_duration_sec;
    struct lw_pulsar_key_shared_meta key_shared_meta;
    struct lw_pulsar_list subscription_properties; /* pairs */
    uint64_t consumer_epoch;
};

enum { LW_PULSAR_SUCCESS_HAS_SCHEMA = 1 << 2 };
struct lw_pulsar_success {
    uint64_t has;
    uint64_t request_id;
    struct lw_pulsar_schema schema;
};

struct lw_pulsar_error {
    uint64_t has;
    uint64_t request_id; /* LW_PULSAR_NO_REQUEST: the whole connection */
    int32_t error;
    struct lw_bytes message;
};

struct lw_pulsar_flow {
    uint64_t has;
    uint64_t consumer_id;
    uint32_t message_permits;
};

enum { LW_PULSAR_MESSAGE_HAS_CONSUMER_EPOCH = 1 << 5 };
struct lw_pulsar_message {
    uint64_t has;
    uint64_t consumer_id;
    struct lw_pulsar_message_id message_id;
    uint32_t redelivery_count;
    struct lw_pulsar_list ack_set; /* words; empty: all members are still unacknowledged */
    uint64_t consumer_epoch;
};

enum {
    LW_PULSAR_ACK_HAS_VALIDATION_ERROR = 1 << 4,
    LW_PULSAR_ACK_HAS_REQUEST_ID = 1 << 8,
};
struct lw_pulsar_ack {
    uint64_t has;
    uint64_t consumer_id;
    int32_t ack_type;                  /* LW_PULSAR_ACK_ */
    struct lw_pulsar_list message_ids; /* lw_pulsar_walk_id */
    int32_t validation_error;          /* LW_PULSAR_INVALID_ */
    struct lw_pulsar_list properties;
    uint64_t txnid_least_bits;
    uint64_t txnid_most_bits;
    uint64_t request_id; /* only when an ACK_RESPONSE is wanted */
};

enum {
    LW_PULSAR_ACK_RESPONSE_HAS_ERROR = 1 << 4,
    LW_PULSAR_ACK_RESPONSE_HAS_REQUEST_ID = 1 << 6,
};
struct lw_pulsar_ack_response {
    uint64_t has;
    uint64_t consumer_id;
    uint64_t txnid_least_bits;
    uint64_t txnid_most_bits;
    int32_t error;
    struct lw_bytes message;
    uint64_t request_id;
};

enum { LW_PULSAR_REDELIVER_HAS_CONSUMER_EPOCH = 1 << 3 };
struct lw_pulsar_redeliver {
    uint64_t has;
    uint64_t consumer_id;
    struct lw_pulsar_list message_ids; /* empty: everything unacknowledged */
    uint64_t consumer_epoch;
};

struct lw_pulsar_unsubscribe {
    uint64_t has;
    uint64_t consumer_id;
    uint64_t request_id;
    bool force;
};

enum {
    LW_PULSAR_SEEK_HAS_MESSAGE_ID = 1 << 3,
    LW_PULSAR_SEEK_HAS_PUBLISH_TIME = 1 << 4,
};
struct lw_pulsar_seek {
    uint64_t has;
    uint64_t consumer_id;
    uint64_t request_id;
    struct lw_pulsar_message_id message_id;
    uint64_t message_publish_time;
};

struct lw_pulsar_end_of_topic {
    uint64_t has;
    uint64_t consumer_id;
};

struct lw_pulsar_topic_migrated {
    uint64_t has;
    uint64_t resource_id;
    int32_t resource_type; /* LW_PULSAR_RESOURCE_ */
    struct lw_bytes broker_service_url;
    struct lw_bytes broker_service_url_tls;
};

/* GET_LAST_MESSAGE_ID. */
struct lw_pulsar_get_last_message_id {
    uint64_t has;
    uint64_t consumer_id;
    uint64_t request_id;
};

enum { LW_PULSAR_LAST_ID_HAS_MARK_DELETE = 1 << 3 };
struct lw_pulsar_get_last_message_id_response {
    uint64_t has;
    struct lw_pulsar_message_id last_message_id;
    uint64_t request_id;
    struct lw_pulsar_message_id consumer_mark_delete_position;
};

struct lw_pulsar_active_consumer_change {
    uint64_t has;
    uint64_t consumer_id;
    bool is_active;
};

struct lw_pulsar_consumer_stats {
    uint64_t has;
    uint64_t request_id;
    uint64_t consumer_id;
};

enum { LW_PULSAR_CONSUMER_STATS_HAS_MSG_BACKLOG = 1 << 15 };
struct lw_pulsar_consumer_stats_response {
    uint64_t has;
    uint64_t request_id;
    int32_t error_code;
    struct lw_bytes error_message;
    double msg_rate_out;
    double msg_throughput_out;
    double msg_rate_redeliver;
    struct lw_bytes consumer_name;
    uint64_t available_permits; /* a negative number when over-drawn */
    uint64_t unacked_messages;
    bool blocked_consumer_on_unacked_msgs;
    struct lw_bytes address;
    struct lw_bytes connected_since;
    struct lw_bytes type;
    double msg_rate_expired;
    uint64_t msg_backlog;
    double message_ack_rate;
};

/* -- Schemas, and the two transaction commands that old clients may send ---------------------- */

struct lw_pulsar_get_schema {
    uint64_t has;
    uint64_t request_id;
    struct lw_bytes topic;
    struct lw_bytes schema_version; /* null for the latest */
};

enum {
    LW_PULSAR_GET_SCHEMA_RESPONSE_HAS_ERROR = 1 << 2,
    LW_PULSAR_GET_SCHEMA_RESPONSE_HAS_SCHEMA = 1 << 4,
};
struct lw_pulsar_get_schema_response {
    uint64_t has;
    uint64_t request_id;
    int32_t error_code;
    struct lw_bytes error_message;
    struct lw_pulsar_schema schema;
    struct lw_bytes schema_version;
};

struct lw_pulsar_get_or_create_schema {
    uint64_t has;
    uint64_t request_id;
    struct lw_bytes topic;
    struct lw_pulsar_schema schema;
    struct lw_bytes producer_name;
};

enum { LW_PULSAR_GET_OR_CREATE_SCHEMA_RESPONSE_HAS_ERROR = 1 << 2 };
struct lw_pulsar_get_or_create_schema_response {
    uint64_t has;
    uint64_t request_id;
    int32_t error_code;
    struct lw_bytes error_message;
    struct lw_bytes schema_version;
};

struct lw_pulsar_new_txn {
    uint64_t has;
    uint64_t request_id;
    uint64_t txn_ttl_millis;
    uint64_t tc_id;
};

struct lw_pulsar_tc_client_connect {
    uint64_t has;
    uint64_t request_id;
    uint64_t tc_id;
};

/* -- The command ------------------------------------------------------------------------------ */

struct lw_pulsar_command {
    int32_t type; /* enum lw_pulsar_command_type; other values: unknown, the union is unset */
    bool is_known;
    union {
        struct lw_pulsar_connect connect;
        struct lw_pulsar_connected connected;
        struct lw_pulsar_subscribe subscribe;
        struct lw_pulsar_producer_command producer;
        struct lw_pulsar_send send;
        struct lw_pulsar_send_receipt send_receipt;
        struct lw_pulsar_send_error send_error;
        struct lw_pulsar_message message;
        struct lw_pulsar_ack ack;
        struct lw_pulsar_flow flow;
        struct lw_pulsar_unsubscribe unsubscribe;
        struct lw_pulsar_success success;
        struct lw_pulsar_error error;
        struct lw_pulsar_close close_producer;
        struct lw_pulsar_close close_consumer;
        struct lw_pulsar_producer_success producer_success;
        struct lw_pulsar_empty ping;
        struct lw_pulsar_empty pong;
        struct lw_pulsar_redeliver redeliver;
        struct lw_pulsar_partitioned_metadata partitioned_metadata;
        struct lw_pulsar_partitioned_metadata_response partitioned_metadata_response;
        struct lw_pulsar_lookup lookup;
        struct lw_pulsar_lookup_response lookup_response;
        struct lw_pulsar_consumer_stats consumer_stats;
        struct lw_pulsar_consumer_stats_response consumer_stats_response;
        struct lw_pulsar_end_of_topic reached_end_of_topic;
        struct lw_pulsar_seek seek;
        struct lw_pulsar_get_last_message_id get_last_message_id;
        struct lw_pulsar_get_last_message_id_response get_last_message_id_response;
        struct lw_pulsar_active_consumer_change active_consumer_change;
        struct lw_pulsar_get_topics get_topics;
        struct lw_pulsar_get_topics_response get_topics_response;
        struct lw_pulsar_get_schema get_schema;
        struct lw_pulsar_get_schema_response get_schema_response;
        struct lw_pulsar_auth_challenge auth_challenge;
        struct lw_pulsar_auth_response auth_response;
        struct lw_pulsar_ack_response ack_response;
        struct lw_pulsar_get_or_create_schema get_or_create_schema;
        struct lw_pulsar_get_or_create_schema_response get_or_create_schema_response;
        struct lw_pulsar_new_txn new_txn;
        struct lw_pulsar_tc_client_connect tc_client_connect;
        struct lw_pulsar_watch_topic_list watch_topic_list;
        struct lw_pulsar_watch_topic_list_success watch_topic_list_success;
        struct lw_pulsar_watch_topic_update watch_topic_update;
        struct lw_pulsar_watch_topic_list_close watch_topic_list_close;
        struct lw_pulsar_topic_migrated topic_migrated;
    };
};

/* "SEND_RECEIPT"; "UNKNOWN" for a type that we do not know. Never NULL. */
const char *lw_pulsar_command_name(int32_t type);
/* Whether a payload part follows the command. */
bool lw_pulsar_command_has_payload(int32_t type);
/* A command of a known type with every default in place. */
struct lw_pulsar_command lw_pulsar_command_of(enum lw_pulsar_command_type type);

/*
 * Decodes the `command` part of a frame. OK with is_known false: a type that we do not know,
 * which a client ignores (once in its log) and a broker answers by closing.
 */
enum lw_pulsar_fault
lw_pulsar_command_decode(struct lw_bytes bytes, struct lw_pulsar_command *ret_command);
/*
 * The same for nothing but MESSAGE as brokers mostly write it; false: something else, or written
 * differently, or malformed, and nothing in *ret_message counts.
 */
bool
lw_pulsar_message_decode_usual(struct lw_bytes bytes, struct lw_pulsar_message *ret_message);
/* Writes the command without the frame's sizes; the type must be a known one. */
void lw_pulsar_command_encode(const struct lw_pulsar_command *command,
                              struct lw_proto_writer *writer);
/* Bytes of the whole frame of a simple command. */
size_t lw_pulsar_command_frame_size(const struct lw_pulsar_command *command);
/*
 * Writes the whole frame of a simple command: sizes and command. On overflow (see proto.h) the
 * writer's size says what would have been needed.
 */
void lw_pulsar_command_write(const struct lw_pulsar_command *command,
                             struct lw_proto_writer *writer);

#endif
