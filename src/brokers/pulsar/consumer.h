/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One consumer: one concrete topic (a partition by its own name), one subscription. It finds the
 * owner, subscribes, grants permits, unpacks entries, keeps what was received until it is taken,
 * acknowledges in groups, asks for redelivery, and does all of it again on another connection
 * when one ends, until it is stopped.
 *
 * A session is one successful SUBSCRIBE. What the dispatcher holds from an earlier session stays
 * valid: the broker's second copy of a message that is still held here, or whose ack is not yet
 * confirmed, is dropped, and its ack goes out in the new session. So a lost connection runs no
 * handler twice in this process. Only when the subscription is taken away (a Failover consumer
 * becomes inactive, a seek) the ownership ends, and messages of it are fenced.
 *
 * Permits are granted in entries: what may come is bounded by the demand divided by the largest
 * recent number of messages per entry, and by the bytes that wait here. Loop thread.
 */
#ifndef LW_BROKERS_PULSAR_CONSUMER_H
#define LW_BROKERS_PULSAR_CONSUMER_H

#include <laneway/plugin.h>

#include "brokers/pulsar/lookup.h"

/* Of a subscription; texts live as long as its consumers. */
struct lw_pulsar_consumer_settings {
    const char *subscription;
    const char *consumer_name; /* NULL: made up, the same for all consumers of a subscription */
    int32_t type;              /* LW_PULSAR_SUB_ */
    int32_t initial_position;  /* LW_PULSAR_INITIAL_ */
    int32_t priority_level;
    bool reads_compacted;
    bool replicates_state;
    bool acks_batch_index;
    bool wants_ack_receipts; /* default true: an ack counts once it is confirmed */
    uint32_t receiver_queue_size;
    uint64_t queue_bytes_max;
    uint32_t ack_group_max;     /* 1,000 */
    uint64_t ack_group_ns;      /* 100 ms; 0: at the end of the turn */
    uint64_t nack_delay_ns;     /* default of a nack without its own delay */
    uint64_t nack_delay_max_ns; /* > nack_delay_ns: it grows with each redelivery up to this */
    double nack_multiplier;     /* by so much: 2 */
    uint64_t ack_timeout_ns;    /* 0: none */
    uint32_t chunked_pending_max; /* messages being assembled: 10 */
    uint64_t chunked_bytes_max;
    uint64_t chunk_expiry_ns;              /* 60 s */
    bool acks_oldest_chunked;              /* when full; false: redelivered */
    uint32_t max_redeliver_count;          /* consumer-side dead-letter policy; 0: none */
    const char *dead_letter_topic;         /* of the policy; NULL: TOPIC-SUBSCRIPTION-DLQ */
    const char *initial_subscription_name; /* made with that topic; NULL: none */
    uint64_t uncompressed_bytes_max;       /* 128 MiB */
    int32_t key_shared_mode;               /* LW_PULSAR_KEY_SHARED_ */
    bool allows_out_of_order;
    const struct lw_pulsar_range *ranges; /* sticky */
    size_t range_count;
    bool only_existing; /* the topic is not made by subscribing to it */
    /* A reader: the subscription is forgotten with it, and the topic must be there. */
    bool is_reader;
    bool has_start_id; /* begins at this one, which comes too; without: at what is new */
    struct lw_pulsar_message_id start_id;
    uint64_t start_seconds_ago;           /* 0: not by time */
    const struct lw_property *properties; /* of the consumer */
    size_t property_count;
    const struct lw_property *subscription_properties;
    size_t subscription_property_count;
    /* Of the source that these consumers belong to. */
    uint32_t queue_total_max; /* of all partitions together */
    int32_t regex_mode;       /* enum lw_pulsar_regex_mode: which topics a pattern sees */
    uint64_t discovery_ns;    /* how often topics of a pattern are looked for */
    bool starts_paused;
};

struct lw_pulsar_consumer;

/* Told to the source, on the loop, never from in a call of the functions below. */
struct lw_pulsar_consumer_ops {
    void (*on_begun)(struct lw_pulsar_consumer *consumer); /* an ownership: a new generation */
    void (*on_lost)(
        struct lw_pulsar_consumer *consumer); /* it ended: held messages are fenced */
    void (*on_ready)(struct lw_pulsar_consumer *consumer); /* receive may have something */
    /* is_fatal in the error: it has given up. Else said once per outage, such as "taken by". */
    void (*on_failed)(struct lw_pulsar_consumer *consumer,
                      const struct lw_pulsar_failure *failure);
    void (*on_end_of_topic)(struct lw_pulsar_consumer *consumer);
    void (*on_stopped)(struct lw_pulsar_consumer *consumer);
};

struct lw_pulsar_consumer *
lw_pulsar_consumer_create(struct lw_pulsar_client *client, const char *topic,
                          const struct lw_pulsar_consumer_settings *options, uint32_t slot,
                          const struct lw_pulsar_consumer_ops *ops, void *user);
/* After on_stopped or before start; all its messages are released. */
void lw_pulsar_consumer_destroy(struct lw_pulsar_consumer *consumer);
/* It has stopped, and no message of it is held any more: it may be destroyed. */
bool lw_pulsar_consumer_is_empty(struct lw_pulsar_consumer *consumer);
void *lw_pulsar_consumer_user(const struct lw_pulsar_consumer *consumer);
const char *lw_pulsar_consumer_topic(const struct lw_pulsar_consumer *consumer);

void lw_pulsar_consumer_start(struct lw_pulsar_consumer *consumer);
/* Stops receiving; acks still go out. */
void lw_pulsar_consumer_pause(struct lw_pulsar_consumer *consumer);
/* Sends the last acks, waits for their receipts up to the deadline, CLOSE_CONSUMER, on_stopped. */
void lw_pulsar_consumer_stop(struct lw_pulsar_consumer *consumer, uint64_t deadline);

/* What may be outstanding, as lw_broker_ops.demand; permits follow it. */
void lw_pulsar_consumer_demand(struct lw_pulsar_consumer *consumer, uint32_t messages,
                               uint64_t bytes);
bool lw_pulsar_consumer_is_ready(const struct lw_pulsar_consumer *consumer);
/* As lw_broker_ops.receive; lowers *bytes by what was given. */
size_t lw_pulsar_consumer_receive(struct lw_pulsar_consumer *consumer,
                                  struct lw_message *const out[], size_t n, uint64_t *bytes);
void
lw_pulsar_consumer_ack(struct lw_pulsar_consumer *consumer, const struct lw_message *message);
/* delay_ns UINT64_MAX: the option's. On Exclusive and Failover it rewinds. */
void lw_pulsar_consumer_nack(struct lw_pulsar_consumer *consumer,
                             const struct lw_message *message, uint64_t delay_ns);

/* To earliest, latest, an id, or a publish time; held messages are fenced by on_lost. */
struct lw_pulsar_seek_target {
    struct lw_pulsar_message_id id;
    uint64_t publish_time_ms;
    bool is_time;
};
void lw_pulsar_consumer_seek(struct lw_pulsar_consumer *consumer,
                             const struct lw_pulsar_seek_target *target);
/* Asks for the topic's last message id; false without a session. */
bool lw_pulsar_consumer_ask_last(struct lw_pulsar_consumer *consumer,
                                 struct lw_pulsar_request *request, lw_pulsar_request_fn fn);
/* Asks for CONSUMER_STATS; false without a session, or while it seeks. */
bool lw_pulsar_consumer_ask_stats(struct lw_pulsar_consumer *consumer,
                                  struct lw_pulsar_request *request, lw_pulsar_request_fn fn);
/* Nothing came for so long though permits are out: subscribes again (11 B, liveness). */
void lw_pulsar_consumer_resubscribe(struct lw_pulsar_consumer *consumer);

/* -- Received messages (entry.c) ------------------------------------------------------------------ */

/*
 * `owner` of a lw_message is its struct lw_pulsar_received (of an arrival, which holds the block or
 * the decompressed bytes), `entry` the parsed headers, if asked for.
 */
void lw_pulsar_message_release(struct lw_message *message);
bool lw_pulsar_message_detach(struct lw_message *message);
const struct lw_header *
lw_pulsar_message_headers(const struct lw_message *message, size_t *ret_count);
void
lw_pulsar_message_times(const struct lw_message *message, struct lw_message_times *ret_times);
/* Ledger, entry, partition, batch index. */
struct lw_pulsar_message_id lw_pulsar_message_own_id(const struct lw_message *message);
struct lw_bytes lw_pulsar_message_schema_version(const struct lw_message *message);
/* Whose settings; its topic and subscription are those of the message. */
const struct lw_pulsar_consumer *lw_pulsar_message_consumer(const struct lw_message *message);
const struct lw_pulsar_consumer_settings *
lw_pulsar_consumer_settings_of(const struct lw_pulsar_consumer *consumer);
/* The key came in base64 (its bytes are no text): a copy is to be sent so, too. */
bool lw_pulsar_message_has_bytes_key(const struct lw_message *message);

/* The metadata of an encrypted message, whose copy needs it to be decrypted; else null. */
struct lw_bytes lw_pulsar_message_sealed(const struct lw_message *message);

/* For status and tests. */
struct lw_pulsar_consumer_figures {
    uint64_t sessions;
    uint64_t entries;
    uint64_t messages;
    uint64_t copies_dropped; /* redelivered while held or not yet confirmed */
    uint64_t unreadable;     /* given on with lw_message.fault */
    uint64_t permits_granted;
    uint32_t permits_out;
    uint32_t queued;
    uint32_t held;
    uint32_t acks_unconfirmed;
    uint32_t chunked_pending;
};
void lw_pulsar_consumer_read(const struct lw_pulsar_consumer *consumer,
                             struct lw_pulsar_consumer_figures *ret_figures);

#endif
