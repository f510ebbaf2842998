/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Pulsar broker's own structures, for broker.c, source.c and settings.c. Who does what:
 *   broker.c      the table; start, stop, close
 *   settings.c    from the options that people give to the settings of the parts
 *   source.c      one subscription: which topics it has, a slot and a consumer for each
 *   describe.c    which topics are there; peek.h reading one; both for the command
 *   receive.c     receiving from a subscription's slots in turn, demand, settlement
 *   holder.c      who has a subscription that is taken
 *   backlog.c     what waits at the broker; slots that fell asleep
 *   consumer.h    one topic of a subscription; producer.h publishing
 *   connection.h  TCP, TLS, requests; lookup.h finding topics and their owners
 *   wire/         bytes to commands and back
 * Loop thread.
 */
#ifndef LW_BROKERS_PULSAR_PULSAR_H
#define LW_BROKERS_PULSAR_PULSAR_H

#include "brokers/common/events.h"
#include "brokers/common/properties.h"
#include "brokers/common/turns.h"
#include "brokers/pulsar/admin.h"
#include "brokers/pulsar/consumer.h"
#include "brokers/pulsar/holder.h"
#include "brokers/pulsar/options.h"
#include "brokers/pulsar/producer.h"
#include "brokers/pulsar/watcher.h"

#define LW_PULSAR_WAIT_NS (5000 * LW_MS) /* for the last acks and receipts */

struct lw_pulsar_broker;
struct lw_pulsar_source;

/* -- settings.c ----------------------------------------------------------------------------------- */

void lw_pulsar_settings_client(const struct lw_pulsar_client_options *options,
                               struct lw_pulsar_client_settings *ret_settings);
void lw_pulsar_settings_auth(const struct lw_pulsar_client_options *options,
                             struct lw_pulsar_auth_options *ret_options);
void lw_pulsar_settings_producer(const struct lw_pulsar_options *options,
                                 struct lw_pulsar_producer_settings *ret_settings);
/* `ranges` has room for LW_PULSAR_STICKY_RANGES_MAX and lives as long as the settings. */
void lw_pulsar_settings_consumer(const struct lw_pulsar_consumer_options *options,
                                 const char *subscription, struct lw_pulsar_range *ranges,
                                 struct lw_pulsar_consumer_settings *ret_settings);

/* -- source.c ------------------------------------------------------------------------------------- */

/* What the broker told of a slot, and since when nothing came. */
struct lw_pulsar_backlog {
    struct lw_pulsar_request request;
    uint64_t asked_at;     /* 0: never */
    uint64_t entries;      /* that were at the broker and not here */
    uint64_t told_entries; /* received in all when it was told */
    uint64_t seen_entries; /* received in all when it was last looked at */
    uint64_t active_at;    /* something came, or nothing could */
    uint64_t mended_at;
    uint64_t pause; /* before it is mended again */
    bool is_known;
    bool is_said;
};

/*
 * One topic of a subscription. Its number is its place until its topic has vanished, its consumer
 * has stopped, and nothing of it is in anybody's hands: then another topic may have the place.
 */
struct lw_pulsar_slot {
    struct lw_pulsar_source *source;
    struct lw_pulsar_consumer *consumer;
    struct lw_list ready; /* in source->ready, if it may have something */
    struct lw_pulsar_backlog backlog;
    uint64_t generation; /* 0: nobody owns it, or not announced yet */
    uint32_t number;
    int32_t partition; /* 0 of a topic without partitions */
    bool is_begun;     /* the consumer has it; the dispatcher hears of it with the generation */
    bool is_revoking;
    bool is_stopped;
    bool is_gone; /* closed, since its topic vanished */
    char topic[]; /* canonical, with the partition */
};

struct lw_pulsar_source {
    struct lw_pulsar_broker *broker;
    struct lw_list link;
    char *subscription;
    struct lw_pulsar_name name;        /* of a single topic */
    struct lw_pulsar_pattern *pattern; /* or NULL */
    struct lw_properties properties;   /* the options borrow their texts */
    struct lw_pulsar_consumer_options options;
    struct lw_pulsar_consumer_settings settings;
    struct lw_pulsar_range ranges[LW_PULSAR_STICKY_RANGES_MAX];
    struct lw_pulsar_slot **slots;
    uint32_t slot_count;
    struct lw_turns ready; /* lw_pulsar_slot.ready */
    uint32_t demand_messages;
    uint64_t demand_bytes;
    uint64_t stall_ns; /* nothing came for so long though there is some: mend; 0: never */
    uint64_t delay_ns; /* and no sooner than that after the last: the longest delay of copies */
    struct lw_pulsar_find find;
    struct lw_timer find_timer;       /* the next look for topics or partitions */
    struct lw_pulsar_watcher watcher; /* of a pattern */
    struct lw_timer announce_timer;   /* there was no memory to announce a slot */
    struct lw_pulsar_backoff backoff;
    char topics_hash[64];
    bool looks_again; /* topics changed while they were asked for */
    bool is_failure_said;
    bool is_stopping;
};

static inline struct lw_source *
lw_pulsar_source_face(struct lw_pulsar_source *source)
{
    return (struct lw_source *)(void *)source;
}

static inline struct lw_pulsar_source *
lw_pulsar_source_of(struct lw_source *source)
{
    return (struct lw_pulsar_source *)(void *)source;
}

enum lw_status
lw_pulsar_source_create(struct lw_pulsar_broker *broker,
                        const struct lw_source_options *options,
                        struct lw_pulsar_source **ret_source, struct lw_error *ret_error);
void lw_pulsar_source_destroy(struct lw_pulsar_source *source);
void lw_pulsar_source_start(struct lw_pulsar_source *source);
/* No more messages; every slot is given up (REVOKING), or stopped at once. */
void lw_pulsar_source_stop(struct lw_pulsar_source *source);
/* The slot of that generation, if it is one of this source, is not used any more. */
void lw_pulsar_source_revoke_done(struct lw_pulsar_source *source, uint64_t generation);
bool lw_pulsar_source_is_stopped(const struct lw_pulsar_source *source);
/* Publishes how much each consumer may have outstanding. receive.c */
void lw_pulsar_source_share(struct lw_pulsar_source *source);
void
lw_pulsar_source_demand(struct lw_pulsar_source *source, uint32_t messages, uint64_t bytes);
void lw_pulsar_slot_mark_ready(struct lw_pulsar_slot *slot);
void lw_pulsar_slot_unready(struct lw_pulsar_slot *slot);
size_t lw_pulsar_source_receive(struct lw_pulsar_source *source, struct lw_message *const out[],
                                size_t n, uint64_t bytes_max, bool *ret_has_more);
void lw_pulsar_source_settle(struct lw_pulsar_source *source,
                             const struct lw_settle_item *items, size_t n);

/* -- backlog.c ------------------------------------------------------------------------------------ */

/* An ownership begins. */
void lw_pulsar_backlog_begin(struct lw_pulsar_slot *slot);
/* Looks at every slot if the last look was a while ago. */
void lw_pulsar_backlog_look(struct lw_pulsar_broker *broker);
void lw_pulsar_backlog_expect_delay(struct lw_pulsar_source *source, int64_t delay_ms);
bool lw_pulsar_source_lag(struct lw_pulsar_source *source, struct lw_lag *ret_lag);

/* -- broker.c ------------------------------------------------------------------------------------- */

enum lw_pulsar_phase {
    LW_PULSAR_NEW,
    LW_PULSAR_RUNNING,
    LW_PULSAR_CLOSING,
    LW_PULSAR_ENDED /* CLOSED was said */
};

struct lw_pulsar_broker {
    struct lw_broker base; /* first */
    struct lw_pulsar_client client;
    struct lw_pulsar_publisher *publisher;
    struct lw_pulsar_holder holder;
    struct lw_events events;
    struct lw_list sources;
    struct lw_properties properties; /* the options borrow their texts */
    struct lw_pulsar_options options;
    enum lw_pulsar_phase phase;
    uint64_t looked_at;         /* at the slots' backlogs */
    struct lw_pulsar_dial dial; /* of a broker that only publishes: whether it is there */
    struct lw_timer dial_timer;
    struct lw_pulsar_backoff dial_backoff;
    bool is_stopping;
    bool is_publisher_closed;
    char *name;
};

static inline struct lw_pulsar_broker *
lw_pulsar_broker_of(struct lw_broker *broker)
{
    return (struct lw_pulsar_broker *)(void *)broker;
}

/*
 * Fills partitions, status and reason of each topic; fails when nobody answers. Blocking, for the
 * command. describe.c
 */
enum lw_status lw_pulsar_describe(struct lw_pulsar_broker *broker, struct lw_topic_info *topics,
                                  size_t n, int64_t timeout_ms, struct lw_error *ret_error);

/* A consumer or the publisher ended: CLOSED, if that was the last of a close. */
void lw_pulsar_broker_continue_close(struct lw_pulsar_broker *broker);

#endif
