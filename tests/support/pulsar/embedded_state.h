/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the embedded broker share: its objects and who may do what to them. A session
 * is one TCP connection; it is never closed while frames are handled: it is doomed, and buried at
 * the end of the turn. Subscriptions are served there as well (embedded_want_dispatch), so that
 * nothing is sent to anybody in the middle of something else. Positions are entry numbers in the
 * topic; ids of ledgers and entries exist only on the wire.
 */
#ifndef TESTS_SUPPORT_PULSAR_EMBEDDED_STATE_H
#define TESTS_SUPPORT_PULSAR_EMBEDDED_STATE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/ssl.h>

#include "base/assert.h"
#include "base/text.h"
#include "brokers/pulsar/wire/crc32c.h"
#include "tests/support/pulsar/embedded.h"

enum {
    EMBEDDED_NAME_BYTES = 512,
    EMBEDDED_SLOTS = 65536,
    EMBEDDED_ROOM_BYTES = 4 * 1024 * 1024, /* dispatch stops while more waits for a socket */
    EMBEDDED_AHEAD_MAX = 4096,             /* entries that Key_Shared reads past blocked ones */
};

/* -- Time --------------------------------------------------------------------------------------- */

struct embedded_alarm {
    struct lw_list link;
    int64_t due_ms;
    void (*fn)(struct embedded_alarm *alarm);
};

/* -- Topics ------------------------------------------------------------------------------------- */

struct embedded_entry {
    uint8_t *rest; /* the payload part as it came */
    size_t rest_size;
    int32_t messages;
    bool is_readable; /* its metadata */
    bool is_chunk;
    uint32_t hash; /* of its key, 31 bits */
    int64_t publish_ms;
    int64_t deliver_at_ms; /* 0: at once */
    char uuid[64];
};

struct embedded_ledger {
    uint64_t id;
    uint64_t first; /* number of its first entry */
};

struct embedded_dedup {
    struct lw_list link;
    char name[EMBEDDED_NAME_BYTES];
    int64_t last;
};

struct embedded_topic {
    struct lw_list link;
    struct embedded *broker;
    char name[EMBEDDED_NAME_BYTES]; /* canonical */
    int32_t partition;              /* -1: none */
    int owner;                      /* member */
    bool is_persistent;
    bool is_looked_up;
    bool is_terminated;
    bool is_redirect_loop;
    char migrated_to[256]; /* empty: it is not */
    struct embedded_entry *entries;
    uint64_t count;  /* entries that exist */
    uint64_t stored; /* entries in memory: fewer when they are given again and again */
    uint64_t capacity;
    uint64_t messages;
    uint64_t epoch; /* of exclusive producers */
    struct embedded_ledger *ledgers;
    uint32_t ledger_count;
    struct lw_list subscriptions;
    struct lw_list producers; /* in order of coming; embedded_producer.in_topic */
    struct lw_list dedup;
    int32_t schema_type; /* -1: none */
    char *schema;
};

struct embedded_partitions {
    struct lw_list link;
    char name[EMBEDDED_NAME_BYTES];
    uint32_t count;
};

/* -- Subscriptions ------------------------------------------------------------------------------- */

enum {
    CELL_ACKED = 1,
    CELL_PENDING = 2,
    CELL_REPLAY = 4, /* read, to be sent before what was not read */
    CELL_DELAYED = 8,
};

struct embedded_cell {
    uint32_t owner;       /* serial of the consumer that has it pending */
    uint32_t acked_scope; /* consumer and epoch that acknowledged it, or some of it */
    uint16_t redeliveries;
    uint8_t flags;
    uint64_t *set; /* members not acknowledged; NULL: all */
};

struct embedded_slot {
    uint32_t owner; /* serial of the consumer that has entries of it pending */
    uint32_t pending;
    uint32_t blocked; /* number of the pass in which something of it could not be sent */
};

struct embedded_ring_point {
    uint32_t hash;
    uint32_t serial;
};

struct embedded_chunked {
    struct lw_list link;
    char uuid[64];
    uint32_t serial;
};

struct embedded_subscription {
    struct lw_list link;
    struct lw_list ready; /* in embedded.ready */
    struct embedded_topic *topic;
    char name[EMBEDDED_NAME_BYTES];
    int32_t type;
    bool is_durable;
    bool is_sticky;
    bool is_unordered; /* allowOutOfOrderDelivery */
    struct embedded_cell *cells;
    uint64_t capacity;
    uint64_t mark;        /* everything before is acknowledged */
    uint64_t read;        /* the next new entry */
    uint64_t acked_above; /* acknowledged at mark and after */
    uint64_t pending;
    uint64_t replay;
    uint64_t replay_low; /* no replay before it */
    uint64_t delayed;
    struct embedded_alarm delay_alarm;
    struct lw_list consumers; /* in order of joining; embedded_consumer.in_subscription */
    struct lw_list chunked;
    uint32_t turn; /* serial of the consumer that got the last entry */
    /* Failover */
    uint32_t active; /* serial; 0: none */
    struct embedded_alarm failover_alarm;
    /* Key_Shared */
    struct embedded_slot *slots;
    struct embedded_ring_point *ring;
    uint32_t ring_count;
    uint32_t pass;
};

/* -- Connections and what hangs on them ---------------------------------------------------------- */

struct embedded_member {
    int fd;
    int tls_fd;
    uint16_t port;
    uint16_t tls_port;
    bool is_proxy;
    struct lw_watch *watch;
    struct lw_watch *tls_watch;
    struct embedded *broker;
    char url[64];
    char tls_url[64];
};

struct embedded_buffer {
    uint8_t *data;
    size_t at; /* what was taken */
    size_t size;
    size_t capacity;
};

enum embedded_greeting { GREETING_NONE, GREETING_CHALLENGED, GREETING_DONE };

struct embedded_session {
    struct lw_list link;
    struct embedded *broker;
    int fd;
    struct lw_watch *watch;
    SSL *ssl;          /* NULL: plain */
    bool is_open;      /* TCP, or TLS after its handshake */
    int member;        /* whom it talks to; behind a proxy: the broker */
    bool is_via_proxy; /* a lookup connection of a proxy */
    enum embedded_greeting greeting;
    int32_t version;
    struct lw_pulsar_feature_flags flags;
    struct embedded_buffer in;
    struct embedded_buffer out;
    uint64_t bytes_in;
    uint64_t bytes_out;
    bool is_doomed;
    bool is_cut; /* what waits is not sent */
    bool is_silent;
    bool is_stopped;   /* reads no more */
    bool is_waiting;   /* a frame is delayed, and all behind it */
    bool skips_faults; /* the delayed frame was looked at already */
    bool is_full;      /* dispatch found no room */
    bool was_heard;    /* since the last PING */
    struct embedded_alarm keep_alive;
    struct embedded_alarm challenge;
    struct embedded_alarm delay;
    struct lw_list producers;
    struct lw_list consumers;
    struct lw_list watchers;
    struct lw_list recent; /* producer ids that the broker closed: their SENDs vanish */
};

struct embedded_producer {
    struct lw_list link;     /* in the session */
    struct lw_list in_topic; /* */
    struct embedded_session *session;
    struct embedded_topic *topic;
    uint64_t id;
    uint64_t request_id; /* while it waits */
    char name[EMBEDDED_NAME_BYTES];
    int32_t access;
    uint64_t epoch; /* of the topic */
    bool is_waiting;
    bool is_fenced; /* its next SEND ends the connection */
    uint64_t receipts;
};

struct embedded_consumer {
    struct lw_list link;            /* in the session */
    struct lw_list in_subscription; /* */
    struct embedded_session *session;
    struct embedded_subscription *subscription;
    uint64_t id;
    uint32_t serial; /* unique in the broker, from 1 */
    uint32_t scope;  /* of acknowledgements: this and the epoch */
    char name[EMBEDDED_NAME_BYTES];
    int32_t priority;
    int64_t permits;
    uint64_t granted;
    uint64_t messages_sent;
    uint64_t entries_sent;
    uint64_t unacked; /* messages */
    bool is_blocked;  /* too many unacknowledged */
    bool has_flowed;
    bool was_told_end;
    bool has_epoch;
    uint64_t epoch;
    int64_t quota;  /* entries that it may still get in this round */
    uint32_t index; /* among equal names, in order of joining */
    struct lw_pulsar_range *ranges;
    uint32_t range_count;
};

struct embedded_watcher {
    struct lw_list link;
    struct embedded_session *session;
    uint64_t id;
    char namespace_name[EMBEDDED_NAME_BYTES];
    char pattern[EMBEDDED_NAME_BYTES];
};

struct embedded_recent {
    struct lw_list link;
    uint64_t id;
};

/* A name that somebody holds is wanted: the holder is asked whether it lives. */
struct embedded_contest {
    struct lw_list link;
    struct embedded_alarm alarm;
    struct embedded *broker;
    struct embedded_session *holder;
    struct embedded_session *session; /* who wants it */
    uint8_t *command;
    size_t command_size;
    int32_t error;
    uint64_t request_id;
    char text[EMBEDDED_NAME_BYTES];
};

/* A frame that goes out later. */
struct embedded_late {
    struct lw_list link;
    struct embedded_alarm alarm;
    struct embedded_session *session;
    size_t size;
    uint8_t data[];
};

struct embedded_rule {
    struct lw_list link;
    struct embedded_fault fault;
    char text[256];
    uint32_t seen; /* matches so far */
    uint32_t left;
};

struct embedded {
    struct lw_host *host;
    struct embedded_settings settings;
    int64_t offset_ms;
    int64_t started_ms;
    struct lw_timer timer;
    struct lw_list alarms; /* by time */
    struct lw_deferred work;
    struct embedded_member *members[8];
    int member_count;
    SSL_CTX *tls;
    struct lw_list sessions;
    struct lw_list topics;
    struct lw_list partitioned;
    struct lw_list ready; /* subscriptions to be served */
    struct lw_list contests;
    struct lw_list late;
    struct lw_list rules;
    uint64_t next_ledger;
    uint64_t next_name;
    uint32_t next_serial;
    uint32_t next_scope;
    bool is_dying;
    struct embedded_counts counts;
};

/* -- embedded.c: memory, time, members ----------------------------------------------------------- */

void *embedded_new(size_t size); /* zeroed; ends the program without memory */
void *embedded_bigger(void *array, uint64_t count, size_t size);
void *embedded_copy(const void *data, size_t size);
void embedded_text(char *out, size_t size, struct lw_bytes bytes);
struct lw_bytes embedded_bytes(const char *text);
void embedded_arm(struct embedded *broker, struct embedded_alarm *alarm, int64_t due_ms);
void embedded_disarm(struct embedded_alarm *alarm);
void embedded_alarm_init(struct embedded_alarm *alarm, void (*fn)(struct embedded_alarm *));
void embedded_want_work(struct embedded *broker);
void embedded_want_dispatch(struct embedded_subscription *subscription);

/* -- embedded_session.c: sockets and bytes -------------------------------------------------------- */

void embedded_accept(struct embedded *broker, int listener, int member, bool is_tls);
/* Ends it at the end of the turn; what was written still goes out unless it is cut. */
void embedded_doom(struct embedded_session *session, bool is_cut);
/* The same for what a client must not do; counted. */
void embedded_protest(struct embedded_session *session, const char *why);
void embedded_bury(struct embedded *broker);
void embedded_flush(struct embedded_session *session);
void embedded_watch_again(struct embedded_session *session);
void embedded_parse(struct embedded_session *session);
bool embedded_has_room(const struct embedded_session *session);
/* Room for one frame at the end of the output; complete it by embedded_output_end. */
uint8_t *embedded_output_begin(struct embedded_session *session, size_t size);
void embedded_output_end(struct embedded_session *session, int32_t type, size_t size);
void embedded_output_raw(struct embedded_session *session, const void *data, size_t size);

/* -- embedded_fault.c ------------------------------------------------------------------------------ */

/* The rule that concerns this frame now, counted as used; NULL: none. */
struct embedded_fault *
embedded_match(struct embedded *broker, enum embedded_direction direction, int32_t type);
/* How many of `size` more bytes may pass before the connection is cut. */
size_t embedded_cut_at(struct embedded *broker, enum embedded_direction direction,
                       uint64_t passed, size_t size);
/* Writes the answer that refuses the command. */
void embedded_refuse(struct embedded_session *session, const struct lw_pulsar_command *command,
                     int32_t error, const char *text);

/* -- embedded_serve.c: commands --------------------------------------------------------------------- */

/* One frame, faults applied; false: it has to wait (is_waiting). */
bool
embedded_take(struct embedded_session *session, struct lw_bytes command, struct lw_bytes rest);
void embedded_handle(struct embedded_session *session, const struct lw_pulsar_command *command,
                     struct lw_bytes rest);
void embedded_reply(struct embedded_session *session, const struct lw_pulsar_command *command);
void embedded_succeed(struct embedded_session *session, uint64_t request_id);
void embedded_fail(struct embedded_session *session, uint64_t request_id, int32_t error,
                   const char *text);
void embedded_session_start(struct embedded_session *session);
/* Asks the holder; `command` is done again when it is dead, refused when it lives. */
void embedded_contest_begin(struct embedded_session *session, struct embedded_session *holder,
                            const struct lw_pulsar_command *command, uint64_t request_id,
                            int32_t error, const char *text);
void embedded_contest_heard(struct embedded_session *holder);
void embedded_contest_end(struct embedded_session *gone);

/* -- embedded_lookup.c -------------------------------------------------------------------------------- */

void embedded_on_partitions(struct embedded_session *session,
                            const struct lw_pulsar_partitioned_metadata *command);
void
embedded_on_lookup(struct embedded_session *session, const struct lw_pulsar_lookup *command);
void embedded_on_get_topics(struct embedded_session *session,
                            const struct lw_pulsar_get_topics *command);
void embedded_on_watch(struct embedded_session *session,
                       const struct lw_pulsar_watch_topic_list *command);
void embedded_on_watch_close(struct embedded_session *session,
                             const struct lw_pulsar_watch_topic_list_close *command);
void embedded_on_get_schema(struct embedded_session *session,
                            const struct lw_pulsar_get_schema *command);
void embedded_on_create_schema(struct embedded_session *session,
                               const struct lw_pulsar_get_or_create_schema *command);
void embedded_tell_watchers(struct embedded *broker, const char *topic, bool is_new);
/* Finds the topic of a PRODUCER or SUBSCRIBE, or refuses it. */
struct embedded_topic *
embedded_admit(struct embedded_session *session, const struct lw_pulsar_command *command,
               struct lw_bytes name, uint64_t request_id, bool creates);

/* -- embedded_topic.c ---------------------------------------------------------------------------------- */

/* The canonical form; false: it is no name. */
bool embedded_canonical(struct lw_bytes name, char *out, size_t size);
/* Length of the name without "-partition-N", and N or -1. */
size_t embedded_base(const char *name, int32_t *ret_partition);
struct embedded_topic *embedded_topic_find(const struct embedded *broker, const char *name);
struct embedded_topic *embedded_topic_get(struct embedded *broker, const char *name);
struct embedded_partitions *
embedded_partitions_find(const struct embedded *broker, struct lw_bytes name);
const struct embedded_entry *
embedded_entry_at(const struct embedded_topic *topic, uint64_t number);
void embedded_id_of(const struct embedded_topic *topic, uint64_t number, uint64_t *ret_ledger,
                    uint64_t *ret_entry);
/* False: no such entry. */
bool embedded_number_of(const struct embedded_topic *topic, uint64_t ledger, uint64_t entry,
                        uint64_t *ret_number);
/* Where an id stands among the entries: itself if it exists, else the next higher one. */
uint64_t
embedded_position_of(const struct embedded_topic *topic, uint64_t ledger, uint64_t entry);
void embedded_ledger_start(struct embedded_topic *topic);
/* Copies the payload part; returns the number of the entry. `send` is NULL for none. */
uint64_t embedded_append(struct embedded_topic *topic, struct lw_bytes rest,
                         const struct lw_pulsar_send *send);
void embedded_entry_read(struct embedded_entry *entry, const struct lw_pulsar_send *send);
void embedded_topic_free(struct embedded_topic *topic);
void embedded_partitions_free(struct embedded *broker);

/* -- embedded_produce.c --------------------------------------------------------------------------------- */

void
embedded_on_producer(struct embedded_session *session, const struct lw_pulsar_command *command);
void embedded_on_send(struct embedded_session *session, const struct lw_pulsar_send *send,
                      struct lw_bytes rest);
void embedded_on_close_producer(struct embedded_session *session,
                                const struct lw_pulsar_close *command);
void embedded_producer_free(struct embedded_producer *producer);
void
embedded_producers_close(struct embedded_topic *topic, const char *url, const char *tls_url);

/* -- embedded_subscribe.c -------------------------------------------------------------------------------- */

void embedded_on_subscribe(struct embedded_session *session,
                           const struct lw_pulsar_command *command);
void embedded_on_close_consumer(struct embedded_session *session,
                                const struct lw_pulsar_close *command);
void embedded_on_unsubscribe(struct embedded_session *session,
                             const struct lw_pulsar_unsubscribe *command);
struct embedded_consumer *
embedded_consumer_find(const struct embedded_session *session, uint64_t id);
struct embedded_subscription *
embedded_subscription_find(const struct embedded_topic *topic, struct lw_bytes name);
struct embedded_subscription *
embedded_subscription_new(struct embedded_topic *topic, struct lw_bytes name, int32_t type);
void embedded_subscription_free(struct embedded_subscription *subscription);
/* Takes it away from its subscription, which serves the others; says nothing to the client. */
void embedded_consumer_free(struct embedded_consumer *consumer);
/* CLOSE_CONSUMER to all of them. */
void embedded_consumers_close(struct embedded_subscription *subscription, const char *url,
                              const char *tls_url);
struct embedded_consumer *
embedded_consumer_of(const struct embedded_subscription *subscription, uint32_t serial);

/* -- embedded_failover.c ---------------------------------------------------------------------------------- */

/* Who should be active now; NULL: nobody is there. */
struct embedded_consumer *
embedded_failover_choose(const struct embedded_subscription *subscription);
/* Before SUCCESS: tells a joiner that it is not the one. */
void embedded_failover_joined(struct embedded_consumer *consumer);
void embedded_failover_changed(struct embedded_subscription *subscription);
void embedded_on_failover_alarm(struct embedded_alarm *alarm);

/* -- embedded_keys.c ---------------------------------------------------------------------------------------- */

uint32_t embedded_entry_slot(const struct embedded_subscription *subscription,
                             const struct embedded_entry *entry);
/* Who gets that slot; NULL: nobody. */
struct embedded_consumer *
embedded_slot_owner(const struct embedded_subscription *subscription, uint32_t slot);
void embedded_ring_make(struct embedded_subscription *subscription);
/* Whether the ranges of a joiner meet those of another. */
bool embedded_ranges_meet(const struct embedded_subscription *subscription,
                          const struct lw_pulsar_range *ranges, uint32_t count);
uint32_t embedded_key_hash(const struct lw_pulsar_metadata *metadata);

/* -- embedded_dispatch.c --------------------------------------------------------------------------------------- */

void embedded_dispatch(struct embedded_subscription *subscription);
void embedded_on_flow(struct embedded_session *session, const struct lw_pulsar_flow *flow);
void embedded_on_delay_alarm(struct embedded_alarm *alarm);
/* To those who have permits now; nothing is kept. */
void embedded_pass_on(struct embedded_topic *topic, struct embedded_entry *entry);

/* -- embedded_cells.c: what became of each entry ---------------------------------------------------------------- */

void embedded_cells_cover(struct embedded_subscription *subscription, uint64_t count);
bool embedded_cell_is_acked(const struct embedded_subscription *subscription, uint64_t number);
/* Members that are not acknowledged yet. */
int32_t embedded_cell_left(const struct embedded_subscription *subscription, uint64_t number);
void embedded_cell_pend(struct embedded_consumer *consumer, uint64_t number);
/* Takes it from whoever has it pending. */
void embedded_cell_unpend(struct embedded_subscription *subscription, uint64_t number);
void embedded_cell_replay(struct embedded_subscription *subscription, uint64_t number);
void embedded_cell_unreplay(struct embedded_subscription *subscription, uint64_t number);
void embedded_cell_ack(struct embedded_subscription *subscription, uint64_t number);
/* Moves the mark; `forgets` redelivery counts and everything acknowledged behind it. */
void embedded_cells_reset(struct embedded_subscription *subscription, uint64_t mark);
/* Reads again from the first that is not acknowledged. */
void embedded_cells_rewind(struct embedded_subscription *subscription, bool forgets);
uint64_t embedded_backlog(const struct embedded_subscription *subscription);
/* Keeps only the given members of a set; true: something was new. */
bool embedded_cell_keep(struct embedded_subscription *subscription, uint64_t number,
                        const struct lw_pulsar_list *words);

/* -- embedded_ack.c ------------------------------------------------------------------------------------------------ */

void embedded_on_ack(struct embedded_session *session, const struct lw_pulsar_ack *ack);
void embedded_on_redeliver(struct embedded_session *session,
                           const struct lw_pulsar_redeliver *command);
void embedded_violation(struct embedded *broker, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* -- embedded_seek.c ------------------------------------------------------------------------------------------------ */

void embedded_on_seek(struct embedded_session *session, const struct lw_pulsar_seek *seek);
void embedded_on_last_id(struct embedded_session *session,
                         const struct lw_pulsar_get_last_message_id *command);
void embedded_on_stats(struct embedded_session *session,
                       const struct lw_pulsar_consumer_stats *command);

#endif
