/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches through the public interface: a function for several messages on threads and on the loop,
 * from the options and from a file, and what is refused because it takes one at a time.
 */
#include "tests/service/service_fixture.h"
#include "tests/support/test.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MESSAGES = 250, SIZE = 100 };

struct tally {
    struct lw_dispatcher *dispatcher;
    atomic_uint messages;
    atomic_uint calls;
    atomic_uint largest;
};

static size_t
count(struct lw_delivery *const deliveries[], size_t n, enum lw_verdict verdicts[], void *user)
{
    struct tally *tally = user;
    unsigned largest = atomic_load(&tally->largest);
    while (n > largest &&
           !atomic_compare_exchange_weak(&tally->largest, &largest, (unsigned)n)) {
        continue;
    }
    atomic_fetch_add(&tally->calls, 1);
    for (size_t i = 0; i < n; i++) {
        verdicts[i] = lw_delivery_value(deliveries[i]).data ? LW_OK : LW_DEAD;
    }
    if (atomic_fetch_add(&tally->messages, (unsigned)n) + n == MESSAGES) {
        lw_dispatcher_request_close(tally->dispatcher);
    }
    return n;
}

static void
count_asynchronously(struct lw_delivery *const deliveries[], size_t n, void *user)
{
    enum lw_verdict verdicts[SIZE];
    size_t given = count(deliveries, n, verdicts, user);
    assert_int_equal(lw_batch_finish(deliveries[0], verdicts, given), LW_STATUS_OK);
}

/* Runs until all messages were handled, and looks at the calls. */
static void
run_all(struct service_fixture *fixture, struct tally *tally)
{
    service_publish(fixture, "topic", NULL, MESSAGES);
    assert_int_equal(lw_dispatcher_run(fixture->dispatcher, &fixture->error), LW_STATUS_OK);
    assert_int_equal(tally->messages, MESSAGES);
    assert_int_equal(tally->largest, SIZE);
    assert_true(tally->calls < MESSAGES / 10);
    assert_int_equal(service_backlog(fixture, "topic"), 0);
}

static void
take_batches(struct service_fixture *fixture, struct tally *tally, enum lw_engine_kind engine)
{
    struct lw_subscription_options *options = &fixture->options;
    tally->dispatcher = fixture->dispatcher;
    options->engine = engine;
    options->handler = NULL;
    options->handler_async = NULL;
    options->handler_batch = count;
    options->user = tally;
    options->ordering = LW_ORDERING_NONE;
    options->batch.size = SIZE;
    options->batch.wait_ms = 50;
}

static void
a_function_takes_several_messages_on_threads(void **state)
{
    struct service_fixture *fixture = *state;
    struct tally tally = { .dispatcher = NULL };
    take_batches(fixture, &tally, LW_ENGINE_THREADS);
    service_subscribe(fixture);
    run_all(fixture, &tally);
}

static void
a_function_takes_several_messages_on_the_loop(void **state)
{
    struct service_fixture *fixture = *state;
    struct tally tally = { .dispatcher = NULL };
    take_batches(fixture, &tally, LW_ENGINE_LOOP);
    service_subscribe(fixture);
    run_all(fixture, &tally);
}

static void
an_asynchronous_function_takes_several_messages_on_the_loop(void **state)
{
    struct service_fixture *fixture = *state;
    struct tally tally = { .dispatcher = NULL };
    take_batches(fixture, &tally, LW_ENGINE_LOOP);
    fixture->options.handler_batch = NULL;
    fixture->options.handler_batch_async = count_asynchronously;
    service_subscribe(fixture);
    run_all(fixture, &tally);
}

static void
take_batches_by_a_file(struct service_fixture *fixture, struct tally *tally, const char *engine,
                       const struct lw_binding *binding)
{
    char path[] = "/tmp/laneway-batches-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    lw_dispatcher_destroy(fixture->dispatcher); /* a file is for one without brokers */
    fixture->dispatcher = tally->dispatcher = lw_dispatcher_create(NULL, &fixture->error);
    (void)dprintf(
        fd,
        "version: 1\n"
        "brokers: { main: { url: '%s' } }\n"
        "handlers: { h: { function: count, engine: %s,\n"
        "                 batch: { size: %d, wait: 50ms } } }\n"
        "pipelines: { p: { broker: main, handler: h, ordering: none, topics: [topic],\n"
        "                  consumer: { group: group } } }\n",
        fixture->url, engine, SIZE);
    (void)close(fd);
    enum lw_status status = lw_dispatcher_load(fixture->dispatcher, path, binding, 1,
                                               &fixture->error);
    (void)unlink(path);
    if (status != LW_STATUS_OK) {
        fail_msg("%s", fixture->error.message);
    }
    run_all(fixture, tally);
}

static void
a_file_names_a_function_for_batches(void **state)
{
    struct tally tally = { .dispatcher = NULL };
    struct lw_binding binding = { .name = "count", .user = &tally, .handler_batch = count };
    take_batches_by_a_file(*state, &tally, "threads", &binding);
}

static void
a_file_names_an_asynchronous_function_for_batches(void **state)
{
    struct tally tally = { .dispatcher = NULL };
    struct lw_binding binding = { .name = "count",
                                  .user = &tally,
                                  .handler_batch_async = count_asynchronously };
    take_batches_by_a_file(*state, &tally, "loop", &binding);
}

static enum lw_verdict
take_one(struct lw_delivery *delivery, void *user)
{
    (void)delivery;
    (void)user;
    return LW_OK;
}

static void
expect_refusal(struct service_fixture *fixture, const char *part)
{
    assert_int_equal(
        lw_dispatcher_subscribe(fixture->dispatcher, &fixture->options, &fixture->error),
        LW_STATUS_INVALID);
    assert_string_equal(fixture->error.code, "E0320");
    assert_non_null(strstr(fixture->error.message, part));
}

static void
what_takes_one_message_at_a_time_is_refused(void **state)
{
    static const char *const program[] = { "cat", NULL };
    struct service_fixture *fixture = *state;
    struct lw_subscription_options *options = &fixture->options;
    options->handler = take_one;
    options->batch.size = 2;
    expect_refusal(fixture, "takes one message at a time");
    options->batch.size = 0;
    expect_refusal(fixture, "no messages");
    options->handler = NULL;
    options->engine = LW_ENGINE_PROGRAMS;
    options->program = program;
    options->protocol = LW_PROTOCOL_ONCE;
    options->batch.size = 2;
    expect_refusal(fixture, "takes one message at a time");
    assert_non_null(strstr(fixture->error.help, "protocol lines or frames"));
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, service_setup, service_teardown)
    const struct CMUnitTest tests[] = {
        CASE(a_function_takes_several_messages_on_threads),
        CASE(a_function_takes_several_messages_on_the_loop),
        CASE(an_asynchronous_function_takes_several_messages_on_the_loop),
        CASE(a_file_names_a_function_for_batches),
        CASE(a_file_names_an_asynchronous_function_for_batches),
        CASE(what_takes_one_message_at_a_time_is_refused),
    };
#undef CASE
    return cmocka_run_group_tests(tests, NULL, NULL);
}
