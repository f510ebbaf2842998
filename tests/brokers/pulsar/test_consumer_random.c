/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A consumer in random worlds: every kind of entry, subscription and setting, settlements in any
 * order, lost connections, topics that move, lost answers, no memory. In each world: every message
 * is given (an entry that cannot be read as one), none is given again while it is held or once its
 * ack was asked for, none counts as acknowledged at the broker before it was, nothing is left at the
 * broker at the end, no id is acknowledged twice in a session, and broker and consumer agree about
 * the permits whenever all is quiet. Prints its seeds and counts; one seed is run by
 * `SEED=n test_consumer_random`.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tests/brokers/pulsar/stage.h"

enum { SEEDS = 15, STEPS = 60, ENTRIES_MAX = 60, PLACES_MAX = 4096 };

/* One message as its id says. */
struct place {
    uint64_t ledger;
    uint64_t entry;
    int32_t index;
    bool is_held;
    bool is_acked;
    uint32_t given;
};

static struct run {
    uint64_t random;
    uint64_t seed;
    struct consuming *consuming;
    struct place places[PLACES_MAX];
    size_t place_count;
    size_t seen; /* of consuming->messages */
    size_t messages;
    bool is_lossy; /* answers vanish: time-outs take long */
    bool has_timeout;
} run;

static struct totals {
    uint64_t messages;
    uint64_t sessions;
    uint64_t copies;
    uint64_t nacks;
    uint64_t cumulative;
} totals;

static uint32_t
pick(uint32_t below)
{
    run.random ^= run.random << 13;
    run.random ^= run.random >> 7;
    run.random ^= run.random << 17;
    return (uint32_t)((run.random >> 11) % below);
}

static bool
chance(uint32_t percent)
{
    return pick(100) < percent;
}

/* -- The topic ---------------------------------------------------------------------------------------- */

static void
publish_chunks(int32_t count)
{
    char uuid[32];
    (void)snprintf(uuid, sizeof uuid, "p-%zu", run.messages);
    for (int32_t i = 0; i < count; i++) {
        stage_chunk(uuid, i, count, "abcdef");
    }
    run.messages++;
}

static void
publish_one(void)
{
    struct embedded_publish message = { .value = lw_bytes_of("value"), .key = "k" };
    uint32_t kind = pick(10);
    message.batch = kind < 5 ? 0 : kind < 8 ? (int32_t)pick(12) + 1 : 70;
    message.has_wrong_checksum = chance(5);
    if (kind == 9) {
        publish_chunks((int32_t)pick(3) + 2);
        return;
    }
    (void)embedded_publish(stage.broker, CONSUMING_TOPIC, &message);
    size_t count = message.batch == 0 ? 1 : (size_t)message.batch;
    run.messages += message.has_wrong_checksum ? 1 : count;
}

/* -- Watching ----------------------------------------------------------------------------------------- */

static struct place *
place_of(const struct lw_message *message)
{
    struct lw_pulsar_message_id id = lw_pulsar_message_own_id(message);
    for (size_t i = 0; i < run.place_count; i++) {
        struct place *place = &run.places[i];
        if (place->ledger == id.ledger && place->entry == id.entry &&
            place->index == id.batch_index) {
            return place;
        }
    }
    assert_true(run.place_count < PLACES_MAX);
    struct place *place = &run.places[run.place_count++];
    *place = (struct place){ .ledger = id.ledger, .entry = id.entry, .index = id.batch_index };
    return place;
}

static void
look(void)
{
    struct consuming *consuming = run.consuming;
    for (; run.seen < consuming->count; run.seen++) {
        struct place *place = place_of(&consuming->messages[run.seen]);
        /* Without receipts an acknowledgement may be lost with its connection. */
        bool is_done = place->is_acked && consuming->settings.wants_ack_receipts;
        if (!run.has_timeout && (place->is_held || is_done)) {
            fail_msg("seed %llu: %llu:%llu:%d is given while it is %s",
                     (unsigned long long)run.seed, (unsigned long long)place->ledger,
                     (unsigned long long)place->entry, (int)place->index,
                     place->is_held ? "held" : "acknowledged");
        }
        place->is_held = true;
        place->given++;
    }
}

/* Nothing is acknowledged for somebody who did not ask for it. */
static void
expect_open(void)
{
    for (size_t i = 0; i < run.place_count; i++) {
        const struct place *place = &run.places[i];
        if (!place->is_acked && embedded_id_is_acked(stage.broker, CONSUMING_TOPIC, "s",
                                                     place->ledger, place->entry)) {
            fail_msg("seed %llu: %llu:%llu:%d is acknowledged at the broker and not here",
                     (unsigned long long)run.seed, (unsigned long long)place->ledger,
                     (unsigned long long)place->entry, (int)place->index);
        }
    }
}

static void
pass_ms(int64_t ms)
{
    embedded_pass_ms(stage.broker, ms);
    consuming_pass_ms(run.consuming, ms);
    look();
    expect_open();
}

/* -- Steps -------------------------------------------------------------------------------------------- */

static void
settle_one_from(size_t at, bool acks)
{
    struct consuming *consuming = run.consuming;
    if (consuming->count == consuming->released) {
        return;
    }
    while (!consuming->messages[at].owner) {
        at = (at + 1) % consuming->count;
    }
    struct place *place = place_of(&consuming->messages[at]);
    place->is_held = false;
    if (acks) {
        place->is_acked = true;
        consuming_ack(consuming, at);
    } else {
        totals.nacks++;
        consuming_nack(consuming, at, chance(50) ? -1 : (int64_t)pick(3000));
    }
}

static void
settle_one(bool acks)
{
    size_t count = run.consuming->count;
    settle_one_from(count > 0 ? pick((uint32_t)count) : 0, acks);
}

/* The oldest ones first, or any. */
static void
settle_some(uint32_t nacks)
{
    bool is_in_order = chance(50);
    for (uint32_t count = pick(is_in_order ? 100 : 30); count > 0; count--) {
        if (is_in_order) {
            settle_one_from(0, !chance(nacks / 10));
        } else {
            settle_one(!chance(nacks));
        }
    }
}

static void
step(void)
{
    uint32_t kind = pick(100);
    if (kind < 30) {
        settle_some(0);
    } else if (kind < 45) {
        settle_some(30);
    } else if (kind < 50) {
        embedded_drop_all(stage.broker);
    } else if (kind < 53) {
        embedded_unload(stage.broker, CONSUMING_TOPIC, 0, chance(50));
    } else if (kind < 56) {
        embedded_close_consumers(stage.broker, CONSUMING_TOPIC);
    } else if (kind < 58) {
        lw_pulsar_consumer_resubscribe(run.consuming->consumer);
    } else if (kind < 60 && run.is_lossy) {
        stage_fault(EMBEDDED_LOSE, EMBEDDED_OUT, LW_PULSAR_ACK_RESPONSE, 1);
    } else if (kind < 62 && run.is_lossy) {
        stage_fault(EMBEDDED_LOSE, EMBEDDED_OUT, LW_PULSAR_SUCCESS, 1);
    } else if (kind < 65) {
        lw_alloc_fail_at(pick(20) + 1); /* the n-th from now on has no memory */
    } else if (kind < 70) {
        publish_one();
    } else {
        pass_ms((int64_t)pick(kind < 95 ? 150 : 3000));
    }
    consuming_rest(run.consuming);
    look();
}

/* -- A world ------------------------------------------------------------------------------------------ */

static void
choose_settings(void)
{
    struct lw_pulsar_consumer_settings *settings = &run.consuming->settings;
    bool is_rewinding = settings->type == LW_PULSAR_SUB_EXCLUSIVE ||
                        settings->type == LW_PULSAR_SUB_FAILOVER;
    settings->acks_batch_index = chance(50);
    settings->wants_ack_receipts = chance(80);
    settings->receiver_queue_size = chance(30) ? pick(5) + 1 : pick(200) + 1;
    settings->ack_group_ns = chance(20) ? 0 : (pick(100) + 1) * LW_MS;
    settings->ack_group_max = chance(30) ? pick(10) + 1 : 1000;
    settings->nack_delay_ns = (pick(1000) + 100) * LW_MS;
    settings->nack_delay_max_ns = chance(30) ? 3000 * LW_MS : 0;
    run.has_timeout = chance(15) && !is_rewinding;
    settings->ack_timeout_ns = run.has_timeout ? 1500 * LW_MS : 0;
    run.is_lossy = chance(20);
}

/* All of it is given and settled, whatever it takes. */
static void
finish(void)
{
    struct consuming *consuming = run.consuming;
    struct embedded_subscription_info info = stage_subscription("s");
    for (int i = 0; i < 300 && info.backlog > 0; i++) {
        while (consuming->count > consuming->released) {
            settle_one(true);
        }
        pass_ms(run.is_lossy ? 1000 : 200);
        info = stage_subscription("s");
    }
    if (info.backlog > 0) {
        fail_msg("seed %llu: %llu entries are left", (unsigned long long)run.seed,
                 (unsigned long long)info.backlog);
    }
    pass_ms(1000);
    if (run.place_count != run.messages) {
        fail_msg("seed %llu: %zu of %zu messages were given", (unsigned long long)run.seed,
                 run.place_count, run.messages);
    }
    struct lw_pulsar_consumer_figures figures = consuming_figures(consuming);
    for (int i = 0; i < 60 && figures.acks_unconfirmed > 0; i++) {
        pass_ms(1000); /* a receipt that is lost is waited for */
        figures = consuming_figures(consuming);
    }
    if (figures.held > 0 || figures.acks_unconfirmed > 0) {
        fail_msg("seed %llu: %u entries are held, %u not confirmed",
                 (unsigned long long)run.seed, figures.held, figures.acks_unconfirmed);
    }
}

static void
expect_quiet(void)
{
    struct consuming *consuming = run.consuming;
    int64_t theirs = stage_subscription("s").permits;
    int64_t ours = consuming_figures(consuming).permits_out;
    if (ours != (theirs > 0 ? theirs : 0)) {
        fail_msg("seed %llu: %lld permits here, %lld at the broker",
                 (unsigned long long)run.seed, (long long)ours, (long long)theirs);
    }
}

static void
live(uint64_t seed)
{
    void *state = NULL;
    memset(&run, 0, sizeof run);
    run.seed = seed;
    run.random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    assert_int_equal(stage_set_up(&state), 0);
    for (uint32_t i = pick(ENTRIES_MAX); i > 0; i--) {
        publish_one();
    }
    run.consuming = consuming_create(&stage.world, (int32_t)pick(4));
    choose_settings();
    consuming_start(run.consuming, pick(100) + 1);
    pass_ms(1500);
    for (int i = 0; i < STEPS; i++) {
        step();
    }
    lw_alloc_fail_at(0);
    embedded_clear_faults(stage.broker);
    finish();
    expect_quiet();
    totals.messages += run.messages;
    totals.cumulative += embedded_counts(stage.broker)->ack_commands_cumulative;
    totals.sessions += consuming_figures(run.consuming).sessions;
    totals.copies += consuming_figures(run.consuming).copies_dropped;
    consuming_destroy(run.consuming);
    assert_int_equal(stage_tear_down(&state), 0);
}

static void
in_any_world_all_is_given_and_nothing_twice(void **state)
{
    const char *only = getenv("SEED");
    uint64_t first = only ? strtoull(only, NULL, 10) : 1;
    const char *count = getenv("SEEDS");
    uint64_t last = only ? first : count ? strtoull(count, NULL, 10) : SEEDS;
    (void)state;
    for (uint64_t seed = first; seed <= last; seed++) {
        live(seed);
    }
    print_message("seeds %llu to %llu: %llu messages, %llu sessions, %llu nacks, %llu copies "
                  "dropped, %llu cumulative acks\n",
                  (unsigned long long)first, (unsigned long long)last,
                  (unsigned long long)totals.messages, (unsigned long long)totals.sessions,
                  (unsigned long long)totals.nacks, (unsigned long long)totals.copies,
                  (unsigned long long)totals.cumulative);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_any_world_all_is_given_and_nothing_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
