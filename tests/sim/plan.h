/* SPDX-License-Identifier: Apache-2.0 */
/* What a seed decides at the start: the shape of the world and the limits of what may happen. */
#ifndef TESTS_SIM_PLAN_H
#define TESTS_SIM_PLAN_H

#include <laneway/plugin.h>

#include "brokers/memory/hub.h"
#include "tests/sim/random.h"

enum { PLAN_TOPICS_MAX = 3, PLAN_MEMBERS_MAX = 3, PLAN_TIERS = 2, PLAN_PARTITIONS_MAX = 4 };

struct plan_topic {
    char name[16];
    int32_t partitions;
    struct lw_subscription_options options;
};

struct plan {
    struct lw_memory_options hub;
    struct plan_topic topics[PLAN_TOPICS_MAX];
    uint32_t topic_count;
    uint32_t member_count;
    struct lw_dispatcher_options dispatcher;
    uint32_t message_count;
    uint32_t key_count;
    uint32_t keyless_percent;
    uint32_t batch_percent; /* of what is produced: several in one entry */
    uint32_t engine_room;   /* tasks at once */
    bool is_direct;         /* a blocking handler on the loop thread, all ok or retry */
    bool can_end_early;
    bool is_observed;   /* false: the dispatcher takes its short path, no history */
    int64_t timeout_ms; /* of an attempt; 0 none */
    int64_t handler_max_us;
    uint32_t fail_percent; /* of runs: any verdict but ok */
    uint32_t reply_percent;
    uint32_t hang_percent;
    uint32_t crash_percent;
    int64_t chaos_ms;       /* for so long things go wrong */
    uint32_t fault_percent; /* of actions that are faults */
    bool has_kills;
    struct lw_batch_options batch; /* size 0: tasks of one */
    int64_t tiers_ms[PLAN_TIERS];
};

void plan_init(struct plan *plan, struct sim_random *random);

#endif
