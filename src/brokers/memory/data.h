/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structures of the memory broker, to be read in one sitting:
 *
 *   hub -> topics -> partitions (a log each, its readers, its backlogs)
 *       -> groups -> members (by position: who shares a topic's partitions, what is committed)
 *       -> brokers (one per lw_broker) -> sources (subscriptions) -> slots (a partition each)
 *                                      -> producer, commit in flight, events, one timer
 *
 * A slot reads its partition by a cursor (by position) or through the backlog of its
 * subscription (individually), which remembers every message that is out and not acknowledged.
 * Slots are made once per (source, partition) and kept; `is_assigned` says whether it reads.
 */
#ifndef LW_BROKERS_MEMORY_DATA_H
#define LW_BROKERS_MEMORY_DATA_H

#include <laneway/plugin.h>

#include "base/host.h"
#include "base/list.h"
#include "base/pool.h"
#include "brokers/memory/log.h"

struct lw_memory_broker;
struct lw_memory_group;
struct lw_memory_member;

/* -- The hub's side ---------------------------------------------------------------------------- */

struct lw_memory_topic {
    struct lw_list link; /* of the hub */
    char *name;
    int32_t partition_count;
    struct lw_memory_partition **partitions;
    struct lw_list sources; /* that subscribe to it */
    uint32_t rotation;      /* of keyless messages */
    uint64_t visit;         /* mark of the last walk over a group's topics */
    uint64_t stalled_until; /* 0: not stalled */
};

struct lw_memory_partition {
    struct lw_memory_topic *topic;
    int32_t number;
    struct lw_memory_log log;
    struct lw_list readers;  /* assigned slots */
    struct lw_list backlogs; /* of subscriptions that settle individually */
};

struct lw_memory_injected {
    struct lw_list link;
    struct lw_memory_fault fault; /* its topic is ours */
};

struct lw_memory_hub {
    struct lw_list link; /* of the named ones */
    char *name;          /* NULL: private */
    uint32_t holders;
    struct lw_memory_options options;
    struct lw_list topics;
    struct lw_list groups;
    struct lw_list brokers;
    struct lw_list faults;
    struct lw_memory_stats stats;
    struct lw_memory_observer observer;
    uint64_t visit;
    uint64_t last_member_id;
    uint64_t last_consumer_id;
    uint32_t stalled_count; /* of topics */
    bool has_no_room;
    uint64_t down_since;
    uint64_t down_until;  /* 0: it is up */
    bool is_session_over; /* of everybody, while it is down */
};

/* -- Groups: by position ----------------------------------------------------------------------- */

/* A rebalance: REVOKING until all have answered, JOINING for the join delay, then assigned. */
enum lw_memory_group_state {
    LW_MEMORY_GROUP_STABLE,   /* next: REVOKING, when somebody came, went or asked */
    LW_MEMORY_GROUP_REVOKING, /* next: JOINING, when every revoke is answered or overdue */
    LW_MEMORY_GROUP_JOINING   /* next: STABLE, with the new assignment */
};

struct lw_memory_group {
    struct lw_list link;
    char *name;
    struct lw_list members;
    struct lw_list offsets;
    enum lw_memory_group_state state;
    bool is_due;       /* a rebalance is wanted */
    bool lacks_memory; /* not everything could be given out */
    uint64_t epoch;    /* assignments so far; a commit belongs to one */
    uint64_t assign_at;
    struct lw_memory_source **targets; /* scratch: owner of each partition of one topic */
    int32_t target_capacity;
};

/* What a group committed in one topic. */
struct lw_memory_offsets {
    struct lw_list link;
    struct lw_memory_topic *topic;
    int32_t count;
    int64_t *positions; /* -1 none */
    char **metadata;
};

struct lw_memory_member {
    struct lw_list link;             /* of the group */
    struct lw_list broker_link;      /* of the broker */
    struct lw_memory_broker *broker; /* NULL: died without a word */
    struct lw_memory_group *group;
    struct lw_list sources;
    uint64_t id;
    uint64_t generation; /* eager: of the assignment that is being made, 0 not yet */
    bool is_joined;
    bool is_expelled; /* overran a revoke; it does not know yet */
    bool is_leaving;
    bool is_rejoining;   /* lost all; its commits mean nothing until it is assigned again */
    uint32_t revokes;    /* REVOKING events without an answer */
    uint64_t revoke_due; /* then it is expelled */
    uint64_t expires_at; /* of a dead one */
};

/* -- Backlogs: individually -------------------------------------------------------------------- */

/* Where an unacknowledged message is. */
enum lw_memory_entry_place {
    LW_MEMORY_ENTRY_OUT,     /* a slot has it; next: READY, DELAYED, ACKED, DONE */
    LW_MEMORY_ENTRY_READY,   /* to be delivered again; next: OUT, ACKED, DONE */
    LW_MEMORY_ENTRY_DELAYED, /* the same, but not yet; next: READY, ACKED, DONE */
    LW_MEMORY_ENTRY_ACKED,   /* the rest of its batch is not; next: READY, DONE */
    LW_MEMORY_ENTRY_DONE     /* acknowledged; goes with its last reference */
};

/* Messages that were published as one: they go to one slot, and their acks count together. */
struct lw_memory_batch {
    struct lw_list members;
    uint32_t left; /* without an ack */
};

struct lw_memory_entry {
    void *pool_link;
    struct lw_list out; /* of the slot that has it; READY by key: of its hash */
    struct lw_memory_chunk *chunk;
    struct lw_memory_record *record;
    struct lw_memory_backlog *backlog;
    struct lw_memory_slot *slot;   /* while OUT */
    struct lw_memory_batch *batch; /* NULL: alone */
    struct lw_list member;         /* of the batch */
    uint32_t redeliveries;
    uint32_t refs; /* messages that point here, and one while it is in a heap */
    uint8_t place;
    uint8_t hash;     /* of its key */
    bool is_in_heap;  /* also when it is not wanted there any more */
    bool is_key_held; /* counted in its hash's `held` */
    uint64_t due;     /* DELAYED: then; else 0 */
};

struct lw_memory_heap {
    struct lw_memory_entry **entries;
    uint32_t count;
    uint32_t capacity;
};

enum { LW_MEMORY_HASHES = 64 };

/* All keys with one hash. They go to `owner`, once `holder` has nothing of them any more. */
struct lw_memory_hash {
    struct lw_memory_slot *owner;  /* NULL: nobody is there */
    struct lw_memory_slot *holder; /* while held > 0 */
    uint32_t held;                 /* given out and not acknowledged */
    struct lw_list waiting;        /* READY entries, by position */
};

/* Key_Shared: which member has which keys. */
struct lw_memory_keys {
    struct lw_memory_hash hashes[LW_MEMORY_HASHES];
    uint32_t waiting;
};

struct lw_memory_backlog {
    struct lw_list link; /* of the partition */
    struct lw_memory_partition *partition;
    char *subscription;
    struct lw_memory_cursor cursor; /* what was never delivered */
    bool is_shared;                 /* or by key: settled one by one, without rewinds */
    struct lw_memory_slot *holder;  /* the one slot that reads, exclusive and failover */
    struct lw_list consumers;       /* slots in order of their coming, failover and by key */
    struct lw_memory_keys *keys;    /* NULL: not by key */
    struct lw_memory_heap ready;    /* by position, since they are due at 0 */
    struct lw_memory_heap delayed;  /* by due time, then position */
    struct lw_pool entries;
    uint64_t unsettled; /* entries that are not done */
};

/* -- The members' side -------------------------------------------------------------------------- */

struct lw_memory_slot {
    struct lw_list reader; /* of the partition */
    struct lw_list ready;  /* of the source */
    struct lw_memory_source *source;
    struct lw_memory_partition *partition;
    uint32_t number;
    bool is_assigned;
    bool is_companion;
    bool is_revoking; /* its generation was announced to end and is not answered */
    uint64_t generation;
    uint64_t due; /* its head may be delivered then; LW_NEVER: it does not wait */
    struct lw_memory_cursor cursor;
    int64_t next_position; /* what the dispatcher knows: nothing below comes any more */
    struct lw_memory_backlog *backlog;
    struct lw_memory_backlog *joined; /* takes part there, though it may not read now */
    struct lw_list consumer;          /* of that */
    uint64_t consumer_id;
    struct lw_list sent; /* entries that came with their batch and were not received yet */
    struct lw_list out;  /* entries that it has */
    uint32_t unacked;    /* entries in both */
    bool is_blocked;     /* has as many as it may have, until half of them are settled */
    uint64_t rewind_at;  /* exclusive, after a nack; LW_NEVER none */
};

enum lw_memory_reset { LW_MEMORY_EARLIEST, LW_MEMORY_LATEST, LW_MEMORY_NO_RESET };

/* The dispatcher's struct lw_source. */
struct lw_memory_source {
    struct lw_list link;        /* of the broker */
    struct lw_list member_link; /* of the member */
    struct lw_list topic_link;  /* of the topic, once that exists */
    struct lw_list ready;       /* slots that may have something */
    struct lw_memory_broker *broker;
    struct lw_memory_member *member; /* by position */
    struct lw_memory_topic *topic;   /* NULL: does not exist yet */
    char *topic_name;
    char *subscription;
    char *retry_topic;
    int64_t *tiers_ms;
    size_t tier_count;
    bool reads_tiers;
    enum lw_memory_reset reset;
    uint32_t demand_messages;
    uint32_t *rooms; /* by slot, what may come now; NULL: no bound */
    bool is_held;    /* receives nothing: a revoke waits, the hub is down, stopped */
    bool is_stopped;
    bool is_missing_said; /* that its topic does not exist was said */
    bool is_refused;      /* exclusive: somebody else has it */
    uint64_t retry_at;
    uint32_t used; /* scratch of the assignor */
    struct lw_memory_slot **slots;
    uint32_t slot_count;
    uint32_t slot_capacity;
    struct lw_error error;
};

struct lw_memory_pending {
    struct lw_publication *publication;
    uint64_t due;
    enum lw_status status;
    bool is_stored; /* goes into the log when due */
};

struct lw_memory_producer {
    struct lw_memory_pending *items; /* a ring */
    uint32_t first;
    uint32_t count;
    uint32_t capacity;
    bool owes_room; /* said no room: PUBLISH_ROOM must follow */
};

struct lw_memory_commit_entry {
    struct lw_memory_member *member;
    struct lw_memory_partition *partition;
    int64_t position;
    uint64_t epoch; /* of the group, when it was sent */
};

struct lw_memory_commit {
    struct lw_memory_commit_entry *entries;
    size_t count;
    size_t capacity;
    bool is_in_flight;
    uint64_t due;
    enum lw_status status;
    size_t first_stored; /* entries before it are lost */
};

struct lw_memory_events {
    struct lw_event *items; /* a ring */
    size_t first;
    size_t count;
    size_t capacity;
    size_t lost; /* LOST events among them: until they are read, commits come too late */
};

enum lw_memory_broker_state {
    LW_MEMORY_BROKER_NEW,        /* next: CONNECTING by start, VANISHED, CLOSED */
    LW_MEMORY_BROKER_CONNECTING, /* next: UP in its time if the hub is there, VANISHED, CLOSED */
    LW_MEMORY_BROKER_UP,         /* next: DOWN, VANISHED, CLOSED */
    LW_MEMORY_BROKER_DOWN,       /* the hub cannot be reached; next: UP, VANISHED, CLOSED */
    LW_MEMORY_BROKER_VANISHED,   /* its process is dead for the hub; next: CLOSED */
    LW_MEMORY_BROKER_CLOSED      /* end */
};

struct lw_memory_broker {
    struct lw_broker base;
    struct lw_list link; /* of the hub */
    struct lw_memory_hub *hub;
    char *name;
    enum lw_memory_broker_state state;
    bool is_stopping; /* stop_sources */
    uint64_t connect_at;
    struct lw_list sources;
    uint64_t sources_due; /* no source has work of its own before */
    struct lw_list members;
    struct lw_memory_events events;
    struct lw_memory_producer producer;
    struct lw_memory_commit commit;
    struct lw_timer timer;
    struct lw_deferred deferred;
    uint64_t held; /* messages received and not released */
    struct lw_error error;
};

#endif
