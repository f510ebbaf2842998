/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every option of the official clients' constructor, subscribe and create_producer, in one table.
 * A row of type LATER is refused, and its `initial` is the one value that is accepted, because it
 * asks for nothing. A row without a field (size 0) is accepted for the sake of programs that move
 * here, and its text says why it sets nothing.
 */
#include "brokers/pulsar/options.h"
#include "brokers/pulsar/wire/command.h"
#include "brokers/pulsar/wire/compress.h"

#define FIELD(type, member)                                                                    \
    .offset = offsetof(type, member), .size = sizeof(((type *)0)->member)
#define CLIENT(member) FIELD(struct lw_pulsar_client_options, member)
#define CONSUMER(member) FIELD(struct lw_pulsar_consumer_options, member)
#define PRODUCER(member) FIELD(struct lw_pulsar_producer_options, member)

#define BOOL(key, field, value, text)                                                          \
    {                                                                                          \
        .name = (key), .type = LW_OPTION_BOOL, field, .initial = (value), .doc = (text)        \
    }
#define NUMBER(key, field, value, low, high, text)                                             \
    {                                                                                          \
        .name = (key), .type = LW_OPTION_INT, field, .initial = (value), .min = (low),         \
        .max = (high), .doc = (text)                                                           \
    }
#define TEXT(key, field, text)                                                                 \
    {                                                                                          \
        .name = (key), .type = LW_OPTION_TEXT, field, .doc = (text)                            \
    }
#define SECRET(key, field, text)                                                               \
    {                                                                                          \
        .name = (key), .type = LW_OPTION_TEXT, field, .is_secret = true, .doc = (text)         \
    }
#define WORD(key, field, value, list, text)                                                    \
    {                                                                                          \
        .name = (key), .type = LW_OPTION_ENUM, field, .initial = (value), .words = (list),     \
        .doc = (text)                                                                          \
    }
#define EMPTY(key, kind, value, low, high, text)                                               \
    {                                                                                          \
        .name = (key), .type = (kind), .initial = (value), .min = (low), .max = (high),        \
        .is_unbound = true, .doc = (text)                                                      \
    }
#define REFUSED(key, value, text)                                                              \
    {                                                                                          \
        .name = (key), .type = LW_OPTION_LATER, .initial = (value), .doc = (text)              \
    }
#define METADATA(text)                                                                         \
    {                                                                                          \
        .name = "properties.*", .type = LW_OPTION_PROPERTIES, .is_unbound = true,              \
        .doc = (text)                                                                          \
    }
#define IS(text, number)                                                                       \
    {                                                                                          \
        .word = (text), .value = (number)                                                      \
    }
#define ALIAS(text, number)                                                                    \
    {                                                                                          \
        .word = (text), .value = (number), .is_alias = true                                    \
    }

/* -- Client --------------------------------------------------------------------------------------- */

#define DAY_S 86400
#define DAY_MS 86400000
#define MANY 1000000000

static const struct lw_option_word proxy_words[] = { IS("SNI", 0), { 0 } };

static const struct lw_option client_rows[] = {
    NUMBER("operation_timeout_seconds", CLIENT(operation_timeout_seconds), "30", 1, DAY_S,
           "How long a lookup, a subscribe, a create or a seek may take in all."),
    NUMBER("connection_timeout_ms", CLIENT(connection_timeout_ms), "10000", 1, DAY_MS,
           "Name resolution, TCP, TLS and login together."),
    NUMBER("concurrent_lookup_requests", CLIENT(concurrent_lookup_requests), "50000", 1, MANY,
           "Lookups under way at once."),
    NUMBER("max_lookup_redirects", CLIENT(max_lookup_redirects), "20", 1, 1000,
           "Redirections of one lookup."),
    NUMBER("max_number_of_rejected_request_per_connection",
           CLIENT(max_number_of_rejected_request_per_connection), "50", 1, MANY,
           "So many refused lookups within a minute close the connection."),
    NUMBER("keep_alive_interval_in_seconds", CLIENT(keep_alive_interval_in_seconds), "30", 1,
           DAY_S, "A broker silent for two intervals is given up."),
    NUMBER("initial_backoff_interval_ms", CLIENT(initial_backoff_interval_ms), "100", 1, DAY_MS,
           "First pause before connecting again; it doubles."),
    NUMBER("max_backoff_interval_ms", CLIENT(max_backoff_interval_ms), "60000", 1, DAY_MS,
           "Longest pause before connecting again."),
    NUMBER("memory_limit_bytes", CLIENT(memory_limit_bytes), "67108864", 1048576, 1e15,
           "Bytes of messages that wait for their receipts."),
    NUMBER("partitions_update_interval_seconds", CLIENT(partitions_update_interval_seconds),
           "60", 1, DAY_S, "How often grown partitions are looked for."),
    BOOL("use_tls", CLIENT(use_tls), "false", "TLS, as pulsar+ssl:// says it too."),
    TEXT("tls_trust_certs_file_path", CLIENT(tls_trust_certs_file_path),
         "PEM file of trusted authorities; without it the system's."),
    BOOL("tls_allow_insecure_connection", CLIENT(tls_allow_insecure_connection), "false",
         "No certificate is checked at all."),
    BOOL("tls_validate_hostname", CLIENT(tls_validate_hostname), "true",
         "The certificate must be for the broker's name. The official clients leave this off."),
    TEXT("tls_certificate_file_path", CLIENT(tls_certificate_file_path),
         "PEM file of our own certificate and its chain."),
    TEXT("tls_private_key_file_path", CLIENT(tls_private_key_file_path),
         "PEM file of its key, not encrypted."),
    TEXT("auth_plugin", CLIENT(auth_plugin),
         "none, token, basic, tls or oauth2, or the class of a client, such as "
         "org.apache.pulsar.client.impl.auth.AuthenticationToken."),
    SECRET("auth_params", CLIENT(auth_params),
           "What the plugin needs. token: token:JWT, file:///PATH, env:NAME. basic: "
           "{\"username\", \"password\", \"method\"}. tls: tlsCertFile:PATH,tlsKeyFile:PATH. "
           "oauth2: {\"issuer_url\", \"private_key\" or \"client_id\" and \"client_secret\", "
           "\"audience\", \"scope\"}."),
    SECRET("token", CLIENT(token),
           "Short for auth_plugin token: the token, file:///PATH or env:NAME; read again at "
           "every connection and challenge."),
    TEXT("listener_name", CLIENT(listener_name),
         "Which of the broker's advertised addresses lookups ask for."),
    TEXT("proxy_service_url", CLIENT(proxy_service_url),
         "pulsar+ssl://HOST:PORT of a proxy that routes by the name sent in TLS (SNI): all "
         "connections go there; needs TLS."),
    { .name = "proxy_protocol",
      .type = LW_OPTION_ENUM,
      .words = proxy_words,
      .initial = "SNI",
      .is_unbound = true,
      .doc = "SNI is the only one that exists." },
    TEXT(
        "admin_url", CLIENT(admin_url),
        "http address of the admin API; without it the first host with port 8080 (TLS: 8443)."),
    TEXT("description", CLIENT(description),
         "Appended to the client's version that the broker shows, up to 64 bytes."),
    EMPTY("io_threads", LW_OPTION_INT, "1", 1, 1024,
          "One loop serves all connections; handlers run in their engines."),
    EMPTY("message_listener_threads", LW_OPTION_INT, "1", 1, 1024,
          "Handlers run in their engines: see engine and threads."),
    EMPTY("stats_interval_in_seconds", LW_OPTION_INT, "600", 0, MANY,
          "laneway status has the figures at any time; nothing is written by a clock."),
    REFUSED("connections_per_broker", "1",
            "one connection carries all of a broker's consumers and producers"),
    REFUSED("authentication", NULL,
            "an object of a program cannot be written here; give token, or auth_plugin and "
            "auth_params"),
    REFUSED("service_url", NULL, "the address is the broker's url"),
    REFUSED("logger", NULL, "an object of a program cannot be written here; see service.log"),
    REFUSED("log_conf_file_path", NULL, "logging is configured by service.log"),
    REFUSED("enable_transaction", "false", "transactions are not offered: it is at least once"),
    { 0 }
};

/* -- Consumer ---------------------------------------------------------------------------------------- */

static const struct lw_option_word type_words[] = {
    IS("exclusive", LW_PULSAR_SUB_EXCLUSIVE),     IS("shared", LW_PULSAR_SUB_SHARED),
    IS("failover", LW_PULSAR_SUB_FAILOVER),       IS("key_shared", LW_PULSAR_SUB_KEY_SHARED),
    ALIAS("Exclusive", LW_PULSAR_SUB_EXCLUSIVE),  ALIAS("Shared", LW_PULSAR_SUB_SHARED),
    ALIAS("Failover", LW_PULSAR_SUB_FAILOVER),    ALIAS("Key_Shared", LW_PULSAR_SUB_KEY_SHARED),
    ALIAS("KeyShared", LW_PULSAR_SUB_KEY_SHARED), { 0 },
};

static const struct lw_option_word position_words[] = {
    IS("latest", LW_PULSAR_INITIAL_LATEST),
    IS("earliest", LW_PULSAR_INITIAL_EARLIEST),
    ALIAS("Latest", LW_PULSAR_INITIAL_LATEST),
    ALIAS("Earliest", LW_PULSAR_INITIAL_EARLIEST),
    { 0 },
};

static const struct lw_option_word regex_words[] = {
    IS("persistent_only", LW_PULSAR_REGEX_PERSISTENT),
    IS("non_persistent_only", LW_PULSAR_REGEX_NON_PERSISTENT),
    IS("all_topics", LW_PULSAR_REGEX_ALL),
    ALIAS("PersistentOnly", LW_PULSAR_REGEX_PERSISTENT),
    ALIAS("NonPersistentOnly", LW_PULSAR_REGEX_NON_PERSISTENT),
    ALIAS("AllTopics", LW_PULSAR_REGEX_ALL),
    { 0 },
};

static const struct lw_option_word key_shared_words[] = {
    IS("auto_split", LW_PULSAR_KEY_SHARED_AUTO_SPLIT),
    IS("sticky", LW_PULSAR_KEY_SHARED_STICKY),
    ALIAS("AutoSplit", LW_PULSAR_KEY_SHARED_AUTO_SPLIT),
    ALIAS("Sticky", LW_PULSAR_KEY_SHARED_STICKY),
    { 0 },
};

static const struct lw_option consumer_rows[] = {
    { .name = "consumer_type",
      .alias = "subscription_type",
      .type = LW_OPTION_ENUM,
      CONSUMER(consumer_type),
      .initial = "shared",
      .words = type_words,
      .doc = "Type of the subscription; consumer.type says it too. The official clients begin "
             "with exclusive." },
    { .name = "initial_position",
      .alias = "subscription_initial_position",
      .type = LW_OPTION_ENUM,
      CONSUMER(initial_position),
      .initial = "latest",
      .words = position_words,
      .doc = "Where a subscription that is new begins." },
    NUMBER("receiver_queue_size", CONSUMER(receiver_queue_size), "1000", 1, MANY,
           "Upper end of what may be asked for in advance."),
    NUMBER("max_total_receiver_queue_size_across_partitions",
           CONSUMER(max_total_receiver_queue_size_across_partitions), "50000", 1, MANY,
           "The same over all partitions of a topic."),
    TEXT("consumer_name", CONSUMER(consumer_name),
         "Shown by the broker; without it one is made."),
    NUMBER("unacked_messages_timeout_ms", CONSUMER(unacked_messages_timeout_ms), "0", 0, DAY_MS,
           "Unsettled for so long means redelivered; 0: never, else at least 10000."),
    NUMBER("negative_ack_redelivery_delay_ms", CONSUMER(negative_ack_redelivery_delay_ms),
           "60000", 0, DAY_MS, "How long a message given back waits."),
    NUMBER("negative_ack_redelivery_backoff.max_ms", CONSUMER(negative_ack_max_delay_ms), "0",
           0, DAY_MS, "The delay grows with the redeliveries up to this; 0: it does not grow."),
    { .name = "negative_ack_redelivery_backoff.multiplier",
      .type = LW_OPTION_DOUBLE,
      CONSUMER(negative_ack_multiplier),
      .initial = "2",
      .min = 1,
      .max = 100,
      .doc = "Growth of that delay." },
    NUMBER("ack_grouping_time_ms", CONSUMER(ack_grouping_time_ms), "100", 0, 60000,
           "Acknowledgements wait so long for others; 0: each is sent at once."),
    NUMBER("ack_grouping_max_size", CONSUMER(ack_grouping_max_size), "1000", 1, 100000,
           "Acknowledgements in one command."),
    BOOL("ack_receipt_enabled", CONSUMER(ack_receipt_enabled), "false",
         "The broker confirms acknowledgements."),
    BOOL("batch_index_ack_enabled", CONSUMER(batch_index_ack_enabled), "false",
         "Members of a batch are acknowledged one by one at the broker."),
    BOOL("is_read_compacted", CONSUMER(is_read_compacted), "false",
         "The compacted view of a topic; for exclusive and failover."),
    { .name = "replicate_subscription_state_enabled",
      .alias = "replicate_subscription_state",
      .type = LW_OPTION_BOOL,
      CONSUMER(replicate_subscription_state_enabled),
      .initial = "false",
      .doc = "The subscription's state is replicated to other clusters." },
    BOOL("start_paused", CONSUMER(start_paused), "false",
         "Nothing is received until `laneway resume`."),
    NUMBER("priority_level", CONSUMER(priority_level), "0", 0, 1000000,
           "Among consumers of a shared subscription the broker serves lower levels first. It "
           "is not Laneway's priority."),
    NUMBER("pattern_auto_discovery_period", CONSUMER(pattern_auto_discovery_period), "60", 1,
           DAY_S, "How often new topics of a pattern are looked for, in seconds."),
    WORD("regex_subscription_mode", CONSUMER(regex_subscription_mode), "persistent_only",
         regex_words, "Which topics a pattern sees."),
    NUMBER("max_pending_chunked_message", CONSUMER(max_pending_chunked_message), "10", 1, 10000,
           "Chunked messages that may be incomplete at once."),
    BOOL("auto_ack_oldest_chunked_message_on_queue_full",
         CONSUMER(auto_ack_oldest_chunked_message_on_queue_full), "false",
         "The oldest incomplete one is then acknowledged, else given back."),
    NUMBER("expire_time_of_incomplete_chunked_message_ms",
           CONSUMER(expire_time_of_incomplete_chunked_message_ms), "60000", 0, DAY_MS,
           "An incomplete chunked message is given up after so long; 0: never."),
    WORD("key_shared_policy.key_shared_mode", CONSUMER(key_shared_mode), "auto_split",
         key_shared_words, "How key_shared divides the keys."),
    BOOL("key_shared_policy.allow_out_of_order_delivery", CONSUMER(allow_out_of_order_delivery),
         "false", "A key may move to another consumer before all of it is settled."),
    TEXT("key_shared_policy.sticky_ranges", CONSUMER(sticky_ranges),
         "Hash ranges of mode sticky: 0-32767,40000-50000."),
    NUMBER(
        "dead_letter_policy.max_redeliver_count", CONSUMER(max_redeliver_count), "0", 0, MANY,
        "What fails after so many redeliveries goes to the dead-letter topic: N redeliveries "
        "are N + 1 runs; 0: no such policy."),
    TEXT("dead_letter_policy.dead_letter_topic", CONSUMER(dead_letter_topic),
         "The topic of that policy; without it TOPIC-SUBSCRIPTION-DLQ."),
    TEXT("dead_letter_policy.initial_subscription_name", CONSUMER(initial_subscription_name),
         "Made with the dead-letter topic of that policy, so that nothing in it is lost."),
    METADATA("Metadata of the consumer, shown by the broker's statistics."),
    EMPTY("broker_consumer_stats_cache_time_ms", LW_OPTION_INT, "30000", 0, MANY,
          "The broker's statistics are not asked for."),
    EMPTY("unacked_messages_tick_ms", LW_OPTION_INT, "1000", 1, MANY,
          "Time-outs fire when they are due, without a tick."),
    REFUSED("dead_letter_policy", NULL,
            "write its parts: dead_letter_policy.max_redeliver_count and so on"),
    REFUSED("key_shared_policy", NULL,
            "write its parts: key_shared_policy.key_shared_mode and so on"),
    REFUSED("properties", NULL, "write its parts: properties.NAME: VALUE"),
    REFUSED("batch_receive_policy", NULL,
            "messages are received one by one as slots become free"),
    REFUSED("crypto_key_reader", NULL, "encryption is not supported"),
    REFUSED(
        "crypto_failure_action", "FAIL",
        "encryption is not supported; such messages follow the policy for undecodable ones"),
    REFUSED("schema", NULL, "handlers get bytes; enforced schemas are carried through"),
    REFUSED("message_listener", NULL, "the handler is the pipeline's"),
    REFUSED("process_message", NULL, "the handler is the pipeline's"),
    REFUSED("start_message_id_inclusive", "false",
            "a subscription begins by initial_position and goes on where it was; nothing here "
            "seeks to a message"),
    REFUSED("topic", NULL, "topics are the pipeline's"),
    REFUSED("topics_pattern", NULL, "topics are the pipeline's"),
    REFUSED("is_pattern_topic", "false",
            "topics are the pipeline's; a name with characters such as * is a pattern"),
    REFUSED("subscription_name", NULL, "it is the pipeline's consumer.subscription"),
    REFUSED("subscription_mode", "durable",
            "a subscription that the broker forgets could not promise anything"),
    REFUSED("retry_enable", "false", "retries are the pipeline's: retry.topic"),
    REFUSED("priority", NULL, "it is the topic's priority in the pipeline"),
    REFUSED("concurrency", NULL, "it is service.concurrency or the pipeline's"),
    REFUSED("fatal_exception_class", NULL, "handlers answer with a verdict: dead"),
    REFUSED("retry_exception_class", NULL, "handlers answer with a verdict: retry"),
    REFUSED("retry_topic", NULL, "it is the pipeline's retry.topic"),
    REFUSED("retry_backoff_function", NULL, "it is the pipeline's retry.backoff"),
    REFUSED("max_retries", NULL, "it is the pipeline's retry.max_retries"),
    REFUSED("reply_topic", NULL, "it is the pipeline's reply.topic"),
    { 0 }
};

/* -- Producer ---------------------------------------------------------------------------------------- */

static const struct lw_option_word compression_words[] = {
    IS("none", LW_PULSAR_COMPRESSION_NONE),        IS("lz4", LW_PULSAR_COMPRESSION_LZ4),
    IS("zlib", LW_PULSAR_COMPRESSION_ZLIB),        IS("zstd", LW_PULSAR_COMPRESSION_ZSTD),
    IS("snappy", LW_PULSAR_COMPRESSION_SNAPPY),    ALIAS("NONE", LW_PULSAR_COMPRESSION_NONE),
    ALIAS("LZ4", LW_PULSAR_COMPRESSION_LZ4),       ALIAS("ZLib", LW_PULSAR_COMPRESSION_ZLIB),
    ALIAS("ZLIB", LW_PULSAR_COMPRESSION_ZLIB),     ALIAS("ZSTD", LW_PULSAR_COMPRESSION_ZSTD),
    ALIAS("SNAPPY", LW_PULSAR_COMPRESSION_SNAPPY), { 0 },
};

static const struct lw_option_word routing_words[] = {
    IS("round_robin", LW_PULSAR_ROUTE_ROUND_ROBIN),
    IS("single_partition", LW_PULSAR_ROUTE_SINGLE),
    ALIAS("RoundRobinDistribution", LW_PULSAR_ROUTE_ROUND_ROBIN),
    ALIAS("RoundRobinPartition", LW_PULSAR_ROUTE_ROUND_ROBIN),
    ALIAS("UseSinglePartition", LW_PULSAR_ROUTE_SINGLE),
    ALIAS("SinglePartition", LW_PULSAR_ROUTE_SINGLE),
    { 0 },
};

static const struct lw_option_word hashing_words[] = {
    IS("java_string_hash", LW_PULSAR_HASH_JAVA_STRING),
    IS("murmur3_32hash", LW_PULSAR_HASH_MURMUR3),
    { .word = "boost_hash", .value = LW_PULSAR_HASH_BOOST, .is_later = true },
    ALIAS("JavaStringHash", LW_PULSAR_HASH_JAVA_STRING),
    ALIAS("Murmur3_32Hash", LW_PULSAR_HASH_MURMUR3),
    { .word = "BoostHash", .value = LW_PULSAR_HASH_BOOST, .is_alias = true, .is_later = true },
    { 0 },
};

static const struct lw_option_word batching_words[] = {
    IS("default", LW_PULSAR_BATCHING_DEFAULT),
    IS("key_based", LW_PULSAR_BATCHING_KEY_BASED),
    ALIAS("Default", LW_PULSAR_BATCHING_DEFAULT),
    ALIAS("KeyBased", LW_PULSAR_BATCHING_KEY_BASED),
    { 0 },
};

static const struct lw_option_word access_words[] = {
    IS("shared", LW_PULSAR_ACCESS_SHARED),
    IS("exclusive", LW_PULSAR_ACCESS_EXCLUSIVE),
    IS("wait_for_exclusive", LW_PULSAR_ACCESS_WAIT_FOR_EXCLUSIVE),
    IS("exclusive_with_fencing", LW_PULSAR_ACCESS_EXCLUSIVE_WITH_FENCING),
    ALIAS("Shared", LW_PULSAR_ACCESS_SHARED),
    ALIAS("Exclusive", LW_PULSAR_ACCESS_EXCLUSIVE),
    ALIAS("WaitForExclusive", LW_PULSAR_ACCESS_WAIT_FOR_EXCLUSIVE),
    ALIAS("ExclusiveWithFencing", LW_PULSAR_ACCESS_EXCLUSIVE_WITH_FENCING),
    { 0 },
};

static const struct lw_option producer_rows[] = {
    TEXT("producer_name", PRODUCER(producer_name),
         "Prefix of the names of producers; without it the broker makes them."),
    NUMBER("initial_sequence_id", PRODUCER(initial_sequence_id), "-1", -1, 9e15,
           "The first message of a producer has the next one, or one above the broker's last "
           "if that is more; -1: as the broker says."),
    NUMBER("send_timeout_millis", PRODUCER(send_timeout_millis), "30000", 0, DAY_MS,
           "A message without a receipt for so long is unknown and sent again; 0: never."),
    WORD("compression_type", PRODUCER(compression_type), "none", compression_words,
         "Compression of what is published."),
    NUMBER("max_pending_messages", PRODUCER(max_pending_messages), "1000", 1, MANY,
           "Messages of a producer that wait for receipts."),
    NUMBER("max_pending_messages_across_partitions",
           PRODUCER(max_pending_messages_across_partitions), "50000", 1, MANY,
           "The same over all partitions of a topic, which have equal shares in it."),
    BOOL("batching_enabled", PRODUCER(batching_enabled), "true",
         "Messages that come close together are sent as one entry. Python's client begins with "
         "false."),
    NUMBER("batching_max_messages", PRODUCER(batching_max_messages), "1000", 1, MANY,
           "Messages of a batch."),
    NUMBER("batching_max_allowed_size_in_bytes", PRODUCER(batching_max_allowed_size_in_bytes),
           "131072", 1, MANY, "Bytes of a batch before compression."),
    NUMBER("batching_max_publish_delay_ms", PRODUCER(batching_max_publish_delay_ms), "1", 0,
           60000,
           "How long the first message of a batch waits; the C++ and Python clients: 10."),
    WORD("batching_type", PRODUCER(batching_type), "default", batching_words,
         "key_based: a batch holds one key only, which key_shared consumers need."),
    BOOL("chunking_enabled", PRODUCER(chunking_enabled), "false",
         "Messages above the broker's limit are sent in pieces; not together with batching."),
    WORD("message_routing_mode", PRODUCER(message_routing_mode), "round_robin", routing_words,
         "The partition of a message without a key."),
    WORD("hashing_scheme", PRODUCER(hashing_scheme), "java_string_hash", hashing_words,
         "The partition of a key; java_string_hash is what the Java and Go clients begin with. "
         "Refused (E0415): boost_hash, with which C++ and Python begin, depends on the release "
         "of Boost that they were built with."),
    WORD("access_mode", PRODUCER(access_mode), "shared", access_words,
         "Whether others may publish to the topic."),
    METADATA("Metadata of the producer, shown by the broker's statistics."),
    EMPTY("block_if_queue_full", LW_OPTION_BOOL, "false", 0, 0,
          "A full queue is always waited for, and nothing blocks meanwhile."),
    EMPTY("lazy_start_partitioned_producers", LW_OPTION_BOOL, "false", 0, 0,
          "Producers are always made when they are first needed."),
    REFUSED("properties", NULL, "write its parts: producer.properties.NAME: VALUE"),
    REFUSED("schema", NULL, "handlers give bytes; enforced schemas are carried through"),
    REFUSED("topic", NULL, "topics are the pipeline's"),
    REFUSED("encryption_key", NULL, "encryption is not supported"),
    REFUSED("crypto_key_reader", NULL, "encryption is not supported"),
    REFUSED("message_router", NULL, "a function of a program cannot be written here"),
    { 0 }
};

const struct lw_option *
lw_pulsar_option_rows(enum lw_pulsar_scope scope)
{
    switch (scope) {
    case LW_PULSAR_SCOPE_CLIENT:
        return client_rows;
    case LW_PULSAR_SCOPE_CONSUMER:
        return consumer_rows;
    case LW_PULSAR_SCOPE_PRODUCER:
        return producer_rows;
    }
    return NULL;
}
