/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A publisher in random worlds: single messages, batches, keys, delays and chunks, on a topic and on
 * partitions, with lost connections, topics that move, receipts that vanish, double or overtake
 * each other. In each world: every publication has one receipt; what is said to be stored is
 * stored; what is stored first keeps the order of publishing in its partition; where the broker
 * knows duplicates nothing is stored twice; and nothing counts as pending at the end. Prints its
 * seeds and counts; one seed is run by `SEED=n test_publisher_random`.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tests/brokers/pulsar/publishing.h"

enum { SEEDS = 15, STEPS = 40, MESSAGES_MAX = 1500, VALUE_MAX = 3000, PARTS = 3 };

static const char whole_topic[] = PUBLISHING_TOPIC;
static const char parted_topic[] = "persistent://public/default/parted";

static struct run {
    uint64_t random;
    uint64_t seed;
    struct publishing *publishing;
    char values[MESSAGES_MAX][VALUE_MAX + 16];
    uint32_t stored[MESSAGES_MAX];
    char partial[VALUE_MAX + 16]; /* of a chunked message that is being read */
    size_t partial_size;
} run;

static struct totals {
    uint64_t messages;
    uint64_t twice;
    uint64_t again;
    uint64_t unknown;
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

/* -- Steps -------------------------------------------------------------------------------------------- */

static void
publish_some(void)
{
    static const char *const keys[] = { "a", "b", "c", "d" };
    struct publishing *publishing = run.publishing;
    uint32_t count = chance(20) ? pick(100) : pick(8);
    for (uint32_t i = 0; i < count && publishing->count + i < MESSAGES_MAX; i++) {
        char *value = run.values[publishing->count + i];
        int head = snprintf(value, 16, "%u ", publishing->count + i);
        size_t size = chance(4) ? VALUE_MAX : pick(100);
        memset(value + head, 'x', size);
        value[(size_t)head + size] = '\0';
        bool is_parted = chance(40);
        struct lw_publication *item = publishing_item(
            publishing, is_parted ? parted_topic : whole_topic, value);
        item->key = chance(60) ? lw_bytes_of(keys[pick(4)]) : (struct lw_bytes){ NULL, 0 };
        item->delay_ms = chance(5) ? 100 : 0;
    }
    publishing_go(publishing);
}

static void
make_trouble(void)
{
    static const enum embedded_fault_kind kinds[] = { EMBEDDED_LOSE, EMBEDDED_DUPLICATE,
                                                      EMBEDDED_DELAY, EMBEDDED_DROP,
                                                      EMBEDDED_DROP_AFTER };
    struct embedded_fault fault = { .kind = kinds[pick(5)],
                                    .direction = EMBEDDED_OUT,
                                    .type = LW_PULSAR_SEND_RECEIPT,
                                    .nth = pick(5) + 1,
                                    .ms = (int64_t)pick(300) };
    if (fault.kind == EMBEDDED_DROP && chance(50)) {
        fault.direction = EMBEDDED_IN; /* before it is stored */
        fault.type = LW_PULSAR_SEND;
    } else if (chance(20)) {
        fault.type = LW_PULSAR_PRODUCER_SUCCESS;
    }
    embedded_add_fault(run.publishing->broker, &fault);
}

static void
pass_ms(int64_t ms)
{
    embedded_pass_ms(run.publishing->broker, ms);
    publishing_pass_ms(run.publishing, ms);
}

static void
step(void)
{
    uint32_t kind = pick(100);
    const char *topic = chance(50) ? whole_topic
                                   : "persistent://public/default/parted-partition-1";
    if (kind < 50) {
        publish_some();
    } else if (kind < 60) {
        make_trouble();
    } else if (kind < 64) {
        embedded_drop_all(run.publishing->broker);
    } else if (kind < 68) {
        embedded_unload(run.publishing->broker, topic, 0, chance(50));
    } else if (kind < 71) {
        embedded_close_producers(run.publishing->broker, topic);
    } else if (kind < 90) {
        pass_ms((int64_t)pick(kind < 85 ? 50 : 2000));
    } else {
        lw_alloc_fail_at(pick(20) + 1); /* what is accepted is sent all the same */
        pass_ms((int64_t)pick(200));
        lw_alloc_fail_at(0);
    }
    if (chance(70)) {
        publishing_rest(run.publishing);
    }
}

/* -- Looking ------------------------------------------------------------------------------------------ */

/* Plus one: the last one that was stored for the first time; with batches by key of each key. */
struct reading {
    uint32_t last[256];
};

static uint32_t *
last_of(struct reading *reading, uint32_t number)
{
    struct lw_bytes key = run.publishing->items[number].key;
    bool is_by_key = run.publishing->settings.batches &&
                     run.publishing->settings.batches_by_key;
    return &reading->last[is_by_key && key.size > 0 ? *(const uint8_t *)key.data : 0];
}

static void
take_stored(struct reading *reading, struct lw_bytes value)
{
    char text[16] = "";
    memcpy(text, value.data, value.size < 15 ? value.size : 15);
    uint32_t number = (uint32_t)strtoul(text, NULL, 10);
    assert_true(number < run.publishing->count);
    assert_int_equal(value.size, strlen(run.values[number]));
    assert_memory_equal(value.data, run.values[number], value.size);
    if (run.stored[number]++ == 0) {
        uint32_t *last = last_of(reading, number);
        if (number + 1 <= *last) {
            fail_msg("seed %llu: %u is stored behind %u", (unsigned long long)run.seed, number,
                     *last - 1);
        }
        *last = number + 1;
    }
}

static void
take_chunk(struct reading *reading, const struct lw_pulsar_metadata *metadata,
           struct lw_bytes body)
{
    run.partial_size = metadata->chunk_id == 0 ? 0 : run.partial_size;
    assert_true(run.partial_size + body.size <= sizeof run.partial);
    memcpy(run.partial + run.partial_size, body.data, body.size);
    run.partial_size += body.size;
    bool is_last = metadata->chunk_id + 1 == metadata->num_chunks_from_msg;
    if (is_last && run.partial_size == (size_t)metadata->total_chunk_msg_size) {
        take_stored(reading, (struct lw_bytes){ run.partial, run.partial_size });
    }
}

static void
read_topic(const char *topic)
{
    struct reading reading = { .last = { 0 } };
    struct lw_pulsar_metadata metadata;
    struct lw_bytes body;
    for (uint64_t i = 0; embedded_entry(run.publishing->broker, topic, i, &metadata, &body);
         i++) {
        struct lw_pulsar_batch batch;
        struct lw_pulsar_member member;
        if (lw_pulsar_metadata_is_chunk(&metadata)) {
            take_chunk(&reading, &metadata, body);
        } else if (!lw_pulsar_metadata_is_batch(&metadata)) {
            take_stored(&reading, body);
        } else {
            assert_int_equal(lw_pulsar_batch_open(&metadata, body, &batch), LW_PULSAR_OK);
            while (lw_pulsar_batch_next(&batch, &member)) {
                take_stored(&reading, member.value);
            }
            assert_int_equal(batch.fault, LW_PULSAR_OK);
        }
    }
}

static void
expect_promises(bool is_deduplicating)
{
    const struct publishing *publishing = run.publishing;
    char part[80];
    read_topic(whole_topic);
    for (int i = 0; i < PARTS; i++) {
        (void)snprintf(part, sizeof part, "%s-partition-%d", parted_topic, i);
        read_topic(part);
    }
    for (uint32_t i = 0; i < publishing->count; i++) {
        totals.twice += run.stored[i] > 1;
        totals.unknown += publishing->statuses[i] == LW_STATUS_UNKNOWN;
        if (publishing->told[i] != 1) {
            fail_msg("seed %llu: %u has %u receipts", (unsigned long long)run.seed, i,
                     publishing->told[i]);
        }
        if (publishing->statuses[i] == LW_STATUS_OK && run.stored[i] == 0) {
            fail_msg("seed %llu: %u is lost", (unsigned long long)run.seed, i);
        }
        if (is_deduplicating && run.stored[i] > 1) {
            fail_msg("seed %llu: %u is stored twice", (unsigned long long)run.seed, i);
        }
    }
}

/* -- A world ------------------------------------------------------------------------------------------ */

static void
choose_settings(struct publishing *publishing, bool is_deduplicating)
{
    struct lw_pulsar_producer_settings *settings = &publishing->settings;
    publishing->broker_settings.is_deduplicating = is_deduplicating;
    publishing->broker_settings.delay_tick_ms = 0;
    publishing->broker_settings.max_message_size = 2000;
    settings->producer_name = is_deduplicating || chance(30) ? "laneway" : NULL;
    settings->batches = chance(60);
    settings->batches_by_key = chance(30);
    settings->batch_messages_max = pick(20) + 2;
    settings->batch_bytes_max = 1500;
    settings->batch_delay_ns = chance(50) ? 0 : pick(100) * LW_MS;
    settings->chunks = true;
    settings->pending_max = MESSAGES_MAX;
    settings->send_timeout_ns = 120000 * LW_MS;
    settings->idle_ns = chance(30) ? 500 * LW_MS : 60000 * LW_MS;
}

static void
live(uint64_t seed)
{
    memset(&run, 0, sizeof run);
    run.seed = seed;
    run.random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    bool is_deduplicating = chance(40);
    run.publishing = publishing_create();
    choose_settings(run.publishing, is_deduplicating);
    publishing_start(run.publishing);
    embedded_set_partitions(run.publishing->broker, parted_topic, PARTS);
    for (int i = 0; i < STEPS; i++) {
        step();
    }
    embedded_clear_faults(run.publishing->broker);
    for (int i = 0; i < 400 && run.publishing->receipts < run.publishing->count; i++) {
        pass_ms(500);
    }
    expect_promises(is_deduplicating);
    totals.messages += run.publishing->count;
    totals.again += publishing_figures(run.publishing).sent_again;
    publishing_destroy(run.publishing);
}

static void
in_any_world_each_message_has_one_receipt_that_is_true(void **state)
{
    const char *only = getenv("SEED");
    const char *count = getenv("SEEDS");
    uint64_t first = only ? strtoull(only, NULL, 10) : 1;
    uint64_t last = only ? first : count ? strtoull(count, NULL, 10) : SEEDS;
    (void)state;
    for (uint64_t seed = first; seed <= last; seed++) {
        live(seed);
    }
    print_message("seeds %llu to %llu: %llu messages, %llu sent again, %llu stored twice, %llu "
                  "unknown\n",
                  (unsigned long long)first, (unsigned long long)last,
                  (unsigned long long)totals.messages, (unsigned long long)totals.again,
                  (unsigned long long)totals.twice, (unsigned long long)totals.unknown);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_any_world_each_message_has_one_receipt_that_is_true),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
