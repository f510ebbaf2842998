/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of the official clients, by their names: one table (option_rows.c) says of each its
 * type, default, range and field, or why it is not served. They are given as properties: those of
 * the broker may hold all three kinds (consumer options are then the defaults of its
 * subscriptions), those of a subscription only consumer options. A prefix client., consumer. or
 * producer. may be written and decides where a name exists twice. Policies are flattened:
 * dead_letter_policy.max_redeliver_count; metadata is properties.NAME.
 * Texts in the structs are borrowed from the properties given. Pure.
 */
#ifndef LW_BROKERS_PULSAR_OPTIONS_H
#define LW_BROKERS_PULSAR_OPTIONS_H

#include "base/option.h"
#include "brokers/pulsar/pattern.h"

enum {
    LW_PULSAR_METADATA_MAX = 32,
    LW_PULSAR_METADATA_BYTES_MAX = 3072, /* names and values; it goes with each SUBSCRIBE */
    LW_PULSAR_STICKY_RANGES_MAX = 64
};

enum lw_pulsar_scope {
    LW_PULSAR_SCOPE_CLIENT,
    LW_PULSAR_SCOPE_CONSUMER,
    LW_PULSAR_SCOPE_PRODUCER
};

/* properties.NAME: metadata of a consumer or producer, shown by the broker's statistics. */
struct lw_pulsar_metadata_options {
    struct lw_property items[LW_PULSAR_METADATA_MAX];
    size_t count;
};

struct lw_pulsar_client_options {
    int64_t operation_timeout_seconds;
    int64_t connection_timeout_ms;
    int64_t concurrent_lookup_requests;
    int64_t max_lookup_redirects;
    int64_t max_number_of_rejected_request_per_connection;
    int64_t keep_alive_interval_in_seconds;
    int64_t initial_backoff_interval_ms;
    int64_t max_backoff_interval_ms;
    int64_t memory_limit_bytes;
    int64_t partitions_update_interval_seconds;
    bool use_tls;
    bool tls_allow_insecure_connection;
    bool tls_validate_hostname;
    const char *tls_trust_certs_file_path; /* NULL: the system's */
    const char *tls_certificate_file_path;
    const char *tls_private_key_file_path;
    const char *auth_plugin;
    const char *auth_params;
    const char *token;
    const char *listener_name;
    const char *proxy_service_url; /* NULL: none; proxy_protocol is SNI */
    const char *admin_url;         /* NULL: made from the service URL */
    const char *description;
};

/* Subscription types, positions, modes: values as on the wire. */
struct lw_pulsar_consumer_options {
    int32_t consumer_type;
    int32_t initial_position;
    int32_t regex_subscription_mode; /* enum lw_pulsar_regex_mode */
    int32_t key_shared_mode;
    bool allow_out_of_order_delivery;
    const char *sticky_ranges; /* "0-100,200-300" */
    const char *consumer_name; /* NULL: the broker chooses */
    int64_t receiver_queue_size;
    int64_t max_total_receiver_queue_size_across_partitions;
    int64_t unacked_messages_timeout_ms; /* 0: none */
    int64_t negative_ack_redelivery_delay_ms;
    int64_t negative_ack_max_delay_ms; /* 0: no backoff */
    double negative_ack_multiplier;
    int64_t ack_grouping_time_ms;
    int64_t ack_grouping_max_size;
    bool ack_receipt_enabled;
    bool batch_index_ack_enabled;
    bool is_read_compacted;
    bool replicate_subscription_state_enabled;
    bool start_paused;
    int64_t priority_level;
    int64_t pattern_auto_discovery_period; /* seconds */
    int64_t max_pending_chunked_message;
    bool auto_ack_oldest_chunked_message_on_queue_full;
    int64_t expire_time_of_incomplete_chunked_message_ms;
    int64_t max_redeliver_count; /* 0: no policy */
    const char *dead_letter_topic;
    const char *initial_subscription_name; /* of the dead-letter topic */
    struct lw_pulsar_metadata_options properties;
};

struct lw_pulsar_producer_options {
    const char *producer_name;   /* NULL: the broker chooses */
    int64_t initial_sequence_id; /* -1: none */
    int64_t send_timeout_millis; /* 0: none */
    int32_t compression_type;    /* as on the wire */
    int32_t message_routing_mode;
    int32_t hashing_scheme;
    int32_t batching_type;
    int32_t access_mode; /* as on the wire */
    int64_t max_pending_messages;
    int64_t max_pending_messages_across_partitions;
    bool batching_enabled;
    bool chunking_enabled;
    int64_t batching_max_messages;
    int64_t batching_max_allowed_size_in_bytes;
    int64_t batching_max_publish_delay_ms;
    struct lw_pulsar_metadata_options properties;
};

enum { LW_PULSAR_ROUTE_ROUND_ROBIN, LW_PULSAR_ROUTE_SINGLE };
enum { LW_PULSAR_HASH_JAVA_STRING, LW_PULSAR_HASH_MURMUR3, LW_PULSAR_HASH_BOOST };
enum { LW_PULSAR_BATCHING_DEFAULT, LW_PULSAR_BATCHING_KEY_BASED };

struct lw_pulsar_options {
    struct lw_pulsar_client_options client;
    struct lw_pulsar_consumer_options consumer; /* defaults of the broker's subscriptions */
    struct lw_pulsar_producer_options producer;
};

/* Fills in all defaults. */
void lw_pulsar_options_init(struct lw_pulsar_options *options);
/*
 * Reads a broker's properties over what is there and checks those of client and producer. E0414
 * unknown name (with a suggestion), E0415 not served (and why), E0416 a wrong value, E0419 options
 * that contradict each other. Nothing is changed on an error. chunking_enabled switches batching
 * off unless that is asked for, which is a contradiction.
 */
enum lw_status lw_pulsar_options_read_broker(struct lw_pulsar_options *options,
                                             const struct lw_property *properties, size_t count,
                                             struct lw_error *ret_error);
/* The same for a subscription; `options` begins as a copy of the broker's defaults. */
enum lw_status lw_pulsar_options_read_consumer(struct lw_pulsar_consumer_options *options,
                                               const struct lw_property *properties,
                                               size_t count, struct lw_error *ret_error);

/* What read_broker checks at its end. */
enum lw_status lw_pulsar_options_check_broker(const struct lw_pulsar_options *options,
                                              struct lw_error *ret_error);
/* To be called when the subscription's type is final: E0416, E0419. */
enum lw_status
lw_pulsar_options_check_consumer(const struct lw_pulsar_consumer_options *options,
                                 struct lw_error *ret_error);

struct lw_pulsar_sticky_range {
    uint32_t start; /* 0..65535, both ends inclusive */
    uint32_t end;
};
/* Parses "0-100,200-300"; false when it is no list of separate ranges; `out` holds LW_PULSAR_STICKY_RANGES_MAX. */
bool lw_pulsar_sticky_ranges_parse(const char *text, struct lw_pulsar_sticky_range out[],
                                   size_t *ret_count);

/* -- The table ------------------------------------------------------------------------------------ */

/* What becomes of an option that a client has. */
enum lw_pulsar_fate_of_option {
    LW_PULSAR_OPTION_SERVED,
    LW_PULSAR_OPTION_EMPTY,  /* accepted and checked; nothing to set here, row->doc says why */
    LW_PULSAR_OPTION_REFUSED /* row->doc says why; its default alone is accepted */
};

/* The rows of a scope; they end with a row of zeros. */
const struct lw_option *lw_pulsar_option_rows(enum lw_pulsar_scope scope);
enum lw_pulsar_fate_of_option lw_pulsar_option_fate(const struct lw_option *row);
/*
 * Finds a name as a broker's properties may hold it, prefix included; NULL when there is none.
 * "properties.x" gives the row "properties.*". *ret_scope: where it was found.
 */
const struct lw_option *
lw_pulsar_option_find(const char *name, enum lw_pulsar_scope *ret_scope);
/* NULL when the property may be given with that value, else the reason; until the next call. */
const char *lw_pulsar_property_check(const char *name, const char *value);
/* Why a property is not served; NULL when it may be given. */
const char *lw_pulsar_property_owned(const char *name, const char *value);
/* Writes the name that was probably meant; false when nothing is near. */
bool lw_pulsar_property_suggest(const char *name, char *out, size_t size);
/* Appends the page docs/pulsar-options.md. */
void lw_pulsar_options_reference(struct lw_text *out);

#endif
