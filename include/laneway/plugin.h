/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two tables through which the dispatcher meets brokers and engines, for their authors.
 *
 * All functions of both tables run on the loop thread, never block, and never call back into the
 * dispatcher. A broker tells what happened by events that the dispatcher fetches with `events`
 * once per turn; an engine hands a finished task to `lw_engine_done` (loop thread) or
 * lw_delivery_finish (any thread). `struct lw_host` is what both see of the world.
 *
 * Brokers and engines are linked in; this header may change between minor versions. Handlers that
 * are loaded from shared objects have a header of their own, handler.h.
 */
#ifndef LANEWAY_PLUGIN_H
#define LANEWAY_PLUGIN_H

#include <laneway/laneway.h>

struct lw_host;
struct lw_broker;
struct lw_source; /* a broker's side of one subscription; opaque to the dispatcher */
struct lw_engine;

/* -- Messages ------------------------------------------------------------------------------ */

/*
 * What was received; never changes but through `detach`. Views point into memory that the broker
 * owns until `release`. Times, headers and redelivery counts are asked for through the table
 * (`describe_message`, `headers`), since most messages are never asked.
 */
struct lw_message {
    struct lw_bytes key;          /* null: none, which is not empty */
    struct lw_bytes ordering_key; /* null: the key orders */
    struct lw_bytes value;        /* null: a tombstone */
    int64_t position;             /* offset; ascends within a slot and generation */
    uint32_t slot;         /* the source's number of the partition, from an ASSIGNED event */
    uint32_t redeliveries; /* the broker's count of earlier deliveries */
    const char *fault; /* why it cannot be read, static; NULL: it can. caps.has_faults only */
    void *owner;       /* the broker's own */
    void *entry;       /* the broker's own */
};

struct lw_message_times {
    int64_t timestamp_ms;  /* -1 unknown */
    int64_t event_time_ms; /* -1 none */
};

/* -- Publications --------------------------------------------------------------------------- */

enum lw_publication_kind {
    LW_PUBLISH_REPLY,
    LW_PUBLISH_OUTPUT,
    LW_PUBLISH_RETRY,
    LW_PUBLISH_DEAD_LETTER
};

/*
 * One message to send. Everything stays untouched and alive until its receipt, which comes
 * exactly once as a PUBLISHED event: OK; TOO_LARGE or INVALID (the message's own fault); DENIED
 * or NOT_FOUND (the target's); UNAVAILABLE (refused for a passing reason); UNKNOWN (sent, never
 * confirmed). The dispatcher decides about sending again.
 */
struct lw_publication {
    enum lw_publication_kind kind;
    const char *topic;
    int32_t partition; /* -1: the client's partitioner, by key */
    struct lw_bytes key;
    struct lw_bytes ordering_key;
    struct lw_bytes value;
    const struct lw_header *headers; /* complete, in order, duplicates kept */
    size_t header_count;
    int64_t event_time_ms; /* -1 none */
    int64_t delay_ms;      /* 0 at once; brokers without native delay choose a tier topic */
    const struct lw_message *base; /* whose private part (schema version) is carried; or NULL */
    void *user;                    /* the dispatcher's token */
};

/* -- Brokers --------------------------------------------------------------------------------- */

enum lw_settlement_kind {
    LW_SETTLE_INDIVIDUAL, /* each message by its own ack */
    LW_SETTLE_CUMULATIVE, /* an ack covers all before it */
    LW_SETTLE_POSITION    /* next offset per partition; the ledger is the dispatcher's */
};

enum lw_nack_kind { LW_NACK_NONE, LW_NACK_MESSAGE, LW_NACK_REWINDS };

struct lw_broker_caps {
    enum lw_settlement_kind settlement;
    enum lw_nack_kind nack;
    bool has_native_delay;
    bool has_redelivery_count;
    size_t message_bytes_max;   /* 0 unknown */
    size_t commit_metadata_max; /* 0 none */
    enum lw_ordering default_ordering;
    enum lw_keyless default_keyless;
    bool retries_in_place; /* what `retry` means by default here */
    bool gives_on_demand;  /* only what was demanded comes, so it cannot say: there is more */
    bool has_faults;       /* receive sets lw_message.fault; such a message meets no handler */
};

struct lw_source_options {
    const char *topic;
    const char *subscription; /* consumer group */
    int32_t priority;
    uint32_t receiver_queue_size;
    uint64_t queue_bytes_max;
    const struct lw_property *properties;
    size_t property_count;
    const char *retry_topic; /* NULL, or the topic whose tiers this source reads too */
    const int64_t *tiers_ms; /* ascending */
    size_t tier_count;
    int64_t stall_timeout_ms; /* nothing came for so long though there is some: mend; 0 never */
    bool reads_tiers;         /* false: only publishes to them */
};

/* What options of the client itself mean for the dispatcher. */
struct lw_source_traits {
    uint32_t
        redeliveries_max; /* what fails after so many is dead-lettered; 0: given back for ever */
    const char *dead_letter_topic; /* where to, if nobody says it; NULL: the conventional one */
    bool starts_paused;            /* until somebody resumes it */
    bool ignores_delays;           /* the broker gives it delayed messages at once */
};

enum lw_event_kind {
    LW_EVENT_ASSIGNED, /* slot begins: generation, topic, partition, position (-1 unknown) */
    /*
     * All slots with `generation` end; answer with revoke_done by `deadline`. A broker whose
     * rebalances take single slots away gives each slot a generation of its own and sends one
     * event for each; it ends the rebalance when all are answered.
     */
    LW_EVENT_REVOKING,
    LW_EVENT_LOST,      /* all slots with `generation` are gone already: no commit, no answer */
    LW_EVENT_POSITION,  /* nothing below `position` is left in the slot (end of log, holes) */
    LW_EVENT_PUBLISHED, /* a receipt: publication, status */
    LW_EVENT_PUBLISH_ROOM, /* publish may accept again */
    LW_EVENT_COMMITTED,    /* the commit in flight ended: status */
    LW_EVENT_BROKER_UP,    /* reachable */
    LW_EVENT_BROKER_DOWN,  /* not reachable: error says why; it keeps trying */
    LW_EVENT_SOURCE_ERROR, /* error of one source; is_fatal: this subscription cannot go on */
    LW_EVENT_CLOSED        /* after close: nothing is in flight any more */
};

struct lw_event {
    enum lw_event_kind kind;
    uint32_t slot;
    struct lw_source *source; /* of slot events and SOURCE_ERROR */
    uint64_t generation;      /* from lw_broker_next_generation, never reused in the process */
    const char *topic; /* ASSIGNED: the slot's topic (a tier's own name); lives as the slot */
    int32_t partition;
    bool is_companion; /* ASSIGNED: a retry tier, not the subscribed topic */
    int64_t position;
    uint64_t deadline; /* REVOKING: monotonic ns */
    struct lw_publication *publication;
    enum lw_status status;
    const struct lw_error *error; /* lives until the next call of events */
};

/* How one message ends on a broker that settles individually. */
struct lw_settle_item {
    const struct lw_message *message;
    bool is_ack;      /* false: nack */
    int64_t delay_ms; /* nack: not before; -1 the source's default */
};

/* One partition's next position to read. */
struct lw_commit_item {
    struct lw_source *source;
    uint32_t slot;
    int64_t position;
};

enum lw_topic_kind { LW_TOPIC_RETRY, LW_TOPIC_DEAD_LETTER };

struct lw_topic_info {
    const char *name;
    int32_t partitions;   /* describe: found, 0 = absent; create: wanted */
    int64_t retention_ms; /* create: -1 the broker's default */
    enum lw_status status;
    char reason[160];
};

/* Messages at the broker that were not received yet, of the slots that are ours now. */
struct lw_lag {
    uint64_t messages;   /* of the subscribed topic */
    uint64_t companions; /* of its retry tiers, also those whose time has not come */
};

struct lw_broker_ops {
    const char *scheme; /* of the URL, such as "kafka" */
    /* No I/O. *ret_broker's first member is struct lw_broker. */
    enum lw_status (*create)(struct lw_host *host, const char *name, const char *url,
                             const struct lw_property *properties, size_t property_count,
                             struct lw_broker **ret_broker, struct lw_error *ret_error);
    /* No I/O yet; everything that can be checked is checked here. Before start. */
    enum lw_status (*subscribe)(struct lw_broker *broker,
                                const struct lw_source_options *options,
                                struct lw_source **ret_source, struct lw_error *ret_error);
    /* Texts live as long as the source. NULL: nothing is asked. */
    void (*traits)(const struct lw_source *source, struct lw_source_traits *ret_traits);
    /* Does it read that topic, however that is spelt? NULL: when the names are the same text. */
    bool (*reads)(const struct lw_source *source, const char *topic);
    /* Takes a subscription back, before start only: as if it had never been. */
    void (*unsubscribe)(struct lw_source *source);
    /* Begins to connect; returns at once. */
    enum lw_status (*start)(struct lw_broker *broker, struct lw_error *ret_error);
    /* Copies up to n events; fewer than n: that was all. */
    size_t (*events)(struct lw_broker *broker, struct lw_event *out, size_t n);

    /* How much may be outstanding (granted, not yet received) for this source. */
    void (*demand)(struct lw_source *source, uint32_t messages, uint64_t bytes);
    /* True when receive may have something. Set by the broker, cleared by receive. */
    bool (*is_ready)(const struct lw_source *source);
    /*
     * Fills at most n messages, stopping once bytes_max is reached (at least one is given). Fair
     * over the source's partitions. *ret_has_more stays true until it is known to be dry.
     */
    size_t (*receive)(struct lw_source *source, struct lw_message *const out[], size_t n,
                      uint64_t bytes_max, bool *ret_has_more);
    /*
     * How many messages receive may give of each slot, by its number, until the next call; NULL:
     * as many as there are. The array is the dispatcher's and covers every assigned slot; receive
     * takes off what it gives. A slot without room stays ready and is passed over. A broker may
     * leave this out of its table (NULL): then all partitions are served alike.
     */
    void (*limit_slots)(struct lw_source *source, uint32_t *rooms);
    /*
     * Messages of this source may wait that long at the broker though they are counted as there:
     * no stall before that. Called before start, once for each writer of such messages; NULL: what
     * is delayed is never taken for a stall.
     */
    void (*expect_delay)(struct lw_source *source, int64_t delay_ms);
    /* LW_SETTLE_INDIVIDUAL and _CUMULATIVE only. Does not end the message's life. */
    void (*settle)(struct lw_source *source, const struct lw_settle_item *items, size_t n);
    /* LW_SETTLE_POSITION only. At most one in flight per broker; ends with COMMITTED. */
    enum lw_status (*commit)(struct lw_broker *broker, const struct lw_commit_item *items,
                             size_t n);
    /* Accepts a prefix; fewer than n: no room, PUBLISH_ROOM follows. */
    size_t (*publish)(struct lw_broker *broker, struct lw_publication *const items[], size_t n);

    /* Gives messages back to the client library; their views are dead. */
    void (*release)(struct lw_broker *broker, struct lw_message *const messages[], size_t n);
    /* Copies the message out of the client's buffers so that it pins nothing; false: no memory. */
    bool (*detach)(struct lw_broker *broker, struct lw_message *message);
    /* Parses on first use; the array lives as long as the message. */
    const struct lw_header *(*headers)(struct lw_broker *broker,
                                       const struct lw_message *message, size_t *ret_count);
    void (*times)(struct lw_broker *broker, const struct lw_message *message,
                  struct lw_message_times *ret_times);
    /*
     * Writes where the message lies in its partition, for its identity, such as "12:7:3". NULL:
     * it is the position in decimal.
     */
    void (*place)(const struct lw_message *message, char *out, size_t size);
    /*
     * Writes the message's id as the broker's official clients write it into copies, such as
     * "(12,7,-1,3)". NULL: they write none.
     */
    void (*id_text)(const struct lw_message *message, char *out, size_t size);
    /* True when both texts name one topic. NULL: only equal texts do. */
    bool (*is_same_topic)(const char *a, const char *b);

    /* The partitions of that generation are given up: nothing of it is used any more. */
    void (*revoke_done)(struct lw_broker *broker, uint64_t generation);
    /* Stops receiving at once and gives the slots up (REVOKING events follow). */
    void (*stop_sources)(struct lw_broker *broker);
    /*
     * Ends everything; publications without a receipt get one, then CLOSED follows. Messages are
     * held only by such publications; they are released before destroy.
     */
    void (*close)(struct lw_broker *broker);
    void (*destroy)(struct lw_broker *broker); /* after CLOSED, or before start */

    /* Writes the conventional name; false when it does not fit or cannot be made. */
    bool (*default_topic)(enum lw_topic_kind kind, const char *topic, const char *subscription,
                          char *out, size_t size);
    /*
     * For the command, not for the loop: these two block up to timeout_ms, on a broker that was
     * created and never started.
     */
    enum lw_status (*describe_topics)(struct lw_broker *broker, struct lw_topic_info *topics,
                                      size_t n, int64_t timeout_ms, struct lw_error *ret_error);
    enum lw_status (*create_topics)(struct lw_broker *broker, struct lw_topic_info *topics,
                                    size_t n, int64_t timeout_ms, struct lw_error *ret_error);
    /*
     * What waits, from what is known already; nothing waits for a broker, which may ask for what
     * the next call tells. False: it is not known (now).
     * NULL: this broker cannot tell.
     */
    bool (*lag)(struct lw_source *source, struct lw_lag *ret_lag);
};

/* Every broker begins with this. */
struct lw_broker {
    const struct lw_broker_ops *ops;
    struct lw_host *host;
    struct lw_broker_caps caps;
    const char *name;
};

/* A number for an ownership: process-wide, from 1, never reused. Any thread. */
LW_API uint64_t lw_broker_next_generation(void);

/* -- Engines ---------------------------------------------------------------------------------- */

/*
 * A task is one handler call in one slot: a chain of deliveries linked by their `task_next`, of
 * one where `batch.size` is 0. Results come exactly once for every accepted task, also when a
 * worker died or time ran out: the first delivery is reported. Its verdict is for all of them,
 * unless it says `is_each`: then each has its own, LW_PENDING where the handler gave none;
 * `task_answers` says how many it gave. The engine owns the attempt's deadline and the blame:
 * suspects of a crash are run again, alone, inside the engine, and the dispatcher sees one
 * result. A task of several is one suspect; that its members run again one by one afterwards is
 * the dispatcher's.
 */
struct lw_engine_ops {
    const char *name;
    bool reads_in_place; /* handlers read the message's views while they run */
    bool can_end_early;  /* a running handler can be ended (programs, processes) */
    enum lw_status (*start)(struct lw_engine *engine, struct lw_error *ret_error);
    /* Takes a prefix of the tasks; it lowers `room` by what it took. */
    size_t (*submit)(struct lw_engine *engine, struct lw_delivery *const tasks[], size_t n);
    /* Once a turn after submits: wakes workers. */
    void (*flush)(struct lw_engine *engine);
    /* The result of this task is no longer wanted: end it early if you can, report anyway. */
    void (*cancel)(struct lw_engine *engine, struct lw_delivery *task);
    /*
     * No submit follows. Lets running tasks end until `deadline` (ns), then ends what can be. An
     * engine that can end early may be told twice: before a drain's deadline, and at its end.
     */
    void (*stop)(struct lw_engine *engine, uint64_t deadline);
    bool (*is_stopped)(const struct lw_engine *engine);
    void (*destroy)(struct lw_engine *engine); /* waits for handlers on threads */
};

struct lw_completions;

/* Every engine begins with this. The dispatcher reads, the engine writes, on the loop thread. */
struct lw_engine {
    const struct lw_engine_ops *ops;
    struct lw_host *host;
    struct lw_completions *completions;
    const char *name; /* the handler's name */
    uint32_t room;    /* tasks that submit would accept now */
    bool is_down;     /* the handler cannot start: its subscriptions wait, nobody is charged */
    bool has_changed; /* room or is_down changed since the dispatcher looked */
    /*
     * A blocking handler for the loop thread: the dispatcher calls it itself in place of submit,
     * since a hand-over would cost more than everything else. NULL: submit. `room` still counts.
     */
    lw_handler_fn direct;
    void *direct_user;
    uint64_t direct_timeout_ns;    /* of an attempt; 0 none */
    struct lw_batch_options batch; /* size 0: tasks of one; else of up to so many */
    uint64_t up_at;                /* ns: when is_down will end by itself; 0 nobody knows */
    uint32_t restarts;
    uint32_t stray_lines;
    struct lw_error down_error; /* why, while is_down; is_fatal: the service drains and ends */
};

/* Reports a finished task from the loop thread. `delivery`'s outcome is filled. */
LW_API void lw_engine_done(struct lw_engine *engine, struct lw_delivery *delivery);

#endif
