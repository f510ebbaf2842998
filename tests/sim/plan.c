/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans. Every choice is drawn from the seed in a fixed order, one draw a statement: the order of
 * evaluation inside an initialiser is the compiler's. Values are chosen to make limits
 * bite: few slots, small windows, short intervals, few keys, so that a run of some hundred
 * messages meets what production meets in a day.
 */
#include "tests/sim/plan.h"

#include <stdio.h>
#include <string.h>

static uint64_t
latency(struct sim_random *random, int64_t max_us)
{
    return sim_chance(random, 30) ? 0 : (uint64_t)sim_between(random, 1, max_us) * 1000;
}

static void
plan_hub(struct plan *plan, struct sim_random *random)
{
    struct lw_memory_options *hub = &plan->hub;
    lw_memory_options_init(hub);
    bool is_like_kafka = sim_chance(random, 50);
    hub->mode = is_like_kafka ? LW_MEMORY_POSITION : LW_MEMORY_INDIVIDUAL;
    hub->protocol = sim_chance(random, 50) ? LW_MEMORY_COOPERATIVE : LW_MEMORY_EAGER;
    hub->sharing = (enum lw_memory_sharing)sim_below(random, LW_MEMORY_KEY_SHARED + 1);
    hub->unacked_max = sim_chance(random, 40) ? (uint32_t)sim_between(random, 4, 60) : 0;
    hub->undoes_batch_acks = sim_chance(random, 40);
    hub->connect_latency_ns = latency(random, 50000);
    hub->publish_latency_ns = latency(random, 5000);
    hub->commit_latency_ns = latency(random, 20000);
    hub->fetch_latency_ns = latency(random, 3000);
    hub->join_delay_ns = latency(random, 100000);
    hub->session_timeout_ns = (uint64_t)sim_between(random, 1, 6) * 1000000000u;
    hub->rebalance_timeout_ns = (uint64_t)sim_between(random, 6, 20) * 1000000000u;
    hub->nack_delay_ns = (uint64_t)sim_between(random, 1, 500) * 1000000u;
    hub->message_bytes_max = 4096;
}

static void
plan_retry(struct plan *plan, struct lw_retry_options *retry, struct sim_random *random)
{
    bool has_topic = plan->hub.mode == LW_MEMORY_POSITION && sim_chance(random, 40);
    retry->in_place = LW_DEFAULT;
    retry->max_attempts = (uint32_t)sim_between(random, 1, 4);
    retry->max_retries = sim_between(random, 0, 3);
    retry->in_place_backoff.initial_ms = sim_between(random, 0, 50);
    retry->in_place_backoff.multiplier = 2;
    retry->in_place_backoff.max_ms = 200;
    retry->in_place_backoff.jitter_ms = 5;
    retry->backoff.initial_ms = 100;
    retry->backoff.multiplier = 4;
    retry->backoff.max_ms = 400;
    retry->allow_overtaking = true;
    if (has_topic) {
        retry->topic = "{topic}.retry";
        retry->tiers_ms = plan->tiers_ms;
        retry->tier_count = PLAN_TIERS;
        retry->in_place = sim_chance(random, 30) ? LW_YES : LW_DEFAULT;
    }
}

static void
plan_limits(struct lw_subscription_options *options, struct sim_random *random)
{
    bool has_concurrency = sim_chance(random, 30);
    options->concurrency = has_concurrency ? (uint32_t)sim_between(random, 1, 3) : 0;
    options->max_in_flight = (uint32_t)sim_between(random, 1, 60);
    options->max_in_flight_bytes = sim_chance(random, 20) ? 40 : 1 << 20;
    options->max_uncommitted = sim_chance(random, 20) ? 64 : 1 << 16;
    options->receiver_queue_size = (uint32_t)sim_between(random, 1, 50);
    options->profile = (enum lw_profile)sim_below(random, 5);
}

static enum lw_ordering
draw_ordering(const struct plan *plan, struct sim_random *random)
{
    bool is_individual = plan->hub.mode == LW_MEMORY_INDIVIDUAL;
    enum lw_ordering drawn = (enum lw_ordering)sim_between(random, LW_ORDERING_KEY,
                                                           LW_ORDERING_NONE);
    if (is_individual && plan->hub.sharing == LW_MEMORY_SHARED) {
        return LW_ORDERING_NONE;
    }
    bool has_keys = is_individual && plan->hub.sharing == LW_MEMORY_KEY_SHARED;
    return has_keys && drawn == LW_ORDERING_PARTITION ? LW_ORDERING_KEY : drawn;
}

static void
plan_topic(struct plan *plan, struct plan_topic *topic, uint32_t index,
           struct sim_random *random)
{
    static const enum lw_on_error on_errors[] = { LW_ON_ERROR_DEFAULT, LW_ON_ERROR_RETRY,
                                                  LW_ON_ERROR_DEAD, LW_ON_ERROR_DROP,
                                                  LW_ON_ERROR_REDELIVER };
    struct lw_subscription_options *options = &topic->options;
    snprintf(topic->name, sizeof topic->name, "t%u", index);
    topic->partitions = (int32_t)sim_between(random, 1, PLAN_PARTITIONS_MAX);
    options->size = sizeof *options;
    options->broker = "main";
    options->topic = topic->name;
    options->subscription = "g";
    options->priority = (int32_t)sim_between(random, 1, 3);
    options->ordering = draw_ordering(plan, random);
    options->keyless = sim_chance(random, 50) ? LW_KEYLESS_SHARED : LW_KEYLESS_ROTATE;
    plan_limits(options, random);
    options->timeout_ms = plan->timeout_ms;
    options->on_error = on_errors[sim_below(random, 5)];
    options->on_exhausted = LW_ON_EXHAUSTED_DROP;
    options->reply.topic = "replies";
    options->dead_letter.is_off = sim_chance(random, 15);
    plan_retry(plan, &options->retry, random);
}

static void
plan_dispatcher(struct lw_dispatcher_options *options, struct sim_random *random)
{
    options->size = sizeof *options;
    options->name = "sim";
    options->concurrency = (uint32_t)sim_between(random, 1, 8);
    options->drain_timeout_ms = sim_between(random, 50, 5000);
    options->retry_warnings = LW_WARNINGS_SILENT;
    options->commit_interval_ms = sim_between(random, 1, 300);
    options->commit_count = (uint32_t)sim_between(random, 1, 200);
    options->random_seed = 1;
}

static void
plan_handlers(struct plan *plan, struct sim_random *random)
{
    plan->is_direct = sim_chance(random, 15);
    plan->can_end_early = sim_chance(random, 40);
    plan->engine_room = sim_chance(random, 50) ? 64 : (uint32_t)sim_between(random, 1, 4);
    plan->timeout_ms = sim_chance(random, 60) ? sim_between(random, 20, 400) : 0;
    plan->handler_max_us = sim_chance(random, 30) ? 500 : sim_between(random, 1000, 60000);
    plan->fail_percent = sim_below(random, 40);
    plan->reply_percent = sim_below(random, 60);
    plan->hang_percent = sim_chance(random, 40) ? sim_below(random, 4) : 0;
    plan->crash_percent = sim_chance(random, 40) ? sim_below(random, 5) : 0;
}

/* Last of all, so that what was drawn before does not depend on it. */
static void
plan_batch(struct plan *plan, struct sim_random *random)
{
    struct lw_batch_options *batch = &plan->batch;
    bool has_batches = sim_chance(random, 40) && !plan->is_direct;
    batch->size = (uint32_t)sim_between(random, 1, 8);
    batch->wait_ms = sim_chance(random, 25) ? 0 : sim_between(random, 1, 60);
    batch->bytes = sim_chance(random, 20) ? 20 : 1 << 20;
    batch->keys = sim_chance(random, 50) ? LW_BATCH_KEYS_ONE : LW_BATCH_KEYS_MANY;
    batch->verdict = sim_chance(random, 60) ? LW_BATCH_VERDICT_EACH : LW_BATCH_VERDICT_ONE;
    for (uint32_t i = 0; i < plan->topic_count; i++) {
        const struct lw_subscription_options *options = &plan->topics[i].options;
        batch->size = batch->size < options->max_in_flight ? batch->size
                                                           : options->max_in_flight;
        batch->keys = options->ordering == LW_ORDERING_NONE ? LW_BATCH_KEYS_MANY : batch->keys;
    }
    batch->size = has_batches ? batch->size : 0;
}

void
plan_init(struct plan *plan, struct sim_random *random)
{
    memset(plan, 0, sizeof *plan);
    plan->tiers_ms[0] = 100;
    plan->tiers_ms[1] = 400;
    plan_hub(plan, random);
    plan_handlers(plan, random);
    plan->topic_count = (uint32_t)sim_between(random, 1, PLAN_TOPICS_MAX);
    for (uint32_t i = 0; i < plan->topic_count; i++) {
        plan_topic(plan, &plan->topics[i], i, random);
    }
    plan->member_count = (uint32_t)sim_between(random, 1, PLAN_MEMBERS_MAX);
    plan_dispatcher(&plan->dispatcher, random);
    plan->message_count = (uint32_t)sim_between(random, 250, 620);
    plan->key_count = (uint32_t)sim_between(random, 1, 12);
    plan->keyless_percent = sim_below(random, 30);
    plan->batch_percent = sim_chance(random, 50) ? sim_below(random, 60) : 0;
    plan->is_observed = !sim_chance(random, 20);
    plan->chaos_ms = sim_between(random, 500, 8000);
    plan->fault_percent = sim_below(random, 70);
    plan->has_kills = sim_chance(random, 40);
    plan_batch(plan, random);
}
