/* SPDX-License-Identifier: Apache-2.0 */
/* See world.h. */
#include "tests/support/test.h"

#include "tests/dispatcher/world.h"

#include <stdio.h>
#include <string.h>

#include "engines/loop.h"

#define HOUR_MS (3600 * 1000)

static void
on_log(enum lw_log_level level, const char *event, const char *text, const char *fields,
       void *user)
{
    struct world *world = user;
    (void)level;
    lw_text_format(&world->log, "%s: %s %s\n", event, text, fields);
}

static void
on_history(const struct lw_history_event *event, void *user)
{
    static const char *const names[] = {
        [LW_HISTORY_ASSIGNED] = "assign",   [LW_HISTORY_RECEIVED] = "receive",
        [LW_HISTORY_STARTED] = "start",     [LW_HISTORY_RETURNED] = "return",
        [LW_HISTORY_JUDGED] = "judge",      [LW_HISTORY_PUBLISHED] = "publish",
        [LW_HISTORY_SETTLED] = "settle",    [LW_HISTORY_DROPPED] = "drop",
        [LW_HISTORY_COMMITTED] = "commit",  [LW_HISTORY_REVOKED] = "revoke",
    };
    struct world *world = user;
    if (event->kind == LW_HISTORY_RECEIVED || event->kind == LW_HISTORY_RETURNED) {
        return;
    }
    lw_text_format(&world->story, "%s:%s/%d/%lld", names[event->kind], event->partition->topic,
                   event->partition->number, (long long)event->position);
    if (event->kind == LW_HISTORY_SETTLED || event->kind == LW_HISTORY_PUBLISHED) {
        lw_text_format(&world->story, "=%d", event->detail);
    }
    lw_text_append(&world->story, " ");
}

static void
on_message(struct lw_delivery *delivery, void *user)
{
    struct world *world = user;
    world->started_count++;
    if (world->answer) {
        (void)lw_delivery_finish(delivery, world->answer(delivery, world->user));
        return;
    }
    assert_true(world->running_count < WORLD_RUNNING);
    world->running[world->running_count++] = delivery;
}

static void
make_broker(struct world *world, const struct lw_memory_options *hub)
{
    static int number;
    char url[64];
    struct lw_error error = {0};
    snprintf(url, sizeof(url), "memory:world-%d", number++);
    world->hub = lw_memory_hub_open(url + strlen("memory:"), hub);
    assert_non_null(world->hub);
    assert_int_equal(lw_memory_broker_ops()->create(&world->virtual_host.host, "main", url, NULL,
                                                    0, &world->broker, &error),
                     LW_STATUS_OK);
    assert_int_equal(lw_dispatcher_add_broker(&world->dispatcher, world->broker, NULL),
                     LW_STATUS_OK);
}

void
world_init(struct world *world, uint32_t slots, const struct lw_memory_options *hub)
{
    struct lw_dispatcher_options options;
    struct lw_handler_options handler = {.handler_async = on_message, .user = world};
    struct lw_error error = {0};
    memset(world, 0, sizeof(*world));
    virtual_host_init(&world->virtual_host, 1);
    world->virtual_host.host.log = on_log;
    world->virtual_host.host.log_user = world;
    lw_text_init(&world->story);
    lw_text_init(&world->log);
    lw_dispatcher_options_init(&options);
    options.concurrency = slots;
    assert_int_equal(lw_dispatcher_init(&world->dispatcher, &world->virtual_host.host, -1,
                                        &options, &error),
                     LW_STATUS_OK);
    world->history = (struct lw_history){on_history, world};
    world->dispatcher.history = &world->history;
    make_broker(world, hub);
    assert_int_equal(lw_loop_engine_create(&world->virtual_host.host,
                                           &world->dispatcher.completions, "test", &handler,
                                           &world->engine),
                     LW_STATUS_OK);
    assert_int_equal(lw_dispatcher_add_engine(&world->dispatcher, world->engine), LW_STATUS_OK);
}

void
world_deinit(struct world *world)
{
    if (world->is_started && world->dispatcher.phase != LW_PHASE_CLOSED) {
        lw_shutdown_begin(&world->dispatcher, true);
        world_turn(world);
        world_finish_all(world);
        (void)world_close(world);
    }
    lw_dispatcher_deinit(&world->dispatcher);
    lw_memory_hub_close(world->hub);
    lw_text_deinit(&world->story);
    lw_text_deinit(&world->log);
}

struct lw_subscription_options
world_options(const char *topic, int32_t priority)
{
    struct lw_subscription_options options;
    lw_subscription_options_init(&options);
    options.broker = "main";
    options.topic = topic;
    options.subscription = "group";
    options.priority = priority;
    return options;
}

void
world_add(struct world *world, const struct lw_subscription_options *options)
{
    struct lw_error error = {0};
    enum lw_status status =
        lw_dispatcher_add_stream(&world->dispatcher, options, world->engine, &error);
    if (status != LW_STATUS_OK) {
        fail_msg("%s", error.message);
    }
}

void
world_topic(struct world *world, const char *topic, int32_t partitions)
{
    assert_int_equal(lw_memory_hub_create_topic(world->hub, topic, partitions), LW_STATUS_OK);
}

void
world_start(struct world *world)
{
    struct lw_error error = {0};
    world->is_started = true;
    assert_int_equal(lw_dispatcher_start(&world->dispatcher, &error), LW_STATUS_OK);
    world_turn(world);
}

void
world_send(struct world *world, const char *topic, int32_t partition, const char *key,
           uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        char value[16];
        snprintf(value, sizeof(value), "%u", i);
        struct lw_memory_item item = lw_memory_item_of(topic, key, value);
        item.partition = partition;
        assert_int_equal(lw_memory_hub_publish(world->hub, &item, NULL, NULL), LW_STATUS_OK);
    }
}

void
world_turn(struct world *world)
{
    virtual_host_settle(&world->virtual_host);
}

void
world_pass(struct world *world, int64_t ms)
{
    virtual_host_pass(&world->virtual_host, (uint64_t)ms * LW_MS);
}

void
world_finish(struct world *world, uint32_t i, enum lw_verdict verdict)
{
    assert_true(i < world->running_count);
    struct lw_delivery *delivery = world->running[i];
    memmove(&world->running[i], &world->running[i + 1],
            (world->running_count - i - 1) * sizeof(world->running[0]));
    world->running_count--;
    assert_int_equal(lw_delivery_finish(delivery, verdict), LW_STATUS_OK);
    world_turn(world);
}

void
world_finish_all(struct world *world)
{
    while (world->running_count > 0) {
        world_finish(world, 0, LW_OK);
    }
}

const char *
world_name(struct world *world, uint32_t i)
{
    static char name[128];
    assert_true(i < world->running_count);
    const struct lw_delivery *delivery = world->running[i];
    snprintf(name, sizeof(name), "%s/%d/%lld", lw_delivery_topic(delivery),
             lw_delivery_partition(delivery), (long long)lw_delivery_offset(delivery));
    return name;
}

int64_t
world_committed(struct world *world, const char *topic, int32_t partition)
{
    return lw_memory_hub_committed(world->hub, "group", topic, partition, NULL);
}

size_t
world_count(struct world *world, const char *topic)
{
    return lw_memory_hub_each(world->hub, topic, NULL, NULL);
}

enum lw_status
world_close(struct world *world)
{
    lw_shutdown_begin(&world->dispatcher, false);
    for (int i = 0; i < HOUR_MS && world->dispatcher.phase != LW_PHASE_CLOSED; i += 100) {
        world_pass(world, 100);
    }
    assert_int_equal(world->dispatcher.phase, LW_PHASE_CLOSED);
    return world->dispatcher.end_status;
}
