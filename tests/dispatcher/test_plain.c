/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The short ways of the ordinary message (dispatcher/settle_plain.h, dispatcher/direct.h) against
 * the ordinary way, which everything takes while a history listens: the same random scenario with
 * and without one ends in the same commits or acknowledgements, counters, stored messages, and
 * order of each key.
 */
#include "tests/support/test.h"

#include "tests/dispatcher/world.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "engines/loop.h"

enum { TOPICS = 2, PARTITIONS = 3, ROUNDS = 12, SEEDS = 150, KEYS = 5, RUNS_MAX = 8000 };

/* What is compared, and the runs of each key in the order of their starts. */
struct end {
    int64_t settled[TOPICS][PARTITIONS]; /* committed, or what is left */
    struct lw_memory_stats stats;        /* acks, when the broker counts them */
    struct lw_counters counters[TOPICS];
    uint64_t dead_letters; /* sums of hashes: the order between keys is free */
    uint64_t replies;
    uint64_t order[TOPICS][PARTITIONS][KEYS + 1];
    uint32_t held;
    uint32_t in_hand[TOPICS];
    uint32_t runs;
};

struct scenario {
    struct world world;
    struct end end;
    uint64_t seed;
    uint64_t random;
    bool is_blocking;
    bool is_acked; /* the broker settles each message by itself */
    enum lw_ordering ordering[TOPICS];
    enum lw_keyless keyless[TOPICS];
};

static uint32_t
dice(struct scenario *scenario, uint32_t sides)
{
    scenario->random = lw_hash_u64(scenario->random, scenario->seed);
    return (uint32_t)(scenario->random >> 33) % sides;
}

static uint32_t
topic_of(const struct lw_delivery *delivery)
{
    return lw_delivery_topic(delivery)[0] == 'b';
}

/* In order where there is one, else as a sum. */
static void
note(struct scenario *scenario, uint32_t topic, const struct lw_delivery *delivery)
{
    struct lw_bytes key = lw_delivery_key(delivery);
    uint32_t lane = key.data ? (uint32_t)(((const char *)key.data)[1] - '0') : KEYS;
    bool is_loose = scenario->ordering[topic] == LW_ORDERING_NONE ||
                    (scenario->ordering[topic] == LW_ORDERING_KEY && !key.data &&
                     scenario->keyless[topic] == LW_KEYLESS_ROTATE);
    uint64_t *order =
        &scenario->end.order[topic][lw_delivery_partition(delivery)][is_loose ? KEYS : lane];
    uint64_t offset = (uint64_t)lw_delivery_offset(delivery);
    *order = is_loose ? *order + lw_hash_u64(offset, 1) : lw_hash_u64(*order + offset, 1);
    assert_true(++scenario->end.runs < RUNS_MAX);
}

/* Decided by seed, place and attempt alone, so that it is the same in both worlds. */
static enum lw_verdict
say(struct lw_delivery *delivery, void *user)
{
    struct scenario *scenario = user;
    uint32_t topic = topic_of(delivery);
    uint32_t partition = (uint32_t)lw_delivery_partition(delivery);
    uint64_t offset = (uint64_t)lw_delivery_offset(delivery);
    uint64_t name = ((uint64_t)topic * PARTITIONS + partition) << 32 | offset;
    uint64_t choice = lw_hash_u64(name * 8 + lw_delivery_attempt(delivery), scenario->seed) %
                      40;
    note(scenario, topic, delivery);
    switch (choice) {
    case 0:
    case 1:
        return lw_delivery_retry(delivery, NULL, (int64_t)(choice * 50));
    case 2:
        return lw_delivery_dead(delivery, "bad");
    case 3:
        return LW_DROP;
    case 4:
        (void)lw_delivery_reply(delivery, lw_delivery_value(delivery));
        return LW_OK;
    case 5:
        return LW_ERROR;
    default:
        return LW_OK;
    }
}

static void
say_later(struct lw_delivery *delivery, void *user)
{
    (void)lw_delivery_finish(delivery, say(delivery, user));
}

static void
add_engine(struct scenario *scenario)
{
    struct world *world = &scenario->world;
    struct lw_handler_options handler = { .user = scenario };
    if (scenario->is_blocking) {
        handler.handler = say;
    } else {
        handler.handler_async = say_later;
    }
    assert_int_equal(lw_loop_engine_create(&world->clock->host, &world->dispatcher.completions,
                                           "plain", &handler, &world->engine),
                     LW_STATUS_OK);
    assert_int_equal(lw_dispatcher_add_engine(&world->dispatcher, world->engine), LW_STATUS_OK);
}

static void
add_topics(struct scenario *scenario)
{
    static const char *const names[] = { "a", "b" };
    for (uint32_t i = 0; i < TOPICS; i++) {
        struct lw_subscription_options options = world_options(names[i],
                                                               (int32_t)dice(scenario, 2));
        options.ordering = (enum lw_ordering)(LW_ORDERING_KEY + dice(scenario, 3));
        options.keyless = (enum lw_keyless)(scenario->is_acked ? 1 + dice(scenario, 2)
                                                               : dice(scenario, 3));
        scenario->ordering[i] = options.ordering;
        scenario->keyless[i] = options.keyless;
        options.reply.topic = "replies";
        options.dead_letter.topic = "dead";
        options.retry.in_place = LW_YES;
        options.retry.in_place_backoff = (struct lw_backoff_options){ 20, 2, 100, 0 };
        options.on_error = LW_ON_ERROR_RETRY;
        options.max_in_flight = 1 + dice(scenario, 60);
        options.max_uncommitted = dice(scenario, 3) ? 100000 : 64;
        options.profile = (enum lw_profile)dice(scenario, 5);
        world_topic(&scenario->world, names[i], PARTITIONS);
        world_add(&scenario->world, &options);
    }
}

static void
play_round(struct scenario *scenario, uint32_t round)
{
    static const char *const names[] = { "a", "b" };
    struct world *world = &scenario->world;
    for (uint32_t burst = dice(scenario, 6); burst > 0; burst--) {
        char key[16];
        snprintf(key, sizeof(key), "k%u", dice(scenario, KEYS));
        const char *topic = names[dice(scenario, TOPICS)];
        world_send(world, topic, (int32_t)dice(scenario, PARTITIONS),
                   dice(scenario, 6) ? key : NULL, dice(scenario, 50));
    }
    world_pass(world, dice(scenario, 120));
    if (round % 5 == 4) {
        world_pass(world, 2000); /* all retries are over */
        if (!scenario->is_acked) {
            lw_memory_hub_rebalance(world->hub, "group");
        }
    }
}

static void
sum(const struct lw_memory_view *view, void *user)
{
    uint64_t *total = user;
    uint64_t hash = lw_hash_bytes(view->value.data, view->value.size, 3);
    *total += lw_hash_bytes(view->key.data, view->key.size, hash);
    for (size_t i = 0; i < view->header_count; i++) {
        const struct lw_header *header = &view->headers[i];
        if (!lw_text_is_equal(header->name, "epoch")) { /* counts on in the process */
            *total += lw_hash_bytes(header->value.data, header->value.size, hash + i);
        }
    }
}

static int64_t
settled_of(struct world *world, const char *topic, int32_t partition, bool is_acked)
{
    return is_acked ? (int64_t)lw_memory_hub_backlog(world->hub, "group", topic)
                    : world_committed(world, topic, partition);
}

static void
collect(struct scenario *scenario)
{
    static const char *const names[] = { "a", "b" };
    struct world *world = &scenario->world;
    struct end *end = &scenario->end;
    for (uint32_t i = 0; i < TOPICS; i++) {
        for (int32_t p = 0; p < PARTITIONS; p++) {
            end->settled[i][p] = settled_of(world, names[i], p, scenario->is_acked);
        }
        end->counters[i] = world->dispatcher.streams[i]->counters;
        end->in_hand[i] = world->dispatcher.streams[i]->subscription.limits.count;
    }
    (void)lw_memory_hub_each(world->hub, "dead", sum, &end->dead_letters);
    (void)lw_memory_hub_each(world->hub, "replies", sum, &end->replies);
    end->held = world->dispatcher.held_count;
    if (scenario->is_acked) {
        end->stats = lw_memory_hub_stats(world->hub);
    }
}

static void
play(struct scenario *scenario, const struct scenario *kind, uint64_t seed, bool is_observed)
{
    struct lw_memory_options hub;
    lw_memory_options_init(&hub);
    *scenario = *kind;
    scenario->seed = scenario->random = seed;
    if (kind->is_acked) {
        hub.mode = LW_MEMORY_INDIVIDUAL;
        hub.sharing = LW_MEMORY_FAILOVER;
    }
    world_init(&scenario->world, 1 + dice(scenario, 8), &hub);
    scenario->world.clock->host.log = NULL;
    if (!is_observed) {
        scenario->world.dispatcher.history = NULL;
    }
    add_engine(scenario);
    add_topics(scenario);
    world_start(&scenario->world);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        play_round(scenario, round);
    }
    world_pass(&scenario->world, 30000);
    collect(scenario);
    world_deinit(&scenario->world);
}

static void
compare(const struct scenario *kind)
{
    static struct scenario full;
    static struct scenario plain;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        play(&full, kind, seed, true);
        play(&plain, kind, seed, false);
        if (memcmp(&full.end, &plain.end, sizeof(full.end)) != 0) {
            fail_msg("seed %llu: %u runs and %u held, %u and %u on the short way",
                     (unsigned long long)seed, full.end.runs, full.end.held, plain.end.runs,
                     plain.end.held);
        }
        assert_int_equal(full.end.held, 0);
    }
}

static void
settling_plainly_ends_like_settling_in_full(void **state)
{
    static const struct scenario kind = { .is_blocking = false };
    (void)state;
    compare(&kind);
}

static void
running_directly_ends_like_running_in_turn(void **state)
{
    static const struct scenario kind = { .is_blocking = true };
    (void)state;
    compare(&kind);
}

static void
running_directly_ends_like_running_in_turn_where_each_is_acked(void **state)
{
    static const struct scenario kind = { .is_blocking = true, .is_acked = true };
    (void)state;
    compare(&kind);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settling_plainly_ends_like_settling_in_full),
        cmocka_unit_test(running_directly_ends_like_running_in_turn),
        cmocka_unit_test(running_directly_ends_like_running_in_turn_where_each_is_acked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
