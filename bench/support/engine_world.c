/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The border of an engine as the dispatcher keeps it: runs begin with a new serial, submits are
 * followed by one flush a turn, results come by the list and by the mailbox.
 */
#include "bench/support/engine_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

static const struct lw_header *
headers(struct lw_broker *broker, const struct lw_message *message, size_t *ret_count)
{
    (void)broker;
    (void)message;
    *ret_count = 0;
    return NULL;
}

static void
times(struct lw_broker *broker, const struct lw_message *message,
      struct lw_message_times *ret_times)
{
    (void)broker;
    (void)message;
    *ret_times = (struct lw_message_times){ .timestamp_ms = -1, .event_time_ms = -1 };
}

static const struct lw_broker_ops broker_ops = { .scheme = "bench",
                                                 .headers = headers,
                                                 .times = times };

static uint32_t
retries(const struct lw_delivery *delivery)
{
    (void)delivery;
    return 0;
}

static size_t
message_id(const struct lw_delivery *delivery, char *out, size_t size)
{
    int length = snprintf(out, size, "bench/orders/0/%lld",
                          (long long)delivery->message.position);
    return (size_t)length;
}

static const struct lw_view_ops view_ops = { .retries = retries,
                                             .message_id = message_id,
                                             .now = lw_clock_monotonic_ns };

static void
fail(const char *what)
{
    (void)fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

static void
take(struct lw_engine_world *world, struct lw_delivery *delivery)
{
    if (delivery->verdict != LW_OK) {
        fail("a handler did not say ok");
    }
    world->spare[world->spare_count++] = delivery;
    world->done++;
}

static void
take_results(struct lw_engine_world *world)
{
    struct lw_queue_node *node = NULL;
    lw_mailbox_awake(&world->completions.mailbox);
    struct lw_mail *mail = lw_mailbox_take(&world->completions.mailbox);
    while (mail) {
        struct lw_mail *next = mail->next;
        take(world, LW_CONTAINER(mail, struct lw_delivery, mail));
        mail = next;
    }
    while ((node = lw_queue_pop(&world->completions.done)) != NULL) {
        take(world, LW_CONTAINER(node, struct lw_delivery, link));
    }
}

static void
submit_one(struct lw_engine_world *world, uint64_t now)
{
    struct lw_delivery *delivery = world->spare[--world->spare_count];
    uint32_t serial = atomic_load_explicit(&delivery->serial, memory_order_relaxed);
    atomic_store_explicit(&delivery->serial, (serial | 1) + 1, memory_order_relaxed);
    lw_mail_init(&delivery->mail);
    delivery->started_at = now;
    if (world->engine->ops->submit(world->engine, &delivery, 1) == 1) {
        world->left--;
    } else {
        world->spare[world->spare_count++] = delivery;
    }
}

/* An engine that answers inside submit may be given more at once, but others want their turn. */
static uint64_t
on_turn(struct lw_turn *turn, uint64_t now)
{
    struct lw_engine_world *world = LW_CONTAINER(turn, struct lw_engine_world, turn);
    take_results(world);
    uint32_t tries = world->spare_count;
    for (; tries > 0 && world->left > 0 && world->engine->room > 0; tries--) {
        submit_one(world, now);
    }
    world->engine->ops->flush(world->engine);
    bool is_more = lw_mailbox_sleep(&world->completions.mailbox) ||
                   world->completions.done.first != NULL;
    return is_more ? now : LW_NEVER;
}

void
lw_engine_world_open(struct lw_engine_world *world, uint32_t in_hand, struct lw_bytes value)
{
    memset(world, 0, sizeof *world);
    if (lw_loop_create(1, &world->loop) != LW_STATUS_OK) {
        fail("no loop");
    }
    world->host = lw_loop_host(world->loop);
    lw_completions_init(&world->completions, world->host, world->host->mailbox.wake_fd);
    world->broker.ops = &broker_ops;
    world->subscription.topic = "orders";
    world->subscription.name = "group";
    world->subscription.pipeline = "bench";
    world->subscription.broker = &world->broker;
    world->subscription.view = &view_ops;
    world->partition.topic = "orders";
    world->partition.subscription = &world->subscription;
    world->deliveries = calloc(in_hand, sizeof *world->deliveries);
    world->spare = calloc(in_hand, sizeof(struct lw_delivery *));
    for (uint32_t i = 0; i < in_hand; i++) {
        struct lw_delivery *delivery = &world->deliveries[i];
        delivery->completions = &world->completions;
        delivery->subscription = &world->subscription;
        delivery->partition = &world->partition;
        delivery->message.value = value;
        delivery->attempt = 1;
        world->spare[world->spare_count++] = delivery;
    }
}

void
lw_engine_world_start(struct lw_engine_world *world, uint32_t room)
{
    struct lw_error error = { 0 };
    if (world->engine->ops->start(world->engine, &error) != LW_STATUS_OK) {
        fail(error.message);
    }
    world->turn.fn = on_turn;
    lw_list_init(&world->turn.link);
    lw_host_add_turn(world->host, &world->turn);
    while (world->engine->room < room) {
        if (world->engine->is_down) {
            fail(world->engine->down_error.message);
        }
        lw_loop_turn_until(world->loop, LW_NEVER);
    }
}

double
lw_engine_world_run(struct lw_engine_world *world, uint64_t messages)
{
    uint64_t began = lw_clock_monotonic_ns();
    world->left = messages;
    world->done = 0;
    lw_host_want_turn(world->host);
    while (world->done < messages) {
        lw_loop_turn_until(world->loop, LW_NEVER);
    }
    return (double)(lw_clock_monotonic_ns() - began) / 1e9;
}

void
lw_engine_world_close(struct lw_engine_world *world)
{
    world->engine->ops->stop(world->engine, LW_NEVER);
    while (!world->engine->ops->is_stopped(world->engine)) {
        lw_loop_turn_until(world->loop, LW_NEVER);
    }
    world->engine->ops->destroy(world->engine);
    lw_host_remove_turn(&world->turn);
    lw_loop_destroy(world->loop);
    free(world->deliveries);
    free(world->spare);
}
