/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of publishing share. Who does what:
 *
 *   publisher          the face of producer.h: accepting, receipts, room, closing, the idle
 *   publisher_topic    a topic: its partitions, who waits for them, which partition is next
 *   producer           a concrete topic: what waits, is batched, is sent
 *   producer_session   finding the owner, PRODUCER, and again; what failures mean
 *   producer_receipt   SEND_RECEIPT, SEND_ERROR, time-outs
 *   producer_encode    publications to frames; batch, chunk_out, producer_op, route: its parts
 *
 * A publication is in exactly one place: a topic's ring (partitions not known), a producer's ring,
 * an open batch, or an op (with its sequence ids, in `pending`). It leaves by its receipt.
 */
#ifndef LW_BROKERS_PULSAR_PRODUCER_STATE_H
#define LW_BROKERS_PULSAR_PRODUCER_STATE_H

#include "base/map.h"
#include "brokers/pulsar/producer_encode.h"
#include "brokers/pulsar/route.h"

enum { LW_PULSAR_URL_BYTES = 512 };

/*
 *   WAITING  -> FINDING                 something is to be sent, and the pause is over
 *   FINDING  -> CREATING, WAITING       the owner's connection
 *   CREATING -> READY, QUEUED, WAITING  PRODUCER was sent
 *   QUEUED   -> READY, WAITING          somebody else has the topic for himself
 *   READY    -> WAITING, CLOSING
 *   CLOSING  -> WAITING, ENDED          CLOSE_PRODUCER was sent
 *   each     -> ENDED
 */
enum lw_pulsar_producer_state {
    LW_PULSAR_PRODUCER_WAITING,
    LW_PULSAR_PRODUCER_FINDING,
    LW_PULSAR_PRODUCER_CREATING,
    LW_PULSAR_PRODUCER_QUEUED,
    LW_PULSAR_PRODUCER_READY,
    LW_PULSAR_PRODUCER_CLOSING,
    LW_PULSAR_PRODUCER_ENDED
};

/* A topic as it is published to; `names` may be several spellings of it. */
struct lw_pulsar_topic {
    struct lw_list link; /* of the publisher's, the one used last first */
    struct lw_pulsar_publisher *publisher;
    char *name;     /* canonical */
    char *spelling; /* as it was first asked for */
    char *what;
    const char *initial_subscription; /* of a policy's dead-letter topic; or NULL */
    bool is_persistent;
    bool is_known; /* how many partitions; one that is named itself has none */
    bool is_part;  /* its name names a partition */
    bool is_blocked;
    uint32_t partitions;
    uint64_t asked_at;
    uint64_t used_at;
    uint64_t retry_at;
    struct lw_pulsar_find find;
    struct lw_pulsar_backoff backoff;
    struct lw_timer timer;      /* the next attempt, or the first deadline in the ring */
    struct lw_pulsar_ring ring; /* before it is known */
    struct lw_pulsar_router router;
    struct lw_pulsar_producer *whole; /* not partitioned */
    struct lw_pulsar_producer **parts;
    uint32_t parts_capacity;
    uint32_t producer_count;
};

struct lw_pulsar_producer {
    struct lw_pulsar_topic *topic;
    struct lw_pulsar_producer **place; /* in the topic: NULLed at the end */
    struct lw_list link;               /* of the publisher's, the one used last first */
    char *name;                        /* of the concrete topic */
    char *what;
    enum lw_pulsar_producer_state state;
    uint64_t used_at;

    /* session */
    struct lw_pulsar_user user;
    struct lw_pulsar_connection *connection;
    struct lw_pulsar_find find;
    struct lw_pulsar_request create;
    struct lw_pulsar_request close;
    struct lw_pulsar_request ask_schema;
    struct lw_pulsar_backoff backoff;
    struct lw_timer retry_timer;
    uint64_t retry_at;
    char assigned[LW_PULSAR_URL_BYTES]; /* tried once; "" for none */
    char moved_to[LW_PULSAR_URL_BYTES]; /* another cluster's URL; "" for ours */
    char *producer_name;                /* ours, or what the broker gave */
    bool is_name_ours;
    bool was_ready;
    bool is_blocked; /* and said */
    uint64_t epoch;
    bool has_topic_epoch;
    uint64_t topic_epoch;
    uint64_t next_id;
    uint8_t schema_version[64];
    size_t schema_version_size;
    bool has_schema;   /* the topic wants one: sent with PRODUCER */
    bool wants_schema; /* it was refused without one */
    int32_t schema_type;
    struct lw_bytes schema_name; /* in schema_memory */
    struct lw_bytes schema_data;
    struct lw_pulsar_list schema_properties;
    uint8_t *schema_memory;

    /* messages */
    struct lw_pulsar_ring ring;
    struct lw_pulsar_batches batches;
    struct lw_list pending;      /* ops, oldest first */
    struct lw_pulsar_op *unsent; /* the first that the connection has not got whole; or NULL */
    uint32_t messages;           /* without a receipt, wherever they are */
    uint64_t bytes;
    struct lw_timer deadline_timer;
    struct lw_timer batch_timer;
    struct lw_deferred pump;
};

struct lw_pulsar_receipt_due {
    struct lw_publication *publication;
    enum lw_status status;
};

struct lw_pulsar_publisher {
    struct lw_pulsar_client *client;
    const struct lw_pulsar_producer_settings *options;
    struct lw_pulsar_producer_settings settings; /* a copy, which options points to */
    const struct lw_pulsar_publisher_ops *ops;
    void *user;
    struct lw_pulsar_ops entries;
    struct lw_map topics_by_name; /* canonical and as first spelt */
    struct lw_list topics;
    struct lw_list producers;
    uint32_t producer_count; /* without those that are closing */
    struct lw_pulsar_receipt_due *receipts;
    size_t receipt_count;
    size_t receipt_capacity; /* at least `outstanding`: a receipt is never lost */
    size_t outstanding;      /* accepted, not yet told */
    struct lw_deferred deferred;
    struct lw_timer idle_timer;
    struct lw_timer close_timer;
    bool wants_room;
    bool has_room;    /* since wants_room */
    bool has_waiting; /* a topic waits for room in a producer */
    bool is_closing;
    bool is_closed_said;
    struct lw_pulsar_publisher_figures figures;
};

/* -- publisher.c ----------------------------------------------------------------------------------- */

/* Told at the next turn. */
void lw_pulsar_publisher_receipt(struct lw_pulsar_publisher *publisher,
                                 struct lw_publication *publication, enum lw_status status);
void lw_pulsar_publisher_free_room(struct lw_pulsar_publisher *publisher);
uint64_t lw_pulsar_publisher_deadline(const struct lw_pulsar_publisher *publisher);
void lw_pulsar_publisher_say_blocked(struct lw_pulsar_publisher *publisher, const char *topic,
                                     const struct lw_error *error, bool *is_blocked);
/* One more producer? The one idle for longest is closed for it. */
bool lw_pulsar_publisher_admit(struct lw_pulsar_publisher *publisher);
void lw_pulsar_publisher_continue_close(struct lw_pulsar_publisher *publisher);
size_t lw_pulsar_publication_bytes(const struct lw_publication *publication);

/* What a failure means for publications that were never sent. OK: they are kept and wait. */
enum lw_status lw_pulsar_publisher_verdict(const struct lw_pulsar_failure *failure);
/* The pause before the next attempt. */
uint64_t lw_pulsar_publisher_pause(struct lw_pulsar_publisher *publisher,
                                   struct lw_pulsar_backoff *backoff,
                                   const struct lw_pulsar_failure *failure);
/* Whether it is worth a word: at once what the broker refuses, else what lasts. */
bool lw_pulsar_publisher_is_worth_saying(const struct lw_pulsar_backoff *backoff,
                                         const struct lw_pulsar_failure *failure);

/* -- publisher_topic.c ----------------------------------------------------------------------------- */

enum lw_pulsar_accepted { LW_PULSAR_ACCEPTED, LW_PULSAR_NO_ROOM, LW_PULSAR_REFUSED };

/* NULL and INVALID: the text is no name of a topic; NULL and NO_MEMORY. */
struct lw_pulsar_topic *lw_pulsar_topic_get(struct lw_pulsar_publisher *publisher,
                                            const char *text, enum lw_status *ret_status);
/* A dead letter is about to be published there: of a policy, it may want a subscription made. */
void lw_pulsar_topic_note_letter(struct lw_pulsar_topic *topic, const struct lw_message *of);
/* REFUSED: with that status as its receipt. */
enum lw_pulsar_accepted
lw_pulsar_topic_take(struct lw_pulsar_topic *topic, struct lw_publication *publication,
                     enum lw_status *ret_status);
/* Those that waited go to their producers, in order, as far as there is room. */
void lw_pulsar_topic_go_on(struct lw_pulsar_topic *topic);
void lw_pulsar_topic_refuse_waiting(struct lw_pulsar_topic *topic, enum lw_status status);
/* Without producers. */
void lw_pulsar_topic_destroy(struct lw_pulsar_topic *topic);

/* -- producer.c ------------------------------------------------------------------------------------ */

/* NULL without memory. */
struct lw_pulsar_producer *
lw_pulsar_producer_create(struct lw_pulsar_topic *topic, const char *name,
                          struct lw_pulsar_producer **place);
/* Frees at once; nothing is owed any more. */
void lw_pulsar_producer_destroy(struct lw_pulsar_producer *producer);
enum lw_pulsar_accepted
lw_pulsar_producer_take(struct lw_pulsar_producer *producer, struct lw_pulsar_waiting item);
void lw_pulsar_producer_set_state(struct lw_pulsar_producer *producer,
                                  enum lw_pulsar_producer_state state);
/* Sends what can be sent now. */
void lw_pulsar_producer_pump(struct lw_pulsar_producer *producer);
void lw_pulsar_producer_defer_pump(struct lw_pulsar_producer *producer);
/* Open batches become waiting ones again. */
void lw_pulsar_producer_unbatch(struct lw_pulsar_producer *producer);
/* Gives the receipts of an op that is over and forgets it. */
void lw_pulsar_producer_end_op(struct lw_pulsar_producer *producer, struct lw_pulsar_op *op,
                               enum lw_status status);
/* A refused batch: its members wait again, each to go alone. */
void lw_pulsar_producer_split(struct lw_pulsar_producer *producer, struct lw_pulsar_op *op);
/* Everything: what was never sent gets `status`, what was is unknown. */
void lw_pulsar_producer_refuse_all(struct lw_pulsar_producer *producer, enum lw_status status);
void lw_pulsar_producer_receipt(struct lw_pulsar_producer *producer,
                                struct lw_publication *publication, enum lw_status status);
struct lw_pulsar_op *lw_pulsar_producer_head(const struct lw_pulsar_producer *producer);
void lw_pulsar_producer_watch_deadline(struct lw_pulsar_producer *producer);

/* -- producer_session.c ---------------------------------------------------------------------------- */

extern const struct lw_pulsar_user_ops lw_pulsar_producer_user_ops;
/* There is something to send: an attempt, at once or after the pause. */
void lw_pulsar_producer_wake(struct lw_pulsar_producer *producer);
void lw_pulsar_producer_on_retry(struct lw_timer *timer, uint64_t now);
/* The session ended; another one is made when there is something to send. */
void lw_pulsar_producer_fail(struct lw_pulsar_producer *producer,
                             const struct lw_pulsar_failure *failure);
/* Nothing is pending: CLOSE_PRODUCER, then it goes. */
void lw_pulsar_producer_close(struct lw_pulsar_producer *producer);
/* CLOSE_PRODUCER, whatever its answer will be; then detach. */
void lw_pulsar_producer_take_back(struct lw_pulsar_producer *producer);
void lw_pulsar_producer_detach(struct lw_pulsar_producer *producer);
/* Frees it; its topic too, if that was its last one and it is not used. */
void lw_pulsar_producer_end(struct lw_pulsar_producer *producer);

/* -- producer_receipt.c ---------------------------------------------------------------------------- */

void lw_pulsar_producer_on_receipt(struct lw_pulsar_producer *producer,
                                   const struct lw_pulsar_send_receipt *receipt);
void lw_pulsar_producer_on_send_error(struct lw_pulsar_producer *producer,
                                      const struct lw_pulsar_send_error *error);
void lw_pulsar_producer_on_deadline(struct lw_timer *timer, uint64_t now);

static inline struct lw_pulsar_publisher *
lw_pulsar_publisher_of(const struct lw_pulsar_producer *producer)
{
    return producer->topic->publisher;
}

static inline struct lw_host *
lw_pulsar_producer_host(const struct lw_pulsar_producer *producer)
{
    return producer->topic->publisher->client->host;
}

#endif
