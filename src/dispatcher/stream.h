/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream: a subscription together with its source at the broker, its engine, its failure policy
 * and where its copies go, every default resolved. Owns the partitions of its source.
 */
#ifndef LW_DISPATCHER_STREAM_H
#define LW_DISPATCHER_STREAM_H

#include <laneway/plugin.h>

#include "base/hourly.h"
#include "base/latency.h"
#include "base/timers.h"
#include "core/partition.h"
#include "core/subscription.h"
#include "policy/judge.h"
#include "policy/origin.h"

struct lw_link;
struct lw_dispatcher;

#define LW_TIERS_MAX 16
#define LW_SETTLE_BATCH 256
#define LW_UNPLACED_MAX 16

/* A partition that was assigned when there was no memory for it: what its event said. */
struct lw_unplaced {
    uint32_t slot;
    int32_t partition;
    uint64_t generation;
    const char *topic;
    int64_t position;
    bool is_companion;
};

struct lw_counters {
    uint64_t received;
    uint64_t received_bytes;
    uint64_t started;
    uint64_t tasks;        /* handler calls, where they take several messages */
    uint64_t mismatches;   /* of them: fewer or more verdicts than messages */
    uint64_t taken_apart;  /* of them: failed as a whole, its messages run again alone */
    uint64_t results[5];   /* by enum lw_verdict, after error classes */
    uint64_t settled[6];   /* by enum lw_settled */
    uint64_t published[4]; /* by enum lw_publication_kind, confirmed */
    uint64_t publish_failures[4];
    uint64_t dead_reasons[6]; /* by enum lw_cause */
    uint64_t stale;           /* returned after the partition was taken away */
    uint64_t late;            /* returned after the attempt's time */
    uint64_t held;            /* on_exhausted: hold, or a dead letter that no topic takes */
    uint64_t undecodable;     /* received, and no handler could be given them */
    uint64_t duplicates;      /* positions received twice in one ownership */
};

struct lw_stream {
    struct lw_subscription subscription; /* first */
    struct lw_dispatcher *dispatcher;
    struct lw_link *link;
    struct lw_source *source;
    struct lw_policy policy;
    struct lw_partition **slots; /* by lw_message.slot; NULL: not ours now */
    uint32_t *rooms; /* by slot: how many may come of it, while partitions share the limit */
    struct lw_unplaced unplaced[LW_UNPLACED_MAX];
    uint32_t unplaced_count; /* they are not received, and placed when there is memory */
    bool is_blind;           /* one of them cannot be told apart when receiving: none is */
    bool is_held_back;       /* only partitions above their share had something to give */
    bool is_sharing;         /* the broker holds `rooms` */
    uint64_t
        awaited_until; /* new partitions' room is kept for them; 0 not, LW_NEVER: not yet */
    struct lw_timer awaited_timer; /* then there is a turn */
    struct lw_timer gather_timer;  /* what waits for company has waited long enough */
    uint32_t slot_count;
    uint32_t max_uncommitted;
    uint32_t held_back_at; /* so many were in hand when it was held back last */
    enum lw_header_family family;

    char *topic;
    char *name;
    char *pipeline;
    char *retry_topic;       /* NULL none */
    char *dead_letter_topic; /* NULL: off */
    char *reply_topic;       /* NULL none */
    char *reply_key;         /* "keep", "none" or a header's name */
    struct lw_link *dead_letter_link;
    struct lw_link *reply_link;
    enum lw_payload payload;
    char **allow;
    size_t allow_count;
    struct lw_error_class *errors;
    int64_t tiers_ms[LW_TIERS_MAX];
    size_t tier_count;
    bool reads_tiers;
    bool is_retry_external;
    bool ignores_delays; /* its broker gives it delayed messages at once */

    struct lw_settle_item settle_items[LW_SETTLE_BATCH];
    uint32_t settle_count;
    struct lw_list settle_link; /* in the dispatcher's list when settle_count > 0 */

    uint32_t demanded;
    uint64_t demanded_at; /* the first demand since something was received, 0 none */
    uint64_t starved_at;  /* nothing to choose here though a slot was to be had, 0 not so */
    uint64_t worse_ended; /* runs of worse ones that were over by then */
    uint64_t received_at; /* last time something came, or the assignment */
    uint32_t batch_max;   /* received at once; small while handlers on the loop are slow */
    uint32_t blocking;    /* publications whose target takes nothing: no intake while > 0 */
    bool has_more;        /* the broker said that it has more */
    bool is_on_demand;    /* it cannot say so: it gives only what was demanded */
    struct lw_counters counters;
    uint64_t ran_at;                /* ns, of the cycle that started a handler last */
    struct lw_hourly dead;          /* dead letters */
    struct lw_latency handler_time; /* from a handler's start to its answer */
};

/*
 * Makes a stream with every default resolved for `link`'s broker; checks what can be checked.
 * `engine` is borrowed. The source is opened by lw_stream_open.
 */
enum lw_status lw_stream_create(struct lw_dispatcher *dispatcher,
                                const struct lw_subscription_options *options,
                                struct lw_link *link, struct lw_engine *engine,
                                struct lw_stream **ret_stream, struct lw_error *ret_error);
void lw_stream_destroy(struct lw_stream *stream);
enum lw_status
lw_stream_open(struct lw_stream *stream, const struct lw_subscription_options *options,
               struct lw_error *ret_error);
/* Takes the subscription back at the broker, before start only, and destroys the stream. */
void lw_stream_close(struct lw_stream *stream);
/* Puts the partition of an ASSIGNED event into its slot; NULL without memory. */
struct lw_partition *lw_stream_assign(struct lw_stream *stream, const struct lw_event *event);
/* Remembers it for later, its messages stay at the broker; false when too many wait already. */
bool lw_stream_put_off(struct lw_stream *stream, const struct lw_event *event);
/* Tries the i-th of those again; it leaves their list when it was placed. */
struct lw_partition *lw_stream_assign_again(struct lw_stream *stream, uint32_t i);
/* Their generation is over: forgets them. */
void lw_stream_forget(struct lw_stream *stream, uint64_t generation);

#endif
