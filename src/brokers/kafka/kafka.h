/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Kafka broker's own structures, for the files of this folder and its tests. The loop thread
 * owns everything; librdkafka's threads only post letters (lw_host_post). Who does what:
 *   broker.c      the table; start, stop, close
 *   settings.c    configurations of the clients; properties.c what users may write in them
 *   client.c      one consumer per (cluster, group): its queue, its close
 *   assignment.c  partitions that come and go, in two phases
 *   source.c      one subscription; receiving from its partitions in turn
 *   partition.c   a queue per partition: readiness, receiving, the stash
 *   message.c     views, headers, copying out; spent.c the way back to the client
 *   commit.c      explicit lists, one in flight
 *   companions.c  retry tiers' partitions beside their source's; tiers.c names and due times
 *   producer.c    one idempotent producer; topic.c one topic of it and batches that were refused
 *   lag.c         how much waits at the cluster
 *   stall.c       partitions that stopped without a reason
 *   admin.c       for the command; errors.c what a person reads
 */
#ifndef LW_BROKERS_KAFKA_KAFKA_H
#define LW_BROKERS_KAFKA_KAFKA_H

#include <stdatomic.h>

#include <laneway/plugin.h>
#include <librdkafka/rdkafka.h>

#include "base/host.h"
#include "brokers/common/events.h"
#include "brokers/common/properties.h"
#include "brokers/common/turns.h"
#include "brokers/kafka/properties.h"

#define LW_KAFKA_BATCH 256
#define LW_KAFKA_HOLD_BATCH 16 /* messages of a tier that wait here for their time */
#define LW_KAFKA_WAIT_NS (5000 * LW_MS)
#define LW_KAFKA_CLOSE_POLL_NS (5 * LW_MS)
#define LW_KAFKA_START_WAIT_NS (1000 * LW_MS)
#define LW_KAFKA_START_POLL_NS (5 * LW_MS)
#define LW_KAFKA_COMMIT_AGAIN_NS (200 * LW_MS)
#define LW_KAFKA_COMMIT_REPEATS_MAX 10
#define LW_KAFKA_REACH_POLL_NS (200 * LW_MS)
#define LW_KAFKA_MISSING_POLL_NS (2000 * LW_MS)
#define LW_KAFKA_COMPANION_REFRESH_NS (UINT64_C(86400000) * LW_MS)
#define LW_KAFKA_STALL_NS (60000 * LW_MS)
#define LW_KAFKA_TOPICS_MAX 4096

struct lw_kafka_broker;
struct lw_kafka_client;
struct lw_kafka_source;

/* -- partition.c ------------------------------------------------------------------------------- */

/*
 * One partition of a source's topic or of one of its tiers, made at its first assignment and kept
 * until the broker's end (its queue keeps "not forwarded" over assignments). It is in the
 * source's ring when its queue may hold something that may be given out now.
 */
struct lw_kafka_partition {
    struct lw_letter letter; /* the client's queue is no longer empty */
    struct lw_list ready;
    struct lw_kafka_source *source;
    rd_kafka_queue_t *queue;
    const char *topic; /* the source's string */
    int32_t number;
    uint32_t slot;
    int64_t tier_ms;     /* -1: the subscribed topic itself */
    uint64_t generation; /* 0: not ours */
    bool is_revoking;    /* REVOKING was said */
    bool is_given_up;    /* revoke_done was answered */
    bool is_restarting;  /* went backwards: waits until the new ownership was announced */
    int64_t next;        /* the offset after the last one given out or known to be absent, -1 */
    int64_t
        committed; /* the last position accepted by the cluster in this ownership, -1 none */
    int64_t end;   /* where the end of the log was reported last, -1 nowhere */
    uint64_t active_at;         /* last time something came, or the assignment */
    uint64_t mended_at;         /* last seek that was meant to wake it, 0 never */
    rd_kafka_message_t **stash; /* taken from the queue, not given out yet */
    uint32_t stash_first;
    uint32_t stash_count;
    uint32_t stash_capacity;
    struct lw_timer hold; /* a tier's first message is not due before */
};

/* Finds it or makes it, without forwarding; NULL without memory. */
struct lw_kafka_partition *
lw_kafka_partition_open(struct lw_kafka_source *source, const char *topic, int64_t tier_ms,
                        int32_t number);
struct lw_kafka_partition *
lw_kafka_partition_find(struct lw_kafka_source *source, const char *topic, int32_t number);
/* Begins an ownership: a new generation. Two places must be reserved: ASSIGNED and its end. */
void lw_kafka_partition_begin(struct lw_kafka_partition *partition);
/* Ends it: what is stashed is given back, nothing more is given out. */
void lw_kafka_partition_end(struct lw_kafka_partition *partition);
void lw_kafka_partition_mark_ready(struct lw_kafka_partition *partition);
/* Fills at most n and lowers *bytes; *ret_is_dry when the queue is known to be empty. */
size_t
lw_kafka_partition_receive(struct lw_kafka_partition *partition, struct lw_message *const out[],
                           size_t n, uint64_t *bytes, bool *ret_is_dry);
/* Lets the client fetch again from `offset`; non-blocking. */
void lw_kafka_partition_rewind(struct lw_kafka_partition *partition, int64_t offset);
/* No callback after this. */
void lw_kafka_partition_silence(struct lw_kafka_partition *partition);
void lw_kafka_partition_destroy(struct lw_kafka_partition *partition);

/* -- source.c ------------------------------------------------------------------------------------ */

struct lw_kafka_tier {
    char *topic;
    int64_t delay_ms;
    rd_kafka_topic_t *rkt; /* keeps the consumer's knowledge of it; starts at earliest */
};

/* What the dispatcher knows as struct lw_source. */
struct lw_kafka_source {
    struct lw_kafka_broker *broker;
    struct lw_kafka_client *client;
    struct lw_list link;        /* of the broker */
    struct lw_list client_link; /* of the client */
    char *topic;
    char *retry_topic; /* NULL none */
    struct lw_kafka_tier *tiers;
    size_t tier_count;
    bool reads_tiers;
    uint64_t stall_ns;     /* nothing came for so long though there is some: mend; 0 never */
    struct lw_turns ready; /* lw_kafka_partition.ready */
    struct lw_kafka_partition **slots;
    uint32_t slot_count;
    uint32_t demand_messages;
    uint32_t *rooms;  /* by slot, what may come now; NULL: no bound */
    bool is_missing;  /* the cluster does not know the topic, which was said */
    uint64_t skipped; /* error records that were passed over */
};

static inline struct lw_kafka_source *
lw_kafka_source_of(struct lw_source *source)
{
    return (struct lw_kafka_source *)(void *)source;
}

static inline struct lw_source *
lw_kafka_source_face(struct lw_kafka_source *source)
{
    return (struct lw_source *)(void *)source;
}

enum lw_status
lw_kafka_source_create(struct lw_kafka_broker *broker, const struct lw_source_options *options,
                       struct lw_kafka_source **ret_source, struct lw_error *ret_error);
size_t lw_kafka_source_receive(struct lw_kafka_source *source, struct lw_message *const out[],
                               size_t n, uint64_t bytes_max, bool *ret_has_more);
void lw_kafka_source_destroy(struct lw_kafka_source *source);
typedef void (*lw_kafka_partition_fn)(struct lw_kafka_partition *partition, void *user);
/* Calls `fn` for every partition that is ours now. */
void lw_kafka_source_each(struct lw_kafka_source *source, lw_kafka_partition_fn fn, void *user);
/* Ends what the consumer knows of the tiers. */
void lw_kafka_source_forget_tiers(struct lw_kafka_source *source);
/* Says SOURCE_ERROR. */
void lw_kafka_source_fail(struct lw_kafka_source *source, const struct lw_error *error);

/* -- lag.c -------------------------------------------------------------------------------------- */

/* Offsets from the next one to give out to the end; false: not known. Never blocks. */
bool lw_kafka_partition_lag(const struct lw_kafka_partition *partition, uint64_t *ret_count);
/* Of all partitions that are ours; false: of none is it known. */
bool lw_kafka_source_lag(struct lw_kafka_source *source, struct lw_lag *ret_lag);

/* -- client.c ------------------------------------------------------------------------------------ */

/*
 * NEW      no client yet
 * MEMBER   subscribed; joins, owns, is asked to give up
 * LEAVING  close_queue was called; events are served until it says closed
 * GONE     closed, or given up after the deadline
 */
enum lw_kafka_client_state {
    LW_KAFKA_CLIENT_NEW,
    LW_KAFKA_CLIENT_MEMBER,
    LW_KAFKA_CLIENT_LEAVING,
    LW_KAFKA_CLIENT_GONE
};

struct lw_kafka_client {
    struct lw_kafka_broker *broker;
    struct lw_list link;
    struct lw_list sources; /* lw_kafka_source.client_link */
    char *group;
    struct lw_properties properties;
    enum lw_kafka_client_state state;
    rd_kafka_t *rk;
    rd_kafka_queue_t *queue;
    struct lw_letter letter;
    bool is_cooperative;
    bool was_assigned; /* a first ASSIGN came */
    bool is_stop_wanted;
    bool is_abandoned; /* gave up waiting for its close */
    int64_t max_poll_interval_ms;
    uint64_t served_at;  /* last time the queue was served */
    uint64_t checked_at; /* last look for stalled partitions */
    char *statistics;

    atomic_bool is_joining;   /* cooperative: a JoinGroup is out; set by the client's thread */
    rd_kafka_event_t *revoke; /* the unanswered event */
    uint32_t revoking_count;  /* partitions whose revoke_done is missing */
    uint64_t revoke_deadline;

    rd_kafka_topic_partition_list_t *commit; /* what was asked for and is not answered */
    int commit_index; /* -1: the whole list is out; else its items go one by one */
    bool is_commit_sent;
    uint32_t commit_repeats; /* the coordinator was moving */
    struct lw_timer commit_timer;
    uintptr_t commit_serial; /* names the request that is out; older answers change nothing */
    enum lw_status commit_status;
    bool is_refreshing; /* companions' offsets are being committed again */

    struct lw_timer revoke_timer;
    struct lw_timer poll_timer; /* keeps the membership when nothing happens */
    struct lw_timer stop_timer; /* polls a close, then ends it */
    uint64_t stop_deadline;
    struct lw_timer missing_timer; /* asks again for topics that do not exist */
    struct lw_timer refresh_timer;
};

struct lw_kafka_client *
lw_kafka_client_create(struct lw_kafka_broker *broker, const char *group);
/* Creates the consumer and subscribes; kbytes is the prefetch of each partition. */
enum lw_status lw_kafka_client_start(struct lw_kafka_client *client, int64_t kbytes,
                                     struct lw_error *ret_error);
/* Joins the group anew after an assignment that could not be carried out. */
void lw_kafka_client_rejoin(struct lw_kafka_client *client);
void lw_kafka_client_stop(struct lw_kafka_client *client);
/* Goes on with a stop as far as it can. */
void lw_kafka_client_continue_stop(struct lw_kafka_client *client);
void lw_kafka_client_destroy(struct lw_kafka_client *client);
struct lw_kafka_source *lw_kafka_client_find(struct lw_kafka_client *client, const char *topic);
/* Of a source's topic or of one of its tiers; NULL when it was never opened. */
struct lw_kafka_partition *lw_kafka_client_find_partition(struct lw_kafka_client *client,
                                                          const char *topic, int32_t number);
/* Calls `fn` for every partition that is ours now. */
void lw_kafka_client_each(struct lw_kafka_client *client, lw_kafka_partition_fn fn, void *user);
/* Log line and statistics events, which every kind of client has. True: it was one of those. */
bool lw_kafka_client_on_common(struct lw_kafka_broker *broker, rd_kafka_event_t *event,
                               char **statistics, const char *who);

/* -- assignment.c ---------------------------------------------------------------------------------- */

void lw_kafka_assignment_init(struct lw_kafka_client *client);
void lw_kafka_assignment_on_event(struct lw_kafka_client *client, rd_kafka_event_t *event);
/* revoke_done of one generation; unknown ones are ignored. */
void lw_kafka_assignment_done(struct lw_kafka_client *client, uint64_t generation);
/* Answers the pending revoke if nothing is waited for any more. */
void lw_kafka_assignment_continue(struct lw_kafka_client *client);
/* Answers it now, whatever is missing. */
void lw_kafka_assignment_force(struct lw_kafka_client *client);

/* -- commit.c -------------------------------------------------------------------------------------- */

void lw_kafka_commit_init(struct lw_kafka_client *client);
enum lw_status
lw_kafka_commit(struct lw_kafka_broker *broker, const struct lw_commit_item *items, size_t n);
void lw_kafka_commit_on_event(struct lw_kafka_client *client, rd_kafka_event_t *event);
/* Sends what was held back while another request was out or a join was under way. */
void lw_kafka_commit_continue(struct lw_kafka_client *client);
/* Ends the commit with `status`; a later answer changes nothing. */
void lw_kafka_commit_abandon(struct lw_kafka_client *client, enum lw_status status);

/* -- companions.c, tiers.c --------------------------------------------------------------------------- */

/* Makes the tiers known to the client, starting at earliest. */
void lw_kafka_companions_prepare(struct lw_kafka_client *client);
/* Adds the tiers' partitions that go with `number` of the source to a list; opens them. */
void lw_kafka_companions_add(struct lw_kafka_source *source, int32_t number,
                             rd_kafka_topic_partition_list_t *list);
void lw_kafka_companions_init(struct lw_kafka_client *client);
/* Asks for the companions' committed offsets; their answer is committed again. */
void lw_kafka_companions_refresh(struct lw_kafka_client *client);
void lw_kafka_companions_on_offsets(struct lw_kafka_client *client, rd_kafka_event_t *event);

/* "orders.retry" + 30000 -> "orders.retry.30s"; NULL without memory. */
char *lw_kafka_tier_name(const char *retry_topic, int64_t delay_ms);
/* The first tier that is at least `delay_ms`, else the longest; NULL without tiers. */
const struct lw_kafka_tier *
lw_kafka_tier_choose(const struct lw_kafka_source *source, int64_t delay_ms);
/* When a tier's message may be given out, in ms since 1970: its header, at most a tier from now. */
int64_t
lw_kafka_tier_due_ms(const rd_kafka_message_t *message, int64_t tier_ms, int64_t wall_ms);

/* -- message.c ------------------------------------------------------------------------------------- */

/* A message's further belongings: its headers once asked for, or all of it once copied out. */
struct lw_kafka_extra;

/* The hot path: nothing but views is written; times and headers are for who asks. */
static inline void
lw_kafka_message_fill(struct lw_message *message, rd_kafka_message_t *from, uint32_t slot)
{
    message->key = (struct lw_bytes){ from->key, from->key_len };
    message->ordering_key = (struct lw_bytes){ NULL, 0 };
    message->value = (struct lw_bytes){ from->payload, from->len };
    message->position = from->offset;
    message->slot = slot;
    message->redeliveries = 0;
    message->owner = from;
    message->entry = NULL;
}

void lw_kafka_message_release(struct lw_kafka_broker *broker,
                              struct lw_message *const messages[], size_t n);
bool lw_kafka_message_detach(struct lw_kafka_broker *broker, struct lw_message *message);
const struct lw_header *
lw_kafka_message_headers(const struct lw_message *message, size_t *ret_count);
void
lw_kafka_message_times(const struct lw_message *message, struct lw_message_times *ret_times);
/* The partition it came from. */
int32_t lw_kafka_message_partition(const struct lw_message *message);

/* -- producer.c, topic.c ------------------------------------------------------------------------------ */

struct lw_kafka_producer {
    struct lw_kafka_broker *broker;
    rd_kafka_t *rk;
    rd_kafka_queue_t *queue;
    struct lw_letter letter;
    struct lw_list topics; /* lw_kafka_topic.link */
    struct lw_list pumps;  /* lw_kafka_topic.pump: something waits for its turn there */
    uint32_t topic_count;
    uint64_t outstanding; /* accepted, without a receipt */
    uint32_t probes;      /* topics that are probing */
    bool wants_room;
    bool is_broken; /* a fatal error: emptied, then replaced */
    bool is_closing;
    struct lw_timer room_timer; /* asks again when nothing else would */
    char *statistics;
};

/*
 * One topic of the producer. `window_bytes` bounds what is out at once; it shrinks when the
 * cluster refused a batch whole, so that no message is called too large but one that was alone.
 */
struct lw_kafka_topic {
    struct lw_list link;
    struct lw_list pump;
    struct lw_kafka_producer *producer;
    char *name;
    rd_kafka_topic_t *rkt;
    const struct lw_kafka_source *tiers_of; /* this is a retry topic with tiers */
    bool is_tier;
    bool is_consumed;           /* the topic of a source */
    bool is_probing;            /* a probe is out */
    _Atomic int32_t partitions; /* 0 not known; written by the partitioner, on any thread */
    uint32_t flying;
    uint64_t flying_bytes;
    const struct lw_publication *alone; /* the only one out since it was sent */
    uint64_t window_bytes;              /* UINT64_MAX: no limit */
    uint64_t window_before_bytes;       /* before the refusal under way */
    bool is_shrunk;                     /* since the last sending */
    bool has_culprit;                   /* one was too large by itself */
    struct lw_publication **waiting;    /* a ring */
    uint32_t waiting_first;
    uint32_t waiting_count;
    uint32_t waiting_capacity;
};

void lw_kafka_producer_init(struct lw_kafka_producer *producer, struct lw_kafka_broker *broker);
enum lw_status
lw_kafka_producer_start(struct lw_kafka_producer *producer, struct lw_error *ret_error);
size_t lw_kafka_producer_publish(struct lw_kafka_producer *producer,
                                 struct lw_publication *const items[], size_t n);
/* Takes back what is out; receipts follow. */
void lw_kafka_producer_close(struct lw_kafka_producer *producer);
/* No callback after this. */
void lw_kafka_producer_silence(struct lw_kafka_producer *producer);
void lw_kafka_producer_deinit(struct lw_kafka_producer *producer);
struct lw_kafka_topic *
lw_kafka_producer_topic(struct lw_kafka_producer *producer, const char *name);
/* Nothing of it is out. */
bool lw_kafka_producer_is_empty(const struct lw_kafka_producer *producer);
/* Gives the receipt of an accepted publication. */
void lw_kafka_producer_receipt(struct lw_kafka_producer *producer,
                               struct lw_publication *publication, enum lw_status status);
/* How a publication ended, from its delivery report. */
enum lw_status
lw_kafka_producer_status(rd_kafka_resp_err_t error, rd_kafka_msg_status_t status);

struct lw_kafka_topic *
lw_kafka_topic_create(struct lw_kafka_producer *producer, const char *name);
void lw_kafka_topic_destroy(struct lw_kafka_topic *topic);
/* Number of partitions of a source's topic or a tier; 0 while not known, and of other topics. */
int32_t lw_kafka_topic_partitions(const struct lw_kafka_topic *topic);
/* The probe came back: the number is known, or the topic does not exist. */
void lw_kafka_topic_on_probe(struct lw_kafka_topic *topic);
/* LW_STATUS_OK: accepted, now or later; LW_STATUS_AGAIN: no room; else refused for good. */
enum lw_status
lw_kafka_topic_send(struct lw_kafka_topic *topic, struct lw_publication *publication);
/* A delivery report. */
void lw_kafka_topic_on_report(struct lw_kafka_topic *topic, struct lw_publication *publication,
                              rd_kafka_resp_err_t error, rd_kafka_msg_status_t status);
/* Sends what waits, as far as the window and the client's room go. */
void lw_kafka_topic_pump(struct lw_kafka_topic *topic);
/* Gives UNAVAILABLE to all that wait. */
void lw_kafka_topic_give_up(struct lw_kafka_topic *topic);

/* -- stall.c ------------------------------------------------------------------------------------------ */

/* Wakes partitions that have messages by the cached watermarks, room, and nothing for long. */
void lw_kafka_stall_check(struct lw_kafka_client *client);

/* -- settings.c ----------------------------------------------------------------------------------------- */

enum lw_kafka_role { LW_KAFKA_ROLE_CONSUMER, LW_KAFKA_ROLE_PRODUCER, LW_KAFKA_ROLE_ADMIN };

/* Builds a configuration: our defaults, the broker's properties, `own` ones, what is ours. */
rd_kafka_conf_t *
lw_kafka_settings_create(struct lw_kafka_broker *broker, enum lw_kafka_role role,
                         const char *group, const struct lw_properties *own,
                         struct lw_error *ret_error);
/* What each partition may prefetch, in KiB, when `partitions` share `prefetch_bytes`. */
int64_t lw_kafka_settings_prefetch_kbytes(int64_t prefetch_bytes, int64_t partitions);

/* -- errors.c -------------------------------------------------------------------------------------------- */

/* E0501 or E0502: the cluster cannot be used; `reason` is the client's text. */
void lw_kafka_error_unreachable(struct lw_kafka_broker *broker, rd_kafka_resp_err_t code,
                                const char *reason, struct lw_error *ret_error);
struct lw_kafka_failure {
    const char *topic;
    const char *group;
    rd_kafka_resp_err_t code;
    const char *reason; /* the client's text */
};

/* E0503, E0504 and others: this topic or group cannot be used. */
void lw_kafka_error_topic(struct lw_kafka_broker *broker,
                          const struct lw_kafka_failure *failure, struct lw_error *ret_error);
enum lw_status lw_kafka_error_status(rd_kafka_resp_err_t code);
/* A request was answered that was sent rtt_us ago, -1 unknown. Any thread. */
void lw_kafka_error_note_answer(struct lw_kafka_broker *broker, int64_t rtt_us);
/* Such an answer came since the last BROKER_DOWN: BROKER_UP, if that is news. */
void lw_kafka_error_check_reached(struct lw_kafka_broker *broker);
/* A log line of a connection that failed: newer clients give no ERROR event for each. */
void lw_kafka_error_on_log(struct lw_kafka_broker *broker, const char *text);
/* An ERROR event of a client: remembers reasons, says BROKER_DOWN. */
void lw_kafka_error_on_event(struct lw_kafka_broker *broker, rd_kafka_resp_err_t code,
                             const char *reason, bool is_needed);

/* -- spent.c ---------------------------------------------------------------------------------------------- */

#define LW_KAFKA_SPENT 1024           /* messages that go back in one burst */
#define LW_KAFKA_SPENT_BYTES 1048576u /* of keys and values, at most, that wait for it */

struct lw_kafka_spent {
    struct lw_host *host;
    struct lw_deferred deferred;
    uint64_t bytes;
    uint32_t count;
    uint32_t seen; /* the count one turn ago */
    rd_kafka_message_t *messages[LW_KAFKA_SPENT];
};

void lw_kafka_spent_init(struct lw_kafka_spent *spent, struct lw_host *host);
/* The message's views are dead from now on. */
void lw_kafka_spent_add(struct lw_kafka_spent *spent, rd_kafka_message_t *message);
/* Before the client is destroyed: it waits for its messages. */
void lw_kafka_spent_flush(struct lw_kafka_spent *spent);

/* -- broker.c -------------------------------------------------------------------------------------------- */

enum lw_kafka_phase {
    LW_KAFKA_NEW,
    LW_KAFKA_STARTING, /* asks how many partitions there are */
    LW_KAFKA_RUNNING,
    LW_KAFKA_CLOSING,
    LW_KAFKA_CLOSED
};

struct lw_kafka_broker {
    struct lw_broker base; /* first */
    char *name;
    char *url;
    char *addresses;
    struct lw_properties properties;
    int64_t prefetch_bytes;
    uint64_t companion_refresh_ns;
    uint64_t stall_ns; /* the shortest of its sources: how often is looked (a quarter of it) */
    enum lw_kafka_phase phase;
    bool is_stopping;
    bool is_silenced;
    bool is_leaked; /* an abandoned consumer lives on and reads this */
    struct lw_list clients;
    struct lw_list sources;
    struct lw_events events;
    struct lw_kafka_producer producer;
    uint64_t live;       /* messages of the client library that are outside of it */
    uint32_t committing; /* clients whose part of the commit in flight is not answered */
    bool is_committing;
    enum lw_status commit_status;
    /* When the last request was sent that was answered, by any thread while not up; one that was
     * sent before the last BROKER_DOWN says nothing. */
    _Atomic uint64_t reached_at;
    atomic_bool is_up_known; /* no thread needs to look */
    uint64_t down_at;        /* of the last BROKER_DOWN */
    bool is_up;
    bool was_up; /* ever */
    bool is_down_said;
    struct lw_timer reach_timer; /* looks at reached_at while not up */
    struct lw_letter closed_letter;
    struct lw_timer start_timer;
    uint64_t start_deadline;
    rd_kafka_resp_err_t failure_code; /* of the last connection that failed */
    char failure[512];
    struct lw_kafka_token *token; /* OAUTHBEARER by client credentials; NULL: not used */
    rd_kafka_message_t *batch[LW_KAFKA_BATCH];
    struct lw_kafka_spent spent;
};

static inline struct lw_kafka_broker *
lw_kafka_broker_of(struct lw_broker *broker)
{
    return (struct lw_kafka_broker *)(void *)broker;
}

/* Registers what tells us about joins and answers; for every client. */
enum lw_status lw_kafka_broker_observe(struct lw_kafka_broker *broker, rd_kafka_conf_t *conf,
                                       struct lw_kafka_client *client);
/* After a client or the producer ended something: goes on with a close. */
void lw_kafka_broker_continue_close(struct lw_kafka_broker *broker);

/* -- admin.c ---------------------------------------------------------------------------------------------- */

enum lw_status
lw_kafka_admin_describe(struct lw_broker *broker, struct lw_topic_info *topics, size_t n,
                        int64_t timeout_ms, struct lw_error *ret_error);
enum lw_status lw_kafka_admin_create(struct lw_broker *broker, struct lw_topic_info *topics,
                                     size_t n, int64_t timeout_ms, struct lw_error *ret_error);

/* -- token.c ---------------------------------------------------------------------------------------------- */

/* True when the properties ask for client credentials (sasl.oauthbearer.method=oidc). */
bool lw_kafka_token_is_wanted(const struct lw_properties *properties);
enum lw_status
lw_kafka_token_create(struct lw_kafka_broker *broker, struct lw_kafka_token **ret_token,
                      struct lw_error *ret_error);
/* Fetches a token for `rk`, non-blocking; sets it, or the failure, on the client. */
void lw_kafka_token_refresh(struct lw_kafka_token *token, rd_kafka_t *rk);
/* `rk` goes away. */
void lw_kafka_token_forget(struct lw_kafka_token *token, rd_kafka_t *rk);
void lw_kafka_token_destroy(struct lw_kafka_token *token);

#endif
