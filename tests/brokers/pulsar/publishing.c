/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dispatcher's part of publishing. Time stands still but for what a test lets pass; sockets are
 * looked at until nothing moves.
 */
#include "tests/support/test.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tests/brokers/pulsar/publishing.h"

enum { PATIENCE = 3000, QUIET = 6, VALUE_BYTES = 16 };

static char values[PUBLISHING_MAX][VALUE_BYTES];

static void
on_receipt(void *user, struct lw_publication *publication, enum lw_status status)
{
    struct publishing *publishing = user;
    uint32_t index = (uint32_t)(publication - publishing->items);
    assert_false(publishing->is_publishing);
    assert_true(index < publishing->count);
    assert_int_equal(publishing->told[index], 0);
    publishing->told[index]++;
    publishing->statuses[index] = status;
    publishing->order[publishing->receipts++] = index;
}

static void
on_room(void *user)
{
    struct publishing *publishing = user;
    assert_false(publishing->is_publishing);
    publishing->rooms++;
}

static void
on_blocked(void *user, const char *topic, const struct lw_error *error)
{
    struct publishing *publishing = user;
    publishing->blocked += error ? 1 : 0;
    publishing->unblocked += error ? 0 : 1;
    (void)snprintf(publishing->blocked_topic, sizeof publishing->blocked_topic, "%s", topic);
    if (error) {
        publishing->blocked_error = *error;
    }
}

static void
on_closed(void *user)
{
    struct publishing *publishing = user;
    assert_int_equal(publishing->closed, 0);
    assert_int_equal(publishing->receipts, publishing->count);
    publishing->closed++;
}

static const struct lw_pulsar_publisher_ops ops = {
    .on_receipt = on_receipt,
    .on_room = on_room,
    .on_blocked = on_blocked,
    .on_closed = on_closed,
};

struct publishing *
publishing_create(void)
{
    struct publishing *publishing = calloc(1, sizeof *publishing);
    assert_non_null(publishing);
    publishing->live = lw_alloc_live();
    embedded_settings_init(&publishing->broker_settings);
    publishing->settings = (struct lw_pulsar_producer_settings){
        .batch_messages_max = 1000,
        .batch_bytes_max = 128 * 1024,
        .send_timeout_ns = 30000 * LW_MS,
        .pending_max = 1000,
        .pending_bytes_max = 64 * 1024 * 1024,
        .producers_max = 100,
        .idle_ns = 60000 * LW_MS,
    };
    return publishing;
}

void
publishing_start(struct publishing *publishing)
{
    struct world *world = &publishing->world;
    struct lw_error error;
    world_init(world, "pulsar://127.0.0.1:1", NULL);
    publishing->broker = embedded_create(world->host, &publishing->broker_settings);
    lw_pulsar_address_deinit(&world->client.address);
    assert_int_equal(lw_pulsar_address_parse(embedded_url(publishing->broker, 0),
                                             &world->client.address, &error),
                     LW_STATUS_OK);
    publishing->publisher = lw_pulsar_publisher_create(&world->client, &publishing->settings,
                                                       &ops, publishing);
    assert_non_null(publishing->publisher);
}

void
publishing_destroy(struct publishing *publishing)
{
    struct world *world = &publishing->world;
    struct lw_host *host = world->host;
    const struct embedded_counts *counts = embedded_counts(publishing->broker);
    uint32_t closed = publishing->closed;
    lw_pulsar_publisher_close(publishing->publisher, host->now + 5000 * LW_MS);
    assert_int_equal(publishing->closed, closed); /* not from in the call */
    for (int i = 0; i < PATIENCE && publishing->closed == 0; i++) {
        virtual_host_settle(&world->virtual_host);
        (void)poll(NULL, 0, i < 50 ? 1 : 0);
        virtual_host_pass(&world->virtual_host, i < 50 ? 0 : 10 * LW_MS);
    }
    assert_int_equal(publishing->closed, 1);
    assert_int_equal(publishing_figures(publishing).pending, 0);
    assert_int_equal(publishing_figures(publishing).pending_bytes, 0);
    publishing_rest(publishing);
    if (counts->protocol_errors > 0) {
        fail_msg("%s", counts->last_error);
    }
    assert_int_equal(embedded_producers(publishing->broker, NULL), 0);
    lw_pulsar_publisher_destroy(publishing->publisher);
    lw_pulsar_client_deinit(&world->client);
    embedded_destroy(publishing->broker);
    virtual_host_settle(&world->virtual_host);
    assert_int_equal(lw_alloc_live(), publishing->live);
    free(publishing);
}

/* -- Sending --------------------------------------------------------------------------------------- */

struct lw_publication *
publishing_item(struct publishing *publishing, const char *topic, const char *value)
{
    uint32_t made = publishing->count;
    while (made < PUBLISHING_MAX && publishing->items[made].topic) {
        made++;
    }
    assert_true(made < PUBLISHING_MAX);
    publishing->items[made] = (struct lw_publication){
        .topic = topic, .partition = -1, .value = lw_bytes_of(value), .event_time_ms = -1
    };
    return &publishing->items[made];
}

static uint32_t
made_count(const struct publishing *publishing)
{
    uint32_t count = publishing->count;
    while (count < PUBLISHING_MAX && publishing->items[count].topic) {
        count++;
    }
    return count - publishing->count;
}

void
publishing_go(struct publishing *publishing)
{
    struct lw_publication *items[PUBLISHING_MAX];
    uint32_t count = made_count(publishing);
    for (uint32_t i = 0; i < count; i++) {
        items[i] = &publishing->items[publishing->count + i];
    }
    publishing->is_publishing = true;
    size_t accepted = lw_pulsar_publisher_publish(publishing->publisher, items, count);
    publishing->is_publishing = false;
    assert_int_equal(accepted, count);
    publishing->count += count;
}

void
publishing_send(struct publishing *publishing, const char *topic, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        (void)snprintf(values[i], sizeof values[i], "%u", i);
        (void)publishing_item(publishing, topic, values[i]);
    }
    publishing_go(publishing);
}

/* -- Waiting --------------------------------------------------------------------------------------- */

static void
turn(struct publishing *publishing)
{
    virtual_host_settle(&publishing->world.virtual_host);
    (void)poll(NULL, 0, 1);
}

void
publishing_until(struct publishing *publishing, uint32_t receipts)
{
    for (int i = 0; i < PATIENCE && publishing->receipts < receipts; i++) {
        turn(publishing);
    }
    if (publishing->receipts < receipts) {
        fail_msg("%u receipts came, %u are waited for", publishing->receipts, receipts);
    }
}

void
publishing_rest(struct publishing *publishing)
{
    uint64_t before = UINT64_MAX;
    for (int quiet = 0; quiet < QUIET; quiet++) {
        const struct embedded_counts *counts = embedded_counts(publishing->broker);
        uint64_t moved = counts->bytes_in + counts->bytes_out + publishing->receipts;
        quiet = moved == before ? quiet : 0;
        before = moved;
        turn(publishing);
    }
}

void
publishing_pass_ms(struct publishing *publishing, int64_t ms)
{
    virtual_host_pass(&publishing->world.virtual_host, (uint64_t)ms * LW_MS);
    publishing_rest(publishing);
}

/* -- Looking --------------------------------------------------------------------------------------- */

void
publishing_expect_all(const struct publishing *publishing, enum lw_status status)
{
    assert_int_equal(publishing->receipts, publishing->count);
    for (uint32_t i = 0; i < publishing->count; i++) {
        assert_int_equal(publishing->statuses[i], status);
    }
}

static void
assert_number(struct lw_bytes value, uint32_t number)
{
    char text[VALUE_BYTES];
    int length = snprintf(text, sizeof text, "%u", number);
    assert_int_equal(value.size, length);
    assert_memory_equal(value.data, text, value.size);
}

static uint32_t
expect_batch(const struct lw_pulsar_metadata *metadata, struct lw_bytes body, uint32_t next)
{
    struct lw_pulsar_batch batch;
    struct lw_pulsar_member member;
    assert_int_equal(lw_pulsar_batch_open(metadata, body, &batch), LW_PULSAR_OK);
    while (lw_pulsar_batch_next(&batch, &member)) {
        assert_number(member.value, next++);
    }
    assert_int_equal(batch.fault, LW_PULSAR_OK);
    return next;
}

void
publishing_expect_stored(struct publishing *publishing, const char *topic, uint32_t count)
{
    struct lw_pulsar_metadata metadata;
    struct lw_bytes body;
    uint32_t next = 0;
    for (uint64_t i = 0; embedded_entry(publishing->broker, topic, i, &metadata, &body); i++) {
        if (lw_pulsar_metadata_is_batch(&metadata)) {
            next = expect_batch(&metadata, body, next);
        } else {
            assert_number(body, next++);
        }
    }
    assert_int_equal(next, count);
}

struct lw_pulsar_publisher_figures
publishing_figures(const struct publishing *publishing)
{
    struct lw_pulsar_publisher_figures figures;
    lw_pulsar_publisher_read(publishing->publisher, &figures);
    return figures;
}
