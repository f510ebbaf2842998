/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world.c: the surroundings of an engine under test. It does what the dispatcher does at an
 * engine's border and nothing more: begins runs, submits, flushes once a turn, takes results
 * from the list and the mailbox. No test here waits for a fixed time to be safe: waiting ends
 * with the condition, or fails.
 */
#include "tests/support/test.h"

#include "tests/engines/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

static const struct lw_header *
headers(struct lw_broker *broker, const struct lw_message *message, size_t *ret_count)
{
    struct world *world = LW_CONTAINER(broker, struct world, broker);
    (void)message;
    *ret_count = world->header_count;
    return world->headers;
}

static void
times(struct lw_broker *broker, const struct lw_message *message,
      struct lw_message_times *ret_times)
{
    struct world *world = LW_CONTAINER(broker, struct world, broker);
    (void)message;
    *ret_times = world->times;
}

static const struct lw_broker_ops broker_ops = {
    .scheme = "world",
    .headers = headers,
    .times = times,
};

/* What the dispatcher answers from the clock or from origin headers. */
static uint32_t
retries(const struct lw_delivery *delivery)
{
    return delivery->message.redeliveries;
}

static size_t
message_id(const struct lw_delivery *delivery, char *out, size_t size)
{
    int length = snprintf(out, size, "main/orders/3/%lld",
                          (long long)delivery->message.position);
    return (size_t)length;
}

static const struct lw_view_ops view_ops = {
    .retries = retries,
    .message_id = message_id,
    .now = lw_clock_monotonic_ns,
};

static void
keep_log(enum lw_log_level level, const char *event, const char *text, const char *fields,
         void *user)
{
    struct world *world = user;
    (void)level;
    size_t room = sizeof world->log - world->log_size;
    int length = snprintf(world->log + world->log_size, room, "%s: %s %s\n", event, text,
                          fields);
    if (length > 0 && (size_t)length < room) {
        world->log_size += (size_t)length;
    } else {
        world->log[world->log_size] = '\0';
    }
}

static void
take(struct world *world, struct lw_delivery *delivery)
{
    assert_int_equal(delivery->state, LW_STATE_RUNNING);
    assert_true(delivery->verdict <= LW_ERROR);
    delivery->state = LW_STATE_JUDGED;
    assert_true(world->result_count < WORLD_TASKS_MAX);
    world->results[world->result_count++] = delivery;
    world->running--;
}

static uint64_t
on_turn(struct lw_turn *turn, uint64_t now)
{
    struct world *world = LW_CONTAINER(turn, struct world, turn);
    lw_mailbox_awake(&world->completions.mailbox);
    struct lw_mail *mail = lw_mailbox_take(&world->completions.mailbox);
    while (mail) {
        struct lw_mail *next = mail->next;
        take(world, LW_CONTAINER(mail, struct lw_delivery, mail));
        mail = next;
    }
    struct lw_queue_node *node = NULL;
    while ((node = lw_queue_pop(&world->completions.done)) != NULL) {
        take(world, LW_CONTAINER(node, struct lw_delivery, link));
    }
    if (world->engine) {
        world->engine->ops->flush(world->engine);
    }
    return lw_mailbox_sleep(&world->completions.mailbox) ? now : LW_NEVER;
}

struct world *
world_create(void)
{
    struct world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    assert_int_equal(lw_loop_create(1, &world->loop), LW_STATUS_OK);
    world->host = lw_loop_host(world->loop);
    world->host->log = keep_log;
    world->host->log_user = world;
    world->host->log_level = LW_LOG_DEBUG;
    lw_completions_init(&world->completions, world->host, world->host->mailbox.wake_fd);
    world->turn.fn = on_turn;
    lw_list_init(&world->turn.link);
    lw_host_add_turn(world->host, &world->turn);
    world->broker.ops = &broker_ops;
    world->times = (struct lw_message_times){ .timestamp_ms = -1, .event_time_ms = -1 };
    world->subscription.topic = "orders";
    world->subscription.name = "group";
    world->subscription.pipeline = "pipe";
    world->subscription.broker = &world->broker;
    world->subscription.view = &view_ops;
    world->partition.topic = "orders";
    world->partition.number = 3;
    world->partition.subscription = &world->subscription;
    world->deliveries = calloc(WORLD_TASKS_MAX, sizeof *world->deliveries);
    assert_non_null(world->deliveries);
    return world;
}

void
world_destroy(struct world *world)
{
    if (world->engine) {
        world->engine->ops->destroy(world->engine);
    }
    lw_mailbox_retire(&world->completions.mailbox);
    lw_host_remove_turn(&world->turn);
    lw_loop_destroy(world->loop);
    for (size_t i = 0; i < world->delivery_count; i++) {
        lw_outcome_destroy(world->deliveries[i].outcome);
        free((void *)(uintptr_t)world->deliveries[i].message.value.data);
    }
    free(world->deliveries);
    free(world);
}

struct lw_delivery *
world_delivery_of(struct world *world, struct lw_bytes value)
{
    assert_true(world->delivery_count < WORLD_TASKS_MAX);
    struct lw_delivery *delivery = &world->deliveries[world->delivery_count];
    char *copy = value.data ? malloc(value.size + 1) : NULL;
    if (copy) {
        memcpy(copy, value.data, value.size);
    }
    delivery->message.value = (struct lw_bytes){ copy, value.size };
    delivery->message.key = lw_bytes_of("k");
    delivery->message.position = (int64_t)world->delivery_count++;
    delivery->subscription = &world->subscription;
    delivery->partition = &world->partition;
    delivery->completions = &world->completions;
    delivery->state = LW_STATE_QUEUED;
    return delivery;
}

struct lw_delivery *
world_delivery(struct world *world, const char *text)
{
    return world_delivery_of(world, lw_bytes_of(text));
}

bool
world_submit(struct world *world, struct lw_delivery *delivery)
{
    uint32_t room = world->engine->room;
    delivery->state = LW_STATE_QUEUED;
    lw_delivery_begin_run(delivery, world->host->now);
    world->running++;
    size_t taken = world->engine->ops->submit(world->engine, &delivery, 1);
    if (taken == 0) {
        delivery->state = LW_STATE_QUEUED;
        delivery->attempt--;
        world->running--;
    }
    assert_true(taken <= (room > 0 ? 1 : 0));
    lw_host_want_turn(world->host);
    return taken == 1;
}

void
world_turn(struct world *world, int64_t at_most_ms)
{
    lw_loop_turn_until(world->loop, world->host->now + (uint64_t)at_most_ms * LW_MS);
}

void
world_wait(struct world *world, bool (*fn)(struct world *world))
{
    uint64_t deadline = world->host->ops->refresh(world->host) + WORLD_WAIT_MS * LW_MS;
    while (!fn(world)) {
        if (world->host->now >= deadline) {
            print_error("%s", world->log);
            fail_msg("nothing happened for %d ms", WORLD_WAIT_MS);
        }
        lw_loop_turn_until(world->loop, deadline);
    }
}

void
world_spend(struct world *world, int64_t ms)
{
    uint64_t deadline = world->host->ops->refresh(world->host) + (uint64_t)ms * LW_MS;
    while (world->host->now < deadline) {
        lw_loop_turn_until(world->loop, deadline);
    }
}

void
world_wait_results(struct world *world, size_t count)
{
    uint64_t deadline = world->host->ops->refresh(world->host) + WORLD_WAIT_MS * LW_MS;
    while (world->result_count < count) {
        if (world->host->now >= deadline) {
            print_error("%s", world->log);
            fail_msg("%zu results of %zu", world->result_count, count);
        }
        lw_loop_turn_until(world->loop, deadline);
    }
}

struct lw_delivery *
world_run(struct world *world, const char *text)
{
    struct lw_delivery *delivery = world_delivery(world, text);
    world_wait(world, world_engine_has_room);
    assert_true(world_submit(world, delivery));
    return delivery;
}

struct lw_bytes
world_reply_of(const struct lw_delivery *delivery)
{
    struct lw_output view;
    struct lw_header headers[1];
    assert_int_equal(delivery->verdict, LW_OK);
    assert_non_null(delivery->outcome);
    assert_int_equal(delivery->outcome->output_count, 1);
    assert_true(delivery->outcome->outputs[0].is_reply);
    lw_outcome_view(delivery->outcome, 0, &view, headers);
    return view.value;
}

bool
world_has_logged(const struct world *world, const char *text)
{
    return strstr(world->log, text) != NULL;
}

bool
world_engine_is_stopped(struct world *world)
{
    return world->engine->ops->is_stopped(world->engine);
}

bool
world_engine_has_room(struct world *world)
{
    return world->engine->room > 0;
}

bool
world_engine_is_down(struct world *world)
{
    return world->engine->is_down;
}
