/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A subscription as the scheduler sees it: a topic with its priority, ordering and limits, the
 * work that is ready, and counts of what is in hand. Leaves the broker, the handler and the
 * failure policy to the dispatcher's stream, which begins with it.
 */
#ifndef LW_CORE_SUBSCRIPTION_H
#define LW_CORE_SUBSCRIPTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "core/gather.h"
#include "core/limits.h"
#include "core/ranks.h"
#include "core/window.h"

/* Which lane a message of the subscription waits in. */
enum lw_lanes_kind {
    LW_LANES_NONE,     /* none: unordered */
    LW_LANES_KEY,      /* its key's; all without a key share one */
    LW_LANES_KEYED,    /* its key's; those without a key are unordered */
    LW_LANES_PARTITION /* its partition's */
};

struct lw_delivery;

/* What a delivery is asked that needs a clock or the origin of its message. Any thread. */
struct lw_view_ops {
    uint32_t (*retries)(const struct lw_delivery *delivery);
    size_t (*message_id)(const struct lw_delivery *delivery, char *out, size_t size);
    uint64_t (*now)(void); /* monotonic ns */
    /* More than the delivery's own flag tells; NULL: nothing more. */
    bool (*is_cancelled)(const struct lw_delivery *delivery);
};

struct lw_subscription {
    struct lw_rank_node choose;  /* in the scheduler's ready map when it may be chosen */
    struct lw_rank_node receive; /* in the receive map when the broker has something and room */
    struct lw_list ready;        /* lanes */
    struct lw_list urgent;       /* lanes whose head blocks a commit */
    struct lw_queue loose;       /* unordered deliveries */
    struct lw_limits limits;
    struct lw_window window;
    const char *topic;
    const char *name; /* subscription or consumer group */
    const char *pipeline;
    int32_t priority;
    uint32_t index;            /* order of subscribing */
    enum lw_ordering ordering; /* resolved, never DEFAULT */
    enum lw_keyless keyless;   /* resolved */
    uint32_t concurrency;      /* 0: none of its own */
    uint32_t running;
    uint32_t queued;
    uint32_t parked;
    uint32_t publishing;    /* JUDGED or PUBLISHING */
    uint64_t waiting_since; /* received_at of the oldest queued one, about */
    bool is_paused;         /* by an operator */
    bool is_engine_full;    /* its engine takes no task now */
    bool is_engine_down;
    bool is_publish_blocked; /* intake stopped: no authorisation or no such topic */
    bool is_failed;          /* its source cannot go on */
    uint8_t lanes;           /* enum lw_lanes_kind: how `ordering` and `keyless` choose */
    bool takes_loose;        /* whose turn it is, when both lanes and loose ones are ready */
    bool is_batched;         /* its handler takes several messages at once: `gather` is used */
    struct lw_engine *engine;
    struct lw_broker *broker;
    struct lw_dispatcher *dispatcher; /* NULL in a worker process */
    const struct lw_view_ops *view;
    struct lw_list partitions; /* lw_partition.link */
    struct lw_gather gather;
};

void lw_subscription_init(struct lw_subscription *subscription, uint32_t index);
/* Both resolved, never DEFAULT. */
void lw_subscription_set_ordering(struct lw_subscription *subscription,
                                  enum lw_ordering ordering, enum lw_keyless keyless);
/* Nothing of its own forbids running a handler now. */
static inline bool
lw_subscription_may_run(const struct lw_subscription *subscription)
{
    if (subscription->concurrency != 0 && subscription->running >= subscription->concurrency) {
        return false;
    }
    return !(subscription->is_paused | subscription->is_engine_full |
             subscription->is_engine_down);
}

/* Something here could be chosen: a lane that nobody holds, or an unordered one. */
static inline bool
lw_subscription_has_ready(const struct lw_subscription *subscription)
{
    return !lw_list_is_empty(&subscription->ready) ||
           !lw_list_is_empty(&subscription->urgent) || subscription->loose.first != NULL;
}

/* Something is ready and nothing of its own forbids running it. */
bool lw_subscription_is_eligible(const struct lw_subscription *subscription);

#endif
