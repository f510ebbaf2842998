/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A delivery: one message in our hands, from receipt to settlement. It is in exactly one state,
 * moved by lw_delivery_set_state, which asserts the move; the states and their next ones are at
 * `enum lw_state`.
 *
 * The loop thread owns everything but `outcome` and `mail`, which belong to the handler while the
 * delivery runs. Deliveries come from a pool and never move; a delivery stays where it is until
 * its handler returned, so a pointer and a serial name a run even across threads.
 */
#ifndef LW_CORE_DELIVERY_H
#define LW_CORE_DELIVERY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <laneway/plugin.h>

#include "base/assert.h"
#include "base/list.h"
#include "base/mailbox.h"
#include "base/text.h"
#include "base/timers.h"

#define LW_REASON_MAX 512
#define LW_OUTPUTS_MAX 1024

/*
 *   QUEUED      waits in its lane or its subscription's queue
 *               next: RUNNING, JUDGED (given up), SETTLED (done already, given back), DROPPED
 *   RUNNING     an engine has it
 *               next: JUDGED, QUEUED (nobody is charged), DROPPED (its generation ended)
 *   JUDGED      the verdict is known, something is owed; waits for room or a publish retry
 *               next: PUBLISHING, PARKED, SETTLED, DROPPED
 *   PARKED      waits for its retry time; keeps its lane, not its slot
 *               next: QUEUED, JUDGED (given up), SETTLED (given back), DROPPED
 *   PUBLISHING  reply, outputs, retry copy or dead letter are on their way
 *               next: SETTLED, JUDGED (refused or unknown: published again), DROPPED
 *   SETTLED     end: acked, nacked, marked done or given back
 *   DROPPED     end: its generation is over; a late answer is counted and ignored
 */
enum lw_state {
    LW_STATE_FREE,
    LW_STATE_QUEUED,
    LW_STATE_RUNNING,
    LW_STATE_JUDGED,
    LW_STATE_PARKED,
    LW_STATE_PUBLISHING,
    LW_STATE_SETTLED,
    LW_STATE_DROPPED
};

struct lw_lane;
struct lw_partition;
struct lw_subscription;
struct lw_outcome;

void lw_outcome_clear(struct lw_outcome *outcome);

/* A reply or further output, its bytes in `bytes` (offsets, since the buffer may move). */
struct lw_stored_output {
    bool is_reply;
    bool has_key, has_value;
    size_t topic, topic_size; /* topic_size 0: the reply topic */
    size_t key, key_size;
    size_t value, value_size;
    size_t headers;      /* start of the first header record in `bytes` */
    size_t header_count; /* each record: two uint32 sizes, name, value */
    int64_t delay_ms;
};

/*
 * Since when an engine puts a message off without a charge. The outcome's memory outlives its
 * message, so this says whose it is.
 */
struct lw_hold {
    uint64_t generation;
    int64_t position;
    uint64_t since; /* ns; 0 never */
};

/* What a handler said beside the verdict; made on first use, kept with the delivery's memory. */
struct lw_outcome {
    char reason[LW_REASON_MAX + 1];
    int code; /* with LW_ERROR: the error class */
    bool has_code;
    int signal;          /* that killed the worker, 0 none */
    int64_t delay_ms;    /* with LW_RETRY: -1 the configured backoff */
    bool is_uncharged;   /* this attempt does not count; with LW_RETRY, again after delay_ms */
    struct lw_hold hold; /* outlives a clear */
    /* The engine's count of crashes that this message was charged, over its runs. */
    uint32_t crashes;
    uint64_t crashes_generation; /* whose they are: the memory serves many messages */
    int64_t crashes_position;
    struct lw_text bytes;
    struct lw_stored_output *outputs;
    uint32_t output_count;
    uint32_t output_capacity;
};

struct lw_delivery {
    struct lw_message message;
    struct lw_queue_node link; /* lane, subscription queue, engine's list, done list */
    struct lw_list held;       /* of the partition */
    struct lw_lane *lane;      /* NULL: unordered */
    struct lw_subscription *subscription;
    struct lw_partition *partition;
    struct lw_delivery *task_next; /* the next member of its task, NULL: it is the last */
    struct lw_outcome *outcome;    /* NULL: nothing said beside the verdict */
    struct lw_completions *completions;
    struct lw_mail mail;
    _Atomic uint32_t serial; /* of the run; changes at every start */
    uint8_t state;           /* enum lw_state */
    uint8_t verdict;         /* enum lw_verdict, once it returned */
    bool is_inside_call;     /* its handler function is on the stack of the loop thread */
    bool is_detached;        /* pins no client memory */
    union {
        struct {
            bool is_late;  /* its attempt's time is over but it still runs */
            bool is_batch; /* a task of its handler may have several members */
        };
        uint16_t is_special; /* either: one look keeps it off the shortest way */
    };
    bool is_opened; /* while stashed: its position was opened before */
    bool is_alone;  /* where tasks have several members: it may have no company */
    bool is_each;   /* of a task's first: its members have verdicts of their own */
    atomic_bool is_cancelled;
    uint32_t attempt;                 /* runs here, from 1 at the first start */
    uint32_t held_bytes;              /* what the limits were charged */
    uint64_t received_at;             /* ns, of the receive batch */
    uint64_t started_at;              /* ns, of the dispatch cycle */
    uint64_t deadline;                /* ns, of the attempt, LW_NEVER none; the engine's */
    uint64_t pinned_mark;             /* partition's received bytes when this one came */
    struct lw_timer timer;            /* parked or publish retry */
    struct lw_publishing *publishing; /* the dispatcher's, while JUDGED or PUBLISHING */
    void *engine_data;                /* the engine's, while RUNNING */
    /* Of a task that may have several members, while RUNNING, see is_batch: */
    struct lw_delivery *task_first;
    uint32_t task_number;    /* of the first: no other that runs has it */
    uint32_t task_count;     /* of the first: members */
    uint32_t task_answers;   /* of the first: verdicts that its handler gave */
    uint32_t task_cancelled; /* of the first: members whose result is not wanted */
};

/* Where engines leave finished tasks; owned by the dispatcher. */
struct lw_completions {
    struct lw_mailbox mailbox; /* from other threads */
    struct lw_queue done;      /* from the loop thread, by `link` */
    struct lw_host *host;
};

void lw_completions_init(struct lw_completions *completions, struct lw_host *host, int wake_fd);

/*
 * Moves on the path of a message, where the state before is known: two instructions instead of a
 * look into the table. tests/core/test_delivery.c holds every such move against the table.
 */
static inline void
lw_delivery_move(struct lw_delivery *delivery, enum lw_state from, enum lw_state to)
{
    lw_assert(delivery->state == (uint8_t)from);
    delivery->state = (uint8_t)to;
}

/* Moves to `next` or asserts. */
void lw_delivery_set_state(struct lw_delivery *delivery, enum lw_state next);
const char *lw_state_name(enum lw_state state);
bool lw_state_may_follow(enum lw_state from, enum lw_state to);

/*
 * Begins the first run of a delivery that answers before anybody else can see it: like
 * lw_delivery_begin_run, with the answer claimed already. The state is the caller's.
 */
static inline void
lw_delivery_begin_direct(struct lw_delivery *delivery, uint64_t now, uint64_t deadline)
{
    uint32_t serial = atomic_load_explicit(&delivery->serial, memory_order_relaxed);
    atomic_store_explicit(&delivery->serial, (serial | 1) + 2, memory_order_relaxed);
    atomic_store_explicit(&delivery->is_cancelled, false, memory_order_relaxed);
    delivery->attempt = 1;
    delivery->started_at = now;
    delivery->deadline = deadline;
    if (__builtin_expect(delivery->outcome != NULL, 0)) {
        lw_outcome_clear(delivery->outcome);
    }
}

/* Begins a run: new serial, attempt + 1, outcome cleared, mail open. */
void lw_delivery_begin_run(struct lw_delivery *delivery, uint64_t now);
/* The outcome, made when missing; NULL without memory (then the verdict stands alone). */
struct lw_outcome *lw_delivery_outcome(struct lw_delivery *delivery);
void lw_outcome_destroy(struct lw_outcome *outcome);
void lw_outcome_set_reason(struct lw_outcome *outcome, const char *reason, size_t length);
/* Stores a reply (is_reply) or output, copied; AGAIN without memory, TOO_LARGE above the bound. */
enum lw_status
lw_outcome_add(struct lw_outcome *outcome, bool is_reply, const struct lw_output *output);
/* Views into the outcome, valid until the next lw_outcome_add; headers go into `headers`
 * (room for output->header_count). */
void lw_outcome_view(const struct lw_outcome *outcome, uint32_t index,
                     struct lw_output *ret_view, struct lw_header *headers);
const char *lw_delivery_reason(const struct lw_delivery *delivery); /* "" when none */

#endif
