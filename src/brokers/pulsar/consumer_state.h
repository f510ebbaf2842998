/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of a consumer share. consumer.c has its life and the calls of the source;
 * consumer_session.c finds, subscribes and ends sessions; consumer_message.c takes what comes;
 * consumer_fault.c takes of it what cannot be read; consumer_ack.c sends acknowledgements;
 * consumer_redeliver.c asks for redelivery. Loop thread.
 */
#ifndef LW_BROKERS_PULSAR_CONSUMER_STATE_H
#define LW_BROKERS_PULSAR_CONSUMER_STATE_H

#include "brokers/pulsar/acks.h"
#include "brokers/pulsar/chunks.h"
#include "brokers/pulsar/consumer.h"
#include "brokers/pulsar/nacks.h"
#include "brokers/pulsar/permits.h"
#include "brokers/pulsar/wire/compress.h"

/*
 * PENDING     -> SUBSCRIBING by start, STOPPED by stop
 * SUBSCRIBING -> READY, WAITING after a failure, FAILED after one that is final, STOPPED
 * READY       -> WAITING when the session ended, SUBSCRIBING at once if the broker named its next
 *                owner, STOPPING by stop
 * WAITING     -> SUBSCRIBING after a pause, STOPPED
 * STOPPING    -> STOPPED after the last receipts and the answer to the close, or its deadline
 * FAILED      -> STOPPED by stop
 */
enum lw_pulsar_consumer_state {
    LW_PULSAR_CONSUMER_PENDING,
    LW_PULSAR_CONSUMER_SUBSCRIBING,
    LW_PULSAR_CONSUMER_READY,
    LW_PULSAR_CONSUMER_WAITING,
    LW_PULSAR_CONSUMER_STOPPING,
    LW_PULSAR_CONSUMER_STOPPED,
    LW_PULSAR_CONSUMER_FAILED
};

/* An ACK that waits for its receipt. */
struct lw_pulsar_ack_flight {
    struct lw_list link;
    struct lw_list entries;
    struct lw_pulsar_request request;
    struct lw_pulsar_consumer *consumer;
};

struct lw_pulsar_consumer {
    struct lw_pulsar_user user;
    struct lw_pulsar_client *client;
    const struct lw_pulsar_consumer_settings *options;
    const struct lw_pulsar_consumer_ops *ops;
    void *source;
    uint32_t slot;
    enum lw_pulsar_consumer_state state;
    struct lw_pulsar_connection *connection; /* of the session or the attempt */
    struct lw_pulsar_find find;
    struct lw_pulsar_request subscribe;
    struct lw_pulsar_request close;
    struct lw_pulsar_request seek;
    struct lw_pulsar_backoff backoff;
    uint64_t epoch;
    struct lw_pulsar_place horizon; /* the last one that came since the reading began */
    uint64_t stop_deadline;
    struct lw_pulsar_seek_target seek_target;
    bool is_paused;
    bool is_stopping;
    bool is_stop_told;
    bool is_closing; /* the last CLOSE_CONSUMER is sent */
    bool is_close_answered;
    bool is_begun;    /* an ownership */
    bool is_in_order; /* Exclusive, Failover: what is not acknowledged comes in order */
    bool has_horizon;
    bool has_rewound; /* in this session: what comes without an epoch may be of before */
    bool was_ready;
    bool wants_seek;
    bool is_seeking;   /* SEEK is sent: what still comes is of before */
    bool is_lost_due;  /* on_lost is to be called */
    bool is_begin_due; /* on_begun is to be called */
    bool is_end_told;
    bool has_said; /* why it does not work, in this outage */
    int32_t said_code;
    struct lw_pulsar_permits permits;
    struct lw_pulsar_entries entries;
    struct lw_pulsar_acks acks;
    struct lw_pulsar_nacks nacks;
    struct lw_pulsar_chunks chunks;
    struct lw_pulsar_codec *codec; /* made on first use */
    struct lw_list flights;
    struct lw_list spare_flights;
    struct lw_list timeouts; /* entries that are held, oldest first */
    struct lw_queue queue;
    struct lw_timer retry_timer;
    struct lw_timer ack_timer;
    struct lw_timer nack_timer;
    struct lw_timer timeout_timer;
    struct lw_timer chunk_timer;
    struct lw_timer stop_timer;
    struct lw_deferred deferred;  /* what is told to the source later */
    struct lw_deferred ack_flush; /* acks at the end of a turn */
    struct lw_pulsar_consumer_figures figures;
    uint8_t *ids_buffer; /* of redeliveries */
    char assigned[256];  /* the next owner's URL, as the broker said; empty: none */
    char moved_to[256];  /* another cluster's URL; empty: ours */
    char name[64];       /* consumer_name that was made up */
    char what[300];      /* "subscribe to TOPIC" */
    char topic[];
};

/* -- consumer_session.c */
void lw_pulsar_consumer_attempt(struct lw_pulsar_consumer *consumer);
/* The session is over; another one is begun after a pause, or at once. */
void lw_pulsar_consumer_end_session(struct lw_pulsar_consumer *consumer, bool at_once);
/* All that is known here may come once more. */
void lw_pulsar_consumer_expect_copies(struct lw_pulsar_consumer *consumer);
/* Leaves the connection in order and subscribes again. */
void lw_pulsar_consumer_restart(struct lw_pulsar_consumer *consumer, bool at_once);
void lw_pulsar_consumer_send_close(struct lw_pulsar_consumer *consumer, lw_pulsar_request_fn fn,
                                   uint64_t timeout_ns);
void lw_pulsar_consumer_on_retry(struct lw_timer *timer, uint64_t now);
void lw_pulsar_consumer_clear_queue(struct lw_pulsar_consumer *consumer);
/* Nothing that is here belongs to us any more. */
void lw_pulsar_consumer_fence(struct lw_pulsar_consumer *consumer);
void lw_pulsar_consumer_begin_seek(struct lw_pulsar_consumer *consumer);
extern const struct lw_pulsar_user_ops lw_pulsar_consumer_user_ops;

/* The broker reads anew from the first one that is not acknowledged, or will before it sends. */
static inline void
lw_pulsar_consumer_read_anew(struct lw_pulsar_consumer *consumer)
{
    consumer->has_horizon = false;
    lw_pulsar_entries_forget_hole(&consumer->entries);
}

/* -- consumer.c */
void lw_pulsar_consumer_begin(struct lw_pulsar_consumer *consumer);
void lw_pulsar_consumer_lose(struct lw_pulsar_consumer *consumer);
void lw_pulsar_consumer_finish_stop(struct lw_pulsar_consumer *consumer);
void lw_pulsar_consumer_go_on_stopping(struct lw_pulsar_consumer *consumer);
void lw_pulsar_consumer_flow(struct lw_pulsar_consumer *consumer);

/* -- consumer_message.c */
void lw_pulsar_consumer_on_message(struct lw_pulsar_user *user,
                                   const struct lw_pulsar_message *message,
                                   struct lw_bytes rest, struct lw_pulsar_block *block);
void lw_pulsar_consumer_give_up_chunk(void *user, struct lw_pulsar_chunk_id id, bool acks);

/* -- consumer_fault.c */
struct lw_pulsar_unreadable {
    const struct lw_pulsar_message *message;
    struct lw_pulsar_block *block;
    const struct lw_pulsar_metadata *metadata; /* NULL: it cannot be believed */
    struct lw_bytes metadata_bytes;
    struct lw_bytes body;              /* as it came */
    uint8_t *buffer;                   /* of the body, given; NULL: it lies in the block */
    struct lw_pulsar_chunked *chunked; /* NULL, or the whole whose ids it takes */
    int32_t validation;                /* LW_PULSAR_INVALID_ */
    bool is_sealed;                    /* encrypted: the metadata is kept for a copy */
    const char *why;                   /* static */
};

/* False without memory. */
bool lw_pulsar_consumer_take_unreadable(struct lw_pulsar_consumer *consumer,
                                        const struct lw_pulsar_unreadable *what);

/* -- consumer_ack.c */
void lw_pulsar_consumer_plan_acks(struct lw_pulsar_consumer *consumer);
void lw_pulsar_consumer_flush_acks(struct lw_pulsar_consumer *consumer);
void
lw_pulsar_consumer_ack_parts(struct lw_pulsar_consumer *consumer); /* before the last flush */
/* None of them goes out any more. */
void lw_pulsar_consumer_drop_acks(struct lw_pulsar_consumer *consumer);
void lw_pulsar_consumer_return_acks(struct lw_pulsar_consumer *consumer);
void lw_pulsar_consumer_on_ack_timer(struct lw_timer *timer, uint64_t now);
void lw_pulsar_consumer_on_ack_deferred(struct lw_deferred *deferred);
void lw_pulsar_consumer_free_flights(struct lw_pulsar_consumer *consumer);
bool lw_pulsar_consumer_on_ack_response(struct lw_pulsar_consumer *consumer,
                                        const struct lw_pulsar_command *command);

/* -- consumer_redeliver.c */
void lw_pulsar_consumer_plan_nack(struct lw_pulsar_consumer *consumer,
                                  struct lw_pulsar_entry *entry, uint64_t delay_ns);
/* It is not asked for any more; the entry may go by this. */
void lw_pulsar_consumer_drop_nack(struct lw_pulsar_consumer *consumer,
                                  struct lw_pulsar_entry *entry);
void
lw_pulsar_consumer_watch(struct lw_pulsar_consumer *consumer, struct lw_pulsar_entry *entry);
void lw_pulsar_consumer_on_nack_timer(struct lw_timer *timer, uint64_t now);
void lw_pulsar_consumer_on_timeout_timer(struct lw_timer *timer, uint64_t now);
/* Exclusive and Failover: all that is not acknowledged comes again, in order. */
void lw_pulsar_consumer_rewind(struct lw_pulsar_consumer *consumer);

static inline bool
lw_pulsar_consumer_rewinds(const struct lw_pulsar_consumer *consumer)
{
    return consumer->options->type == LW_PULSAR_SUB_EXCLUSIVE ||
           consumer->options->type == LW_PULSAR_SUB_FAILOVER;
}

static inline void
lw_pulsar_consumer_enqueue(struct lw_pulsar_consumer *consumer,
                           struct lw_pulsar_received *member)
{
    lw_pulsar_permits_queue(&consumer->permits, member->key.size + member->value.size);
    lw_queue_push(&consumer->queue, &member->node);
    consumer->figures.messages++;
}

static inline void
lw_pulsar_consumer_tell_ready(struct lw_pulsar_consumer *consumer, bool was_empty)
{
    if (was_empty && consumer->queue.first && !consumer->is_paused) {
        consumer->ops->on_ready(consumer);
    }
}

/* Commands may be sent for the session. */
static inline bool
lw_pulsar_consumer_has_session(const struct lw_pulsar_consumer *consumer)
{
    return consumer->connection != NULL && (consumer->state == LW_PULSAR_CONSUMER_READY ||
                                            consumer->state == LW_PULSAR_CONSUMER_STOPPING);
}

#endif
