/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One session with every command of the protocol that the client speaks, driven through the broker's
 * table, and its connection ended once: before and after every frame in both directions, and at a
 * thousand random bytes. Whatever the place: every message is handled, one that was handled is not
 * handled again in the same ownership (unless it was asked for by a negative ack), the broker sees
 * no id acknowledged twice in one connection and epoch, everything is acknowledged at the end, and
 * nothing is left at either side. The seed is the first argument.
 */
#include "tests/support/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "brokers/pulsar/pulsar.h"
#include "tests/brokers/pulsar/dealing.h"

enum {
    RANDOM_CUTS = 1000,
    PLACES_MAX = 512,
    PLACE_BYTES = 64,
    CHUNKED_BYTES = 10000,
    MESSAGE_BYTES_MAX = 4096,
    PATIENCE_MS = 120000,
};

/* What is at the topic from the start, then what the session publishes itself. */
static const char *const first_values[] = { "a0", "a1", "a2", "a3", "batch", "c0", "c1", "c2" };
static const char *const own_values[] = { "p0", "p1", "large" };
enum { FIRST_COUNT = 8, BATCH = 5, OWN_COUNT = 3, VALUES = FIRST_COUNT + OWN_COUNT };

struct place {
    uint64_t generation;
    char text[PLACE_BYTES];
    bool is_nacked;
};

struct story {
    struct dealing dealing;
    struct place places[PLACES_MAX];
    size_t place_count;
    size_t seen; /* of the client's messages */
    uint32_t handled[VALUES];
    uint64_t generation; /* of slot 0 before the seek */
    uint32_t again;      /* messages of slot 0 after it */
    uint64_t faults;
};

static struct story story;
static bool story_has_receipts = true;
static char large[CHUNKED_BYTES + 1];
static uint64_t seed = 20240601;

/* Over all rounds. */
static struct {
    uint64_t rounds;
    uint64_t connections;
    uint64_t redelivered;
    uint64_t acked;
    uint64_t twice; /* handled again, since their ack was lost without a receipt */
} totals;

/* -- Handling -------------------------------------------------------------------------------------- */

static size_t
value_index(const struct lw_message *message)
{
    struct lw_bytes value = message->value;
    if (value.size == CHUNKED_BYTES) {
        assert_memory_equal(value.data, large, CHUNKED_BYTES);
        return VALUES - 1;
    }
    for (size_t i = 0; i < VALUES - 1; i++) {
        const char *text = i < FIRST_COUNT ? first_values[i] : own_values[i - FIRST_COUNT];
        if (value.size == strlen(text) && memcmp(value.data, text, value.size) == 0) {
            return i;
        }
    }
    fail_msg("a value that nobody sent: %.*s", (int)value.size, (const char *)value.data);
    return 0;
}

static uint64_t
generation_of(const struct client *client, uint32_t slot)
{
    for (size_t i = 0; i < client->slot_count; i++) {
        if (client->slots[i].slot == slot) {
            return client->slots[i].generation;
        }
    }
    return 0;
}

/* Notes where a message lies; fails when it was handled in this ownership already. */
static struct place *
note_place(const struct client *client, const struct lw_message *message)
{
    struct place here = { .generation = generation_of(client, message->slot) };
    char text[PLACE_BYTES / 2];
    client->ops->place(message, text, sizeof text);
    (void)snprintf(here.text, sizeof here.text, "%" PRIu32 "/%s", message->slot, text);
    for (size_t i = 0; i < story.place_count; i++) {
        struct place *place = &story.places[i];
        if (place->generation == here.generation && strcmp(place->text, here.text) == 0) {
            if (!place->is_nacked && story_has_receipts) {
                fail_msg("%s was handled twice; fault %" PRIu64, here.text, story.faults);
            }
            totals.twice += !place->is_nacked;
            place->is_nacked = false;
            return place;
        }
    }
    assert_true(story.place_count < PLACES_MAX);
    story.places[story.place_count] = here;
    return &story.places[story.place_count++];
}

static void
handle(struct client *client, size_t index)
{
    const struct lw_message *message = &client->messages[index];
    size_t value = value_index(message);
    struct place *place = note_place(client, message);
    bool is_first = story.handled[value]++ == 0;
    story.again += message->slot == 0 && place->generation != story.generation;
    if (value == 1 && is_first) {
        place->is_nacked = true;
        client_nack(client, index, 1000);
    } else {
        client_ack(client, index);
    }
}

static void
work(struct dealing *dealing)
{
    (void)dealing_receive(dealing);
    while (story.seen < dealing->client->message_count) {
        handle(dealing->client, story.seen++);
    }
}

/* -- The steps of the session ---------------------------------------------------------------------- */

static bool
has_handled_first(struct dealing *dealing, void *user)
{
    (void)user;
    work(dealing);
    bool is_all = story.handled[1] >= 2 && story.handled[4] >= BATCH;
    for (size_t i = 0; i < FIRST_COUNT; i++) {
        is_all = is_all && story.handled[i] > 0;
    }
    return is_all;
}

/* As a dispatcher: what was refused or is unknown is published again. */
static bool
has_published(struct dealing *dealing, void *user)
{
    struct client *client = dealing->client;
    bool is_all = true;
    (void)user;
    work(dealing);
    size_t count = client->sent_count;
    for (size_t i = count < OWN_COUNT ? 0 : count - OWN_COUNT; i < count; i++) {
        is_all = is_all && client->sent[i].receipts > 0 &&
                 client->sent[i].status == LW_STATUS_OK;
    }
    for (size_t i = FIRST_COUNT; i < VALUES; i++) {
        is_all = is_all && story.handled[i] > 0;
    }
    return is_all;
}

static void
publish(struct dealing *dealing)
{
    for (size_t i = 0; i < OWN_COUNT; i++) {
        const char *value = i == OWN_COUNT - 1 ? large : own_values[i];
        assert_int_not_equal(client_publish(dealing->client, "jobs", NULL, value), SIZE_MAX);
    }
}

static bool
is_challenged(struct dealing *dealing, void *user)
{
    const struct embedded_counts *counts = embedded_counts(dealing->broker);
    work(dealing);
    return counts->in[LW_PULSAR_AUTH_RESPONSE] + counts->connections > *(uint64_t *)user;
}

static void
challenge(struct dealing *dealing)
{
    const struct embedded_counts *counts = embedded_counts(dealing->broker);
    uint64_t before = counts->in[LW_PULSAR_AUTH_RESPONSE] + counts->connections;
    embedded_challenge(dealing->broker);
    dealing_until(dealing, is_challenged, &before, PATIENCE_MS);
}

static bool
has_come_again(struct dealing *dealing, void *user)
{
    work(dealing);
    return story.again >= *(uint32_t *)user;
}

/* A seek that was lost with its connection is its caller's to repeat. */
static void
seek(struct dealing *dealing)
{
    const struct lw_pulsar_seek_target earliest = { .id = { .ledger = UINT64_MAX,
                                                            .entry = UINT64_MAX } };
    struct lw_pulsar_source *source = lw_pulsar_source_of(dealing->client->sources[0]);
    uint32_t wanted = 0;
    story.generation = generation_of(dealing->client, 0);
    for (size_t i = 0; i < story.place_count; i++) {
        wanted += story.places[i].generation == story.generation;
    }
    for (int i = 0; i < 4; i++) {
        story.again = 0;
        lw_pulsar_consumer_seek(source->slots[0]->consumer, &earliest);
        if (dealing_await(dealing, has_come_again, &wanted, 5000)) {
            return;
        }
    }
    fail_msg("%u of %u came again; %s", story.again, wanted, dealing->log);
}

static bool
never(struct dealing *dealing, void *user)
{
    (void)user;
    work(dealing);
    return false;
}

/* -- A round --------------------------------------------------------------------------------------- */

static void
fill(struct embedded *broker)
{
    embedded_set_partitions(broker, "jobs", 2);
    for (size_t i = 0; i < FIRST_COUNT; i++) {
        struct embedded_publish message = { .value = lw_bytes_of(first_values[i]),
                                            .batch = i == 4 ? BATCH : 0 };
        (void)embedded_publish(broker, i < 5 ? "jobs-partition-0" : "jobs-partition-1",
                               &message);
    }
}

static void
begin(const struct embedded_fault *fault)
{
    static const struct lw_property properties[] = { { "consumer_type", "Shared" },
                                                     { "initial_position", "Earliest" },
                                                     { "ack_receipt_enabled", "true" } };
    struct dealing *dealing = &story.dealing;
    uint64_t faults = story.faults;
    memset(&story, 0, sizeof story);
    story.faults = faults;
    dealing_init(dealing);
    dealing->settings.auth_method = "token";
    dealing->settings.auth_data = "secret";
    dealing->settings.max_message_size = MESSAGE_BYTES_MAX;
    dealing_serve(dealing);
    fill(dealing->broker);
    if (fault) {
        embedded_add_fault(dealing->broker, fault);
    }
    dealing_property(dealing, "token", "secret");
    dealing_property(dealing, "chunking_enabled", "true");
    dealing_open(dealing);
    struct lw_source_options options = dealing_options("jobs");
    options.properties = properties;
    options.property_count = story_has_receipts ? 3 : 2;
    options.stall_timeout_ms = 60000;
    (void)client_subscribe_with(dealing->client, &options);
    client_start(dealing->client);
}

static void
expect_all_acknowledged(const struct embedded *broker)
{
    static const char *const topics[] = { "jobs-partition-0", "jobs-partition-1" };
    for (size_t i = 0; i < 2; i++) {
        struct embedded_subscription_info info;
        assert_true(embedded_subscription(broker, topics[i], "s", &info));
        assert_int_equal(info.backlog, 0);
        assert_int_equal(info.consumers, 0);
    }
}

static struct embedded_counts
play(const struct embedded_fault *fault)
{
    struct dealing *dealing = &story.dealing;
    struct lw_lag lag;
    begin(fault);
    dealing_until(dealing, has_handled_first, NULL, PATIENCE_MS);
    publish(dealing);
    dealing_until(dealing, has_published, NULL, PATIENCE_MS);
    challenge(dealing);
    (void)dealing->client->ops->lag(dealing->client->sources[0], &lag);
    (void)dealing_await(dealing, never, NULL,
                        65000); /* both sides ask whether the other lives */
    seek(dealing);
    (void)dealing_await(dealing, never, NULL, 200);
    dealing_close(dealing);
    struct embedded_counts counts = *embedded_counts(dealing->broker);
    expect_all_acknowledged(dealing->broker);
    totals.rounds++;
    totals.connections += counts.connections;
    totals.acked += counts.acked_ids;
    totals.redelivered += counts.redelivered;
    dealing_deinit(dealing);
    return counts;
}

/* -- Tests ----------------------------------------------------------------------------------------- */

static struct embedded_counts clean;

static int
play_without_faults(void **state)
{
    (void)state;
    for (size_t i = 0; i < CHUNKED_BYTES; i++) {
        large[i] = (char)('A' + i % 26);
    }
    clean = play(NULL);
    return 0;
}

/* Or the rounds below would leave some of them out. */
static void
the_session_has_every_command(void **state)
{
    static const enum lw_pulsar_command_type in[] = {
        LW_PULSAR_CONNECT,  LW_PULSAR_PARTITIONED_METADATA,
        LW_PULSAR_LOOKUP,   LW_PULSAR_SUBSCRIBE,
        LW_PULSAR_FLOW,     LW_PULSAR_ACK,
        LW_PULSAR_SEEK,     LW_PULSAR_REDELIVER_UNACKNOWLEDGED,
        LW_PULSAR_PRODUCER, LW_PULSAR_CONSUMER_STATS,
        LW_PULSAR_SEND,     LW_PULSAR_CLOSE_PRODUCER,
        LW_PULSAR_PING,     LW_PULSAR_CLOSE_CONSUMER,
        LW_PULSAR_PONG,     LW_PULSAR_AUTH_RESPONSE,
    };
    static const enum lw_pulsar_command_type out[] = {
        LW_PULSAR_CONNECTED,      LW_PULSAR_PARTITIONED_METADATA_RESPONSE,
        LW_PULSAR_SUCCESS,        LW_PULSAR_LOOKUP_RESPONSE,
        LW_PULSAR_MESSAGE,        LW_PULSAR_PRODUCER_SUCCESS,
        LW_PULSAR_SEND_RECEIPT,   LW_PULSAR_CONSUMER_STATS_RESPONSE,
        LW_PULSAR_ACK_RESPONSE,   LW_PULSAR_CLOSE_CONSUMER,
        LW_PULSAR_AUTH_CHALLENGE, LW_PULSAR_PING,
        LW_PULSAR_PONG,
    };
    (void)state;
    for (size_t i = 0; i < sizeof in / sizeof in[0]; i++) {
        if (clean.in[in[i]] == 0) {
            fail_msg("no %s", lw_pulsar_command_name((int32_t)in[i]));
        }
    }
    for (size_t i = 0; i < sizeof out / sizeof out[0]; i++) {
        if (clean.out[out[i]] == 0) {
            fail_msg("no %s from the broker", lw_pulsar_command_name((int32_t)out[i]));
        }
    }
    assert_int_equal(clean.connections, 1);
}

static void
drop_at_every_frame(enum embedded_fault_kind kind, enum embedded_direction direction)
{
    uint64_t frames = direction == EMBEDDED_IN ? clean.frames_in : clean.frames_out;
    uint64_t before = totals.connections;
    for (uint64_t nth = 1; nth <= frames; nth++) {
        struct embedded_fault fault = { .kind = kind,
                                        .direction = direction,
                                        .nth = (uint32_t)nth };
        story.faults = nth;
        (void)play(&fault);
    }
    /* The connection did end, but with a frame or two at the very end of the session. */
    assert_true(totals.connections - before >= frames * 2 - 8);
}

static void
a_connection_may_end_before_any_frame_that_the_broker_gets(void **state)
{
    (void)state;
    drop_at_every_frame(EMBEDDED_DROP, EMBEDDED_IN);
}

static void
a_connection_may_end_after_any_frame_that_the_broker_gets(void **state)
{
    (void)state;
    drop_at_every_frame(EMBEDDED_DROP_AFTER, EMBEDDED_IN);
}

static void
a_connection_may_end_before_any_frame_that_the_broker_sends(void **state)
{
    (void)state;
    drop_at_every_frame(EMBEDDED_DROP, EMBEDDED_OUT);
}

static void
a_connection_may_end_after_any_frame_that_the_broker_sends(void **state)
{
    (void)state;
    drop_at_every_frame(EMBEDDED_DROP_AFTER, EMBEDDED_OUT);
}

static uint64_t
next_random(uint64_t *at)
{
    *at = *at * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *at >> 33;
}

static void
cut_at_random(int times)
{
    uint64_t at = seed;
    uint64_t before = totals.connections;
    for (int i = 0; i < times; i++) {
        bool is_in = next_random(&at) % 2 == 0;
        uint64_t bytes = is_in ? clean.bytes_in : clean.bytes_out;
        struct embedded_fault fault = { .kind = EMBEDDED_CUT,
                                        .direction = is_in ? EMBEDDED_IN : EMBEDDED_OUT,
                                        .bytes = next_random(&at) % bytes };
        story.faults = fault.bytes;
        (void)play(&fault);
    }
    assert_true(totals.connections - before >= (uint64_t)(times * 2 - times / 20));
}

static void
a_connection_may_be_cut_at_any_byte(void **state)
{
    (void)state;
    cut_at_random(RANDOM_CUTS);
    assert_int_equal(totals.twice, 0);
}

/* An ack that was lost with the connection makes its message come again: no more than those. */
static void
without_receipts_only_lost_acks_bring_messages_again(void **state)
{
    (void)state;
    story_has_receipts = false;
    cut_at_random(RANDOM_CUTS / 4);
    assert_in_range(totals.twice, 1, RANDOM_CUTS / 4 * (FIRST_COUNT + BATCH));
    story_has_receipts = true;
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_session_has_every_command),
        cmocka_unit_test(a_connection_may_end_before_any_frame_that_the_broker_gets),
        cmocka_unit_test(a_connection_may_end_after_any_frame_that_the_broker_gets),
        cmocka_unit_test(a_connection_may_end_before_any_frame_that_the_broker_sends),
        cmocka_unit_test(a_connection_may_end_after_any_frame_that_the_broker_sends),
        cmocka_unit_test(a_connection_may_be_cut_at_any_byte),
        cmocka_unit_test(without_receipts_only_lost_acks_bring_messages_again),
    };
    seed = argc > 1 ? strtoull(argv[1], NULL, 10) : seed;
    int failed = cmocka_run_group_tests(tests, play_without_faults, NULL);
    (void)printf("seed %" PRIu64 ": %" PRIu64 " sessions of %" PRIu64 " frames in and %" PRIu64
                 " out, %" PRIu64 " connections, %" PRIu64 " ids acknowledged, %" PRIu64
                 " entries asked back, %" PRIu64 " handled again without receipts\n",
                 seed, totals.rounds, clean.frames_in, clean.frames_out, totals.connections,
                 totals.acked, totals.redelivered, totals.twice);
    return failed;
}
