/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hub: a whole broker in memory, joined by any number of memory brokers (its members), and
 * what tests, the demo and the command may do to it directly. It lives as long as somebody holds
 * it (an open, or a broker made for "memory:NAME"). Everything happens on one thread, at the time
 * of the hosts of its brokers, so it runs on a moved clock as well as on a real loop.
 *
 * Two ways to settle, one per hub: by position (consumer groups, rebalances, committed offsets,
 * as Kafka) or individually (acks, nacks, redelivery, as Pulsar's four types).
 */
#ifndef LW_BROKERS_MEMORY_HUB_H
#define LW_BROKERS_MEMORY_HUB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <laneway/laneway.h>

struct lw_memory_hub;
struct lw_memory_record;

enum lw_memory_mode { LW_MEMORY_POSITION, LW_MEMORY_INDIVIDUAL };
/* Eager: every rebalance takes everything away first. Cooperative: only what moves. */
enum lw_memory_protocol { LW_MEMORY_EAGER, LW_MEMORY_COOPERATIVE };
/*
 * Shared: all members of a subscription, nacks by message. Exclusive: one member, nacks rewind.
 * Failover: as exclusive, but others wait, and each partition has one active member. Key_Shared: as
 * shared, but the unacknowledged messages of a key are at one member at a time.
 */
enum lw_memory_sharing {
    LW_MEMORY_SHARED,
    LW_MEMORY_EXCLUSIVE,
    LW_MEMORY_FAILOVER,
    LW_MEMORY_KEY_SHARED
};

struct lw_memory_options {
    enum lw_memory_mode mode;         /* POSITION */
    enum lw_memory_protocol protocol; /* EAGER */
    enum lw_memory_sharing sharing;   /* SHARED */
    bool is_closed_world;             /* false: topics are created on first use */
    int32_t default_partitions;       /* 1: of topics created on first use */
    size_t message_bytes_max;         /* 1 MiB: key, value and headers */
    uint64_t retained_count;          /* 0: a partition keeps all */
    uint64_t retained_bytes;          /* 0: a partition keeps all */
    uint32_t publish_queue_max;       /* 100,000 publications without a receipt, per broker */
    uint64_t connect_latency_ns;      /* 0 */
    uint64_t publish_latency_ns;      /* 0: the receipt comes in the next turn */
    uint64_t commit_latency_ns;       /* 0 */
    uint64_t fetch_latency_ns;        /* 0: from publishing until it can be received */
    uint64_t join_delay_ns;           /* 0: from the last revoke to the new assignment */
    uint64_t revoke_timeout_ns;       /* 5 s: the deadline in REVOKING events */
    uint64_t rebalance_timeout_ns;    /* 30 s: then an unanswered revoke costs membership */
    uint64_t session_timeout_ns;      /* 10 s: until a silent member is given up */
    uint64_t nack_delay_ns;           /* 60 s: of nacks with delay -1 */
    uint32_t unacked_max;   /* 0: no bound; messages without an ack at one slot, if shared */
    bool undoes_batch_acks; /* a lost slot brings whole batches again, what was acked as well */
};

void lw_memory_options_init(struct lw_memory_options *options);

/*
 * Finds or makes the hub of that name and holds it; `options` counts for a new one (NULL: the
 * defaults). `name` NULL or "": a new hub that nobody else finds. NULL without memory.
 */
struct lw_memory_hub *
lw_memory_hub_open(const char *name, const struct lw_memory_options *options);
void lw_memory_hub_close(struct lw_memory_hub *hub); /* NULL is fine */
/* The options in use; latencies and time-outs may be changed while it runs. */
struct lw_memory_options *lw_memory_hub_options(struct lw_memory_hub *hub);

/* -- Topics and their contents ------------------------------------------------------------- */

/* INVALID for a bad name or count; ALREADY when it exists with as many or more partitions;
 * else creates it or adds partitions (members are rebalanced). */
enum lw_status
lw_memory_hub_create_topic(struct lw_memory_hub *hub, const char *topic, int32_t partitions);
/* The hub's own string of a topic's name, which lives as long as the hub; NULL without it. */
const char *lw_memory_hub_name(const struct lw_memory_hub *hub, const char *topic);
/* Partitions of a topic, 0 when there is none. */
int32_t lw_memory_hub_partitions(const struct lw_memory_hub *hub, const char *topic);

struct lw_memory_item {
    const char *topic;
    int32_t partition; /* -1: by key (murmur2), round robin without one */
    struct lw_bytes key;
    struct lw_bytes ordering_key;
    struct lw_bytes value;
    const struct lw_header *headers;
    size_t header_count;
    int64_t event_time_ms; /* -1 none */
    int64_t delay_ms;      /* individual and shared: not delivered before */
    uint32_t batch_left;   /* so many more of its batch follow at once in the same partition */
    const char *fault;     /* static; not NULL: nobody can read it, and why */
};

/* An item with partition -1 and no event time. */
struct lw_memory_item lw_memory_item_of(const char *topic, const char *key, const char *value);
/* Publishes at once, without receipts and faults; the outputs may be NULL. */
enum lw_status
lw_memory_hub_publish(struct lw_memory_hub *hub, const struct lw_memory_item *item,
                      int32_t *ret_partition, int64_t *ret_position);
/* Makes a hole: the message is gone, its position stays (compaction). */
enum lw_status lw_memory_hub_delete(struct lw_memory_hub *hub, const char *topic,
                                    int32_t partition, int64_t position);
/* Appends positions that hold no message (transaction markers). */
enum lw_status lw_memory_hub_skip(struct lw_memory_hub *hub, const char *topic,
                                  int32_t partition, int64_t count);
/* Drops everything below `position` (retention). */
enum lw_status lw_memory_hub_raise_start(struct lw_memory_hub *hub, const char *topic,
                                         int32_t partition, int64_t position);
/* Loses the whole log: the next message has position 0; its readers lose their assignment. */
enum lw_status
lw_memory_hub_truncate(struct lw_memory_hub *hub, const char *topic, int32_t partition);
int64_t lw_memory_hub_start(const struct lw_memory_hub *hub, const char *topic,
                            int32_t partition); /* -1 without such a partition */
int64_t
lw_memory_hub_end(const struct lw_memory_hub *hub, const char *topic, int32_t partition);

/* One message as it is stored; dies with the call. */
struct lw_memory_view {
    const char *topic;
    int32_t partition;
    int64_t position;
    struct lw_bytes key;
    struct lw_bytes ordering_key;
    struct lw_bytes value;
    const struct lw_header *headers;
    size_t header_count;
    int64_t timestamp_ms;
    int64_t event_time_ms;
};
typedef void (*lw_memory_view_fn)(const struct lw_memory_view *view, void *user);
/* Shows every message of a topic, partition after partition; fn may be NULL. Returns how many. */
size_t lw_memory_hub_each(const struct lw_memory_hub *hub, const char *topic,
                          lw_memory_view_fn fn, void *user);

/* -- Groups and subscriptions ---------------------------------------------------------------- */

/* The committed next position, -1 when none; *ret_metadata (may be NULL) lives until the next
 * commit. By position only. */
int64_t
lw_memory_hub_committed(const struct lw_memory_hub *hub, const char *group, const char *topic,
                        int32_t partition, const char **ret_metadata);
enum lw_status
lw_memory_hub_set_committed(struct lw_memory_hub *hub, const char *group, const char *topic,
                            int32_t partition, int64_t position);
/* Puts metadata to a position that is committed. */
enum lw_status
lw_memory_hub_set_metadata(struct lw_memory_hub *hub, const char *group, const char *topic,
                           int32_t partition, const char *metadata);
/* Members of a group that hold their place, dead ones included until their session ends. */
size_t lw_memory_hub_member_count(const struct lw_memory_hub *hub, const char *group);
/* Name of the broker that owns the partition now, NULL when none. */
const char *lw_memory_hub_owner(const struct lw_memory_hub *hub, const char *group,
                                const char *topic, int32_t partition);
/* Messages not yet settled: above the committed position, or without an ack. */
uint64_t lw_memory_hub_backlog(const struct lw_memory_hub *hub, const char *subscription,
                               const char *topic);

/* Told at once of what the hub stores and gives; for tests. Each may be NULL. */
struct lw_memory_observer {
    void (*appended)(const struct lw_memory_view *view, void *user);
    void (*committed)(const char *group, const char *topic, int32_t partition, int64_t position,
                      void *user);
    /* Individually: a message is given out; a member settles one, whatever becomes of that. */
    void (*given)(const struct lw_memory_view *view, uint32_t redeliveries, void *user);
    void (*settled)(const struct lw_memory_view *view, bool is_ack, void *user);
    void *user;
};
void
lw_memory_hub_observe(struct lw_memory_hub *hub, const struct lw_memory_observer *observer);

struct lw_memory_stats {
    uint64_t published; /* receipts with ok, and direct publications */
    uint64_t refused;
    uint64_t received;
    uint64_t commits; /* accepted */
    uint64_t commits_failed;
    uint64_t acks;
    uint64_t acks_repeated; /* for a message that was acknowledged already */
    uint64_t acks_lost;
    uint64_t acks_undone; /* of batches that came again before they were complete */
    uint64_t nacks;
    uint64_t rebalances; /* finished */
    uint64_t expulsions;
};
struct lw_memory_stats lw_memory_hub_stats(const struct lw_memory_hub *hub);

/* -- Faults ------------------------------------------------------------------------------------ */

enum lw_memory_fault_kind {
    LW_MEMORY_REFUSE_PUBLISH, /* receipt with `status`; not stored */
    LW_MEMORY_LOSE_RECEIPT,   /* receipt UNKNOWN; stored if is_applied */
    LW_MEMORY_SLOW_PUBLISH,   /* later by delay_ns; what follows waits too */
    LW_MEMORY_FAIL_COMMIT,    /* COMMITTED with `status`; stored if is_applied */
    LW_MEMORY_SPLIT_COMMIT,   /* all but the first entry stored, the error is on the whole */
    LW_MEMORY_SLOW_COMMIT,    /* later by delay_ns */
    LW_MEMORY_LOSE_ACK,     /* the ack never arrives: redelivered after the connection's end */
    LW_MEMORY_DELIVER_TWICE /* the message comes once more right away */
};

/* The next `count` chances after `skip` others. */
struct lw_memory_fault {
    enum lw_memory_fault_kind kind;
    const char *topic; /* NULL: any */
    uint32_t skip;
    uint32_t count;
    enum lw_status status;
    bool is_applied;
    uint64_t delay_ns;
};

enum lw_status
lw_memory_hub_inject(struct lw_memory_hub *hub, const struct lw_memory_fault *fault);
void lw_memory_hub_clear_faults(struct lw_memory_hub *hub);
/* No room: publish accepts nothing until it is given back (PUBLISH_ROOM follows). */
void lw_memory_hub_set_room(struct lw_memory_hub *hub, bool has_room);
/* Nobody can reach it for that long. */
void lw_memory_hub_set_down(struct lw_memory_hub *hub, uint64_t duration_ns);
/* Delivers nothing of that topic for that long, though everything looks well. */
void lw_memory_hub_stall(struct lw_memory_hub *hub, const char *topic, uint64_t duration_ns);
/* Every member of the group joins again. */
void lw_memory_hub_rebalance(struct lw_memory_hub *hub, const char *group);
/* The member loses its assignment without warning, then joins again; by the broker's name. */
void lw_memory_hub_lose(struct lw_memory_hub *hub, const char *broker);

#endif
