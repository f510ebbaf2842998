/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A consumer of ours in a test, against the embedded broker: the part that a source plays for it
 * in the service. It asks for messages, takes them, settles and gives them back, and turns both
 * loops until what a test waits for has come.
 */
#include "tests/support/test.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "tests/brokers/pulsar/consuming.h"

enum { PATIENCE = 3000, QUIET = 4 };

static struct consuming *
of(struct lw_pulsar_consumer *consumer)
{
    return lw_pulsar_consumer_user(consumer);
}

static void
on_begun(struct lw_pulsar_consumer *consumer)
{
    of(consumer)->begun++;
}

static void
on_lost(struct lw_pulsar_consumer *consumer)
{
    of(consumer)->lost++;
}

static void
on_ready(struct lw_pulsar_consumer *consumer)
{
    assert_true(lw_pulsar_consumer_is_ready(consumer));
    assert_true(of(consumer)->begun > of(consumer)->lost);
}

static void
on_failed(struct lw_pulsar_consumer *consumer, const struct lw_pulsar_failure *failure)
{
    of(consumer)->failed++;
    of(consumer)->failure = *failure;
}

static void
on_end_of_topic(struct lw_pulsar_consumer *consumer)
{
    of(consumer)->ended++;
}

static void
on_stopped(struct lw_pulsar_consumer *consumer)
{
    of(consumer)->stopped++;
}

static const struct lw_pulsar_consumer_ops consumer_ops = {
    .on_begun = on_begun,
    .on_lost = on_lost,
    .on_ready = on_ready,
    .on_failed = on_failed,
    .on_end_of_topic = on_end_of_topic,
    .on_stopped = on_stopped,
};

struct consuming *
consuming_create(struct world *world, int32_t type)
{
    struct consuming *consuming = calloc(1, sizeof *consuming);
    assert_non_null(consuming);
    consuming->world = world;
    consuming->settings = (struct lw_pulsar_consumer_settings){
        .subscription = "s",
        .type = type,
        .initial_position = LW_PULSAR_INITIAL_EARLIEST,
        .acks_batch_index = true,
        .wants_ack_receipts = true,
        .receiver_queue_size = 1000,
        .queue_bytes_max = 64 * 1024 * 1024,
        .ack_group_max = 1000,
        .ack_group_ns = 100 * LW_MS,
        .nack_delay_ns = 1000 * LW_MS,
        .nack_multiplier = 2,
        .chunked_pending_max = 10,
        .chunked_bytes_max = 64 * 1024 * 1024,
        .chunk_expiry_ns = 60000 * LW_MS,
        .uncompressed_bytes_max = 128 * 1024 * 1024,
    };
    return consuming;
}

void
consuming_start(struct consuming *consuming, uint32_t window)
{
    consuming->window = window;
    consuming->consumer = lw_pulsar_consumer_create(&consuming->world->client, CONSUMING_TOPIC,
                                                    &consuming->settings, 3, &consumer_ops,
                                                    consuming);
    assert_non_null(consuming->consumer);
    lw_pulsar_consumer_start(consuming->consumer);
}

void
consuming_ack(struct consuming *consuming, size_t index)
{
    lw_pulsar_consumer_ack(consuming->consumer, &consuming->messages[index]);
    lw_pulsar_message_release(&consuming->messages[index]);
    consuming->released++;
}

void
consuming_nack(struct consuming *consuming, size_t index, int64_t delay_ms)
{
    uint64_t delay = delay_ms < 0 ? UINT64_MAX : (uint64_t)delay_ms * LW_MS;
    lw_pulsar_consumer_nack(consuming->consumer, &consuming->messages[index], delay);
    lw_pulsar_message_release(&consuming->messages[index]);
    consuming->released++;
}

void
consuming_ack_all(struct consuming *consuming)
{
    for (size_t i = 0; i < consuming->count; i++) {
        if (consuming->messages[i].owner) {
            consuming_ack(consuming, i);
        }
    }
}

/* One look: take what there is, ask for more. */
static bool
take(struct consuming *consuming)
{
    size_t before = consuming->count;
    while (lw_pulsar_consumer_is_ready(consuming->consumer)) {
        assert_true(consuming->count < CONSUMING_MESSAGES_MAX);
        struct lw_message *out[1] = { &consuming->messages[consuming->count] };
        uint64_t bytes = UINT64_MAX;
        size_t given = lw_pulsar_consumer_receive(consuming->consumer, out, 1, &bytes);
        consuming->count += given;
        if (given > 0 && consuming->acks) {
            consuming_ack(consuming, consuming->count - 1);
        }
    }
    size_t held = consuming->count - consuming->released;
    size_t room = consuming->window > held ? consuming->window - held : 0;
    lw_pulsar_consumer_demand(consuming->consumer, (uint32_t)room, UINT64_MAX);
    return consuming->count > before;
}

static void
turn(struct consuming *consuming)
{
    virtual_host_settle(&consuming->world->virtual_host);
    (void)poll(NULL, 0, 1);
}

void
consuming_until(struct consuming *consuming, size_t count)
{
    for (int i = 0; i < PATIENCE && consuming->count < count; i++) {
        turn(consuming);
        (void)take(consuming);
    }
    if (consuming->count < count) {
        fail_msg("%zu messages came, %zu are waited for", consuming->count, count);
    }
}

void
consuming_rest(struct consuming *consuming)
{
    for (int quiet = 0; quiet < QUIET; quiet++) {
        turn(consuming);
        if (consuming->consumer && take(consuming)) {
            quiet = 0;
        }
    }
}

void
consuming_pass_ms(struct consuming *consuming, int64_t ms)
{
    virtual_host_pass(&consuming->world->virtual_host, (uint64_t)ms * LW_MS);
    consuming_rest(consuming);
}

static bool
is_stopped(void *user)
{
    return ((struct consuming *)user)->stopped > 0;
}

void
consuming_destroy(struct consuming *consuming)
{
    lw_pulsar_consumer_stop(consuming->consumer, consuming->world->host->now + 5000 * LW_MS);
    assert_int_equal(consuming->stopped, 0);
    world_until(consuming->world, is_stopped, consuming);
    for (size_t i = 0; i < consuming->count; i++) {
        if (consuming->messages[i].owner) {
            lw_pulsar_message_release(&consuming->messages[i]);
        }
    }
    lw_pulsar_consumer_destroy(consuming->consumer);
    free(consuming);
}

struct lw_pulsar_consumer_figures
consuming_figures(const struct consuming *consuming)
{
    struct lw_pulsar_consumer_figures figures;
    lw_pulsar_consumer_read(consuming->consumer, &figures);
    return figures;
}
