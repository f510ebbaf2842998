/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fixture of the dispatcher's tests: one loop engine whose handler only remembers what was
 * started, one memory broker per world, the story and the log as texts. See world.h.
 */
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
        [LW_HISTORY_ASSIGNED] = "assign",  [LW_HISTORY_RECEIVED] = "receive",
        [LW_HISTORY_STARTED] = "start",    [LW_HISTORY_RETURNED] = "return",
        [LW_HISTORY_JUDGED] = "judge",     [LW_HISTORY_PUBLISHED] = "publish",
        [LW_HISTORY_SETTLED] = "settle",   [LW_HISTORY_DROPPED] = "drop",
        [LW_HISTORY_COMMITTED] = "commit", [LW_HISTORY_REVOKED] = "revoke",
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

static struct lw_broker *
join(struct world *world, const char *name, const char *hub_name)
{
    char url[64];
    struct lw_error error = { 0 };
    struct lw_broker *broker = NULL;
    snprintf(url, sizeof(url), "memory:%s", hub_name);
    assert_int_equal(lw_memory_broker_ops()->create(&world->clock->host, name, url, NULL, 0,
                                                    &broker, &error),
                     LW_STATUS_OK);
    assert_int_equal(lw_dispatcher_add_broker(&world->dispatcher, broker, NULL), LW_STATUS_OK);
    return broker;
}

static struct lw_memory_hub *
make_hub(char name[32], const struct lw_memory_options *options)
{
    static int number;
    snprintf(name, 32, "world-%d", number++);
    struct lw_memory_hub *hub = lw_memory_hub_open(name, options);
    assert_non_null(hub);
    return hub;
}

static void
make_dispatcher(struct world *world, uint32_t slots)
{
    struct lw_dispatcher_options options;
    struct lw_handler_options handler = { .handler_async = on_message, .user = world };
    struct lw_error error = { 0 };
    struct lw_host *host = &world->clock->host;
    lw_text_init(&world->story);
    lw_text_init(&world->log);
    lw_text_init(&world->shown);
    lw_dispatcher_options_init(&options);
    options.concurrency = slots;
    assert_int_equal(lw_dispatcher_init(&world->dispatcher, host, -1, &options, &error),
                     LW_STATUS_OK);
    world->history = (struct lw_history){ on_history, world };
    world->dispatcher.history = &world->history;
    assert_int_equal(lw_loop_engine_create(host, &world->dispatcher.completions, "test",
                                           &handler, &world->engine),
                     LW_STATUS_OK);
    assert_int_equal(lw_dispatcher_add_engine(&world->dispatcher, world->engine), LW_STATUS_OK);
}

void
world_init(struct world *world, uint32_t slots, const struct lw_memory_options *hub)
{
    memset(world, 0, sizeof(*world));
    virtual_host_init(&world->virtual_host, 1);
    world->clock = &world->virtual_host;
    world->clock->host.log = on_log;
    world->clock->host.log_user = world;
    make_dispatcher(world, slots);
    world->hub = make_hub(world->hub_name, hub);
    world->broker = join(world, "main", world->hub_name);
}

void
world_init_beside(struct world *world, struct world *other, uint32_t slots)
{
    memset(world, 0, sizeof(*world));
    world->clock = other->clock;
    make_dispatcher(world, slots);
    memcpy(world->hub_name, other->hub_name, sizeof(world->hub_name));
    world->hub = lw_memory_hub_open(world->hub_name, NULL);
    world->broker = join(world, "beside", world->hub_name);
}

struct lw_memory_hub *
world_add_broker(struct world *world, const char *name)
{
    char hub_name[32];
    struct lw_memory_hub *hub = make_hub(hub_name, lw_memory_hub_options(world->hub));
    (void)join(world, name, hub_name);
    lw_memory_hub_close(hub); /* the broker holds it on */
    return hub;
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
    lw_text_deinit(&world->shown);
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
    struct lw_error error = { 0 };
    struct lw_subscription_options own = *options;
    own.broker = world->broker->name;
    enum lw_status status = lw_dispatcher_add_stream(&world->dispatcher, &own, world->engine,
                                                     &error);
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
    struct lw_error error = { 0 };
    world->is_started = true;
    assert_int_equal(lw_dispatcher_start(&world->dispatcher, &error), LW_STATUS_OK);
    world_turn(world);
}

void
world_begin_one(struct world *world, uint32_t slots,
                const struct lw_subscription_options *options)
{
    world_init(world, slots, NULL);
    world_topic(world, options->topic, 1);
    world_add(world, options);
    world_start(world);
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
    virtual_host_settle(world->clock);
}

void
world_pass(struct world *world, int64_t ms)
{
    virtual_host_pass(world->clock, (uint64_t)ms * LW_MS);
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

void
world_fault(struct world *world, enum lw_memory_fault_kind kind, uint32_t count,
            enum lw_status status)
{
    struct lw_memory_fault fault = { .kind = kind, .count = count, .status = status };
    assert_int_equal(lw_memory_hub_inject(world->hub, &fault), LW_STATUS_OK);
}

bool
world_told(const struct world *world, const char *text)
{
    return world->story.data && strstr(world->story.data, text);
}

bool
world_logged(const struct world *world, const char *text)
{
    return world->log.data && strstr(world->log.data, text);
}

uint32_t
world_times(const struct world *world, const char *text)
{
    uint32_t count = 0;
    const char *at = world->story.data ? world->story.data : "";
    while ((at = strstr(at, text)) != NULL) {
        at += strlen(text);
        count++;
    }
    return count;
}

/* -- what is stored ---------------------------------------------------------------------------- */

struct search {
    size_t wanted;
    size_t seen;
    const char *header; /* NULL: all of it */
    struct lw_text *text;
};

static void
put(struct lw_text *text, struct lw_bytes bytes)
{
    if (bytes.data) {
        lw_text_append_bytes(text, bytes.data, bytes.size);
    } else {
        lw_text_append(text, "-");
    }
}

static void
show(const struct lw_memory_view *view, void *user)
{
    struct search *search = user;
    if (search->seen++ != search->wanted) {
        return;
    }
    if (!search->header) {
        put(search->text, view->key);
        lw_text_append(search->text, "|");
        put(search->text, view->value);
        lw_text_append(search->text, "|");
    }
    for (size_t i = 0; i < view->header_count; i++) {
        const struct lw_header *header = &view->headers[i];
        if (!search->header) {
            put(search->text, header->name);
            lw_text_append(search->text, "=");
            put(search->text, header->value);
            lw_text_append(search->text, i + 1 < view->header_count ? "," : "");
        } else if (lw_text_is_equal(header->name, search->header)) {
            lw_text_clear(search->text);
            put(search->text, header->value);
        }
    }
}

static const char *
find_stored(struct world *world, const char *topic, size_t i, const char *header)
{
    struct search search = { i, 0, header, &world->shown };
    lw_text_clear(&world->shown);
    lw_text_append(&world->shown, "");
    (void)lw_memory_hub_each(world->hub, topic, show, &search);
    assert_true(search.seen > i);
    return world->shown.data ? world->shown.data : "";
}

const char *
world_stored(struct world *world, const char *topic, size_t i)
{
    return find_stored(world, topic, i, NULL);
}

const char *
world_stored_header(struct world *world, const char *topic, size_t i, const char *name)
{
    return find_stored(world, topic, i, name);
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
