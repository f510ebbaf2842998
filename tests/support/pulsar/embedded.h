/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Pulsar broker for tests: memory only, one listening socket per member, on the host of the
 * client under test, so that one thread and one loop drive both. It speaks through the codec of
 * brokers/pulsar/wire and shares no other line with the client. What a real broker does, odd
 * things included, is its model: over-dispatch of whole batches, seeks that close consumers,
 * silence to a fenced producer. Its clock (delays, keep-alive, failover) can be moved ahead.
 * Memory comes from the C library, not from base/alloc: a sweep that fails the n-th allocation
 * and the count of live ones concern the client alone; the broker gives up without memory.
 */
#ifndef TESTS_SUPPORT_PULSAR_EMBEDDED_H
#define TESTS_SUPPORT_PULSAR_EMBEDDED_H

#include "base/host.h"
#include "brokers/pulsar/wire/message.h"
#include "brokers/pulsar/wire/server_error.h"

struct embedded;

/* May be changed at any time by embedded_settings; files and port at creation only. */
struct embedded_settings {
    uint16_t port;            /* of member 0; 0: a free one */
    int32_t max_message_size; /* 5 MiB; what the next CONNECTED says */
    bool proxy_flag;     /* proxy_through_service_url in LOOKUP answers, as standalone: true */
    bool needs_lookup;   /* PRODUCER and SUBSCRIBE want a LOOKUP since start or unload: true */
    bool creates_topics; /* true */
    bool is_batch_index_ack; /* true */
    bool is_deduplicating;
    bool has_entry_metadata;   /* 0x0e02 to clients that announce it */
    bool has_topic_watchers;   /* true */
    bool tells_end;            /* REACHED_END_OF_TOPIC: true */
    bool enforces_schema;      /* a producer without schema is refused on a topic with one */
    bool succeeds_before_seek; /* SUCCESS of a SEEK comes before its CLOSE_CONSUMER */
    uint32_t read_batch;       /* entries per read: 100 */
    uint32_t unacked_max;      /* messages per consumer, Shared and Key_Shared; 0: no limit */
    size_t write_bytes_max;    /* per write(2); 1: byte by byte; 0: no limit */
    int64_t keep_alive_ms;     /* 30,000; 0: neither pings nor closes */
    int64_t liveness_ms;       /* how long the holder of a name may be silent: 5,000 */
    int64_t failover_delay_ms; /* before a new active consumer gets anything: 1,000 */
    int64_t delay_tick_ms;     /* 0: exact; else shorter delays are none, others come early */
    int64_t warmup_ms;         /* "Namespace not found" for so long after creation */
    int64_t challenge_ms;      /* to answer AUTH_CHALLENGE: 2,000 */
    bool challenges_first;     /* AUTH_CHALLENGE before CONNECTED */
    const char *auth_method;   /* NULL: everybody may come; "token", "basic" */
    const char *auth_data;     /* the token, or "user:password" */
    const char
        *tls_certificate_file; /* PEM; with a key: every member listens for TLS as well */
    const char *tls_key_file;
    const char *tls_trust_file; /* clients must have a certificate signed by these */
};

void embedded_settings_init(struct embedded_settings *settings);
/* Listens on 127.0.0.1 at once. Settings (and texts in them) are copied as they are. */
struct embedded *
embedded_create(struct lw_host *host, const struct embedded_settings *settings);
void embedded_destroy(struct embedded *broker); /* NULL is fine */
struct embedded_settings *embedded_settings(struct embedded *broker);
/* Moves the broker's clock ahead and does what became due. */
void embedded_pass_ms(struct embedded *broker, int64_t ms);
int64_t embedded_now_ms(struct embedded *broker); /* since 1970, moved */

/* -- Members of the cluster ------------------------------------------------------------------ */

/* Another address, of a broker or of a proxy in front of all; returns its number (first: 0). */
int embedded_add_member(struct embedded *broker, bool is_proxy);
const char *embedded_url(const struct embedded *broker, int member);     /* pulsar:// */
const char *embedded_tls_url(const struct embedded *broker, int member); /* NULL without TLS */
/* Owner of a topic; lookups elsewhere are redirected to it. Default: member 0. */
void embedded_set_owner(struct embedded *broker, const char *topic, int member);
/* Refuses TCP connections, or takes them again on the same port. */
void embedded_set_listening(struct embedded *broker, int member, bool is_listening);
/* LOOKUPs of a topic are sent in circles between two members. */
void embedded_set_redirect_loop(struct embedded *broker, const char *topic, bool is_on);

/* -- Topics; names in any spelling ------------------------------------------------------------ */

void embedded_create_topic(struct embedded *broker, const char *topic);
/* Creates or grows; subscriptions of the others are made on new partitions. */
void embedded_set_partitions(struct embedded *broker, const char *topic, uint32_t count);
/* At the topic's beginning unless `is_latest`. */
void embedded_create_subscription(struct embedded *broker, const char *topic, const char *name,
                                  int32_t type, bool is_latest);
void embedded_set_schema(struct embedded *broker, const char *topic, int32_t type,
                         const char *definition);
void embedded_terminate(struct embedded *broker, const char *topic);
/* Closes producers and consumers; with a member: that is the new owner, named if `is_assigned`. */
void
embedded_unload(struct embedded *broker, const char *topic, int new_owner, bool is_assigned);
void embedded_delete_topic(struct embedded *broker, const char *topic);
/* TOPIC_MIGRATED to `url` for all that is and comes; NULL ends it. */
void embedded_migrate(struct embedded *broker, const char *topic, const char *url);
void embedded_close_producers(struct embedded *broker, const char *topic);
void embedded_close_consumers(struct embedded *broker, const char *topic);

/* A plain message, or a batch of equal ones; returns the entry's number in the topic. */
struct embedded_publish {
    const char *key; /* NULL: none */
    const char *ordering_key;
    struct lw_bytes value;
    int32_t batch; /* 0: not a batch; else its members */
    int64_t deliver_at_ms;
    bool has_wrong_checksum;
};
uint64_t embedded_publish(struct embedded *broker, const char *topic,
                          const struct embedded_publish *message);
/* One entry of exactly these bytes, which need not be a message: what a broker does not look at. */
uint64_t embedded_store(struct embedded *broker, const char *topic,
                        const struct lw_pulsar_metadata *metadata, struct lw_bytes body);
/* `messages` of `bytes` each, keys k0 ... (none if 0), `batch` in an entry (0: no batches). */
void embedded_fill(struct embedded *broker, const char *topic, uint64_t messages, size_t bytes,
                   uint32_t keys, uint32_t batch);
/* The same from at most 1,024 entries that are made once and given again and again. */
void embedded_feed(struct embedded *broker, const char *topic, uint64_t messages, size_t bytes,
                   uint32_t keys, uint32_t batch);

/* -- Faults ------------------------------------------------------------------------------------ */

enum embedded_fault_kind {
    EMBEDDED_DROP,       /* the connection ends before the frame is handled or written */
    EMBEDDED_DROP_AFTER, /* ... after it */
    EMBEDDED_CUT,        /* ... when `bytes` of a connection passed; no frame is looked at */
    EMBEDDED_LOSE,       /* the frame vanishes */
    EMBEDDED_DUPLICATE,
    EMBEDDED_DELAY,        /* by `ms`: in, all behind it waits too; out, others overtake */
    EMBEDDED_REFUSE,       /* in: answered with `error` and `text`, not done */
    EMBEDDED_CHECKSUM,     /* out, MESSAGE: the checksum is wrong */
    EMBEDDED_GARBAGE,      /* bytes that are no frame come before it, then the end */
    EMBEDDED_UNKNOWN,      /* out: a command of type 999 comes before it */
    EMBEDDED_SILENCE,      /* from here on nothing is answered, PING included */
    EMBEDDED_STOP_READING, /* from here on nothing is read */
    EMBEDDED_CALL,         /* `fn` is called before it */
};
enum embedded_direction { EMBEDDED_IN, EMBEDDED_OUT, EMBEDDED_BOTH };

struct embedded_fault {
    enum embedded_fault_kind kind;
    enum embedded_direction direction; /* as the broker sees it */
    int32_t type;                      /* of the command; 0: every one */
    uint32_t nth;                      /* the first match that it concerns: 1, or 0 for it */
    uint32_t times;                    /* matches that it concerns: 0 is 1; UINT32_MAX: all */
    int32_t error;                     /* enum lw_pulsar_server_error */
    const char *text;
    int64_t ms;
    uint64_t bytes;
    void (*fn)(void *user);
    void *user;
};
void embedded_add_fault(struct embedded *broker, const struct embedded_fault *fault);
void embedded_clear_faults(struct embedded *broker); /* silence and stopped reading too */
uint32_t embedded_faults_left(const struct embedded *broker);
void embedded_drop_all(struct embedded *broker); /* connections, at once */
void embedded_restart(struct embedded *broker);  /* that, and redelivery counts are forgotten */
void embedded_challenge(struct embedded *broker); /* AUTH_CHALLENGE on every connection */

/* A command that nothing caused, to every client. */
void embedded_say(struct embedded *broker, const struct lw_pulsar_command *command);

/* -- What happened ------------------------------------------------------------------------------ */

struct embedded_counts {
    uint64_t in[LW_PULSAR_COMMAND_TYPE_MAX + 1];  /* frames by type of command */
    uint64_t out[LW_PULSAR_COMMAND_TYPE_MAX + 1]; /* handed to the socket's buffer */
    uint64_t frames_in;
    uint64_t frames_out;
    uint64_t bytes_in;
    uint64_t bytes_out;
    uint64_t connections; /* ever accepted */
    uint64_t messages_stored;
    uint64_t messages_sent;   /* members of batches counted as charged */
    uint64_t permits_granted; /* sum of all FLOWs */
    int64_t permits_max;      /* the most that one consumer had at a time */
    int64_t overdrawn_min;    /* the least (negative: batches) */
    uint64_t ack_commands;
    uint64_t ack_commands_cumulative;
    uint64_t acked_ids;
    uint64_t acks_strange;    /* of an id that was not pending at that consumer */
    uint64_t acks_invalid[5]; /* by LW_PULSAR_INVALID_ */
    uint64_t redelivered;     /* entries asked back, one by one or by all */
    uint64_t
        violations; /* an id acknowledged twice in one connection and epoch, and the like */
    uint64_t protocol_errors; /* connections closed for what the client did */
    char first_violation[160];
    char last_error[160]; /* the reason of the last protocol error */
};
const struct embedded_counts *embedded_counts(const struct embedded *broker);
void embedded_reset_counts(struct embedded *broker);
/* What is there now: nothing of it may be left when a client closed. */
uint32_t embedded_connections(const struct embedded *broker);
uint32_t embedded_producers(const struct embedded *broker, const char *topic); /* NULL: all */
uint32_t embedded_consumers(const struct embedded *broker, const char *topic); /* NULL: all */

bool embedded_has_topic(const struct embedded *broker, const char *topic);
uint64_t embedded_entry_count(const struct embedded *broker, const char *topic);
uint64_t embedded_message_count(const struct embedded *broker, const char *topic);
/* What a producer stored; views live until the topic goes. False: there is none, or unreadable. */
bool embedded_entry(const struct embedded *broker, const char *topic, uint64_t number,
                    struct lw_pulsar_metadata *ret_metadata, struct lw_bytes *ret_body);

struct embedded_subscription_info {
    uint64_t mark;    /* entries before it are all acknowledged */
    uint64_t backlog; /* entries not acknowledged */
    uint64_t pending; /* entries at consumers, not acknowledged */
    uint64_t waiting; /* entries to be sent again */
    uint64_t delayed;
    uint32_t consumers;
    int64_t permits; /* of all consumers */
    uint64_t unacked_messages;
    char active[128]; /* name of the active consumer */
};
bool embedded_subscription(const struct embedded *broker, const char *topic, const char *name,
                           struct embedded_subscription_info *ret_info);
bool embedded_is_acked(const struct embedded *broker, const char *topic, const char *name,
                       uint64_t entry);
/* The same by id; an id that is none counts as acknowledged. */
bool embedded_id_is_acked(const struct embedded *broker, const char *topic, const char *name,
                          uint64_t ledger, uint64_t entry);
/* Of the consumer with that name: what it has and got. False: there is none. */
struct embedded_consumer_info {
    uint64_t id;
    int64_t permits;
    uint64_t permits_granted;
    uint64_t messages_sent;
    uint64_t entries_sent;
    uint64_t unacked_messages;
    uint64_t epoch;
    bool is_active;
};
bool embedded_consumer(const struct embedded *broker, const char *topic, const char *name,
                       struct embedded_consumer_info *ret_info);

/* -- Hashes of Key_Shared ------------------------------------------------------------------------ */

uint32_t embedded_hash(struct lw_bytes key);         /* murmur3, 31 bits */
uint32_t embedded_slot_sticky(struct lw_bytes key);  /* mod 65,536, 0 is 1 */
uint32_t embedded_slot_divided(struct lw_bytes key); /* auto-split: mod 65,535, plus 1 */

#endif
