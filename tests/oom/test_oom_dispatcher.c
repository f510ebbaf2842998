/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The n-th allocation fails, for n = 1, 2, 3 and so on through a whole life: create, subscribe,
 * start, a run with retries, replies, outputs, retry copies and dead letters, drain, destroy. What
 * fails at the start is refused and leaves nothing behind. What fails later is backpressure:
 * nothing crashes, nothing is lost, and in the end everything is committed.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "brokers/memory/broker.h"
#include "brokers/memory/hub.h"
#include "dispatcher/dispatcher.h"
#include "engines/loop.h"
#include "tests/support/virtual_host.h"

enum { MESSAGES = 40, PARTITIONS = 2, MINUTES = 30 };

struct life {
    struct virtual_host host;
    struct lw_memory_hub *hub;
    const struct lw_memory_options *options;
    uint64_t n;
    bool is_blocking; /* the handler is called on the loop thread by the dispatcher */
    bool is_republished;
    struct lw_dispatcher dispatcher;
    uint32_t handled[MESSAGES];
};

/* -- the handler: what a message wants is in its value ------------------------------------------ */

static enum lw_verdict
say(struct lw_delivery *delivery, void *user)
{
    struct life *life = user;
    struct lw_bytes value = lw_delivery_value(delivery);
    const char *text = value.data;
    uint32_t number = (uint32_t)(text[1] - '0') * 10 + (uint32_t)(text[2] - '0');
    uint32_t runs = life->handled[number]++;
    struct lw_output output = { .topic = "audit", .value = value };
    switch (text[0]) {
    case 'r': /* the caller tells a refused reply by trying again */
        return lw_delivery_reply(delivery, value) == LW_STATUS_OK ? LW_OK : LW_RETRY;
    case 'o':
        return lw_delivery_publish(delivery, &output) == LW_STATUS_OK ? LW_OK : LW_RETRY;
    case 't':
        return runs == 0 ? lw_delivery_retry(delivery, "again", -1) : LW_OK;
    case 'd':
        return lw_delivery_dead(delivery, "bad");
    default:
        return LW_OK;
    }
}

static void
say_later(struct lw_delivery *delivery, void *user)
{
    (void)lw_delivery_finish(delivery, say(delivery, user));
}

/* -- a life ------------------------------------------------------------------------------------- */

static void
seed(struct life *life)
{
    memset(life->handled, 0, sizeof(life->handled));
    virtual_host_init(&life->host, 1);
    life->hub = lw_memory_hub_open("oom", life->options);
    assert_non_null(life->hub);
    assert_int_equal(lw_memory_hub_create_topic(life->hub, "orders", PARTITIONS), LW_STATUS_OK);
    for (int i = 0; i < MESSAGES; i++) {
        char value[16];
        char key[80];
        snprintf(value, sizeof(value), "%c%02d", "rotd."[i % 5], i);
        snprintf(key, sizeof(key), "%0*d", i % 3 ? 4 : 70, i % 7);
        struct lw_memory_item item = lw_memory_item_of("orders", key, value);
        item.partition = i % PARTITIONS;
        assert_int_equal(lw_memory_hub_publish(life->hub, &item, NULL, NULL), LW_STATUS_OK);
    }
}

static enum lw_status
add_broker(struct life *life, struct lw_error *error)
{
    struct lw_broker *broker = NULL;
    enum lw_status status = lw_memory_broker_ops()->create(
        &life->host.host, "main", "memory:oom", NULL, 0, &broker, error);
    if (status != LW_STATUS_OK) {
        return status;
    }
    status = lw_dispatcher_add_broker(&life->dispatcher, broker, NULL);
    if (status != LW_STATUS_OK) {
        broker->ops->destroy(broker);
    }
    return status;
}

static enum lw_status
add_engine(struct life *life, struct lw_engine **ret_engine)
{
    struct lw_handler_options handler = { .user = life };
    if (life->is_blocking) {
        handler.handler = say;
    } else {
        handler.handler_async = say_later;
    }
    enum lw_status status = lw_loop_engine_create(
        &life->host.host, &life->dispatcher.completions, "test", &handler, ret_engine);
    if (status != LW_STATUS_OK) {
        return status;
    }
    status = lw_dispatcher_add_engine(&life->dispatcher, *ret_engine);
    if (status != LW_STATUS_OK) {
        (*ret_engine)->ops->destroy(*ret_engine);
    }
    return status;
}

static enum lw_status
add_stream(struct life *life, struct lw_engine *engine, struct lw_error *error)
{
    static const char *const allow[] = { "a", "b*" };
    static const struct lw_error_class class = { 1, 2, LW_DEAD };
    static const int64_t tiers_ms[] = { 1000 };
    struct lw_subscription_options options;
    lw_subscription_options_init(&options);
    options.broker = "main";
    options.topic = "orders";
    options.subscription = "group";
    options.reply.topic = "replies";
    options.dead_letter.allow = allow;
    options.dead_letter.allow_count = 2;
    options.errors = &class;
    options.error_count = 1;
    if (life->is_republished) {
        options.retry.topic = "{topic}.again";
        options.retry.allow_overtaking = true;
        options.retry.tiers_ms = tiers_ms;
        options.retry.tier_count = 1;
    }
    return lw_dispatcher_add_stream(&life->dispatcher, &options, engine, error);
}

/* Everything up to start; a refusal leaves a dispatcher that deinit ends. */
static enum lw_status
begin(struct life *life)
{
    struct lw_dispatcher_options options;
    struct lw_engine *engine = NULL;
    struct lw_error error = { 0 };
    lw_dispatcher_options_init(&options);
    options.concurrency = 4;
    enum lw_status status = lw_dispatcher_init(&life->dispatcher, &life->host.host, -1,
                                               &options, &error);
    if (status != LW_STATUS_OK) {
        return status;
    }
    status = add_broker(life, &error);
    status = status == LW_STATUS_OK ? add_engine(life, &engine) : status;
    status = status == LW_STATUS_OK ? add_stream(life, engine, &error) : status;
    status = status == LW_STATUS_OK ? lw_dispatcher_start(&life->dispatcher, &error) : status;
    if (status != LW_STATUS_OK && life->dispatcher.phase == LW_PHASE_NEW) {
        lw_dispatcher_deinit(&life->dispatcher);
    }
    return status;
}

static bool
is_all_committed(const struct life *life)
{
    return lw_memory_hub_backlog(life->hub, "group", "orders") == 0 &&
           lw_memory_hub_backlog(life->hub, "group", "orders.again.1s") == 0 &&
           life->dispatcher.held_count == 0;
}

/* Runs until all is committed, or it ended by itself. */
static void
run(struct life *life)
{
    for (int i = 0; i < MINUTES * 60; i++) {
        virtual_host_pass(&life->host, 1000 * LW_MS);
        if (life->dispatcher.phase == LW_PHASE_CLOSED || is_all_committed(life)) {
            return;
        }
    }
    fail_msg("n %llu: after %d minutes %u are held and %llu not committed",
             (unsigned long long)life->n, MINUTES, life->dispatcher.held_count,
             (unsigned long long)lw_memory_hub_backlog(life->hub, "group", "orders"));
}

static void
end(struct life *life)
{
    lw_shutdown_begin(&life->dispatcher, false);
    for (int i = 0; i < 60 && life->dispatcher.phase != LW_PHASE_CLOSED; i++) {
        virtual_host_pass(&life->host, 1000 * LW_MS);
    }
    assert_int_equal(life->dispatcher.phase, LW_PHASE_CLOSED);
    lw_dispatcher_deinit(&life->dispatcher);
}

/* One life with the n-th allocation failing: refused at its start, or nothing is lost. */
static bool
live(struct life *life, uint64_t n)
{
    life->n = n;
    seed(life);
    uint64_t before = lw_alloc_count();
    lw_alloc_fail_at(n);
    enum lw_status status = begin(life);
    bool is_refused = status != LW_STATUS_OK && life->dispatcher.phase == LW_PHASE_NEW;
    if (is_refused) {
        lw_alloc_fail_at(0);
        assert_int_equal(status, LW_STATUS_NO_MEMORY);
        return true;
    }
    run(life);
    end(life);
    bool has_failed = lw_alloc_count() - before >= n;
    lw_alloc_fail_at(0);
    assert_true(is_all_committed(life));
    return has_failed;
}

static size_t
stored(const struct life *life, const char *topic)
{
    return lw_memory_hub_each(life->hub, topic, NULL, NULL);
}

static void
fail_each(struct life *life)
{
    for (uint64_t n = 1;; n++) {
        uint64_t live_before = lw_alloc_live();
        bool has_failed = live(life, n);
        if (lw_memory_hub_backlog(life->hub, "group", "orders") == 0) {
            assert_in_range(stored(life, "replies"), MESSAGES / 5, MESSAGES / 5 + 2);
            assert_in_range(stored(life, "audit"), MESSAGES / 5, MESSAGES / 5 + 2);
            assert_in_range(stored(life, "orders.dlq") + stored(life, "orders-group-DLQ"),
                            MESSAGES / 5, MESSAGES / 5 + 2);
        }
        lw_memory_hub_close(life->hub);
        assert_int_equal(lw_alloc_live(), live_before);
        if (!has_failed) {
            assert_true(n > 50);
            return;
        }
    }
}

static void
a_log_with_retries_in_place(void **state)
{
    static struct life life;
    (void)state;
    fail_each(&life);
}

static void
a_log_with_a_blocking_handler(void **state)
{
    static struct life life = { .is_blocking = true };
    (void)state;
    fail_each(&life);
}

static void
a_log_with_retry_tiers(void **state)
{
    static struct life life = { .is_republished = true };
    (void)state;
    fail_each(&life);
}

static void
a_broker_with_acks(void **state)
{
    static struct life life;
    struct lw_memory_options options;
    (void)state;
    lw_memory_options_init(&options);
    options.mode = LW_MEMORY_INDIVIDUAL;
    options.nack_delay_ns = 1000 * LW_MS;
    life.options = &options;
    fail_each(&life);
}

/* -- memory that is short for a while --------------------------------------------------------- */

static uint32_t refused_percent;
static uint64_t dice = 1;

static bool
is_refused(void)
{
    dice = dice * 6364136223846793005U + 1442695040888963407U;
    return (dice >> 33) % 100 < refused_percent;
}

/* Partitions that get memory; then there is none for others until this is raised. */
static uint32_t partitions_left = UINT32_MAX;

static bool
is_partition_refused(size_t size)
{
    if (size != sizeof(struct lw_partition) || partitions_left == UINT32_MAX) {
        return false;
    }
    return partitions_left == 0 || partitions_left-- == 0;
}

static void *
short_alloc(size_t size, void *user)
{
    (void)user;
    return is_refused() || is_partition_refused(size) ? NULL : malloc(size);
}

static void *
short_resize(void *pointer, size_t size, void *user)
{
    (void)user;
    return is_refused() ? NULL : realloc(pointer, size);
}

static void
short_free(void *pointer, void *user)
{
    (void)user;
    free(pointer);
}

/* Starts well; then a share of all allocations fails for ten seconds. */
static void
live_short(struct life *life, uint32_t percent, uint64_t number)
{
    uint64_t live_before = lw_alloc_live();
    life->n = number;
    seed(life);
    assert_int_equal(begin(life), LW_STATUS_OK);
    dice = number;
    refused_percent = percent;
    virtual_host_pass(&life->host, 10000 * LW_MS);
    refused_percent = 0;
    run(life);
    end(life);
    assert_true(is_all_committed(life));
    /* what could not be answered in its attempts is a dead letter: nothing vanished */
    assert_true(stored(life, "replies") + stored(life, "audit") + stored(life, "orders.dlq") >=
                3 * MESSAGES / 5);
    lw_memory_hub_close(life->hub);
    assert_int_equal(lw_alloc_live(), live_before);
}

static void
memory_that_is_short_for_a_while_loses_nothing(void **state)
{
    static struct life lives[3] = { { .n = 0 },
                                    { .is_blocking = true },
                                    { .is_republished = true } };
    (void)state;
    for (uint32_t i = 0; i < 300; i++) {
        live_short(&lives[i % 3], 2 + i % 40, 7919 * (uint64_t)i + 3);
    }
}

static void
a_partition_without_memory_waits_alone(void **state)
{
    static struct life life;
    (void)state;
    refused_percent = 0;
    seed(&life);
    partitions_left = 1;
    assert_int_equal(begin(&life), LW_STATUS_OK);
    virtual_host_pass(&life.host, 20000 * LW_MS);
    const struct lw_stream *stream = life.dispatcher.streams[0];
    assert_int_equal(stream->unplaced_count, 1);
    assert_int_equal(life.dispatcher.phase, LW_PHASE_RUNNING);
    assert_int_equal(lw_memory_hub_backlog(life.hub, "group", "orders"), MESSAGES / PARTITIONS);
    partitions_left = UINT32_MAX;
    virtual_host_pass(&life.host, 20000 * LW_MS);
    assert_int_equal(stream->unplaced_count, 0);
    assert_true(is_all_committed(&life));
    end(&life);
    lw_memory_hub_close(life.hub);
}

static void
a_partition_without_memory_is_forgotten_when_it_goes(void **state)
{
    static struct life life;
    (void)state;
    seed(&life);
    partitions_left = 1;
    assert_int_equal(begin(&life), LW_STATUS_OK);
    virtual_host_pass(&life.host, 1000 * LW_MS);
    assert_int_equal(life.dispatcher.streams[0]->unplaced_count, 1);
    partitions_left = UINT32_MAX;
    lw_memory_hub_rebalance(life.hub, "group");
    run(&life);
    assert_int_equal(life.dispatcher.streams[0]->unplaced_count, 0);
    end(&life);
    lw_memory_hub_close(life.hub);
}

int
main(void)
{
    const struct lw_allocator allocator = { short_alloc, short_resize, short_free, NULL };
    lw_allocator_set(&allocator);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_log_with_retries_in_place),
        cmocka_unit_test(a_log_with_a_blocking_handler),
        cmocka_unit_test(a_log_with_retry_tiers),
        cmocka_unit_test(a_broker_with_acks),
        cmocka_unit_test(memory_that_is_short_for_a_while_loses_nothing),
        cmocka_unit_test(a_partition_without_memory_waits_alone),
        cmocka_unit_test(a_partition_without_memory_is_forgotten_when_it_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
