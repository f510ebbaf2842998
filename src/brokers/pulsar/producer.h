/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Publishing: a publisher for a broker, which keeps one producer per canonical topic, made on
 * demand, bounded in number, closed when idle. A producer finds the owner, creates itself there,
 * gives sequence ids, batches, chunks, compresses, sends without copying a payload that travels
 * alone, and sends again in order what had no receipt when its connection ended. Each publication
 * gets its receipt exactly once. Loop thread.
 */
#ifndef LW_BROKERS_PULSAR_PRODUCER_H
#define LW_BROKERS_PULSAR_PRODUCER_H

#include <laneway/plugin.h>

#include "brokers/pulsar/lookup.h"
#include "brokers/pulsar/options.h"

struct lw_pulsar_producer_settings { /* of all producers of a broker; texts live as long */
    const char *producer_name; /* NULL: the broker makes one; else with "-TOPIC" behind it */
    int32_t compression;       /* enum lw_pulsar_compression */
    bool batches;
    bool batches_by_key; /* one key per batch, for Key_Shared */
    uint32_t batch_messages_max;
    uint32_t batch_bytes_max;
    uint64_t batch_delay_ns; /* 0: what came in one turn */
    bool chunks;
    uint64_t send_timeout_ns;   /* 0: never; receipts are then UNKNOWN after it */
    uint32_t pending_max;       /* messages without a receipt, of one producer */
    uint32_t pending_topic_max; /* the same of all partitions of a topic; 0: no limit */
    uint64_t first_sequence_id; /* a new producer begins at it, unless the broker has more */
    uint64_t pending_bytes_max;
    uint32_t producers_max; /* the one idle for longest is closed for a new one */
    uint64_t idle_ns;       /* closed after it: 60 s */
    int32_t access_mode;    /* LW_PULSAR_ACCESS_ */
    int32_t routing;        /* LW_PULSAR_ROUTE_ */
    int32_t hashing;        /* LW_PULSAR_HASH_; boost is refused by the options */
    const struct lw_property *properties;
    size_t property_count;
};

/* What the broker's publication receipts become events of; never from in a call of publish. */
struct lw_pulsar_publisher_ops {
    void (*on_receipt)(void *user, struct lw_publication *publication, enum lw_status status);
    void (*on_room)(void *user);
    /* Said once per outage of one topic: why it cannot be published to. NULL error: it can. */
    void (*on_blocked)(void *user, const char *topic, const struct lw_error *error);
    void (*on_closed)(void *user);
};

struct lw_pulsar_publisher;

struct lw_pulsar_publisher *
lw_pulsar_publisher_create(struct lw_pulsar_client *client,
                           const struct lw_pulsar_producer_settings *options,
                           const struct lw_pulsar_publisher_ops *ops, void *user);
/* As lw_broker_ops.publish: accepts a prefix; fewer than n: no room, on_room follows. */
size_t lw_pulsar_publisher_publish(struct lw_pulsar_publisher *publisher,
                                   struct lw_publication *const items[], size_t n);
/* Open batches go out, receipts are awaited up to the deadline (then UNKNOWN), CLOSE_PRODUCER. */
void lw_pulsar_publisher_close(struct lw_pulsar_publisher *publisher, uint64_t deadline);
void lw_pulsar_publisher_destroy(struct lw_pulsar_publisher *publisher);

/* The hash by which a key chooses a partition; 31 bits. Pure. */
uint32_t lw_pulsar_hash_java_string(struct lw_bytes key);
uint32_t lw_pulsar_hash_murmur3(struct lw_bytes key);

struct lw_pulsar_publisher_figures {
    uint32_t producers;
    uint64_t sent; /* messages; again when sent again */
    uint64_t sent_again;
    uint64_t receipts;
    uint64_t copies; /* payload bytes that were copied (batches, compression) */
    uint32_t pending;
    uint64_t pending_bytes;
};
void lw_pulsar_publisher_read(const struct lw_pulsar_publisher *publisher,
                              struct lw_pulsar_publisher_figures *ret_figures);

#endif
